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

pytestmark = pytest.mark.slow("PyInstaller takes half a minute.")

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


SPECIFICATION = """
analysis = Analysis(["frozen.py"])
modules = PYZ(analysis.pure)
EXE(modules, analysis.scripts, analysis.binaries, analysis.datas, name="onefile")
program = EXE(modules, analysis.scripts, exclude_binaries=True, name="frozen")
COLLECT(program, analysis.binaries, analysis.datas, name="onedir")
"""
"""What --onefile and --onedir stand for, with one analysis for both, which takes most of the time."""

BINARIES = {"onefile": "dist/onefile", "onedir": "dist/onedir/frozen"}


@pytest.fixture(scope="module")
def pyinstaller() -> Path:
    """PyInstaller's command."""
    if os.environ.get("CI") != "true" and not (ENVIRONMENT / ".ready").exists():
        pytest.skip("PyInstaller is not installed; run scripts/setup-pyinstaller.sh")
    subprocess.run([REPOSITORY / "scripts/setup-pyinstaller.sh"], check=True)  # installs again after a change
    return ENVIRONMENT / "bin/pyinstaller"


@pytest.fixture(scope="module")
def frozen(pyinstaller: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Freeze the server in both ways, and return the folder."""
    folder = tmp_path_factory.mktemp("frozen")
    (folder / "frozen.py").write_text(SERVER)
    (folder / "frozen.spec").write_text(SPECIFICATION)
    command = [str(pyinstaller), "--noconfirm", "--log-level", "ERROR", "frozen.spec"]
    environment = {**os.environ, "PYINSTALLER_CONFIG_DIR": str(folder / "cache")}
    subprocess.run(command, cwd=folder, env=environment, check=True)
    return folder


@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", BINARIES)
async def test_a_frozen_server_serves_http_with_its_page_and_stdio(frozen: Path, kind: str) -> None:
    binary = frozen / BINARIES[kind]

    async with Client(StdioCommand(str(binary))) as client:
        assert (await client.call_tool("add", {"a": 1, "b": 2})).structured_content == {"result": 3}

    with subprocess.Popen([binary, "http"], stderr=subprocess.PIPE, text=True) as process:  # noqa: ASYNC220 - nothing else runs
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
