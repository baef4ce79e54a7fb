"""Who asks."""

from __future__ import annotations

import pytest

from funcmcp._protocol.revisions import REVISIONS
from funcmcp._server.connections.client import ConnectedClient

pytestmark = pytest.mark.every_python("Tasks, timeouts and cancellation are those of asyncio.")


def test_a_client_has_a_session_only_where_one_is_given() -> None:
    revision = REVISIONS["2025-11-25"]
    assert ConnectedClient(revision, {}, {}).session_id is None
    client = ConnectedClient(revision, {"roots": {}}, {"name": "a"}, session_id="s1")
    assert (client.revision, client.capabilities, client.info, client.session_id) == (
        revision,
        {"roots": {}},
        {"name": "a"},
        "s1",
    )
