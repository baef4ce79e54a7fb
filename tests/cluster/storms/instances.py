"""Instances of the server of the storms, each a process of ``funcmcp run``."""

from __future__ import annotations

import asyncio
import signal
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from tests.cli.processes import FUNCMCP, environment
from tests.patience import PATIENCE
from tests.redis_server import free_ports
from tests.serving import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.cluster.storms.places import Place

SERVER = Path(__file__).parent / "server.py"


class Instance:
    """One process on a port of its own.

    Args:
        folder: For its log.
        place: Where its tasks are.
        variables: Of its environment.
        drain: Seconds for which it waits for its tasks after SIGTERM.

    Attributes:
        url: Of its endpoint.
        serves: Whether it accepts connections, as far as is known.
    """

    def __init__(self, folder: Path, place: Place, variables: dict[str, str], *, drain: int) -> None:
        (self._port,) = free_ports(1)
        self.url = f"http://127.0.0.1:{self._port}/mcp"
        self.serves = False
        self.log = folder / f"{self._port}.log"
        self._environment = environment(
            {"STORE": place.store, "STORE_URL": place.url, "PYTHONPATH": str(REPOSITORY), **variables}
        )
        options = ["--port", str(self._port), "--drain", str(drain), "--log-level", "warning", "--no-page"]
        self._command = [*FUNCMCP, "run", str(SERVER), *options]
        self._process: subprocess.Popen[bytes] | None = None

    async def start(self) -> None:
        """Start the process, and wait until it accepts connections."""
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: ASYNC220 - it takes no time that matters here
                self._command, env=self._environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        async with asyncio.timeout(PATIENCE):
            while not self.serves:
                assert self._process.poll() is None, self.log.read_text(encoding="utf-8")[-2000:]
                try:
                    _, writer = await asyncio.open_connection("127.0.0.1", self._port)
                except OSError:
                    await asyncio.sleep(0.05)
                else:
                    writer.close()
                    self.serves = True

    def send(self, number: signal.Signals) -> None:
        """Send the process a signal."""
        assert self._process is not None
        if number in (signal.SIGKILL, signal.SIGTERM):
            self.serves = False
        self._process.send_signal(number)

    async def ended(self) -> int:
        """Wait until the process has ended, and return its exit code."""
        assert self._process is not None
        return await asyncio.to_thread(self._process.wait, PATIENCE)

    def stop(self) -> None:
        """End the process at once."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()


def pick(instances: Sequence[Instance], number: int) -> Instance:
    """Return one of the instances that serve, or any if none does."""
    serving = [instance for instance in instances if instance.serves] or instances
    return serving[number % len(serving)]
