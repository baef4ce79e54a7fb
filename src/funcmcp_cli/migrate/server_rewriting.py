"""The rewriting of servers for FastMCP and the official SDK: their imports become those of `funcmcp.compat`.

How it works: the syntax tree of `ast` has the places of the imports, and only they are replaced in the text, so that
everything else stays as it is. Names that `funcmcp.compat` does not have stay, too, and the report names them.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from funcmcp_cli.migrate.compat_names import import_verdict, is_original, is_submodule, is_types, target_of, tree_has
from funcmcp_cli.migrate.notes import Level, Note
from funcmcp_cli.migrate.python_values import all_statements

if TYPE_CHECKING:
    from collections.abc import Sequence

    from funcmcp_cli.migrate.project import SourceFile

_COMPAT = "funcmcp.compat"
_FROM = re.compile(r"from\b(?:\s|\\)*(?P<module>.+?)(?=(?:\s|\\)+import\b)", re.DOTALL)
_REST_OF_LINE = re.compile(r"[ \t\f]*(?:#.*)?$")


@dataclass
class _Text:
    """The text of a file, with the replacements that are to be made in it."""

    source: SourceFile
    edits: list[tuple[int, int, str]] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)

    def note(self, node: ast.AST, level: Level, text: str) -> None:
        self.notes.append(Note(self.source.name, getattr(node, "lineno", 0), level, text))

    def rewritten(self) -> bytes:
        """Return the bytes of the file with the replacements."""
        if not self.edits:
            return self.source.data
        text = self.source.text
        for start, end, replacement in sorted(self.edits, reverse=True):
            text = text[:start] + replacement + text[end:]
        return text.encode(self.source.encoding)


def rewritten_server(source: SourceFile) -> tuple[bytes, list[Note]]:
    """Return the new text of a file, and the lines of the report about its imports."""
    text = _Text(source)
    for node in all_statements(source.tree.body):
        if isinstance(node, ast.Import):
            _read_import(text, node)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and is_original(node.module or ""):
            _read_import_from(text, node, node.module or "")
    return text.rewritten(), text.notes


def _read_import(text: _Text, node: ast.Import) -> None:
    for alias in node.names:
        name = alias.asname or (alias.name if alias.name == "fastmcp" else "")
        if name and is_original(alias.name) and alias.name != "mcp" and not is_types(alias.name):
            lacking = _names_lacking(text, alias.name, name)
            if lacking and alias.name != "fastmcp":  # of fastmcp itself, the report names them at their lines
                text.note(node, "missing", f"import {alias.name}: {_COMPAT} has no {', '.join(lacking)} of it")
                continue
            text.note(node, "moves", f"import {alias.name}: the module is {_COMPAT}.{alias.name}")
            start, end = text.source.span(alias)
            text.edits.append((start, end, f"{_COMPAT}.{alias.name} as {name}"))
        elif is_original(alias.name) and not is_types(alias.name) and alias.name != "mcp":
            advice = "use mcp.run()" if alias.name == "mcp.server.stdio" else f"import the names from {_COMPAT}"
            text.note(node, "missing", f"import {alias.name}: {advice}")


def _names_lacking(text: _Text, module: str, name: str) -> list[str]:
    """Return the attributes of a module that a file uses and that the module of `funcmcp.compat` does not have.

    Args:
        text: The file.
        module: The module of the originals.
        name: The name of the module in the file.
    """
    used = {
        node.attr
        for node in ast.walk(text.source.tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == name
    }
    return sorted(attribute for attribute in used if not tree_has(module, attribute))


def _read_import_from(text: _Text, node: ast.ImportFrom, module: str) -> None:
    if node.names[0].name == "*":
        if not is_types(module):
            text.note(node, "missing", f"from {module} import *: import the names that are used")
        return
    groups: dict[str, list[ast.alias]] = {}
    for alias in node.names:
        groups.setdefault(_target_of(text, node, alias, module), []).append(alias)
    for target in groups.keys() - {module}:
        listed = ", ".join(alias.name for alias in groups[target])
        text.note(node, "moves", f"{listed} of {module}: the names are in {target}")
    if groups.keys() == {module}:
        return
    start, end = text.source.span(node)
    match = _FROM.match(text.source.text[start:end])
    if len(groups) == 1 and match is not None:
        text.edits.append((start + match.start("module"), start + match.end("module"), next(iter(groups))))
        return
    order = sorted(groups, key=lambda target: (target == module, target))
    separator = _separator(text.source.text, start, end)
    text.edits.append((start, end, separator.join(_import(target, groups[target]) for target in order)))


def _target_of(text: _Text, node: ast.ImportFrom, alias: ast.alias, module: str) -> str:
    """Return the module that a name is imported from afterwards. Note what differs, and what is missing."""
    submodule = f"{module}.{alias.name}"
    if is_submodule(submodule) and not is_types(submodule):
        lacking = _names_lacking(text, submodule, alias.asname or alias.name)
        if not lacking:
            return f"{_COMPAT}.{module}"
        text.note(node, "missing", f"{alias.name} of {module}: {_COMPAT} has no {', '.join(lacking)} of it")
        return module
    verdict = import_verdict(module, alias.name)
    if verdict.level != "same":
        text.note(node, verdict.level, f"{alias.name} of {module}: {verdict.text}")
    return target_of(module, alias.name) or module


def _separator(text: str, start: int, end: int) -> str:
    """Return what stands between two statements in place of one: a line break if the statement has its own lines."""
    line = max(text.rfind("\n", 0, start), text.rfind("\r", 0, start)) + 1
    indentation = text[line:start]
    breaks = re.compile(r"\r\n|\r|\n").search(text, end)
    rest = text[end : len(text) if breaks is None else breaks.start()]
    if indentation.strip() or not _REST_OF_LINE.match(rest):
        return "; "
    first = re.search(r"\r\n|\r|\n", text)
    return ("\n" if first is None else first[0]) + indentation


def _import(module: str, aliases: Sequence[ast.alias]) -> str:
    names = [alias.name if alias.asname is None else f"{alias.name} as {alias.asname}" for alias in aliases]
    return f"from {module} import {', '.join(names)}"
