"""Files of clients are replaced at once, with a backup; broken ones are refused and unchanged."""

from __future__ import annotations

import json
import os
import tomllib
from pathlib import Path
from typing import Any

import pytest

from funcmcp._page.mcp_clients import CLIENTS
from funcmcp_cli.failure import Failure
from funcmcp_cli.install.entries import Entry
from funcmcp_cli.install.files import difference, merged_text, read, write

pytestmark = pytest.mark.lowest("tomlkit reads and writes TOML.")

ENTRY = Entry({"command": "python", "args": []}, [])


def test_choices_of_the_user_remain_in_an_existing_entry() -> None:
    text = '{"mcpServers": {"s": {"url": "https://old.example", "disabled": true, "alwaysAllow": ["a"]}}}'
    merged = merged_text(text, CLIENTS["cursor"], "s", ENTRY)
    assert '"disabled": true' in merged
    assert '"alwaysAllow": [' in merged
    assert "old.example" not in merged


@pytest.mark.parametrize(
    ("client", "before", "members", "expected"),
    [
        ("cursor", {"command": "old", "env": {"KEY": "a", "MODE": "b"}}, {"command": "new", "env": {"MODE": "c"}},
         {"command": "new", "env": {"KEY": "a", "MODE": "c"}}),
        ("codex", {"command": "old", "env_vars": ["KEY"]}, {"command": "new", "env_vars": ["MODE"]},
         {"command": "new", "env_vars": ["KEY", "MODE"]}),
        ("codex", {"url": "u", "bearer_token_env_var": "KEY"}, {"url": "v"},
         {"url": "v", "bearer_token_env_var": "KEY"}),
        ("cursor", {"url": "u", "headers": {"Authorization": "KEY"}}, {"command": "new"}, {"command": "new"}),
    ],
)  # fmt: skip
def test_variables_and_header_fields_stay_unless_the_server_moves(
    client: str, before: dict[str, Any], members: dict[str, Any], expected: dict[str, Any]
) -> None:
    text = merged_text("", CLIENTS[client], "s", Entry(before, []))
    merged = merged_text(text, CLIENTS[client], "s", Entry(members, []))
    read_text = tomllib.loads if client == "codex" else json.loads
    assert read_text(merged)[CLIENTS[client].servers[0]]["s"] == expected


def test_a_byte_order_mark_remains() -> None:
    merged = merged_text('\ufeff{"mcpServers": {}}', CLIENTS["claude-desktop"], "s", ENTRY)
    assert merged.startswith('\ufeff{"mcpServers": {')


@pytest.mark.parametrize(
    ("client", "text"),
    [
        ("claude-desktop", '{"mcpServers": {'),
        ("claude-desktop", '{"mcpServers": {}} // note'),
        ("claude-desktop", '{"mcpServers": []}'),
        ("claude-desktop", "[]"),
        ("claude-desktop", '"text"'),
        ("opencode", '{"mcp": {"servers": 1}}'),
        ("opencode", '{"mcp": 1}'),
        ("codex", "[mcp_servers\n"),
        ("codex", "mcp_servers = 1\n"),
        ("codex", "a = 1\na = 2\n"),
    ],
)
def test_a_text_in_another_format_is_refused(client: str, text: str) -> None:
    with pytest.raises(ValueError, match=r"line|not a table|not an object|Key"):
        merged_text(text, CLIENTS[client], "s", ENTRY)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "mcp_servers = {}\n",
        'mcp_servers = { other = { command = "npx" } }\n',
        '[mcp_servers]\nother = { command = "npx" }\n',
        '[mcp_servers.other]\ncommand = "npx"\n\n[tui]\na = 1\n\n[mcp_servers.third]\ncommand = "x"\n',
        '[mcp_servers.s]\ncommand = "old"\nenabled = false\n\n[mcp_servers.s.env]\nA = "1"\n\n[tui]\na = 1\n',
    ],
)
def test_codex_tables_of_all_forms_are_merged(text: str) -> None:
    import tomllib

    merged = tomllib.loads(merged_text(text, CLIENTS["codex"], "s", ENTRY))
    before = tomllib.loads(text)
    extra = {"enabled": False, "env": {"A": "1"}} if "enabled" in text else {}
    servers = {**before.get("mcp_servers", {}), "s": {**ENTRY.members, **extra}}
    assert merged == {**before, "mcp_servers": servers}


