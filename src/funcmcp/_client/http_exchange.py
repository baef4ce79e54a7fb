"""A server at a URL as an exchange: a function from HttpRequest to HttpResponse, over httpx2.

The server may be hostile, so all that it can make the client do is limited: redirections lead to the same origin only,
the bytes of one response and of all responses are counted, each part of a response has to arrive in time, and
compressed responses are rejected instead of being unpacked.
"""

from __future__ import annotations

import asyncio
import ssl
from contextlib import aclosing
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import httpx2

from funcmcp._client.errors import AuthenticationError, ConnectionFailedError, one_line
from funcmcp._client.streamable_http import StreamableHTTP
from funcmcp._client.targets import MEBIBYTE, HTTPEndpoint
from funcmcp._mappings import without
from funcmcp._protocol.durations import seconds_text
from funcmcp._transports.http.messages import HttpResponse
from funcmcp._transports.http.status import EVENT_STREAM
from funcmcp._visible_text import visible_url

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from funcmcp._client.sign_in import Tokens
    from funcmcp._client.transport import Message, Receive
    from funcmcp._transports.http.messages import HttpRequest

_PART_BYTES = 256
"""Bytes that each part of a body counts in addition to its length: a server may send every byte as its own chunk."""

_MAX_REDIRECTS = 5
_MAX_RENEWALS = 2
"""Tokens that a request may cause: one of a sign-in, and one with a scope that the server then asks for."""

_MAX_REQUEST_BYTES = 64 * MEBIBYTE
_HTTPX2_HEADERS = {"host", "content-length"}
"""Header fields that httpx2 sets itself."""


class HTTPTransport(StreamableHTTP):
    """Streamable HTTP to an endpoint.

    Args:
        endpoint: The URL, and the limits for its responses.
        headers: Header fields of every request, beside the endpoint's own.

    Raises:
        ValueError: The URL is not valid, or the endpoint has both a sign-in and an Authorization header.
    """

    def __init__(self, endpoint: HTTPEndpoint, headers: Mapping[str, str]) -> None:
        self._http_exchange = HTTPExchange(endpoint)
        super().__init__(self._http_exchange, urlsplit(endpoint.url).path, {**endpoint.headers, **headers})
        self._tokens: Tokens | None = None
        if endpoint.sign_in is not None:
            from funcmcp._client.sign_in import Tokens  # noqa: PLC0415 - few clients sign in

            if "authorization" in self._headers:
                raise ValueError("An endpoint with SignIn gets no Authorization header. Remove it from headers.")
            self._tokens = Tokens(endpoint.url, endpoint.sign_in)

    async def connect(self, receive: Receive) -> None:
        """Make the pool of connections."""
        await super().connect(receive)
        self._http_exchange.open()

    async def aclose(self) -> None:
        """End the session and close the connections."""
        try:
            await super().aclose()
        finally:
            await self._http_exchange.aclose()

    async def _post(self, message: Message, headers: Mapping[str, str]) -> HttpResponse:
        """Send a message. Send it again with another token if the server refuses it, which it then has not begun."""
        if self._tokens is None:
            return await super()._post(message, headers)
        token = await self._tokens.current()
        for _ in range(_MAX_RENEWALS):
            try:
                return await self._post_with(token, message, headers)
            except AuthenticationError as error:
                token = await self._tokens.renewed(token, error)
        return await self._post_with(token, message, headers)

    async def _post_with(self, token: str | None, message: Message, headers: Mapping[str, str]) -> HttpResponse:
        if token is not None:
            self._headers["authorization"] = f"Bearer {token}"
        return await super()._post(message, headers)


