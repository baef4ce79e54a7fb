"""The method table against the official schemas."""

from __future__ import annotations

from typing import Any

import pytest

from funcmcp._protocol.methods import (
    CLIENT_METHODS,
    FEATURE_LISTS,
    METHODS,
    members_repeated_in,
    methods_of,
    repeated_members,
    repeating_headers,
)
from tests import schemas
from tests.protocol import official


@pytest.mark.parametrize("revision", schemas.REVISIONS)
def test_a_revision_has_exactly_the_methods_of_its_schema(revision: str) -> None:
    # The ping of 2024-11-05 to 2025-11-25 goes both ways, and the union of client requests lacks it in some of them.
    expected = official.methods(revision, "ClientRequest")
    if revision in schemas.HANDSHAKE_REVISIONS:
        expected |= {"ping"}
    assert set(methods_of(revision)) == expected


@pytest.mark.parametrize("revision", schemas.REVISIONS)
def test_a_revision_has_exactly_the_questions_of_its_schema(revision: str) -> None:
    expected = official.methods(revision, "ServerRequest", "InputRequest") - {"ping"}
    assert {row.name for row in CLIENT_METHODS.values() if row.since <= revision} == expected


@pytest.mark.parametrize(
    "method", ["initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"]
)
def test_2026_07_28_has_no_method_that_it_removed(method: str) -> None:
    assert method in methods_of("2025-11-25")
    assert method not in methods_of("2026-07-28")


def test_the_mirrored_members_are_those_of_the_specification() -> None:
    mirrored = {row.name: member.member for row in METHODS.values() for member in row.repeats}
    tasks = dict.fromkeys(("tasks/get", "tasks/update", "tasks/cancel"), "taskId")
    assert mirrored == {"tools/call": "name", "prompts/get": "name", "resources/read": "uri", **tasks}


def test_only_the_header_of_tasks_may_be_missing() -> None:
    optional = {row.name for row in METHODS.values() for member in row.repeats if member.is_optional}
    assert optional == {"tasks/get", "tasks/update", "tasks/cancel"}


@pytest.mark.parametrize(
    ("method", "params", "revision", "repeated"),
    [
        ("tools/call", {"name": "add"}, "2026-07-28", {"mcp-name": "add"}),
        ("tools/call", {"name": 1}, "2026-07-28", {}),
        ("tools/call", {}, "2026-07-28", {}),
        ("tools/call", {"name": "add"}, "2025-11-25", {}),
        ("tasks/update", {"taskId": "t"}, "2026-07-28", {"mcp-name": "t"}),
        ("tasks/update", {"taskId": "t"}, "2025-11-25", {}),
        ("tools/list", {"name": "add"}, "2026-07-28", {}),
        ("x/y", {"name": "add"}, "2026-07-28", {}),
    ],
)
def test_a_request_repeats_texts_in_the_revisions_of_its_method(
    method: str, params: dict[str, Any], revision: str, repeated: dict[str, str]
) -> None:
    assert repeated_members(method, params, revision) == repeated
    if method in methods_of(revision):
        assert {row.header for row in members_repeated_in(revision).get(method, ())} >= repeated.keys()
    else:
        assert method not in members_repeated_in(revision)


def test_the_headers_that_repeat_members_are_known() -> None:
    assert repeating_headers() == {"mcp-name"}


@pytest.mark.parametrize("revision", schemas.REVISIONS)
def test_the_items_of_a_list_are_where_its_schema_has_them(revision: str) -> None:
    listed = {name: row.items for name, row in methods_of(revision).items() if row.items is not None}
    assert listed == official.items_of_lists(revision)
    of_features = {name: items for name, items in listed.items() if name not in {"skills/list", "tasks/list"}}
    assert {name: FEATURE_LISTS[name] for name in of_features} == of_features


@pytest.mark.parametrize("revision", schemas.REVISIONS)
def test_the_member_that_names_a_feature_is_required_by_its_schema(revision: str) -> None:
    for name, row in methods_of(revision).items():
        if row.named_by is not None:
            assert row.named_by in official.required_params(revision, name)
