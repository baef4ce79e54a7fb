"""The address that a server listens on: from options, from environment variables, or the default.

How it works: an option decides first, then `FUNCMCP_HOST` and `FUNCMCP_PORT`, then the port that a platform has chosen.
`PORT` never decides the host: it is also set on machines of developers, where a server must not be open to others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

HOST_VARIABLE: Final = "FUNCMCP_HOST"
"""The environment variable with the address to listen on."""

PORT_VARIABLE: Final = "FUNCMCP_PORT"
"""The environment variable with the port to listen on."""

PLATFORM_PORT_VARIABLE: Final = "PORT"
"""The environment variable in which platforms such as Cloud Run and Heroku pass a program its port."""

CUSTOM_HANDLER_PORT_VARIABLE: Final = "FUNCTIONS_CUSTOMHANDLER_PORT"
"""The environment variable in which the Azure Functions host passes a custom handler its port."""

PORT_VARIABLES: Final = (PORT_VARIABLE, CUSTOM_HANDLER_PORT_VARIABLE, PLATFORM_PORT_VARIABLE)
"""The variables with the port of an MCP server. The first one that is set decides."""

DEFAULT_HOST: Final = "127.0.0.1"
DEFAULT_PORT: Final = 8000
MAX_PORT: Final = 65_535

ONLY_THIS_MACHINE: Final = (
    "Only this machine reaches it. On a platform that sets PORT, set FUNCMCP_HOST=0.0.0.0 as well."
)
"""The line at the start of a server whose address `is_only_platform_port`."""


class ListenAddress(NamedTuple):
    """The address that a server listens on.

    Attributes:
        host: A name or an address.
        port: The port; 0 for a free one.
        host_variable: The environment variable that has decided the host; "" for an option or the default.
        port_variable: The same for the port.
    """

    host: str
    port: int
    host_variable: str = ""
    port_variable: str = ""

    @property
    def origin_note(self) -> str:
        """The variables that have decided, such as "port from PORT", for the line at the start; "" if none has."""
        parts = (("host", self.host_variable), ("port", self.port_variable))
        return " and ".join(f"{part} from {variable}" for part, variable in parts if variable)

    @property
    def is_only_platform_port(self) -> bool:
        """Whether a platform has chosen the port, and nothing has chosen the host."""
        return self.port_variable == PLATFORM_PORT_VARIABLE and self.host == DEFAULT_HOST and not self.host_variable


def listen_address(host: str | None, port: int | None, environment: Mapping[str, str]) -> ListenAddress:
    """Return the address to listen on; raise ValueError for a port in the environment that is not one.

    Args:
        host: The host of an option; None without one.
        port: The port of an option; None without one.
        environment: The environment variables.
    """
    host_variable = port_variable = ""
    if host is None:
        host = environment.get(HOST_VARIABLE, "").strip()
        host_variable = HOST_VARIABLE if host else ""
    if port is None:
        port, port_variable = port_of_environment(environment, PORT_VARIABLES) or (DEFAULT_PORT, "")
    return ListenAddress(host or DEFAULT_HOST, port, host_variable, port_variable)


def port_of_environment(environment: Mapping[str, str], variables: Sequence[str]) -> tuple[int, str] | None:
    """Return the port in the first variable that is set, and its name; None if none is.

    Raises:
        ValueError: The value is not a port.
    """
    for variable in variables:
        text = environment.get(variable, "").strip()
        if text:
            if not text.isascii() or not text.isdecimal() or int(text[:9]) > MAX_PORT:
                raise ValueError(f"{variable} must be a port, a number from 0 to {MAX_PORT}; got {text[:100]!r}.")
            return int(text), variable
    return None
