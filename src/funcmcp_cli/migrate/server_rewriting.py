"""The rewriting of servers for FastMCP and the official SDK: their imports become those of `funcmcp.compat`.

Names that `funcmcp.compat` does not have stay as they are, and the report names them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider

from funcmcp_cli.migrate import names
from funcmcp_cli.migrate.notes import Level, Note
from funcmcp_cli.migrate.project import dotted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from funcmcp_cli.migrate.project import SourceFile

_COMPAT = "funcmcp.compat"
_HINTS = {
    "Client": "use funcmcp.client.Client",
    "Server": "a low-level server; register each tool with @mcp.tool(input_schema=...)",
}
"""What to use in place of names that `funcmcp.compat` does not have."""


def rewritten_server(source: SourceFile) -> tuple[bytes, list[Note]]:
    """Return the new text of a file, and its lines of the report."""
    if b"mcp" not in source.data:
        return source.data, []
    rewriter = _Imports(source.name)
    return MetadataWrapper(source.module).visit(rewriter).bytes, rewriter.notes


class _Imports(cst.CSTTransformer):
    METADATA_DEPENDENCIES = (PositionProvider,)

    def __init__(self, file: str) -> None:
        super().__init__()
        self.file = file
        self.notes: list[Note] = []

    def note(self, node: cst.CSTNode, level: Level, text: str) -> None:
        line = int(self.get_metadata(PositionProvider, node).start.line)
        self.notes.append(Note(self.file, line, level, text))

    def leave_ImportAlias(self, original_node: cst.ImportAlias, updated_node: cst.ImportAlias) -> cst.ImportAlias:
        module = dotted(original_node.name)
        if module == "fastmcp":
            self.note(original_node, "moves", f"import fastmcp: the module is {_COMPAT}")
            name = cst.AsName(cst.Name("fastmcp")) if updated_node.asname is None else updated_node.asname
            return updated_node.with_changes(name=_module(_COMPAT), asname=name)
        if names.is_framework(module):
            self.note(original_node, "missing", f"import {module}: import the names from {_COMPAT}")
        return updated_node

    def visit_ImportFrom(self, node: cst.ImportFrom) -> bool:
        """Report what stays; the names of an import are not those of modules."""
        module = dotted(node.module)
        if node.relative or not module.startswith(("fastmcp", "mcp")):
            return False
        if isinstance(node.names, cst.ImportStar):
            if names.is_framework(module):
                self.note(node, "missing", f"from {module} import *: import the names that are used")
            return False
        staying = [dotted(alias.name) for alias in node.names if not _is_in_compat(module, alias)]
        if names.is_types(module):
            for name in staying:
                self.note(node, "differs", f"{name} of {module}: keep the package mcp installed")
        elif names.is_framework(module):
            for name in staying:
                self.note(node, "missing", f"{name} of {module}: {_HINTS.get(name, 'rewrite its uses by hand')}")
        elif module.startswith(("mcp.client", "mcp.shared", "mcp.server")):
            self.note(node, "missing", f"{module}: funcmcp has no such names; see docs/guides/tools.md and client.md")
        return False

    def visit_Call(self, node: cst.Call) -> None:
        """Report calls of methods that the context of `funcmcp.compat` does not have."""
        method = node.func.attr.value if isinstance(node.func, cst.Attribute) else ""
        if method in names.SESSION_VISIBILITY:
            self.note(
                node,
                "missing",
                f"{method} hides or shows features in one session, which funcmcp can't do yet; "
                "mcp.disable and mcp.enable would do so in all sessions",
            )

    def leave_SimpleStatementLine(
        self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine
    ) -> cst.BaseStatement | cst.FlattenSentinel[cst.BaseStatement]:
        statement = updated_node.body[0]
        if len(updated_node.body) != 1 or not isinstance(statement, cst.ImportFrom) or statement.relative:
            return updated_node
        module = dotted(statement.module)
        if isinstance(statement.names, cst.ImportStar):
            return updated_node
        moving = [alias for alias in statement.names if _is_in_compat(module, alias)]
        if not moving:
            return updated_node
        listed = ", ".join(dotted(alias.name) for alias in moving)
        self.note(original_node, "moves", f"{listed} of {module}: the names are in {_COMPAT}")
        staying = [alias for alias in statement.names if alias not in moving]
        if not staying:
            return updated_node.with_changes(body=[statement.with_changes(module=_module(_COMPAT))])
        new_line = cst.SimpleStatementLine([_import(_COMPAT, moving)], leading_lines=updated_node.leading_lines)
        old_line = cst.SimpleStatementLine(
            [_import(module, staying)], trailing_whitespace=updated_node.trailing_whitespace
        )
        return cst.FlattenSentinel([new_line, old_line])


def _is_in_compat(module: str, alias: cst.ImportAlias) -> bool:
    """Return whether `funcmcp.compat` has a name that is imported from a module of FastMCP or the official SDK."""
    name = dotted(alias.name)
    if names.is_types(module):
        return name in names.COMPAT_TYPES
    if module == "mcp.server":
        return name in names.SERVER_CLASSES
    return names.is_framework(module) and name in names.COMPAT_NAMES


def _module(name: str) -> cst.Attribute | cst.Name:
    head, _, tail = name.rpartition(".")
    return cst.Attribute(_module(head), cst.Name(tail)) if head else cst.Name(tail)


def _import(module: str, aliases: Sequence[cst.ImportAlias]) -> cst.ImportFrom:
    bare = [alias.with_changes(comma=cst.MaybeSentinel.DEFAULT) for alias in aliases]
    return cst.ImportFrom(_module(module), bare)
