"""`funcmcp bundle`: its bundles are valid by npm's mcpb, and start when they are unpacked and installed."""

from __future__ import annotations

import json
import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from funcmcp.client import Client, StdioCommand
from tests.cli.bundle.published import check_registry_entry, mcpb
from tests.cli.forking import funcmcp
from tests.requirements import require

if TYPE_CHECKING:
    from collections.abc import Mapping

_SLOW = pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")

SERVER = '''
import os

from funcmcp import MCPServer

from orders.words import WORD

mcp = MCPServer("Orders")


@mcp.tool
def settings() -> list[str | None]:
    """Return what the server reads."""
    return [WORD, os.environ.get("ORDERS_KEY"), os.environ.get("ORDERS_NOTE"), os.environ.get("ORDERS_LIMIT")]


@mcp.prompt
def ask() -> str:
    return "Hello"
'''
PYPROJECT = """
[project]
name = "orders-mcp"
version = "1.2.0"
readme = "README.md"
description = "Look up orders"
requires-python = ">=3.11"
authors = [{ name = "Ada" }]
dependencies = ["funcmcp>=0.1,<1"]

[project.scripts]
orders-mcp = "orders.server:mcp.run"

[project.urls]
Source = "https://github.com/acme/orders-mcp"

[tool.funcmcp.bundle]
icon = "icon.png"
download-url = "https://github.com/acme/orders-mcp/releases/download/v{version}/orders-mcp.mcpb"

[tool.funcmcp.bundle.settings]
ORDERS_KEY = { title = "Key", description = "The key of the API", secret = true, required = true }
ORDERS_NOTE = { title = "Note" }
ORDERS_LIMIT = { title = "Limit", type = "number", default = 10 }
"""
NAMES = [
    "icon.png",
    "manifest.json",
    "pyproject.toml",
    "src/orders/__init__.py",
    "src/orders/server.py",
    "src/orders/words.py",
    "start_server.py",
]


