"""Content and results under the names and with the arguments of FastMCP and the official SDK."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any, ClassVar

from funcmcp._authoring.results import content
from funcmcp._authoring.results.content import Content
from funcmcp._compat.annotations import plain
from funcmcp._compat.editable import EditableBlock, sdk_object
from funcmcp._objects.mappings import without
from funcmcp._objects.public_names import public
from funcmcp._protocol.objects import CallToolResult

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from funcmcp._protocol.objects import PromptMessage, ReadResourceResult, ResourceContents


@public("funcmcp.compat")
class Icon(content.Icon):
    """An icon of a server, a tool, a resource or a prompt.

    Args:
        src: An ``https:`` or ``data:`` URL.
        mime_type: The media type.
        sizes: The sizes in which it can be shown, such as ``["48x48"]``.
        theme: ``"light"`` or ``"dark"``, if the icon is only for one of them.
        mimeType: The media type under its name in the specification.
    """

    __slots__ = ()

    def __init__(
        self,
        src: str,
        mime_type: str | None = None,
        sizes: Sequence[str] | None = None,
        theme: str | None = None,
        *,
        mimeType: str | None = None,  # noqa: N803 - the SDK's name
    ) -> None:
        super().__init__(src, mime_type=mime_type or mimeType, sizes=sizes or (), theme=theme)


class ResultBlock(Content):
    """A content block of a result, with the attributes and the comparison of a block of the official SDK.

    Args:
        block: The block in JSON form.
    """

    __slots__ = ()

    def __init__(self, block: Mapping[str, Any]) -> None:
        self.block: dict[str, Any] = EditableBlock(block)

    def __getattr__(self, name: str) -> Any:
        if name in {"data", "mimeType"} and name in self.block:  # base64, and the name in version 1 of the SDK
            return self.block[name]
        return getattr(self.block, name)

    def __getitem__(self, member: str) -> Any:
        return self.block[member]

    def __eq__(self, other: object) -> bool:
        return bool(self.block == (other.block if isinstance(other, Content) else other))

    __hash__ = None


_SDK_BLOCKS = {
    "audio": "AudioContent",
    "image": "ImageContent",
    "resource": "EmbeddedResource",
    "resource_link": "ResourceLink",
    "text": "TextContent",
}
"""The classes of content blocks in ``mcp.types``, by their types."""


def block_of(wire: Mapping[str, Any]) -> Any:
    """Return a content block for programs that read it: one of ``mcp.types`` if the program has loaded that module.

    Args:
        wire: The block in JSON form.
    """
    types = sys.modules.get("mcp.types") or sys.modules.get("mcp_types")
    if types is None:  # then no program compares classes, and the import would take a second
        return ResultBlock(wire)
    return getattr(types, _SDK_BLOCKS[wire["type"]]).model_validate(wire)


@public("funcmcp.compat")
class ToolResult(content.ToolResult):
    """A complete result of a tool.

    Args:
        content: A content block, a text, a value that is sent as JSON, or a list of these.
        structured_content: The structured content.
        meta: A JSON object that is sent as ``_meta``.
        is_error: Whether the call failed with an error that the model should read.

    Raises:
        ValueError: There is neither content nor structured content, or the latter is not an object.
    """

    __slots__ = ()

    def __init__(
        self,
        content: Any = None,
        structured_content: Any = None,
        meta: Mapping[str, Any] | None = None,
        *,
        is_error: bool = False,
    ) -> None:
        from funcmcp._compat.content_blocks import content_of  # noqa: PLC0415 - few programs make results
        from funcmcp._compat.serialization import serialized  # noqa: PLC0415 - as above

        if content is None and structured_content is None:
            raise ValueError("Either content or structured_content must be provided")
        if structured_content is not None:
            structured = serialized(structured_content)
            if not isinstance(structured, dict):
                name = type(structured_content).__name__
                raise ValueError(
                    f"structured_content must be a dict or None. Got {name}: {structured_content!r}. Tools should wrap "
                    "non-dict values based on their output_schema."
                )
            structured_content = structured
        blocks = [block_of(block) for block in content_of(structured_content if content is None else content)]
        super().__init__(blocks, structured_content=structured_content, is_error=is_error, meta=meta)

    @classmethod
    def from_mcp_result(cls, result: Any) -> ToolResult:
        """Return the result of a ``CallToolResult`` of ``mcp.types``, or of one in JSON form."""
        return tool_result(CallToolResult(plain(result)))

    def model_copy(self, *, update: Mapping[str, Any] | None = None, **_: Any) -> ToolResult:
        """Return a copy with changed attributes."""
        members = {
            "content": list(self.content),
            "structured_content": self.structured_content,
            "meta": self.meta,
            "is_error": self.is_error,
            **(update or {}),
        }
        return ToolResult(**members)

    def to_mcp_result(self) -> Any:
        """Return the result in the forms of FastMCP.

        Returns:
            The content, or the content and the structured content; a ``CallToolResult`` of ``mcp.types`` if there is
            more. Without the package `mcp`, that is in JSON form.
        """
        if self.meta is None and not self.is_error:
            content = list(self.content)
            return content if self.structured_content is None else (content, self.structured_content)
        members = {
            "content": [plain(block) for block in self.content],
            "structuredContent": self.structured_content,
            "isError": self.is_error,
            "meta": self.meta,
        }
        return sdk_object("CallToolResult", members)


@public("funcmcp.compat")
class Message(content.Message):
    """A message of a prompt.

    Args:
        content: A text, a content block, or a value that is sent as JSON.
        role: ``"user"`` or ``"assistant"``.
    """

    __slots__ = ()

    def __init__(self, content: Any, role: str = "user") -> None:
        from funcmcp._authoring.results.sdk_results import converted  # noqa: PLC0415 - servers without prompts need it not

        block = converted(content)
        super().__init__(block if isinstance(block, str | Content) else _json_text(block), role=role)

    @property
    def role(self) -> str:
        """Who says it: ``"user"`` or ``"assistant"``."""
        role: str = self.wire["role"]
        return role

    @property
    def content(self) -> Any:
        """The content block."""
        return block_of(self.wire["content"])

    def to_mcp_prompt_message(self) -> Any:
        """Return the message as a ``PromptMessage`` of ``mcp.types``."""
        return sdk_object("PromptMessage", dict(self.wire))

    def model_dump(self, **_: Any) -> dict[str, Any]:
        """Return the message in JSON form."""
        return dict(self.wire)

    def __eq__(self, other: object) -> bool:
        """Return whether another message has the same role and content."""
        return isinstance(other, content.Message) and self.wire == other.wire

    __hash__: ClassVar[None] = None  # type: ignore[assignment] # as a model of pydantic

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.wire['content']!r}, role={self.role!r})"


@public("funcmcp.compat")
class UserMessage(Message):
    """A message of the user."""

    __slots__ = ()

    def __init__(self, content: Any, role: str = "user") -> None:
        super().__init__(content, role)


@public("funcmcp.compat")
class AssistantMessage(Message):
    """A message of the assistant."""

    __slots__ = ()

    def __init__(self, content: Any, role: str = "assistant") -> None:
        super().__init__(content, role)


@public("funcmcp.compat")
class PromptResult(content.PromptResult):
    """A complete result of a prompt.

    Args:
        messages: A text, or a list of messages.
        description: The description of the result.
        meta: A JSON object that is sent as ``_meta``.

    Raises:
        TypeError: The messages are something else.
    """

    __slots__ = ()
    messages: list[Any]

    def __init__(self, messages: Any, description: str | None = None, meta: Mapping[str, Any] | None = None) -> None:
        super().__init__(_messages(messages), description=description, meta=meta)

    def to_mcp_prompt_result(self) -> Any:
        """Return the result as a ``GetPromptResult`` of ``mcp.types``."""
        members: dict[str, Any] = {"messages": [dict(_wire_of(message)) for message in self.messages]}
        if self.description is not None:
            members["description"] = self.description
        if self.meta is not None:
            members["_meta"] = dict(self.meta)
        return sdk_object("GetPromptResult", members)

    def model_dump(self, **_: Any) -> dict[str, Any]:
        """Return the result as a dict."""
        messages = [dict(_wire_of(message)) for message in self.messages]
        return {"messages": messages, "description": self.description, "meta": self.meta}


@public("funcmcp.compat")
class ResourceContent(content.Contents):
    """One part of a resource's contents.

    Args:
        content: A text, bytes, or a value that is sent as JSON.
        mime_type: The media type. By default it is ``text/plain`` for a text, ``application/octet-stream`` for bytes,
            and ``application/json`` for other values.
        meta: A JSON object that is sent as ``_meta``.
    """

    __slots__ = ("content", "meta", "mime_type")

    def __init__(self, content: Any, mime_type: str | None = None, meta: Mapping[str, Any] | None = None) -> None:
        default = "text/plain"
        if isinstance(content, bytes):
            default = "application/octet-stream"
        elif not isinstance(content, str):
            content, default = _json_text(content), "application/json"
        self.content: str | bytes = content
        self.mime_type: str = mime_type or default
        self.meta: Mapping[str, Any] | None = meta
        if isinstance(content, bytes):
            super().__init__(blob=content, mime_type=self.mime_type, meta=meta)
        else:
            super().__init__(content, mime_type=self.mime_type, meta=meta)

    def to_mcp_resource_contents(self, uri: Any) -> Any:
        """Return the part as ``TextResourceContents`` or ``BlobResourceContents`` of ``mcp.types``."""
        name = "BlobResourceContents" if isinstance(self.content, bytes) else "TextResourceContents"
        return sdk_object(name, {"uri": str(uri), **self.wire})

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> ResourceContent:  # noqa: ARG002 - of pydantic
        """Return a copy with changed attributes."""
        attributes = {"content": self.content, "mime_type": self.mime_type, "meta": self.meta, **(update or {})}
        return type(self)(**attributes)

    def model_dump(self, **_: Any) -> dict[str, Any]:
        """Return the attributes as a dict."""
        return {"content": self.content, "mime_type": self.mime_type, "meta": self.meta}

    def __eq__(self, other: object) -> bool:
        """Return whether another part has the same content, media type and ``_meta``."""
        return isinstance(other, ResourceContent) and self.model_dump() == other.model_dump()

    __hash__: ClassVar[None] = None  # type: ignore[assignment] # as a model of pydantic

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.content!r}, mime_type={self.mime_type!r}, meta={self.meta!r})"


@public("funcmcp.compat")
class ResourceResult(content.ContentsResult):
    """The contents of a resource, as a list.

    Args:
        contents: A text, bytes, a list of `ResourceContent` objects, or another value that is sent as JSON.
        meta: A JSON object that is sent as ``_meta`` of the result.

    Raises:
        TypeError: The contents are something else.
    """

    def __init__(self, contents: Any, meta: Mapping[str, Any] | None = None) -> None:
        super().__init__(_resource_contents(contents), meta)

    @property
    def contents(self) -> list[Any]:
        """The parts of the contents."""
        return self

    def to_mcp_result(self, uri: Any) -> Any:
        """Return the result as a ``ReadResourceResult`` of ``mcp.types``."""
        parts = [plain(part.to_mcp_resource_contents(uri)) for part in self]
        members = {"contents": parts} if self.meta is None else {"contents": parts, "_meta": dict(self.meta)}
        return sdk_object("ReadResourceResult", members)

    def model_dump(self, **_: Any) -> dict[str, Any]:
        """Return the result as a dict."""
        return {"contents": [part.model_dump() for part in self], "meta": self.meta}


def tool_result(result: CallToolResult) -> ToolResult:
    """Return the result of a call as a `ToolResult`, whose content blocks have attributes."""
    blocks = [block_of(block) for block in result.get("content", [])]
    structured = result.get("structuredContent")
    if structured is not None and not isinstance(structured, dict):
        structured = {"result": structured}
    return ToolResult(blocks, structured, meta_of(result), is_error=result.is_error)


def meta_of(result: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the ``_meta`` of a result without what the server adds to each; None if nothing is left."""
    return without(result.get("_meta") or {}, "io.modelcontextprotocol/serverInfo") or None


