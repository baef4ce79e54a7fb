"""Clients on Node sign in at a server with a proxy: the TypeScript SDKs, mcp-remote, and the conformance suite."""

from __future__ import annotations

import asyncio
import json
import queue
import re
import subprocess
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from funcmcp.state import SQLiteSignIns
from tests import nodejs
from tests.adapters.asgi.test_application_servers import wait_for
from tests.patience import PATIENCE
from tests.sign_in.browsing import BACK, visit
from tests.sign_in.people import SignIn, signed_in
from tests.sockets import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.slow("Clients and identity providers of others start for each case.")

HERE = Path(__file__).parent
_URL = re.compile(r"(http://127\.0\.0\.1:\d+(?:/orders)?/oauth/authorize\?\S+)")


@pytest.fixture(scope="module", params=["no store", "a store"])
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SignIn]:
    has_store = request.param == "a store"
    store = SQLiteSignIns(tmp_path_factory.mktemp("store") / "sign-ins.db") if has_store else None
    with signed_in(path="/orders" if has_store else "", store=store) as running:
        yield running


@pytest.mark.parametrize("sdk", ["v1", "v2"])
def test_a_typescript_client_signs_in_calls_and_refreshes(served: SignIn, sdk: str) -> None:
    script = HERE / "typescript_client.mjs"
    command = [str(nodejs.node()), str(script), str(nodejs.HOME), sdk, served.url, BACK, sdk]
    run = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert run.returncode == 0, run.stderr
    printed: dict[str, Any] = json.loads(run.stdout)
    assert [result["subject"] for result in printed["results"]] == [sdk, sdk]
    first, second = printed["tokens"]
    assert printed["outcome"] == "AUTHORIZED"
    assert first["access_token"] != second["access_token"]
    assert first["refresh_token"] != second["refresh_token"]


class Lines:
    """The lines that a process writes, as they come."""

    def __init__(self, pipe: Any) -> None:
        self.text = ""
        self._lines: queue.Queue[str | None] = queue.Queue()
        self._reader = threading.Thread(target=self._read, args=(pipe,))
        self._reader.start()

    def _read(self, pipe: Any) -> None:
        for line in pipe:
            self._lines.put(line)
        self._lines.put(None)

    def end(self) -> None:
        """Wait until the process has ended, and read what it has written."""
        self._reader.join(PATIENCE)
        while (line := self._lines.get_nowait()) is not None:
            self.text += line
        self._lines.put(None)

    def find(self, pattern: re.Pattern[str]) -> re.Match[str]:
        """Wait for a line with a pattern."""
        while True:
            line = self._lines.get(timeout=PATIENCE)
            if line is None:
                raise AssertionError(self.text)
            self.text += line
            match = pattern.search(line)
            if match is not None:
                return match


@contextmanager
def running(*command: str, environment: dict[str, str] | None = None, folder: Path | None = None) -> Iterator[Lines]:
    """Run a program on Node until the block ends; give the lines that it writes."""
    arguments = [str(nodejs.node()), *command]
    with subprocess.Popen(
        arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment, cwd=folder
    ) as process:
        lines = Lines(process.stdout)
        try:
            yield lines
        finally:
            process.kill()
            lines.end()


def test_mcp_remote_signs_in_and_connects(served: SignIn, tmp_path: Path) -> None:
    client = nodejs.package("mcp-remote") / "dist" / "client.js"
    # Without a path it finds no program to open a browser with, and prints the address.
    environment = {"MCP_REMOTE_CONFIG_DIR": str(tmp_path), "PATH": str(tmp_path), "HOME": str(tmp_path)}
    port = free_port()
    arguments = [str(client), served.url, str(port), "--host", "127.0.0.1"]
    with running(*arguments, environment=environment) as lines:
        address = lines.find(_URL)[1]
        wait_for(port)  # the client may print the address before it listens
        asyncio.run(visit(address, "remo"))
        lines.find(re.compile(r"Connected successfully"))


def test_the_authorization_scenarios_of_the_conformance_suite_pass(served: SignIn, tmp_path: Path) -> None:
    suite = nodejs.package("conformance-0.2") / "dist" / "index.js"
    port = free_port()
    metadata = {"redirect_uris": [f"http://127.0.0.1:{port}/callback"], "client_name": "conformance"}
    client_id = httpx2.post(f"{served.origin}/oauth/register", json=metadata).json()["client_id"]
    options = ["--url", served.origin, "--client-id", client_id, "--resource", served.url, "--port", str(port)]
    arguments = [str(suite), "authorization", *options, "--output-dir", str(tmp_path)]
    with running(*arguments, folder=tmp_path) as lines:
        asyncio.run(visit(lines.find(_URL)[1], "connie"))
        lines.find(re.compile(r"^Total|^Passed: \d+/\d+", re.MULTILINE))
        lines.end()
    checks = [check for file in tmp_path.rglob("checks.json") for check in json.loads(file.read_text())]
    assert [check["status"] for check in checks] == ["SUCCESS"] * 3, lines.text


def test_the_inspector_signs_in_and_calls(served: SignIn, tmp_path: Path) -> None:
    launcher = nodejs.package("@modelcontextprotocol/inspector") / "clients/launcher/build/index.js"
    environment = {
        "HOME": str(tmp_path),
        "PATH": f"{nodejs.node().parent}:/usr/bin:/bin",
        "MCP_AUTO_OPEN_ENABLED": "true",
        "MCP_INSPECTOR_SECRET_STORE": "file",
    }
    arguments = ["--cli", "--server-url", served.url, "--transport", "http", "--method", "tools/call"]
    arguments += ["--tool-name", "who", "--format", "json"]
    arguments += ["--callback-url", f"http://127.0.0.1:{free_port()}/oauth/callback"]
    with running(str(launcher), *arguments, environment=environment) as lines:
        asyncio.run(visit(lines.find(_URL)[1], "ines"))
        assert lines.find(re.compile(r'"subject": ?"ines"'))
    # The next command renews the sign-in, or goes on with it.
    with running(str(launcher), *arguments, environment=environment) as lines:
        assert lines.find(re.compile(r'"subject": ?"ines"'))
