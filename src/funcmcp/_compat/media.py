"""Images, sounds and files in results, with the arguments that FastMCP and the official SDK take."""

from __future__ import annotations

import os
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from funcmcp._authoring.results import content
from funcmcp._authoring.results.content import base64
from funcmcp._compat.content import ResultBlock, annotations_member
from funcmcp._compat.editable import EditableContents
from funcmcp._objects.public_names import public
from funcmcp._protocol.media_types import BINARY, media_type_of_name

if TYPE_CHECKING:
    from os import PathLike

_IMAGES = {"jpg": "image/jpeg", "svg": "image/svg+xml", "tif": "image/tiff"}
"""Media types of images by formats; others are ``image/`` and the format."""

_SOUNDS = {
    "aac": "audio/aac",
    "aif": "audio/aiff",
    "aiff": "audio/aiff",
    "flac": "audio/flac",
    "m4a": "audio/mp4",
    "mp3": "audio/mpeg",
    "ogg": "audio/ogg",
    "opus": "audio/ogg",
    "wav": "audio/wav",
    "webm": "audio/webm",
}
"""Media types of sounds by formats and suffixes; other formats are ``audio/`` and the format."""

_TEXTS = {
    "csv": "text/csv",
    "htm": "text/html",
    "html": "text/html",
    "markdown": "text/markdown",
    "md": "text/markdown",
    "plain": "text/plain",
    "text": "text/plain",
    "txt": "text/plain",
}
"""Media types of texts by formats."""


class _Source:
    """Bytes, or a file that is read when a client gets it. The path may have variables of the environment and ``~``."""

    def __init__(
        self,
        path: str | PathLike[str] | None = None,
        data: bytes | None = None,
        format: str | None = None,
        annotations: Any = None,
    ) -> None:
        if not path and data is None:
            raise ValueError("Either path or data must be provided. Pass path= or data=.")
        if path and data is not None:
            raise ValueError("Only one of path or data can be provided. Pass path= or data=, not both.")
        self.path: Path | None = Path(os.path.expandvars(os.fspath(path))).expanduser() if path else None
        self.data: bytes | None = data
        self.annotations: Any = annotations
        self._format = format
        self._mime_type = self._get_mime_type()

    def _get_mime_type(self) -> str:
        """Return the media type of the format, or of the file."""
        raise NotImplementedError

    def _bytes(self, kind: str) -> bytes:
        """Return the bytes; raise ValueError if there are none, and OSError if the file can't be read."""
        if self.path is not None:
            return self.path.read_bytes()
        if self.data is None:
            raise ValueError(f"No {kind} data available. Set path or data.")
        return self.data

    def _block(self, kind: str, mime_type: str | None = None, annotations: Any = None) -> dict[str, Any]:
        """Return an image or a sound as a content block in JSON form."""
        block = {"type": kind, "data": base64(self._bytes(kind)), "mimeType": mime_type or self._mime_type}
        return {**block, **annotations_member(annotations or self.annotations)}


@public("funcmcp.compat")
class Image(_Source, content.Image):
    """An image from a file or from bytes.

    Args:
        path: The image file. It is read when a client gets the image. Variables of the environment and ``~`` are
            replaced.
        data: The bytes of the image.
        format: The format, such as ``"png"`` or ``"jpeg"``. By default it is the file's suffix, or PNG.
        annotations: Hints for clients.

    Raises:
        ValueError: There is neither a path nor data, or there are both.
    """

    def _get_mime_type(self) -> str:
        if self._format:
            return _IMAGES.get(self._format.lower(), f"image/{self._format.lower()}")
        return "image/png" if self.path is None else media_type_of_name(self.path.name) or BINARY

    @property
    def block(self) -> dict[str, Any]:  # type: ignore[override] # the file is read when it is needed
        """The block in JSON form."""
        return self._block("image")

    def to_image_content(self, mime_type: str | None = None, annotations: Any = None) -> ResultBlock:
        """Return the image as a content block with the attributes of ``ImageContent``."""
        return ResultBlock(self._block("image", mime_type, annotations))

    def to_data_uri(self, mime_type: str | None = None) -> str:
        """Return the image as a ``data:`` URI."""
        return f"data:{mime_type or self._mime_type};base64,{base64(self._bytes('image'))}"


