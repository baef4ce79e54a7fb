"""Options of the HTTP endpoints, and the environment variables that add to them."""

from __future__ import annotations

import os
import re
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING

from funcmcp._objects.definitions import definition, options_by_name
from funcmcp._objects.public_names import public
from funcmcp._protocol.server_card import is_card_name, is_remote_url
from funcmcp._server.drain import whole_seconds

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from funcmcp._state.rates import Rates
    from funcmcp._state.uploads import Uploads

HOSTS_VARIABLE = "FUNCMCP_ALLOWED_HOSTS"
"""The environment variable that adds to `HTTPOptions.allowed_hosts`, separated by commas. ``funcmcp run
--allowed-host`` sets it, so that worker processes inherit it."""

PAGE_VARIABLE = "FUNCMCP_PAGE"
"""The environment variable that overrides `HTTPOptions.page` with ``on`` or ``off``. ``funcmcp run --page`` and
``--no-page`` set it, so that worker processes inherit it."""

HEALTH_VARIABLE = "FUNCMCP_HEALTH"
"""The environment variable that overrides `HTTPOptions.health` with ``on`` or ``off``. ``funcmcp run --no-health`` sets
it, so that worker processes inherit it."""

KEEP_ALIVE_VARIABLE = "FUNCMCP_KEEP_ALIVE_SECONDS"
"""The environment variable with the seconds for which an idle connection remains open. ``funcmcp run --keep-alive``
sets it, so that worker processes inherit it."""

ROOT_PATH_VARIABLE = "FUNCMCP_ROOT_PATH"
"""The environment variable with the path at which a proxy serves the server and which it removes. ``funcmcp run
--root-path`` sets it, so that worker processes inherit it."""

PROXIES_VARIABLE = "FUNCMCP_PROXIES"
"""The environment variable that overrides `HTTPOptions.proxies`. ``funcmcp run --proxies`` sets it, so that worker
processes inherit it."""

PLAIN_PATH = re.compile(r"(?!.*//)/[A-Za-z0-9._~!$&'()*+,;=:@/-]*[A-Za-z0-9._~!$&'()*+,;=:@-]")
"""A path without percent-encoding, empty segments and a slash at its end."""

_KEEP_ALIVE_SECONDS = 95
"""Longer than most proxies and clients keep an idle connection to a server: nginx, AWS's load balancers and .NET 60
seconds, programs in Go, such as Traefik and cloudflared, 90."""

_CONTAINER_APP = ("CONTAINER_APP_NAME", "CONTAINER_APP_ENV_DNS_SUFFIX")
_PLATFORM_VARIABLES = (
    "WEBSITE_HOSTNAME",  # Azure Functions and App Service
    "CONTAINER_APP_HOSTNAME",  # Azure Container Apps
    "HEROKU_APP_DEFAULT_DOMAIN_NAME",
    "RAILWAY_PUBLIC_DOMAIN",
    "RENDER_EXTERNAL_HOSTNAME",
)
"""Environment variables in which platforms pass an app its public host name."""

_MAX_PROXIES_DIGITS = 3
_SWITCH_VALUES = {"": None, "on": True, "off": False}


def hosts_of_environment() -> list[str]:
    """Return the hosts in `FUNCMCP_ALLOWED_HOSTS`."""
    return [host for host in map(str.strip, os.environ.get(HOSTS_VARIABLE, "").split(",")) if host]


def root_path_of_environment() -> str:
    """Return the path at which a proxy serves the server, in `FUNCMCP_ROOT_PATH`; empty if it is not set.

    Raises:
        ValueError: The variable has something else.
    """
    path = os.environ.get(ROOT_PATH_VARIABLE, "").strip().rstrip("/")
    if path and not PLAIN_PATH.fullmatch(path):
        raise ValueError(f"--root-path or {ROOT_PATH_VARIABLE} must be a path such as /shop; got {path!r}.")
    return path


def proxies_of_environment() -> int | None:
    """Return the number of proxies in front of the server, in `FUNCMCP_PROXIES`; None if it is not set.

    Raises:
        ValueError: The variable has something else.
    """
    text = os.environ.get(PROXIES_VARIABLE, "").strip()
    if not text:
        return None
    if not text.isascii() or not text.isdecimal() or len(text) > _MAX_PROXIES_DIGITS:
        raise ValueError(f"--proxies or {PROXIES_VARIABLE} must be a number of proxies, such as 1; got {text!r}.")
    return int(text)


