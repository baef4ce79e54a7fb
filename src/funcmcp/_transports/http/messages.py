"""HTTP without a framework: a request, a response, and the function type from one to the other (`Exchange`)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

from funcmcp._protocol.loopback import address_of

if TYPE_CHECKING:
    from funcmcp._auth.principal import Principal

Body: TypeAlias = bytes | AsyncIterator[bytes]
Received: TypeAlias = Callable[[int], None]


READ_METHODS = ("GET", "HEAD")
"""The methods of a document that is only read. HEAD is answered as GET, and the platform leaves the body out (RFC 9110
section 9.3.2)."""

FORWARDED = b"x-forwarded-for"
"""The header in which proxies pass on addresses."""

_PATH_CHARACTERS = "/!$&'()*+,;=:@~"
"""What a path may contain unescaped beside letters, digits and ``-._`` (RFC 3986 section 3.3)."""

_MAX_ADDRESS = 64
"""Characters of an address that is parsed and cached. The longest address with its port has fewer."""


class BodyTooLargeError(Exception):
    """The request's body is larger than the limit."""


class RequestHeader:
    """The header of a request. Requests that repeat it on their connection share it, with the outcome of its checks.

    Args:
        pairs: The header lines as (lower-case name, value), duplicates included.
        fields: The attribute *fields*, if it is known already.

    Attributes:
        pairs: The header lines.
        fields: Header values by lower-case name. Lines of the same name are joined (RFC 9110 section 5.2).
        checks: The checks that it has passed, so that they need not be repeated; None if there are none.
        checked: What these checks have returned.
        checked_fields: The names of the fields that these checks read, as they declare; None if that is unknown.
        credentials_digest: The SHA-256 digest of the value of Authorization; None before it is needed.
    """

    __slots__ = ("checked", "checked_fields", "checks", "credentials_digest", "fields", "pairs")

    def __init__(self, pairs: list[tuple[bytes, bytes]], fields: dict[bytes, bytes] | None = None) -> None:
        self.pairs: list[tuple[bytes, bytes]] = pairs
        self.fields: dict[bytes, bytes] = fields_of(pairs) if fields is None else fields
        self.checks: object = None
        self.checked: Any = None
        self.checked_fields: frozenset[bytes] | None = None
        self.credentials_digest: bytes | None = None

    def depends_on(self, name: bytes) -> bool:
        """Return whether what is known about this header could be wrong for one with another value of a field."""
        checked_fields = self.checked_fields
        return checked_fields is None or name in checked_fields or name == b"authorization"

    def changed(self, pairs: list[tuple[bytes, bytes]], fields: dict[bytes, bytes]) -> RequestHeader:
        """Return a header that differs only in fields that it does not depend on, with what is known about it."""
        header = RequestHeader(pairs, fields)
        header.checks, header.checked, header.checked_fields = self.checks, self.checked, self.checked_fields
        header.credentials_digest = self.credentials_digest
        return header