class HTTPExchange:
    """Sends requests to an endpoint. Open it before the first request, and close it after the last one.

    Args:
        endpoint: The URL, and the limits for its responses.

    Raises:
        ValueError: The URL is not valid.
    """

    def __init__(self, endpoint: HTTPEndpoint) -> None:
        if not _is_url(endpoint.url):
            raise ValueError(
                f"{visible_url(endpoint.url)!r} is not a URL of an endpoint, such as http://127.0.0.1:8000/mcp."
            )
        self._endpoint = endpoint
        self._visible_url = visible_url(endpoint.url)
        self._url = httpx2.URL(endpoint.url)
        self._client: httpx2.AsyncClient | None = None
        self._total = 0
        self._has_answered = False

    def open(self) -> None:
        """Make the pool of connections."""
        timeout = httpx2.Timeout(self._endpoint.connect_seconds, read=self._endpoint.silence_seconds)
        context = self._endpoint.ssl_context
        self._client = httpx2.AsyncClient(timeout=timeout, verify=True if context is None else context)

    async def aclose(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    async def __call__(self, request: HttpRequest) -> HttpResponse:
        """Send a request and return its response; follow redirections on the same origin.

        Raises:
            ConnectionFailedError: Nothing answers at the URL, or the connection breaks or stays silent; or the response
                exceeds a limit, is compressed, or redirects to another origin.
        """
        if self._client is None:
            raise RuntimeError("The exchange is not open.")
        try:
            response = await self._send(self._client, request)
            self._has_answered = True
            return await self._read(response)
        except TimeoutError:
            seconds = self._endpoint.silence_seconds
            raise ConnectionFailedError(
                f"{self._visible_url} takes more than {seconds_text(seconds)} to answer."
            ) from None
        except httpx2.HTTPError as error:
            raise self._failure(error) from error

    async def _send(self, client: httpx2.AsyncClient, request: HttpRequest) -> httpx2.Response:
        """Send a request, follow redirections, and return the response before its body is read."""
        fields = without(request.headers, *_HTTPX2_HEADERS)
        fields["accept-encoding"] = "identity"
        body = await request.read(_MAX_REQUEST_BYTES)
        for _ in range(_MAX_REDIRECTS):
            http_request = client.build_request(request.method, self._url, headers=fields, content=body)
            async with asyncio.timeout(self._endpoint.silence_seconds):
                response = await client.send(http_request, stream=True)
            if not response.has_redirect_location:
                return response
            await response.aclose()
            self._url = _redirected(self._url, response.headers["location"])
        raise ConnectionFailedError(
            f"{self._visible_url} redirects more than {_MAX_REDIRECTS} times. Use the server's own URL."
        )

    async def _read(self, response: httpx2.Response) -> HttpResponse:
        """Return a response with its body, or with its parts if it is an event stream."""
        coding = response.headers.get("content-encoding", "identity")
        if coding.lower() != "identity":
            await response.aclose()
            raise ConnectionFailedError(
                f"{self._visible_url} answers with content coding {coding!r}, which the client did not accept."
            )
        fields = tuple((name.lower(), value) for name, value in response.headers.multi_items())
        parts = self._parts(response)
        if response.headers.get("content-type", "").lower().startswith(EVENT_STREAM):
            return HttpResponse(response.status_code, fields, parts)
        body = bytearray()
        async with asyncio.timeout(self._endpoint.silence_seconds), aclosing(parts):
            async for part in parts:
                body += part
        return HttpResponse(response.status_code, fields, bytes(body))

    async def _parts(self, response: httpx2.Response) -> AsyncGenerator[bytes, None]:
        """Yield the parts of a response's body, and close the response at the end."""
        size = 0
        try:
            async with aclosing(response), aclosing(response.aiter_raw()) as parts:
                async for part in parts:
                    size += len(part) + _PART_BYTES
                    self._count(len(part) + _PART_BYTES, size)
                    yield part
        except httpx2.HTTPError as error:
            raise self._failure(error) from error

    def _count(self, part_size: int, response_size: int) -> None:
        """Count a part. Raise ConnectionFailedError if a response, or all of them, have more bytes than allowed."""
        self._total += part_size
        limit, total_limit = self._endpoint.max_response_bytes, self._endpoint.max_total_bytes
        if response_size > limit:
            raise ConnectionFailedError(f"{self._visible_url} answers with more than {_size(limit)}.")
        if total_limit is not None and self._total > total_limit:
            raise ConnectionFailedError(f"{self._visible_url} sends more than {_size(total_limit)}.")

    def _failure(self, error: httpx2.HTTPError) -> ConnectionFailedError:
        url = self._visible_url
        certificate = _certificate_error(error)
        if certificate is not None:
            return ConnectionFailedError(
                f"The certificate of {url} is not accepted: {certificate.verify_message}. If a private authority has "
                "signed it, set the environment variable SSL_CERT_FILE to the certificate of that authority."
            )
        if isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout):
            if self._has_answered:
                return ConnectionFailedError(f"The connection to {url} is lost: the server no longer answers.")
            return ConnectionFailedError(
                f"No server answers at {url}. Check that the server is running and that the address is right."
            )
        reason = one_line(error) or type(error).__name__
        return ConnectionFailedError(f"The connection to {url} failed: {reason}.")


def _certificate_error(error: BaseException | None) -> ssl.SSLCertVerificationError | None:
    """Return the error about the certificate of the server that is the reason of an error; None for other reasons."""
    while error is not None and not isinstance(error, ssl.SSLCertVerificationError):
        error = error.__cause__ or error.__context__
    return error


def _redirected(url: httpx2.URL, location: str) -> httpx2.URL:
    """Return the URL that a redirection leads to: on the same origin, or the same host's https instead of http."""
    try:
        target = url.join(location)
    except (ValueError, httpx2.InvalidURL):
        raise ConnectionFailedError(
            f"{visible_url(str(url))} redirects to {visible_url(location)!r}, which is not a URL."
        ) from None
    same_origin = (target.scheme, target.host, target.port) == (url.scheme, url.host, url.port)
    to_https = (url.scheme, url.port, target.scheme, target.port) == ("http", None, "https", None)
    if same_origin or (to_https and target.host == url.host):
        return target
    raise ConnectionFailedError(
        f"{visible_url(str(url))} redirects to another server, {visible_url(str(target))}. If you trust that server, "
        "use its URL."
    )


def _is_url(url: str) -> bool:
    try:
        parts = urlsplit(url)
        httpx2.URL(url)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except (ValueError, httpx2.InvalidURL):
        return False


def _size(count: int) -> str:
    if count >= MEBIBYTE:
        return f"{count // MEBIBYTE} MiB"
    return f"{count} bytes"
