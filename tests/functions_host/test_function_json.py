"""Functions with a folder and a function.json each."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp_host.function_json import function_folders

if TYPE_CHECKING:
    from pathlib import Path

BINDING = {"name": "context", "type": "mcpToolTrigger", "direction": "in", "toolName": "t"}


def write(app: Path, name: str, content: object, *files: str) -> None:
    (app / name).mkdir()
    text = content if isinstance(content, str) else json.dumps(content)
    (app / name / "function.json").write_text(text)
    for file in files:
        (app / name / file).write_text("")


def test_functions_have_their_folder_their_code_and_their_bindings(tmp_path: Path) -> None:
    (tmp_path / "app.jar").write_text("")
    (tmp_path / "other").mkdir()
    write(tmp_path, "b", {"scriptFile": "../app.jar", "entryPoint": "a.B.c", "bindings": [BINDING]})
    write(tmp_path, "a", {"bindings": [BINDING]})
    first, second = function_folders(tmp_path)
    assert (first.name, first.path, first.script, first.entry_point) == ("a", tmp_path / "a", "", "")
    assert (second.name, second.script, second.entry_point) == ("b", str(tmp_path / "app.jar"), "a.B.c")
    assert [json.loads(text) for text in second.bindings] == [BINDING]
    assert first.error is second.error is None


@pytest.mark.parametrize(
    ("files", "script"),
    [
        ((), ""),
        (("anything.txt",), "anything.txt"),
        (("helper.ps1", "run.ps1"), "run.ps1"),
        (("a.py", "__init__.py"), "__init__.py"),
        (("a.js", "index.js"), "index.js"),
        (("a.js", "b.js"), ""),
    ],
)
def test_the_code_is_the_file_that_the_functions_host_would_take(
    files: tuple[str, ...], script: str, tmp_path: Path
) -> None:
    write(tmp_path, "f", {"bindings": [BINDING]}, *files)
    assert function_folders(tmp_path)[0].script == (str(tmp_path / "f" / script) if script else "")


@pytest.mark.parametrize(
    ("content", "error"),
    [
        ("{", "function.json, line 1, column 2: "),
        ({"bindings": []}, "function.json has no bindings. Add a list with a trigger."),
        ({}, "function.json has no bindings. Add a list with a trigger."),
        ({"bindings": [BINDING, 1]}, "function.json: each of the bindings must be an object."),
        ({"bindings": [BINDING], "scriptFile": "a" * 5000}, 'function.json: "scriptFile" is aaa'),
        (
            {"bindings": [BINDING], "scriptFile": "no.py"},
            'function.json: "scriptFile" is no.py, which does not exist. Correct',
        ),
    ],
)
def test_a_file_that_can_not_be_used_is_named(content: Any, error: str, tmp_path: Path) -> None:
    write(tmp_path, "f", content)
    write(tmp_path, "good", {"bindings": [BINDING]})
    broken, good = function_folders(tmp_path)
    assert broken.error is not None
    assert broken.error.startswith(error)
    assert good.error is None
