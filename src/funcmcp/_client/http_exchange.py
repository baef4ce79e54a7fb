"""A server at a URL as an exchange: a function from HttpRequest to HttpResponse, over httpx2.

The server may be hostile, so all that it can make the client do is limited: redirections lead to the same origin only,
the bytes of one response and of all responses are counted, each part of a response has to arrive in time, and
compressed responses are rejected instead of being unpacked.
"""

from __future__ import annotations

import asyncio
import ssl
from contextlib import aclosing
from functools import partial
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

import httpx2

from funcmcp._client.errors import ConnectionFailedError, TooLargeError, one_line
from funcmcp._client.http_messages import discard, field_of
from funcmcp._client.http_sse import HTTPWithSSE
from funcmcp._client.messages import parse_message
from funcmcp._client.public_addresses import public_addresses
from funcmcp._client.start_retries import RepeatingExchange
from funcmcp._client.streamable_http import StreamableHTTP
from funcmcp._client.targets import MEBIBYTE, HTTPEndpoint
from funcmcp._objects.mappings import lower_names, without
from funcmcp._protocol.durations import seconds_text
from funcmcp._protocol.errors import INVALID_REQUEST
from funcmcp._text.visible import visible_url
from funcmcp._transports.http.messages import HttpResponse
from funcmcp._transports.http.status import EVENT_STREAM

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping

    from funcmcp._client.http_connections import HTTPConnections
    from funcmcp._client.transport import Message, Receive
    from funcmcp._transports.http.messages import Exchange, HttpRequest

_PART_BYTES = 256
"""Bytes that each part of a body counts in addition to its length: a server may send every byte as its own chunk."""

_MAX_REDIRECTS = 5
_WITHOUT_TLS = {"WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST"}
"""Reasons of OpenSSL for an answer that is not TLS. They depend on its version."""

_MAX_CAUSES = 10
_REDIRECTIONS = frozenset({301, 302, 303, 307, 308})
_NO_STREAMABLE_HTTP = frozenset({400, 404, 405})
"""Statuses of ``initialize`` after which an endpoint may be one of HTTP+SSE."""

_MAX_REQUEST_BYTES = 64 * MEBIBYTE
_PORTS = {"http": 80, "https": 443}
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
        if endpoint.max_connections < 1:
            raise ValueError(f"max_connections must be at least 1; got {endpoint.max_connections}.")
        self._http_exchange = HTTPExchange(endpoint)
        exchange: Exchange = self._http_exchange
        fields = lower_names({**endpoint.headers, **headers})
        self._places = asyncio.Semaphore(endpoint.max_connections)
        self._with_place: set[int] = set()
        if endpoint.sign_in is not None:
            if endpoint.public_only:
                raise ValueError("public_only is for endpoints without sign_in, whose servers it does not check.")
            from funcmcp._client.sign_in import AuthorizedExchange, Tokens  # noqa: PLC0415 - few clients sign in

            if "authorization" in fields:
                raise ValueError("An endpoint with sign_in gets no Authorization header. Remove it from headers.")
            tokens = Tokens(endpoint.url, endpoint.sign_in)
            exchange = AuthorizedExchange(exchange, tokens, self._http_exchange.url_of)
        if endpoint.retry_seconds:
            exchange = RepeatingExchange(exchange, endpoint.retry_seconds)
        super().__init__(exchange, urlsplit(endpoint.url).path, fields)

    async def connect(self, receive: Receive) -> None:
        """Make the pool of connections."""
        await super().connect(receive)
        self._http_exchange.open()

    def open_pool(self) -> None:
        """Make the pool of connections, for other transports that share it."""
        self._http_exchange.open()

    async def aclose(self) -> None:
        """End the session and close the connections."""
        try:
            await super().aclose()
        finally:
            await self._http_exchange.aclose()

    async def request(self, message: Message, headers: Mapping[str, str]) -> Message:
        """Send a request, as soon as fewer than `max_connections` of them run; see `Transport.request`.

        Answers to the server and streams need no place, so that requests that wait for an answer always get it. A
        request during which the server asks a question gives its place back: a person may need minutes for the answer.
        """
        if message["method"] == "subscriptions/listen":
            return await super().request(message, headers)
        await self._places.acquire()
        self._with_place.add(message["id"])
        try:
            return await super().request(message, headers)
        finally:
            self._give_back(message["id"])

    async def _received_during(self, request_id: int, received: Message) -> None:
        if "id" in received and received["method"] != "ping":
            self._give_back(request_id)
        await super()._received_during(request_id, received)

    def _give_back(self, request_id: int) -> None:
        """Give the place of a request back, unless that has happened."""
        if request_id in self._with_place:
            self._with_place.discard(request_id)
            self._places.release()

    def _url_of(self, path: str) -> str:
        return self._http_exchange.url_of(path)

    async def _open_http_sse(self, refusal: HttpResponse) -> HTTPWithSSE | None:
        """Return the transport of 2024-11-05 if the endpoint has it, after the response to ``initialize``."""
        if refusal.status not in _NO_STREAMABLE_HTTP or _has_reason(refusal):
            return None
        http_sse = HTTPWithSSE(self._get_events, self._post_to, self._receive, self.on_end)
        return http_sse if await http_sse.open(self._http_exchange.connect_seconds) else None

    async def _get_events(self) -> HttpResponse:
        return await self._get({}, self._http_exchange.path_of("", may_be_silent=True))

    def _post_to(self, reference: str) -> Callable[[Message, Mapping[str, str]], Awaitable[HttpResponse]]:
        return partial(self._post, path=self._http_exchange.path_of(reference))


