"""Options of a server that hold on every transport: its description, its protocol and the errors that clients get."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from funcmcp._objects.definitions import definition, options_by_name
from funcmcp._objects.mappings import without_none
from funcmcp._objects.public_names import public
from funcmcp._protocol.revisions import REVISIONS, released
from funcmcp._server.limits import Limits

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeAlias

    ShowErrors: TypeAlias = bool | type[BaseException] | Sequence[type[BaseException]]


@public("funcmcp")
@options_by_name
class ServerInfo:
    """How the server describes itself to clients in `initialize` and `server/discover`, beside its name and version.

    Attributes:
        title: A name of the server for people. Clients show the name where there is no title.
        description: What the server is for, in one or two sentences.
        icons: Icons of the server, as `funcmcp.content.Icon` objects or as the specification's Icon objects, such as
            ``{"src": "https://example.com/icon.png", "mimeType": "image/png"}``.
        website_url: The URL of a page about the server.

    Raises:
        TypeError: `icons` is not a list.
    """

    title: str | None = None
    description: str | None = None
    icons: Sequence[Any] = ()
    website_url: str | None = None

    def __post_init__(self) -> None:
        if isinstance(self.icons, str) or not isinstance(self.icons, list | tuple):
            raise TypeError(
                'ServerInfo.icons must be a list of Icon objects, such as [Icon("https://example.com/icon.png")]; '
                f"got {self.icons!r:.60}."
            )


@public("funcmcp")
@options_by_name
class ProtocolOptions:
    """What the server uses of the protocol: its revisions, capabilities, pages of lists, and times for caches.

    Attributes:
        revisions: Dates of the protocol revisions that the server supports, such as ``["2025-11-25", "2026-07-28"]``.
            The default is all revisions that funcmcp knows, without drafts.
        offer_tools: Whether the server offers tools. True offers them even while there is none, and None does while
            there are any. The lists of what a server does not have are empty. False switches tools off: their methods
            are answered with -32601.
        offer_resources: The same for resources, templates and listers.
        offer_prompts: The same for prompts.
        page_size: Number of items on one page of a list. None puts all items on one page.
        list_ttl: Seconds for which a client may cache a list, sent as ``ttlMs`` (2026-07-28).
        read_ttl: Seconds for which a client may cache the contents of a resource, sent as ``ttlMs`` (2026-07-28).
        share_caches: Whether caches of several users may share answers that do not depend on their caller, sent as
            ``cacheScope`` (2026-07-28). None for lists but not for contents. With auth, no cache may.

    Raises:
        ValueError: A revision is unknown, or there is none; `page_size` is below 1, or a time is negative or infinite.
        TypeError: `revisions` is one string, or an option has the wrong type.
    """

    revisions: Sequence[str] = tuple(released(REVISIONS))
    offer_tools: bool | None = True
    offer_resources: bool | None = None
    offer_prompts: bool | None = None
    page_size: int | None = None
    list_ttl: float = 60.0
    read_ttl: float = 0.0
    share_caches: bool | None = None

    def __post_init__(self) -> None:
        self._check_revisions()
        for name in ("offer_tools", "offer_resources", "offer_prompts", "share_caches"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, bool):
                raise TypeError(f"ProtocolOptions.{name} must be True, False or None; got {value!r}.")
        if self.page_size is not None and type(self.page_size) is not int:
            raise TypeError(f"ProtocolOptions.page_size must be an integer, or None; got {self.page_size!r}.")
        if self.page_size is not None and self.page_size < 1:
            raise ValueError(f"ProtocolOptions.page_size must be at least 1, or None; got {self.page_size}.")
        for name in ("list_ttl", "read_ttl"):
            seconds = getattr(self, name)
            if isinstance(seconds, bool) or not isinstance(seconds, int | float):
                raise TypeError(f"ProtocolOptions.{name} must be a number of seconds, 0 or more; got {seconds!r}.")
            if not 0 <= seconds < math.inf:
                raise ValueError(f"ProtocolOptions.{name} must be a number of seconds, 0 or more; got {seconds}.")

    def _check_revisions(self) -> None:
        if isinstance(self.revisions, str):
            raise TypeError(f"ProtocolOptions.revisions must be a list of dates. Write [{self.revisions!r}].")
        unknown = [date for date in self.revisions if date not in REVISIONS]
        if unknown or not self.revisions:
            raise ValueError(
                f"ProtocolOptions.revisions must be some of {', '.join(REVISIONS)}; got {', '.join(unknown) or 'none'}."
            )


@definition
class ServerOptions:
    """The options of an `MCPServer` that hold on every transport, for the modules below it.

    Attributes:
        name: The server's name.
        version: The server's own version.
        instructions: Guidance for the client's model on how to use the server.
        info: How the server describes itself.
        protocol: What the server uses of the protocol.
        limits: How much one process accepts.
        show_errors: Exceptions whose text clients get: True for all, False for none, a type, or types. Clients always
            get the text of `ToolError` and of the protocol's own errors.
    """

    name: str
    version: str = "0.1.0"
    instructions: str | None = None
    info: ServerInfo = ServerInfo()
    protocol: ProtocolOptions = ProtocolOptions()
    limits: Limits = Limits()
    show_errors: ShowErrors = False

    def implementation(self) -> dict[str, Any]:
        """Return the Implementation in the newest revision's shape."""
        members = {
            "name": self.name,
            "version": self.version,
            "title": self.info.title,
            "description": self.info.description,
            "icons": list(self.info.icons) or None,
            "websiteUrl": self.info.website_url,
        }
        return without_none(members)


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
