"""Files as resources, and folders as templates with a list of their files: what `MCPServer.add_files` registers.

How it works: the files of a folder are one template, ``docs://{path*}``, a function that lists them, and completions of
the path. Nothing is cached: a read returns the file as it is then, and each list walks through the folder.

A client chooses the path. A file is served only under the name that its folder has for it, so that neither a name in
another case nor one that the operating system takes for another one escapes the patterns. Symbolic links may lead to
files below the folder, as Kubernetes' volumes have them, and nowhere else. What is hidden, left out or outside is not
there for a client: every such URI is an unknown resource.
"""

from __future__ import annotations

import errno
import os
import stat
from dataclasses import replace
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

from funcmcp._authoring.features.options import FeatureOptions, checked_options
from funcmcp._authoring.features.permissions import AccessOptions
from funcmcp._authoring.features.resources import ResourceOptions, checked_uri, make_lister, make_resource
from funcmcp._authoring.results.content import Contents, ResourceInfo, contents_of_file
from funcmcp._objects.mappings import only, without_none
from funcmcp._protocol.errors import InvalidParams
from funcmcp._protocol.media_types import BINARY, media_type_of_name
from funcmcp._protocol.uri_template import UnsafeValueError, URITemplate
from funcmcp._server.catalog.registry import RegistrationError
from funcmcp._server.log import logger
from funcmcp._server.log import quote as quoted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from funcmcp._authoring.calling.services import Services
    from funcmcp._server.catalog.features import Resource, ResourceLister, ResourceTemplate

_MEBIBYTE = 1024 * 1024
_FILE_BYTES = 16 * _MEBIBYTE
_LISTED_FILES = 1000
_MAX_ENTRIES = 100_000
"""Files and folders that one list looks at."""

_MAX_COMPLETIONS = 100
_FOLDER_FLAGS = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)
_FLAGS = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
"""A named pipe does not block, and a link that takes the place of a file is not followed."""


class FileOptions(FeatureOptions, total=False):
    """The options of files that are served as resources.

    Attributes:
        mime_type: The media type of all files. By default it follows from the suffix of each name.
        annotations: Hints for clients, such as ``{"audience": ["user"], "priority": 0.5}``.
        pattern: Which files of a folder are served, such as ``"*.md"``, or a list of patterns. A pattern without a
            slash is for names, and one with a slash for paths below the folder. Case makes no difference.
        ignore: Patterns of files and folders that are left out, such as ``["drafts", "*.tmp"]``.
        hidden: Whether names that begin with a dot are served, too.
        file_bytes: Bytes that a file may have; 16 MiB by default. Larger ones are listed, and can't be read.
        listed_files: Files that the list has at most; 1,000 by default. Others can be read all the same.
    """

    mime_type: str
    annotations: Mapping[str, Any]
    pattern: str | Sequence[str]
    ignore: str | Sequence[str]
    hidden: bool
    file_bytes: int
    listed_files: int


class FileRules(NamedTuple):
    """Which files of a folder are served, and how many bytes of them.

    Attributes:
        patterns: What a file must match one of, in lower case.
        ignored: What neither a file nor a folder around it may match, in lower case.
        hidden: Whether names that begin with a dot are served.
        file_bytes: Bytes that a file may have.
        listed_files: Files that the list has at most.
        mime_type: The media type of all files; None if it follows from the name.
    """

    patterns: tuple[str, ...]
    ignored: tuple[str, ...]
    hidden: bool
    file_bytes: int
    listed_files: int
    mime_type: str | None

    def allow_name(self, path: PurePosixPath) -> bool:
        """Return whether a file or folder is neither hidden nor left out, as far as its own name decides."""
        return (self.hidden or not path.name.startswith(".")) and not _matches(path, self.ignored)

    def serve(self, path: PurePosixPath) -> bool:
        """Return whether a file is served; the path is relative to the folder."""
        folders = [folder for folder in path.parents if folder.name]
        return _matches(path, self.patterns) and all(map(self.allow_name, (path, *folders)))


