"""Content blocks and whole results that a tool may return.

Each class holds its own wire form in ``block``. Bytes are encoded as base64. Every block takes ``annotations``
(``{"audience": ["user"], "priority": 0.5}``) and ``meta``, a JSON object that is sent as ``_meta``.

Source: 2026-07-28 schema, ContentBlock and CallToolResult.
"""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import TypeAlias, TypedDict, Unpack

    class BlockDetails(TypedDict, total=False):
        """What every content block may carry."""

        annotations: Mapping[str, Any]
        meta: Mapping[str, Any]

    class ResourceDetails(BlockDetails, total=False):
        """What an embedded resource may carry."""

        mime_type: str

    class LinkDetails(ResourceDetails, total=False):
        """What a link to a resource may carry."""

        title: str
        description: str
        size: int
        icons: Sequence[Icon | Mapping[str, Any]]

    Blocks: TypeAlias = "str | Content | Sequence[str | Content]"

_WIRE_NAMES = {"mime_type": "mimeType", "meta": "_meta"}
_BLOCK = frozenset({"annotations", "meta"})
_RESOURCE = frozenset({"mime_type"})
_LINK = _BLOCK | _RESOURCE | {"title", "description", "size", "icons"}


class Content:
    """A content block.

    Attributes:
        block: the block as it is sent.
    """

    __slots__ = ("block",)

    block: dict[str, Any]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.block!r})"

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and isinstance(other, Content) and other.block == self.block

    __hash__ = None  # type: ignore[assignment] # it holds a dict


class Text(Content):
    """A text with annotations: ``Text("Done.", annotations={"audience": ["user"]})``. Elsewhere a plain string does."""

    __slots__ = ()

    def __init__(self, text: str, **details: Unpack[BlockDetails]) -> None:
        if not isinstance(text, str):
            raise TypeError(f"Text takes a string, not {type(text).__name__}.")
        self.block = {"type": "text", "text": text, **_details(details, _BLOCK)}


class Image(Content):
    """An image: ``Image(png, mime_type="image/png")`` with the file's bytes."""

    __slots__ = ()

    def __init__(self, data: bytes, *, mime_type: str = "image/png", **details: Unpack[BlockDetails]) -> None:
        self.block = {"type": "image", "data": base64(data), "mimeType": mime_type, **_details(details, _BLOCK)}


class Audio(Content):
    """A sound: ``Audio(wav, mime_type="audio/wav")`` with the file's bytes."""

    __slots__ = ()

    def __init__(self, data: bytes, *, mime_type: str = "audio/wav", **details: Unpack[BlockDetails]) -> None:
        self.block = {"type": "audio", "data": base64(data), "mimeType": mime_type, **_details(details, _BLOCK)}


class ResourceLink(Content):
    """A link to a resource: ``ResourceLink("orders://17", "order-17", mime_type="application/json")``."""

    __slots__ = ()

    def __init__(self, uri: str, name: str, **details: Unpack[LinkDetails]) -> None:
        self.block = {"type": "resource_link", "uri": uri, "name": name, **_details(details, _LINK)}
        if "icons" in details:
            self.block["icons"] = icon_list(details["icons"])


class EmbeddedResource(Content):
    """A resource inside the result: its URI, and either its ``text`` or its bytes as ``blob``."""

    __slots__ = ()

    def __init__(
        self, uri: str, *, text: str | None = None, blob: bytes | None = None, **details: Unpack[ResourceDetails]
    ) -> None:
        if (text is None) == (blob is None):
            raise TypeError("EmbeddedResource takes either text= or blob=.")
        own = {name: value for name, value in details.items() if name not in _BLOCK}
        resource: dict[str, Any] = {"uri": uri, **_details(own, _RESOURCE)}
        if blob is None:
            resource["text"] = text
        else:
            resource["blob"] = base64(blob)
        others = {name: value for name, value in details.items() if name in _BLOCK}
        self.block = {"type": "resource", "resource": resource, **_details(others, _BLOCK)}


class Icon:
    """An icon of a tool or a link.

    Args:
        src: an ``https:`` or ``data:`` URL.
        mime_type: its media type.
        sizes: sizes that it is good for, such as ``["48x48"]`` or ``["any"]``.
        theme: ``"light"`` or ``"dark"`` where it is made for one of them.
    """

    __slots__ = ("wire",)

    def __init__(
        self, src: str, *, mime_type: str | None = None, sizes: Sequence[str] = (), theme: str | None = None
    ) -> None:
        self.wire: dict[str, Any] = {"src": src}
        if mime_type is not None:
            self.wire["mimeType"] = mime_type
        if sizes:
            self.wire["sizes"] = list(sizes)
        if theme is not None:
            self.wire["theme"] = theme


class ToolResult:
    """A whole result, for a tool that wants to decide every part of it.

    Args:
        content: a block, a string, or a list of them.
        structured_content: the structured content; a text block with its JSON is added where there is no other content.
        is_error: whether the call failed in a way that the model should read about.
        meta: a JSON object that is sent as ``_meta``.
    """

    __slots__ = ("content", "is_error", "meta", "structured_content")

    def __init__(
        self,
        content: Blocks = (),
        *,
        structured_content: Any = None,
        is_error: bool = False,
        meta: Mapping[str, Any] | None = None,
    ) -> None:
        self.content: Sequence[str | Content] = [content] if isinstance(content, str | Content) else content
        self.structured_content = structured_content
        self.is_error = is_error
        self.meta = meta


def base64(data: bytes) -> str:
    """Return bytes as base64 text; raise TypeError for anything else."""
    if not isinstance(data, bytes | bytearray | memoryview):
        raise TypeError(f"Content takes bytes, not {type(data).__name__}.")
    return b64encode(data).decode("ascii")


def icon_list(icons: Sequence[Icon | Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return icons as they are sent."""
    return [icon.wire if isinstance(icon, Icon) else dict(icon) for icon in icons]


def _details(details: Mapping[str, Any], known: frozenset[str]) -> dict[str, Any]:
    unknown = details.keys() - known
    if unknown:
        raise TypeError(f"Unknown keyword: {', '.join(sorted(unknown))}. Known are {', '.join(sorted(known))}.")
    return {_WIRE_NAMES.get(name, name): value for name, value in details.items()}
