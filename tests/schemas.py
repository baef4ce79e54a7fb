"""Checks a message from the wire against the official JSON Schema of a protocol revision.

The schemas are third-party data and not part of the project. They are read from the folder that the environment
variable ``MCP_SCHEMAS`` names, else from ``../shared/schemas`` beside the repository, else from the npm packages of
the tests.
"""

from __future__ import annotations

import functools
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from jsonschema import Draft7Validator, Draft202012Validator
from jsonschema.exceptions import SchemaError, best_match
from jsonschema.validators import validator_for
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT7, DRAFT202012

from tests.packaged_schemas import packaged_schema

if TYPE_CHECKING:
    from jsonschema.protocols import Validator

HANDSHAKE_REVISIONS: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
PER_REQUEST_REVISION: Final = "2026-07-28"
REVISIONS: Final = (*HANDSHAKE_REVISIONS, PER_REQUEST_REVISION)

_TASKS: Final = "ext-tasks"
_TASK_RESULTS: Final = {
    "tasks/get": "GetTaskResult",
    "tasks/update": "UpdateTaskResult",
    "tasks/cancel": "CancelTaskResult",
}
"""Results of the methods that the tasks extension adds to 2026-07-28."""
# In these revisions an error must carry an id, and null is none: an error whose request had no readable id has no
# valid form, so such an error is looked at as if it carried one.
_ERROR_ID_REQUIRED: Final = frozenset({"2024-11-05", "2025-03-26", "2025-06-18"})
_BATCH_REVISION: Final = "2025-03-26"
_RESERVED_CODES: Final = range(-32099, -31999)
"""Error codes for which 2026-07-28 keeps the right to say what they mean."""
_EXCERPT: Final = 1500


PLACE: Final = Path(os.environ.get("MCP_SCHEMAS", Path(__file__).resolve().parents[2] / "shared" / "schemas"))
"""The folder of the schemas, which may be missing."""


def validate(message: object, revision: str, method: str | None = None) -> None:
    """Fail unless a decoded message is valid in a revision.

    Args:
        message: one request, notification, result or error; a list is a batch, which only 2025-03-26 has.
        revision: the revision that was spoken, e.g. ``"2025-06-18"``.
        method: for a result, the method of the request that it answers: selects the typed result.

    Raises:
        AssertionError: the message is not valid; the text says where and why and shows the message.
    """
    if isinstance(message, list):
        _refuse(revision != _BATCH_REVISION, f"{revision} has no batches", message)
        _refuse(not message, "a batch must not be empty", message)
        for item in message:
            validate(item, revision, method)
    elif not isinstance(message, dict):
        _refuse(True, "a message must be an object", message)
    elif "method" in message:
        _validate_call(message, revision)
    elif "error" in message:
        _validate_error(message, revision)
    else:
        _validate_result(message, revision, method)


def validate_as(value: object, revision: str, name: str) -> None:
    """Fail unless a value is valid as the named definition (e.g. ``"Tool"``) of a revision's schema."""
    _check(value, revision, name)


def _validate_call(message: dict[str, Any], revision: str) -> None:
    _check(message, revision, "JSONRPCRequest" if "id" in message else "JSONRPCNotification")
    name = _names_by_method(revision).get(message["method"])
    if name is not None:
        _check(message, revision, name)


def _validate_error(message: dict[str, Any], revision: str) -> None:
    if revision in _ERROR_ID_REQUIRED and "id" not in message:
        message = {"id": 0, **message}
    generic = _first_defined(revision, "JSONRPCErrorResponse", "JSONRPCError")
    _check(message, revision, generic)
    code = message["error"]["code"]
    typed = _names_by_code(revision)
    if revision == PER_REQUEST_REVISION:
        _refuse(code in _RESERVED_CODES and code not in typed, f"{revision} does not define error {code}", message)
    _check(message, revision, typed.get(code, generic))


def _validate_result(message: dict[str, Any], revision: str, method: str | None) -> None:
    _check(message, revision, _first_defined(revision, "JSONRPCResultResponse", "JSONRPCResponse"))
    result = message["result"]
    if revision == PER_REQUEST_REVISION and result["resultType"] != "complete":
        _validate_unfinished(result, revision, method)
        return
    if revision == PER_REQUEST_REVISION and method in _TASK_RESULTS:
        _check(result, _TASKS, _TASK_RESULTS[method])
        return
    if method == "tools/call" and "task" in result:
        _check(result, revision, "CreateTaskResult")
        return
    _check(result, revision, _result_name(revision, method))
    if method == "tools/list":
        for tool in result["tools"]:
            _check_tool_schemas(tool)


