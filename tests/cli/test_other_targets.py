"""Files and folders without a server: one line that says what to pass in their place."""

from __future__ import annotations

import json
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

from funcmcp_cli.connect import is_servers_file
from funcmcp_cli.failure import Failure
from funcmcp_cli.other_targets import (
    APPLICATIONS,
    FASTMCP_MEMBERS,
    advice_about_application,
    remark_about_functions,
)
from funcmcp_cli.targets import find, function_app_in

if TYPE_CHECKING:
    from pathlib import Path

SERVER = 'from funcmcp import MCPServer\nmcp = MCPServer("Kitchen")\n'
APP = "import azure.functions as func\napp = func.FunctionApp()\n"
HOST = {"host.json": '{"version": "2.0"}'}
FASTMCP = {
    "$schema": "https://gofastmcp.com/public/schemas/fastmcp.json/v1.json",
    "source": {"type": "filesystem", "path": "kitchen.py", "entrypoint": "food"},
    "environment": {
        "type": "uv",
        "python": "3.12",
        "dependencies": ["pandas", "httpx>=1"],
        "requirements": "req.txt",
        "project": ".",
        "editable": ["lib"],
    },
    "deployment": {
        "transport": "http",
        "host": "0.0.0.0",
        "port": 9000,
        "path": "/food",
        "log_level": "DEBUG",
        "cwd": "my food",
        "env": {"API_KEY": "secret"},
        "args": ["--config", "food.toml"],
    },
}
FASTMCP_COMMAND = (
    "fastmcp.json is a configuration of FastMCP. Write: cd 'my food' && uv run --project . --python 3.12 --with pandas "
    "--with 'httpx>=1' --with-requirements req.txt --with-editable lib funcmcp run kitchen.py:food --host 0.0.0.0 "
    "--port 9000 --log-level debug -- --config food.toml. The path is in the code: "
    "MCPServer(..., http=HTTPOptions(path='/food')). Set the environment variable API_KEY."
)

ANSWERS: list[tuple[dict[str, str], str, str]] = [
    ({"main.py": SERVER}, ".", ". is a folder without server.py. Did you mean main.py?"),
    ({"a.py": SERVER, "test_a.py": SERVER}, ".", ". is a folder without server.py. Did you mean a.py or test_a.py?"),
    ({"src/shop/server.py": SERVER}, ".", ". is a folder without server.py. Did you mean src/shop/server.py?"),
    ({**HOST, "function_app.py": APP}, ".", ". is a function app. Serve it with: funcmcp host ."),
    ({**HOST, "function_app.py": APP}, "host.json", "host.json is a function app. Serve it with: funcmcp host ."),
    (
        {**HOST, "function_app.py": APP},
        "function_app.py",
        "function_app.py is a function app. Serve it with: funcmcp host .",
    ),
    (
        {"main.py": "app = FastAPI()\n"},
        ".",
        (
            ". is a folder without server.py. main.py has a FastAPI application. Make tools of the routes of app: "
            "mcp = MCPServer('name'), then mcp.tools_from_asgi(app)."
        ),
    ),
    (
        {"food.py": 'mcp = FastMCP("food")\n'},
        ".",
        ". is a folder without server.py. food.py has a server of FastMCP. Move it to funcmcp: funcmcp migrate food.py",
    ),
    (
        {"food.ipynb": "{}"},
        ".",
        (
            ". is a folder without server.py. food.ipynb is a notebook. Save its code as a Python file: "
            "jupyter nbconvert --to script food.ipynb"
        ),
    ),
    (
        {"food.mcpb": ""},
        "food.mcpb",
        (
            "food.mcpb is a bundle. funcmcp install CLIENT food.mcpb adds it to a client, and funcmcp install command "
            "food.mcpb prints the command that starts it."
        ),
    ),
    ({"index.js": ""}, "index.js", "index.js is a program of Node. Pass the command that starts it: 'node index.js'"),
    (
        {"package.json": "{}"},
        ".",
        (
            ". is a folder without server.py. package.json is the file of a Node project. Pass the command that starts "
            "its server: 'npx NAME'"
        ),
    ),
    (
        {"pyproject.toml": '[project.scripts]\nfood = "food.server:main"\n'},
        ".",
        ". is a folder without server.py. Pass the module of its server: food.server",
    ),
    (
        {"pyproject.toml": "[project]\n"},
        "pyproject.toml",
        "pyproject.toml is the file of a project. Pass the file of its server.",
    ),
    (
        {"server.json": json.dumps({"remotes": [{"type": "streamable-http", "url": "https://example.com/mcp"}]})},
        ".",
        ". is a folder without server.py. server.json is an entry of a registry. Pass its URL: https://example.com/mcp",
    ),
    (
        {"server.json": json.dumps({"packages": [{"registryType": "pypi", "identifier": "food-mcp"}]})},
        "server.json",
        "server.json is an entry of a registry. Pass the command that starts it: 'uvx food-mcp'",
    ),
    (
        {"server.json": json.dumps({"packages": [{"registryType": "oci", "identifier": "food"}]})},
        "server.json",
        "server.json is an entry of a registry. Pass the command that starts it.",
    ),
    (
        {"manifest.json": json.dumps({"manifest_version": "0.3"})},
        "manifest.json",
        "manifest.json is the manifest of a bundle. Pass the bundle: funcmcp install CLIENT FILE.mcpb",
    ),
    ({"fastmcp.json": json.dumps(FASTMCP)}, "fastmcp.json", FASTMCP_COMMAND),
    (
        {"fastmcp.json": json.dumps({"source": {"path": "food.py"}, "deployment": {"transport": "stdio"}})},
        ".",
        (
            ". is a folder without server.py. fastmcp.json is a configuration of FastMCP. Write: "
            "funcmcp run food.py --stdio"
        ),
    ),
    (
        {},
        ".",
        ". is a folder without server.py. Pass the file of the server, or make a project: funcmcp new NAME",
    ),
    ({}, "example.com/mcp", "example.com/mcp does not exist. Did you mean https://example.com/mcp?"),
    ({}, "https:/example.com/mcp", "https:/example.com/mcp does not exist. Did you mean https://example.com/mcp?"),
    ({}, "src/food", "src/food does not exist. Pass a file, such as server.py, or a module, such as shop.server."),
    (
        {"food.csv": ""},
        "./food.csv",
        "./food.csv is not a Python file. Pass a file, such as server.py, or a module, such as shop.server.",
    ),
]


