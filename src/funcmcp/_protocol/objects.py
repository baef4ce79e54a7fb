"""Results and definitions as a client receives them.

Each class is a ``dict`` with the members of the wire, so nothing that a server sends is lost, and has a property in
Python's naming for each member that the specification defines. A property checks the type of its member when it is
read, and raises InvalidResponseError if the server sent something else.

Source: the schemas of the five revisions; a member that a revision does not have is None or empty.
"""

from __future__ import annotations

import binascii
from base64 import b64decode
from typing import Any, TypeVar

from funcmcp._objects.public_names import public
from funcmcp._protocol.errors import InvalidResponseError, ToolError
from funcmcp._protocol.tasks import STATUSES, TERMINAL

T = TypeVar("T")
D = TypeVar("D", bound="WireObject")

_MAX_MILLISECONDS = 2**53
"""The bound of times that a server may send. Beyond it, floats are not exact."""


class WireObject(dict[str, Any]):
    """A JSON object of the protocol."""

    @property
    def meta(self) -> dict[str, Any]:
        """The object's `_meta`. Empty if the server sent none."""
        return self._optional("_meta", dict) or {}

    def _required(self, name: str, kind: type[T]) -> T:
        value = self._optional(name, kind)
        if value is None:
            raise InvalidResponseError(f"{type(self).__name__} has no {name!r}.")
        return value

    def _optional(self, name: str, kind: type[T]) -> T | None:
        value = self.get(name)
        if value is not None and not isinstance(value, kind):
            raise InvalidResponseError(f"{name!r} of {type(self).__name__} has the type {type(value).__name__}.")
        return value

    def _flag(self, name: str, *, default: bool = False) -> bool:
        value = self._optional(name, bool)
        return default if value is None else value

    def _objects(self, name: str, kind: type[D]) -> list[D]:
        items = self._optional(name, list) or []
        return objects_of(items, kind)

    def _bytes(self, name: str) -> bytes | None:
        text = self._optional(name, str)
        if text is None:
            return None
        try:
            return b64decode(text, validate=True)
        except binascii.Error:
            raise InvalidResponseError(f"{name!r} of {type(self).__name__} is not base64.") from None


def number_of(value: object) -> float | None:
    """Return a number. Return None for one too large for arithmetic, and for anything else that a server may send."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if -_LARGEST < value < _LARGEST else None


_LARGEST = 2.0**1000


def objects_of(items: list[Any], kind: type[D]) -> list[D]:
    """Return the objects in a list of the server. Raise InvalidResponseError if one of them is not an object."""
    objects = []
    for wire_object in items:
        if not isinstance(wire_object, dict):
            raise InvalidResponseError(f"The server sent a {kind.__name__} that is not an object.")
        objects.append(kind(wire_object))
    return objects


@public("funcmcp.client")
class ContentBlock(WireObject):
    """A block of content: a text, an image, a sound, a link to a resource, or a resource."""

    @property
    def type(self) -> str:
        """The kind of block: text, image, audio, resource_link or resource."""
        return self._required("type", str)

    @property
    def text(self) -> str | None:
        """The text of a text block. None for other blocks."""
        return self._optional("text", str)

    @property
    def data(self) -> bytes | None:
        """The decoded bytes of an image or a sound. None for other blocks."""
        return self._bytes("data")

    @property
    def mime_type(self) -> str | None:
        """The media type of an image, a sound or a link's resource."""
        return self._optional("mimeType", str)

    @property
    def uri(self) -> str | None:
        """The URI of a link. None for other blocks."""
        return self._optional("uri", str)

    @property
    def name(self) -> str | None:
        """The name of a link's resource. None for other blocks."""
        return self._optional("name", str)

    @property
    def resource(self) -> ResourceContents | None:
        """The contents of an embedded resource. None for other blocks."""
        resource = self._optional("resource", dict)
        return None if resource is None else ResourceContents(resource)

    @property
    def annotations(self) -> dict[str, Any]:
        """The block's audience, priority and the like."""
        return self._optional("annotations", dict) or {}


@public("funcmcp.client")
class ResourceContents(WireObject):
    """The contents of a resource, or a part of them: a text or bytes."""

    @property
    def uri(self) -> str:
        """The resource's URI."""
        return self._required("uri", str)

    @property
    def mime_type(self) -> str | None:
        """The media type."""
        return self._optional("mimeType", str)

    @property
    def text(self) -> str | None:
        """The text. None if the contents are bytes."""
        return self._optional("text", str)

    @property
    def data(self) -> bytes | None:
        """The decoded bytes of `blob`. None if the contents are a text."""
        return self._bytes("blob")


@public("funcmcp.client")
class CallToolResult(WireObject):
    """The result of a tool."""

    @property
    def content(self) -> list[ContentBlock]:
        """The content blocks."""
        return self._objects("content", ContentBlock)

    @property
    def structured_content(self) -> Any:
        """The structured content, a JSON value. None if there is none."""
        return self.get("structuredContent")

    @property
    def is_error(self) -> bool:
        """Whether the tool failed. The content says why."""
        return self._flag("isError")

    @property
    def text(self) -> str:
        """The texts of all text blocks, each on a line of its own."""
        return "\n".join(block.text or "" for block in self.content if block.type == "text")

    def raise_for_error(self) -> None:
        """Raise ToolError with the result's text if the tool failed."""
        if self.is_error:
            raise ToolError(self.text or "The tool failed without a text.")


