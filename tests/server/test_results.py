"""What a revision adds to results."""

from __future__ import annotations

from funcmcp._protocol.revisions import REVISIONS
from tests.server.parts import NEWEST, server


def test_server_info_has_the_members_of_the_revision() -> None:
    results = server(title="Orders", description="Takes orders").results
    assert set(results.implementation(REVISIONS["2024-11-05"])) == {"name", "version"}
    assert set(results.implementation(REVISIONS[NEWEST])) == {"name", "version", "title", "description"}
