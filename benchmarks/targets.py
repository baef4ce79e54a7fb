"""The servers that are measured, each in a process of its own on one core."""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

HERE = Path(__file__).parent
SERVERS = HERE / "servers"
SERVER_CORE, LOAD_CORE = 0, 1
FRAMEWORKS = ("funcmcp", "mcp", "fastmcp")
RUN = "funcmcp run"
"""funcmcp under its own command, which answers most requests without ASGI; `funcmcp` is the same server in uvicorn."""

LIMITS = ("const", "floor")


def environment(settings: Mapping[str, object]) -> dict[str, str]:
    """Return the environment of a target."""
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**inherited, **{name: str(value) for name, value in settings.items()}}


def free_port() -> int:
    """Return a port that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Target:
    """One running server.

    Args:
        name: which one, such as `funcmcp`. Names that begin with `funcmcp run` are served by that command, others by
            uvicorn.
        command: Returns another command for a port.
        core: The core that it runs on.
        settings: its environment variables: BENCH_TOOLS, BENCH_PLAIN, BENCH_BODY.
    """

    def __init__(
        self,
        name: str,
        command: Callable[[int], list[str]] | None = None,
        *,
        core: int = SERVER_CORE,
        **settings: object,
    ) -> None:
        self.name = name
        self.port = free_port()
        self.started = time.perf_counter()
        arguments = (command or self._command)(self.port)
        self._process = subprocess.Popen(
            ["taskset", "-c", str(core), *arguments],
            cwd=SERVERS,
            env=environment(settings),
            stdout=subprocess.DEVNULL,
        )

    def _command(self, port: int) -> list[str]:
        if self.name.startswith(RUN):
            file = f"funcmcp{self.name.removeprefix(RUN).replace(' ', '_')}_server.py"
            return [sys.executable, "-m", "funcmcp", "run", f"{file}:app", "--port", str(port)]
        command = [sys.executable, "-m", "uvicorn", f"{self.name}_server:app", "--port", str(port)]
        command += ["--loop", "uvloop", "--http", "httptools", "--no-access-log", "--log-level", "warning"]
        return [*command, "--timeout-keep-alive", "60"]  # clients of tasks wait longer than uvicorn's five seconds

    def wait(self, seconds: float = 60) -> Self:
        """Wait until the server accepts connections."""
        deadline = time.perf_counter() + seconds
        while time.perf_counter() < deadline:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1):
                return self
            if self._process.poll() is not None:
                raise RuntimeError(f"{self.name} ended with code {self._process.returncode}.")
            time.sleep(0.002)
        raise RuntimeError(f"{self.name} did not come up.")

    def memory(self) -> int:
        """Return the resident memory in KiB."""
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))

    def cpu(self) -> float:
        """Return the CPU seconds that the process has used."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self) -> None:
        """End the server."""
        self._process.terminate()
        try:
            self._process.wait(15)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


@contextlib.contextmanager
def running(names: tuple[str, ...], **settings: object) -> Iterator[dict[str, Target]]:
    """Run several targets at once; the ones that are not under load cost nothing."""
    targets = {name: Target(name, None, core=SERVER_CORE, **settings) for name in names}
    try:
        for target in targets.values():
            target.wait()
        yield targets
    finally:
        for target in targets.values():
            target.stop()


@contextlib.contextmanager
def no_sleep() -> Iterator[None]:
    """Keep idle cores from sleeping, where Linux lets this user do so (root), and say so where it does not.

    wrk sleeps when it has read every answer. The process that sends the next one pays for waking its core, which takes
    long in a virtual machine. That would cost a slow server more for each answer than a fast one, to which wrk is busy
    all the time. Source: the kernel's "PM Quality Of Service Interface".
    """
    with contextlib.ExitStack() as stack:
        try:
            device = stack.enter_context(Path("/dev/cpu_dma_latency").open("wb", buffering=0))
            device.write(struct.pack("i", 0))  # in force until the file is closed
        except OSError as error:
            print(f"Idle cores may sleep: {error}. Servers that are slower than wrk pay for waking it.")
        yield


def rotated(names: tuple[str, ...], turn: int) -> tuple[str, ...]:
    """Return the names in another order each round, so that none is always measured first."""
    turn %= len(names)
    return names[turn:] + names[:turn]
