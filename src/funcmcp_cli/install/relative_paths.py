"""Relative paths of a server: clients start it in another folder, where they lead to other files.

The code is read and not run, so only paths that are texts in it are found.
"""

from __future__ import annotations

import ast
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from funcmcp_cli.targets import Target

_READERS = {
    "Path", "SQLiteTasks", "imread", "loadtxt", "genfromtxt", "read_csv", "read_excel", "read_feather", "read_ipc",
    "read_json", "read_ndjson", "read_orc", "read_parquet", "read_pickle", "read_table", "scan_csv", "scan_ndjson",
    "scan_parquet", "to_csv", "to_excel", "to_parquet",
}  # fmt: skip
"""Functions and classes whose first argument is a path, whatever they are an attribute of."""

_OF_MODULES = {
    *("Image.open", "aiofiles.open", "bz2.open", "codecs.open", "gzip.open", "io.open", "joblib.load", "lzma.open"),
    *("np.load", "numpy.load", "os.listdir", "os.scandir", "sqlite3.connect"),
}
"""Other functions of this kind, with the name of their module."""

_MORE_LINES = 5


class RelativePath(NamedTuple):
    """A relative path in the code.

    Attributes:
        line: Its line.
        text: The path.
    """

    line: int
    text: str


def notes_about_paths(place: Target, arguments: Sequence[str], variables: Mapping[str, str]) -> list[str]:
    """Return a sentence for each of the files of a server, its arguments and its variables that have relative paths.

    Args:
        place: The server, whose module was imported.
        arguments: The arguments of the server.
        variables: Its environment variables.
    """
    notes = []
    for file in _files_of(place):
        paths = list(relative_paths_in(file.read_text(encoding="utf-8", errors="replace")))
        if paths:
            notes.append(_note_about_code(file, paths))
    return [*notes, *notes_about_arguments(arguments, variables)]


def notes_about_arguments(arguments: Sequence[str], variables: Mapping[str, str]) -> list[str]:
    """Return a sentence for each argument and each environment variable that is a path of this folder."""
    named = [("The argument", argument.rpartition("=")[2]) for argument in arguments]
    named += [(f"The environment variable {name}", value) for name, value in variables.items()]
    return [
        f"{subject} {text} is a path of this folder, and clients start the server in another one. "
        f"Write {Path(text).absolute()}"
        for subject, text in named
        if _is_of_this_folder(text)
    ]


def relative_paths_in(source: str) -> Iterator[RelativePath]:
    """Yield the relative paths that a module opens when it is imported or called; none if it changes the folder."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return
    nodes = list(_nodes(tree))
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    if any(_name_of(call.func) == "os.chdir" for call in calls):
        return
    constants = _constants_of(tree)
    joined = {id(node.right) for node in nodes if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div)}
    paths = set()
    for call in calls:
        text = _first_text(call, constants)
        if id(call) not in joined and _takes_path(_name_of(call.func)) and text and _is_relative(text):
            paths.add(RelativePath(call.lineno, text))
    yield from sorted(paths)


def _nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a tree but those of the block that runs if the file is the program."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "__main__" in ast.unparse(node.test):
            continue
        yield node
        yield from _nodes(node)


def _constants_of(tree: ast.Module) -> dict[str, str]:
    """Return the texts that the module assigns to names at its top level."""
    constants = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            constants.update({name.id: node.value.value for name in node.targets if isinstance(name, ast.Name)})
    return constants


def _first_text(call: ast.Call, constants: Mapping[str, str]) -> str:
    """Return the text that is the first argument of a call; "" if it is something else."""
    first = call.args[0] if call.args else None
    if isinstance(first, ast.Name):
        return constants.get(first.id, "")
    return first.value if isinstance(first, ast.Constant) and isinstance(first.value, str) else ""


def _name_of(function: ast.expr) -> str:
    """Return the name of a function as it is called, with at most one name before it."""
    if isinstance(function, ast.Attribute):
        before = function.value.id if isinstance(function.value, ast.Name) else ""
        return f"{before}.{function.attr}"
    return function.id if isinstance(function, ast.Name) else ""


def _takes_path(name: str) -> bool:
    return name == "open" or name in _OF_MODULES or name.rpartition(".")[2] in _READERS


def _is_relative(text: str) -> bool:
    """Return whether a text is a relative path, and not a URL, a database in memory or the name of a user's folder."""
    return not (Path(text).is_absolute() or text.startswith(("~", ":", "\\")) or "://" in text or "\n" in text)


def _is_of_this_folder(text: str) -> bool:
    """Return whether a text is a relative path of a file or folder that exists."""
    looks_like_path = "." in text or "/" in text or os.sep in text
    try:
        return looks_like_path and _is_relative(text) and Path(text).exists()
    except (OSError, ValueError):
        return False


def _note_about_code(file: Path, paths: Sequence[RelativePath]) -> str:
    """Return the sentence about the relative paths in a file: the first one, and the lines of others."""
    first, *others = paths
    lines = [str(line) for line in dict.fromkeys(path.line for path in others) if line != first.line]
    note = (
        f"{file.name}, line {first.line}: {first.text!r} is a relative path, and clients start the server in another "
        f"folder. Write Path(__file__).parent / {first.text!r}."
    )
    if lines:
        numbers = ", ".join(lines[:_MORE_LINES]) + (" ..." if len(lines) > _MORE_LINES else "")
        note += f" The same holds for line {numbers}." if len(lines) == 1 else f" The same holds for lines {numbers}."
    return note


def _files_of(place: Target) -> list[Path]:
    """Return the file of a server's module, and those of the modules beside it that were imported."""
    folder = place.root.resolve()
    files = {place.file} if place.file is not None else set()
    for module in list(sys.modules.values()):
        name = getattr(module, "__file__", None)
        file = Path(name).resolve() if isinstance(name, str) and name.endswith(".py") else None
        if file is not None and file.is_relative_to(folder) and _is_own(file.relative_to(folder)):
            files.add(file)
    return sorted(file for file in files if file.is_file())


def _is_own(path: Path) -> bool:
    """Return whether a path below the folder of a server is not that of an environment or of an installed package."""
    return not any(part == "site-packages" or part.startswith(".") for part in path.parts)
