"""`UploadedFile`, a file as the argument of a tool: an upload to the server, or a ``data:`` URI.

How it works: the argument is a text, which pydantic reads as an `UploadedFile`. One of a ``data:`` URI has its bytes
then. One of an upload has its handle only, until `open_files` has asked the store of the server for the file, before
the function is called. The store compares the owner of the file with the caller.
"""

from __future__ import annotations

import typing
from base64 import b64decode
from dataclasses import is_dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, unquote_to_bytes

from funcmcp._auth.owner import address_mark, owner_of
from funcmcp._authoring.results.content import ResourceLink
from funcmcp._authoring.schemas.python_values import fields_of
from funcmcp._authoring.signatures.annotations import parts_of_type
from funcmcp._objects.public_names import public
from funcmcp._protocol.errors import ToolError
from funcmcp._protocol.media_types import BINARY, FILE_HINT, TEXT, essence_of, media_type_of_name, plain_name
from funcmcp._state.uploads import FileFacts, UploadFullError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Iterator
    from os import PathLike
    from typing import BinaryIO

    from pydantic_core import CoreSchema

    from funcmcp._server.calls.context import RequestContext
    from funcmcp._state.uploads import UploadStore

_PART_BYTES = 64 * 1024
_SCHEMES = "must be the text 'upload:...' of an upload, or a 'data:' URI"


@public("funcmcp.content")
class UploadedFile:
    """A file that a caller has uploaded, as the type of a tool's parameter: ``def resize(picture: UploadedFile)``.

    The name and the media type are what the sender says. The file is removed later, so copy what has to stay.

    Attributes:
        name: The name of the file, without a folder. It has no control characters.
        mime_type: The media type.
        size: The bytes of the file.
    """

    __slots__ = ("_data", "_handle", "_path", "mime_type", "name", "size")

    name: str
    mime_type: str
    size: int

    def __init__(self, data: bytes, name: str = "file", mime_type: str = "application/octet-stream") -> None:
        self.name = name
        self.mime_type = mime_type
        self.size = len(data)
        self._data = data
        self._path: Path | None = None
        self._handle: str | None = None

    def __repr__(self) -> str:
        return f"UploadedFile({self.name!r}, {self.mime_type!r}, {self.size} bytes)"

    def __str__(self) -> str:
        return f"{self.name} ({self.size:,} bytes)"

    def read(self) -> bytes:
        """Return the bytes of the file."""
        return self._data if self._path is None else self._path.read_bytes()

    def open(self) -> BinaryIO:
        """Return the file, open for reading."""
        return BytesIO(self._data) if self._path is None else self._path.open("rb")

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: object, _handler: object) -> CoreSchema:
        """Return how pydantic reads the argument."""
        from pydantic_core import core_schema  # noqa: PLC0415 - loads pydantic

        return core_schema.no_info_after_validator_function(_file_of, core_schema.str_schema())

    @classmethod
    def __get_pydantic_json_schema__(cls, _schema: object, _handler: object) -> dict[str, Any]:
        """Return the JSON schema of the argument."""
        return {"type": "string", "description": FILE_HINT}

    async def _open(self, store: UploadStore | None, context: RequestContext, argument: str) -> None:
        """Ask a store for the file, if it is an upload; raise ToolError if the caller has no such file."""
        if self._handle is None:
            return
        if store is None:
            raise ToolError(f"{argument}: this server takes no uploads. Pass a small file as a data: URI.")
        stored = await store.get(self._handle, owner_of(context.principal))
        if stored is None:
            raise ToolError(f"{argument}: there is no such upload. It has expired, or another caller has sent it.")
        self.name, self.mime_type = stored.facts
        self.size, self._path = stored.size, stored.path


def _file_of(text: str) -> UploadedFile:
    """Return the file that an argument stands for; raise ValueError if it is something else."""
    scheme = text.partition(":")[0].lower()
    if scheme == "data":
        return _file_of_data(text)
    if scheme != "upload":
        raise ValueError(_SCHEMES)
    file = UploadedFile(b"")
    file._handle = text  # noqa: SLF001 - a function of the class, which is not for authors
    return file


