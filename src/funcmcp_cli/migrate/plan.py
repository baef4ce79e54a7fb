"""What ``funcmcp migrate`` reports and writes."""

from __future__ import annotations

import difflib
import os
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from funcmcp_cli.failure import Failure
from funcmcp_cli.migrate.notes import Note
from funcmcp_cli.migrate.project import no_progress, read_project
from funcmcp_cli.migrate.project_modules import project_modules
from funcmcp_cli.migrate.server_notes import server_notes
from funcmcp_cli.migrate.server_rewriting import rewritten_server

if TYPE_CHECKING:
    from collections.abc import Callable

    from funcmcp_cli.migrate.project import Progress, SourceFile
    from funcmcp_cli.migrate.python_values import ProjectModule

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
        before, after = (
            code.decode("utf-8", "replace").splitlines(keepends=True) for code in (self.before, self.after)
        )
        lines = difflib.unified_diff(before, after, f"a/{self.name}", f"b/{self.name}")
        return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


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
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(plan).result()
    except RecursionError as error:
        raise Failure("The project has an expression that is nested too deeply. Divide it first.") from error
    finally:
        sys.setrecursionlimit(recursion_limit)
        threading.stack_size(stack_size)


def _plan(path: Path, progress: Progress) -> MigrationPlan:
    project = read_project(path)
    notes, changes = list(project.notes), []
    modules = project_modules(project)
    for number, source in enumerate(project.sources, 1):
        code, lines = _rewritten(source, modules.get(source.name))
        notes += lines
        if code != source.data:
            changes.append(Change(source.path, source.name, source.data, code))
        progress(number, len(project.sources))
    return MigrationPlan(sorted(set(notes)), changes)


def _rewritten(source: SourceFile, module: ProjectModule | None) -> tuple[bytes, list[Note]]:
    """Return the new text of a file, and its lines of the report."""
    code, notes = source.data, []
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


def write_changes(changes: list[Change]) -> None:
    """Write all changed files, each in one step.

    Raises:
        Failure: A file cannot be written. All files are unchanged if this shows before the first one is written.
    """
    for change in changes:
        if not os.access(change.path, os.W_OK) or not os.access(change.path.parent, os.W_OK):
            raise Failure(f"{change.path} cannot be written. No file has changed.")
    for change in changes:
        try:
            descriptor, temporary = tempfile.mkstemp(prefix=f".{change.path.name}-", dir=change.path.parent)
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(change.after)
            Path(temporary).chmod(change.path.stat().st_mode)
            Path(temporary).replace(change.path)
        except OSError as error:
            raise Failure(f"{change.path} cannot be written: {error.strerror}.") from error
