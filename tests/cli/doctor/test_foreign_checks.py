"""Projects that were made without funcmcp: what their files say, and what they leave open."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp_cli.doctor.examine import examine
from funcmcp_cli.failure import Failure
from funcmcp_host.app_folders import deployed_apps
from funcmcp_host.other_languages import language_of
from tests.cli.forking import funcmcp

if TYPE_CHECKING:
    from pathlib import Path

_SLOW = pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")

PROFILE: dict[str, Any] = {
    "version": "2.0",
    "configurationProfile": "mcp-custom-handler",
    "customHandler": {"description": {"defaultExecutablePath": "sh", "arguments": ["server.js"]}, "port": "3000"},
}
PROXYING: dict[str, Any] = {
    "version": "2.0",
    "extensions": {"http": {"routePrefix": ""}},
    "customHandler": {
        "description": {"defaultExecutablePath": "sh", "arguments": ["server.js"]},
        "enableProxyingHttpRequest": True,
    },
}
TRIGGER = {
    "bindings": [
        {"type": "httpTrigger", "direction": "in", "name": "req", "authLevel": "function"},
        {"type": "http", "direction": "out", "name": "res"},
    ]
}
BUNDLE = {"id": "Microsoft.Azure.Functions.ExtensionBundle", "version": "[4.36.0, 5.0.0)"}
PYTHON_APP = """
import json
import azure.functions as func

app = func.FunctionApp()


@app.mcp_tool_trigger(arg_name="context", tool_name="hello", description="Hello", tool_properties="[]")
def hello(context) -> str:
    return "Hello"
