"""What ``funcmcp migrate`` reports and writes."""

from __future__ import annotations

import difflib
import gc
import io
import os
import re
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from funcmcp_cli.failure import Failure
from funcmcp_cli.migrate.compat_names import is_original
from funcmcp_cli.migrate.notes import Note
from funcmcp_cli.migrate.project import UnreadableError, check_syntax, no_progress, read_project
from funcmcp_cli.migrate.python_values import Imported, Modules, ProjectClass, ProjectFunction, ProjectModule
from funcmcp_cli.migrate.server_notes import server_notes
from funcmcp_cli.migrate.server_rewriting import rewritten_server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    from funcmcp_cli.migrate.project import Progress, ProjectFiles, SourceFile

_IMPORTS = re.compile(rb"\b(?:from|import)\b[^\n]*")
_WORDS = re.compile(rb"\w+")
_STACK_BYTES = 1 << 30
_RECURSION_LIMIT = 20_000


@dataclass(frozen=True, slots=True)
class Change:
    """The new text of a file.

    Attributes:
        path: The file.
        name: Its path from the project's folder.
        before: Its bytes.
        after: Its new bytes.
    """

    path: Path
    name: str
    before: bytes
    after: bytes

    def patch(self) -> str:
        """Return the change as a unified diff."""
        before, after = map(_lines, (self.before, self.after))
        lines = difflib.unified_diff(before, after, f"a/{self.name}", f"b/{self.name}")
        return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def _lines(code: bytes) -> list[str]:
    """Return the lines of a patch. A form feed, for example, does not end one, as it does for ``splitlines``."""
    return list(io.StringIO(code.decode("utf-8", "replace"), newline="\n"))


@dataclass(frozen=True, slots=True)
class MigrationPlan:
    """The report and the changes of a project.

    Attributes:
        notes: The lines of the report, sorted.
        changes: The files that change.
    """

    notes: list[Note]
    changes: list[Change]


def plan_migration(path: Path, progress: Progress = no_progress) -> MigrationPlan:
    """Return what migrating a file or a project's folder changes.

    Args:
        path: The file or the folder.
        progress: Is called with the number of files that are done, and the number of all.

    Raises:
        Failure: The path does not exist or has no Python files.
    """
    return _on_large_stack(lambda: _plan(path, progress))


def _on_large_stack(plan: Callable[[], MigrationPlan]) -> MigrationPlan:
    """Return what a function returns that works on nested syntax trees, such as those of `a and b and c`.

    libcst's parser takes some kilobytes of the stack for each level, and the process crashes where it is full. Python
    code takes a part of the recursion limit.
    """
    stack_size, recursion_limit = threading.stack_size(_STACK_BYTES), sys.getrecursionlimit()
    sys.setrecursionlimit(_RECURSION_LIMIT)
    try:
        with _without_collections(), ThreadPoolExecutor(1) as thread:
            return thread.submit(plan).result()
    except RecursionError as error:
        raise Failure("The project has an expression that is nested too deeply. Split it first.") from error
    finally:
        sys.setrecursionlimit(recursion_limit)
        threading.stack_size(stack_size)


