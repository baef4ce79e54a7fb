"""What the server says it can do."""

from __future__ import annotations

import pytest

from funcmcp.server.capabilities import capabilities
from funcmcp.server.dispatch import HANDLERS
from tests import schemas
from tests.server.parts import server


@pytest.mark.parametrize("revision", schemas.REVISIONS)
def test_the_capabilities_are_valid_in_every_revision(revision: str) -> None:
    schemas.validate_as(capabilities(server()), revision, "ServerCapabilities")


def test_what_is_declared_is_served() -> None:
    declared = capabilities(server())
    assert set(declared) == {"logging", "tools"}
    assert {"tools/list", "tools/call", "logging/setLevel"} <= set(HANDLERS)


def test_no_changes_of_lists_are_promised() -> None:
    assert "listChanged" not in capabilities(server())["tools"]
