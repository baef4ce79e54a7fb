"""What tools, resources, resource templates and prompts have in common."""

from __future__ import annotations

from dataclasses import KW_ONLY  # noqa: TC003 - read at run time

from funcmcp._auth.access import PRINCIPALS_ONLY, Access
from funcmcp._definitions import definition


@definition
class Feature:
    """One tool, resource, resource template or prompt.

    Attributes:
        interactive: Whether the handler may report progress, send log messages or ask the client questions, so that
            the transport must be ready to stream.
        timeout: Seconds after which a call is cancelled; None for no limit.
        access: Who may use the feature.
        shown_errors: Types of exceptions whose text clients get; None for those of the server.
        tags: Words by which `MCPServer.enable` and `disable` find it.
        enabled: Whether clients see it as long as no rule of `enable` or `disable` applies.
    """

    _: KW_ONLY
    interactive: bool = False
    timeout: float | None = 60.0
    access: Access = PRINCIPALS_ONLY
    shown_errors: tuple[type[BaseException], ...] | None = None
    tags: frozenset[str] = frozenset()
    enabled: bool = True

    @property
    def key(self) -> str:
        """The name or URI, unique among the features of its kind."""
        raise NotImplementedError
