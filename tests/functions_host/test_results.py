"""From what functions return to results: each contract in its old and new spelling, and what is refused."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from funcmcp_host.results import ReturnError, objects_only, prompt_result, resource_result, tool_result
from funcmcp_host.workers.worker import NULL, Value

TEXT = {"type": "text", "text": "hi"}
IMAGE = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
AUDIO = {"type": "audio", "data": "aGk=", "mimeType": "audio/wav"}
LINK = {"type": "resource_link", "uri": "file://a", "name": "a"}
EMBEDDED = {"type": "resource", "resource": {"uri": "file://a", "mimeType": "text/markdown", "text": "t"}}


def envelope(kind: str, content: Any, **more: Any) -> Value:
    return Value("string", json.dumps({"type": kind, "content": json.dumps(content), **more}))


def read(value: Value) -> dict[str, Any]:
    return tool_result(value, set(), "t", uses_result_schema=True)


@pytest.mark.parametrize(
    ("value", "block"),
    [
        (Value("string", "hi"), TEXT),
        (Value("string", '{"a":1}'), {"type": "text", "text": '{"a":1}'}),
        (Value("json", '{"a":[1,"ä"]}'), {"type": "text", "text": '{\n  "a": [\n    1,\n    "ä"\n  ]\n}'}),
        (Value("int", 3), {"type": "text", "text": "3"}),
        (Value("double", 1.5), {"type": "text", "text": "1.5"}),
        (Value("double", 1e16), {"type": "text", "text": "1E+16"}),
        (Value("json", "12345678901234567890"), {"type": "text", "text": "12345678901234567890"}),
        (Value("json", "2.0"), {"type": "text", "text": "2"}),
        (Value("json", "false"), {"type": "text", "text": "False"}),
        (Value("json", '"a"'), {"type": "text", "text": "a"}),
    ],
)
def test_a_simple_value_is_one_text_block(value: Value, block: dict[str, Any]) -> None:
    assert tool_result(value, set(), "t", uses_result_schema=False) == {"content": [block]}


def test_bytes_are_an_embedded_blob() -> None:
    (block,) = tool_result(Value("bytes", b"\x00\xff"), set(), "t", uses_result_schema=False)["content"]
    assert block["type"] == "resource"
    assert base64.b64decode(block["resource"]["blob"]) == b"\x00\xff"
    assert block["resource"]["mimeType"] == "application/octet-stream"


@pytest.mark.parametrize("uses_result_schema", [True, False])
def test_nothing_is_no_content(uses_result_schema: bool) -> None:
    for value in (NULL, Value("string", "")):  # the latter is what azure-functions makes of None
        assert tool_result(value, set(), "t", uses_result_schema=uses_result_schema) == {"content": []}


@pytest.mark.parametrize("block", [TEXT, IMAGE, AUDIO, LINK, EMBEDDED])
def test_an_envelope_holds_one_block(block: dict[str, Any]) -> None:
    expected = {"content": [block]}
    assert read(envelope(block["type"], block)) == expected
    assert read(envelope(block["type"].upper(), block)) == expected
    assert read(Value("string", json.dumps({"type": block["type"], "content": block}))) == expected
    assert read(Value("json", json.dumps({"type": block["type"], "content": block}))) == expected


@pytest.mark.parametrize("kind", ["multi_content_result", "multiContent"])
def test_an_envelope_holds_several_blocks_in_both_spellings(kind: str) -> None:
    assert read(envelope(kind, [TEXT, IMAGE])) == {"content": [TEXT, IMAGE]}


def test_an_array_without_an_envelope_is_several_blocks() -> None:
    assert read(Value("string", json.dumps([TEXT, LINK]))) == {"content": [TEXT, LINK]}


def test_a_whole_result_keeps_its_members() -> None:
    whole = {"content": [TEXT], "isError": True, "_meta": {"k": 1}, "structuredContent": {"a": 1}}
    assert read(envelope("call_tool_result", whole)) == whole
    assert read(Value("string", json.dumps(whole))) == whole
    inner = {"content": [TEXT]}
    assert read(envelope("call_tool_result", inner, structuredContent='{"b": 2}'))["structuredContent"] == {"b": 2}
    assert read(envelope("call_tool_result", {"content": []})) == {"content": []}


def test_names_in_snake_case_are_accepted() -> None:
    whole = {"content": [{"type": "image", "data": "aGk=", "mime_type": "image/png"}], "is_error": True, "meta": None}
    assert read(envelope("call_tool_result", whole)) == {"content": [IMAGE], "isError": True}


@pytest.mark.parametrize("structured", ['{"a": 1}', {"a": 1}])
def test_structured_content_is_json_or_a_text_of_it(structured: Any) -> None:
    result = read(envelope("text", TEXT, structuredContent=structured))
    assert result == {"content": [TEXT], "structuredContent": {"a": 1}}


def test_an_envelope_with_an_empty_type_holds_one_block() -> None:
    assert read(envelope("", TEXT)) == {"content": [TEXT]}


def test_a_text_as_structured_content_of_a_whole_result_is_not_read_as_json() -> None:
    result = {"content": [TEXT], "structuredContent": "hi"}
    assert read(envelope("call_tool_result", result)) == result


@pytest.mark.parametrize("value", [Value("json", "null"), NULL])
def test_null_is_nothing_for_each_trigger(value: Value) -> None:
    assert tool_result(value, set(), "t", uses_result_schema=True) == {"content": []}
    assert resource_result(value, set(), "a:b", None) == {"contents": []}
    assert prompt_result(value, set(), uses_result_schema=False) == {"messages": []}


def test_a_text_is_added_to_structured_content_without_one() -> None:
    result = read(envelope("image", IMAGE, structuredContent='{"a": 1}'))
    assert result["content"] == [IMAGE, {"type": "text", "text": '{"a": 1}'}]


@pytest.mark.parametrize("block", [IMAGE, {**IMAGE, "_meta": None}, AUDIO, LINK, EMBEDDED])
def test_a_lone_block_that_an_app_repeats_as_structured_content_is_sent_once(block: Any) -> None:
    result = read(envelope(block["type"], block, structuredContent=json.dumps(block)))
    assert list(result) == ["content"]
    assert [sent["type"] for sent in result["content"]] == [block["type"]]


def test_a_lone_text_is_repeated_as_structured_content_as_on_azure() -> None:
    result = read(envelope("text", TEXT, structuredContent=json.dumps(TEXT)))
    assert result == {"content": [TEXT], "structuredContent": TEXT}


def test_the_text_for_structured_content_has_no_base64_of_a_block() -> None:
    structured = {"kind": "cat", "pictures": [IMAGE, {**IMAGE, "data": "eW8="}]}
    result = read(envelope("image", IMAGE, structuredContent=json.dumps(structured)))
    picture, text, other = result["content"]
    assert (picture, other) == (IMAGE, {**IMAGE, "data": "eW8="})
    without_data = {"type": "image", "mimeType": "image/png"}
    assert json.loads(text["text"]) == {"kind": "cat", "pictures": [without_data, without_data]}
    assert result["structuredContent"] == structured


def test_structured_content_that_is_not_an_object_is_wrapped_for_revisions_that_want_objects() -> None:
    result = read(envelope("text", TEXT, structuredContent="[1, 2]"))
    assert result["structuredContent"] == [1, 2]
    assert objects_only(result)["structuredContent"] == {"result": [1, 2]}
    assert objects_only({"content": []}) == {"content": []}


def test_a_flat_resource_is_nested() -> None:
    flat = {"type": "resource", "uri": "file://a", "mimeType": "text/markdown", "text": "t"}
    assert read(envelope("resource", flat)) == {"content": [EMBEDDED]}


def test_an_embedded_resource_always_has_a_media_type() -> None:
    block = {"type": "resource", "resource": {"uri": "file://a", "blob": "aGk="}}
    (found,) = read(envelope("resource", block))["content"]
    assert found["resource"] == {"uri": "file://a", "mimeType": "application/octet-stream", "blob": "aGk="}


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (Value("string", "plain"), "not valid JSON"),
        (Value("string", "3"), "returns a JSON object"),
        (Value("int", 3), "returns a JSON object"),
        (Value("string", "{}"), 'no "type"'),
        (Value("string", '{"type": ""}'), "'' is not a type"),
        (Value("json", "{"), "not valid JSON"),
        (envelope("text", TEXT, structuredContent="null"), "structured content is null"),
        (envelope("text", TEXT, structuredContent='{"a": NaN}'), "not valid JSON"),
        (envelope("call_tool_result", {"content": [TEXT], "isError": "true"}), "isError"),
        (Value("string", '{"type": "text", "content": "{"}'), "not valid JSON"),
        (Value("string", '{"type": "text", "content": null}'), "is a JSON object"),
        (envelope("text", {"type": "text"}), 'needs the string "text"'),
        (envelope("video", {"type": "video"}), "'video' is not a type"),
        (envelope("image", {"type": "image", "data": "x"}), 'needs the string "mimeType"'),
        (envelope("multi_content_result", []), "no content blocks"),
        (envelope("multi_content_result", "x"), "no content blocks"),
        (envelope("multi_content_result", ["x"]), "is a JSON object"),
        (envelope("call_tool_result", [TEXT]), "is a JSON object"),
        (envelope("resource", {"type": "resource", "resource": {"uri": "a:b"}}), 'needs "text" or "blob"'),
        (envelope("resource", {"type": "resource", "resource": "x"}), "not an object"),
        (envelope("resource", {"type": "resource", "text": "x"}), "needs a uri"),
        (envelope("text", TEXT, structuredContent="{"), "not valid JSON"),
        (envelope("text", TEXT, structuredContent="[" * 100_000), "not valid JSON"),
        (Value("string", '{"type": "text", "content": ' + "[" * 100_000), "."),
    ],
)
def test_a_result_that_is_none_is_an_error_with_200_characters_of_it(value: Value, reason: str) -> None:
    with pytest.raises(ReturnError, match=reason) as failure:
        read(value)
    assert len(str(failure.value)) < 400


@pytest.mark.parametrize(
    ("value", "contents"),
    [
        (Value("string", "t"), {"uri": "a:b", "mimeType": "text/plain", "text": "t"}),
        (Value("string", ""), {"uri": "a:b", "mimeType": "text/plain", "text": ""}),
        (Value("bytes", b"hi"), {"uri": "a:b", "mimeType": "application/octet-stream", "blob": "aGk="}),
        (
            Value("string", '{"type": "text", "content": "{\\"text\\": \\"t\\", \\"uri\\": \\"\\"}"}'),
            {"uri": "a:b", "mimeType": "text/plain", "text": "t"},
        ),
        (
            Value("string", '{"content": "{\\"blob\\": \\"aGk=\\", \\"uri\\": \\"c:d\\", \\"mimeType\\": \\"x/y\\"}"}'),
            {"uri": "c:d", "mimeType": "x/y", "blob": "aGk="},
        ),
        (
            Value("string", '{"Content": "{\\"text\\": \\"t\\", \\"_meta\\": {\\"ui\\": {}}}", "other": 1}'),
            {"uri": "a:b", "mimeType": "text/plain", "text": "t", "_meta": {"ui": {}}},
        ),
        # JSON documents that only resemble an envelope are texts of their own.
        (
            Value("string", '{"content": {"text": "t"}}'),
            {"uri": "a:b", "mimeType": "text/plain", "text": '{"content": {"text": "t"}}'},
        ),
        (
            Value("string", '{"type": "article", "content": {"title": "T"}}'),
            {"uri": "a:b", "mimeType": "text/plain", "text": '{"type": "article", "content": {"title": "T"}}'},
        ),
        (Value("string", '{"a": 1}'), {"uri": "a:b", "mimeType": "text/plain", "text": '{"a": 1}'}),
        (
            Value("string", '{"content": "x", "a": 1}'),
            {"uri": "a:b", "mimeType": "text/plain", "text": '{"content": "x", "a": 1}'},
        ),
        (
            Value("string", '{"content": "x"}'),
            {"uri": "a:b", "mimeType": "text/plain", "text": '{"content": "x"}'},
        ),
        (
            Value("string", r'{"content": "{\"text\": 5}"}'),
            {"uri": "a:b", "mimeType": "text/plain", "text": r'{"content": "{\"text\": 5}"}'},
        ),
        (
            Value("string", json.dumps({"content": json.dumps({"text": "t", "blob": "aGk="})})),
            {"uri": "a:b", "mimeType": "application/octet-stream", "blob": "aGk="},
        ),
        (Value("json", '"t"'), {"uri": "a:b", "mimeType": "text/plain", "text": "t"}),
    ],
)
def test_contents_of_a_resource(value: Value, contents: dict[str, Any]) -> None:
    assert resource_result(value, set(), "a:b", None) == {"contents": [contents]}


def test_the_trigger_gives_the_media_type() -> None:
    assert resource_result(Value("string", "t"), set(), "a:b", "text/html")["contents"][0]["mimeType"] == "text/html"
    assert resource_result(Value("bytes", b""), set(), "a:b", "image/png")["contents"][0]["mimeType"] == "image/png"
    assert resource_result(NULL, set(), "a:b", None) == {"contents": []}


@pytest.mark.parametrize(
    "value",
    [
        Value("int", 3),
        Value("json", "{}"),
        Value("json", "true"),
        Value("string", '{"content": null}'),
        Value("string", '{"content": "null"}'),
        Value("string", '{"content": "{\\"uri\\": \\"a:b\\"}"}'),
    ],
)
def test_other_values_of_a_resource_are_errors(value: Value) -> None:
    with pytest.raises(ReturnError):
        resource_result(value, set(), "a:b", None)


DEFAULTED = [
    {"role": "user", "content": TEXT},
    {"role": "assistant", "content": {"type": "text", "text": ""}},
]
MESSAGES = [{"role": "user", "content": TEXT}, {"role": "assistant", "content": IMAGE}]
WHOLE = {"messages": MESSAGES, "description": "d"}


def one_message(text: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": {"type": "text", "text": text}}]}


@pytest.mark.parametrize(
    ("value", "result"),
    [
        (Value("string", json.dumps(WHOLE)), WHOLE),
        (Value("json", json.dumps(WHOLE)), WHOLE),
        (Value("string", json.dumps({"description": "d"})), {"messages": [], "description": "d"}),
        (envelope("get_prompt_result", WHOLE, messages=MESSAGES, description="d"), WHOLE),
        (Value("string", json.dumps({"type": "get_prompt_result", **WHOLE})), WHOLE),
        (NULL, {"messages": []}),
    ],
)
def test_messages_of_a_prompt(value: Value, result: dict[str, Any]) -> None:
    assert prompt_result(value, set(), uses_result_schema=False) == result


@pytest.mark.parametrize(
    "text",
    [
        "hi",
        '{"a": 1}',
        '{"messages": []}',
        '{"messages": "hello"}',
        '{"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hi"}]}',
        '{"messages": [{"role": "user", "content": "hi"}]}',
        '{"messages": [{"role": "user", "content": {"type": "input_text", "text": "hi"}}]}',
        '{"messages": [{"from": "ada", "subject": "x"}], "description": "Mail"}',
        json.dumps({"type": "get_prompt_result", "content": json.dumps(WHOLE)}),
        '{"messages": ' + "[" * 100_000,
    ],
)
def test_json_that_is_not_a_result_is_a_text(text: str) -> None:
    assert prompt_result(Value("string", text), set(), uses_result_schema=False) == one_message(text)


@pytest.mark.parametrize(
    ("value", "result"),
    [
        (envelope("get_prompt_result", WHOLE), WHOLE),
        (envelope("GET_PROMPT_RESULT", WHOLE, other=1), WHOLE),
        (Value("string", json.dumps({"Type": "get_prompt_result", "Content": json.dumps(WHOLE)})), WHOLE),
        (envelope("prompt_messages", MESSAGES), {"messages": MESSAGES}),
        (Value("string", json.dumps(WHOLE)), WHOLE),
        (Value("string", json.dumps({"type": "prompt_messages", "content": MESSAGES})), {"messages": MESSAGES}),
        (envelope("prompt_messages", [{"role": "user", "content": "hi"}]), one_message("hi")),
        (Value("string", json.dumps({"type": "get_prompt_result", **WHOLE})), WHOLE),
        (envelope("prompt_messages", [{"content": TEXT}, {"role": "assistant"}]), {"messages": DEFAULTED}),
        (NULL, {"messages": []}),
    ],
)
def test_messages_of_a_prompt_with_a_result_schema(value: Value, result: dict[str, Any]) -> None:
    assert prompt_result(value, set(), uses_result_schema=True) == result


@pytest.mark.parametrize(
    "value",
    [
        Value("int", 3),
        Value("bytes", b"x"),
        Value("string", "hi"),
        Value("string", '{"a": 1}'),
        envelope("text", TEXT),
        envelope("get_prompt_result", {"messages": "x"}),
        envelope("get_prompt_result", "x"),
        envelope("get_prompt_result", {"messages": [{"role": "system", "content": TEXT}]}),
        envelope("prompt_messages", [{"role": "user", "content": {"type": "video"}}]),
        envelope("prompt_messages", "x"),
    ],
)
def test_other_values_of_a_prompt_with_a_result_schema_are_errors(value: Value) -> None:
    with pytest.raises(ReturnError):
        prompt_result(value, set(), uses_result_schema=True)
