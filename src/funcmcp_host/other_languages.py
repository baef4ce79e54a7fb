"""Function apps in languages that the host does not run by itself: which language, and what the build has declared.

Source: the targets of Microsoft.Azure.Functions.Worker.Sdk, which write worker.config.json, functions.metadata and
extensions.json beside the app; azure-functions-maven-plugin, which writes a function.json with the path of the jar for
each function.
"""

from __future__ import annotations

import shutil
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from funcmcp._adapters.azure.settings import at
from funcmcp._objects.mappings import lower_names
from funcmcp._server.log import quote
from funcmcp._text.files import is_file, read_text
from funcmcp._text.jsonc import parse
from funcmcp._text.listing import counted, some_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

DOTNET = ".NET"
IN_PROCESS = "the in-process model of .NET"
JAVA = "Java"
POWERSHELL = "PowerShell"
GO = "Go"
RUST = "Rust"
OLDER_MODEL = "the older programming model"

METADATA = "functions.metadata"
"""The file in which the build of a .NET app (isolated worker) declares its functions."""

EXTENSIONS = "extensions.json"
"""The file in which that build lists the extensions of the Functions host."""

_WORKER_CONFIG = "worker.config.json"
_EXTENSIONS_PROJECT = "extensions.csproj"
"""The project that `func extensions install` writes into apps of every other language."""

_SOURCES = {
    "*.csproj": DOTNET,
    "*.fsproj": DOTNET,
    "pom.xml": JAVA,
    "build.gradle": JAVA,
    "build.gradle.kts": JAVA,
    "profile.ps1": POWERSHELL,
    "go.mod": GO,
    "Cargo.toml": RUST,
}
"""By file of an app's source, its language."""

_IN_PROCESS_SDK = "Microsoft.NET.Sdk.Functions"
_SCRIPTS = {
    ".jar": JAVA,
    ".ps1": POWERSHELL,
    ".psm1": POWERSHELL,
    ".dll": IN_PROCESS,
    ".py": f"{OLDER_MODEL} of Python",
    ".cjs": f"{OLDER_MODEL} of Node",
    ".mjs": f"{OLDER_MODEL} of Node",
    ".js": f"{OLDER_MODEL} of Node",
    ".ts": f"{OLDER_MODEL} of Node",
}
"""By ending of a ``scriptFile``, the language."""

_RUNTIMES = {"dotnet-isolated": DOTNET, "dotnet": IN_PROCESS, "java": JAVA, "powershell": POWERSHELL}
"""By FUNCTIONS_WORKER_RUNTIME, the language."""

_OUTPUTS = {
    DOTNET: [f"bin{'/*' * depth}/{METADATA}" for depth in range(5)],
    JAVA: ["target/azure-functions/*/host.json", "build/azure-functions/*/host.json"],
}
"""By language, where the output of a build is below the source."""

_BUILDS = {
    DOTNET: "Run dotnet build, and name the folder of its output, such as bin/Debug/net10.0.",
    JAVA: "Run mvn package, and name the folder of its output below target/azure-functions.",
}
_WORKERS = {
    JAVA: "java -jar WORKERS/java/azure-functions-java-worker.jar",
    POWERSHELL: "dotnet WORKERS/powershell/7.4/Microsoft.Azure.Functions.PowerShellWorker.dll",
}
_PROGRAMS = {GO: "go build", RUST: "cargo build --release"}
"""By language without a worker, the build of a custom handler."""

_FEATURES = {
    "mcptooltrigger": ("tool", "toolname"),
    "mcpresourcetrigger": ("resource", "uri"),
    "mcpprompttrigger": ("prompt", "promptname"),
}
_MAX_NAMES = 20
_MAX_NAME = 200


def language_of(folder: Path) -> str | None:
    """Return the language of an app that the host does not run by itself, or None. It is part of a sentence."""
    if is_file(folder / METADATA) or _worker_description(folder):
        return DOTNET
    for pattern, language in _SOURCES.items():
        projects = [file for file in folder.glob(pattern) if file.name != _EXTENSIONS_PROJECT]
        if projects:
            return IN_PROCESS if any(map(_is_in_process, projects)) else language
    described = [_json_in(file) for file in folder.glob("*/function.json")]
    for content in described:
        script = at(content, "scriptFile")
        language = _SCRIPTS.get(PurePosixPath(str(script).replace("\\", "/")).suffix.lower(), "")
        if language:
            return language
    return OLDER_MODEL if described else None


def language_of_runtime(runtime: str) -> str | None:
    """Return the language of a FUNCTIONS_WORKER_RUNTIME that the host does not run by itself, or None."""
    return _RUNTIMES.get(runtime.lower())


def is_built(folder: Path) -> bool:
    """Return whether a folder is the output of the build of an app in .NET or Java."""
    if is_file(folder / METADATA) or _worker_description(folder):
        return True
    return language_of(folder) == JAVA and not _has_source(folder)


def has_valid_metadata(folder: Path) -> bool:
    """Return whether the file in which the build of a .NET app declares its functions can be read."""
    return isinstance(_json_in(folder / METADATA), list)


