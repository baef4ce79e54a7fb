"""What ``funcmcp doctor`` checks in a project's files.

Source: "host.json reference", "Azure Functions extension bundles" (interval notation), "Supported languages in Azure
Functions"; the bundles' own lists of extensions for the versions.
"""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

from funcmcp.adapters.azure.lenient_json import at
from funcmcp.cli.doctor.project import Finding, Project, can_be_set
from funcmcp.state.keys import VARIABLE, configured_keys
from funcmcp.transports.http.options import HOSTS_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from funcmcp.cli.doctor.project import Requirement

    Version = tuple[int, ...]

BUNDLE = "Microsoft.Azure.Functions.ExtensionBundle"
FIRST_BUNDLES = {BUNDLE.lower(): (4, 36, 0), f"{BUNDLE}.Preview".lower(): (4, 42, 0)}
"""By bundle, the first version with Azure's MCP extension 1.5, the first with all the keys that our triggers send."""

EXPERIMENTAL = f"{BUNDLE}.Experimental".lower()

OLDEST_PYTHON, NEWEST_PYTHON = (3, 11), (3, 13)
"""Of those that funcmcp and Azure have in common. 3.14 is a preview there."""

FIRST_WITH_LIBRARY_2 = (3, 13)
"""From here on an app needs azure-functions 2, and before it 1: Azure's Python worker changed."""

_INTERVAL = re.compile(r"[\[(]\s*([0-9.*]+)\s*,\s*([0-9.*]+)\s*([\])])")
_PINNED_PYTHON = re.compile(r"^param pythonVersion string = '(\d+)\.(\d+)'", re.MULTILINE)
_HOST = re.compile(r"""^\s+host:\s*["']?([\w.-]+)""", re.MULTILINE)
_CLAUSE = re.compile(r"([=~<>!]=?=?)\s*([0-9.*]+)")


def check_host(project: Project) -> Iterator[Finding]:
    """host.json is there, and of the version that Azure runs."""
    if "host.json" in project.broken:
        yield Finding("error", "host.json", f"can't be read: {project.broken['host.json']}. It must be a JSON object.")
    elif "host.json" not in project.documents:
        yield Finding(
            "error", "host.json", 'is missing. The least is {"version": "2.0"}; `funcmcp new` writes a whole one.'
        )
    elif at(project.host, "version") != "2.0":
        yield Finding("error", "host.json", 'must have "version": "2.0".')
    else:
        yield Finding("ok", "host.json", "is JSON of version 2.0.")


def check_bundle(project: Project) -> Iterator[Finding]:
    """An app with MCP triggers loads a bundle that has Azure's MCP extension."""
    if project.triggers:
        yield _bundle_finding(at(project.host, "extensionBundle"))


def _bundle_finding(bundle: object) -> Finding:
    subject, identity = "extensionBundle", str(at(bundle, "id"))
    if bundle is None:
        return Finding("error", subject, f"is missing in host.json, and MCP triggers need it: {_advice(BUNDLE)}.")
    if identity.lower() == EXPERIMENTAL:
        return Finding(
            "warning", subject, f"{identity} may have an MCP extension before 1.5. The released one: {_advice(BUNDLE)}."
        )
    first = FIRST_BUNDLES.get(identity.lower())
    if first is None:
        return Finding("error", subject, f"{identity} has no MCP extension: {_advice(BUNDLE)}.")
    interval = _INTERVAL.fullmatch(str(at(bundle, "version")))
    if interval is None:
        return Finding("error", subject, f"version is not a range of versions: {_advice(identity)}.")
    if (_version(interval[2]), interval[3] == "]") <= (first, False):
        return Finding("error", subject, f"that range has no bundle with the MCP extension 1.5: {_advice(identity)}.")
    if _version(interval[1]) < first:
        return Finding(
            "warning", subject, f"an old bundle that is installed already fits that range: {_advice(identity)}."
        )
    return Finding("ok", subject, "has Azure's MCP extension.")


def _advice(identity: str) -> str:
    first = _shown(FIRST_BUNDLES[identity.lower()])
    return f'"extensionBundle": {{"id": "{identity}", "version": "[{first}, 5.0.0)"}}'


def check_requirements(project: Project) -> Iterator[Finding]:
    """requirements.txt, which Azure installs from, has funcmcp and what belongs to it."""
    about = "requirements.txt"
    if project.requirements is None:
        yield Finding("error", about, "is missing: Azure installs what is in it. Write funcmcp[azure] there.")
        return
    funcmcp = project.requirements.get("funcmcp")
    if funcmcp is None:
        yield Finding("error", about, "has no funcmcp. Add funcmcp[azure].")
        return
    faults = [*_missing_extra(project, funcmcp), *_wrong_library(project)]
    if not funcmcp.versions:
        faults.append(Finding("warning", about, "takes any version of funcmcp. Say which: funcmcp[...]>=X.Y,<Z."))
    yield from faults or [Finding("ok", about, "has funcmcp and what it needs on Azure.")]


def _missing_extra(project: Project, funcmcp: Requirement) -> Iterator[Finding]:
    names = set(project.requirements or ())
    if project.is_self_hosted:
        if not funcmcp.extras & {"server", "cli", "websocket", "azure-streams"} and "uvicorn" not in names:
            yield Finding("error", "requirements.txt", "has no server to serve with. Write funcmcp[server].")
    elif not funcmcp.extras & {"azure", "azure-streams"} and "azure-functions" not in names:
        yield Finding("error", "requirements.txt", "has no azure-functions. Write funcmcp[azure].")


