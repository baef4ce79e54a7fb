"""A function app's folder: host.json, local.settings.json and the language."""

from __future__ import annotations

import json
import logging
import re
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp_host.folder import FolderError, HostOptions, cross_origin, read_folder, worker_environment

if TYPE_CHECKING:
    from pathlib import Path

HOST = """\ufeff{
  // comments, trailing commas and any case are allowed
  "Version": "2.0", /* and these */
  "functionTimeout": "00:10:30",
  "logging": { "logLevel": { "default": "Warning", } },
  "extensions": {
    "MCP": {
      "ServerName": "Orders // not a comment",
      "serverVersion": "2.1",
      "instructions": "Be brief, please.",
      "system": { "webhookAuthorizationLevel": "anonymous" },
    },
    "http": { "routePrefix": "/v1/" },
  },
}
"""


def app(folder: Path, host: str = "{}", settings: Any = None) -> Path:
    (folder / "host.json").write_text(host, encoding="utf-8")
    (folder / "function_app.py").write_text("")
    if settings is not None:
        text = settings if isinstance(settings, str) else json.dumps(settings)
        (folder / "local.settings.json").write_text(text, encoding="utf-8")
    return folder


def test_host_json_with_everything(tmp_path: Path) -> None:
    assert read_folder(app(tmp_path, HOST), {}).options == HostOptions(
        name="Orders // not a comment",
        version="2.1",
        instructions="Be brief, please.",
        anonymous=True,
        route_prefix="v1",
        timeout=630.0,
        log_level=logging.WARNING,
    )


def test_host_json_with_nothing(tmp_path: Path) -> None:
    options = read_folder(app(tmp_path), {}).options
    assert options == HostOptions()
    assert (options.name, options.version, options.timeout) == ("Azure Functions MCP server", "1.0.0", 300.0)


def test_an_empty_name_is_none(tmp_path: Path) -> None:
    host = '{"extensions": {"mcp": {"serverName": ""}}}'
    assert read_folder(app(tmp_path, host), {}).options.name == "Azure Functions MCP server"


def test_environment_variables_replace_members_of_host_json(tmp_path: Path) -> None:
    environment = {
        "AzureFunctionsJobHost__extensions__mcp__serverName": "Other",
        "AZUREFUNCTIONSJOBHOST__functionTimeout": "-1",
        "AzureFunctionsJobHost__logging__logLevel__Function": "Debug",
    }
    options = read_folder(app(tmp_path, HOST), environment).options
    assert (options.name, options.timeout, options.log_level) == ("Other", None, logging.DEBUG)


def test_local_settings_are_for_the_worker_and_the_environment_goes_first(tmp_path: Path) -> None:
    values = {"FUNCTIONS_WORKER_RUNTIME": "Python", "A": "local", "B": "local", "C": 3, "D": None}
    folder = read_folder(app(tmp_path, settings={"IsEncrypted": False, "Values": values}), {"A": "process"})
    environment = worker_environment(folder, "localhost:7071")
    assert (environment["A"], environment["B"], environment["C"]) == ("process", "local", "3")
    assert "D" not in environment
    assert environment["FUNCTIONS_WORKER_RUNTIME"] == "python"
    assert environment["AzureWebJobsScriptRoot"] == str(tmp_path)
    assert environment["WEBSITE_HOSTNAME"] == "localhost:7071"
    assert environment["AZURE_FUNCTIONS_ENVIRONMENT"] == "Development"


def test_the_app_does_not_get_the_keys_of_the_host(tmp_path: Path) -> None:
    keys = {"FUNCMCP_HOST_KEYS": "of the host", "FUNCMCP_KEYS": "of the host"}
    folder = read_folder(app(tmp_path, settings={"Values": {"A": "1"}}), keys)
    assert keys.keys().isdisjoint(folder.settings)
    assert keys.keys().isdisjoint(worker_environment(folder, "localhost:7071"))
    own = {"FUNCMCP_KEYS": "of the app"}  # an app may have an MCPServer of its own
    folder = read_folder(app(tmp_path, settings={"Values": own}), keys)
    assert worker_environment(folder, "localhost:7071")["FUNCMCP_KEYS"] == "of the app"


def test_local_settings_may_have_comments(tmp_path: Path) -> None:
    text = '\ufeff{ // c\n "Values": {"A": "https://x/y", }, }'
    assert read_folder(app(tmp_path, settings=text), {}).settings["A"] == "https://x/y"


def test_the_language_is_that_of_the_files_where_no_setting_names_it(tmp_path: Path) -> None:
    assert read_folder(app(tmp_path), {}).runtime == "python"
    (tmp_path / "function_app.py").unlink()
    (tmp_path / "package.json").write_text("{}")
    assert read_folder(tmp_path, {}).runtime == "node"