def write_project(folder: Path) -> None:
    package = folder / "src" / "orders"
    package.mkdir(parents=True)
    (folder / "pyproject.toml").write_text(PYPROJECT)
    (folder / ".env").write_text("ORDERS_KEY=secret\n")
    (folder / "icon.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    (package / "__init__.py").touch()
    (package / "words.py").write_text("WORD = 'order'\n")
    (package / "server.py").write_text(SERVER)


def in_this_environment(values: Mapping[str, str]) -> dict[str, str]:
    """Return the variables with which uv runs a project in the environment of the tests, without an index."""
    folder = Path(sys.prefix)
    return {**values, "UV_NO_SYNC": "1", "UV_OFFLINE": "1", "UV_PROJECT_ENVIRONMENT": str(folder), "PYTHONPATH": ""}


@_SLOW
def test_a_bundle_of_a_project_has_its_files_and_no_others(tmp_path: Path) -> None:
    write_project(tmp_path)
    listed = funcmcp("bundle", "src/orders/server.py", "--dry-run", folder=tmp_path)
    assert (listed.returncode, listed.stdout.splitlines()) == (0, NAMES), listed.stderr
    assert not (tmp_path / "dist").exists()
    written = funcmcp("bundle", "src/orders/server.py", folder=tmp_path)
    assert written.returncode == 0, written.stderr
    assert written.stdout.startswith("Wrote dist/orders-mcp-1.2.0.mcpb: 7 files, ")
    assert written.stdout.endswith("Wrote dist/server.json for io.github.acme/orders-mcp.\n")
    assert written.stderr == (
        "For the official registry: The README of the package lacks this line: "
        "<!-- mcp-name: io.github.acme/orders-mcp -->\n"
    )
    with zipfile.ZipFile(tmp_path / "dist" / "orders-mcp-1.2.0.mcpb") as bundle:
        assert bundle.namelist() == NAMES
        assert b"ORDERS_KEY=secret" not in b"".join(map(bundle.read, NAMES))
        manifest = json.loads(bundle.read("manifest.json"))
    assert manifest["tools"] == [{"name": "settings", "description": "Return what the server reads."}]
    assert manifest["prompts_generated"] is True
    (tmp_path / "README.md").write_text("# Orders\n<!-- mcp-name: io.github.acme/orders-mcp -->\n")
    assert funcmcp("bundle", "src/orders/server.py", folder=tmp_path).stderr == ""


@_SLOW
async def test_an_installed_bundle_starts_with_the_settings_of_its_user(tmp_path: Path) -> None:
    require("uv", Path(sys.executable).with_name("uv").is_file())
    write_project(tmp_path / "project")
    assert funcmcp("bundle", "src/orders/server.py", folder=tmp_path / "project").returncode == 0
    file = "project/dist/orders-mcp-1.2.0.mcpb"
    variables = {"HOME": str(tmp_path / "home")}
    refused = funcmcp("install", "claude-desktop", file, folder=tmp_path, env=variables)
    assert refused.stderr == "orders-mcp-1.2.0.mcpb needs settings of its user. Pass --env ORDERS_KEY=...\n"
    written = funcmcp(
        "install", "claude-desktop", file, "--env", "ORDERS_KEY=abc", "--write", folder=tmp_path, env=variables
    )
    assert written.returncode == 0, written.stderr
    configuration = tmp_path / "home/.config/Claude/claude_desktop_config.json"
    entry = json.loads(configuration.read_text())["mcpServers"]["orders-mcp"]
    command = StdioCommand(entry["command"], *entry["args"], env=in_this_environment(entry["env"]), cwd="/")
    async with Client(command) as client:
        assert (await client.call_tool("settings"))["structuredContent"]["result"] == ["order", "abc", None, "10"]


@_SLOW
async def test_clients_that_run_the_entry_point_start_the_server(tmp_path: Path) -> None:
    """They pass references without values for settings that the user left out."""
    write_project(tmp_path)
    assert funcmcp("bundle", "src/orders/server.py", folder=tmp_path).returncode == 0
    with zipfile.ZipFile(tmp_path / "dist" / "orders-mcp-1.2.0.mcpb") as bundle:
        bundle.extractall(tmp_path / "unpacked")
    values = {"ORDERS_KEY": "abc", "ORDERS_NOTE": "${user_config.orders_note}", "ORDERS_LIMIT": ""}
    command = StdioCommand(sys.executable, str(tmp_path / "unpacked/start_server.py"), env=values, cwd="/")
    async with Client(command) as client:
        assert (await client.call_tool("settings"))["structuredContent"]["result"] == ["order", "abc", None, None]


@pytest.mark.slow("It needs the npm package mcpb.")
def test_mcpb_takes_the_bundle(tmp_path: Path) -> None:
    write_project(tmp_path)
    assert funcmcp("bundle", "src/orders/server.py", folder=tmp_path).returncode == 0
    bundle = tmp_path / "dist" / "orders-mcp-1.2.0.mcpb"
    mcpb("unpack", bundle, tmp_path / "unpacked")
    assert "Manifest schema validation passes!" in mcpb("validate", tmp_path / "unpacked" / "manifest.json")
    mcpb("pack", tmp_path / "unpacked", tmp_path / "again.mcpb")
    with zipfile.ZipFile(bundle) as first, zipfile.ZipFile(tmp_path / "again.mcpb") as second:
        assert sorted(second.namelist()) == first.namelist()
    check_registry_entry(json.loads((tmp_path / "dist" / "server.json").read_text()))


@_SLOW
async def test_a_script_is_a_bundle_with_its_dependencies(tmp_path: Path) -> None:
    script = "# /// script\n# dependencies = ['funcmcp', 'rich']\n# [tool.funcmcp.bundle]\n# author = 'Ada'\n# ///\n"
    code = "from funcmcp import MCPServer\n\nmcp = MCPServer('Order Desk')\n"
    code += "\n\n@mcp.tool\ndef two() -> int:\n    return 2\n"
    (tmp_path / "order-desk.py").write_text(script + code)
    (tmp_path / "other.txt").touch()
    written = funcmcp("bundle", "order-desk.py", "-o", ".", folder=tmp_path)
    assert written.returncode == 0, written.stderr
    advice, no_entry = written.stderr.splitlines()
    assert advice.startswith("Users get any later funcmcp, which may break the server. Write funcmcp>=")
    assert no_entry.startswith("server.json is not written: a registry needs a name and a URL.")
    with zipfile.ZipFile(tmp_path / "order-desk-0.1.0.mcpb") as bundle:
        assert bundle.namelist() == ["manifest.json", "order-desk.py", "pyproject.toml", "start_server.py"]
        assert '    "funcmcp",\n    "rich"\n' in bundle.read("pyproject.toml").decode()
        bundle.extractall(tmp_path / "unpacked")
    command = StdioCommand(sys.executable, str(tmp_path / "unpacked/start_server.py"), cwd="/")
    async with Client(command) as client:
        assert (await client.call_tool("two"))["structuredContent"] == {"result": 2}


def test_a_script_with_a_password_in_its_metadata_is_refused(tmp_path: Path) -> None:
    lines = [
        "/// script",
        "dependencies = ['funcmcp']",
        "[[tool.uv.index]]",
        "url = 'https://ada:p$w@a.example/simple'",
    ]
    lines += ["[tool.funcmcp.bundle]", "author = 'Ada'", "///"]
    code = "from funcmcp import MCPServer\n\nmcp = MCPServer('Order Desk')\n"
    (tmp_path / "order-desk.py").write_text("".join(f"# {line}\n" for line in lines) + code)
    run = funcmcp("bundle", "order-desk.py", folder=tmp_path)
    assert run.returncode == 1
    assert "order-desk.py has a URL with a password, and everybody who has the bundle could read it." in run.stderr


@pytest.mark.parametrize(
    ("dependency", "is_open"),
    [
        ("funcmcp>=0.1", True),
        ("funcmcp-slim[server]!=0.1.1", True),
        ("funcmcp~=0.1.0", False),
        ("funcmcp==0.1.0", False),
        ("funcmcp @ https://example.com/funcmcp-0.1.0-py3-none-any.whl", False),
        ("rich", False),
    ],
)
def test_a_dependency_without_an_upper_bound_is_named(tmp_path: Path, dependency: str, *, is_open: bool) -> None:
    write_project(tmp_path)
    (tmp_path / "README.md").write_text("<!-- mcp-name: io.github.acme/orders-mcp -->\n")
    (tmp_path / "pyproject.toml").write_text(PYPROJECT.replace("funcmcp>=0.1,<1", dependency))
    written = funcmcp("bundle", "src/orders/server.py", folder=tmp_path)
    assert (written.returncode, written.stderr.startswith("Users get any later funcmcp")) == (0, is_open)
    (tmp_path / "uv.lock").touch()
    assert funcmcp("bundle", "src/orders/server.py", folder=tmp_path).stderr == ""


def test_a_dependency_that_is_no_requirement_is_refused(tmp_path: Path) -> None:
    write_project(tmp_path)
    (tmp_path / "pyproject.toml").write_text(PYPROJECT.replace("funcmcp>=0.1,<1", "rich 14"))
    run = funcmcp("bundle", "src/orders/server.py", folder=tmp_path)
    assert run.returncode == 1
    assert "'rich 14' in dependencies is not a requirement" in run.stderr
    assert not (tmp_path / "dist").exists()


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (".mcpbignore", "src/\n", "src/orders/server.py is needed, but it is excluded from the bundle."),
        (".gitignore", "pyproject.toml\n", "pyproject.toml is needed, but it is excluded from the bundle."),
        (".gitignore", "icon.png\n", "The icon icon.png is not a file of the project."),
        ("icon.png", "GIF89a", "The icon icon.png is not a PNG file."),
        ("pyproject.toml", PYPROJECT.replace("1.2.0", "1.*"), "A registry does not accept the version '1.*'."),
        ("uv.toml", "index = [{ url = 'https://ada:pw@a.example' }]\n", "uv.toml has a URL with a password"),
    ],
)
def test_a_bundle_without_what_it_needs_is_refused(tmp_path: Path, name: str, text: str, message: str) -> None:
    write_project(tmp_path)
    (tmp_path / name).write_text(text)
    run = funcmcp("bundle", "src/orders/server.py", folder=tmp_path)
    assert run.returncode == 1
    assert message in run.stderr
    assert not (tmp_path / "dist").exists()