@public("funcmcp.client")
class Task(WireObject):
    """The state of a task.

    The members for times differ between the revisions. The properties read both forms.
    """

    @property
    def task_id(self) -> str:
        """The id."""
        return self._required("taskId", str)

    @property
    def status(self) -> str:
        """The status: working, input_required, completed, failed or cancelled."""
        status = self._required("status", str)
        if status not in STATUSES:
            raise InvalidResponseError(f"The server sent a task with the unknown status {status!r:.50}.")
        return status

    @property
    def status_message(self) -> str | None:
        """What the task does at the moment, or why it ended, for people. None if the server does not say it."""
        return self._optional("statusMessage", str)

    @property
    def has_ended(self) -> bool:
        """Whether the status cannot change any more."""
        return self.status in TERMINAL

    @property
    def poll_seconds(self) -> float | None:
        """Seconds between two requests for the state that the server asks for. None if it does not say it."""
        return self._seconds("pollIntervalMs", "pollInterval")

    @property
    def ttl_seconds(self) -> float | None:
        """Seconds from the creation for which the server keeps the task. None for no limit."""
        return self._seconds("ttlMs", "ttl")

    @property
    def input_requests(self) -> dict[str, Any]:
        """The questions that wait for an answer, by key. Empty in 2025-11-25, which sends them as requests."""
        return self._optional("inputRequests", dict) or {}

    def _seconds(self, *names: str) -> float | None:
        for name in names:
            milliseconds = number_of(self.get(name))
            if milliseconds is not None and abs(milliseconds) < _MAX_MILLISECONDS:
                return milliseconds / 1000
        return None


@public("funcmcp.client")
class ReadResourceResult(WireObject):
    """The result of reading a resource."""

    @property
    def contents(self) -> list[ResourceContents]:
        """The contents: one entry for most resources."""
        return self._objects("contents", ResourceContents)

    @property
    def text(self) -> str:
        """The texts of all entries that are texts, joined without a separator."""
        return "".join(entry.text or "" for entry in self.contents)


@public("funcmcp.client")
class PromptMessage(WireObject):
    """A message of a prompt."""

    @property
    def role(self) -> str:
        """Whose message it is: user or assistant."""
        return self._required("role", str)

    @property
    def content(self) -> ContentBlock:
        """The content block."""
        return ContentBlock(self._required("content", dict))


@public("funcmcp.client")
class GetPromptResult(WireObject):
    """The messages that a prompt makes of its arguments."""

    @property
    def description(self) -> str | None:
        """The description of the result."""
        return self._optional("description", str)

    @property
    def messages(self) -> list[PromptMessage]:
        """The messages."""
        return self._objects("messages", PromptMessage)


class Definition(WireObject):
    """A feature in a list of the server."""

    @property
    def name(self) -> str:
        """The name for programs."""
        return self._required("name", str)

    @property
    def title(self) -> str | None:
        """The name for people."""
        return self._optional("title", str)

    @property
    def description(self) -> str | None:
        """The description."""
        return self._optional("description", str)


@public("funcmcp.client")
class Tool(Definition):
    """The definition of a tool."""

    @property
    def task_support(self) -> str:
        """Whether a call may become a task, in 2025-11-25: forbidden, optional or required."""
        execution = self._optional("execution", dict) or {}
        return str(execution.get("taskSupport", "forbidden"))

    @property
    def input_schema(self) -> dict[str, Any]:
        """The JSON Schema of the arguments."""
        return self._required("inputSchema", dict)

    @property
    def output_schema(self) -> dict[str, Any] | None:
        """The JSON Schema of the structured content."""
        return self._optional("outputSchema", dict)

    @property
    def annotations(self) -> dict[str, Any]:
        """The tool's hints, such as ``{"readOnlyHint": True}``."""
        return self._optional("annotations", dict) or {}


@public("funcmcp.client")
class Resource(Definition):
    """The definition of a resource."""

    @property
    def uri(self) -> str:
        """The URI."""
        return self._required("uri", str)

    @property
    def mime_type(self) -> str | None:
        """The media type."""
        return self._optional("mimeType", str)

    @property
    def size(self) -> int | None:
        """The number of bytes."""
        return self._optional("size", int)


@public("funcmcp.client")
class ResourceTemplate(Definition):
    """The definition of a resource template."""

    @property
    def uri_template(self) -> str:
        """The URI template (RFC 6570)."""
        return self._required("uriTemplate", str)

    @property
    def mime_type(self) -> str | None:
        """The media type of all resources of the template."""
        return self._optional("mimeType", str)


@public("funcmcp.client")
class PromptArgument(Definition):
    """An argument of a prompt."""

    @property
    def required(self) -> bool:
        """Whether the argument has to be sent."""
        return self._flag("required")


@public("funcmcp.client")
class Prompt(Definition):
    """The definition of a prompt."""

    @property
    def arguments(self) -> list[PromptArgument]:
        """The arguments."""
        return self._objects("arguments", PromptArgument)
