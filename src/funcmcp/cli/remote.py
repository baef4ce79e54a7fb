"""A server at a URL as an exchange: the same function from HttpRequest to HttpResponse, over httpx2."""

from __future__ import annotations

from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import httpx2

from funcmcp.cli.failure import Failure
from funcmcp.transports.http.messages import HttpResponse
from funcmcp.transports.http.status import EVENT_STREAM

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator

    from funcmcp.transports.http.messages import Exchange, HttpRequest

_CONNECT_SECONDS = 10.0
_SILENCE_SECONDS = 300.0
_MAX_BODY = 64 * 1024 * 1024
_OWN_HEADERS = {"host", "content-length"}


@asynccontextmanager
async def remote(url: str) -> AsyncIterator[Exchange]:
    """Open an exchange with the endpoint at a URL.

    Raises:
        Failure: the URL is none; or, when the exchange is used, nobody answers there.
    """
    if not _is_url(url):
        raise Failure(f"{url} is no URL of an endpoint, such as http://127.0.0.1:8000/mcp.")
    timeout = httpx2.Timeout(_CONNECT_SECONDS, read=_SILENCE_SECONDS)
    async with httpx2.AsyncClient(timeout=timeout, follow_redirects=True) as client, AsyncExitStack() as streams:

        async def exchange(request: HttpRequest) -> HttpResponse:
            headers = {name: value for name, value in request.headers.items() if name not in _OWN_HEADERS}
            body = await request.read(_MAX_BODY)
            try:
                sent = client.build_request(request.method, url, headers=headers, content=body)
                response = await client.send(sent, stream=True)
                received = tuple((name.lower(), value) for name, value in response.headers.multi_items())
                if response.headers.get("content-type", "").startswith(EVENT_STREAM):
                    events = await streams.enter_async_context(aclosing(_events(response, url)))
                    return HttpResponse(response.status_code, received, events)
                return HttpResponse(response.status_code, received, await response.aread())
            except httpx2.HTTPError as error:
                raise Failure(_reason(url, error)) from error

        yield exchange


async def _events(response: httpx2.Response, url: str) -> AsyncGenerator[bytes, None]:
    """Yield a stream with line feeds for line ends, which may also be CR LF."""
    held = b""
    try:
        async with aclosing(response), aclosing(response.aiter_bytes()) as parts:
            async for part in parts:
                text = held + part
                held = b"\r" if text.endswith(b"\r") else b""
                yield text.removesuffix(b"\r").replace(b"\r\n", b"\n")
    except httpx2.HTTPError as error:
        raise Failure(_reason(url, error)) from error


def _is_url(url: str) -> bool:
    try:
        parts = urlsplit(url)
        httpx2.URL(url)
        return bool(parts.hostname) and parts.port != 0
    except (ValueError, httpx2.InvalidURL):
        return False


def _reason(url: str, error: Exception) -> str:
    if isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout):
        return f"Nobody answers at {url}. Is the server running, and is the address right?"
    return f"The connection to {url} failed: {' '.join(str(error).split()) or type(error).__name__}."
