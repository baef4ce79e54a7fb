"""The rules for function apps: what they find in bindings and files, and what they accept."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp_host.app_rules.model import read_app
from funcmcp_host.app_rules.table import RULES, breaches_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

BUNDLE = {"id": "Microsoft.Azure.Functions.ExtensionBundle", "version": "[4.36.0, 5.0.0)"}
PROPERTY = {"propertyName": "a", "propertyType": "string", "description": "d", "isRequired": True}
TOOL = {"type": "mcpToolTrigger", "name": "context", "toolName": "t", "description": "d", "toolProperties": "[]"}
PROMPT = {"type": "mcpPromptTrigger", "name": "context", "promptName": "p"}
RESOURCE = {"type": "McpResourceTrigger", "name": "context", "resourceName": "b"}
HTTP = {"type": "httpTrigger", "name": "req", "authLevel": "ANONYMOUS", "methods": ["POST"]}


def found(
    folder: Path, *bindings: Mapping[str, Any], host: Mapping[str, Any] | None = None, signs_in: bool | None = None
) -> list[tuple[str, str]]:
    """Return the rules that an app with one function breaks, each with its subject."""
    content = {"version": "2.0", "extensionBundle": BUNDLE, **(host or {})}
    (folder / "host.json").write_text(json.dumps(content))
    app = read_app(folder, {"f": [json.dumps(binding) for binding in bindings]}, signs_in=signs_in)
    return [(breach.rule.name, breach.subject) for breach in breaches_of(app)]


def nested(depth: int) -> str:
    """Return the JSON of objects in objects."""
    return '{"a": ' * (depth - 1) + "{}" + "}" * (depth - 1)


def of_properties(*items: Any) -> dict[str, Any]:
    return {**TOOL, "toolProperties": json.dumps(items)}


@pytest.mark.parametrize(
    "binding",
    [
        TOOL,
        of_properties(PROPERTY, {**PROPERTY, "isArray": True, "enumValues": ["a"]}),
        of_properties({name.upper(): value for name, value in PROPERTY.items()}),
        {**TOOL, "description": None, "metadata": '{"a": 1}', "DATATYPE": "string"},
        {**TOOL, "useWorkerInputSchema": True, "inputSchema": '{"type": "object"}'},
        {**TOOL, "useWorkerInputSchema": "true", "inputSchema": "{}", "toolProperties": '[{"propertyType": 1}]'},
        {**TOOL, "useResultSchema": True, "outputSchema": '{"type": "object"}'},
        {**TOOL, "resultSchema": "{}", "inputSchema": ""},
        {**TOOL, "useWorkerInputSchema": True, "inputSchema": '{"type": "object"}', "toolProperties": ""},
        of_properties({**PROPERTY, "enumValues": None}),
        {**TOOL, "metadata": nested(32)},
        PROMPT,
        {**PROMPT, "promptArguments": '[{"name": "a", "title": "A", "description": null, "required": true}]'},
        {**RESOURCE, "uri": "a://{b}"},
        {**RESOURCE, "uri": "a://{b-c}/{d*}/{+e}"},
        {**RESOURCE, "uri": "http://{host}/a"},
        {**RESOURCE, "uri": "ui://"},
        {**RESOURCE, "uri": "file:///a"},
        {**PROMPT, "promptArguments": '[{"name": "a", "required": null}]'},
        {"type": "timerTrigger", "name": "timer", "dataType": "binary", "metadata": {}},
    ],
)
def test_bindings_as_azure_reads_them_break_no_rule(binding: dict[str, Any], tmp_path: Path) -> None:
    assert found(tmp_path, binding) == []


@pytest.mark.parametrize(
    ("bindings", "rules"),
    [
        ([{**TOOL, "type": "mcpTool"}], ["binding-kind"]),
        ([{"type": "mcpResourceTrigger", "name": "c"}], ["required-members"]),
        ([TOOL, {"type": "mcpToolProperty", "name": "a", "propertyName": "a"}], ["required-members"]),
        ([PROMPT, {"type": "mcpPromptArgument", "name": "a", "argumentName": "a"}], ["required-members"]),
        ([{**PROMPT, "promptArguments": [{"name": "a"}], "icons": [], "metadata": {}}], ["json-texts"] * 3),
        ([{**TOOL, "outputSchema": {"type": "object"}, "useResultSchema": True}], ["json-texts"]),
        ([{**TOOL, "useWorkerInputSchema": True, "inputSchema": {"type": "object"}}], ["json-texts"]),
        ([of_properties({**PROPERTY, "enumValues": ["a", None]})], ["enum-values"]),
        ([of_properties({**PROPERTY, "enumValues": "a,b"})], ["enum-values"]),
        ([of_properties({**PROPERTY, "description": 1, "propertyType": ["string"]})], ["item-texts"] * 2),
        ([{**PROMPT, "promptArguments": '[{"name": "a", "title": 1, "required": true}]'}], ["item-texts"]),
        ([{**TOOL, "toolProperties": ""}], ["empty-texts"]),
        ([{**RESOURCE, "uri": "a://{1a}/{b c}"}], ["uri-variables"]),
        ([{**RESOURCE, "uri": "a://{b-c}/{B_c}"}], ["uri-variables"]),
        ([{**RESOURCE, "uri": "http://"}], ["uri-hosts"]),
        ([{**RESOURCE, "uri": "HTTPS:///a"}], ["uri-hosts"]),
        ([{**RESOURCE, "uri": "ws://#a"}], ["uri-hosts"]),
        ([{**RESOURCE, "uri": "ftp://?a={b}"}], ["uri-hosts"]),
        ([{**TOOL, "metadata": nested(33)}], ["metadata-depth"]),
        ([of_properties({**PROPERTY, "isRequired": None})], ["null-flags"]),
        ([of_properties({**PROPERTY, "ISARRAY": None, "isRequired": None})], ["null-flags"] * 2),
        ([of_properties({**PROPERTY, "propertyType": "float"})], ["property-types"]),
        ([of_properties({**PROPERTY, "propertyType": "String"})], ["property-types"]),
        ([of_properties({name: PROPERTY[name] for name in ("propertyName", "isRequired")})], ["property-types"]),
        ([of_properties({**PROPERTY, "properties": {}})], ["item-members"]),
        ([{**PROMPT, "promptArguments": '[{"name": "a", "is_required": true}]'}], ["item-members"]),
        ([{**TOOL, "dataType": "Stream"}], ["binary-contexts"]),
        ([{**TOOL, "outputSchema": '{"type": "object"}', "useResultSchema": False}], ["output-schema-results"]),
        (
            [
                of_properties({**PROPERTY, "propertyName": "city"}),
                {"type": "queue", "name": "q", "direction": "out", "queueName": "{mcptoolargs.City}"},
            ],
            ["path-expressions"],
        ),
    ],
)
def test_bindings_that_azure_reads_in_another_way(
    bindings: list[dict[str, Any]], rules: list[str], tmp_path: Path
) -> None:
    assert found(tmp_path, *bindings) == [(rule, "f") for rule in rules]


@pytest.mark.parametrize("text", ["{", '"a"', "[1]", "null"])
def test_lists_that_can_not_be_read_are_left_to_the_host(text: str, tmp_path: Path) -> None:
    assert found(tmp_path, {**TOOL, "toolProperties": text}) == []


@pytest.mark.parametrize(
    ("names", "is_equal"),
    [
        (["a", "A"], True),
        (["a", "b"], False),
    ],
)
def test_names_of_tools_are_compared_without_case(names: list[str], is_equal: bool, tmp_path: Path) -> None:
    (tmp_path / "host.json").write_text(json.dumps({"version": "2.0", "extensionBundle": BUNDLE}))
    app = read_app(tmp_path, {f"f{name}": [{**TOOL, "toolName": name}] for name in names})
    assert bool(breaches_of(app)) is is_equal


def test_uris_are_compared_without_names_of_variables(tmp_path: Path) -> None:
    (tmp_path / "host.json").write_text(json.dumps({"version": "2.0", "extensionBundle": BUNDLE}))
    resource = {"type": "mcpResourceTrigger", "name": "c", "resourceName": "r"}
    app = read_app(tmp_path, {"f": [{**resource, "uri": "a://{b}"}], "g": [{**resource, "uri": "A://{c}"}]})
    [breach] = breaches_of(app)
    assert (breach.rule.name, breach.subject) == ("equal-names", "a://{_}")


@pytest.mark.parametrize("methods", [["POST"], ["get", "post"], [], None])
def test_an_anonymous_endpoint_is_open_unless_the_server_asks_callers_to_sign_in(
    methods: list[str] | None, tmp_path: Path
) -> None:
    trigger = {**HTTP, "methods": methods}
    assert found(tmp_path, trigger) == [("endpoint-access", "access")]
    assert found(tmp_path, trigger, signs_in=False) == [("endpoint-access", "access")]
    assert found(tmp_path, trigger, signs_in=True) == []
    assert found(tmp_path, {**trigger, "authLevel": "function"}) == []
    assert found(tmp_path, {**trigger, "methods": ["GET"]}) == []


@pytest.mark.parametrize(
    ("count", "names"),
    [
        (2, "f0, f1"),
        (10, "f0, f1, f2, f3, f4, f5, f6, f7, f8, f9"),
        (12, "f0, f1, f10, f11, f2, f3, f4, f5, f6, f7 and 2 more"),
    ],
)
def test_open_endpoints_are_in_one_line(count: int, names: str, tmp_path: Path) -> None:
    (tmp_path / "host.json").write_text(json.dumps({"version": "2.0", "extensionBundle": BUNDLE}))
    [breach] = breaches_of(read_app(tmp_path, {f"f{number}": [HTTP] for number in range(count)}))
    assert breach.subject == "access"
    assert breach.text.startswith(f"needs no key ({names}: anonymous). ")


def test_http_triggers_beside_mcp_triggers_may_be_anonymous(tmp_path: Path) -> None:
    (tmp_path / "host.json").write_text(json.dumps({"version": "2.0", "extensionBundle": BUNDLE}))
    assert breaches_of(read_app(tmp_path, {"f": [HTTP], "g": [TOOL]})) == []


def test_app_settings_replace_members_of_host_json(tmp_path: Path) -> None:
    host = {
        "customHandler": {"description": {"defaultExecutablePath": "sh"}},
        "configurationProfile": "MCP-CUSTOM-HANDLER",
    }
    values = {
        "FUNCTIONS_WORKER_RUNTIME": "custom",
        "AzureWebJobsFeatureFlags": "EnableMcpCustomHandlerPreview",
        "AzureFunctionsJobHost__customHandler__http__defaultAuthorizationLevel": "anonymous",
    }
    (tmp_path / "local.settings.json").write_text(json.dumps({"values": values}))
    assert found(tmp_path, host=host) == [("handler-access", "access")]


def test_infrastructure_is_found_beside_azure_yaml(tmp_path: Path) -> None:
    source = tmp_path / "src"
    (tmp_path / "infra").mkdir()
    source.mkdir()
    (tmp_path / "infra" / "main.tf").write_text("# PYTHONPATH\nFLAGS = 'EnableMcpCustomHandlerPreview'")
    handler = {
        "description": {"defaultExecutablePath": "python3"},
        "http": {"routes": [{"route": "{*route}"}]},
        "enableProxyingHttpRequest": True,
    }
    host = {"customHandler": handler}
    assert found(source, host=host) == []  # the folder above is not of the app
    (tmp_path / "azure.yaml").write_text("services:\n  api:\n    project: ./src\n")
    assert ("python-path", "PYTHONPATH") in found(source, host=host)


@pytest.mark.parametrize("files", [{"host.json": "{"}, {"host.json": "[]", "local.settings.json": "{"}, {}])
def test_files_that_can_not_be_read_break_no_rule(files: dict[str, str], tmp_path: Path) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert breaches_of(read_app(tmp_path, {})) == []


def test_each_rule_has_a_name_a_source_and_short_cells() -> None:
    assert len({rule.name for rule in RULES}) == len(RULES)
    for rule in RULES:
        assert rule.source.startswith("https://")
        assert all(0 < len(text) < 200 for text in (rule.condition, rule.effect, rule.advice))


def test_bindings_and_files_that_are_built_to_take_long_are_read(tmp_path: Path) -> None:
    (tmp_path / "infra").mkdir()
    (tmp_path / "infra" / "main.bicep").write_text("  // comment\n" + "\n" * 300_000 + "param a string\n")
    deep = "[" * 100_000
    bundle = {**BUNDLE, "version": f"[{'9' * 5000}.0.0, 5.0.0)"}
    assert found(tmp_path, TOOL, host={"extensionBundle": bundle}) == []
    assert "json-texts" not in {rule for rule, _ in found(tmp_path, {**TOOL, "toolProperties": deep, "metadata": deep})}
    assert read_app(tmp_path, {"f": [deep]}).functions[0].bindings == []
    assert read_app(tmp_path, {}).infrastructure.strip() == "param a string"
