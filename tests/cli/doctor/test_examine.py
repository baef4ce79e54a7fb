"""``funcmcp doctor``: what it says of good and of bad folders."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp_cli.doctor import project as projects
from funcmcp_cli.doctor.examine import examine
from funcmcp_cli.failure import Failure
from funcmcp_cli.new import create
from tests.cli.processes import funcmcp

if TYPE_CHECKING:
    from collections.abc import Callable

    from funcmcp_cli.new import Hosting

    Break = Callable[[Path], object]

_SLOW = pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")

BUNDLE = "Microsoft.Azure.Functions.ExtensionBundle"
PREVIEW = f"{BUNDLE}.Preview"
MAIN = 'if __name__ == "__main__":'
TOOLS = """
import azure.functions as func

app = func.FunctionApp()
"""
OWN_TRIGGERS = {
    "no description": """
@app.mcp_tool_trigger(arg_name="context", tool_name="say")
def say(context: str) -> str:
    return context
""",
    "float": """
@app.mcp_tool()
@app.mcp_tool_property(arg_name="size", property_type=func.McpPropertyType.FLOAT, description="d")
def grow(size: float) -> str:
    '''Grow.'''
    return str(size)
""",
    "no JSON": """
@app.generic_trigger(arg_name="context", type="mcpToolTrigger", toolName="say", description="d", toolProperties="[")
def say(context: str) -> str:
    return context
""",
    "template": """
@app.generic_trigger(arg_name="context", type="mcpResourceTemplateTrigger", uri="a://{b}", resourceName="b")
def read(context: str) -> str:
    return context
""",
    "twice": """
@app.mcp_tool_trigger(arg_name="context", tool_name="say", description="d")
def one(context: str) -> str:
    return context

@app.mcp_tool_trigger(arg_name="context", tool_name="Say", description="d")
def two(context: str) -> str:
    return context
""",
    "prompt": """
@app.mcp_prompt_trigger(arg_name="context", prompt_name="review")
def review(context: str) -> str:
    return "Review it."