@public("funcmcp.compat")
class Audio(_Source, content.Audio):
    """A sound from a file or from bytes.

    Args:
        path: The audio file. It is read when a client gets the sound. Variables of the environment and ``~`` are
            replaced.
        data: The bytes of the sound.
        format: The format, such as ``"wav"`` or ``"mp3"``. By default it is the file's suffix, or WAV.
        annotations: Hints for clients.

    Raises:
        ValueError: There is neither a path nor data, or there are both.
    """

    def _get_mime_type(self) -> str:
        if self._format:
            return _SOUNDS.get(self._format.lower(), f"audio/{self._format.lower()}")
        return "audio/wav" if self.path is None else _SOUNDS.get(self.path.suffix.lower().removeprefix("."), BINARY)

    @property
    def block(self) -> dict[str, Any]:  # type: ignore[override] # the file is read when it is needed
        """The block in JSON form."""
        return self._block("audio")

    def to_audio_content(self, mime_type: str | None = None, annotations: Any = None) -> ResultBlock:
        """Return the sound as a content block with the attributes of ``AudioContent``."""
        return ResultBlock(self._block("audio", mime_type, annotations))


@public("funcmcp.compat")
class File(_Source, content.File):
    """A file inside a result, from a path or from bytes.

    Args:
        path: The file. It is read when a client gets it. Variables of the environment and ``~`` are replaced.
        data: The bytes of the file.
        format: The format, such as ``"pdf"``. By default it is the file's suffix.
        name: The file's name in its URI. That of a path has the name of the file.
        annotations: Hints for clients.

    Raises:
        ValueError: There is neither a path nor data, or there are both.
    """

    def __init__(
        self,
        path: str | PathLike[str] | None = None,
        data: bytes | None = None,
        format: str | None = None,
        name: str | None = None,
        annotations: Any = None,
    ) -> None:
        self._name = name
        super().__init__(path, data, format, annotations)

    def _get_mime_type(self) -> str:
        if self._format:
            return _TEXTS.get(self._format.lower(), f"application/{self._format.lower()}")
        return BINARY if self.path is None else media_type_of_name(self.path.name) or BINARY

    @property
    def block(self) -> dict[str, Any]:  # type: ignore[override] # the file is read when it is needed
        """The block in JSON form."""
        return self._resource_block()

    @property
    def _uri(self) -> str:
        if self.path is not None:  # without its folder, which is not for clients
            return f"file:///{quote(self.path.name)}"
        name = self._name or "resource"
        if not PurePath(name).suffix or not self._name:
            name += f".{(self._format or self._mime_type.partition('/')[2]).lower()}"
        return f"file:///{quote(name)}"

    def to_resource_content(self, mime_type: str | None = None, annotations: Any = None) -> ResultBlock:
        """Return the file as a content block with the attributes of ``EmbeddedResource``. A text is sent as text."""
        return ResultBlock(self._resource_block(mime_type, annotations))

    def _resource_block(self, mime_type: str | None = None, annotations: Any = None) -> dict[str, Any]:
        data, media_type = self._bytes("resource"), mime_type or self._mime_type
        resource = EditableContents({"uri": self._uri, "mimeType": media_type})
        if media_type.startswith("text/"):
            resource["text"] = _text_of(data)
        else:
            resource["blob"] = base64(data)
        members = annotations_member(annotations or self.annotations)
        return {"type": "resource", "resource": resource, **members}


def _text_of(data: bytes) -> str:
    """Return a text in UTF-8, or in Latin-1 if it is not in UTF-8."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("latin-1")
