"""The checks of ``funcmcp doctor`` for a project's files.

Source: "Supported languages in Azure Functions".
"""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from funcmcp._adapters.azure.settings import can_be_set
from funcmcp._state.keys import VARIABLE, configured_keys
from funcmcp._transports.http.options import HOSTS_VARIABLE
from funcmcp_cli.doctor.project import Finding, Project
from funcmcp_host.app_rules.setting_rules import version_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from funcmcp_cli.doctor.project import Requirement

    Version = tuple[int, ...]

OLDEST_PYTHON, NEWEST_PYTHON = (3, 11), (3, 13)
"""The versions of Python that both funcmcp and Azure support. 3.14 is a preview on Azure."""

FIRST_WITH_LIBRARY_2 = (3, 13)
"""The first version of Python whose worker on Azure needs azure-functions 2. Earlier ones need azure-functions 1."""

_BICEP_PYTHON = re.compile(r"^param pythonVersion string = '(\d+)\.(\d+)'", re.MULTILINE)
_SERVICE_HOST = re.compile(r"""^\s+host:\s*["']?([\w.-]+)""", re.MULTILINE)
_CLAUSE = re.compile(r"([=~<>!]=?=?)\s*([0-9.*]+)")
_IGNORED_FILES = {".gitignore": ("local.settings.json",), ".funcignore": ("local.settings.json", ".venv")}


def check_host(project: Project) -> Iterator[Finding]:
    """Check that host.json exists and can be read."""
    if "host.json" in project.errors:
        yield Finding("error", "host.json", f"cannot be read: {project.errors['host.json']}. It must be a JSON object.")
    elif "host.json" not in project.documents:
        yield Finding(
            "error",
            "host.json",
            'is missing. It needs at least {"version": "2.0"}. `funcmcp new .` writes a complete one.',
        )
    else:
        yield Finding("ok", "host.json", "is valid JSON.")


def check_requirements(project: Project) -> Iterator[Finding]:
    """Check that the list of packages that Azure installs has funcmcp and what it needs."""
    subject = project.requirements_file
    package = f"funcmcp-slim[{'server' if project.is_self_hosted else 'azure'}]"
    if project.requirements is None:
        yield Finding("error", subject, f"is missing, and Azure installs nothing without it. Write {package} there.")
        return
    funcmcp = project.funcmcp
    if funcmcp is None:
        yield Finding("error", subject, f"has no funcmcp. Add {package}.")
        return
    faults = [*_missing_extra(project, funcmcp), *_wrong_library(project)]
    if not funcmcp.versions:
        faults.append(Finding("warning", subject, "allows any version of funcmcp. Write funcmcp-slim[...]>=X.Y,<Z."))
    yield from faults or [Finding("ok", subject, "has funcmcp and what it needs on Azure.")]


def _missing_extra(project: Project, funcmcp: Requirement) -> Iterator[Finding]:
    packages = set(project.requirements or ())
    if project.is_self_hosted:
        has_server = project.has_command or funcmcp.extras & {"server", "cli", "websocket", "azure-streams"}
        if not has_server and "uvicorn" not in packages:
            yield Finding("error", project.requirements_file, "has no HTTP server. Write funcmcp-slim[server].")
    elif not funcmcp.extras & {"azure", "azure-streams"} and "azure-functions" not in packages:
        yield Finding("error", project.requirements_file, "has no azure-functions. Write funcmcp-slim[azure].")


def _wrong_library(project: Project) -> Iterator[Finding]:
    library = (project.requirements or {}).get("azure-functions")
    if library is None:
        return
    python = _bicep_python(project) or sys.version_info[:2]
    major = 2 if python >= FIRST_WITH_LIBRARY_2 else 1
    for operator, version in _CLAUSE.findall(library.versions):
        if not _allows(operator, version_in(version), major):
            yield Finding(
                "error",
                project.requirements_file,
                f"has azure-functions {library.versions}, but Python {_text_of(python)} on Azure needs {major}.x. "
                "Remove the line: funcmcp-slim[azure] requires the right version.",
            )
            return


def _allows(operator: str, version: Version, major: int) -> bool:
    """Return whether a clause such as ``>=2.3`` allows any version with a major number."""
    if operator in {"==", "===", "~="}:
        return version[0] == major
    if operator in {">", ">="}:
        return version[0] <= major
    if operator == "<=":
        return version >= (major, 0, 0)
    if operator == "<":
        return version > (major, 0, 0)
    return True  # != excludes single versions only


