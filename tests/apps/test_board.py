"""The page of the kitchen's board, in headless Chromium, in a host made of the extension's own package.

`play.mjs` is the cook, `host.mjs` the client that shows the page; both tell what there was to see. The server is a
process of its own, and both eras of the protocol are played.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
from mcp import Client

from tests import nodejs
from tests.serving import REPOSITORY, serve

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.slow("A browser goes through many pages.")

HERE = Path(__file__).parent
PLAY_SECONDS = 60
EXTENSION = "io.modelcontextprotocol/ui"
PAGE = "ui://kitchen/board.html"
MARKUP = '<img src="http://attacker.invalid/x" onerror="window.hacked = 1">'
ORDERS = [{"table": 4, "dishes": ["Soup", "<b>Stew</b>"], "note": MARKUP}, {"table": 2, "dishes": ["Bread"]}]


def card(table: int, dishes: list[str], step: str, action: str, note: str | None = None) -> dict[str, Any]:
    return {"title": f"Table {table}", "dishes": dishes, "note": note, "step": step, "action": action}


@pytest.fixture(scope="module", params=["2025-11-25", "2026-07-28"])
def seen(request: pytest.FixtureRequest) -> Iterator[dict[str, Any]]:
    """What the host and the cook saw; under `atServer`, the board that another client reads afterwards."""
    program = nodejs.browser()
    for package in ("@modelcontextprotocol/client", "@modelcontextprotocol/ext-apps", "esbuild", "playwright-core"):
        nodejs.package(package)
    with serve(REPOSITORY / "samples/apps/server.py") as served:
        finished = subprocess.run(
            [
                *(str(nodejs.node()), str(HERE / "play.mjs"), str(nodejs.HOME), str(program), served.origin),
                *(json.dumps(ORDERS), request.param),
            ],
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=PLAY_SECONDS,
            check=False,
        )
        assert finished.returncode == 0, finished.stderr
        told: dict[str, Any] = json.loads(finished.stdout)
        assert told["revision"] == request.param
        yield {**told, "atServer": asyncio.run(steps_at(served.url))}


async def steps_at(url: str) -> list[str]:
    async with Client(url, read_timeout_seconds=20) as client:
        board = (await client.call_tool("order_board", {})).structured_content
    assert board is not None
    return [order["step"] for order in board["orders"]]


def test_the_host_finds_the_extension_and_the_page_of_the_tool(seen: dict[str, Any]) -> None:
    assert EXTENSION in seen["serverExtensions"]
    meta = {tool["name"]: tool.get("_meta", {}).get("ui") for tool in seen["tools"]}
    assert meta == {
        "order_board": {"resourceUri": PAGE},
        "place_order": None,
        "advance_order": {"resourceUri": PAGE, "visibility": ["app"]},
    }


def test_the_page_is_served_with_the_extensions_mime_type_and_wishes(seen: dict[str, Any]) -> None:
    html = (REPOSITORY / "samples/apps/board.html").read_text(encoding="utf-8")
    assert seen["shown"]["contents"] == [
        {"uri": PAGE, "mimeType": "text/html;profile=mcp-app", "text": html, "_meta": {"ui": {"prefersBorder": True}}}
    ]


def test_the_page_introduces_itself_to_its_host(seen: dict[str, Any]) -> None:
    assert seen["shown"]["app"] == {"name": "order-board", "version": "1.0.0"}


def test_the_page_shows_the_orders_of_the_tools_result(seen: dict[str, Any]) -> None:
    assert seen["atFirst"] == [
        card(4, ["Soup", "<b>Stew</b>"], "waiting", "Start cooking", MARKUP),
        card(2, ["Bread"], "waiting", "Start cooking"),
    ]


def test_markup_in_an_order_is_shown_as_text_and_does_nothing(seen: dict[str, Any]) -> None:
    assert seen["atFirst"][0]["note"] == MARKUP
    assert (seen["foreignElements"], seen["scriptRan"]) == (0, False)


def test_a_click_calls_the_tool_that_only_the_page_may_call(seen: dict[str, Any]) -> None:
    assert seen["forTheModel"] == ["order_board", "place_order"]
    assert seen["callsOfTheClick"] == [{"name": "advance_order", "arguments": {"number": 1, "shown": "waiting"}}]


def test_a_click_changes_what_the_page_shows_and_what_the_server_has(seen: dict[str, Any]) -> None:
    assert seen["afterClick"] == [
        card(4, ["Soup", "<b>Stew</b>"], "cooking", "Ready", MARKUP),
        card(2, ["Bread"], "waiting", "Start cooking"),
    ]
    assert seen["atServer"] == ["cooking", "cooking", "waiting"]


def test_the_page_shows_the_words_of_a_tools_error(seen: dict[str, Any]) -> None:
    assert seen["complaint"] == "Order 2 is cooking, not waiting."


def test_refreshing_shows_what_others_changed(seen: dict[str, Any]) -> None:
    assert seen["refreshed"][1:] == [
        card(2, ["Bread"], "cooking", "Ready"),
        card(9, ["Lemon tart"], "waiting", "Start cooking"),
    ]


def test_the_page_wears_the_hosts_theme_and_colours(seen: dict[str, Any]) -> None:
    assert seen["border"] == "rgb(1, 2, 3)"
    assert (seen["light"], seen["dark"]) == ("rgb(255, 255, 255)", "rgb(30, 30, 30)")


def test_the_page_asks_for_the_height_that_its_orders_need(seen: dict[str, Any]) -> None:
    assert seen["frameHeight"] == seen["sizes"][-1] > seen["sizes"][0]
    assert seen["overflow"] == 0


def test_the_page_answers_when_it_is_closed(seen: dict[str, Any]) -> None:
    assert seen["farewell"] == {}


def test_nothing_goes_wrong_and_no_request_leaves_this_machine(seen: dict[str, Any]) -> None:
    assert seen["errors"] == []
    assert seen["requests"]
    assert {urlsplit(url).hostname for url in seen["requests"]} == {"127.0.0.1", "localhost"}
