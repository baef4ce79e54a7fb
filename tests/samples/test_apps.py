"""The kitchen's board without a page: what the model and clients without the extension get of it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp.testing import Client
from samples.apps.server import Kitchen, mcp

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

ORDER = {"table": 4, "dishes": ["Soup", "Stew"], "note": "no salt"}


@pytest.fixture(params=["2025-11-25", "2026-07-28"])
async def client(request: pytest.FixtureRequest) -> AsyncIterator[Client]:
    """A client without the extension, at a kitchen that has one order."""
    with mcp.services.override(Kitchen, Kitchen()):
        async with Client(mcp, revision=request.param) as connected:
            await connected.call_tool("place_order", ORDER)
            yield connected


async def advance(client: Client, number: int, shown: str) -> dict[str, Any]:
    return await client.call_tool("advance_order", {"number": number, "shown": shown})


async def test_a_client_without_the_extension_gets_the_board_as_text(client: Client) -> None:
    result = await client.call_tool("order_board", {})
    (block,) = result["content"]
    assert block["type"] == "text"
    assert json.loads(block["text"]) == {"orders": [{"number": 1, **ORDER, "step": "waiting"}]}


async def test_an_order_goes_step_by_step_until_it_is_served(client: Client) -> None:
    steps = [
        (await advance(client, 1, shown))["structuredContent"]["step"] for shown in ("waiting", "cooking", "ready")
    ]
    assert steps == ["cooking", "ready", "served"]


@pytest.mark.parametrize(
    ("number", "shown", "words"),
    [
        (2, "waiting", "There is no order 2."),
        (1, "cooking", "Order 1 is waiting, not cooking."),
    ],
)
async def test_what_the_board_does_not_show_is_not_advanced(
    client: Client, number: int, shown: str, words: str
) -> None:
    result = await advance(client, number, shown)
    assert result["isError"] is True
    assert result["content"] == [{"type": "text", "text": words}]


async def test_nothing_comes_after_served(client: Client) -> None:
    for shown in ("waiting", "cooking", "ready"):
        await advance(client, 1, shown)
    result = await advance(client, 1, "served")
    assert result["isError"] is True
    assert result["content"][0]["text"] == "Order 1 is served; nothing comes after that."