def file_features(
    path: str | os.PathLike[str], uri: str, options: FileOptions, services: Services
) -> list[Resource | ResourceTemplate | ResourceLister]:
    """Return the features of a file, or of the files of a folder.

    Args:
        path: The file or the folder.
        uri: The URI of the file, or that of the folder.
        options: The options.
        services: The server's services.

    Raises:
        RegistrationError: The path or an option is invalid.
    """
    options = checked_options(options, FileOptions)
    place = Path(path).expanduser().absolute()
    if not place.exists():
        raise RegistrationError(f"{place} does not exist. Pass a file, or the folder whose files are served.")
    if not isinstance(uri, str) or "{" in uri:
        raise RegistrationError(f"add_files needs a URI without variables, such as 'docs://'; got {uri!r:.80}.")
    checked_uri(uri)
    rules = file_rules(options)
    resource_options: Any = {"name": place.name or "files", **only(options, ResourceOptions.__annotations__)}
    if place.is_dir():
        return _folder_features(Folder(place, uri, rules), resource_options, services)
    folder_option = next((name for name in ("pattern", "ignore", "hidden", "listed_files") if name in options), None)
    if folder_option is not None:
        raise RegistrationError(f"{place} is a file, and {folder_option}= is for folders. Remove it.")
    return [_file_resource(place, uri, rules, resource_options, services)]


def _file_resource(place: Path, uri: str, rules: FileRules, options: Any, services: Services) -> Any:
    """Return the resource of one file. A URI that ends with a slash gets the name of the file."""

    def read() -> Contents | None:
        file = place.resolve()
        return _contents_of(file.parent, file, place.name, rules)

    media_type = media_type_of_name(place.name)
    options = {**without_none({"mime_type": media_type, "description": f"The file {place.name}."}), **options}
    uri = uri + quote(place.name) if uri.endswith("/") else uri
    return make_resource(read, uri=uri, options=options, services=services)


def _folder_features(
    folder: Folder, options: Any, services: Services
) -> list[Resource | ResourceTemplate | ResourceLister]:
    def read(path: str) -> Contents | None:
        return folder.read(path)

    def list_files() -> list[ResourceInfo]:
        return folder.list_files(options.get("annotations") or {})

    def complete(text: str) -> list[str]:
        return folder.complete(text)

    described: Any = {"description": f"The files of the folder {options['name']}.", **options}
    described["completions"] = {"path": complete}
    template = make_resource(read, uri=folder.template.text, options=described, services=services)
    scheme = folder.prefix.partition(":")[0]
    access: Any = only(options, AccessOptions.__annotations__)
    lister = make_lister(list_files, scheme=scheme, options=access, services=services)
    return [template, replace(lister, scheme=folder.prefix)]  # a scheme may have several folders


