"""Each rule for function apps: `funcmcp doctor` finds it with and without funcmcp in the app, and so does the host."""

from __future__ import annotations

import asyncio
import json
import os
import re
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp_cli.doctor.examine import examine
from funcmcp_host.app_rules.handler_rules import invoked_functions
from funcmcp_host.app_rules.model import read_app
from funcmcp_host.app_rules.table import RULES, breaches_of
from funcmcp_host.custom_handler import CustomHandlerHost
from funcmcp_host.folder import FolderError
from funcmcp_host.handler_program import read_program
from funcmcp_host.served import FunctionsHost, HostSettings
from tests.functions_host.apps import write_node_app
from tests.nodejs import node

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Files = dict[str, Any]
    Judge = Callable[[Path, Files], list[str]]

BUNDLE = {"id": "Microsoft.Azure.Functions.ExtensionBundle", "version": "[4.36.0, 5.0.0)"}
FLAG = "EnableMcpCustomHandlerPreview"
TOOL = {"type": "mcpToolTrigger", "description": "d"}
PROPERTY = {"propertyName": "a", "propertyType": "string", "description": "d", "isRequired": True}


def tool(name: str, *items: Any, **members: Any) -> dict[str, Any]:
    return {**TOOL, "toolName": name, "toolProperties": json.dumps(items), **members}


TRIGGERS: dict[str, tuple[str, list[dict[str, Any]], str]] = {
    "binding-kind": (
        "kind",
        [{"type": "mcpResourceTemplateTrigger", "uri": "a://{b}", "resourceName": "b"}],
        "error kind: has the binding mcpResourceTemplateTrigger, which Azure's MCP extension does not have. Use",
    ),
    "required-members": (
        "bare",
        [{"type": "mcpToolTrigger", "toolName": "bare"}],
        "warning bare: Azure does not load it: mcpToolTrigger has no description. Write description.",
    ),
    "json-texts": (
        "decoded",
        [{**TOOL, "toolName": "decoded", "toolProperties": [PROPERTY], "metadata": {"a": 1}}],
        "warning decoded: Azure does not load it: toolProperties is a list. Write it as a text with the JSON in it.",
    ),
    "empty-texts": (
        "empty",
        [{**TOOL, "toolName": "empty", "toolProperties": " "}],
        'warning empty: Azure does not load it: toolProperties is an empty text. Write "[]", or leave it out.',
    ),
    "item-texts": (
        "texts",
        [tool("texts", {**PROPERTY, "propertyType": ["string", "null"]})],
        (
            'warning texts: Azure does not load it: propertyType of item 1 of toolProperties is ["string", "null"]. '
            "Write a text."
        ),
    ),
    "enum-values": (
        "choose",
        [tool("choose", {**PROPERTY, "enumValues": [1, 2]})],
        "warning choose: Azure does not load it: enumValues of a is [1, 2]. Write each value as a text.",
    ),
    "null-flags": (
        "null",
        [tool("null", {**PROPERTY, "isArray": None})],
        "warning null: Azure does not load it: isArray of item 1 of toolProperties is null. Write true or false, or",
    ),
    "property-types": (
        "typed",
        [tool("typed", {**PROPERTY, "propertyType": "string[]"})],
        (
            'warning typed: Azure lists the property a with the type "string[]", which JSON Schema does not have. '
            'Write "string" and "isArray": true.'
        ),
    ),
    "input-schema-flag": (
        "schema",
        [tool("schema", inputSchema='{"type": "object"}')],
        "warning schema: Azure ignores inputSchema, so that the tool has other arguments. Set useWorkerInputSchema",
    ),
    "item-members": (
        "members",
        [tool("members", {**PROPERTY, "is_array": True})],
        "warning members: Azure ignores is_array in item 1 of toolProperties. Write isArray.",
    ),
    "property-names": (
        "nameless",
        [tool("nameless", {"propertyType": "string", "description": "d"})],
        "warning nameless: Azure leaves out item 1 of toolProperties. Write its propertyName.",
    ),
    "uri-variables": (
        "uri",
        [{"type": "mcpResourceTrigger", "uri": "a://b{?q}", "resourceName": "b"}],
        "warning uri: Azure does not load it: a://b{?q} has the variable '?q'. Write a name of letters, digits and",
    ),
    "uri-hosts": (
        "hostless",
        [{"type": "mcpResourceTrigger", "uri": "http://", "resourceName": "hostless"}],
        "warning hostless: Azure does not load it: http:// has no host after http://. Write one, or use a scheme of",
    ),
    "metadata-depth": (
        "deep",
        [tool("deep", metadata='{"a": ' * 33 + "1" + "}" * 33)],
        "warning deep: Azure does not load it: metadata is nested more than 32 levels deep. Write fewer levels.",
    ),
    "equal-names": (
        "second",
        [tool("BARE")],
        "error bare: is the name of 2 features (bare, second): Azure ignores its case. Rename all but one.",
    ),
    "output-schema-results": (
        "result",
        [tool("result", outputSchema='{"type": "object"}')],
        "warning result: has an outputSchema, but without useResultSchema its results have no structured content",
    ),
    "binary-contexts": (
        "binary",
        [tool("binary", dataType="binary")],
        "warning binary: each call fails on Azure: dataType of its trigger is binary. Leave dataType out.",
    ),
    "path-expressions": (
        "file",
        [tool("file"), {"type": "blob", "name": "blob", "path": "notes/{name}.txt", "connection": "C"}],
        "warning file: in its other bindings, 'notes/{name}.txt' is the same in each call",
    ),
}
"""By rule: a function, its bindings, and what is found in it."""