def keep_alive_seconds() -> int:
    """Return the seconds for which an idle connection remains open; raise ValueError for an invalid variable."""
    return whole_seconds(KEEP_ALIVE_VARIABLE, _KEEP_ALIVE_SECONDS)


def page_of_environment() -> bool | None:
    """Return whether `FUNCMCP_PAGE` switches the page on or off; None if it is not set.

    Raises:
        ValueError: The variable has another value.
    """
    return _switch_of_environment(PAGE_VARIABLE)


def health_of_environment() -> bool | None:
    """Return whether `FUNCMCP_HEALTH` switches the health endpoints on or off; None if it is not set.

    Raises:
        ValueError: The variable has another value.
    """
    return _switch_of_environment(HEALTH_VARIABLE)


def _switch_of_environment(variable: str) -> bool | None:
    text = os.environ.get(variable, "").strip().lower()
    if text not in _SWITCH_VALUES:
        raise ValueError(f"{variable} must be 'on' or 'off'; got {text!r}.")
    return _SWITCH_VALUES[text]


def hosts_of_platform() -> list[str]:
    """Return the public host names that the platform gave the app."""
    names = [os.environ.get(variable, "") for variable in _PLATFORM_VARIABLES]
    if os.environ.get("FLY_APP_NAME"):
        names.append(f"{os.environ['FLY_APP_NAME']}.fly.dev")
    if all(os.environ.get(variable) for variable in _CONTAINER_APP):
        names.append(".".join(os.environ[variable] for variable in _CONTAINER_APP))
    return [name for name in names if name]


@public("funcmcp.http")
@definition
class ServerCard:
    """A document that says what a server is and where it is, at ``/server-card`` below the path of its endpoint.

    Its title, version, description, icons and website are those of `MCPServer` and `ServerInfo`.

    Attributes:
        name: The name of the server for catalogues, in reverse DNS, such as ``"com.example/orders"``.
        url: The URL of the endpoint as clients reach it. By default it is that of `auth`, or else that of the request.

    Raises:
        ValueError: `name` or `url` is invalid.
    """

    name: str
    url: str | None = None

    def __post_init__(self) -> None:
        if not is_card_name(self.name):
            raise ValueError(
                f"ServerCard.name must be a domain in reverse order, a slash and a name, such as 'com.example/orders'; "
                f"got {self.name!r:.60}."
            )
        if self.url is not None and not is_remote_url(self.url):
            raise ValueError(
                f"ServerCard.url must be an absolute URL, such as 'https://example.com/mcp'; got {self.url!r:.60}."
            )


