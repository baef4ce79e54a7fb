"""Real servers of a test's own: a redis-server on a socket in the test's folder, a cluster, a master with Sentinel."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

from redis import Redis
from redis.exceptions import RedisError

from tests.patience import PATIENCE
from tests.requirements import require
from tests.sockets import free_port

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_BOUNDS = (0, 5461, 10923, 16384)
"""The first slots of the masters of a cluster, and the number of slots."""

REDIS_SERVER = os.environ.get("REDIS_SERVER", "redis-server")
"""The program, which may be another one with the same protocol: ``valkey-server``."""

PROGRAMS = Path(__file__).parents[1] / ".servers" / "bin"


def program(name: str) -> str:
    """Return the path of a program that scripts/setup-redis.sh sets up; skip the test if it is missing."""
    ours = PROGRAMS / name
    return require(f"{name} (scripts/setup-redis.sh)", str(ours) if ours.exists() else shutil.which(name))


class RedisServer:
    """A server that can be stopped, killed and started again; it keeps what it has in its folder.

    Args:
        folder: for its socket and its files.

    Attributes:
        url: for clients.
    """

    def __init__(self, folder: Path) -> None:
        self.url = f"unix://{folder}/redis.sock"
        self._command = [
            *(program(REDIS_SERVER), "--port", "0", "--unixsocket", f"{folder}/redis.sock", "--dir", str(folder)),
            *("--save", "", "--appendonly", "yes", "--appendfsync", "always"),
            *("--hz", "100"),  # Redis ends blocking reads at its ticks; by default they are 100 ms apart
            *("--enable-debug-command", "yes"),
        ]
        self._process: subprocess.Popen[str] | None = None

    def start(self, *options: str) -> None:
        """Start it, and wait until it accepts connections."""
        process = self._process = subprocess.Popen(
            [*self._command, *options], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, encoding="utf-8"
        )
        assert process.stdout is not None
        said = ""
        for line in process.stdout:
            said += line
            if "accept connections" in line:
                return
        raise AssertionError(f"redis-server did not start:\n{said}")

    def stop(self, number: signal.Signals = signal.SIGTERM) -> None:
        """Stop it, if it runs; with SIGKILL at once."""
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(signal.SIGCONT)
            process.send_signal(number)
            process.wait(PATIENCE)
            assert process.stdout is not None
            process.stdout.close()

    def kill(self) -> None:
        """End it at once."""
        self.stop(signal.SIGKILL)

    def pause(self) -> None:
        """Let it answer nobody, with its connections open."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on after a pause."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)


class RedisCluster:
    """Three masters of a Redis Cluster on this machine, each with a third of the slots.

    Args:
        folder: for their files.

    Attributes:
        url: for clients.
        ports: of the masters.
    """

    def __init__(self, folder: Path) -> None:
        ports = free_ports(6)
        self.ports, self._bus_ports = ports[:3], ports[3:]
        self._servers: list[RedisServer] = []
        for port in self.ports:
            (folder / str(port)).mkdir()
            self._servers.append(RedisServer(folder / str(port)))
        self.url = "redis+cluster://" + ",".join(f"127.0.0.1:{port}" for port in self.ports)

    def start(self) -> None:
        """Start the servers, and wait until they are a cluster."""
        for server, port, bus_port in zip(self._servers, self.ports, self._bus_ports, strict=True):
            server.start("--port", str(port), "--cluster-enabled", "yes", "--cluster-port", str(bus_port))
        for index, port in enumerate(self.ports):
            command(port, "CLUSTER SET-CONFIG-EPOCH", index + 1)
            command(port, "CLUSTER ADDSLOTSRANGE", _BOUNDS[index], _BOUNDS[index + 1] - 1)
            command(port, "CLUSTER MEET", "127.0.0.1", self.ports[0], self._bus_ports[0])
        until(lambda: all(_is_ready(port) for port in self.ports))

    def move(self, key: str) -> None:
        """Move the slot of a key to the next master, as resharding does."""
        slot = command(self.ports[0], "CLUSTER KEYSLOT", key)
        (first,) = [index for index in range(3) if _BOUNDS[index] <= slot < _BOUNDS[index + 1]]
        source, target, third = [self.ports[(first + step) % 3] for step in range(3)]
        names = {port: command(port, "CLUSTER MYID") for port in (source, target)}
        command(target, "CLUSTER SETSLOT", slot, "IMPORTING", names[source])
        command(source, "CLUSTER SETSLOT", slot, "MIGRATING", names[target])
        keys = command(source, "CLUSTER GETKEYSINSLOT", slot, 10_000)
        command(source, "MIGRATE", "127.0.0.1", target, "", 0, 5000, "KEYS", *keys)
        for port in (target, source, third):
            command(port, "CLUSTER SETSLOT", slot, "NODE", names[target])

    def stop(self) -> None:
        """End all servers."""
        for server in self._servers:
            server.kill()


