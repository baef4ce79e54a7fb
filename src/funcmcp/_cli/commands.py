"""The commands of the command line. Each one imports the modules that it needs when it runs."""

# ruff: noqa: PLC0415 - the reason is above

from __future__ import annotations

import asyncio
import logging
import os
import re
import sys
from contextlib import contextmanager, suppress
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from funcmcp import __version__
from funcmcp._cli.output import write_line, write_note

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from funcmcp import MCPServer
    from funcmcp._cli.log_options import LogOptions
    from funcmcp._state.keys import CommandKey
    from funcmcp._transports.http.listen_address import ListenAddress

HELP_OPTIONS = {"help_option_names": ["--help", "-h"]}

app = typer.Typer(
    name="funcmcp",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings=HELP_OPTIONS,
)

Headers = Annotated[
    list[str] | None,
    typer.Option("--header", "-H", metavar="NAME:VALUE", help="A header field of every request; may be repeated."),
]
Bearer = Annotated[
    str | None, typer.Option("--bearer", envvar="FUNCMCP_BEARER", metavar="TOKEN", help="A token to sign in with.")
]
SignsIn = Annotated[
    bool,
    typer.Option(
        "--sign-in", help="Sign in with a browser when a URL asks for it. The tokens are kept for the next command."
    ),
]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Show log messages and progress as lines on stderr.")]
Calls = Annotated[
    Path | None,
    typer.Option(
        "--calls",
        metavar="FILE",
        help='Make the calls in a file: [{"tool": NAME, "arguments": {...}}, {"resource": URI}, {"prompt": NAME}].',
        show_default=False,
    ),
]
_HOST = re.compile(r"(\[[0-9a-fA-F:.]+\]|[0-9A-Za-z._-]+)(:[0-9]{1,5})?")
_TARGET = "path/to/server.py, path/to/server.py:name, package.module, package.module:name or a project's folder"
Target = Annotated[str, typer.Argument(metavar="TARGET", help=f"The server: {_TARGET}.", show_default=False)]
ServerArguments = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[-- ARGUMENT...]",
        help="Arguments of the server, which its code finds in sys.argv after the target.",
        show_default=False,
    ),
]
Drain = Annotated[
    int | None,
    typer.Option(
        min=0,
        metavar="SECONDS",
        help="The time that calls and tasks have to end after SIGTERM.",
        show_default="$FUNCMCP_DRAIN_SECONDS, or 7",
    ),
]
Queues = Annotated[
    list[str] | None,
    typer.Option(
        "--queue",
        metavar="NAME",
        help="Run the tasks of this queue only; may be repeated.",
        show_default="$FUNCMCP_TASK_QUEUES, or all queues",
    ),
]
LogFormat = Annotated[
    Literal["text", "json"] | None,
    typer.Option(
        help="How the log is written to stderr: as text for people, or as a JSON document on each line.",
        show_default="$FUNCMCP_LOG_FORMAT, or text",
    ),
]
WholeTracebacks = Annotated[
    bool, typer.Option("--verbose", help="Show the frames of libraries in tracebacks on a terminal, too.")
]
TargetOrURL = Annotated[
    str,
    typer.Argument(
        metavar="TARGET|URL",
        help=f"A server ({_TARGET}), an endpoint's URL, or a command such as 'uvx some-server'.",
        show_default=False,
    ),
]


def examples(*commands: str) -> str:
    """Return the last part of a command's help: each example on a line of its own."""
    return "\b\nExamples:\n" + "\n".join(f"  {command}" for command in commands)


def _print_version(is_set: bool) -> None:  # noqa: FBT001 - typer passes the option's value
    if is_set:
        write_line(f"funcmcp {__version__}")
        raise typer.Exit


