"""What environment variables and the command line say about the process that serves."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

TASK_CONCURRENCY_VARIABLE = "FUNCMCP_TASK_CONCURRENCY"
"""The environment variable with the number of tasks that a process runs at once."""

TASK_QUEUES_VARIABLE = "FUNCMCP_TASK_QUEUES"
"""The environment variable with the queues whose tasks a process runs, separated by commas."""


_PLATFORM_VARIABLES = (
    "WEBSITE_INSTANCE_ID",  # Azure Functions and App Service
    "FUNCTIONS_CUSTOMHANDLER_PORT",  # a custom handler of Azure Functions
    "CONTAINER_APP_NAME",  # Azure Container Apps
    "KUBERNETES_SERVICE_HOST",
    "K_SERVICE",  # Cloud Run and Knative
    "DYNO",  # Heroku
    "FLY_APP_NAME",
    "RENDER",
    "RAILWAY_ENVIRONMENT",
    "VERCEL",
    "AWS_EXECUTION_ENV",
    "ECS_CONTAINER_METADATA_URI_V4",
)


def task_concurrency(environment: Mapping[str, str]) -> int | None:
    """Return how many tasks this process runs at once, if the environment says so."""
    text = environment.get(TASK_CONCURRENCY_VARIABLE)
    if not text:
        return None
    if not text.isascii() or not text.isdecimal():
        raise ValueError(f"{TASK_CONCURRENCY_VARIABLE} must be a number of tasks, or 0 for none; got {text!r}.")
    return int(text)


def task_queues(environment: Mapping[str, str]) -> frozenset[str] | None:
    """Return the queues whose tasks this process runs, if the environment says so; None for all."""
    text = environment.get(TASK_QUEUES_VARIABLE)
    if not text:
        return None
    from funcmcp._state.tasks.queues import check_queue  # noqa: PLC0415 - few processes serve some queues only

    names = [name.strip() for name in text.split(",")]
    for name in names:
        try:
            check_queue(name)
        except ValueError as error:
            raise ValueError(f"{TASK_QUEUES_VARIABLE}: {error}") from None
    return frozenset(names)


def is_on_azure() -> bool:
    """Return whether Azure runs this process, which may start it on further instances at any time."""
    return any(os.environ.get(variable) for variable in ("WEBSITE_INSTANCE_ID", "CONTAINER_APP_NAME"))


def platform_variable(environment: Mapping[str, str]) -> str | None:
    """Return an environment variable that only a platform sets on which servers run for others; None without one."""
    return next((variable for variable in _PLATFORM_VARIABLES if environment.get(variable)), None)


def may_be_one_of_several() -> bool:
    """Return whether a program such as gunicorn or `uvicorn --workers` has started this process beside others."""
    is_of_gunicorn = os.environ.get("SERVER_SOFTWARE", "").startswith("gunicorn")
    multiprocessing = sys.modules.get("multiprocessing.process")  # A worker process has it loaded.
    is_worker = multiprocessing is not None and multiprocessing.parent_process() is not None
    if not is_of_gunicorn and (not is_worker or "--reload" in sys.argv):  # The process of a reloader is the only one.
        return False
    return not _is_only_worker(sys.argv, os.environ)


def _is_only_worker(arguments: Sequence[str], environment: Mapping[str, str]) -> bool:
    """Return whether the command line of a server, which its workers have as well, asks for one worker.

    Without the option, gunicorn and uvicorn may read the number elsewhere; granian starts one worker.
    """
    number = ""
    for argument, following in zip(arguments, [*arguments[1:], ""], strict=True):
        if argument in {"-w", "--workers"}:
            number = following
        elif argument.startswith(("-w", "--workers=")):
            number = argument.removeprefix("--workers=").removeprefix("-w")
    is_granian = bool(arguments) and os.path.basename(arguments[0]) == "granian"  # noqa: PTH119 - any text
    if not number and is_granian:
        number = environment.get("GRANIAN_WORKERS") or "1"
    return number == "1"
