"""Official clients without credentials: they list, and then call what `allow_anonymous` opens."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.clients.plan import Target, tool
from tests.clients.players import PLAYERS, Player
from tests.serving import serve

if TYPE_CHECKING:
    from collections.abc import Iterator

SERVER = '''
from funcmcp import MCPServer
from funcmcp._auth.api_key import APIKeys

KITCHEN = "sha256:dcca4c6ee26114d88cad1caea4841bba1c02dc4bb24587fd571e8fa823b0c92b"
mcp = MCPServer("Orders", auth=APIKeys({"kitchen": KITCHEN}, scopes={"kitchen": ["orders.read"]}))


@mcp.tool(allow_anonymous=True)
def opening_hours() -> str:
    """Tell when the restaurant is open."""
    return "from noon to midnight"


@mcp.tool(scopes=["orders.write"])
def cancel_order(order_id: str) -> str:
    """Cancel an order."""
    return f"{order_id} is cancelled."
'''


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    file = tmp_path_factory.mktemp("anonymous") / "orders_server.py"
    file.write_text(SERVER, encoding="utf-8")
    with serve(file) as served:
        yield served.url


@pytest.mark.parametrize("player", PLAYERS, ids=lambda player: player.name)
def test_a_client_without_credentials_lists_and_calls_what_is_open_to_everybody(player: Player, url: str) -> None:
    played = player.play(Target("http", url), [tool("opening_hours")])
    assert list(played.tools) == ["opening_hours"]
    assert played.calls[0].result is not None
    assert played.calls[0].result["content"][0]["text"] == "from noon to midnight"
