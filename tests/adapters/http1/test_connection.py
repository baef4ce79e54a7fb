"""The bounds of a connection in time, and of what waits on it, on real connections with both HTTP parsers."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import socket
import struct
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest
import uvicorn

from funcmcp._adapters.http1.parser import SLICE_BYTES
from funcmcp._adapters.uvicorn.protocols import http_protocol
from funcmcp._server.limits import Limits
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Literal, TypeAlias

    Parser: TypeAlias = Literal["httptools", "h11"]

pytestmark = [
    pytest.mark.every_python("Tasks, timeouts and cancellation are those of asyncio."),
    pytest.mark.lowest("uvicorn, httptools, h11 and uvloop read and write HTTP."),
]

SHORT = 0.05
"""Seconds after which the servers of these tests lose patience, if they do."""

HEAD = b"POST / HTTP/1.1\r\nhost: here\r\ncontent-length: 4\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\n"
LATE = b"HTTP/1.1 408 Request Timeout\r\n"


class Application:
    """Reads the body, unless told to answer before; waits, where it is told to, until it is let go."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.gone = threading.Event()
        self.held = threading.Event()
        self.go_on = threading.Event()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.begun.set()
        incomplete = scope["path"] != "/refused"
        while incomplete:
            message = await receive()
            incomplete = message.get("more_body", False)
            if message["type"] == "http.disconnect":
                self.gone.set()
                return
        if scope["path"] == "/held":
            await self.hold()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})

    async def hold(self) -> None:
        self.held.set()
        assert await asyncio.to_thread(self.go_on.wait, PATIENCE)


@pytest.fixture(params=["httptools", "h11"])
def parser(request: pytest.FixtureRequest) -> Parser:
    chosen: Parser = request.param
    return chosen


@contextlib.contextmanager
def serving(app: Any, parser: Parser, limits: Limits) -> Iterator[int]:
    with running(app, parser, limits) as (port, _):
        yield port