def messages_in(value: Any) -> list[Any]:
    """Return what the function of a prompt returned as messages.

    Raises:
        TypeError: The value is neither a text nor a message, nor a list of them.
    """
    from funcmcp._authoring.results.sdk_results import converted, is_sdk_type  # noqa: PLC0415 - few programs need it

    items = value if isinstance(value, list | tuple) else [value]
    messages: list[Any] = []
    for index, item in enumerate(items):
        if isinstance(item, content.Message):
            messages.append(item)
        elif isinstance(item, str | Content) or is_sdk_type(type(item)):
            message = converted(item)
            messages.append(message if isinstance(message, content.Message) else Message(message))
        else:
            name = type(item).__name__
            raise TypeError(
                f"messages[{index}] must be Message or str, got {name}. Use Message({item!r}) to wrap the value."
            )
    return messages


def read_contents(result: ReadResourceResult) -> ResourceResult:
    """Return what a read of a resource has returned as a list of `ResourceContent` objects."""
    return ResourceResult(list(result.contents), meta_of(result))


def _part_of(part: ResourceContents) -> ResourceContent:
    return ResourceContent(part.data if part.text is None else part.text, part.mime_type, part.meta or None)


def resource_result(value: Any, mime_type: str, meta: Mapping[str, Any] | None) -> Any:
    """Return what the function of a resource returned as a `ResourceResult`, as FastMCP does.

    Contents of funcmcp and of the official SDK are returned unchanged.

    Args:
        value: The value.
        mime_type: The media type of the resource.
        meta: The ``_meta`` of the resource, which each part has.

    Raises:
        TypeError: FastMCP does not take the value.
    """
    from funcmcp._authoring.results.sdk_results import is_sdk_type  # noqa: PLC0415 - few programs need it

    if isinstance(value, ResourceResult):
        return value
    first = value[0] if isinstance(value, list | tuple) and value else value
    if isinstance(first, ResourceContent):
        parts = ResourceResult(list(value) if isinstance(value, list | tuple) else [value])
        return _with_meta(parts, meta) if meta else parts
    if isinstance(first, content.Contents | Content) or is_sdk_type(type(first)):
        return value
    if value is None or isinstance(value, dict | list | tuple | int | float):
        value = json.dumps(value)
    if not isinstance(value, str | bytes):
        raise _not_contents(value)
    return ResourceResult([ResourceContent(value, mime_type, meta or None)])


