"""The configuration files of clients: a server's entry is merged into the text, and the file is replaced at once."""

from __future__ import annotations

import difflib
import io
import os
import re
import shutil
import stat
import tempfile
import tomllib
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from funcmcp._text.files import read_bytes
from funcmcp._text.jsonc import parse
from funcmcp_cli.failure import Failure
from funcmcp_cli.install.entries import MEMBERS, VARIABLES
from funcmcp_cli.install.json_edits import append_items, set_member
from funcmcp_cli.json_values import as_list

if TYPE_CHECKING:
    from collections.abc import Mapping

    from funcmcp._page.mcp_clients import ClientProfile
    from funcmcp_cli.install.entries import Entry

_BOM = "\ufeff"
_MAX_BYTES = 16 * 1024 * 1024  # an edit takes about a second for each MiB
_BACKUP_SUFFIX = re.compile(r"\.\d{8}-\d{6}-\d{6}\.bak")


def user_file(client: ClientProfile, platform: str, environ: Mapping[str, str], home: Path) -> Path:
    """Return the file with the servers of all projects of one user.

    Args:
        client: The client.
        platform: The platform, as in `sys.platform`.
        environ: The environment variables.
        home: The user's folder.
    """
    template = client.user_file
    config = Path(environ.get("XDG_CONFIG_HOME") or home / ".config")
    if platform == "win32":
        template = client.windows_user_file or template
        config = Path(environ.get("APPDATA") or home / "AppData" / "Roaming")
    elif platform == "darwin":
        template = client.mac_user_file or template
        config = home / "Library" / "Application Support"
    if client.home_variable and environ.get(client.home_variable):
        return Path(environ[client.home_variable], Path(template).name)
    return Path(template.format(home=home, config=config))


def configuration_text(client: ClientProfile, name: str, entry: Entry) -> str:
    """Return the text of a configuration that has one server only."""
    return merged_text("", client, name, entry)