@public("funcmcp")
@options_by_name
class HTTPOptions:
    """Options of the HTTP endpoints: their paths, whom they answer, and the proxies in front of them.

    Attributes:
        path: The path of the Streamable HTTP endpoint.
        sse: The path of an endpoint for HTTP+SSE (2024-11-05), such as ``"/sse"``. None opens no such endpoint.
        websocket: The path of an endpoint for WebSocket, such as ``"/ws"``. None opens no such endpoint. It needs
            ``pip install "funcmcp[websocket]"``.
        allowed_hosts: Names, with or without a port, that the Host header may have. A server on a loopback address
            also accepts loopback names, and on Azure, Fly.io, Heroku, Railway and Render the app's own name. With
            `auth`, it accepts the host in the URL of its `OAuthProxy` or `ProtectedResource`. ``"*"`` accepts every
            name. The environment variable ``FUNCMCP_ALLOWED_HOSTS`` adds names, separated by commas.
        allowed_origins: Origins, such as ``"https://app.example.com"``, whose pages may call the server. The server's
            own origin and loopback origins are always allowed. ``"*"`` allows every origin.
        require_origin: Reject requests without an Origin header with 403. Clients that are not browsers send none.
        proxies: Number of your proxies that every request passes, each of which appends the address of its peer to
            ``X-Forwarded-For``. The caller's address is the one that the outermost of them appended. With 0 it is the
            address of the connection. The environment variable ``FUNCMCP_PROXIES`` overrides it.
        rates: Limits how many requests a caller may send in a time, such as `funcmcp.state.MemoryRates`. None sets no
            limit.
        require_session: Reject requests of the handshake era that name no session, if the server has sessions. False
            serves them, as clients of Azure's MCP extension send them. Such a request is independent of all others: it
            can't be cancelled, and its client can't be asked anything. One without ``MCP-Protocol-Version`` is answered
            in revision 2025-06-18, as by the extension.
        page: Whether the endpoint answers browsers with a page that shows and calls the server's features. None
            answers those that connect to a loopback address under a loopback name. The environment variable
            ``FUNCMCP_PAGE`` (``on`` or ``off``) overrides it. See docs/guides/page.md.
        uploads: The place for files of callers, as `funcmcp.http.Uploads`, below the path of the endpoint. None: there
            is no such place. See docs/guides/files.md.
        server_card: The card of the server, as `funcmcp.http.ServerCard`, which every caller may read. None serves no
            card. The format is experimental. See docs/guides/server-cards.md.

    Raises:
        ValueError: A path does not begin with a slash, `proxies` is negative, or a host or an origin is malformed.
        TypeError: `allowed_hosts` or `allowed_origins` is one string, `proxies` is not an integer, `page` or `health`
            is not a boolean, `ready` is not a list of async functions, or `uploads` or `server_card` has another type.
    """

    path: str = "/mcp"
    sse: str | None = None
    websocket: str | None = None
    allowed_hosts: Sequence[str] = ()
    allowed_origins: Sequence[str] = ()
    require_origin: bool = False
    proxies: int = 0
    rates: Rates | None = None
    require_session: bool = True
    page: bool | None = None
    health: bool = True
    ready: Sequence[Callable[[], Awaitable[object]]] = ()
    uploads: Uploads | None = None
    server_card: ServerCard | None = None

    def __post_init__(self) -> None:
        self._check_paths()
        for name in ("allowed_hosts", "allowed_origins"):
            value = getattr(self, name)
            if isinstance(value, str):
                raise TypeError(f"HTTPOptions.{name} must be a list of strings. Write [{value!r}].")
            if not isinstance(value, list | tuple | set | frozenset) or not all(isinstance(v, str) for v in value):
                raise TypeError(f"HTTPOptions.{name} must be a list of strings; got {value!r:.60}.")
        for host in self.allowed_hosts:
            if "/" in host:
                raise ValueError(
                    f"HTTPOptions.allowed_hosts has {host!r}, which is not a host. Write 'example.com' or "
                    "'example.com:8443', without a scheme or a path."
                )
        for origin in self.allowed_origins:
            if origin not in {"*", "null"} and "://" not in origin:
                raise ValueError(
                    f"HTTPOptions.allowed_origins has {origin!r}, which is not an origin. Write 'https://example.com'."
                )
        self._check_numbers_and_switches()

    def _check_numbers_and_switches(self) -> None:
        if type(self.proxies) is not int:
            raise TypeError(f"HTTPOptions.proxies must be an integer, 0 or more; got {self.proxies!r}.")
        if self.proxies < 0:
            raise ValueError(f"HTTPOptions.proxies must be 0 or more; got {self.proxies}.")
        if self.page is not None and type(self.page) is not bool:
            raise TypeError(f"HTTPOptions.page must be True, False or None; got {self.page!r}.")
        if type(self.health) is not bool:
            raise TypeError(f"HTTPOptions.health must be True or False; got {self.health!r}.")
        if self.uploads is not None and not hasattr(self.uploads, "file_bytes"):
            raise TypeError(f"HTTPOptions.uploads must be funcmcp.http.Uploads(...); got {self.uploads!r:.40}.")
        if self.server_card is not None and not isinstance(self.server_card, ServerCard):
            raise TypeError(
                "HTTPOptions.server_card must be funcmcp.http.ServerCard('com.example/orders'); "
                f"got {self.server_card!r:.40}."
            )
        if not isinstance(self.ready, list | tuple) or not all(map(iscoroutinefunction, self.ready)):
            raise TypeError(
                f"HTTPOptions.ready must be a list of async functions without arguments; got {self.ready!r:.80}."
            )

    def _check_paths(self) -> None:
        option_of: dict[str, str] = {}  # by path
        for name in ("path", "sse", "websocket"):
            path = getattr(self, name)
            if path is None and name != "path":
                continue
            if not isinstance(path, str) or not path.startswith("/"):
                raise ValueError(f"HTTPOptions.{name} must begin with a slash, such as '/mcp'; got {path!r}.")
            if path in option_of:
                raise ValueError(f"HTTPOptions.{option_of[path]} and {name} must differ; both are {path!r}.")
            option_of[path] = name
