"""Request headers, in both eras."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

import pytest

from tests import rules
from tests.wire.peer import (
    ALL,
    BATCHES,
    ERAS,
    HANDSHAKE,
    HANDSHAKES,
    PER_REQUEST,
    Peer,
    check,
    connect,
    exchange,
    initialize,
    to_bytes,
)

if TYPE_CHECKING:
    from tests.wire.offering import Offering
    from tests.wire.peer import Answer

pytestmark = pytest.mark.every_python("On Python 3.13 these tests send POSTs to the way without ASGI.")

EVENTS = "text/event-stream"
JSON = "application/json"


async def post_pairs(peer: Peer, message: object, extra: list[tuple[str, str]], without: str | None = None) -> Answer:
    """Post a message with its usual headers and more lines beside them."""
    pairs = [(name, value) for name, value in peer.headers(message).items() if name != without]
    return check(await exchange(peer.app, "POST", [*pairs, *extra], [to_bytes(message)]).answer(), peer.revision)


@rules.verifies(rules.D1, rules.TRAP_7)
@pytest.mark.parametrize(
    "accept", [None, "", "*/*", "application/*", JSON, f"{JSON};q=0.1", "Application/JSON", "text/html, */*;q=0.8"]
)
@pytest.mark.parametrize("revision", ERAS)
async def test_a_client_that_does_not_list_events_gets_json(
    offering: Offering, revision: str, accept: str | None
) -> None:
    peer = await connect(offering.app, revision, {"elicitation": {}})
    answer = await peer.call("talk", headers={"accept": accept})
    assert (answer.status, answer.media_type, answer.text) == (200, JSON, "talked")


@rules.verifies(rules.D1)
@pytest.mark.parametrize(
    "accept", [f"{JSON}, {EVENTS}", f"{EVENTS}, {JSON}", EVENTS, f"{EVENTS};q=0.2,{JSON}", "TEXT/Event-Stream, */*"]
)
@pytest.mark.parametrize("revision", ERAS)
async def test_a_client_that_lists_events_gets_a_stream_where_there_is_one(
    offering: Offering, revision: str, accept: str
) -> None:
    """The media types have any order, case and quality."""
    peer = await connect(offering.app, revision)
    answer = await peer.call("talk", headers={"accept": accept})
    assert (answer.status, answer.media_type, answer.text) == (200, EVENTS, "talked")


@rules.verifies(rules.D1)
@pytest.mark.parametrize(
    "accept",
    ["text/html", "image/*", f"{JSON};q=0", f"{JSON};q=0, {EVENTS};q=0.0", "*/*;q=0", "nonsense", "application/jsonx"],
)
@pytest.mark.parametrize("revision", ERAS)
async def test_406_only_where_json_and_events_are_both_excluded(offering: Offering, revision: str, accept: str) -> None:
    answer = await (await connect(offering.app, revision)).call("add", {"a": 1, "b": 2}, headers={"accept": accept})
    assert answer.status == 406


@rules.verifies(rules.D1, rules.D10)
@pytest.mark.parametrize("lines", [(JSON, EVENTS), (EVENTS, JSON), (JSON, "text/html"), ("text/html", JSON)])
@pytest.mark.parametrize("revision", ERAS)
async def test_an_accept_header_in_two_lines_is_one_list(
    offering: Offering, revision: str, lines: tuple[str, str]
) -> None:
    """RFC 9110 section 5.3 joins the lines of a list header."""
    peer = await connect(offering.app, revision)
    message = peer.call_message("talk")
    answer = await post_pairs(peer, message, [("accept", line) for line in lines], without="accept")
    assert (answer.status, answer.media_type) == (200, EVENTS if EVENTS in lines else JSON)


@rules.verifies(rules.D2, rules.THREAT_2)
@pytest.mark.parametrize(
    "content_type",
    [
        JSON,
        "Application/JSON",
        f"{JSON};charset=utf-8",
        f'{JSON}; charset="UTF-8"',
        f"{JSON} ; charset=utf8; x=y",
        f" {JSON} ",
    ],
)
@pytest.mark.parametrize("revision", ERAS)
async def test_json_in_any_spelling_is_taken(offering: Offering, revision: str, content_type: str) -> None:
    """The media type has any case and any parameters."""
    peer = await connect(offering.app, revision)
    assert (await peer.call("add", {"a": 1, "b": 2}, headers={"content-type": content_type})).text == "3"


@rules.verifies(rules.D2, rules.THREAT_2)
@pytest.mark.parametrize(
    "content_type",
    [
        None,
        "",
        "text/plain",
        "text/plain;charset=application/json",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/jsonx",
        "application/json-rpc",
        "application/xjson",
        "text/json",
        "application/json, text/plain",
        "text/plain; application/json",
        "application/json; charset=utf-16",
        "application/json; charset=latin-1",
        "*/*",
    ],
)
@pytest.mark.parametrize("revision", ERAS)
async def test_anything_but_json_is_415(offering: Offering, revision: str, content_type: str | None) -> None:
    """A page of another origin can send only simple requests, which are never application/json."""
    answer = await (await connect(offering.app, revision)).call("nothing", headers={"content-type": content_type})
    assert answer.status == 415


@rules.verifies(rules.D2, rules.D11, rules.THREAT_2)
@pytest.mark.parametrize("lines", [(JSON, "text/plain"), ("text/plain", JSON)])
async def test_two_content_types_that_differ_are_refused(offering: Offering, lines: tuple[str, str]) -> None:
    peer = await connect(offering.app, HANDSHAKE)
    message = peer.message("tools/list")
    answer = await post_pairs(peer, message, [("content-type", line) for line in lines], without="content-type")
    assert answer.status in {400, 415}


@rules.verifies(rules.D2, rules.THREAT_22)
@pytest.mark.parametrize("coding", ["gzip", "br", "deflate", "GZIP", "identity, gzip", "nonsense"])
@pytest.mark.parametrize("revision", ERAS)
async def test_a_coded_body_is_415(offering: Offering, revision: str, coding: str) -> None:
    """Only `identity` is an accepted Content-Encoding."""
    peer = await connect(offering.app, revision)
    assert (await peer.call("nothing", headers={"content-encoding": coding})).status == 415
    assert (await peer.call("nothing", headers={"content-encoding": "identity"})).status == 200


@rules.verifies(rules.D3, rules.TRAP_8)
@pytest.mark.parametrize("revision", HANDSHAKES)
async def test_without_a_version_header_the_session_knows_the_version(offering: Offering, revision: str) -> None:
    """An array is a batch only in a session of 2025-03-26."""
    peer = await connect(offering.app, revision)
    answer = await peer.post([peer.message("ping")], {"mcp-protocol-version": None})
    assert answer.status == (200 if revision == BATCHES else 400)


@rules.verifies(rules.D3)
@pytest.mark.parametrize("revision", HANDSHAKES)
async def test_the_version_header_may_stand_on_initialize(offering: Offering, revision: str) -> None:
    """The conformance suite sends the header with `initialize`."""
    answer = await Peer(offering.app, revision).post(initialize(revision), {"mcp-protocol-version": revision})
    assert answer.result["protocolVersion"] == revision


@rules.verifies(rules.D4, rules.TRAP_17)
@pytest.mark.parametrize("method", ["server/discover", "tools/list", "tools/call"])
async def test_a_session_id_means_nothing_in_the_per_request_era(offering: Offering, method: str) -> None:
    peer = await connect(offering.app, PER_REQUEST)
    session_id = (await connect(offering.app, HANDSHAKE)).session_id
    for sent_id in (None, session_id, "unheard-of"):
        answer = await peer.request(method, {"name": "nothing"}, headers={"mcp-session-id": sent_id})
        assert answer.status == 200
        assert answer.header("mcp-session-id") is None


@rules.verifies(rules.D5)
@pytest.mark.parametrize("revision", ERAS)
async def test_last_event_id_is_ignored(offering: Offering, revision: str) -> None:
    peer = await connect(offering.app, revision)
    assert (await peer.call("talk", headers={"last-event-id": "1"})).text == "talked"
    pairs = [*peer.headers(None).items(), ("last-event-id", "1")]
    assert check(await exchange(peer.app, "GET", pairs).answer(), revision).status == 405


@rules.verifies(rules.D6)
@pytest.mark.parametrize(
    "value", [None, "", "tools/lists", "TOOLS/LIST", "Tools/List", "tools", "tools/list,tools/list"]
)
async def test_mcp_method_must_say_what_the_body_says(offering: Offering, value: str | None) -> None:
    peer = await connect(offering.app, PER_REQUEST)
    assert (await peer.request("tools/list", headers={"mcp-method": value})).outcome == (400, -32020)
    assert (await peer.request("tools/list")).status == 200


@rules.verifies(rules.D6)
@pytest.mark.parametrize("method", ["server/discover", "tools/list", "tools/call", "unheard/of"])
async def test_mcp_method_is_required_on_all_requests(offering: Offering, method: str) -> None:
    """Requests with unknown methods need the header too."""
    peer = await connect(offering.app, PER_REQUEST)
    answer = await peer.request(method, {"name": "nothing"}, headers={"mcp-method": None})
    assert answer.outcome == (400, -32020)


def coded(value: str) -> str:
    """Return a header value in the specification's base64 form."""
    return f"=?base64?{base64.b64encode(value.encode()).decode()}?="


