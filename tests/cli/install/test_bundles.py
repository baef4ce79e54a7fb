"""Bundles that `funcmcp install` unpacks: their commands, variables and settings, and what is wrong with others."""

from __future__ import annotations

import json
import sys
import zipfile
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp_cli.failure import Failure
from funcmcp_cli.install.bundles import is_bundle, open_bundle, server_in
from tests.cli.forking import funcmcp

if TYPE_CHECKING:
    from pathlib import Path

    from funcmcp_cli.install.entries import ServerDescription

PYTHON: dict[str, Any] = {
    "command": "python",
    "args": ["${__dirname}/server.py", "server.py", "${user_config.folders}", "--mode=${user_config.mode}"],
    "env": {"KEY": "${user_config.key}", "NOTE": "${user_config.note}", "PLACE": "${HOME}${/}desk", "FIXED": "1"},
}
SETTINGS: dict[str, Any] = {
    "key": {"type": "string", "title": "Key", "description": "The key", "sensitive": True, "required": True},
    "note": {"type": "string", "title": "Note", "description": "A note"},
    "mode": {"type": "boolean", "title": "Mode", "description": "The mode", "default": True},
    "folders": {
        "type": "directory", "title": "Folders", "description": "Folders", "multiple": True,
        "default": ["${HOME}/a", "${DOCUMENTS}"],
    },
}  # fmt: skip


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    return tmp_path / "home"


def bundle(folder: Path, server: dict[str, Any], **members: Any) -> str:
    """Write a bundle, and return its path."""
    manifest = {"manifest_version": "0.4", "name": "Order Desk", "version": "1.0", "server": server, **members}
    with zipfile.ZipFile(folder / "desk.mcpb", "w") as archive:
        archive.writestr("manifest.json", json.dumps(manifest))
        archive.writestr("server.py", "print()")
        archive.writestr("bin/desk", "#!/bin/sh")
    return str(folder / "desk.mcpb")


def server_of(path: str, *env: str) -> ServerDescription:
    return server_in(open_bundle(path), None, env)


def test_variables_and_settings_are_filled_in(tmp_path: Path, home: Path) -> None:
    path = bundle(tmp_path, {"type": "python", "mcp_config": PYTHON}, user_config=SETTINGS)
    server = server_of(path, "KEY=abc")
    folder = home / ".local/share/funcmcp/bundles/order-desk"
    assert server.name == "order-desk"
    assert server.command == (
        sys.executable, f"{folder}/server.py", f"{folder}/server.py", f"{home}/a", f"{home}/Documents", "--mode=true"
    )  # fmt: skip
    assert server.env == {"KEY": "abc", "PLACE": f"{home}/desk", "FIXED": "1"}
    server = server_of(path, "KEY", "NOTE=n", "folders=/x", "mode=false", "EXTRA=1")
    assert server.command[3:] == ("/x", "--mode=false")
    assert server.env == {"KEY": "${KEY}", "NOTE": "n", "PLACE": f"{home}/desk", "FIXED": "1", "EXTRA": "1"}


def test_a_setting_that_is_required_must_be_given(tmp_path: Path) -> None:
    path = bundle(tmp_path, {"type": "python", "mcp_config": PYTHON}, user_config=SETTINGS)
    with pytest.raises(Failure, match=r"desk\.mcpb needs settings of its user\. Pass --env KEY=\.\.\.$"):
        server_of(path)
    settings = {"folder": {"required": True}, "more": {}}
    config = {"command": "python", "args": ["${user_config.folder}", "${user_config.more}"]}
    path = bundle(tmp_path, {"type": "python", "mcp_config": config}, user_config=settings)
    with pytest.raises(Failure, match=r"Pass --env folder=\.\.\.$"):
        server_of(path)
    assert server_of(path, "folder=/x").command[1:] == ("/x",)


