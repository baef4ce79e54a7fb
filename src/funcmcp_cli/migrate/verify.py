"""``funcmcp migrate --verify``: a server before and after the changes.

How it works: the changes are made in a copy of the folder. A function app is served by ``funcmcp host``, another server
by its command. Both are listed, and the same calls are made on both: resources are read, prompts are got, and tools are
called that only read. Arguments are made from schemas. Environments of Python and packages of Node are not copied: the
copy links to them. The environment of a function app need not have funcmcp: the worker of the copy finds that of this
process behind the app's own packages.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import funcmcp
from funcmcp._adapters.azure.triggers.binding_json import URI_VARIABLE
from funcmcp._protocol.methods import FEATURE_LISTS
from funcmcp_cli.connect import Source, inspect_server
from funcmcp_cli.diff.compare import differences
from funcmcp_cli.diff.snapshots import function_app_source
from funcmcp_cli.doctor.start_checks import has_custom_handler
from funcmcp_cli.failure import Failure
from funcmcp_cli.json_values import as_list, as_object

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from funcmcp_cli.calls import Call
    from funcmcp_cli.diff.differences import Difference
    from funcmcp_cli.migrate.plan import Change

_LINKED = {".python_packages", ".venv", "env", "node_modules", "venv"}
_LEFT_OUT = {".git", "__pycache__"}
_EXAMPLE = "example"
_MAX_DEPTH = 8
_MAX_NAMES = 10
_COMMAND_ADVICE = 'name the command that serves it on stdio, such as --command "python server.py".'
_CALL_SECONDS = 60
"""The time limit of a call. A sampled tool may wait for something that never comes."""

_RULES: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("unknown arguments", re.compile(r"additionalProperties")),
    ("error code", re.compile(r"error code changed from 0 to -3260[23]$")),
    ("description", re.compile(r"^description changed from ")),
    ("plain dict", re.compile(r"result result: removed|structuredContent changed from \{\"result\": \{.* to \{")),
)
REASONS = {
    "error code": "Errors of resources and prompts have the codes of JSON-RPC, where the SDK 1.x sends 0.",
    "description": "The description in a prompt's result is that of the lists, without the indentation of the code.",
    "unknown arguments": "The schema of a tool without arguments forbids others, which are refused in any case.",
    "plain dict": "A `dict` without types is the structured content itself, as in FastMCP; the SDK 1.x wraps it in "
    "`result`.",
}
"""The deliberate reasons of breaking differences to servers of FastMCP and the official SDK."""


@dataclass(frozen=True, slots=True)
class Verification:
    """What a comparison of both apps shows.

    Attributes:
        differences: What differs, in the order of the features and calls.
        listed: How many features the server lists, by "tools", "resources", "resourceTemplates" and "prompts".
        calls: How many calls were made on each server.
        not_called: Tools that were not called, because they may have effects.
        reasons: By the difference, the name of its reason in `REASONS`; "" for a difference without one.
    """

    differences: list[Difference]
    listed: dict[str, int]
    calls: int
    not_called: list[str]
    reasons: list[str]

    @property
    def is_same(self) -> bool:
        """Whether no client can fail with the new server for a reason that is not deliberate."""
        pairs = zip(self.differences, self.reasons, strict=True)
        return all(difference.level != "breaking" or reason for difference, reason in pairs)


async def verify(
    path: Path, changes: Sequence[Change], calls: Sequence[Call], *, call_tools: bool, command: str | None = None
) -> Verification:
    """Compare a server with what it is after the changes.

    Args:
        path: The folder, or the file.
        changes: The changes of the plan.
        calls: More calls to make.
        call_tools: Whether tools are called that may have effects.
        command: The command that serves on stdio in the folder. None for a function app, and for a file that does so.

    Raises:
        Failure: It is not known how the server is served, or one of both servers can't be served.
    """
    folder = _folder_of(path)
    app = folder if command is not None else _app_in(folder)
    source = _source_of(path, app, command)
    with _changed_copy(folder, changes) as copy:  # made before the calls, which may store something
        listed, _ = await inspect_server(source)
        counts = {kind: len(listed[kind]) for kind in FEATURE_LISTS.values()}
        if source.folder is None and not any(counts.values()):
            await _check_triggers(app, has_changes=bool(changes))
        rewritten = _in_copy(source, app, copy / app.relative_to(folder))
        if source.folder is None:  # its host speaks all revisions, but may answer late on a busy machine
            source, rewritten = (replace(each, revision=listed["revision"]) for each in (source, rewritten))
        all_calls = [*example_calls(listed, call_tools=call_tools), *calls]
        old, _ = await inspect_server(source, all_calls, call_seconds=_CALL_SECONDS)
        try:
            new, _ = await inspect_server(rewritten, all_calls, call_seconds=_CALL_SECONDS)
        except Failure as failure:  # the copy's folder does not exist any more when this is read
            raise Failure(f"In the rewritten copy: {str(failure).replace(str(copy), str(folder))}") from failure
    called = {call.get("tool") for call in all_calls}
    not_called = [tool["name"] for tool in listed["tools"] if tool["name"] not in called]
    listed_differences = differences(old, new)
    reasons = [_reason_in(source, difference) for difference in listed_differences]
    return Verification(listed_differences, counts, len(all_calls), not_called, reasons)


async def _check_triggers(app: Path, *, has_changes: bool) -> None:
    """Raise Failure if a function app has HTTP triggers and no MCP triggers: its lists are empty, and say nothing."""
    from funcmcp_cli.function_app import open_function_app, start_function_app  # noqa: PLC0415 - few apps need it
    from funcmcp_host.served import HostSettings  # noqa: PLC0415

    served = open_function_app(app, HostSettings(), has_address=False)
    try:
        await start_function_app(served)
    finally:
        await served.aclose()
    if served.app.mcp_functions or not served.http_endpoints:
        return
    raise _not_compared(app, served.http_endpoints, has_changes=has_changes)


def _not_compared(app: Path, endpoints: Mapping[str, Sequence[str]], *, has_changes: bool) -> Failure:
    """Return the failure for a function app with these HTTP triggers, each with its methods, and no MCP triggers."""
    triggers = [f"{path} ({', '.join(methods) or 'all methods'})" for path, methods in endpoints.items()]
    if len(triggers) > _MAX_NAMES:
        triggers[_MAX_NAMES:] = [f"and {len(triggers) - _MAX_NAMES} more"]
    advice = "migrate changes no file, so clients see no difference."
    if has_changes:
        advice = "Serve the app before and after the changes with funcmcp host, and run: funcmcp diff OLD_URL NEW_URL"
    return Failure(
        f"{app.resolve()} has no MCP triggers, and its HTTP triggers are not compared: {', '.join(triggers)}. {advice}"
    )


def _folder_of(path: Path) -> Path:
    return path if path.is_dir() else path.parent


def _app_in(folder: Path) -> Path:
    """Return the folder of the function app: the one named, or the one that azure.yaml in it deploys."""
    from funcmcp_host.app_folders import app_in  # noqa: PLC0415 - only function apps need it
    from funcmcp_host.folder import FolderError  # noqa: PLC0415

    try:
        return app_in(folder)
    except FolderError as error:
        raise Failure(f"{error} If the server is not a function app, {_COMMAND_ADVICE}") from None


def _reason_in(source: Source, difference: Difference) -> str:
    """Return the reason for a difference; "" for function apps, whose reasons are not known."""
    return "" if source.folder is None or difference.level != "breaking" else reason_of(difference.text)


def reason_of(text: str) -> str:
    """Return the name of the reason for a breaking difference; "" if it has no deliberate one.

    Args:
        text: The text of the difference.
    """
    return next((reason for reason, pattern in _RULES if pattern.search(text)), "")


def _source_of(path: Path, folder: Path, command: str | None) -> Source:
    """Return the server before the changes."""
    if command is None and (folder / "host.json").is_file():
        if has_custom_handler(folder / "host.json"):
            raise Failure(f"{folder.resolve()} has a custom handler. Compare its server with: funcmcp diff OLD NEW")
        return function_app_source(str(folder))
    if command is not None:
        arguments = _arguments_of(command)
    elif path.is_file():
        arguments = (sys.executable, path.name)
    else:
        raise Failure(
            f"{folder.resolve()} has no host.json: it is not a function app. "
            f"{_COMMAND_ADVICE[0].upper()}{_COMMAND_ADVICE[1:]}"
        )
    return Source(shlex.join(arguments), None, command=arguments, folder=folder, variables=_variables(folder))


def _arguments_of(command: str) -> tuple[str, ...]:
    try:
        arguments = tuple(shlex.split(command))
    except ValueError as error:
        raise Failure(f"--command {command!r} is not a command: {error}.") from error
    if not arguments:
        raise Failure('--command is empty. Name what serves the server on stdio, such as --command "python server.py".')
    return arguments


def _in_copy(source: Source, app: Path, copy: Path) -> Source:
    """Return the server after the changes, which needs funcmcp."""
    if source.folder is None:
        packages = os.pathsep.join(_packages_for(app))
        return replace(function_app_source(str(copy)), variables={"FUNCMCP_APP_PACKAGES": packages})
    return replace(source, folder=copy, variables=_variables(copy))


def _packages_for(folder: Path) -> list[str]:
    """Return the folders with the packages of this process, for an app whose environment may lack funcmcp.

    Raises:
        Failure: The app's Python has no funcmcp, and can't use that of this process, which is for another version.
    """
    from funcmcp_host.workers.python_command import interpreter_of  # noqa: PLC0415 - only function apps have workers

    python = interpreter_of(folder)
    if python == sys.executable:
        return []
    question = "import importlib.util as u, sys; print(*sys.version_info[:2], u.find_spec('funcmcp') is not None)"
    try:
        answer = subprocess.run(  # noqa: S603 - the interpreter with which the app is served
            [python, "-c", question], capture_output=True, text=True, check=True, timeout=60
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise Failure(f"{python} does not run: {error}") from error
    major, minor, has_funcmcp = answer.stdout.split()
    if has_funcmcp == "True":
        return []
    if (int(major), int(minor)) != sys.version_info[:2]:
        version = f"{sys.version_info[0]}.{sys.version_info[1]}"
        raise Failure(
            f"{python} is Python {major}.{minor}, and funcmcp is installed for Python {version}, so the rewritten app "
            f'cannot use it. Run {python} -m pip install "funcmcp[azure]" first.'
        )
    standard = {sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")}
    paths = [*map(Path, filter(None, sys.path)), Path(funcmcp.__file__).parents[1]]
    return [str(path) for path in paths if path.is_dir() and str(path) not in standard and path != Path.cwd()]


def _variables(folder: Path) -> dict[str, str]:
    """Return the variables with which Python takes modules from a folder, also if another copy of them is installed."""
    source = folder.resolve() / "src"
    modules = "" if (source / "__init__.py").is_file() else str(source)  # a package may have modules named as libraries
    places = [str(folder.resolve()), modules, os.environ.get("PYTHONPATH", "")]
    return {"PYTHONPATH": os.pathsep.join(filter(None, places))}


@contextmanager
def _changed_copy(folder: Path, changes: Sequence[Change]) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="funcmcp-migrate-") as temporary:
        copy = Path(temporary, folder.resolve().name)
        environments: list[Path] = []

        def left_out(place: str, names: list[str]) -> set[str]:
            environments.extend(Path(place, name) for name in names if name in _LINKED)
            return {*names} & (_LINKED | _LEFT_OUT)

        try:
            shutil.copytree(folder, copy, symlinks=True, ignore=left_out)
            _keep_targets(folder.resolve(), copy)
            for environment in environments:
                (copy / environment.relative_to(folder)).symlink_to(environment.resolve())
            for change in changes:
                (copy / change.name).write_bytes(change.after)
        except (OSError, shutil.Error) as error:
            raise Failure(f"{folder} cannot be copied: {error}.") from error
        yield copy


def _keep_targets(folder: Path, copy: Path) -> None:
    """Point links in the copy that lead out of the folder to the targets of the original links."""
    for place, folders, files in os.walk(copy):
        for link in (path for path in (Path(place, name) for name in folders + files) if path.is_symlink()):
            target = (folder / link.relative_to(copy).parent / link.readlink()).resolve()
            if not target.is_relative_to(folder):
                link.unlink()
                link.symlink_to(target)


def example_calls(listed: Mapping[str, Any], *, call_tools: bool) -> list[Call]:
    """Return calls of what a server lists: resources, prompts, and tools that only read.

    Args:
        listed: The lists, as `inspect_server` returns them.
        call_tools: Whether all tools are called.
    """
    uris = [str(resource["uri"]) for resource in listed["resources"]]
    uris += [URI_VARIABLE.sub(_EXAMPLE, str(template["uriTemplate"])) for template in listed["resourceTemplates"]]
    calls: list[Call] = [{"resource": uri} for uri in uris]
    for prompt in listed["prompts"]:
        names = {str(argument["name"]): bool(argument.get("required")) for argument in as_list(prompt.get("arguments"))}
        required = {name: _EXAMPLE for name, is_required in names.items() if is_required}
        calls.append({"prompt": prompt["name"], "arguments": dict.fromkeys(names, _EXAMPLE)})
        if len(required) < len(names):
            calls.append({"prompt": prompt["name"], "arguments": required})
    tools = [tool for tool in listed["tools"] if call_tools or as_object(tool.get("annotations")).get("readOnlyHint")]
    calls += [{"tool": tool["name"], "arguments": _example(as_object(tool.get("inputSchema")), 0)} for tool in tools]
    return calls


_EXAMPLES: dict[str, Any] = {"string": _EXAMPLE, "integer": 1, "number": 1.5, "boolean": True, "null": None}


def _example(schema: Mapping[str, Any], depth: int) -> Any:
    """Return a value for a schema: its default, its first choice, or the smallest value of its type."""
    if "default" in schema:
        return schema["default"]
    choices = as_list(schema.get("enum"))
    if choices:
        return choices[0]
    kinds = schema.get("type")
    kind = str(as_list(kinds)[0]) if isinstance(kinds, list) and kinds else str(kinds)
    if kind == "object" and depth < _MAX_DEPTH:
        properties = as_object(schema.get("properties"))
        required = [str(name) for name in as_list(schema.get("required"))]
        return {name: _example(as_object(properties.get(name)), depth + 1) for name in required}
    if kind == "array" and depth < _MAX_DEPTH:
        return [_example(as_object(schema.get("items")), depth + 1)]
    return {"object": {}, "array": []}.get(kind, _EXAMPLES.get(kind, _EXAMPLE))