@rules.verifies(rules.D7, rules.D10, rules.TRAP_20)
@pytest.mark.parametrize("value", ["nothing", "  nothing  ", "\tnothing", coded("nothing"), f" {coded('nothing')} "])
async def test_mcp_name_may_be_spelled_in_base64_and_with_blanks(offering: Offering, value: str) -> None:
    """White space is stripped and base64 is decoded before the values are compared."""
    peer = await connect(offering.app, PER_REQUEST)
    assert (await peer.call("nothing", headers={"mcp-name": value})).text == "nothing"


@rules.verifies(rules.D7, rules.TRAP_20, rules.THREAT_33)
@pytest.mark.parametrize(
    "value",
    [
        None,
        "",
        "Nothing",
        "nothing2",
        "no thing",
        "bm90aGluZw==",
        "=?BASE64?bm90aGluZw==?=",
        "=?base64?bm90aGluZw?=",
        "=?base64?bm90aGluZx==?=",
        "=?base64?bm90!!!aGluZw==?=",
        "=?base64?bm90aGluZw==",
        "bm90aGluZw==?=",
        "=?base64?/w==?=",
        "=?base64??=",
        "=?utf-8?B?bm90aGluZw==?=",
        "\xa0nothing",
        "nothing\x00",
    ],
)
async def test_any_other_mcp_name_is_refused(offering: Offering, value: str | None) -> None:
    """Base64 has a strict alphabet, canonical padding and case-sensitive marks."""
    peer = await connect(offering.app, PER_REQUEST)
    assert (await peer.call("nothing", headers={"mcp-name": value})).outcome == (400, -32020)


