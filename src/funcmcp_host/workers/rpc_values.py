"""Values of functions as TypedData, the message with which FunctionRpc sends them.

Source: GrpcMessageConversionExtensions of the Functions host. That host rejects collections and ModelBindingData that
come from a worker; here they become JSON.
"""

from __future__ import annotations

import base64
import json
from email.utils import formatdate
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from funcmcp_host.json_texts import loads
from funcmcp_host.workers.worker import NULL, Value

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_SAME_SITE = {1: "Lax", 2: "Strict", 3: "None"}
_BINARY_TYPES = ("application/octet-stream", "multipart/")


def write_typed_data(target: Any, value: Value, capabilities: Mapping[str, str]) -> None:
    """Write a value into an empty TypedData.

    Args:
        target: The message.
        value: The value.
        capabilities: Those of the worker. They decide how an HTTP request is written.
    """
    if value.kind == "http":
        _write_request(target.http, value.data, capabilities)
    elif value.kind != "null":
        setattr(target, value.kind, value.data)


def read_typed_data(data: Any) -> Value:
    """Return the value of a TypedData.

    Raises:
        ValueError: The value is an HTTP response whose status is not a number.
    """
    kind = data.WhichOneof("data")
    if kind is None:
        return NULL
    content = getattr(data, kind)
    if kind == "stream":
        return Value("bytes", content)
    if kind == "http":
        return Value("http", _response(content))
    if kind in _JSON_OF:
        return Value("json", json.dumps(_JSON_OF[kind](content)))
    return Value(kind, content)


def _model_binding_data(data: Any) -> dict[str, Any]:
    """Return ModelBindingData as a JSON object. Its content is decoded if it is JSON, and base64 otherwise."""
    content: Any = None
    if data.content_type == "application/json":
        try:
            content = loads(data.content)
        except ValueError:
            content = None
    if content is None:
        content = base64.b64encode(data.content).decode()
    return {"version": data.version, "source": data.source, "contentType": data.content_type, "content": content}


_JSON_OF: Mapping[str, Callable[[Any], Any]] = {
    "collection_bytes": lambda data: [base64.b64encode(item).decode() for item in data.bytes],
    "collection_string": lambda data: list(data.string),
    "collection_double": lambda data: list(data.double),
    "collection_sint64": lambda data: list(data.sint64),
    "model_binding_data": _model_binding_data,
    "collection_model_binding_data": lambda data: [_model_binding_data(item) for item in data.model_binding_data],
}
"""Functions that return a JSON value for the message of a kind."""


def _write_request(http: Any, request: Mapping[str, Any], capabilities: Mapping[str, str]) -> None:
    http.method, http.url = request["method"], request["url"]
    for name in ("headers", "params", "query"):
        if capabilities.get("UseNullableValueDictionaryForHttp"):
            values = getattr(http, f"nullable_{name}")
            for key, text in request[name].items():
                values[key].value = text
        else:
            # The host leaves out empty values here, except those of headers.
            texts = {key: text for key, text in request[name].items() if text or name == "headers"}
            getattr(http, name).update(texts)
    if request["body"]:
        _write_body(http, request["body"], request["headers"].get("content-type", ""), capabilities)


def _write_body(http: Any, body: bytes, media_type: str, capabilities: Mapping[str, str]) -> None:
    media_type = media_type.lower()
    text = body.decode("utf-8", "replace")
    if capabilities.get("RpcHttpBodyOnly"):
        if capabilities.get("RawHttpBodyBytes") or media_type.startswith(_BINARY_TYPES):
            http.body.bytes = body
        else:
            http.body.string = text
        return
    if media_type.startswith(_BINARY_TYPES):
        http.body.bytes = body
    elif media_type.startswith("application/json") and _is_json(text):
        http.body.json = text
    else:
        http.body.string = text
    if capabilities.get("RawHttpBodyBytes"):
        http.rawBody.bytes = body
    else:
        http.rawBody.string = text


def _is_json(text: str) -> bool:
    try:
        loads(text)
    except ValueError:
        return False
    return True


def _response(http: Any) -> dict[str, Any]:
    status = http.status_code or "200"
    if not status.isdecimal():
        raise ValueError(f"The status of an HTTP response is {status!r}, which is not a number.")
    headers = list(http.headers.items())
    value = read_typed_data(http.body)
    if value.kind == "json" and not any(name.lower() == "content-type" for name, _ in headers):
        headers.append(("content-type", "application/json; charset=utf-8"))
    headers += [("set-cookie", _cookie_text(cookie)) for cookie in http.cookies]
    return {"status": int(status), "headers": headers, "body": _body_bytes(value)}


def _body_bytes(value: Value) -> bytes:
    if value.kind == "null":
        return b""
    return value.data if value.kind == "bytes" else str(value.data).encode()


def _cookie_text(cookie: Any) -> str:
    parts = [f"{cookie.name}={quote(cookie.value, safe='')}"]
    if cookie.max_age.WhichOneof("double"):
        parts.append(f"Max-Age={cookie.max_age.value:.0f}")
    if cookie.domain.value:
        parts.append(f"Domain={cookie.domain.value}")
    if cookie.path.value:
        parts.append(f"Path={cookie.path.value}")
    if cookie.expires.WhichOneof("timestamp"):
        parts.append(f"Expires={formatdate(cookie.expires.value.seconds, usegmt=True)}")
    if cookie.http_only.value:
        parts.append("HttpOnly")
    if cookie.secure.value:
        parts.append("Secure")
    if cookie.same_site in _SAME_SITE:
        parts.append(f"SameSite={_SAME_SITE[cookie.same_site]}")
    return "; ".join(parts)