@app.callback()
def options(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Serve MCP servers made of typed Python functions, and use them."""


@app.command(
    epilog=examples(
        "funcmcp new orders",
        "funcmcp new orders --auth entra",
        "funcmcp new orders --hosting docker",
        "funcmcp new .",
    )
)
def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The project's name and folder.", show_default=False)],
    *,
    hosting: Annotated[
        Literal["http", "triggers", "self-hosted", "docker", "aca", "kubernetes", "systemd", "none"],
        typer.Option(
            help="Where the project runs. On Azure Functions: by HTTP triggers (http, all of MCP), by Azure's own MCP "
            "triggers (triggers), or as its own server (self-hosted, a custom handler). Elsewhere: docker, aca (Azure "
            "Container Apps), kubernetes or systemd. none is the earlier name of docker."
        ),
    ] = "http",
    auth: Annotated[
        Literal["key", "entra"],
        typer.Option(
            help="How callers authenticate on Azure Functions: with the app's key (key), or their users sign in with "
            "Microsoft Entra ID from any MCP client (entra, for http and self-hosted)."
        ),
    ] = "key",
) -> None:
    """Make a project in a new folder NAME. It has tests, and is for Azure Functions unless --hosting says otherwise.

    With . as NAME, add the files for the hosting to the server in this folder. No file is replaced.
    """
    from funcmcp._cli.new import add_to, create

    if name == ".":
        added = add_to(Path(), hosting, auth)
        write_line(f"Added: {', '.join(added.written) or 'nothing'}")
        if added.unchanged:
            write_line(f"Left as they are: {', '.join(added.unchanged)}")
        for sentence in added.advice:
            write_line(sentence)
        return
    folder = create(name, Path.cwd(), hosting, auth)
    install = "pip install -r requirements-dev.txt"
    write_line(f"Created {folder.name}. Next: cd {folder.name} && {install} && funcmcp run (see README.md)")


@app.command()
def doctor(
    folder: Annotated[Path, typer.Argument(metavar="[FOLDER]", help="The project.")] = Path(),
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Check a project for Azure Functions. The exit code is 1 if there are errors.

    The command runs the project's code: it imports function_app.py, or the custom handler's file, in a new process.
    """
    from funcmcp._cli import show
    from funcmcp._cli.doctor.examine import examine

    findings = examine(folder)
    if as_json:
        show.print_findings_as_json(findings)
    else:
        show.print_findings(findings)
    if any(finding.level == "error" for finding in findings):
        raise typer.Exit(1)


@app.command(
    epilog=examples(
        "funcmcp run server.py --reload",
        "funcmcp run server.py --host 0.0.0.0 --allowed-host orders.example.com --workers 2",
        "funcmcp run server.py --uds /run/orders/mcp.sock --allowed-host orders.example.com",
        "funcmcp run server.py --stdio",
        "funcmcp run server.py -- --config shop.toml",
    )
)
def run(  # noqa: PLR0913 - one for each option of the command
    target: Annotated[str, typer.Argument(metavar="[TARGET]", help=f"The server: {_TARGET}.")] = ".",
    arguments: ServerArguments = None,
    *,
    host: Annotated[
        str | None,
        typer.Option(help="The address to listen on.", show_default="$FUNCMCP_HOST, or 127.0.0.1"),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            "--port",
            "-p",
            min=0,
            max=65535,
            help="The port; 0 for a free one.",
            show_default="$FUNCMCP_PORT, $PORT, or 8000",
        ),
    ] = None,
    uds: Annotated[
        str | None,
        typer.Option(
            metavar="PATH",
            help="Listen on a Unix socket instead, for a proxy on this machine. Its owner and group may connect.",
            show_default=False,
        ),
    ] = None,
    reload: Annotated[bool, typer.Option("--reload", help="Start again when a Python file changes.")] = False,
    workers: Annotated[
        int | None,
        typer.Option(
            min=1, help="The number of processes. They share signed sessions, which are the default.", show_default="1"
        ),
    ] = None,
    allowed_host: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="A host name of the server, with or without a port; may be repeated. '*' allows any name.",
            show_default=False,
        ),
    ] = None,
    page: Annotated[
        bool | None,
        typer.Option(
            "--page/--no-page",
            help="Answer browsers at the endpoint with a page for people.",
            show_default="on a loopback address",
        ),
    ] = None,
    health: Annotated[
        bool | None,
        typer.Option(
            "--health/--no-health",
            help="Answer probes at /livez and /readyz.",
            show_default="the server's option, or on",
        ),
    ] = None,
    log_level: Annotated[
        Literal["critical", "error", "warning", "info", "debug"] | None,
        typer.Option(
            help="The least severe messages to log. With info and debug there is a line for each request, as there is "
            "on a terminal and in JSON by default.",
            show_default=False,
        ),
    ] = None,
    log_format: LogFormat = None,
    verbose: WholeTracebacks = False,
    tls_cert: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Serve HTTPS with this certificate (PEM).", show_default=False),
    ] = None,
    tls_key: Annotated[
        str | None, typer.Option(metavar="FILE", help="The certificate's private key (PEM).", show_default=False)
    ] = None,
    client_ca: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Only clients with a certificate of one of these authorities (PEM) may connect.",
            show_default=False,
        ),
    ] = None,
    keep_alive: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="SECONDS",
            help="The time for which an idle connection remains open. It has to be longer than the same time of a "
            "proxy in front.",
            show_default="$FUNCMCP_KEEP_ALIVE_SECONDS, or 95",
        ),
    ] = None,
    root_path: Annotated[
        str | None,
        typer.Option(
            metavar="PATH",
            help="The path at which a proxy serves the server, such as /shop, and which the proxy removes.",
            show_default="$FUNCMCP_ROOT_PATH",
        ),
    ] = None,
    drain: Drain = None,
    queue: Queues = None,
    no_tasks: Annotated[bool, typer.Option("--no-tasks", help="Run no tasks: leave them to `funcmcp worker`.")] = False,
    stdio: Annotated[bool, typer.Option("--stdio", help="Serve one client on stdin and stdout instead.")] = False,
) -> None:
    """Serve TARGET over HTTP until Ctrl+C or SIGTERM. Calls in flight are finished first.

    At SIGHUP the code is loaded anew: new processes accept connections before the earlier ones end. If that fails, the
    earlier code serves on.
    """
    set_arguments(target, arguments)
    set_drain(drain)
    _set_tasks(queue, no_tasks=no_tasks)
    set_log_format(log_format)
    if stdio:
        is_chosen = {
            "--host": host is not None,
            "--port": port is not None,
            "--uds": uds is not None,
            "--reload": reload,
            "--workers": workers is not None,
            "--allowed-host": bool(allowed_host),
            "--page": page is True,
            "--no-page": page is False,
            "--health": health is True,
            "--no-health": health is False,
            "--log-level": log_level is not None,
            "--verbose": verbose,
            "--tls-cert": tls_cert is not None,
            "--tls-key": tls_key is not None,
            "--client-ca": client_ca is not None,
            "--keep-alive": keep_alive is not None,
            "--root-path": root_path is not None,
            "--queue": bool(queue),
            "--no-tasks": no_tasks,
        }
        _check_stdio(is_chosen)
        _serve_stdio(target)
        return
    host = _checked_host(host)
    tls = {"--tls-cert": tls_cert, "--tls-key": tls_key, "--client-ca": client_ca}
    _check_uds(uds, {"--host": host, "--port": port, **tls})
    address = _address_of(host, port)
    _allow_hosts(allowed_host or [], address.host if host is not None or address.host_variable else None)
    _set_switches(page, health)
    _set_keep_alive(keep_alive)
    _set_root_path(root_path)
    options = _HTTPOptions(
        address,
        workers or 1,
        uds=None if uds is None else os.path.abspath(uds),  # noqa: PTH100 - the code may change the folder
        reload=reload,
        log_level=log_level,
        verbose=verbose,
        certificate_files=_certificate_files(tls_cert, tls_key, client_ca),
    )
    _serve_http(target, options)


