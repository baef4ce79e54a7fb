"""What an operator may choose about HTTP."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


HOSTS_VARIABLE = "FUNCMCP_ALLOWED_HOSTS"
"""The environment variable with more allowed hosts, separated by commas: a server's name is a matter of where it runs.
``funcmcp run --allowed-host`` sets it, so that worker processes have it, too."""


PORT_VARIABLE = "FUNCTIONS_CUSTOMHANDLER_PORT"
"""The environment variable with the port on which the Azure Functions host expects a server that it has started."""

_CONTAINER_APP = ("CONTAINER_APP_NAME", "CONTAINER_APP_ENV_DNS_SUFFIX")
_PLATFORM_VARIABLES = ("WEBSITE_HOSTNAME", "CONTAINER_APP_HOSTNAME")
"""In which Azure tells an app the name by which it can be reached."""


def hosts_of_environment() -> list[str]:
    """Return the hosts that whoever started the process allows."""
    return [host for host in map(str.strip, os.environ.get(HOSTS_VARIABLE, "").split(",")) if host]


def hosts_of_platform() -> list[str]:
    """Return the names that Azure gave the app, so that it answers on them at once."""
    names = [os.environ.get(variable, "") for variable in _PLATFORM_VARIABLES]
    if all(os.environ.get(variable) for variable in _CONTAINER_APP):
        names.append(".".join(os.environ[variable] for variable in _CONTAINER_APP))
    return [name for name in names if name]


@dataclass(frozen=True, slots=True)
class HTTPOptions:
    """What is allowed over HTTP, and what stands before the server.

    Attributes:
        allowed_hosts: names, with or without a port, that the Host header may have beside the loopback names
            of a server on a loopback address. ``"*"`` allows every one; an empty list none more. Those of the
            environment variable ``FUNCMCP_ALLOWED_HOSTS`` come on top, and on Azure the app's name there.
        allowed_origins: origins such as ``"https://app.example.com"`` that browsers may call from beside the
            server's own and loopback ones. ``"*"`` allows every one; an empty list none more.
        require_origin: refuse requests without an Origin header, which programs do not send.
        proxies: how many proxies of yours every request passes, each of which adds the address that it saw to
            ``X-Forwarded-For``. The caller's address is that many from the end of it then; with 0 it is the peer's.

    Raises:
        ValueError: `proxies` is negative, or a host or an origin is not written as one.
        TypeError: `allowed_hosts` or `allowed_origins` is one string.
    """

    allowed_hosts: Sequence[str] = ()
    allowed_origins: Sequence[str] = ()
    require_origin: bool = False
    proxies: int = 0

    def __post_init__(self) -> None:
        for name in ("allowed_hosts", "allowed_origins"):
            value = getattr(self, name)
            if isinstance(value, str):
                raise TypeError(f"HTTPOptions.{name} must be a list of strings. Write [{value!r}].")
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
        if self.proxies < 0:
            raise ValueError(f"HTTPOptions.proxies must be 0 or more; got {self.proxies}.")
