"""What a server says in the log when it is about to be served."""

from __future__ import annotations

from typing import Any

import pytest

from funcmcp import MCPServer, ToolContext
from funcmcp.sessions.seal import KEY_BYTES, KeyRing
from tests import schemas

PER_REQUEST = [revision for revision in schemas.REVISIONS if revision not in schemas.HANDSHAKE_REVISIONS]


def asking(**options: Any) -> MCPServer:
    mcp = MCPServer("Küche", **{"keys": KeyRing(), **options})

    @mcp.tool
    async def order(context: ToolContext) -> str:
        return "done"

    return mcp


def silent(**options: Any) -> MCPServer:
    mcp = MCPServer("Küche", **{"keys": KeyRing(), **options})

    @mcp.tool
    async def order() -> str:
        return "done"

    return mcp


@pytest.mark.parametrize(
    ("server", "sealed"),
    [
        (silent(), "sessions"),
        (asking(), "sessions and its questions to clients"),
        (asking(sessions="memory"), "questions to clients"),
        (asking(revisions=PER_REQUEST), "questions to clients"),
    ],
)
async def test_what_is_sealed_with_a_random_key_is_said_once_at_start(
    server: MCPServer, sealed: str, caplog: pytest.LogCaptureFixture
) -> None:
    server.begin()
    [warning] = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert warning == (
        f"Küche has a random key: its {sealed} belong to this process and end with it. "
        "To share a key with other processes and later starts, set FUNCMCP_KEYS."
    )


@pytest.mark.parametrize(
    "server",
    [
        silent(sessions="memory"),
        silent(revisions=PER_REQUEST),
        asking(revisions=schemas.HANDSHAKE_REVISIONS, sessions="memory"),
        asking(keys=KeyRing([b"k" * KEY_BYTES])),
    ],
)
async def test_a_key_that_nothing_is_lost_with_is_not_spoken_of(
    server: MCPServer, caplog: pytest.LogCaptureFixture
) -> None:
    server.begin()
    assert [record for record in caplog.records if record.levelname == "WARNING"] == []
