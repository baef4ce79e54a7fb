"""New projects: what ``funcmcp new`` writes, from the templates beside this file.

Source: "Azure Functions Python developer guide" (the folder), "host.json reference", "Self-hosted remote MCP server on
Azure Functions" (the profile mcp-custom-handler), and the schema of azure.yaml (the name).
"""

from __future__ import annotations

import re
import secrets
import shutil
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Literal, TypeAlias

from funcmcp import __version__
from funcmcp.cli.failure import Failure

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable
    from pathlib import Path

Hosting: TypeAlias = Literal["http", "triggers", "self-hosted"]

PYTHON = "3.13"
"""The version of Python that a new project runs on in Azure."""

_NAME = re.compile(r"[a-z](?!.*--)[a-z0-9-]*[a-z0-9]")
_MIN_NAME, _MAX_NAME = 2, 32
_RESERVED = {"aux", "con", "nul", "prn", *(f"{port}{number}" for port in ("com", "lpt") for number in range(10))}
_SUFFIX = ".template"  # so that no tool takes a template for what it becomes
_DOTTED = {"gitignore", "funcignore"}


@dataclass(frozen=True, slots=True)
class _Plan:
    """What differs between hostings.

    Attributes:
        layers: folders of templates; a project gets the files of all of them, of two with one name the later one.
        extras: of funcmcp that the app needs.
        endpoint: the path of the endpoint on Azure.
        key: where ``az functionapp keys list`` shows the key that callers need.
        sign_in: what to know when callers sign in.
    """

    layers: tuple[str, ...]
    extras: str
    endpoint: str
    key: str
    sign_in: str


_OWN_SIGN_IN = (
    'The server itself checks the tokens (`sign_in.py`), so a tool can ask for scopes: `@mcp.tool(scopes=["..."])`.'
)
_PLANS: dict[str, _Plan] = {
    "http": _Plan(("common", "sign_in", "http"), "azure,auth", "/mcp", "functionKeys.default", _OWN_SIGN_IN),
    "triggers": _Plan(
        ("common", "triggers"),
        "azure",
        "/runtime/webhooks/mcp",
        "systemKeys.mcp_extension",
        "Azure checks the tokens before it calls the app: the tenant's users may call every tool, through the client\n"
        "applications in `ENTRA_CLIENTS` (`azd env set ENTRA_CLIENTS <id>,<id>`). Without it: Visual Studio Code.",
    ),
    "self-hosted": _Plan(
        ("common", "sign_in", "self-hosted"), "server,auth", "/mcp", "functionKeys.default", _OWN_SIGN_IN
    ),
}


def create(name: str, parent: Path, hosting: Hosting) -> Path:
    """Write a new project and return its folder. Either all of it is there afterwards, or nothing.

    Args:
        name: of the project, its folder and its azd application.
        parent: the folder that it is made in.
        hosting: how Azure is to serve it.

    Raises:
        Failure: the name can't be one, something of that name is there, or the folder can't be written.
    """
    _check(name)
    target = parent / name
    if target.exists():
        raise Failure(f"{name} is there already. Choose another name, or remove it first.")
    draft = parent / f".{name}-{secrets.token_hex(4)}"
    try:
        _write(draft, _PLANS[hosting], _words(name, _PLANS[hosting]))
        draft.rename(target)
    except OSError as error:
        raise Failure(f"{target} can't be written: {error.strerror}.") from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)  # gone already where all went well
    return target


def title_of(name: str) -> str:
    """Return a project's name as people read it: ``order-desk`` is "Order Desk"."""
    return name.replace("-", " ").title()


def versions(version: str) -> str:
    """Return the range of funcmcp's versions that keep what a version promises: up to the next minor one before 1.0."""
    major, minor, *_ = version.split(".")
    return f">={version},<{int(major) + 1}" if int(major) else f">={version},<0.{int(minor) + 1}"


def _check(name: str) -> None:
    if not _NAME.fullmatch(name) or not _MIN_NAME <= len(name) <= _MAX_NAME:
        raise Failure(
            f"{name!r} can't be the name: take {_MIN_NAME} to {_MAX_NAME} lower-case letters, digits and single "
            "hyphens, with a letter first, such as order-desk."
        )
    if name in _RESERVED:
        raise Failure(f"{name!r} is a name that Windows keeps for itself. Choose another one.")


def _words(name: str, plan: _Plan) -> dict[str, str]:
    """Return what stands in the templates for ``{{word}}``."""
    return {
        "name": name,
        "title": title_of(name),
        "extras": plan.extras,
        "versions": versions(__version__),
        "python": PYTHON,
        "endpoint": plan.endpoint,
        "key_command": (
            "az functionapp keys list --resource-group rg-<environment> "
            f'--name "$(azd env get-value AZURE_FUNCTION_NAME)" --query {plan.key} --output tsv'
        ),
        "sign_in_note": plan.sign_in,
    }


def _write(folder: Path, plan: _Plan, words: dict[str, str]) -> None:
    templates = files("funcmcp.cli") / "templates"
    for layer in plan.layers:
        _fill(templates / layer, folder, words)


def _fill(source: Traversable, target: Path, words: dict[str, str]) -> None:
    """Write the files of a folder of templates, and of the folders in it."""
    target.mkdir(exist_ok=True)
    for entry in source.iterdir():
        if entry.is_dir():
            _fill(entry, target / entry.name, words)
            continue
        name = entry.name.removesuffix(_SUFFIX)
        text = entry.read_text(encoding="utf-8")
        for word, value in words.items():
            text = text.replace("{{" + word + "}}", value)
        (target / (f".{name}" if name in _DOTTED else name)).write_text(text, encoding="utf-8", newline="\n")