async def test_a_new_project_is_bundled_and_starts(tmp_path: Path) -> None:
    require("uv", Path(sys.executable).with_name("uv").is_file())
    assert funcmcp("new", "order-desk", "--hosting", "docker", folder=tmp_path).returncode == 0
    folder = tmp_path / "order-desk"
    written = funcmcp("bundle", folder=folder)
    assert (written.returncode, written.stderr) == (0, "")
    entry = json.loads((folder / "dist" / "server.json").read_text())
    assert (entry["name"], entry["packages"][0]["identifier"]) == ("com.example/order-desk", "order-desk")
    variables = {"HOME": str(tmp_path / "home")}
    bundle = "order-desk/dist/order-desk-0.1.0.mcpb"
    printed = funcmcp("install", "cursor", bundle, "--write", folder=tmp_path, env=variables)
    assert printed.returncode == 0, printed.stderr
    server = json.loads((tmp_path / "home/.cursor/mcp.json").read_text())["mcpServers"]["order-desk"]
    command = StdioCommand(server["command"], *server["args"], env=in_this_environment({}), cwd="/")
    async with Client(command) as client:
        assert (await client.call_tool("add", {"a": 1, "b": 2}))["structuredContent"] == {"result": 3}


def test_a_tool_that_is_left_out_is_an_error_after_the_bundle(tmp_path: Path) -> None:
    write_project(tmp_path)
    with (tmp_path / "src" / "orders" / "server.py").open("a") as file:
        file.write("\n\n@mcp.tool\ndef bad(x: 'Foo') -> str:\n    return x\n")
    written = funcmcp("bundle", "src/orders/server.py", folder=tmp_path)
    assert (written.returncode, written.stdout.startswith("Wrote dist/orders-mcp-1.2.0.mcpb")) == (1, True)
    assert written.stderr.splitlines()[-1].startswith("The tool bad is left out of the list. Correct it: ")
    assert written.stderr.count("The tool bad") == 1