def _validate_unfinished(result: dict[str, Any], revision: str, method: str | None) -> None:
    if result["resultType"] == "task":
        _refuse(method not in (None, "tools/call"), f"{method} can't be answered with a task", result)
        _check(result, _TASKS, "CreateTaskResult")
        return
    _refuse(result["resultType"] != "input_required", f"unknown resultType {result['resultType']!r}", result)
    _check(result, revision, "InputRequiredResult")
    _refuse("inputRequests" not in result and "requestState" not in result, "neither requests nor state", result)
    if method is not None:
        response = definitions(revision).get(f"{_result_name(revision, method)}Response")
        allowed = "#/$defs/InputRequiredResult" in json.dumps(response)
        _refuse(not allowed, f"{method} can't be answered with input_required", result)


def _check_tool_schemas(tool: dict[str, Any]) -> None:
    for member in ("inputSchema", "outputSchema"):
        schema = tool.get(member, {})
        try:
            validator_for(schema, default=Draft202012Validator).check_schema(schema)
        except SchemaError as error:
            raise AssertionError(f"{member} of tool {tool['name']!r} is no JSON Schema: {error.message}") from error


def _check(value: Any, revision: str, name: str) -> None:
    error = best_match(_validator(revision, name).iter_errors(value))
    if error is not None:
        raise AssertionError(f"not a {name} of {revision}: {error.message} (at {error.json_path})\n{_excerpt(value)}")


def _refuse(wrong: bool, why: str, value: object) -> None:
    if wrong:
        raise AssertionError(f"{why}\n{_excerpt(value)}")


def _excerpt(value: object) -> str:
    text = json.dumps(value, indent=2, default=repr)
    return text if len(text) <= _EXCERPT else f"{text[:_EXCERPT]} ..."


def _first_defined(revision: str, *names: str) -> str:
    return next(name for name in names if name in definitions(revision))


def _result_name(revision: str, method: str | None) -> str:
    request = _names_by_method(revision).get(method or "", "")
    name = request.removesuffix("Request") + "Result"
    return name if name in definitions(revision) else "Result"


@functools.cache
def _names_by_method(revision: str) -> dict[str, str]:
    """Map a method to its definition; unions such as ClientNotification repeat a member's method and are left out."""
    return {
        definition["properties"]["method"]["const"]: name
        for name, definition in definitions(revision).items()
        if "const" in definition.get("properties", {}).get("method", {}) and not name.startswith(("Client", "Server"))
    }


@functools.cache
def _names_by_code(revision: str) -> dict[int, str]:
    found = {}
    for name, definition in definitions(revision).items():
        for part in definition.get("properties", {}).get("error", {}).get("allOf", ()):
            code = part.get("properties", {}).get("code", {}).get("const")
            if code is not None:
                found[code] = name
    return found


def definitions(revision: str) -> dict[str, Any]:
    """Return the definitions of a revision's schema."""
    schema = _schema(revision)
    return cast("dict[str, Any]", schema.get("$defs") or schema["definitions"])


@functools.cache
def _schema(revision: str) -> dict[str, Any]:
    file = PLACE / revision / "schema.json"
    if not file.is_file():
        return packaged_schema(revision)
    return cast("dict[str, Any]", json.loads(file.read_text(encoding="utf-8")))


@functools.cache
def _registry(revision: str) -> Registry[Any]:
    specification = DRAFT7 if "draft-07" in _schema(revision)["$schema"] else DRAFT202012
    resource = Resource.from_contents(_schema(revision), default_specification=specification)
    registry: Registry[Any] = Registry().with_resource(_uri(revision), resource).crawl()
    return registry


@functools.cache
def _validator(revision: str, name: str) -> Validator:
    schema = _schema(revision)
    chosen = Draft7Validator if "draft-07" in schema["$schema"] else Draft202012Validator
    keyword = "$defs" if "$defs" in schema else "definitions"
    if name not in schema[keyword]:
        raise AssertionError(f"the schema of {revision} defines no {name}")
    return cast("Validator", chosen({"$ref": f"{_uri(revision)}#/{keyword}/{name}"}, registry=_registry(revision)))


def _uri(revision: str) -> str:
    return f"urn:mcp-schema:{revision}"
