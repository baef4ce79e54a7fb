"""Spans of the real OpenTelemetry SDK around requests to a real server, in both eras."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import logging
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
from opentelemetry import baggage
from opentelemetry import trace as otel
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.trace import SpanKind, StatusCode
from pydantic import BaseModel

from funcmcp import Context, HTTPOptions, MCPServer, ToolError
from funcmcp._adapters import opentelemetry as opentelemetry_adapter
from funcmcp._authoring.results.content import ToolResult
from funcmcp._protocol.codec import encode
from funcmcp._protocol.errors import MCPError
from funcmcp._server.log_output import JSONFormatter
from funcmcp._serving.composition import runtime_of
from funcmcp._serving.request_log import write_json_record
from funcmcp._transports.connection import Connection
from funcmcp.client import InvalidResponseError
from funcmcp.middleware import log_requests
from funcmcp.tasks import TaskOptions
from funcmcp.testing import Client, accept, post, read_messages
from tests.patience import PATIENCE
from tests.server.parts import NEWEST, PER_REQUEST, answer, context

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Sequence

    from opentelemetry.sdk.trace import ReadableSpan

    from funcmcp._transports.http.messages import HttpResponse

pytestmark = [
    pytest.mark.every_python("Exceptions and tracebacks have other texts."),
    pytest.mark.branches("Observed requests use their context, prompts and the format of the log."),
]

EVERY_ERA = pytest.mark.parametrize("revision", [NEWEST, PER_REQUEST])
TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
TRACEPARENT = f"00-{TRACE}-{PARENT}-01"
ELSEWHERE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
SECRET = "the combination is 1-2-3-4"


def told(session_id: str) -> str:
    """Return what a span says of a session."""
    return hashlib.sha256(session_id.encode()).hexdigest()[:16]


class Traced:
    """A traced server, and the spans that it has ended."""

    def __init__(self, **options: Any) -> None:
        self._exporter = InMemorySpanExporter()
        self.provider = TracerProvider(**options)
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.mcp = offer(MCPServer("traced"))
        add_looks(self.mcp, self.provider.get_tracer("author"))
        self.mcp.trace(self.provider)

    def spans(self, prefix: str = "") -> list[ReadableSpan]:
        """Return the spans whose name begins so, in the order of their ends."""
        return [span for span in self._exporter.get_finished_spans() if span.name.startswith(prefix)]

    def span(self, prefix: str) -> ReadableSpan:
        """Return the one span whose name begins so."""
        [found] = self.spans(prefix)
        return found


def add_looks(mcp: MCPServer, tracer: otel.Tracer) -> None:
    """Add tools that make a span of their own and say whose baggage they see."""

    def seen(what: str) -> str:
        with tracer.start_as_current_span(f"own {what}"):
            return str(baggage.get_baggage("tenant"))

    @mcp.tool
    async def look(what: str) -> str:
        await asyncio.sleep(0)
        return seen(what)

    @mcp.tool
    def look_in_thread(what: str) -> str:
        return seen(what)

    @mcp.tool
    async def stream(what: str, context: Context) -> str:
        await context.report_progress(1)
        await asyncio.sleep(0)
        return seen(what)


def offer(mcp: MCPServer) -> MCPServer:
    """Add what fails, and what is no tool."""

    @mcp.tool
    async def fail(how: str) -> ToolResult:
        if how == "told":
            raise ToolError(SECRET)
        if how == "protocol":
            raise MCPError(-32050, "Out of stock", {"what": SECRET})
        if how == "quoted":
            return ToolResult([], structured_content={"isError": True, "text": '"isError":true'})
        raise RuntimeError(SECRET)

    @mcp.resource("menu://dishes/{dish}")
    async def dish(dish: str) -> str:
        if dish == "bad":
            raise ToolError("Sold out.")
        return SECRET

    @mcp.prompt
    async def review(code: str) -> str:
        return f"Review {code}"

    return mcp


@pytest.fixture
def traced() -> Traced:
    return Traced()


def parent_of(span: ReadableSpan) -> str | None:
    return None if span.parent is None else otel.format_span_id(span.parent.span_id)


def own_context(span: ReadableSpan) -> otel.SpanContext:
    found = span.get_span_context()
    assert found is not None
    return found


def id_of(span: ReadableSpan) -> str:
    return otel.format_span_id(own_context(span).span_id)


def trace_of(span: ReadableSpan) -> str:
    return otel.format_trace_id(own_context(span).trace_id)


async def refused(client: Client, method: str, params: dict[str, Any]) -> MCPError:
    with pytest.raises(MCPError) as caught:
        await client.request(method, params)
    return caught.value


@EVERY_ERA
async def test_a_request_is_a_server_span_with_the_attributes_of_the_conventions(traced: Traced, revision: str) -> None:
    async with Client(traced.mcp, revision=revision) as client:
        await client.call_tool("look", {"what": SECRET})
        await client.request("prompts/get", {"name": "review", "arguments": {"code": SECRET}})
        await client.request("resources/read", {"uri": "menu://dishes/soup"})
        session = {} if client.session_id is None else {"mcp.session.id": told(client.session_id)}
    for name, of_the_method in {
        "tools/call look": {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "look"},
        "prompts/get review": {"gen_ai.prompt.name": "review"},
        "resources/read": {"mcp.resource.uri": "menu://dishes/soup"},
    }.items():
        span = traced.span(name)
        found = dict(span.attributes or {})
        assert str(found.pop("jsonrpc.request.id")).isdigit()
        assert found == {
            "mcp.method.name": name.split()[0],
            "mcp.protocol.version": revision,
            **session,
            **of_the_method,
        }
        assert (span.name, span.kind, span.parent) == (name, SpanKind.SERVER, None)
        assert span.status.status_code is StatusCode.UNSET
        assert SECRET not in span.to_json()


@EVERY_ERA
@pytest.mark.parametrize("tool", ["look", "look_in_thread", "stream"])
async def test_the_trace_goes_on_from_the_client_to_the_authors_own_spans(
    traced: Traced, revision: str, tool: str
) -> None:
    heard: list[dict[str, Any]] = []
    meta = {"traceparent": TRACEPARENT, "tracestate": "vendor=1", "baggage": "tenant=blue", "progressToken": 1}
    async with Client(traced.mcp, revision=revision, on_notification=heard.append) as client:
        result = await client.call_tool(tool, {"what": "x"}, meta=meta)
    assert len(heard) == (tool == "stream")
    request, own = traced.span("tools/call"), traced.span("own")
    assert (trace_of(request), parent_of(request)) == (TRACE, PARENT)
    assert own_context(request).trace_state == {"vendor": "1"}
    assert (trace_of(own), parent_of(own)) == (TRACE, id_of(request))
    assert result["content"] == [{"type": "text", "text": "blue"}]


@EVERY_ERA
@pytest.mark.parametrize("tool", ["look", "look_in_thread", "stream"])
async def test_calls_at_the_same_time_keep_their_traces_apart(traced: Traced, revision: str, tool: str) -> None:
    async with Client(traced.mcp, revision=revision) as client:
        await asyncio.gather(*(client.call_tool(tool, {"what": str(n)}, meta={"progressToken": n}) for n in range(4)))
    requests = {id_of(span): trace_of(span) for span in traced.spans("tools/call")}
    owns = {str(parent_of(span)): trace_of(span) for span in traced.spans("own")}
    assert requests == owns
    assert len(set(requests.values())) == 4


@EVERY_ERA
async def test_nothing_of_a_request_is_left_current_after_it(traced: Traced, revision: str) -> None:
    async with Client(traced.mcp, revision=revision) as client:
        await client.call_tool("look", {"what": "x"}, meta={"traceparent": TRACEPARENT, "baggage": "tenant=blue"})
        await client.call_tool("fail", {"how": "told"})
    assert not otel.get_current_span().get_span_context().is_valid
    assert baggage.get_all() == {}


@pytest.mark.parametrize(
    ("meta", "parent"), [({}, "b7ad6b7169203331"), ({"traceparent": TRACEPARENT}, PARENT)], ids=["header", "meta"]
)
async def test_http_headers_say_the_trace_where_the_message_does_not(
    traced: Traced, meta: dict[str, str], parent: str
) -> None:
    await ping(traced, meta, {"traceparent": ELSEWHERE})
    assert parent_of(traced.span("ping")) == parent


async def ping(traced: Traced, meta: dict[str, Any], headers: dict[str, str]) -> None:
    """Send a ping in a session, with more headers."""
    async with Client(traced.mcp, revision=NEWEST) as client:
        message = {"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"_meta": meta}}
        session = {"mcp-session-id": str(client.session_id), "mcp-protocol-version": NEWEST}
        answer = await answered(
            await post(runtime_of(traced.mcp).exchange, "/mcp", encode(message), {**session, **headers})
        )
    assert answer == {"jsonrpc": "2.0", "id": 1, "result": {}}


async def answered(response: HttpResponse) -> dict[str, Any]:
    return [message async for message in read_messages(response)][-1]


async def test_the_span_of_an_instrumented_server_around_it_is_the_parent(traced: Traced) -> None:
    with traced.provider.get_tracer("asgi").start_as_current_span("POST") as around:
        await ping(traced, {}, {"traceparent": ELSEWHERE})
    span = traced.span("ping")
    assert span.parent == around.get_span_context()
    assert not span.links


async def test_the_span_around_it_is_linked_where_the_message_says_another_trace(traced: Traced) -> None:
    with traced.provider.get_tracer("asgi").start_as_current_span("POST") as around:
        await ping(traced, {"traceparent": TRACEPARENT}, {"traceparent": ELSEWHERE})
    span = traced.span("ping")
    assert parent_of(span) == PARENT
    assert [link.context for link in span.links] == [around.get_span_context()]


@pytest.mark.parametrize(
    "meta", [{"traceparent": 7}, {"traceparent": ["00"]}, {"traceparent": "00-x"}, {"baggage": {}}]
)
async def test_a_trace_that_cannot_be_read_begins_a_new_one(traced: Traced, meta: dict[str, Any]) -> None:
    await ping(traced, meta, {})
    assert traced.span("ping").parent is None


@EVERY_ERA
@pytest.mark.parametrize("how", ["told", "crashed"])
async def test_a_result_with_is_error_fails_the_span_without_its_text(traced: Traced, revision: str, how: str) -> None:
    async with Client(traced.mcp, revision=revision) as client:
        assert (await client.call_tool("fail", {"how": how}))["isError"] is True
    span = traced.span("tools/call fail")
    assert (span.attributes or {})["error.type"] == "tool_error"
    assert (span.status.status_code, span.status.description) == (StatusCode.ERROR, None)
    kinds = [(event.name, dict(event.attributes or {})) for event in span.events]
    assert kinds == ([] if how == "told" else [("exception", {"exception.type": "builtins.RuntimeError"})])
    assert SECRET not in span.to_json()


@EVERY_ERA
async def test_a_result_that_only_speaks_of_errors_does_not_fail_the_span(traced: Traced, revision: str) -> None:
    async with Client(traced.mcp, revision=revision) as client:
        await client.call_tool("fail", {"how": "quoted"})
    assert traced.span("tools/call fail").status.status_code is StatusCode.UNSET


@EVERY_ERA
@pytest.mark.parametrize(
    ("method", "params", "code", "message"),
    [
        ("tools/call", {"name": "fail", "arguments": {"how": "protocol"}}, "-32050", "Out of stock"),
        ("resources/read", {"uri": "menu://dishes/bad"}, "-32603", "Sold out."),
    ],
)
async def test_an_error_of_the_server_fails_the_span_with_its_code_and_message(
    traced: Traced, revision: str, method: str, params: dict[str, Any], code: str, message: str
) -> None:
    async with Client(traced.mcp, revision=revision) as client:
        await refused(client, method, params)
    span = traced.span(method)
    attributes = span.attributes or {}
    assert (attributes["error.type"], attributes["rpc.response.status_code"]) == (code, code)
    assert (span.status.status_code, span.status.description) == (StatusCode.ERROR, message)
    assert SECRET not in span.to_json()


@EVERY_ERA
@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("prompts/get", {"name": "review", "arguments": {}}),
        ("resources/read", {"uri": "nowhere://at/all"}),
    ],
)
async def test_an_error_of_the_caller_leaves_its_code_but_does_not_fail_the_span(
    traced: Traced, revision: str, method: str, params: dict[str, Any]
) -> None:
    async with Client(traced.mcp, revision=revision) as client:
        code = (await refused(client, method, params)).code
    [span] = traced.spans(method)
    attributes = span.attributes or {}
    assert attributes["rpc.response.status_code"] == str(code)
    assert "error.type" not in attributes
    assert span.status.status_code is StatusCode.UNSET


async def test_names_that_the_server_does_not_know_make_no_span_names(traced: Traced) -> None:
    async with Client(traced.mcp, revision=NEWEST) as client:
        for method, params in (
            ("tools/call", {"name": "no such tool"}),
            ("prompts/get", {"name": 7}),
            ("made/up", {}),
        ):
            await refused(client, method, params)
    assert [span.name for span in traced.spans()] == ["initialize", "tools/call", "prompts/get", "_OTHER"]
    assert [(span.attributes or {})["mcp.method.name"] for span in traced.spans()] == [
        "initialize",
        "tools/call",
        "prompts/get",
        "_OTHER",
    ]


async def test_what_a_client_sends_is_cut_to_a_bounded_length(traced: Traced) -> None:
    async with Client(traced.mcp, revision=NEWEST) as client:
        await refused(client, "tools/call", {"name": "x" * 100_000})
    assert len(traced.span("tools/call").to_json()) < 5000


async def test_the_span_of_a_listening_stream_ends_with_it(traced: Traced) -> None:
    async with Client(traced.mcp, revision=PER_REQUEST) as client, asyncio.timeout(PATIENCE):
        heard: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        listener = Client(traced.mcp, revision=PER_REQUEST, on_notification=heard.put_nowait)
        async with listener:
            wish = {"notifications": {"resourceSubscriptions": ["menu://dishes/soup"]}}
            listening = asyncio.create_task(listener.request("subscriptions/listen", wish))
            assert (await heard.get())["method"] == "notifications/subscriptions/acknowledged"
            await client.call_tool("look", {"what": "x"})
            assert not traced.spans("subscriptions/listen")
            runtime_of(traced.mcp).server.hub.close()
            await listening
    assert traced.span("subscriptions/listen").status.status_code is StatusCode.UNSET


async def test_the_span_of_a_call_that_its_client_cancels_ends_without_a_status(traced: Traced) -> None:
    begun = asyncio.Event()

    @traced.mcp.tool
    async def hang() -> None:
        begun.set()
        await asyncio.Event().wait()

    async with Client(traced.mcp, revision=NEWEST) as client, asyncio.timeout(PATIENCE):
        call = asyncio.create_task(client.call_tool("hang"))
        await begun.wait()
        await client.notify("notifications/cancelled", {"requestId": 2})  # 1 was initialize
        with pytest.raises(InvalidResponseError, match="ended without an answer"):
            await call
    assert traced.span("tools/call hang").status.status_code is StatusCode.UNSET


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("orders.example.com:8443", {"server.address": "orders.example.com", "server.port": 8443}),
        ("orders.example.com", {"server.address": "orders.example.com", "server.port": 80}),
        ("orders.example.com:99999", {}),
        ("", {}),
    ],
)
async def test_a_request_of_http_has_the_address_that_the_client_used(host: str, address: dict[str, Any]) -> None:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    mcp = MCPServer("traced", http=HTTPOptions(allowed_hosts=["*"]), sessions=None)
    mcp.trace(provider)
    transport = httpx2.ASGITransport(app=mcp)
    message = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    headers = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-06-18", "host": host}
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        response = await client.post("/mcp", json=message, headers=headers)
    assert response.status_code == 200
    (span,) = exporter.get_finished_spans()
    attributes = dict(span.attributes or {})
    assert attributes["network.transport"] == "tcp"
    assert {name: value for name, value in attributes.items() if name.startswith("server.")} == address


async def test_a_call_in_the_servers_process_has_no_transport(traced: Traced) -> None:
    await traced.mcp.call_tool("look", {"what": "x"})
    assert "network.transport" not in (traced.span("tools/call look").attributes or {})


async def test_spans_contain_the_text_of_an_exception_if_the_author_wants_it() -> None:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    mcp = offer(MCPServer("traced"))
    mcp.trace(provider, exceptions=True)
    for how in ("told", "other"):
        assert (await mcp.call_tool("fail", {"how": how})).is_error
    events = [
        (event.name, dict(event.attributes or {})) for span in exporter.get_finished_spans() for event in span.events
    ]
    assert [(name, event["exception.message"]) for name, event in events] == [("exception", SECRET)] * 2
    assert [str(event["exception.stacktrace"]).splitlines()[-1] for _, event in events] == [
        f"funcmcp.ToolError: {SECRET}",
        f"RuntimeError: {SECRET}",
    ]


async def test_a_transport_without_http_is_a_pipe(traced: Traced) -> None:
    said: asyncio.Queue[bytes] = asyncio.Queue()
    connection = Connection(runtime_of(traced.mcp).server, said.put)
    async with asyncio.timeout(PATIENCE):
        ask = {"jsonrpc": "2.0", "id": "a", "method": "ping", "params": {"_meta": {"traceparent": TRACEPARENT}}}
        await connection.receive(encode(ask))
        assert json.loads(await said.get())["result"] == {}
        await connection.aclose()
    span = traced.span("ping")
    assert parent_of(span) == PARENT
    assert dict(span.attributes or {}).items() >= {"network.transport": "pipe", "jsonrpc.request.id": "a"}.items()


@EVERY_ERA
async def test_a_sampler_that_drops_a_span_leaves_the_answer_as_it_is(revision: str) -> None:
    dropped = Traced(sampler=ALWAYS_OFF)
    async with Client(dropped.mcp, revision=revision) as client:
        assert (await client.call_tool("fail", {"how": "told"}))["isError"] is True
    assert dropped.spans() == []


async def test_without_a_provider_the_processs_own_is_used() -> None:
    mcp = MCPServer("plain")
    add_looks(mcp, otel.get_tracer("author"))
    mcp.trace()
    async with Client(mcp) as client:
        assert (await client.call_tool("look", {"what": "x"}))["content"][0]["text"] == "None"


def test_a_server_that_is_not_traced_loads_nothing_of_opentelemetry_and_answers_as_ever() -> None:
    script = """