def _check_stdio(is_chosen: Mapping[str, bool]) -> None:
    """Raise BadParameter if an option is chosen that --stdio does not have."""
    invalid = [option for option, chosen in is_chosen.items() if chosen]
    if invalid:
        raise typer.BadParameter(f"--stdio serves one client in one process: leave out {' and '.join(invalid)}.")


def _checked_host(host: str | None) -> str | None:
    """Return the address to listen on as other parts write it: in lower case, and IPv6 without the brackets of URLs."""
    if host is None:
        return None
    if not host.strip():
        raise typer.BadParameter("--host is empty. Pass 127.0.0.1 for this machine only, or 0.0.0.0 for all addresses.")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    return host.lower()


def _address_of(host: str | None, port: int | None) -> ListenAddress:
    """Return the address to listen on."""
    from funcmcp._cli.failure import UsageFailure
    from funcmcp._transports.http.listen_address import listen_address

    try:
        address = listen_address(host, port, os.environ)
    except ValueError as error:
        raise UsageFailure(str(error)) from None
    return address._replace(host=_checked_host(address.host) or address.host)


def _check_uds(path: str | None, options: dict[str, object]) -> None:
    """Raise BadParameter if there is the path of a Unix socket, and an option that is for an address."""
    if path is None:
        return
    if not path:
        raise typer.BadParameter("--uds is empty. Pass the path of a socket, such as /run/orders/mcp.sock.")
    invalid = [option for option, value in options.items() if value is not None]
    if invalid:
        raise typer.BadParameter(f"--uds listens on a Unix socket, for HTTP: leave out {' and '.join(invalid)}.")


