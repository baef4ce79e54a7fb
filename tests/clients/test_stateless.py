"""Official clients with a server that has no sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.clients.plan import Step, Target, tool
from tests.clients.players import PLAYERS, Player
from tests.serving import serve

if TYPE_CHECKING:
    from collections.abc import Iterator

SERVER = '''
from funcmcp import MCPServer

mcp = MCPServer("Sums", sessions=None)


@mcp.tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@mcp.resource("sums://latest")
def latest() -> str:
    """The latest sum."""
    return "3"
'''


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    file = tmp_path_factory.mktemp("stateless") / "sums.py"
    file.write_text(SERVER, encoding="utf-8")
    with serve(file) as served:
        yield served.url


@pytest.mark.parametrize("player", PLAYERS, ids=lambda player: player.name)
def test_a_client_lists_calls_and_reads_without_a_session(player: Player, url: str) -> None:
    plan = [
        tool("add", {"a": 1, "b": 2}),
        Step("resources/read", {"uri": "sums://latest"}),
        tool("add", {"a": 2, "b": 2}),
    ]
    played = player.play(Target("http", url), plan)
    assert played.revision == player.revision
    first, read, second = (call.result for call in played.calls)
    assert first is not None
    assert read is not None
    assert second is not None
    assert (first["content"][0]["text"], second["content"][0]["text"]) == ("3", "4")
    assert read["contents"][0]["text"] == "3"
