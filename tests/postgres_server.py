"""A real PostgreSQL server of a test's own, on a socket in a folder of its own."""

from __future__ import annotations

import os
import pwd
import shutil
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


@contextmanager
def postgres_server() -> Iterator[str]:
    """Run a server until the block ends; yield the URL of its database for SQLAlchemy."""
    programs = require("postgres (scripts/setup-postgres.sh)", PROGRAMS if PROGRAMS.exists() else None)
    user = _unprivileged()
    folder = Path(tempfile.mkdtemp(prefix="postgres-"))  # the path of a socket may have about a hundred characters
    try:
        if user:
            os.chown(folder, user["user"], user["group"])
        libraries = ":".join(str(path) for path in PROGRAMS.parent.glob("unpacked-postgres/usr/lib/*-linux-*"))
        environment = {**os.environ, "LD_LIBRARY_PATH": libraries} if libraries else None

        def run(program: str, *arguments: object) -> None:
            command = [str(programs / program), "-D", str(folder / "data"), *map(str, arguments)]
            subprocess.run(command, check=True, capture_output=True, cwd=folder, env=environment, timeout=100, **user)

        run("initdb", "-U", "shop", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
        options = f"-k {folder} -c listen_addresses= -c fsync=off -c max_connections=40"
        run("pg_ctl", "-w", "-t", 90, "-l", folder / "log", "-o", options, "start")
        try:
            yield f"postgresql+psycopg://shop@/postgres?host={folder}"
        finally:
            run("pg_ctl", "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
