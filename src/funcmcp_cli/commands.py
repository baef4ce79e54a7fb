"""The commands of the command line. Each one imports the modules that it needs when it runs."""

# ruff: noqa: PLC0415 - the reason is above

from __future__ import annotations

import asyncio
import logging
import os
import re
import sys
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import typer

from funcmcp import __version__
from funcmcp._objects.background import hold_until_done
from funcmcp._text.listing import some_of
from funcmcp_cli.output import below_here, write_line, write_note
from funcmcp_cli.program_options import ProgramOptions  # noqa: TC001 - with_options reads the types
from funcmcp_cli.server_options import (
    Conflict,
    RunOptions,
    check_conflict,
    check_variables,
    set_variables,
    with_options,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from funcmcp import MCPServer
    from funcmcp._state.keys import CommandKey
    from funcmcp._transports.http.listen_address import ListenAddress
    from funcmcp_cli.log_options import LogOptions
    from funcmcp_cli.served import Served

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


_Hosting: TypeAlias = Literal[
    "http", "triggers", "self-hosted", "docker", "fastapi", "aca", "cloud-run", "fly", "heroku", "kubernetes", "lambda",
    "railway", "render", "systemd", "none",
]  # fmt: skip
"""The hostings of `funcmcp_cli.new`, which is loaded when it is used."""


@app.command(
    epilog=examples(
        "funcmcp new orders",
        "funcmcp new orders --auth entra",
        "funcmcp new orders --hosting docker --database postgres",
        "funcmcp new .",
    )
)
def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The project's name and folder.", show_default=False)],
    *,
    hosting: Annotated[
        _Hosting,
        typer.Option(
            help="Where the project runs. On Azure Functions: by HTTP triggers (http, all of MCP), by Azure's own MCP "
            "triggers (triggers), or as its own server (self-hosted, a custom handler). Elsewhere: docker, fastapi "
            "(inside a FastAPI application), aca (Azure Container Apps), cloud-run, fly, heroku, kubernetes, lambda "
            "(AWS), railway, render or systemd."
        ),
    ] = "http",
    auth: Annotated[
        Literal["key", "entra"],
        typer.Option(
            help="How callers authenticate: on Azure Functions with the app's key and elsewhere not at all (key), or "
            "their users sign in with Microsoft Entra ID from any MCP client (entra)."
        ),
    ] = "key",
    database: Annotated[
        Literal["none", "postgres"],
        typer.Option(help="The database of the server: none, or a pool of connections to PostgreSQL (postgres)."),
    ] = "none",
) -> None:
    """Make a project with tests in a new folder NAME. It is for Azure Functions; --hosting chooses another platform.

    With . as NAME, add the files for the hosting to the server in this folder. No file is replaced. The exit code is 1
    if the server in server.py, which is imported, leaves a tool out of its list.
    """
    from funcmcp_cli.faults import exit_with, faults_of_folder
    from funcmcp_cli.new import add_to, create

    if name == ".":
        faults = faults_of_folder(Path())
        added = add_to(Path(), hosting, auth, database)
        write_line(f"Added: {', '.join(added.written) or 'nothing'}")
        if added.unchanged:
            write_line(f"Not changed: {', '.join(added.unchanged)}")
        for sentence in added.advice:
            write_line(sentence)
        exit_with(faults)
        return
    folder = create(name, Path.cwd(), hosting, auth, database)
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
    from funcmcp_cli import show
    from funcmcp_cli.doctor.examine import examine

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
        "funcmcp run server.py --sign-in-as ada",
        "funcmcp run server.py --stdio",
        "funcmcp run server.py -- --config shop.toml",
        "funcmcp run https://example.com/mcp --stdio --sign-in",
        "funcmcp run --port 8001 -- uvx mcp-server-time",
        "funcmcp run --config mcp.json",
    )
)
@with_options
def run(
    target: Annotated[
        str,
        typer.Argument(
            metavar="[TARGET|URL|-- COMMAND]",
            help=f"The server: {_TARGET}. For a bridge to another server: its URL, or the command that starts it on "
            "stdio.",
        ),
    ] = ".",
    arguments: ServerArguments = None,
    *,
    options: RunOptions,
    program: ProgramOptions,
) -> None:
    """Serve TARGET over HTTP until Ctrl+C or SIGTERM. Calls in flight are finished first.

    A URL, a COMMAND or a client's configuration file (--config) makes a bridge: other servers are served over HTTP,
    or with --stdio on stdin and stdout.

    SIGHUP reloads the code without downtime. If the new code fails, the old code keeps running.
    """
    from funcmcp_cli.served import ServerInFile, served_by

    served = served_by(target, arguments, options, program)
    if served.is_elsewhere:
        check_conflict(options, Conflict.ELSEWHERE, served.is_elsewhere)
    else:
        set_arguments(target, arguments)
    if isinstance(served, ServerInFile) and served.remark:
        write_note(served.remark, error=True)
    serve(served, options)


