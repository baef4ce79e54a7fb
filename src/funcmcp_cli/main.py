"""The entry point of the ``funcmcp`` command."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import signal
import sys
from copy import copy
from importlib import import_module
from typing import TYPE_CHECKING, NoReturn

from funcmcp import __version__
from funcmcp_cli.failure import Failure

if TYPE_CHECKING:
    from typer import Typer
    from typer.models import CommandInfo

_VERSION = "0.1.0"
"""The version of the distribution funcmcp, which this file is in."""

_EXTRA_LIBRARIES = {"httpx2", "rich", "tomlkit", "typer", "uvicorn", "watchfiles"}
"""The libraries that the distribution funcmcp requires and funcmcp-slim does not."""

_STDOUT = 1
_STDERR = 2

_ENDS = ("SIGTERM", "SIGHUP")
"""Signals at which a command closes its servers and deletes its temporary files. Windows has the first alone."""

_SERVERS = {"run", "front", "host", "worker"}
"""Commands whose failures are records if the log is JSON. They end calls in flight at SIGTERM."""


_MODULES = {
    "new": "funcmcp_cli.commands",
    "doctor": "funcmcp_cli.commands",
    "run": "funcmcp_cli.commands",
    "bundle": "funcmcp_cli.bundle.command",
    "inspect": "funcmcp_cli.client_commands",
    "call": "funcmcp_cli.client_commands",
    "read": "funcmcp_cli.client_commands",
    "prompt": "funcmcp_cli.client_commands",
    "diff": "funcmcp_cli.diff.command",
    "front": "funcmcp_cli.front",
    "host": "funcmcp_cli.host",
    "install": "funcmcp_cli.install.command",
    "discover": "funcmcp_cli.install.discover",
    "migrate": "funcmcp_cli.migrate.command",
    "pin": "funcmcp_cli.pin",
    "record": "funcmcp_cli.record",
    "replay": "funcmcp_cli.record",
    "skills": "funcmcp_cli.skills",
    "tasks": "funcmcp_cli.tasks",
    "worker": "funcmcp_cli.worker",
}
"""The modules that add the commands to the app, in the order of the help."""

_FULL = {errno.EDQUOT, errno.EFBIG, errno.EIO, errno.ENOSPC}
"""The errors of a stream whose disk is full or broken."""


def main() -> None:
    """Run the command. A failure is one line on stderr, and its exit code."""
    _open_missing_stderr()
    _take_all_characters()
    is_server = bool(_SERVERS.intersection(sys.argv[1:2]))
    if not is_server:
        _clean_up_at_signals()
    try:
        _check_distributions()
        _check_command()
        _app()(prog_name="funcmcp")
    except ModuleNotFoundError as error:
        library = (error.name or "").partition(".")[0]
        if library not in _EXTRA_LIBRARIES:
            raise
        sys.exit(f"{library} is not installed. The command line needs: pip install funcmcp")
    except OSError as error:
        if error.errno not in _FULL or error.filename is not None:
            raise
        _exit_without_output(error)
    except Failure as failure:
        from funcmcp_cli.output import write_line, write_server_failure  # noqa: PLC0415 - as above

        if is_server:
            write_server_failure(failure)
        else:
            write_line(failure, error=True)
        sys.exit(failure.exit_code)


def _app() -> Typer:
    """Return the app with only the command that the user wrote, which starts faster; with all if there is none."""
    names = (_MODULES.keys() & sys.argv[1:2]) or _MODULES.keys()
    for name, module in _MODULES.items():
        if name in names:
            import_module(module)
    from funcmcp_cli.commands import app  # noqa: PLC0415 - it cannot be imported without the extra

    narrowed = copy(app)
    narrowed.registered_commands = [command for command in app.registered_commands if _name_of(command) in names]
    narrowed.registered_groups = [group for group in app.registered_groups if group.name in names]
    return narrowed


def _name_of(command: CommandInfo) -> str | None:
    return command.name or getattr(command.callback, "__name__", None)


def _exit_without_output(error: OSError) -> NoReturn:
    """Exit because stdout cannot be written. What is left of the output is dropped, not written again."""
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), _STDOUT)
    sys.exit(f"The output cannot be written: {error.strerror}.")


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
    """Exit with 2 if the command, or an option of it, has another name here."""
    from funcmcp_cli.habits import correction_of  # noqa: PLC0415 - the version needs little
    from funcmcp_cli.output import write_line  # noqa: PLC0415 - it cannot be imported without the extra

    correction = correction_of(sys.argv[1:])
    if correction is not None:
        write_line(correction, error=True)
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
    """Make stdout and stderr accept all characters. On Windows, files and pipes have an encoding with few of them.

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
    if __version__ != _VERSION:
        raise Failure(
            f"funcmcp {_VERSION} and funcmcp-slim {__version__} are installed. They need the same version: "
            f"pip install funcmcp=={__version__}"
        )


if __name__ == "__main__":
    main()
