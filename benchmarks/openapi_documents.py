"""Calls of every tool that is made from OpenAPI documents, against a mock server that is made from the same documents.

    python benchmarks/openapi_documents.py FOLDER [--peer fastmcp] [--only NAME] [--json FILE]

For each document in the folder: import, list, then one call of each tool with arguments that are generated from its
input schema. The mock checks the request against the document with code of its own: method, path, each parameter in its
style, and the body in its media type. It answers with a value that is generated from the schema of the response.

The documents are not in the repository. ``--peer fastmcp`` does the same with FastMCP, in an environment that has it.
"""

from __future__ import annotations

import argparse
import asyncio
import email.parser
import email.policy
import json
import logging
import re
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterator

METHODS = ("get", "put", "post", "patch", "delete")
CALL_SECONDS = 20
_ABSENT = object()


# -- the document, read independently of the library


def follow(document: Any, node: Any) -> Any:
    """Return what a reference leads to."""
    for _ in range(30):
        if not isinstance(node, dict) or not isinstance(node.get("$ref"), str) or not node["$ref"].startswith("#/"):
            return node
        target = document
        for part in node["$ref"][2:].split("/"):
            name = unquote(part).replace("~1", "/").replace("~0", "~")
            target = target[int(name)] if isinstance(target, list) else target.get(name, {})
        node = target
    return {}


class Parameter(NamedTuple):
    """A parameter of an operation as the document describes it."""

    location: str
    name: str
    style: str
    explode: bool
    is_json: bool


@dataclass
class Described:
    """An operation as the document describes it."""

    method: str
    path: str
    parameters: dict[tuple[str, str], Parameter]
    media_types: dict[str, Any]
    response: Any


def described_operations(document: dict[str, Any]) -> dict[tuple[str, str], Described]:
    """Return the operations of a document by method and path."""
    is_2_0 = str(document.get("swagger")) == "2.0"
    described = {}
    for path, node in (document.get("paths") or {}).items():
        item = follow(document, node)
        for method in METHODS:
            operation = item.get(method) if isinstance(item, dict) else None
            if isinstance(operation, dict):
                listed = [*(item.get("parameters") or []), *(operation.get("parameters") or [])]
                parameters = [follow(document, parameter) for parameter in listed]
                read = _read_2_0 if is_2_0 else _read_3
                described[method.upper(), path] = read(document, method.upper(), path, operation, parameters)
    return described


def _read_3(document: Any, method: str, path: str, operation: Any, parameters: list[Any]) -> Described:
    read = {}
    for parameter in parameters:
        location = parameter.get("in", "")
        style = parameter.get("style") or ("form" if location in {"query", "cookie"} else "simple")
        explode = parameter.get("explode", style in {"form", "deepObject"})
        read[location, parameter["name"]] = Parameter(
            location, parameter["name"], style, bool(explode), "content" in parameter
        )
    body = follow(document, operation.get("requestBody") or {})
    responses = operation.get("responses") or {}
    success: Any = next((follow(document, node) for code, node in responses.items() if str(code)[:1] == "2"), {})
    contents = success.get("content") or {}
    response = next((entry.get("schema") for name, entry in contents.items() if "json" in name), None)
    return Described(method, path, read, body.get("content") or {}, response)


def _read_2_0(document: Any, method: str, path: str, operation: Any, parameters: list[Any]) -> Described:
    read, form, body = {}, {}, None
    formats = {"ssv": "spaceDelimited", "pipes": "pipeDelimited", "tsv": "tabDelimited"}
    for parameter in parameters:
        location, name = parameter.get("in", ""), parameter.get("name", "")
        collection = parameter.get("collectionFormat", "csv")
        if location == "body":
            body = parameter.get("schema", {})
        elif location == "formData":
            form[name] = parameter
        else:
            style = formats.get(collection, "form" if location == "query" else "simple")
            explode = collection == "multi" or (location == "query" and parameter.get("type") != "array")
            read[location, name] = Parameter(location, name, style, explode, is_json=False)
    consumes = operation.get("consumes") or document.get("consumes") or []
    media_types: dict[str, Any] = {}
    if form:
        is_file = any(field.get("type") == "file" for field in form.values())
        fallback = ["multipart/form-data"] if is_file else ["application/x-www-form-urlencoded", "multipart/form-data"]
        entry = {"schema": {"type": "object", "properties": form}}
        media_types = dict.fromkeys((*consumes, *fallback), entry)
    elif body is not None:
        media_types = {name: {"schema": body} for name in consumes or ["application/json"]}
    responses = operation.get("responses") or {}
    success: Any = next((follow(document, node) for code, node in responses.items() if str(code)[:1] == "2"), {})
    return Described(method, path, read, media_types, success.get("schema"))