@contextlib.contextmanager
def running(app: Any, parser: Parser, limits: Limits, **options: Any) -> Iterator[tuple[int, uvicorn.Server]]:
    """Serve an application in a thread; yield the port and the server."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        protocol = http_protocol(limits, parser)
        config = uvicorn.Config(
            app, http=protocol, loop="asyncio", ws="none", lifespan="off", log_config=None, **options
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        try:
            yield int(listener.getsockname()[1]), server
        finally:
            server.should_exit = True
            thread.join(PATIENCE)
            assert not thread.is_alive()


@contextlib.contextmanager
def connected(port: int) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", port), PATIENCE) as line:
        yield line


def until_the_end(line: socket.socket) -> bytes:
    """Return all that comes until the other side closes the connection."""
    received = b""
    while part := line.recv(65536):
        received += part
    return received


@pytest.mark.parametrize("head", [b"", b"P", HEAD[:-2], b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 9])
def test_a_head_that_does_not_come_to_its_end_is_408_and_the_end(parser: Parser, head: bytes) -> None:
    with serving(Application(), parser, Limits(message_seconds=SHORT)) as port, connected(port) as line:
        line.sendall(head)
        answer = until_the_end(line)
    assert answer.startswith(LATE)
    assert b"connection: close\r\n" in answer


@pytest.mark.parametrize("head", [HEAD, HEAD + b"123"])
def test_a_body_that_does_not_come_to_its_end_is_408_and_the_application_is_told(parser: Parser, head: bytes) -> None:
    app = Application()
    with serving(app, parser, Limits(message_seconds=SHORT)) as port, connected(port) as line:
        line.sendall(head)
        assert until_the_end(line).startswith(LATE)
        assert app.gone.wait(PATIENCE)


def test_each_byte_does_not_buy_more_time(parser: Parser) -> None:
    with serving(Application(), parser, Limits(message_seconds=SHORT)) as port, connected(port) as line:
        line.settimeout(SHORT / 10)
        line.sendall(HEAD[:-2])
        answer = b""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            for _ in range(10_000):
                line.sendall(b"a: b\r\n")
                with contextlib.suppress(TimeoutError):
                    answer = line.recv(65536)
                    break
    assert answer.startswith(LATE)


def test_trailers_do_not_buy_more_time(parser: Parser) -> None:
    chunked = b"POST / HTTP/1.1\r\nhost: here\r\ntransfer-encoding: chunked\r\n\r\n0\r\n"
    with serving(Application(), parser, Limits(message_seconds=SHORT)) as port, connected(port) as line:
        line.settimeout(SHORT / 10)
        line.sendall(chunked)
        answer = b""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            for _ in range(5_000):
                line.sendall(b"a: b\r\n")
                with contextlib.suppress(TimeoutError):
                    answer = line.recv(65536)
                    break
    assert answer.startswith(LATE)


def test_the_next_request_of_a_connection_has_the_same_time(parser: Parser) -> None:
    with serving(Application(), parser, Limits(message_seconds=SHORT)) as port, connected(port) as line:
        line.sendall(HEAD + b"1234")
        assert line.recv(65536).startswith(OK)
        line.sendall(HEAD[:-2])
        assert until_the_end(line).removeprefix(b"ok").startswith(LATE)


def test_a_request_that_was_answered_before_its_body_came_gets_no_second_answer(
    parser: Parser,
) -> None:
    with serving(Application(), parser, Limits(message_seconds=SHORT)) as port, connected(port) as line:
        line.sendall(HEAD.replace(b"/ ", b"/refused ", 1))
        answer = until_the_end(line)
    assert answer.startswith(OK)
    assert answer.count(b"HTTP/1.1 ") == 1


def test_a_call_may_take_longer_than_its_request(parser: Parser) -> None:
    """The beginning of a next request comes behind it, so that there is something to wait for meanwhile."""
    app = Application()
    with serving(app, parser, Limits(message_seconds=SHORT)) as port, connected(port) as line, connected(port) as other:
        line.sendall(HEAD.replace(b"/ ", b"/held ", 1) + b"1234")
        assert app.held.wait(PATIENCE)
        line.sendall(HEAD[:9])
        other.sendall(HEAD[:9])
        assert until_the_end(other).startswith(LATE)  # by now, time would be over for the first one, too
        app.go_on.set()
        assert line.recv(65536).startswith(OK)


def test_a_request_in_parts_that_comes_in_time_is_answered(parser: Parser) -> None:
    with serving(Application(), parser, Limits(message_seconds=PATIENCE)) as port, connected(port) as line:
        for part in re.findall(b".{1,7}", HEAD + b"1234", re.DOTALL):
            line.sendall(part)
        assert line.recv(65536).startswith(OK)


def as_many_as_it_takes(line: socket.socket, data: bytes, limit: int) -> int:
    """Send data again and again until the other side has taken nothing for a while; return the number of bytes."""
    sent = 0
    line.settimeout(0.5)
    with contextlib.suppress(TimeoutError):
        while sent < limit:
            sent += line.send(data)
    return sent


@pytest.mark.slow("Much data is sent.")
def test_requests_that_wait_for_their_turn_are_bounded_and_so_is_what_is_read(parser: Parser) -> None:
    """Sixteen million bytes of small requests; the application even asks for more of its own, which has no body."""
    app = Application()

    async def hanging(scope: Any, receive: Any, send: Any) -> None:
        assert (await receive())["type"] == "http.request"
        asking = asyncio.ensure_future(receive())
        await app.hold()
        asking.cancel()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    small, limit = b"GET / HTTP/1.1\r\nhost:x\r\n\r\n", 16_000_000
    with running(hanging, parser, Limits()) as (port, server), connected(port) as line:
        line.sendall(small)
        assert app.held.wait(PATIENCE)
        sent = as_many_as_it_takes(line, small * 1000, limit)
        (connection,) = server.server_state.connections
        protocol: Any = connection
        waiting = len(getattr(protocol, "pipeline", ()))
        app.go_on.set()
    assert sent < limit
    assert waiting <= SLICE_BYTES // 18
    assert len(protocol.unparsed) <= 1_000_000


@pytest.mark.parametrize("size", [1, 27, 5000, 10**9])
def test_requests_behind_each_other_are_answered_one_by_one_in_their_order(parser: Parser, size: int) -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        body = b""
        while (message := await receive()).get("more_body"):
            body += message["body"]
        answer = scope["path"].encode() + b" " + body + message["body"] + b"\n"
        await asyncio.sleep(0)
        await send(
            {"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(answer))]}
        )
        await send({"type": "http.response.body", "body": answer})

    count = 300
    requests = b"".join(
        b"POST /%d HTTP/1.1\r\nhost:x\r\ntransfer-encoding: chunked\r\n\r\n3\r\n%03d\r\n0\r\n\r\n" % (number, number)
        for number in range(count)
    )
    last = b"GET /last HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"
    with serving(app, parser, Limits()) as port, connected(port) as line:
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        data = requests + last
        for start in range(0, len(data), size):
            line.sendall(data[start : start + size])
        text = until_the_end(line)
    answers = re.findall(rb"^/\w+ .*$", text, re.MULTILINE)
    assert answers == [*(b"/%d %03d" % (number, number) for number in range(count)), b"/last "]


def gone(server: uvicorn.Server) -> bool:
    """Wait until the server has no connection."""
    end = time.monotonic() + PATIENCE
    while server.server_state.connections and time.monotonic() < end:
        time.sleep(0.01)
    return not server.server_state.connections


@pytest.mark.parametrize("closing", [b"", b"connection: close\r\n"])
def test_a_client_that_does_not_read_loses_its_connection(parser: Parser, closing: bytes) -> None:
    async def large(scope: Any, receive: Any, send: Any) -> None:
        del scope, receive
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"x" * 30_000_000})

    with running(large, parser, Limits(write_seconds=SHORT)) as (port, server), connected(port) as line:
        line.sendall(b"GET / HTTP/1.1\r\nhost: x\r\n%b\r\n" % closing)
        assert line.recv(15) == b"HTTP/1.1 200 OK"
        assert gone(server)


@pytest.mark.slow("Much data is sent.")
def test_clients_that_do_not_read_take_up_so_many_bytes_together(parser: Parser) -> None:
    size = 20_000_000  # several times what the buffers of two sockets hold

    async def large(scope: Any, receive: Any, send: Any) -> None:
        del scope, receive
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"x" * size})

    with (
        running(large, parser, Limits(unsent_bytes=3 * size + size // 2)) as (port, server),
        contextlib.ExitStack() as stack,
    ):
        lines = []
        for _ in range(8):
            line = stack.enter_context(connected(port))
            line.sendall(b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
            assert line.recv(15) == b"HTTP/1.1 200 OK"
            lines.append(line)
        deadline = time.monotonic() + PATIENCE
        while len(server.server_state.connections) > 3 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert len(server.server_state.connections) == 3
        assert until_the_end(lines[0]).count(b"x") < size
        assert until_the_end(lines[-1]).count(b"x") == size


@pytest.mark.slow("Much data is sent.")
def test_one_response_may_be_larger_than_what_may_wait_together(parser: Parser) -> None:
    async def large(scope: Any, receive: Any, send: Any) -> None:
        del scope, receive
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"x" * 20_000_000})

    with serving(large, parser, Limits(unsent_bytes=1000)) as port, connected(port) as line:
        line.sendall(b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
        time.sleep(SHORT)
        assert until_the_end(line).count(b"x") == 20_000_000


def test_a_client_that_reads_a_large_response_slowly_gets_all_of_it(parser: Parser) -> None:
    async def large(scope: Any, receive: Any, send: Any) -> None:
        del scope, receive
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for _ in range(10):
            await send({"type": "http.response.body", "body": b"x" * 1_000_000, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    with serving(large, parser, Limits()) as port, connected(port) as line:
        line.sendall(b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
        time.sleep(SHORT)
        assert until_the_end(line).count(b"x") == 10_000_000


def test_nothing_is_written_into_a_response_that_is_under_way(parser: Parser) -> None:
    app = Application()

    async def streaming(scope: Any, receive: Any, send: Any) -> None:
        del scope, receive
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"head", "more_body": True})
        await app.hold()
        await send({"type": "http.response.body", "body": b"ended"})

    with serving(streaming, parser, Limits()) as port, connected(port) as line:
        line.sendall(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
        text = b""
        while b"head" not in text:
            text += line.recv(65536)
        line.sendall(b"\x00 this is not HTTP\r\n\r\n")
        assert app.held.wait(PATIENCE)
        app.go_on.set()
        text += until_the_end(line)
    assert text.partition(b"ended")[0].count(b"HTTP/1.1 ") == 1
    assert b"ended" in text
    assert text.startswith(OK)


def test_an_application_is_told_that_its_client_left_though_another_request_waits(parser: Parser) -> None:
    app = Application()

    async def listening(scope: Any, receive: Any, send: Any) -> None:
        del scope
        await receive()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"head", "more_body": True})
        assert (await receive())["type"] == "http.disconnect"
        app.gone.set()

    with serving(listening, parser, Limits()) as port:
        with connected(port) as line:
            line.sendall(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n" * 2)
            text = b""
            while b"head" not in text:
                text += line.recv(65536)
            line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        assert app.gone.wait(PATIENCE)


def test_what_is_not_http_after_a_request_does_not_cost_it_its_answer(parser: Parser) -> None:
    with serving(Application(), parser, Limits()) as port, connected(port) as line:
        line.sendall(HEAD + b"1234" + b"\x00 this is not HTTP\r\n\r\n")
        assert until_the_end(line).startswith(OK)


def test_the_log_says_who_sent_an_invalid_request_and_why(parser: Parser, caplog: pytest.LogCaptureFixture) -> None:
    with serving(Application(), parser, Limits()) as port, connected(port) as line:
        line.sendall(b"GET / HTTP/1.1\r\nHost: here\r\nAuthorization : Bearer secret\r\n\r\n")
        assert until_the_end(line).startswith(b"HTTP/1.1 400 ")
    [message] = [record.getMessage() for record in caplog.records]
    beginning, _, reason = message.rpartition(": ")
    assert beginning == "Invalid HTTP request received from 127.0.0.1"
    assert reason in ("Invalid header token", "illegal header line")


def test_a_client_that_waits_with_its_body_is_asked_for_it(parser: Parser) -> None:
    with serving(Application(), parser, Limits()) as port, connected(port) as line:
        line.sendall(b"POST / HTTP/1.1\r\nhost: here\r\nexpect: 100-continue\r\ncontent-length: 4\r\n\r\n")
        assert line.recv(65536) == b"HTTP/1.1 100 Continue\r\n\r\n"
        line.sendall(b"1234")
        assert line.recv(65536).startswith(OK)


@pytest.mark.parametrize(
    ("version", "body"),
    [(b"1.0", b"1234"), (b"1.1", b"1234"), (b"1.1", b"")],
    ids=["HTTP/1.0", "the body comes at once", "no body"],
)
def test_no_body_is_asked_for_where_the_client_does_not_wait(parser: Parser, version: bytes, body: bytes) -> None:
    """RFC 9110 section 10.1.1: the expectation of an HTTP/1.0 request must be ignored."""
    with serving(Application(), parser, Limits()) as port, connected(port) as line:
        fields = b"host: here\r\nexpect: 100-continue\r\ncontent-length: %d\r\nconnection: close\r\n" % len(body)
        line.sendall(b"POST / HTTP/%b\r\n%b\r\n%b" % (version, fields, body))
        assert until_the_end(line).startswith(OK)


@pytest.mark.parametrize("fields", [[], [(b"content-length", b"4")]], ids=["no length", "a length"])
@pytest.mark.parametrize(("method", "status"), [(b"GET", 204), (b"GET", 304), (b"HEAD", 200)])
def test_the_body_of_a_response_that_can_have_none_is_dropped(
    parser: Parser, method: bytes, status: int, fields: list[tuple[bytes, bytes]]
) -> None:
    """Such as that of Starlette's ``JSONResponse(None, status_code=204)``."""

    async def app(_scope: Any, _receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": status, "headers": fields})
        await send({"type": "http.response.body", "body": b"nu", "more_body": True})
        await send({"type": "http.response.body", "body": b"ll"})

    with serving(app, parser, Limits()) as port, connected(port) as line:
        line.sendall(b"%b / HTTP/1.1\r\nhost: here\r\n\r\n" % method)
        line.sendall(b"GET / HTTP/1.0\r\nhost: here\r\n\r\n")
        answers = until_the_end(line)
    assert re.findall(rb"HTTP/1.1 (\d+) ", answers) == [b"%d" % status] * 2
    assert answers.count(b"null") == (1 if method == b"HEAD" else 0)


CHUNKED = b"POST / HTTP/1.1\r\nhost: here\r\ntransfer-encoding: chunked\r\n\r\n"


@pytest.mark.parametrize("complete", [1, 2, 3])
@pytest.mark.parametrize(
    "refused",
    [CHUNKED + b"zz\r\n", CHUNKED + b"0\r\n" + b"a:" * 5000, b"GET / HTTP/1.1\r\n" + b"a:" * 5000],
    ids=["chunk", "trailers", "header"],
)
def test_a_request_that_is_refused_does_not_cost_those_before_it_their_answers(
    parser: Parser, refused: bytes, complete: int
) -> None:
    """All of them come at once, so that the first one is still to be answered when the last one is parsed."""
    with serving(Application(), parser, Limits(header_bytes=8000)) as port, connected(port) as line:
        line.sendall((HEAD + b"1234") * complete + refused)
        answers = b""
        with contextlib.suppress(ConnectionResetError):  # the server had more to read
            while part := line.recv(65536):
                answers += part
    statuses = re.findall(rb"HTTP/1.1 (\d+) ", answers)
    assert statuses[:complete] == [b"200"] * complete
    assert statuses[complete:] in ([], [b"400"], [b"431"])


@pytest.mark.parametrize("method", [b"HEAD", b"POST"])
def test_a_chunk_that_is_none_is_400_and_no_fault_of_the_server(
    parser: Parser, method: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    app = Application()
    with serving(app, parser, Limits()) as port, connected(port) as line:
        line.sendall(b"%b / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n" % method)
        assert app.begun.wait(PATIENCE)
        line.sendall(b"\xff\r\n")
        assert until_the_end(line).startswith(b"HTTP/1.1 400 ")
        assert app.gone.wait(PATIENCE)
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == []


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"POST /refused HTTP/1.1\r\nhost: here\r\nconnection: close\r\ncontent-length: 9000000\r\n\r\n", b"200"),
        (b"POST /refused HTTP/1.0\r\nhost: here\r\ncontent-length: 9000000\r\n\r\n", b"200"),
        (b"POST / HTTP/1.1\r\nhost: here\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nhost: here\r\nx-long: ", b"431"),
    ],
)
def test_a_client_that_still_sends_can_read_the_answer_before_the_connection_closes(
    parser: Parser, head: bytes, status: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without lingering, the kernel resets the connection, and the client loses the answer that has arrived."""
    monkeypatch.setattr("funcmcp._adapters.http1.connection.LINGER_SECONDS", PATIENCE)
    with serving(Application(), parser, Limits(header_bytes=8000)) as port, connected(port) as line:
        line.sendall(head)
        for _ in range(100):
            line.sendall(b"x" * 50_000)
        answer = until_the_end(line)
        assert answer.startswith(b"HTTP/1.1 %b " % status)
        assert answer.lower().count(b"connection: close\r\n") == 1


def test_a_connection_lingers_for_a_while_only(parser: Parser, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("funcmcp._adapters.http1.connection.LINGER_SECONDS", SHORT)
    with running(Application(), parser, Limits()) as (port, server), connected(port) as line:
        line.sendall(b"POST /refused HTTP/1.1\r\nhost: here\r\nconnection: close\r\ncontent-length: 9\r\n\r\n")
        assert until_the_end(line).startswith(OK)
        end = time.monotonic() + PATIENCE
        while server.server_state.connections and time.monotonic() < end:
            time.sleep(0.01)
        assert not server.server_state.connections


def test_a_connection_is_idle_once_a_body_has_arrived_that_nobody_read(parser: Parser) -> None:
    """The response came before the end of the body. The connection then remains open for its idle time only."""
    with running(Application(), parser, Limits(), timeout_keep_alive=0) as (port, _), connected(port) as line:
        line.sendall(b"POST /refused HTTP/1.1\r\nhost: here\r\ncontent-length: 4\r\n\r\n12")
        assert line.recv(65536).startswith(OK)
        line.sendall(b"34")
        assert until_the_end(line) in (b"", b"ok")


def test_data_behind_a_request_that_filled_the_buffer_is_read_on(parser: Parser) -> None:
    """Reading pauses while a request is answered, and resumes when what waited has been parsed."""
    app = Application()
    body = b"x" * 300_000
    with serving(app, parser, Limits()) as port, connected(port) as line:
        line.sendall(b"POST /held HTTP/1.1\r\nhost: here\r\ncontent-length: 0\r\n\r\n")
        assert app.held.wait(PATIENCE)
        sending = threading.Thread(
            target=line.sendall, args=(b"POST / HTTP/1.1\r\nhost: here\r\ncontent-length: 300000\r\n\r\n" + body,)
        )
        sending.start()
        app.go_on.set()
        answers = b""
        while answers.count(OK) < 2 or not answers.endswith(b"ok"):
            answers += line.recv(65536)
        sending.join(PATIENCE)
        line.sendall(HEAD + b"1234")
        assert line.recv(65536).startswith(OK)
