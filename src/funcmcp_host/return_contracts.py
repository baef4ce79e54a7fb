"""What functions of an app may return: a row for each form, with what Azure makes of it and what this host makes of it.

`results` refers to a row by its name where this host accepts what Azure refuses, so that the log can say so. The table
of docs/guides/functions-host.md is made from the rows.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

_TRIGGER = "https://github.com/Azure/azure-functions-mcp-extension/blob/1.6.0/src/Microsoft.Azure.Functions.Extensions.Mcp/Trigger"
_TOOL = f"{_TRIGGER}/ToolReturnValueBinder.cs"
_SIMPLE_TOOL = f"{_TRIGGER}/SimpleToolReturnValueBinder.cs"
_RESOURCE = f"{_TRIGGER}/ResourceReturnValueBinder.cs"
_PROMPT = f"{_TRIGGER}/PromptReturnValueBinder.cs"
_SIMPLE_PROMPT = f"{_TRIGGER}/SimplePromptReturnValueBinder.cs"
_PROMPT_15 = _PROMPT.replace("/1.6.0/", "/1.5.0/")

REFUSED = "the call fails"


class ReturnContract(NamedTuple):
    """A form of return value.

    Attributes:
        name: What `results` and the tests call the row.
        trigger: "tool", "resource" or "prompt".
        result_schema: Whether the trigger sets ``useResultSchema``; None if it makes no difference.
        returned: What the function returns.
        azure: What Azure's host makes of it.
        here: What this host makes of it; empty if it is the same.
        source: Where Azure's host decides.
    """

    name: str
    trigger: Literal["tool", "resource", "prompt"]
    result_schema: bool | None
    returned: str
    azure: str
    here: str
    source: str


CONTRACTS = (
    ReturnContract("tool-nothing", "tool", None, "nothing", "no content", "", _SIMPLE_TOOL),
    ReturnContract("tool-text", "tool", False, "a text", "the text", "", _SIMPLE_TOOL),
    ReturnContract(
        "tool-json", "tool", False, "an object or an array", "its JSON as a text, indented", "", _SIMPLE_TOOL
    ),
    ReturnContract("tool-number", "tool", False, "a number", "the number as a text", "", _SIMPLE_TOOL),
    ReturnContract("tool-boolean", "tool", False, "a boolean", "the text `True` or `False`", "", _SIMPLE_TOOL),
    ReturnContract(
        "tool-bytes", "tool", False, "bytes", "the name of a type of .NET", "an embedded resource", _SIMPLE_TOOL
    ),
    ReturnContract(
        "tool-envelope",
        "tool",
        True,
        'a text `{"type": ..., "content": "<JSON of a block>"}`; the names in any case, other members ignored',
        "the block, once",
        "",
        _TOOL,
    ),
    ReturnContract(
        "tool-blocks",
        "tool",
        True,
        'the same with the type `multi_content_result` and "<JSON of an array>"',
        "the blocks",
        "",
        _TOOL,
    ),
    ReturnContract(
        "tool-result",
        "tool",
        True,
        'the same with the type `call_tool_result` and "<JSON of a CallToolResult>"',
        "the result with `isError` and `_meta`",
        "",
        _TOOL,
    ),
    ReturnContract(
        "tool-structured",
        "tool",
        True,
        'the same with `structuredContent`: "<JSON>"',
        "structured content",
        "also a text, if there is none",
        _TOOL,
    ),
    ReturnContract("tool-object", "tool", True, "an object instead of a text", REFUSED, "as the text", _TOOL),
    ReturnContract(
        "tool-open-content", "tool", True, "`content` as an object or an array", REFUSED, "as its text", _TOOL
    ),
    ReturnContract(
        "tool-open-structured", "tool", True, "`structuredContent` as an object", REFUSED, "as its text", _TOOL
    ),
    ReturnContract("tool-array", "tool", True, "an array of blocks without an envelope", REFUSED, "the blocks", _TOOL),
    ReturnContract(
        "tool-bare-result", "tool", True, "a CallToolResult without an envelope", REFUSED, "the result", _TOOL
    ),
    ReturnContract("tool-old-blocks", "tool", True, "the type `multiContent`", REFUSED, "the blocks", _TOOL),
    ReturnContract(
        "tool-several",
        "tool",
        True,
        "an array as `content`, with the type of a single block",
        REFUSED,
        "the blocks",
        _TOOL,
    ),
    ReturnContract(
        "tool-outer-structured",
        "tool",
        True,
        "`structuredContent` beside a `call_tool_result` that has none",
        "ignored",
        "structured content",
        _TOOL,
    ),
    ReturnContract(
        "tool-flat-resource",
        "tool",
        True,
        "a block of type `resource` without `resource`",
        REFUSED,
        "the resource",
        _TOOL,
    ),
    ReturnContract(
        "tool-snake-case",
        "tool",
        True,
        "`mime_type`, `is_error`, `structured_content`",
        "ignored, so an image or a sound fails",
        "as in camel case",
        _TOOL,
    ),
    ReturnContract("tool-other", "tool", True, "any other value", REFUSED, "", _TOOL),
    ReturnContract("resource-nothing", "resource", None, "nothing", "no contents", "", _RESOURCE),
    ReturnContract(
        "resource-text", "resource", None, "a text", "the text, with the trigger's media type", "", _RESOURCE
    ),
    ReturnContract("resource-bytes", "resource", None, "bytes", "a blob, with the trigger's media type", "", _RESOURCE),
    ReturnContract(
        "resource-envelope",
        "resource",
        None,
        'a text `{"content": "<JSON of contents>"}`; the name in any case, other members ignored',
        "these contents",
        "",
        _RESOURCE,
    ),
    ReturnContract(
        "resource-document",
        "resource",
        None,
        "JSON whose `content` is an object, or a text that is not JSON of contents",
        "the JSON as a text",
        "",
        _RESOURCE,
    ),
    ReturnContract(
        "resource-empty-envelope",
        "resource",
        None,
        "an envelope whose `content` is null, or has neither `text` nor `blob`",
        REFUSED,
        "",
        _RESOURCE,
    ),
    ReturnContract("resource-other", "resource", None, "a number, an object or an array", REFUSED, "", _RESOURCE),
    ReturnContract("prompt-nothing", "prompt", None, "nothing", "no messages", "", _SIMPLE_PROMPT),
    ReturnContract("prompt-text", "prompt", False, "a text", "one message of the user", "", _SIMPLE_PROMPT),
    ReturnContract(
        "prompt-value",
        "prompt",
        False,
        "a number, a boolean, an object or an array",
        "one message with the text, as of a tool",
        "",
        _SIMPLE_PROMPT,
    ),
    ReturnContract("prompt-bytes", "prompt", False, "bytes", "the name of a type of .NET", REFUSED, _SIMPLE_PROMPT),
    ReturnContract(
        "prompt-document",
        "prompt",
        False,
        "JSON that is not a GetPromptResult",
        "the JSON as one message",
        "",
        _SIMPLE_PROMPT,
    ),
    ReturnContract(
        "prompt-bare",
        "prompt",
        False,
        "a GetPromptResult as JSON",
        "its messages up to extension 1.5, the JSON as one message since 1.6",
        "its messages",
        _PROMPT_15,
    ),
    ReturnContract(
        "prompt-envelope",
        "prompt",
        True,
        'a text `{"type": "get_prompt_result", "content": "<JSON>"}`, or `prompt_messages` with an array',
        "its messages",
        "",
        _PROMPT,
    ),
    ReturnContract(
        "prompt-bare-result", "prompt", True, "a GetPromptResult without an envelope", REFUSED, "its messages", _PROMPT
    ),
    ReturnContract(
        "prompt-open-content", "prompt", True, "`content` as an object or an array", REFUSED, "as its text", _PROMPT
    ),
    ReturnContract(
        "prompt-text-content", "prompt", True, "a message whose `content` is a text", REFUSED, "a text block", _PROMPT
    ),
    ReturnContract("prompt-other", "prompt", True, "any other value", REFUSED, "", _PROMPT),
)

BY_NAME = {contract.name: contract for contract in CONTRACTS}


def warning_for(name: str) -> str:
    """Return what the log says about a return value that Azure treats in another way."""
    contract = BY_NAME[name]
    return f"It returns {contract.returned}. On Azure: {contract.azure}. Here: {contract.here}."
