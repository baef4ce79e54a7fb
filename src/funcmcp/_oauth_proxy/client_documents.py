"""Client ID metadata documents: a client's id is the URL of a document that describes it.

How it works: the document is requested when the client sends a user to the proxy, and only then. Any client can choose
the URL, so the request is guarded:

- The URL has the scheme https, a name as its host, and no port, user name, query, fragment or dot segments.
- All addresses of the name must be public. The request goes to one of these addresses, so that a second look-up can't
  return another one (DNS rebinding), and TLS checks the name. No proxy of the environment is used.
- No redirect is followed. The answer has 5 KiB at most, is not compressed, and is complete after five seconds.
- A host gets ten requests a minute at most, and 20 requests run at once.

A document is kept for the time that its host allows, between a minute and a day; a failure for a minute. At the token
endpoint the document is not needed: the code has the client's id.

Anybody can use up the requests of a host, or all 20, with ids that lead nowhere. So a document that was valid before is
requested again apart from these numbers, ten times a minute at most, and failures take no room of documents.

Source: draft-ietf-oauth-client-id-metadata-document-00 sections 3, 4 and 6; MCP security best practices, "Server-Side
Request Forgery"; RFC 9111 section 5.2.2 (max-age, no-store).
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
import socket
from collections import OrderedDict
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import unquote, urlsplit

from funcmcp._oauth_proxy.clients import (
    DEFAULT_GRANT_TYPES,
    ClientMetadataError,
    OAuthClient,
    display_name,
    says_it_has_key,
    texts_in,
)
from funcmcp._oauth_proxy.redirect_uris import RedirectURIError, checked_uris, is_host
from funcmcp._objects.mappings import remember
from funcmcp._protocol.codec import decode
from funcmcp._state.rates import MemoryRates

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from ssl import SSLContext

    Resolve = Callable[[str], Awaitable[list[str]]]


MAX_URL = 512
_MAX_DOCUMENT: Final = 5 * 1024
_SECONDS: Final = 5.0
_MAX_CONCURRENT: Final = 20
_PER_MINUTE: Final = 10
_HOSTS: Final = 1000
_MAX_CACHED: Final = 200
_MIN_LIFETIME, _LIFETIME, _MAX_LIFETIME = 60.0, 3600.0, 86_400.0
_OK: Final = 200
_URL: Final = re.compile(r"https://([a-z0-9.-]+)(/[A-Za-z0-9._~!$&'()*+,;=:@%/-]+)")
_MAX_AGE: Final = re.compile(r"(?:^|,)\s*max-age\s*=\s*\"?([0-9]{1,9})\"?\s*(?:,|$)")
_GLOBAL: Final = ipaddress.ip_network("2000::/3")
"""All IPv6 addresses that are assigned to networks. Private, local, mapped and translated ones are outside of it."""

_NOT_PUBLIC: Final = tuple(
    ipaddress.ip_network(block)
    for block in (
        "0.0.0.0/8",  # this network
        "10.0.0.0/8",  # private
        "100.64.0.0/10",  # shared by the customers of a provider
        "127.0.0.0/8",  # loopback
        "168.63.129.16/32",  # services of Azure for its virtual machines
        "169.254.0.0/16",  # link-local; metadata of clouds
        "172.16.0.0/12",  # private
        "192.0.0.0/24",  # assignments of the IETF; metadata of Oracle Cloud
        "192.0.2.0/24",  # documentation
        "192.88.99.0/24",  # relays of 6to4
        "192.168.0.0/16",  # private
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, broadcast
        "2001::/23",  # assignments of the IETF; Teredo, which contains an IPv4 address
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4, which contains an IPv4 address
        "3fff::/20",  # documentation
    )
)
"""Addresses that are not of one machine on the internet (registries of special-purpose addresses of IANA, RFC 6890)."""


class DocumentError(Exception):
    """The document of a client can't be used. The text is a sentence for users and developers, without a URL."""


class _Document(NamedTuple):
    until: float
    client: OAuthClient


class _Failure(NamedTuple):
    until: float
    reason: str


