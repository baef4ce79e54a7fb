"""Decides which requests a caller may send, by the request's route, the feature that it names, and the principal.

Source: MCP "basic/authorization" ("Error Handling", "Scope Challenge Handling"); 2026-07-28 "server/utilities/caching,
Security Considerations".
"""

from __future__ import annotations

import asyncio
import inspect
import os
from typing import TYPE_CHECKING, Literal, NamedTuple

from funcmcp._auth.access import distinct
from funcmcp._protocol.errors import INVALID_REQUEST, MCPError
from funcmcp._server.calls.route import Audience
from funcmcp._server.log import log_failure
from funcmcp._server.run import is_failure

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from funcmcp._auth.access import Access, Authorize
    from funcmcp._auth.policy import Lists
    from funcmcp._auth.principal import Principal
    from funcmcp._server.calls.context import RequestContext
    from funcmcp._server.calls.route import RoutedRequest
    from funcmcp._server.catalog.catalog import Catalog

DECISION_TIMEOUT = 30.0
"""Seconds that an author's function may take to authenticate or authorize a caller."""

_MESSAGES = {
    "unauthorized": "This needs an access token or a key.",
    "forbidden": "More scopes are needed.",
    "denied": "You may not do this.",
}


class Refusal(NamedTuple):
    """The reason why a caller may not send a request.

    Attributes:
        reason: ``"unauthorized"``: the caller is anonymous. ``"forbidden"``: the principal lacks scopes. ``"denied"``:
            an `authorize` function rejected the principal.
        scopes: The scopes that a new token needs: the required ones, and those scopes of features that the principal
            already has.
    """

    reason: Literal["unauthorized", "forbidden", "denied"]
    scopes: tuple[str, ...] = ()

    def error(self) -> MCPError:
        """Return the JSON-RPC error."""
        data = {"requiredScopes": list(self.scopes)} if self.reason == "forbidden" else None
        return MCPError(INVALID_REQUEST, _MESSAGES[self.reason], data)


class Guard:
    """Decides which requests each caller of one server may send.

    Args:
        catalog: The features of the server.
        lists: Who may list features; see `Auth`.
        scopes: Scopes that a principal needs for everything that is not open to anonymous callers.

    Attributes:
        scopes: The scopes that a principal needs, each once.

    Raises:
        ValueError: `lists` or a scope is invalid.
        TypeError: `scopes` is a string.
    """

    def __init__(self, catalog: Catalog, lists: Lists = "auto", *, scopes: Iterable[str] = ()) -> None:
        if lists not in {"auto", "open", "filtered", "closed"}:
            raise ValueError(f"lists must be 'auto', 'open', 'filtered' or 'closed'; got {lists!r}.")
        if isinstance(scopes, str):
            raise TypeError("scopes is a list of strings, not one string.")
        self._catalog = catalog
        self._lists = lists
        self.scopes = distinct(scopes)

    @property
    def admits_anonymous(self) -> bool:
        """Whether anonymous callers may use any part of the server."""
        return self._lists == "open" or self._catalog.has_anonymous

    def filters(self, principal: Principal | None) -> bool:
        """Return whether a caller's lists contain only the features that the caller may use."""
        return self._lists == "filtered" or (self._lists == "auto" and principal is None)

    async def check(self, routed: RoutedRequest, principal: Principal | None) -> Refusal | None:
        """Return why a caller may not send a request, or None if it may. This is called before the handler runs.

        Unless every caller may list features, an anonymous caller gets the same refusal for a feature that exists and
        for one that does not. A caller that passes this check learns from the response that a feature is missing.
        """
        refusal = self.check_scopes(routed, principal)
        if refusal is not None or routed.feature is None:
            return refusal
        return await self._check_authorize(routed.feature.access, principal)

    def check_scopes(self, routed: RoutedRequest, principal: Principal | None) -> Refusal | None:
        """Do as `check`, but without calling the author's `authorize` function."""
        if routed.route is None or routed.fault is not None:
            return self._check_scopes(principal)
        audience = routed.route.audience
        if audience is Audience.LIST:
            return self.check_lists(principal)
        if audience is Audience.CONVERSATION or routed.feature is None:
            if routed.route.capability is not None and routed.route.capability not in self._catalog.offered:
                return self._check_scopes(principal)  # as for a method that does not exist
            return self.check_conversation(principal)
        return self._check_access(routed.feature.access, principal)

    def check_conversation(self, principal: Principal | None) -> Refusal | None:
        """Return why a caller may not use the server at all, not even for a handshake; None if it may."""
        return None if self.admits_anonymous else self._check_scopes(principal)

    def check_lists(self, principal: Principal | None) -> Refusal | None:
        """Return why a caller may not list features, or None if it may."""
        is_open = self._lists == "open" or (self.filters(principal) and self._catalog.has_anonymous)
        return None if is_open else self._check_scopes(principal)

    async def may_use(self, access: Access, principal: Principal | None) -> bool:
        """Return whether a caller may use a feature."""
        return await self._check_authorize(access, principal) is None

    async def check_access(self, access: Access, principal: Principal | None) -> Refusal | None:
        """Return why a caller may not use a custom HTTP route with this rule, or None if it may."""
        return await self._check_authorize(access, principal)

    async def _check_authorize(self, access: Access, principal: Principal | None) -> Refusal | None:
        refusal = self._check_access(access, principal)
        if refusal is None and not access.allow_anonymous and principal is not None and access.authorize is not None:
            return None if await _allows(access.authorize, principal) else Refusal("denied")
        return refusal

    def _check_access(self, access: Access, principal: Principal | None) -> Refusal | None:
        if access.allow_anonymous:
            return None
        # Where not every caller may list features, the scopes in a challenge would reveal that the feature exists.
        names_scopes = self._lists == "open"
        return self._check_scopes(principal, access.required_scopes, names_scopes=names_scopes)

    def _check_scopes(
        self, principal: Principal | None, scopes: Sequence[str] = (), *, names_scopes: bool = False
    ) -> Refusal | None:
        """Return the refusal of a caller that is anonymous or lacks the server's scopes or *scopes*."""
        if principal is None:
            return Refusal("unauthorized", distinct([*self.scopes, *scopes]) if names_scopes else self.scopes)
        if principal.scopes.issuperset(self.scopes) and principal.scopes.issuperset(scopes):
            return None
        return Refusal("forbidden", distinct([*self.scopes, *scopes, *self._held_scopes(principal)]))

    def _held_scopes(self, principal: Principal) -> list[str]:
        """Return the features' scopes that a principal holds. A new token replaces the old one, so it needs them."""
        scopes: list[str] = []
        for feature in self._catalog.features():
            scopes += [scope for scope in feature.access.required_scopes if scope in principal.scopes]
        return scopes


def guard_for(context: RequestContext, guard: Guard | None) -> Guard | None:
    """Return the guard that decides what the caller of a request gets; None if the caller gets everything."""
    return None if context.by_user or context.by_author else guard


async def _allows(authorize: Authorize, principal: Principal) -> bool:
    """Return whether an author's `authorize` function returns exactly True. A failure or a timeout is False."""
    try:
        answer = authorize(principal)
        if inspect.isawaitable(answer):
            async with asyncio.timeout(DECISION_TIMEOUT):
                answer = await answer
    except BaseException as error:
        if not is_failure(error):
            raise
        log_failure(error, os.urandom(8).hex(), "authorize")
        return False
    return answer is True