SERVER = """
from funcmcp import MCPServer

mcp = MCPServer("Shop")

if __name__ == "__main__":
    mcp.run()
"""
ROUTE = """
@app.function_name("{name}")
@app.route("{route}", methods=["{method}"], auth_level="{level}")
def {name}(req: func.HttpRequest) -> str:
    return ""
"""
ENDPOINT = ROUTE.format(name="mcp", route="mcp", method="POST", level="{level}")
SIGN_IN = "".join(
    ROUTE.format(name=name, route=name, method=method, level=level)
    for name, method, level in (
        ("mcp", "POST", "function"),
        ("mcp_preflight", "OPTIONS", "anonymous"),
        ("mcp_metadata", "GET", "anonymous"),
    )
)
HTTP_TRIGGER = {"type": "httpTrigger", "direction": "in", "name": "req", "route": "{*route}"}
HTTP_OUTPUT = {"type": "http", "direction": "out", "name": "res"}
TRIGGER = {"bindings": [HTTP_TRIGGER, HTTP_OUTPUT]}


def code_of(functions: dict[str, list[dict[str, Any]]]) -> str:
    """Return the decorators of functions with these bindings, the trigger first."""
    lines = []
    for name, (trigger, *others) in functions.items():
        members = ", ".join(f"{key}={value!r}" for key, value in trigger.items())
        lines.append(f"\n@app.generic_trigger(arg_name='context', {members})")
        for other in others:
            members = ", ".join(f"{key}={value!r}" for key, value in other.items() if key != "name")
            lines.append(f"@app.generic_input_binding(arg_name={other['name']!r}, {members})")
        arguments = ", ".join(["context", *(str(other["name"]) for other in others)])
        lines.append(f"def {name}({arguments}):\n    return ''\n")
    return "\n".join(lines)


def function_app(functions: str = "", **files: Any) -> Files:
    return {
        "host.json": {"version": "2.0", "extensionBundle": BUNDLE},
        "function_app.py": f"import azure.functions as func\n\napp = func.FunctionApp()\n{functions}",
        "local.settings.json": {"Values": {"FUNCTIONS_WORKER_RUNTIME": "python"}},
        "requirements.txt": "azure-functions",
        **{name.replace("__", "."): content for name, content in files.items()},
    }


ONE_TOOL = code_of({"hello": [tool("hello")]})


def custom_handler(host: Files | None = None, *, path: str = "python", script: str = "server.py", **http: Any) -> Files:
    description = {"defaultExecutablePath": path, "arguments": [script]}
    return {
        "host.json": {
            "version": "2.0",
            "extensions": {"http": {"routePrefix": ""}},
            "customHandler": {"description": description, "http": http, **(host or {})},
        },
        "local.settings.json": {"Values": {"FUNCTIONS_WORKER_RUNTIME": "custom", "AzureWebJobsFeatureFlags": FLAG}},
        "server.py": "import http.server",
        "requirements.txt": "mcp",
    }


