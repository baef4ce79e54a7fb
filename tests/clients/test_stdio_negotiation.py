"""Official clients that negotiate over stdio with a server that has only one of the two eras."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

from tests.clients.plan import Played, Target, tool
from tests.clients.players import HANDSHAKE, PER_REQUEST, PLAYERS, Player

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow("Clients of others start for each case.")

SERVER = '''
from funcmcp import MCPServer, ProtocolOptions

mcp = MCPServer("One era", protocol=ProtocolOptions(revisions=[{revision!r}]))


@mcp.tool
def greet(name: str) -> str:
    """Greet somebody."""
    print("greeting", name)
    return f"Hello, {{name}}!"


if __name__ == "__main__":
    mcp.run()
'''
AUTO = [player for player in PLAYERS if player.mode == "auto"]


def play(player: Player, revision: str, folder: Path) -> Played:
    """Play against a script that serves one revision, started as a client configuration starts it."""
    path = folder / "one_era.py"
    path.write_text(SERVER.format(revision=revision), encoding="utf-8")
    env = {"PYTHONPATH": os.environ["PYTHONPATH"]} if "PYTHONPATH" in os.environ else {}
    target = Target("stdio", command=(sys.executable, str(path)), env=env)
    return player.play(target, [tool("greet", {"name": "Ada"})])


@pytest.mark.parametrize("player", AUTO, ids=lambda player: player.name)
@pytest.mark.parametrize("revision", [HANDSHAKE, PER_REQUEST])
def test_a_client_that_probes_finds_the_era_of_the_server(player: Player, revision: str, tmp_path: Path) -> None:
    played = play(player, revision, tmp_path)
    assert played.revision == revision
    assert played.calls[0].result is not None
    assert played.calls[0].result["content"][0]["text"] == "Hello, Ada!"