# -- values from schemas


class Root(NamedTuple):
    """What references in a schema are relative to, and the members that its values do not have."""

    document: Any
    hidden: str


def value_of(schema: Any, root: Root, depth: int = 0) -> Any:
    """Return a value that fits a schema, with some optional members."""
    schema = follow(root.document, schema)
    if not isinstance(schema, dict):
        return "text"
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        return next((item for item in schema["enum"] if item is not None), None)
    for keyword in ("anyOf", "oneOf"):
        choices = [follow(root.document, choice) for choice in schema.get(keyword) or []]
        choices = [choice for choice in choices if not (isinstance(choice, dict) and choice.get("type") == "null")]
        if choices and "properties" not in schema:
            merged = {key: item for key, item in schema.items() if key != keyword}
            return value_of({**merged, **choices[0]}, root, depth + 1) if isinstance(choices[0], dict) else "text"
    if schema.get("allOf"):
        return _of_all(schema, root, depth)
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = next((name for name in kind if name != "null"), "null")
    if kind == "object" or (kind is None and ("properties" in schema or "additionalProperties" in schema)):
        return _object_of(schema, root, depth)
    if kind == "array":
        count = max(schema.get("minItems", 1), 1 if depth < 4 else 0)
        items = schema["prefixItems"] if "prefixItems" in schema else [schema.get("items", {})] * count
        return [value_of(item, root, depth + 1) for item in items]
    return _scalar_of(schema, kind)


def _of_all(schema: dict[str, Any], root: Root, depth: int) -> Any:
    merged: dict[str, Any] = {key: item for key, item in schema.items() if key != "allOf"}
    for part in schema["allOf"]:
        inner = follow(root.document, part)
        for key, item in (inner if isinstance(inner, dict) else {}).items():
            if key in {"properties", "required"} and key in merged:
                merged[key] = merged[key] | item if key == "properties" else [*merged[key], *item]
            else:
                merged.setdefault(key, item)
    return value_of(merged, root, depth + 1) if depth < 12 else {}


def _object_of(schema: dict[str, Any], root: Root, depth: int) -> dict[str, Any]:
    members = {}
    required = schema.get("required")
    required = required if isinstance(required, list) else []
    optional = 0
    for name, member in (schema.get("properties") or {}).items():
        if isinstance(member, dict) and member.get(root.hidden) is True:
            continue
        if name not in required:
            optional += 1
            if depth > 1 or (depth == 1 and optional > 2):
                continue
        if depth < 10:
            members[name] = value_of(member, root, depth + 1)
    extra = schema.get("additionalProperties")
    if not schema.get("properties") and 0 < depth < 6 and extra is not False:
        members["key"] = value_of(extra, root, depth + 1) if isinstance(extra, dict) else "text"
    return members


_FORMATS = {
    "date": "2026-11-28",
    "date-time": "2026-11-28T10:00:00Z",
    "time": "10:00:00Z",
    "uuid": "5e1ff4e2-5c25-4a4e-8a3c-2f2a8a3d5a11",
    "email": "a@example.com",
    "uri": "https://example.com/a",
    "url": "https://example.com/a",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "hostname": "example.com",
    "byte": "YQ==",
    "duration": "P1D",
}