def with_profile(files: Files, profile: str = "mcp-custom-handler") -> Files:
    return {**files, "host.json": {**files["host.json"], "configurationProfile": profile}}


FORWARDING = {"enableForwardingHttpRequest": True}
BLOB = {"type": "blob", "name": "blob", "direction": "in", "path": "a/b"}
CASES: dict[str, tuple[Files, str]] = {
    "webhook-level": (
        function_app(
            ONE_TOOL,
            host__json={
                "version": "2.0",
                "extensionBundle": BUNDLE,
                "extensions": {"mcp": {"system": {"webhookAuthorizationLevel": "Anonymous"}}},
            },
        ),
        "warning webhookAuthorizationLevel: is Anonymous, so any caller may use the triggers, unless App Service",
    ),
    "handler-access": (
        custom_handler(FORWARDING)
        | {
            "mcp/function.json": {
                "bindings": [{**TRIGGER["bindings"][0], "authLevel": "anonymous"}, TRIGGER["bindings"][1]]
            }
        },
        "warning access: needs no key (mcp/function.json: anonymous). ",
    ),
    "endpoint-access": (
        function_app(ENDPOINT.format(level="anonymous")),
        "warning access: needs no key (mcp: anonymous). ",
    ),
    "sign-in-keys": (
        function_app(SIGN_IN),
        "error auth_level: of mcp requires a key that clients who sign in do not have. Omit auth_level.",
    ),
    "host-version": (
        function_app(ONE_TOOL, host__json={"extensionBundle": BUNDLE}),
        'error host.json: has no "version": "2.0", without which the Functions host stops at its start. Add it.',
    ),
    "worker-runtime": (
        function_app(ONE_TOOL, local__settings__json={"Values": {}}),
        'error FUNCTIONS_WORKER_RUNTIME: is missing in local.settings.json. Write "python".',
    ),
    "bundle": (
        function_app(ONE_TOOL, host__json={"version": "2.0"}),
        'error extensionBundle: is missing in host.json, and MCP triggers need it. Add "extensionBundle": {"id": ',
    ),
    "bundle-range": (
        function_app(ONE_TOOL, host__json={"version": "2.0", "extensionBundle": {**BUNDLE, "version": "[4.*, 5.0.0)"}}),
        "warning extensionBundle: has a range that includes bundles before the extension. Use ",
    ),
    "handler-program": (
        with_profile(custom_handler({"description": {}})),
        "error customHandler: has no description.defaultExecutablePath, so the host starts nothing.",
    ),
    "handler-files": (
        with_profile(custom_handler(script="dist/server.js")),
        "error customHandler: starts python with dist/server.js, which does not exist. Run the build of the app first.",
    ),
    "handler-path": (
        with_profile(custom_handler(path="bin/gone")),
        "warning customHandler: starts bin/gone, which is neither a file of the app nor on the PATH here.",
    ),
    "handler-forwarding": (
        custom_handler({"enableHttpProxyingRequest": True}),
        (
            'error customHandler: does not receive the requests. Add "configurationProfile": "mcp-custom-handler" to '
            "host.json, or enableProxyingHttpRequest and either http.routes or a function.json with an HTTP trigger. "
            "The Functions host does not know enableHttpProxyingRequest."
        ),
    ),
    "handler-sources": (
        with_profile(custom_handler()) | {"mcp/function.json": TRIGGER},
        "error mcp/function.json: can't be there: Azure's host accepts one source of routes, and those of the custom",
    ),
    "handler-bindings": (
        custom_handler(FORWARDING) | {"mcp/function.json": {"bindings": [HTTP_TRIGGER, HTTP_OUTPUT, BLOB]}},
        "warning mcp/function.json: gets invocations as JSON on Azure: only functions with an HTTP trigger and an http",
    ),
    "handler-triggers": (
        custom_handler(FORWARDING),
        "error function.json: is missing: without an HTTP trigger in one, no request reaches the handler.",
    ),
    "handler-routes": (
        custom_handler() | {"mcp/function.json": TRIGGER},
        "warning mcp/function.json: has a route for many paths, whose requests the program gets as JSON.",
    ),
    "handler-function-files": (
        custom_handler(FORWARDING) | {"mcp/function.json": {"bindings": []}},
        "error mcp/function.json: can't be used. function.json has no bindings.",
    ),
    "profile-names": (
        with_profile(custom_handler(), "mcp-handler"),
        (
            'error configurationProfile: is "mcp-handler", with which the host on Azure does not start. '
            'Write "mcp-custom-handler".'
        ),
    ),
    "feature-flags": (
        with_profile(custom_handler()) | {"infra/main.bicep": f"PYTHONPATH: 'x'\n// {FLAG}"},
        f'warning AzureWebJobsFeatureFlags: has no "{FLAG}" in the infrastructure (infra), which Azure needs',
    ),
    "python-path": (
        with_profile(custom_handler()) | {"infra/main.bicep": f"flags: '{FLAG}'"},
        "warning PYTHONPATH: is not set in the infrastructure (infra), so the program does not find its packages.",
    ),
}
"""By rule: the files of an app, and what is found in it."""


