"""Python programs that run as on another system: its name in `sys.platform`, and without what it does not have.

How it works: the modules of Python and of others are imported first, so they are those of this system. Then names are
removed, and only the modules of funcmcp, which are imported later, see another system.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Final

from tests.patience import PATIENCE
from tests.serving import REPOSITORY

_FIRST: Final = """
import asyncio.subprocess, concurrent.futures, ctypes, http.client, importlib, multiprocessing.connection, os, pathlib
import select, shutil, signal, socket, sqlite3, ssl, subprocess, sys, tempfile, types, uuid, webbrowser, zipfile
import zoneinfo
import click, httpx2, pydantic, rich.progress, rich.prompt, typer, uvicorn, uvicorn.main, watchfiles

def remove(module, *names):
    for name in names:
        if hasattr(module, name):
            delattr(module, name)
"""

_CHANGES: Final = {
    "win32": """
remove(os, "O_DIRECTORY", "O_NOCTTY", "O_NOFOLLOW", "O_NONBLOCK", "fork", "geteuid", "getuid", "killpg", "memfd_create")
remove(signal, "ITIMER_REAL", "SIGHUP", "SIGKILL", "SIGUSR1", "setitimer")
remove(socket, "MSG_DONTWAIT")
remove(select, "POLLIN", "poll")
os.supports_dir_fd.clear()
for name in ("fcntl", "grp", "pwd", "resource", "termios"):
    sys.modules[name] = None
msvcrt = types.ModuleType("msvcrt")
msvcrt.LK_NBLCK = 2
msvcrt.locking = lambda descriptor, mode, count: None
sys.modules["msvcrt"] = msvcrt
for name in ("uvloop", "httptools"):
    sys.modules[name] = None
sys.platform = "win32"
""",
    "darwin": """
remove(os, "memfd_create")
sys.platform = "darwin"
""",
}

SYSTEMS: Final = tuple(_CHANGES)


def program(system: str, code: str, first: str = "") -> str:
    """Return a program that runs code as on a system, after other code that sees this one."""
    return f"{_FIRST}{first}{_CHANGES[system]}{code}"


def output_of(system: str, code: str, *, first: str = "", **environment: str) -> str:
    """Run code as `program` does, and return what it prints. It is an error if it fails."""
    run = subprocess.run(
        [sys.executable, "-c", program(system, code, first)],
        capture_output=True, text=True, encoding="utf-8", timeout=PATIENCE, check=False, cwd=REPOSITORY,
        env={**os.environ, **environment},
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    return run.stdout
