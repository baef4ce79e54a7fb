"""The event stream as which the response to a silent request begins."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp import Context, HTTPOptions, MCPServer
from funcmcp._protocol.errors import MCPError
from funcmcp._server.limits import LimitReachedError
from funcmcp._serving.composition import runtime_of
from funcmcp._state.sessions.memory import MemorySessions
from funcmcp._transports.http.streams import sse
from funcmcp.testing import MemoryRequest
from tests.patience import PATIENCE
from tests.server.parts import NEWEST
from tests.state.shared import SharedMemory, SharedMemorySessions
from tests.transports.http.endpoint import BOTH, Got, mirrored, per_request, read_all, request

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from funcmcp._serving.request_log import Entry
    from funcmcp._transports.http.messages import HttpResponse

pytestmark = pytest.mark.every_python("Tasks, timeouts and cancellation are those of asyncio.")

COMMENT = b": keep-alive\n\n"


@pytest.fixture(autouse=True)
def short_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a silence be long after a hundredth of a second."""
    monkeypatch.setattr(sse, "KEEP_ALIVE_SECONDS", 0.01)


class WaitingRequest(MemoryRequest):
    """A request of a client that counts the parts which come early, and may disconnect."""

    begins_early = True

    def __init__(self, body: object, headers: Mapping[str, str | None], on_part: Callable[[int], object]) -> None:
        usual = {"host": "127.0.0.1", "content-type": "application/json", "accept": BOTH}
        pairs = [(name.encode(), text.encode()) for name, text in {**usual, **headers}.items() if text is not None]
        super().__init__("POST", "/mcp", pairs, json.dumps(body).encode())
        self.headers_of_stream: dict[str, str] = {}
        self.parts: list[bytes] = []
        self.gone = asyncio.Event()
        self._on_part = on_part

    async def send_early(self, headers: tuple[tuple[str, str], ...], part: bytes) -> None:
        if not self.has_early_response:
            self.has_early_response = True
            self.headers_of_stream = dict(headers)
        self.parts.append(part)
        self._on_part(len(self.parts))

    async def disconnected(self) -> None:
        await self.gone.wait()


class Silence:
    """A server whose features say nothing until `end` is called.

    Attributes:
        is_cancelled: Whether a call was cancelled.
    """

    def __init__(self, **options: Any) -> None:
        self.mcp = mcp = MCPServer("silent", **options)
        self.is_cancelled = False
        self._over = asyncio.Event()
        self._over_for_threads = threading.Event()

        @mcp.tool
        async def wait() -> str:
            await self.until_over()
            return "done"

        @mcp.tool
        def wait_in_thread() -> str:
            self._over_for_threads.wait(PATIENCE)
            return "done"

        @mcp.tool
        async def wait_with_context(context: Context) -> str:
            del context
            await self.until_over()
            return "done"

        @mcp.tool(timeout=0.05)
        async def wait_too_long() -> str:
            await asyncio.Event().wait()
            return "never"

        @mcp.tool
        async def refuse() -> str:
            await self.until_over()
            raise MCPError(-32602, "Wrong day.")

        async def days(value: str) -> list[str]:
            await self.until_over()
            return [f"done{value}"]

        @mcp.resource("menu://{day}", completions={"day": days})
        async def menu(day: str) -> str:
            await self.until_over()
            return f"done on {day}"

        @mcp.prompt
        async def ask() -> str:
            await self.until_over()
            return "done"

    async def until_over(self) -> None:
        try:
            await self._over.wait()
        except asyncio.CancelledError:
            self.is_cancelled = True
            raise

    def end(self, parts: int = 0) -> None:
        """Let the features answer."""
        del parts
        self._over.set()
        self._over_for_threads.set()

    def begin_again(self) -> None:
        """Let later calls be silent."""
        self._over.clear()
        self._over_for_threads.clear()

    async def send(
        self,
        body: object,
        headers: Mapping[str, str | None],
        on_part: Callable[[int], object] | None = None,
    ) -> Got:
        """Send a request, and read its whole response as the client gets it."""
        sent = WaitingRequest(body, headers, on_part or self.end)
        return await self.read(sent)

    async def read(self, sent: WaitingRequest) -> Got:
        async with asyncio.timeout(PATIENCE):
            response = await runtime_of(self.mcp).exchange(sent)
        if not sent.has_early_response:
            return await self._plain(response)
        assert isinstance(response.body, bytes)
        return Got(200, sent.headers_of_stream, b"".join(sent.parts) + response.body)

    async def _plain(self, response: HttpResponse) -> Got:
        """Read a response that has not begun early. An interactive feature has a stream of its own."""
        if isinstance(response.body, bytes):
            return await read_all(response)
        parts = [await anext(response.body)]
        self.end()
        parts += [part async for part in response.body]
        return Got(response.status, dict(response.headers), b"".join(parts))

    async def begin(self, revision: str = NEWEST) -> dict[str, str]:
        """Begin a session, if there are any; return the headers of its requests."""
        hello = {"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        got = await self.send(request("initialize", hello), {})
        headers = {"mcp-protocol-version": revision}
        if "mcp-session-id" in got.headers:
            headers["mcp-session-id"] = got.headers["mcp-session-id"]
        return headers


CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    "async tool": ("tools/call", {"name": "wait", "arguments": {}}),
    "plain tool": ("tools/call", {"name": "wait_in_thread", "arguments": {}}),
    "tool with a context": ("tools/call", {"name": "wait_with_context", "arguments": {}}),
    "resource": ("resources/read", {"uri": "menu://today"}),
    "prompt": ("prompts/get", {"name": "ask"}),
    "completion": (
        "completion/complete",
        {"ref": {"type": "ref/resource", "uri": "menu://{day}"}, "argument": {"name": "day", "value": ""}},
    ),
}