NODE_CODE = """
const { app } = require("@azure/functions");
const inputSchema = '{"type": "object", "properties": {"a": {"type": "integer"}}}';
const trigger = { type: "mcpToolTrigger", name: "context", description: "d", useWorkerInputSchema: true, inputSchema };
const handler = async () => "hello";
app.generic("envelope", { trigger: { ...trigger, toolName: "envelope" }, handler });
app.mcpTool("bare", {
    toolName: "bare", description: "d", useWorkerInputSchema: true, inputSchema, toolProperties: [], handler
});
app.generic("right", { trigger: { ...trigger, toolName: "right", useResultSchema: true }, handler });
app.mcpTool("hello", { toolName: "hello", description: "d", toolProperties: [], handler });
"""
NODE_FINDINGS = {
    "node-results": (
        "warning envelope: sends clients its results inside the JSON of an envelope: @azure/functions wraps them, "
        "and the trigger does not set useResultSchema. Set it."
    ),
    "node-options": (
        "warning bare: sets useWorkerInputSchema, which app.mcpTool of @azure/functions leaves out. "
        "Write app.generic with that option and useResultSchema."
    ),
}
"""By rule about Node apps, what is found in `NODE_CODE`."""


def write(folder: Path, files: Files) -> Path:
    for name, content in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return folder


def with_funcmcp(folder: Path, files: Files) -> list[str]:
    """Return what doctor finds in an app whose code and list of packages name funcmcp."""
    files = {**files, "requirements.txt": "funcmcp-slim[azure,server]>=0.1"}
    if "function_app.py" in files:
        files["function_app.py"] += "\nimport funcmcp\n"
    else:
        files["server.py"] = SERVER
    return [f"{finding.level} {finding.subject}: {finding.text}" for finding in examine(write(folder, files))]


def without_funcmcp(folder: Path, files: Files) -> list[str]:
    """Return what doctor finds in an app that was made without funcmcp."""
    return [f"{finding.level} {finding.subject}: {finding.text}" for finding in examine(write(folder, files))]


def in_the_host(folder: Path, files: Files) -> list[str]:
    """Return what the functions host finds at the start of an app, or why it does not start."""
    write(folder, files)
    if "customHandler" in files["host.json"]:
        try:
            app = read_app(folder, {})
            if invoked_functions(app):
                read_program(app, forwards=False)
                breaches = breaches_of(app)
            else:
                breaches = CustomHandlerHost(folder, dict(os.environ), HostSettings()).breaches
        except FolderError as error:
            subject, _, text = str(error).partition(" ")
            return [f"error {subject}: {text}"]
    else:
        breaches = asyncio.run(_started(FunctionsHost(folder, dict(os.environ), HostSettings(engine="library"))))
    return [f"{breach.rule.level} {breach.subject}: {breach.text}" for breach in breaches]


async def _started(host: FunctionsHost) -> Any:
    try:
        await host.start()
        return host.breaches
    finally:
        await host.aclose()


JUDGES: dict[str, Judge] = {"with": with_funcmcp, "without": without_funcmcp, "host": in_the_host}


