"""What only a real connection shows: uvicorn with both of its parsers, raw sockets."""

from __future__ import annotations

import contextlib
import json
import logging
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp._server.limits import Limits
from funcmcp._transports.http.options import HTTPOptions
from tests import rules
from tests.wire.conftest import SMALL_LIMIT, serving
from tests.wire.line import connection, head, post, request
from tests.wire.offering import offer
from tests.wire.peer import ERAS, HANDSHAKE, PER_REQUEST, Peer, check, initialize, to_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.wire.conftest import Way
    from tests.wire.offering import Offering
    from tests.wire.peer import App

pytestmark = [
    pytest.mark.every_python("Tasks, timeouts and cancellation are those of asyncio."),
    pytest.mark.lowest("uvicorn, httptools, h11 and uvloop read and write HTTP."),
]

CHUNK = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
END = b"0\r\n\r\n"


@pytest.fixture(autouse=True)
def quiet_log(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Fail where a client's fault or its leaving puts an error or a traceback into any log."""
    caplog.set_level(logging.WARNING)
    yield
    for record in caplog.get_records("call"):
        assert record.exc_info is None, record.getMessage()
        assert record.levelno < logging.ERROR, record.getMessage()


def peer_at(app: App, port: int, revision: str) -> Peer:
    """Return a peer with a session, begun over the wire."""
    peer = Peer(app, revision, {"elicitation": {}})
    if not peer.per_request:
        answer = check(post(peer, port, initialize(revision, peer.capabilities)), revision, "initialize")
        peer.session_id = answer.header("mcp-session-id")
    return peer


def add(peer: Peer, port: int) -> None:
    """Fail unless a good request on a new connection is answered."""
    message = peer.message("tools/call", {"name": "add", "arguments": {"a": 20, "b": 22}})
    assert check(post(peer, port, message), peer.revision, "tools/call").text == "42"


@rules.verifies(rules.H1, rules.H5)
@pytest.mark.parametrize("revision", ERAS)
def test_an_answer_over_tcp_is_the_one_from_memory(offering: Offering, port: int, revision: str) -> None:
    """A JSON response has a length, and a stream is chunked and ends."""
    peer = peer_at(offering.app, port, revision)
    message = peer.message("tools/call", {"name": "nothing", "arguments": {}})
    answer = check(post(peer, port, message), revision, "tools/call")
    assert (answer.status, answer.header("content-length")) == (200, str(len(answer.body)))
    stream = check(post(peer, port, peer.call_message("talk")), revision, "tools/call")
    assert (stream.media_type, stream.text) == ("text/event-stream", "talked")


@rules.verifies(rules.H10, rules.H13)
@pytest.mark.parametrize("revision", ERAS)
def test_refusals_keep_the_connection_usable_or_close_it_cleanly(offering: Offering, port: int, revision: str) -> None:
    """The next valid request on the same connection is answered."""
    peer = peer_at(offering.app, port, revision)
    good = peer.message("tools/list")
    with connection(port) as line:
        for bad in (b"{", b"[]", b'{"jsonrpc":"2.0"}', b"[" * 1000, b"\xff\xfe"):
            line.send(request(peer, port, bad))
            assert check(line.answer(), revision).status == 400
            line.send(request(peer, port, good))
            assert check(line.answer(), revision, "tools/list").status == 200


@rules.verifies(rules.H2, rules.H4)
@pytest.mark.parametrize("method", ["GET", "PUT", "OPTIONS", "PATCH", "HEAD"])
def test_other_methods_over_tcp_are_405(port: int, method: str) -> None:
    """The response has an Allow header. The response to HEAD has no body."""
    with connection(port) as line:
        line.send(head([("host", f"127.0.0.1:{port}"), ("connection", "close")], method=method))
        if method == "HEAD":
            assert line.lines_until(b"\r\n")[0].split()[1] == b"405"
            assert line.is_closed()
        else:
            answer = line.answer()
            assert (answer.status, "POST" in (answer.header("allow") or "")) == (405, True)


@rules.verifies(rules.H3, rules.D4)
def test_a_session_ends_by_delete_over_tcp(offering: Offering, port: int) -> None:
    """Afterwards the session is 404."""
    peer = peer_at(offering.app, port, HANDSHAKE)
    with connection(port) as line:
        line.send(head({**peer.headers(None), "host": f"127.0.0.1:{port}"}.items(), method="DELETE"))
        assert (line.answer().status, post(peer, port, peer.message("ping")).status) == (204, 404)


@rules.verifies(rules.THREAT_1, rules.D11)
@pytest.mark.parametrize(
    "extra",
    [
        [("host", "127.0.0.1"), ("host", "127.0.0.1")],
        [("host", "127.0.0.1"), ("Host", "evil.com")],
        [("host", "127.0.0.1"), ("origin", "http://127.0.0.1"), ("Origin", "http://evil.com")],
    ],
)
def test_two_hosts_or_origins_over_tcp_are_400(offering: Offering, port: int, extra: list[tuple[str, str]]) -> None:
    """Either the HTTP server or the endpoint rejects the request."""
    peer = Peer(offering.app, PER_REQUEST)
    body = to_bytes(peer.message("tools/list"))
    usual = [(name, value) for name, value in peer.headers(peer.message("tools/list")).items() if name != "host"]
    with connection(port) as line:
        line.send(head([*usual, *extra, ("content-length", str(len(body)))]) + body)
        assert line.answer().status == 400


@rules.verifies(rules.THREAT_1, rules.D9)
def test_a_foreign_host_over_tcp_is_refused(offering: Offering, port: int) -> None:
    """The default settings reject it, because the address of the connection is known."""
    peer = Peer(offering.app, PER_REQUEST)
    message = peer.message("tools/list")
    for host in ("evil.com", "localhost.evil.com", "127.0.0.1.evil.com:80", "localhost.", ""):
        assert post(peer, port, message, host=host).status in {400, 403, 421}, host
    assert post(peer, port, message, origin="http://evil.com").status == 403
    assert post(peer, port, message, origin="null").status == 403
    assert post(peer, port, message, host=f"LocalHost:{port}", origin=f"http://127.0.0.1:{port}").status == 200
    with connection(port) as line:
        line.send(head([("content-length", "0"), ("connection", "close")]))
        assert line.answer().status == 400


@rules.verifies(rules.D11, rules.THREAT_33)
def test_two_routing_headers_over_tcp_are_400(offering: Offering, port: int) -> None:
    """The names of the headers differ in case."""
    peer = Peer(offering.app, PER_REQUEST)
    message = peer.message("tools/list")
    body = to_bytes(message)
    pairs = [*{**peer.headers(message), "host": f"127.0.0.1:{port}"}.items(), ("content-length", str(len(body)))]
    with connection(port) as line:
        line.send(head([*pairs, ("MCP-Method", "tools/list")]) + body)
        assert check(line.answer(), PER_REQUEST).outcome == (400, -32020)


@rules.verifies(rules.D10)
def test_white_space_around_values_over_tcp_does_not_count(offering: Offering, port: int) -> None:
    """One of the parsers does not strip it."""
    peer = Peer(offering.app, PER_REQUEST)
    message = peer.message("tools/call", {"name": "nothing", "arguments": {}})
    answer = post(
        peer,
        port,
        message,
        mcp_name="  nothing \t",
        mcp_method=" tools/call  ",
        mcp_protocol_version=f" {PER_REQUEST} ",
    )
    assert check(answer, PER_REQUEST, "tools/call").text == "nothing"


@pytest.fixture
def small_port(limited: Offering, parser: Way) -> Iterator[int]:
    """The port where a server that takes small bodies is served for real."""
    with serving(limited.app, parser) as port:
        yield port


@rules.verifies(rules.THREAT_22)
@pytest.mark.parametrize("revision", ERAS)
def test_a_chunked_body_over_the_limit_is_413_and_the_answer_arrives(
    limited: Offering, small_port: int, revision: str
) -> None:
    """The client gets the response while it still sends."""
    peer = peer_at(limited.app, small_port, revision)
    headers = {
        **peer.headers(peer.message("tools/list")),
        "host": f"127.0.0.1:{small_port}",
        "transfer-encoding": "chunked",
    }
    with connection(small_port) as line:
        line.send(head(headers.items()))
        line.try_to_send(CHUNK * 4 + END)
        assert check(line.answer(), revision).status == 413
    add(peer, small_port)


@rules.verifies(rules.THREAT_22)
@pytest.mark.parametrize("revision", ERAS)
def test_a_chunked_body_within_the_limit_is_taken(limited: Offering, small_port: int, revision: str) -> None:
    """The chunks have one byte each."""
    peer = peer_at(limited.app, small_port, revision)
    message = peer.message("tools/list")
    headers = {**peer.headers(message), "host": f"127.0.0.1:{small_port}", "transfer-encoding": "chunked"}
    with connection(small_port) as line:
        line.send(head(headers.items()) + b"".join(b"1\r\n%c\r\n" % byte for byte in to_bytes(message)) + END)
        assert check(line.answer(), revision, "tools/list").status == 200


@rules.verifies(rules.THREAT_22)
@pytest.mark.parametrize("revision", ERAS)
def test_a_declared_length_over_the_limit_is_413_without_its_body(
    limited: Offering, small_port: int, revision: str
) -> None:
    """The response does not wait for the body."""
    peer = peer_at(limited.app, small_port, revision)
    headers = {**peer.headers(peer.message("tools/list")), "host": f"127.0.0.1:{small_port}"}
    with connection(small_port) as line:
        line.send(head([*headers.items(), ("content-length", str(SMALL_LIMIT + 1))]))
        assert check(line.answer(), revision).status == 413
    add(peer, small_port)


@rules.verifies(rules.THREAT_22, rules.H10)
def test_lies_about_the_length_are_400(offering: Offering, port: int) -> None:
    """A length that is too short cuts the message, and the remaining bytes are not a request."""
    peer = Peer(offering.app, PER_REQUEST)
    message = peer.message("tools/list")
    for length in ("5", "0", "-1", "abc", "+5", "5, 6"):
        assert post(peer, port, message, content_length=length).status == 400, length
        add(peer, port)


@rules.verifies(rules.THREAT_26)
@pytest.mark.parametrize("revision", ERAS)
def test_a_half_sent_body_holds_up_nobody_and_may_still_be_finished(
    offering: Offering, port: int, revision: str
) -> None:
    """Other clients get responses meanwhile."""
    peer = peer_at(offering.app, port, revision)
    complete = request(peer, port, peer.message("tools/list"))
    with connection(port) as slow:
        slow.send(complete[:-20])
        add(peer, port)
        slow.send(complete[-20:-1])
        add(peer, port)
        slow.send(complete[-1:])
        assert check(slow.answer(), revision, "tools/list").status == 200


@rules.verifies(rules.THREAT_26)
@pytest.mark.parametrize("revision", ERAS)
def test_more_half_sent_bodies_than_requests_may_be_under_way_turn_nobody_away(parser: Way, revision: str) -> None:
    """This holds for requests in one packet and for those with a separate body."""
    app = offer(limits=Limits(requests=2, requests_per_principal=2)).app
    with serving(app, parser) as port, contextlib.ExitStack() as lines:
        peer = peer_at(app, port, revision)
        request_bytes = request(peer, port, peer.message("tools/list"))
        for _ in range(20):
            lines.enter_context(connection(port)).send(request_bytes[:-20])
        add(peer, port)
        with connection(port) as line:
            line.send(request_bytes[:-20])
            add(peer, port)
            line.send(request_bytes[-20:])
            assert check(line.answer(), revision, "tools/list").status == 200


@rules.verifies(rules.THREAT_26, rules.H18)
@pytest.mark.parametrize("revision", ERAS)
def test_a_client_that_leaves_in_the_middle_of_its_body_leaves_no_trace(
    offering: Offering, port: int, revision: str
) -> None:
    """There is no response and no log line, and the next request is answered."""
    peer = peer_at(offering.app, port, revision)
    for cut in (-1, -20, 60):
        with connection(port) as line:
            line.send(request(peer, port, peer.message("tools/list"))[:cut])
    add(peer, port)


@rules.verifies(rules.H18, rules.THREAT_40)
@pytest.mark.parametrize("tool", ["wait", "wait_quietly", "talk"])
def test_a_client_that_hangs_up_cancels_its_request_in_the_per_request_era(
    offering: Offering, port: int, tool: str
) -> None:
    """The response is JSON, a stream that has not started, or one that has."""
    peer = Peer(offering.app, PER_REQUEST)
    with connection(port) as line:
        line.send(request(peer, port, peer.call_message(tool, {"key": "mine"})))
        offering.gates.wait("arrived", "mine")
        if tool == "talk":
            line.lines_until(b"data:")
    offering.gates.wait("cancelled", "mine")
    add(peer, port)


@rules.verifies(rules.H18, rules.THREAT_40)
@pytest.mark.parametrize("tool", ["wait", "wait_quietly", "talk"])
def test_a_client_that_hangs_up_cancels_nothing_in_the_handshake_era(offering: Offering, port: int, tool: str) -> None:
    """The tool runs to its end."""
    peer = peer_at(offering.app, port, HANDSHAKE)
    with connection(port) as line:
        line.send(request(peer, port, peer.call_message(tool, {"key": "mine"})))
        offering.gates.wait("arrived", "mine")
        if tool == "talk":
            line.lines_until(b"data:")
    add(peer, port)
    offering.gates.open("mine")
    offering.gates.wait("left", "mine")
    assert not offering.gates.was("cancelled", "mine")
    add(peer, port)


@rules.verifies(rules.THREAT_8, rules.J1)
@pytest.mark.parametrize("ids", [(1, 1), (1, "1")])
@pytest.mark.parametrize("revision", ERAS)
def test_two_in_flight_with_the_same_id_are_both_answered_right(
    offering: Offering, port: int, revision: str, ids: tuple[object, object]
) -> None:
    """The requests are on two connections, and finish in reverse order."""
    peer = peer_at(offering.app, port, revision)
    calls = [
        peer.message("tools/call", {"name": "wait", "arguments": {"key": key}}, request_id)
        for key, request_id in zip("ab", ids, strict=True)
    ]
    with connection(port) as first, connection(port) as second:
        first.send(request(peer, port, calls[0]))
        offering.gates.wait("arrived", "a")
        second.send(request(peer, port, calls[1]))
        offering.gates.wait("arrived", "b")
        for line, key, request_id in ((second, "b", ids[1]), (first, "a", ids[0])):
            offering.gates.open(key)
            answer = check(line.answer(), revision, "tools/call")
            assert (answer.text, answer.message["id"], type(answer.message["id"])) == (
                key,
                request_id,
                type(request_id),
            )


@rules.verifies(rules.THREAT_8)
@pytest.mark.parametrize("revision", ERAS)
def test_pipelined_requests_are_answered_in_their_order(offering: Offering, port: int, revision: str) -> None:
    """An invalid request is between valid ones on one connection."""
    peer = peer_at(offering.app, port, revision)
    messages: list[object] = [peer.message("tools/list", id="a"), b"{", peer.message("tools/list", id="b")]
    with connection(port) as line:
        line.send(b"".join(request(peer, port, message) for message in messages))
        answers = [line.answer() for _ in messages]
    assert [answer.status for answer in answers] == [200, 400, 200]
    assert [answer.message.get("id") for answer in answers] == ["a", None, "b"]


@rules.verifies(rules.H5, rules.H6)
def test_a_question_is_answered_by_another_request_in_the_handshake_era(offering: Offering, port: int) -> None:
    """The question and the result are on the stream, and the answer is a separate POST."""
    peer = peer_at(offering.app, port, HANDSHAKE)
    other = peer_at(offering.app, port, HANDSHAKE)
    with connection(port) as line:
        line.send(request(peer, port, peer.message("tools/call", {"name": "ask", "arguments": {}})))
        question = _data(line.lines_until(b"data:")[-1])
        assert question["method"] == "elicitation/create"
        answer = {"jsonrpc": "2.0", "id": question["id"]}
        eve, bob = ({"action": "accept", "content": {"name": name}} for name in ("Eve", "Bob"))
        assert post(other, port, {**answer, "result": eve}).status == 400
        assert post(peer, port, {**answer, "result": bob}).status == 202
        assert _data(line.lines_until(b"data:")[-1])["result"]["content"][0]["text"] == "Hello Bob"


def _data(line: bytes) -> Any:
    return json.loads(line.removeprefix(b"data:"))


@rules.verifies(rules.THREAT_22)
def test_the_default_limit_holds_over_tcp(parser: Way) -> None:
    """The chunked body has one MiB more than the limit of 4 MiB."""
    offering = offer(http=HTTPOptions())
    with serving(offering.app, parser) as port:
        peer = Peer(offering.app, PER_REQUEST)
        headers = {
            **peer.headers(peer.message("tools/list")),
            "host": f"127.0.0.1:{port}",
            "transfer-encoding": "chunked",
        }
        with connection(port) as line:
            line.send(head(headers.items()))
            line.try_to_send(CHUNK * 80 + END)
            assert check(line.answer(), PER_REQUEST).status == 413
        add(peer, port)
