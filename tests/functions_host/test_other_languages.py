"""Apps in languages that the host does not run by itself: what their files say of them."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp_host.folder import FolderError, read_folder
from funcmcp_host.other_languages import advice_for, declared_features, is_built, language_of, outputs_of, refusal_for

if TYPE_CHECKING:
    from pathlib import Path

TOOL = {"type": "mcpToolTrigger", "name": "context", "direction": "In", "toolName": "add"}
WORKER = {"language": "dotnet-isolated", "defaultExecutablePath": "dotnet", "defaultWorkerPath": "App.dll"}


def write(folder: Path, files: dict[str, Any]) -> Path:
    for name, content in {"host.json": {}, **files}.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return folder


def described(script: str, *bindings: dict[str, Any]) -> dict[str, Any]:
    return {"scriptFile": script, "bindings": list(bindings or [TOOL])}


@pytest.mark.parametrize(
    ("files", "language"),
    [
        ({"functions.metadata": "[]"}, ".NET"),
        ({"worker.config.json": {"description": WORKER}}, ".NET"),
        ({"worker.config.json": {"description": {"language": "python"}}}, None),
        ({"worker.config.json": "{"}, None),
        ({"worker.config.json": []}, None),
        ({"App.csproj": '<PackageReference Include="Microsoft.Azure.Functions.Worker" />'}, ".NET"),
        ({"App.csproj": '<PackageReference Include="Microsoft.NET.Sdk.Functions" />'}, "the in-process model of .NET"),
        ({"extensions.csproj": ""}, None),
        ({"f/function.json": described("../bin/App.dll")}, "the in-process model of .NET"),
        ({"f/function.json": described("../app-1.0.jar")}, "Java"),
        ({"f/function.json": described("run.ps1")}, "PowerShell"),
        ({"f/function.json": described("__init__.py")}, "the older programming model of Python"),
        ({"f/function.json": described("..\\dist\\f\\index.js")}, "the older programming model of Node"),
        ({"f/function.json": {"bindings": []}}, "the older programming model"),
        ({"f/function.json": "["}, "the older programming model"),
        ({"go.mod": ""}, "Go"),
        ({"function_app.py": "", "package.json": "{}"}, None),
    ],
)
def test_the_language_of_an_app(files: dict[str, Any], language: str | None, tmp_path: Path) -> None:
    assert language_of(write(tmp_path, files)) == language


@pytest.mark.parametrize(
    ("description", "command"),
    [
        (WORKER, "dotnet App.dll"),
        ({**WORKER, "defaultExecutablePath": "{WorkerRoot}App"}, "App App.dll"),
        ({"language": "dotnet-isolated"}, "dotnet APP.dll"),
        ({**WORKER, "defaultExecutablePath": 5, "defaultWorkerPath": ["x"]}, "dotnet APP.dll"),
        ({**WORKER, "defaultWorkerPath": "\x1bApp.dll"}, "dotnet \\x1bApp.dll"),
    ],
)
def test_the_command_of_a_dotnet_app_is_that_of_its_worker_config(
    description: dict[str, Any], command: str, tmp_path: Path
) -> None:
    write(tmp_path, {"worker.config.json": {"description": description}})
    assert advice_for(tmp_path, ".NET").startswith(f'funcmcp host runs it with --worker "{command}" only.')


def test_without_a_worker_config_the_command_names_the_file_of_the_functions(tmp_path: Path) -> None:
    write(tmp_path, {"functions.metadata": [{"bindings": []}, described("Shop.dll")]})
    assert '--worker "dotnet Shop.dll"' in advice_for(tmp_path, ".NET")


def test_a_program_that_is_not_on_the_path_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {"f/function.json": described("../app.jar")})
    programs = tmp_path / "programs"
    programs.mkdir()
    monkeypatch.setenv("PATH", str(programs))
    assert advice_for(tmp_path, "Java").endswith("java is not on the PATH here.")
    java = programs / "java"
    java.write_text("")
    java.chmod(0o755)
    assert "PATH" not in advice_for(tmp_path, "Java")


def test_a_build_declares_features(tmp_path: Path) -> None:
    resource = {"type": "mcpResourceTrigger", "uri": "file://a"}
    prompt = {"type": "McpPromptTrigger", "PROMPTNAME": "ask\nü"}
    functions = [described("A.dll", TOOL, {"type": "mcpToolProperty"}), described("A.dll", resource), {"bindings": 1}]
    write(tmp_path, {"functions.metadata": [*functions, 5]})
    assert is_built(tmp_path)
    assert declared_features(tmp_path) == "1 tool (add) and 1 resource (file://a)"
    write(tmp_path, {"functions.metadata": [*functions, described("A.dll", prompt, TOOL)]})
    assert declared_features(tmp_path) == "2 tools (add, add), 1 resource (file://a) and 1 prompt (ask\\n\\xfc)"
    assert refusal_for(tmp_path, ".NET").endswith(f"Its build declares {declared_features(tmp_path)}.")
    write(tmp_path, {"functions.metadata": [described("A.dll", *([TOOL] * 22))]})
    assert declared_features(tmp_path).endswith(", add and 2 more)")
    write(tmp_path, {"functions.metadata": "{"})
    assert declared_features(tmp_path) == ""
    assert "Its build" not in refusal_for(tmp_path, ".NET")


def test_a_java_app_is_built_where_its_function_json_files_are(tmp_path: Path) -> None:
    write(tmp_path / "output", {"f/function.json": described("../app.jar")})
    assert is_built(tmp_path / "output")
    source = write(tmp_path / "source", {"pom.xml": "", "f/function.json": described("../app.jar")})
    assert not is_built(source)
    assert "Run mvn package" in advice_for(source, "Java")
    write(source, {"target/azure-functions/shop/host.json": {}})
    assert advice_for(source, "Java").endswith(
        "Name the folder with the output of its build: target/azure-functions/shop."
    )


def test_the_newest_build_is_named_first(tmp_path: Path) -> None:
    write(tmp_path, {"bin/Debug/net8.0/functions.metadata": "[]", "bin/output/functions.metadata": "[]"})
    os.utime(tmp_path / "bin/output/functions.metadata", (1, 1))
    assert outputs_of(tmp_path, ".NET") == ["bin/Debug/net8.0", "bin/output"]
    assert outputs_of(tmp_path, "Go") == []


@pytest.mark.parametrize(
    ("runtime", "text"),
    [
        ("dotnet", "is in the in-process model of .NET. Only Microsoft's Functions host runs such code."),
        ("Dotnet-Isolated", "is in .NET. This is its source. Run dotnet build"),
        ("java", "is in Java. This is its source. Run mvn package"),
    ],
)
def test_the_runtime_names_the_language_where_no_file_does(runtime: str, text: str, tmp_path: Path) -> None:
    with pytest.raises(FolderError, match="The app in ") as raised:
        read_folder(write(tmp_path, {}), {"FUNCTIONS_WORKER_RUNTIME": runtime})
    assert text in str(raised.value)