@pytest.mark.parametrize("judge", JUDGES)
def test_each_rule_for_triggers_is_found_by_both_halves_of_doctor_and_by_the_host(judge: str, tmp_path: Path) -> None:
    functions = {name: bindings for name, bindings, _ in TRIGGERS.values()}
    lines = JUDGES[judge](tmp_path, function_app(code_of(functions)))
    missing = [text for _, _, text in TRIGGERS.values() if not any(line.startswith(text) for line in lines)]
    assert not missing, lines


@pytest.mark.parametrize("rule", CASES)
@pytest.mark.parametrize("judge", JUDGES)
def test_each_other_rule_is_found_by_both_halves_of_doctor_and_by_the_host(
    judge: str, rule: str, tmp_path: Path
) -> None:
    files, text = CASES[rule]
    lines = JUDGES[judge](tmp_path, files)
    assert [line for line in lines if line.startswith(text)], lines


_VERBS = "add|build|correct|keep|leave|name|omit|remove|rename|run|set|use|write"
DOING = re.compile(rf"[.,:] (?i:{_VERBS})\b")
"""A sentence that says what to do."""


@pytest.mark.parametrize("rule", CASES)
def test_each_finding_says_what_to_do(rule: str, tmp_path: Path) -> None:
    files, text = CASES[rule]
    (line,) = [line for line in without_funcmcp(tmp_path, files) if line.startswith(text)]
    assert DOING.search(line), line


def test_each_finding_about_triggers_says_what_to_do(tmp_path: Path) -> None:
    functions = {name: bindings for name, bindings, _ in TRIGGERS.values()}
    lines = without_funcmcp(tmp_path, function_app(code_of(functions)))
    lines = [line for line in lines if line.startswith(tuple(text for _, _, text in TRIGGERS.values()))]
    assert not [line for line in lines if not DOING.search(line)]


@pytest.mark.parametrize("judge", [without_funcmcp, in_the_host])
def test_the_rules_about_node_apps(judge: Judge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{node().parent}{os.pathsep}{os.environ['PATH']}")
    folder = write_node_app(tmp_path, {"index.js": NODE_CODE})
    lines = judge(folder, {"host.json": {"version": "2.0", "extensionBundle": BUNDLE}})
    of_functions = [line for line in lines if line.startswith(("warning ", "error ")) and ".json" not in line]
    about_files = ("warning .gitignore", "warning .funcignore", "warning local.")
    assert sorted(line for line in of_functions if not line.startswith(about_files)) == sorted(NODE_FINDINGS.values())


def test_no_rule_is_without_a_case() -> None:
    texts = {name: text for name, (_, _, text) in TRIGGERS.items()} | {name: text for name, (_, text) in CASES.items()}
    texts |= NODE_FINDINGS
    levels = {rule.name: rule.level for rule in RULES}
    assert levels.keys() == texts.keys()
    assert not [name for name, level in levels.items() if not texts[name].startswith(f"{level} ")]


@pytest.mark.parametrize("judge", JUDGES)
@pytest.mark.parametrize(
    "files",
    [
        function_app(ONE_TOOL),
        with_profile(custom_handler()),
        with_profile(custom_handler(), "MCP-Custom-Handler"),
        with_profile(custom_handler(), "web-app-custom-handler"),
        with_profile(custom_handler(FORWARDING), "") | {"mcp/function.json": TRIGGER},
        custom_handler(FORWARDING) | {"mcp/function.json": TRIGGER},
        custom_handler({"enableProxyingHttpRequest": "true"}, routes=[{"route": "{*route}"}]),
    ],
)
def test_nothing_is_found_where_nothing_is_wrong(judge: str, files: Files, tmp_path: Path) -> None:
    lines = JUDGES[judge](tmp_path, files)
    about_rules = (
        "customHandler",
        "configurationProfile",
        "access",
        "function.json",
        "mcp/",
        "extensionBundle",
        "hello",
    )
    faults = [line for line in lines if not line.startswith("ok ")]
    assert not [line for line in faults if line.split(" ", 1)[1].startswith((*about_rules, "hello"))], faults
    if judge != "host":
        assert "ok access: needs a key of the app." in lines
