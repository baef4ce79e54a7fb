"""The floor: decode the envelope, validate the arguments with pydantic, call, encode. Nothing else.

With plain functions the call goes through `asyncio.to_thread`, as Python offers it.
"""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

from models import Customer, Line, Receipt, dish_of, receipt_of, review_of
from pydantic import TypeAdapter
from pydantic_core import from_json, to_json
from settings import PLAIN, TOOLS, filler
from typing_extensions import TypedDict


class AddArguments(TypedDict):
    """The arguments of `add`."""

    a: int
    b: int


class OrderArguments(TypedDict):
    """The arguments of `create_order`."""

    customer: Customer
    lines: list[Line]


class FillArguments(TypedDict):
    """The arguments of the tools that nobody calls."""

    a: int
    b: str
    c: float


class DishVariables(TypedDict):
    """The variables of the dishes' URI."""

    number: int


class ReviewArguments(TypedDict):
    """The arguments of the prompt."""

    code: str


async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def create_order(customer: Customer, lines: list[Line]) -> Receipt:
    """Place an order."""
    return receipt_of(customer, lines)


async def dish(number: int) -> dict[str, Any]:
    """Show a dish."""
    return dish_of(number)


async def review(code: str) -> str:
    """Review code."""
    return review_of(code)


def plain_add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def plain_create_order(customer: Customer, lines: list[Line]) -> Receipt:
    """Place an order."""
    return receipt_of(customer, lines)


add_arguments = TypeAdapter(AddArguments).validator.validate_python
order_arguments = TypeAdapter(OrderArguments).validator.validate_python
dish_variables = TypeAdapter(DishVariables).validator.validate_python
review_arguments = TypeAdapter(ReviewArguments).validator.validate_python
match_dish = re.compile(r"menu://dishes/(?P<number>[^/?#]+)").fullmatch
write_receipt = TypeAdapter(Receipt).serializer.to_python
TOOLS_BY_NAME: dict[str, tuple[Any, Any, Any]] = {
    "add": (add_arguments, plain_add if PLAIN else add, lambda value: {"result": value}),
    "create_order": (order_arguments, plain_create_order if PLAIN else create_order, write_receipt),
}
for number in range(TOOLS - 2):
    TOOLS_BY_NAME[f"tool_{number}"] = (None, filler, None)

SERVER_INFO = {"io.modelcontextprotocol/serverInfo": {"name": "bench", "version": "1.0.0"}}
VERSION = "io.modelcontextprotocol/protocolVersion"


async def call(params: dict[str, Any]) -> dict[str, Any]:
    """Answer `tools/call`."""
    validate, function, write = TOOLS_BY_NAME[params["name"]]
    arguments = validate(params["arguments"], strict=True)
    value = await asyncio.to_thread(function, **arguments) if PLAIN else await function(**arguments)
    structured = write(value)
    text = str(value) if isinstance(value, int) else to_json(structured).decode()
    return {"content": [{"type": "text", "text": text}], "structuredContent": structured}


async def read(params: dict[str, Any]) -> dict[str, Any]:
    """Answer `resources/read`."""
    uri = params["uri"]
    match = match_dish(uri)
    if match is None:
        raise ValueError(uri)
    value = await dish(**dish_variables(match.groupdict()))
    return {"contents": [{"uri": uri, "mimeType": "application/json", "text": to_json(value).decode()}]}


async def get(params: dict[str, Any]) -> dict[str, Any]:
    """Answer `prompts/get`."""
    text = await PROMPTS[params["name"]](**review_arguments(params["arguments"]))
    messages = [{"role": "user", "content": {"type": "text", "text": text}}]
    return {"description": "Review code.", "messages": messages}


PROMPTS = {"review": review}
METHODS: dict[str, tuple[Any, dict[str, Any]]] = {
    "tools/call": (call, {}),
    "resources/read": (read, {"ttlMs": 0, "cacheScope": "private"}),
    "prompts/get": (get, {}),
}


async def answer(message: dict[str, Any]) -> dict[str, Any]:
    """Answer one request."""
    method, members = METHODS[message["method"]]
    params = message["params"]
    result = await method(params)
    meta = params.get("_meta")
    if meta is not None and meta[VERSION] == "2026-07-28":
        result = {"resultType": "complete", **result, **members, "_meta": SERVER_INFO}
    return {"jsonrpc": "2.0", "id": message["id"], "result": result}


async def app(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """Answer one request."""
    if scope["type"] != "http":
        return
    event = await receive()
    body = event["body"]
    while event.get("more_body"):
        event = await receive()
        body += event["body"]
    message = from_json(body)
    if message["method"] in METHODS:
        data = to_json(await answer(message))
    else:
        data = json.dumps({"jsonrpc": "2.0", "id": message.get("id"), "result": {}}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(data))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": data})
