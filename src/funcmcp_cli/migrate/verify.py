"""``funcmcp migrate --verify``: a function app before and after the changes, each under ``funcmcp host``.

How it works: the changes are made in a copy of the app. Both are listed, and the same calls are made on both: resources
are read, prompts are got, and tools are called that only read. Arguments are made from schemas. Environments of Python
and packages of Node are not copied: the copy links to them.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from funcmcp._adapters.azure.triggers.binding_json import URI_VARIABLE
from funcmcp_cli.connect import inspect_server
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


@dataclass(frozen=True, slots=True)
class Verification:
    """What a comparison of both apps shows.

    Attributes:
        differences: What differs, in the order of the features and calls.
        calls: How many calls were made on each app.
        not_called: Tools that were not called, because they may have effects.
    """

    differences: list[Difference]
    calls: int
    not_called: list[str]

    @property
    def is_same(self) -> bool:
        """Whether no client can fail with the new app."""
        return all(difference.level != "breaking" for difference in self.differences)


async def verify(path: Path, changes: Sequence[Change], calls: Sequence[Call], *, call_tools: bool) -> Verification:
    """Compare a function app with what it is after the changes.

    Args:
        path: The app's folder, or its file.
        changes: The changes of the plan.
        calls: More calls to make.
        call_tools: Whether tools are called that may have effects.

    Raises:
        Failure: The folder is not that of a function app, or one of both apps cannot be served.
    """
    folder = _function_app(path)
    with _changed_copy(folder, changes) as copy:  # made before the calls, which may store something
        listed, _ = await inspect_server(function_app_source(str(folder)))
        all_calls = [*example_calls(listed, call_tools=call_tools), *calls]
        old, _ = await inspect_server(function_app_source(str(folder)), all_calls)
        new, _ = await inspect_server(function_app_source(str(copy)), all_calls)
    called = {call.get("tool") for call in all_calls}
    not_called = [tool["name"] for tool in listed["tools"] if tool["name"] not in called]
    return Verification(differences(old, new), len(all_calls), not_called)


def _function_app(path: Path) -> Path:
    folder = path if path.is_dir() else path.parent
    if not (folder / "host.json").is_file():
        raise Failure(f"{folder} has no host.json: it is not a function app. Compare others with: funcmcp diff OLD NEW")
    if has_custom_handler(folder / "host.json"):
        raise Failure(f"{folder} has a custom handler. Compare its server with: funcmcp diff OLD NEW")
    return folder


@contextmanager
def _changed_copy(folder: Path, changes: Sequence[Change]) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="funcmcp-migrate-") as temporary:
        copy = Path(temporary, folder.resolve().name)
        try:
            shutil.copytree(folder, copy, symlinks=True, ignore=lambda _, names: {*names} & (_LINKED | _LEFT_OUT))
            _keep_targets(folder.resolve(), copy)
            for name in _LINKED:
                if (folder / name).exists():
                    (copy / name).symlink_to((folder / name).resolve())
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
