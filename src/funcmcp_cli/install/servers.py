"""The server that ``funcmcp install`` configures, from the command line."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlsplit

from packaging.requirements import Requirement

from funcmcp import __version__
from funcmcp._text.variable_files import variables_in
from funcmcp_cli.arguments import read_header
from funcmcp_cli.bundle.project import find_project
from funcmcp_cli.connect import is_command
from funcmcp_cli.failure import Failure
from funcmcp_cli.faults import faults_in
from funcmcp_cli.install.entries import ServerDescription
from funcmcp_cli.install.packages import Packages
from funcmcp_cli.install.relative_paths import notes_about_arguments, notes_about_paths
from funcmcp_cli.targets import MissingModule, find, function_app_in, has_script_metadata, load

if TYPE_CHECKING:
    from collections.abc import Sequence

    from funcmcp_cli.faults import Fault
    from funcmcp_cli.targets import Target

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_UV_OPTIONS = frozenset({
    "-p", "--python", "-w", "--with", "--with-editable", "--with-requirements", "-c", "--constraints", "--overrides",
    "--index", "-i", "--index-url", "--default-index", "--extra-index-url", "-f", "--find-links", "-P",
    "--upgrade-package", "--refresh-package", "--index-strategy", "--resolution", "--prerelease", "--exclude-newer",
    "--cache-dir", "--directory", "--project", "--env-file", "--extra", "--group",
})  # fmt: skip
_CONTAINER_OPTIONS = frozenset({
    "-e", "-v", "-p", "-u", "-w", "-h", "-l", "-m", "--env", "--env-file", "--volume", "--mount", "--name",
    "--network", "--net", "--user", "--workdir", "--entrypoint", "--add-host", "--platform", "--publish", "--label",
    "--memory", "--cpus", "--gpus", "--hostname",
})  # fmt: skip
_RUNNERS: dict[str, frozenset[str]] = {
    "bunx": frozenset(),
    "deno": frozenset(),
    "docker": _CONTAINER_OPTIONS,
    "node": frozenset({"-r", "--require", "--import", "--env-file"}),
    "npx": frozenset({"-c", "--call"}),
    "pipx": frozenset({"--python", "--pip-args", "--index-url", "--spec"}),
    "podman": _CONTAINER_OPTIONS,
    "python": frozenset({"-W", "-X"}),
    "uv": _UV_OPTIONS,
    "uvx": _UV_OPTIONS,
}
"""Programs that run another one, with their options that have a value. The first other argument is what they run."""

_SUBCOMMANDS = {"deno": ("run",), "docker": ("run",), "pipx": ("run",), "podman": ("run",), "uv": ("run", "tool")}
_WRAPPERS = frozenset({"cmd", "env", "wsl"})
"""Programs whose arguments are a command, behind options and variables."""

_NO_PACKAGES = Packages()
_THIS_LIBRARY = {"funcmcp", "funcmcp-slim"}

_SCRIPTS = {".bat", ".cmd"}
"""Ends of the names of programs that clients on Windows find by their name only, such as npx.cmd."""

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def server_at(  # noqa: PLR0913 - one for each option of the command
    target: str,
    name: str | None,
    *,
    arguments: Sequence[str] = (),
    env: Sequence[str],
    headers: Sequence[str],
    runner: str,
    packages: Packages = _NO_PACKAGES,
) -> ServerDescription:
    """Return the server at a target or URL.

    Args:
        target: A target of ``funcmcp run``, the folder of a function app, or a URL.
        name: The name of the entry. By default it is made of the server's name or of the URL's host.
        arguments: Arguments of the server's own.
        env: Environment variables, as ``NAME=VALUE`` or ``NAME``.
        headers: Header fields, as ``NAME:VALUE``.
        runner: "python" for this interpreter, "uv" for ``uv run``, "uvx" for an environment apart from the project's,
            "auto" for uvx if it runs this command, and for uv in the projects of uv.
        packages: Packages that uv installs for the server.

    Raises:
        Failure: The target has no server, or an option is not valid or not for such a server.
    """
    if target.startswith(("http://", "https://")):
        if env:
            raise Failure("--env is for servers that the client starts. A server at a URL has --header.")
        if arguments:
            raise Failure("Arguments after -- work only for servers that the client starts. Leave them out for a URL.")
        packages.reject("A server at a URL")
        fields = dict(read_header(text, example="X-Api-Key: ${API_KEY}") for text in headers)
        default_name = _name_of_url(target)
        return ServerDescription(checked_name(name or default_name), url=target, headers=fields)
    if headers:
        raise Failure("--header is for servers at a URL. A server that the client starts has --env.")
    variables = dict(map(variable_of, env))
    if is_command(target):
        packages.reject("A command such as uvx")
        return _server_of_command(shlex.split(target), name, arguments, variables)
    folder = function_app_in(target)
    if folder is None:
        return _server_of_module(target, name, arguments, variables, runner, packages)
    packages.reject("A function app, which has requirements.txt,")
    if arguments:
        raise Failure("A function app takes no arguments after --. Use app settings.")
    root = folder.resolve()
    if runner == "uvx":
        raise Failure("--runner uvx is for Python files and modules. A function app is run by python or uv.")
    command = _command(root, runner, "host", str(root), "--stdio")
    return ServerDescription(
        checked_name(name or slug(root.name)), command, env=variables, advice=_advice(root, runner)
    )


def _server_of_command(
    words: list[str], name: str | None, arguments: Sequence[str], variables: dict[str, str]
) -> ServerDescription:
    """Return the server that a command starts. It is not run."""
    default_name = slug(_name_in(words))
    notes = tuple(notes_about_arguments((*words[1:], *arguments), variables))
    return ServerDescription(checked_name(name or default_name), (*words, *arguments), env=variables, notes=notes)


def _name_in(words: Sequence[str]) -> str:
    """Return the name of what a command runs: a package, an image, a module or a file, or else the program itself."""
    program, *remaining = words
    stem = re.sub(r"(\.exe|\.cmd|[\d.]+)$", "", re.split(r"[/\\]", program)[-1].lower())
    is_wrapper = stem in _WRAPPERS
    if not is_wrapper and stem not in _RUNNERS:
        return _short_name(program)
    options, subcommands = _RUNNERS.get(stem, frozenset()), _SUBCOMMANDS.get(stem, ())
    has_value = False
    for position, word in enumerate(remaining):
        is_option = word.startswith("-") or (is_wrapper and (word.startswith("/") or "=" in word))
        if not has_value and not is_option and word not in subcommands:
            return _name_in(remaining[position:]) if is_wrapper or word in _RUNNERS else _short_name(word)
        has_value = not has_value and word in options
    return _short_name(program)


def _short_name(text: str) -> str:
    """Return the name in a path, a URL or a reference to a package or an image, without a version and a suffix."""
    name = re.split(r"[/\\]", text.rstrip("/\\"))[-1] or text
    name = re.split(r"[@=<>~!\[:]", name)[0] or name
    return re.sub(r"\.(py|js|mjs|ts|git|exe)$", "", name)


def _server_of_module(
    target: str,
    name: str | None,
    arguments: Sequence[str],
    variables: dict[str, str],
    runner: str,
    packages: Packages,
) -> ServerDescription:
    """Return the server in a Python file or module."""
    place = find(target)
    packages.check(runner, uv_program())
    if runner == "auto":
        runner = _runner_for(place, packages)
    advice = _advice(place.root, runner) or _advice_about_metadata(place, runner)
    try:
        server = load(target)
    except MissingModule as failure:
        if runner == "auto" or not (packages or has_script_metadata(place)):
            raise
        default_name = place.module.rpartition(".")[2]
        faults: tuple[Fault, ...] = ()
        advice = f"The tools of the server are not checked, because this Python has not all of its packages. {failure}"
    else:
        default_name = server.name
        faults = tuple(faults_in(server))
    text = str(place.file) if place.file is not None else place.module
    if place.attribute is not None:
        text += f":{place.attribute}"
    if place.file is None and _is_local(place.module):
        variables.setdefault("PYTHONPATH", str(place.root))
    server_arguments = ("--", *arguments) if arguments else ()
    if runner == "uvx":
        command = _uvx_command(place, text, *server_arguments, packages=packages)
    else:
        command = _command(place.root, runner, "run", text, "--stdio", *server_arguments, packages=packages)
    entry_name = checked_name(name or slug(default_name))
    notes = tuple(notes_about_paths(place, arguments, variables))
    return ServerDescription(entry_name, command, env=variables, advice=advice, faults=faults, notes=notes)


def _runner_for(place: Target, packages: Packages) -> str:
    """Return what runs a server if the user does not say it: uv if it installs packages, else "auto" or uvx."""
    if _is_run_by_uvx():
        return "uvx"
    if uv_program() is None or not (packages or has_script_metadata(place)):
        return "auto"
    project = _uv_project(place.root)
    if project is not None and (project / "uv.lock").is_file() and not has_script_metadata(place):
        return "uv"
    return "uvx"


def _advice_about_metadata(place: Target, runner: str) -> str:
    """Return a sentence if a script lists its packages and nothing installs them, or ""."""
    if runner == "auto" and has_script_metadata(place):
        needs = f"the entry starts {sys.executable}, which needs them"
        return f"{place.text} lists its packages, but uv is not on PATH: {needs}."
    return ""


def _advice(root: Path, runner: str) -> str:
    """Return a sentence about uv if it was not said what runs the server, or ""."""
    return _advice_about_uv(root) if runner == "auto" else ""


def _is_local(module: str) -> bool:
    """Return whether an imported module is not among the installed packages."""
    file = getattr(sys.modules.get(module), "__file__", None)
    return file is not None and "site-packages" not in Path(file).parts


def _command(folder: Path, runner: str, *arguments: str, packages: Packages = _NO_PACKAGES) -> tuple[str, ...]:
    """Return the command that runs funcmcp, with absolute paths: clients start it in a folder of their own."""
    project = _uv_project(folder)
    uv = uv_program()
    if runner == "uv" and (project is None or uv is None):
        missing = "uv is not on PATH"
        if uv is not None:
            missing = f"neither {folder} nor a folder above it has a pyproject.toml. Leave it out, or pass --runner uvx"
        raise Failure(f"--runner uv is not possible: {missing}.")
    if (
        uv is not None
        and project is not None
        and (runner == "uv" or (runner == "auto" and (project / "uv.lock").is_file()))
    ):
        return (str(Path(uv).absolute()), "run", "--project", str(project), *packages.options(), "funcmcp", *arguments)
    # sys.executable of a virtual environment is a link: it must stay one, or the environment is lost.
    return (str(Path(sys.executable).absolute()), "-m", "funcmcp", *arguments)


def _uvx_command(place: Target, text: str, *arguments: str, packages: Packages) -> tuple[str, ...]:
    """Return the command that runs funcmcp in a separate environment, with the dependencies of a script or project.

    uv reads the metadata of a script at each start.
    """
    options = packages.options()
    if place.file is not None and has_script_metadata(place):
        find_project(place)  # it checks the metadata
        options = ["--with-requirements", str(place.file), *options]
    else:
        project = find_project(place)
        dependencies = map(Requirement, [] if project is None else project.metadata.get("dependencies", []))
        required = [str(dependency) for dependency in dependencies if dependency.name not in _THIS_LIBRARY]
        options = [*(word for requirement in required for word in ("--with", requirement)), *options]
    return ("uvx", *options, f"funcmcp@{__version__}", "run", text, "--stdio", *arguments)


def _is_run_by_uvx() -> bool:
    """Return whether uvx runs this command: its interpreter is in the cache of uv, which deletes it at some time."""
    folders = Path(sys.prefix).resolve().parents
    return "UV" in os.environ and any((folder / "CACHEDIR.TAG").is_file() for folder in folders)


def with_absolute_program(server: ServerDescription) -> ServerDescription:
    """Return a server whose program has its path on this machine: clients start it without the PATH of a shell."""
    program = server.command[0] if server.command else ""
    if not program or Path(program).parts != (program,):
        return server
    path = shutil.which(program)
    if path is None and program in {"uv", "uvx"}:
        path = shutil.which(program, path=str(Path(uv_program() or "").parent))
    if path is None:
        return replace(server, advice=f"{program} is not on PATH, so the client will not find it. Install it first.")
    if Path(path).suffix.lower() in _SCRIPTS:
        return server
    return replace(server, command=(str(Path(path).absolute()), *server.command[1:]))


def uv_program() -> str | None:
    """Return the path of uv: on PATH, the one that runs this command, or the one beside this interpreter."""
    for candidate in ("uv", os.environ.get("UV"), str(Path(sys.executable).parent / "uv")):
        path = shutil.which(candidate) if candidate else None
        if path is not None:
            return path
    return None


def _advice_about_uv(folder: Path) -> str:
    """Return a sentence if a folder belongs to a project of uv, and uv is missing."""
    project = _uv_project(folder)
    if project is None or not (project / "uv.lock").is_file() or uv_program() is not None:
        return ""
    return f"{project} has uv.lock, but uv is not on PATH: the entry starts {sys.executable}, which needs all packages."


def _uv_project(folder: Path) -> Path | None:
    """Return the folder of the project that contains a folder. Return None if there is none."""
    for candidate in (folder, *folder.parents):
        if (candidate / "pyproject.toml").is_file():
            return candidate
    return None


def slug(name: str) -> str:
    """Return the name under which a server with this name is installed by default."""
    return re.sub(r"[^a-z0-9_]+", "-", name.lower()).strip("-")[:64] or "server"


def _name_of_url(url: str) -> str:
    try:
        parts = urlsplit(url)
        host = parts.hostname if parts.port != 0 else None
    except ValueError:  # a bracket of an IPv6 address is missing, or the port is not a number up to 65,535
        host = None
    if not host or not url.isprintable() or " " in url:
        raise Failure(f"{url!r} is not a URL. Write one such as https://orders.example.com/mcp.")
    if "@" in parts.netloc:
        raise Failure("The URL contains a user, which clients reject. Pass --header 'Authorization: ...' instead.")
    return slug(host)


def has_key(url: str) -> bool:
    """Return whether a URL contains a key of Azure Functions."""
    return any(name.lower() == "code" for name, _ in parse_qsl(urlsplit(url).query, keep_blank_values=True))


def checked_name(name: str) -> str:
    """Return a name; raise Failure if it is not one for an entry."""
    if not _NAME.fullmatch(name):
        raise Failure(f"{name!r} is not a valid name. Use up to 64 letters, digits, hyphens and underscores.")
    return name


def variable_of(text: str) -> tuple[str, str]:
    """Return the name and the value of an environment variable. Without a value, it is a reference to itself."""
    name, equals, value = text.partition("=")
    if not _VARIABLE.fullmatch(name):
        raise Failure("--env must be NAME=VALUE, or NAME for a variable that the client reads.")
    return name, value if equals else f"${{{name}}}"


def read_variables(file: Path) -> list[str]:
    """Return the environment variables in a file such as ``.env``, as ``NAME=VALUE``.

    Raises:
        Failure: The file can't be read, or a line is not a variable, a comment or empty. The text does not contain the
            line, which may have a secret.
    """
    try:
        variables = variables_in(file.read_text(encoding="utf-8-sig"))
    except UnicodeDecodeError as error:
        raise Failure(f"--env-file {file} can't be read: it is not UTF-8.") from error
    except OSError as error:
        raise Failure(f"--env-file {file} can't be read: {error.strerror}.") from error
    except ValueError as error:
        raise Failure(f"--env-file {file}, {error}") from error
    return [f"{name}={value}" for name, value in variables.items()]
