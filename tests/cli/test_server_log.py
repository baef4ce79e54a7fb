"""The log of a server in the command's own process is one line for each record."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from funcmcp_cli.server_log import LogLines
from tests.cli.forking import funcmcp

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

SERVER = """
import logging

from funcmcp import MCPServer

mcp = MCPServer("Failing")


@mcp.tool
def fail() -> str:
    logging.getLogger("funcmcp.shop").warning("first\\nsecond")
    raise ValueError("no database")
"""


def record(message: str) -> logging.LogRecord:
    return logging.LogRecord("funcmcp.app", logging.ERROR, __file__, 1, message, None, None)


def test_a_traceback_becomes_a_place(capsys: pytest.CaptureFixture[str]) -> None:
    for message in (
        "The function fail failed. ValueError: no\nmore",
        'Traceback (most recent call last):\n  File "/srv/function_app.py", line 8, in fail\nValueError: no',
        "Auth level is not applied to non http function app. Ref: https://example.com",
    ):
        LogLines().emit(record(message))
    assert capsys.readouterr().err == "The function fail failed. ValueError: no\nat /srv/function_app.py, line 8\n"


def test_a_failing_tool_of_a_target_is_two_lines(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(SERVER)
    shown = funcmcp("call", "server.py", "fail", folder=tmp_path)
    first, line, result = shown.stderr.splitlines()
    assert first == "first"
    error_id = result.rpartition(" ")[2].rstrip(".")
    assert line == f"server.py, line 12: ValueError: no database (error id {error_id})"
    assert result == f"The tool failed. The server's log has the details under error id {error_id}."
    verbose = funcmcp("call", "server.py", "fail", "--verbose", folder=tmp_path)
    assert "Traceback (most recent call last):" in verbose.stderr