def serve(served: Served, options: RunOptions) -> None:
    """Serve a server as the options say, until the process is asked to end."""
    from funcmcp._serving.environment import TASK_CONCURRENCY_VARIABLE
    from funcmcp._transports.http.options import keep_alive_seconds, proxies_of_environment, root_path_of_environment

    set_variables(options)
    if options.no_tasks:
        check_conflict(options, Conflict.NO_TASKS)
        os.environ[TASK_CONCURRENCY_VARIABLE] = "0"
    check_queues(options.queue)
    if options.stdio:
        check_conflict(options, Conflict.STDIO)
        _serve_stdio(served)
        return
    if served.needs_one_process and options.process_count > 1:
        raise typer.BadParameter(f"{served.needs_one_process}: leave out --workers.")
    host = checked_host(options.host)
    _check_uds(options)
    address = address_of(host, options.port)
    _allow_hosts(options.allowed_host or [], address.host if host is not None or address.host_variable else None)
    check_variables(keep_alive_seconds, root_path_of_environment, proxies_of_environment)
    _check_tls(options)
    if options.uds is not None:
        options = replace(options, uds=os.path.abspath(options.uds))  # noqa: PTH100 - the code may change the folder
    if options.sign_in_as is not None:
        served = _served_for_user(served, options, address)
    _serve_http(served, options, address)


def _served_for_user(served: Served, options: RunOptions, address: ListenAddress) -> Served:
    """Return a server that clients sign in to as one user; raise Failure or BadParameter if that is not possible."""
    from funcmcp_cli.failure import Failure

    try:
        from funcmcp_cli.local_sign_in import served_for_user
    except ModuleNotFoundError as error:
        raise Failure(f'{error.name} is not installed. --sign-in-as needs: pip install "funcmcp[auth]"') from error
    return served_for_user(served, options, address)


def checked_host(host: str | None) -> str | None:
    """Return the address to listen on as other parts write it: in lower case, and IPv6 without the brackets of URLs."""
    if host is None:
        return None
    if not host.strip():
        raise typer.BadParameter("--host is empty. Pass 127.0.0.1 for this machine only, or 0.0.0.0 for all addresses.")
    if "://" in host:
        raise typer.BadParameter(f"--host {host} is a URL. Pass a name or an address, such as {_host_in(host)}.")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    name, colon, port = host.partition(":")
    if colon and port.isdecimal():
        raise typer.BadParameter(f"The port is an option of its own: --host {name} --port {port}")
    return host.lower()


def _host_in(url: str) -> str:
    """Return the host of a URL. Return an example if it has none."""
    return re.split(r"[/:?#]", url.partition("://")[2])[0] or "127.0.0.1"


def address_of(host: str | None, port: int | None) -> ListenAddress:
    """Return the address to listen on."""
    from funcmcp._transports.http.listen_address import listen_address
    from funcmcp_cli.failure import UsageFailure

    try:
        address = listen_address(host, port, os.environ)
    except ValueError as error:
        raise UsageFailure(str(error)) from None
    return address._replace(host=checked_host(address.host) or address.host)


def _check_uds(options: RunOptions) -> None:
    """Raise BadParameter if there is the path of a Unix socket, and it is empty or an option is for an address."""
    if options.uds is None:
        return
    if not options.uds:
        raise typer.BadParameter("--uds is empty. Pass the path of a socket, such as /run/orders/mcp.sock.")
    check_conflict(options, Conflict.UDS)


def _check_tls(options: RunOptions) -> None:
    """Raise BadParameter if there are some of the files for HTTPS, and one that they need is missing."""
    if options.tls_cert is None and options.tls_key is None:
        if options.client_ca is not None:
            raise typer.BadParameter("--client-ca is for HTTPS: pass --tls-cert and --tls-key as well.")
    elif options.tls_cert is None or options.tls_key is None:
        raise typer.BadParameter("HTTPS needs both --tls-cert and --tls-key.")


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


def set_arguments(target: str, arguments: Sequence[str] | None) -> None:
    """Set ``sys.argv`` to that of a script, for the code of the server; worker processes inherit it.

    Raises:
        typer.BadParameter: The arguments do not follow ``--``, so they are meant for the command.
    """
    if arguments and "--" not in sys.argv:
        text = " ".join(arguments)
        path = f"{target} {text}"
        if Path(path).exists():
            raise typer.BadParameter(f"A path with spaces needs quotes: '{path}'.")
        if which(target):
            raise typer.BadParameter(f"Unexpected argument: {text}. Write a command after --: -- {path}")
        raise typer.BadParameter(
            f"Unexpected argument: {text}. Write arguments of the server after --: {target} -- {text}"
        )
    sys.argv = [target, *(arguments or [])]


