"""Servers that a client connects to, other than by an object in memory: a URL, or a command."""

from __future__ import annotations

from dataclasses import dataclass, field
from os import PathLike, fspath
from typing import IO, TYPE_CHECKING, Any

from funcmcp._objects.public_names import public
from funcmcp._text.visible import visible_url

if TYPE_CHECKING:
    import ssl
    from collections.abc import Awaitable, Callable, Mapping
    from pathlib import Path

    from funcmcp._client.credentials import ProgramSignIn
    from funcmcp._client.token_file import KeyringFile

MEBIBYTE = 1024 * 1024


@public("funcmcp.client")
@dataclass(frozen=True, slots=True, kw_only=True)
class SignIn:
    """How a user signs in at the authorization server of an endpoint: with a browser, when the server asks for it.

    The client finds the authorization server, and registers there unless it is registered already. The user returns to
    a port of this machine. The client renews the tokens, and asks for further scopes when a call needs them.

    Attributes:
        open_browser: Receives the address at which the user signs in, and opens it. It may be async. None: the browser
            of this machine opens it.
        file: A file for the tokens, which only its owner can read, or a `KeyringFile`, which is encrypted with a key in
            the keyring of the system. The next process then needs no sign-in. None: the tokens are kept in memory.
        scopes: The scopes to request. Empty: those that the server names.
        name: The name of the client, which users see when they sign in.
        client_id: The id of a client that is registered at the authorization server, with the redirect URI
            ``http://127.0.0.1:PORT/callback``. None: the client registers.
        client_secret: The secret of that client, if it has one.
        client_document: The https URL of a document that describes the client (CIMD). It is the client's id where the
            authorization server takes such documents.
        port: The port to which the user returns. 0: any free one.
        seconds: Seconds that the user has for the sign-in.
        dpop: Bind tokens to a key of this process (RFC 9449), so that nobody else can use a stolen token. The key is in
            memory only, so there can be no file.

    Raises:
        ValueError: There is a file for tokens that are bound to a key in memory.
    """

    open_browser: Callable[[str], Awaitable[object] | object] | None = None
    file: Path | KeyringFile | None = None
    scopes: tuple[str, ...] = ()
    name: str = "funcmcp"
    client_id: str | None = None
    client_secret: str | None = field(default=None, repr=False)
    client_document: str | None = None
    port: int = 0
    seconds: float = 300.0
    dpop: bool = False

    def __post_init__(self) -> None:
        if self.dpop and self.file is not None:
            raise ValueError(
                "SignIn(dpop=True) takes no file: its key is in memory, and another process has no use for tokens."
            )


@public("funcmcp.client")
@dataclass(frozen=True, slots=True, repr=False)
class HTTPEndpoint:
    """A Streamable HTTP endpoint, with limits for what the server may send.

    Attributes:
        url: The endpoint's URL, such as ``http://127.0.0.1:8000/mcp``.
        headers: Header fields of every request, such as ``{"authorization": "Bearer ..."}``.
        connect_seconds: Seconds until a connection has to be established.
        silence_seconds: Seconds until a response has to begin, and until each next part of it has to arrive.
        max_response_bytes: Bytes of one response.
        max_total_bytes: Bytes of all responses together. None for any number.
        sign_in: How the client gets tokens when the server asks for them: a user signs in (`SignIn`), or the client is
            a program (`ClientCredentials`, `WorkloadIdentity`, `EnterpriseSignIn`). None: requests have the
            credentials in *headers* only.
        ssl_context: The authorities that the client trusts, and its own certificate, for requests to the endpoint. The
            sign-in does not use it. None: the authorities that the system trusts, and no certificate.
        max_connections: Requests that may run at the same time, each on a connection of its own. Others wait. Streams
            of notifications, answers to the server, and requests during which the server has asked do not count.
        keep_alive_seconds: Seconds for which a connection without a request is kept for the next one. Most servers
            close it after 5 seconds or more.
        public_only: Whether connections to addresses that are not public are refused: loopback, private networks,
            link-local and others. It is for URLs that come from data, and not for `sign_in`. The addresses are checked
            before each connection, also after a redirection, and the connection is made to the address that was
            checked.
        retry_seconds: Seconds for which a request is sent again that the server answers with 503 or 429, because it
            starts and has not begun the request. A request that only reads is also sent again after 502 and 504. 0:
            no request is sent again. Pass it if these statuses mean that of the server, as on Azure Functions.
    """

    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    connect_seconds: float = 10.0
    silence_seconds: float = 300.0
    max_response_bytes: int = 64 * MEBIBYTE
    max_total_bytes: int | None = None
    sign_in: SignIn | ProgramSignIn | None = None
    ssl_context: ssl.SSLContext | None = None
    max_connections: int = 100
    keep_alive_seconds: float = 4.0
    public_only: bool = False
    retry_seconds: float = 0.0

    def __repr__(self) -> str:
        return f"HTTPEndpoint({visible_url(self.url)!r})"


@public("funcmcp.client")
class StdioCommand:
    """A command that starts a server on stdin and stdout: ``StdioCommand("python", "server.py")``.

    The process receives only the environment variables that most programs need, such as PATH and HOME, and those in
    *env*: a server of somebody else does not see this process's secrets.

    Args:
        command: The program and its arguments. No shell reads them.
        env: Environment variables of the process, beside the default ones.
        cwd: The folder that the process starts in. None for this process's folder.
        start_seconds: Seconds until the process has to answer ``initialize``. A command such as ``uvx`` may have to
            install the server first.
        stop_seconds: Seconds that the process may take to end after the client has closed its stdin. After that the
            client terminates the process and, on POSIX, the processes that it has started in its group.
        stderr: A file, or the number of an open file, for the process's stderr. None for this process's stderr.

    Raises:
        TypeError: The program, an argument, or a variable of *env* is not a string.
        ValueError: The command is empty, or a number of seconds is not positive.
    """

    def __init__(
        self,
        *command: str | PathLike[str],
        env: Mapping[str, str] | None = None,
        cwd: str | Path | None = None,
        start_seconds: float = 60.0,
        stop_seconds: float = 5.0,
        stderr: IO[Any] | int | None = None,
    ) -> None:
        if not command:
            raise ValueError('StdioCommand needs a program, such as StdioCommand("python", "server.py").')
        for name, seconds in (("start_seconds", start_seconds), ("stop_seconds", stop_seconds)):
            if not seconds > 0:
                raise ValueError(f"StdioCommand.{name} must be positive; got {seconds!r}.")
        self.command: tuple[str, ...] = tuple(map(_part, command))
        self.env: dict[str, str] = dict(env or {})
        for name, value in self.env.items():
            _check_variable(name, value)
        self.cwd = cwd
        self.start_seconds = start_seconds
        self.stop_seconds = stop_seconds
        self.stderr = stderr

    def __repr__(self) -> str:
        return f"StdioCommand({', '.join(map(repr, self.command))})"


def _check_variable(name: str, value: Any) -> None:
    """Raise TypeError if a process can't have a value as a variable of its environment."""
    if not isinstance(value, str):
        kind = type(value).__name__
        raise TypeError(f"StdioCommand.env[{name!r}] must be a string; got {kind}. Write it in quotes.")


def _part(part: Any) -> str:
    """Return the program or an argument as the process gets it."""
    text = fspath(part) if isinstance(part, PathLike) else part
    if not isinstance(text, str):
        example = 'StdioCommand("python", "server.py", "--port", "8000")'
        raise TypeError(f"StdioCommand takes strings, one for each argument: {example}. Got {part!r}.")
    return text