@contextmanager
def _without_collections() -> Iterator[None]:
    """Turn the collector of garbage off: it would walk through all syntax trees again and again, and find nothing."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _plan(path: Path, progress: Progress) -> MigrationPlan:
    project = read_project(path)
    notes, changes = list(project.notes), []
    modules = _project_modules(project)
    for number, source in enumerate(project.sources, 1):
        code, lines = _rewritten(source, modules.get(source.name))
        notes += lines
        if code != source.data:
            changes.append(Change(source.path, source.name, source.data, code))
        progress(number, len(project.sources))
    return MigrationPlan(sorted(set(notes)), changes)


def _rewritten(source: SourceFile, module: ProjectModule | None) -> tuple[bytes, list[Note]]:
    """Return the new text of a file, and its lines of the report."""
    code = source.data
    notes: list[Note] = []
    if module is not None:
        try:
            code, notes = rewritten_server(source)
            notes += server_notes(module, source.name)
        except RecursionError:
            return source.data, [Note(source.name, 0, "missing", "cannot be parsed: RecursionError")]
    if source.may_have_triggers:
        from funcmcp_cli.migrate.azure_rewriting import rewritten_app  # noqa: PLC0415 - few projects are function apps

        code, lines = rewritten_app(source, code)
        notes += lines
    return code, notes


def _project_modules(project: ProjectFiles) -> dict[str, ProjectModule]:
    """Return the modules by the names of their files.

    A module that does not import FastMCP or the official SDK can use a server that it imports from another one of the
    project. Files that may do so are added to the sources of *project*.
    """
    others = list(project.others)
    added = [source for source in project.sources if source.may_have_servers]
    sources = list(added)
    while added:
        added = _importers(others, _modules(sources).values())
        others = [source for source in others if source not in added]
        added = [source for source in added if _is_valid(source)]
        sources += added
        project.sources.extend(added)
    return _modules(sources)


def _modules(sources: Iterable[SourceFile]) -> dict[str, ProjectModule]:
    modules = Modules()
    return {source.name: ProjectModule(source.name, source.tree, modules) for source in sources}


def _is_valid(source: SourceFile) -> bool:
    """Return whether a file can be parsed. No line of the report names the others: they would stay as they are."""
    try:
        check_syntax(source)
    except UnreadableError:
        return False
    return True


def _importers(files: Iterable[SourceFile], modules: Iterable[ProjectModule]) -> list[SourceFile]:
    """Return the files whose text has an import of a module with a server, and the name of the server."""
    offered: dict[str, set[str]] = {}
    for module in modules:
        names = _offered(module)
        if names:
            offered.setdefault(module.parts[-1] if module.parts else "", set()).update(names)
    return [source for source in files if _uses(source.data, offered)]


def _uses(code: bytes, offered: Mapping[str, set[str]]) -> bool:
    """Return whether lines with an import have the name of a module, and the code that of something in it."""
    names: set[str] = set()
    for line in _IMPORTS.findall(code):
        for module in offered.keys() & _words(line):
            names |= offered[module]
    return bool(names) and not names.isdisjoint(_words(code))


def _words(code: bytes) -> set[str]:
    return {word.decode("utf-8", "replace") for word in _WORDS.findall(code)}


def _offered(module: ProjectModule) -> set[str]:
    """Return the names of a module's servers, of classes for servers, and of functions that return them."""
    names = set()
    for name, bindings in module.scope.bindings.items():
        if any(isinstance(binding, Imported) and is_original(binding.module) for binding in bindings):
            continue
        value = module.scope.value_of_name(name)
        if value is not None and isinstance(value.definition, ProjectFunction):
            value = value.definition.returned()
        if value is not None and (
            value.name or (isinstance(value.definition, ProjectClass) and value.kind == "object")
        ):
            names.add(name)
    return names


def write_changes(changes: list[Change]) -> None:
    """Write all changed files, each in one step, once all of them are on the disk under other names.

    Raises:
        Failure: A file cannot be written, or has changed since it was read. The error says which files have changed.
    """
    for change in changes:
        if not os.access(change.path, os.W_OK) or not os.access(change.path.parent, os.W_OK):
            raise Failure(f"{change.path} cannot be written. No file has changed.")
        if not change.path.is_file() or change.path.read_bytes() != change.before:
            raise Failure(f"{change.path} has changed since it was read. No file was written. Run the command again.")
    temporaries: list[Path] = []
    written: list[str] = []
    try:
        for change in changes:
            path = change.path
            temporary = path.with_name(f".{path.name}.funcmcp-migrate")
            temporary.unlink(missing_ok=True)  # of a run that was killed
            temporaries.append(temporary)
            temporary.touch(0o600, exist_ok=False)
            temporary.write_bytes(change.after)
            temporary.chmod(path.stat().st_mode)
        for change, ready in zip(changes, temporaries, strict=True):
            path = change.path
            ready.replace(path)
            written.append(change.name)
    except OSError as error:
        outcome = f"Only these were written: {', '.join(written)}." if written else "No file has changed."
        raise Failure(f"{path} cannot be written: {error.strerror}. {outcome}") from error
    finally:
        for leftover in temporaries[len(written) :]:
            leftover.unlink(missing_ok=True)
