"""The options of ``funcmcp run``, ``funcmcp front``, ``funcmcp host`` and ``funcmcp worker``.

How it works: each command has a table, a dataclass in which each field is an option, in the order of ``--help``. All
that the command line needs of an option are the arguments of `option`. `with_options` gives a command a parameter for
each field, which typer reads.
"""

from __future__ import annotations

import inspect
import os
from dataclasses import field, fields, is_dataclass
from enum import Enum
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar, get_type_hints

import typer

from funcmcp._objects.definitions import options_by_name
from funcmcp._server.drain import DEFAULT_SECONDS, drain_seconds
from funcmcp._server.drain import VARIABLE as DRAIN_VARIABLE
from funcmcp._server.log_output import VARIABLE as LOG_FORMAT_VARIABLE
from funcmcp._server.log_output import is_json
from funcmcp._serving.environment import TASK_QUEUES_VARIABLE
from funcmcp._transports.http.options import (
    HEALTH_VARIABLE,
    KEEP_ALIVE_VARIABLE,
    PAGE_VARIABLE,
    PROXIES_VARIABLE,
    ROOT_PATH_VARIABLE,
)
from funcmcp_cli.failure import Failure

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

T = TypeVar("T")


class Conflict(Enum):
    """An option that other options can't be combined with, and why."""

    STDIO = "--stdio serves one client in one process"
    UDS = "--uds listens on a Unix socket, for HTTP"
    NO_TASKS = "--no-tasks runs no tasks"
    ELSEWHERE = "the code of the server is elsewhere"
    NO_URL = "the server is not at a URL"


class _Row(NamedTuple):
    """What the command line knows of an option.

    Attributes:
        declaration: Its names, its default value and its help.
        conflicts: The options that it can't be combined with.
        variable: The environment variable that it sets, so that worker processes inherit it; "" for none.
    """

    declaration: Any
    conflicts: Sequence[Conflict]
    variable: str


def option(default: T, *names: str, conflicts: Sequence[Conflict] = (), variable: str = "", **declaration: Any) -> T:
    """Return a field of a table.

    Args:
        default: The value of an option that is not chosen.
        names: The names, unless they are that of the field and, for a boolean, its opposite with ``--no-``.
        conflicts: The options that it can't be combined with.
        variable: The environment variable that it sets.
        declaration: Further arguments of `typer.Option`.
    """
    row = _Row(typer.Option(default, *names, **declaration), conflicts, variable)
    return field(default=default, metadata={"row": row})


_HTTP_ONLY = (Conflict.STDIO,)
_ADDRESS_ONLY = (Conflict.STDIO, Conflict.UDS)

_host = partial(option, None, help="The address to listen on.", show_default="$FUNCMCP_HOST, or 127.0.0.1")
_port = partial(option, None, min=0, max=65535, help="The port; 0 for a free one.")
_stdio = partial(option, False, "--stdio", help="Serve one client on stdin and stdout instead.")
_drain = partial(
    option,
    None,
    min=0,
    metavar="SECONDS",
    help="How long calls and tasks may still run after SIGTERM.",
    show_default=f"${DRAIN_VARIABLE}, or {DEFAULT_SECONDS}",
    variable=DRAIN_VARIABLE,
)
_queue = partial(
    option,
    None,
    metavar="NAME",
    help="Run the tasks of this queue only; may be repeated.",
    show_default=f"${TASK_QUEUES_VARIABLE}, or all queues",
    variable=TASK_QUEUES_VARIABLE,
)
_log_format = partial(
    option,
    None,
    help="How the log is written to stderr: as text for people, or as a JSON document on each line.",
    show_default=f"${LOG_FORMAT_VARIABLE}, or text",
    variable=LOG_FORMAT_VARIABLE,
)
_verbose = partial(option, False, "--verbose", help="Show the frames of libraries in tracebacks on a terminal, too.")

_Level = Literal["critical", "error", "warning", "info", "debug"]
_Format = Literal["text", "json"]