class ClientDocuments:
    """Requests and keeps the documents of clients.

    Args:
        resolve: Returns the addresses of a name; None for those of the system.
        is_allowed: Returns whether the server may send requests to an address.
        tls: The TLS settings; None for those of the system.
        port: The port of the hosts.
        clock: A monotonic clock.
    """

    def __init__(
        self,
        *,
        resolve: Resolve | None = None,
        is_allowed: Callable[[str], bool] | None = None,
        tls: SSLContext | None = None,
        port: int = 443,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._resolve = resolve or _addresses_of
        self._is_allowed = is_allowed or is_public
        self._tls = tls
        self._port = port
        self._clock = clock
        self._documents: OrderedDict[str, _Document] = OrderedDict()
        self._failures: OrderedDict[str, _Failure] = OrderedDict()
        self._rates = MemoryRates(_PER_MINUTE / 60, _PER_MINUTE, callers=_HOSTS, clock=clock)
        self._running = 0

    async def client(self, url: str) -> OAuthClient:
        """Return the client with this id; raise DocumentError."""
        host = host_of(url)
        failure = self._failures.get(url)
        if failure is not None and self._clock() < failure.until:
            raise DocumentError(failure.reason)
        document = self._documents.get(url)
        if document is None or self._clock() >= document.until:
            document = await self._request(url, host, is_known=document is not None)
        remember(self._documents, url, document, _MAX_CACHED)
        return document.client

    async def _request(self, url: str, host: str, *, is_known: bool) -> _Document:
        is_busy = self._running >= _MAX_CONCURRENT and not is_known
        if is_busy or await self._rates.take(url if is_known else host):
            raise DocumentError("Too many descriptions of applications are being requested. Try again in a minute.")
        self._running += 1
        try:
            tls = self._tls_context()
            async with asyncio.timeout(_SECONDS):
                return await self._document(url, host, tls)
        except DocumentError as error:
            self._failed(url, str(error))
            raise
        except TimeoutError:
            reason = "The host of the description does not answer in time."
            self._failed(url, reason)
            raise DocumentError(reason) from None
        finally:
            self._running -= 1

    def _failed(self, url: str, reason: str) -> None:
        failure = _Failure(self._clock() + _MIN_LIFETIME, reason)
        remember(self._failures, url, failure, _MAX_CACHED)

    def _tls_context(self) -> SSLContext:
        """Return the TLS settings. They are slow to load, which must not count as time of the first host."""
        import httpx2  # noqa: PLC0415 - slow to load, and needed with the first such client

        if self._tls is None:
            self._tls = httpx2.create_ssl_context()
        return self._tls

    async def _document(self, url: str, host: str, tls: SSLContext) -> _Document:
        try:
            addresses = await self._resolve(host)
        except OSError:
            addresses = []
        if not addresses:
            raise DocumentError("The host of the description has no address.")
        if not all(map(self._is_allowed, addresses)):
            raise DocumentError("The host of the description is not public.")
        body, lifetime = await self._get(url, host, addresses[0], tls)
        return _Document(self._clock() + lifetime, _client_in(body, url, host))

    async def _get(self, url: str, host: str, address: str, tls: SSLContext) -> tuple[bytes, float]:
        """Return the body and the seconds for which it may be kept."""
        import httpx2  # noqa: PLC0415 - as above

        literal = f"[{address}]" if ":" in address else address
        target = f"https://{literal}:{self._port}{urlsplit(url).path}"
        headers = {"host": host, "accept": "application/json", "accept-encoding": "identity"}
        body = bytearray()
        try:
            async with (
                httpx2.AsyncClient(verify=tls, headers=headers, timeout=None, trust_env=False) as client,
                client.stream("GET", target, follow_redirects=False, extensions={"sni_hostname": host}) as response,
            ):
                _check_head(response.status_code, response.headers)
                async for part in response.aiter_raw():
                    body += part
                    if len(body) > _MAX_DOCUMENT:
                        raise DocumentError(f"The description of the application has more than {_MAX_DOCUMENT} bytes.")
        except (httpx2.HTTPError, OSError) as error:
            raise DocumentError("The host of the description can't be reached.") from error
        return bytes(body), _lifetime(response.headers.get("cache-control", ""))


def is_document_url(client_id: str) -> bool:
    """Return whether a client id is meant to be the URL of a document."""
    return client_id.startswith(("https:", "http:"))


def host_of(url: str) -> str:
    """Return the host of a document; raise DocumentError if its URL is not one that a client may have."""
    match = _URL.fullmatch(url) if len(url) <= MAX_URL else None
    if match is None or "." not in match[1] or not is_host(match[1]) or _is_address(match[1]):
        raise DocumentError("The id of the application is not an https URL with a host name and a path.")
    segments = unquote(match[2]).split("/")
    if "." in segments or ".." in segments or "\\" in unquote(match[2]):
        raise DocumentError("The id of the application has the segments . or .. in its path.")
    return match[1]


def is_public(address: str) -> bool:
    """Return whether everybody on the internet reaches the same machine at an address."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return False
    if parsed.version == 6 and (parsed not in _GLOBAL or "%" in address):  # noqa: PLR2004 - the name of the protocol
        return False
    return not any(parsed in block for block in _NOT_PUBLIC)


def _is_address(host: str) -> bool:
    """Return whether a host is an IPv4 address in a spelling that a system may understand, such as 127.1 or 0x7f.1."""
    return host.rpartition(".")[2].isdigit() or host.rpartition(".")[2].startswith("0x")


async def _addresses_of(host: str) -> list[str]:
    loop = asyncio.get_running_loop()
    entries = await loop.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in entries))


def _check_head(status: int, headers: Any) -> None:
    if status != _OK:
        raise DocumentError(f"The host of the description answers with the status {status}.")
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json" and not (kind.startswith("application/") and kind.endswith("+json")):
        raise DocumentError("The description of the application is not of the type application/json.")
    if headers.get("content-encoding", "identity").strip().lower() != "identity":
        raise DocumentError("The description of the application is compressed.")


def _lifetime(cache_control: str) -> float:
    directives = cache_control.lower()
    if "no-store" in directives or "no-cache" in directives:
        return _MIN_LIFETIME
    match = _MAX_AGE.search(directives)
    return _LIFETIME if match is None else min(max(float(match[1]), _MIN_LIFETIME), _MAX_LIFETIME)


def _client_in(body: bytes, url: str, host: str) -> OAuthClient:
    try:
        document = decode(body)
    except ValueError:
        document = None
    if not isinstance(document, dict):
        raise DocumentError("The description of the application is not a JSON object.")
    if document.get("client_id") != url:
        raise DocumentError("The description is that of another application: its client_id is not its URL.")
    if "client_secret" in document:
        raise DocumentError("The description of the application contains a secret.")
    try:
        uris = checked_uris(document.get("redirect_uris"), application_type=document.get("application_type"))
        grant_types = texts_in(document, "grant_types", DEFAULT_GRANT_TYPES)
        has_key = says_it_has_key(document)
    except (RedirectURIError, ClientMetadataError) as error:
        raise DocumentError(str(error)) from error
    if "authorization_code" not in grant_types:
        raise DocumentError("The application does not use the grant type authorization_code.")
    name = display_name(document.get("client_name"))
    return OAuthClient(url, name, uris, refreshes="refresh_token" in grant_types, host=host, has_key=has_key)