def test_a_program_is_in_the_bundle_or_on_path(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = home / ".local/share/funcmcp/bundles/order-desk"
    for command in ("bin/desk", "./bin/desk", "${__dirname}/bin/desk"):
        server = server_of(bundle(tmp_path, {"type": "binary", "mcp_config": {"command": command}}))
        assert server.command == (f"{folder}/bin/desk",)
    assert server_of(bundle(tmp_path, {"type": "node", "mcp_config": {"command": "sh"}})).command[0].endswith("/sh")
    with pytest.raises(Failure, match=r"desk\.mcpb runs no-such-program, which is not on PATH"):
        server_of(bundle(tmp_path, {"type": "node", "mcp_config": {"command": "no-such-program"}}))
    uv = tmp_path / "uv"
    uv.touch(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    server = server_of(bundle(tmp_path, {"type": "uv", "entry_point": "server.py"}))
    assert server.command == (str(uv), "run", "--directory", str(folder), f"{folder}/server.py")


def test_a_platform_has_its_own_command(tmp_path: Path) -> None:
    config = {
        "command": "python",
        "args": ["a"],
        "platform_overrides": {sys.platform: {"args": ["b"]}, "other": {"args": ["c"]}},
    }
    assert server_of(bundle(tmp_path, {"type": "python", "mcp_config": config})).command[1:] == ("b",)
    with pytest.raises(Failure, match=rf"is for amiga, and this machine is {sys.platform}"):
        open_bundle(bundle(tmp_path, {}, compatibility={"platforms": ["amiga"]}))


@pytest.mark.parametrize(
    ("server", "members", "message"),
    [
        ({"type": "node"}, {}, r"server\.mcp_config\.command is missing"),
        ({"mcp_config": {"command": 1}}, {}, r"server\.mcp_config\.command is missing"),
        ({"mcp_config": {"command": "sh", "args": ["${user_config.x}"]}}, {}, "refers to 'x', which is not a setting"),
        ({}, {"manifest_version": "1.0"}, "has manifest version '1.0'"),
        ({}, {"manifest_version": None}, "has manifest version ''"),
        ({}, {"name": 1, "compatibility": [], "user_config": 1}, r"server\.mcp_config\.command is missing"),
    ],
)
def test_a_manifest_that_is_not_valid_is_an_error(
    tmp_path: Path, server: dict[str, Any], members: dict[str, Any], message: str
) -> None:
    with pytest.raises(Failure, match=message):
        server_of(bundle(tmp_path, server, **members))


def test_a_manifest_must_be_json(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.mcpb", "w") as archive:
        archive.writestr("manifest.json", "{")
    with pytest.raises(Failure, match="that is not JSON"):
        open_bundle(str(tmp_path / "a.mcpb"))


def test_files_of_bundles_are_known_by_their_names() -> None:
    assert [is_bundle(name) for name in ("a.mcpb", "A.DXT", "a.py", "https://e.com/a.mcpb")] == [
        True,
        True,
        False,
        False,
    ]


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
def test_only_write_unpacks_a_bundle(tmp_path: Path, home: Path) -> None:
    path = bundle(tmp_path, {"type": "python", "mcp_config": PYTHON}, user_config=SETTINGS, author={"name": "Ada"})
    options = ["install", "claude-desktop", path, "--env", "KEY=abc"]
    variables = {"HOME": str(home)}
    folder = home / ".local/share/funcmcp/bundles/order-desk"
    for option in ([], ["--dry-run"]):
        assert funcmcp(*options, *option, folder=tmp_path, env=variables).returncode == 0
        assert not home.exists()
    written = funcmcp(*options, "--write", folder=tmp_path, env=variables)
    command = "python '${__dirname}/server.py' server.py '${user_config.folders}' '--mode=${user_config.mode}'"
    sentences = f"Unpacked Order Desk 1.0 by Ada to {folder}. It runs: {command}\nWrote order-desk to "
    assert written.stdout.startswith(sentences)
    assert sorted(file.name for file in folder.iterdir()) == ["bin", "manifest.json", "server.py"]
    entry = json.loads((home / ".config/Claude/claude_desktop_config.json").read_text())["mcpServers"]["order-desk"]
    assert entry["args"][0] == f"{folder}/server.py"
    refused = funcmcp(*options, "--header", "A: b", folder=tmp_path, env=variables)
    assert refused.stderr == "A bundle has its own command. Its settings are given with --env NAME=VALUE.\n"


def test_a_bundle_replaces_earlier_versions_only_of_itself(tmp_path: Path) -> None:
    config = {"mcp_config": {"command": "python"}}
    open_bundle(bundle(tmp_path, config, author={"name": "Ada"})).unpack()
    newer = open_bundle(bundle(tmp_path, config, author={"name": "Ada"}, version="2.0"))
    assert newer.unpack().startswith("Unpacked Order Desk 2.0 by Ada to ")
    for members in ({"author": {"name": "Eve"}}, {"name": "order/desk", "author": {"name": "Ada"}}):
        other = open_bundle(bundle(tmp_path, config, **members))
        with pytest.raises(Failure, match=r"has another bundle, Order Desk by Ada\."):
            other.unpack()
        assert json.loads((other.folder / "manifest.json").read_text())["version"] == "2.0"


def test_names_of_a_bundle_stay_in_their_line(tmp_path: Path) -> None:
    config = {"mcp_config": {"command": "sh", "args": ["-c", "true\n\x1b[2J"]}}
    names = {"name": "a\nWrote x", "version": "1\x1b[31m", "author": {"name": "b" * 5000}}
    sentence = open_bundle(bundle(tmp_path, config, **names)).unpack()
    assert sentence.startswith(f"Unpacked a\\nWrote x 1\\x1b[31m by {'b' * 100} to ")
    assert sentence.endswith(" It runs: sh -c 'true\\n\\x1b[2J'")
    manifests: list[dict[str, Any]] = [
        {"server": {"mcp_config": {"command": "a\nb"}}},
        {"server": {"mcp_config": PYTHON}, "compatibility": {"platforms": ["a\nb"]}},
        {
            "server": {"mcp_config": {"command": "python", "args": ["${user_config.a\nb}"]}},
            "user_config": {"a\nb": {"required": True}},
        },
    ]
    for manifest in manifests:
        path = bundle(tmp_path, manifest.pop("server"), **manifest)
        with pytest.raises(Failure, match=r"a\\nb"):
            server_of(path)
