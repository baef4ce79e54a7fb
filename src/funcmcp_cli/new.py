"""New projects: ``funcmcp new`` writes them from the templates in this package.

Source: "Azure Functions Python developer guide" (the folder), "host.json reference", "Self-hosted remote MCP server on
Azure Functions" (the profile mcp-custom-handler), and the schema of azure.yaml (the name).
"""

from __future__ import annotations

import re
import secrets
import shutil
import tempfile
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from funcmcp import __version__
from funcmcp_cli.failure import Failure

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

Hosting: TypeAlias = Literal["http", "triggers", "self-hosted", "docker", "aca", "kubernetes", "systemd", "none"]
Access: TypeAlias = Literal["key", "entra"]

PYTHON = "3.13"
"""The version of Python that a new project runs on in Azure, or in its container."""

_NAME = re.compile(r"[a-z](?!.*--)[a-z0-9-]*[a-z0-9]")
_MIN_NAME_LENGTH, _MAX_NAME_LENGTH = 2, 32
_DEVICES = {"aux", "con", "nul", "prn", *(f"{port}{number}" for port in ("com", "lpt") for number in range(10))}
"""Names that Windows reserves for devices."""

_SUFFIX = ".template"
"""The suffix of templates. It prevents linters and test runners from reading them as Python files."""

_OF_NEW_PROJECTS = {
    "README.md", "pyproject.toml", "pytest.ini", "requirements-dev.txt", "server.py", "sign_in.py", "tests",
}  # fmt: skip
"""Files and folders that are not added to a server that exists."""

_DOTTED = {"dockerignore", "funcignore", "github", "gitignore"}
"""Templates of files and folders whose names begin with a dot."""


@dataclass(frozen=True, slots=True)
class _Plan:
    """The differences between hostings.

    Attributes:
        layers: The folders of templates. A file of a later folder replaces a file with the same name.
        package: The distribution of funcmcp that the app needs, with its extras.
        endpoint: The path of the endpoint on Azure.
        key: The place of the callers' key in the output of ``az functionapp keys list``.
        sign_in: The paragraph about sign-in in the project's README.
        access: The text about the access of callers in the README of a project for Azure Functions.
        deployments: The parts about the deployment in the README of a project that is not for Azure Functions.
    """

    layers: tuple[str, ...]
    package: str
    endpoint: str = ""
    key: str = ""
    sign_in: str = ""
    access: Access = "key"
    deployments: tuple[str, ...] = ()

    @property
    def is_for_functions(self) -> bool:
        """Whether the project is for Azure Functions."""
        return "common" in self.layers


_SERVER_SIGN_IN = (
    'The server itself validates the tokens (`sign_in.py`), so a tool can require scopes: `@mcp.tool(scopes=["..."])`.'
)
_PLANS: dict[str, _Plan] = {
    "http": _Plan(
        ("base", "common", "sign_in", "http"),
        "funcmcp-slim[azure,auth]",
        "/mcp",
        "functionKeys.default",
        _SERVER_SIGN_IN,
    ),
    "triggers": _Plan(
        ("base", "common", "triggers"),
        "funcmcp-slim[azure]",
        "/runtime/webhooks/mcp",
        "systemKeys.mcp_extension",
        "Azure validates the tokens before it calls the app. The tenant's users may call every tool, through the\n"
        "client applications in `ENTRA_CLIENTS` (`azd env set ENTRA_CLIENTS <id>,<id>`). The default is Visual Studio\n"
        "Code.",
    ),
    "self-hosted": _Plan(
        ("base", "common", "sign_in", "self-hosted"),
        "funcmcp-slim[server,auth]",
        "/mcp",
        "functionKeys.default",
        _SERVER_SIGN_IN,
    ),
    "docker": _Plan(("base", "plain", "docker"), "funcmcp", deployments=("docker",)),
    "aca": _Plan(("base", "plain", "docker", "aca"), "funcmcp", deployments=("docker", "aca")),
    "kubernetes": _Plan(("base", "plain", "docker", "kubernetes"), "funcmcp", deployments=("docker", "kubernetes")),
    "systemd": _Plan(("base", "plain", "systemd"), "funcmcp", deployments=("systemd",)),
}
_PLANS["none"] = _PLANS["docker"]

