"""Resources that are written already: texts, bytes, files, folders and responses of HTTP servers."""

from __future__ import annotations

import asyncio
import json
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from funcmcp._compat.components import Resource
from funcmcp._compat.errors import ResourceError
from funcmcp._objects.public_names import public

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


@public("funcmcp.compat")
class TextResource(Resource):
    """A text."""

    def __init__(self, uri: Any, text: str, name: str | None = None, **options: Any) -> None:
        super().__init__(None, uri, name, **{"mime_type": "text/plain", **options})
        self.text: str = text

    def _source(self) -> Callable[..., Any]:
        def load() -> str:  # without a docstring, which would be the description
            return self.load()

        return load

    def load(self) -> str:
        """Return the text."""
        return self.text

    async def read(self) -> Any:
        """Return the contents."""
        return self._result(self.load())


@public("funcmcp.compat")
class BinaryResource(Resource):
    """Bytes."""

    def __init__(self, uri: Any, data: bytes, name: str | None = None, **options: Any) -> None:
        super().__init__(None, uri, name, **{"mime_type": "application/octet-stream", **options})
        self.data: bytes = data

    def _source(self) -> Callable[..., Any]:
        return self.load

    def load(self) -> bytes:
        """Return the bytes."""
        return self.data

    async def read(self) -> Any:
        """Return the contents."""
        return self._result(self.load())


@public("funcmcp.compat")
class FileResource(Resource):
    """A file, which is read at each call."""

    def __init__(
        self,
        uri: Any,
        path: Any,
        name: str | None = None,
        *,
        is_binary: bool | None = None,
        encoding: str | None = "utf-8",
        **options: Any,
    ) -> None:
        super().__init__(None, uri, name, **{"mime_type": "text/plain", **options})
        self.path: Path = _absolute(path)
        self.is_binary: bool = not self.mime_type.startswith("text/") if is_binary is None else is_binary
        self.encoding: str | None = encoding

    def _source(self) -> Callable[..., Any]:
        return self.load

    async def read(self) -> Any:
        """Return the contents.

        Raises:
            ResourceError: The file can't be read.
        """
        contents = await _loaded(self.load, f"file {self.path}")
        return self._result(contents)

    def load(self) -> str | bytes:
        """Return the contents of the file."""
        if self.is_binary:
            return self.path.read_bytes()
        return self.path.read_text(encoding=self.encoding)


@public("funcmcp.compat")
class HttpResource(Resource):
    """What a GET of a URL returns. It needs the package httpx2.

    Args:
        uri: The URI.
        url: The URL.
        name: The name. By default it is the URI.
        options: The options of a resource.
    """

    def __init__(self, uri: Any, url: str, name: str | None = None, **options: Any) -> None:
        super().__init__(None, uri, name, **{"mime_type": "application/json", **options})
        self.url: str = url

    async def read(self) -> Any:
        """Return the body of the response as a text.

        Raises:
            HTTPStatusError: The status is not 2xx.
        """
        httpx: Any = import_module("httpx2")
        async with httpx.AsyncClient() as client:
            response = await client.get(self.url)
            return self._result(response.raise_for_status().text)


@public("funcmcp.compat")
class DirectoryResource(Resource):
    """The names of the files in a folder."""

    def __init__(
        self,
        uri: Any,
        path: Any,
        name: str | None = None,
        *,
        recursive: bool = False,
        pattern: str | None = None,
        **options: Any,
    ) -> None:
        super().__init__(None, uri, name, **{"mime_type": "application/json", **options})
        self.path: Path = _absolute(path)
        self.recursive = recursive
        self.pattern = pattern

    def _source(self) -> Callable[..., Any]:
        return self.load

    async def read(self) -> Any:
        """Return the paths of the files below the folder, as JSON.

        Raises:
            ResourceError: The folder can't be read.
        """
        files = await _loaded(self.load, f"directory {self.path}")
        return self._result(json.dumps(files, indent=2))

    async def list_files(self) -> list[Path]:
        """Return the files below the folder.

        Raises:
            FileNotFoundError: The folder does not exist.
            NotADirectoryError: The path is that of a file.
        """
        files = await asyncio.to_thread(self.load)
        return [self.path / name for name in files["files"]]

    def load(self) -> dict[str, list[str]]:
        """Return the paths of the files below the folder."""
        if not self.path.exists():
            raise FileNotFoundError(f"Directory not found: {self.path}")
        if not self.path.is_dir():
            raise NotADirectoryError(f"Not a directory: {self.path}")
        pattern = self.pattern or "*"
        paths = self.path.rglob(pattern) if self.recursive else self.path.glob(pattern)
        return {"files": sorted(str(path.relative_to(self.path)) for path in paths if path.is_file())}


async def _loaded(load: Callable[[], T], place: str) -> T:
    """Return what a file or a folder contains; raise ResourceError if it can't be read."""
    try:
        return await asyncio.to_thread(load)
    except Exception as error:
        raise ResourceError(f"Error reading {place}") from error


def _absolute(path: Any) -> Path:
    """Return a path; raise ValueError if it is not absolute."""
    if not Path(path).is_absolute():
        raise ValueError("Path must be absolute")
    return Path(path)