def _certificate_files(
    tls_cert: str | None, tls_key: str | None, client_ca: str | None
) -> tuple[str, str, str | None] | None:
    """Return the files for HTTPS. Return None for HTTP."""
    if tls_cert is None and tls_key is None:
        if client_ca is not None:
            raise typer.BadParameter("--client-ca is for HTTPS: pass --tls-cert and --tls-key as well.")
        return None
    if tls_cert is None or tls_key is None:
        raise typer.BadParameter("HTTPS needs both --tls-cert and --tls-key.")
    return tls_cert, tls_key, client_ca


def _allow_hosts(names: list[str], host: str | None) -> None:
    """Allow Host headers with these names, and with the name or address that the server listens on."""
    from funcmcp._transports.http.options import HOSTS_VARIABLE, hosts_of_environment

    for name in names:
        if name != "*" and not _HOST.fullmatch(name):
            raise typer.BadParameter(f"--allowed-host {name!r} is not a host name, such as orders.example.com.")
    if host is not None:
        name = f"[{host}]" if ":" in host else host  # as clients write it
        if _HOST.fullmatch(name):
            names = [*names, name]
    os.environ[HOSTS_VARIABLE] = ",".join([*hosts_of_environment(), *names])


def _set_switches(page: bool | None, health: bool | None) -> None:  # noqa: FBT001 - options of the command
    """Switch the page and the health endpoints on or off. None leaves it as the server and the environment say."""
    from funcmcp._transports.http.options import HEALTH_VARIABLE, PAGE_VARIABLE

    for variable, is_on in ((PAGE_VARIABLE, page), (HEALTH_VARIABLE, health)):
        if is_on is not None:
            os.environ[variable] = "on" if is_on else "off"


def _set_keep_alive(seconds: int | None) -> None:
    """Set the time for which idle connections remain open. None leaves it as the environment says."""
    from funcmcp._transports.http.options import KEEP_ALIVE_VARIABLE, keep_alive_seconds

    _set_variable(KEEP_ALIVE_VARIABLE, seconds, keep_alive_seconds)


