"""Invocations of custom handlers as JSON, and what their answers mean.

A request is ``{"Data": {...}, "Metadata": {...}}``: the values of the trigger and the input bindings, and the binding
data. As on Azure, a text is encoded as JSON twice, so that the context of a tool is a JSON string that holds a JSON
string. An answer is ``{"Outputs": {...}, "Logs": [...], "ReturnValue": ...}``, in any case of the names.

Source: azure-functions-host, ScriptInvocationContextExtensions (texts, names that end with "trigger"), Utility
(ApplyBindingData: the members of the trigger's value), HttpRequestExtensions (GetRequestAsJObject), and
HttpScriptInvocationResultExtensions and HttpBinding (outputs, base64, responses).
"""

from __future__ import annotations

import base64
import json
import re
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from funcmcp._objects.mappings import lower_names
from funcmcp_host.invocation import usual_name
from funcmcp_host.json_texts import loads
from funcmcp_host.workers.worker import NULL, FunctionFailed, FunctionInfo, Outcome, Value

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from funcmcp_host.workers.worker import Invocation

_BINARY_TYPES = ("application/octet-stream", "multipart/")
_SPACE = re.compile(r"[ \t\r\n]+")
_RETURN = "$return"
_MEMBERS = ("outputs", "logs", "returnvalue")

_DOTNET_OBJECTS = {"mcptoolcontext", "mcpresourcecontext", "mcppromptcontext"}
"""Binding data that Azure sends with the names of .NET's properties and without the arguments. It is left out."""


@dataclass(frozen=True, slots=True)
class HandlerFunction:
    """A function that a custom handler runs.

    Attributes:
        info: Its name and its bindings.
        outputs: The types of its output bindings but for those of HTTP responses, by name: whether they are binary.
        response: The name of its HTTP output; None without one.
        is_forwarded: Whether the program gets its HTTP requests as they are.
    """

    info: FunctionInfo
    outputs: Mapping[str, bool]
    response: str | None
    is_forwarded: bool


class Answer(NamedTuple):
    """What a program answered.

    Attributes:
        outcome: The return value and the outputs.
        logs: Its lines for the log.
        is_empty: Whether it has none of the members that are read.
    """

    outcome: Outcome
    logs: Sequence[str]
    is_empty: bool


def handler_function(info: FunctionInfo, *, forwards: bool) -> HandlerFunction:
    """Return a function of a custom handler.

    Args:
        info: The function. Bindings that are not objects are ignored: they are refused elsewhere.
        forwards: Whether host.json forwards the requests of functions with an HTTP trigger and response alone.
    """
    bindings = [lower_names(binding) for binding in map(loads, info.bindings) if isinstance(binding, dict)]
    outputs = {}
    response = None
    for binding in bindings:
        if str(binding.get("direction", "in")).lower() not in {"out", "1"}:
            continue
        name = str(binding.get("name", ""))
        if str(binding.get("type", "")).lower() == "http":
            response = name
        else:
            outputs[name] = str(binding.get("datatype", "")).lower() in {"binary", "1"}
    return HandlerFunction(info, outputs, response, forwards and is_plain_http(bindings))


