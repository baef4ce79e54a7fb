"""How long an upstream may take, and how many sessions and processes it may have."""

from __future__ import annotations

import math
from dataclasses import fields

from funcmcp._objects.definitions import options_by_name
from funcmcp._objects.public_names import public


@public("funcmcp.upstreams")
@options_by_name
class UpstreamTimeouts:
    """Seconds that an upstream may take. None means no limit. Each error names the option whose time is up.

    Attributes:
        connect: Seconds until a session is open: the connection or the start of a process, and the handshake.
        first_answer: Seconds until the first message of a request has to arrive: its answer, progress, or a log
            message.
        request: Seconds until the answer to a request has to arrive. Progress starts them again if `reset_on_progress`
            is set.
        total: Seconds until the answer to a request has to arrive, whatever arrives before.
        reset_on_progress: Whether progress of a request starts the seconds of `request` again.

    Raises:
        ValueError: A number of seconds is not positive.
        TypeError: An option has the wrong type.
    """

    connect: float | None = 60.0
    first_answer: float | None = None
    request: float | None = 300.0
    total: float | None = 600.0
    reset_on_progress: bool = True

    def __post_init__(self) -> None:
        for option in fields(self):
            value = getattr(self, option.name)
            if option.name == "reset_on_progress" or value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise TypeError(f"UpstreamTimeouts.{option.name} must be a number of seconds; got {value!r}.")
            if not 0 < value < math.inf:
                raise ValueError(f"UpstreamTimeouts.{option.name} must be above 0; got {value}.")


@public("funcmcp.upstreams")
@options_by_name
class UpstreamLimits:
    """Sessions and processes that one upstream may have in one process of the server.

    When a limit is reached, the session that was unused for the longest time is ended to make room, if it has been
    unused for `min_idle_seconds`. If there is none, the call gets an error that names the option.

    Attributes:
        sessions: Sessions of the upstream over HTTP.
        sessions_per_caller: Sessions of the upstream for one principal, or for one address without credentials.
        processes: Processes of an upstream on stdio, each with one session.
        idle_seconds: Seconds after which an unused session is ended, and its process with it.
        min_idle_seconds: Seconds for which a session has to be unused before it is ended to make room.

    Raises:
        ValueError: An option is not positive.
        TypeError: An option has the wrong type.
    """

    sessions: int = 10_000
    sessions_per_caller: int = 1_000
    processes: int = 32
    idle_seconds: float = 1800.0
    min_idle_seconds: float = 60.0

    def __post_init__(self) -> None:
        for option in fields(self):
            value = getattr(self, option.name)
            is_count = not option.name.endswith("_seconds")
            if isinstance(value, bool) or not isinstance(value, int if is_count else int | float):
                kind = "an integer" if is_count else "a number of seconds"
                raise TypeError(f"UpstreamLimits.{option.name} must be {kind}; got {value!r}.")
            if not 0 < value < math.inf:
                raise ValueError(f"UpstreamLimits.{option.name} must be above 0; got {value}.")