class PooledTransport(HTTPTransport):
    """Streamable HTTP over the pool of connections of another transport, which stays open when this one is closed.

    Args:
        owner: The other transport, whose pool is open.
    """

    def __init__(self, owner: HTTPTransport) -> None:
        self._http_exchange = owner._http_exchange  # noqa: SLF001 - of the base class, as the members below
        self._places = owner._places  # noqa: SLF001
        self._with_place = set()
        StreamableHTTP.__init__(self, owner._exchange, owner._path, owner._headers)  # noqa: SLF001

    async def connect(self, receive: Receive) -> None:
        """Remember who handles messages."""
        await StreamableHTTP.connect(self, receive)

    async def aclose(self) -> None:
        """End the session."""
        await StreamableHTTP.aclose(self)


class _Target(NamedTuple):
    """A URL of the endpoint's origin, and the seconds that each part of a response may take. None: any number."""

    url: httpx2.URL
    read_seconds: float | None


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
        self._connections: HTTPConnections | None = None
        self._targets: dict[str, _Target] = {}
        self._total = 0
        self._has_answered = False

    def url_of(self, path: str) -> str:
        """Return the URL of the next request with a path, to which the server may have redirected an earlier one."""
        target = self._targets.get(path)
        return str(self._url if target is None else target.url)

    def open(self) -> None:
        """Make the pool of connections."""
        endpoint = self._endpoint
        context = endpoint.ssl_context
        self._targets.clear()
        self._connections = self._direct_connections(self._url)
        if self._connections is not None:
            return
        no_cookies = CookieJar(DefaultCookiePolicy(allowed_domains=[]))  # `StreamableHTTP` has those of its session
        self._client = httpx2.AsyncClient(
            cookies=no_cookies,
            verify=True if context is None else context,
            limits=httpx2.Limits(
                max_keepalive_connections=endpoint.max_connections, keepalive_expiry=endpoint.keep_alive_seconds
            ),
        )

    def path_of(self, reference: str, *, may_be_silent: bool = False) -> str:
        """Return the path of requests to another URL of the same origin.

        Args:
            reference: The URL, relative to that of the endpoint.
            may_be_silent: Whether an event stream may be silent for any time.

        Raises:
            ConnectionFailedError: It is not a URL, or of another origin.
        """
        url = _on_same_origin(self._url, reference)
        path = f"{url}#silent" if may_be_silent else str(url)
        self._targets[path] = _Target(url, None if may_be_silent else self._endpoint.silence_seconds)
        return path

    @property
    def connect_seconds(self) -> float:
        """Seconds that a connection may take."""
        return self._endpoint.connect_seconds

    async def aclose(self) -> None:
        """Close the connections."""
        if self._connections is not None:
            self._connections.aclose()
            self._connections = None
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    async def __call__(self, request: HttpRequest) -> HttpResponse:
        """Send a request and return its response; follow redirections on the same origin.

        Raises:
            ConnectionFailedError: Nothing answers at the URL, or the connection breaks or stays silent; or the response
                exceeds a limit, is compressed, or redirects to another origin.
        """
        if self._connections is not None:
            return await self._send_directly(self._connections, request)
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

    def _direct_connections(self, url: httpx2.URL) -> HTTPConnections | None:
        """Return connections to the origin of a URL. None if httpx2 has to send the requests."""
        if self._endpoint.public_only:  # each request has an address of its own
            return None
        try:
            from funcmcp._client.http_connections import HTTPConnections, goes_directly  # noqa: PLC0415 - as below
        except ModuleNotFoundError:  # httptools is in the extra "server"
            return None
        if not goes_directly(url):
            return None
        context = self._endpoint.ssl_context
        if context is None and url.scheme == "https":
            context = httpx2.create_ssl_context()
        return HTTPConnections(
            url,
            context,
            connect_seconds=self._endpoint.connect_seconds,
            keep_alive_seconds=self._endpoint.keep_alive_seconds,
        )

    async def _send_directly(self, connections: HTTPConnections, request: HttpRequest) -> HttpResponse:
        """Send a request, follow redirections, and return the response."""
        from funcmcp._client.http_connections import ResponseLimits, encoded_request  # noqa: PLC0415 - loaded already

        body = await request.read(_MAX_REQUEST_BYTES)
        pairs = [*request.pairs, (b"accept-encoding", b"identity")]
        target = self._targets.get(request.path)
        silence_seconds = self._endpoint.silence_seconds
        url, part_seconds = target or (self._url, silence_seconds)
        limits = ResponseLimits(silence_seconds, part_seconds, self._count)
        for _ in range(_MAX_REDIRECTS):
            try:
                response = await connections.send(encoded_request(request.method, url, pairs, body), limits)
            except (OSError, ValueError) as error:
                raise self._failure(error) from error
            self._has_answered = True
            location = field_of(response, "location")
            if location is None or response.status not in _REDIRECTIONS:
                return await self._readable(response)
            await discard(response)
            origin, url = url, _redirected(url, location)
            if target is None:
                self._url = url
            if url.scheme != origin.scheme:
                connections.aclose()
                self._connections = connections = self._direct_connections(url) or connections
        raise self._too_many_redirections()

    async def _readable(self, response: HttpResponse) -> HttpResponse:
        """Return a response, unless it is compressed."""
        coding = field_of(response, "content-encoding")
        if coding is None or coding.lower() == "identity":
            return response
        await discard(response)
        raise self._compressed(coding)

    def _compressed(self, coding: str) -> ConnectionFailedError:
        return ConnectionFailedError(
            f"{self._visible_url} answers with content coding {coding!r}, which the client did not accept."
        )

    def _too_many_redirections(self) -> ConnectionFailedError:
        return ConnectionFailedError(
            f"{self._visible_url} redirects more than {_MAX_REDIRECTS} times. Use the server's own URL."
        )

    async def _send(self, client: httpx2.AsyncClient, request: HttpRequest) -> httpx2.Response:
        """Send a request, follow redirections, and return the response before its body is read."""
        fields = without(request.headers, *_HTTPX2_HEADERS)
        fields["accept-encoding"] = "identity"
        body = await request.read(_MAX_REQUEST_BYTES)
        target = self._targets.get(request.path)
        url, read_seconds = target or (self._url, self._endpoint.silence_seconds)
        timeout = httpx2.Timeout(self._endpoint.connect_seconds, read=read_seconds, pool=None)
        for _ in range(_MAX_REDIRECTS):
            address, extensions = url, None
            if self._endpoint.public_only:
                address, extensions = await self._public_address(url)
                fields["host"] = url.netloc.decode()
            http_request = client.build_request(
                request.method, address, headers=fields, content=body, timeout=timeout, extensions=extensions
            )
            async with asyncio.timeout(self._endpoint.silence_seconds):
                response = await client.send(http_request, stream=True)
            if not response.has_redirect_location:
                return response
            await response.aclose()
            url = _redirected(url, response.headers["location"])
            if target is None:
                self._url = url
        raise self._too_many_redirections()

    async def _public_address(self, url: httpx2.URL) -> tuple[httpx2.URL, dict[str, Any]]:
        """Return a URL with an address in place of its host, and what keeps the host for TLS.

        Raises:
            ConnectionFailedError: One of the addresses of the host is not public, or the host has none.
        """
        try:
            async with asyncio.timeout(self._endpoint.connect_seconds):
                addresses = await public_addresses(url.host, url.port or _PORTS[url.scheme])
        except TimeoutError:
            text = f"The address of {self._visible_url} was not found in time."
            raise ConnectionFailedError(text, was_sent=False) from None
        if not addresses:
            raise ConnectionFailedError(
                f"{visible_url(str(url))} leads to an address that is not public, or to none. "
                "HTTPEndpoint(public_only=True) refuses it.",
                was_sent=False,
            )
        return url.copy_with(host=addresses[0]), {"sni_hostname": url.host}

    async def _read(self, response: httpx2.Response) -> HttpResponse:
        """Return a response with its body, or with its parts if it is an event stream."""
        coding = response.headers.get("content-encoding", "identity")
        if coding.lower() != "identity":
            await response.aclose()
            raise self._compressed(coding)
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
        """Count a part. Raise TooLargeError if a response, or all of them, have more bytes than allowed."""
        self._total += part_size
        limit, total_limit = self._endpoint.max_response_bytes, self._endpoint.max_total_bytes
        if response_size > limit:
            raise TooLargeError(f"{self._visible_url} answers with more than {_size(limit)}.")
        if total_limit is not None and self._total > total_limit:
            raise TooLargeError(f"{self._visible_url} sends more than {_size(total_limit)}.")

    def _failure(self, error: Exception) -> ConnectionFailedError:
        url = self._visible_url
        tls = _tls_error(error)
        if tls is not None and tls.reason in _WITHOUT_TLS:
            return ConnectionFailedError(
                f"The server at {url} does not answer with TLS. Use http:// if it serves HTTP without TLS.",
                was_sent=False,
            )
        if isinstance(tls, ssl.SSLCertVerificationError):
            return ConnectionFailedError(
                f"The certificate of {url} is not accepted: {tls.verify_message}. If a private authority has "
                "signed it, set the environment variable SSL_CERT_FILE to the certificate of that authority.",
                was_sent=False,
            )
        if isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout | OSError):
            if self._has_answered:
                message = f"The connection to {url} is lost: the server no longer answers."
                return ConnectionFailedError(message, was_sent=False)
            return ConnectionFailedError(
                f"No server answers at {url}. Check that the server is running and that the address is right.",
                was_sent=False,
            )
        reason = one_line(error) or type(error).__name__
        return ConnectionFailedError(f"The connection to {url} failed: {reason}.")


