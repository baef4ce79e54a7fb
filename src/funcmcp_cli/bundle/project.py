"""The project that ``funcmcp bundle`` packs: what pyproject.toml, or the metadata of a script, says about it.

Sources: "Writing your pyproject.toml" and PEP 621 (the table [project]), PEP 723 (metadata of a script).
"""

from __future__ import annotations

import json
import math
import re
import tomllib
from dataclasses import dataclass, fields
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet

from funcmcp._text.files import read_text
from funcmcp_cli.failure import Failure
from funcmcp_cli.json_values import as_list, as_object

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from funcmcp_cli.targets import Target

_SCRIPT_BEGIN, _SCRIPT_END = "# /// script", "# ///"
"""The lines around the metadata of a script, by PEP 723."""

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TYPES: dict[str, type] = {"string": str, "number": int, "boolean": bool, "file": str, "directory": str}
_MEMBERS: dict[str, type] = {
    "title": str, "description": str, "type": str, "required": bool, "secret": bool, "choices": list,
}  # fmt: skip
_WORDS: dict[type, str] = {str: "a text", bool: "true or false", list: "an array", int: "a number"}
_OLDER_PYTHONS = [f"3.{minor}.99" for minor in range(11)]
_TABLE = "[tool.funcmcp.bundle]"


@dataclass(frozen=True, slots=True)
class Setting:
    """A value that the user of a bundle sets, and that the server reads from an environment variable.

    Attributes:
        variable: The name of the environment variable.
        title: A name for people.
        description: What the value is for.
        type: "string", "number", "boolean", "file" or "directory".
        required: Whether the server does not start without it.
        secret: Whether clients hide the value and keep it in a store of secrets. Only for texts.
        default: The value if the user sets none. None without a default.
        choices: The possible values, for registries. Empty for any value.
    """

    variable: str
    title: str = ""
    description: str = ""
    type: str = "string"
    required: bool = False
    secret: bool = False
    default: str | float | bool | None = None
    choices: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """The name of the setting in a manifest."""
        return self.variable.lower()


@dataclass(frozen=True, slots=True)
class BundleOptions:
    """The table [tool.funcmcp.bundle].

    Attributes:
        title: A name for people.
        description: What the server is for, if [project] does not say it.
        author: The author's name, if [project] does not have it.
        name: The name in file names and in the manifest, if [project] does not have it.
        version: The version, if [project] does not have it.
        icon: A PNG file in the project's folder.
        exclude: Patterns of files that are left out, as in .gitignore.
        registry_name: The name in a registry, such as "io.github.acme/orders".
        download_url: The URL of the bundle, with ``{version}`` in it.
        remote_url: The endpoint of the server that the author runs.
        settings: The user's settings by environment variable.
    """

    title: str = ""
    description: str = ""
    author: str = ""
    name: str = ""
    version: str = ""
    icon: str = ""
    exclude: tuple[str, ...] = ()
    registry_name: str = ""
    download_url: str = ""
    remote_url: str = ""
    settings: tuple[Setting, ...] = ()


@dataclass(frozen=True, slots=True)
class Project:
    """A project as its metadata describe it.

    Attributes:
        folder: The folder that is packed.
        metadata: The table [project].
        options: The table [tool.funcmcp.bundle].
        script: The only file that is packed. None for the folder.
        pyproject: The text of the pyproject.toml that the bundle gets. None if the folder has the file.
    """

    folder: Path
    metadata: Mapping[str, Any]
    options: BundleOptions
    script: Path | None = None
    pyproject: str | None = None


def project_of(place: Target) -> Project:
    """Return the project of a server.

    Raises:
        Failure: There is no project, or it can't be read.
    """
    project = find_project(place)
    if project is None:
        raise Failure(
            f"{place.text} has no dependencies that a bundle can install. Write a pyproject.toml with [project], or "
            "put '# /// script' with dependencies into the file."
        )
    return project


