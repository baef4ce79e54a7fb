"""Content blocks, messages, and results that tools, resources and prompts may return.

Each class has its JSON form in ``block`` or ``wire``. Bytes are encoded as base64. Every block takes ``annotations``
(``{"audience": ["user"], "priority": 0.5}``) and ``meta``, a JSON object that is sent as ``_meta``.

Source: 2026-07-28 schema, ContentBlock and CallToolResult.
"""

from __future__ import annotations

from base64 import b64encode
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar

from funcmcp._objects.mappings import only, without, without_none
from funcmcp._objects.public_names import public
from funcmcp._protocol.content_blocks import BLOCK_TYPES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import TypeAlias, TypedDict, Unpack

    class BlockDetails(TypedDict, total=False):
        """Options of every content block."""

        annotations: Mapping[str, Any]
        meta: Mapping[str, Any]

    class ResourceDetails(BlockDetails, total=False):
        """Options of an embedded resource."""

        mime_type: str

    class LinkDetails(ResourceDetails, total=False):
        """Options of a link to a resource."""

        title: str
        description: str
        size: int
        icons: Sequence[Icon | Mapping[str, Any]]

    class InfoDetails(LinkDetails, total=False):
        """Options of a listed resource."""

    Blocks: TypeAlias = "str | Content | Sequence[str | Content]"

_WIRE_NAMES = {"mime_type": "mimeType", "meta": "_meta"}
_BLOCK = frozenset({"annotations", "meta"})
_RESOURCE = frozenset({"mime_type"})
_ROLES = ("user", "assistant")
_LINK = _BLOCK | _RESOURCE | {"title", "description", "size", "icons"}
_INFO = _LINK


@public("funcmcp.content")
class Content:
    """A content block.

    Attributes:
        block: The block in JSON form.
    """

    __slots__ = ("block",)

    block: dict[str, Any]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.block!r})"

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and isinstance(other, Content) and other.block == self.block

    __hash__: ClassVar[None]  # type: ignore[assignment] # it contains a dict; __eq__ sets None


@public("funcmcp.content")
class Text(Content):
    """A text with annotations: ``Text("Done.", annotations={"audience": ["user"]})``. Others may be plain strings."""

    __slots__ = ()

    def __init__(self, text: str, **details: Unpack[BlockDetails]) -> None:
        if not isinstance(text, str):
            raise TypeError(f"Text takes a string, not {type(text).__name__}.")
        self.block: dict[str, Any] = {"type": "text", "text": text, **_details(details, _BLOCK)}


@public("funcmcp.content")
class Image(Content):
    """An image from a file or from bytes: ``Image("chart.png")`` or ``Image(jpeg, format="jpeg")``.

    A tool may also return a figure of matplotlib, or an image of Pillow, as it is.

    Args:
        data: The bytes of the image, or the path of its file. The file is read at once.
        path: The path of the file, under this name.
        format: The format, such as ``"png"`` or ``"jpeg"``. By default it is the file's suffix, or PNG.
        mime_type: The media type, instead of the format.
        max_edge: The pixels that the longer edge may have. A larger image is scaled to them, as a JPEG if it is one,
            and otherwise as a PNG; a smaller one stays as it is. It needs Pillow. None: no image is scaled.

    Raises:
        ValueError: There is neither data nor a path, or there are both; or the image can't be scaled.
        TypeError: The data are neither bytes nor a path, or an option is unknown.
        OSError: The file can't be read.
    """

    __slots__ = ()

    def __init__(
        self,
        data: bytes | str | PathLike[str] | None = None,
        *,
        path: str | PathLike[str] | None = None,
        format: str | None = None,
        mime_type: str | None = None,
        max_edge: int | None = None,
        **details: Unpack[BlockDetails],
    ) -> None:
        content, name = _bytes_and_name("Image", data, path)
        if max_edge is not None:
            from funcmcp._authoring.results.pictures import scaled  # noqa: PLC0415 - few authors scale images

            picture = scaled(content, max_edge)
            if picture is not None:
                content, mime_type = picture.data, picture.media_type
        self.block: dict[str, Any] = _media_block("image", content, name, mime_type, format)
        self.block.update(_details(details, _BLOCK))


@public("funcmcp.content")
class Audio(Content):
    """A sound from a file or from bytes: ``Audio("bell.mp3")`` or ``Audio(wav)``.

    Args:
        data: The bytes of the sound, or the path of its file. The file is read at once.
        path: The path of the file, under this name.
        format: The format, such as ``"wav"`` or ``"mp3"``. By default it is the file's suffix, or WAV.
        mime_type: The media type, instead of the format.

    Raises:
        ValueError: There is neither data nor a path, or there are both.
        TypeError: The data are neither bytes nor a path, or an option is unknown.
        OSError: The file can't be read.
    """

    __slots__ = ()

    def __init__(
        self,
        data: bytes | str | PathLike[str] | None = None,
        *,
        path: str | PathLike[str] | None = None,
        format: str | None = None,
        mime_type: str | None = None,
        **details: Unpack[BlockDetails],
    ) -> None:
        self.block: dict[str, Any] = _media_block("audio", *_bytes_and_name("Audio", data, path), mime_type, format)
        self.block.update(_details(details, _BLOCK))