class Folder:
    """The files of a folder that are served.

    Args:
        root: The folder.
        uri: Its URI.
        rules: Which files are served.

    Attributes:
        prefix: What the URIs of the files begin with.
        template: The template of these URIs.
        is_cut: Whether the last walk through the folder has ended before it had seen everything.
        links: The links that the last walk has left out: those to folders, and those that lead out of the folder.
    """

    def __init__(self, root: Path, uri: str, rules: FileRules) -> None:
        self.prefix = uri if uri.endswith("/") else f"{uri}/"
        self.template = URITemplate(f"{self.prefix}{{path*}}")
        self._root = root
        self._rules = rules
        self._has_warned = False
        self.is_cut = False
        self.links: list[PurePosixPath] = []

    def read(self, path: str) -> Contents | None:
        """Return the contents of a file; None if there is no file at a path.

        Raises:
            InvalidParams: The file is too large.
        """
        relative = PurePosixPath(path)
        if path != str(relative) or not self._rules.serve(relative) or not self._has_exactly(relative):
            return None
        file = self._file_at(relative)
        return None if file is None else _contents_of(self._root.resolve(), file, relative.name, self._rules)

    def read_bytes(self, path: PurePosixPath) -> bytes | None:
        """Return the bytes of a file that `files` has; None if it has been removed, or leads out of the folder now.

        Raises:
            InvalidParams: The file is too large.
        """
        file = self._file_at(path)
        return None if file is None else _bytes_of(self._root.resolve(), file, self._rules.file_bytes)

    def list_files(self, annotations: Mapping[str, Any]) -> list[ResourceInfo]:
        """Return the files in the order of their paths."""
        listed: list[ResourceInfo] = []
        for path, status in self.files():
            if len(listed) == self._rules.listed_files:
                self._warn_of_many_files()
                break
            time = datetime.fromtimestamp(status.st_mtime, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
            listed.append(
                ResourceInfo(
                    self.uri(path),
                    path.as_posix(),
                    mime_type=self._rules.mime_type or media_type_of_name(path.name) or BINARY,
                    size=status.st_size,
                    annotations={**annotations, "lastModified": time},
                )
            )
        return listed

    def complete(self, text: str) -> list[str]:
        """Return paths that begin with a text."""
        paths: list[str] = []
        for path, _ in self.files():
            if path.as_posix().startswith(text):
                paths.append(path.as_posix())
            if len(paths) == _MAX_COMPLETIONS:
                break
        return paths

    def uri(self, path: PurePosixPath) -> str:
        """Return the URI of a file."""
        return self.prefix + quote(path.as_posix())

    def files(self) -> Iterator[tuple[PurePosixPath, os.stat_result]]:
        """Yield the files that can be read, in the order of their paths. Links to folders are not followed."""
        pending = [PurePosixPath()]
        remaining = _MAX_ENTRIES
        self.is_cut = False
        self.links = []
        while pending:
            path = pending.pop()
            if path.name and not self._is_folder(path):
                status = self._status_of(path)
                if status is not None:
                    yield path, status
                continue
            names = self._names_in(path)
            self.is_cut = self.is_cut or len(names) > remaining
            names = names[:remaining]
            remaining -= len(names)
            pending += filter(self._rules.allow_name, (path / name for name in reversed(names)))

    def _is_folder(self, path: PurePosixPath) -> bool:
        place = self._root / path
        if not place.is_dir():
            return False
        if place.is_symlink():
            self.links.append(path)
            return False
        return True

    def _names_in(self, path: PurePosixPath) -> list[str]:
        """Return what is in a folder. One below the root that can't be read is empty."""
        try:
            return sorted(child.name for child in (self._root / path).iterdir())
        except OSError:
            if not path.name:
                raise
            return []

    def _status_of(self, path: PurePosixPath) -> os.stat_result | None:
        """Return the size and time of a file; None if it can't be read."""
        if not _matches(path, self._rules.patterns) or not self._has_uri(path):
            return None
        file = self._file_at(path)
        if file is None and (self._root / path).is_symlink():
            self.links.append(path)
        try:
            status = None if file is None else file.stat()
        except OSError:  # it has just been removed
            return None
        return status if status is not None and stat.S_ISREG(status.st_mode) else None

    def _has_uri(self, path: PurePosixPath) -> bool:
        """Return whether the URI of a file leads to it: a name may have characters that no URI can have."""
        try:
            return self.template.match(self.uri(path)) == {"path": list(path.parts)}
        except (UnicodeEncodeError, UnsafeValueError):
            return False

    def _has_exactly(self, path: PurePosixPath) -> bool:
        """Return whether each part of a path is the name that its folder has for it."""
        for part in (path, *path.parents[:-1]):
            try:
                with os.scandir(self._root / part.parent) as entries:
                    if all(entry.name != part.name for entry in entries):
                        return False
            except OSError:
                return False
        return True

    def _file_at(self, path: PurePosixPath) -> Path | None:
        """Return the file at a path, after all links; None if it is outside of the folder or does not exist."""
        try:
            file = (self._root / path).resolve(strict=True)
            return file if file.is_relative_to(self._root.resolve(strict=True)) else None
        except (OSError, RuntimeError):  # RuntimeError: links in a circle, before Python 3.13
            return None

    def _warn_of_many_files(self) -> None:
        if not self._has_warned:
            self._has_warned = True
            logger.warning(
                "The list of %s has the first %d files only. Use pattern=, ignore= or listed_files= of add_files.",
                quoted(self.prefix),
                self._rules.listed_files,
            )


def _contents_of(root: Path, file: Path, name: str, rules: FileRules) -> Contents | None:
    """Return the contents of a file; None if it is not a regular file, or has just been removed or become a link.

    Args:
        root: The folder, after all links.
        file: The file below it, after all links.
        name: Its name, for its media type.
        rules: What is served.

    Raises:
        InvalidParams: The file is too large.
    """
    data = _bytes_of(root, file, rules.file_bytes)
    return None if data is None else contents_of_file(data, rules.mime_type or media_type_of_name(name))


def _bytes_of(root: Path, file: Path, limit: int) -> bytes | None:
    """Return the bytes of a file, as `_contents_of` does; raise InvalidParams if there are more than *limit*."""
    try:
        descriptor = _open_below(root, file.relative_to(root).parts)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        if error.errno == errno.ELOOP:
            return None
        raise
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        with open(descriptor, "rb", closefd=False) as stream:
            data = stream.read(limit + 1)
    finally:
        os.close(descriptor)
    if len(data) > limit:
        raise InvalidParams(f"The file is too large: the server serves files of up to {limit:,} bytes.")
    return data


def _open_below(root: Path, parts: Sequence[str]) -> int:
    """Open a file without following links, so that no folder on the way can be replaced by one in the meantime."""
    if os.open not in os.supports_dir_fd:  # Windows
        return os.open(root.joinpath(*parts), _FLAGS)
    folder = os.open(root, _FOLDER_FLAGS)
    try:
        for part in parts[:-1]:
            inner = os.open(part, _FOLDER_FLAGS, dir_fd=folder)
            os.close(folder)
            folder = inner
        return os.open(parts[-1], _FLAGS, dir_fd=folder)
    finally:
        os.close(folder)


def _matches(path: PurePosixPath, patterns: Sequence[str]) -> bool:
    """Return whether a path, or its name for a pattern without a slash, matches a pattern."""
    text, name = path.as_posix().lower(), path.name.lower()
    return any(fnmatchcase(text if "/" in pattern else name, pattern) for pattern in patterns)


def file_rules(options: FileOptions) -> FileRules:
    """Return the rules in the options; raise RegistrationError if one has a wrong type."""
    numbers = (options.get("file_bytes", _FILE_BYTES), options.get("listed_files", _LISTED_FILES))
    if any(type(number) is not int or number < 1 for number in numbers):
        raise RegistrationError(f"file_bytes and listed_files must be integers above 0; got {numbers!r:.60}.")
    if type(options.get("hidden", False)) is not bool:
        raise RegistrationError(f"hidden of add_files must be True or False; got {options['hidden']!r:.40}.")
    return FileRules(
        _patterns("pattern", options.get("pattern", "*")),
        _patterns("ignore", options.get("ignore", ())),
        options.get("hidden", False),
        *numbers,
        options.get("mime_type"),
    )


def _patterns(name: str, value: Any) -> tuple[str, ...]:
    patterns = [value] if isinstance(value, str) else value
    if not isinstance(patterns, list | tuple | set | frozenset) or not all(isinstance(p, str) and p for p in patterns):
        raise RegistrationError(f"{name} of add_files must be a pattern such as '*.md', or a list; got {value!r:.60}.")
    return tuple(pattern.lower().removesuffix("/") for pattern in patterns)