@pytest.mark.parametrize("sessions", ["signed", "memory", None])
@pytest.mark.parametrize("kind", CALLS)
async def test_a_silent_request_of_the_handshake_era_becomes_a_stream_that_ends_with_its_answer(
    kind: str, sessions: Any
) -> None:
    silence = Silence(sessions=sessions)
    got = await silence.send(request(*CALLS[kind]), await silence.begin())
    assert (got.status, got.streamed, got.headers["x-accel-buffering"]) == (200, True, "no")
    if sessions == "memory":  # its streams can be resumed
        assert got.body.startswith(b"id: ")
        assert got.body.split(b"\n\n")[-2].startswith(b"id: ")
    else:
        assert got.body.startswith(COMMENT)
        assert len(got.messages) == 1
    assert "done" in json.dumps(got.answer["result"])


@pytest.mark.parametrize("kind", CALLS)
async def test_a_silent_request_of_the_per_request_era_becomes_a_stream_that_ends_with_its_answer(kind: str) -> None:
    silence = Silence()
    body = per_request(*CALLS[kind])
    got = await silence.send(body, mirrored(body))
    assert (got.status, got.streamed) == (200, True)
    assert got.body.startswith(COMMENT)
    assert "done" in json.dumps(got.answer["result"])


async def test_a_comment_follows_after_each_further_silence() -> None:
    silence = Silence()
    body = per_request(*CALLS["async tool"])
    got = await silence.send(body, mirrored(body), lambda parts: silence.end() if parts == 3 else None)
    assert got.body.startswith(COMMENT * 3)


@pytest.mark.parametrize("sessions", ["signed", "memory"])
async def test_a_silent_batch_becomes_a_stream(sessions: Any) -> None:
    silence = Silence(sessions=sessions)
    headers = await silence.begin("2025-03-26")
    batch = [request(*CALLS["async tool"], request_id=1), request(*CALLS["prompt"], request_id=2)]
    got = await silence.send(batch, headers)
    assert got.body.startswith(COMMENT)
    replies: Any = got.answer
    assert [reply["id"] for reply in replies] == [1, 2]


@pytest.mark.parametrize("revision", ["2025-03-26", "2025-06-18"])
async def test_before_2025_11_25_a_silent_stream_has_no_event_without_data(revision: str) -> None:
    silence = Silence(sessions="memory")
    got = await silence.send(request(*CALLS["async tool"]), await silence.begin(revision))
    assert got.body.startswith(COMMENT)
    assert len(got.messages) == 1


@pytest.mark.parametrize("accept", ["application/json", None])
async def test_a_client_that_does_not_accept_streams_gets_plain_json(
    accept: str | None,
) -> None:
    silence = Silence()
    body = per_request(*CALLS["async tool"])
    sent = WaitingRequest(body, {**mirrored(body), "accept": accept}, silence.end)
    asyncio.get_running_loop().call_later(3 * sse.KEEP_ALIVE_SECONDS, silence.end)
    got = await silence.read(sent)
    assert (got.streamed, sent.parts, got.text) == (False, [], "done")


