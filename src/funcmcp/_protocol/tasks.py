"""Tasks on the wire: the extension of 2026-07-28 and the experimental tasks of 2025-11-25.

Source: the extension's "tasks" (SEP-2663); 2025-11-25 "basic/utilities/tasks".
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from funcmcp._protocol.revisions import TaskRules

EXTENSION = "io.modelcontextprotocol/tasks"
RELATED_TASK = "io.modelcontextprotocol/related-task"
IDEMPOTENCY_KEY = "io.funcmcp/idempotencyKey"
"""A member of the `_meta` of `tools/call`, with which a client may repeat a call that became a task."""

WORKING = "working"
INPUT_REQUIRED = "input_required"
COMPLETED = "completed"
FAILED = "failed"
CANCELLED = "cancelled"
TERMINAL = frozenset({COMPLETED, FAILED, CANCELLED})
STATUSES = TERMINAL | {WORKING, INPUT_REQUIRED}

MIN_POLL = 0.25
MAX_POLL = 5.0
_POLLS_PER_AGE = 10
"""A client that polls at the interval learns of the end of a task at most a tenth of its duration late."""


class TaskStatus(NamedTuple):
    """What clients see of a task. Times are in seconds.

    Attributes:
        task_id: The id.
        status: One of `STATUSES`.
        message: The status message, if there is one.
        created: When it was created, since 1970.
        updated: When the status last changed, since 1970.
        ttl: For how long it is kept, from its creation.
        poll: Between two requests for its status.
        tool_failed: Whether it ended with a result with ``isError: true``.
    """

    task_id: str
    status: str
    message: str | None
    created: float
    updated: float
    ttl: float
    poll: float
    tool_failed: bool = False


def declares(capabilities: Mapping[str, Any]) -> bool:
    """Return whether a client's capabilities declare the extension."""
    extensions = capabilities.get("extensions")
    return isinstance(extensions, dict) and isinstance(extensions.get(EXTENSION), dict)


def members(task: TaskStatus, rules: TaskRules) -> dict[str, Any]:
    """Return the members of a Task as a revision has them."""
    status = task.status
    if task.tool_failed and status == COMPLETED:
        status = rules.tool_failure
    shown: dict[str, Any] = {"taskId": task.task_id, "status": status}
    if task.message is not None:
        shown["statusMessage"] = task.message
    shown["createdAt"] = timestamp(task.created)
    shown["lastUpdatedAt"] = timestamp(task.updated)
    shown[rules.ttl] = int(task.ttl * 1000)
    if status not in TERMINAL:
        shown[rules.poll_interval] = int(task.poll * 1000)
    return shown


def created(task: TaskStatus, rules: TaskRules) -> dict[str, Any]:
    """Return a CreateTaskResult."""
    if rules.extension:
        return {"resultType": "task", **members(task, rules)}
    return {"task": members(task, rules)}


def poll_seconds(age: float, fixed: float | None) -> float:
    """Return the seconds between two requests for the status of a task.

    Args:
        age: Seconds since its creation.
        fixed: What the author chose; None for a tenth of the age, within limits.
    """
    if fixed is not None:
        return fixed
    return min(max(age / _POLLS_PER_AGE, MIN_POLL), MAX_POLL)


def timestamp(seconds: float) -> str:
    """Return a time as ISO 8601 with milliseconds, in UTC."""
    milliseconds = int(seconds * 1000)
    moment = time.gmtime(milliseconds // 1000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', moment)}.{milliseconds % 1000:03d}Z"