@options_by_name
class RunOptions:
    """The options of ``funcmcp run``."""

    host: str | None = _host(conflicts=_ADDRESS_ONLY)
    port: int | None = _port("--port", "-p", show_default="$FUNCMCP_PORT, $PORT, or 8000", conflicts=_ADDRESS_ONLY)
    uds: str | None = option(
        None,
        metavar="PATH",
        help="Listen on a Unix socket instead, for a proxy on this machine. Its owner and group may connect.",
        conflicts=_HTTP_ONLY,
    )
    reload: bool = option(
        False,
        "--reload",
        help="Restart when a Python file changes.",
        conflicts=(Conflict.STDIO, Conflict.ELSEWHERE),
    )
    workers: int | None = option(
        None,
        min=1,
        help="The number of processes. They share signed sessions, which are the default.",
        show_default="1",
        conflicts=_HTTP_ONLY,
    )
    allowed_host: list[str] | None = option(
        None,
        metavar="NAME",
        help="A host name of the server, with or without a port; may be repeated. '*' allows any name.",
        conflicts=_HTTP_ONLY,
    )
    page: bool | None = option(
        None,
        help="Show browsers at the endpoint a page with a form for each tool.",
        show_default="on a loopback address",
        variable=PAGE_VARIABLE,
        conflicts=_HTTP_ONLY,
    )
    health: bool | None = option(
        None,
        help="Answer probes at /livez and /readyz.",
        show_default="the server's option, or on",
        variable=HEALTH_VARIABLE,
        conflicts=_HTTP_ONLY,
    )
    log_level: _Level | None = option(
        None,
        help="The lowest level to log. info and debug add a line for each request, which is the default on a terminal "
        "and in JSON.",
        conflicts=_HTTP_ONLY,
    )
    log_format: _Format | None = _log_format()
    verbose: bool = _verbose(conflicts=_HTTP_ONLY)
    tls_cert: str | None = option(
        None, metavar="FILE", help="Serve HTTPS with this certificate (PEM).", conflicts=_ADDRESS_ONLY
    )
    tls_key: str | None = option(
        None, metavar="FILE", help="The certificate's private key (PEM).", conflicts=_ADDRESS_ONLY
    )
    client_ca: str | None = option(
        None,
        metavar="FILE",
        help="Only clients with a certificate of one of these authorities (PEM) may connect.",
        conflicts=_ADDRESS_ONLY,
    )
    keep_alive: int | None = option(
        None,
        min=0,
        metavar="SECONDS",
        help="How long an idle connection stays open. It must be longer than in the proxy in front of the server.",
        show_default=f"${KEEP_ALIVE_VARIABLE}, or 95",
        variable=KEEP_ALIVE_VARIABLE,
        conflicts=_HTTP_ONLY,
    )
    root_path: str | None = option(
        None,
        metavar="PATH",
        help="The path at which a proxy serves the server, such as /shop. The proxy must remove it.",
        show_default=f"${ROOT_PATH_VARIABLE}",
        variable=ROOT_PATH_VARIABLE,
        conflicts=_HTTP_ONLY,
    )
    proxies: int | None = option(
        None,
        min=0,
        metavar="N",
        help="How many of your proxies each request passes. X-Forwarded-For then names the client.",
        show_default=f"${PROXIES_VARIABLE}, or the server's option",
        variable=PROXIES_VARIABLE,
        conflicts=_HTTP_ONLY,
    )
    drain: int | None = _drain()
    queue: list[str] | None = _queue(conflicts=(Conflict.STDIO, Conflict.NO_TASKS, Conflict.ELSEWHERE))
    no_tasks: bool = option(
        False,
        "--no-tasks",
        help="Run no tasks: leave them to `funcmcp worker`.",
        conflicts=(Conflict.STDIO, Conflict.ELSEWHERE),
    )
    stdio: bool = _stdio()
    sign_in_as: str | None = option(
        None,
        metavar="USER|FILE",
        help="Sign clients in as this user without the identity provider, on this machine only. Pass a name, an e-mail "
        "address, or a JSON file with claims.",
        conflicts=(Conflict.STDIO, Conflict.UDS, Conflict.ELSEWHERE),
    )
    config: str | None = option(
        None,
        metavar="FILE",
        help="Serve the servers of an MCP client's configuration file (mcpServers) as one, instead of TARGET.",
    )
    header: list[str] | None = option(
        None,
        "--header",
        "-H",
        metavar="NAME:VALUE",
        help="A header field of every request to URL; may be repeated.",
        conflicts=(Conflict.NO_URL,),
    )
    bearer: str | None = option(None, envvar="FUNCMCP_BEARER", metavar="TOKEN", help="A token to sign in with at URL.")
    sign_in: bool = option(
        False,
        "--sign-in",
        help="Sign in at URL with a browser when it asks for it. The tokens are kept for the next command.",
        conflicts=(Conflict.NO_URL,),
    )

    @property
    def process_count(self) -> int:
        """The number of processes that serve."""
        return self.workers or 1

    @property
    def has_workers(self) -> bool:
        """Whether worker processes serve from the beginning."""
        return self.reload or self.process_count > 1