def outputs_of(folder: Path, language: str) -> list[str]:
    """Return the folders below an app's source that have the output of its build, the newest first."""
    files = [file for pattern in _OUTPUTS.get(language, ()) for file in folder.glob(pattern)]
    files.sort(key=lambda file: file.stat().st_mtime, reverse=True)
    return [file.parent.relative_to(folder).as_posix() for file in files]


def declared_features(folder: Path) -> str:
    """Return what the output of a build declares, such as "2 tools (add, get) and 1 prompt (ask)"; "" for nothing."""
    names: dict[str, list[str]] = {"tool": [], "resource": [], "prompt": []}
    for binding in _declared_bindings(folder):
        kind, member = _FEATURES.get(str(binding.get("type", "")).lower(), ("", ""))
        if kind:
            names[kind].append(quote(str(binding.get(member)), _MAX_NAME))
    parts = [
        f"{counted(len(of_kind), kind)} ({some_of(of_kind, _MAX_NAMES)})" for kind, of_kind in names.items() if of_kind
    ]
    return " and ".join(parts) if len(parts) < 3 else f"{parts[0]}, {parts[1]} and {parts[2]}"  # noqa: PLR2004 - kinds


def refusal_for(folder: Path, language: str) -> str:
    """Return why the host does not run an app in a language by itself, what to do, and what its build declares."""
    declared = declared_features(folder) if is_built(folder) else ""
    sentence = f" Its build declares {declared}." if declared else ""
    return f"The app in {folder} is in {language}. {advice_for(folder, language)}{sentence}"


def advice_for(folder: Path, language: str) -> str:
    """Return the sentences that say how an app in a language is run."""
    if language == IN_PROCESS:
        return "Only Microsoft's Functions host runs such code. Move it to the isolated worker model."
    if language in _PROGRAMS:
        return (
            "Such an app is a custom handler: write customHandler in host.json, with the program that "
            f"`{_PROGRAMS[language]}` makes."
        )
    if language in _BUILDS and not is_built(folder):
        return _build_advice(folder, language)
    return _worker_advice(folder, language)


def _build_advice(folder: Path, language: str) -> str:
    outputs = outputs_of(folder, language)
    if outputs:
        return f"This is its source. Name the folder with the output of its build: {', '.join(outputs[:3])}."
    return f"This is its source. {_BUILDS[language]}"


def _worker_advice(folder: Path, language: str) -> str:
    """Return the sentences about the worker of a language, with its command as far as that is known."""
    command = _dotnet_command(folder) if language == DOTNET else _WORKERS.get(language)
    if command is None:
        return "funcmcp host runs it with --worker COMMAND only."
    sentence = f'funcmcp host runs it with --worker "{command}" only.'
    if "WORKERS" in command:
        sentence += " WORKERS is the folder workers of Azure Functions Core Tools."
    program = command.partition(" ")[0]
    if program in {"dotnet", "java"} and shutil.which(program) is None:
        sentence += f" {program} is not on the PATH here."
    return sentence


def _dotnet_command(folder: Path) -> str:
    """Return the command of a .NET app, which is its own worker."""
    description = _worker_description(folder)
    program = description.get("defaultExecutablePath")
    if not isinstance(program, str):
        program = "dotnet"
    scripts = [function.get("scriptFile") for function in _functions_in(folder / METADATA)]
    paths = [path for path in (description.get("defaultWorkerPath"), *scripts) if isinstance(path, str)]
    path = paths[0] if paths else "APP.dll"
    return quote(f"{program.replace('{WorkerRoot}', '')} {path}", _MAX_NAME)


def _worker_description(folder: Path) -> Mapping[str, Any]:
    """Return what worker.config.json of a .NET app says; nothing for others."""
    description = at(_json_in(folder / _WORKER_CONFIG), "description")
    is_dotnet = str(at(description, "language")).startswith("dotnet")
    return description if is_dotnet and isinstance(description, dict) else {}


def _declared_bindings(folder: Path) -> Iterator[Mapping[str, Any]]:
    functions = _functions_in(folder / METADATA) or [
        content for file in sorted(folder.glob("*/function.json")) if isinstance(content := _json_in(file), dict)
    ]
    for function in functions:
        bindings = function.get("bindings")
        for binding in bindings if isinstance(bindings, list) else ():
            if isinstance(binding, dict):
                yield lower_names(binding)


def _functions_in(file: Path) -> list[dict[str, Any]]:
    content = _json_in(file)
    return [function for function in content if isinstance(function, dict)] if isinstance(content, list) else []


def _is_in_process(project: Path) -> bool:
    return project.suffix in {".csproj", ".fsproj"} and f'"{_IN_PROCESS_SDK}"' in _text_in(project)


def _has_source(folder: Path) -> bool:
    return any(any(folder.glob(pattern)) for pattern in _SOURCES)


def _json_in(file: Path) -> Any:
    """Return what a file of JSON holds; None if there is none that can be read."""
    try:
        return parse(_text_in(file), comments=True).value
    except ValueError:
        return None


def _text_in(file: Path) -> str:
    try:
        return read_text(file)
    except (OSError, ValueError):
        return ""
