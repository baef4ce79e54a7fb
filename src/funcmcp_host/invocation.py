"""What a function gets from its trigger: the invocation context or the HTTP request, and the binding data.

Functions never see a key of the host. They believe the headers in which Azure's front end describes the caller, so
these reach them only if a proxy in front of the host sets them.

Source: the contract of the MCP extension ("Invocation Context Objects", "Binding Data Contract"), where members without
a value are left out; "Work with user identities in Azure App Service authentication" ("External requests aren't allowed
to set these headers"); "Configure TLS mutual authentication in Azure App Service" (X-ARR-ClientCert) and "Configure
client certificate authentication in Azure Container Apps" (X-Forwarded-Client-Cert).
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from funcmcp._transports.http.messages import HttpRequest, fields_of
from funcmcp_host.paths import target_of
from funcmcp_host.workers.worker import Value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from funcmcp.middleware import RequestContext

SSE_PATH = "/sse"
"""The end of the path of the HTTP+SSE endpoint."""

ARGUMENT_GROUPS = frozenset({"mcppromptargs", "mcptoolargs"})
"""The names of the objects with the arguments of a call in the binding data."""

_ENCODED_SLASH = re.compile("%25(2[Ff])")
_KEY_HEADER = "x-functions-key"
_FRONT_END = (b"x-ms-client-", b"x-ms-token-", b"x-arr-", b"x-forwarded-client-cert")
"""Beginnings of names of headers that only Azure's front end sets: the caller's identity, tokens and certificate."""


def drop_front_end_headers(request: HttpRequest) -> None:
    """Remove the headers that only Azure's front end sets from a request that did not pass it."""
    if any(_is_of_front_end(name) for name in request.fields):
        request.pairs = [pair for pair in request.pairs if not _is_of_front_end(pair[0])]
        request.fields = fields_of(request.pairs)
        request.header = None  # other requests of the connection may share it


def _is_of_front_end(name: bytes) -> bool:
    return name.replace(b"_", b"-").startswith(_FRONT_END)  # WSGI does not tell the two apart


class FunctionRequest(HttpRequest):
    """A request for an HTTP trigger as its function sees it: without a key of the host.

    Args:
        request: The request.
        query_string: Its query without the key.
    """

    __slots__ = ("_query_string", "_request")

    def __init__(self, request: HttpRequest, query_string: str) -> None:
        pairs = [pair for pair in request.pairs if pair[0] != _KEY_HEADER.encode()]
        super().__init__(request.method, request.path, pairs, request.server)
        self._request = request
        self._query_string = query_string

    async def disconnected(self) -> None:
        """Return when the client has disconnected."""
        await self._request.disconnected()

    @property
    def scheme(self) -> str:
        """`http` or `https`."""
        return self._request.scheme

    @property
    def mount(self) -> str:
        """The path under which the adapter is mounted."""
        return self._request.mount

    @property
    def url(self) -> str:
        """The absolute URL, percent-encoded: a program that parses it finds the path that was checked.

        ``%2F`` stays, as on Azure: its path has these three characters.
        """
        target = _ENCODED_SLASH.sub(r"%\1", target_of(self).decode("ascii"))
        return f"{self.scheme}://{self.headers.get('host', '')}{self.mount}{target}"

    @property
    def query_string(self) -> str:
        """The query of the URL, without the question mark and the key."""
        return self._query_string

    @property
    def query_params(self) -> Mapping[str, str]:
        """Query parameters, decoded. As on Azure, the values of a repeated name are joined, whatever its case."""
        values: dict[str, list[str]] = {}
        names: dict[str, str] = {}
        for name, value in parse_qsl(self.query_string, keep_blank_values=True):
            values.setdefault(names.setdefault(name.lower(), name), []).append(value)
        return {name: ",".join(texts) for name, texts in values.items()}


class Trigger:
    """The trigger's value for one call, and what other bindings may read of it.

    Args:
        context: The context that the function gets.
        name: The name of the context in the binding data.
        parameter: The name of the function's parameter.

    Attributes:
        value: The context as the function gets it, a JSON text.
        metadata: The binding data, by name.
        groups: The objects of texts in the binding data, such as ``mcptoolargs``, by name in lower case.
    """

    __slots__ = ("_context", "_values", "groups", "metadata", "value")

    def __init__(self, context: dict[str, Any], name: str, parameter: str) -> None:
        text = json.dumps(context, separators=(",", ":"))
        self.value = Value("string", text)
        self.metadata = {parameter: self.value, name: Value("json", text)}
        self.groups: dict[str, Mapping[str, str]] = {}
        self._context = {key.lower(): value for key, value in context.items() if _is_binding_data(value)}
        self._values: dict[str, Any] = {parameter.lower(): text, name: context}
        session_id = context.get("sessionid")
        if session_id is not None:
            self.add_text("mcpsessionid", session_id)

    def add_text(self, name: str, text: str) -> None:
        """Add a text to the binding data."""
        self.metadata[name] = Value("string", text)
        self._values[name.lower()] = text

    def add_group(self, name: str, values: Mapping[str, str]) -> None:
        """Add an object of texts to the binding data."""
        self.metadata[name] = Value("json", json.dumps(values, separators=(",", ":")))
        self.groups[name] = values

    def value_of(self, name: str) -> Any:
        """Return the value that an expression names; raise KeyError if there is none.

        The members of the context replace others of the same name, as in Azure.
        """
        folded = name.lower()
        for values in (self._context, self.groups, self._values):
            if folded in values:
                return values[folded]
        raise KeyError(name)

    def has_exact_members(self, name: str) -> bool:
        """Return whether the names of an object's members are compared with their case."""
        return name.lower() in ARGUMENT_GROUPS


def _is_binding_data(value: Any) -> bool:
    """Return whether a member of a context is added to the binding data."""
    return value is not None and not isinstance(value, list)


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


def http_trigger(request: FunctionRequest, params: Mapping[str, str]) -> Trigger:
    """Return what other bindings may read of an HTTP request: the route's variables, ``query`` and ``headers``."""
    trigger = Trigger({}, "request", "req")
    for name, value in params.items():
        trigger.add_text(name, value)
    trigger.add_group("query", request.query_params)
    trigger.add_group("headers", dict(request.headers))
    return trigger


def http_metadata(request: FunctionRequest, params: Mapping[str, str]) -> dict[str, Value]:
    """Return the binding data of an HTTP request.

    Where the body goes to the worker by HTTP, functions get the headers of the request from here.
    """
    return {
        **{name: Value("string", value) for name, value in params.items()},
        "Headers": Value("json", json.dumps(dict(request.headers))),
        "Query": Value("json", json.dumps(dict(request.query_params))),
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
    headers = {usual_name(name): value for name, value in http.headers.items() if name != _KEY_HEADER}
    transport["properties"] = {"headers": headers}
    return transport


def usual_name(header: str) -> str:
    """Return a header's name as it is usually written.

    HTTP servers in Python hand names over in lower case. Apps look for "Authorization" and "X-MS-CLIENT-PRINCIPAL",
    which is what the Functions host hands over.
    """
    if header.startswith("x-ms-"):
        return header.upper()
    return "-".join(part.capitalize() for part in header.split("-"))
