"""From a request to its answer."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp._protocol.codec import encode
from funcmcp._protocol.errors import InvalidParams, MCPError, ToolError
from funcmcp._server.catalog.features import JSONResult, RawResponse
from funcmcp._server.limits import Limits
from funcmcp._server.load import RUN_BYTES
from tests import schemas
from tests.server.parts import (
    NEWEST,
    PER_REQUEST,
    answer,
    context,
    prompt,
    reply_to,
    resource,
    server,
    text_result,
    tool,
)

if TYPE_CHECKING:
    from funcmcp._server.calls.context import RequestContext
    from funcmcp._server.catalog.features import ToolHandler
    from funcmcp._server.middleware import CallNext

EVERY_REVISION = pytest.mark.parametrize("revision", schemas.REVISIONS)


def raising(error: Exception) -> ToolHandler:
    async def fail(_context: RequestContext, _arguments: dict[str, Any]) -> dict[str, Any]:
        raise error

    return fail


def returning(result: Any) -> ToolHandler:
    async def give(_context: RequestContext, _arguments: dict[str, Any]) -> Any:
        return result

    return give


@EVERY_REVISION
@pytest.mark.parametrize("request_id", [0, -7, 2**60, "1", "ünïcode \u2028"])
async def test_an_answer_carries_the_requests_own_id(revision: str, request_id: str | int) -> None:
    message = await answer(server(), context("tools/list", revision=revision, request_id=request_id))
    assert message["id"] == request_id
    assert type(message["id"]) is type(request_id)


@EVERY_REVISION
@pytest.mark.parametrize("method", ["nope", "", "tools/List", "notifications/initialized", "rpc.discover"])
async def test_an_unknown_method_is_method_not_found(revision: str, method: str) -> None:
    error = (await answer(server(), context(method, revision=revision)))["error"]
    assert (error["code"], error["data"]) == (-32601, {"method": method})


@EVERY_REVISION
async def test_a_method_without_its_capability_is_method_not_found(revision: str) -> None:
    for method in ("resources/subscribe", "resources/unsubscribe", "completion/complete", "tasks/list"):
        error = (await answer(server(), context(method, revision=revision)))["error"]
        assert error["code"] == -32601


@pytest.mark.parametrize("method", ["ping", "logging/setLevel", "initialize"])
async def test_a_removed_method_is_method_not_found(method: str) -> None:
    error = (await answer(server(), context(method, revision=PER_REQUEST)))["error"]
    assert error["code"] == -32601


async def test_a_method_that_is_not_there_yet_is_method_not_found() -> None:
    error = (await answer(server(), context("server/discover", revision=NEWEST)))["error"]
    assert error["code"] == -32601


async def test_a_very_long_method_is_not_sent_back_whole() -> None:
    error = (await answer(server(), context("m" * 10_000)))["error"]
    assert error["data"] == {"method": "m" * 200}


async def test_a_per_request_result_says_its_type_and_who_made_it() -> None:
    result = (await answer(server(version="2.0.0"), context("tools/list", revision=PER_REQUEST)))["result"]
    assert result["resultType"] == "complete"
    assert result["_meta"] == {"io.modelcontextprotocol/serverInfo": {"name": "orders", "version": "2.0.0"}}


@EVERY_REVISION
async def test_a_server_describes_itself_as_another_one(revision: str) -> None:
    served = server(tool("greet", returning(JSONResult(b'"hi"', None))), instructions="Its own.")
    served.catalog.promise(None, {"prompts"})
    served.describe_as({"name": "100%", "version": "3"}, "Of the other one.", {"resources": {}, "logging": {}})
    method = "server/discover" if revision == PER_REQUEST else "initialize"
    hello = (await answer(served, context(method, {"protocolVersion": revision}, revision=revision)))["result"]
    assert hello["instructions"] == "Of the other one."
    assert {"tools", "resources", "prompts"} & hello["capabilities"].keys() == {"tools", "resources"}
    info = {"name": "100%", "version": "3"}
    result = (await answer(served, context("tools/call", {"name": "greet"}, revision=revision)))["result"]
    assert result["content"] == [{"type": "text", "text": "hi"}]
    if revision == PER_REQUEST:
        assert result["_meta"] == hello["_meta"] == {"io.modelcontextprotocol/serverInfo": info}
    else:
        assert hello["serverInfo"] == info


async def test_a_tools_own_meta_stands_beside_the_servers() -> None:
    served = server(tool("greet", returning({**text_result("hi"), "_meta": {"example.com/a": 1}})))
    result = (await answer(served, context("tools/call", {"name": "greet"}, revision=PER_REQUEST)))["result"]
    assert result["_meta"]["example.com/a"] == 1
    assert result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "orders"


@pytest.mark.parametrize("revision", schemas.HANDSHAKE_REVISIONS)
async def test_a_handshake_result_has_nothing_of_the_per_request_era(revision: str) -> None:
    message = await answer(server(), context("ping", revision=revision))
    assert message["result"] == {}


@EVERY_REVISION
@pytest.mark.parametrize(
    ("error", "payload"),
    [
        (InvalidParams("No such order."), {"code": -32602, "message": "No such order."}),
        (MCPError(7, "No.", {"a": [1]}), {"code": 7, "message": "No.", "data": {"a": [1]}}),
    ],
)
async def test_a_protocol_error_is_sent_as_it_stands(revision: str, error: MCPError, payload: Any) -> None:
    served = server(tool("fail", raising(error)))
    message = await answer(served, context("tools/call", {"name": "fail"}, revision=revision))
    assert message["error"] == payload


@EVERY_REVISION
@pytest.mark.parametrize("wrong", [MCPError(7, "No.", float("nan")), MCPError(7, "No.", object())])
async def test_an_error_that_json_cannot_say_is_an_internal_error(
    revision: str, wrong: MCPError, caplog: pytest.LogCaptureFixture
) -> None:
    served = server(tool("fail", raising(wrong)))
    error = (await answer(served, context("tools/call", {"name": "fail"}, revision=revision)))["error"]
    assert (error["code"], error["message"]) == (-32603, "Internal error")
    assert error["data"]["errorId"] in caplog.text


@EVERY_REVISION
async def test_a_fault_of_the_server_is_an_internal_error_that_leaks_nothing(
    revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    served = server(tool("broken", returning({"no content": "password=hunter2"})))
    with caplog.at_level(logging.ERROR, "funcmcp"):
        error = (await answer(served, context("tools/call", {"name": "broken"}, revision=revision)))["error"]
    assert error == {"code": -32603, "message": "Internal error", "data": {"errorId": error["data"]["errorId"]}}
    assert error["data"]["errorId"] in caplog.text
    assert "KeyError" in caplog.text


@EVERY_REVISION
async def test_a_result_that_json_cannot_say_is_an_internal_error(revision: str) -> None:
    served = server(tool("broken", returning({"content": [object()]})))
    error = (await answer(served, context("tools/call", {"name": "broken"}, revision=revision)))["error"]
    assert error["code"] == -32603


async def test_a_raw_response_is_sent_as_it_stands() -> None:
    raw = {"jsonrpc": "2.0", "id": 9, "result": {"anything": [1, 2]}}
    served = server(tool("raw", returning(RawResponse(raw))))
    reply = await reply_to(served, context("tools/call", {"name": "raw"}))
    assert json.loads(reply.body) == raw
    assert reply.error is None


def test_the_supported_revisions_come_newest_first() -> None:
    assert server().supported == sorted(schemas.REVISIONS, reverse=True)
    assert server(revisions=["2024-11-05", "2025-11-25"]).supported == ["2025-11-25", "2024-11-05"]


async def test_the_arguments_of_a_run_take_up_memory_while_it_waits() -> None:
    used: list[int] = []

    async def measure(_context: RequestContext, _arguments: dict[str, Any]) -> dict[str, Any]:
        await asyncio.sleep(0)
        used.append(served.load.memory.used)
        return text_result("done")

    served = server(tool("measure", measure))
    asked = context("tools/call", {"name": "measure"})
    asked.routed = served.routes.route(asked.request)
    asked.routed.size = 1000
    await served.answer(asked)
    assert (used, served.load.memory.used) == ([RUN_BYTES + 1000], 0)


LONG = "x" * 3000
BINARY = {"content": [{"type": "image", "data": "A" * 3000, "mimeType": "image/png"}]}


@EVERY_REVISION
@pytest.mark.parametrize("result", [JSONResult(encode(LONG)), text_result(LONG), BINARY])
async def test_a_result_beyond_the_limit_is_an_error_with_its_size(
    revision: str, result: Any, caplog: pytest.LogCaptureFixture
) -> None:
    served = server(tool("rows", returning(result)), tool("few"), limits=Limits(result_bytes=2000))
    asked = context("tools/call", {"name": "rows"}, revision=revision)
    refusal = (await answer(served, asked))["result"]
    assert refusal["isError"]
    assert re.fullmatch(
        r"The result has 3,\d{3} bytes. This server sends 2,000 at most. Ask for less.*", text_of(refusal)
    )
    assert isinstance(asked.error, ToolError)
    (record,) = caplog.records
    assert "The result of rows has 3," in record.getMessage()
    assert "Limits(result_bytes=)" in record.getMessage()
    few = (await answer(served, context("tools/call", {"name": "few"}, revision=revision)))["result"]
    assert "isError" not in few


@EVERY_REVISION
async def test_contents_and_messages_beyond_the_limit_are_errors(
    revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def read(_context: RequestContext, uri: str, _values: Any) -> dict[str, Any]:
        return {"contents": [{"uri": uri, "text": LONG}]}

    async def get(_context: RequestContext, _arguments: dict[str, str]) -> dict[str, Any]:
        return {"messages": [{"role": "user", "content": {"type": "text", "text": LONG}}]}

    served = server(resource("a://b", read), prompt("p", get), limits=Limits(result_bytes=2000))
    for method, params in (("resources/read", {"uri": "a://b"}), ("prompts/get", {"name": "p"})):
        error = (await answer(served, context(method, params, revision=revision)))["error"]
        assert error["code"] == -32603
        assert error["message"].startswith("The result has 3,")
    assert [record.levelname for record in caplog.records] == ["ERROR", "ERROR"]


async def test_a_response_of_a_tools_own_and_lists_have_the_limit_of_their_kind() -> None:
    message = {"jsonrpc": "2.0", "id": 1, "result": text_result(LONG)}
    served = server(tool("raw", returning(RawResponse(message))), limits=Limits(result_bytes=200))
    assert (await answer(served, context("tools/call", {"name": "raw"})))["result"]["isError"]
    served = server(tool("few"), limits=Limits(result_bytes=20))
    assert (await answer(served, context("tools/list")))["result"]["tools"]


async def test_a_result_of_middleware_beyond_the_limit_is_an_error_with_its_size() -> None:
    async def stand_in(_context: RequestContext, _call_next: CallNext) -> dict[str, Any]:
        return text_result(LONG)

    served = server(tool("few"), limits=Limits(result_bytes=2000), middleware=[stand_in])
    refusal = (await answer(served, context("tools/call", {"name": "few"})))["result"]
    assert refusal["isError"]
    assert "This server sends 2,000 at most" in text_of(refusal)


def text_of(result: dict[str, Any]) -> str:
    """Return the text of a result's only block."""
    (block,) = result["content"]
    return str(block["text"])


def test_functions_learn_which_client_has_ended() -> None:
    served = server()
    ended: list[object] = []
    served.client_endings.append(ended.append)
    client = context("ping").client
    served.client_ended(client)
    assert ended == [client]
