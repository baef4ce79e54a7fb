"""Admission: whether a request may be served, decided before its body is read.

How it works: every endpoint (Streamable HTTP, HTTP+SSE, WebSocket) has an `Admission`. The checks have one order, and
the first one that fails decides the answer:

1. The size of the header: 431.
2. Host and Origin: 400, 421 or 403 (`origin`).
3. The endpoint's own checks of the header, such as path, method and media types: 404, 405, 406, 415 (`examine`).
4. The length of the body, as far as the header says it: 413.
5. The load of the process: 503.
6. The credentials: 400, 401 or 403 (`authentication`).
7. The rate of the caller: 429 (`rate_limits`). A request with invalid credentials counts, too, and its refusal is 429
   if its caller sends too many of them.

All checks run for each request, except that the first four are skipped for a header that has passed them and that a
connection repeats, apart from fields that no check reads (`RequestHeader`): each check declares those that it reads.
The body of such a request has arrived already. It is refused when it is read if it is too large, so Content-Length is
not declared. What a check computes from the text of one header is cached where it is computed, because clients repeat
themselves; no outcome of a whole request is.

Afterwards `HttpRequest.principal`, `HttpRequest.caller` and `HttpRequest.proxies` are set. What needs the body is
checked later: its real size and time (`body`), the caller's share of the load, and the permission for each message
(`Authentication.check`).

Source: RFC 6585 section 5 (431); RFC 9110 section 15.5.14 (413).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from funcmcp._protocol.errors import INVALID_REQUEST
from funcmcp._server.log import logger
from funcmcp._transports.http.admission.body import too_large
from funcmcp._transports.http.admission.caller import caller_at, caller_of_principal
from funcmcp._transports.http.admission.origin import OriginCheck
from funcmcp._transports.http.admission.rate_limits import RateLimit
from funcmcp._transports.http.messages import FORWARDED, HttpResponse
from funcmcp._transports.http.status import limit_reached, refuse

if TYPE_CHECKING:
    from collections.abc import Callable

    from funcmcp._server.dispatch import Server
    from funcmcp._server.limits import Limits
    from funcmcp._transports.http.admission.authentication import Authentication
    from funcmcp._transports.http.messages import HttpRequest
    from funcmcp._transports.http.options import HTTPOptions

_MAX_DIGITS = 20
"""Digits of a Content-Length that are read."""


H = TypeVar("H")


class HeaderCheck(NamedTuple, Generic[H]):
    """An endpoint's own check of the header of a request.

    Attributes:
        examine: Returns what the endpoint needs of the header, or the response to the request, which is a refusal or a
            browser's page.
        fields: The names of the fields that it reads; None if that is unknown.
    """

    examine: Callable[[HttpRequest], H | HttpResponse]
    fields: frozenset[bytes] | None = None


class Admission(Generic[H]):
    """Decides about the requests to an endpoint.

    Args:
        server: The server, whose load is checked.
        options: The allowed hosts and origins, the rates, and the proxies in front of the server.
        check: The endpoint's own check of the header.
        authentication: Authenticates callers; None admits every caller.
        limits: The sizes of header and body; by default those of the server.
        checks_messages: Whether the endpoint itself checks the permission for each message of a POST. Otherwise a
            caller must be allowed to begin a conversation.

    Attributes:
        rate_limit: The rates of callers; None without a limit.
    """

    def __init__(
        self,
        server: Server,
        options: HTTPOptions,
        check: HeaderCheck[H],
        authentication: Authentication | None,
        *,
        limits: Limits | None = None,
        checks_messages: bool = False,
    ) -> None:
        limits = limits or server.options.limits
        self.rate_limit = None if options.rates is None else RateLimit(options.rates)
        self._origin = OriginCheck(options)
        self._max_header = limits.header_bytes
        self._max_body = limits.message_bytes
        self._max_body_digits = len(str(self._max_body))
        self._examine = check.examine
        self._fields = None if check.fields is None else check.fields | OriginCheck.FIELDS
        self._requests = server.load.requests
        self._proxies = options.proxies
        self._authentication = authentication
        self._checks_messages = checks_messages
        self._notes_forwarded = not options.proxies

    async def admit(self, request: HttpRequest) -> H | HttpResponse:
        """Return the headers of a request that may be served, or the refusal of another one."""
        request.proxies = self._proxies
        header = request.header
        if header is not None and header.checks is self:
            headers: H | HttpResponse = header.checked
        else:
            headers = self._check_header(request)
            if isinstance(headers, HttpResponse):
                return headers
            if header is not None:
                header.checks, header.checked, header.checked_fields = self, headers, self._fields
        if self._requests.used >= self._requests.limit:
            return limit_reached(self._requests.full_error())
        refusal = None
        if self._authentication is not None:
            refusal = await self._authenticate(request, self._authentication)
        principal = request.principal
        request.caller = caller_at(request.client_address) if principal is None else caller_of_principal(principal.key)
        if self._notes_forwarded and principal is None and FORWARDED in request.fields:
            self._note_forwarded(request)
        if self.rate_limit is not None:
            refusal = await self.rate_limit.refusal(request) or refusal
        return headers if refusal is None else refusal

    def _check_header(self, request: HttpRequest) -> H | HttpResponse:
        """Return what the endpoint needs of a request's headers, or the refusal of the request."""
        fields = request.fields
        if len(b"".join((*fields, *fields.values()))) > self._max_header:  # twice as fast as adding up
            return refuse(431, INVALID_REQUEST, f"The header may have {self._max_header} bytes.")
        headers = self._origin.refusal(request) or self._examine(request)
        if isinstance(headers, HttpResponse):
            return headers
        length = fields.get(b"content-length")
        if length is not None and len(length) >= self._max_body_digits and self._is_too_large(length):
            return too_large(self._max_body)
        return headers

    def _is_too_large(self, length: bytes) -> bool:
        return length.isdigit() and int(length[:_MAX_DIGITS]) > self._max_body

    async def _authenticate(self, request: HttpRequest, authentication: Authentication) -> HttpResponse | None:
        checks_later = self._checks_messages and request.method == "POST"
        if checks_later and authentication.is_recalled(request):
            return None
        request.caller = caller_at(request.client_address)  # limits concurrent authentication
        if checks_later:
            return await authentication.authenticate(request)
        return await authentication.authenticate_for_conversation(request)

    def _note_forwarded(self, request: HttpRequest) -> None:
        """Log once that a proxy names an address that does not count, because no proxies are declared.

        A server such as uvicorn may have read the header; then the peer of the request is an address in it.
        """
        if (request.peer or "?") in request.fields[FORWARDED].decode("latin-1"):
            return
        self._notes_forwarded = False
        logger.warning(
            "X-Forwarded-For is ignored, because HTTPOptions(proxies=) declares no proxy. All callers without"
            " credentials behind a proxy have one address, and share its limits. See docs/reference/limits.md."
        )