""",
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    parent = Path(tmp_path_factory.mktemp("made"))
    hostings: tuple[Hosting, ...] = ("http", "triggers", "self-hosted")
    for hosting in hostings:
        create(hosting, parent, hosting)
    return parent


def write(name: str, text: str) -> Break:
    return lambda folder: (folder / name).write_text(text, encoding="utf-8")


def remove(name: str) -> Break:
    return lambda folder: (folder / name).unlink()


def change(name: str, old: str, new: str) -> Break:
    def run(folder: Path) -> None:
        text = (folder / name).read_text(encoding="utf-8")
        assert old in text
        (folder / name).write_text(text.replace(old, new), encoding="utf-8")

    return run


def put(name: str, value: Any, *keys: str) -> Break:
    """Set a member of a JSON file, at a path of keys."""

    def run(folder: Path) -> None:
        document = json.loads((folder / name).read_text(encoding="utf-8"))
        place = document
        for key in keys[:-1]:
            place = place.setdefault(key, {})
        if value is None:
            del place[keys[-1]]
        else:
            place[keys[-1]] = value
        (folder / name).write_text(json.dumps(document), encoding="utf-8")

    return run


def setting(name: str, value: str | None) -> Break:
    return put("local.settings.json", value, "Values", name)


def bundle(version: str, name: str = BUNDLE) -> Break:
    return put("host.json", {"id": name, "version": version}, "extensionBundle")


def add(name: str, lines: str) -> Break:
    def run(folder: Path) -> None:
        with (folder / name).open("a", encoding="utf-8") as file:
            file.write(f"{lines}\n")

    return run


def cut(name: str, start: str, replacement: str = "") -> Break:
    """Replace the end of a file."""

    def run(folder: Path) -> None:
        head, separator, _ = (folder / name).read_text(encoding="utf-8").partition(start)
        assert separator
        (folder / name).write_text(head + replacement, encoding="utf-8")

    return run


def as_program(folder: Path) -> None:
    """Start the server with a program instead of as a script."""
    cut("server.py", MAIN)(folder)
    put("host.json", "sh", "customHandler", "description", "defaultExecutablePath")(folder)
    put("host.json", ["run", "server.py"], "customHandler", "description", "arguments")(folder)


def faults_in(folder: Path) -> set[tuple[str, str]]:
    return {(finding.level, finding.subject) for finding in examine(folder) if finding.level != "ok"}


@pytest.mark.parametrize(
    ("hosting", "spoil", "level", "subject", "text"),
    [
        ("http", remove("host.json"), "error", "host.json", "is missing"),
        (
            "http",
            write("host.json", "{"),
            "error",
            "host.json",
            "cannot be read: line 1, column 2: the text ends too early",
        ),
        ("http", write("host.json", "[]"), "error", "host.json", "it is not a JSON object"),
        ("http", setting("A=B", "x"), "error", "local.settings.json", "'A=B', which cannot be an environment variable"),
        ("http", setting("A", "\0"), "error", "local.settings.json", "'A', which cannot be an environment variable"),
        ("http", put("host.json", "1.0", "version"), "error", "host.json", '"version": "2.0"'),
        ("triggers", put("host.json", None, "extensionBundle"), "error", "extensionBundle", "is missing in host.json"),
        (
            "http",
            write("host.json", "[" * 100_000),
            "error",
            "host.json",
            "cannot be read: line 1, column 202: the values are nested too deeply",
        ),
        ("triggers", bundle("[4.36.0, 5.0.0)", "Contoso.Bundle"), "error", "extensionBundle", "no MCP extension"),
        ("triggers", bundle("[4.0.0, 4.42.0)", PREVIEW), "error", "extensionBundle", "has a range without"),
        ("triggers", bundle("[4.0.0, 5.0.0)", PREVIEW), "warning", "extensionBundle", '.Preview", "version": "[4.42.0'),
        (
            "triggers",
            bundle("[4.0.0, 5.0.0)", f"{BUNDLE}.Experimental"),
            "warning",
            "extensionBundle",
            "Experimental may have an MCP extension before 1.5",
        ),
        ("triggers", bundle("[3.*, 4.0.0)"), "error", "extensionBundle", "has a range without the MCP extension 1.5"),
        ("triggers", bundle("[4.0.0, 4.36.0)"), "error", "extensionBundle", "has a range without"),
        ("triggers", bundle("4.36.0"), "error", "extensionBundle", "has a version that is not a range"),
        ("triggers", bundle("[4.*, 5.0.0)"), "warning", "extensionBundle", "includes bundles before the extension"),
        ("http", remove("requirements.txt"), "error", "requirements.txt", "is missing"),
        ("http", write("requirements.txt", "azure-functions\n"), "error", "requirements.txt", "has no funcmcp"),
        ("http", write("requirements.txt", "funcmcp>=0.1\n"), "error", "requirements.txt", "Write funcmcp-slim[azure]"),
        ("http", write("requirements.txt", "funcmcp-slim>=0.1\n"), "error", "requirements.txt", "slim[azure]"),
        ("http", write("requirements.txt", "funcmcp[azure]\n"), "warning", "requirements.txt", "any version"),
        ("self-hosted", write("requirements.txt", "funcmcp-slim>=0.1"), "error", "requirements.txt", "slim[server]"),
        (
            "self-hosted",
            write("requirements.txt", "mcp"),
            "error",
            "requirements.txt",
            "no funcmcp. Add funcmcp-slim[server]",
        ),
        (
            "self-hosted",
            remove("requirements.txt"),
            "error",
            "requirements.txt",
            "it. Write funcmcp-slim[server] there",
        ),
        (
            "http",
            write("requirements.txt", "funcmcp>=0.1\nAzure_Functions==1.26.0\n"),
            "error",
            "requirements.txt",
            "has azure-functions ==1.26.0, but Python 3.13 on Azure needs 2.x",
        ),
        (
            "http",
            write("requirements.txt", "funcmcp[azure]>=0.1\nazure-functions>=1.26,<2  # old\n"),
            "error",
            "requirements.txt",
            "on Azure needs 2.x",
        ),
        ("http", change("infra/main.bicep", "'3.13'", "'3.10'"), "error", "Python", "3.10 is too old"),
        (
            "http",
            change("infra/main.bicep", "'3.13'", "'3.14'"),
            "warning",
            "Python",
            "may not be available on your plan",
        ),
        ("http", remove("local.settings.json"), "warning", "local.settings.json", "is missing"),
        ("http", write("local.settings.json", "{"), "error", "local.settings.json", "cannot be read"),
        ("http", setting("FUNCTIONS_WORKER_RUNTIME", "node"), "error", "FUNCTIONS_WORKER_RUNTIME", '"python"'),
        ("http", setting("FUNCTIONS_WORKER_RUNTIME", None), "error", "FUNCTIONS_WORKER_RUNTIME", '"python"'),
        ("http", setting("FUNCMCP_ALLOWED_HOSTS", "a.example,*"), "warning", "FUNCMCP_ALLOWED_HOSTS", "every Host"),
        ("http", write(".gitignore", "__pycache__/\n"), "warning", ".gitignore", "local.settings.json"),
        ("http", remove(".funcignore"), "warning", ".funcignore", "local.settings.json and .venv"),
        (
            "http",
            add(".funcignore", "*.py"),
            "error",
            ".funcignore",
            "excludes function_app.py, server.py, sign_in.py, which",
        ),
        ("http", add(".funcignore", "/sign_in.*"), "error", ".funcignore", "excludes sign_in.py"),
        ("http", add(".funcignore", "*.json\n!host.json\nrequirements*"), "error", ".funcignore", "'requirements*'"),
        ("self-hosted", add(".funcignore", "server.py"), "error", ".funcignore", "excludes server.py"),
        ("http", remove("azure.yaml"), "warning", "azure.yaml", "is missing"),
        ("http", change("azure.yaml", "host: function", "host: containerapp"), "error", "azure.yaml", "'containerapp'"),
        ("http", change("azure.yaml", "    host: function\n", ""), "error", "azure.yaml", "has no host"),
        (
            "self-hosted",
            change("server.py", "    mcp.run()", "    pass"),
            "error",
            "server.py",
            "never runs the server",
        ),
        ("self-hosted", cut("server.py", MAIN), "error", "server.py", "never runs the server"),
        ("http", remove("function_app.py"), "error", "the code", "function_app.py is missing"),
        (
            "http",
            write("function_app.py", "import os\n\nprint('no JSON')\nraise ValueError('no database')\n"),
            "error",
            "the code",
            "function_app.py, line 4: ValueError: no database",
        ),
        ("http", write("function_app.py", "import os\n\nos._exit(3)\n"), "error", "the code", "its process ended"),
        ("http", write("function_app.py", "import os\n\nos._exit(0)\n"), "error", "the code", "its process ended"),
        ("http", write("function_app.py", "from server import mcp\n"), "error", "the code", "has no FunctionApp"),
        ("http", write("function_app.py", TOOLS), "error", "the code", "has no MCP server in its app"),
        (
            "http",
            write(
                "function_app.py", TOOLS + 2 * "@app.route(route='x')\ndef same(req: func.HttpRequest) -> str: ...\n"
            ),
            "error",
            "the code",
            "does not have a unique function name",
        ),
        ("self-hosted", write("server.py", "x = 1\n"), "error", "the code", "has no MCPServer"),
        (
            "self-hosted",
            put("host.json", None, "configurationProfile"),
            "error",
            "customHandler",
            "mcp-custom-handler",
        ),
        (
            "self-hosted",
            put("host.json", "api", "extensions", "http", "routePrefix"),
            "error",
            "routePrefix",
            'Set it to ""',
        ),
        (
            "http",
            put("host.json", "api", "extensions", "http", "routePrefix"),
            "warning",
            "routePrefix",
            "path /api/mcp on Azure, but it is /mcp with `funcmcp run`",
        ),
        ("http", put("host.json", None, "extensions"), "warning", "routePrefix", "/api/mcp"),
        (
            "http",
            change("function_app.py", "http_app(mcp", 'http_app(mcp, auth_level="anonymous"'),
            "warning",
            "access",
            "needs no key (mcp: anonymous). The server has no sign-in (auth=) either, so any caller may use it.",
        ),
        (
            "triggers",
            put("host.json", "Anonymous", "extensions", "mcp", "system", "webhookAuthorizationLevel"),
            "warning",
            "webhookAuthorizationLevel",
            "any caller may use the triggers",
        ),
        (
            "self-hosted",
            put("host.json", "anonymous", "customHandler", "http", "DefaultAuthorizationLevel"),
            "warning",
            "access",
            "needs no key (host.json: {*route}: anonymous). The server has no sign-in (auth=) either",
        ),
        (
            "http",
            change("server.py", "auth=sign_in()", 'sessions="memory"'),
            "warning",
            "sessions",
            "in one instance's memory",
        ),
        (
            "triggers",
            write("function_app.py", TOOLS + OWN_TRIGGERS["no description"]),
            "warning",
            "say",
            "Azure does not load it: mcpToolTrigger has no description. Write description.",
        ),
        (
            "triggers",
            write("function_app.py", TOOLS + OWN_TRIGGERS["float"]),
            "warning",
            "grow",
            'Azure lists the property size with the type "float", which JSON Schema does not have. Write "number".',
        ),
        (
            "triggers",
            write("function_app.py", TOOLS + OWN_TRIGGERS["no JSON"]),
            "error",
            "say",
            "is left out. toolProperties is not valid JSON",
        ),
        (
            "triggers",
            write("function_app.py", TOOLS + OWN_TRIGGERS["template"]),
            "error",
            "read",
            "mcpResourceTemplateTrigger, which Azure's MCP extension does not have",
        ),
        (
            "triggers",
            write("function_app.py", TOOLS + OWN_TRIGGERS["twice"]),
            "error",
            "say",
            "is the name of 2 features (one, two): Azure ignores its case",
        ),
    ],
)
def test_what_is_wrong_is_found_and_nothing_else(
    made: Path, tmp_path: Path, *, hosting: str, spoil: Break, level: str, subject: str, text: str
) -> None:
    folder = tmp_path / hosting
    shutil.copytree(made / hosting, folder)
    spoil(folder)
    faults = [finding for finding in examine(folder) if finding.level != "ok"]
    assert [(fault.level, fault.subject) for fault in faults] == [(level, subject)], faults
    assert text in faults[0].text


@pytest.mark.parametrize(
    ("hosting", "alter"),
    [
        ("triggers", bundle("[4.42.0, 5.0.0)", PREVIEW)),
        ("triggers", bundle("[4.42.0, 4.42.0]", PREVIEW.lower())),
        ("http", change("host.json", '"version"', '// of the host,\n/* "version": "1.0", */ "version"')),
        ("http", change("host.json", '"version": "2.0",', '"version": "2.0", "aggregator": {"batchSize": 1,},')),
        ("http", change("local.settings.json", '"Values"', '/* secrets: none */ "Values"')),
        ("http", add(".funcignore", "*.py\n!*.py\n*.md")),
        ("http", add(".funcignore", "server.py/\n# function_app.py")),
        ("http", change("azure.yaml", "host: function", "host: 'function'  # Flex Consumption")),
        ("http", lambda folder: (folder / "azure.yaml").rename(folder.parent / "azure.yaml")),
        ("self-hosted", cut("server.py", MAIN, "import asyncio\n\nif False:\n    asyncio.run(mcp())\n")),
        ("self-hosted", change("server.py", "    mcp.run()", "    raise SystemExit(mcp.run())")),
        ("self-hosted", as_program),
    ],
)
def test_what_the_host_takes_is_not_a_fault(made: Path, tmp_path: Path, hosting: str, alter: Break) -> None:
    folder = tmp_path / hosting
    shutil.copytree(made / hosting, folder)
    alter(folder)
    assert faults_in(folder) == set()


UNACCEPTED = """