def check_python(project: Project) -> Iterator[Finding]:
    """Check that both Azure and funcmcp support the version of Python."""
    local = sys.version_info[:2]
    azure = _bicep_python(project)
    python = azure or local
    supported = f"Azure and funcmcp both support {_text_of(OLDEST_PYTHON)} to {_text_of(NEWEST_PYTHON)}"
    if python < OLDEST_PYTHON:
        yield Finding("error", "Python", f"{_text_of(python)} is too old. {supported}.")
    elif python > NEWEST_PYTHON:
        yield Finding("warning", "Python", f"{_text_of(python)} may not be available on your plan. {supported}.")
    elif azure is None:
        yield Finding("ok", "Python", f"{_text_of(python)} runs on Azure.")
    else:
        yield Finding("ok", "Python", f"{_text_of(python)} on Azure (infra/main.bicep), {_text_of(local)} here.")


def check_settings(project: Project) -> Iterator[Finding]:
    """Check the settings that could stop the app, or allow any caller."""
    subject = "local.settings.json"
    if subject in project.errors:
        yield Finding("error", subject, f"cannot be read: {project.errors[subject]}. Correct the JSON there.")
    elif subject not in project.documents:
        yield Finding(
            "warning", subject, "is missing. Write it with FUNCTIONS_WORKER_RUNTIME, which `func start` needs."
        )
    else:
        faults = list(_setting_faults(project))
        yield from faults or [Finding("ok", subject, "is valid.")]


def _setting_faults(project: Project) -> Iterator[Finding]:
    settings = project.settings
    for name, value in settings.items():
        if not can_be_set(name, value):
            yield Finding(
                "error",
                "local.settings.json",
                f"has the setting {name!r}, which cannot be an environment variable. Rename it.",
            )
    try:
        configured_keys(settings)
    except ValueError as error:
        yield Finding("error", VARIABLE, str(error))
    hosts = {host.strip() for host in settings.get(HOSTS_VARIABLE, "").split(",")}
    if "*" in hosts:
        yield Finding(
            "warning", HOSTS_VARIABLE, "allows every Host header. Leave it out: on Azure the app's name is allowed."
        )


def check_ignore_files(
    project: Project, entries_by_file: Mapping[str, Sequence[str]] = _IGNORED_FILES
) -> Iterator[Finding]:
    """Check that the settings of this machine get neither into git nor to Azure."""
    faults = []
    for name, entries in entries_by_file.items():
        lines = _ignored(project, name)
        missing = [entry for entry in entries if entry not in lines]
        if missing:
            advice = "Add that line." if len(missing) == 1 else "Add a line for each."
            faults.append(Finding("warning", name, f"does not exclude {' and '.join(missing)}. {advice}"))
    names = ", ".join(entries_by_file)
    verb = "exclude" if len(entries_by_file) > 1 else "excludes"
    yield from faults or [Finding("ok", names, f"{verb} the settings of this machine.")]


def _ignored(project: Project, name: str) -> set[str]:
    """Return the lines of a file; for .gitignore, also those of the parent folders in the repository."""
    folders = [project.folder.resolve()]
    if name == ".gitignore":
        folders += _parents_in_repository(folders[0])
    lines = [line for folder in folders for line in replace(project, folder=folder).text_of(name).splitlines()]
    return {line.strip().strip("/") for line in lines}


def _parents_in_repository(folder: Path) -> list[Path]:
    parents = []
    for current in (folder, *folder.parents):
        if current != folder:
            parents.append(current)
        if (current / ".git").exists():
            return parents
    return []


def check_azure_yaml(project: Project) -> Iterator[Finding]:
    """Check that azure.yaml, which ``azd up`` reads, has a service that is a function app."""
    subject = "azure.yaml"
    if (project.folder / subject).is_file():
        hosts = _SERVICE_HOST.findall(project.text_of(subject))
        if "function" in hosts:
            yield Finding("ok", subject, "deploys a function app.")
        else:
            current = f"the host {hosts[0]!r}" if hosts else "no host"
            yield Finding("error", subject, f"has {current}. The service of a function app needs `host: function`.")
    elif any((folder / subject).is_file() for folder in project.folder.resolve().parents):
        yield Finding("ok", subject, "is in a parent folder.")
    else:
        yield Finding("warning", subject, "is missing. `azd up` needs it, and `funcmcp new .` writes one.")


def _bicep_python(project: Project) -> Version | None:
    """Return the version of Python in infra/main.bicep. Return None if the file does not set one."""
    match = _BICEP_PYTHON.search(project.text_of("infra/main.bicep"))
    return (int(match[1]), int(match[2])) if match else None


def _text_of(version: Version) -> str:
    return ".".join(map(str, version))
