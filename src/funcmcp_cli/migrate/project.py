"""The Python files of a project, and their syntax trees."""

from __future__ import annotations

import ast
import io
import os
import re
import sys
import tokenize
import warnings
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from funcmcp._text.files import MAX_BYTES, read_bytes
from funcmcp_cli.failure import Failure
from funcmcp_cli.migrate.notes import Note

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    import libcst as cst

    Progress: TypeAlias = Callable[[int, int], object]

_SKIPPED = {"__pycache__", "build", "dist", "node_modules", "site-packages", "venv"}
_MAX_BYTES = 4_000_000
"""Bytes of a file. Its syntax tree takes about a hundred times as much memory."""
_SHALLOW_BYTES = 500_000
"""The deepest tree of so many bytes fits on the stack that `plan_migration` provides."""
_MAX_DEPTH = 2000
"""Levels of a syntax tree. The time to rewrite it grows with their square: 2,000 take a second or two."""
_IMPORT = re.compile(rb"^\s*(?:import|from)\s+(?:fastmcp|mcp|azure\.functions|azure)\b", re.MULTILINE)
_SERVER_IMPORT = re.compile(rb"\b(?:import|from)\b(?:[^\n\\]|\\\n|\\\r\n)*\b(?:fastmcp|mcp|mcp_types|funcmcp)\b")
_TRIGGER = re.compile(rb"\.(?:generic_trigger|mcp_?(?:tool|resource|prompt)_?trigger|mcp_tool|orchestration_trigger)\b")
"""Decorators of Azure's MCP triggers and orchestrations, whose app may be imported from another file."""
_REQUIREMENT = re.compile(r"^\s*[\"']?(fastmcp|mcp)(?:\[[^\]]*\])?\s*(?:[<>=!~,;\"'].*)?$")
_REQUIREMENT_IN_LIST = re.compile(
    r"^\s*(?!keywords\b)[\w.\"-]+\s*=\s*\[.*[\"'](fastmcp|mcp)(?:\[[^\]]*\])?\s*(?:[<>=!~;@ ][^\"']*)?[\"']"
)
"""Finds a requirement in a list of one line, such as `dependencies = ["fastmcp>=4", "httpx"]`."""
_REQUIREMENT_FILES = ("requirements*.txt", "pyproject.toml")


def no_progress(_: int, __: int) -> None:
    """Show no progress."""