def _scalar_of(schema: dict[str, Any], kind: Any) -> Any:
    if kind == "boolean":
        return True
    if kind == "null":
        return None
    if kind in {"integer", "number"}:
        low, high = schema.get("minimum", schema.get("exclusiveMinimum")), schema.get("maximum", 10**9)
        step = schema.get("multipleOf", 1)
        value = 5 if not isinstance(low, int | float) or low is True else low + (step if "minimum" not in schema else 0)
        value = min(value, high) if isinstance(high, int | float) and high is not True else value
        return int(value) if kind == "integer" or float(value).is_integer() else value
    if kind is None or kind == "string":
        text = _FORMATS.get(schema.get("format", ""), "a b&c=d ü" if _is_free(schema) else "text")
        if "pattern" in schema and schema.get("format") not in _FORMATS:
            return _matching(schema["pattern"], schema)
        return _of_length(text, schema)
    return "text"


def _is_free(schema: dict[str, Any]) -> bool:
    return not schema.keys() & {"format", "maxLength", "pattern"}


def _of_length(text: str, schema: dict[str, Any]) -> str:
    text = text + "x" * max(0, schema.get("minLength", 0) - len(text))
    return text[: schema["maxLength"]] if isinstance(schema.get("maxLength"), int) else text


def _matching(pattern: str, schema: dict[str, Any]) -> str:
    tries = ("text", "a", "A", "1", "12", "123", "2026-11-28", "a-b", "AB", "ABC", "USD", "en", "1.0", "+15550100")
    for text in (*tries, "x" * schema.get("minLength", 1), "1" * schema.get("minLength", 1), "https://a.example/b"):
        try:
            if re.search(pattern, text, re.ASCII):
                return _of_length(text, {key: item for key, item in schema.items() if key == "minLength"})
        except re.error:
            return "text"
    try:
        from hypothesis import strategies
    except ImportError:
        return "text"
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        examples = strategies.from_regex(re.compile(pattern, re.ASCII), fullmatch=True)
        long_enough = examples.filter(lambda text: len(text) >= schema.get("minLength", 0))
        return long_enough.filter(lambda text: text.isprintable()).example()


# -- checks of a request


@dataclass
class Sent:
    """A request that the mock received."""

    method: str
    url: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Expected:
    """What a call's arguments mean."""

    operation: Described
    values: list[tuple[str, str, Any]]
    body: Any = _ABSENT


def texts(value: Any) -> Any:
    """Return a value with its scalars as texts, as they are in a URL."""
    if isinstance(value, bool) or value is None:
        return json.dumps(value)
    if isinstance(value, list):
        return [texts(item) for item in value]
    if isinstance(value, dict):
        return {str(key): texts(item) for key, item in value.items()}
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value)


def problems_of(sent: Sent, expected: Expected, base_paths: list[str]) -> Iterator[str]:
    """Yield what is wrong with a request."""
    operation = expected.operation
    if sent.method != operation.method:
        yield f"method {sent.method}"
    parts = urlsplit(sent.url)
    pattern = "".join(
        "([^/?#]*?)" if text.startswith("{") else re.escape(text) for text in re.split(r"(\{[^{}]*\})", operation.path)
    ).replace("\\ ", "(?: |%20)")
    names = re.findall(r"\{([^{}]*)\}", operation.path)
    raw = next((parts.path.removeprefix(base) for base in base_paths if parts.path.startswith(base)), parts.path)
    match = re.fullmatch(pattern, raw) or re.fullmatch(pattern, unquote(raw))
    if match is None:
        yield f"path {parts.path} for {operation.path}"
        return
    written = dict(zip(names, match.groups(), strict=True))
    query: dict[str, list[str]] = {}
    for part in filter(None, parts.query.split("&")):
        name, _, text = part.partition("=")
        query.setdefault(unquote(name.replace("+", " ")), []).append(text)
    for location, name, value in expected.values:
        parameter = operation.parameters.get((location, name)) or Parameter(location, name, "simple", False, False)
        yield from _parameter_problems(parameter, value, written, query, sent.headers)
    yield from (f"unexpected query {name}" for name in query)
    yield from _body_problems(sent, expected)