import asyncio, sys
from funcmcp import MCPServer
from funcmcp.testing import Client

mcp = MCPServer("plain")

@mcp.tool
def add(a: int, b: int) -> int:
    return a + b

async def main():
    async with Client(mcp) as client:
        await client.call_tool("add", {"a": 1, "b": 2}, meta={"traceparent": "%s"})

asyncio.run(main())
from funcmcp._serving.request_log import write_json_record
from funcmcp._server.log_output import JSONFormatter
from funcmcp._serving.composition import runtime_of
server = runtime_of(mcp).server
assert not server.has_middleware
print([name for name in sys.modules if "opentelemetry" in name])
"""
    run = subprocess.run(
        [sys.executable, "-c", script % TRACEPARENT], capture_output=True, text=True, check=True, timeout=PATIENCE
    )
    assert run.stdout.strip() == "[]"


def offer_tasks(mcp: MCPServer) -> None:
    """Add tools whose calls become tasks."""
    options = TaskOptions(poll=0.02)

    @mcp.tool(task=options)
    async def export(how: str, context: Context) -> str:
        if how == "ask":
            await context.elicit("Really?", Agreement)
        if how == "fail":
            raise ToolError(SECRET)
        if how == "protocol":
            raise MCPError(-32050, "Out of stock", {"what": SECRET})
        if how == "caller":
            raise MCPError(-32602, "Wrong")
        if how == "hang":
            await asyncio.sleep(60)
        return str(baggage.get_baggage("tenant"))


class Agreement(BaseModel):
    agreed: bool


@pytest.fixture
async def traced_tasks(traced: Traced) -> AsyncIterator[Traced]:
    offer_tasks(traced.mcp)
    yield traced
    await runtime_of(traced.mcp).aclose()


@EVERY_ERA
async def test_the_run_of_a_task_is_a_consumer_span_linked_to_the_request(traced_tasks: Traced, revision: str) -> None:
    meta = {"traceparent": TRACEPARENT, "baggage": "tenant=blue"}
    async with Client(traced_tasks.mcp, revision=revision) as client:
        task = await client.start_tool("export", {"how": SECRET}, meta=meta)
        assert (await task.result()).text == "None"  # the baggage belongs to the request
    request, run = traced_tasks.span("tools/call export"), traced_tasks.span("execute_tool export")
    assert (run.kind, run.parent) == (SpanKind.CONSUMER, None)
    assert [link.context.span_id for link in run.links] == [own_context(request).span_id]
    assert [otel.format_trace_id(link.context.trace_id) for link in run.links] == [TRACE]
    assert trace_of(run) != TRACE
    attributes = dict(run.attributes or {})
    assert 0 <= float(str(attributes.pop("mcp.task.wait_seconds"))) < PATIENCE
    assert attributes == {
        "mcp.method.name": "tools/call",
        "mcp.protocol.version": revision,
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "export",
        "mcp.task.id": told(str(task.task_id)),
        "mcp.task.attempt": 1,
        "mcp.task.status": "completed",
    }
    for span in traced_tasks.spans():
        assert SECRET not in span.to_json()
        assert str(task.task_id) not in span.to_json()


@pytest.mark.parametrize(
    ("how", "status", "attributes"),
    [
        ("fail", "completed", {"error.type": "tool_error"}),
        ("protocol", "failed", {"error.type": "-32050", "rpc.response.status_code": "-32050"}),
        ("caller", "failed", {"rpc.response.status_code": "-32602"}),
    ],
)
async def test_the_span_of_a_run_shows_how_it_failed(
    traced_tasks: Traced, how: str, status: str, attributes: dict[str, str]
) -> None:
    async with Client(traced_tasks.mcp) as client:
        with contextlib.suppress(MCPError):
            assert (await client.call_tool("export", {"how": how})).is_error
    span = traced_tasks.span("execute_tool")
    assert (span.attributes or {})["mcp.task.status"] == status
    assert (span.attributes or {}).items() >= attributes.items()
    assert (span.status.status_code is StatusCode.ERROR) == ("error.type" in attributes)
    assert SECRET not in span.to_json()


async def test_each_run_of_a_task_has_a_span(traced_tasks: Traced) -> None:
    async with Client(traced_tasks.mcp, elicit=accept({"agreed": True})) as client:
        await client.call_tool("export", {"how": "ask"})
    spans = [dict(span.attributes or {}) for span in traced_tasks.spans("execute_tool")]
    assert [span["mcp.task.status"] for span in spans] == ["input_required", "completed"]
    assert [span["mcp.task.attempt"] for span in spans] == [1, 2]


async def test_a_run_that_is_cancelled_has_a_span_without_a_status(traced_tasks: Traced) -> None:
    async with Client(traced_tasks.mcp) as client:
        task = await client.start_tool("export", {"how": "hang"})
        await asyncio.sleep(0.05)
        await task.cancel()
        async with asyncio.timeout(PATIENCE):
            while not traced_tasks.spans("execute_tool"):  # noqa: ASYNC110 - the exporter has no event
                await asyncio.sleep(0.01)
    span = traced_tasks.span("execute_tool")
    assert "mcp.task.status" not in (span.attributes or {})
    assert span.status.status_code is StatusCode.UNSET


async def test_a_task_that_was_created_without_a_trace_has_no_link(traced_tasks: Traced) -> None:
    tasks = runtime_of(traced_tasks.mcp).server.tasks
    assert tasks is not None
    tasks._tracer = None  # as in another process that creates tasks and is not traced
    async with Client(traced_tasks.mcp) as client:
        await client.call_tool("export", {"how": "x"})
    assert not traced_tasks.span("execute_tool").links


@pytest.mark.parametrize("traceparent", ["00-x", "", "00-00000000000000000000000000000000-0000000000000000-01"])
async def test_a_stored_trace_that_cannot_be_read_is_no_link(traced_tasks: Traced, traceparent: str) -> None:
    tasks = runtime_of(traced_tasks.mcp).server.tasks
    assert tasks is not None
    assert tasks._tracer is not None
    tasks._tracer.traceparent = lambda: traceparent  # type: ignore[method-assign] # a record of another version
    async with Client(traced_tasks.mcp) as client:
        await client.call_tool("export", {"how": "x"})
    assert not traced_tasks.span("execute_tool").links


async def test_a_server_without_tasks_can_be_traced() -> None:
    MCPServer("traced", tasks=None).trace(TracerProvider())


async def test_the_log_has_a_line_for_each_task_that_is_created_and_that_ends(
    traced_tasks: Traced, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="funcmcp")
    ids: list[str] = []
    async with Client(traced_tasks.mcp, on_task=lambda state: ids.append(state.task_id)) as client:
        await client.call_tool("export", {"how": SECRET})
        with pytest.raises(MCPError):
            await client.call_tool("export", {"how": "protocol"})
        await (await client.start_tool("export", {"how": "hang"})).cancel()
    lines = [message for message in caplog.messages if message.startswith("task ")]
    events = [line.split()[1] for line in lines]
    assert events == ["created", "completed", "created", "failed", "created", "cancelled"]
    done, failed, cancelled = (told(task_id) for task_id in dict.fromkeys(ids))
    assert [line.split()[3] for line in lines] == [
        f"task={mark}" for mark in (done, done, failed, failed, cancelled, cancelled)
    ]
    assert lines[0] == f"task created tool=export task={done} owner=anonymous"
    assert not any(task_id in caplog.text for task_id in ids)
    assert SECRET not in "".join(lines)


class Lines(logging.Handler):
    """A log as lines of JSON, with the trace that an exporter of log records would find for each record."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(JSONFormatter())
        self.fields: list[dict[str, Any]] = []
        self.current: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.fields.append(json.loads(self.format(record)))
        self.current.append(f"{otel.get_current_span().get_span_context().trace_id:032x}")