@pytest.mark.parametrize(
    ("host", "settings", "reason"),
    [
        ("{", None, r"host\.json, line 1, column 2: .*Correct the JSON there"),
        ("[]", None, r"host\.json must hold a JSON object"),
        ('{"functionTimeout": "soon"}', None, "functionTimeout is 'soon'"),
        ("{}", {"IsEncrypted": True, "Values": {}}, "is encrypted. Run: func settings decrypt"),
        ("{}", {"Values": []}, '"Values" must be an object'),
        ("{}", {"Values": {"FUNCTIONS_WORKER_RUNTIME": "cobol"}}, "is 'cobol'. funcmcp host serves"),
        ("{}", {"Values": {"A=B": "1"}}, r"the setting 'A=B' can't be an environment variable\. Remove it"),
        ("{}", {"Values": {"A": "\0"}}, "the setting 'A' can't be"),
        ("{}", {"Values": {"A": "\ud800"}}, "the setting 'A' can't be"),
        ("{}", {"Values": {"": "1"}}, "the setting '' can't be"),
        ("{}", '{"Values":\n{"a"}}', r"local\.settings\.json, line 2"),
    ],
)
def test_files_that_are_wrong(host: str, settings: Any, reason: str, tmp_path: Path) -> None:
    with pytest.raises(FolderError, match=reason):
        read_folder(app(tmp_path, host, settings), {})


def test_folders_that_are_not_function_apps(tmp_path: Path) -> None:
    with pytest.raises(FolderError, match="is not a folder"):
        read_folder(tmp_path / "none", {})
    with pytest.raises(FolderError, match=r"no host\.json, so it is not a function app"):
        read_folder(tmp_path, {})
    (tmp_path / "host.json").write_text("{}")
    with pytest.raises(FolderError, match=r"language of .* is unknown"):
        read_folder(tmp_path, {})
    (tmp_path / "hello").mkdir()
    (tmp_path / "hello" / "function.json").write_text("{}")
    with pytest.raises(FolderError, match=r"no function_app\.py\. Its function\.json files are of an older"):
        read_folder(tmp_path, {"FUNCTIONS_WORKER_RUNTIME": "python"})


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ({"version": "1.0"}, 'version is "1.0". Write "version": "2.0".'),
        ({"version": 2.0}, 'version is 2.0. Write "version": "2.0".'),
        ({"extensions": 7}, "extensions must be an object, not 7."),
        ({"Extensions": {"MCP": []}}, "extensions.mcp must be an object, not []."),
        ({"logging": {"logLevel": "Debug"}}, 'logging.loglevel must be an object, not "Debug".'),
        ({"extensions": {"mcp": {"system": {"webhookAuthorizationLevel": "Foo"}}}},
         'webhookAuthorizationLevel is "Foo". Valid levels: "System", "Anonymous".'),
        ({"logging": {"logLevel": {"A.B": "Loud"}}}, 'logging.loglevel.a.b is "Loud". Valid levels: Trace, Debug'),
        ({"functionTimeout": "99:99:99"}, "functionTimeout is '99:99:99'."),
        ({"functionTimeout": "9" * 5000 + ".00:00:00"}, "functionTimeout is '9999"),
        ({"functionTimeout": "24:00:00"}, "functionTimeout is '24:00:00'."),
        ({"functionTimeout": "00:60:00"}, "functionTimeout is '00:60:00'."),
    ],
)  # fmt: skip
def test_values_that_the_functions_host_refuses_are_errors(tmp_path: Path, content: Any, text: str) -> None:
    with pytest.raises(FolderError, match=re.escape(f"host.json: {text}")):
        read_folder(app(tmp_path, json.dumps(content)), {})


def test_members_without_a_value_and_days_are_valid(tmp_path: Path) -> None:
    content = {"version": "2.0", "extensions": None, "logging": {"logLevel": None}, "functionTimeout": "1.23:59:59"}
    assert read_folder(app(tmp_path, json.dumps(content)), {}).options.timeout == 172_799.0


@pytest.mark.parametrize(
    "origin",
    [
        *("https://*.example.com", "https://user@example.com", "https://example.com?x", "https://example.com#x"),
        *(
            "https://example.com:port",
            "https://a\\b",
            "https://a\x1b[2J",
            "https://b\u00fccher.example",
            "https://[::1",
        ),
    ],
)
def test_an_origin_that_no_page_can_have_is_an_error(origin: str) -> None:
    with pytest.raises(ValueError, match="in CORS is not an origin"):
        cross_origin(origin)


@pytest.mark.parametrize(
    "origin",
    [
        *("https://example.com", "http://localhost:3000", "http://[::1]:3000", "http://under_score.example"),
        *("vscode-webview://0a1b", "chrome-extension://abc", "app://obsidian.md"),
    ],
)
def test_origins_of_pages_and_extensions(origin: str) -> None:
    assert cross_origin(f"{origin}/, *").origins == [origin, "*"]