class HttpRequest:
    """A request. Each adapter has a subclass, which reads the body, or sets `body` if the body has arrived already.

    Args:
        method: The method, in upper case.
        path: The path below the mount path of the adapter, percent-decoded, without the query.
        pairs: The header lines as (lower-case name, value), duplicates included.
        server: The address that the connection was accepted on; None if unknown.
        header: The header with these lines, if requests that repeat it share it.

    Attributes:
        body: The body, if all of it has arrived before the request is answered; None if `read` has to be called.
        fields: Header values by lower-case name. Lines of the same name are joined (RFC 9110 section 5.2).
        header: The header, if requests that repeat it share it; otherwise None.
        principal: The principal that sent it; None before authentication and for an anonymous request.
        by_user: Whether the user of this process has sent it. No request from a network has.
        caller: The caller whose share of the limits it uses (`funcmcp._server.load`); None if it counts for all only.
        proxies: The number of proxies in front of the server (`HTTPOptions.proxies`); 0 before admission.
        network_transport: How it came, in OpenTelemetry's words; None from a client in memory.
        begins_early: Whether `send_early` can be used.
        is_in_process: Whether a test has sent it in this process, so that its Host is of no server.
        added_headers: The header fields that a function around the endpoint adds to every response.
        has_early_response: Whether the response has begun with `send_early`. Its status and header are then sent, and
            the body of the response that the exchange returns is its last part.
    """

    __slots__ = (
        "added_headers",
        "body",
        "by_user",
        "caller",
        "fields",
        "has_early_response",
        "header",
        "method",
        "pairs",
        "path",
        "principal",
        "proxies",
        "server",
    )
    network_transport: str | None = "tcp"
    begins_early = False
    is_in_process = False

    def __init__(
        self,
        method: str,
        path: str,
        pairs: list[tuple[bytes, bytes]],
        server: str | None = None,
        header: RequestHeader | None = None,
    ) -> None:
        self.method: str = method
        self.path: str = path
        self.pairs: list[tuple[bytes, bytes]] = pairs
        self.server: str | None = server
        self.body: bytes | None = None
        self.principal: Principal | None = None
        self.by_user: bool = False
        self.caller: str | None = None
        self.proxies: int = 0
        self.added_headers: tuple[tuple[str, str], ...] = ()
        self.has_early_response: bool = False
        self.header: RequestHeader | None = header
        self.fields: dict[bytes, bytes] = fields_of(pairs) if header is None else header.fields

    def take_body(self) -> bytes | None:
        """Return the body if all of it has arrived; otherwise None, and `read` has to be called."""
        return self.body

    async def read(self, limit: int, received: Received | None = None) -> bytes:
        """Read the body.

        Args:
            limit: Bytes that it may have.
            received: Called with the bytes of each part of a body that comes in several, before the next one is read.
                It may raise.

        Raises:
            BodyTooLargeError: The body has more bytes.
        """
        del received
        body = self.body or b""
        if len(body) > limit:
            raise BodyTooLargeError
        return body

    async def body_parts(self, limit: int) -> AsyncIterator[bytes]:
        """Yield the body in parts, as they arrive.

        Args:
            limit: Bytes that it may have.

        Raises:
            BodyTooLargeError: The body has more bytes.
        """
        yield await self.read(limit)

    async def disconnected(self) -> None:
        """Return when the client has disconnected; never, if the platform does not report it."""
        await asyncio.Event().wait()

    async def send_early(self, headers: tuple[tuple[str, str], ...], part: bytes) -> None:
        """Send a part of a response with the status 200 before the exchange returns it, if `begins_early` allows it.

        The first part begins the response. If the client has disconnected, nothing is sent.

        Args:
            headers: The header fields, which are sent with the first part.
            part: The part.
        """
        raise NotImplementedError

    @property
    def can_stream(self) -> bool:
        """Whether the platform sends the body of a response in parts, as they come, and not as a whole."""
        return True

    @property
    def is_hosted(self) -> bool:
        """Whether a platform accepted the connection and passes the request on."""
        return False

    @property
    def peer(self) -> str | None:
        """The address of the client's end of the connection; None if unknown."""
        return None

    @property
    def client_address(self) -> str | None:
        """The IP address of the client, without a port; None if unknown.

        Any client can write X-Forwarded-For, but each proxy appends the address that it sees. So the address that the
        outermost of the operator's proxies appended is reliable. It counts if the operator has declared the proxies.
        """
        if self.proxies:
            addresses = self.fields.get(FORWARDED, b"").decode("latin-1").split(",")
            if len(addresses) >= self.proxies:
                address = ip_address_in(addresses[-self.proxies].strip(" \t"))
                if address is not None:
                    return address
        peer = self.peer
        return None if peer is None else ip_address_in(peer)

    @property
    def scheme(self) -> str:
        """`http` or `https`."""
        return "http"

    @property
    def version(self) -> str:
        """The version of HTTP; 1.1 where the platform does not report it."""
        return "1.1"

    @property
    def mount(self) -> str:
        """The path under which the adapter is mounted."""
        return ""

    @property
    def raw_path(self) -> str:
        """The path as the client has sent it; made from `path` where the platform does not pass it on."""
        from urllib.parse import quote  # noqa: PLC0415 - rarely needed, and start-up time counts

        return quote(self.path, safe=_PATH_CHARACTERS)

    @property
    def query_string(self) -> str:
        """The query of the URL, without the question mark, percent-encoded."""
        return ""

    @property
    def headers(self) -> Mapping[str, str]:
        """The header fields as text."""
        return _Headers(self.fields)

    @property
    def url(self) -> str:
        """The absolute URL, with the Host header of the client."""
        query = f"?{self.query_string}" if self.query_string else ""
        return f"{self.scheme}://{self.headers.get('host', '')}{self.mount}{self.path}{query}"

    @property
    def query_params(self) -> Mapping[str, str]:
        """Query parameters, decoded. Of a repeated name, the last value counts."""
        from urllib.parse import parse_qsl  # noqa: PLC0415 - rarely needed, and start-up time counts

        return dict(parse_qsl(self.query_string, keep_blank_values=True))

    @property
    def cookies(self) -> Mapping[str, str]:
        """Cookies by name."""
        from http.cookies import CookieError, SimpleCookie  # noqa: PLC0415 - rarely needed

        try:
            return {name: morsel.value for name, morsel in SimpleCookie(self.headers.get("cookie", "")).items()}
        except CookieError:
            return {}


class _Headers(Mapping[str, str]):
    """Header fields as text, by name in any case. A field is decoded when it is read."""

    __slots__ = ("_fields",)

    def __init__(self, fields: Mapping[bytes, bytes]) -> None:
        self._fields = fields

    def __getitem__(self, name: str) -> str:
        return self._fields[name.lower().encode("latin-1", "backslashreplace")].decode("latin-1")

    def __iter__(self) -> Iterator[str]:
        return (name.decode("latin-1") for name in self._fields)

    def __len__(self) -> int:
        return len(self._fields)


def ip_address_in(text: str) -> str | None:
    """Return an IP address without its port; None if the text is not an address."""
    return _parsed_address(text) if len(text) <= _MAX_ADDRESS else None


@lru_cache(maxsize=4096)
def _parsed_address(text: str) -> str | None:
    host = text
    if host.startswith("["):
        host = host[1:].partition("]")[0]
    elif host.count(":") == 1:
        host = host.partition(":")[0]
    address = address_of(host)
    return None if address is None else str(address)


def fields_of(pairs: list[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
    """Return the values of header lines by name."""
    fields = dict(pairs)
    if len(fields) == len(pairs):
        return fields
    lines: dict[bytes, list[bytes]] = {}
    for name, value in pairs:
        lines.setdefault(name, []).append(value)
    return {name: (b"; " if name == b"cookie" else b", ").join(values) for name, values in lines.items()}


class HttpResponse:
    """A response. Its body is bytes, or an iterator of parts that the platform sends as they come."""

    __slots__ = ("body", "headers", "status")

    def __init__(self, status: int, headers: tuple[tuple[str, str], ...], body: Body = b"") -> None:
        self.status: int = status
        self.headers: tuple[tuple[str, str], ...] = headers
        self.body: Body = body

    def with_headers(self, *headers: tuple[str, str]) -> HttpResponse:
        """Return the response with more header fields."""
        return HttpResponse(self.status, (*self.headers, *headers), self.body)


Exchange: TypeAlias = Callable[[HttpRequest], Awaitable[HttpResponse]]
