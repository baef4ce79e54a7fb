"""The checks of ``funcmcp doctor`` for an app whose tasks run in a function with a queue trigger (`AzureTasks`).

Source: "host.json reference" (extensions.queues, functionTimeout), "Azure Functions hosting options" (time limits).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from funcmcp._adapters.azure.settings import at
from funcmcp_cli.doctor.project import Finding
from funcmcp_host.app_rules.setting_rules import BUNDLE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from funcmcp_cli.doctor.project import Project

_TIME = re.compile(r"(?:(\d{1,8})\.)?(\d{1,2}):(\d{2}):(\d{2})(?:\.\d+)?")
_DEFAULT_POLLING = 60.0
_LONGEST_POLLING = 10.0
"""Seconds for which a task may wait before it is noticed, without a warning."""

_FLEX_LIMIT = 1800.0
"""Seconds of an invocation on Flex Consumption and Premium, unless host.json has another number."""

_BUNDLE_LINE = f'"extensionBundle": {{"id": "{BUNDLE}", "version": "[4.36.0, 5.0.0)"}}'


def check_packages(project: Project) -> Iterator[Finding]:
    """Check that Azure installs the packages of `AzureTasks`."""
    funcmcp = project.funcmcp
    if not project.task_triggers or funcmcp is None:
        return
    if "azure-tasks" not in funcmcp.extras and "azure-storage-queue" not in (project.requirements or {}):
        yield Finding(
            "error", project.requirements_file, "has no packages for AzureTasks. Write funcmcp-slim[azure,azure-tasks]."
        )
    elif "azure-identity" not in (project.requirements or {}) and "managedidentity" in project.text_of(
        "infra/app.bicep"
    ):
        yield Finding(
            "error",
            project.requirements_file,
            "has no azure-identity, but the app on Azure uses an identity. Add a line.",
        )


def check_queues(project: Project) -> Iterator[Finding]:
    """Check that the functions host can read queues, and looks at them often enough."""
    if not project.task_triggers:
        return
    if at(project.host, "extensionBundle") is None:
        yield Finding("error", "extensionBundle", f"is missing in host.json. A queue trigger needs {_BUNDLE_LINE}.")
    interval = at(project.host, "extensions", "queues", "maxPollingInterval")
    seconds = _DEFAULT_POLLING if interval is None else _seconds_of(interval)
    if seconds is None:
        yield Finding("error", "maxPollingInterval", f'is {interval!r}. Write a time such as "00:00:02" in host.json.')
    elif seconds > _LONGEST_POLLING:
        yield Finding(
            "warning",
            "maxPollingInterval",
            f"lets tasks wait for up to {seconds:g} seconds. Add "
            '"queues": {"maxPollingInterval": "00:00:02"} to the extensions in host.json.',
        )
    else:
        yield Finding("ok", "queues", f"are polled every {seconds:g} seconds.")


def check_time_limit(project: Project) -> Iterator[Finding]:
    """Check that an invocation may take as long as a run of a task."""
    limits = [server.longest_run for server in project.code.servers if server.longest_run is not None]
    if not project.task_triggers or not limits:
        return
    longest = max(limits)
    text = at(project.host, "functionTimeout")
    if text in ("-1", -1):
        yield Finding("ok", "functionTimeout", "sets no limit to runs of tasks.")
        return
    seconds = _FLEX_LIMIT if text is None else _seconds_of(text)
    if seconds is None:
        yield Finding("error", "functionTimeout", f'is {text!r}. Write a time such as "01:00:00", or "-1".')
    elif seconds < longest:
        current = f"is {seconds:g} seconds" if text else f"is {seconds:g} seconds by default (300 on Consumption)"
        yield Finding(
            "warning",
            "functionTimeout",
            f"{current}, but a run of a task may take {longest:g}. Set it in host.json, "
            "or give the tools a shorter timeout= or ttl.",
        )
    else:
        yield Finding("ok", "functionTimeout", f"is as long as the runs of tasks ({longest:g} seconds).")


def check_connection(project: Project) -> Iterator[Finding]:
    """Check that the settings of this machine have the storage account of the tasks."""
    for trigger in project.task_triggers:
        name = str(trigger.get("connection"))
        has_account = project.settings.get(name) or project.settings.get(f"{name}__accountName")
        if not has_account and not project.settings.get(f"{name}__queueServiceUri"):
            yield Finding(
                "warning",
                name,
                "is not set in local.settings.json, so tasks do not run on this machine. For Azurite: "
                '"UseDevelopmentStorage=true".',
            )


def _seconds_of(time: object) -> float | None:
    """Return the seconds of a .NET TimeSpan such as "00:05:00" or "1.00:00:00"; None if it is not one."""
    match = _TIME.fullmatch(str(time))
    if match is None:
        return None
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return float(((days * 24 + hours) * 60 + minutes) * 60 + seconds)
