"""Connections to the master that Sentinel or a Redis Cluster names.

How it works: a connection asks for the address each time that it connects. If the server at that address has become a
replica, or the keys have moved to another node, the connection breaks and the client library sends the command again,
over a connection to the next address. All keys of a link are in one slot, so a cluster is one master, too.

URLs are those of other libraries:

    redis+sentinel://[USER:PASSWORD@]HOST[:26379][,HOST...]/SERVICE[/DATABASE]    sentinel_username, sentinel_password
    redis+cluster://[USER:PASSWORD@]HOST[:6379][,HOST...]

``rediss+`` means TLS. Other parameters after ``?`` are options of redis-py.
"""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from redis.asyncio import Redis
from redis.asyncio.connection import Connection, SSLConnection, parse_url
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import MovedError, ReadOnlyError, RedisError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from typing import TypeAlias

    Address: TypeAlias = tuple[str, int]

_SCHEME = re.compile(r"(?P<plain>rediss?)\+(?P<kind>sentinel|cluster)")
_LOCATION = re.compile(r"(?P<user>[^/?]*@)?(?P<hosts>[^/?@]*)(?P<path>/[^?]*)?(?P<query>\?.*)?")
_SENTINEL_PATH = re.compile(r"/(?P<service>[^/]+)(?P<database>/[0-9]+)?")

_SENTINEL_PORT = 26379
_CLUSTER_PORT = 6379
_LOGIN = ("username", "password")


def is_cluster(url: str) -> bool:
    """Return whether a URL is that of a Redis Cluster."""
    return _kind_of(url) == "cluster"


def pool_options(url: str, *, prefix: str, timeout: float) -> dict[str, Any]:
    """Return the options of a pool of connections to the Redis of a URL.

    Args:
        url: The URL.
        prefix: The beginning of all keys.
        timeout: Seconds that a search for the master may take.

    Raises:
        ValueError: The URL is not valid.
    """
    kind = _kind_of(url)
    if kind is None:
        return dict(parse_url(url))
    scheme, _, location = url.partition("://")
    parts = _LOCATION.fullmatch(location)
    if parts is None or not parts["hosts"]:
        raise ValueError(f"The URL of Redis needs at least one host: {scheme}://host:port,host:port")
    if kind == "sentinel":
        service, database = _service_in(parts["path"] or "")
        ask, port = _master_by_sentinel(service), _SENTINEL_PORT
    else:
        database = _no_database(parts["path"] or "")
        ask, port = _master_by_node(prefix), _CLUSTER_PORT
    plain = scheme.lower().partition("+")[0]
    options: dict[str, Any] = dict(
        parse_url(f"{plain}://{parts['user'] or ''}localhost{database}{parts['query'] or ''}")
    )
    del options["host"]
    secure = options.pop("connection_class", None) is not None
    sentinel_login = {name: options.pop(f"sentinel_{name}", None) for name in _LOGIN}
    login = sentinel_login if kind == "sentinel" else {name: options.get(name) for name in _LOGIN}
    secrets = {name: value for name, value in options.items() if name.startswith("ssl_")}
    search = _Search(_addresses(parts["hosts"], port), ask, {**secrets, **login, "ssl": secure}, timeout)
    return {**options, "find": search.find, "connection_class": _FoundTLSConnection if secure else _FoundConnection}


class _Search:
    """Asks one server after the other for the address of the master.

    Args:
        servers: Their addresses.
        ask: Returns the address that a server names; None if it knows none.
        options: Of the connections to them.
        timeout: Seconds for all of them.
    """

    def __init__(
        self,
        servers: Sequence[Address],
        ask: Callable[[Redis, Address], Awaitable[Address | None]],
        options: Mapping[str, Any],
        timeout: float,
    ) -> None:
        self._servers = list(servers)
        self._ask = ask
        self._options = options
        self._seconds = timeout / (len(self._servers) + 1)

    async def find(self) -> Address:
        """Return the address of the master; raise ConnectionError of the client library if no server names it."""
        for server in [*self._servers]:
            try:
                async with asyncio.timeout(self._seconds), self._client(server) as redis:
                    master = await self._ask(redis, server)
            except (RedisError, OSError, TimeoutError):
                master = None
            if master is not None:
                return master
            self._servers.remove(server)  # asked last from now on
            self._servers.append(server)
        raise RedisConnectionError("No server knows the master")

    def _client(self, server: Address) -> Redis:
        host, port = server
        return Redis(host=host, port=port, protocol=2, single_connection_client=True, **self._options)


class _Found:
    """A connection that asks for its address.

    Args:
        find: Returns the address.
        options: Of the client library.
    """

    def __init__(self, *, find: Callable[[], Awaitable[Address]], **options: Any) -> None:
        super().__init__(**options)
        self._find = find

    async def _connect(self) -> None:
        """Connect to the master of now. The client library calls this abstract method of its class."""
        self.host, self.port = await self._find()
        await super()._connect()  # type: ignore[misc]

    async def read_response(self, *args: Any, **options: Any) -> Any:
        """Return a reply. One that says that the master has changed breaks the connection."""
        try:
            return await super().read_response(*args, **options)  # type: ignore[misc]
        except (MovedError, ReadOnlyError) as error:
            await self.disconnect()  # type: ignore[attr-defined]
            raise RedisConnectionError("The master of Redis has changed") from error


class _FoundConnection(_Found, Connection):
    """Without TLS."""


class _FoundTLSConnection(_Found, SSLConnection):
    """With TLS."""


def _kind_of(url: str) -> str | None:
    """Return ``sentinel`` or ``cluster``; None for the URL of one server."""
    match = _SCHEME.fullmatch(url.partition("://")[0].lower())
    return None if match is None else match["kind"]


def _service_in(path: str) -> tuple[str, str]:
    """Return the name of the service in the path of a URL, and the path of its database."""
    match = _SENTINEL_PATH.fullmatch(path)
    if match is None:
        raise ValueError("A URL of Sentinel ends with the name of the service: redis+sentinel://host:port/mymaster/0")
    return match["service"], match["database"] or ""


def _no_database(path: str) -> str:
    """Return the path of a database, of which a cluster has none."""
    if path not in {"", "/", "/0"}:
        raise ValueError(f"A Redis Cluster has no databases. Remove {path!r} from the URL.")
    return ""


def _addresses(hosts: str, port: int) -> list[Address]:
    """Return the addresses in the host part of a URL."""
    servers = [urlsplit(f"//{host}") for host in hosts.split(",")]
    return [(server.hostname or "localhost", server.port or port) for server in servers]


def _master_by_sentinel(service: str) -> Callable[[Redis, Address], Awaitable[Address | None]]:
    async def ask(redis: Redis, _: Address) -> Address | None:
        master: Any = await redis.sentinel_get_master_addr_by_name(service)
        return None if master is None else (master[0].decode(), master[1])

    return ask


def _master_by_node(prefix: str) -> Callable[[Redis, Address], Awaitable[Address | None]]:
    async def ask(redis: Redis, node: Address) -> Address:
        """Ask for a key: a node that does not have its slot names the one that has it."""
        try:
            await redis.exists(f"{prefix}:")
        except MovedError as moved:
            return moved.host or node[0], moved.port
        return node

    return ask
