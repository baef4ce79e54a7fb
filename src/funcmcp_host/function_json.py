"""Functions that are described by files: a folder for each function, with a ``function.json`` in it.

Apps in Java and PowerShell are like this, and those of the older programming models of Python and Node. Source:
HostFunctionMetadataProvider of the Functions host.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from funcmcp._text.files import is_file
from funcmcp_host.folder import FolderError, read_json

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_FILE_NAME = "function.json"
_PRIMARY_FILES = {"index.js", "index.mjs", "index.cjs", "__init__.py"}


@dataclass(frozen=True, slots=True)
class FunctionFolder:
    """A function with a folder of its own.

    Attributes:
        name: The function's name, which is that of the folder.
        path: The folder.
        script: The file with its code; empty if there is none.
        entry_point: What to call in that file; empty for the worker's default.
        bindings: The JSON texts of its bindings.
        error: Why the function can't be loaded, or None.
    """

    name: str
    path: Path
    script: str = ""
    entry_point: str = ""
    bindings: Sequence[str] = ()
    error: str | None = None


def function_folders(app: Path) -> list[FunctionFolder]:
    """Return the functions of an app that have a folder each, by name."""
    return [_read(file) for file in sorted(app.glob(f"*/{_FILE_NAME}"))]


def _read(file: Path) -> FunctionFolder:
    folder = file.parent
    try:
        content = read_json(file)
        bindings = content.get("bindings")
        if not isinstance(bindings, list) or not bindings:
            raise FolderError(f"{_FILE_NAME} has no bindings. Add a list with a trigger.")
        if not all(isinstance(binding, dict) for binding in bindings):
            raise FolderError(f"{_FILE_NAME}: each of the bindings must be an object.")
        script = _script(folder, content.get("scriptFile"))
    except FolderError as error:
        return FunctionFolder(folder.name, folder, error=str(error))
    entry_point = content.get("entryPoint")
    return FunctionFolder(
        name=folder.name,
        path=folder,
        script=script,
        entry_point=entry_point if isinstance(entry_point, str) else "",
        bindings=tuple(json.dumps(binding) for binding in bindings),
    )


def _script(folder: Path, name: Any) -> str:
    """Return the path of a function's code: the file that ``scriptFile`` names, or the one that the host would pick."""
    if isinstance(name, str) and name:
        path = folder / name
        if not is_file(path):
            raise FolderError(f'{_FILE_NAME}: "scriptFile" is {name}, which does not exist. Correct the path.')
        return str(path.resolve())
    files = sorted(path for path in folder.iterdir() if path.is_file() and path.name != _FILE_NAME)
    if len(files) != 1:
        files = [path for path in files if path.stem.lower() == "run" or path.name.lower() in _PRIMARY_FILES]
    return str(files[0].resolve()) if files else ""
