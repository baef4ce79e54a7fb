"""Content blocks, messages, and whole results that tools, resources and prompts may return.

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

    class InfoDetails(LinkDetails, total=False):
        """What a listed resource may carry."""

    Blocks: TypeAlias = "str | Content | Sequence[str | Content]"

_WIRE_NAMES = {"mime_type": "mimeType", "meta": "_meta"}
_BLOCK = frozenset({"annotations", "meta"})
_RESOURCE = frozenset({"mime_type"})
_ROLES = ("user", "assistant")
_LINK = _BLOCK | _RESOURCE | {"title", "description", "size", "icons"}
_INFO = _LINK


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


class Contents:
    """What a resource holds, for one that wants to decide every part of it, or has several.

    Args:
        text: its text; or
        blob: its bytes.
        uri: its own URI, where it is not the one that is read.
        mime_type: its media type, where it is neither the resource's nor `text/plain` for a text and
            `application/octet-stream` for bytes.
        meta: a JSON object that is sent as ``_meta``.
    """

    __slots__ = ("wire",)

    def __init__(
        self,
        text: str | None = None,
        *,
        blob: bytes | None = None,
        uri: str | None = None,
        mime_type: str | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> None:
        if (text is None) == (blob is None):
            raise TypeError("Contents takes either a text or blob=.")
        members = {
            "uri": uri,
            "mimeType": mime_type,
            "text": text,
            "blob": None if blob is None else base64(blob),
            "_meta": meta,
        }
        self.wire = {name: value for name, value in members.items() if value is not None}


class ResourceInfo:
    """A resource as a list has it, for functions that list resources.

    Args:
        uri: its URI.
        name: a name for programs.
        title: a name for people.
        description: what it is.
        mime_type: its media type.
        size: bytes that it has.
        annotations: such as ``{"audience": ["user"], "priority": 0.5, "lastModified": "2026-07-28T12:00:00Z"}``.
        icons: `Icon` objects, or dicts as the specification has them.
        meta: a JSON object that is sent as ``_meta``.
    """

    __slots__ = ("wire",)

    def __init__(self, uri: str, name: str, **details: Unpack[InfoDetails]) -> None:
        self.wire: dict[str, Any] = {"uri": uri, "name": name, **_details(details, _INFO)}
        if "icons" in details:
            self.wire["icons"] = icon_list(details["icons"])


class Message:
    """A message of a prompt: ``Message("What can I do for you?", role="assistant")``.

    Args:
        content: a text or a content block.
        role: ``"user"`` or ``"assistant"``.
    """

    __slots__ = ("wire",)

    def __init__(self, content: str | Content, *, role: str = "user") -> None:
        if role not in _ROLES:
            raise ValueError(f"role must be {' or '.join(map(repr, _ROLES))}; got {role!r}.")
        self.wire = {"role": role, "content": (Text(content) if isinstance(content, str) else content).block}


class PromptResult:
    """A whole result, for a prompt that wants to decide every part of it.

    Args:
        messages: texts, content blocks or `Message` objects.
        description: what the result is.
        meta: a JSON object that is sent as ``_meta``.
    """

    __slots__ = ("description", "messages", "meta")

    def __init__(
        self,
        messages: Sequence[str | Content | Message],
        *,
        description: str | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> None:
        self.messages = messages
        self.description = description
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
