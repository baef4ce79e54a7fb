"""Admission: whether a request may be served, decided before its body is read.

How it works: every endpoint (Streamable HTTP, HTTP+SSE, WebSocket) has an `Admission`. The checks have one order, and
the first one that fails decides the answer:

1. The size of the header: 431.
2. Host and Origin: 400, 421 or 403 (`origin`).
3. The endpoint's own checks of the header, such as path, method and media types: 404, 405, 406, 415 (`header_checks`).
4. The length of the body, as far as the header says it: 413.
5. The load of the process: 503.
6. The credentials: 400, 401 or 403 (`authentication`).
7. The rate of the caller: 429 (`rate_limits`). A request with invalid credentials counts, too, and its refusal is 429
   if its caller sends too many of them.

Afterwards `HttpRequest.principal`, `HttpRequest.caller` and `HttpRequest.proxies` are set. What needs the body is
checked later: its real size and time (`body`), the caller's share of the load, and the permission for each message
(`Authentication.check`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from funcmcp._server.limits import LimitReachedError
from funcmcp._server.log import logger
from funcmcp._transports.http.admission.caller import caller_of, ignores_forwarded_address
from funcmcp._transports.http.admission.rate_limits import RateLimit
from funcmcp._transports.http.messages import HttpResponse
from funcmcp._transports.http.status import limit_reached

if TYPE_CHECKING:
    from funcmcp._server.dispatch import Server
    from funcmcp._transports.http.admission.authentication import Authentication
    from funcmcp._transports.http.admission.header_checks import HeaderChecks
    from funcmcp._transports.http.messages import HttpRequest
    from funcmcp._transports.http.options import HTTPOptions

H = TypeVar("H")


class Admission(Generic[H]):
    """Decides about the requests to an endpoint.

    Args:
        server: The server, whose load is checked.
        options: The rates, and the proxies in front of the server.
        header_checks: The checks of the header.
        authentication: Authenticates callers; None admits every caller.
        checks_messages: Whether the endpoint itself checks the permission for each message of a POST. Otherwise a
            caller must be allowed to begin a conversation.

    Attributes:
        rate_limit: The rates of callers; None without a limit.
    """

    def __init__(
        self,
        server: Server,
        options: HTTPOptions,
        header_checks: HeaderChecks[H],
        authentication: Authentication | None,
        *,
        checks_messages: bool = False,
    ) -> None:
        self.rate_limit = None if options.rates is None else RateLimit(options.rates)
        self._load = server.load
        self._proxies = options.proxies
        self._header_checks = header_checks
        self._authentication = authentication
        self._checks_messages = checks_messages
        self._notes_forwarded = not options.proxies

    async def admit(self, request: HttpRequest) -> H | HttpResponse:
        """Return the headers of a request that may be served, or the refusal of another one."""
        request.proxies = self._proxies
        headers = self._check_header(request)
        if isinstance(headers, HttpResponse):
            return headers
        refusal = None
        if self._authentication is not None:
            refusal = await self._authenticate(request, self._authentication)
        self._identify(request)
        if self.rate_limit is not None:
            refusal = await self.rate_limit.refusal(request) or refusal
        return headers if refusal is None else refusal

    async def _authenticate(self, request: HttpRequest, authentication: Authentication) -> HttpResponse | None:
        checks_later = self._checks_messages and request.method == "POST"
        if checks_later and authentication.is_recalled(request):
            return None
        request.caller = caller_of(request)  # its address, which limits concurrent authentication
        if checks_later:
            return await authentication.authenticate(request)
        return await authentication.authenticate_for_conversation(request)

    def _identify(self, request: HttpRequest) -> None:
        """Set the caller of a request, and log once that the address in a header is ignored."""
        request.caller = caller_of(request)
        if self._notes_forwarded and request.principal is None and ignores_forwarded_address(request):
            self._notes_forwarded = False
            logger.warning(
                "X-Forwarded-For is ignored, because HTTPOptions(proxies=) declares no proxy. All callers without"
                " credentials behind a proxy have one address, and share its limits. See docs/reference/limits.md."
            )

    def _check_header(self, request: HttpRequest) -> H | HttpResponse:
        """Check all that needs no caller: the headers of a request and the load of the process."""
        headers = self._header_checks.check(request)
        if isinstance(headers, HttpResponse):
            return headers
        try:
            self._load.requests.check(None)
        except LimitReachedError as error:
            return limit_reached(error)
        return headers
