"""Each known limitation names tests that assert it, so that the page changes when the limitation goes.

Limitations of speed name a benchmark instead. Those that no other test asserts are asserted here.
"""

from __future__ import annotations

import asyncio
import re
import threading
from enum import Flag
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
from pythonjsonlogger.json import JsonFormatter
from uvicorn.protocols.websockets.wsproto_impl import WSProtocol

from funcmcp import MCPServer
from funcmcp._adapters.uvicorn.wsproto_protocol import WsprotoServerProtocol
from funcmcp._authoring.schemas.json_schema import arranged
from funcmcp.auth import APIKeys, Auth
from funcmcp.client import Client
from tests.docs.test_security import names_in
from tests.instances import HEADERS, Caller

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "development" / "rough_edges.md").read_text(encoding="utf-8")
URL = "http://127.0.0.1:8000/mcp"
_TEST = re.compile(r"`(tests/[\w/]+\.py)::([\w:]+)`")
_BENCHMARK = re.compile(r"`(benchmarks/\w+\.py)`")


def limitations() -> list[str]:
    """Return the items of the page's lists."""
    return re.findall(r"^- (.+?)(?=^- |^#|\Z)", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("text", limitations(), ids=lambda text: text[:40])
def test_a_limitation_names_tests_that_exist(text: str) -> None:
    tests, benchmarks = _TEST.findall(text), _BENCHMARK.findall(text)
    assert tests or benchmarks, "It names no test."
    for path, name in tests:
        assert name in names_in(path), (path, name)
    assert all((ROOT / path).is_file() for path in benchmarks)


async def test_a_time_limit_interrupts_the_clean_up_of_services() -> None:
    mcp = MCPServer("shop")
    steps: list[str] = []

    async def session() -> AsyncIterator[Session]:
        try:
            yield Session()
        finally:
            steps.append("begun")
            await asyncio.sleep(60)
            steps.append("ended")

    mcp.services.register_factory(Session, session)

    @mcp.tool(timeout=0.05)
    async def use(session: Session) -> None:
        """Use the session."""

    async with Client(mcp) as client:
        assert (await client.call_tool("use", {})).is_error
    assert steps == ["begun"]


def test_a_service_of_the_app_stays_open_if_its_event_loop_ends_without_a_lifespan() -> None:
    mcp = MCPServer("shop")
    steps: list[str] = []

    async def session() -> AsyncIterator[Session]:
        steps.append("opened")
        yield Session()
        steps.append("closed")

    mcp.services.register_factory(Session, session, scope="app")

    @mcp.tool
    async def use(session: Session) -> None:
        """Use the session."""

    for _ in range(2):
        asyncio.run(mcp.call_tool("use", {}))
    assert steps == ["opened", "opened"]


async def test_plain_factories_of_async_functions_run_in_the_event_loop() -> None:
    mcp = MCPServer("shop")
    threads: list[int] = []

    def session() -> Iterator[Session]:
        threads.append(threading.get_ident())
        yield Session()
        threads.append(threading.get_ident())

    mcp.services.register_factory(Session, session)

    @mcp.tool
    async def use(session: Session) -> None:
        threads.append(threading.get_ident())

    async with Client(mcp) as client:
        await client.call_tool("use", {})
    assert threads == [threading.get_ident()] * 3


async def test_formatters_that_print_exceptions_themselves_are_not_bounded(caplog: pytest.LogCaptureFixture) -> None:
    mcp = MCPServer("shop")

    @mcp.tool
    def fail() -> None:
        raise ValueError("x" * 1_000_000)

    async with Client(mcp) as client:
        await client.call_tool("fail", {})
    [record] = [record for record in caplog.records if record.exc_info]
    assert len(JsonFormatter().format(record)) > 1_000_000


async def test_a_filtered_list_calls_the_authorize_functions_one_after_the_other() -> None:
    mcp = MCPServer("shop", auth=Auth(APIKeys({"reporting": "kq3vJ8wZ1xP5sT7u"}), lists="filtered"))
    running = 0
    most = 0

    async def authorize(_: Any) -> bool:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1
        return True

    for name in "abc":
        mcp.tool(name, authorize=authorize)(lambda: None)
    async with Client(mcp, headers={"x-api-key": "kq3vJ8wZ1xP5sT7u"}) as client:
        assert len(await client.list_tools()) == 3
    assert most == 1


async def test_a_session_in_memory_belongs_to_one_process() -> None:
    statuses = []
    servers = [MCPServer("shop", sessions="memory") for _ in range(2)]
    async with servers[0].lifespan(), servers[1].lifespan():
        callers = [httpx2.AsyncClient(transport=httpx2.ASGITransport(app=mcp)) for mcp in servers]
        first = Caller(callers[0])
        await first.begin(URL)
        for http in callers:
            other = Caller(http)
            other.session = first.session
            statuses.append((await other.post(URL, first.request("tools/list"))).status_code)
            await http.aclose()
    assert statuses == [200, 404]


async def test_the_schema_of_a_flag_accepts_sums_that_the_server_rejects() -> None:
    mcp = MCPServer("shop")

    class Days(Flag):
        MONDAY = 1
        THURSDAY = 8

    def book(days: Days) -> int:
        return days.value

    book.__annotations__["days"] = Days
    mcp.tool(book)
    async with Client(mcp) as client:
        [tool] = await client.list_tools()
        days = tool.input_schema["properties"]["days"]
        assert (days["type"], days["minimum"], days["maximum"]) == ("integer", 0, 9)
        assert (await client.call_tool("book", {"days": 9})).structured_content == {"result": 9}
        assert (await client.call_tool("book", {"days": 2})).is_error


def test_one_of_in_an_openapi_document_is_any_of_in_a_schema() -> None:
    schema = {"oneOf": [{"type": "string"}, {"type": "integer"}]}
    assert arranged({"type": "object", "properties": {"a": schema}}, [])["properties"]["a"] == {
        "anyOf": schema["oneOf"]
    }


async def test_a_request_with_a_lone_surrogate_is_refused_under_its_id() -> None:
    mcp = MCPServer("shop")
    body = rb'{"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "\ud800"}}'
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=mcp)) as http:
        answer = (await http.post(URL, content=body, headers=HEADERS)).json()
    assert (answer["id"], answer["error"]["code"]) == (7, -32700)


def test_websockets_of_funcmcp_run_use_wsproto() -> None:
    assert issubclass(WsprotoServerProtocol, WSProtocol)


class Session:
    """A session of a database."""