@pytest.fixture
def lines() -> Iterator[Lines]:
    handler = Lines()
    names = ("funcmcp", "author")
    levels = {name: logging.getLogger(name).level for name in names}
    for name in names:
        logging.getLogger(name).addHandler(handler)
        logging.getLogger(name).setLevel("INFO")
    yield handler
    for name, level in levels.items():
        logging.getLogger(name).removeHandler(handler)
        logging.getLogger(name).setLevel(level)


def add_logging(mcp: MCPServer) -> None:
    """Add tools that write a line of the author, and fail."""

    @mcp.tool
    async def write() -> None:
        logging.getLogger("author").info("from a coroutine")
        raise RuntimeError

    @mcp.tool
    def write_in_thread() -> None:
        logging.getLogger("author").info("from a thread")
        raise RuntimeError


@pytest.mark.parametrize("tool", ["write", "write_in_thread"])
@EVERY_ERA
async def test_the_lines_of_a_request_belong_to_its_span(revision: str, tool: str, lines: Lines) -> None:
    traced = Traced()
    add_logging(traced.mcp)
    runtime_of(traced.mcp).log_requests(write_json_record)
    async with Client(traced.mcp, revision=revision) as client:
        await client.call_tool(tool, meta={"traceparent": TRACEPARENT})
        records, current = lines.fields[-3:], lines.current[-3:]  # behind those of a list that the client may ask for
    span = traced.span("tools/call")
    assert [record["logger"] for record in records] == ["author", "funcmcp", "funcmcp.requests"]
    assert {record["trace_id"] for record in records} == {TRACE}
    assert {record["span_id"] for record in records} == {id_of(span)}
    assert current == [TRACE] * 3


