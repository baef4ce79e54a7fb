"""New projects: ``funcmcp new`` writes them from the templates in this package.

Source: "Azure Functions Python developer guide" (the folder), "host.json reference", "Self-hosted remote MCP server on
Azure Functions" (the profile mcp-custom-handler), and the schema of azure.yaml (the name).
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import shutil
import tempfile
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from funcmcp import __version__
from funcmcp._text.files import read_text
from funcmcp_cli.failure import Failure

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

Hosting: TypeAlias = Literal[
    "http", "triggers", "self-hosted", "docker", "fastapi", "aca", "cloud-run", "fly", "heroku", "kubernetes", "lambda",
    "railway", "render", "systemd", "none",
]  # fmt: skip
Access: TypeAlias = Literal["key", "entra"]
Database: TypeAlias = Literal["none", "postgres"]

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

_DOTTED = {"dockerignore", "funcignore", "github", "gitignore", "python-version"}
"""Templates of files and folders whose names begin with a dot."""


@dataclass(frozen=True, slots=True)
class _Plan:
    """The differences between projects.

    Attributes:
        layers: The folders of templates. A file of a later folder replaces a file with the same name.
        package: The distribution of funcmcp that the app needs.
        extras: Its extras.
        endpoint: The path of the endpoint on Azure.
        key: The place of the callers' key in the output of ``az functionapp keys list``.
        sign_in: The paragraph about sign-in in the project's README.
        access: How callers authenticate.
        database: The database of the server.
        deployments: The parts about the deployment in the README of a project that is not for Azure Functions.
        start: What starts `server.py` as a program, for the comment there; "" if nothing does.
        command: The command of the container.
    """

    layers: tuple[str, ...]
    package: str = "funcmcp"
    extras: tuple[str, ...] = ()
    endpoint: str = ""
    key: str = ""
    sign_in: str = ""
    access: Access = "key"
    database: Database = "none"
    deployments: tuple[str, ...] = ()
    start: str = "stdio, for MCP clients that start this file"
    command: tuple[str, ...] = ("funcmcp", "run", "server.py")

    @property
    def is_for_functions(self) -> bool:
        """Whether the project is for Azure Functions."""
        return "common" in self.layers

    @property
    def has_sign_in(self) -> bool:
        """Whether the project has `sign_in.py`."""
        return "sign_in" in self.layers or self.access == "entra"

    @property
    def requirements(self) -> list[str]:
        """The lines of `requirements.txt`."""
        extras = [*self.extras, "postgres"] if self.database == "postgres" else list(self.extras)
        package = f"{self.package}[{','.join(extras)}]" if extras else self.package
        lines = [package + versions(__version__)]
        if "fastapi" in self.layers:
            lines.append("fastapi>=0.115")
        if self.database == "postgres":
            lines.append("psycopg[binary,pool]>=3.2.1")
        return lines

    @property
    def modules(self) -> list[str]:
        """The Python files of the server."""
        names = ["server.py"]
        if "fastapi" in self.layers:
            names.append("main.py")
        if self.has_sign_in:
            names.append("sign_in.py")
        if self.database == "postgres":
            names.append("database.py")
        return names

    @property
    def settings(self) -> list[str]:
        """The environment variables that the operator sets, beside those of the platform."""
        names = list(_SIGN_IN_SETTINGS) if self.access == "entra" and not self.is_for_functions else []
        return [*names, "DATABASE_URL"] if self.database == "postgres" else names


_SIGN_IN_SETTINGS = ("MCP_URL", "ENTRA_TENANT_ID", "ENTRA_CLIENT_ID", "ENTRA_CLIENT_SECRET")
_SERVER_SIGN_IN = (
    'The server itself validates the tokens (`sign_in.py`), so a tool can require scopes: `@mcp.tool(scopes=["..."])`.'
)
_TRIGGERS_SIGN_IN = (
    "Azure validates the tokens before it calls the app. The tenant's users may call every tool, through the\n"
    "client applications in `ENTRA_CLIENTS` (`azd env set ENTRA_CLIENTS <id>,<id>`). The default is Visual Studio\n"
    "Code."
)
_CONTAINER = ("base", "plain", "docker")
_PLANS: dict[str, _Plan] = {
    "http": _Plan(
        ("base", "common", "sign_in", "http"),
        "funcmcp-slim",
        ("azure", "auth"),
        "/mcp",
        "functionKeys.default",
        _SERVER_SIGN_IN,
        start="",
    ),
    "triggers": _Plan(
        ("base", "common", "triggers"),
        "funcmcp-slim",
        ("azure",),
        "/runtime/webhooks/mcp",
        "systemKeys.mcp_extension",
        _TRIGGERS_SIGN_IN,
        start="",
    ),
    "self-hosted": _Plan(
        ("base", "common", "sign_in", "self-hosted"),
        "funcmcp-slim",
        ("server", "auth"),
        "/mcp",
        "functionKeys.default",
        _SERVER_SIGN_IN,
        start="HTTP if Azure starts this file, stdio if an MCP client does",
    ),
    "docker": _Plan(_CONTAINER, deployments=("docker",)),
    "fastapi": _Plan(
        (*_CONTAINER, "fastapi"),
        deployments=("fastapi", "docker"),
        command=("sh", "-c", "exec uvicorn main:app --host $FUNCMCP_HOST --port $PORT --timeout-graceful-shutdown 7"),
    ),
    "heroku": _Plan(("base", "plain", "heroku"), deployments=("heroku",)),
    "lambda": _Plan(("base", "plain", "lambda"), deployments=("lambda",)),
    "systemd": _Plan(("base", "plain", "systemd"), deployments=("systemd",)),
    **{
        platform: _Plan((*_CONTAINER, platform), deployments=("docker", platform))
        for platform in ("aca", "cloud-run", "fly", "kubernetes", "railway", "render")
    },
}
_PLANS["none"] = _PLANS["docker"]

_DEPLOYMENT_PAGES = "https://github.com/funcmcp/funcmcp/blob/main/docs/deploy"
_PAGES = {"aca": "container-apps", "fastapi": "docker"}
"""The pages about deployments that have another name."""

_ENTRA_LAYERS: dict[str, tuple[str, ...]] = {"http": ("entra",), "self-hosted": ("entra", "entra_self_hosted")}
"""The further layers of a project whose server signs its callers in with Microsoft Entra ID, by its hosting."""

_ENTRA_LAYERS_ELSEWHERE = ("entra_elsewhere",)
"""The same for a project that is not for Azure Functions."""


def create(name: str, parent: Path, hosting: Hosting, access: Access = "key", database: Database = "none") -> Path:
    """Write a new project and return its folder. If something fails, nothing is left behind.

    Args:
        name: The name of the project, of its folder and of its azd application.
        parent: The folder that contains the project's folder.
        hosting: Where the project runs. "none" is the earlier name of "docker".
        access: "entra" for a server that signs its callers in with Microsoft Entra ID.
        database: "postgres" for a server with a pool of connections to PostgreSQL.

    Raises:
        Failure: The name is not valid or taken, the folder cannot be written, or the hosting has no sign-in.
    """
    plan = _plan_for(hosting, access, database)
    _check_name(name)
    target = parent / name
    if target.exists():
        raise Failure(f"{name} exists already. Choose another name, or remove it first.")
    draft = parent / f".{name}-{secrets.token_hex(4)}"
    try:
        _write(draft, plan, _placeholders(name, plan))
        draft.rename(target)
    except OSError as error:
        if os.path.lexists(target):  # another command has made it in the meantime, or it is a broken link
            raise Failure(f"{name} exists already. Choose another name, or remove it first.") from error
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


def add_to(folder: Path, hosting: Hosting, access: Access = "key", database: Database = "none") -> Additions:
    """Add the files of a hosting to a folder that has a server. No file is replaced.

    Tests, and a server of its own, are for new projects only.

    Args:
        folder: The folder.
        hosting: Where the project runs.
        access: "entra" for a server that signs its callers in with Microsoft Entra ID. sign_in.py is then added, too.
        database: "postgres" for a server with a pool of connections to PostgreSQL.

    Raises:
        Failure: The folder has no Python file, or cannot be written, a symbolic link in it leads files elsewhere, or
            the hosting has no sign-in. Then nothing is added.
    """
    plan = _plan_for(hosting, access, database)
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
        skipped = _skipped(folder, plan)
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


def _skipped(folder: Path, plan: _Plan) -> set[str]:
    """Return the files and folders that are not added to a server that exists."""
    skipped = _OF_NEW_PROJECTS - ({"sign_in.py"} if plan.access == "entra" else set())
    if not (folder / "requirements-dev.txt").exists():
        skipped.add(".github")  # the workflow installs this file, and runs the project's tests
    return skipped


def _plan_for(hosting: Hosting, access: Access, database: Database) -> _Plan:
    """Return the plan for a project; raise Failure if the server can't sign its callers in with the hosting."""
    plan = replace(_PLANS[hosting], access=access, database=database)
    layers = plan.layers
    if access == "entra":
        if hosting == "triggers":
            raise Failure(
                "--auth entra is for a server that signs its users in. With --hosting triggers, Azure does: leave "
                "--auth out, and set ENTRA_CLIENT_ID as README.md of the project says."
            )
        layers += _ENTRA_LAYERS.get(hosting, _ENTRA_LAYERS_ELSEWHERE)
        if not plan.is_for_functions:
            plan = replace(plan, extras=("auth",))
    if database == "postgres":
        layers += ("postgres",)
    return replace(plan, layers=layers)