def find_project(place: Target) -> Project | None:
    """Return the project of a server, or None if there is none.

    Raises:
        Failure: Its metadata is not valid, or its dependencies are in a file that has more than requirements.
    """
    if place.file is not None:
        metadata = _script_metadata(_text(place.file), place.file)
        if metadata is not None:
            return _script_project(place.file, metadata)
    for folder in (place.root, *place.root.parents):
        file = folder / "pyproject.toml"
        if file.is_file():
            document = _toml(_text(file), file)
            table = as_object(document.get("project"))
            if table:
                _check_python(table, file)
                _check_dependencies(table, file)
                return Project(folder, table, _options(document, file))
        requirements = folder / "requirements.txt"
        if requirements.is_file():
            table = {"dependencies": _requirements(requirements)}
            options = _options(_toml(_text(file), file), file) if file.is_file() else BundleOptions()
            return Project(folder, table, options, pyproject="")
    return None


def _check_python(table: Mapping[str, Any], file: Path) -> None:
    """Raise Failure if a project allows versions of Python that funcmcp does not: uv would find no solution."""
    try:
        allowed = SpecifierSet(str(table.get("requires-python", ">=3.11")))
    except InvalidSpecifier as error:
        raise Failure(f"{file}: requires-python is not valid: {error}.") from error
    if any(allowed.contains(version) for version in _OLDER_PYTHONS):
        raise Failure(
            f"{file}: requires-python allows versions below 3.11, which funcmcp does not run on. Write >=3.11."
        )


def _check_dependencies(table: Mapping[str, Any], file: Path) -> None:
    """Raise Failure if a dependency of a project or a script is not a requirement, such as an option of pip."""
    for dependency in as_list(table.get("dependencies")):
        try:
            Requirement(str(dependency))
        except InvalidRequirement as error:
            raise Failure(f"{file}: {dependency!r} in dependencies is not a requirement, such as rich>=13.") from error


def _script_project(file: Path, metadata: dict[str, Any]) -> Project:
    _check_python(metadata, file)
    _check_dependencies(metadata, file)
    names = {"dependencies", "requires-python"}
    table = {name: value for name, value in metadata.items() if name in names}
    return Project(file.parent, table, _options(metadata, file), script=file, pyproject="")


def _script_metadata(text: str, file: Path) -> dict[str, Any] | None:
    """Return the metadata of a script; None if it has none."""
    lines = text.splitlines()
    if _SCRIPT_BEGIN not in lines:
        return None
    comments: list[str] = []
    for line in lines[lines.index(_SCRIPT_BEGIN) + 1 :]:
        if line == _SCRIPT_END:
            return _toml("\n".join(comment.removeprefix("#").removeprefix(" ") for comment in comments), file)
        if not line.startswith("#"):
            break
        comments.append(line)
    raise Failure(f"{file}: the metadata of the script has no end. Write '{_SCRIPT_END}' in a line below it.")


def _requirements(file: Path) -> list[str]:
    """Return the requirements in a file for pip."""
    requirements = []
    for number, line in enumerate(_text(file).splitlines(), 1):
        text = re.sub(r"(^|\s)#.*", "", line).strip()
        if not text:
            continue
        try:
            requirements.append(str(Requirement(text)))
        except InvalidRequirement as error:
            raise Failure(
                f"{file}, line {number} is not a requirement. Write the dependencies into [project] of pyproject.toml."
            ) from error
    return requirements


def _text(file: Path) -> str:
    try:
        return read_text(file)
    except UnicodeDecodeError as error:
        raise Failure(f"{file} can't be read: it is not UTF-8.") from error
    except OSError as error:
        raise Failure(f"{file} can't be read: {error.strerror}.") from error