@mcp.tool("numbers.sum", input_schema={"type": "object"})
def sum_of_numbers() -> str:
    \"\"\"Sum.\"\"\"
    return ""
"""


def test_features_that_some_clients_do_not_accept_are_warnings(made: Path, tmp_path: Path) -> None:
    folder = tmp_path / "http"
    shutil.copytree(made / "http", folder)
    add("server.py", UNACCEPTED)(folder)
    warnings = [finding for finding in examine(folder) if finding.level == "warning"]
    assert [warning.subject for warning in warnings] == ["numbers.sum", "numbers.sum"]
    assert [warning.text for warning in warnings] == [
        (
            "is not accepted by OpenAI API, Claude API, Amazon Bedrock and 5 more. "
            "A tool's name has only letters, digits, _ and -. Write _ instead of other characters."
        ),
        (
            "is not accepted by OpenAI API, Azure OpenAI, Codex and 2 more. "
            'The input schema has properties, {} for a tool without arguments. Add "properties": {}.'
        ),
    ]


def test_features_that_all_clients_accept_are_ok(made: Path) -> None:
    [finding] = [finding for finding in examine(made / "http") if finding.subject == "clients"]
    assert (finding.level, finding.text) == ("ok", "lose no tool, resource or prompt of Http.")


@_SLOW
def test_the_help_says_that_the_code_is_run() -> None:
    assert "runs the project's code" in " ".join(funcmcp("doctor", "--help").stdout.split())


def test_prompts_need_no_newer_bundle_than_tools(made: Path, tmp_path: Path) -> None:
    folder = tmp_path / "triggers"
    shutil.copytree(made / "triggers", folder)
    write("function_app.py", TOOLS + OWN_TRIGGERS["prompt"])(folder)
    assert faults_in(folder) == set()


@_SLOW
def test_a_key_is_not_asked_for_where_clients_sign_in(made: Path, tmp_path: Path) -> None:
    folder = tmp_path / "http"
    shutil.copytree(made / "http", folder)
    setting("ENTRA_CLIENT_ID", "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee")(folder)
    setting("ENTRA_TENANT_ID", "11111111-2222-3333-4444-555555555555")(folder)
    assert faults_in(folder) == set()
    change("function_app.py", "http_app(mcp", 'http_app(mcp, auth_level="function"')(folder)
    assert faults_in(folder) == {("error", "auth_level")}


@_SLOW
def test_each_server_of_an_app_is_guarded_in_its_own_way(made: Path, tmp_path: Path) -> None:
    folder = tmp_path / "http"
    shutil.copytree(made / "http", folder)
    setting("ENTRA_CLIENT_ID", "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee")(folder)
    setting("ENTRA_TENANT_ID", "11111111-2222-3333-4444-555555555555")(folder)
    inner = "inner = MCPServer('Inner', http=funcmcp.HTTPOptions(path='/inner'))\n"
    inner += "funcmcp.azure.http_app(inner, route='inner', app=app)"
    change("function_app.py", "http_app(mcp)\n", f"http_app(mcp)\n{inner}\n")(folder)
    change("function_app.py", "import funcmcp.azure\n", "import funcmcp.azure\nfrom funcmcp import MCPServer\n")(folder)
    assert faults_in(folder) == set()
    change("function_app.py", "route='inner'", "route='inner', auth_level='anonymous'")(folder)
    assert faults_in(folder) == {("warning", "access")}


def test_keys_that_are_none_stop_the_server_and_are_never_shown(made: Path, tmp_path: Path) -> None:
    folder = tmp_path / "http"
    shutil.copytree(made / "http", folder)
    setting("FUNCMCP_KEYS", "too-short-a-key")(folder)
    assert faults_in(folder) == {("error", "FUNCMCP_KEYS"), ("error", "the code")}
    assert not [finding for finding in examine(folder) if "too-short" in finding.text]


@_SLOW
def test_an_older_python_on_azure_takes_the_older_library(made: Path, tmp_path: Path) -> None:
    folder = tmp_path / "http"
    shutil.copytree(made / "http", folder)
    change("infra/main.bicep", "'3.13'", "'3.12'")(folder)
    write("requirements.txt", "funcmcp>=0.1\nazure-functions>=1.26,<2\n")(folder)
    assert faults_in(folder) == set()
    write("requirements.txt", "funcmcp>=0.1\nazure-functions>=2.3\n")(folder)
    assert faults_in(folder) == {("error", "requirements.txt")}


@_SLOW
def test_pyproject_toml_does_where_there_is_no_requirements_txt(made: Path, tmp_path: Path) -> None:
    folder = tmp_path / "http"
    shutil.copytree(made / "http", folder)
    remove("requirements.txt")(folder)
    write("pyproject.toml", '[project]\nname = "x"\ndependencies = ["funcmcp[azure]>=0.1"]\n')(folder)
    assert faults_in(folder) == set()
    write("pyproject.toml", "[project]\nname = 'x'\n")(folder)
    assert faults_in(folder) == {("error", "pyproject.toml")}
    write("pyproject.toml", "[project\n")(folder)
    with pytest.raises(Failure, match=r"pyproject\.toml cannot be read"):
        examine(folder)


def test_requirements_in_other_files_count_and_are_read_once(made: Path, tmp_path: Path) -> None:
    folder = tmp_path / "http"
    shutil.copytree(made / "http", folder)
    write("requirements.txt", "-r missing.txt\n--requirement=more.txt  # ours\n")(folder)
    write("more.txt", "-r requirements.txt\nfuncmcp[azure,auth]>=0.1\n")(folder)
    assert faults_in(folder) == set()


@pytest.mark.parametrize("encoding", ["utf-16", "latin-1"])
def test_requirements_may_be_written_as_powershell_or_an_old_editor_does(
    made: Path, tmp_path: Path, encoding: str
) -> None:
    folder = tmp_path / "http"
    shutil.copytree(made / "http", folder)
    (folder / "requirements.txt").write_bytes("# für uns\nfuncmcp[azure,auth]>=0.1\n".encode(encoding))
    assert faults_in(folder) == set()


@_SLOW
def test_without_infrastructure_it_is_this_python_that_counts(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "http"
    shutil.copytree(made / "http", folder)
    shutil.rmtree(folder / "infra")
    assert faults_in(folder) <= {("warning", "Python")}
    monkeypatch.setattr(sys, "version_info", (3, 10, 1))
    assert faults_in(folder) == {("error", "Python")}


def test_a_custom_handler_may_be_set_up_without_the_profile(made: Path, tmp_path: Path) -> None:
    folder = tmp_path / "self-hosted"
    shutil.copytree(made / "self-hosted", folder)
    put("host.json", None, "configurationProfile")(folder)
    put("host.json", True, "customHandler", "enableProxyingHttpRequest")(folder)
    put("host.json", [{"route": "{*route}"}], "customHandler", "http", "routes")(folder)
    put("local.settings.json", "custom", "Values", "FUNCTIONS_WORKER_RUNTIME")(folder)
    assert faults_in(folder) == set()


@_SLOW
def test_code_that_takes_too_long_to_import_is_told(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "http"
    shutil.copytree(made / "http", folder)
    write("function_app.py", "import threading\n\nthreading.Event().wait()\n")(folder)
    monkeypatch.setattr(projects, "_PROBE_SECONDS", 2)
    (fault,) = (finding for finding in examine(folder) if finding.level == "error")
    assert fault.text == "cannot be imported: importing function_app.py takes more than 2 seconds."


def test_a_folder_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(Failure, match="does not exist"):
        examine(tmp_path / "nowhere")


@_SLOW
def test_the_command_prints_a_line_for_each_finding(made: Path) -> None:
    done = funcmcp("doctor", "http", folder=made)
    lines = done.stdout.splitlines()
    assert (done.returncode, done.stderr) == (0, "")
    assert lines[0] == "ok       host.json: is valid JSON."
    assert lines[-1] == "0 errors, 0 warnings"


@_SLOW
def test_an_error_is_exit_code_1_and_a_warning_is_not(made: Path, tmp_path: Path) -> None:
    folder = tmp_path / "http"
    shutil.copytree(made / "http", folder)
    remove(".funcignore")(folder)
    warned = funcmcp("doctor", folder=folder)
    assert (warned.returncode, warned.stdout.splitlines()[-1]) == (0, "0 errors, 1 warning")
    remove("host.json")(folder)
    done = funcmcp("doctor", folder=folder)
    assert done.returncode == 1
    assert done.stdout.startswith("error    host.json: is missing.")


@_SLOW
def test_json_has_level_subject_and_text_of_each_finding(made: Path) -> None:
    findings = json.loads(funcmcp("doctor", "--json", folder=made / "triggers").stdout)
    assert {finding["level"] for finding in findings} == {"ok"}
    assert {"level": "ok", "subject": "extensionBundle", "text": "has Azure's MCP extension."} in findings


ASGI = """
import azure.functions as func

