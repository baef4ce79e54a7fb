"""The entry point of the ``funcmcp`` command."""

from __future__ import annotations

import io
import itertools
import os
import signal
import sys
from typing import NoReturn

from funcmcp_cli.failure import Failure

_EXTRA_LIBRARIES = {"httpx2", "rich", "tomlkit", "typer", "uvicorn", "watchfiles"}
"""The libraries that the distribution funcmcp requires and funcmcp-slim does not."""

_STDERR = 2

_ELSEWHERE = {
    "bridge": "run URL --stdio",
    "create": "new",
    "dev": "run --reload",
    "get": "read",
    "init": "new",
    "inspector": "run, and open the endpoint in a browser",
    "list": "inspect",
    "prompts": "inspect",
    "proxy": "run URL",
    "resources": "inspect",
    "serve": "run",
    "start": "run (or funcmcp host for a function app)",
    "test": "call",
    "tools": "inspect",
    "validate": "doctor",
    "version": "--version",
}
"""Commands of FastMCP, of the official SDK and of similar programs that have another name here."""

_OPTIONS_ELSEWHERE = {
    "--no-banner": "There is no banner.",
    "--path": "Write MCPServer(http=HTTPOptions(path=...)) in the code, and --root-path for a path of a proxy.",
    "--skip-env": "The server runs in the Python environment of this command.",
    "--stateless": "Sessions are signed, so that every process can serve them.",
    "--transport": "run serves HTTP, and --stdio serves stdin and stdout.",
    "-t": "run serves HTTP, and --stdio serves stdin and stdout.",
}
"""Options of `fastmcp run` and `mcp run` that are not here, and what to use."""


_ENDS = ("SIGTERM", "SIGHUP")
"""Signals at which a command closes its servers and deletes its temporary files. Windows has the first alone."""

_SERVERS = {"run", "front", "host", "worker"}
"""Commands whose failures are records if the log is JSON. They end calls in flight at SIGTERM."""


def main() -> None:
    """Run the command. A failure is one line on stderr, and its exit code."""
    _open_missing_stderr()
    _take_all_characters()
    is_server = bool(_SERVERS.intersection(sys.argv[1:2]))
    if not is_server:
        _clean_up_at_signals()
    try:
        _check_distributions()
        import funcmcp_cli.bundle.command  # noqa: PLC0415 - it adds its command to the app
        import funcmcp_cli.client_commands  # noqa: PLC0415 - as above
        import funcmcp_cli.diff.command  # noqa: PLC0415 - as above
        import funcmcp_cli.front  # noqa: PLC0415 - as above
        import funcmcp_cli.host  # noqa: PLC0415 - as above
        import funcmcp_cli.install.command  # noqa: PLC0415 - as above
        import funcmcp_cli.install.discover  # noqa: PLC0415 - as above
        import funcmcp_cli.migrate.command  # noqa: PLC0415 - as above
        import funcmcp_cli.pin  # noqa: PLC0415 - as above
        import funcmcp_cli.record  # noqa: PLC0415 - as above
        import funcmcp_cli.skills  # noqa: PLC0415 - as above
        import funcmcp_cli.tasks  # noqa: PLC0415 - as above
        import funcmcp_cli.worker  # noqa: F401, PLC0415 - as above
        from funcmcp_cli.commands import app  # noqa: PLC0415 - it cannot be imported without the extra

        _check_command()
        app(prog_name="funcmcp")
    except ModuleNotFoundError as error:
        library = (error.name or "").partition(".")[0]
        if library not in _EXTRA_LIBRARIES:
            raise
        sys.exit(f"{library} is not installed. The command line needs: pip install funcmcp")
    except Failure as failure:
        from funcmcp_cli.output import write_line, write_server_failure  # noqa: PLC0415 - as above

        if is_server:
            write_server_failure(failure)
        else:
            write_line(failure, error=True)
        sys.exit(failure.exit_code)


def _clean_up_at_signals() -> None:
    """Exit at SIGTERM and SIGHUP as at an exception. Another one ends the process at once."""
    numbers = [getattr(signal, name) for name in _ENDS if hasattr(signal, name)]
    caught = [number for number in numbers if signal.getsignal(number) is signal.SIG_DFL]  # not below nohup

    def end(number: int, _: object) -> NoReturn:
        for other in caught:
            signal.signal(other, signal.SIG_DFL)
        sys.exit(128 + number)

    for number in caught:
        signal.signal(number, end)


def _check_command() -> None:
    """Exit with the name that a command, or an option of ``run``, of FastMCP or of the official SDK has here."""
    name, *arguments = sys.argv[1:] or [""]
    if name in _ELSEWHERE:
        _exit_with_usage(f"No such command '{name}'. Did you mean funcmcp {_ELSEWHERE[name]}?")
    if name == "run":
        for argument in itertools.takewhile(lambda argument: argument != "--", arguments):
            option = argument.partition("=")[0]
            if option in _OPTIONS_ELSEWHERE:
                _exit_with_usage(f"No such option: {option}. {_OPTIONS_ELSEWHERE[option]}")


def _exit_with_usage(message: str) -> NoReturn:
    from funcmcp_cli.output import write_line  # noqa: PLC0415 - it cannot be imported without the extra

    write_line(message, error=True)
    sys.exit(2)


def _open_missing_stderr() -> None:
    """Open stderr on the null device if the caller has closed it.

    Otherwise Python has no object for it, and the next file or socket gets its number.
    """
    if sys.stderr is None:
        descriptor = os.open(os.devnull, os.O_WRONLY)
        if descriptor != _STDERR:
            os.dup2(descriptor, _STDERR)
            os.close(descriptor)
        os.set_inheritable(_STDERR, True)
        sys.stderr = open(_STDERR, "w", encoding="utf-8")  # noqa: SIM115 - the descriptor stays open


def _take_all_characters() -> None:
    """Let stdout and stderr take all characters. On Windows, files and pipes have an encoding with few of them.

    They get UTF-8, which Python 3.15 makes the default, unless PYTHONIOENCODING names another encoding.
    """
    for stream in (sys.stdout, sys.stderr):
        if not isinstance(stream, io.TextIOWrapper):
            continue
        if sys.platform == "win32" and not stream.isatty() and not os.environ.get("PYTHONIOENCODING"):
            stream.reconfigure(encoding="utf-8")
        stream.reconfigure(errors="backslashreplace")


def _check_distributions() -> None:
    """Raise Failure if the command and the library have different versions.

    pip installs another version of one of them with a warning only.
    """
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415 - `python -m` alone needs it

    try:
        command, library = version("funcmcp"), version("funcmcp-slim")
    except PackageNotFoundError:  # the library without the command, or an archive of both
        return
    if command != library:
        raise Failure(
            f"funcmcp {command} and funcmcp-slim {library} are installed. They need the same version: "
            f"pip install funcmcp=={library}"
        )


if __name__ == "__main__":
    main()