_ENTRA_LAYERS: dict[str, tuple[str, ...]] = {"http": ("entra",), "self-hosted": ("entra", "entra_self_hosted")}
"""The further layers of a project whose server signs its callers in with Microsoft Entra ID, by its hosting."""


def create(name: str, parent: Path, hosting: Hosting, access: Access = "key") -> Path:
    """Write a new project and return its folder. If something fails, nothing is left behind.

    Args:
        name: The name of the project, of its folder and of its azd application.
        parent: The folder that contains the project's folder.
        hosting: Where the project runs. "none" is the earlier name of "docker".
        access: "entra" for a server that signs its callers in with Microsoft Entra ID.

    Raises:
        Failure: The name is not valid or taken, the folder cannot be written, or the hosting has no sign-in.
    """
    plan = _plan_for(hosting, access)
    _check_name(name)
    target = parent / name
    if target.exists():
        raise Failure(f"{name} exists already. Choose another name, or remove it first.")
    draft = parent / f".{name}-{secrets.token_hex(4)}"
    try:
        _write(draft, plan, _placeholders(name, plan))
        draft.rename(target)
    except OSError as error:
        raise Failure(f"{target} cannot be written: {error.strerror}.") from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)  # after a success it has the project's name
    return target


class Additions(NamedTuple):
    """What was added to a folder.

    Attributes:
        written: The new files, as paths in the folder.
        unchanged: The files that were there and stay as they are.
        advice: What the author has to do, a sentence each.
    """

    written: list[str]
    unchanged: list[str]
    advice: list[str]


def add_to(folder: Path, hosting: Hosting, access: Access = "key") -> Additions:
    """Add the files of a hosting to a folder that has a server. No file is replaced.

    Tests, and a server of its own, are for new projects only.

    Args:
        folder: The folder.
        hosting: Where the project runs.
        access: "entra" for a server that signs its callers in with Microsoft Entra ID. sign_in.py is then added, too.

    Raises:
        Failure: The folder has no Python file, or cannot be written, a symbolic link in it leads files elsewhere, or
            the hosting has no sign-in. Then nothing is added.
    """
    plan = _plan_for(hosting, access)
    if not any(folder.glob("*.py")):
        raise Failure(f"{folder.resolve()} has no Python file. Make a new project: funcmcp new NAME")
    try:
        return _add(folder, plan)
    except OSError as error:
        raise Failure(f"{folder.resolve()} cannot be written: {error.strerror}.") from error


def _add(folder: Path, plan: _Plan) -> Additions:
    with tempfile.TemporaryDirectory(dir=folder, prefix=".funcmcp-new-") as draft:
        _write(Path(draft), plan, _placeholders(_name_for(folder), plan))
        drafts = {str(file.relative_to(draft)): file for file in sorted(Path(draft).rglob("*")) if file.is_file()}
        skipped = _OF_NEW_PROJECTS - ({"sign_in.py"} if plan.access == "entra" else set())
        names = [name for name in drafts if Path(name).parts[0] not in skipped]
        unchanged = [name for name in names if (folder / name).exists() or (folder / name).is_symlink()]
        for name in names:
            if not (folder / name).parent.resolve().is_relative_to(folder.resolve()):
                raise Failure(
                    f"{Path(name).parent} is a symbolic link that leads out of {folder.resolve()}. Remove it."
                )
        written: list[str] = []
        try:
            for name in names:
                if name not in unchanged:
                    (folder / name).parent.mkdir(parents=True, exist_ok=True)
                    drafts[name].rename(folder / name)
                    written.append(name)
        except OSError:
            for name in written:
                (folder / name).unlink()
            raise
    return Additions(written, unchanged, _advice(folder, plan, written, unchanged))


def _plan_for(hosting: Hosting, access: Access) -> _Plan:
    """Return the plan for a project; raise Failure if there is no sign-in for the hosting."""
    plan = _PLANS[hosting]
    if access == "key":
        return plan
    if hosting not in _ENTRA_LAYERS:
        raise Failure(
            f"--auth entra is for --hosting {' and '.join(_ENTRA_LAYERS)}. For another hosting, add an OAuthProxy to "
            "the server; see the guide to sign-in with Microsoft Entra ID."
        )
    return replace(plan, layers=(*plan.layers, *_ENTRA_LAYERS[hosting]), access=access)