def test_a_new_file_gets_its_folders_and_no_backup(tmp_path: Path) -> None:
    file = tmp_path / "a" / "b.json"
    assert write(file, "", "{}\r\n") is None
    assert file.read_bytes() == b"{}\r\n"
    assert [path.name for path in file.parent.iterdir()] == ["b.json"]


def test_a_file_keeps_its_mode_its_link_and_a_backup(tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    file.write_text("old")
    file.chmod(0o640)
    link = tmp_path / "link.json"
    link.symlink_to(file)
    backup = write(link, "old", "new")
    assert backup is not None
    assert (backup.read_text(), file.read_text(), link.is_symlink()) == ("old", "new", True)
    assert file.stat().st_mode & 0o777 == 0o640
    assert backup.name.startswith("settings.json.")


def test_secrets_stay_with_the_owner_and_earlier_backups_go(tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    file.write_text("first")
    file.chmod(0o644)
    other = tmp_path / "settings.json.mine.bak"
    other.write_text("of the user")
    first = write(file, "first", "second")
    assert first is not None
    assert (first.stat().st_mode & 0o777, file.stat().st_mode & 0o777) == (0o600, 0o640)
    second = write(file, "second", "third")
    assert second is not None
    assert second.read_text() == "second"
    assert set(tmp_path.iterdir()) == {file, other, second}


def test_a_file_that_changed_in_the_meantime_stays(tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    file.write_text("newer")
    with pytest.raises(Failure, match="was changed by another program"):
        write(file, "old", "new")
    assert file.read_text() == "newer"
    assert [path.name for path in tmp_path.iterdir()] == ["settings.json"]


def test_a_path_that_cannot_be_written_is_a_failure(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Failure, match=r"cannot be written: .*The file is unchanged"):
        write(tmp_path / "file" / "x.json", "", "new")


def test_a_file_that_cannot_be_read_is_a_failure(tmp_path: Path) -> None:
    (tmp_path / "latin").write_bytes(b"\xe9")
    with pytest.raises(Failure, match="is not UTF-8 text"):
        read(tmp_path / "latin")
    with pytest.raises(Failure, match="cannot be read"):
        read(tmp_path)
    assert read(tmp_path / "missing") == ""


def test_the_difference_names_the_file(tmp_path: Path) -> None:
    text = difference(tmp_path / "x.json", "a\nb", "a\nc\n")
    assert text.splitlines() == [
        f"--- {tmp_path}/x.json",
        f"+++ {tmp_path}/x.json",
        "@@ -1,2 +1,2 @@",
        " a",
        "-b",
        "+c",
    ]
    assert os.linesep not in text.splitlines()


def test_a_file_that_is_not_regular_is_refused_before_it_is_read(tmp_path: Path) -> None:
    fifo = tmp_path / "mcp.json"
    os.mkfifo(fifo)
    with pytest.raises(Failure, match="cannot be read: not a regular file"):
        read(fifo)


def test_toml_that_is_nested_too_deeply_is_refused() -> None:
    with pytest.raises(ValueError, match="nested too deeply"):
        merged_text("a = " + "[" * 20_000 + "]" * 20_000, CLIENTS["codex"], "s", ENTRY)


def test_a_file_that_is_too_large_to_edit_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    with file.open("wb") as stream:
        stream.truncate(16 * 1024 * 1024 + 1)
    with pytest.raises(Failure, match="larger than 16 MiB"):
        read(file)


@pytest.mark.parametrize("before", ["# mine\r\n[mcp_servers.a]\r\ncommand = 'b'\r\n", "\ufeffmodel = 'x' # mine\r\n"])
def test_a_new_table_has_the_line_ends_of_the_file(before: str) -> None:
    merged = merged_text(before, CLIENTS["codex"], "s", ENTRY)
    assert merged.startswith(before)
    assert merged.count("\r\n") == merged.count("\n")
    assert 'command = "python"' in merged


def test_an_error_leaves_no_backup_beside_an_unchanged_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    file = tmp_path / "mcp.json"
    file.write_text("old")
    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(Failure, match=r"No space left on device\. The file is unchanged"):
        write(file, "old", "new")
    assert [path.name for path in tmp_path.iterdir()] == ["mcp.json"]