def _parameter_problems(
    parameter: Parameter, value: Any, written: dict[str, str], query: dict[str, list[str]], headers: dict[str, str]
) -> Iterator[str]:
    label = f"{parameter.location} {parameter.name} {parameter.style}"
    if parameter.location == "query":
        got = _query_value(parameter, value, query)
    elif parameter.location == "path":
        got = _simple(written.get(parameter.name, ""), value, parameter)
    elif parameter.location == "header":
        got = _simple(headers.get(parameter.name.lower(), ""), value, parameter, is_header=True)
    else:
        cookies = dict(part.partition("=")[::2] for part in headers.get("cookie", "").split("; "))
        got = _simple(cookies.get(parameter.name, ""), value, parameter)
    expected = value if parameter.is_json else texts(value)
    if got != expected and not (value in ([], {}) and not got):
        yield f"{label}: {str(got)[:80]!r} for {str(expected)[:80]!r}"


def _simple(text: str, value: Any, parameter: Parameter, *, is_header: bool = False) -> Any:
    read = (lambda part: part) if is_header else unquote
    if parameter.is_json:
        return _json(read(text))
    if isinstance(value, list):
        return [read(part) for part in re.split(",|%2C", text)] if text else []
    if isinstance(value, dict):
        parts = text.split(",")
        if parameter.explode:
            return {read(part.partition("=")[0]): read(part.partition("=")[2]) for part in parts}
        return {read(key): read(member) for key, member in zip(parts[::2], parts[1::2], strict=False)}
    return read(text)


def _query_value(parameter: Parameter, value: Any, query: dict[str, list[str]]) -> Any:
    name = parameter.name

    def read(text: str) -> str:
        return unquote(text.replace("+", " "))

    if parameter.style == "deepObject" and isinstance(value, dict | list):
        return _unbracketed(name, value, query, read)
    if isinstance(value, dict) and parameter.explode and not parameter.is_json:
        members = {key: [read(text) for text in query.pop(key, [])] for key in value}
        return {key: _member(members[key], member) for key, member in value.items() if members[key]}
    if name not in query:
        return ""
    written = query.pop(name)
    if parameter.is_json:
        return _json(read(written[0]))
    if not isinstance(value, list | dict):
        return read(written[0]) if len(written) == 1 else written
    if parameter.explode and isinstance(value, list):
        return [texts(_json(read(text))) if isinstance(value[0], dict | list) else read(text) for text in written]
    separator = {"spaceDelimited": "%20|\\+", "pipeDelimited": "%7C|\\|", "tabDelimited": "%09"}.get(
        parameter.style, ",|%2C"
    )
    parts = [read(part) for part in re.split(separator, written[0])]
    return parts if isinstance(value, list) else dict(zip(parts[::2], parts[1::2], strict=False))


def _member(written: list[str], member: Any) -> Any:
    """Return the value of a member of an exploded object."""
    if isinstance(member, list):
        return texts(_json(written[0]) if len(written) == 1 and written[0].startswith("[") else written)
    return texts(_json(written[0])) if isinstance(member, dict) else written[0]


def _unbracketed(name: str, value: Any, query: dict[str, list[str]], read: Any) -> Any:
    if isinstance(value, dict):
        members = {key: _unbracketed(f"{name}[{key}]", member, query, read) for key, member in value.items()}
        return {key: member for key, member in members.items() if member is not _ABSENT}
    if isinstance(value, list):
        indexed = [_unbracketed(f"{name}[{index}]", item, query, read) for index, item in enumerate(value)]
        if all(item is not _ABSENT for item in indexed):
            return indexed
        return [read(text) for text in query.pop(name, []) or query.pop(f"{name}[]", [])]
    return read(query.pop(name)[0]) if name in query else _ABSENT


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _body_problems(sent: Sent, expected: Expected) -> Iterator[str]:
    content_type = sent.headers.get("content-type", "")
    if expected.body is _ABSENT:
        if sent.body not in (b"", b"{}"):
            yield f"unexpected body {sent.body[:60]!r}"
        return
    media_type = content_type.partition(";")[0].strip().lower()
    documented = {name.partition(";")[0].strip().lower() for name in expected.operation.media_types}
    if not documented & {media_type, "*/*", f"{media_type.partition('/')[0]}/*"}:
        yield f"content-type {content_type!r}, documented {sorted(documented)}"
    elif "json" in media_type:
        if _json(sent.body.decode()) != expected.body:
            yield f"body {sent.body[:80]!r} for {str(expected.body)[:80]!r}"
    elif media_type == "application/x-www-form-urlencoded":
        yield from _form_problems(sent.body.decode(), expected)
    elif media_type == "multipart/form-data":
        yield from _multipart_problems(sent, expected.body)
    elif isinstance(expected.body, str) and sent.body.decode() != expected.body:
        yield f"body {sent.body[:80]!r}"