class WatchedRedis:
    """A master, a replica, and a Sentinel that makes the replica the master if the master fails.

    Args:
        folder: for their files.

    Attributes:
        url: for clients.
        master: The first master.
        port: Of the first master.
    """

    def __init__(self, folder: Path) -> None:
        self.port, self._replica_port, self._sentinel_port = free_ports(3)
        self._folder = folder
        self._sentinel: subprocess.Popen[bytes] | None = None
        for name in ("master", "replica"):
            (folder / name).mkdir()
        self.master = RedisServer(folder / "master")
        self._replica = RedisServer(folder / "replica")
        # The first Sentinel of the list does not exist.
        self.url = f"redis+sentinel://127.0.0.1:1,127.0.0.1:{self._sentinel_port}/main/0"

    def start(self) -> None:
        """Start the servers, and wait until Sentinel knows the replica."""
        self.master.start("--port", str(self.port))
        self._replica.start("--port", str(self._replica_port), "--replicaof", f"127.0.0.1 {self.port}")
        file = self._folder / "sentinel.conf"
        file.write_text(
            f"port {self._sentinel_port}\nsentinel monitor main 127.0.0.1 {self.port} 1\n"
            "sentinel down-after-milliseconds main 300\nsentinel failover-timeout main 2000\n",
            encoding="utf-8",
        )
        self._sentinel = subprocess.Popen(
            [program(REDIS_SERVER), str(file), "--sentinel"], stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT
        )
        until(lambda: command(self._sentinel_port, "SENTINEL MASTERS")["main"]["num-slaves"] == 1)
        until(lambda: command(self._replica_port, "INFO", "replication")["master_link_status"] == "up")

    def fail_over(self) -> None:
        """Make the replica the master, while the master lives."""
        command(self._sentinel_port, "SENTINEL FAILOVER", "main")
        self.await_failover()
        # Until Sentinel has reached it, the old master takes the commands of open connections, and loses them later.
        until(lambda: command(self.port, "INFO", "replication")["role"] == "slave")

    def await_failover(self) -> None:
        """Wait until Sentinel names the replica as the master, and the replica is one."""
        name = "SENTINEL GET-MASTER-ADDR-BY-NAME"
        until(lambda: command(self._sentinel_port, name, "main")[1] == self._replica_port)
        until(lambda: command(self._replica_port, "INFO", "replication")["role"] == "master")

    def stop(self) -> None:
        """End all servers."""
        if self._sentinel is not None:
            self._sentinel.kill()
            self._sentinel.wait(PATIENCE)
        self.master.kill()
        self._replica.kill()


def free_ports(count: int) -> list[int]:
    """Return different TCP ports that are free now."""
    ports: set[int] = set()
    while len(ports) < count:
        ports.add(free_port())
    return list(ports)


def until(condition: Callable[[], bool]) -> None:
    """Wait until a condition of servers that have just started is true."""
    end = monotonic() + PATIENCE
    while True:
        with contextlib.suppress(RedisError, KeyError):
            if condition():
                return
        assert monotonic() < end, "The servers did not get ready."
        sleep(0.05)


def command(port: int, *words: Any) -> Any:
    """Return the reply of the server at a port to a command."""
    with Redis(port=port) as client:
        execute: Callable[..., Any] = client.execute_command
        return execute(*words)


def _is_ready(port: int) -> bool:
    """Return whether a node sees all slots and all nodes."""
    facts = command(port, "CLUSTER INFO")
    return bool(facts["cluster_state"] == "ok" and facts["cluster_known_nodes"] == "3")


@contextmanager
def redis_cluster() -> Iterator[RedisCluster]:
    """Run a Redis Cluster until the block ends."""
    with tempfile.TemporaryDirectory(prefix="redis-") as folder:
        cluster = RedisCluster(Path(folder))
        try:
            cluster.start()
            yield cluster
        finally:
            cluster.stop()


@contextmanager
def watched_redis() -> Iterator[WatchedRedis]:
    """Run a Redis with a replica and Sentinel until the block ends."""
    with tempfile.TemporaryDirectory(prefix="redis-") as folder:
        redis = WatchedRedis(Path(folder))
        try:
            redis.start()
            yield redis
        finally:
            redis.stop()


@contextmanager
def redis_server() -> Iterator[RedisServer]:
    """Run a server until the block ends."""
    # Not pytest's folder: the path of a socket may have about a hundred characters.
    with tempfile.TemporaryDirectory(prefix="redis-") as folder:
        server = RedisServer(Path(folder))
        server.start()
        try:
            yield server
        finally:
            server.stop(signal.SIGKILL)