def _name_for(folder: Path) -> str:
    """Return a valid name of a project for a folder."""
    name = re.sub("[^a-z0-9]+", "-", folder.resolve().name.lower()).strip("-")[:_MAX_NAME_LENGTH].strip("-")
    return name if _NAME.fullmatch(name) and name not in _DEVICES else "mcp-server"


def _advice(folder: Path, plan: _Plan, written: list[str], unchanged: list[str]) -> list[str]:
    advice = []
    if "function_app.py" in written and not (folder / "server.py").is_file():
        advice.append("function_app.py imports mcp from server.py. Name the module of your server there.")
    if "Dockerfile" in written and {path.name for path in folder.glob("*.py")} != set(plan.modules):
        modules = "server.py alone" if plan.modules == ["server.py"] else " and ".join(plan.modules)
        advice.append(f"Dockerfile and .dockerignore name {modules}. Name the files of your server there.")
    programs = {"server.service", "Procfile", "run.sh"} if not (folder / "server.py").is_file() else set()
    advice += [f"{file} runs server.py. Name the file of your server there." for file in written if file in programs]
    if plan.access == "entra":
        advice.append("Pass the sign-in to the server: MCPServer(..., auth=sign_in()), with sign_in from sign_in.py.")
    if plan.database == "postgres":
        advice.append("Add the database to the server: add_database(mcp), with add_database from database.py.")
    missing = _missing_requirements(folder / "requirements.txt", plan) if "requirements.txt" in unchanged else []
    if missing:
        advice.append(f"requirements.txt needs {' and '.join(missing)}.")
    if plan.is_for_functions:
        advice.append("Check the project with: funcmcp doctor")
    else:
        page = _PAGES.get(plan.deployments[-1], plan.deployments[-1])
        advice.append(f"How to deploy it, and who may call it: {_DEPLOYMENT_PAGES}/{page}.md")
    return advice