def _has_reason(refusal: HttpResponse) -> bool:
    """Return whether a server of Streamable HTTP refuses ``initialize`` with a reason, such as another revision."""
    message = parse_message(refusal.body) if isinstance(refusal.body, bytes) else None
    error = None if message is None else message.get("error")
    return isinstance(error, dict) and error.get("code") != INVALID_REQUEST


def _tls_error(error: BaseException | None) -> ssl.SSLError | None:
    """Return the error of TLS that is the reason of an error; None for other reasons."""
    for _ in range(_MAX_CAUSES):  # causes may be a circle
        if error is None or isinstance(error, ssl.SSLError):
            return error
        error = error.__cause__ or error.__context__
    return None


def _on_same_origin(url: httpx2.URL, reference: str) -> httpx2.URL:
    """Return the URL that the server names for messages, relative to that of its event stream."""
    try:
        target = url.join(reference)
    except (ValueError, httpx2.InvalidURL):
        raise ConnectionFailedError(
            f"The server names {visible_url(reference)!r} for messages, which is not a URL."
        ) from None
    if (target.scheme, target.host, target.port) != (url.scheme, url.host, url.port):
        raise ConnectionFailedError(
            f"The server names a URL of another origin for messages, {visible_url(str(target))}. It gets no message."
        )
    return target


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
