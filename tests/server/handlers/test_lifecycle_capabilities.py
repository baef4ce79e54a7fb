"""What the server says it can do."""

from __future__ import annotations

import pytest

from funcmcp._protocol.revisions import REVISIONS
from funcmcp._server.handlers.lifecycle import capabilities
from tests import schemas
from tests.server.parts import prompt, resource, server, template, tool

EVERYTHING = (tool("t"), prompt("p", completers=("a",)), resource("ui://page"), template("menu://{dish}"))


@pytest.mark.parametrize("pushes", [True, False])
@pytest.mark.parametrize("revision", schemas.REVISIONS)
def test_the_capabilities_are_valid_in_every_revision(revision: str, pushes: bool) -> None:
    for served in (server(), server(*EVERYTHING)):
        schemas.validate_as(
            capabilities(served.catalog, REVISIONS[revision], pushes=pushes), revision, "ServerCapabilities"
        )


def test_log_messages_are_declared_in_2026_07_28_only_where_a_feature_may_send_some() -> None:
    """2026-07-28 deprecates them; before, a client may set its level at any server."""
    assert capabilities(server().catalog, REVISIONS["2026-07-28"], pushes=False) == {"tools": {}}
    assert capabilities(server().catalog, REVISIONS["2025-11-25"], pushes=False) == {"logging": {}, "tools": {}}
    logging = server(tool("report", interactive=True))
    assert capabilities(logging.catalog, REVISIONS["2026-07-28"], pushes=False) == {"logging": {}, "tools": {}}


def test_what_is_offered_is_declared_as_far_as_the_revision_knows_it() -> None:
    served = server(*EVERYTHING)
    assert capabilities(served.catalog, REVISIONS["2026-07-28"], pushes=True) == {
        "completions": {},
        "prompts": {"listChanged": True},
        "resources": {"listChanged": True, "subscribe": True},
        "tools": {"listChanged": True},
        "extensions": {"io.modelcontextprotocol/ui": {}},
    }
    assert set(capabilities(served.catalog, REVISIONS["2024-11-05"], pushes=False)) == {
        "logging",
        "prompts",
        "resources",
        "tools",
    }


def test_an_offer_can_be_switched_off_and_made_before_there_is_anything() -> None:
    served = server(*EVERYTHING, offer_tools=False, offer_prompts=False, offer_resources=False)
    assert set(capabilities(served.catalog, REVISIONS["2026-07-28"], pushes=True)) == set()
    empty = server(offer_prompts=True, offer_resources=True, offer_tools=None)
    assert set(capabilities(empty.catalog, REVISIONS["2026-07-28"], pushes=True)) == {"prompts", "resources"}


def test_completions_are_declared_as_soon_and_as_long_as_something_completes() -> None:
    served = server(prompt("plain"), resource("menu://a"))
    revision = REVISIONS["2026-07-28"]
    assert "completions" not in capabilities(served.catalog, revision, pushes=True)
    served.catalog.add(prompt("p", completers=("a",)))
    assert "completions" in capabilities(served.catalog, revision, pushes=True)
    served.catalog.prompts.remove("p")
    assert "completions" not in capabilities(served.catalog, revision, pushes=True)


def test_pages_are_declared_only_where_there_is_one() -> None:
    for served in (server(resource("menu://a")), server(resource("ui://a"), offer_resources=False)):
        assert "extensions" not in capabilities(served.catalog, REVISIONS["2026-07-28"], pushes=True)
