"""Official clients accept shortened results, and read the whole with the tool and by the link."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from tests.clients.plan import Step, Target, tool
from tests.clients.players import PLAYERS, Player
from tests.serving import serve

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.slow("Clients of others start for each case.")

SERVER = '''
from pydantic import BaseModel, Field
from funcmcp import Limits, MCPServer

mcp = MCPServer("Orders", limits=Limits(result_characters=4000))


class Order(BaseModel):
    id: int
    customer: str


class Orders(BaseModel):
    total: int
    orders: list[Order]


class Axis(BaseModel):
    points: list[int] = Field(min_length=3000)


@mcp.tool
def list_orders() -> Orders:
    """List all orders."""
    return Orders(total=500, orders=[Order(id=number, customer="Ada") for number in range(500)])


@mcp.tool
def axis() -> Axis:
    """Return an axis."""
    return Axis(points=list(range(3000)))
'''


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    file = tmp_path_factory.mktemp("large_results") / "orders_server.py"
    file.write_text(SERVER, encoding="utf-8")
    with serve(file) as served:
        yield served.url


def result_of(call: Any) -> dict[str, Any]:
    assert call.error is None, call.error
    result: dict[str, Any] = call.result
    return result


@pytest.mark.parametrize("player", PLAYERS, ids=lambda player: player.name)
def test_a_client_reads_the_whole_of_a_shortened_result_with_the_tool_and_by_the_link(player: Player, url: str) -> None:
    played = player.play(Target("http", url), [tool("list_orders"), tool("axis")])
    result, refusal = map(result_of, played.calls)
    shown = result["structuredContent"]
    assert {"list_orders", "axis", "read_result"} == played.tools.keys()
    assert json.loads(result["content"][0]["text"]) == shown
    assert 0 < len(shown["orders"]) < 500
    assert refusal["isError"]
    match = re.search(r"id=(\w+) and offset=(\d+)", shown["_truncated"])
    assert match is not None
    result_id, offset = match[1], int(match[2])
    link = result["content"][-1]["uri"]
    steps = [
        Step("resources/read", {"uri": link}),
        Step("resources/read", {"uri": refusal["content"][-1]["uri"]}),
        tool("read_result", {"id": result_id, "offset": offset}),
    ]
    full_text, axis, part = map(result_of, player.play(Target("http", url), steps).calls)
    text = full_text["contents"][0]["text"]
    assert json.loads(text)["orders"] == [{"id": number, "customer": "Ada"} for number in range(500)]
    assert json.loads(axis["contents"][0]["text"]) == {"points": list(range(3000))}
    following = part["content"][0]["text"]
    assert text[offset:].startswith(following)
    assert json.loads(following.split(",\n")[0]) == {"id": len(shown["orders"]), "customer": "Ada"}
