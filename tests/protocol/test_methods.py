"""The method table against the official schemas."""

from __future__ import annotations

import pytest

from funcmcp.protocol.methods import CLIENT_METHODS, METHODS, methods_of
from tests import schemas
from tests.protocol import official


@pytest.mark.parametrize("revision", schemas.REVISIONS)
def test_a_revision_has_exactly_the_methods_of_its_schema(revision: str) -> None:
    # The ping of 2024-11-05 to 2025-11-25 goes both ways, and the union of client requests lacks it in some of them.
    wanted = official.methods(revision, "ClientRequest")
    if revision in schemas.HANDSHAKE_REVISIONS:
        wanted |= {"ping"}
    assert set(methods_of(revision)) == wanted


@pytest.mark.parametrize("revision", schemas.REVISIONS)
def test_a_revision_has_exactly_the_questions_of_its_schema(revision: str) -> None:
    wanted = official.methods(revision, "ServerRequest", "InputRequest") - {"ping"}
    assert {row.name for row in CLIENT_METHODS.values() if row.since <= revision} == wanted


@pytest.mark.parametrize(
    "method", ["initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"]
)
def test_2026_07_28_has_no_method_that_it_removed(method: str) -> None:
    assert method in methods_of("2025-11-25")
    assert method not in methods_of("2026-07-28")


def test_only_calls_reads_and_prompts_may_be_answered_by_input_required() -> None:
    assert {row.name for row in METHODS.values() if row.rounds} == {"tools/call", "prompts/get", "resources/read"}


def test_the_mirrored_members_are_those_of_the_specification() -> None:
    mirrored = {row.name: row.mirrored for row in METHODS.values() if row.mirrored is not None}
    assert mirrored == {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}


def test_the_cached_results_are_those_whose_schema_demands_a_time_to_live() -> None:
    known = official.definitions(schemas.PER_REQUEST_REVISION)
    demanding = {
        known[name.removesuffix("Result") + "Request"]["properties"]["method"]["const"]
        for name, definition in known.items()
        if name.endswith("Result") and "ttlMs" in definition.get("required", ()) and name != "CacheableResult"
    }
    assert {row.name for row in METHODS.values() if row.cached} == demanding
