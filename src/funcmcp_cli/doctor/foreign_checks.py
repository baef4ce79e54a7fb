"""The checks of ``funcmcp doctor`` for projects that were made without funcmcp.

Files are read, and no code runs. What can't be told from the files is a warning that says so.

Source: "Azure Functions custom handlers" (customHandler, function.json); "Self-hosted remote MCP servers on Azure
Functions" (configurationProfile, defaultAuthorizationLevel); the samples of both.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from funcmcp._adapters.azure.settings import SELF_HOSTED_PROFILE, at
from funcmcp._objects.mappings import lower_names
from funcmcp._text.files import is_file
from funcmcp._text.jsonc import parse
from funcmcp_cli.doctor.file_checks import bundle_finding, check_host, check_ignore_files, is_true
from funcmcp_cli.doctor.project import Finding, Project, read_files, text_of_file
from funcmcp_host.folder import language_of
from funcmcp_host.function_json import function_folders

if TYPE_CHECKING:
    from collections.abc import Iterator

_RUNTIMES = {".NET": {"dotnet-isolated", "dotnet"}, "Java": {"java"}, "PowerShell": {"powershell"}}
_FORWARDING = ("enableForwardingHttpRequest", "enableProxyingHttpRequest")
_MISSPELT = "enableHttpProxyingRequest"
"""A name in a published sample that the Functions host does not know."""

_SERVICE = re.compile(r"""^[ \t]+project:[ \t]*["']?([^"'#\n]+)""", re.MULTILINE)


def service_folders(folder: Path) -> list[Path]:
    """Return the folders of the function apps that azure.yaml deploys, if the folder itself is none."""
    file = folder / "azure.yaml"
    if (folder / "host.json").is_file() or not file.is_file():
        return []
    projects = [folder / match.strip() for match in _SERVICE.findall(text_of_file(file))]
    return [project for project in projects if is_file(project / "host.json")]


def examine_custom_handler(folder: Path) -> list[Finding]:
    """Return the findings about a custom handler that was made without funcmcp, in any language."""
    project = read_files(folder)
    return [
        *check_host(project),
        *_check_program(project),
        *_check_forwarding(project),
        *_check_access(project),
        *_check_runtime(project, {"custom", "python", "node", *_RUNTIMES.get(language_of(folder) or "", ())}),
        *check_ignore_files(project, {".gitignore": ("local.settings.json",)}),
        Finding("warning", "the code", "is not examined: doctor only reads the files of an app without funcmcp."),
    ]


def examine_other_language(folder: Path, language: str) -> list[Finding]:
    """Return the findings about a function app in a language that `funcmcp host` does not run by itself."""
    project = read_files(folder)
    text = f"is not examined: the app is in {language}, and doctor only reads its files."
    return [
        *check_host(project),
        *_check_webhook_level(project),
        *_check_runtime(project, _RUNTIMES.get(language, set())),
        *check_ignore_files(project, {".gitignore": ("local.settings.json",)}),
        Finding("warning", "the code", text),
    ]


def check_plain_files(folder: Path, *, has_triggers: bool) -> Iterator[Finding]:
    """Check the files of a function app in Python or for Node that was made without funcmcp."""
    project = read_files(folder)
    is_python = (folder / "function_app.py").is_file()
    yield from check_host(project)
    if has_triggers and any(folder.glob("*.csproj")) and at(project.host, "extensionBundle") is None:
        yield Finding("warning", "extensionBundle", "is missing: the extensions of the .csproj file are not examined.")
    elif has_triggers:
        yield bundle_finding(at(project.host, "extensionBundle"))
    yield from _check_webhook_level(project)
    yield from _check_runtime(project, {"python" if is_python else "node"})
    if is_python:
        yield from _check_requirements(project)
    local = (".venv",) if is_python else ()
    entries = {".gitignore": ("local.settings.json",), ".funcignore": ("local.settings.json", *local)}
    yield from check_ignore_files(project, entries)


def _check_requirements(project: Project) -> Iterator[Finding]:
    if project.requirements is None:
        yield Finding("error", "requirements.txt", "is missing, and Azure installs nothing without it.")
    elif "azure-functions" not in project.requirements:
        yield Finding("error", "requirements.txt", "has no azure-functions.")
    else:
        yield Finding("ok", "requirements.txt", "has azure-functions.")


def _check_runtime(project: Project, runtimes: set[str]) -> Iterator[Finding]:
    subject = "local.settings.json"
    if subject in project.errors:
        yield Finding("error", subject, f"cannot be read: {project.errors[subject]}.")
        return
    if subject not in project.documents:
        yield Finding("warning", subject, "is missing. `func start` needs FUNCTIONS_WORKER_RUNTIME in it.")
        return
    runtime = project.settings.get("FUNCTIONS_WORKER_RUNTIME", "")
    if runtimes and runtime.lower() not in runtimes:
        valid = " or ".join(f'"{name}"' for name in sorted(runtimes))
        current = f'is "{runtime}"' if runtime else "is missing"
        yield Finding("error", "FUNCTIONS_WORKER_RUNTIME", f"{current} in local.settings.json. Write {valid}.")
    else:
        yield Finding("ok", subject, "names the worker runtime.")


def _check_webhook_level(project: Project) -> Iterator[Finding]:
    level = at(project.host, "extensions", "mcp", "system", "webhookAuthorizationLevel")
    if str(level).lower() == "anonymous":
        yield Finding(
            "warning",
            "webhookAuthorizationLevel",
            "is Anonymous, so any caller may use the triggers, unless App Service authentication is on.",
        )


def _check_program(project: Project) -> Iterator[Finding]:
    """Check that the program of a custom handler exists, as far as files can tell."""
    subject = "customHandler"
    description = at(project.host, "customHandler", "description")
    program = at(description, "defaultExecutablePath")
    if not isinstance(program, str) or not program:
        yield Finding("error", subject, "has no description.defaultExecutablePath, so the host starts nothing.")
        return
    folder = project.folder / str(at(description, "workingDirectory") or "")
    missing = [name for name in _script_names(description) if not is_file(folder / name)]
    for name in missing:
        advice = " Run the build of the app first." if name.startswith(("dist", "build", "out")) else ""
        yield Finding("error", subject, f"starts {program} with {name}, which does not exist.{advice}")
    if not is_file(folder / program) and shutil.which(program) is None:
        yield Finding("warning", subject, f"starts {program}, which is neither a file of the app nor on the PATH here.")
    elif not missing:
        yield Finding("ok", subject, f"starts {program}.")


def _script_names(description: Any) -> list[str]:
    """Return the arguments of a program that look like files of the app."""
    arguments = at(description, "arguments") or []
    names = [str(argument) for argument in arguments] if isinstance(arguments, list) else []
    path = at(description, "defaultWorkerPath")
    if isinstance(path, str) and path:
        names.append(path)
    return [name for name in names if Path(name).suffix in {".py", ".js", ".mjs", ".cjs", ".dll", ".jar", ".sh"}]


def _check_forwarding(project: Project) -> Iterator[Finding]:
    """Check that the host hands HTTP requests on as they are: with the profile, or to routes of function.json files."""
    handler = at(project.host, "customHandler")
    if str(at(project.host, "configurationProfile")).lower() == SELF_HOSTED_PROFILE:
        yield Finding("ok", "configurationProfile", "forwards requests to the server.")
    elif not any(is_true(at(handler, name)) for name in _FORWARDING):
        misspelt = f" {_MISSPELT} is not one of them." if at(handler, _MISSPELT) is not None else ""
        yield Finding(
            "error",
            "customHandler",
            f'does not receive the requests. Add "configurationProfile": "{SELF_HOSTED_PROFILE}" to host.json, or '
            f"enableProxyingHttpRequest and a function.json with an HTTP trigger.{misspelt}",
        )
    elif not (functions := function_folders(project.folder)):
        yield Finding(
            "error", "function.json", "is missing: without an HTTP trigger in one, no request reaches the handler."
        )
    elif broken := [function for function in functions if function.error]:
        for function in broken:
            yield Finding("error", f"{function.name}/function.json", f"can't be used. {function.error}")
    else:
        yield Finding("ok", "customHandler", "forwards the requests for its HTTP triggers.")


def _check_access(project: Project) -> Iterator[Finding]:
    """Say who may call a custom handler, as far as the files say it."""
    levels = {"host.json": str(at(project.host, "customHandler", "http", "defaultAuthorizationLevel") or "function")}
    if str(at(project.host, "configurationProfile")).lower() != SELF_HOSTED_PROFILE:
        levels = dict(_trigger_levels(project.folder))
    open_files = sorted(name for name, level in levels.items() if level.lower() == "anonymous")
    if open_files:
        yield Finding(
            "warning",
            "access",
            f"needs no key ({', '.join(open_files)}: anonymous). Whether the server itself or App Service "
            "authentication asks callers to sign in is not examined.",
        )
    elif levels:
        yield Finding("ok", "access", "needs a key of the app.")


def _trigger_levels(folder: Path) -> Iterator[tuple[str, str]]:
    for function in function_folders(folder):
        for text in function.bindings:
            binding = lower_names(parse(text, comments=False).value)
            if str(binding.get("type", "")).lower() == "httptrigger":
                yield f"{function.name}/function.json", str(binding.get("authlevel") or "function")