def _form_problems(text: str, expected: Expected) -> Iterator[str]:
    entry = next(item for name, item in expected.operation.media_types.items() if "urlencoded" in name)
    encoding = (entry or {}).get("encoding") or {}
    form: dict[str, list[str]] = {}
    for part in filter(None, text.split("&")):
        name, _, member = part.partition("=")
        form.setdefault(unquote(name.replace("+", " ")), []).append(member)
    for name, value in (expected.body if isinstance(expected.body, dict) else {}).items():
        rules = encoding.get(name) or {}
        style = rules.get("style", "form")
        has_objects = isinstance(value, dict) or (isinstance(value, list) and any(isinstance(i, dict) for i in value))
        is_json = has_objects and "style" not in rules and "explode" not in rules
        if is_json and isinstance(value, list):
            got: Any = [_json(unquote(item.replace("+", " "))) for item in form.pop(name, [])]
            got = got[0] if len(got) == 1 and isinstance(got[0], list) else got
            if got != value:
                yield f"form {name}: {str(got)[:80]} for {str(value)[:80]}"
            continue
        parameter = Parameter(
            "query", name, style, bool(rules.get("explode", style in {"form", "deepObject"})), is_json
        )
        yield from _parameter_problems(parameter, value, {}, form, {})
    yield from (f"unexpected form member {name}" for name in form)


def _multipart_problems(sent: Sent, body: Any) -> Iterator[str]:
    header = f"content-type: {sent.headers['content-type']}\r\n\r\n".encode()
    message = email.parser.BytesParser(policy=email.policy.HTTP).parsebytes(header + sent.body)
    got: dict[str, list[Any]] = {}
    for part in message.iter_parts():
        name = str(part.get_param("name", header="content-disposition"))
        content = part.get_payload(decode=True)
        got.setdefault(name, []).append(content.decode() if isinstance(content, bytes) else "")
    for name, value in (body if isinstance(body, dict) else {}).items():
        items = value if isinstance(value, list) else [value]
        contents = got.pop(name, [])
        if len(contents) == 1 and contents[0].startswith("[") and isinstance(value, list):
            contents = _json(contents[0])
        read = [_json(item) if isinstance(item, str) else item for item in contents]
        if [texts(item) for item in read] != [texts(item) for item in items]:
            yield f"multipart {name}: {str(contents)[:80]} for {str(value)[:80]}"
    yield from (f"unexpected part {name}" for name in got)


# -- the libraries


@dataclass
class Outcome:
    """The figures of one document."""

    document: str
    version: str
    operations: int
    tools: int = 0
    right: int = 0
    requests: int = 0
    import_seconds: float = 0.0
    list_seconds: float = 0.0
    characters: int = 0
    problems: list[str] = field(default_factory=list)
    fault: str = ""


class Mock:
    """The mock server of one document, as the handler of a transport of httpx2."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document
        self.sent: list[Sent] = []
        self.response: Any = None

    async def __call__(self, request: Any) -> Any:
        """Answer a request."""
        import httpx2

        body = await request.aread()
        url = request.url.raw_path.decode()
        self.sent.append(
            Sent(request.method, url, {name.lower(): text for name, text in request.headers.items()}, body)
        )
        if self.response is None:
            return httpx2.Response(204)
        return httpx2.Response(200, json=value_of(self.response, Root(self.document, "writeOnly")))

    def client(self, **options: Any) -> Any:
        """Return a client whose requests the mock answers."""
        import httpx2

        return httpx2.AsyncClient(transport=httpx2.MockTransport(self), **options)


def base_paths_of(document: dict[str, Any]) -> list[str]:
    """Return the paths with which URLs of the document's servers begin, the longest first."""
    urls = [str(document.get("basePath", ""))]
    nodes = [document, *(document.get("paths") or {}).values()]
    nodes += [item.get(method) for item in nodes[1:] if isinstance(item, dict) for method in METHODS]
    for node in nodes:
        for server in node.get("servers") or [] if isinstance(node, dict) else []:
            url = server["url"]
            for name, variable in (server.get("variables") or {}).items():
                url = url.replace(f"{{{name}}}", str(variable.get("default", "")))
            urls.append(urlsplit(url).path)
    return sorted({url.rstrip("/") for url in urls}, key=len, reverse=True)


