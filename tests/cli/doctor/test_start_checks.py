"""``funcmcp doctor`` on function apps that were made without funcmcp: what `funcmcp host` would leave out, and why."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from funcmcp_cli.doctor.examine import examine
from funcmcp_cli.doctor.start_checks import is_plain_function_app
from tests.cli.forking import funcmcp
from tests.functions_host.apps import write_app, write_node_app
from tests.nodejs import node

if TYPE_CHECKING:
    from pathlib import Path

APP = '''
import azure.functions as func

app = func.FunctionApp()


@app.mcp_tool()
def hello() -> str:
    """Greets."""
    return "hello"


@app.mcp_tool()
@app.cosmos_db_input(arg_name="doc", database_name="d", container_name="c", connection="Cosmos")
def document(doc, name: str) -> str:
    """Needs a database."""
    return "never"


@app.mcp_tool()
@app.blob_input(arg_name="file", connection="Files", path="%BOX%/a")
def load(file: func.InputStream) -> str:
    """Needs a setting."""
    return "never"


@app.timer_trigger(arg_name="timer", schedule="0 * * * * *")
def tick(timer: func.TimerRequest) -> None:
    pass
'''
NODE_APP = """
const { app } = require("@azure/functions");
app.mcpTool("hi", { toolName: "hi", description: "Hi", toolProperties: [], handler: async () => "hi" });
"""


def rows(folder: Path) -> dict[str, tuple[str, str]]:
    return {finding.subject: (finding.level, finding.text) for finding in examine(folder)}


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
def test_what_is_left_out_is_named_with_its_reason(tmp_path: Path) -> None:
    result = funcmcp("doctor", str(write_app(tmp_path, APP)))
    assert result.returncode == 1
    by_subject = rows(tmp_path)
    tools = "Run it with Azure Functions Core Tools."
    advice = "Run it with Azure Functions Core Tools, or access the service in the function's own code."
    assert by_subject["document"] == (
        "error",
        "is listed, but each call answers with an error. Its input binding cosmosDB is not supported by funcmcp host. "
        + advice,
    )
    assert by_subject["load"] == (
        "error",
        (
            "is listed, but each call answers with an error. "
            "Its binding blob 'file': The app setting 'BOX' is not set. Put it into local.settings.json."
        ),
    )
    assert by_subject["tick"] == (
        "warning",
        f"is left out. Its trigger timerTrigger is not supported by funcmcp host. {tools}",
    )
    level, text = by_subject["the app"]
    assert level == "ok"
    assert text.startswith("is served by `funcmcp host` with 3 tools (Python ")
    for subject, (_, text) in by_subject.items():
        if subject != "the app":
            assert " ".join(text.split()[:6]) in " ".join(result.stdout.split())


def test_what_some_clients_do_not_accept_is_a_warning(tmp_path: Path) -> None:
    app = APP.replace('    """Greets."""\n', "")
    level, text = rows(write_app(tmp_path, app))["hello"]
    assert (level, text[:19]) == ("warning", "is not accepted by ")


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
def test_an_app_that_can_not_be_loaded(tmp_path: Path) -> None:
    folder = write_app(tmp_path, "import nothing_of_this_name\n")
    level, text = rows(folder)["the app"]
    assert level == "error"
    assert f"No module named 'nothing_of_this_name'. Install its package into {folder}/.venv, and list it in " in text
    assert "requirements.txt, or correct the import" in text
    (folder / "pyproject.toml").write_text("")
    assert "and list it in pyproject.toml, or correct" in rows(folder)["the app"][1]
    (folder / "requirements.txt").write_text("")
    assert "Run pip install -r requirements.txt into" in rows(folder)["the app"][1]
    (folder / "host.json").write_text("{")
    assert rows(folder)["the app"][1].startswith("can't be served. host.json, line 1, column 2: ")
    (folder / "host.json").write_text("{}")
    (folder / "function_app.py").write_text("import azure.functions as func\napp = func.FunctionApp()\n")
    assert rows(folder)["the app"] == (
        "error",
        (
            "has no MCP triggers that can be served, so clients would find nothing. "
            "Register one in function_app.py (a Blueprint with app.register_functions), or in main of package.json."
        ),
    )


HTTP = """
import azure.functions as func

app = func.FunctionApp()


@app.route("mcp", auth_level=func.AuthLevel.ANONYMOUS)
def mcp(req: func.HttpRequest) -> func.HttpResponse:
    return func.HttpResponse("{}")
"""


def test_an_app_with_an_http_trigger_only(tmp_path: Path) -> None:
    level, text = rows(write_app(tmp_path, HTTP))["the app"]
    assert level == "warning"
    assert text.startswith("has no MCP triggers, but 1 HTTP trigger (Python ")
    assert text.endswith("). doctor does not check whether they serve MCP.")


@pytest.mark.parametrize(
    ("files", "text"),
    [
        ({"src/functions/api.ts": "", "build.mjs": ""}, "The language of {} is unknown. Set FUNCTIONS_WORKER_RUNTIME"),
        ({"local.settings.json": '{"Values": {"FUNCTIONS_WORKER_RUNTIME": "python"}}'}, "{} has no function_app.py."),
        ({"requirements.txt": ""}, "The language of {} is unknown."),
    ],
)
def test_a_folder_without_known_code_is_judged_as_the_host_does(
    files: dict[str, str], text: str, tmp_path: Path
) -> None:
    for name, content in {"host.json": '{"version": "2.0"}', **files}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    findings = rows(tmp_path)
    level, shown = findings["the app"]
    assert (level, shown.startswith(f"can't be served. {text.format(tmp_path)}")) == ("error", True)
    assert not {"Python", "azure.yaml", "requirements.txt", "the code"} & findings.keys()
    host = funcmcp("host", str(tmp_path))
    assert " ".join(host.stderr.split()) == shown.removeprefix("can't be served. ")


@pytest.mark.parametrize("name", ["FUNCMCP_HOST_KEYS", "FUNCMCP_KEYS"])
def test_keys_that_can_not_be_used(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "default=short")
    level, text = rows(write_app(tmp_path, APP))["the environment"]
    assert (level, text[:28]) == ("error", "has keys that can't be used.")


def test_node_apps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{node().parent}{os.pathsep}{os.environ['PATH']}")
    folder = write_node_app(tmp_path, {"index.js": NODE_APP}, "dist/*.js", scripts={"build": "tsc"})
    level, text = rows(folder)["the app"]
    assert level == "error"
    assert 'Run "npm run build" in the app\'s folder' in text
    (folder / "dist").mkdir()
    (folder / "index.js").rename(folder / "dist" / "index.js")
    assert rows(folder)["the app"][1].startswith("is served by `funcmcp host` with 1 tool (Node 22.")


@pytest.mark.parametrize(
    ("files", "is_plain"),
    [
        ({"function_app.py": "x"}, False),  # without host.json
        ({"host.json": "{}"}, False),
        ({"host.json": "{}", "function_app.py": "x"}, True),
        ({"host.json": "{}", "function_app.py": "import funcmcp"}, False),
        ({"host.json": "{}", "function_app.py": "import server", "server.py": "from funcmcp import tool"}, False),
        ({"host.json": "{}", "function_app.py": "x", "requirements.txt": "funcmcp[azure]"}, False),
        ({"host.json": "{}", "package.json": "{}"}, True),
        ({"host.json": '{"customHandler": {}}', "package.json": "{}"}, False),
    ],
)
def test_apps_of_funcmcp_have_their_usual_checks(tmp_path: Path, files: dict[str, str], is_plain: bool) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert is_plain_function_app(tmp_path) is is_plain
