"""``funcmcp migrate`` on a server of the official SDK, which answers before and after."""

from __future__ import annotations

import json
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING

from tests.cli.forking import funcmcp
from tests.cli.processes import PYTHON
from tests.patience import PATIENCE
from tests.requirements import require

if TYPE_CHECKING:
    from pathlib import Path

require("mcp", find_spec("mcp"))

SERVER = '''
from mcp.server.mcpserver import Context, MCPServer

mcp = MCPServer("Shop", version="1")


@mcp.tool(annotations={"readOnlyHint": True})
async def total(prices: list[int], ctx: Context) -> dict[str, int]:
    """Add prices."""
    await ctx.report_progress(1, 1)
    return {"total": sum(prices)}


if __name__ == "__main__":
    mcp.run()
'''


def test_the_server_answers_as_before(tmp_path: Path) -> None:
    file = tmp_path / "server.py"
    file.write_text(SERVER)
    (tmp_path / "calls.json").write_text(json.dumps([{"tool": "total", "arguments": {"prices": ["1", 2]}}]))
    saved = funcmcp("inspect", f"{PYTHON} server.py", "--json", "--calls", "calls.json", folder=tmp_path)
    (tmp_path / "old.json").write_text(saved.stdout)
    report = funcmcp("migrate", ".", folder=tmp_path)
    assert (report.returncode, report.stderr) == (0, "")
    lines = report.stdout.splitlines()
    moved = "moves    server.py:2: Context, MCPServer of mcp.server.mcpserver: the names are in funcmcp.compat"
    assert lines[0] == moved
    assert lines[1].startswith("differs  server.py:4: MCPServer(...): sessions are signed ids")
    assert lines[2:] == ["1 moves, 1 differs, 0 missing; 1 file changes"]
    assert file.read_text() == SERVER
    patch = funcmcp("migrate", ".", "--diff", folder=tmp_path)
    assert patch.stdout.startswith("--- a/server.py\n+++ b/server.py\n")
    assert file.read_text() == SERVER
    written = funcmcp("migrate", ".", "--write", "--json", folder=tmp_path)
    assert json.loads(written.stdout)["files"] == ["server.py"]
    compared = funcmcp("diff", "old.json", "server.py", "--calls", "calls.json", "--breaking", folder=tmp_path)
    assert (compared.stdout, compared.returncode) == ("no differences\n", 0)


def test_a_report_with_nothing_to_rewrite_says_so(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text("from mcp.server.lowlevel import Server\n")
    assert funcmcp("migrate", "server.py", "--write", folder=tmp_path).stdout.endswith("No file was rewritten.\n")


def test_without_libcst_the_command_names_the_extra(tmp_path: Path) -> None:
    import subprocess

    (tmp_path / "server.py").write_text("@app.mcp_tool()\ndef add(a: int) -> int: ...\n")

    code = "import sys; sys.modules['libcst'] = None; from funcmcp_cli.main import main; main()"
    shown = subprocess.run(
        [sys.executable, "-c", code, "migrate", "."],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert shown.returncode == 1
    assert shown.stderr == 'libcst is not installed. Function apps need it: pip install "funcmcp[migrate]"\n'
