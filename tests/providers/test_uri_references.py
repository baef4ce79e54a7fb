"""URIs in definitions and results."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from funcmcp._providers.uri_references import in_definition, in_prompt_result, in_read_result, in_tool_result


def marked(uri: str) -> str:
    return f"new:{uri}"


LINK = {"type": "resource_link", "uri": "memo:a", "name": "a"}
EMBEDDED = {"type": "resource", "resource": {"uri": "memo:a", "text": "memo:a"}}
NESTED = {"type": "tool_result", "toolUseId": "1", "content": [LINK, {"type": "text", "text": "memo:a"}]}


def test_links_and_resources_in_results_of_tools_change() -> None:
    content = [LINK, EMBEDDED, NESTED, {"type": "text", "text": "memo:a"}]
    result = {"content": content, "structuredContent": {"uri": "memo:a"}}
    assert in_tool_result(result, marked) == {
        "content": [
            {"type": "resource_link", "uri": "new:memo:a", "name": "a"},
            {"type": "resource", "resource": {"uri": "new:memo:a", "text": "memo:a"}},
            {**NESTED, "content": [{**LINK, "uri": "new:memo:a"}, {"type": "text", "text": "memo:a"}]},
            {"type": "text", "text": "memo:a"},
        ],
        "structuredContent": {"uri": "memo:a"},
    }


def test_a_result_without_uris_is_the_same_object() -> None:
    result = {"content": [{"type": "text", "text": "memo:a"}]}
    assert in_tool_result(result, marked) is result


@pytest.mark.parametrize("content", [LINK, [LINK]])
def test_messages_of_prompts_change(content: Any) -> None:
    message = {"role": "user", "content": content}
    changed = in_prompt_result({"messages": [message, {"role": "user"}, "x"]}, marked)["messages"]
    block = changed[0]["content"]
    assert (block[0] if isinstance(block, list) else block)["uri"] == "new:memo:a"
    assert changed[1:] == [{"role": "user"}, "x"]


def test_contents_of_resources_change() -> None:
    assert in_read_result({"contents": [{"uri": "memo:a"}, {"text": "a"}]}, marked)["contents"] == [
        {"uri": "new:memo:a"},
        {"text": "a"},
    ]


def test_pages_in_definitions_and_results_change() -> None:
    page = {"resourceUri": "ui://a", "x": 1}
    meta = {"ui": page, "ui/resourceUri": "ui://a", "openai/outputTemplate": "ui://a", "y": 2}
    changed = {
        "ui": {"resourceUri": "new:ui://a", "x": 1},
        "ui/resourceUri": "new:ui://a",
        "openai/outputTemplate": "new:ui://a",
        "y": 2,
    }
    assert in_definition({"name": "a", "_meta": meta}, marked) == {"name": "a", "_meta": changed}
    assert in_tool_result({"content": [], "_meta": meta}, marked)["_meta"] == changed


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda children: (
        st.lists(children, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                ["content", "type", "uri", "resource", "messages", "contents", "_meta", "ui", "resourceUri"]
            ),
            children | st.sampled_from(["resource", "resource_link", "tool_result", "memo:a"]),
        )
    ),
    max_leaves=15,
)


@example({"content": [{"type": []}], "messages": [{"content": {"type": {}}}]})
@given(st.dictionaries(st.sampled_from(["content", "messages", "contents", "_meta"]), JSON))
def test_no_result_of_another_form_fails_and_none_is_changed_in_place(result: dict[str, Any]) -> None:
    before = repr(result)
    for change in (in_tool_result, in_prompt_result, in_read_result, in_definition):
        change(result, marked)
    assert repr(result) == before