def _with_meta(parts: ResourceResult, meta: Mapping[str, Any]) -> ResourceResult:
    """Return parts with the ``_meta`` of their resource, which that of a part precedes."""
    return ResourceResult([part.model_copy(update={"meta": {**meta, **(part.meta or {})}}) for part in parts])


def _resource_contents(contents: Any) -> list[Any]:
    """Return the parts of a result, which may be those of an earlier one; raise TypeError as FastMCP does."""
    from funcmcp._protocol.objects import ResourceContents  # noqa: PLC0415 - servers without resources need it not

    if isinstance(contents, list):
        contents = [_part_of(item) if isinstance(item, ResourceContents) else item for item in contents]
        for index, item in enumerate(contents):
            if not isinstance(item, content.Contents):
                raise TypeError(
                    f"contents[{index}] must be ResourceContent, got {type(item).__name__}. "
                    f"Use ResourceContent({item!r}) to wrap the value."
                )
        return list(contents)
    if contents is None or isinstance(contents, dict | tuple | int | float):
        return [ResourceContent(json.dumps(contents), "application/json")]
    if isinstance(contents, str | bytes):
        return [ResourceContent(contents)]
    raise _not_contents(contents)


def _not_contents(value: Any) -> TypeError:
    name = type(value).__name__
    return TypeError(f"contents must be str, bytes, or list[ResourceContent], got {name}")


