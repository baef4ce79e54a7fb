"""The commands and the configurations of docs/guides/first-start.md work as it says."""

from __future__ import annotations

import json
import re
import shlex
import sys
from http.client import HTTPConnection
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from tests.cli.forking import funcmcp, running
from tests.cli.processes import FUNCMCP, run_to_end
from tests.docs.pages import block_of, blocks_of
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from pathlib import Path

PAGE = "guides/first-start.md"
CURL = [block.code for block in blocks_of(PAGE) if block.code.startswith("curl ")]
PACKAGE = """\
from .util import PRICE

from funcmcp import MCPServer

mcp = MCPServer("Shop")


@mcp.tool
def price() -> int:
    return PRICE


if __name__ == "__main__":
    print(price())
"""


@pytest.mark.parametrize(("command", "expected"), list(zip(CURL, ['"structuredContent"', '"serverInfo"'], strict=True)))
def test_a_curl_command_gets_an_answer(command: str, expected: str, tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(block_of(PAGE, "curl and Postman"), encoding="utf-8")
    arguments = [argument for argument in shlex.split(command.replace("\\\n", " ")) if argument != "-i"]
    options = list(zip(arguments[2::2], arguments[3::2], strict=True))
    headers = dict(value.split(": ", 1) for option, value in options if option == "-H")
    [body] = [value for option, value in options if option == "-d"]
    with running([*FUNCMCP, "run", "server.py", "--port", "0"], folder=tmp_path) as server:
        address = urlsplit(server.endpoint())
        connection = HTTPConnection(address.netloc, timeout=PATIENCE)
        connection.request("POST", urlsplit(arguments[1]).path, body, headers)
        response = connection.getresponse()
        assert (response.status, expected in response.read().decode()) == (200, True)
        connection.close()


def test_a_package_starts_in_both_ways(tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "__init__.py").touch()
    (tmp_path / "shop" / "util.py").write_text("PRICE = 3\n", encoding="utf-8")
    (tmp_path / "shop" / "server.py").write_text(PACKAGE, encoding="utf-8")
    module, path = block_of(PAGE, '"attempted relative import with no known parent package"', "sh").splitlines()
    run = run_to_end([sys.executable, *shlex.split(module)[1:]], folder=tmp_path)
    assert (run.returncode, run.stdout) == (0, "3\n"), run.stderr
    file = shlex.split(path)[2]
    run = funcmcp("call", file, "price", folder=tmp_path)
    assert (run.returncode, run.stdout) == (0, "3\n"), run.stderr
    run = run_to_end([sys.executable, file], folder=tmp_path)
    assert "attempted relative import with no known parent package" in run.stderr


def test_a_file_without_a_server_gets_the_message_of_the_page(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text("def main() -> None:\n    pass\n", encoding="utf-8")
    run = funcmcp("inspect", "server.py", folder=tmp_path)
    heading = '"No server object found", or "... has no server"'
    text = (block.code for block in blocks_of(PAGE) if block.heading == heading)
    assert list(text) == []
    assert run.stderr == "server.py has no server. Make one at the top level: mcp = MCPServer('name').\n"


def test_configurations_are_json_with_a_command() -> None:
    configurations = [json.loads(block.code) for block in blocks_of(PAGE) if block.language == "json"]
    assert len(configurations) == 2
    for configuration in configurations:
        [entry] = configuration["mcpServers"].values()
        assert re.search(r"python\.exe$|^docker$", entry["command"])
        assert "--stdio" in entry["args"]