@rules.verifies(rules.D8)
async def test_a_mirrored_argument_that_agrees_passes(offering: Offering) -> None:
    """Arguments are strings, integers, booleans, or members of nested objects."""
    peer = await connect(offering.app, PER_REQUEST)
    arguments = {"region": "Zürich", "count": 42, "flag": True, "nested": {"inner": "in"}}
    headers = {
        "mcp-param-region": coded("Zürich"),
        "mcp-param-count": "42.0",
        "mcp-param-flag": "true",
        "mcp-param-inner": " in ",
    }
    answer = await peer.call("region", arguments, headers=headers)
    assert answer.result["structuredContent"] == arguments


@rules.verifies(rules.D8)
@pytest.mark.parametrize(
    ("arguments", "headers"),
    [
        ({"region": "Hello"}, {"Mcp-Param-Region": "Hello"}),
        ({"region": "Hello"}, {"MCP-PARAM-REGION": "=?base64?SGVsbG8=?="}),
        ({"region": "SGVsbG8="}, {"mcp-param-region": "SGVsbG8="}),
        ({"region": "=?base64?SGVsbG8="}, {"mcp-param-region": "=?base64?SGVsbG8="}),
        ({"region": ""}, {"mcp-param-region": coded("")}),
        ({"region": None}, {}),
        ({}, {}),
        ({"count": 0}, {"mcp-param-count": "0"}),
        ({"count": -7}, {"mcp-param-count": "-7"}),
        ({"flag": False}, {"mcp-param-flag": "false"}),
        ({"nested": {}}, {}),
        ({"nested": {"inner": None}}, {}),
    ],
)
async def test_mirrored_arguments_are_only_expected_where_there_is_a_value(
    offering: Offering, arguments: dict[str, object], headers: dict[str, str | None]
) -> None:
    assert (await (await connect(offering.app, PER_REQUEST)).call("region", arguments, headers=headers)).status == 200


