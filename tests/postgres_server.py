"""A real PostgreSQL server of a test's own, on a socket in a folder of its own."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.requirements import require

if TYPE_CHECKING:
    from collections.abc import Iterator

PROGRAMS = Path(__file__).parents[1] / ".servers" / "postgres"


def _unprivileged() -> dict[str, Any]:
    """Return the options of `subprocess` for another user, because PostgreSQL refuses to run as root."""
    if os.getuid() != 0:
        return {}
    user = pwd.getpwnam("nobody")
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


class PostgresServer:
    """A server that can be stopped and started again.

    Args:
        folder: For its socket and its files.
        programs: The folder with the programs of PostgreSQL.

    Attributes:
        url: For clients of libpq.
    """

    def __init__(self, folder: Path, programs: Path) -> None:
        self.url = f"postgresql://shop@/postgres?host={folder}"
        self._folder = folder
        self._programs = programs
        self._user = _unprivileged()
        if self._user:
            os.chown(folder, self._user["user"], self._user["group"])
        libraries = ":".join(str(path) for path in PROGRAMS.parent.glob("unpacked-postgres/usr/lib/*-linux-*"))
        self._environment = {**os.environ, "LD_LIBRARY_PATH": libraries} if libraries else None
        self._run("initdb", "-U", "shop", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")

    def start(self) -> None:
        """Start the server, and wait until it accepts connections."""
        options = f"-k {self._folder} -c listen_addresses= -c fsync=off -c max_connections=60"
        self._run("pg_ctl", "-w", "-t", 90, "-l", self._folder / "log", "-o", options, "start")

    def kill(self) -> None:
        """End it at once. It recovers at the next start."""
        self._run("pg_ctl", "-m", "immediate", "stop")

    def pause(self) -> None:
        """Let it answer nobody, with its connections open."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on after a pause."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        pid = int((self._folder / "data" / "postmaster.pid").read_text().splitlines()[0])
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text()
        for process in [pid, *map(int, children.split())]:
            os.kill(process, number)

    def _run(self, program: str, *arguments: object) -> None:
        command = [str(self._programs / program), "-D", str(self._folder / "data"), *map(str, arguments)]
        options: dict[str, Any] = {"cwd": self._folder, "env": self._environment, "timeout": 100, **self._user}
        subprocess.run(command, check=True, capture_output=True, **options)


@contextmanager
def postgres_server() -> Iterator[PostgresServer]:
    """Run a server until the block ends."""
    programs = require("postgres (scripts/setup-postgres.sh)", PROGRAMS if PROGRAMS.exists() else None)
    folder = Path(tempfile.mkdtemp(prefix="postgres-"))  # the path of a socket may have about a hundred characters
    try:
        server = PostgresServer(folder, programs)
        server.start()
        try:
            yield server
        finally:
            server.kill()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
