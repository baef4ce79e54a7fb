"""Requests to the API of an OpenAPI document, over httpx2 or httpx.

The API may be hostile, so what it can make the server do is limited: redirections are followed on the same origin
only, and never repeat a request that may have had an effect with another method; the bytes of a response are counted
after they are unpacked; an event stream is read for a limited time. Cookies that the API sets are not kept, because
they would carry the state of one caller's call into another's. A client that the author gives keeps what its author
configured.
"""

from __future__ import annotations

import asyncio
import zlib
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin

from funcmcp._authoring.openapi.documents import origin_of
from funcmcp._authoring.openapi.http_responses import Response
from funcmcp._protocol.errors import ToolError
from funcmcp._server.catalog.registry import RegistrationError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from funcmcp._authoring.openapi.credentials import Applied
    from funcmcp._authoring.openapi.operations import Target

MAX_RESPONSE_BYTES = 16 * 1024 * 1024
_MAX_STREAM_BYTES = 1024 * 1024
_STREAM_SECONDS = 30
_TIMEOUT_SECONDS = 30
_MAX_REDIRECTS = 5
_REDIRECTS = {301, 302, 303, 307, 308}
_STREAMS = ("text/event-stream", "application/x-ndjson", "application/jsonl", "application/stream+json")
_GZIP = 32 + zlib.MAX_WBITS
"""The argument of zlib for gzip and zlib with a header."""


def httpx2_module() -> Any:
    """Return httpx2. Raise RegistrationError if it is not installed."""
    try:
        import httpx2  # noqa: PLC0415 - an extra
    except ImportError:
        raise RegistrationError(
            "Tools from a remote API need httpx2. Install the extra: pip install 'funcmcp[openapi]'."
        ) from None
    return httpx2


def new_client(auth: Any = None) -> Any:
    """Return a client for one event loop, which keeps no cookies."""
    jar = CookieJar(DefaultCookiePolicy(allowed_domains=[]))
    return httpx2_module().AsyncClient(timeout=_TIMEOUT_SECONDS, cookies=jar, auth=auth, follow_redirects=False)


async def send(client: Any, method: str, base_url: str, target: Target, credentials: Applied) -> Response:
    """Send a request and return its complete response.

    Args:
        client: An `httpx2.AsyncClient` or `httpx.AsyncClient`.
        method: The method.
        base_url: The URL of the API, without a slash at its end.
        target: The request.
        credentials: The credentials.

    Raises:
        ToolError: The API does not answer, or its response exceeds a limit.
    """
    url = base_url + target.path + query_of(target.query, str(client.params), *credentials.query)
    headers = {"accept": "*/*", "accept-encoding": "gzip", **target.headers, **credentials.headers}
    if credentials.cookies:
        headers["cookie"] = "; ".join([*filter(None, [headers.get("cookie")]), *credentials.cookies])
    body = target.body
    try:
        for _ in range(_MAX_REDIRECTS):
            request = request_for(client, method, url, headers, body)
            response = await client.send(request, stream=True, follow_redirects=False)
            next_url = _redirected(url, method, response)
            if next_url is None:
                return await _read(response)
            await response.aclose()
            url = next_url
    except Exception as error:
        if not _is_of_httpx(error):
            raise
        raise ToolError(f"The API did not answer ({type(error).__name__}).") from error
    raise ToolError(f"The API redirects more than {_MAX_REDIRECTS} times.")


def request_for(client: Any, method: str, url: str, headers: Mapping[str, str], body: Any) -> Any:
    """Build the request for exactly this URL. httpx would replace its query by the ``params`` of the client."""
    request = client.build_request(method, url, headers=headers, content=body)
    request.url = type(request.url)(url)
    return request


def query_of(*parts: str) -> str:
    """Return the query of a URL with its question mark."""
    query = "&".join(filter(None, parts))
    return f"?{query}" if query else ""


def _redirected(url: str, method: str, response: Any) -> str | None:
    """Return the URL that a response redirects to; None if it is the answer."""
    location = response.headers.get("location")
    if response.status_code not in _REDIRECTS or not location:
        return None
    keeps_method = method == "GET" or response.status_code in {307, 308}
    try:
        target = urljoin(url, location)
    except ValueError:
        return None
    return target if keeps_method and origin_of(target) == origin_of(url) else None


async def _read(response: Any) -> Response:
    """Return a response with its body, and close it."""
    headers = response.headers
    content_type = headers.get("content-type", "")
    is_stream = content_type.lower().startswith(_STREAMS)
    body = bytearray()
    try:
        async with asyncio.timeout(_STREAM_SECONDS if is_stream else None):
            async for part in _unpacked(response):
                body += part
                if is_stream and len(body) > _MAX_STREAM_BYTES:
                    break
                if len(body) > MAX_RESPONSE_BYTES:
                    raise ToolError("The API answered with more than 16 MiB.")
    except TimeoutError:
        if not is_stream:
            raise
    finally:
        await response.aclose()
    data = bytes(body[:_MAX_STREAM_BYTES] if is_stream else body)
    return Response(
        response.status_code, content_type, data, link=headers.get("link", ""), location=headers.get("location", "")
    )


async def _unpacked(response: Any) -> AsyncIterator[bytes]:
    """Yield the parts of a body, unpacked. A small part may be a gigabyte, so it is unpacked in steps."""
    if response.is_stream_consumed:
        yield response.content  # from a transport for tests, which answers with complete responses
        return
    coding = response.headers.get("content-encoding", "identity").strip().lower()
    if coding not in {"identity", "", "gzip", "x-gzip", "deflate"}:
        raise ToolError(f"The API answered with the content coding {coding!r}, which the request did not accept.")
    unpacker = None if coding in {"identity", ""} else zlib.decompressobj(_GZIP)
    async for part in response.aiter_raw():
        if unpacker is None:
            yield part
            continue
        pending = part
        while pending:
            try:
                yield unpacker.decompress(pending, MAX_RESPONSE_BYTES)
            except zlib.error:
                raise ToolError("The API answered with a body that is not valid gzip.") from None
            pending = unpacker.unconsumed_tail


def _is_of_httpx(error: BaseException) -> bool:
    """Return whether an exception is one of httpx2 or httpx, whichever the client belongs to."""
    return any(base.__module__.partition(".")[0] in {"httpx2", "httpx"} for base in type(error).__mro__)