def is_plain_http(bindings: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether a function has an HTTP trigger and nothing else but a response.

    Args:
        bindings: Its bindings, with the names of their members in lower case.
    """
    kinds = sorted(str(binding.get("type", "")).lower() for binding in bindings)
    return kinds in (["httptrigger"], ["http", "httptrigger"])


def request_body(invocation: Invocation) -> bytes:
    """Return the JSON that a program gets for a call."""
    data: dict[str, Any] = {}
    metadata: dict[str, Any] = {}
    for name, value in invocation.metadata.items():
        if not name.lower().endswith("trigger") and name.lower() not in _DOTNET_OBJECTS:
            metadata[name] = _encoded(value)
    for name, value in invocation.inputs.items():
        if value.kind == "http":
            data[name] = _http_request(value.data)
            metadata.update(_http_metadata(value.data))
            continue
        data[name] = _encoded(value)
        if name in invocation.metadata:  # the trigger
            metadata.update(_members_of(value))
    metadata["sys"] = {
        "MethodName": invocation.function,
        "UtcNow": datetime.now(UTC).isoformat(),
        "RandGuid": str(uuid.uuid4()),
    }
    return json.dumps({"Data": data, "Metadata": metadata}, ensure_ascii=False, separators=(",", ":")).encode()


def _encoded(value: Value) -> Any:
    """Return a value as Azure sends it: an object as it is, bytes as base64, all else as a text that holds JSON."""
    if value.kind == "bytes":
        return base64.b64encode(value.data).decode()
    if value.kind == "json":
        decoded = loads(value.data)
        return decoded if isinstance(decoded, dict) else value.data
    return json.dumps(value.data, ensure_ascii=False)


def _members_of(value: Value) -> dict[str, Any]:
    """Return the members of a trigger's value that are binding data."""
    try:
        context = loads(value.data) if value.kind in {"string", "json"} else None
    except ValueError:
        context = None
    members = context if isinstance(context, dict) else {}
    return {
        name: member if isinstance(member, dict) else json.dumps(str(member), ensure_ascii=False)
        for name, member in members.items()
        if member is not None and not isinstance(member, list)
    }


def _http_metadata(request: Mapping[str, Any]) -> dict[str, Any]:
    params = {name: json.dumps(text, ensure_ascii=False) for name, text in request["params"].items()}
    return {**params, "Query": dict(request["query"]), "Headers": _headers_of(request)}


def _headers_of(request: Mapping[str, Any]) -> dict[str, str]:
    return {usual_name(name): text for name, text in request["headers"].items()}


def _http_request(request: Mapping[str, Any]) -> dict[str, Any]:
    content: dict[str, Any] = {
        "Url": request["url"],
        "Method": request["method"],
        "Query": dict(request["query"]),
        "Headers": {name: [text] for name, text in _headers_of(request).items()},
        "Params": dict(request["params"]),
        "Identities": [],
    }
    body = request["body"]
    if body:
        is_binary = request["headers"].get("content-type", "").lower().startswith(_BINARY_TYPES)
        content["Body"] = base64.b64encode(body).decode() if is_binary else body.decode("utf-8", "replace")
    return content


def read_answer(text: bytes, function: HandlerFunction) -> Answer:
    """Return what a program answered.

    Args:
        text: The body of its answer.
        function: The function that was called.

    Raises:
        FunctionFailed: The answer is not one that the Functions host reads.
    """
    members = _members_in(text)
    outputs, logs, returned = (members.get(name) for name in _MEMBERS)
    if outputs is not None and not isinstance(outputs, dict):
        raise FunctionFailed("Outputs in the custom handler's answer must be an object.")
    outcome = _outcome(outputs or {}, returned, function)
    return Answer(outcome, _lines_of(logs), not any(name in members for name in _MEMBERS))


def _members_in(text: bytes) -> dict[str, Any]:
    """Return the members of an answer, with their names in lower case."""
    try:
        content = loads(text, parse_constant=_refuse_constant)
    except ValueError:
        raise FunctionFailed("The custom handler's answer is not valid JSON.") from None
    if not isinstance(content, dict):
        raise FunctionFailed("The custom handler's answer must be an object with Outputs, Logs and ReturnValue.")
    return lower_names(content)


def _lines_of(logs: Any) -> list[str]:
    if logs is None:
        return []
    if not isinstance(logs, list) or any(isinstance(line, (dict, list)) for line in logs):
        raise FunctionFailed("Logs in the custom handler's answer must be an array of strings.")
    return [line if isinstance(line, str) else json.dumps(line) for line in logs if line is not None]


def _refuse_constant(text: str) -> Any:
    raise ValueError(text)


def _outcome(outputs: Mapping[str, Any], returned: Any, function: HandlerFunction) -> Outcome:
    values = {}
    for name, is_binary in function.outputs.items():
        raw = returned if name == _RETURN else outputs.get(name)
        if raw is not None:
            values[name] = _output_value(raw, is_binary=is_binary)
    if function.response == _RETURN:
        value = _returned_response(_output_value(returned, is_binary=False))
    elif function.response is not None:
        value = _named_response(function.response, outputs.get(function.response))
    else:
        value = _value(returned)
    return Outcome(value, values)


def _output_value(raw: Any, *, is_binary: bool) -> Value:
    """Return the value of an output. A text that is base64 is bytes there, unless the binding is binary."""
    if isinstance(raw, str) and not is_binary:
        try:
            return Value("bytes", base64.b64decode(_SPACE.sub("", raw), validate=True))
        except ValueError:
            pass
    return _value(raw)


def _value(raw: Any) -> Value:
    if raw is None:
        return NULL
    if isinstance(raw, str):
        return Value("string", raw)
    if isinstance(raw, int) and not isinstance(raw, bool):
        return Value("int", raw)
    if isinstance(raw, float):
        return Value("double", raw)
    return Value("json", json.dumps(raw))


def _returned_response(value: Value) -> Value:
    """Return the HTTP response for a return value: an object with a body describes one, all else is its body."""
    if value.kind not in {"string", "json"}:
        return value
    try:
        content = loads(value.data)
    except ValueError:
        return value
    if isinstance(content, dict) and "body" in lower_names(content):
        return _response("The return value", lower_names(content))
    return Value("json", value.data)


def _named_response(name: str, raw: Any) -> Value:
    """Return the HTTP response of an output that has a name. Azure answers a missing one with an empty object."""
    if raw is None:
        return Value("json", "{}")
    subject = f"The output {name!r}"
    if isinstance(raw, str):
        try:
            raw = loads(raw)
        except ValueError:
            raw = None
    if not isinstance(raw, dict):
        raise FunctionFailed(f"{subject} in the custom handler's answer must be an object with statusCode and body.")
    return _response(subject, lower_names(raw))


def _response(subject: str, members: Mapping[str, Any]) -> Value:
    """Return an HTTP response.

    Args:
        subject: What has described it, for an error.
        members: The members, with their names in lower case.
    """
    fields = _fields_of(subject, members.get("headers"))
    body = members.get("body")
    is_text = isinstance(body, str)
    if body is not None and not any(name.lower() == "content-type" for name, _ in fields):
        fields.append(("content-type", f"{'text/plain' if is_text else 'application/json'}; charset=utf-8"))
    content = str(body) if is_text else json.dumps(body, ensure_ascii=False)
    status = _status_of(subject, members)
    return Value("http", {"status": status, "headers": fields, "body": b"" if body is None else content.encode()})


def _status_of(subject: str, members: Mapping[str, Any]) -> int:
    statuses = [members.get(name) for name in ("statuscode", "status")]
    status = next((status for status in statuses if status is not None), 200)
    if isinstance(status, bool) or not str(status).strip().isdecimal():
        raise FunctionFailed(f"{subject} has the status {json.dumps(status)}, which is not a number.")
    return int(status)


def _fields_of(subject: str, headers: Any) -> list[tuple[str, str]]:
    if headers is None:
        return []
    if not isinstance(headers, dict):
        raise FunctionFailed(f"{subject} has headers that are not an object.")
    return [(str(name), text if isinstance(text, str) else json.dumps(text)) for name, text in headers.items()]