def _missing_requirements(file: Path, plan: _Plan) -> list[str]:
    """Return the requirements of a plan that a file lacks. The file may have other versions, and more extras."""
    try:
        lines = read_text(file).splitlines()
    except (OSError, UnicodeDecodeError):
        return plan.requirements
    extras: dict[str, set[str]] = {}
    for line in lines:
        with contextlib.suppress(InvalidRequirement):
            requirement = Requirement(line.partition(" #")[0].strip())
            extras.setdefault(canonicalize_name(requirement.name), set()).update(requirement.extras)
    missing = []
    for line in plan.requirements:
        requirement = Requirement(line)
        name = canonicalize_name(requirement.name)
        if name not in extras or not requirement.extras <= extras[name]:
            missing.append(line)
    return missing


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
        # These come first, because they have other placeholders in them.
        "deployment": _parts("deployments", *plan.deployments),
        "access": _parts("access", *_access_parts(plan)),
        **_code_of_server(plan),
        **(_BICEP_OF_DATABASE if plan.database == "postgres" else dict.fromkeys(_BICEP_OF_DATABASE, "")),
        "name": name,
        "title": title_of(name),
        "requirements": "\n".join(plan.requirements),
        "versions": versions(__version__),
        "python": PYTHON,
        "modules": " ".join(plan.modules),
        "module_names": json.dumps([module.removesuffix(".py") for module in plan.modules]),
        "allowed_modules": "\n".join(f"!{module}" for module in plan.modules),
        "command": json.dumps(plan.command),
        "endpoint": plan.endpoint,
        "key_command": (
            "az functionapp keys list --resource-group rg-<environment> "
            f'--name "$(azd env get-value AZURE_FUNCTION_NAME)" --query {plan.key} --output tsv'
        ),
        "sign_in_note": plan.sign_in,
        "store": ', store=PostgresSignIns(os.environ["DATABASE_URL"])' if plan.database == "postgres" else "",
        "store_import": "\nfrom funcmcp.postgres import PostgresSignIns" if plan.database == "postgres" else "",
    }