def expected_of(operation: Described, arguments: dict[str, Any], places: dict[str, tuple[str, str]]) -> Expected:
    """Return what the arguments of a call mean, by their places in the request."""
    expected = Expected(operation, [])
    members: dict[str, Any] = {}
    for argument, value in arguments.items():
        location, name = places.get(argument, ("", ""))
        if location == "body":
            members[name] = value
        elif location == "whole body":
            expected.body = value
        elif value is not None:
            expected.values.append((location, name, value))
    if members:
        expected.body = members
    return expected


async def funcmcp_outcome(path: Path, document: dict[str, Any], mock: Mock, outcome: Outcome) -> None:
    """Fill the figures of funcmcp."""
    from funcmcp import MCPServer, RegistrationError
    from funcmcp.testing import Client

    start = time.perf_counter()
    client = mock.client()
    try:
        mcp = MCPServer.from_openapi(path, client=client)
    except RegistrationError as error:
        if "base_url" not in str(error):
            raise
        mcp = MCPServer.from_openapi(path, client=client, base_url="http://api.example")
    outcome.import_seconds = time.perf_counter() - start
    async with Client(mcp) as session:
        start = time.perf_counter()
        tools = await session.list_tools()
        outcome.list_seconds = time.perf_counter() - start
        outcome.characters = len(json.dumps(tools))
        places = _places_of_funcmcp(document)

        async def call(name: str, arguments: dict[str, Any]) -> str:
            result = await session.call_tool(name, arguments)
            return result["content"][0]["text"] if result.get("isError") else ""

        listed = [(tool["name"], tool["inputSchema"]) for tool in tools]
        await call_all(listed, places, mock, outcome, call)


def _places_of_funcmcp(document: dict[str, Any]) -> dict[str, tuple[tuple[str, str], dict[str, tuple[str, str]]]]:
    from funcmcp._adapters.openapi.operation_tools import chosen_operations
    from funcmcp._authoring.openapi.credentials import Credentials
    from funcmcp._authoring.openapi.operations import operations, plan_of

    hidden = Credentials(document, None).hidden
    places = {}
    for operation in chosen_operations(operations(document, []), {}):
        try:
            plan = plan_of(operation, document, hidden=hidden, takes_cookies=True)
        except ValueError:
            continue
        arguments = {place.argument: (place.location, place.name) for place, _ in plan.places}
        if plan.body is not None and plan.body.is_spread:
            arguments |= {place.argument: ("body", name) for name, place in plan.body.members.items()}
        elif plan.body is not None:
            arguments[plan.body.argument] = ("whole body", "")
        places[operation.name] = ((operation.method, operation.path), arguments)
    return places


async def fastmcp_outcome(_: Path, document: dict[str, Any], mock: Mock, outcome: Outcome) -> None:
    """Fill the figures of FastMCP."""
    from fastmcp import Client, FastMCP

    start = time.perf_counter()
    client = mock.client(base_url="http://api.example")
    mcp = FastMCP.from_openapi(document, client=client)
    outcome.import_seconds = time.perf_counter() - start
    places = {}
    for provider in mcp.providers:
        for tool in getattr(provider, "_tools", {}).values():
            route = tool._route  # noqa: SLF001 - it has no public name
            arguments = {name: (at["location"], at["openapi_name"]) for name, at in route.parameter_map.items()}
            in_body = [name for name, (location, _) in arguments.items() if location == "body"]
            schemas = list(route.request_body.content_schema.values()) if route.request_body else [{}]
            first = schemas[0] if schemas else {}
            has_members = isinstance(first, dict) and bool(
                first.get("properties") or first.get("$ref") or first.get("allOf")
            )
            if len(in_body) == 1 and not has_members:
                arguments[in_body[0]] = ("whole body", "")
            places[tool.name] = ((route.method.upper(), route.path), arguments)
    async with Client(mcp) as session:
        start = time.perf_counter()
        tools = await session.list_tools()
        outcome.list_seconds = time.perf_counter() - start
        outcome.characters = len(json.dumps([tool.model_dump(mode="json", exclude_none=True) for tool in tools]))

        async def call(name: str, arguments: dict[str, Any]) -> str:
            result = await session.call_tool(name, arguments, raise_on_error=False)
            return getattr(result.content[0], "text", "error") if result.is_error else ""

        listed = [(tool.name, getattr(tool, "inputSchema", None) or tool.input_schema) for tool in tools]
        await call_all(listed, places, mock, outcome, call)


