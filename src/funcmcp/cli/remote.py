"""A server at a URL as an exchange: the same function from HttpRequest to HttpResponse, over httpx2.

The server may be hostile. What it can make the command do is bounded: it is sent on to the same origin only, the bytes
of one response and of all responses are counted, a response has to begin in time, and to end in time unless it is a
stream, and nothing that it has compressed is unpacked.
"""

from __future__ import annotations

import asyncio
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
_MAX_BYTES = 64 * 1024 * 1024
_MAX_TOTAL_BYTES = 4 * _MAX_BYTES
_PART_BYTES = 256
"""What a part of a body counts beside its bytes: a server may send each byte as a chunk of its own."""

_MAX_REDIRECTS = 5
_OWN_HEADERS = {"host", "content-length"}


@asynccontextmanager
async def remote(url: str) -> AsyncIterator[Exchange]:
    """Open an exchange with the endpoint at a URL.

    Raises:
        Failure: The URL is not valid. When the exchange is used: nobody answers there, or the server
            sends something that no MCP server needs to send.
    """
    if not _is_url(url):
        raise Failure(f"{url} is no URL of an endpoint, such as http://127.0.0.1:8000/mcp.")
    timeout = httpx2.Timeout(_CONNECT_SECONDS, read=_SILENCE_SECONDS)
    async with httpx2.AsyncClient(timeout=timeout) as client, AsyncExitStack() as streams:
        endpoint = httpx2.URL(url)
        allowance = _Allowance(url)

        async def exchange(request: HttpRequest) -> HttpResponse:
            nonlocal endpoint
            headers = {name: value for name, value in request.headers.items() if name not in _OWN_HEADERS}
            headers["accept-encoding"] = "identity"
            body = await request.read(_MAX_BYTES)
            try:
                for _ in range(_MAX_REDIRECTS):
                    sent = client.build_request(request.method, endpoint, headers=headers, content=body)
                    async with asyncio.timeout(_SILENCE_SECONDS):
                        response = await client.send(sent, stream=True)
                    if not response.has_redirect_location:
                        break
                    await response.aclose()
                    endpoint = _redirected(endpoint, response)
                else:
                    raise Failure(f"{url} redirects more than {_MAX_REDIRECTS} times. Use the server's own URL.")
                return await _received(response, streams, allowance)
            except TimeoutError:
                raise Failure(f"{url} takes more than {_SILENCE_SECONDS:.0f} seconds to answer.") from None
            except httpx2.HTTPError as error:
                raise Failure(_reason(url, error)) from error

        yield exchange


class _Allowance:
    """The bytes that a server may send in all responses to a command."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._total = 0

    def add(self, part: bytes, size: int) -> int:
        """Count a part of a response of which *size* bytes have come; return the new size, or raise Failure."""
        size += len(part) + _PART_BYTES
        self._total += len(part) + _PART_BYTES
        if size > _MAX_BYTES:
            raise Failure(f"{self.url} answers with more than {_MAX_BYTES // 1024**2} MiB. The rest is not read.")
        if self._total > _MAX_TOTAL_BYTES:
            raise Failure(f"{self.url} sends more than {_MAX_TOTAL_BYTES // 1024**2} MiB. The rest is not read.")
        return size


def _redirected(endpoint: httpx2.URL, response: httpx2.Response) -> httpx2.URL:
    """Return where a redirection leads; raise Failure if it leads to another origin, but for http to https."""
    location = response.headers["location"]
    try:
        target = endpoint.join(location)
    except (ValueError, httpx2.InvalidURL):
        raise Failure(f"{endpoint} redirects to {location!r}, which is not a URL.") from None
    same_origin = (target.scheme, target.host, target.port) == (endpoint.scheme, endpoint.host, endpoint.port)
    to_https = (target.scheme, target.port, endpoint.scheme, endpoint.port) == ("https", None, "http", None)
    if not same_origin and not (to_https and target.host == endpoint.host):
        raise Failure(f"{endpoint} redirects to another server, {target}. If you trust that server, use its URL.")
    return target


async def _received(response: httpx2.Response, streams: AsyncExitStack, allowance: _Allowance) -> HttpResponse:
    """Return a response with its body, or with its events if it is a stream."""
    coding = response.headers.get("content-encoding", "identity")
    if coding.lower() != "identity":
        await response.aclose()
        raise Failure(f"{allowance.url} answers with content coding {coding!r}, which was not asked for.")
    received = tuple((name.lower(), value) for name, value in response.headers.multi_items())
    parts = _bounded(response, allowance)
    if response.headers.get("content-type", "").startswith(EVENT_STREAM):
        events = await streams.enter_async_context(aclosing(_events(parts, allowance.url)))
        return HttpResponse(response.status_code, received, events)
    async with asyncio.timeout(_SILENCE_SECONDS), aclosing(parts):
        return HttpResponse(response.status_code, received, b"".join([part async for part in parts]))


async def _bounded(response: httpx2.Response, allowance: _Allowance) -> AsyncGenerator[bytes, None]:
    """Yield the parts of a response's body; raise Failure when there are too many bytes."""
    size = 0
    async with aclosing(response), aclosing(response.aiter_raw()) as parts:
        async for part in parts:
            size = allowance.add(part, size)
            yield part


async def _events(parts: AsyncGenerator[bytes, None], url: str) -> AsyncGenerator[bytes, None]:
    """Yield a stream with line feeds for line ends, which may also be CR LF."""
    held = b""
    try:
        async with aclosing(parts):
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