_BICEP_OF_DATABASE = {
    "database_parameter": (
        "\n\n@secure()\n@description('The URL of the PostgreSQL database.')\nparam databaseUrl string"
    ),
    "database_argument": "\n    databaseUrl: databaseUrl",
    "database_setting": "\n    DATABASE_URL: databaseUrl",
    "database_value": '\n    "databaseUrl": { "value": "${DATABASE_URL}" },',
}
"""What Bicep files have for the database."""


def _code_of_server(plan: _Plan) -> dict[str, str]:
    """Return the placeholders of `server.py`."""
    packages, modules = ["from funcmcp import MCPServer"], []
    if plan.database == "postgres":
        packages.append("from psycopg import AsyncConnection")
        modules.append("from database import add_database")
    if plan.has_sign_in:
        modules.append("from sign_in import sign_in")
    return {
        "imports": "\n\n".join("\n".join(lines) for lines in (packages, modules) if lines),
        "auth": ", auth=sign_in()" if plan.has_sign_in else "",
        "add_database": "\nadd_database(mcp)" if plan.database == "postgres" else "",
        "database_tool": _DATABASE_TOOL if plan.database == "postgres" else "",
        "start": f'\n\n\nif __name__ == "__main__":  # {plan.start}\n    mcp.run()' if plan.start else "",
    }


_DATABASE_TOOL = '''


@mcp.tool(read_only=True)
async def tables(connection: AsyncConnection) -> list[str]:
    """Return the names of the tables in the database."""
    rows = await connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY tablename")
    return [name for (name,) in await rows.fetchall()]'''


def _access_parts(plan: _Plan) -> list[str]:
    """Return the parts about callers and the database in the project's README."""
    access = plan.access if plan.is_for_functions else {"key": "open", "entra": "entra_elsewhere"}[plan.access]
    if plan.database == "none":
        return [access]
    return [access, "postgres" if plan.is_for_functions else "postgres_elsewhere"]


def _parts(folder: str, *names: str) -> str:
    """Return parts of the project's README."""
    templates = files("funcmcp_cli") / "templates" / folder
    texts = [(templates / f"{name}.md{_SUFFIX}").read_text(encoding="utf-8").rstrip() for name in names]
    return "\n\n".join(texts)


def _write(folder: Path, plan: _Plan, placeholders: dict[str, str]) -> None:
    templates = files("funcmcp_cli") / "templates"
    for layer in plan.layers:
        _fill(templates / layer, folder, plan, placeholders)


def _fill(source: Traversable, target: Path, plan: _Plan, placeholders: dict[str, str]) -> None:
    """Write the files for a folder of templates and its subfolders."""
    target.mkdir(exist_ok=True)
    for entry in source.iterdir():
        name = entry.name.removesuffix(_SUFFIX)
        if name in _DOTTED:
            name = f".{name}"
        if entry.is_dir():
            _fill(entry, target / name, plan, placeholders)
            continue
        text = entry.read_text(encoding="utf-8")
        for placeholder, value in placeholders.items():
            text = text.replace("{{" + placeholder + "}}", value)
        text = "".join(_lines_for_settings(line, plan.settings) for line in text.splitlines(keepends=True))
        (target / name).write_text(text, encoding="utf-8", newline="\n")
        if text.startswith("#!"):
            (target / name).chmod(0o755)


def _lines_for_settings(line: str, settings: list[str]) -> str:
    """Return a line of a template once for each setting if it has a placeholder for one, else as it is.

    The placeholders are ``{{setting}}``, ``{{setting-key}}`` in lower case with hyphens, and ``{{SettingId}}``.
    """
    if not re.search(r"\{\{(setting|setting-key|SettingId)\}\}", line):
        return line
    lines = []
    for setting in settings:
        words = setting.lower().split("_")
        text = line.replace("{{setting}}", setting).replace("{{setting-key}}", "-".join(words))
        lines.append(text.replace("{{SettingId}}", "".join(word.capitalize() for word in words)))
    return "".join(lines)