def _name_for(folder: Path) -> str:
    """Return a valid name of a project for a folder."""
    name = re.sub("[^a-z0-9]+", "-", folder.resolve().name.lower()).strip("-")[:_MAX_NAME_LENGTH].strip("-")
    return name if _NAME.fullmatch(name) and name not in _DEVICES else "mcp-server"


def _advice(folder: Path, plan: _Plan, written: list[str], unchanged: list[str]) -> list[str]:
    advice = []
    if "function_app.py" in written and not (folder / "server.py").is_file():
        advice.append("function_app.py imports mcp from server.py. Name the module of your server there.")
    if "Dockerfile" in written and {path.name for path in folder.glob("*.py")} != {"server.py"}:
        advice.append("Dockerfile and .dockerignore name server.py alone. Name the files of your server there.")
    if "server.service" in written and not (folder / "server.py").is_file():
        advice.append("server.service runs server.py. Name the file of your server there.")
    if plan.access == "entra":
        advice.append("Pass the sign-in to the server: MCPServer(..., auth=sign_in()), with sign_in from sign_in.py.")
    if "requirements.txt" in unchanged:
        advice.append(f"requirements.txt needs {plan.package}{versions(__version__)}.")
    if plan.is_for_functions:
        advice.append("Check the project with: funcmcp doctor")
    return advice


def title_of(name: str) -> str:
    """Return a project's name for people: "Order Desk" for ``order-desk``."""
    return name.replace("-", " ").title()


def versions(version: str) -> str:
    """Return the versions of funcmcp that are compatible with a version: before 1.0 up to the next minor one."""
    major, minor, *_ = version.split(".")
    if major == "0":
        return f">={version},<0.{int(minor) + 1}"
    return f">={version},<{int(major) + 1}"


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name) or not _MIN_NAME_LENGTH <= len(name) <= _MAX_NAME_LENGTH:
        raise Failure(
            f"{name!r} is not a valid name. Use {_MIN_NAME_LENGTH} to {_MAX_NAME_LENGTH} lower-case letters, digits "
            "and single hyphens, with a letter first, such as order-desk."
        )
    if name in _DEVICES:
        raise Failure(f"{name!r} is the name of a device on Windows. Choose another one.")


def _placeholders(name: str, plan: _Plan) -> dict[str, str]:
    """Return the texts that replace ``{{placeholder}}`` in the templates."""
    return {
        "deployment": _deployment(plan),  # first, as the next: these texts have other placeholders in them
        "access": _text("access", plan.access),
        "name": name,
        "title": title_of(name),
        "package": plan.package,
        "versions": versions(__version__),
        "python": PYTHON,
        "endpoint": plan.endpoint,
        "key_command": (
            "az functionapp keys list --resource-group rg-<environment> "
            f'--name "$(azd env get-value AZURE_FUNCTION_NAME)" --query {plan.key} --output tsv'
        ),
        "sign_in_note": plan.sign_in,
    }


def _deployment(plan: _Plan) -> str:
    """Return the parts about the deployment for the project's README."""
    return "\n\n".join(_text("deployments", name) for name in plan.deployments)


def _text(folder: str, name: str) -> str:
    """Return a text for the project's README."""
    file = files("funcmcp_cli") / "templates" / folder / f"{name}.md{_SUFFIX}"
    return file.read_text(encoding="utf-8").rstrip()


def _write(folder: Path, plan: _Plan, placeholders: dict[str, str]) -> None:
    templates = files("funcmcp_cli") / "templates"
    for layer in plan.layers:
        _fill(templates / layer, folder, placeholders)


def _fill(source: Traversable, target: Path, placeholders: dict[str, str]) -> None:
    """Write the files for a folder of templates and its subfolders."""
    target.mkdir(exist_ok=True)
    for entry in source.iterdir():
        name = entry.name.removesuffix(_SUFFIX)
        if name in _DOTTED:
            name = f".{name}"
        if entry.is_dir():
            _fill(entry, target / name, placeholders)
            continue
        text = entry.read_text(encoding="utf-8")
        for placeholder, value in placeholders.items():
            text = text.replace("{{" + placeholder + "}}", value)
        (target / name).write_text(text, encoding="utf-8", newline="\n")
        if text.startswith("#!"):
            (target / name).chmod(0o755)