@dataclass(frozen=True)
class SourceFile:
    """A Python file of a project.

    Attributes:
        path: The file.
        name: Its path from the project's folder.
        data: Its bytes.
    """

    path: Path
    name: str
    data: bytes

    @property
    def may_have_servers(self) -> bool:
        """Whether it imports FastMCP, the official SDK, or `funcmcp.compat`."""
        return b"mcp" in self.data and _SERVER_IMPORT.search(self.data) is not None

    @property
    def may_have_triggers(self) -> bool:
        """Whether it may have triggers of Azure Functions."""
        return _TRIGGER.search(self.data) is not None

    @cached_property
    def encoding(self) -> str:
        """The encoding of the text."""
        return tokenize.detect_encoding(io.BytesIO(self.data).readline)[0]

    @cached_property
    def text(self) -> str:
        """The text, with its line breaks."""
        return self.data.decode(self.encoding)

    @cached_property
    def tree(self) -> ast.Module:
        """The syntax tree, which has the numbers of lines."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(self.data)

    @cached_property
    def module(self) -> cst.Module:
        """The syntax tree that keeps the formatting, which takes longer to make."""
        import libcst  # noqa: PLC0415 - most projects need no tree that keeps the formatting

        return libcst.parse_module(self.data)

    @cached_property
    def _lines(self) -> list[tuple[int, str]]:
        """The lines, each with the position of its first character."""
        lines, position = [], 0
        for line in io.StringIO(self.text, newline=""):
            lines.append((position, line))
            position += len(line)
        return lines

    def span(self, node: ast.stmt | ast.alias) -> tuple[int, int]:
        """Return where a part of the tree begins and ends in the text."""
        return (
            self._position(node.lineno, node.col_offset),
            self._position(node.end_lineno or node.lineno, node.end_col_offset or 0),
        )

    def _position(self, line: int, column: int) -> int:
        """Return a position in the text. The columns of `ast` count bytes of UTF-8."""
        start, text = self._lines[line - 1]
        return start + len(text.encode()[:column].decode())


@dataclass(frozen=True, slots=True)
class ProjectFiles:
    """The files of a project.

    Attributes:
        sources: The files that may have servers or triggers.
        others: The other Python files, whose syntax is not known.
        notes: A note for each file that cannot be read or rewritten, and for each requirement.
    """

    sources: list[SourceFile]
    others: list[SourceFile]
    notes: list[Note]


def read_project(path: Path) -> ProjectFiles:
    """Return the Python files of a project.

    Raises:
        Failure: The path does not exist, or there is no Python file.
    """
    root = path if path.is_dir() else path.parent
    files = _files(path)
    if not files:
        raise Failure(f"{path.resolve()} has no Python files.")
    project = ProjectFiles([], [], [])
    for file in files:
        name = str(file.relative_to(root))
        try:
            source = _read(file, name)
        except UnreadableError as error:
            project.notes.append(Note(name, error.line, "missing", error.reason))
        else:
            if source is not None:
                is_source = source.may_have_servers or source.may_have_triggers
                (project.sources if is_source else project.others).append(source)
    project.notes.extend(_requirement_notes(root))
    if any(source.may_have_triggers for source in project.sources):
        project.notes.extend(_missing_requirement_notes(root / "requirements.txt"))
    return project


class UnreadableError(Exception):
    """A file cannot be migrated."""

    def __init__(self, reason: str, line: int = 0) -> None:
        super().__init__(reason)
        self.reason = reason
        self.line = line


def _read(file: Path, name: str) -> SourceFile | None:
    """Return a file. Return None for a notebook without servers. Raise UnreadableError if it cannot be migrated."""
    if file.is_symlink():
        raise UnreadableError(f"a link to {file.readlink()}; migrate that file")
    try:
        code = read_bytes(file, MAX_BYTES)
    except OSError as error:
        raise UnreadableError(f"cannot be read: {error.strerror}") from error
    if file.suffix == ".ipynb":
        if _IMPORT.search(code.replace(b'"', b"\n")):
            raise UnreadableError("a notebook; rewrite its cells by hand")
        return None
    source = SourceFile(file, name, code)
    if source.may_have_servers or source.may_have_triggers:
        check_syntax(source)
    return source


def check_syntax(source: SourceFile) -> None:
    """Read the syntax tree of a file.

    Raises:
        UnreadableError: The file can't be parsed.
    """
    if len(source.data) > _MAX_BYTES:
        raise UnreadableError(f"longer than {_MAX_BYTES:,} bytes")
    try:
        _ = source.text
        if source.tree and (source.may_have_triggers or len(source.data) > _SHALLOW_BYTES):
            _check_depth(source.tree)
    except (UnicodeDecodeError, LookupError) as error:
        raise UnreadableError("not in the encoding that it declares (UTF-8 by default)") from error
    except SyntaxError as error:
        raise _syntax_error(error) from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise UnreadableError(f"cannot be parsed: {type(error).__name__}") from error


def _syntax_error(error: SyntaxError) -> UnreadableError:
    if "too many nested" in str(error):
        return UnreadableError("cannot be parsed: RecursionError")
    if "encoding" in str(error) or "codec" in str(error):
        return UnreadableError("not in the encoding that it declares (UTF-8 by default)")
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    reason = f"not valid in Python {version}; correct it, or run the command with the Python of the project"
    return UnreadableError(reason, error.lineno or 0)


def _check_depth(tree: ast.Module) -> None:
    """Raise RecursionError for brackets and operators that are nested too deeply for libcst, which would crash."""
    level: list[ast.AST] = [tree]
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


def _missing_requirement_notes(file: Path) -> list[Note]:
    """Return a note if the requirements of a function app lack funcmcp."""
    try:
        text = read_bytes(file, MAX_BYTES).decode("utf-8", "replace")
    except OSError:  # a missing file; another one has a note already
        return []
    if re.search(r"(?m)^\s*funcmcp\b", text):
        return []
    return [Note(file.name, 0, "missing", "no funcmcp: add funcmcp-slim[azure]")]


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
                match = _REQUIREMENT.match(line) or _REQUIREMENT_IN_LIST.match(line)
                if match:
                    text = f"the requirement {match[1]}: write funcmcp, and add what the project imports itself"
                    text += " and did not list, such as httpx or starlette"
                    notes.append(Note(str(file.relative_to(root)), number, "missing", text))
    return notes
