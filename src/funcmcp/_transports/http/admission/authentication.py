"""Authentication of callers, and the answers to those who may not do what they ask: 400, 401 and 403.

Source: MCP "basic/authorization", "Error Handling" (401, 403, 400); RFC 6750 section 3 (WWW-Authenticate); RFC 9449
sections 7.1 and 9 (the scheme DPoP, and nonces).
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING

from funcmcp._auth.authenticator import Challenge, ProvableHeaders, UnavailableError
from funcmcp._auth.owner import owner_of
from funcmcp._auth.principal import Principal
from funcmcp._auth.protected_resource import insufficient_scope, unauthorized
from funcmcp._protocol.errors import INTERNAL_ERROR, INVALID_REQUEST
from funcmcp._protocol.replies import error_reply
from funcmcp._server.authorization import DECISION_TIMEOUT
from funcmcp._server.calls.route import RoutedRequest
from funcmcp._server.limits import LimitReachedError
from funcmcp._server.log import logger, quote
from funcmcp._server.run import Waiting, begin, is_failure
from funcmcp._state.line_limit import LineLimit
from funcmcp._state.sessions.store import StoreUnavailableError
from funcmcp._transports.batch import MAX_BATCH
from funcmcp._transports.http.admission.caller import address_for_log
from funcmcp._transports.http.messages import HttpResponse
from funcmcp._transports.http.status import JSON_HEADERS, failed, limit_reached, refuse

if TYPE_CHECKING:
    from collections.abc import Callable
    from collections.abc import Set as AbstractSet

    from funcmcp._auth.access import Access
    from funcmcp._auth.authenticator import Authenticator, Identity
    from funcmcp._auth.dpop import DPoP
    from funcmcp._protocol.jsonrpc import RequestId
    from funcmcp._server.authorization import Guard, Refusal
    from funcmcp._server.calls.route import RoutedBody
    from funcmcp._server.dispatch import Server
    from funcmcp._transports.http.admission.proofs import RequestProofs
    from funcmcp._transports.http.messages import HttpRequest

_LISTS = frozenset({"accept", "accept-encoding", "accept-language", "cookie", "forwarded", "via", "x-forwarded-for"})
"""Fields that may have several lines with the same meaning as one line (for Cookie see RFC 9113 section 8.2.3)."""


class RepeatedFieldError(Exception):
    """A header field that is not a list came more than once."""


def credentials(request: HttpRequest) -> Mapping[str, str]:
    """Return the headers of a request. Reading a repeated field that is not a list raises RepeatedFieldError."""
    if len(request.fields) == len(request.pairs):
        return request.headers
    counts = Counter(name for name, _ in request.pairs)
    repeated = {name.decode("latin-1") for name, count in counts.items() if count > 1}
    return _UnrepeatedHeaders(request.headers, repeated - _LISTS)


class _UnrepeatedHeaders(Mapping[str, str]):
    """Headers of which the repeated ones can't be read."""

    def __init__(self, headers: Mapping[str, str], repeated: AbstractSet[str]) -> None:
        self._headers = headers
        self._repeated = repeated

    def __getitem__(self, name: str) -> str:
        if name in self._repeated:
            raise RepeatedFieldError(f"The header {name} came more than once.")
        return self._headers[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._headers)

    def __len__(self) -> int:
        return len(self._headers)


