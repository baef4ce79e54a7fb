"""HTTP streams of Azure Functions: the worker serves HTTP itself, and the Functions host only passes it on.

Importing this module switches them on for the whole app: the worker looks for classes of these kinds and takes the HTTP
server from the module that has them. All HTTP functions of the app get their requests through it, then, and go on as
they were: with `azure.functions.HttpRequest` and `HttpResponse`. Request bodies are read before a function runs.

Source: azurefunctions-extensions-base 1.2 "web"; azure-functions-runtime 1.3 "http_v2".
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

try:
    import azure.functions as func
    import azurefunctions.extensions.base as extensions
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        'HTTP streams of a function app need: pip install "funcmcp[azure-streams]"', name=error.name
    ) from None

from funcmcp._adapters.asgi.application import ASGIApplication, HTTPRuntime
from funcmcp._adapters.azure.http_trigger import StreamedRequest, StreamedResponse
from funcmcp._adapters.azure.settings import hostname, is_local
from funcmcp._server.limits import Limits
from funcmcp._transports.http.messages import BodyTooLargeError, HttpResponse
from funcmcp._transports.http.status import authored_response

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator

    from funcmcp._transports.http.messages import HttpRequest

_other = extensions.ModuleTrackerMeta.get_module()
if _other not in {None, __name__}:
    raise ImportError(f"HTTP streams are on in this app already, by {_other}; a worker can have one such package only.")

_MAX_BODY = 104_857_600
"""Bytes of a request that the Functions host lets pass by default."""

_LIMITS = Limits(message_seconds=230)
"""Azure's front end ends a request after 230 seconds; the app's other functions may need all of them."""

_SAFE = "/:@!$&'()*+,;=~"
"""Besides letters, digits and a few more: what stands in a path as it is (RFC 3986, section 3.3)."""

_PLAIN = (("content-type", "text/plain; charset=utf-8"),)


class _Synchronizer(extensions.RequestSynchronizer):  # type: ignore[misc] # without types
    def sync_route_params(self, request: StreamedRequest, path_params: Any) -> None:
        request.route_values = dict(path_params)


class _Request(metaclass=extensions.RequestTrackerMeta):  # type: ignore[metaclass]
    request_type = func.HttpRequest
    synchronizer = _Synchronizer()


class _Response(metaclass=extensions.ResponseTrackerMeta):  # type: ignore[metaclass]
    label = extensions.ResponseLabels.STANDARD
    response_type = func.HttpResponse


class _Text(metaclass=extensions.ResponseTrackerMeta):  # type: ignore[metaclass]
    label = extensions.ResponseLabels.STR
    response_type = str


class WebApp(extensions.WebApp):  # type: ignore[misc] # without types
    """What the worker gives its one route, which leads each request to the invocation that the host began for it."""

    _invoke: Callable[[StreamedRequest], Awaitable[object]]

    def route(self, func: Callable[[StreamedRequest], Awaitable[object]]) -> None:
        """Take the route."""
        self._invoke = func

    def get_app(self) -> ASGIApplication:
        """Return the ASGI application."""
        return ASGIApplication(HTTPRuntime(self._answer))

    async def _answer(self, request: HttpRequest) -> HttpResponse:
        try:
            body = await request.read(_MAX_BODY)
        except BodyTooLargeError:
            return HttpResponse(413, _PLAIN, b"The body is too large.")
        return _wire(await self._invoke(StreamedRequest(request, _public(request), body, request.disconnected)))


class WebServer(extensions.WebServer):  # type: ignore[misc] # without types
    """What the worker serves HTTP with: uvicorn."""

    async def serve(self) -> None:
        """Serve as long as the worker runs."""
        import uvicorn  # noqa: PLC0415 - only a worker serves

        from funcmcp._adapters.uvicorn.protocols import http_protocol  # noqa: PLC0415 - as above

        class StreamServer(uvicorn.Server):
            @contextlib.contextmanager
            def capture_signals(self) -> Generator[None]:
                yield  # the process is the worker's

        config = uvicorn.Config(
            self.web_app,
            host=self.hostname,
            port=self.port,
            http=http_protocol(_LIMITS),
            ws="none",
            log_config=None,
            access_log=False,
            lifespan="off",
        )
        await StreamServer(config).serve()


def _public(request: HttpRequest) -> str:
    """Return the URL: the host may put the worker's own address into Host, and ends TLS before."""
    host = request.headers.get("host", "")
    if is_local(host):
        host = hostname()
    scheme = "http" if is_local(host) else "https"
    query = f"?{request.query_string}" if request.query_string else ""
    return f"{scheme}://{host}{quote(request.path, safe=_SAFE)}{query}"


def _wire(response: object) -> HttpResponse:
    """Return what a function answered as it goes out; raise an exception, which is a 500, if it can't."""
    if isinstance(response, StreamedResponse):
        return response.wire
    if isinstance(response, str):
        return HttpResponse(200, _PLAIN, response.encode())
    if not isinstance(response, func.HttpResponse):
        raise TypeError(f"An HTTP function returns an HttpResponse or a text, not {type(response).__name__}.")
    headers = [(name.lower(), str(value)) for name, value in response.headers.items()]
    if "content-type" not in response.headers:
        text = response.mimetype.startswith("text/")
        kind = f"{response.mimetype}; charset={response.charset}" if text else response.mimetype
        headers.append(("content-type", kind))
    return authored_response(response.status_code, headers, response.get_body())
