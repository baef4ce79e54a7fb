"""Users install funcmcp with uvx and pip on a Python without packages, from the index that scripts/dist.sh writes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

from funcmcp import __version__
from tests.cli.processes import environment
from tests.requirements import require

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
UV = Path(sys.executable).with_name("uv")
SECONDS = 300
SERVER = """from funcmcp import MCPServer

mcp = MCPServer("Kitchen")


@mcp.tool
def find_dish(name: str) -> list[str]:
    return [dish for dish in ("Lentil soup", "Lemon tart") if name in dish]
"""
FUNCTION_APP = """from funcmcp import MCPServer
from funcmcp.azure import http_app

mcp = MCPServer("Kitchen")
print(type(http_app(mcp)).__module__)
"""

pytestmark = [
    pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="it installs packages: one Python is enough"),
    pytest.mark.slow("Packages are installed in new environments."),
    pytest.mark.timeout(2 * SECONDS),
]


class SilentHandler(SimpleHTTPRequestHandler):
    """Serves a folder, and writes nothing to stderr."""

    def log_message(self, *_: object) -> None:
        """Write nothing."""


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder on a loopback address, and yield its URL."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(SilentHandler, directory=folder)) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the distributions and their index, and return the folder."""
    require("uv", UV.is_file())
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run([ROOT / "scripts" / "dist.sh", folder], cwd=ROOT, check=True, capture_output=True, timeout=SECONDS)
    return folder


def run(command: list[str], folder: Path, variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a program. Skip the test if the index of the dependencies can't be reached."""
    result = subprocess.run(
        command,
        cwd=folder,
        env=environment({"PYTHONPATH": "", **variables}),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    require(f"A package index ({result.stderr.strip()[-300:]})", "error sending request" not in result.stderr)
    return result


def uvx(index: str, *arguments: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run ``uvx --index INDEX ARGUMENT...``."""
    command = [str(UV.with_name("uvx")), "--python", sys.executable, "--refresh", "--index", index, *arguments]
    return run(command, folder, {"UV_TOOL_DIR": str(folder / "tools"), **variables})


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """Return the folder of the programs of an environment without packages."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "bare"], check=True, timeout=SECONDS)
    return tmp_path / "bare" / "bin"


def pip_install(bare: Path, built: Path, requirement: str) -> None:
    """Install a requirement with pip, from the folder of the index and the index that pip is configured for."""
    pip = [sys.executable, "-m", "pip", "--python", str(bare / "python"), "install", "--quiet"]
    result = run([*pip, "--extra-index-url", (built / "simple").as_uri(), requirement], bare, {})
    require(f"A package index ({result.stderr.strip()[-300:]})", result.returncode == 0)


def test_uvx_runs_the_command_from_an_index_at_a_url(built: Path, tmp_path: Path) -> None:
    with served(built) as url:
        result = uvx(f"{url}/simple/", "funcmcp", "--version", folder=tmp_path)
    assert (result.returncode, result.stdout) == (0, f"funcmcp {__version__}\n"), result.stderr


def test_uvx_calls_a_server(built: Path, tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(SERVER)
    result = uvx(str(built / "simple"), "funcmcp", "call", "server.py", "find_dish", "name=Len", folder=tmp_path)
    assert (result.returncode, result.stdout) == (0, '["Lentil soup"]\n'), result.stderr


async def test_what_uvx_installs_in_a_client_starts(built: Path, tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(SERVER)
    simple = str(built / "simple")
    home = {
        "HOME": str(tmp_path),
        "XDG_CONFIG_HOME": str(tmp_path / ".config"),
        "UV_CACHE_DIR": str(tmp_path / "cache"),
        "PATH": f"{UV.parent}{os.pathsep}{os.environ['PATH']}",
    }
    arguments = ("funcmcp", "install", "claude-desktop", "server.py", "--write")
    result = uvx(simple, *arguments, folder=tmp_path, **home)
    assert result.returncode == 0, result.stderr
    configuration = json.loads((tmp_path / ".config/Claude/claude_desktop_config.json").read_text(encoding="utf-8"))
    entry = configuration["mcpServers"]["kitchen"]
    assert [entry["command"], *entry["args"]] == [
        str(UV.with_name("uvx")), f"funcmcp@{__version__}", "run", str(tmp_path / "server.py"), "--stdio",
    ]  # fmt: skip
    variables = {**home, "UV_INDEX": simple, "UV_PYTHON": sys.executable}
    command = StdioServerParameters(command=entry["command"], args=entry["args"], env=environment(variables), cwd="/")
    async with stdio_client(command) as streams, ClientSession(*streams) as session:
        await session.initialize()
        called = await session.call_tool("find_dish", {"name": "tart"})
    assert called.structured_content == {"result": ["Lemon tart"]}


def test_pip_installs_the_command(bare: Path, built: Path, tmp_path: Path) -> None:
    pip_install(bare, built, "funcmcp")
    result = run([str(bare / "funcmcp"), "--version"], tmp_path, {})
    assert (result.returncode, result.stdout) == (0, f"funcmcp {__version__}\n"), result.stderr


def test_pip_installs_the_library_for_a_function_app(bare: Path, built: Path, tmp_path: Path) -> None:
    pip_install(bare, built, "funcmcp-slim[azure]")
    assert not (bare / "funcmcp").exists()
    (tmp_path / "function_app.py").write_text(FUNCTION_APP)
    result = run([str(bare / "python"), "function_app.py"], tmp_path, {})
    assert (result.returncode, result.stdout) == (0, "azure.functions.decorators.function_app\n"), result.stderr
