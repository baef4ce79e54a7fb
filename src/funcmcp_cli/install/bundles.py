"""A server in a bundle (.mcpb), as ``funcmcp install`` adds it to the configuration of a client.

Source: modelcontextprotocol/mcpb, MANIFEST.md: the command, its variables and the user's settings.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from funcmcp._text.visible import visible_line
from funcmcp_cli.bundle.archive import MANIFEST, read_bundle, unpack
from funcmcp_cli.failure import Failure
from funcmcp_cli.home_folder import home_folder
from funcmcp_cli.install.entries import ServerDescription
from funcmcp_cli.install.servers import checked_name, slug, uv_program, variable_of
from funcmcp_cli.json_values import as_list, as_object

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_SUFFIXES = (".mcpb", ".dxt")
_REFERENCE = re.compile(r"\$\{([^${}]+)\}")
_SETTING = "user_config."
_VERSION = re.compile(r"0\.\d+")
_LONGEST = 100
"""Characters of a name that are shown."""


@dataclass(frozen=True, slots=True)
class Bundle:
    """A bundle and where it is unpacked.

    Attributes:
        file: The bundle.
        folder: The folder for its contents.
        manifest: The manifest.
        names: The names of its files.
    """

    file: Path
    folder: Path
    manifest: Mapping[str, Any]
    names: frozenset[str]

    @property
    def settings(self) -> Mapping[str, Any]:
        """The settings of the user, by their keys."""
        return as_object(self.manifest.get("user_config"))

    def unpack(self) -> str:
        """Unpack the bundle, and return what it is and what a client will run.

        Raises:
            Failure: It can't be unpacked, or another bundle is in its folder.
        """
        name, author = _name_and_author(self.manifest)
        earlier = self.folder / MANIFEST
        if earlier.is_file():
            earlier_name, earlier_author = _name_and_author(_manifest(earlier.read_bytes(), earlier))
            if (earlier_name, earlier_author) != (name, author):
                raise Failure(
                    f"{self.folder} has another bundle, {earlier_name} by {earlier_author}. "
                    f"Clients may run it. Remove the folder to replace it with {name} by {author}."
                )
        unpack(self.file, self.folder)
        config = _config(self)
        command = shlex.join([str(config["command"]), *map(str, as_list(config.get("args")))])
        version = _line(self.manifest.get("version"))
        return f"Unpacked {name} {version} by {author} to {self.folder}. It runs: {visible_line(command)}"


def _name_and_author(manifest: Mapping[str, Any]) -> tuple[str, str]:
    author = as_object(manifest.get("author")).get("name", "an unknown author")
    return _line(manifest.get("name")), _line(author)


def _line(value: Any) -> str:
    """Return a value of a manifest as a part of a line."""
    return visible_line(str(value))[:_LONGEST]


def is_bundle(target: str) -> bool:
    """Return whether a target is a bundle and not a server of Python."""
    return target.lower().endswith(_SUFFIXES) and "://" not in target


def open_bundle(target: str) -> Bundle:
    """Return a bundle; raise Failure if it is not one, or not for this machine."""
    file = Path(target).absolute()
    text, names = read_bundle(file)
    manifest = _manifest(text, file)
    version = str(manifest.get("manifest_version") or manifest.get("dxt_version") or "")
    if not _VERSION.fullmatch(version):
        raise Failure(f"{file} has manifest version {version!r}. Supported versions are 0.1 and later, below 1.")
    platforms = as_list(as_object(manifest.get("compatibility")).get("platforms"))
    if platforms and sys.platform not in platforms:
        raise Failure(f"{file} is for {_line(', '.join(map(str, platforms)))}, and this machine is {sys.platform}.")
    folder = _bundles(sys.platform, os.environ, home_folder()) / slug(str(manifest.get("name", "")))
    return Bundle(file, folder, manifest, frozenset(names))


def _manifest(text: bytes, file: Path) -> Mapping[str, Any]:
    try:
        return as_object(json.loads(text.decode("utf-8-sig")))
    except (ValueError, RecursionError) as error:
        raise Failure(f"{file} has a {MANIFEST} that is not JSON: {error}.") from error


def _bundles(platform: str, environ: Mapping[str, str], home: Path) -> Path:
    """Return the folder in which bundles are unpacked."""
    data = Path(environ.get("XDG_DATA_HOME") or home / ".local" / "share")
    if platform == "win32":
        data = Path(environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
    elif platform == "darwin":
        data = home / "Library" / "Application Support"
    return data / "funcmcp" / "bundles"


def server_in(bundle: Bundle, name: str | None, env: Sequence[str]) -> ServerDescription:
    """Return the server of a bundle.

    Args:
        bundle: The bundle.
        name: The name of the entry. None takes that of the bundle.
        env: The user's settings, as ``NAME=VALUE``: NAME is an environment variable of the server, or the key of a
            setting that is a part of the command.

    Raises:
        Failure: A setting is missing, or the program of the server is not on this machine.
    """
    passed = dict(map(variable_of, env))
    config = _config(bundle)
    values = _values(bundle, passed)
    missing: list[str] = []
    variables = _variables(bundle, as_object(config.get("env")), passed, values, missing)
    arguments: list[str] = []
    for template in map(str, as_list(config.get("args"))):
        keys = _missing(bundle, template, values)
        missing += [key for key in keys if _is_required(bundle, key)]
        if not keys:
            arguments += _argument(bundle, template, values)
    if missing:
        options = " ".join(f"--env {_line(key)}=..." for key in dict.fromkeys(missing))
        raise Failure(f"{bundle.file.name} needs settings of its user. Pass {options}")
    command = (_program(bundle, _filled(str(config.get("command", "")), values)), *arguments)
    entry_name = checked_name(name or slug(str(bundle.manifest.get("name", ""))))
    return ServerDescription(entry_name, command, env=variables)


def _variables(
    bundle: Bundle,
    templates: Mapping[str, Any],
    passed: Mapping[str, str],
    values: Mapping[str, list[str]],
    missing: list[str],
) -> dict[str, str]:
    """Return the environment variables of the server, and add those that its user must give to *missing*."""
    variables: dict[str, str] = {}
    for variable, template in templates.items():
        keys = _missing(bundle, str(template), values)
        if variable in passed:
            variables[variable] = passed[variable]
        elif not keys:
            variables[variable] = _filled(str(template), values)
        elif any(_is_required(bundle, key) for key in keys):
            missing.append(variable)
    return {key: value for key, value in passed.items() if key not in bundle.settings} | variables


def _config(bundle: Bundle) -> dict[str, Any]:
    """Return the command of a bundle for this platform."""
    server = as_object(bundle.manifest.get("server"))
    config = as_object(server.get("mcp_config"))
    if not config and server.get("type") == "uv":  # the host decides how it runs such a server
        config = {"command": "uv", "args": ["run", "--directory", "${__dirname}", str(server.get("entry_point"))]}
    if not isinstance(config.get("command"), str) or not config["command"]:
        raise Failure(f"{bundle.file} has no command in {MANIFEST}: server.mcp_config.command is missing.")
    override = as_object(as_object(config.get("platform_overrides")).get(sys.platform))
    return {**config, **override}


def _values(bundle: Bundle, passed: Mapping[str, str]) -> dict[str, list[str]]:
    """Return what the variables of a manifest stand for. A setting with several values has several texts."""
    home = home_folder()
    values = {
        "__dirname": [str(bundle.folder)],
        "HOME": [str(home)],
        "DESKTOP": [str(home / "Desktop")],
        "DOCUMENTS": [str(home / "Documents")],
        "DOWNLOADS": [str(home / "Downloads")],
        "pathSeparator": [os.sep],
        "/": [os.sep],
    }
    fixed = dict(values)
    for key, setting in bundle.settings.items():
        default = as_object(setting).get("default")
        if key in passed:
            values[_SETTING + key] = [passed[key]]
        elif default is not None:
            texts = default if isinstance(default, list) else [default]
            values[_SETTING + key] = [_filled(_text(text), fixed) for text in texts]
    return values


def _text(value: Any) -> str:
    return json.dumps(value) if isinstance(value, bool) else str(value)


def _missing(bundle: Bundle, template: str, values: Mapping[str, list[str]]) -> list[str]:
    """Return the keys of settings in a template that have no value."""
    keys = [name.removeprefix(_SETTING) for name in _REFERENCE.findall(template) if name.startswith(_SETTING)]
    for key in keys:
        if key not in bundle.settings:
            raise Failure(f"{bundle.file} is not valid: its command refers to {key!r}, which is not a setting.")
    return [key for key in keys if _SETTING + key not in values]


def _is_required(bundle: Bundle, key: str) -> bool:
    return as_object(bundle.settings.get(key)).get("required") is True


def _filled(template: str, values: Mapping[str, list[str]]) -> str:
    """Return a template with the values of its variables. Other references stay as they are."""
    return _REFERENCE.sub(lambda match: " ".join(values.get(match[1], [match[0]])), template)


def _argument(bundle: Bundle, template: str, values: Mapping[str, list[str]]) -> list[str]:
    """Return the arguments for a template: several, if it is a setting with several values."""
    match = _REFERENCE.fullmatch(template)
    if match is not None and match[1] in values:
        return values[match[1]]
    text = _filled(template, values)
    return [str(bundle.folder / text) if text in bundle.names else text]


def _program(bundle: Bundle, command: str) -> str:
    """Return the program of a command as an absolute path: clients start it in a folder of their own."""
    for name in (command, f"{command}.exe"):
        inside = name.removeprefix(f"{bundle.folder}{os.sep}").replace(os.sep, "/").removeprefix("./")
        if inside in bundle.names:
            return str(bundle.folder / inside)
    if command in {"python", "python3"}:
        return str(Path(sys.executable).absolute())
    program = uv_program() if command == "uv" else shutil.which(command)
    if program is None:
        raise Failure(f"{bundle.file.name} runs {_line(command)}, which is not on PATH. Install it first.")
    return str(Path(program).absolute())