def _set_root_path(path: str | None) -> None:
    """Set the path at which a proxy serves the server. None leaves it as the environment says."""
    from funcmcp._transports.http.options import ROOT_PATH_VARIABLE, root_path_of_environment

    _set_variable(ROOT_PATH_VARIABLE, path, root_path_of_environment)


def set_arguments(target: str, arguments: list[str] | None) -> None:
    """Set ``sys.argv`` to that of a script, for the code of the server; worker processes inherit it.

    Raises:
        typer.BadParameter: The arguments do not follow ``--``, so they are meant for the command.
    """
    if arguments and "--" not in sys.argv:
        text = " ".join(arguments)
        raise typer.BadParameter(f"Unexpected argument: {text}. Arguments of the server follow --: {target} -- {text}")
    sys.argv = [target, *(arguments or [])]


def set_drain(seconds: int | None) -> None:
    """Set the time in which this process and its worker processes end. None leaves it as the environment says."""
    from funcmcp._server.drain import VARIABLE, drain_seconds

    _set_variable(VARIABLE, seconds, drain_seconds)


def set_queues(names: list[str] | None) -> None:
    """Set the queues whose tasks this process and its worker processes run. None leaves it as the environment says."""
    from funcmcp._cli.failure import Failure
    from funcmcp._serving import TASK_QUEUES_VARIABLE, task_queues
    from funcmcp._state.tasks.queues import check_queue

    if names:
        for name in names:
            try:
                check_queue(name)
            except ValueError as error:
                raise typer.BadParameter(f"--queue: {error}") from None
        os.environ[TASK_QUEUES_VARIABLE] = ",".join(names)
    try:
        task_queues(os.environ)
    except ValueError as error:
        raise Failure(str(error)) from None


def _set_tasks(queue: list[str] | None, *, no_tasks: bool) -> None:
    """Set which tasks this process and its worker processes run."""
    from funcmcp._serving import TASK_CONCURRENCY_VARIABLE

    if queue and no_tasks:
        raise typer.BadParameter("--no-tasks runs the tasks of no queue: leave out --queue.")
    set_queues(queue)
    if no_tasks:
        os.environ[TASK_CONCURRENCY_VARIABLE] = "0"


def set_log_format(log_format: str | None) -> None:
    """Set the format of the log. None leaves it as the environment says."""
    if log_format is not None or os.environ.get("FUNCMCP_LOG_FORMAT"):
        from funcmcp._cli.log_options import set_format

        set_format(log_format)


def _set_variable(variable: str, value: object, read: Callable[[], object]) -> None:
    """Set an environment variable, unless the value is None.

    Raises:
        Failure: The text of the variable is not valid.
    """
    from funcmcp._cli.failure import Failure

    if value is not None:
        os.environ[variable] = str(value)
    try:
        read()
    except ValueError as error:
        raise Failure(str(error)) from None


def _serve_stdio(target: str) -> None:
    from funcmcp._authoring.calling.lifespans import LifespanError
    from funcmcp._cli.failure import Failure
    from funcmcp._cli.targets import load
    from funcmcp._server.log import log_failure
    from funcmcp._server.log_output import is_json
    from funcmcp._serving import serving_of
    from funcmcp._transports.stdio import StreamError, serve, standard_streams

    try:
        with standard_streams() as (source, sink):  # before the import, whose output must not be on stdout
            server = load(target)
            if is_json():
                serving_of(server).log_as_json()
            if os.isatty(source):
                write_note(f"{server.name} waits for JSON-RPC messages, one on a line (Ctrl+D ends it)", error=True)
            serving = serving_of(server)
            serve(serving.server, serving.aclose, serving.enter_lifespans, source=source, sink=sink)
    except LifespanError as error:
        log_failure(error, "", "add_lifespan")
        raise Failure(str(error)) from error
    except StreamError as error:
        raise Failure(f"{error.strerror}. With --stdio the server exchanges messages with its client there.") from error


