"""docs/guides/troubleshooting.md quotes what the server answers, under the status of the answer."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from starlette.testclient import TestClient

from funcmcp import HTTPOptions, Limits, MCPServer
from funcmcp._oauth_proxy.entra_errors import EXPLANATIONS
from funcmcp.auth import APIKeys
from funcmcp.state import MemoryRates
from tests.docs.pages import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable

    from httpx2 import Response

SIGN_IN = (ROOT / "docs" / "guides" / "sign-in-troubleshooting.md").read_text(encoding="utf-8")
PAGE = (ROOT / "docs" / "guides" / "troubleshooting.md").read_text(encoding="utf-8")
JSON = {"Content-Type": "application/json"}
BOTH = {"Accept": "application/json, text/event-stream"}
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


def client(mcp: MCPServer | None = None, origin: str = "http://127.0.0.1") -> TestClient:
    return TestClient(mcp or MCPServer("Shop"), base_url=origin)


def post(mcp: MCPServer | None = None, body: Any = PING, **headers: str) -> Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    content = body if isinstance(body, str) else json.dumps(body)
    return client(mcp).post("/mcp", content=content, headers={**JSON, **BOTH, **named})


def rate_reached() -> Response:
    mcp = MCPServer("Shop", http=HTTPOptions(rates=MemoryRates(per_second=0.001, burst=1)))
    with client(mcp) as session:
        session.post("/mcp", json=PING)
        return session.post("/mcp", json=PING)


ANSWERS: dict[str, Callable[[], Response]] = {
    "400": post,
    "401": lambda: post(MCPServer("Shop", auth=APIKeys({"a": "kq3vJ8wZ1xP5sT7u"}))),
    "403": lambda: post(Origin="https://other.example.com"),
    "404 for the path": lambda: client().post("/", json=PING),
    "404 for the session": lambda: post(Mcp_Session_Id="abc"),
    "405": lambda: client().get("/mcp"),
    "406": lambda: post(Accept="text/html"),
    "413": lambda: post(MCPServer("Shop", limits=Limits(message_bytes=1024)), {**PING, "x": "y" * 2000}),
    "415": lambda: client().post("/mcp", content="{}", headers={"Content-Type": "text/plain", **BOTH}),
    "421": lambda: client(origin="http://shop.example.com").post("/mcp", json=PING),
    "429": rate_reached,
}


@pytest.mark.parametrize("name", ANSWERS)
def test_the_page_has_the_text_of_the_answer(name: str) -> None:
    response = ANSWERS[name]()
    status = name[:3]
    assert str(response.status_code) == status
    text = response.json()["error"]["message"]
    section = PAGE.partition(f"\n## {status}")[2].partition("\n## ")[0]
    assert text in " ".join(section.split()), text


def test_the_page_of_the_sign_in_has_the_codes_that_the_server_explains() -> None:
    assert {int(code) for code in re.findall(r"\bAADSTS(\d+)", SIGN_IN)} == set(EXPLANATIONS)


def test_the_page_of_the_sign_in_names_pages_as_the_server_does() -> None:
    folder = ROOT / "src/funcmcp/_oauth_proxy"
    source = "".join((folder / name).read_text(encoding="utf-8") for name in ("sign_in.py", "proxy.py"))
    table = SIGN_IN.partition("\n## Pages of the server\n")[2].partition("\n## ")[0]
    titles = [title for cell in re.findall(r"^\| ([A-Z].*?) \|", table, re.MULTILINE) for title in cell.split(", ")]
    assert len(titles) > 6
    assert [title for title in titles if f'"{title}"' not in source] == []
