"""The checks of ``funcmcp doctor`` for projects that were made without funcmcp.

Files are read, and no code runs. What can't be told from the files is a warning that says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from funcmcp._adapters.azure.settings import at
from funcmcp_cli.doctor.deployed_files import check_deployed_files
from funcmcp_cli.doctor.file_checks import check_host, check_ignore_files, check_settings
from funcmcp_cli.doctor.project import Finding, Project, read_files, text_of_file
from funcmcp_cli.doctor.rule_checks import check_rules
from funcmcp_host.app_rules.model import read_app
from funcmcp_host.other_languages import (
    DOTNET,
    EXTENSIONS,
    METADATA,
    advice_for,
    declared_features,
    has_valid_metadata,
    is_built,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_EXTENSION = "Microsoft.Azure.Functions.Extensions.Mcp"
_PACKAGE = "Microsoft.Azure.Functions.Worker.Extensions.Mcp"
_SETTINGS = {".gitignore": ("local.settings.json",)}


def examine_custom_handler(folder: Path) -> list[Finding]:
    """Return the findings about a custom handler that was made without funcmcp, in any language."""
    project = read_files(folder)
    code = Finding("warning", "the code", "is not examined: doctor only reads the files of an app without funcmcp.")
    return [*_check_files(project), *check_ignore_files(project, _SETTINGS), code]


def examine_other_language(folder: Path, language: str) -> list[Finding]:
    """Return the findings about a function app in a language that `funcmcp host` does not run by itself."""
    project = read_files(folder)
    text = f"is not examined: the app is in {language}, and doctor only reads its files. {advice_for(folder, language)}"
    findings = [*_check_files(project), Finding("warning", "the code", text)]
    if is_built(folder):  # nothing of it is in git
        return [*findings, *_check_build(folder, language)]
    return [*findings, *check_ignore_files(project, _SETTINGS)]


def _check_files(project: Project) -> Iterator[Finding]:
    yield from check_host(project)
    yield from check_settings(project)
    yield from check_rules(read_app(project.folder, {}))


def _check_build(folder: Path, language: str) -> Iterator[Finding]:
    """Check what the output of a build declares."""
    declared = declared_features(folder)
    is_dotnet = language == DOTNET
    if is_dotnet and not has_valid_metadata(folder):
        yield Finding(
            "warning", METADATA, "is missing or not valid, so its functions are unknown. Build the app again."
        )
    elif not declared:
        yield Finding(
            "warning",
            "the build",
            "declares no MCP trigger, so clients find no tools. Add one, and build the app again.",
        )
    else:
        yield Finding("ok", "the build", f"declares {declared}.")
        if is_dotnet:
            yield _extension_of_build(folder)


def _extension_of_build(folder: Path) -> Finding:
    if _EXTENSION in text_of_file(folder / EXTENSIONS):
        return Finding("ok", EXTENSIONS, "has Azure's MCP extension.")
    text = f"has no MCP extension. Add the package {_PACKAGE}, and build the app again."
    return Finding("error", EXTENSIONS, text)


def check_plain_files(folder: Path, *, has_triggers: bool) -> Iterator[Finding]:
    """Check the files of a function app in Python or for Node that was made without funcmcp."""
    project = read_files(folder)
    is_python = project.code_file.is_file()
    yield from check_host(project)
    if has_triggers and any(folder.glob("*.csproj")) and at(project.host, "extensionBundle") is None:
        yield Finding(
            "warning",
            "extensionBundle",
            (
                "is missing in host.json, and the extensions of the .csproj file are not examined. "
                "Check that they have the MCP extension 1.5 or later."
            ),
        )
    yield from check_settings(project)
    if is_python:
        yield from _check_requirements(project)
    local = (".venv",) if is_python else ()
    yield from check_ignore_files(project, {**_SETTINGS, ".funcignore": ("local.settings.json", *local)})
    yield from check_deployed_files(project)


def _check_requirements(project: Project) -> Iterator[Finding]:
    subject = project.requirements_file
    if project.requirements is None:
        yield Finding("error", subject, "is missing, and Azure installs nothing without it. Add azure-functions.")
    elif "azure-functions" not in project.requirements:
        yield Finding("error", subject, "has no azure-functions. Add it.")
    else:
        yield Finding("ok", subject, "has azure-functions.")
