"""Who gets the states of upstreams, and what they have."""

from __future__ import annotations

import json

import pytest

from funcmcp import MCPServer
from funcmcp._server.recent_failures import RecentFailures
from funcmcp._serving.composition import runtime_of
from funcmcp.upstreams import Upstream
from tests.transports.http.endpoints.test_tracebacks import visit


@pytest.fixture(autouse=True)
def failures(monkeypatch: pytest.MonkeyPatch) -> None:
    failures = RecentFailures()
    for module in ("_serving.composition", "_transports.http.endpoints.tracebacks"):
        monkeypatch.setattr(f"funcmcp.{module}.recent_failures", failures)


def page() -> MCPServer:
    mcp = MCPServer("Page")
    mcp.mount(Upstream("http://127.0.0.1:9/mcp", name="docs", optional=True), prefix="docs")
    runtime_of(mcp).show_tracebacks()
    return mcp


async def test_a_person_at_this_machine_gets_the_state_of_each_upstream() -> None:
    response = await runtime_of(page()).exchange(visit(query="upstreams"))
    assert response.status == 200
    assert isinstance(response.body, bytes)
    assert json.loads(response.body) == {
        "upstreams": [
            {
                "name": "docs",
                "state": "unused",
                "optional": True,
                "away_since": None,
                "last_error": None,
                "list_error": None,
                "changed": [],
                "sessions": 0,
            }
        ]
    }


@pytest.mark.parametrize("parts", [{"peer": "192.0.2.7"}, {"fields": {"via": "1.1 proxy"}}, {"query": "upstreams=1"}])
async def test_others_get_what_they_would_get_without_it(parts: dict[str, object]) -> None:
    response = await runtime_of(page()).exchange(visit(**{"query": "upstreams", **parts}))  # type: ignore[arg-type]
    assert response.status != 200