def _wrong_library(project: Project) -> Iterator[Finding]:
    library = (project.requirements or {}).get("azure-functions")
    if library is None:
        return
    python = _python_of(project)
    wanted = 2 if python >= FIRST_WITH_LIBRARY_2 else 1
    clauses = _CLAUSE.findall(library.versions)
    if not all(_allows(operator, _version(version), wanted) for operator, version in clauses):
        yield Finding(
            "error",
            "requirements.txt",
            f"Python {_shown(python)} on Azure needs azure-functions {wanted}.x, not {library.versions}. "
            "funcmcp[azure] brings the right one.",
        )


def _allows(operator: str, version: Version, wanted: int) -> bool:
    """Tell whether a clause such as ``>=2.3`` leaves any version of the wanted major one."""
    if operator in {"==", "===", "~="}:
        return version[0] == wanted
    if operator in {">", ">="}:
        return version[0] <= wanted
    return operator == "!=" or version > (wanted, 0, 0) or (operator == "<=" and version[0] == wanted)


def check_python(project: Project) -> Iterator[Finding]:
    """The version of Python is one that Azure and funcmcp have."""
    pinned, here = _pinned_python(project), sys.version_info[:2]
    python = pinned or here
    supported = f"Azure and funcmcp both have {_shown(OLDEST_PYTHON)} to {_shown(NEWEST_PYTHON)}"
    if python < OLDEST_PYTHON:
        yield Finding("error", "Python", f"{_shown(python)} is too old: {supported}.")
    elif python > NEWEST_PYTHON:
        yield Finding("warning", "Python", f"{_shown(python)} may not be on your plan yet: {supported}.")
    else:
        where = f" on Azure (infra/main.bicep); here it is {_shown(here)}" if pinned else " runs on Azure"
        yield Finding("ok", "Python", f"{_shown(python)}{where}.")


def check_settings(project: Project) -> Iterator[Finding]:
    """Settings that would stop the app, or open it."""
    about = "local.settings.json"
    if about in project.broken:
        yield Finding("error", about, f"can't be read: {project.broken[about]}.")
        return
    if about not in project.documents:
        yield Finding("warning", about, "is missing: `func start` needs FUNCTIONS_WORKER_RUNTIME in it.")
        return
    yield from list(_setting_faults(project)) or [Finding("ok", about, "has what the app needs on this machine.")]


def _setting_faults(project: Project) -> Iterator[Finding]:
    settings = project.settings
    allowed = {"python", "custom"} if project.is_self_hosted else {"python"}
    if settings.get("FUNCTIONS_WORKER_RUNTIME") not in allowed:
        yield Finding("error", "FUNCTIONS_WORKER_RUNTIME", 'must be "python" in local.settings.json.')
    for name, value in settings.items():
        if not can_be_set(name, value):
            yield Finding("error", "local.settings.json", f"has the setting {name!r}, which no environment can have.")
    try:
        configured_keys(settings)
    except ValueError as error:
        yield Finding("error", VARIABLE, str(error))
    if "*" in {host.strip() for host in settings.get(HOSTS_VARIABLE, "").split(",")}:
        yield Finding(
            "warning", HOSTS_VARIABLE, "allows every Host header. On Azure the app's own name is allowed without it."
        )


def check_ignored(project: Project) -> Iterator[Finding]:
    """Settings of this machine get neither into git nor to Azure."""
    wanted = {".gitignore": ("local.settings.json",), ".funcignore": ("local.settings.json", ".venv")}
    faults = []
    for name, entries in wanted.items():
        lines = {line.strip().strip("/") for line in project.text_of(name).splitlines()}
        missing = [entry for entry in entries if entry not in lines]
        if missing:
            faults.append(Finding("warning", name, f"does not name {' and '.join(missing)}. Add a line for each."))
    yield from faults or [Finding("ok", ".gitignore", "and .funcignore keep this machine's settings here.")]


def check_deployment(project: Project) -> Iterator[Finding]:
    """azure.yaml, which ``azd up`` reads, has a service that is a function app."""
    subject = "azure.yaml"
    if (project.folder / subject).is_file():
        hosts = _HOST.findall(project.text_of(subject))
        if "function" in hosts:
            yield Finding("ok", subject, "deploys a function app.")
        else:
            named = f"the host {hosts[0]!r}" if hosts else "no host"
            yield Finding("error", subject, f"has {named}. The service of a function app needs `host: function`.")
    elif any((folder / subject).is_file() for folder in project.folder.resolve().parents):
        yield Finding("ok", subject, "is in a folder above.")
    else:
        yield Finding("warning", subject, "is missing: `azd up` needs it. `funcmcp new` writes one.")


def _python_of(project: Project) -> Version:
    return _pinned_python(project) or sys.version_info[:2]


def _pinned_python(project: Project) -> Version | None:
    found = _PINNED_PYTHON.search(project.text_of("infra/main.bicep"))
    return (int(found[1]), int(found[2])) if found else None


def _version(text: str) -> Version:
    parts = [int(part) if part.isdecimal() else 0 for part in text.split(".")]
    return tuple([*parts, 0, 0][:3])


def _shown(version: Version) -> str:
    return ".".join(map(str, version))
