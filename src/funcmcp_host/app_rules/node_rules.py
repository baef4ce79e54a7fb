"""The rules about what the library of Node apps, @azure/functions, makes of triggers and results.

Source: its code at 4.16.5; 4.13.0 is the first release that writes results of tools as envelopes.
"""

from __future__ import annotations

import os
import re
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from funcmcp._adapters.azure.settings import at
from funcmcp._text.files import read_text
from funcmcp_host.app_rules.model import is_set, kind_of
from funcmcp_host.app_rules.rule import Rule
from funcmcp_host.folder import FolderError, read_json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from funcmcp_host.app_rules.model import App
    from funcmcp_host.app_rules.rule import Faults

_LIBRARY = "https://github.com/Azure/azure-functions-nodejs-library"
_FIRST_WITH_ENVELOPES = (4, 13)
_REGISTRATION = re.compile(r"""\bmcpTool\(\s*["'`]([^"'`\n]+)["'`]|\bapp\.(?!mcpTool\b)\w+\(""")
_DROPPED = {
    "useWorkerInputSchema": re.compile(r"\buseWorkerInputSchema\b"),
    "outputSchema": re.compile(r"\boutputSchema\s*:"),
}
"""By option of the trigger that `app.mcpTool` leaves out, how code sets it."""

_SOURCES = {".js", ".cjs", ".mjs", ".ts", ".cts", ".mts"}
_MAX_FILES = 500
_MAX_CHARACTERS = 2_000_000


def _results_as_texts(app: App) -> Faults:
    if _library_version(app) < _FIRST_WITH_ENVELOPES:
        return
    for function in app.mcp_functions:
        triggers = [binding for binding in function.mcp_bindings if kind_of(binding) == "mcptooltrigger"]
        if triggers and not is_set(triggers[0], "useResultSchema"):
            yield (
                function.name,
                (
                    "sends clients its results inside the JSON of an envelope: @azure/functions wraps them, and the "
                    "trigger does not set useResultSchema. Set it."
                ),
            )


def _dropped_options(app: App) -> Faults:
    if not _is_node(app) or not app.mcp_functions:
        return
    triggers = {function.name: function.mcp_bindings for function in app.mcp_functions}
    for text in _source_texts(app.folder):
        for name, code in _tools_in(text):
            set_options = {key for binding in triggers.get(name, ()) for key in binding}
            for option, pattern in _DROPPED.items():
                if name in triggers and pattern.search(code) and option.lower() not in set_options:
                    yield (
                        name,
                        (
                            f"sets {option}, which app.mcpTool of @azure/functions leaves out. "
                            "Write app.generic with that option and useResultSchema."
                        ),
                    )


def _tools_in(text: str) -> Iterator[tuple[str, str]]:
    """Yield the functions that a file registers with `app.mcpTool`, each with the code up to the next registration."""
    for match, following in pairwise([*_REGISTRATION.finditer(text), None]):
        if match is not None and match[1] is not None:
            yield match[1], text[match.end() : len(text) if following is None else following.start()]


def _source_texts(folder: Path) -> Iterator[str]:
    """Yield the source files of an app, without those of its packages."""
    count = 0
    for path, names, files in os.walk(folder):
        names[:] = sorted(name for name in names if name != "node_modules" and name[0] != ".")
        for name in sorted(files):
            file = Path(path, name)
            if file.suffix not in _SOURCES or count == _MAX_FILES:
                continue
            count += 1
            try:
                yield read_text(file)[:_MAX_CHARACTERS]
            except (OSError, ValueError):
                continue


def _is_node(app: App) -> bool:
    return (app.folder / "package.json").is_file() and not (app.folder / "function_app.py").is_file()


def _library_version(app: App) -> tuple[int, ...]:
    """Return the first two numbers of the version of @azure/functions in a Node app; (0, 0) if there is none."""
    if not _is_node(app):
        return (0, 0)
    try:
        manifest = read_json(app.folder / "node_modules" / "@azure" / "functions" / "package.json")
    except FolderError:
        return (0, 0)
    match = re.match(r"(\d{1,9})\.(\d{1,9})\.", str(at(manifest, "version")))
    return (int(match[1]), int(match[2])) if match else (0, 0)


RULES = (
    Rule(
        "node-results",
        "triggers",
        "warning",
        "a tool of a Node app without `useResultSchema`, as by `app.generic`, with @azure/functions 4.13 or later",
        "Clients read the library's envelope as a text.",
        "`useResultSchema: true`",
        f"{_LIBRARY}/issues/475",
        _results_as_texts,
    ),
    Rule(
        "node-options",
        "triggers",
        "warning",
        "`useWorkerInputSchema` or `outputSchema` in a call of `app.mcpTool`",
        "The library leaves them out: the tool has other arguments, or no output schema.",
        "`toolProperties`, or `app.generic` with `useResultSchema`",
        f"{_LIBRARY}/issues/475",
        _dropped_options,
    ),
)
