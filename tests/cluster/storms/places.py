"""Where the tasks of a storm are kept: real servers that are killed, suspended and filled, and files."""

from __future__ import annotations

import contextlib
import json
import random
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import sleep
from typing import TYPE_CHECKING, Any

import psycopg
from redis import Redis

from tests.azurite import Azurite
from tests.patience import PATIENCE
from tests.postgres_server import postgres_server
from tests.redis_server import free_ports, redis_server, until
from tests.serving import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cluster.storms.storms import Storm

DISK_BYTES = 8 * 1024 * 1024


@dataclass
class Place:
    """Where the tasks are.

    Attributes:
        store: "redis", "sqlite", "postgres" or "azure".
        url: Of the store, for its clients.
        server: The process, which can be killed, started, paused and resumed; None for a file.
        folder: The folder of a file.
        counts: Where the port that cuts connections writes what it did.
    """

    store: str
    url: str
    server: Any = None
    folder: Path | None = None
    counts: Path | None = None

    def fill_redis(self) -> None:
        """Give Redis no more memory than it uses."""
        with Redis.from_url(self.server.url) as client:
            used: Any = client.info("memory")
            client.config_set("maxmemory-policy", "noeviction")
            client.config_set("maxmemory", used["used_memory"] - 1)

    def empty_redis(self) -> None:
        """Let Redis use as much memory as it needs."""
        with Redis.from_url(self.server.url) as client:
            client.config_set("maxmemory", 0)

    def fill_disk(self) -> None:
        """Leave no space on the disk."""
        assert self.folder is not None
        with contextlib.suppress(OSError), (self.folder / "ballast").open("ab", buffering=0) as ballast:
            while True:
                ballast.write(bytes(4096))

    def empty_disk(self) -> None:
        """Leave the disk to the store."""
        assert self.folder is not None
        (self.folder / "ballast").unlink()

    def cut_postgres(self, count: int) -> None:
        """End so many connections of the instances, one after the other."""
        query = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'funcmcp %'"
        with psycopg.connect(self.url, autocommit=True) as connection:
            for _ in range(count):
                connection.execute(f"{query} ORDER BY random() LIMIT 1")
                sleep(random.uniform(0, 0.1))

    def cuts(self) -> dict[str, Any]:
        """Return what the port that cuts connections did."""
        if self.counts is None or not self.counts.exists():
            return {}
        counts: dict[str, Any] = json.loads(self.counts.read_text(encoding="utf-8"))
        return counts


@contextmanager
def place_of(storm: Storm) -> Iterator[Place]:
    """Yield the place for the tasks of a storm."""
    with tempfile.TemporaryDirectory(prefix="storm-") as name:
        folder = Path(name)
        match storm.store:
            case "redis":
                with redis_server() as redis, _port(storm, redis.url, folder) as (url, counts):
                    yield Place("redis", url, redis, counts=counts)
            case "postgres":
                with postgres_server() as postgres:
                    yield Place("postgres", postgres.url, postgres)
            case "azure":
                with Azurite(on_disk=True) as azurite:
                    yield Place("azure", azurite.connection_string, azurite)
            case "sqlite on a small disk":
                with _small_disk(folder):
                    yield Place("sqlite", str(folder / "tasks.db"), folder=folder)
            case _:
                yield Place("sqlite", str(folder / "tasks.db"), folder=folder)


@contextmanager
def _small_disk(folder: Path) -> Iterator[None]:
    """Mount a file system of a few MiB at a folder; only root may do that."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(folder)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@contextmanager
def _port(storm: Storm, url: str, folder: Path) -> Iterator[tuple[str, Path | None]]:
    """Yield the URL of a Redis, or of the port that disturbs its connections."""
    if not (storm.replies or storm.slow or storm.reset):
        yield url, None
        return
    (port,) = free_ports(1)
    counts = folder / "counts.json"
    options = ["--replies", storm.replies, "--slow", storm.slow, "--reset", storm.reset]
    command = [sys.executable, "-m", "tests.cluster.storms.reply_cutter", url.removeprefix("unix://"), port, counts]
    with subprocess.Popen([str(word) for word in [*command, *options]], cwd=REPOSITORY) as process:
        try:
            until(counts.exists)
            yield f"redis://127.0.0.1:{port}/0", counts
        finally:
            process.terminate()
            process.wait(PATIENCE)
