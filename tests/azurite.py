"""A real Azurite, Microsoft's emulator of Azure Storage, on loopback; the fixture `azurite` is in conftest.py."""

from __future__ import annotations

import re
import signal
import subprocess
import tempfile
from typing import TYPE_CHECKING

from tests import nodejs
from tests.patience import PATIENCE
from tests.requirements import require

if TYPE_CHECKING:
    from types import TracebackType

ACCOUNT = "devstoreaccount1"
ACCOUNT_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""The key that everybody's Azurite has."""

_PROGRAM = nodejs.HOME / "azurite" / "node_modules" / "azurite" / "dist" / "src" / "azurite.js"
_LISTENING = re.compile(r"Azurite (\w+) service is successfully listening at http://127\.0\.0\.1:(\d+)")


class Azurite:
    """The blob, queue and table service on free ports.

    Args:
        on_disk: Whether the data are in a folder, so that they are there after `stop` and `start`. Azurite writes them
            when it ends, and every five seconds. Otherwise they are in memory.

    Attributes:
        blob_port: The port of the blob service; 0 before `start`.
        queue_port: The port of the queue service.
        table_port: The port of the table service.
    """

    def __init__(self, *, on_disk: bool = False) -> None:
        self.blob_port = self.queue_port = self.table_port = 0
        self._on_disk = on_disk
        self._process: subprocess.Popen[str] | None = None
        self._folder = tempfile.TemporaryDirectory(prefix="azurite-")

    @property
    def port(self) -> int:
        """The port of the blob service."""
        return self.blob_port

    @property
    def connection_string(self) -> str:
        """The connection string for the three services."""
        ports = {"Blob": self.blob_port, "Queue": self.queue_port, "Table": self.table_port}
        endpoints = "".join(f"{name}Endpoint=http://127.0.0.1:{port}/{ACCOUNT};" for name, port in ports.items())
        return f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={ACCOUNT_KEY};{endpoints}"

    def start(self) -> None:
        """Start it and wait until its services listen; skip the test if it is missing (fail in CI)."""
        program = require("Azurite (scripts/setup-azurite.sh)", _PROGRAM if _PROGRAM.exists() else None)
        place = ["--location", self._folder.name] if self._on_disk else ["--inMemoryPersistence"]
        ports_before = {"--blobPort": self.blob_port, "--queuePort": self.queue_port, "--tablePort": self.table_port}
        process = self._process = subprocess.Popen(
            [
                *(str(nodejs.node()), str(program), *place, "--disableTelemetry", "--skipApiVersionCheck", "--silent"),
                *(word for option, port in ports_before.items() for word in (option, str(port))),
            ],
            cwd=self._folder.name,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
        )
        assert process.stdout is not None
        output = ""
        ports: dict[str, int] = {}
        for line in process.stdout:
            output += line
            match = _LISTENING.search(line)
            if match is not None:
                ports[match[1]] = int(match[2])
            if len(ports) == len(("Blob", "Queue", "Table")):
                self.blob_port, self.queue_port, self.table_port = ports["Blob"], ports["Queue"], ports["Table"]
                return
        self.aclose()
        raise AssertionError(f"Azurite did not start:\n{output}")

    def stop(self) -> None:
        """End the process in the ordinary way, so that `start` continues with its data on the same ports."""
        process, self._process = self._process, None
        assert process is not None
        process.terminate()
        process.wait(PATIENCE)
        assert process.stdout is not None
        process.stdout.close()

    def pause(self) -> None:
        """Let it answer nobody, with its connections open."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on after a pause."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def aclose(self) -> None:
        """End the process, and remove its folder."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()  # its data is in memory
            process.wait(PATIENCE)
            assert process.stdout is not None
            process.stdout.close()
        self._folder.cleanup()

    def __enter__(self) -> Azurite:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.aclose()
