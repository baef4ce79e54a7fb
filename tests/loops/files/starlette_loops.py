"""Starlette's TestClient: each has an event loop in a thread; several are open at a time."""

from __future__ import annotations

import pytest
from shop import mcp
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.testclient import TestClient

CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
HEADERS = {
    "accept": "application/json, text/event-stream",
    "mcp-protocol-version": "2026-07-28",
    "mcp-method": "tools/call",
}


def call(client, name, path="/mcp"):
    params = {"name": name, "arguments": {}, "_meta": META}
    answer = client.post(path, json={**CALL, "params": params}, headers={**HEADERS, "mcp-name": name})
    assert answer.status_code == 200, answer.text
    return answer.json()["result"]["content"][0]["text"]


@pytest.fixture(scope="session")
def session_client():
    with TestClient(mcp, base_url="http://127.0.0.1") as client:
        yield client


def test_nested(session_client):
    assert call(session_client, "use") == "open open"
    with TestClient(mcp, base_url="http://127.0.0.1") as second:
        assert call(second, "use") == "open open"
        assert call(session_client, "use") == "open open"
        app = Starlette(routes=[Mount("/shop", mcp)], lifespan=mcp.lifespan)
        with TestClient(app, base_url="http://127.0.0.1") as third:
            assert call(third, "use_in_a_thread", "/shop/mcp") == "open open"
            assert call(second, "use_in_a_thread") == "open open"
    assert call(session_client, "use_in_a_thread") == "open open"


def test_without_lifespan():
    client = TestClient(mcp, base_url="http://127.0.0.1")  # one loop for each request
    assert [call(client, name) for name in ("use", "use", "use_in_a_thread")] == ["open open"] * 3