@public("funcmcp.content")
class ResourceLink(Content):
    """A link to a resource: ``ResourceLink("orders://17", "order-17", mime_type="application/json")``."""

    __slots__ = ()

    def __init__(self, uri: str, name: str, **details: Unpack[LinkDetails]) -> None:
        self.block: dict[str, Any] = {"type": "resource_link", "uri": uri, "name": name, **_details(details, _LINK)}
        if "icons" in details:
            self.block["icons"] = icon_list(details["icons"])


@public("funcmcp.content")
class EmbeddedResource(Content):
    """A resource inside the result: its URI, and either its ``text`` or its bytes as ``blob``."""

    __slots__ = ()

    def __init__(
        self, uri: str, *, text: str | None = None, blob: bytes | None = None, **details: Unpack[ResourceDetails]
    ) -> None:
        if (text is None) == (blob is None):
            raise TypeError("EmbeddedResource takes either text= or blob=.")
        block_details = only(details, _BLOCK)
        resource_details = without(details, *_BLOCK)
        resource: dict[str, Any] = {"uri": uri, **_details(resource_details, _RESOURCE)}
        if blob is None:
            resource["text"] = text
        else:
            resource["blob"] = base64(blob)
        self.block: dict[str, Any] = {"type": "resource", "resource": resource, **_details(block_details, _BLOCK)}


@public("funcmcp.content")
class File(EmbeddedResource):
    """A file inside the result: ``File("report.pdf")`` or ``File(pdf, name="report.pdf")``.

    A text in UTF-8 is sent as a text, and any other file as base64. Clients see the name of the file, and not the path.

    Args:
        data: The bytes of the file, or its path. The file is read at once.
        path: The path, under this name.
        name: The name that clients see. By default it is that of the path.
        mime_type: The media type. By default it follows from the name's suffix, and without one from the bytes.

    Raises:
        ValueError: There is neither data nor a path, or there are both.
        TypeError: The data are neither bytes nor a path, or an option is unknown.
        OSError: The file can't be read.
    """

    __slots__ = ()

    def __init__(
        self,
        data: bytes | str | PathLike[str] | None = None,
        *,
        path: str | PathLike[str] | None = None,
        name: str | None = None,
        mime_type: str | None = None,
        **details: Unpack[BlockDetails],
    ) -> None:
        from urllib.parse import quote  # noqa: PLC0415 - few servers return files

        from funcmcp._protocol.media_types import BINARY, TEXT, media_type_of_name, text_in  # noqa: PLC0415 - as above

        content, file_name = _bytes_and_name(type(self).__name__, data, path)
        name = name or file_name or "file"
        mime_type = mime_type or media_type_of_name(name)
        text = text_in(content, mime_type)
        mime_type = mime_type or (BINARY if text is None else TEXT)
        blob = content if text is None else None
        super().__init__(f"file:///{quote(name)}", text=text, blob=blob, mime_type=mime_type, **details)


@public("funcmcp.content")
class Icon:
    """An icon of a tool or a link.

    Args:
        src: An ``https:`` or ``data:`` URL.
        mime_type: The media type.
        sizes: The sizes in which it can be shown, such as ``["48x48"]`` or ``["any"]``.
        theme: ``"light"`` or ``"dark"``, if the icon is only for one of them.
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


@public("funcmcp.content")
class ToolResult:
    """A complete result, for a tool that controls every part of it.

    Args:
        content: A block, a string, or a list of them.
        structured_content: The structured content. If there is no other content, a text block with its JSON is added.
        is_error: Whether the call failed with an error that the model should read.
        meta: A JSON object that is sent as ``_meta``.
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
        self.structured_content: Any = structured_content
        self.is_error: bool = is_error
        self.meta: Mapping[str, Any] | None = meta