from funcmcp.compat import FastMCP

mcp = FastMCP("Shop")


@mcp.tool
def add(a: int, b: int) -> int:
    \"\"\"Add two numbers.\"\"\"
    return a + b


app = func.AsgiFunctionApp(
    app=mcp.http_app(path="/mcp", stateless_http=True, json_response=True), http_auth_level=func.AuthLevel.FUNCTION
)
"""


def test_an_asgi_app_with_a_server_is_right(made: Path, tmp_path: Path) -> None:
    folder = tmp_path / "http"
    shutil.copytree(made / "http", folder)
    write("function_app.py", ASGI)(folder)
    of_the_tool = {("warning", "add")}  # of clients
    assert faults_in(folder) <= of_the_tool
    change("function_app.py", "AuthLevel.FUNCTION", "AuthLevel.ANONYMOUS")(folder)
    [text] = [finding.text for finding in examine(folder) if finding.subject == "access"]
    assert "any caller may use it" in text
    put("host.json", None, "extensions")(folder)
    assert ("error", "routePrefix") in faults_in(folder)


@_SLOW
def test_the_root_of_a_repository_names_its_apps(made: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        shutil.copytree(made / "http", tmp_path / name)
    [finding] = examine(tmp_path)
    assert (finding.level, finding.subject) == ("error", "host.json")
    assert finding.text == "is not in this folder. Its function apps are in a, b. Name the folder of the app."
    (tmp_path / "azure.yaml").write_text("services:\n  a:\n    project: a\n  b:\n    project: ./b\n")
    findings = [finding.text for finding in examine(tmp_path) if finding.subject == "azure.yaml"]
    assert findings[::2] == ["deploys a, which is examined.", "deploys b, which is examined."]