async def test_lines_of_requests_without_http_belong_to_their_span(lines: Lines) -> None:
    traced = Traced()
    runtime_of(traced.mcp).log_requests(write_json_record)
    await answer(runtime_of(traced.mcp).server, context("tools/list"))
    (record,) = lines.fields
    assert (record["logger"], record["trace_id"]) == ("funcmcp.requests", lines.current[0])
    assert record["span_id"] == id_of(traced.span("tools/list"))


async def test_the_lines_of_the_middleware_belong_to_the_span_within_it(lines: Lines) -> None:
    provider = TracerProvider()
    mcp = MCPServer("Logged", middleware=[log_requests()])
    mcp.trace(provider)
    await answer(runtime_of(mcp).server, context("tools/list"))
    assert [record["logger"] for record in lines.fields] == ["funcmcp.requests"]
    assert lines.fields[0]["trace_id"] == lines.current[0]


async def test_a_line_without_a_span_has_no_ids(lines: Lines) -> None:
    logging.getLogger("author").info("outside")
    assert lines.fields[0].keys() & {"trace_id", "span_id"} == set()


class Exporter(SpanExporter):
    """Counts spans, or hangs until a test lets it end."""

    def __init__(self, *, hangs: bool = False) -> None:
        self.count = 0
        self.going_on = threading.Event()
        if not hangs:
            self.going_on.set()

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.going_on.wait(PATIENCE)
        self.count += len(spans)
        return SpanExportResult.SUCCESS


