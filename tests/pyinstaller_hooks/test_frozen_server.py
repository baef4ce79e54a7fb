"""A server that PyInstaller has frozen, as one file and as a folder, serves HTTP with its page, and stdio."""

from __future__ import annotations

import os
import re
import subprocess
from typing import TYPE_CHECKING

import httpx2
import pytest

from funcmcp.client import Client, StdioCommand
from tests.serving import REPOSITORY

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow("PyInstaller takes half a minute for each kind of server.")

ENVIRONMENT = REPOSITORY / ".servers/pyinstaller"
SERVER = """
import sys

from funcmcp import HTTPOptions, MCPServer

mcp = MCPServer("Frozen", http=HTTPOptions(page=True))


@mcp.tool
def add(a: int, b: int) -> int:
    return a + b


if sys.argv[1:] == ["http"]:
    mcp.run("http", port=0)
else:
    mcp.run()
"""


@pytest.fixture(scope="module")
def pyinstaller() -> Path:
    """PyInstaller's command."""
    if os.environ.get("CI") != "true" and not (ENVIRONMENT / ".ready").exists():
        pytest.skip("PyInstaller is not installed; run scripts/setup-pyinstaller.sh")
    subprocess.run([REPOSITORY / "scripts/setup-pyinstaller.sh"], check=True)  # installs again after a change
    return ENVIRONMENT / "bin/pyinstaller"


@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", ["onefile", "onedir"])
async def test_a_frozen_server_serves_http_with_its_page_and_stdio(
    pyinstaller: Path, tmp_path: Path, kind: str
) -> None:
    (tmp_path / "frozen.py").write_text(SERVER)
    command = [str(pyinstaller), f"--{kind}", "--noconfirm", "--log-level", "ERROR", "frozen.py"]
    environment = {**os.environ, "PYINSTALLER_CONFIG_DIR": str(tmp_path / "cache")}
    subprocess.run(command, cwd=tmp_path, env=environment, check=True)  # noqa: ASYNC221 - nothing else runs
    binary = tmp_path / "dist" / ("frozen" if kind == "onefile" else "frozen/frozen")

    async with Client(StdioCommand(str(binary))) as client:
        assert (await client.call_tool("add", {"a": 1, "b": 2})).structured_content == {"result": 3}

    with subprocess.Popen([binary, "http"], stderr=subprocess.PIPE, text=True) as process:  # noqa: ASYNC220 - as above
        try:
            assert process.stderr is not None
            first_line = process.stderr.readline()
            found = re.search(r"http://\S+", first_line)
            assert found, first_line + process.stderr.read()
            url = found[0]
            async with Client(url) as client:
                assert (await client.call_tool("add", {"a": 1, "b": 2})).structured_content == {"result": 3}
            async with httpx2.AsyncClient() as http:
                page = await http.get(url, headers={"Accept": "text/html"})
            assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
            assert "signInView" in page.text  # of a page file
        finally:
            process.terminate()