async def test_a_request_that_is_answered_soon_is_plain_json(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "KEEP_ALIVE_SECONDS", PATIENCE)
    silence = Silence(sessions="memory")
    headers = await silence.begin()
    asyncio.get_running_loop().call_soon(silence.end)
    for kind in ("async tool", "plain tool", "resource"):
        got = await silence.send(request(*CALLS[kind]), headers)
        assert not got.streamed


async def test_a_client_that_accepts_only_streams_gets_one_event() -> None:
    silence = Silence()
    body = per_request(*CALLS["async tool"])
    got = await silence.send(body, {**mirrored(body), "accept": "text/event-stream"})
    assert (len(got.messages), got.text) == (1, "done")


async def test_a_silent_request_counts_as_a_request_and_not_as_a_stream() -> None:
    silence = Silence()
    load = runtime_of(silence.mcp).server.load
    counts: list[tuple[int, int, int]] = []

    def count(parts: int) -> None:
        counts.append((load.requests.used, load.runs.used, load.streams.used))
        silence.end(parts)

    body = per_request(*CALLS["async tool"])
    await silence.send(body, mirrored(body), count)
    assert counts == [(1, 1, 0)]
    assert (load.requests.used, load.runs.used) == (0, 0)


async def test_a_time_limit_ends_the_stream_with_its_result() -> None:
    silence = Silence()
    body = per_request("tools/call", {"name": "wait_too_long", "arguments": {}})
    got = await silence.send(body, mirrored(body))
    assert got.text == "It did not finish within 0.05 seconds (timeout=)."
    assert got.streamed


async def test_an_error_whose_plain_response_has_another_status_is_an_event() -> None:
    silence = Silence()
    body = per_request("tools/call", {"name": "refuse", "arguments": {}})
    got = await silence.send(body, mirrored(body))
    assert (got.status, got.streamed, got.code) == (200, True, -32602)


async def test_a_limit_that_is_reached_after_the_beginning_is_an_event() -> None:
    silence = Silence(sessions="memory")

    async def refuse_later(context: Any, call_next: Any) -> Any:
        if context.request.method == "tools/call":
            await call_next(context)
            raise LimitReachedError("Too much.", 5)
        return await call_next(context)

    headers = await silence.begin()
    silence.mcp.add_middleware(refuse_later)
    got = await silence.send(request(*CALLS["async tool"]), headers)
    assert (got.status, got.streamed, got.answer["error"]["message"]) == (200, True, "Too much.")


async def test_a_cancelled_request_ends_its_stream_without_an_answer() -> None:
    silence = Silence()
    headers = await silence.begin()

    def cancel(parts: int) -> None:
        if parts == 1:
            notification = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
            tasks.append(asyncio.ensure_future(silence.send(notification, headers)))

    tasks: list[asyncio.Future[Got]] = []
    got = await silence.send(request(*CALLS["async tool"]), headers, cancel)
    assert (await tasks[0]).status == 202
    assert (got.messages, silence.is_cancelled) == ([], True)


async def test_a_client_that_disconnects_cancels_its_silent_request_in_the_per_request_era() -> None:
    silence = Silence()
    body = per_request(*CALLS["async tool"])
    sent = WaitingRequest(body, mirrored(body), lambda _: sent.gone.set())
    got = await silence.read(sent)
    assert (got.messages, silence.is_cancelled) == ([], True)


async def test_a_client_that_disconnects_does_not_cancel_its_silent_request_in_the_handshake_era() -> None:
    silence = Silence()
    headers = await silence.begin()

    def leave(parts: int) -> None:
        sent.gone.set()
        if parts == 3:
            silence.end()

    sent = WaitingRequest(request(*CALLS["async tool"]), headers, leave)
    assert ((await silence.read(sent)).text, silence.is_cancelled) == ("done", False)


async def test_a_silent_stream_of_a_live_session_can_be_resumed_where_it_broke() -> None:
    silence = Silence(sessions="memory")
    headers = await silence.begin()
    resumed: list[asyncio.Task[list[bytes]]] = []

    async def resume(event_id: str) -> list[bytes]:
        again = WaitingRequest(None, {**headers, "accept": "text/event-stream", "last-event-id": event_id}, silence.end)
        again.method, again.body = "GET", b""
        response = await runtime_of(silence.mcp).exchange(again)
        assert not isinstance(response.body, bytes)
        parts = [await anext(response.body)]
        silence.end()
        return parts + [part async for part in response.body]

    def reconnect(parts: int) -> None:
        if parts == 1:
            event_id = sent.parts[0].split(b"\n")[0].removeprefix(b"id: ").decode()
            resumed.append(asyncio.create_task(resume(event_id)))

    sent = WaitingRequest(request(*CALLS["async tool"]), headers, reconnect)
    got = await silence.read(sent)
    parts = await resumed[0]
    assert b'"done"' in parts[-1]
    assert b'"done"' not in got.body  # each message is on one stream only
    event_id = parts[-1].split(b"\n")[0].removeprefix(b"id: ").decode()
    assert event_id.endswith("-1")