"""
FLAG = {"AzureWebJobsFeatureFlags": "EnableMcpCustomHandlerPreview"}
SETTINGS: dict[str, Any] = {"IsEncrypted": False, "Values": {"FUNCTIONS_WORKER_RUNTIME": "python"}}


def write(folder: Path, files: dict[str, Any]) -> Path:
    for name, content in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return folder


def handler(host: dict[str, Any], **files: Any) -> dict[str, Any]:
    settings = {"Values": {**FLAG, "FUNCTIONS_WORKER_RUNTIME": "custom"}}
    own = {"host.json": host, "server.js": "", "local.settings.json": settings, ".gitignore": "local.settings.json"}
    return {**own, **{name.replace("__", "/"): content for name, content in files.items()}}


def plain(**files: Any) -> dict[str, Any]:
    return {
        "host.json": {"version": "2.0", "extensionBundle": BUNDLE},
        "function_app.py": PYTHON_APP,
        "requirements.txt": "azure-functions",
        "local.settings.json": SETTINGS,
        ".gitignore": "local.settings.json",
        ".funcignore": "local.settings.json\n.venv",
        **{name.replace("__", "."): content for name, content in files.items()},
    }


def rows(folder: Path) -> list[tuple[str, str, str]]:
    return [(finding.level, finding.subject, finding.text) for finding in examine(folder)]


def faults(folder: Path) -> list[str]:
    return [f"{level} {subject}: {text}" for level, subject, text in rows(folder) if level != "ok"]


NOT_EXAMINED = "warning the code: is not examined: doctor only reads the files of an app without funcmcp."


def without_case(value: Any) -> Any:
    if isinstance(value, dict):
        return {name.upper(): without_case(member) for name, member in value.items()}
    return value


@pytest.mark.parametrize(
    "files",
    [
        handler(PROFILE),
        handler(without_case(PROFILE)),
        handler(PROXYING, **{"mcp__function.json": TRIGGER}),
        handler(
            {**PROXYING, "customHandler": {**PROXYING["customHandler"], "enableForwardingHttpRequest": "true"}},
            **{"mcp__function.json": TRIGGER},
        ),
    ],
)
def test_a_custom_handler_in_another_language_needs_no_files_of_python(files: dict[str, Any], tmp_path: Path) -> None:
    folder = write(tmp_path, files)
    assert faults(folder) == [NOT_EXAMINED]
    assert ("ok", "access", "needs a key of the app.") in rows(folder)


@pytest.mark.parametrize(
    ("files", "fault"),
    [
        (
            handler(
                {
                    **PROFILE,
                    "customHandler": {**PROFILE["customHandler"], "http": {"DefaultAuthorizationLevel": "anonymous"}},
                }
            ),
            (
                "warning access: needs no key (host.json: {*route}: anonymous). Neither a sign-in of the server nor "
                "App Service authentication is examined. Set the level function if callers do not sign in."
            ),
        ),
        (
            handler(
                PROXYING,
                **{
                    "mcp__function.json": {
                        "bindings": [{**TRIGGER["bindings"][0], "authLevel": "anonymous"}, TRIGGER["bindings"][1]]
                    }
                },
            ),
            (
                "warning access: needs no key (mcp/function.json: anonymous). Neither a sign-in of the server nor "
                "App Service authentication is examined. Set the level function if callers do not sign in."
            ),
        ),
        (
            handler(
                {
                    **PROFILE,
                    "customHandler": {"description": {"defaultExecutablePath": "sh", "arguments": ["dist/a.js"]}},
                }
            ),
            "error customHandler: starts sh with dist/a.js, which does not exist. Run the build of the app first.",
        ),
        (
            handler({**PROFILE, "customHandler": {"description": {"arguments": ["server.js"]}}}),
            (
                "error customHandler: has no description.defaultExecutablePath, so the host starts nothing. "
                "Name the program."
            ),
        ),
        (
            handler({**PROFILE, "customHandler": {"description": {"defaultExecutablePath": "bin/gone"}}}),
            (
                "warning customHandler: starts bin/gone, which is neither a file of the app nor on the PATH here. "
                "Build the program, or correct defaultExecutablePath in host.json."
            ),
        ),
        (
            handler({**PROXYING, "customHandler": {"description": {"defaultExecutablePath": "sh"}}}),
            (
                'error customHandler: does not receive the requests. Add "configurationProfile": "mcp-custom-handler" '
                "to host.json, or enableProxyingHttpRequest and either http.routes or a function.json with an HTTP "
                "trigger."
            ),
        ),
        (
            handler(
                {
                    **PROXYING,
                    "customHandler": {
                        "description": {"defaultExecutablePath": "sh"},
                        "enableHttpProxyingRequest": True,
                    },
                }
            ),
            (
                'error customHandler: does not receive the requests. Add "configurationProfile": "mcp-custom-handler" '
                "to host.json, or enableProxyingHttpRequest and either http.routes or a function.json with an HTTP "
                "trigger. The Functions host does not know enableHttpProxyingRequest."
            ),
        ),
        (
            handler(PROXYING),
            (
                "error function.json: is missing: without an HTTP trigger in one, no request reaches the handler. "
                'Add one, or "configurationProfile": "mcp-custom-handler" in host.json.'
            ),
        ),
        (
            handler(
                PROFILE, **{"local.settings.json": {"Values": {**FLAG, "FUNCTIONS_WORKER_RUNTIME": "dotnet-isolated"}}}
            ),
            (
                'error FUNCTIONS_WORKER_RUNTIME: is "dotnet-isolated" in local.settings.json. '
                'Write "custom" or "node" or "python".'
            ),
        ),
        (
            handler(PROFILE, **{".gitignore": ""}),
            "warning .gitignore: does not exclude local.settings.json. Add that line.",
        ),
    ],
)
def test_what_is_wrong_with_a_custom_handler(files: dict[str, Any], fault: str, tmp_path: Path) -> None:
    folder = write(tmp_path, files)
    assert sorted(faults(folder)) == sorted([fault, NOT_EXAMINED])


def test_the_host_and_doctor_name_the_older_model_of_node(tmp_path: Path) -> None:
    files = {"package.json": {"main": "dist/index.js"}, "f/function.json": {"bindings": []}}
    folder = write(tmp_path, {**files, "host.json": {"version": "2.0"}})
    assert any("is in the older programming model" in fault for fault in faults(folder))
    shown = funcmcp("host", str(folder))
    assert "is in the older programming model. funcmcp host runs it with --worker COMMAND only." in shown.stderr


def test_the_project_of_installed_extensions_is_not_an_app_in_dotnet(tmp_path: Path) -> None:
    settings = {"Values": {"FUNCTIONS_WORKER_RUNTIME": "node"}}
    files = {"extensions.csproj": "", "package.json": {"main": "index.js"}, "index.js": ""}
    folder = write(tmp_path, {**files, "host.json": {"version": "2.0"}, "local.settings.json": settings})
    assert language_of(folder) is None
    assert not [fault for fault in faults(folder) if "FUNCTIONS_WORKER_RUNTIME" in fault or ".NET" in fault]


BUILD_DOTNET = "This is its source. Run dotnet build, and name the folder of its output, such as bin/Debug/net10.0."
BUILD_JAVA = "This is its source. Run mvn package, and name the folder of its output below target/azure-functions."


@pytest.mark.parametrize(
    ("file", "language", "runtime", "advice"),
    [
        ("a.csproj", ".NET", "dotnet-isolated", BUILD_DOTNET),
        ("pom.xml", "Java", "java", BUILD_JAVA),
        ("profile.ps1", "PowerShell", "powershell", 'funcmcp host runs it with --worker "dotnet WORKERS/powershell/'),
        ("Cargo.toml", "Rust", "custom", "Such an app is a custom handler: write customHandler in host.json, with"),
    ],
)
def test_an_app_in_another_language_is_not_examined(
    file: str, language: str, runtime: str, advice: str, tmp_path: Path
) -> None:
    settings = {"Values": {"FUNCTIONS_WORKER_RUNTIME": runtime}}
    files = {file: "", "host.json": {"version": "2.0"}, "local.settings.json": settings}
    folder = write(tmp_path, {**files, ".gitignore": "local.settings.json"})
    (fault,) = faults(folder)
    prefix = f"warning the code: is not examined: the app is in {language}, and doctor only reads its files. "
    assert fault.startswith(prefix + advice)
    served = funcmcp("host", str(write(tmp_path / "bare", {"host.json": {"version": "2.0"}, file: ""})))
    assert f"is in {language}. {advice}" in served.stderr
    anonymous = {"extensions": {"MCP": {"system": {"WebhookAuthorizationLevel": "Anonymous"}}}}
    write(tmp_path, {"host.json": {"version": "2.0", **anonymous}})
    assert faults(folder)[0].startswith("warning webhookAuthorizationLevel: is Anonymous")


def built(**extensions: str) -> dict[str, Any]:
    """Return files as the build of a .NET app makes them."""
    binding = {"name": "context", "direction": "In", "type": "mcpToolTrigger", "toolName": "say", "properties": {}}
    return {
        "host.json": {"version": "2.0"},
        "functions.metadata": json.dumps([{"name": "Say", "scriptFile": "App.dll", "bindings": [binding]}]),
        "local.settings.json": {"Values": {"FUNCTIONS_WORKER_RUNTIME": "dotnet-isolated"}},
        "extensions.json": {"extensions": [extensions]},
    }


def test_the_build_of_a_dotnet_app_declares_its_features(tmp_path: Path) -> None:
    folder = write(tmp_path, built(typeName="A, Microsoft.Azure.Functions.Extensions.Mcp, Version=1.0.0.0"))
    (fault,) = faults(folder)
    assert '--worker "dotnet App.dll" only.' in fault
    assert ("ok", "the build", "declares 1 tool (say).") in rows(folder)
    assert ("ok", "extensions.json", "has Azure's MCP extension.") in rows(folder)
    shown = funcmcp("inspect", str(folder))
    assert shown.returncode == 1
    assert shown.stderr.strip().endswith("Its build declares 1 tool (say).")
    assert len(shown.stderr.splitlines()) == 1
    write(tmp_path, built(typeName="B, Other"))
    text = "Add the package Microsoft.Azure.Functions.Worker.Extensions.Mcp, and build the app again."
    assert f"error extensions.json: has no MCP extension. {text}" in faults(folder)
    write(tmp_path, {"functions.metadata": "[]"})
    assert (
        "warning the build: declares no MCP trigger, so clients find no tools. Add one, and build the app again."
        in faults(folder)
    )
    write(tmp_path, {"functions.metadata": "{"})
    text = "is missing or not valid, so its functions are unknown. Build the app again."
    assert f"warning functions.metadata: {text}" in faults(folder)


def test_the_build_of_a_java_app_is_judged_by_the_rules(tmp_path: Path) -> None:
    trigger = {"type": "mcpToolTrigger", "direction": "in", "name": "say", "toolName": "say", "description": "Say"}
    function = {"scriptFile": "../app.jar", "entryPoint": "com.function.Say.say", "bindings": [trigger]}
    files = {"host.json": {"version": "2.0"}, "app.jar": "", "Say/function.json": function}
    settings = {"Values": {"FUNCTIONS_WORKER_RUNTIME": "java"}}
    folder = write(tmp_path, {**files, "local.settings.json": settings})
    assert [fault[:30] for fault in faults(folder)] == [
        "error extensionBundle: is miss",
        "warning the code: is not exami",
    ]
    assert ("ok", "the build", "declares 1 tool (say).") in rows(folder)


def test_an_app_of_the_older_model_is_not_examined(tmp_path: Path) -> None:
    files = {"host.json": {"version": "2.0"}, "hello/function.json": TRIGGER, "hello/__init__.py": ""}
    folder = write(tmp_path, {**files, "local.settings.json": SETTINGS, ".gitignore": "local.settings.json"})
    text = "is not examined: the app is in the older programming model, and doctor only reads its files. "
    assert faults(folder) == [f"warning the code: {text}funcmcp host runs it with --worker COMMAND only."]


def test_a_folder_without_the_code_of_an_app_needs_no_funcmcp(tmp_path: Path) -> None:
    files = {"host.json": {"version": "2.0"}, "requirements.txt": "fastmcp", "local.settings.json": SETTINGS}
    folder = write(tmp_path, {**files, ".gitignore": "local.settings.json"})
    write(tmp_path, {".funcignore": "local.settings.json"})
    text = f"can't be served. {folder} has no function_app.py. Name the folder that has it."
    assert faults(folder) == [f"error the app: {text}"]
    write(tmp_path, {"requirements.txt": "funcmcp-slim[azure]>=0.1"})
    assert "error the code: cannot be imported: function_app.py is missing." in faults(folder)


@_SLOW
def test_an_app_under_another_name_is_started(tmp_path: Path) -> None:
    values = {**SETTINGS["Values"], "PYTHON_SCRIPT_FILE_NAME": "main.py"}
    files = plain(**{"local.settings.json": {"Values": values}, "main.py": PYTHON_APP})
    del files["function_app.py"]
    folder = write(tmp_path, files)
    assert rows(folder)[-1][:2] == ("ok", "the app")
    assert faults(folder) == []


def test_an_imported_file_of_a_plain_app_is_not_excluded(tmp_path: Path) -> None:
    code = PYTHON_APP + "\n\ndef later():\n    import shop.orders\n"
    files = plain(
        **{"function_app.py": code, "shop/orders.py": "", ".funcignore": "local.settings.json\n.venv\nshop\n"}
    )
    text = "excludes shop/orders.py, which the app needs. Remove the line 'shop'."
    assert faults(write(tmp_path, files)) == [f"error .funcignore: {text}"]


@_SLOW
def test_a_plain_app_without_faults(tmp_path: Path) -> None:
    folder = write(tmp_path, plain())
    assert faults(folder) == []
    assert rows(folder)[-1][:2] == ("ok", "the app")


@pytest.mark.parametrize(
    ("files", "fault"),
    [
        (plain(**{"host.json": {"version": "2.0"}}), "error extensionBundle: is missing in host.json, and"),
        (
            plain(**{"host.json": {"version": "2.0", "extensionBundle": {**BUNDLE, "version": "[2.*, 3.0.0)"}}}),
            "error extensionBundle: has a range without the MCP extension 1.5.",
        ),
        (
            plain(**{"host.json": {"version": "2.0", "extensionBundle": {**BUNDLE, "version": "[4.*, 5.0.0)"}}}),
            "warning extensionBundle: has a range that includes bundles before the extension.",
        ),
        (
            plain(**{"host.json": {"version": "2.0", "extensionBundle": {**BUNDLE, "id": "Microsoft.Other"}}}),
            "error extensionBundle: Microsoft.Other has no MCP extension.",
        ),
        (
            plain(
                **{
                    "host.json": {
                        "version": "2.0",
                        "extensionBundle": BUNDLE,
                        "extensions": {"mcp": {"system": {"webhookAuthorizationLevel": "Anonymous"}}},
                    }
                }
            ),
            "warning webhookAuthorizationLevel: is Anonymous, so any caller may use the triggers,",
        ),
        (plain(**{"requirements.txt": "requests"}), "error requirements.txt: has no azure-functions. Add it."),
        (plain(**{".funcignore": "local.settings.json"}), "warning .funcignore: does not exclude .venv."),
        (plain(**{".gitignore": ""}), "warning .gitignore: does not exclude local.settings.json."),
        (
            plain(
                **{
                    "function_app.py": PYTHON_APP.replace("mcp_tool_trigger", "timer_trigger").replace(
                        'tool_name="hello", description="Hello", tool_properties="[]"', 'schedule="0 * * * * *"'
                    )
                }
            ),
            "error the app: has no MCP triggers that can be served, so clients would find nothing. Register one in",
        ),
        (
            plain(**{"function_app.py": PYTHON_APP + "\n\n@app.route(route='mcp')\ndef mcp(req): return 'x'\n"}),
            "",
        ),
    ],
)
def test_what_is_wrong_with_a_plain_app(files: dict[str, Any], fault: str, tmp_path: Path) -> None:
    found = [text for text in faults(write(tmp_path, files)) if " is left out." not in text]
    assert [text[: len(fault)] for text in found] == ([fault] if fault else [])


def test_an_app_with_http_triggers_alone_is_not_called_empty(tmp_path: Path) -> None:
    route = "@app.route(route='mcp')\ndef mcp(req): return 'x'\n"
    code = f"import azure.functions as func\napp = func.FunctionApp()\n\n{route}"
    folder = write(tmp_path, plain(**{"function_app.py": code}))
    (fault,) = faults(folder)
    assert fault.startswith("warning the app: has no MCP triggers, but 1 HTTP trigger")
    assert fault.endswith("doctor does not check whether they serve MCP.")


@_SLOW
def test_the_service_of_azure_yaml_is_examined(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "azure.yaml": "services:\n  api:\n    project: ./src\n    host: function\n",
            ".git/HEAD": "",
            ".gitignore": "local.settings.json",
        },
    )
    write(tmp_path / "src", {name: text for name, text in plain().items() if name != ".gitignore"})
    result = funcmcp("doctor", str(tmp_path))
    assert result.returncode == 0, result.stdout
    assert "azure.yaml: deploys src, which is examined." in result.stdout
    assert "0 errors, 0 warnings" in result.stdout


LONG_NAME = "a" * 5000


@pytest.mark.parametrize("name", ["requirements.txt", "function_app.py", ".funcignore", ".gitignore", "azure.yaml"])
def test_a_file_that_is_too_large_is_named_and_not_read(tmp_path: Path, name: str) -> None:
    files = {} if name == "azure.yaml" else plain()
    write(tmp_path, files)
    with (tmp_path / name).open("wb") as stream:
        stream.truncate(64 * 1024 * 1024 + 1)
    with pytest.raises(Failure, match=f"{name} cannot be read: larger than 64 MiB"):
        examine(tmp_path)


@pytest.mark.parametrize("bindings", [[1, "x", None, []], [], {}])
def test_a_function_json_that_can_not_be_used_is_an_error(tmp_path: Path, bindings: Any) -> None:
    files = handler(PROXYING, **{"good__function.json": TRIGGER, "bad__function.json": {"bindings": bindings}})
    findings = {finding.subject: finding for finding in examine(write(tmp_path, files))}
    assert findings["bad/function.json"].level == "error"
    assert findings["bad/function.json"].text.startswith("can't be used. function.json")


@pytest.mark.parametrize("member", ["defaultExecutablePath", "defaultWorkerPath"])
def test_a_program_whose_name_is_too_long_is_missing(tmp_path: Path, member: str) -> None:
    description = {"defaultExecutablePath": "sh", member: f"{LONG_NAME}.py"}
    findings = examine(write(tmp_path, handler({**PROFILE, "customHandler": {"description": description}})))
    assert any(finding.subject == "customHandler" and LONG_NAME in finding.text for finding in findings)


def test_an_included_file_whose_name_is_too_long_is_missing(tmp_path: Path) -> None:
    requirements = f"-r {LONG_NAME}.txt\nazure-functions\n"
    findings = examine(write(tmp_path, plain(**{"requirements.txt": requirements})))
    assert [finding.level for finding in findings if finding.subject == "requirements.txt"] == ["ok"]


def test_a_service_whose_project_has_a_name_that_is_too_long_is_none(tmp_path: Path) -> None:
    write(tmp_path, {"azure.yaml": f"services:\n  api:\n    project: {LONG_NAME}\n"})
    assert deployed_apps(tmp_path) == []


def test_a_million_empty_lines_in_azure_yaml_are_read_at_once(tmp_path: Path) -> None:
    project = "services:\n  api:\n    project: ./api\n"
    write(tmp_path, {"azure.yaml": "\n" * 1_000_000 + project, "api/host.json": {"version": "2.0"}})
    assert deployed_apps(tmp_path) == [tmp_path / "api"]
