"""The endpoints of an `OAuthProxy` over HTTP: admission, the body, and the answer.

How it works: the HTTP layer refuses a request with a JSON-RPC error, such as a body that is too large. Clients read an
OAuth error at these endpoints, and people a page, so the proxy words each refusal anew.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, cast

from funcmcp._oauth_proxy.web import MAX_BODY, WebRequest
from funcmcp._protocol.codec import decode
from funcmcp._server.limits import LimitReachedError
from funcmcp._server.run import is_failure
from funcmcp._transports.http.admission.admission import Admission, HeaderCheck
from funcmcp._transports.http.admission.authentication import RepeatedFieldError, credentials
from funcmcp._transports.http.admission.body import answer_body
from funcmcp._transports.http.admission.caller import rated_caller_of
from funcmcp._transports.http.messages import HttpResponse
from funcmcp._transports.http.status import JSON_HEADERS, failed, limit_reached

if TYPE_CHECKING:
    from funcmcp._oauth_proxy.proxy import OAuthProxy
    from funcmcp._server.dispatch import Server
    from funcmcp._transports.http.messages import Exchange, HttpRequest
    from funcmcp._transports.http.options import HTTPOptions


class _Answer(HttpResponse):
    """A response of the proxy, in contrast to a refusal of the HTTP layer."""

    __slots__ = ()


class SignInEndpoints:
    """Answers the requests to the endpoints of a proxy.

    The proxy checks the Origin of its forms itself. Its endpoints for clients are open to pages of all origins: what
    they answer depends on nothing that a browser adds to a request.

    Args:
        proxy: The proxy.
        server: The server, whose load and limits count.
        options: The options of the HTTP endpoints.
        otherwise: Answers the requests for all other paths.
    """

    def __init__(self, proxy: OAuthProxy, server: Server, options: HTTPOptions, *, otherwise: Exchange) -> None:
        limits = server.options.limits
        self._limits = replace(limits, message_bytes=min(limits.message_bytes, MAX_BODY))
        every_origin = replace(options, allowed_origins=["*"], require_origin=False)
        self._admission: Admission[None] = Admission(
            server, every_origin, HeaderCheck(lambda _request: None), None, limits=self._limits
        )
        self._proxy = proxy
        self._paths = frozenset(proxy.paths)
        self._server = server
        self._otherwise = otherwise

    async def __call__(self, request: HttpRequest) -> HttpResponse:
        """Answer one HTTP request."""
        if request.path not in self._paths:
            return await self._otherwise(request)
        response = await self._admission.admit(request)
        if response is None:
            try:
                response = await answer_body(request, self._limits, self._server.load, partial(self._answer, request))
            except LimitReachedError as error:
                response = limit_reached(error)
        return response if isinstance(response, _Answer) else self._reworded(request, response)

    async def _answer(self, request: HttpRequest, body: bytes) -> HttpResponse:
        try:
            answer = await self._proxy.answer(self._web_request(request, body))
        except RepeatedFieldError as error:
            answer = self._proxy.refusal(self._web_request(request, b""), 400, str(error))
        except BaseException as error:
            if not is_failure(error):
                raise
            return failed(error, f"sign-in {request.path}", request.method)
        return _Answer(answer.status, answer.headers, answer.body)

    def _reworded(self, request: HttpRequest, refusal: HttpResponse) -> HttpResponse:
        """Return a refusal of the HTTP layer in the form that the client of the endpoint reads."""
        reason = decode(cast("bytes", refusal.body))["error"]["message"]
        headers = [field for field in refusal.headers if field not in JSON_HEADERS]
        answer = self._proxy.refusal(self._web_request(request, b""), refusal.status, reason, *headers)
        return HttpResponse(answer.status, answer.headers, answer.body)

    def _web_request(self, request: HttpRequest, body: bytes) -> WebRequest:
        return WebRequest(
            method=request.method,
            path=request.path,
            query=request.query_string,
            headers=credentials(request),
            body=body,
            caller=rated_caller_of(request),
            server=self._server.options.info.title or self._server.options.name,
            icons=self._server.options.info.icons,
        )
