"""HTTP without a framework: a request, a response, and the exchange that turns one into the other."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from funcmcp.auth.principal import Principal

Body: TypeAlias = bytes | AsyncIterator[bytes]
Received: TypeAlias = Callable[[int], None]


class BodyTooLargeError(Exception):
    """The request's body is larger than the limit."""


class HttpRequest:
    """A request as a platform's adapter hands it over; the adapter's subclass knows how to read the body.

    Args:
        method: upper case.
        path: the path below the adapter's own prefix, percent-decoded, without the query.
        pairs: (lower-case name, value) header lines as they came, duplicates included.
        server: the address that the connection was accepted on, or None if unknown.

    Attributes:
        fields: header values by lower-case name; lines of the same name are joined (RFC 9110 section 5.2).
        principal: who sent it, once that has been found out.
        caller: The caller whose share of the limits it uses (`funcmcp.server.load`); None if it counts for all only.
    """

    __slots__ = ("caller", "fields", "method", "pairs", "path", "principal", "server")

    def __init__(self, method: str, path: str, pairs: list[tuple[bytes, bytes]], server: str | None = None) -> None:
        self.method = method
        self.path = path
        self.pairs = pairs
        self.server = server
        self.principal: Principal | None = None
        self.caller: str | None = None
        self.fields = dict(pairs)
        if len(self.fields) < len(pairs):
            self.fields = _joined(pairs)

    async def read(self, limit: int, received: Received | None = None) -> bytes:
        """Read the body.

        Args:
            limit: Bytes that it may have.
            received: Called with the bytes of each part of a body that comes in several, before the next one is read.
                It may raise.

        Raises:
            BodyTooLargeError: The body has more bytes.
        """
        del limit, received
        return b""

    async def disconnected(self) -> None:
        """Return when the client has gone; never, where the platform can't tell."""
        await asyncio.Event().wait()

    @property
    def can_stream(self) -> bool:
        """Whether a response's body reaches the client part by part; where not, it does as a whole."""
        return True

    @property
    def peer(self) -> str | None:
        """The address that the connection came from, or None if unknown."""
        return None

    @property
    def scheme(self) -> str:
        """`http` or `https`."""
        return "http"

    @property
    def mount(self) -> str:
        """The adapter's own prefix of the path."""
        return ""

    @property
    def query_string(self) -> str:
        """What stands behind the `?` of the URL, as it came."""
        return ""

    @property
    def headers(self) -> Mapping[str, str]:
        """The header fields as text."""
        return _Headers(self.fields)

    @property
    def url(self) -> str:
        """The absolute URL as the client wrote it, as far as the Host header tells."""
        query = f"?{self.query_string}" if self.query_string else ""
        return f"{self.scheme}://{self.headers.get('host', '')}{self.mount}{self.path}{query}"

    @property
    def query(self) -> Mapping[str, str]:
        """Query parameters, decoded; the last one wins where a name is repeated."""
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
    """Header fields as text, by name in any case; only what is looked at is decoded."""

    __slots__ = ("_fields",)

    def __init__(self, fields: Mapping[bytes, bytes]) -> None:
        self._fields = fields

    def __getitem__(self, name: str) -> str:
        return self._fields[name.lower().encode("latin-1", "backslashreplace")].decode("latin-1")

    def __iter__(self) -> Iterator[str]:
        return (name.decode("latin-1") for name in self._fields)

    def __len__(self) -> int:
        return len(self._fields)


def _joined(pairs: list[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
    lines: dict[bytes, list[bytes]] = {}
    for name, value in pairs:
        lines.setdefault(name, []).append(value)
    return {name: (b"; " if name == b"cookie" else b", ").join(values) for name, values in lines.items()}


class HttpResponse:
    """A response: `body` is bytes, or an iterator of bytes that a platform sends as they come."""

    __slots__ = ("body", "headers", "status")

    def __init__(self, status: int, headers: tuple[tuple[str, str], ...], body: Body = b"") -> None:
        self.status = status
        self.headers = headers
        self.body = body


Exchange: TypeAlias = Callable[[HttpRequest], Awaitable[HttpResponse]]
