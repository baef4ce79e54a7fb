"""What a server offers."""

from __future__ import annotations

import pytest

from funcmcp._server.calls.feature import DEFAULT_TIME_LIMIT
from funcmcp._server.catalog.features import EncodedResult, JSONResult, RawResponse, ResourceLister, Tool
from tests.server.parts import prompt, resource, template, text_result, tool


def test_a_tool_is_frozen() -> None:
    with pytest.raises(AttributeError):
        tool("add").name = "subtract"  # type: ignore[misc]


def test_a_tool_by_default_has_a_time_limit_and_no_need_of_a_stream() -> None:
    made = tool("add")
    assert (made.interactive, made.time_limit, made.mirrored) == (False, DEFAULT_TIME_LIMIT, ())


def test_a_tool_is_described_only_when_it_is_asked() -> None:
    asked = []

    def describe() -> dict[str, object]:
        asked.append(1)
        return {}

    made = Tool("add", describe, tool("add").handler)
    assert not asked
    made.describe()
    assert asked


def test_a_raw_response_keeps_the_authors_message() -> None:
    message = {"jsonrpc": "2.0", "id": 1, "result": {}}
    assert RawResponse(message).message is message


def test_every_feature_has_a_key() -> None:
    async def nothing(_context: object) -> list[dict[str, object]]:
        return []

    features = (tool("add"), resource("menu://a"), template("menu://{a}"), ResourceLister("menu", nothing), prompt("p"))
    assert [feature.key for feature in features] == ["add", "menu://a", "menu://{a}", "menu", "p"]


@pytest.mark.parametrize(
    ("made", "result"),
    [
        (JSONResult(b'"hi"'), text_result("hi")),
        (JSONResult(b'"{}"', b'{"a":1}'), {**text_result("{}"), "structuredContent": {"a": 1}}),
    ],
)
def test_an_encoded_result_can_be_had_as_a_value(made: JSONResult, result: dict[str, object]) -> None:
    assert made.result() == result


def test_a_result_that_is_json_already_can_be_read_as_a_value() -> None:
    assert EncodedResult(b'{"contents":[]}').result() == {"contents": []}
    assert JSONResult(b'"3"', b'{"result":3}').result() == {
        "content": [{"type": "text", "text": "3"}],
        "structuredContent": {"result": 3},
    }
