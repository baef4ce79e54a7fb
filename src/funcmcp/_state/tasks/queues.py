"""The names of queues of tasks."""

from __future__ import annotations

import re

DEFAULT_QUEUE = "default"
"""The queue of tools that name none, and of tasks that an earlier version has created."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}")


def check_queue(name: object) -> None:
    """Raise ValueError unless this is the name of a queue."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValueError(
            "The name of a queue must have 1 to 40 letters, digits, '.', '_' and '-', and begin with a letter or a "
            f"digit; got {name!r:.60}."
        )
