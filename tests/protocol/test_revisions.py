"""The revision table against the official schemas."""

from __future__ import annotations

import pytest

from funcmcp._protocol.revisions import (
    ASSUMED,
    NEWEST,
    NEWEST_HANDSHAKE,
    REVISIONS,
    Revision,
    handshake_revision,
    newest,
    released,
    with_handshake,
)
from tests import schemas
from tests.protocol import official


def test_the_table_has_every_revision_oldest_first() -> None:
    assert tuple(REVISIONS) == schemas.REVISIONS
    assert all(date == revision.date for date, revision in REVISIONS.items())


def test_only_2026_07_28_has_no_handshake() -> None:
    assert [date for date, revision in REVISIONS.items() if revision.per_request] == ["2026-07-28"]


def test_only_2025_03_26_has_batches() -> None:
    assert [date for date, revision in REVISIONS.items() if revision.batches] == ["2025-03-26"]


def test_a_request_that_names_no_revision_is_taken_for_2025_03_26() -> None:
    assert ASSUMED == "2025-03-26"


@pytest.mark.parametrize(
    ("served", "preferred", "date"),
    [
        (["2024-11-05", "2025-06-18", "2026-07-28"], "2024-11-05", "2024-11-05"),
        (["2024-11-05", "2025-06-18", "2026-07-28"], "2025-03-26", "2025-06-18"),
        (["2024-11-05", "2025-06-18", "2026-07-28"], "2026-07-28", "2025-06-18"),
        (["2025-06-18", "2024-11-05"], None, "2025-06-18"),
        (["2026-07-28"], "2025-06-18", None),
        ([], None, None),
    ],
)
def test_a_handshake_agrees_on_the_preferred_revision_or_the_newest(
    served: list[str], preferred: str | None, date: str | None
) -> None:
    revision = handshake_revision({date: REVISIONS[date] for date in served}, preferred)
    assert (None if revision is None else revision.date) == date


@pytest.mark.parametrize("date", schemas.REVISIONS)
def test_the_content_types_are_those_of_the_schema(date: str) -> None:
    schema = official.definitions(date)
    items = schema["CallToolResult"]["properties"]["content"]["items"]
    blocks = items["anyOf"] if "anyOf" in items else schema["ContentBlock"]["anyOf"]
    types = {schema[block["$ref"].rpartition("/")[2]]["properties"]["type"]["const"] for block in blocks}
    assert REVISIONS[date].content_types == types


@pytest.mark.parametrize("date", schemas.REVISIONS)
def test_the_members_of_a_tool_are_those_of_the_schema(date: str) -> None:
    assert REVISIONS[date].tool_fields == set(official.definitions(date)["Tool"]["properties"])


@pytest.mark.parametrize("date", schemas.REVISIONS)
def test_the_members_of_an_implementation_are_those_of_the_schema(date: str) -> None:
    assert REVISIONS[date].info_fields == set(official.definitions(date)["Implementation"]["properties"])


@pytest.mark.parametrize("date", schemas.REVISIONS)
def test_structured_content_is_what_the_schema_takes(date: str) -> None:
    structured = official.definitions(date)["CallToolResult"]["properties"].get("structuredContent")
    expected = None if structured is None else ("object" if structured.get("type") == "object" else "any")
    assert REVISIONS[date].structured_content == expected


@pytest.mark.parametrize("date", schemas.REVISIONS)
def test_the_members_that_results_must_have_are_those_of_the_schema(date: str) -> None:
    schema, revision = official.definitions(date), REVISIONS[date]
    assert set(revision.result_members) == set(schema["Result"].get("required", ()))
    for name in ("ListToolsResult", "ReadResourceResult"):
        added = {*revision.result_members, *revision.cache_members}
        assert added == set(schema[name]["required"]) - {"tools", "contents"}


@pytest.mark.parametrize("date", schemas.REVISIONS)
def test_a_question_with_a_url_has_an_id_where_the_schema_has_it(date: str) -> None:
    params = official.definitions(date).get("ElicitRequestURLParams", {"properties": {}})
    assert REVISIONS[date].elicitation_ids == ("elicitationId" in params["properties"])


def test_drafts_are_not_among_the_released_revisions() -> None:
    columns = {name: getattr(REVISIONS[NEWEST], name) for name in Revision.__annotations__}
    draft = Revision(**{**columns, "date": "2098-01-01", "draft": True})
    older_draft = Revision("2097-01-01", draft=True)
    revisions = {draft.date: draft, **REVISIONS, older_draft.date: older_draft}
    assert released(revisions) == list(REVISIONS)
    assert (newest(revisions), with_handshake(revisions)[-1]) == (NEWEST, NEWEST_HANDSHAKE)
