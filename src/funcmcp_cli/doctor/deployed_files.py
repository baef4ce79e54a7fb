"""The checks of ``funcmcp doctor`` for the files that an app needs, and that .funcignore excludes from a deployment.

An import of the code reads most of them. Imports inside functions, and those of an app that can't be imported, are
followed in the text.
"""

from __future__ import annotations

import ast
import os
import posixpath
import re
from itertools import islice, pairwise
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from funcmcp._adapters.azure.settings import at
from funcmcp._text.files import is_file, read_text
from funcmcp._text.jsonc import parse
from funcmcp._text.listing import some_of
from funcmcp_cli.doctor.ignore_file import excluding_line
from funcmcp_cli.doctor.project import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from funcmcp_cli.doctor.project import Project

_MAX_FILES = 2000
_MAX_PATTERNS = 100
_MAX_SHOWN = 5
_BRACES = re.compile(r"\{([^{}]*)\}")
_NODE_IMPORT = re.compile(r"""(?:\bfrom|\bimport|\brequire\s*\(|\bimport\s*\()\s*["'](\.{1,2}/[^"'\n]+)["']""")
_NODE_ENDINGS = ("", ".js", ".cjs", ".mjs", ".json", "/index.js")


def check_deployed_files(project: Project) -> Iterator[Finding]:
    """Check that .funcignore does not exclude files that the app needs."""
    text = project.text_of(".funcignore")
    if is_file(project.code_file):
        code_file = Path(os.path.relpath(project.code_file, project.folder)).as_posix()
        needed = ["requirements.txt", *imported_files(project.folder, code_file)]
    else:
        needed = ["package.json", *_node_files(project.folder)]
    excluded_by: dict[str, list[str]] = {}
    for path in dict.fromkeys(["host.json", *project.code.files, *needed]):
        line = excluding_line(text, path) if is_file(project.folder / path) else None
        if line is not None:
            excluded_by.setdefault(line, []).append(path)
    for line, paths in excluded_by.items():
        excluded = some_of(paths, _MAX_SHOWN)
        yield Finding("error", ".funcignore", f"excludes {excluded}, which the app needs. Remove the line {line!r}.")


def imported_files(folder: Path, code_file: str) -> list[str]:
    """Return a Python file and the files of its folder that it imports, directly or not.

    Args:
        folder: The folder of the app, which is on Python's path.
        code_file: The file, relative to the folder, with slashes.
    """
    pending, files = [code_file], {code_file}
    while pending and len(files) < _MAX_FILES:
        for name in _imports_of(folder, pending.pop()):
            for file in _files_of(folder, name):
                if file not in files:
                    files.add(file)
                    pending.append(file)
    return sorted(files)


def _imports_of(folder: Path, file: str) -> Iterator[str]:
    """Yield the absolute names of the modules that a file may import. Names of objects in modules are among them."""
    try:
        module = ast.parse(read_text(folder / file))
    except (OSError, ValueError, SyntaxError, RecursionError):
        return
    package = PurePosixPath(file).parent.parts
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            base = ".".join([*above, *([node.module] if node.module else [])])
            yield base
            yield from (f"{base}.{alias.name}" if base else alias.name for alias in node.names)


def _files_of(folder: Path, name: str) -> Iterator[str]:
    """Yield the files of a module and of the packages around it, as far as they are in a folder."""
    parts = [part for part in name.split(".") if part]
    for length in range(1, len(parts) + 1):
        path = "/".join(parts[:length])
        for file in (f"{path}.py", f"{path}/__init__.py"):
            if is_file(folder / file):
                yield file


def _node_files(folder: Path) -> list[str]:
    """Return the files that ``main`` of a Node app names, and those of the app that they import."""
    try:
        main = at(parse(read_text(folder / "package.json"), comments=False).value, "main")
    except (OSError, ValueError):
        return []
    pending = [file for pattern in _alternatives(str(main or "index.js")) for file in _matching(folder, pattern)]
    files = set(pending)
    while pending and len(files) < _MAX_FILES:
        for file in _node_imports(folder, pending.pop()):
            if file not in files:
                files.add(file)
                pending.append(file)
    return sorted(files)


def _alternatives(pattern: str) -> list[str]:
    """Return the patterns that one with braces stands for, such as ``src/{a,b}.js``; 100 at most."""
    patterns = [pattern]
    while len(patterns) < _MAX_PATTERNS:
        match = next((match for match in map(_BRACES.search, patterns) if match is not None), None)
        if match is None:
            break
        patterns.remove(match.string)
        patterns += [match.string[: match.start()] + text + match.string[match.end() :] for text in match[1].split(",")]
    return patterns[:_MAX_PATTERNS]


def _matching(folder: Path, pattern: str) -> Iterator[str]:
    """Yield the files of a folder that a pattern matches. Its ``**`` are taken once."""
    parts = PurePosixPath(pattern).parts
    if not parts or parts[0] == "/" or ".." in parts:
        return
    parts = tuple(part for part, following in pairwise([*parts, ""]) if part != "**" or following != "**")
    try:
        for file in islice(folder.glob("/".join(parts)), _MAX_FILES):
            if is_file(file):
                yield file.relative_to(folder).as_posix()
    except ValueError:  # not a pattern
        return


def _node_imports(folder: Path, file: str) -> Iterator[str]:
    try:
        text = read_text(folder / file)
    except (OSError, ValueError):
        return
    for name in _NODE_IMPORT.findall(text):
        path = posixpath.normpath(f"{PurePosixPath(file).parent}/{name}")
        candidates = [f"{path}{ending}" for ending in _NODE_ENDINGS]
        imported = next((path for path in candidates if is_file(folder / path)), None)
        if imported is not None and not imported.startswith(".."):
            yield imported
