"""A real redis-server of a test's own, on a socket in the test's folder."""

from __future__ import annotations

import shutil
import signal
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.patience import PATIENCE
from tests.requirements import require

if TYPE_CHECKING:
    from collections.abc import Iterator

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
            *(program("redis-server"), "--port", "0", "--unixsocket", f"{folder}/redis.sock", "--dir", str(folder)),
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
