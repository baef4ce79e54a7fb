"""A real Azurite, Microsoft's emulator of Azure Storage, on loopback; the fixture `azurite` is in conftest.py."""

from __future__ import annotations

import re
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
    """The blob, queue and table service on free ports, with their data in memory.

    Attributes:
        blob_port: The port of the blob service; 0 before `start`.
        queue_port: The port of the queue service.
        table_port: The port of the table service.
    """

    def __init__(self) -> None:
        self.blob_port = self.queue_port = self.table_port = 0
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
        process = self._process = subprocess.Popen(
            [
                *(str(nodejs.node()), str(program), "--inMemoryPersistence", "--disableTelemetry"),
                *("--blobPort", "0", "--queuePort", "0", "--tablePort", "0", "--skipApiVersionCheck", "--silent"),
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
