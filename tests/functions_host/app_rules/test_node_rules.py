"""The rules about Node apps: which library and which code they are about."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp_host.app_rules.model import read_app
from funcmcp_host.app_rules.table import breaches_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

BUNDLE = {"id": "Microsoft.Azure.Functions.ExtensionBundle", "version": "[4.36.0, 5.0.0)"}
TOOL = {"type": "mcpToolTrigger", "name": "context", "toolName": "t", "description": "d", "useResultSchema": True}
RESOURCE = {"type": "mcpResourceTrigger", "name": "context", "uri": "a://b", "resourceName": "b"}
LIBRARY = "node_modules/@azure/functions/package.json"


def found(folder: Path, files: Mapping[str, str], *bindings: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the rules that an app with the function f breaks, each with its text."""
    for name, text in {
        "host.json": json.dumps({"version": "2.0", "extensionBundle": BUNDLE}),
        "package.json": "{}",
        **files,
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    app = read_app(folder, {"f": [json.dumps(binding) for binding in bindings]})
    return [(breach.rule.name, breach.text) for breach in breaches_of(app)]


@pytest.mark.parametrize(
    ("version", "is_found"),
    [("4.13.0", True), ("5.0.0-preview", True), ("4.12.0", False), ("3.5.1", False), ("next", False), ("", False)],
)
def test_envelopes_are_those_of_newer_libraries(version: str, is_found: bool, tmp_path: Path) -> None:
    files = {LIBRARY: json.dumps({"version": version})}
    rules = [rule for rule, _ in found(tmp_path, files, {**TOOL, "useResultSchema": False})]
    assert rules == (["node-results"] if is_found else [])
    assert found(tmp_path, files, TOOL) == []
    assert found(tmp_path, files, RESOURCE) == []


def test_an_app_without_the_library_or_in_python_has_no_envelopes(tmp_path: Path) -> None:
    trigger = {**TOOL, "useResultSchema": False}
    assert found(tmp_path, {}, trigger) == []
    files = {LIBRARY: '{"version": "4.16.5"}', "function_app.py": ""}
    assert found(tmp_path, files, trigger) == []


@pytest.mark.parametrize(
    ("files", "options"),
    [
        ({"src/a.ts": "app.mcpTool('f', { useWorkerInputSchema: true, outputSchema: x })"}, 2),
        ({"a.js": 'app.mcpTool(\n  "f",\n  { outputSchema : x })'}, 1),
        ({"a.js": "app.mcpTool('f', {})\napp.generic('g', { trigger: { outputSchema: x } })"}, 0),
        ({"a.js": "app.mcpTool('other', { outputSchema: x })"}, 0),
        ({"a.js": "app.generic('f', { trigger: { outputSchema: x } })"}, 0),
        ({"node_modules/a/a.js": "app.mcpTool('f', { outputSchema: x })"}, 0),
        ({"a.js": b"app.mcpTool('f', \xff { outputSchema: x })".decode("latin-1"), ".b/a.js": "x"}, 1),
    ],
)
def test_options_that_the_library_leaves_out(files: Mapping[str, str], options: int, tmp_path: Path) -> None:
    assert [rule for rule, _ in found(tmp_path, files, TOOL)] == ["node-options"] * options


def test_options_that_reach_the_trigger_are_right(tmp_path: Path) -> None:
    files = {"a.js": "app.mcpTool('f', { outputSchema: x })", "b.js": "\0"}
    assert found(tmp_path, files, {**TOOL, "outputSchema": "{}"}) == []


def test_files_that_can_not_be_read_and_many_files_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "a.js").write_bytes(b"\xff app.mcpTool('f', { outputSchema: x })")
    assert found(tmp_path, {}, TOOL) == []
    for number in range(500):
        (tmp_path / f"a{number}.js").write_text("")
    assert found(tmp_path, {"z.js": "app.mcpTool('f', { outputSchema: x })"}, TOOL) == []
