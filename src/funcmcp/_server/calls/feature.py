"""What tools, resources, resource templates and prompts have in common."""

from __future__ import annotations

from dataclasses import KW_ONLY  # noqa: TC003 - read at run time
from typing import NamedTuple

from funcmcp._auth.access import PRINCIPALS_ONLY, Access
from funcmcp._definitions import definition


class TimeLimit(NamedTuple):
    """The time that a call may take.

    Attributes:
        seconds: The seconds.
        option: The option that sets them, for errors and the log.
    """

    seconds: float
    option: str = "timeout="


DEFAULT_TIME_LIMIT = TimeLimit(600.0, "the default of timeout=")
"""The time limit of a call whose author has not set one.

It is longer than the time that clients wait by default (60 to 300 seconds), so that no call ends while its client still
waits. It is finite, because a call that hangs takes one of the places for requests until it ends."""


@definition
class Feature:
    """One tool, resource, resource template or prompt.

    Attributes:
        interactive: Whether the handler may report progress, send log messages or ask the client questions, so that
            the transport must be ready to stream.
        time_limit: The time after which a call is cancelled; None for no limit.
        access: Who may use the feature.
        shown_errors: Types of exceptions whose text clients get; None for those of the server.
        tags: Words by which `MCPServer.enable` and `disable` find it.
        enabled: Whether clients see it as long as no rule of `enable` or `disable` applies.
    """

    _: KW_ONLY
    interactive: bool = False
    time_limit: TimeLimit | None = DEFAULT_TIME_LIMIT
    access: Access = PRINCIPALS_ONLY
    shown_errors: tuple[type[BaseException], ...] | None = None
    tags: frozenset[str] = frozenset()
    enabled: bool = True

    @property
    def key(self) -> str:
        """The name or URI, unique among the features of its kind."""
        raise NotImplementedError
