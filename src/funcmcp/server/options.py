"""What a server says of itself, how it answers lists, and how much it takes on."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypedDict

from funcmcp.server.limits import Limits

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import TypeAlias

    from funcmcp.state.rates import Rates

    ShowErrors: TypeAlias = bool | type[BaseException] | Sequence[type[BaseException]]


class ServerKeywords(TypedDict, total=False):
    """`ServerOptions` as keyword arguments, the name aside."""

    version: str
    title: str | None
    description: str | None
    icons: Sequence[Any]
    website_url: str | None
    instructions: str | None
    page_size: int | None
    list_ttl: float
    read_ttl: float
    enable_tools: bool | None
    enable_resources: bool | None
    enable_prompts: bool | None
    limits: Limits
    rates: Rates | None
    show_errors: ShowErrors


_NAMES_ELSEWHERE = {
    "host": "mcp.run(host=...)",
    "port": "mcp.run(port=...)",
    "stateless_http": "sessions=None",
    "streamable_http_path": "path=",
    "sse_path": "sse=",
    "lifespan": "mcp.services",
    "token_verifier": "auth=",
    "mask_error_details": "show_errors=",
}
"""What funcmcp has for options of other frameworks."""


def check_options(options: Mapping[str, Any]) -> None:
    """Raise TypeError, with what to write instead, for an option that a server does not have."""
    for name in options:
        if name in _NAMES_ELSEWHERE:
            raise TypeError(f"MCPServer has no option {name!r}. Use {_NAMES_ELSEWHERE[name]}.")
        if name not in ServerOptions.__dataclass_fields__:
            server_options = "path, revisions, http, auth, sessions, keys, bus, sse, websocket"
            valid = ", ".join(field for field in ServerOptions.__dataclass_fields__ if field != "name")
            raise TypeError(f"MCPServer has no option {name!r}. Valid options: {server_options}, {valid}.")


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """The server's Implementation, its instructions, its lists and its limits.

    Attributes:
        name: the program's name, as clients see it.
        version: the program's own version.
        title: a name for people.
        description: what the server is for.
        icons: Icon objects as the specification has them: ``{"src": "https://...", "mimeType": "image/png"}``.
        website_url: where to read more.
        instructions: guidance for the model on how to use the server.
        page_size: how many items a page of a list has; None for all on one page.
        list_ttl: seconds for which a client may keep a list (2026-07-28).
        read_ttl: seconds for which a client may keep what it has read of a resource (2026-07-28).
        enable_tools: whether tools are offered; None to offer them as long as there are any.
        enable_resources: the same for resources.
        enable_prompts: the same for prompts.
        limits: how much one process takes on.
        rates: how many requests a caller may send in a time over a network; None for as many as it likes.
        show_errors: Exceptions whose text clients get when a tool, a resource or a prompt raises them: True for all, or
            types. By default clients get a sentence with an error id, which the log has, too. `ToolError` and the
            protocol's own errors are always shown.

    Raises:
        ValueError: a page would be empty, a time is negative or endless, or `show_errors` has other things than types
            of exceptions.
    """

    name: str
    version: str = "0.1.0"
    title: str | None = None
    description: str | None = None
    icons: Sequence[dict[str, Any]] = ()
    website_url: str | None = None
    instructions: str | None = None
    page_size: int | None = None
    list_ttl: float = 60.0
    read_ttl: float = 0.0
    enable_tools: bool | None = True
    enable_resources: bool | None = None
    enable_prompts: bool | None = None
    limits: Limits = field(default_factory=Limits)
    rates: Rates | None = None
    show_errors: ShowErrors = False

    def __post_init__(self) -> None:
        """Raise ValueError for a page or a time that is none."""
        if self.page_size is not None and self.page_size < 1:
            raise ValueError(f"page_size must be at least 1, or None; got {self.page_size}.")
        for name, seconds in (("list_ttl", self.list_ttl), ("read_ttl", self.read_ttl)):
            if not 0 <= seconds < math.inf:
                raise ValueError(f"{name} must be a number of seconds, 0 or more; got {seconds}.")
        shown_types(self.show_errors, "show_errors")

    def implementation(self) -> dict[str, Any]:
        """Return the Implementation in the newest revision's shape."""
        members = {
            "name": self.name,
            "version": self.version,
            "title": self.title,
            "description": self.description,
            "icons": list(self.icons) or None,
            "websiteUrl": self.website_url,
        }
        return {name: value for name, value in members.items() if value is not None}


def shown_types(show_errors: ShowErrors, option: str) -> tuple[type[BaseException], ...]:
    """Return the types of the exceptions whose text clients get.

    Args:
        show_errors: True for every `Exception`, False for none, a type, or types.
        option: Names the option in the error.

    Raises:
        ValueError: The value is something else.
    """
    if isinstance(show_errors, bool):
        return (Exception,) if show_errors else ()
    types = tuple(show_errors) if isinstance(show_errors, list | tuple | set | frozenset) else (show_errors,)
    if not all(isinstance(kind, type) and issubclass(kind, BaseException) for kind in types):
        raise ValueError(f"{option} must be True, False, or types of exceptions, such as [sqlite3.Error].")
    return types
