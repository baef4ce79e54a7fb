"""An upstream whose answers fail in all the ways that HTTP has: each call gets one answer, and the next one works."""

from __future__ import annotations

import asyncio
import json
import threading
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from tests.patience import PATIENCE
from tests.proxy.scripted import (
    Request,
    Upstream,
    error,
    event,
    listening,
    response,
    result,
    stream_head,
    worked,
)
from tests.proxy.serving import proxy
from tests.proxy.wire import ERAS, HANDSHAKE, HTTPWire, over_http

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    Fault = Callable[["Script", Request, asyncio.StreamWriter], Awaitable[None]]

DONE, FAILED = "done", "failed"


class Script:
    """Answers calls as their argument `fault` says, and each further attempt of the same call rightly.

    Attributes:
        upstream: Receives the calls.
        elsewhere: Requests to another origin.
        other_port: The port of that origin.
        attempts: The labels of the calls, each as often as the upstream has received it.
        has_answered: Whether the last call has been answered and its connection ended, if its fault ends it. A client
            that sends the next one before that can't know that the connection ends.
    """

    def __init__(self, era: str) -> None:
        self.upstream = Upstream(era, self)
        self.elsewhere: list[Request] = []
        self.other_port = 0
        self.attempts: list[str] = []
        self.has_answered = threading.Event()

    async def __call__(self, request: Request, writer: asyncio.StreamWriter) -> None:
        self.has_answered.clear()
        try:
            await self._answer(request, writer)
        finally:
            self.has_answered.set()

    async def _answer(self, request: Request, writer: asyncio.StreamWriter) -> None:
        arguments = request.message["params"]["arguments"]
        self.attempts.append(arguments["label"])
        if self.attempts.count(arguments["label"]) > 1:
            writer.write(response(result(request, worked(request))))
        else:
            await FAULTS[arguments["fault"]][0](self, request, writer)

    async def note(self, request: Request, writer: asyncio.StreamWriter) -> None:
        """Serve the other origin."""
        self.elsewhere.append(request)
        writer.write(response(result(request, worked(request, "stolen"))))


