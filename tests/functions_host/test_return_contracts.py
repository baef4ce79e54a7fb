"""Each row of the table of return values, by an example: what this host answers, and whether the log says so."""

from __future__ import annotations

import json
from typing import Any

import pytest

from funcmcp_host.results import ReturnError, prompt_result, resource_result, tool_result
from funcmcp_host.return_contracts import CONTRACTS, REFUSED, ReturnContract, warning_for
from funcmcp_host.workers.worker import NULL, Value

pytestmark = pytest.mark.every_python("Python 3.13 has another azure-functions.")

TEXT = {"type": "text", "text": "hi"}
IMAGE = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
RESOURCE = {"uri": "a:b", "mimeType": "text/plain", "text": "hi"}
MESSAGES = {"messages": [{"role": "user", "content": TEXT}]}


def text(value: Any) -> Value:
    return Value("string", value if isinstance(value, str) else json.dumps(value))


def envelope(kind: str, content: Any, **members: Any) -> Value:
    return text({"Type": kind, "content": json.dumps(content), "other": 1, **members})


EXAMPLES: dict[str, tuple[Value, Any]] = {
    "tool-nothing": (NULL, {"content": []}),
    "tool-text": (text("hi"), {"content": [TEXT]}),
    "tool-json": (Value("json", "[1]"), {"content": [{"type": "text", "text": "[\n  1\n]"}]}),
    "tool-number": (Value("int", 3), {"content": [{"type": "text", "text": "3"}]}),
    "tool-boolean": (Value("json", "true"), {"content": [{"type": "text", "text": "True"}]}),
    "tool-bytes": (
        Value("bytes", b"hi"),
        {
            "content": [
                {
                    "type": "resource",
                    "resource": {
                        "uri": "function://t/result",
                        "mimeType": "application/octet-stream",
                        "blob": "aGk=",
                    },
                }
            ]
        },
    ),
    "tool-envelope": (envelope("image", IMAGE), {"content": [IMAGE]}),
    "tool-blocks": (envelope("multi_content_result", [TEXT, IMAGE]), {"content": [TEXT, IMAGE]}),
    "tool-result": (
        envelope("call_tool_result", {"content": [TEXT], "isError": True}),
        {"content": [TEXT], "isError": True},
    ),
    "tool-structured": (
        envelope("text", TEXT, structuredContent='{"a": 1}'),
        {"content": [TEXT], "structuredContent": {"a": 1}},
    ),
    "tool-object": (Value("json", json.dumps({"type": "text", "content": json.dumps(TEXT)})), {"content": [TEXT]}),
    "tool-open-content": (text({"type": "text", "content": TEXT}), {"content": [TEXT]}),
    "tool-open-structured": (
        envelope("text", TEXT, structuredContent={"a": 1}),
        {"content": [TEXT], "structuredContent": {"a": 1}},
    ),
    "tool-array": (text([TEXT]), {"content": [TEXT]}),
    "tool-bare-result": (text({"content": [TEXT]}), {"content": [TEXT]}),
    "tool-old-blocks": (envelope("multiContent", [TEXT]), {"content": [TEXT]}),
    "tool-several": (envelope("text", [TEXT, IMAGE]), {"content": [TEXT, IMAGE]}),
    "tool-outer-structured": (
        envelope("call_tool_result", {"content": [TEXT]}, structuredContent='{"a": 1}'),
        {"content": [TEXT], "structuredContent": {"a": 1}},
    ),
    "tool-flat-resource": (
        envelope("resource", {"type": "resource", **RESOURCE}),
        {"content": [{"type": "resource", "resource": RESOURCE}]},
    ),
    "tool-snake-case": (
        envelope("image", {"type": "image", "data": "aGk=", "mime_type": "image/png"}),
        {"content": [IMAGE]},
    ),
    "tool-other": (text("hi"), None),
    "resource-nothing": (NULL, {"contents": []}),
    "resource-text": (text("hi"), {"contents": [RESOURCE]}),
    "resource-bytes": (Value("bytes", b"hi"), {"contents": [{"uri": "a:b", "mimeType": "text/plain", "blob": "aGk="}]}),
    "resource-envelope": (text({"Content": json.dumps({"text": "hi"}), "other": 1}), {"contents": [RESOURCE]}),
    "resource-document": (
        text('{"content": {"text": "hi"}}'),
        {"contents": [{**RESOURCE, "text": '{"content": {"text": "hi"}}'}]},
    ),
    "resource-empty-envelope": (text({"content": None}), None),
    "resource-other": (Value("int", 3), None),
    "prompt-nothing": (NULL, {"messages": []}),
    "prompt-text": (text("hi"), MESSAGES),
    "prompt-value": (
        Value("json", '{"a":1}'),
        {"messages": [{"role": "user", "content": {"type": "text", "text": '{\n  "a": 1\n}'}}]},
    ),
    "prompt-bytes": (Value("bytes", b"hi"), None),
    "prompt-document": (
        text('{"messages": [{"from": "ada"}]}'),
        {"messages": [{"role": "user", "content": {"type": "text", "text": '{"messages": [{"from": "ada"}]}'}}]},
    ),
    "prompt-bare": (text(MESSAGES), MESSAGES),
    "prompt-envelope": (envelope("prompt_messages", MESSAGES["messages"]), MESSAGES),
    "prompt-bare-result": (text(MESSAGES), MESSAGES),
    "prompt-open-content": (text({"type": "get_prompt_result", "content": MESSAGES}), MESSAGES),
    "prompt-text-content": (envelope("prompt_messages", [{"role": "user", "content": "hi"}]), MESSAGES),
    "prompt-other": (text("hi"), None),
}


def answer(contract: ReturnContract, value: Value, deviations: set[str]) -> dict[str, Any]:
    uses_result_schema = bool(contract.result_schema)
    if contract.trigger == "tool":
        return tool_result(value, deviations, "t", uses_result_schema=uses_result_schema)
    if contract.trigger == "resource":
        return resource_result(value, deviations, "a:b", "text/plain")
    return prompt_result(value, deviations, uses_result_schema=uses_result_schema)


def test_each_row_has_an_example() -> None:
    assert [contract.name for contract in CONTRACTS] == list(EXAMPLES)


@pytest.mark.parametrize("contract", CONTRACTS, ids=lambda contract: contract.name)
def test_the_example_of_a_row_is_answered_as_the_row_says(contract: ReturnContract) -> None:
    value, expected = EXAMPLES[contract.name]
    deviations: set[str] = set()
    if expected is None:
        assert (contract.here or contract.azure) == REFUSED
        with pytest.raises(ReturnError):
            answer(contract, value, deviations)
        return
    assert answer(contract, value, deviations) == expected
    is_said = bool(contract.here) and contract.name != "tool-structured"  # more than on Azure, which breaks nothing
    assert deviations == ({contract.name} if is_said else set())


def test_the_text_of_a_warning() -> None:
    assert warning_for("tool-array") == (
        "It returns an array of blocks without an envelope. On Azure: the call fails. Here: the blocks."
    )
