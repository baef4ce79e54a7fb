"""What a tool may return beside plain values: content blocks, and a whole result.

Source: "server/tools, Tool result" and "basic, Content" of 2026-07-28; older revisions get what they know.
"""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@runtime_checkable
class Block(Protocol):
    """One content block."""

    def block(self) -> dict[str, Any]:
        """Return the block as it stands on the wire."""


class _Annotated:
    """What every block may carry: `annotations` (audience, priority, lastModified) and `meta` (`_meta`)."""

    __slots__ = ("annotations", "meta")

    def __init__(self, annotations: Mapping[str, Any] | None, meta: Mapping[str, Any] | None) -> None:
        self.annotations = annotations
        self.meta = meta

    def _with(self, block: dict[str, Any]) -> dict[str, Any]:
        if self.annotations is not None:
            block["annotations"] = dict(self.annotations)
        if self.meta is not None:
            block["_meta"] = dict(self.meta)
        return block


class Text(_Annotated):
    """A text.

    Args:
        text: the text.
        annotations: hints such as ``{"audience": ["user"], "priority": 0.5}``.
        meta: the block's `_meta`.
    """

    __slots__ = ("text",)

    def __init__(
        self, text: str, *, annotations: Mapping[str, Any] | None = None, meta: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(annotations, meta)
        self.text = text

    def block(self) -> dict[str, Any]:
        """Return the block as it stands on the wire."""
        return self._with({"type": "text", "text": self.text})


class _Media(_Annotated):
    __slots__ = ("data", "mime_type")
    kind: str

    def __init__(
        self,
        data: bytes,
        *,
        mime_type: str,
        annotations: Mapping[str, Any] | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(annotations, meta)
        self.data = data
        self.mime_type = mime_type

    def block(self) -> dict[str, Any]:
        """Return the block as it stands on the wire."""
        return self._with({"type": self.kind, "data": b64encode(self.data).decode(), "mimeType": self.mime_type})


class Image(_Media):
    """An image: its bytes and its type, such as ``Image(data, mime_type="image/png")``."""

    __slots__ = ()
    kind = "image"


class Audio(_Media):
    """A sound: its bytes and its type, such as ``Audio(data, mime_type="audio/wav")``. From 2025-03-26 on."""

    __slots__ = ()
    kind = "audio"


class ResourceLink(_Annotated):
    """A link to a resource, from 2025-06-18 on.

    Args:
        uri: where the resource is.
        name: its name.
        members: more members of a Resource under their wire names: `title`, `description`, `mimeType`, `size`.
        annotations: see `Text`.
        meta: see `Text`.
    """

    __slots__ = ("members", "name", "uri")

    def __init__(
        self,
        uri: str,
        *,
        name: str,
        annotations: Mapping[str, Any] | None = None,
        meta: Mapping[str, Any] | None = None,
        **members: Any,
    ) -> None:
        super().__init__(annotations, meta)
        self.uri = uri
        self.name = name
        self.members = members

    def block(self) -> dict[str, Any]:
        """Return the block as it stands on the wire."""
        return self._with({"type": "resource_link", "uri": self.uri, "name": self.name, **self.members})


class EmbeddedResource(_Annotated):
    """A resource inside the result: its text or its bytes.

    Args:
        uri: what the resource is called.
        text: its text; or
        data: its bytes.
        mime_type: its type.
        annotations: see `Text`.
    """

    __slots__ = ("data", "mime_type", "text", "uri")

    def __init__(
        self,
        uri: str,
        *,
        text: str | None = None,
        data: bytes | None = None,
        mime_type: str | None = None,
        annotations: Mapping[str, Any] | None = None,
    ) -> None:
        if (text is None) == (data is None):
            raise TypeError("EmbeddedResource takes either text= or data=.")
        super().__init__(annotations, None)
        self.uri = uri
        self.text = text
        self.data = data
        self.mime_type = mime_type

    def block(self) -> dict[str, Any]:
        """Return the block as it stands on the wire."""
        resource: dict[str, Any] = {"uri": self.uri}
        if self.mime_type is not None:
            resource["mimeType"] = self.mime_type
        if self.text is not None:
            resource["text"] = self.text
        if self.data is not None:
            resource["blob"] = b64encode(self.data).decode()
        return self._with({"type": "resource", "resource": resource})


class ToolResult:
    """A whole result of a tool.

    Args:
        content: content blocks; a str is a text.
        structured_content: any JSON value; revisions before 2026-07-28 get it if it is an object.
        is_error: whether the tool failed; the content says why.
        meta: the result's `_meta`.
    """

    __slots__ = ("content", "is_error", "meta", "structured_content")

    def __init__(
        self,
        content: Sequence[Block | str] = (),
        *,
        structured_content: object = None,
        is_error: bool = False,
        meta: Mapping[str, Any] | None = None,
    ) -> None:
        self.content = content
        self.structured_content = structured_content
        self.is_error = is_error
        self.meta = meta

    def result(self) -> dict[str, Any]:
        """Return the CallToolResult as it stands on the wire."""
        blocks = [{"type": "text", "text": item} if isinstance(item, str) else item.block() for item in self.content]
        result: dict[str, Any] = {"content": blocks}
        if self.structured_content is not None:
            result["structuredContent"] = self.structured_content
        if self.is_error:
            result["isError"] = True
        if self.meta is not None:
            result["_meta"] = dict(self.meta)
        return result