async def call_all(listed: list[Any], places: Any, mock: Mock, outcome: Outcome, call: Any) -> None:
    """Call each tool once, and count the calls that are right."""
    described = described_operations(mock.document)
    bases = base_paths_of(mock.document)
    outcome.tools = len(listed)
    for name, schema in listed:
        key, arguments_of = places.get(name, ((None, None), {}))
        operation = described.get(key)
        if operation is None:
            outcome.problems.append(f"{name}: no operation")
            continue
        arguments = value_of(schema, Root(schema, "readOnly"))
        for argument, (location, _) in arguments_of.items():
            if location == "header" and argument in arguments:
                text = json.dumps(arguments[argument], ensure_ascii=False)
                arguments[argument] = json.loads(text.replace("ü", "u"))
        mock.sent.clear()
        mock.response = operation.response
        try:
            error = await asyncio.wait_for(call(name, arguments), CALL_SECONDS)
        except Exception as failure:  # noqa: BLE001 - the figure says that the call failed
            error = f"{type(failure).__name__}: {failure}"
        problems = [error] if error else []
        if mock.sent:
            in_request = list(problems_of(mock.sent[0], expected_of(operation, arguments, arguments_of), bases))
            outcome.requests += not in_request
            problems += in_request
        elif not problems:
            problems.append("no request")
        if problems:
            outcome.problems.append(f"{name}: {'; '.join(problems)[:400]}")
        else:
            outcome.right += 1


def loaded(path: Path) -> Any:
    """Return the document in a file."""
    if path.suffix == ".json":
        return json.loads(path.read_bytes())
    import yaml

    value = yaml.load(path.read_bytes(), getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    return json.loads(json.dumps(value, default=str))  # keys such as 200 become texts, and dates, too


def main() -> None:
    """Print a line for each document."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--peer", choices=["funcmcp", "fastmcp"], default="funcmcp")
    parser.add_argument("--only", default="")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    outcomes = []
    for path in sorted(options.folder.iterdir()):
        if options.only not in path.name:
            continue
        if options.peer == "funcmcp":
            from funcmcp._adapters.openapi.document_source import load

            document: Any = load(path).members
        else:
            document = loaded(path)
        version = str(document.get("openapi") or document.get("swagger"))
        outcome = Outcome(path.name, version, len(described_operations(document)))
        run = funcmcp_outcome if options.peer == "funcmcp" else fastmcp_outcome
        try:
            asyncio.run(asyncio.wait_for(run(path, document, Mock(document), outcome), 600))
        except Exception as error:  # noqa: BLE001 - one document must not end the others
            outcome.fault = f"{type(error).__name__}: {error}"[:300]
        outcomes.append(outcome)
        print(
            f"{outcome.document:42} {outcome.version:7} operations {outcome.operations:5} tools {outcome.tools:5} "
            f"requests {outcome.requests:5} right {outcome.right:5} import {outcome.import_seconds:6.2f} "
            f"list {outcome.list_seconds:6.2f} kB {outcome.characters // 1000:7} {outcome.fault}",
            flush=True,
        )
    if options.json:
        options.json.write_text(json.dumps([vars(outcome) for outcome in outcomes], indent=1))
    kinds = Counter(re.sub(r"^[^:]*: ", "", problem)[:70] for outcome in outcomes for problem in outcome.problems)
    for kind, count in kinds.most_common(40):
        print(f"{count:5} {kind}", file=sys.stderr)


if __name__ == "__main__":
    main()
