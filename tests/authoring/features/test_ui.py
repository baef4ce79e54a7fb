"""Pages of MCP Apps: beside tools, and as resources."""

from __future__ import annotations

from typing import Any

import pytest

from funcmcp import MCPServer, RegistrationError
from funcmcp._authoring.features.ui import page_meta
from funcmcp._authoring.results.content import Contents
from funcmcp._protocol.apps import EXTENSION, PAGE_TYPE, is_page
from funcmcp._serving.composition import runtime_of
from funcmcp.content import UI, UIResource
from tests import schemas
from tests.server.parts import PER_REQUEST, answer, context

EVERY_REVISION = pytest.mark.parametrize("revision", schemas.REVISIONS)
PAGE = "ui://board"
FLAT = {"ui/resourceUri": PAGE}


@pytest.fixture
def mcp() -> MCPServer:
    return MCPServer("apps")


async def ask(mcp: MCPServer, method: str, params: dict[str, Any] | None = None, revision: str = PER_REQUEST) -> Any:
    return (await answer(runtime_of(mcp).server, context(method, params, revision=revision)))["result"]


def test_the_names_are_those_of_the_extension() -> None:
    assert (EXTENSION, PAGE_TYPE) == ("io.modelcontextprotocol/ui", "text/html;profile=mcp-app")
    assert [is_page(uri) for uri in (PAGE, "ui:board", "UI://board", "https://board", "")] == [True, *[False] * 4]


@pytest.mark.parametrize(
    ("ui", "meta"),
    [
        (None, {}),
        (PAGE, {"ui": {"resourceUri": PAGE}, **FLAT}),
        (UI(PAGE), {"ui": {"resourceUri": PAGE}, **FLAT}),
        (UI(PAGE, visibility=["app"]), {"ui": {"resourceUri": PAGE, "visibility": ["app"]}, **FLAT}),
        (UI(PAGE, visibility=("model", "app")), {"ui": {"resourceUri": PAGE, "visibility": ["model", "app"]}, **FLAT}),
    ],
)
def test_a_tools_page_is_told_in_its_meta(ui: Any, meta: dict[str, Any]) -> None:
    assert page_meta(ui) == meta


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: UI("https://board"),
        lambda: UI(""),
        lambda: UI(PAGE, visibility="app"),
        lambda: UI(PAGE, visibility=["user"]),
        lambda: page_meta("board"),
        lambda: UIResource(csp={"connect": ["https://a"]}),
        lambda: UIResource(csp={"connectDomains": "https://a"}),
        lambda: UIResource(permissions="camera"),
        lambda: UIResource(permissions=["clipboard_write"]),
    ],
)
def test_what_the_extension_does_not_know_is_refused(wrong: Any) -> None:
    with pytest.raises(RegistrationError):
        wrong()


@EVERY_REVISION
async def test_a_tool_keeps_its_own_meta_beside_its_page(mcp: MCPServer, revision: str) -> None:
    mcp.tool("show", ui=UI(PAGE, visibility=["model"]), meta={"example.com/a": 1})(lambda: "shown")
    (tool,) = (await ask(mcp, "tools/list", revision=revision))["tools"]
    if revision >= "2025-06-18":
        assert tool["_meta"] == {"example.com/a": 1, "ui": {"resourceUri": PAGE, "visibility": ["model"]}, **FLAT}
    else:
        assert "_meta" not in tool


@EVERY_REVISION
async def test_a_page_has_its_media_type_and_what_it_may_do_on_its_contents(mcp: MCPServer, revision: str) -> None:
    may = UIResource(
        csp={"connectDomains": ("https://example.com",), "frameDomains": []},
        permissions=["camera", "clipboardWrite"],
        domain="https://board.example.com",
        prefers_border=False,
    )
    mcp.resource(PAGE, name="board", ui=may)(lambda: "<!doctype html>")
    (listed,) = (await ask(mcp, "resources/list", revision=revision))["resources"]
    assert listed["mimeType"] == PAGE_TYPE
    assert (await ask(mcp, "resources/read", {"uri": PAGE}, revision))["contents"] == [
        {
            "uri": PAGE,
            "mimeType": PAGE_TYPE,
            "text": "<!doctype html>",
            "_meta": {
                "ui": {
                    "csp": {"connectDomains": ["https://example.com"], "frameDomains": []},
                    "permissions": {"camera": {}, "clipboardWrite": {}},
                    "domain": "https://board.example.com",
                    "prefersBorder": False,
                }
            },
        }
    ]


async def test_contents_with_a_ui_of_their_own_keep_it(mcp: MCPServer) -> None:
    own = Contents("<!doctype html>", meta={"ui": {"prefersBorder": True}, "a": 1})
    mcp.resource(PAGE, name="board", ui=UIResource(prefers_border=False))(lambda: own)
    (contents,) = (await ask(mcp, "resources/read", {"uri": PAGE}))["contents"]
    assert contents["_meta"] == {"ui": {"prefersBorder": True}, "a": 1}


def test_a_page_that_asks_for_nothing_says_nothing() -> None:
    assert UIResource().wire == {}
    assert UIResource(csp={}).wire == {"csp": {}}