def test_each_target_without_a_server_is_answered_by_what_to_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    differences = []
    for number, (files, target, line) in enumerate(ANSWERS):
        folder = tmp_path / str(number)
        folder.mkdir()
        for name, text in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
        monkeypatch.chdir(folder)
        with pytest.raises(Failure) as caught:
            find(target)
        if str(caught.value) != line:
            differences.append(f"{target} {list(files)}\n  {caught.value}\n  {line}")
    assert not differences, "\n".join(differences)


def test_every_member_of_a_fastmcp_json_is_in_the_command() -> None:
    members = {(section, name) for section in ("environment", "deployment") for name in FASTMCP[section]}
    written = {(member.section, member.name) for member in FASTMCP_MEMBERS}
    assert members - written == {("environment", "type"), ("deployment", "transport")}


def test_the_configuration_of_a_client_is_named_where_one_server_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "mcp.json"
    file.write_text('{"mcpServers": {"food": {"command": "food"}} // broken', encoding="utf-8")
    assert is_servers_file("mcp.json")
    with pytest.raises(Failure, match=r"Pass the command that serves them: 'funcmcp run .*mcp.json.* --stdio'"):
        find("mcp.json")
    (tmp_path / "host.json").write_text("{}", encoding="utf-8")
    (tmp_path / "server.py").write_text(SERVER, encoding="utf-8")
    assert not is_servers_file("host.json")
    assert function_app_in("host.json") is None
    assert find("host.json").text == "server.py"


def test_an_application_of_another_framework_in_a_module_is_named() -> None:
    module, kind = ModuleType("main"), type("Any", (), {})
    module.web = kind()  # type: ignore[attr-defined]
    for application in APPLICATIONS:
        library = ModuleType(application.module)
        setattr(library, application.name, kind)
        advice = application.advice.replace("{}", "web").replace("FILE", "main.py")
        assert advice_about_application(module, {application.module: library}, "main.py") == advice
    assert advice_about_application(module, {}, "main.py") == ""
    assert "asgi.py" in advice_about_application(module, {}, "manage.py")


def test_functions_beside_the_server_are_named(tmp_path: Path) -> None:
    assert remark_about_functions(tmp_path) == ""
    (tmp_path / "host.json").write_text("{}", encoding="utf-8")
    file = tmp_path / "function_app.py"
    file.write_text("app = funcmcp.azure.http_app(mcp)\n", encoding="utf-8")
    assert remark_about_functions(tmp_path) == ""
    file.write_text('@app.route(route="hello")\ndef hello(req): ...\n', encoding="utf-8")
    assert remark_about_functions(tmp_path).endswith(f"Serve the whole app: funcmcp host {tmp_path}")