def check_queues(names: list[str] | None) -> None:
    """Raise BadParameter or Failure if the name of a queue, in the option or in the environment, is not valid."""
    from functools import partial

    from funcmcp._serving.environment import task_queues
    from funcmcp._state.tasks.queues import check_queue

    for name in names or []:
        try:
            check_queue(name)
        except ValueError as error:
            raise typer.BadParameter(f"--queue: {error}") from None
    check_variables(partial(task_queues, os.environ))


def _serve_stdio(served: Served) -> None:
    from funcmcp._authoring.calling.lifespans import CannotStartError, LifespanError
    from funcmcp._server.log import log_failure
    from funcmcp._server.log_output import is_json
    from funcmcp._serving.composition import runtime_of
    from funcmcp._transports.stdio import StreamError, serve, standard_streams
    from funcmcp_cli.failure import Failure

    try:
        with standard_streams() as (source, sink):  # before the import, whose output must not be on stdout
            server = served.load()
            if is_json():
                runtime_of(server).log_as_json()
            if os.isatty(source):
                write_note(
                    f"{server.name} waits for JSON-RPC messages on stdin, one on each line (Ctrl+D ends it)", error=True
                )
            runtime = runtime_of(server)
            serve(runtime.server, runtime.aclose, runtime.enter_lifespans, source=source, sink=sink)
    except CannotStartError as error:
        raise Failure(str(error)) from error
    except LifespanError as error:
        log_failure(error, "", "add_lifespan")
        raise Failure(str(error)) from error
    except StreamError as error:
        raise Failure(f"{error.strerror}. With --stdio the server needs stdin and stdout for its client.") from error


def _serve_http(served: Served, options: RunOptions, address: ListenAddress) -> None:
    from contextlib import ExitStack

    import funcmcp._processes.server  # noqa: F401 - a missing uvicorn is an error before the server's code runs
    from funcmcp._state.keys import CommandKey
    from funcmcp._state.sessions.ended import shared_with_workers

    key = CommandKey(os.environ)
    with ExitStack() as stack:
        if not options.has_workers:  # processes that replace this one at SIGHUP serve its sessions
            stack.enter_context(shared_with_workers(os.environ))
        with key.in_this_process():
            server = served.load()
        _serve_loaded(server, served, options, address, key)