def fixed(make: Callable[[Request], bytes]) -> Fault:
    """Answer with bytes."""

    async def answer(script: Script, request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(make(request))

    return answer


def ending(make: Callable[[Request], bytes]) -> Fault:
    """Answer with bytes, and end the connection."""

    async def answer(script: Script, request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(make(request))
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    return answer


async def expire(script: Script, request: Request, writer: asyncio.StreamWriter) -> None:
    script.upstream.sessions.remove(request.headers["mcp-session-id"])
    writer.write(response('{"error": "session not found"}', status=404))


async def reset(script: Script, request: Request, writer: asyncio.StreamWriter) -> None:
    writer.transport.abort()


async def redirect(script: Script, request: Request, writer: asyncio.StreamWriter) -> None:
    writer.write(response(status=307, location=f"http://127.0.0.1:{script.other_port}/mcp"))


def status(code: int, **headers: str) -> Fault:
    return fixed(lambda request: response("<h1>Sorry</h1>", "text/html", status=code, **headers))


def with_id(request: Request, request_id: Any) -> str:
    return json.dumps({**json.loads(result(request, worked(request, "not yours"))), "id": request_id})


def without_result(request: Request) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": request.message["id"]})


def answer(request: Request) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(result(request, worked(request)))
    return value


def notification(number: int) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": number}}


FAULTS: dict[str, tuple[Fault, str, int]] = {
    "none": (fixed(lambda request: response(result(request, worked(request)))), DONE, 1),
    "a stream": (
        ending(lambda request: stream_head() + event(notification(1)) + event(answer(request))),
        DONE,
        1,
    ),
    "the connection ends after the answer": (
        ending(lambda request: response(result(request, worked(request)))),
        DONE,
        1,
    ),
    "an error of the upstream": (
        fixed(lambda request: response(error(request, -32123, "No luck.", why="rain"))),
        FAILED,
        1,
    ),
    "an error with status 400": (
        fixed(lambda request: response(error(request, -32602, "Wrong."), status=400)),
        FAILED,
        1,
    ),
    "500": (status(500), FAILED, 1),
    "502": (status(502), FAILED, 1),
    "503": (status(503, retry_after="0"), FAILED, 1),
    "429": (status(429, retry_after="0"), FAILED, 1),
    "401": (status(401, www_authenticate="Bearer"), FAILED, 1),
    "403": (status(403, www_authenticate="Bearer error=insufficient_scope"), FAILED, 1),
    "403 without a challenge": (status(403), FAILED, 1),
    "202 without a body": (fixed(lambda request: response(status=202)), FAILED, 1),
    "reset": (reset, FAILED, 1),
    "no byte": (ending(lambda request: b""), FAILED, 1),
    "half a header": (ending(lambda request: b"HTTP/1.1 200 OK\r\ncontent-ty"), FAILED, 1),
    "half a body": (ending(lambda request: response(result(request, worked(request)))[:-9]), FAILED, 1),
    "half an event": (ending(lambda request: stream_head() + event(answer(request))[:-9]), FAILED, 1),
    "a stream without an answer": (ending(lambda request: stream_head() + event(notification(1))), FAILED, 1),
    "no HTTP": (ending(lambda request: b"SSH-2.0-OpenSSH_9.2\r\n"), FAILED, 1),
    "no JSON": (fixed(lambda request: response("<h1>Welcome</h1>", "text/html")), FAILED, 1),
    "no message": (fixed(lambda request: response("[1, 2]")), FAILED, 1),
    "no result": (fixed(lambda request: response(without_result(request))), FAILED, 1),
    "another id": (fixed(lambda request: response(with_id(request, 99999))), FAILED, 1),
    "id null": (fixed(lambda request: response(with_id(request, None))), FAILED, 1),
    "a compressed body": (fixed(lambda request: response(b"\x1f\x8b\x08", content_encoding="gzip")), FAILED, 1),
    "two answers": (
        ending(lambda request: stream_head() + event(answer(request)) + event(json.loads(with_id(request, 1)))),
        DONE,
        1,
    ),
    "a redirect elsewhere": (redirect, FAILED, 1),
}
"""For each fault: what the upstream does, what the client gets, and the attempts that the upstream sees."""

OF_SESSIONS: dict[str, tuple[Fault, str, int]] = {"an expired session": (expire, DONE, 2)}
FAULTS |= OF_SESSIONS


@pytest.fixture(scope="module", params=ERAS, ids=lambda era: f"upstream of {era}")
def script(request: pytest.FixtureRequest) -> Script:
    return Script(request.param)


@pytest.fixture(scope="module")
def url(script: Script) -> Iterator[str]:
    with ExitStack() as stack:
        port = stack.enter_context(listening(script.upstream))
        script.other_port = stack.enter_context(listening(script.note))
        yield stack.enter_context(proxy({"url": f"http://127.0.0.1:{port}/mcp"})).url


async def call(wire: HTTPWire, fault: str, label: str) -> str:
    """Call the tool, and return what came of it. The status of the proxy is 200 whatever the upstream's is."""
    params = {"name": "work", "arguments": {"fault": fault, "label": label}}
    *_, answer = await wire.responses("tools/call", params)
    message = json.loads(answer)
    failed = "error" in message or message["result"].get("isError", False)
    assert failed or message["result"]["content"] == [{"type": "text", "text": "done"}]
    return FAILED if failed else DONE


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("fault", FAULTS)
async def test_a_call_gets_one_answer_and_the_next_one_works(fault: str, era: str, script: Script, url: str) -> None:
    if fault in OF_SESSIONS and script.upstream.era != HANDSHAKE:
        pytest.skip("2026-07-28 has no sessions.")
    _, outcome, attempts = FAULTS[fault]
    label = f"{fault} {era}"
    async with over_http(url, era) as wire:
        assert await call(wire, fault, label) == outcome
        assert script.attempts.count(label) == attempts
        assert await asyncio.to_thread(script.has_answered.wait, PATIENCE)
        assert await call(wire, "none", f"{label} next") == DONE
        assert script.attempts.count(f"{label} next") == 1
    assert script.elsewhere == []


@pytest.mark.parametrize("era", ERAS)
async def test_an_error_of_the_upstream_keeps_its_code_message_and_data(era: str, script: Script, url: str) -> None:
    async with over_http(url, era) as wire:
        params = {"name": "work", "arguments": {"fault": "an error of the upstream", "label": f"kept {era}"}}
        message = json.loads((await wire.responses("tools/call", params))[-1])
    assert message["error"] == {"code": -32123, "message": "No luck.", "data": {"why": "rain"}}


@pytest.mark.slow("Many clients call through several processes.")
@pytest.mark.parametrize("era", ERAS)
def test_an_upstream_that_is_away_for_a_time_is_used_again(era: str) -> None:
    script = Script(era)
    with ExitStack() as first:
        port = first.enter_context(listening(script.upstream))
        with proxy({"url": f"http://127.0.0.1:{port}/mcp", "options": {"optional": True}}) as served:
            asyncio.run(_through_an_outage(served.url, script, port, first))


async def _through_an_outage(url: str, script: Script, port: int, first: ExitStack) -> None:
    async with over_http(url, ERAS[0]) as wire:
        assert await call(wire, "none", "before") == DONE
        first.close()
        assert await call(wire, "none", "during") == FAILED
        with listening(script.upstream, port):
            script.upstream.sessions.clear()
            async with asyncio.timeout(PATIENCE):
                while await call(wire, "none", f"after {len(script.attempts)}") != DONE:
                    pass
    assert "during" not in script.attempts