@options_by_name
class HostOptions:
    """The options of ``funcmcp host``."""

    host: str | None = _host()
    port: int | None = _port(show_default="$FUNCMCP_PORT, Host.LocalHttpPort of local.settings.json, $PORT, or 7071")
    stdio: bool = _stdio()
    trust_proxy: bool = option(
        False,
        "--trust-proxy",
        help="Pass X-MS-CLIENT-*, X-MS-TOKEN-* and X-ARR-* to functions, because a proxy in front sets them.",
    )
    allow_cross_site: bool = option(
        False, "--allow-cross-site", help="Allow links on pages of other sites to run HTTP triggers on loopback."
    )
    cors: str | None = option(
        None,
        metavar="ORIGINS",
        help="The origins whose pages may call the app, separated by commas; * for all.",
        show_default="Host.CORS of local.settings.json",
    )
    cors_credentials: bool = option(False, "--cors-credentials", help="Allow the pages of --cors to send cookies.")
    python: str | None = option(
        None, metavar="FILE", help="The interpreter of a Python app.", show_default="DIR/.venv, or this one"
    )
    engine: Literal["auto", "runtime", "library"] = option(
        "auto", help="What runs a Python app: azure-functions-runtime (Python 3.13) or azure-functions alone."
    )
    node: str | None = option(None, metavar="FILE", help="The program that runs a Node app.", show_default="node")
    worker: str | None = option(
        None, metavar="COMMAND", help="The language worker of an app in another language: 'dotnet app.dll'."
    )
    workers: int = option(1, min=1, help="How many processes run the functions.")
    reload: bool | None = option(None, help="Load the app again when its files change.", show_default="on a terminal")
    storage: str | None = option(
        None,
        metavar="DIR|azure",
        help="The folder of blobs and queues, or azure for the storage accounts of the app settings.",
        show_default="DIR/.funcmcp/storage",
    )
    strict: bool = option(False, "--strict", help="Check arguments against the tool's input schema before a call.")
    timeout: float | None = option(
        None, min=0, metavar="SECONDS", help="The time that a call may take.", show_default="host.json's"
    )
    drain: int | None = _drain()
    log_level: _Level = option("info", help="The lowest level to log.")
    log_format: _Format | None = _log_format()


@options_by_name
class WorkerOptions:
    """The options of ``funcmcp worker``."""

    concurrency: int | None = option(
        None, min=1, help="The number of tasks that run at once.", show_default="the store's, or 10"
    )
    queue: list[str] | None = _queue()
    drain: int | None = _drain()
    log_format: _Format | None = _log_format()
    verbose: bool = _verbose()


def with_options(command: Callable[..., None], left_out: Collection[str] = ()) -> Callable[..., None]:
    """Return a command whose parameters with a table are replaced by a parameter for each option.

    Args:
        command: The command.
        left_out: The names of options that the command does not have. They have their default values.
    """
    signature = inspect.signature(command, eval_str=True)
    tables: dict[str, Any] = {
        name: item.annotation for name, item in signature.parameters.items() if is_dataclass(item.annotation)
    }

    @wraps(command)
    def run_command(**values: Any) -> None:
        for name, table in tables.items():
            values[name] = table(**{row.name: values.pop(row.name) for row in fields(table) if row.name in values})
        command(**values)

    parameters: list[inspect.Parameter] = []
    for item in signature.parameters.values():
        if item.name in tables:
            parameters += [row for row in _parameters_of(tables[item.name]) if row.name not in left_out]
        else:
            parameters.append(item)
    signature = signature.replace(parameters=parameters)
    run_command.__signature__ = signature  # type: ignore[attr-defined] # functions may have one
    return run_command


def _parameters_of(table: Any) -> Iterator[inspect.Parameter]:
    """Yield the parameter of each option in a table."""
    types = get_type_hints(table)
    for row in fields(table):
        declaration = row.metadata["row"].declaration
        yield inspect.Parameter(
            row.name, inspect.Parameter.KEYWORD_ONLY, default=declaration, annotation=types[row.name]
        )


def check_conflict(options: Any, conflict: Conflict, reason: str = "") -> None:
    """Raise BadParameter if options of a table are chosen that a chosen option excludes.

    Args:
        options: The table.
        conflict: The chosen option.
        reason: Why it excludes them, in place of its own reason.
    """
    excluded = [_flag(name, value) for name, value, row in _chosen(options) if conflict in row.conflicts]
    if excluded:
        raise typer.BadParameter(f"{reason or conflict.value}: leave out {' and '.join(excluded)}.")


def _flag(name: str, value: object) -> str:
    """Return an option as it is written in a command."""
    text = name.replace("_", "-")
    return f"--no-{text}" if value is False else f"--{text}"


def set_variables(options: RunOptions | HostOptions | WorkerOptions) -> None:
    """Set the environment variables of the chosen options. Those of other options remain as they are.

    Raises:
        Failure: The time to end or the format of the log is not valid.
    """
    for _, value, row in _chosen(options):
        if row.variable:
            os.environ[row.variable] = _text_of(value)
    check_variables(drain_seconds, is_json)


def _text_of(value: object) -> str:
    """Return the value of an option as the text of an environment variable."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, list):
        return ",".join(value)
    return str(value)


def _chosen(options: Any) -> Iterator[tuple[str, object, _Row]]:
    """Yield the name, the value and the row of each option that the user has chosen."""
    for column in fields(options):
        value = getattr(options, column.name)
        if value != column.default:
            yield column.name, value, column.metadata["row"]


def check_variables(*readers: Callable[[], object]) -> None:
    """Raise Failure if one of the functions, which read environment variables, raises ValueError."""
    for read in readers:
        try:
            read()
        except ValueError as error:
            raise Failure(str(error)) from None
