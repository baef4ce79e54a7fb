"""A page of MCP Apps opens through a proxy: the tests of `tests/apps/test_board.py` once more, and a prefix."""

from __future__ import annotations

import asyncio
import json
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from tests import nodejs
from tests.apps import test_board as without_proxy
from tests.apps.test_board import HERE, ORDERS, PLAY_SECONDS, steps_at
from tests.proxy.serving import proxy
from tests.proxy.wire import ERAS, over_http, plain
from tests.serving import REPOSITORY, serve

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.slow("A browser goes through many pages.")

globals().update({name: test for name, test in vars(without_proxy).items() if name.startswith("test_")})

SAMPLE = REPOSITORY / "samples/apps/server.py"
PAGE = "ui://shop/kitchen/board.html"
UI = {"extensions": {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]}}}


@pytest.fixture(scope="module", params=ERAS)
def seen(request: pytest.FixtureRequest) -> Iterator[dict[str, Any]]:
    """What the host and the cook saw through a proxy; under `atServer`, the board of the server itself."""
    program = nodejs.browser()
    for package in ("@modelcontextprotocol/client", "@modelcontextprotocol/ext-apps", "esbuild", "playwright-core"):
        nodejs.package(package)
    with serve(SAMPLE) as upstream, proxy({"url": upstream.url}) as served:
        script = [str(nodejs.node()), str(HERE / "play.mjs"), str(nodejs.HOME), str(program), served.origin]
        finished = subprocess.run(
            [*script, json.dumps(ORDERS), request.param],
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=PLAY_SECONDS,
            check=False,
        )
        assert finished.returncode == 0, finished.stderr
        seen: dict[str, Any] = json.loads(finished.stdout)
        yield {**seen, "atServer": asyncio.run(steps_at(upstream.url))}


async def test_a_prefix_keeps_the_scheme_of_a_page_and_the_tool_names_the_page_of_the_proxy() -> None:
    with serve(SAMPLE) as upstream, proxy({"url": upstream.url, "prefix": "shop"}) as served:
        for era in ERAS:
            async with over_http(served.url, era, UI) as wire:
                listed = plain(await wire.ask("tools/list", {}))["result"]["tools"]
                (tool,) = [tool for tool in listed if tool["name"] == "shop_order_board"]
                assert tool["_meta"]["ui"]["resourceUri"] == PAGE
                page = plain(await wire.ask("resources/read", {"uri": PAGE}))["result"]["contents"]
            assert [(part["uri"], part["mimeType"]) for part in page] == [(PAGE, "text/html;profile=mcp-app")]
            assert page[0]["text"] == (REPOSITORY / "samples/apps/board.html").read_text(encoding="utf-8")
