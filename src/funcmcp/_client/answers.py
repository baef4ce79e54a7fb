"""Answers to the questions of servers: ``elicitation/create``, ``sampling/createMessage`` and ``roots/list``."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from funcmcp._client.errors import one_line
from funcmcp._objects.public_names import public
from funcmcp._protocol.codec import encode
from funcmcp._protocol.errors import INVALID_PARAMS, InvalidResponseError, MCPError
from funcmcp._protocol.extensions import is_identifier

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    Callback: TypeAlias = Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]


_ELICIT_RESULT = "elicit must return an ElicitResult, such as {'action': 'accept', 'content': {'name': 'Ada'}}"
_SAMPLE_RESULT = (
    "sample must return a CreateMessageResult, such as "
    "{'role': 'assistant', 'model': 'm', 'content': {'type': 'text', 'text': 'Hello'}}"
)


def declared_extensions(extensions: Mapping[str, Mapping[str, Any]] | Sequence[str]) -> dict[str, Mapping[str, Any]]:
    """Return the settings of extensions by name; raise ValueError or TypeError for others."""
    if isinstance(extensions, str):
        raise TypeError(f"extensions must be a list of names, or a dict with their settings; got {extensions!r:.80}.")
    declared = dict(extensions) if isinstance(extensions, Mapping) else {name: {} for name in extensions}
    for name, settings in declared.items():
        if not is_identifier(name) or not isinstance(settings, Mapping):
            raise ValueError(f"An extension has a name such as 'com.example/search' and a dict; got {name!r:.80}.")
        try:
            encode(dict(settings))
        except ValueError as error:
            raise ValueError(f"The settings of {name} must be JSON: {error}.") from None
    return declared


def checked_roots(roots: Any) -> list[dict[str, Any]]:
    """Return Root objects as a list; raise TypeError for anything else, such as paths or a function."""
    items = list(roots) if isinstance(roots, Sequence) and not isinstance(roots, str) else [roots]
    for root in items:
        if not isinstance(root, dict) or not isinstance(root.get("uri"), str):
            raise TypeError(
                f"roots must be a list of Root objects, such as {{'uri': 'file:///data'}}; got {root!r:.80}."
            )
    return items


class UndeclaredQuestionError(InvalidResponseError):
    """The server asked a question whose capability the client did not declare."""


@public("funcmcp.testing")
class Answers:
    """The client's callbacks for questions of the server. It declares a capability for each callback that it has.

    Args:
        elicit: Answers ``elicitation/create``: receives the params and returns an ElicitResult. A field that it leaves
            out of an accepted form gets its default value (SEP-1034).
        sample: Answers ``sampling/createMessage``: receives the params, which may have tools, and returns a
            CreateMessageResult. Uses of tools without their results are refused before.
        roots: Root objects, the answer to ``roots/list``. An empty list also declares the capability.
        extensions: The settings of the extensions that the client declares, by name.

    Raises:
        TypeError: *roots* is not a list of Root objects.

    Attributes:
        capabilities: The client's capabilities, in the shape of ClientCapabilities.
        roots: The answer to ``roots/list``.
        in_background: Whether the messages after a question do not wait for its answer.
    """

    in_background = False

    def __init__(
        self,
        elicit: Callback | None,
        sample: Callback | None,
        roots: Sequence[dict[str, Any]] | None,
        extensions: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        self._elicit = elicit
        self._sample = sample
        self.roots: Sequence[dict[str, Any]] | None = None if roots is None else checked_roots(roots)
        self.capabilities: dict[str, Any] = {}
        if elicit is not None:
            self.capabilities["elicitation"] = {"form": {}, "url": {}}
        if sample is not None:
            self.capabilities["sampling"] = {"tools": {}}
        if roots is not None:
            self.capabilities["roots"] = {}
        if extensions:
            self.capabilities["extensions"] = {name: dict(settings) for name, settings in extensions.items()}

    async def to(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """Return the result for a question.

        Args:
            question: An object with `method` and `params`: a request of the server, or an entry of `inputRequests`.

        Raises:
            UndeclaredQuestionError: The client has no callback for the method.
            MCPError: The question is not valid, or the callback raises it.
            TypeError: The callback returns something that is not a result.
        """
        method = question.get("method")
        params = question.get("params")
        if not isinstance(params, dict):
            params = {}
        if method == "ping":
            return {}
        if method == "elicitation/create" and self._elicit is not None:
            return _with_defaults(await _answer_of(self._elicit, params, _ELICIT_RESULT), params)
        if method == "sampling/createMessage" and self._sample is not None:
            _check_tool_results(params)
            return await _answer_of(self._sample, params, _SAMPLE_RESULT)
        if method == "roots/list" and self.roots is not None:
            return {"roots": list(self.roots)}
        raise UndeclaredQuestionError(f"The server asks {one_line(method)}, which this client does not declare.")


async def _answer_of(callback: Callback, params: dict[str, Any], expected: str) -> dict[str, Any]:
    """Return what a callback answers. It is an async function, or a plain one that does not block."""
    answer: Any = callback(params)
    if inspect.isawaitable(answer):
        answer = await answer
    if not isinstance(answer, dict):
        raise TypeError(f"{expected}; got {type(answer).__name__}.")
    return answer


def _with_defaults(answer: dict[str, Any], params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answer to a form, with the default values of fields that an accepted form does not have.

    Source: 2025-11-25 "client/elicitation", SEP-1034.
    """
    schema = params.get("requestedSchema")
    fields = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(fields, dict) or answer.get("action") != "accept":
        return answer
    defaults = {name: field["default"] for name, field in fields.items() if _has_default(field)}
    content = answer.get("content") or {}
    if not defaults or not isinstance(content, dict):
        return answer
    return {**answer, "content": {**defaults, **content}}


def _has_default(field: object) -> bool:
    return isinstance(field, dict) and field.get("default") is not None


def _check_tool_results(params: Mapping[str, Any]) -> None:
    """Raise MCPError for messages in which a use of a tool has no result, or a result has no use before it.

    Source: 2025-11-25 "client/sampling, Message Content Constraints" and "Error Handling".
    """
    messages = params.get("messages")
    unanswered: set[Any] = set()
    for message in messages if isinstance(messages, list) else ():
        blocks = _blocks_of(message)
        results = {str(block.get("toolUseId")) for block in blocks if block.get("type") == "tool_result"}
        if results and any(block.get("type") != "tool_result" for block in blocks):
            raise MCPError(INVALID_PARAMS, "A message has results of tools and other content.")
        if results != unanswered:
            raise MCPError(INVALID_PARAMS, "The results of tools are not those of the uses in the message before.")
        unanswered = {str(block.get("id")) for block in blocks if block.get("type") == "tool_use"}
    if unanswered:
        raise MCPError(INVALID_PARAMS, "The last message uses tools, and their results are missing.")


def _blocks_of(message: object) -> list[dict[str, Any]]:
    """Return the content blocks of a message, which has one or a list of them."""
    content = message.get("content") if isinstance(message, dict) else None
    blocks = content if isinstance(content, list) else [content]
    return [block for block in blocks if isinstance(block, dict)]
