"""The modules of a project that have servers, or that import them from others."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from funcmcp_cli.migrate.project import UnreadableError, check_syntax
from funcmcp_cli.migrate.python_values import Imported, Modules, ProjectClass, ProjectFunction, ProjectModule

if TYPE_CHECKING:
    from collections.abc import Iterable

    from funcmcp_cli.migrate.project import ProjectFiles, SourceFile


def project_modules(project: ProjectFiles) -> dict[str, ProjectModule]:
    """Return the modules by the names of their files.

    A module that does not import FastMCP or the official SDK can use a server that it imports from another one of the
    project. Files that may do so are added to the sources of *project*.
    """
    modules = Modules()
    by_file = {source.name: _module(source, modules) for source in project.sources if source.may_have_servers}
    importers = _importers(project.others, by_file.values())
    for source in importers:
        try:
            check_syntax(source)
            by_file[source.name] = _module(source, modules)
        except UnreadableError:
            continue  # nothing of it would be rewritten
        project.sources.append(source)
    return by_file


def _module(source: SourceFile, modules: Modules) -> ProjectModule:
    return ProjectModule(source.name, source.tree, modules)


def _importers(files: Iterable[SourceFile], modules: Iterable[ProjectModule]) -> list[SourceFile]:
    """Return the files whose text has an import of a module with a server, and the name of one."""
    names: set[str] = set()
    sources: set[str] = set()
    for module in modules:
        offered = _offered(module)
        names |= offered
        if offered:
            sources.update(module.parts[-1:])
    if not names:
        return []
    imports = re.compile(rf"\b(?:from|import)\b[^\n]*\b(?:{_alternatives(sources)})\b".encode())
    uses = re.compile(rf"\b(?:{_alternatives(names)})\b".encode())
    return [source for source in files if imports.search(source.data) and uses.search(source.data)]


def _alternatives(names: Iterable[str]) -> str:
    return "|".join(map(re.escape, sorted(names)))


def _offered(module: ProjectModule) -> set[str]:
    """Return the names of a module's servers, of classes for servers, and of functions that return them."""
    names = set()
    for name, bindings in module.scope.bindings.items():
        if any(isinstance(binding, Imported) for binding in bindings):
            continue
        value = module.scope.value_of_name(name)
        if value is not None and isinstance(value.definition, ProjectFunction):
            value = value.definition.returned()
        if value is not None and (value.name or isinstance(value.definition, ProjectClass) and value.kind == "object"):
            names.add(name)
    return names
