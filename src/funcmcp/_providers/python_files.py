"""`FileSystemProvider` and `EntryPointsProvider`: features of Python files in a folder, and of installed packages."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.metadata import entry_points
from importlib.util import module_from_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from funcmcp._authoring.features.decorators import features_of_module
from funcmcp._objects.public_names import public
from funcmcp._providers.provider import Provider
from funcmcp._server.log import logger, quote
from funcmcp._server.run import is_failure

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from types import CodeType, ModuleType

    from funcmcp._auth.principal import Principal
    from funcmcp._server.catalog.transformed import AnyFeature


class _File(NamedTuple):
    """A file that was imported.

    Attributes:
        stamp: Time and size of the file.
        features: Its features; those before the change if it can't be imported now.
    """

    stamp: tuple[int, int]
    features: Sequence[Any]


@public("funcmcp.providers")
class FileSystemProvider(Provider):
    """The features of the Python files in a folder and the folders below it.

    A file has functions with the decorators ``tool``, ``resource`` and ``prompt`` of funcmcp. Files and folders whose
    names begin with ``_`` or ``.`` are left out, and so is a file that can't be imported, which is logged.

    Args:
        folder: The folder. The code in it runs in this process, so only the author may write there.
        reload: Whether files that have changed are imported again, before a list is sent and before a feature is used,
            at most once in a second. Otherwise the files are read once.

    Raises:
        ValueError: The folder does not exist.

    Example:
        ```python
        mcp.add_provider(FileSystemProvider("tools", reload=True))
        ```
    """

    is_quick = True

    def __init__(self, folder: str | Path, *, reload: bool = False) -> None:
        self._folder = Path(folder).resolve()
        if not self._folder.is_dir():
            raise ValueError(f"FileSystemProvider: {str(folder)!r} is not a folder.")
        self.refresh: float | None = RELOAD_SECONDS if reload else None
        self._files: dict[Path, _File] = {}
        self._duplicates: set[tuple[Any, Path]] = set()  # those that were logged

    async def list(self, caller: Principal | None) -> Iterable[AnyFeature]:
        """Return the features of all files, and import those that have changed."""
        del caller
        stamps = await asyncio.to_thread(self._stamps)
        for path in self._files.keys() - stamps.keys():
            del self._files[path]
        for path, stamp in stamps.items():
            file = self._files.get(path)
            if file is None or file.stamp != stamp:
                self._files[path] = _File(stamp, self._imported(path, [] if file is None else file.features))
        return list(self._without_duplicates(stamps))

    def _without_duplicates(self, paths: Iterable[Path]) -> Iterator[AnyFeature]:
        """Yield the features of files. One that an earlier file has as well is left out, which is logged once."""
        paths_of: dict[tuple[type, str, str | None], Path] = {}
        for path in paths:
            for feature in self._files[path].features:
                key = type(feature), feature.key, feature.version
                earlier = paths_of.setdefault(key, path)
                if earlier == path:
                    yield feature
                elif (key, path) not in self._duplicates:
                    self._duplicates.add((key, path))
                    text = "%s of %s is left out, because %s has it as well. Rename one of the two."
                    logger.error(text, quote(feature.key), quote(str(path)), quote(str(earlier)))

    def _stamps(self) -> dict[Path, tuple[int, int]]:
        """Return the files with their times and sizes in the order of their names; raise OSError without the folder."""
        self._folder.stat()  # a volume may be away, and a walk through a folder that is missing finds no files
        stamps = {}
        for path in sorted(self._folder.rglob("*.py")):
            parts = path.relative_to(self._folder).parts
            if any(part.startswith(("_", ".")) for part in parts) or not path.resolve().is_relative_to(self._folder):
                continue
            with contextlib.suppress(OSError):  # it was removed in the meantime
                status = path.stat()
                stamps[path] = (status.st_mtime_ns, status.st_size)
        return stamps

    def _imported(self, path: Path, before: Sequence[Any]) -> Sequence[Any]:
        """Return the features of a file; those before the change if it can't be imported, which is logged."""
        try:
            return features_of_module(_module_of(path, self._folder), self.services)
        except BaseException as error:
            if not is_failure(error):  # a cancellation; sys.exit() in a file is a failure
                raise
            reason = quote(f"{type(error).__name__}: {error}", 600)
            logger.error("%s can't be imported, and its last features remain. %s", quote(str(path)), reason)
            return before


RELOAD_SECONDS = 1.0
"""Seconds after which a `FileSystemProvider` looks for changed files again."""


class _FileLoader(SourceFileLoader):
    """Reads a file without Python's cache of compiled code, which takes files of one size and second for equal."""

    def get_code(self, fullname: str) -> CodeType:
        """Return the compiled file."""
        del fullname
        return self.source_to_code(self.get_data(self.path), self.path)


def _module_of(path: Path, folder: Path) -> ModuleType:
    """Import a file as a new module, also if it was imported before."""
    name = "funcmcp_files_" + "_".join(path.relative_to(folder).with_suffix("").parts)
    loader = _FileLoader(name, str(path))
    module = module_from_spec(ModuleSpec(name, loader, origin=str(path)))
    module.__file__ = str(path)
    previous = sys.modules.get(name)
    sys.modules[name] = module  # dataclasses look for the module of their class
    try:
        loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        if previous is not None:
            sys.modules[name] = previous
        raise
    return module


@public("funcmcp.providers")
class EntryPointsProvider(Provider):
    """The features of installed packages that declare an entry point of a group.

    An entry point names a module with functions that have the decorators of funcmcp, or a function that gets no
    arguments and returns a list of features. A package that fails is left out, which is logged.

    Args:
        group: The name of the group, such as ``"shop.tools"``.

    Example:
        ```toml
        [project.entry-points."shop.tools"]
        refunds = "shop_refunds.tools"
        ```
    """

    def __init__(self, group: str) -> None:
        self._group = group

    async def list(self, caller: Principal | None) -> Iterable[AnyFeature]:
        """Return the features of all packages, in the order of the names of their entry points."""
        del caller
        features: list[Any] = []
        for entry in sorted(entry_points(group=self._group), key=lambda entry: entry.name):
            try:
                loaded = entry.load()
                features += loaded() if callable(loaded) else features_of_module(loaded, self.services)
            except BaseException as error:
                if not is_failure(error):  # as above
                    raise
                reason = quote(f"{type(error).__name__}: {error}", 600)
                logger.error("The entry point %s of %s is left out. %s", quote(entry.name), quote(self._group), reason)
        return features