def _serve_loaded(
    server: MCPServer, served: Served, options: RunOptions, address: ListenAddress, key: CommandKey
) -> None:
    from functools import partial

    from funcmcp._processes.server import Certificate, serve, serve_processes
    from funcmcp._serving.composition import runtime_of
    from funcmcp_cli.log_options import LogOptions, configure, configure_process

    _check_shared_places(server, options)
    certificate = None
    if options.tls_cert is not None and options.tls_key is not None:
        certificate = Certificate(options.tls_cert, options.tls_key, options.client_ca)
    log = LogOptions(options.log_level, options.verbose)
    on_ready = partial(_announce, server, options, address, in_this_process=not options.has_workers)
    root = served.root
    factory = partial(_make_in_worker, served, log, root)
    with _explained_failures(options):
        if options.has_workers:
            configure_process(log)
            runtime_of(server).warn_of_state_with_random_key()  # the workers get the random key of this command
            serve_processes(
                factory,
                host=address.host,
                port=address.port,
                uds=options.uds,
                workers=options.process_count,
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


def _check_shared_places(server: MCPServer, options: RunOptions) -> None:
    """Raise Failure if worker processes would need a store of tasks or a folder that they share, and have none."""
    from funcmcp._serving.composition import runtime_of
    from funcmcp_cli.failure import Failure

    if options.process_count == 1:
        return
    runtime = runtime_of(server)
    tasks, uploads = runtime.server.tasks, runtime.services.uploads
    if tasks is not None and tasks.has_tools and not tasks.store.shared:
        raise Failure(
            f"{server.name} has tools with task=, and stores tasks in the memory of each process. Write "
            'MCPServer(..., tasks=SQLiteTasks("tasks.db")), or leave out --workers.'
        )
    if uploads is not None and not uploads.is_shared:
        raise Failure(
            f"{server.name} takes uploads, and keeps them in a temporary folder of each process. Write "
            "Uploads(folder=...), or leave out --workers."
        )


@contextmanager
def _explained_failures(options: RunOptions) -> Iterator[None]:
    """Raise Failure for the errors of the HTTP server, with the options to correct."""
    from funcmcp._processes.server import AddressError, CertificateError, StartError, WorkerError
    from funcmcp_cli.failure import Failure

    try:
        yield
    except AddressError as error:
        advice = "Choose another address with --host and --port."
        if options.uds is not None:
            advice = "Choose another path with --uds."
        raise Failure(f"{error.strerror}. {advice}") from error
    except CertificateError as error:
        names = "--tls-cert and --tls-key"
        if options.client_ca is not None:
            names = "--tls-cert, --tls-key and --client-ca"
        raise Failure(f"{error.strerror}. Correct {names}.") from error
    except StartError as error:
        raise Failure(str(error)) from error
    except WorkerError as error:
        raise Failure(f"{error} The reason is above.") from error


def _make_in_worker(served: Served, log: LogOptions, root: Path | None) -> MCPServer:
    """Return the server of a worker process, with its log.

    Args:
        served: The server.
        log: The options for the log.
        root: The folder from which the process of the command imported the server. If the target leads elsewhere by
            now, as a symbolic link to the latest release does, no module of this folder may be imported. None without.
    """
    from funcmcp_cli.log_options import configure
    from funcmcp_cli.served import load_or_exit

    with suppress(ValueError):
        sys.path.remove(str(root))
    return configure(load_or_exit(served), log)


def _report_reload(sentence: str, is_failure: bool) -> None:  # noqa: FBT001 - the interface of `on_reload`
    """Print a sentence about a reload on stderr, where the log is."""
    write_note(sentence, error=True, level=logging.WARNING if is_failure else logging.INFO)


def _announce_reload(files: list[Path]) -> None:
    """Print why the server starts again, in a line."""
    if not files:
        write_note("Reloading because of SIGHUP.", error=True, level=logging.INFO)
        return
    names = sorted(map(below_here, files))
    write_note(f"Reloading because {some_of(names, _SHOWN_FILES)} changed.", error=True, level=logging.INFO)


def _announce(
    server: MCPServer, options: RunOptions, address: ListenAddress, origin: str, *, in_this_process: bool
) -> None:
    """Print where the server is, then a warning for each feature that no list can contain.

    Args:
        server: The server.
        options: The options of the command.
        address: The address that it listens on, unless there is a Unix socket.
        origin: Scheme, host and port of its URL.
        in_this_process: Whether this process serves. The warnings then come from a task beside the requests.
    """
    from funcmcp._serving.composition import runtime_of
    from funcmcp._transports.http.listen_address import ONLY_THIS_MACHINE

    runtime = runtime_of(server)
    note = "Ctrl+C stops it"
    if address.origin_note and options.uds is None:
        note = f"{address.origin_note}; {note}"
    url = f"{origin}{runtime.path}"
    write_note(f"{server.name} is served at {url} ({note})")
    if runtime.proxy is not None and runtime.proxy.resource.resource != url:
        _write_public_url(runtime.proxy.resource.resource, runtime.path)
    if address.is_only_platform_port and options.uds is None:
        write_note(ONLY_THIS_MACHINE)
    if address.host in _ALL_ADDRESSES:
        write_note("It also listens at this machine's other addresses. Allow its host names: --allowed-host NAME")
    if options.sign_in_as is not None:
        write_note(
            f"WARNING: Every program and every user of this machine can sign in as the user of --sign-in-as "
            f"{options.sign_in_as}, without the identity provider. Use it for development only.",
            error=True,
        )
    if runtime.keeps_sessions:
        write_note("Sessions are kept in memory and end with this process.")
    if in_this_process:
        hold_until_done(asyncio.get_running_loop().create_task(_warn_of_faults(server)))
    else:
        asyncio.run(_warn_of_faults(server))


def _write_public_url(public_url: str, path: str) -> None:
    """Print the URL for clients of a server with a sign-in. Without a path it is probably incomplete."""
    from urllib.parse import urlsplit

    write_note(f"Users sign in for {public_url}. Give clients this URL.")
    if not urlsplit(public_url).path.strip("/") and path != "/":
        complete = f"{public_url.rstrip('/')}{path}"
        write_note(f"It lacks the path of the endpoint. Unless a proxy adds {path}, write {complete} in the sign-in.")


async def _warn_of_faults(server: MCPServer) -> None:
    from funcmcp_cli.faults import faults_of

    async for fault in faults_of(server):
        write_note(fault, error=True, colour="red")


_SHOWN_FILES = 3
_ALL_ADDRESSES = {"0.0.0.0", "::", ""}  # noqa: S104 - addresses to compare with, not to listen on
