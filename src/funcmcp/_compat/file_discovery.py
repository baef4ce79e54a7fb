"""Imports of the Python files in a folder, as FastMCP's `FileSystemProvider` does them, and the components in them.

How it works: a file in a package is imported as a module of the package, so that its relative imports work. Another
file is imported under its own name, so that files beside it can import it. Where another module has the name already,
the file gets a name of its own. Files that were imported before are executed again in the same module.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import sys
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.machinery import ModuleSpec
from typing import TYPE_CHECKING, Any

from funcmcp._compat.standalone import component_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import ModuleType

_PACKAGE = "__init__.py"


@dataclass
class Discovery:
    """What the files of a folder contain.

    Attributes:
        components: The components with their files.
        failed_files: The reasons for which files have none.
    """

    components: list[tuple[Path, Any]] = field(default_factory=list)
    failed_files: dict[Path, str] = field(default_factory=dict)


def discovered(root: Path) -> Discovery:
    """Return the components of all files in a folder and the folders below. A file that fails has none."""
    discovery = Discovery()
    for path in _files(root):
        try:
            components = components_of(imported(path, root))
        except Exception as error:  # noqa: BLE001 - the code of an author may raise anything
            discovery.failed_files[path] = str(error)
            continue
        discovery.components += [(path, component) for component in components]
    return discovery


def _files(root: Path) -> list[Path]:
    """Return the Python files in the order of their paths, without those that only make packages."""
    if root.is_file():
        return [root] if root.suffix == ".py" and root.name != _PACKAGE else []
    files = (path for path in root.rglob("*.py") if path.name != _PACKAGE)
    return sorted(path for path in files if "__pycache__" not in path.parts)


def components_of(module: ModuleType) -> list[Any]:
    """Return the components of a module in the order of their names: objects, and marked functions."""
    components = []
    for name in dir(module):
        if not name.startswith("_"):
            component = component_of(getattr(module, name, None))
            if component is not None:
                components.append(component)
    return components


def imported(path: Path, root: Path) -> ModuleType:
    """Import a file, or execute it again if it was imported before.

    Args:
        path: The file.
        root: The folder of the provider. A package does not begin above it.

    Raises:
        ImportError: The file can't be imported.
    """
    path, root = path.resolve(), root.resolve()
    package = _package_of(path, root)
    folder = path.parent if package is None else package.parent
    importlib.invalidate_caches()
    with _on_path(folder):
        try:
            return _imported_alone(path) if package is None else _imported_in_package(path, package)
        except Exception as error:
            raise ImportError(f"Failed to import {path}: {error}") from error


def _package_of(path: Path, root: Path) -> Path | None:
    """Return the folder of the outermost package that a file is in; None if it is in none."""
    package = None
    for folder in path.parents:
        if folder == root.parent or not (folder / _PACKAGE).exists():
            break
        package = folder
    return package


def _imported_in_package(path: Path, package: Path) -> ModuleType:
    parts = path.relative_to(package.parent).with_suffix("").parts
    name = ".".join(parts)
    existing = sys.modules.get(parts[0])
    if existing is not None and str(package) not in [str(item) for item in getattr(existing, "__path__", ())]:
        name = f"{_folder_as_package(package.parent)}.{name}"
    if name in sys.modules:
        return importlib.reload(sys.modules[name])
    return importlib.import_module(name)


def _folder_as_package(folder: Path) -> str:
    """Return the name of a package that stands for a folder whose packages have the names of others."""
    name = f"_funcmcp_folder_{_digest(folder)}"
    if name not in sys.modules:
        module = importlib.util.module_from_spec(ModuleSpec(name, None, is_package=True))
        module.__path__ = [str(folder)]
        sys.modules[name] = module
    return name


def _imported_alone(path: Path) -> ModuleType:
    name = path.stem
    existing = sys.modules.get(name)
    if existing is not None and getattr(existing, "__file__", None) != str(path):
        name = f"_funcmcp_{path.stem}_{_digest(path)}"
        existing = sys.modules.get(name)
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not a Python file")
    module = existing or importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        if existing is None:
            del sys.modules[name]
        raise
    return module


def _digest(path: Path) -> str:
    return hashlib.sha256(str(path).encode()).hexdigest()[:12]


@contextmanager
def _on_path(folder: Path) -> Iterator[None]:
    """Have a folder on Python's path until the block ends."""
    entry = str(folder)
    if entry in sys.path:
        yield
        return
    sys.path.insert(0, entry)
    try:
        yield
    finally:
        if entry in sys.path:
            sys.path.remove(entry)