def _toml(text: str, file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise Failure(f"{file} is not valid TOML: {error}.") from error
    except RecursionError as error:
        raise Failure(f"{file} is nested too deeply.") from error


def _options(document: Mapping[str, Any], file: Path) -> BundleOptions:
    """Return the options of a document; raise Failure for one that is unknown or has a wrong value."""
    table = as_object(as_object(as_object(document.get("tool")).get("funcmcp")).get("bundle"))
    values: dict[str, Any] = {}
    for key, value in table.items():
        _check_name(key, BundleOptions, file, _TABLE)
        if key == "settings":
            values["settings"] = _settings(as_object(value), file)
        elif key == "exclude":
            values["exclude"] = tuple(str(pattern) for pattern in as_list(value))
        elif isinstance(value, str):
            values[key.replace("-", "_")] = value
        else:
            raise Failure(f"{file}: {key} of {_TABLE} must be a text.")
    return BundleOptions(**values)


def _settings(table: Mapping[str, Any], file: Path) -> tuple[Setting, ...]:
    """Return the settings of a table; raise Failure if two names differ only in case: a manifest has them as one."""
    settings = tuple(_setting(name, entry, file) for name, entry in table.items())
    variables: dict[str, str] = {}
    for setting in settings:
        other = variables.setdefault(setting.key, setting.variable)
        if other != setting.variable:
            raise Failure(f"{file}: {other} and {setting.variable} in {_TABLE} settings differ only in case.")
    return settings


def _setting(variable: str, value: Any, file: Path) -> Setting:
    place = f"[tool.funcmcp.bundle.settings.{variable}]"
    if not _VARIABLE.fullmatch(variable):
        raise Failure(f"{file}: {variable!r} in {_TABLE} settings is not the name of an environment variable.")
    if not isinstance(value, dict):
        raise Failure(f"{file}: {place} must be a table, such as {{ description = '...' }}.")
    for key, member in value.items():
        _check_name(key, Setting, file, place)
        if key in _MEMBERS and not isinstance(member, _MEMBERS[key]):
            raise Failure(f"{file}: {key} of {place} must be {_WORDS[_MEMBERS[key]]}.")
    choices = tuple(map(_choice, value.get("choices", [])))
    _check_default(value, choices, file, place)
    return Setting(variable, **{**value, "choices": choices})


def _choice(value: Any) -> str:
    return json.dumps(value) if isinstance(value, bool) else str(value)


def _check_default(setting: dict[str, Any], choices: tuple[str, ...], file: Path, place: str) -> None:
    """Raise Failure if the type of a setting is unknown, or its default does not fit it, is no choice or is secret."""
    kind, default, is_secret = setting.get("type", "string"), setting.get("default"), setting.get("secret")
    if kind not in _TYPES:
        raise Failure(f"{file}: type of {place} must be one of {', '.join(_TYPES)}.")
    if is_secret and kind != "string":
        raise Failure(f"{file}: {place} is secret, so its type must be string.")
    if is_secret and default:
        raise Failure(f"{file}: {place} is secret, so it has no default: everybody who has the bundle could read it.")
    if default is not None and not _fits(default, kind):
        raise Failure(f"{file}: default of {place} must be {_WORDS[_TYPES[kind]]}.")
    if choices and isinstance(default, str) and default not in choices:
        raise Failure(f"{file}: default of {place} must be one of its choices: {', '.join(choices)}.")


def _fits(default: Any, kind: str) -> bool:
    if kind == "number":
        return isinstance(default, int | float) and not isinstance(default, bool) and math.isfinite(default)
    return isinstance(default, _TYPES[kind])


def _check_name(key: str, table: type, file: Path, place: str) -> None:
    """Raise Failure with the closest name if a table has no such option."""
    names = [field.name.replace("_", "-") for field in fields(table) if field.name != "variable"]
    if key not in names:
        similar = get_close_matches(key, names, 1)
        advice = f"Did you mean {similar[0]}? " if similar else ""
        raise Failure(f"{file}: unknown option {key!r} in {place}. {advice}Valid options: {', '.join(names)}.")