class Authentication:
    """Authenticates the callers of requests, and writes the guard's refusals as responses.

    Args:
        server: The server.
        guard: Decides what a caller may do.
        authenticator: Returns the identity of a caller.
        metadata_url: The URL of the metadata that tells clients how to get tokens; None without.
        dpop: Whether the authenticator takes tokens that are bound to a key beside others, or only these.
        proofs: Checks the proofs of requests with such tokens; None if it takes none.
    """

    def __init__(
        self,
        server: Server,
        guard: Guard,
        authenticator: Authenticator,
        *,
        metadata_url: str | None = None,
        dpop: DPoP | None = None,
        proofs: RequestProofs | None = None,
    ) -> None:
        self._server = server
        self._guard = guard
        self._authenticator = authenticator
        self._recall = _recall_of(authenticator)
        self._metadata_url = metadata_url
        self._dpop: DPoP | None = dpop
        self._proofs = proofs
        self._refused = LineLimit()
        self._without_credentials = LineLimit(logging.INFO)

    @contextmanager
    def accepting(self, authenticator: Authenticator) -> Iterator[None]:
        """Accept the principals of another authenticator, too, inside a ``with`` block. Blocks may overlap."""
        if not isinstance(self._authenticator, _WithTests):
            self._authenticator, self._recall = _WithTests(self._authenticator), None
        accepting = self._authenticator
        accepting.accepted.append(authenticator)
        try:
            yield
        finally:
            accepting.accepted.remove(authenticator)
            if not accepting.accepted:
                self._authenticator = accepting.otherwise
                self._recall = _recall_of(accepting.otherwise)

    def is_recalled(self, request: HttpRequest) -> bool:
        """Set the principal of a request whose credentials were checked before; return False to authenticate it.

        A call with a token takes 5 of 33 microseconds less, also if its arguments differ each time.
        """
        credentials = request.fields.get(b"authorization")
        if self._recall is None or credentials is None or len(request.fields) < len(request.pairs):
            return False
        header = request.header
        digest = None if header is None else header.credentials_digest
        if digest is None:
            digest = sha256(credentials).digest()
            if header is not None:
                header.credentials_digest = digest
        request.principal = self._recall(digest)
        return request.principal is not None

    async def authenticate(self, request: HttpRequest, *, is_repeated: bool = False) -> HttpResponse | None:
        """Set the principal of a request; return the refusal of invalid or missing credentials, or None.

        Args:
            request: The request.
            is_repeated: Whether it was accepted before, so that its proof of possession is not new.
        """
        try:
            identity = await self._identify(request, is_repeated=is_repeated)
        except RepeatedFieldError as error:
            identity = Challenge("invalid_request", str(error))
        except LimitReachedError as error:
            return limit_reached(error)
        except UnavailableError as error:
            return refuse(503, INTERNAL_ERROR, str(error), headers=(("retry-after", str(error.retry_after)),))
        except StoreUnavailableError as error:
            wait = () if error.retry_after is None else (("retry-after", str(error.retry_after)),)
            return refuse(503, INTERNAL_ERROR, str(error), headers=wait)
        except BaseException as error:
            if not is_failure(error):
                raise
            return failed(error, "authenticator")
        if isinstance(identity, Challenge):
            return self._refuse_credentials(request, identity)
        request.principal = identity
        if identity is None and not self._guard.admits_anonymous:
            return self._refusal_of_conversation(request)
        return None

    def _refuse_credentials(self, request: HttpRequest, challenge: Challenge) -> HttpResponse:
        value = unauthorized(challenge, metadata_url=self._metadata_url, scopes=self._guard.scopes, dpop=self._dpop)
        headers = [("www-authenticate", value)]
        if challenge.nonce is not None:
            headers.append(("dpop-nonce", challenge.nonce))
        if challenge.error == "invalid_request":
            return refuse(400, INVALID_REQUEST, challenge.description, headers=tuple(headers))
        if challenge.error != "use_dpop_nonce":  # which each client gets at first
            self._log_refusal(self._refused, request, challenge.description)
        return refuse(401, INVALID_REQUEST, challenge.description, headers=tuple(headers))

    async def authenticate_for_conversation(self, request: HttpRequest) -> HttpResponse | None:
        """Do as `authenticate`, and also return the refusal of a principal that may not begin a conversation."""
        return await self.authenticate(request) or self._refusal_of_conversation(request)

    async def is_still_valid(self, request: HttpRequest) -> bool:
        """Return whether the credentials of a request are still valid, and still of the same principal."""
        owner = owner_of(request.principal)
        is_valid = await self.authenticate(request, is_repeated=True) is None
        return is_valid and owner_of(request.principal) == owner

    async def check_access(self, access: Access, request: HttpRequest) -> HttpResponse | None:
        """Return the refusal of a caller of a custom route, or None."""
        refusal = await self._guard.check_access(access, request.principal)
        return None if refusal is None else self._refuse(refusal, None, request)

    async def check(self, body: RoutedBody, request: HttpRequest) -> HttpResponse | None:
        """Return the refusal of a body, or None. The first message that is not permitted decides for all of them."""
        principal = request.principal
        if isinstance(body, RoutedRequest):
            refusal = self._guard.check_scopes(body, principal)
            if refusal is None and body.feature is not None and body.feature.access.authorize is not None:
                refusal = await self._guard.check(body, principal)
            return None if refusal is None else self._refuse(refusal, body.request.id, request)
        if not isinstance(body, list):
            refusal = self._guard.check_conversation(principal)
            return None if refusal is None else self._refuse(refusal, None, request)
        for value in body[:MAX_BATCH]:  # a larger batch is refused later
            message = self._server.read(value)
            if isinstance(message, RoutedRequest):
                refusal = await self._guard.check(
                    await self._server.resolve(message, principal, http=request), principal
                )
            else:
                refusal = self._guard.check_conversation(principal)
            if refusal is not None:
                return self._refuse(refusal, None, request)
        return None

    async def _identify(self, request: HttpRequest, *, is_repeated: bool) -> Identity:
        work = begin(self._call_authenticator(request, is_repeated=is_repeated))
        if not isinstance(work, Waiting):
            return work  # most authenticators need not wait
        identifying = self._server.load.identifying
        identifying.check(request.caller)
        with identifying.counting(request.caller):
            async with asyncio.timeout(DECISION_TIMEOUT):
                return await work

    async def _call_authenticator(self, request: HttpRequest, *, is_repeated: bool) -> Identity:
        headers = credentials(request)
        if self._proofs is not None:
            check_proof = partial(self._proofs.check, request, is_repeated=is_repeated)
            headers = ProvableHeaders(headers, check_proof)
        identity: object = await self._authenticator(headers)
        if identity is None or isinstance(identity, (Principal, Challenge)):
            return identity
        raise TypeError(f"An authenticator returns a Principal, a Challenge or None, not {type(identity).__name__}.")

    def _refusal_of_conversation(self, request: HttpRequest) -> HttpResponse | None:
        refusal = self._guard.check_conversation(request.principal)
        return None if refusal is None else self._refuse(refusal, None, request)

    def _refuse(self, refusal: Refusal, request_id: RequestId | None, request: HttpRequest) -> HttpResponse:
        body = error_reply(refusal.error(), request_id).body
        if refusal.reason != "unauthorized":
            logger.debug("A request of %s is refused with 403: %s.", address_for_log(request), refusal.reason)
        if refusal.reason == "denied":
            return HttpResponse(403, JSON_HEADERS, body)
        if refusal.reason == "unauthorized":
            self._log_refusal(self._without_credentials, request, "it has no credentials.")
            status = 401
            challenge = unauthorized(None, metadata_url=self._metadata_url, scopes=refusal.scopes, dpop=self._dpop)
        else:
            status = 403
            challenge = insufficient_scope(refusal.scopes, metadata_url=self._metadata_url, dpop=self._dpop)
        return HttpResponse(status, (*JSON_HEADERS, ("www-authenticate", challenge)), body)

    def _log_refusal(self, limit: LineLimit, request: HttpRequest, reason: str) -> None:
        """Log that a request is refused with 401, once in a minute and else at DEBUG: anyone can cause it.

        A request without credentials has a limit and a level of its own. A client sends one to learn how its user signs
        in. Its line must not take the place of the reason why a token is invalid.

        A request within the process has no transport of the network. Its sender gets the refusal itself.
        """
        if request.network_transport is None:
            return
        limit.write("A request of %s is refused with 401: %s", address_for_log(request), quote(reason))


class _WithTests:
    """An authenticator that accepts the principals of some others first.

    Args:
        otherwise: The authenticator.

    Attributes:
        accepted: The others. Their challenges have no effect.
    """

    def __init__(self, otherwise: Authenticator) -> None:
        self.otherwise = otherwise
        self.accepted: list[Authenticator] = []

    async def __call__(self, headers: Mapping[str, str]) -> Identity:
        for authenticator in self.accepted:
            identity = await authenticator(headers)
            if isinstance(identity, Principal):
                return identity
        return await self.otherwise(headers)


def _recall_of(authenticator: Authenticator) -> Callable[[bytes], Principal | None] | None:
    """Return the method `recall` of an authenticator; None without it.

    A subclass may override ``__call__`` alone, to add a check. The inherited `recall` would skip the check.
    """
    for cls in type(authenticator).__mro__:
        if "__call__" in vars(cls):
            recall: Callable[[bytes], Principal | None] | None = getattr(authenticator, "recall", None)
            return recall if "recall" in vars(cls) else None
    return None