@dataclass(frozen=True, slots=True)
class _HTTPOptions:
    """The options of ``funcmcp run`` for HTTP.

    Attributes:
        address: The address to listen on.
        workers: The number of processes.
        uds: The path of a Unix socket to listen on instead. None for an address.
        reload: Whether to start again when a Python file changes.
        log_level: The least severe messages to log. None for the default.
        verbose: Whether tracebacks on a terminal have the frames of libraries.
        certificate_files: The files with a certificate, its key and the authorities of clients, as those of
            `Certificate`. None for HTTP without TLS.
    """

    address: ListenAddress
    workers: int
    _: KW_ONLY
    uds: str | None
    reload: bool
    log_level: str | None
    verbose: bool
    certificate_files: tuple[str, str, str | None] | None

    @property
    def has_workers(self) -> bool:
        """Whether worker processes serve from the beginning."""
        return self.reload or self.workers > 1

    @property
    def has_client_ca(self) -> bool:
        """Whether clients need a certificate."""
        return self.certificate_files is not None and self.certificate_files[2] is not None


def _serve_http(target: str, options: _HTTPOptions) -> None:
    from contextlib import ExitStack

    import funcmcp._adapters.uvicorn.server  # noqa: F401 - a missing uvicorn is an error before the server's code runs
    from funcmcp._cli.targets import load
    from funcmcp._state.keys import CommandKey
    from funcmcp._state.sessions.ended import shared_with_workers

    key = CommandKey(os.environ)
    with ExitStack() as stack:
        if not options.has_workers:  # processes that replace this one at SIGHUP serve its sessions
            stack.enter_context(shared_with_workers(os.environ))
        with key.in_this_process():
            server = load(target)
        _serve_loaded(server, target, options, key)


def _serve_loaded(server: MCPServer, target: str, options: _HTTPOptions, key: CommandKey) -> None:
    from functools import partial

    from funcmcp._adapters.uvicorn.server import Certificate, serve, serve_processes
    from funcmcp._cli.log_options import LogOptions, configure, configure_process
    from funcmcp._cli.targets import find

    _check_task_store(server, options)
    address = options.address
    certificate = None if options.certificate_files is None else Certificate(*options.certificate_files)
    log = LogOptions(options.log_level, options.verbose)
    on_ready = partial(_announce, server, options, in_this_process=not options.has_workers)
    root = find(target).root
    factory = partial(_make_in_worker, target, log, root)
    with _explained_failures(options):
        if options.has_workers:
            configure_process(log)
            serve_processes(
                factory,
                host=address.host,
                port=address.port,
                uds=options.uds,
                workers=options.workers,
                watch=root if options.reload else None,
                on_ready=on_ready,
                on_change=_announce_reload,
                on_reload=_report_reload,
                certificate=certificate,
            )
        else:
            configure(server, log)
            serve(
                server,
                host=address.host,
                port=address.port,
                uds=options.uds,
                on_ready=on_ready,
                on_reload=_report_reload,
                certificate=certificate,
                factory=factory,
                key=key,
            )


def _check_task_store(server: MCPServer, options: _HTTPOptions) -> None:
    """Raise Failure if worker processes would need a store of tasks that they share, and there is none."""
    from funcmcp._cli.failure import Failure
    from funcmcp._serving import serving_of

    tasks = serving_of(server).server.tasks
    if options.workers > 1 and tasks is not None and tasks.has_tools and not tasks.store.shared:
        raise Failure(
            f"{server.name} has tools with task=, and stores tasks in the memory of each process. Write "
            'MCPServer(..., tasks=SQLiteTasks("tasks.db")), or leave out --workers.'
        )


