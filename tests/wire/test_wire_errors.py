"""What errors tell and what they don't: the client, and the log."""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING, Any

import pytest

from tests import rules
from tests.wire.peer import ERAS, HANDSHAKE, PER_REQUEST, connect

if TYPE_CHECKING:
    from tests.wire.offering import Offering
    from tests.wire.peer import Peer

pytestmark = pytest.mark.every_python("On Python 3.13 these tests send POSTs to the way without ASGI.")

FORGED = "harmless\r\nCRITICAL root: forged\x1b[2J\u2028next\u2029line\x85end\x00\x07"
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202e]")
_ERROR_ID = re.compile(r"\b[0-9a-f]{16}\b")
QUOTED = 200
ROOM_FOR_THE_REST = 1800
INVALID_PARAMS_STATUS = {HANDSHAKE: 200, PER_REQUEST: 400}

_SECRETS = [
    "value error",
    "key error",
    "os error",
    "recursion",
    "memory",
    "timeout of its own",
    "cancelled by itself",
    "group",
    "stop iteration",
]


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    """The log, at its most talkative."""
    caplog.set_level(logging.DEBUG, logger="funcmcp")
    return caplog


def lines(log: pytest.LogCaptureFixture) -> list[str]:
    """Return the log's records as lines, once it is sure that they are lines."""
    matching = []
    for record in log.records:
        line = record.getMessage()
        assert not _CONTROL.search(line), f"a line that can be forged: {line!r}"
        assert not _CONTROL.search((record.exc_text or "").replace("\n", ""))
        assert record.exc_info is None or record.exc_text  # what formatters write in place of the exception
        assert record.stack_info is None
        matching.append(line)
    return matching


@rules.verifies(rules.THREAT_21)
@pytest.mark.parametrize("how", _SECRETS)
@pytest.mark.parametrize("revision", ERAS)
async def test_an_exception_in_a_tool_is_told_by_an_id_that_is_in_the_log(
    offering: Offering, log: pytest.LogCaptureFixture, revision: str, how: str
) -> None:
    """The client gets a fixed sentence, and the log has one line with the same id."""
    peer = await connect(offering.app, revision)
    answer = await peer.call("fail", {"how": how})
    assert answer.status == 200
    assert answer.result["isError"] is True
    assert b"secret-of-the-house" not in answer.body
    (line,) = lines(log)
    match = _ERROR_ID.search(answer.text)
    assert match is not None
    assert match[0] in line
    await peer.works()


@rules.verifies(rules.THREAT_21)
@pytest.mark.parametrize("revision", ERAS)
async def test_the_text_of_a_tool_error_is_sent_and_not_logged(
    offering: Offering, log: pytest.LogCaptureFixture, revision: str
) -> None:
    answer = await (await connect(offering.app, revision)).call("fail", {"how": "tool error"})
    assert answer.result["isError"] is True
    assert answer.text == "The kitchen is closed."
    assert lines(log) == []


@rules.verifies(rules.J5, rules.H16)
@pytest.mark.parametrize("revision", ERAS)
async def test_invalid_params_and_own_codes_are_errors_of_the_protocol(
    offering: Offering, log: pytest.LogCaptureFixture, revision: str
) -> None:
    """`InvalidParams` is -32602. The code, the message and the data of an `MCPError` are sent unchanged."""
    peer = await connect(offering.app, revision)
    refused = await peer.call("fail", {"how": "invalid params"})
    assert refused.outcome == (INVALID_PARAMS_STATUS[revision], -32602)
    assert refused.error["message"] == "No such table."
    custom = await peer.call("fail", {"how": "own code"})
    assert custom.outcome == (200, 4711)
    assert custom.error == {"code": 4711, "message": "Out of stock.", "data": {"left": 0}}
    assert lines(log) == []


@rules.verifies(rules.THREAT_24, rules.THREAT_21)
@pytest.mark.parametrize(
    "how",
    [
        "nan",
        "infinity",
        "not json",
        "nan in a result",
        "not json in a result",
        "secret in what is not json",
        "tool error with a lone surrogate",
        "invalid params with a lone surrogate",
        "unsayable data",
    ],
)
@pytest.mark.parametrize("revision", ERAS)
async def test_what_json_cannot_say_is_an_error_and_not_a_fault(
    offering: Offering, log: pytest.LogCaptureFixture, revision: str, how: str
) -> None:
    """Results, errors and error data contain NaN, lone surrogates or objects."""
    peer = await connect(offering.app, revision)
    answer = await peer.call("fail", {"how": how}, id="mine")
    assert answer.message["id"] == "mine"
    assert "error" in answer.message or answer.result["isError"] is True
    answer.body.decode("utf-8")
    assert b"secret-of-the-house" not in answer.body
    assert len(lines(log)) <= 1
    await peer.works()


@pytest.mark.parametrize("revision", ERAS)
async def test_a_lone_surrogate_is_sent_as_the_replacement_character(offering: Offering, revision: str) -> None:
    peer = await connect(offering.app, revision)
    for how in ("lone surrogate", "lone surrogate inside"):
        answer = await peer.call("fail", {"how": how})
        assert "before \ufffd after" in answer.body.decode()
        assert not answer.result.get("isError")
    failed = await peer.call("fail", {"how": "tool error with a lone surrogate"})
    assert (failed.result["isError"], failed.result["content"][0]["text"]) == (True, "\ufffd")
    refused = await peer.call("fail", {"how": "invalid params with a lone surrogate"})
    assert refused.error["message"] == "\ufffd"


