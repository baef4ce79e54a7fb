"""The context that the functions host passes to a triggered function, in every spelling that it has had.

Source: Azure Functions MCP extension: ToolInvocationContext, ResourceInvocationContext, PromptInvocationContext,
Transport. Releases before March 2026 write `sesssionId` in the transport.
"""

from __future__ import annotations

from typing import Any

from pydantic_core import from_json, to_json

from funcmcp._objects.mappings import lower_names
from funcmcp._transports.http.messages import HttpRequest

_ENDPOINTS = {"http-sse": ("GET", "/runtime/webhooks/mcp/sse")}
_ENDPOINT = ("POST", "/runtime/webhooks/mcp")
"""Where the host has its endpoint; of HTTP+SSE it tells the request that opened the stream."""


class Invocation:
    """One call of a trigger.

    Args:
        context: the trigger's value: JSON as text or bytes, what it decodes to, or the object that the azure-functions
            library makes of a prompt's.

    Attributes:
        uri: of the resource that is read; empty for tools and prompts.
        arguments: the call's arguments; an object, unless the host sent something else.
        session_id: of the client's session, if the host knows one.
        client_info: the client's name and version; empty when unknown, as it is on Streamable HTTP.
        http: the HTTP request, as far as the host tells it: its headers.

    Raises:
        TypeError: The value is not an object.
        ValueError: The value is a text, but not JSON.
    """

    __slots__ = ("arguments", "client_info", "http", "session_id", "uri")

    def __init__(self, context: Any) -> None:
        members = _members(_decoded(context))
        transport = _object(members.get("transport"))
        session_ids = (members.get("sessionid"), transport.get("sessionid"), transport.get("sesssionid"))
        self.uri = str(members.get("uri") or "")
        self.arguments: Any = {} if members.get("arguments") is None else members["arguments"]
        self.session_id = next((text for text in session_ids if isinstance(text, str) and text), None)
        client_info = members.get("clientinfo")
        self.client_info: dict[str, Any] = client_info if isinstance(client_info, dict) else {}
        self.http = _http(transport)


class _ReportedRequest(HttpRequest):
    """An HTTP request that the functions host received and reports."""

    __slots__ = ()

    @property
    def scheme(self) -> str:
        """What the platform's front end took; the host itself is behind it."""
        return self.headers.get("x-forwarded-proto", "http")


def as_texts(arguments: Any) -> Any:
    """Return a prompt's arguments as the specification has them: texts. The host passes on any JSON value."""
    if not isinstance(arguments, dict):
        return arguments
    return {
        name: value if isinstance(value, str) else to_json(value).decode()
        for name, value in arguments.items()
        if value is not None
    }


def _decoded(context: Any) -> Any:
    if isinstance(context, str | bytes | bytearray):
        return from_json(context)
    if isinstance(context, dict):
        return context
    return {name: getattr(context, name, None) for name in ("name", "arguments", "sessionid", "transport")}


def _members(value: Any) -> dict[str, Any]:
    """Return an object's members by lower-case name; raise TypeError if it is not an object."""
    if not isinstance(value, dict):
        raise TypeError("The functions host sent no object as the context of an invocation.")
    return lower_names(value)


def _object(value: Any) -> dict[str, Any]:
    return _members(value) if isinstance(value, dict) else {}


def _http(transport: dict[str, Any]) -> HttpRequest | None:
    headers = _object(_object(transport.get("properties")).get("headers"))
    if not headers:
        return None
    method, path = _ENDPOINTS.get(str(transport.get("name")), _ENDPOINT)
    pairs = [(name.encode("ascii", "replace"), _value(value)) for name, value in headers.items()]
    return _ReportedRequest(method, path, pairs)


def _value(value: Any) -> bytes:
    return str(value).encode("latin-1", "replace")