class Ending:
    """A live session of a server, and the ways in which it can end."""

    def __init__(self) -> None:
        self._now = 1000.0
        memory = SharedMemory()
        memory.sessions = MemorySessions(clock=lambda: self._now)
        sessions = SharedMemorySessions(memory)
        self.silence = Silence(sessions=sessions)
        self._other_instance = Silence(sessions=SharedMemorySessions(memory))
        memory.sessions.endings = sessions.endings
        self.headers: dict[str, str] = {}

    async def delete(self) -> None:
        await self._delete_at(self.silence)

    async def delete_at_another_instance(self) -> None:
        await self._delete_at(self._other_instance)

    async def expire(self) -> None:
        self._now += 10_000
        await self.silence.begin()

    async def _delete_at(self, instance: Silence) -> None:
        sent = WaitingRequest(None, self.headers, instance.end)
        sent.method, sent.body = "DELETE", b""
        assert (await instance.read(sent)).status == 204


@pytest.mark.parametrize("has_streams", [False, True])
@pytest.mark.parametrize("is_silent_before", [False, True])
@pytest.mark.parametrize("way", [Ending.delete, Ending.delete_at_another_instance, Ending.expire])
async def test_a_session_that_ends_during_a_silent_call_takes_up_no_memory_after_it(
    way: Callable[[Ending], Awaitable[None]], *, is_silent_before: bool, has_streams: bool
) -> None:
    ending = Ending()
    silence = ending.silence
    load = runtime_of(silence.mcp).server.load
    base = load.memory.used
    ending.headers = await silence.begin()
    if has_streams:
        await silence.send(request(*CALLS["tool with a context"]), ending.headers)
        silence.begin_again()

    async def end_session(context: Any, call_next: Any) -> Any:
        if context.request.method == "tools/call" and not is_silent_before:
            await way(ending)
        return await call_next(context)

    def end_session_later(parts: int) -> None:
        if parts == 1 and is_silent_before:
            tasks.append(asyncio.ensure_future(way(ending)))
        if parts == 3:
            silence.end()

    tasks: list[asyncio.Future[None]] = []
    silence.mcp.add_middleware(end_session)
    got = await silence.send(request(*CALLS["async tool"]), ending.headers, end_session_later)
    await asyncio.gather(*tasks)
    assert (got.streamed, got.text) == (True, "done")
    assert (load.memory.used, load.requests.used, load.runs.used, load.streams.used) == (base, 0, 0, 0)


async def test_initialize_never_begins_early_because_its_header_has_the_session() -> None:
    silence = Silence(sessions="memory")

    async def slow(context: Any, call_next: Any) -> Any:
        await asyncio.sleep(3 * sse.KEEP_ALIVE_SECONDS)
        return await call_next(context)

    silence.mcp.add_middleware(slow)
    assert "mcp-session-id" in await silence.begin()


async def test_a_page_of_an_allowed_origin_may_read_a_silent_stream() -> None:
    silence = Silence(http=HTTPOptions(allowed_origins=["https://shop.example.com"]))
    body = per_request(*CALLS["async tool"])
    got = await silence.send(body, {**mirrored(body), "origin": "https://shop.example.com"})
    assert got.headers["access-control-allow-origin"] == "https://shop.example.com"
    got = await silence.send(body, mirrored(body))
    assert "access-control-allow-origin" not in got.headers


async def test_a_connection_that_fails_gets_no_further_comments() -> None:
    silence = Silence()
    body = per_request(*CALLS["async tool"])

    class BrokenRequest(WaitingRequest):
        async def send_early(self, headers: tuple[tuple[str, str], ...], part: bytes) -> None:
            await super().send_early(headers, part)
            raise ConnectionResetError

    loop = asyncio.get_running_loop()
    sent = BrokenRequest(body, mirrored(body), lambda _: loop.call_later(5 * sse.KEEP_ALIVE_SECONDS, silence.end))
    got = await silence.read(sent)
    assert (sent.parts, got.text) == ([COMMENT], "done")