def read(file: Path) -> str:
    """Return the text of a configuration file, with its line ends. Return "" if the file does not exist.

    Raises:
        Failure: The file cannot be read, is not a regular file, is too large, or is not UTF-8.
    """
    try:
        return read_bytes(file, _MAX_BYTES).decode()
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise Failure(f"{file} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise Failure(f"{file} is not UTF-8 text. The file is unchanged; save it as UTF-8 first.") from error


def merged_text(text: str, client: ClientProfile, name: str, entry: Entry) -> str:
    """Return the text of a configuration with a server's entry. All other entries and comments are unchanged.

    Raises:
        ValueError: The text is not a configuration in the client's format.
    """
    bom = _BOM if text.startswith(_BOM) else ""
    text = text.removeprefix(_BOM)
    if client.format == "toml":
        return bom + _merged_toml(text, client.servers[0], name, entry.members)
    return bom + _merged_json(text, client, name, entry)


def _merged_json(text: str, client: ClientProfile, name: str, entry: Entry) -> str:
    comments = client.has_comments
    if not text.strip():
        text = "{}\n"
    expected = parse(text, comments=comments).value
    servers = expected
    for member in client.servers:
        servers = servers.setdefault(member, {}) if isinstance(servers, dict) else {}
    if isinstance(servers, dict):
        servers[name] = _merged_entry(servers.get(name), entry.members)
        text = set_member(text, [*client.servers, name], servers[name], comments=comments)
    else:  # set_member() raises the error that names the place
        set_member(text, [*client.servers, name], entry.members, comments=comments)
    known_inputs = [
        user_input.get("id") for user_input in as_list(expected.get("inputs")) if isinstance(user_input, dict)
    ]
    inputs = [user_input for user_input in entry.inputs if user_input["id"] not in known_inputs]
    if inputs:
        text = append_items(text, "inputs", inputs, comments=comments)
        expected["inputs"] = [*expected.get("inputs", []), *inputs]
    if parse(text, comments=comments).value != expected:
        raise ValueError("its text cannot be edited without changing other values")
    return text


def _merged_entry(existing: object, members: dict[str, Any]) -> dict[str, Any]:
    """Return an entry with new members. It keeps the members of the existing one that are the user's choices.

    Environment variables and header fields that are not given anew stay, too, unless the entry changes between a
    command and a URL.
    """
    if not isinstance(existing, dict):
        return members
    remaining = {key: value for key, value in existing.items() if key not in MEMBERS and key not in members}
    if ("command" in existing) != ("command" in members):
        return {**members, **remaining}
    merged = {key: _merged_variables(existing[key], members.get(key)) for key in VARIABLES & existing.keys()}
    return {**members, **merged, **remaining}


def _merged_variables(before: Any, after: Any) -> Any:
    """Return the variables or fields of an entry, with new ones; None for *after* if there are none."""
    if after is None:
        return before
    if isinstance(before, dict) and isinstance(after, dict):
        return {**before, **after}
    if isinstance(before, list) and isinstance(after, list):
        return [*before, *(item for item in after if item not in before)]
    return after


def _merged_toml(text: str, servers_name: str, name: str, members: dict[str, Any]) -> str:
    import tomlkit  # noqa: PLC0415 - one client's files are TOML
    from tomlkit.exceptions import TOMLKitError  # noqa: PLC0415 - as above
    from tomlkit.items import InlineTable  # noqa: PLC0415 - as above

    try:
        expected = tomllib.loads(text)
        document = tomlkit.parse(text)
    except (tomllib.TOMLDecodeError, TOMLKitError) as error:
        raise ValueError(str(error)) from error
    except RecursionError as error:
        raise ValueError("the values are nested too deeply") from error
    servers = expected.setdefault(servers_name, {})
    if not isinstance(servers, dict):
        raise ValueError(f"{servers_name} is not a table")  # noqa: TRY004 - as for other faults of the text
    servers[name] = _merged_entry(servers.get(name), members)
    if servers_name not in document:
        document[servers_name] = tomlkit.table(is_super_table=True)
    parent: Any = document[servers_name]
    table = tomlkit.inline_table() if isinstance(parent, InlineTable) else tomlkit.table()
    for key, value in servers[name].items():
        table[key] = _toml_value(value)
    parent[name] = table
    merged = tomlkit.dumps(document)
    if "\r\n" in text and text.count("\r\n") == text.count("\n"):
        merged = re.sub("\r?\n", "\r\n", merged)
    if tomllib.loads(merged) != expected:
        raise ValueError("its text cannot be edited without changing other values")
    return merged


def _toml_value(value: Any) -> Any:
    """Return a value for tomlkit. Objects are written on one line, so that the entry stays one table."""
    import tomlkit  # noqa: PLC0415 - as above

    if not isinstance(value, dict):
        return value
    table = tomlkit.inline_table()
    table.update(value)
    return table


def difference(file: Path, before: str, after: str) -> str:
    """Return the change of a file as a unified diff."""
    old, new = (list(io.StringIO(text, newline="\n")) for text in (before, after))
    lines = difflib.unified_diff(old, new, str(file), str(file), n=3)
    return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)


def write(file: Path, before: str, after: str) -> Path | None:
    """Replace a configuration file at once, and return the backup of the previous one. Return None for a new file.

    The file may contain secrets, so other users of the machine cannot read it afterwards. The new backup, which only
    the owner can read, replaces the earlier ones.

    Raises:
        Failure: The file cannot be written, or another program changed it since it was read. It is unchanged then.
    """
    target = file.resolve()  # a link to the file stays a link
    temporary = ""
    backup = None
    is_written = False
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(prefix=f".{target.name}-", dir=target.parent)
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as stream:
            stream.write(after)
            stream.flush()
            os.fsync(stream.fileno())
        if read(target) != before:
            raise Failure(f"{file} was changed by another program. Run the command again.")
        if target.exists():
            Path(temporary).chmod(target.stat().st_mode & ~stat.S_IRWXO)
            backup = target.with_name(f"{target.name}.{datetime.now():%Y%m%d-%H%M%S-%f}.bak")  # noqa: DTZ005 - a name
            os.close(os.open(backup, os.O_CREAT | os.O_EXCL, 0o600))
            shutil.copyfile(target, backup)
        Path(temporary).replace(target)
        is_written = True
        for old in _backups(target):
            if old != backup:
                old.unlink()
    except OSError as error:
        raise Failure(f"{file} cannot be written: {error.strerror}. The file is unchanged.") from error
    finally:
        if temporary:
            Path(temporary).unlink(missing_ok=True)  # after a success it has the file's name
        if backup is not None and not is_written:
            backup.unlink(missing_ok=True)
    return backup


def _backups(target: Path) -> list[Path]:
    """Return the backups of a file that `write` made."""
    name = target.name
    return [
        path
        for path in target.parent.iterdir()
        if path.name.startswith(name) and _BACKUP_SUFFIX.fullmatch(path.name.removeprefix(name))
    ]