async def hostile(peer: Peer, text: str) -> int:
    """Send a text in every place where a client can put one; return how many requests it took."""
    answers = [
        await peer.request(text),
        await peer.call(text),
        await peer.request("tools/list", {"cursor": text}),
        await peer.request("tools/list", {text: text, "_meta": {text: text}}, id=text),
        await peer.call("echo", {text: text}),
        await peer.notify(text),
        await peer.post({"jsonrpc": text, "id": text, "method": text}),
        await peer.post({"jsonrpc": "2.0", "id": text, "method": text, "params": text}),
        await peer.post(text.encode()),
        await peer.request("logging/setLevel", {"level": text}),
        await peer.request("tools/call", {"name": "ask", "requestState": text, "inputResponses": {text: text}}),
    ]
    requests = len(answers)
    raw = text.encode("ascii", "replace").decode()[:4000]
    for name in (
        "mcp-protocol-version",
        "mcp-session-id",
        "mcp-method",
        "mcp-name",
        "accept",
        "content-type",
        "origin",
        "host",
    ):
        await peer.request("tools/list", headers={name: raw})
        requests += 1
    return requests


@rules.verifies(rules.THREAT_34)
@pytest.mark.parametrize(
    "text", [FORGED, "x" * 100_000, "%s%n{0}{x.__class__}%(name)s"], ids=["forged", "long", "format"]
)
@pytest.mark.parametrize("revision", ERAS)
async def test_what_a_client_sends_forges_no_line_and_fills_no_log(
    offering: Offering, log: pytest.LogCaptureFixture, revision: str, text: str
) -> None:
    """Each invalid request causes at most one line, with at most 200 characters of its input."""
    peer = await connect(offering.app, revision)
    requests = await hostile(peer, text)
    logged = lines(log)
    assert len(logged) <= requests
    assert all("x" * (QUOTED + 1) not in line for line in logged)
    await peer.works()


@rules.verifies(rules.THREAT_34)
@pytest.mark.parametrize(
    "text", [FORGED, "x" * 100_000, "\U0001f600" * 1000, "%s%n{0}"], ids=["forged", "long", "emoji", "format"]
)
@pytest.mark.parametrize("revision", ERAS)
async def test_an_exception_that_repeats_what_a_client_sent_is_one_short_line(
    offering: Offering, log: pytest.LogCaptureFixture, revision: str, text: str
) -> None:
    """The line has at most 200 characters of the input, escaped."""
    peer = await connect(offering.app, revision)
    answer = await peer.call("fail", {"how": text})
    assert answer.result["isError"] is True
    (line,) = lines(log)
    assert len(line) <= QUOTED + ROOM_FOR_THE_REST
    assert line.isascii()
    assert "x" * (QUOTED + 1) not in line


@rules.verifies(rules.THREAT_34)
@pytest.mark.parametrize("revision", ERAS)
async def test_secrets_in_headers_never_reach_the_log(
    offering: Offering, log: pytest.LogCaptureFixture, revision: str
) -> None:
    peer = await connect(offering.app, revision)
    secrets = {"authorization": "Bearer hush-hush", "cookie": "id=hush-hush", "x-functions-key": "hush-hush"}
    for how in ("value error", "tool error", "own code"):
        await peer.call("fail", {"how": how}, headers=secrets)
    await peer.request("unheard/of", headers=secrets)
    assert all("hush-hush" not in line for line in lines(log))


@rules.verifies(rules.THREAT_32)
@pytest.mark.parametrize("name", ["x-evil\r\nset-cookie: a=b", "a\nb", "\x00"])
@pytest.mark.parametrize("revision", ERAS)
async def test_nothing_that_a_client_sent_stands_in_a_header_of_the_answer(
    offering: Offering, revision: str, name: str
) -> None:
    peer = await connect(offering.app, revision)
    headers = {"x-request-id": "echo-me", "last-event-id": "echo-me"}
    answers = [
        await peer.call(name, id=name, headers=headers),
        await peer.request("tools/list", id=name, headers={"x-request-id": "echo-me"}),
        await peer.call("talk", id=name, headers={"x-request-id": "echo-me"}),
    ]
    allowed = {"content-type", "content-length", "cache-control", "x-accel-buffering"}
    for answer in answers:
        assert {header for header, _ in answer.headers} <= allowed
        assert all(value.isascii() and value.isprintable() for _, value in answer.headers)


@rules.verifies(rules.THREAT_21, rules.THREAT_34)
@pytest.mark.parametrize("revision", ERAS)
async def test_no_refusal_repeats_much_of_what_it_refuses(offering: Offering, revision: str) -> None:
    """Apart from the id, the response to a rejected request is short."""
    peer = await connect(offering.app, revision)
    long = "y" * 100_000
    bodies: list[Any] = [
        peer.message("tools/call", {"name": long}),
        peer.message("tools/list", {"cursor": long}),
        peer.message(long),
        {"jsonrpc": long, "id": 1, "method": "tools/list"},
        b'{"jsonrpc": "2.0", "method": "' + long.encode(),
    ]
    for body in bodies:
        answer = await peer.post(body)
        assert "error" in answer.message
        assert len(answer.body) < 1000