@public("funcmcp.content")
class Contents:
    """The contents of a resource, for a function that controls every part of them, or returns several.

    Args:
        text: The text, for contents without bytes.
        blob: The bytes, for contents without a text.
        uri: The URI. By default it is the requested one.
        mime_type: The media type. By default it is the resource's, and without one `text/plain` for a text and
            `application/octet-stream` for bytes.
        meta: A JSON object that is sent as ``_meta``.
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
        self.wire: dict[str, Any] = without_none(members)


class ContentsResult(list[Any]):
    """All contents of a resource, with the ``_meta`` of the result.

    Args:
        contents: The `Contents` objects.
        meta: A JSON object that is sent as ``_meta`` of the result.
    """

    def __init__(self, contents: Iterable[Contents], meta: Mapping[str, Any] | None = None) -> None:
        super().__init__(contents)
        self.meta: Mapping[str, Any] | None = meta


def contents_of_file(data: bytes, media_type: str | None) -> Contents:
    """Return a file as contents: a text if its media type and its bytes are those of a text."""
    from funcmcp._protocol.media_types import BINARY, TEXT, text_in  # noqa: PLC0415 - few servers return files

    text = text_in(data, media_type)
    if text is None:
        return Contents(blob=data, mime_type=media_type or BINARY)
    return Contents(text, mime_type=media_type or TEXT)


@public("funcmcp.content")
class ResourceInfo:
    """A resource in a list, for functions that list resources.

    Args:
        uri: The URI.
        name: A name for programs.
        title: A name for people.
        description: A description for people and models.
        mime_type: The media type.
        size: The size in bytes.
        annotations: ``{"audience": ["user"], "priority": 0.5, "lastModified": "2026-07-28T12:00:00Z"}``, for example.
        icons: `Icon` objects, or dicts in the specification's form.
        meta: A JSON object that is sent as ``_meta``.
    """

    __slots__ = ("wire",)

    def __init__(self, uri: str, name: str, **details: Unpack[InfoDetails]) -> None:
        self.wire: dict[str, Any] = {"uri": uri, "name": name, **_details(details, _INFO)}
        if "icons" in details:
            self.wire["icons"] = icon_list(details["icons"])


@public("funcmcp.content")
class Message:
    """A message of a prompt: ``Message("What can I do for you?", role="assistant")``.

    Args:
        content: A text or a content block.
        role: ``"user"`` or ``"assistant"``.
    """

    __slots__ = ("wire",)

    def __init__(self, content: str | Content, *, role: str = "user") -> None:
        if role not in _ROLES:
            raise ValueError(f"role must be {' or '.join(map(repr, _ROLES))}, not {role!r}.")
        if isinstance(content, str):
            content = Text(content)
        self.wire: dict[str, Any] = {"role": role, "content": content.block}


@public("funcmcp.content")
class PromptResult:
    """A complete result, for a prompt that controls every part of it.

    Args:
        messages: Texts, content blocks or `Message` objects.
        description: The description of the result. By default it is the prompt's.
        meta: A JSON object that is sent as ``_meta``.
    """

    __slots__ = ("description", "messages", "meta")

    def __init__(
        self,
        messages: Sequence[str | Content | Message],
        *,
        description: str | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> None:
        self.messages: Sequence[str | Content | Message] = messages
        self.description: str | None = description
        self.meta: Mapping[str, Any] | None = meta


def base64(data: bytes) -> str:
    """Return bytes as base64 text. Raise TypeError for anything else."""
    if not isinstance(data, bytes | bytearray | memoryview):
        raise TypeError(f"Content takes bytes, not {type(data).__name__}.")
    return b64encode(data).decode("ascii")


def _bytes_and_name(
    kind: str, data: bytes | str | PathLike[str] | None, path: str | PathLike[str] | None
) -> tuple[bytes, str]:
    """Return the bytes of a block and the name of their file, which is empty for bytes.

    Args:
        kind: The name of the class, for errors.
        data: The bytes, or the path of the file.
        path: The path of the file.
    """
    if (data is None) == (path is None):
        raise ValueError(f"{kind} takes either bytes or the path of a file.")
    if isinstance(data, str | PathLike):
        path = data
    elif data is not None:
        if not isinstance(data, bytes | bytearray | memoryview):
            raise TypeError(f"{kind} takes bytes or the path of a file, not {type(data).__name__}.")
        return bytes(data), ""
    from pathlib import Path  # noqa: PLC0415 - few servers return files

    file = Path(path or "").expanduser()
    return file.read_bytes(), file.name


def _media_block(kind: str, content: bytes, name: str, mime_type: str | None, format: str | None) -> dict[str, Any]:
    """Return an image or a sound in JSON form. Its media type is that of the format, or of the file's suffix."""
    suffix = name.rpartition(".")[2] if "." in name else ""
    mime_type = mime_type or BLOCK_TYPES[kind].media_type(format or suffix)
    return {"type": kind, "data": base64(content), "mimeType": mime_type}


def icon_list(icons: Sequence[Icon | Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return icons in JSON form."""
    return [icon.wire if isinstance(icon, Icon) else dict(icon) for icon in icons]


def _details(details: Mapping[str, Any], valid: frozenset[str]) -> dict[str, Any]:
    """Return options in JSON form. Raise TypeError for unknown ones."""
    unknown = sorted(details.keys() - valid)
    if unknown:
        raise TypeError(f"Unknown option {', '.join(map(repr, unknown))}. Valid options: {', '.join(sorted(valid))}.")
    return {_WIRE_NAMES.get(name, name): value for name, value in details.items()}
