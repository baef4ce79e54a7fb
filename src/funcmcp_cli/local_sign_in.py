"""The option ``--sign-in-as`` of ``funcmcp run``: the user, and where the option is refused.

How it works: a server whose users sign in without their identity provider may only be reached by programs on the
developer's machine. So it listens on a loopback address, in one process, with no proxy in front, and on no platform.
It refuses requests that come from elsewhere all the same; see `funcmcp._transports.http.admission.this_machine`.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from funcmcp._protocol.codec import decode
from funcmcp._protocol.loopback import is_loopback
from funcmcp._serving.composition import runtime_of
from funcmcp._serving.local_sign_in import check_environment, local_user, sign_in_locally
from funcmcp._text.files import read_bytes
from funcmcp._transports.http.options import PROXIES_VARIABLE, ROOT_PATH_VARIABLE
from funcmcp_cli.failure import Failure

if TYPE_CHECKING:
    from collections.abc import Mapping

    from funcmcp import MCPServer
    from funcmcp._transports.http.listen_address import ListenAddress
    from funcmcp_cli.served import Served
    from funcmcp_cli.server_options import RunOptions

_MAX_FILE = 256 * 1024
_LISTEN_VARIABLE = "LISTEN_FDS"
"""Set by systemd for a program that gets its listening sockets."""


@dataclass(frozen=True, slots=True)
class ServedForUser:
    """A server that clients sign in to as one user.

    Attributes:
        served: The server.
        claims: The claims of the user.
        origin: The scheme, the host and the port at which it is served.
    """

    served: Served
    claims: Mapping[str, Any]
    origin: str
    is_elsewhere: str = ""
    needs_one_process: str = ""

    @property
    def root(self) -> Path | None:
        """The folder from which the code is imported."""
        return self.served.root

    def load(self) -> MCPServer:
        """Return the server; raise Failure if it can't be imported, or can't be served so."""
        server = self.served.load()
        runtime = runtime_of(server)
        if runtime.http_options.proxies:
            raise Failure(
                f"--sign-in-as is for a server without a proxy in front. {server.name} has HTTPOptions(proxies=...)."
            )
        try:
            sign_in_locally(runtime, self.claims, self.origin)
        except ValueError as error:
            raise Failure(f"--sign-in-as: {error}") from error
        return server


def served_for_user(served: Served, options: RunOptions, address: ListenAddress) -> ServedForUser:
    """Return a server that clients sign in to as the user of an option.

    Raises:
        typer.BadParameter: Another option or the address would let others than the developer reach it.
        Failure: The claims can't be read or are not valid, or a platform runs this process.
    """
    if not is_loopback(address.host):
        by = f" ({address.host_variable})" if address.host_variable else ""
        raise typer.BadParameter(
            f"--sign-in-as is for this machine only, and other machines can reach {address.host}{by}. Use 127.0.0.1."
        )
    if not address.port:
        raise typer.BadParameter("--sign-in-as needs a port that is known before the start. Pass --port 8000.")
    if options.process_count > 1:
        raise typer.BadParameter("--sign-in-as works with one process only. Leave out --workers.")
    for variable in (PROXIES_VARIABLE, ROOT_PATH_VARIABLE, _LISTEN_VARIABLE):
        if os.environ.get(variable, "0") not in {"", "0"}:
            raise typer.BadParameter(
                f"--sign-in-as is for a server without a proxy in front, but {variable} (or its option) is set."
            )
    try:
        check_environment()
        claims = claims_of(options.sign_in_as or "")
        local_user(claims)
    except ValueError as error:
        raise Failure(f"--sign-in-as: {error}") from error
    host = f"[{address.host}]" if ":" in address.host else address.host
    return ServedForUser(served, claims, f"{'http' if options.tls_cert is None else 'https'}://{host}:{address.port}")


def claims_of(text: str) -> dict[str, Any]:
    """Return the claims of the user that an option names.

    Args:
        text: The id of the user, an e-mail address, or the path of a JSON file.

    Raises:
        ValueError: The text is empty, or the file is not a JSON object.
        Failure: The file can't be read.
    """
    if not text.strip():
        raise ValueError("Name a user, such as --sign-in-as ada.")
    if not text.endswith(".json"):
        return {"sub": text, "name": text} | ({"email": text} if "@" in text else {})
    try:
        claims = decode(read_bytes(Path(text), _MAX_FILE))
    except OSError as error:
        raise Failure(f"--sign-in-as: {text} can't be read: {error.strerror}.") from error
    except ValueError as error:
        raise ValueError(f"{text} is not JSON: {error}") from error
    if not isinstance(claims, dict):
        raise ValueError(  # noqa: TRY004 - a fault of the file
            f'{text} must have a JSON object, such as {{"sub": "ada", "roles": ["cook"]}}.'
        )
    return claims