def _file_of_data(uri: str) -> UploadedFile:
    """Return the file in a ``data:`` URI (RFC 2397). The parameter ``name`` is its name, as in SEP-2356."""
    header, comma, body = uri[len("data:") :].partition(",")
    if not comma:
        raise ValueError("is not a 'data:' URI: it has no comma")
    media_type, *parameters = header.split(";")
    is_base64 = bool(parameters) and parameters[-1].strip().lower() == "base64"
    data = unquote_to_bytes(body)
    if is_base64:
        try:
            data = b64decode(data, validate=True)
        except ValueError:
            raise ValueError("is not a 'data:' URI: its base64 is invalid") from None
    names = [unquote(text.partition("=")[2]) for text in parameters if text.startswith("name=")]
    return UploadedFile(data, plain_name(names[0] if names else ""), essence_of(media_type) or TEXT)


async def link_file(
    store: UploadStore | None,
    context: RequestContext,
    data: bytes | str | PathLike[str],
    *,
    name: str | None,
    mime_type: str | None,
) -> ResourceLink:
    """Keep a file for the caller of a request, and return a link to it; see `Context.link_file`."""
    if store is None:
        raise RuntimeError(
            "context.link_file needs a place for files: MCPServer(..., http=HTTPOptions(uploads=Uploads()))."
        )
    parts, size, file_name = _source_of(data)
    file_name = name or file_name
    if size > store.options.file_bytes:
        raise ValueError(f"{file_name} has {size:,} bytes, and Uploads.file_bytes allows {store.options.file_bytes:,}.")
    facts = FileFacts(plain_name(file_name), mime_type or media_type_of_name(file_name) or BINARY)
    context.forbid_reuse()
    upload, handle = store.new(address_mark(context.caller), owner_of(context.principal))
    try:
        stored = await store.receive(upload, facts, parts, size)
    except UploadFullError as error:
        raise ToolError(str(error)) from None
    return ResourceLink(handle, facts.name, mime_type=facts.media_type, size=stored.size)


def _source_of(data: bytes | str | PathLike[str]) -> tuple[AsyncIterator[bytes], int, str]:
    """Return the parts of a file, its size and its name."""
    if isinstance(data, bytes | bytearray | memoryview):
        return _parts_of_bytes(bytes(data)), len(data), "file"
    path = Path(data).expanduser()
    return _parts_of_file(path), path.stat().st_size, path.name


async def _parts_of_bytes(data: bytes) -> AsyncIterator[bytes]:
    yield data


async def _parts_of_file(path: Path) -> AsyncIterator[bytes]:
    """Yield the parts of a file of this machine. Each read is short, and other calls go on between them."""
    with path.open("rb") as stream:
        while part := stream.read(_PART_BYTES):
            yield part


def takes_files(annotation: Any, seen: frozenset[type] = frozenset()) -> bool:
    """Return whether a value of a type may contain an `UploadedFile`, also in the fields of models and dataclasses."""
    for part in parts_of_type(annotation):
        if part is UploadedFile:
            return True
        if not isinstance(part, type) or part in seen:
            continue
        if any(takes_files(annotation, seen | {part}) for annotation in _types_of_fields(part)):
            return True
    return False


def _types_of_fields(cls: type) -> Iterable[Any]:
    """Return the types of the fields of a model or a dataclass; none for other classes."""
    fields = getattr(cls, "__pydantic_fields__", None)
    if fields is not None:  # pydantic has looked up the names in annotations, also those of a function's own classes
        return [field.annotation for field in fields.values()]
    return typing.get_type_hints(cls, include_extras=True).values() if is_dataclass(cls) else ()


async def open_files(value: Any, store: UploadStore | None, context: RequestContext, argument: str) -> None:
    """Open the uploads in the value of an argument.

    Args:
        value: The value.
        store: The files of the server; None for a server without uploads.
        context: The request, whose principal owns the files.
        argument: The name of the argument, for errors.

    Raises:
        ToolError: The caller has no such file.
    """
    argument = (context.shown_names or {}).get(argument, argument)
    for file in _files_in(value):
        await file._open(store, context, argument)  # noqa: SLF001 - as above


def _files_in(value: Any) -> Iterator[UploadedFile]:
    if isinstance(value, UploadedFile):
        yield value
    elif isinstance(value, dict):
        for member in value.values():
            yield from _files_in(member)
    elif isinstance(value, list | tuple | set | frozenset):
        for member in value:
            yield from _files_in(member)
    else:
        for name in fields_of(type(value)) or ():
            yield from _files_in(getattr(value, name, None))
