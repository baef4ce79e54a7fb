"""A function app as the rules see it: its files, and the bindings of its functions.

`read_app` makes one from the files of a folder and from what a worker, or an import, says of the functions. The command
line and the functions host both use it, so that both judge the same.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from funcmcp._adapters.azure.settings import at
from funcmcp._objects.mappings import lower_names
from funcmcp._text.files import read_text
from funcmcp_host.folder import FolderError, read_json
from funcmcp_host.function_json import FunctionFolder, function_folders
from funcmcp_host.json_texts import loads

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

_OVERRIDE = "azurefunctionsjobhost__"
_COMMENT = re.compile(r"^[ \t]*(//|#|@description).*$", re.MULTILINE)


class AppFunction(NamedTuple):
    """A function of an app.

    Attributes:
        name: Its name in the app.
        bindings: Its bindings, with the names of their members in lower case.
    """

    name: str
    bindings: Sequence[Mapping[str, Any]]

    @property
    def mcp_bindings(self) -> list[Mapping[str, Any]]:
        """The bindings of Azure's MCP extension."""
        return [binding for binding in self.bindings if kind_of(binding).startswith("mcp")]

    @property
    def http_trigger(self) -> Mapping[str, Any] | None:
        """Its HTTP trigger, or None."""
        return next((binding for binding in self.bindings if kind_of(binding) == "httptrigger"), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class App:
    """A function app.

    Attributes:
        folder: Its folder.
        host: The content of host.json; empty if the file is missing or not valid.
        settings: The app settings in local.settings.json; None if the file is missing or not valid.
        functions: Its functions: those of its code, and those of its function.json files.
        folders: What is in its function.json files.
        infrastructure: The text of its Bicep and Terraform files, without comments.
        signs_in: Whether its own code asks callers to sign in; None if that is not known.
    """

    folder: Path
    host: Mapping[str, Any]
    settings: Mapping[str, str] | None = None
    functions: Sequence[AppFunction] = ()
    folders: Sequence[FunctionFolder] = ()
    infrastructure: str = ""
    signs_in: bool | None = None

    @property
    def has_custom_handler(self) -> bool:
        """Whether host.json starts a program of the app's own."""
        return at(self.host, "customHandler") is not None

    @property
    def mcp_functions(self) -> list[AppFunction]:
        """The functions with bindings of Azure's MCP extension."""
        return [function for function in self.functions if function.mcp_bindings]

    def value(self, *keys: str) -> Any:
        """Return a value of host.json, or of the app setting that replaces it."""
        name = _OVERRIDE + "__".join(keys).lower()
        for setting, text in (self.settings or {}).items():
            if setting.lower() == name:
                return text
        return at(self.host, *keys)


def read_app(
    folder: Path, functions: Mapping[str, Sequence[Mapping[str, Any] | str]], *, signs_in: bool | None = None
) -> App:
    """Return the app in a folder.

    Args:
        folder: The folder. Files that are missing or not valid count as empty; others say what is wrong with them.
        functions: By name, the bindings of the functions in its code, as objects or as their JSON.
        signs_in: Whether its own code asks callers to sign in; None if that is not known.
    """
    folders = function_folders(folder)
    described = {function.name: function.bindings for function in folders if not function.error}
    return App(
        folder=folder,
        host=_object_in(folder / "host.json") or {},
        settings=_settings_in(folder / "local.settings.json"),
        functions=[_function(name, bindings) for name, bindings in {**described, **functions}.items()],
        folders=folders,
        infrastructure=infrastructure_of(folder),
        signs_in=signs_in,
    )


def kind_of(binding: Mapping[str, Any]) -> str:
    """Return the type of a binding in lower case: the Functions host ignores its case."""
    return str(binding.get("type", "")).lower()


def items_of(binding: Mapping[str, Any], key: str) -> list[tuple[int, Mapping[str, Any]]]:
    """Return the objects in a list that a binding has, from 1 on; none if it is not a list of objects."""
    value = binding.get(key.lower())
    if isinstance(value, str):
        try:
            value = loads(value)
        except ValueError:
            value = None
    items = value if isinstance(value, list) else []
    return [(number, item) for number, item in enumerate(items, 1) if isinstance(item, dict)]


def is_set(binding: Mapping[str, Any], flag: str) -> bool:
    """Return whether a flag of a binding, or of host.json, is true."""
    return is_true(binding.get(flag.lower()))


def is_true(value: object) -> bool:
    """Return whether a value is true, as the Functions host reads it."""
    return value is True or str(value).lower() == "true"


def infrastructure_of(folder: Path) -> str:
    """Return the Bicep and Terraform files of an app as one text, without comments.

    They are in ``infra``, in the folder itself or beside the azure.yaml of a folder above.
    """
    for candidate in _folders_of_project(folder.resolve()):
        if (candidate / "infra").is_dir():
            files = sorted([*(candidate / "infra").rglob("*.bicep"), *(candidate / "infra").rglob("*.tf")])
            return _COMMENT.sub("", "\n".join(_text_in(file) for file in files))
    return ""


def _folders_of_project(folder: Path) -> Iterator[Path]:
    yield folder
    if (folder / "azure.yaml").is_file() or (folder / ".git").exists():
        return
    for parent in folder.parents:
        if (parent / "azure.yaml").is_file():
            yield parent
            return
        if (parent / ".git").exists():
            return


def _text_in(file: Path) -> str:
    try:
        return read_text(file)
    except (OSError, ValueError):
        return ""


def _function(name: str, bindings: Sequence[Mapping[str, Any] | str]) -> AppFunction:
    values = [_binding(binding) for binding in bindings]
    return AppFunction(name, [lower_names(value) for value in values if isinstance(value, dict)])


def _binding(binding: Mapping[str, Any] | str) -> Any:
    if not isinstance(binding, str):
        return dict(binding)
    try:
        return loads(binding)
    except ValueError:
        return None


def _object_in(file: Path) -> dict[str, Any] | None:
    try:
        return read_json(file)
    except FolderError:
        return None


def _settings_in(file: Path) -> dict[str, str] | None:
    content = _object_in(file)
    if content is None:
        return None
    values = at(content, "Values")
    members = values if isinstance(values, dict) else {}
    return {str(name): str(value) for name, value in members.items()}
