"""`TaskConfig`, FastMCP's option ``task=`` of a tool, and funcmcp's option for it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal, cast

from funcmcp._objects.public_names import public
from funcmcp._server.catalog.task_options import TaskOptions

_MODES = ("forbidden", "optional", "required")
_POLL_INTERVAL = timedelta(seconds=5)


@public("funcmcp.compat")
@dataclass
class TaskConfig:
    """Whether a tool runs as a task.

    Attributes:
        mode: ``"forbidden"``: never. ``"optional"``: for clients that have tasks. ``"required"``: other clients get an
            error.
        poll_interval: The time between two requests for the status that clients are asked for. With the default,
            funcmcp derives it from the age of the task.
    """

    mode: str = "optional"
    poll_interval: timedelta = _POLL_INTERVAL

    @classmethod
    def from_bool(cls, value: bool) -> TaskConfig:  # noqa: FBT001 - as in FastMCP
        """Return the configuration for ``task=True`` or ``task=False``."""
        return cls("optional" if value else "forbidden")

    def supports_tasks(self) -> bool:
        """Return whether the tool may run as a task."""
        return self.mode != "forbidden"


def config_of(task: Any) -> TaskConfig:
    """Return the configuration for an option ``task`` of a tool."""
    if isinstance(task, TaskConfig):
        return task
    if isinstance(task, str):
        return TaskConfig(task)
    return TaskConfig.from_bool(bool(task))


def task_option(task: Any, tool: str, *, default: bool) -> dict[str, Any]:
    """Return funcmcp's option ``task`` of a tool; an empty dict if it does not run as a task.

    Args:
        task: The option of the tool: a bool, a mode, a TaskConfig, a TaskOptions or None.
        tool: The tool's name.
        default: The option of the server for tools without one.

    Raises:
        TypeError: The option is none of these.
    """
    if task is None:
        task = default
    if isinstance(task, TaskOptions):
        return {"task": task}
    if isinstance(task, bool):
        task = TaskConfig.from_bool(task)
    mode = getattr(task, "mode", task)
    if not isinstance(mode, str) or mode not in _MODES:
        raise TypeError(
            f"task of the tool {tool} must be True, False, 'optional', 'required', 'forbidden', a TaskConfig of "
            f"funcmcp.compat or a TaskOptions of funcmcp.tasks; got {task!r}."
        )
    if mode == "forbidden":
        return {}
    interval = getattr(task, "poll_interval", _POLL_INTERVAL)
    if interval == _POLL_INTERVAL:
        return {"task": mode}
    return {"task": TaskOptions(cast("Literal['optional', 'required']", mode), poll=interval.total_seconds())}