def _json_text(value: Any) -> str:
    from pydantic_core import to_json  # noqa: PLC0415 - only values that are not texts need it

    return to_json(value, fallback=str).decode()


def _messages(messages: Any) -> list[Any]:
    """Return the messages of a result; raise TypeError as FastMCP does."""
    from funcmcp._protocol.objects import PromptMessage  # noqa: PLC0415 - servers without prompts need it not

    if isinstance(messages, str):
        return [Message(messages)]
    if not isinstance(messages, list):
        raise TypeError(f"messages must be str or list[Message], got {type(messages).__name__}")
    for index, item in enumerate(messages):
        if not isinstance(item, content.Message | PromptMessage):
            raise TypeError(
                f"messages[{index}] must be Message, got {type(item).__name__}. "
                f"Use Message({item!r}) to wrap the value."
            )
    return [_message(item) if isinstance(item, PromptMessage) else item for item in messages]


def _message(message: PromptMessage) -> Message:
    """Return a message of an earlier result as a message."""
    block = content.Text("")
    block.block = dict(message.content)
    return Message(block, role=message.role)


def _wire_of(message: Any) -> Mapping[str, Any]:
    wire: Mapping[str, Any] = message.wire
    return wire


def annotations_member(annotations: Any) -> dict[str, Any]:
    """Return annotations as an option of a content block."""
    if annotations is None:
        return {}
    if hasattr(annotations, "model_dump"):
        annotations = annotations.model_dump(mode="json", by_alias=True, exclude_none=True)
    return {"annotations": annotations}