@rules.verifies(rules.D8, rules.THREAT_33)
@pytest.mark.parametrize(
    ("arguments", "headers"),
    [
        ({"region": "Hello"}, {}),
        ({"region": "Hello"}, {"mcp-param-region": "hello"}),
        ({"region": "Hello"}, {"mcp-param-region": "=?base64?SGVsbG8?="}),
        ({"region": "Hello"}, {"mcp-param-region": "=?base64?SGVs!!!bG8=?="}),
        ({"region": "Zürich"}, {"mcp-param-region": "Zürich"}),
        ({"region": "a\x01b"}, {"mcp-param-region": "a\x01b"}),
        ({"count": 42}, {"mcp-param-count": "43"}),
        ({"count": 42}, {"mcp-param-count": "forty-two"}),
        ({"count": 42}, {"mcp-param-count": "0x2A"}),
        ({"count": 42}, {"mcp-param-count": "4_2"}),
        ({"count": 42}, {"mcp-param-count": "9" * 5000}),
        ({"count": 42}, {"mcp-param-count": "1e999"}),
        ({"flag": True}, {"mcp-param-flag": "True"}),
        ({"flag": True}, {"mcp-param-flag": "1"}),
        ({"flag": False}, {}),
        ({"nested": {"inner": "in"}}, {}),
        ({"nested": {"inner": "in"}}, {"mcp-param-inner": "out"}),
    ],
)
async def test_a_mirrored_argument_that_disagrees_is_refused(
    offering: Offering, arguments: dict[str, object], headers: dict[str, str | None]
) -> None:
    """The header is missing, has another value, invalid base64 or invalid characters."""
    peer = await connect(offering.app, PER_REQUEST)
    answer = await peer.call("region", arguments, id=3, headers=headers)
    assert answer.outcome == (400, -32020)
    assert answer.message["id"] == 3
    await peer.works()


@rules.verifies(rules.D6, rules.D7, rules.D8)
async def test_mirroring_headers_mean_nothing_in_the_handshake_era(offering: Offering) -> None:
    peer = await connect(offering.app, HANDSHAKE)
    headers = {"mcp-method": "tools/list", "mcp-name": "add", "mcp-param-region": "else"}
    assert (await peer.call("region", {"region": "here"}, headers=headers)).status == 200


@rules.verifies(rules.D9)
@pytest.mark.parametrize("revision", ALL)
async def test_its_own_host_and_origin_pass(offering: Offering, revision: str) -> None:
    """The conformance suite sends both with the address and port of the server."""
    peer = await connect(offering.app, revision)
    headers = {"host": "127.0.0.1:8000", "origin": "http://127.0.0.1:8000"}
    assert (await peer.request("tools/list", headers=headers)).status == 200


@rules.verifies(rules.D10)
@pytest.mark.parametrize(
    "name", ["mcp-protocol-version", "mcp-method", "mcp-name", "accept", "content-type", "host", "origin"]
)
async def test_white_space_around_a_value_does_not_count(offering: Offering, name: str) -> None:
    """Some HTTP servers do not strip it."""
    peer = await connect(offering.app, PER_REQUEST)
    message = peer.message("tools/call", {"name": "nothing", "arguments": {}})
    headers = {**peer.headers(message), "origin": "http://localhost"}
    assert (await peer.post(message, {**headers, name: f" \t{headers[name]}\t "})).status == 200


@rules.verifies(rules.D10)
@pytest.mark.parametrize("name", ["mcp-protocol-version", "mcp-session-id"])
async def test_white_space_around_a_session_header_does_not_count(offering: Offering, name: str) -> None:
    peer = await connect(offering.app, HANDSHAKE)
    message = peer.message("ping")
    assert (await peer.post(message, {name: f"\t {peer.headers(message)[name]} "})).status == 200


@rules.verifies(rules.D11, rules.THREAT_33)
@pytest.mark.parametrize("same", [True, False])
@pytest.mark.parametrize("name", ["mcp-protocol-version", "mcp-method", "mcp-name", "mcp-param-region"])
async def test_a_repeated_routing_header_is_refused(offering: Offering, name: str, same: bool) -> None:
    """A proxy may read either of the two."""
    peer = await connect(offering.app, PER_REQUEST)
    message = peer.message("tools/call", {"name": "region", "arguments": {"region": "here"}})
    usual = {**peer.headers(message), "mcp-param-region": "here"}
    for extra in ([(name, usual[name] if same else "else")], [(name.upper(), usual[name])]):
        pairs = [("mcp-param-region", "here"), *extra]
        answer = await post_pairs(peer, message, pairs)
        assert answer.outcome == (400, -32020)
