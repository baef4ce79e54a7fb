"""What a prompt's function returns, as a ``GetPromptResult`` in the newest revision's shape without ``resultType``.

Source: 2026-07-28 "server/prompts".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from funcmcp._authoring.results.content import Content, Message, PromptResult
from funcmcp._authoring.results.sdk_results import converted
from funcmcp._authoring.schemas.python_values import type_name
from funcmcp._protocol.codec import encode, encode_text
from funcmcp._server.catalog.features import EncodedResult

if TYPE_CHECKING:
    from collections.abc import Sequence


def description_prefix(description: str) -> bytes:
    """Return the beginning of a result in JSON, with the prompt's description."""
    return b'{"description":%b,' % encode_text(description)


def prompt_result(
    value: Any, *, description: str | None = None, prefix: bytes = b"{"
) -> dict[str, Any] | EncodedResult:
    """Return the result for a returned value.

    Args:
        value: What the function returned.
        description: The prompt's description, for results without one of their own.
        prefix: The JSON before the messages: `description_prefix`, or a brace if there is no description.

    Raises:
        TypeError: The value is not a text, a content block, a `Message`, a list of these or a `PromptResult`.
        ValueError: The value can't be written as JSON.
    """
    if isinstance(value, str):
        text = encode_text(value)
        return EncodedResult(b'%b"messages":[{"role":"user","content":{"type":"text","text":%b}}]}' % (prefix, text))
    value = converted(value)
    if not isinstance(value, PromptResult):
        value = PromptResult(_as_list(value))
    result: dict[str, Any] = {"messages": [_message(message) for message in _as_list(value.messages)]}
    if value.description is not None:
        description = value.description
    if description is not None:
        result["description"] = description
    if value.meta is not None:
        result["_meta"] = dict(value.meta)
    encode(result)  # raises ValueError for what JSON can't carry
    return result


def _as_list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else [value]


def _message(message: Any) -> dict[str, Any]:
    message = converted(message)
    if isinstance(message, Message):
        return message.wire
    if isinstance(message, str | Content):
        return Message(message).wire
    raise TypeError(
        f"A prompt returns texts, content blocks and Message objects, not {type_name(type(message))}. "
        "Convert it to a text: str(value)."
    )
