"""``funcmcp bundle``: pack a server into a bundle (.mcpb) that others install, and write its entry for a registry."""

# ruff: noqa: PLC0415 - what the command needs is imported when it runs

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from funcmcp import __version__
from funcmcp._text.replacing import replacement_of
from funcmcp._text.visible import visible_line
from funcmcp_cli.commands import app, examples
from funcmcp_cli.failure import Failure
from funcmcp_cli.json_values import as_list
from funcmcp_cli.output import write_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from funcmcp import MCPServer
    from funcmcp.client import Tool
    from funcmcp_cli.bundle.project import Project
    from funcmcp_cli.targets import Target

_INSTALLER_FILES = ("pyproject.toml", "uv.toml", "uv.lock", "requirements*.txt")
_PNG = b"\x89PNG\r\n\x1a\n"
_PASSWORD = re.compile(
    r"://[^\s/\"'@:]*:(?!\$\{?\w+\}?@)[^\s/\"'@]+@"
    r"|://(?:gh[pousr]_|github_pat_|glpat-)[^\s/\"'@:]+@"
)
"""A URL with a password, or with a token in place of the user. ``${NAME}`` is the name of a variable."""

_NOT_IN_FILE_NAMES = re.compile(r"[^A-Za-z0-9.+_-]+")

ServerFile = Annotated[str, typer.Argument(metavar="[TARGET]", help="The server, as for funcmcp run.")]
Output = Annotated[
    Path, typer.Option("--output", "-o", metavar="DIR", help="The folder for the bundle and server.json.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print the names of the files, and write nothing.")]

_UPPER_BOUNDS = {"<", "<=", "==", "===", "~="}


@app.command(
    epilog=examples("funcmcp bundle", "funcmcp bundle server.py --dry-run", "funcmcp bundle shop.server:mcp -o out")
)
def bundle(target: ServerFile = ".", *, output: Output = Path("dist"), dry_run: DryRun = False) -> None:
    """Pack a server and its project into a bundle (.mcpb), and write server.json for a registry.

    The bundle leaves out files whose names begin with a dot, generated files, files that may hold secrets, and the
    files in .gitignore and .mcpbignore. Clients install the dependencies of pyproject.toml with uv. The exit code is 1
    if the server leaves a tool, a resource or a prompt out of its list.
    """
    from funcmcp._serving.composition import runtime_of
    from funcmcp_cli.bundle.archive import MANIFEST, files_in, write_bundle
    from funcmcp_cli.bundle.documents import START, describe, manifest_for, pyproject_for, start_file
    from funcmcp_cli.bundle.project import project_of
    from funcmcp_cli.bundle.registry import registry_entry
    from funcmcp_cli.faults import exit_with, faults_in
    from funcmcp_cli.targets import find, load

    server = load(target)
    place = find(target)
    project = project_of(place)
    if not place.root.is_relative_to(project.folder):
        file = project.folder / "pyproject.toml"
        raise Failure(f"{place.root} is outside the folder of {file}. Move the server into that folder.")
    options = runtime_of(server).server.options
    description = describe(project, server, options.info, options.version)
    entry = registry_entry(project, description)
    if project.script is None:
        files = files_in(project.folder, project.options.exclude)
    else:
        files = {project.script.name: project.script}
    _check(files, place, project)
    faults = list(faults_in(server))  # before the list, which logs them
    tools, has_prompts = asyncio.run(_features(server))
    manifest = manifest_for(project, description, tools, has_prompts=has_prompts)
    texts = {
        MANIFEST: json.dumps(manifest, indent=2, ensure_ascii=False) + "\n",
        START: start_file(place, project, server),
    }
    if project.pyproject is not None:
        texts["pyproject.toml"] = pyproject_for(project, description)
    _check_no_password(project, files)
    if dry_run:
        for name in sorted({*files, *texts}):
            write_line(visible_line(name))
        exit_with(faults)
        return
    advice = _advice_about_versions(project, files)
    path = output / f"{description.name}-{_NOT_IN_FILE_NAMES.sub('-', description.version)}.mcpb"
    write_bundle(path, files, texts)
    write_line(f"Wrote {path}: {len({*files, *texts})} files, {path.stat().st_size:,} bytes.")
    if advice:
        write_line(advice, error=True)
    _write_entry(output / "server.json", entry, project, path)
    exit_with(faults)


