"""Requests to the client's model and their answers, in the forms of FastMCP and the official SDK."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from funcmcp._authoring.results.content import Content
from funcmcp._objects.public_names import public

if TYPE_CHECKING:
    from funcmcp._authoring.calling.questions import Sampled

_UNSUPPORTED = ("tools", "tool_choice", "result_type", "execute_tools", "tool_concurrency")
_OPTIONS = ("stop_sequences", "include_context", "metadata")


@public("funcmcp.compat")
class SamplingResult:
    """The message of the client's model.

    Attributes:
        text: The text of all its text blocks.
        blocks: The content blocks as the client sent them.
        model: The model's name.
        role: The role, as a rule ``"assistant"``.
        type: ``"text"``.
    """

    type = "text"

    def __init__(self, answer: Sampled) -> None:
        self.text: str = answer.text
        self.model: str = answer.model
        self.role: str = answer.role
        self.stop_reason: str | None = answer.stop_reason
        self.stopReason: str | None = answer.stop_reason
        self.blocks: list[dict[str, Any]] = answer.content

    @property
    def result(self) -> str:
        """The text."""
        return self.text

    @property
    def content(self) -> SamplingResult:
        """The content: an object with ``type`` and ``text``."""
        return self

    def __str__(self) -> str:
        return self.text


def sampling_messages(messages: Any) -> list[Any]:
    """Return the messages of a sampling request in the form that `funcmcp.Context.sample` takes."""
    if isinstance(messages, str | Content) or not isinstance(messages, list | tuple):
        messages = [messages]
    return [_message(message) for message in messages]


def _message(message: Any) -> Any:
    if hasattr(message, "model_dump"):
        return message.model_dump(mode="json", by_alias=True, exclude_none=True)
    return message


def sampling_options(
    system_prompt: str | None, temperature: float | None, model_preferences: Any, options: dict[str, Any]
) -> dict[str, Any]:
    """Return the options that `funcmcp.Context.sample` takes.

    Raises:
        TypeError: An option is one that funcmcp does not have.
    """
    unsupported = [name for name in _UNSUPPORTED if options.get(name) is not None]
    if unsupported:
        raise TypeError(
            f"ctx.sample of funcmcp.compat has no {', '.join(unsupported)}. Ask for a text, and call tools yourself."
        )
    if isinstance(model_preferences, str):
        model_preferences = {"hints": [{"name": model_preferences}]}
    elif isinstance(model_preferences, list):
        model_preferences = {"hints": [{"name": name} for name in model_preferences]}
    elif hasattr(model_preferences, "model_dump"):
        model_preferences = model_preferences.model_dump(mode="json", by_alias=True, exclude_none=True)
    chosen = {name: options[name] for name in _OPTIONS if options.get(name) is not None}
    if system_prompt is not None:
        chosen["system_prompt"] = system_prompt
    if temperature is not None:
        chosen["temperature"] = temperature
    if model_preferences is not None:
        chosen["model_preferences"] = model_preferences
    return chosen


def sdk_result(answer: SamplingResult) -> Any:
    """Return an answer as ``CreateMessageResult`` of ``mcp.types``, whose classes authors compare with.

    Without the package `mcp` the answer is returned unchanged.
    """
    try:
        from mcp.types import CreateMessageResult  # noqa: PLC0415 - an author's own dependency
    except ModuleNotFoundError:
        return answer
    content: Any = answer.blocks[0] if len(answer.blocks) == 1 else {"type": "text", "text": answer.text}
    members = {"role": answer.role, "model": answer.model, "content": content, "stopReason": answer.stop_reason}
    return CreateMessageResult.model_validate(members)