@contextmanager
def _explained_failures(options: _HTTPOptions) -> Iterator[None]:
    """Raise Failure for the errors of the HTTP server, with the options to correct."""
    from funcmcp._adapters.uvicorn.server import AddressError, CertificateError, StartError, WorkerError
    from funcmcp._cli.failure import Failure

    try:
        yield
    except AddressError as error:
        advice = "Choose another address with --host and --port."
        if options.uds is not None:
            advice = "Choose another path with --uds."
        raise Failure(f"{error.strerror}. {advice}") from error
    except CertificateError as error:
        names = "--tls-cert and --tls-key"
        if options.has_client_ca:
            names = "--tls-cert, --tls-key and --client-ca"
        raise Failure(f"{error.strerror}. Correct {names}.") from error
    except StartError as error:
        raise Failure(str(error)) from error
    except WorkerError as error:
        raise Failure(f"{error} Its message is above.") from error


def _make_in_worker(target: str, log: LogOptions, root: Path) -> MCPServer:
    """Return the server of a worker process, with its log.

    Args:
        target: The server.
        log: The options for the log.
        root: The folder from which the process of the command imported the server. If the target leads elsewhere by
            now, as a symbolic link to the latest release does, no module of this folder may be imported.
    """
    from funcmcp._cli.log_options import configure
    from funcmcp._cli.targets import load_or_exit

    with suppress(ValueError):
        sys.path.remove(str(root))
    return configure(load_or_exit(target), log)


def _report_reload(sentence: str, is_failure: bool) -> None:  # noqa: FBT001 - the interface of `on_reload`
    """Print a sentence about a reload on stderr, where the log is."""
    write_note(sentence, error=True, level=logging.WARNING if is_failure else logging.INFO)


def _announce_reload(files: list[Path]) -> None:
    """Print why the server starts again, in a line."""
    if not files:
        write_note("Reloading because of SIGHUP.", error=True, level=logging.INFO)
        return
    names = sorted(str(file.relative_to(Path.cwd()) if file.is_relative_to(Path.cwd()) else file) for file in files)
    remaining = len(names) - _SHOWN_FILES
    shown = ", ".join(names[:_SHOWN_FILES]) + (f" and {remaining} more" if remaining > 0 else "")
    write_note(f"Reloading because {shown} changed.", error=True, level=logging.INFO)


def _announce(server: MCPServer, options: _HTTPOptions, origin: str, *, in_this_process: bool) -> None:
    """Print where the server is, then a warning for each feature that no list can contain.

    Args:
        server: The server.
        options: The options of the command.
        origin: Scheme, host and port of its URL.
        in_this_process: Whether this process serves. The warnings then come from a task beside the requests.
    """
    from funcmcp._serving import serving_of
    from funcmcp._transports.http.listen_address import ONLY_THIS_MACHINE

    serving = serving_of(server)
    address = options.address
    note = "Ctrl+C stops it"
    if address.origin_note and options.uds is None:
        note = f"{address.origin_note}; {note}"
    write_note(f"{server.name} is served at {origin}{serving.path} ({note})")
    if address.is_only_platform_port and options.uds is None:
        write_note(ONLY_THIS_MACHINE)
    if address.host in _ALL_ADDRESSES:
        write_note("It also listens at this machine's other addresses. Allow its host names: --allowed-host NAME")
    if serving.keeps_sessions:
        write_note("Sessions are in this process's memory and end with it.")
    if in_this_process:
        task = asyncio.get_running_loop().create_task(_warn_of_faults(server))
        _background.add(task)
        task.add_done_callback(_background.discard)
    else:
        asyncio.run(_warn_of_faults(server))


async def _warn_of_faults(server: MCPServer) -> None:
    from funcmcp._cli.faults import faults_of

    async for fault in faults_of(server):
        write_note(fault, error=True)


_SHOWN_FILES = 3
_ALL_ADDRESSES = {"0.0.0.0", "::", ""}  # noqa: S104 - addresses to compare with, not to listen on
_background: set[asyncio.Task[None]] = set()
"""Tasks that run. asyncio itself holds only weak references to tasks."""
