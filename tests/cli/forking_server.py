"""Runs the command, or a Python file, in forks of itself: without the time in which Python imports their modules.

The socket's file descriptor is the argument. Each byte that comes brings three open files: a request in JSON, and those
for stdout and stderr. The answers are the process id at once, and the exit code at the end.
"""

from __future__ import annotations

import gc
import json
import os
import runpy
import socket
import sys
from typing import IO, Any

import httpx2  # noqa: F401 - the commands import it later
import pydantic.types  # noqa: F401 - servers import it

import funcmcp_cli.commands
import funcmcp_cli.connect
import funcmcp_cli.diff.command
import funcmcp_cli.host
import funcmcp_cli.install.command
import funcmcp_cli.main
import funcmcp_cli.migrate.command
import funcmcp_cli.show
import funcmcp_cli.worker


def serve(connection: socket.socket) -> dict[str, Any] | None:
    """Serve requests until the other end closes. Return the request in the fork that has to run it."""
    answers = connection.makefile("w")
    while True:
        message, descriptors, _, _ = socket.recv_fds(connection, 1, 3)
        if not message:
            return None
        file, stdout, stderr = (os.fdopen(descriptor, "r+b") for descriptor in descriptors)
        pid = os.fork()
        if pid == 0:
            connection.close()
            request: dict[str, Any] = json.load(file)
            become(request, stdout, stderr)
            return request
        for sent in (file, stdout, stderr):
            sent.close()
        print(pid, file=answers, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), file=answers, flush=True)


def become(request: dict[str, Any], stdout: IO[bytes], stderr: IO[bytes]) -> None:
    """Make this process like one that has just been started with ``python -m funcmcp_cli.main`` or ``python FILE``."""
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    sys.path[0] = request["folder"]
    sys.argv = [request.get("file") or str(funcmcp_cli.main.__file__), *request["arguments"]]
    sys.modules["__main__"] = funcmcp_cli.main
    os.dup2(stdout.fileno(), 1)
    os.dup2(stderr.fileno(), 2)
    stdout.close()
    stderr.close()


if __name__ == "__main__":
    gc.freeze()
    with socket.socket(fileno=int(sys.argv[1])) as connection:
        requested = serve(connection)
    if requested is not None and "file" in requested:
        # Each file has to import the modules that it uses: those that are loaded here are attributes of the package.
        for name in [name for name in sys.modules if name.partition(".")[0] == "funcmcp"]:
            del sys.modules[name]
        runpy.run_path(requested["file"], run_name="__main__")
    elif requested is not None:
        funcmcp_cli.main.main()
