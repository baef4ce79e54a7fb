"""Who sends a request, and the statuses of those who may not.

Source: MCP "basic/authorization", "Error Handling" (401, 403, 400); RFC 6750 section 3.
"""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Protocol

from funcmcp.auth.authenticator import Challenge
from funcmcp.auth.principal import Principal, owner_of
from funcmcp.auth.protected_resource import insufficient_scope, unauthorized
from funcmcp.protocol.errors import INTERNAL_ERROR, INVALID_REQUEST
from funcmcp.protocol.replies import error_reply
from funcmcp.server.calls.route import RoutedRequest
from funcmcp.server.guard import DECISION_TIMEOUT
from funcmcp.server.limits import LimitReachedError
from funcmcp.server.log import log_failure
from funcmcp.server.run import Waiting, begin, is_failure
from funcmcp.transports.http.admission.credentials import RepeatedFieldError, credentials
from funcmcp.transports.http.admission.rate_limits import no_room
from funcmcp.transports.http.messages import HttpResponse
from funcmcp.transports.http.status import JSON_HEADERS, refuse

if TYPE_CHECKING:
    from funcmcp.auth.authenticator import Authenticator
    from funcmcp.auth.authenticator import Identity as Found
    from funcmcp.protocol.jsonrpc import Malformed, Notification, RequestId, Response
    from funcmcp.server.calls.route import RoutedBody
    from funcmcp.server.dispatch import Server
    from funcmcp.server.guard import Guard, Refusal
    from funcmcp.transports.http.admission.header_checks import CheckedHeaders
    from funcmcp.transports.http.messages import HttpRequest

_MOST = 100
"""Messages of a batch that are looked at; one with more is refused anyway."""


class Era(Protocol):
    """What answers POSTs."""

    async def post(self, http: HttpRequest, message: RoutedBody, checked: CheckedHeaders) -> HttpResponse:
        """Answer one POST whose body has been decoded, classified and routed."""


class Identity:
    """Finds out who sends a request, and says in HTTP what the guard says.

    Args:
        server: whose callers they are.
        guard: decides about them.
        authenticate: finds out who they are.
        metadata_url: where clients read how to get tokens; None where they can't.
    """

    def __init__(
        self, server: Server, guard: Guard, authenticate: Authenticator, *, metadata_url: str | None = None
    ) -> None:
        self._server = server
        self._guard = guard
        self._authenticate = authenticate
        self._metadata_url = metadata_url

    async def admit(self, request: HttpRequest) -> HttpResponse | None:
        """Note who sends a request, before its body is read; return the refusal of bad or missing credentials."""
        try:
            found = await self._find(request)
        except RepeatedFieldError as error:
            found = Challenge("invalid_request", str(error))
        except LimitReachedError as error:
            return no_room(error)
        except BaseException as error:
            if not is_failure(error):
                raise
            error_id = os.urandom(8).hex()
            log_failure(error, error_id, "authenticator")
            words = f"It failed: the server's log has the details under error id {error_id}."
            return refuse(500, INTERNAL_ERROR, words)
        if isinstance(found, Challenge):
            challenge = unauthorized(found, metadata_url=self._metadata_url, scopes=self._guard.scopes)
            status = 400 if found.error == "invalid_request" else 401
            return refuse(status, INVALID_REQUEST, found.description, headers=(("www-authenticate", challenge),))
        request.principal = found
        if found is None and not self._guard.admits_anonymous:
            return self._general(request)
        return None

    async def _find(self, request: HttpRequest) -> Found:
        begun = begin(self._ask(request))
        if not isinstance(begun, Waiting):
            return begun  # most authenticators know at once
        identifying = self._server.load.identifying
        identifying.check(request.caller)
        with identifying.counting(request.caller):
            async with asyncio.timeout(DECISION_TIMEOUT):
                return await begun

    async def _ask(self, request: HttpRequest) -> Found:
        return _identity(await self._authenticate(credentials(request)))

    async def open(self, request: HttpRequest) -> HttpResponse | None:
        """Do as `admit`, and return the refusal of a principal who may not begin a conversation, too."""
        return await self.admit(request) or self._general(request)

    async def knows_still(self, request: HttpRequest) -> bool:
        """Tell whether the credentials that came with a request are good still, and of the same principal."""
        before = owner_of(request.principal)
        return await self.admit(request) is None and owner_of(request.principal) == before

    async def check(self, body: RoutedBody, principal: Principal | None) -> HttpResponse | None:
        """Return the refusal of a body: the first of its messages that may not be run decides for all of them."""
        if isinstance(body, RoutedRequest):
            refusal = await self._guard.check(body, principal)
            return None if refusal is None else self._refused(refusal, body.request.id)
        messages = map(self._server.read, body[:_MOST]) if isinstance(body, list) else [body]
        for message in messages:
            refusal = await self._about(message, principal)
            if refusal is not None:
                return self._refused(refusal, None)
        return None

    async def _about(
        self, message: RoutedRequest | Notification | Response | Malformed, principal: Principal | None
    ) -> Refusal | None:
        if isinstance(message, RoutedRequest):
            return await self._guard.check(message, principal)
        return self._guard.check_conversation(principal)

    def _general(self, request: HttpRequest) -> HttpResponse | None:
        refusal = self._guard.check_conversation(request.principal)
        return None if refusal is None else self._refused(refusal, None)

    def _refused(self, refusal: Refusal, request_id: RequestId | None) -> HttpResponse:
        body = error_reply(refusal.error(), request_id).body
        if refusal.reason == "denied":
            return HttpResponse(403, JSON_HEADERS, body)
        if refusal.reason == "unauthorized":
            status, said = 401, unauthorized(None, metadata_url=self._metadata_url, scopes=refusal.scopes)
        else:
            status, said = 403, insufficient_scope(refusal.scopes, metadata_url=self._metadata_url)
        return HttpResponse(status, (*JSON_HEADERS, ("www-authenticate", said)), body)


def _identity(found: object) -> Found:
    """Return what an authenticator found; raise TypeError for what is nobody and nothing."""
    if found is None or isinstance(found, (Principal, Challenge)):
        return found
    raise TypeError(f"An authenticator returns a Principal, a Challenge or None, not {type(found).__name__}.")


class Guarded:
    """An era whose POSTs are answered only if all that they ask for may be.

    Args:
        era: answers them then.
        identity: decides.
    """

    def __init__(self, era: Era, identity: Identity) -> None:
        self._era = era
        self._identity = identity

    async def post(self, http: HttpRequest, message: RoutedBody, checked: CheckedHeaders) -> HttpResponse:
        """Answer one POST whose body has been decoded, classified and routed."""
        return await self._identity.check(message, http.principal) or await self._era.post(http, message, checked)