def _check(files: Mapping[str, Path], place: Target, project: Project) -> None:
    """Raise Failure if a bundle would miss the server, its icon or what declares its dependencies."""
    needed = [] if place.file is None else [place.file]
    if project.pyproject is None:
        needed.append(project.folder / "pyproject.toml")
    included = {path.resolve() for path in files.values()}
    for file in needed:
        if file.resolve() not in included:
            raise Failure(
                f"{file} is needed, but it is excluded from the bundle. Change .gitignore, .mcpbignore or exclude."
            )
    icon = project.options.icon
    if icon and icon not in files:
        raise Failure(f"The icon {icon} is not a file of the project. Correct icon in pyproject.toml.")
    if icon and not files[icon].read_bytes().startswith(_PNG):
        raise Failure(f"The icon {icon} is not a PNG file. Clients show no other pictures.")


def _check_no_password(project: Project, files: Mapping[str, Path]) -> None:
    """Raise Failure if a file with settings of uv or pip has a URL with a password, as for a private index."""
    texts = {}
    if project.script is not None:
        lines = project.script.read_text(encoding="utf-8", errors="replace").splitlines()
        texts[project.script] = "\n".join(line for line in lines if line.startswith("#"))  # the metadata
    for path in files.values():
        if any(fnmatchcase(path.name, pattern) for pattern in _INSTALLER_FILES):
            texts[path] = path.read_text(encoding="utf-8", errors="replace")
    for path, text in texts.items():
        if _PASSWORD.search(text):
            raise Failure(
                f"{path} has a URL with a password, and everybody who has the bundle could read it. "
                "Leave it out: uv reads passwords of indexes from UV_INDEX_NAME_PASSWORD, ~/.netrc or a keyring."
            )


async def _features(server: MCPServer) -> tuple[list[Tool] | None, bool]:
    """Return the tools of a server, and whether it has prompts. The tools are None if they need what is not there."""
    try:
        return await server.list_tools(), bool(await server.list_prompts())
    except Exception:  # noqa: BLE001 - a server behind another one, or a provider that needs the lifespan
        return None, False


def _write_entry(file: Path, entry: dict[str, Any] | None, project: Project, bundle_file: Path) -> None:
    from funcmcp_cli.bundle.registry import official_problems, set_digest

    if entry is None:
        advice = (
            "server.json is not written: a registry needs a name and a URL. Set registry-name, and download-url or "
            "remote-url, in [tool.funcmcp.bundle]; or [project.scripts] and a repository on GitHub in [project.urls]."
        )
        write_line(advice, error=True)
        return
    set_digest(entry, hashlib.sha256(bundle_file.read_bytes()).hexdigest())
    try:
        with replacement_of(file) as draft:
            draft.write_text(json.dumps(entry, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    except OSError as error:
        raise Failure(f"{file} can't be written: {error.strerror}.") from error
    write_line(f"Wrote {file} for {entry['name']}.")
    for problem in official_problems(entry, project):
        write_line(f"For the official registry: {problem}", error=True)


def _advice_about_versions(project: Project, files: Mapping[str, Path]) -> str:
    """Return a sentence if users may get a funcmcp with other names than the one that made the bundle, or ""."""
    from packaging.requirements import Requirement

    from funcmcp_cli.new import versions

    if "uv.lock" in files:
        return ""
    for text in as_list(project.metadata.get("dependencies")):
        requirement = Requirement(str(text))
        is_open = requirement.url is None and not {part.operator for part in requirement.specifier} & _UPPER_BOUNDS
        if requirement.name in {"funcmcp", "funcmcp-slim"} and is_open:
            bounded = f"{requirement.name}{versions(__version__)}"
            return (
                f"Users get any later {requirement.name}, which may break the server. Write {bounded} or add uv.lock."
            )
    return ""