async def test_an_answer_waits_for_a_comment_that_is_being_sent() -> None:
    silence = Silence()
    body = per_request(*CALLS["async tool"])

    class SlowRequest(WaitingRequest):
        async def send_early(self, headers: tuple[tuple[str, str], ...], part: bytes) -> None:
            silence.end()
            await asyncio.sleep(sse.KEEP_ALIVE_SECONDS)
            await super().send_early(headers, part)

    got = await silence.read(SlowRequest(body, mirrored(body), lambda _: None))
    assert got.body.startswith(COMMENT)
    assert got.text == "done"


async def test_a_server_that_ends_stops_a_comment_that_is_being_sent() -> None:
    silence = Silence()
    body = per_request(*CALLS["async tool"])
    is_sending, is_stopped = asyncio.Event(), asyncio.Event()

    class StuckRequest(WaitingRequest):
        async def send_early(self, headers: tuple[tuple[str, str], ...], part: bytes) -> None:
            is_sending.set()
            try:
                await asyncio.Event().wait()
            finally:
                is_stopped.set()

    answering = asyncio.ensure_future(runtime_of(silence.mcp).exchange(StuckRequest(body, mirrored(body), silence.end)))
    await asyncio.wait_for(is_sending.wait(), PATIENCE)
    silence.end()
    while not answering.done() and not is_stopped.is_set():
        answering.cancel()
        await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await answering
    await asyncio.wait_for(is_stopped.wait(), PATIENCE)


async def cut_off(silence: Silence, body: object, headers: Mapping[str, str | None]) -> list[Any]:
    """Send a request, let the server end after the first comment, and return the messages of the response."""
    sent = WaitingRequest(body, headers, lambda _: answering.cancel())
    answering = asyncio.ensure_future(runtime_of(silence.mcp).exchange(sent))
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(answering, PATIENCE)
    return Got(200, sent.headers_of_stream, b"".join(sent.parts)).messages


def unanswered(request_id: int) -> dict[str, Any]:
    """Return the error for a request that the server does not answer because it ends."""
    error = {"code": -32603, "message": "The server ended before the request was answered."}
    return {"jsonrpc": "2.0", "id": request_id, "error": error}


@pytest.mark.parametrize("sessions", ["signed", "memory"])
async def test_a_silent_stream_ends_with_an_error_if_the_server_ends_before_the_answer(sessions: Any) -> None:
    silence = Silence(sessions=sessions)
    headers = await silence.begin()
    assert await cut_off(silence, request(*CALLS["async tool"], request_id=7), headers) == [unanswered(7)]
    assert silence.is_cancelled


async def test_a_silent_stream_of_the_per_request_era_ends_with_an_error_if_the_server_ends() -> None:
    silence = Silence()
    body = per_request(*CALLS["async tool"])
    assert await cut_off(silence, body, mirrored(body)) == [unanswered(1)]


async def test_the_stream_of_a_silent_batch_ends_with_an_error_for_each_request_if_the_server_ends() -> None:
    silence = Silence()
    headers = await silence.begin("2025-03-26")
    batch = [request(*CALLS["async tool"], request_id=1), request(*CALLS["prompt"], request_id=2)]
    assert await cut_off(silence, batch, headers) == [[unanswered(1), unanswered(2)]]


async def test_a_server_that_ends_before_the_first_comment_sends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "KEEP_ALIVE_SECONDS", PATIENCE)
    silence = Silence()
    body = per_request(*CALLS["async tool"])
    sent = WaitingRequest(body, mirrored(body), silence.end)
    answering = asyncio.ensure_future(runtime_of(silence.mcp).exchange(sent))
    await asyncio.sleep(0)
    answering.cancel()
    with pytest.raises(asyncio.CancelledError):
        await answering
    assert sent.parts == []


async def test_the_log_of_requests_has_the_status_that_was_sent_and_the_whole_time() -> None:
    silence = Silence()
    entries: list[Entry] = []
    runtime_of(silence.mcp).log_requests(entries.append)
    body = per_request("tools/call", {"name": "refuse", "arguments": {}})
    await silence.send(body, mirrored(body))
    [entry] = entries
    assert (entry.status, entry.request.outcome) == (200, "error -32602")
    assert entry.seconds >= sse.KEEP_ALIVE_SECONDS