async def test_spans_that_wait_are_exported_when_the_server_ends() -> None:
    """uvicorn ends its process with the signal that it got, so that functions of `atexit` are not called."""
    exporter, provider = Exporter(), TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=1000 * PATIENCE))
    mcp = MCPServer("Batched")
    mcp.trace(provider)
    await runtime_of(mcp).start()
    await answer(runtime_of(mcp).server, context("tools/list"))
    assert exporter.count == 0
    await runtime_of(mcp).aclose()
    assert exporter.count == 1


async def test_a_collector_that_is_away_does_not_keep_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opentelemetry_adapter, "_FLUSH_SECONDS", 0.01)
    exporter, provider = Exporter(hangs=True), TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(exporter))
    mcp = MCPServer("Batched")
    mcp.trace(provider)
    await answer(runtime_of(mcp).server, context("tools/list"))
    await runtime_of(mcp).aclose()
    monkeypatch.setattr(opentelemetry_adapter, "_FLUSH_SECONDS", 1000.0 * PATIENCE)
    await runtime_of(mcp).aclose()  # the first attempt still runs
    assert exporter.count == 0
    exporter.going_on.set()


async def test_a_program_without_an_sdk_has_nothing_to_send() -> None:
    mcp = MCPServer("Bare")
    mcp.trace()
    await runtime_of(mcp).aclose()
