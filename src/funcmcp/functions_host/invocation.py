"""What a function gets from its MCP trigger: the invocation context and the binding data.

Source: the contract of the MCP extension ("Invocation Context Objects", "Binding Data Contract"). Members without a
value are left out, as there.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from funcmcp.functions_host.workers.worker import Value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from funcmcp.server.calls.context import RequestContext
    from funcmcp.transports.http.messages import HttpRequest

SSE_PATH = "/sse"
"""The end of the path of the HTTP+SSE endpoint."""

_HOST_SECRETS = {"x-functions-key"}


class Trigger:
    """The trigger's value for one call, and what other bindings may read of it.

    Attributes:
        value: The context as the function gets it, a JSON text.
        metadata: The binding data, by name.
        texts: The values that expressions in other bindings can name, by name in lower case.
        groups: Objects whose members expressions can name, such as ``mcptoolargs``, by name in lower case.
    """

    __slots__ = ("groups", "metadata", "texts", "value")

    def __init__(self, context: dict[str, Any], name: str, parameter: str) -> None:
        text = json.dumps(context, separators=(",", ":"))
        self.value = Value("string", text)
        self.metadata = {parameter: self.value, name: Value("json", text)}
        self.texts = {key: value for key, value in context.items() if isinstance(value, str)}
        self.groups: dict[str, Mapping[str, str]] = {}
        session_id = context.get("sessionid")
        if session_id is not None:
            self.add_text("mcpsessionid", session_id)

    def add_text(self, name: str, text: str) -> None:
        """Add a text to the binding data."""
        self.metadata[name] = Value("string", text)
        self.texts[name.lower()] = text

    def add_group(self, name: str, values: Mapping[str, str]) -> None:
        """Add an object of texts to the binding data."""
        self.metadata[name] = Value("json", json.dumps(values, separators=(",", ":")))
        self.groups[name] = values


def tool_trigger(context: RequestContext, parameter: str) -> Trigger:
    """Return the trigger's value for a call of a tool."""
    params = context.request.params
    trigger = Trigger(_context_of(context, name=params.get("name")), "mcptoolcontext", parameter)
    arguments = params.get("arguments")
    trigger.add_group("mcptoolargs", texts_of(arguments if isinstance(arguments, dict) else {}))
    return trigger


def resource_trigger(context: RequestContext, parameter: str, uri: str, values: Mapping[str, str]) -> Trigger:
    """Return the trigger's value for a read of a resource.

    Args:
        context: The request.
        parameter: The name of the function's parameter.
        uri: The URI that is read.
        values: The values of the template's variables, not decoded.
    """
    trigger = Trigger(_context_of(context, uri=uri), "mcpresourcecontext", parameter)
    trigger.add_text("mcpresourceuri", uri)
    for name, value in values.items():
        trigger.add_text(name, value)
    return trigger


def prompt_trigger(context: RequestContext, parameter: str) -> Trigger:
    """Return the trigger's value for a prompt."""
    params = context.request.params
    trigger = Trigger(_context_of(context, name=params.get("name")), "mcppromptcontext", parameter)
    arguments = params.get("arguments")
    trigger.add_group("mcppromptargs", texts_of(arguments if isinstance(arguments, dict) else {}))
    return trigger


def http_trigger(params: Mapping[str, str], query: Mapping[str, str], headers: Mapping[str, str]) -> Trigger:
    """Return what other bindings may read of an HTTP request: the route's variables, ``query`` and ``headers``."""
    trigger = Trigger({}, "request", "req")
    for name, value in params.items():
        trigger.add_text(name, value)
    trigger.add_group("query", query)
    trigger.add_group("headers", headers)
    return trigger


def http_metadata(request: HttpRequest, params: Mapping[str, str]) -> dict[str, Value]:
    """Return the binding data of an HTTP request whose body goes to the worker by HTTP.

    Functions get the headers of the request from here, and not from the HTTP request to the worker.
    """
    headers = {name: value for name, value in request.headers.items() if name not in _HOST_SECRETS}
    return {
        **{name: Value("string", value) for name, value in params.items()},
        "Headers": Value("json", json.dumps(headers)),
        "Query": Value("json", json.dumps(dict(request.query))),
    }


def texts_of(arguments: Mapping[str, Any]) -> dict[str, str]:
    """Return arguments as texts: strings as they are, null as an empty text, all else as .NET writes a JsonElement."""
    return {name: text_of(value) for name, value in arguments.items()}


def text_of(value: object) -> str:
    """Return the text of one argument; see `texts_of`."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, bool):
        return "True" if value else "False"
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _context_of(context: RequestContext, **subject: Any) -> dict[str, Any]:
    """Return an invocation context; `subject` is the name or the URI of what is called."""
    client = context.client
    params = context.request.params
    described: dict[str, Any] = dict(subject)
    if "name" in subject and params.get("arguments") is not None:
        described["arguments"] = params["arguments"]
    if client.session_id:
        described["sessionid"] = client.session_id
    if client.info:
        described["clientinfo"] = dict(client.info)
    described["transport"] = _transport_of(context)
    return described


def _transport_of(context: RequestContext) -> dict[str, Any]:
    http = context.http
    if http is None:
        return {"name": "stdio", "properties": {}}
    path = http.url.partition("?")[0]
    transport: dict[str, Any] = {"name": "http-sse" if path.endswith(SSE_PATH) else "http-streamable"}
    if context.client.session_id:
        transport["sessionId"] = context.client.session_id
    headers = {_usual_name(name): value for name, value in http.headers.items() if name not in _HOST_SECRETS}
    transport["properties"] = {"headers": headers}
    return transport


def _usual_name(header: str) -> str:
    """Return a header's name as it is usually written.

    HTTP servers in Python hand names over in lower case. Apps look for "Authorization" and "X-MS-CLIENT-PRINCIPAL",
    which is what the Functions host hands over.
    """
    if header.startswith("x-ms-"):
        return header.upper()
    return "-".join(part.capitalize() for part in header.split("-"))
