"""What a caller may do: decided on the feature that a request means, before anything of it runs.

Source: MCP "basic/authorization" ("Error Handling", "Scope Challenge Handling"); 2026-07-28 "server/utilities/caching,
Security Considerations".
"""

from __future__ import annotations

import asyncio
import inspect
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from funcmcp.auth.scopes import distinct
from funcmcp.protocol.errors import INVALID_REQUEST, MCPError
from funcmcp.server.handlers.completions import find_completed
from funcmcp.server.handlers.prompts import find_prompt
from funcmcp.server.handlers.resources import find_resource, uri_of
from funcmcp.server.handlers.runs import is_of_the_feature
from funcmcp.server.handlers.tools import find_tool
from funcmcp.server.log import log_failure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from funcmcp.auth.policy import Lists
    from funcmcp.auth.principal import Principal
    from funcmcp.protocol.jsonrpc import Notification, Request
    from funcmcp.server.catalog.access import Access, Allow
    from funcmcp.server.catalog.features import Prompt, Resource, ResourceTemplate, Tool
    from funcmcp.server.dispatch import Server

    Feature: TypeAlias = Tool | Resource | ResourceTemplate | Prompt

_LISTS = frozenset({"tools/list", "resources/list", "resources/templates/list", "prompts/list"})

_OF_NO_FEATURE = frozenset(
    {
        "initialize",
        "server/discover",
        "ping",
        "logging/setLevel",
        "resources/unsubscribe",
        "subscriptions/listen",  # what of it the caller may hear is decided by its handler
    }
)
"""Requests that belong to the conversation; one that is neither here nor has a feature is for principals only."""

_FEATURE_OF: dict[str, Callable[[Server, dict[str, Any]], Feature]] = {
    "tools/call": find_tool,
    "resources/read": lambda server, params: find_resource(server, uri_of(params))[0],
    "resources/subscribe": lambda server, params: find_resource(server, uri_of(params))[0],
    "prompts/get": lambda server, params: find_prompt(server, params.get("name")),
    "completion/complete": find_completed,
}

LONGEST_DECISION = 30.0
"""Seconds in which an author's function has to find out who a caller is, or what it may do."""

_WORDS = {
    "unauthorized": "This needs an access token or a key.",
    "forbidden": "More scopes are needed.",
    "denied": "You may not do this.",
}


@dataclass(frozen=True, slots=True)
class Refusal:
    """What a caller may not do.

    Attributes:
        reason: ``"unauthorized"``: nobody in particular asked; ``"forbidden"``: the principal lacks scopes;
            ``"denied"``: it lacks what it can't get.
        scopes: all that the caller needs, with those of this server that it has.
    """

    reason: Literal["unauthorized", "forbidden", "denied"]
    scopes: tuple[str, ...] = ()

    def error(self) -> MCPError:
        """Return it as a JSON-RPC error."""
        data = {"requiredScopes": list(self.scopes)} if self.reason == "forbidden" else None
        return MCPError(INVALID_REQUEST, _WORDS[self.reason], data)


class Guard:
    """Decides about the requests of one server.

    Args:
        lists: who gets the lists of features; see `Auth`.
        scopes: that a principal needs for anything that is not open to everybody.

    Attributes:
        scopes: that a principal needs, each once.

    Raises:
        ValueError: there is no such way to give lists, or a scope is none.
    """

    def __init__(self, lists: Lists = "auto", *, scopes: Iterable[str] = ()) -> None:
        if lists not in {"auto", "open", "filtered", "closed"}:
            raise ValueError(f"lists must be 'auto', 'open', 'filtered' or 'closed'; got {lists!r}.")
        if isinstance(scopes, str):
            raise TypeError("scopes is a list of strings, not one string.")
        self._lists = lists
        self.scopes = distinct(scopes)

    def filters(self, principal: Principal | None) -> bool:
        """Return whether a caller's lists have only the features that it may use."""
        return self._lists == "filtered" or (self._lists == "auto" and principal is None)

    def lets_in_anybody(self, server: Server) -> bool:
        """Tell whether there is something at all for callers without credentials."""
        return self._lists == "open" or server.has_anonymous

    def about_no_feature(self, server: Server, principal: Principal | None) -> Refusal | None:
        """Decide about what belongs to the conversation as a whole: the handshake, notifications, streams."""
        return None if self.lets_in_anybody(server) else self._signed_in(server, principal)

    def about_lists(self, server: Server, principal: Principal | None) -> Refusal | None:
        """Decide whether a caller gets lists of features."""
        is_open = self._lists == "open" or (self.filters(principal) and server.has_anonymous)
        return None if is_open else self._signed_in(server, principal)

    async def check(
        self, server: Server, message: Request | Notification, principal: Principal | None
    ) -> Refusal | None:
        """Decide about a request. Nothing of it may run before, nor after a refusal.

        Nobody learns from a refusal whether a feature exists; who is let in does, from the request's own answer.
        """
        method = message.method
        find = _FEATURE_OF.get(method)
        if find is None:
            if method in _LISTS:
                return self.about_lists(server, principal)
            if method in _OF_NO_FEATURE:
                return self.about_no_feature(server, principal)
            return self._signed_in(server, principal)
        try:
            feature = find(server, message.params)
        except MCPError:  # what is wrong with it is told to those who may ask
            return self._signed_in(server, principal)
        access = feature.access
        if access.allow is None:
            return self._about_scopes(server, access, principal)
        return await self._about(server, access, principal)

    async def may_use(self, server: Server, access: Access, principal: Principal | None) -> bool:
        """Tell whether a caller may use a feature."""
        return await self._about(server, access, principal) is None

    async def may_read(self, server: Server, uri: str, principal: Principal | None) -> bool:
        """Tell whether a caller may read a URI; nobody reads what nothing serves."""
        try:
            feature = find_resource(server, uri)[0]
        except MCPError:
            return False
        return await self.may_use(server, feature.access, principal)

    async def _about(self, server: Server, access: Access, principal: Principal | None) -> Refusal | None:
        refusal = self._about_scopes(server, access, principal)
        if refusal is None and not access.anonymous and principal is not None and access.allow is not None:
            return None if await _allows(access.allow, principal) else Refusal("denied")
        return refusal

    def _about_scopes(self, server: Server, access: Access, principal: Principal | None) -> Refusal | None:
        if access.anonymous:
            return None
        # Only where everybody sees the features may a challenge tell what one of them needs.
        return self._signed_in(server, principal, access.scopes, told=self._lists == "open")

    def _signed_in(
        self, server: Server, principal: Principal | None, scopes: Sequence[str] = (), *, told: bool = False
    ) -> Refusal | None:
        if principal is None:
            return Refusal("unauthorized", distinct([*self.scopes, *scopes]) if told else self.scopes)
        if principal.scopes.issuperset(self.scopes) and principal.scopes.issuperset(scopes):
            return None
        known = (scope for feature in server.features() for scope in feature.access.scopes)
        kept = [scope for scope in known if scope in principal.scopes]
        return Refusal("forbidden", distinct([*self.scopes, *scopes, *kept]))


async def _allows(allow: Allow, principal: Principal) -> bool:
    """Ask an author's function. Nothing but True is a yes; a function that fails or hangs has not said it."""
    try:
        said = allow(principal)
        if inspect.isawaitable(said):
            async with asyncio.timeout(LONGEST_DECISION):
                said = await said
    except BaseException as error:
        if not is_of_the_feature(error):
            raise
        log_failure(error, os.urandom(8).hex(), "authorize")
        return False
    return said is True
