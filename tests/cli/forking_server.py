"""Runs the command, or a Python file, in forks of itself: without the time in which Python imports their modules.

The socket's file descriptor is the argument. Each byte that comes brings four open files: a request in JSON, those for
stdout and stderr, and a socket. The answers on that socket are the process id at once, and the exit code at the end. A
process for each request waits for that end, so that several requests run at the same time.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import importlib
import json
import os
import runpy
import socket
import sys
import threading
from typing import IO, Any, NoReturn

import azure.functions  # noqa: F401 - projects that the doctor imports use it
import httpx2  # noqa: F401 - the commands import it later
import pydantic.types  # noqa: F401 - servers import it
import typer.main
import uvicorn.main
import uvicorn.protocols.http.httptools_impl
import uvicorn.protocols.websockets.wsproto_impl  # noqa: F401 - what uvicorn imports when it starts
import uvloop  # noqa: F401 - as above

import funcmcp._adapters.uvicorn.protocols
import funcmcp._processes.server  # noqa: F401 - `funcmcp run` imports both later
import funcmcp_cli.bundle.command
import funcmcp_cli.client_commands
import funcmcp_cli.commands
import funcmcp_cli.connect
import funcmcp_cli.diff.command
import funcmcp_cli.doctor.probe
import funcmcp_cli.front
import funcmcp_cli.host
import funcmcp_cli.install.command
import funcmcp_cli.install.discover
import funcmcp_cli.main
import funcmcp_cli.migrate.command
import funcmcp_cli.pin
import funcmcp_cli.record
import funcmcp_cli.show
import funcmcp_cli.skills
import funcmcp_cli.tasks
import funcmcp_cli.worker


def serve(connection: socket.socket) -> dict[str, Any] | None:
    """Serve requests until the other end closes. Return the request in the fork that has to run it."""
    while True:
        message, descriptors, _, _ = socket.recv_fds(connection, 1, 4)
        if not message:
            return None
        if os.fork() == 0:
            connection.close()
            return fork(descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


def fork(descriptors: list[int]) -> dict[str, Any]:
    """Return the request in a new process. This one answers with its id and its exit code, and exits."""
    file, stdout, stderr = (os.fdopen(descriptor, "r+b", buffering=0) for descriptor in descriptors[:3])
    with socket.socket(fileno=descriptors[3]) as answers:
        pid = os.fork()
        if pid != 0:
            for other_file in (file, stdout, stderr):
                other_file.close()
            answers.sendall(b"%d\n" % pid)
            code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            with contextlib.suppress(OSError):  # the test has not waited
                answers.sendall(b"%d\n" % code)
            os._exit(0)
    with file:
        request: dict[str, Any] = json.load(file)
    become(request, stdout, stderr)
    return request


def become(request: dict[str, Any], stdout: IO[bytes], stderr: IO[bytes]) -> None:
    """Make this process like one that has just been started with ``python -m funcmcp_cli.main`` or ``python FILE``.

    `PYTHONUNBUFFERED` has its effect on stdout, and `PYTHONSAFEPATH` and `PYTHONPATH` on modules that are not loaded.
    """
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    first = [] if "PYTHONSAFEPATH" in os.environ else [request["folder"]]
    sys.path[:1] = [*first, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    sys.argv = [request.get("file") or str(funcmcp_cli.main.__file__), *request["arguments"]]
    sys.modules["__main__"] = funcmcp_cli.main
    os.dup2(stdout.fileno(), 1)
    os.dup2(stderr.fileno(), 2)
    stdout.close()
    stderr.close()
    # The text streams of this process were made for files that can seek. To change them fails on a pipe.
    buffering = 1 if "PYTHONUNBUFFERED" in os.environ else -1
    sys.stdout = open(  # noqa: SIM115 - open until the end
        1, "w", encoding=sys.stdout.encoding, buffering=buffering, closefd=False
    )
    sys.stderr = open(  # noqa: SIM115 - as above
        2, "w", encoding=sys.stderr.encoding, errors="backslashreplace", buffering=1, closefd=False
    )


def run(request: dict[str, Any]) -> None:
    """Run the file, the main function of a module, or the command."""
    if "file" in request:
        # Each file has to import the public modules that it uses: those that are loaded are attributes of the package.
        public = [
            name for name in sys.modules if f"{name}.".startswith("funcmcp.") and not name.startswith("funcmcp._")
        ]
        for name in public:
            del sys.modules[name]
        runpy.run_path(request["file"], run_name="__main__")
    elif "module" in request:
        importlib.import_module(request["module"]).main()
    else:
        funcmcp_cli.main.main()


def code_of(request: dict[str, Any]) -> int:
    """Run a request; return its exit code. An exception ends the process as always."""
    try:
        run(request)
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        print(end.code, file=sys.stderr)
        return 1
    return 0


def exit_with(code: int) -> NoReturn:
    """End this process as Python does, but keep its objects: to delete them takes most of a short command's time."""
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()
    atexit._run_exitfuncs()
    with contextlib.suppress(OSError, ValueError):
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(code)
    sys.exit(code)  # Python reports what it can't flush


if __name__ == "__main__":
    # typer takes half of the time of a short command to make its objects, which are the same in each fork.
    vars(typer.main)["get_command"] = functools.cache(typer.main.get_command)
    typer.main.get_command(funcmcp_cli.commands.app)
    gc.freeze()
    with socket.socket(fileno=int(sys.argv[1])) as connection:
        requested = serve(connection)
    if requested is not None:
        exit_with(code_of(requested))
