"""The Python files of a project, as syntax trees that keep the formatting."""

from __future__ import annotations

import ast
import os
import re
import warnings
from dataclasses import dataclass
from pathlib import Path

import libcst as cst

from funcmcp._text.files import MAX_BYTES, read_bytes
from funcmcp_cli.failure import Failure
from funcmcp_cli.migrate.notes import Note

_SKIPPED = {"__pycache__", "build", "dist", "node_modules", "site-packages", "venv"}
_MAX_BYTES = 500_000
"""Bytes of a file. The deepest tree of so many bytes fits on the stack that `plan_migration` provides."""
_MAX_DEPTH = 2000
"""Levels of a syntax tree. The time to rewrite it grows with their square: 2,000 take a second or two."""
_IMPORT = re.compile(rb"^\s*(?:import|from)\s+(?:fastmcp|mcp|azure\.functions|azure)\b", re.MULTILINE)
_REQUIREMENT = re.compile(r"^\s*[\"']?(fastmcp|mcp)(?:\[[^\]]*\])?\s*(?:[<>=!~,;\"'].*)?$")
_REQUIREMENT_FILES = ("requirements*.txt", "pyproject.toml")


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A Python file of a project.

    Attributes:
        path: The file.
        name: Its path from the project's folder.
        data: Its bytes.
        module: Its syntax tree.
    """

    path: Path
    name: str
    data: bytes
    module: cst.Module


def read_project(path: Path) -> tuple[list[SourceFile], list[Note]]:
    """Return the files of a project that import FastMCP, the official SDK or Azure Functions.

    Returns:
        The files, and a note for each one that cannot be read or rewritten.

    Raises:
        Failure: The path does not exist, or there is no Python file.
    """
    root = path if path.is_dir() else path.parent
    files = _files(path)
    if not files:
        raise Failure(f"{path} has no Python files.")
    sources: list[SourceFile] = []
    notes: list[Note] = []
    for file in files:
        name = str(file.relative_to(root))
        try:
            source = _read(file, name)
        except _UnreadableError as error:
            notes.append(Note(name, error.line, "missing", error.reason))
            continue
        if source is not None:
            sources.append(source)
    return sources, notes + _requirement_notes(root)


class _UnreadableError(Exception):
    """A file cannot be migrated."""

    def __init__(self, reason: str, line: int = 0) -> None:
        super().__init__(reason)
        self.reason = reason
        self.line = line


def _read(file: Path, name: str) -> SourceFile | None:
    """Return a file. Return None for a notebook without servers. Raise _UnreadableError if it cannot be migrated."""
    if file.is_symlink():
        raise _UnreadableError(f"a link to {file.readlink()}; migrate that file")
    try:
        code = read_bytes(file, MAX_BYTES)
    except OSError as error:
        raise _UnreadableError(f"cannot be read: {error.strerror}") from error
    if file.suffix == ".ipynb":
        if _IMPORT.search(code.replace(b'"', b"\n")):
            raise _UnreadableError("a notebook; rewrite its cells by hand")
        return None
    try:
        _check_depth(code)
        return SourceFile(file, name, code, cst.parse_module(code))
    except cst.ParserSyntaxError as error:
        raise _UnreadableError("not valid Python 3; correct it first", error.raw_line) from error
    except (UnicodeDecodeError, LookupError, SyntaxError) as error:
        raise _UnreadableError("not in the encoding that it declares (UTF-8 by default)") from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise _UnreadableError(f"cannot be parsed: {type(error).__name__}") from error


def _check_depth(code: bytes) -> None:
    """Raise RecursionError or MemoryError for brackets and operators that are nested too deeply for Python's parser.

    libcst's parser would crash the process. Other errors of the syntax are left to libcst, which names their lines.
    """
    if len(code) > _MAX_BYTES:
        raise _UnreadableError(f"longer than {_MAX_BYTES:,} bytes")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            level: list[ast.AST] = [ast.parse(code)]
        except SyntaxError as error:
            if "too many nested" in str(error):
                raise RecursionError from error
            return
    for _ in range(_MAX_DEPTH):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
    if level:
        raise RecursionError


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise Failure(f"{path} does not exist.")
    files: list[Path] = []
    for folder, subfolders, names in os.walk(path):
        subfolders[:] = sorted(name for name in subfolders if name not in _SKIPPED and not name.startswith("."))
        files += [Path(folder, name) for name in sorted(names) if name.endswith((".py", ".ipynb"))]
    return files


def _requirement_notes(root: Path) -> list[Note]:
    """Return a note for each requirement of FastMCP or the official SDK."""
    notes = []
    for pattern in _REQUIREMENT_FILES:
        for file in sorted(root.glob(pattern)):
            try:
                lines = read_bytes(file, MAX_BYTES).decode("utf-8", "replace").splitlines()
            except OSError as error:
                notes.append(Note(str(file.relative_to(root)), 0, "missing", f"cannot be read: {error.strerror}"))
                continue
            for number, line in enumerate(lines, 1):
                match = _REQUIREMENT.match(line)
                if match:
                    text = f"the requirement {match[1]}: write funcmcp"
                    notes.append(Note(str(file.relative_to(root)), number, "missing", text))
    return notes


def dotted(node: cst.BaseExpression | None) -> str:
    """Return a name such as ``a.b``. Return "" for another expression."""
    if isinstance(node, cst.Name):
        return node.value
    if isinstance(node, cst.Attribute):
        head = dotted(node.value)
        return f"{head}.{node.attr.value}" if head else ""
    return ""
