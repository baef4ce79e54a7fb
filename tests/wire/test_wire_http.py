"""Methods, paths and status codes of HTTP, in both eras."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests import rules
from tests.cli.processes import PYTHON, running
from tests.wire.peer import (
    ALL,
    BATCHES,
    ERAS,
    HANDSHAKE,
    HANDSHAKES,
    META,
    PER_REQUEST,
    Peer,
    check,
    connect,
    exchange,
    initialize,
)

if TYPE_CHECKING:
    from tests.wire.offering import Offering
    from tests.wire.peer import Answer

pytestmark = pytest.mark.every_python("On Python 3.13 these tests send POSTs to the way without ASGI.")

UNKNOWN_REVISION = "1999-01-01"


async def send(peer: Peer, method: str, path: str = "/mcp", body: bytes = b"") -> Answer:
    """Send any method to any path, with the peer's headers."""
    parts = [body]
    return check(await exchange(peer.app, method, peer.headers(None).items(), parts, path=path).answer(), peer.revision)


@rules.verifies(rules.H1, rules.H5)
@pytest.mark.parametrize("revision", ALL)
async def test_the_endpoint_answers_a_post(offering: Offering, revision: str) -> None:
    peer = await connect(offering.app, revision)
    answer = await peer.call("add", {"a": 1, "b": 2})
    assert (answer.status, answer.media_type, answer.text) == (200, "application/json", "3")


@rules.verifies(rules.H1)
@pytest.mark.parametrize("path", ["/", "/mcp/more", "/MCP", "/.well-known/anything", "//mcp", "/mcp/../mcp"])
@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
async def test_nothing_else_is_served_beside_the_endpoint(offering: Offering, method: str, path: str) -> None:
    answer = await send(await connect(offering.app, HANDSHAKE), method, path)
    assert answer.status == 404


@rules.verifies(rules.H2)
@pytest.mark.parametrize("revision", ERAS)
async def test_get_is_405_with_allow_because_there_is_nothing_to_stream(offering: Offering, revision: str) -> None:
    answer = await send(await connect(offering.app, revision), "GET")
    assert answer.status == 405
    assert "POST" in (answer.header("allow") or "")
    assert "GET" not in (answer.header("allow") or "")


@rules.verifies(rules.H3)
@pytest.mark.parametrize("revision", HANDSHAKES)
async def test_delete_ends_a_session_of_the_handshake_era(offering: Offering, revision: str) -> None:
    peer = await connect(offering.app, revision)
    assert (await peer.delete()).status == 204
    assert (await peer.request("ping")).status == 404


@rules.verifies(rules.H3)
async def test_delete_is_405_where_there_are_no_sessions(offering: Offering) -> None:
    answer = await send(await connect(offering.app, PER_REQUEST), "DELETE")
    assert (answer.status, answer.header("allow")) == (405, "POST")


@rules.verifies(rules.H4)
@pytest.mark.parametrize("method", ["PUT", "PATCH", "OPTIONS", "HEAD", "TRACE", "QUERY", "post", "PROPFIND"])
@pytest.mark.parametrize("revision", ERAS)
async def test_any_other_method_is_405_with_allow(offering: Offering, method: str, revision: str) -> None:
    answer = await send(await connect(offering.app, revision), method, body=b'{"jsonrpc":"2.0","id":1,"method":"ping"}')
    assert answer.status == 405
    assert "POST" in (answer.header("allow") or "")


@rules.verifies(rules.H6, rules.J4)
@pytest.mark.parametrize("method", ["notifications/initialized", "notifications/cancelled", "notifications/unheard_of"])
@pytest.mark.parametrize("revision", ALL)
async def test_a_notification_is_202_without_a_body(offering: Offering, revision: str, method: str) -> None:
    """The response has no Content-Type. Unknown notifications are accepted too."""
    answer = await (await connect(offering.app, revision)).notify(method, {"requestId": "unheard of"})
    assert (answer.status, answer.body, answer.header("content-type")) == (202, b"", None)


@rules.verifies(rules.H6)
@pytest.mark.parametrize("revision", HANDSHAKES)
@pytest.mark.parametrize("member", [{"result": {}}, {"error": {"code": -32601, "message": "no"}}])
async def test_a_response_to_no_open_question_is_400_in_the_handshake_era(
    offering: Offering, revision: str, member: dict[str, object]
) -> None:
    """The error has no id."""
    answer = await (await connect(offering.app, revision)).post({"jsonrpc": "2.0", "id": "ask-1", **member})
    assert answer.outcome == (400, -32600)
    assert "id" not in answer.message


@rules.verifies(rules.H6, rules.H7)
@pytest.mark.parametrize("member", [{"result": {}}, {"error": {"code": -32601, "message": "no"}}])
async def test_a_response_is_400_in_the_per_request_era(offering: Offering, member: dict[str, object]) -> None:
    """The error has no id."""
    answer = await (await connect(offering.app, PER_REQUEST)).post({"jsonrpc": "2.0", "id": 7, **member})
    assert answer.outcome == (400, -32600)
    assert "id" not in answer.message


@rules.verifies(rules.H7)
async def test_a_notification_that_cannot_be_accepted_is_an_http_error_without_id(offering: Offering) -> None:
    """A missing session is 400, an unknown one 404."""
    peer = Peer(offering.app)
    missing = await peer.notify("notifications/initialized")
    unknown = await peer.notify("notifications/initialized", headers={"mcp-session-id": "unheard-of"})
    assert (missing.status, unknown.status) == (400, 404)
    assert "id" not in missing.message
    assert "id" not in unknown.message


@rules.verifies(rules.H8, rules.D9)
@pytest.mark.parametrize("revision", ALL)
async def test_a_foreign_origin_is_403_without_id(offering: Offering, revision: str) -> None:
    peer = await connect(offering.app, revision)
    answer = await peer.request("tools/list", headers={"origin": "http://evil.example.com"})
    assert answer.status == 403
    assert "id" not in answer.message


@rules.verifies(rules.H9)
def test_a_server_binds_to_loopback_unless_it_is_told_otherwise() -> None:
    code = "from funcmcp import MCPServer; MCPServer('m').run('http', port=0)"
    with running([PYTHON, "-c", code]) as process:
        assert process.endpoint().startswith("http://127.0.0.1:")


@rules.verifies(rules.H10, rules.J5)
@pytest.mark.parametrize("revision", ERAS)
@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", -32700),
        (b"{", -32700),
        (b"hello", -32700),
        (b"1", -32600),
        (b'"x"', -32600),
        (b"{}", -32600),
        (b"null", -32600),
    ],
)
async def test_a_body_that_is_no_message_is_400(offering: Offering, revision: str, body: bytes, code: int) -> None:
    answer = await (await connect(offering.app, revision)).post(body)
    assert answer.outcome == (400, code)


@rules.verifies(rules.H11, rules.TRAP_4)
@pytest.mark.parametrize("revision", HANDSHAKES)
async def test_an_unknown_method_is_200_in_the_handshake_era(offering: Offering, revision: str) -> None:
    answer = await (await connect(offering.app, revision)).request("unheard/of", id="mine")
    assert answer.outcome == (200, -32601)
    assert answer.message["id"] == "mine"


@rules.verifies(rules.H11, rules.TRAP_4)
async def test_an_unknown_method_is_404_in_the_per_request_era(offering: Offering) -> None:
    answer = await (await connect(offering.app, PER_REQUEST)).request("unheard/of", id="mine")
    assert answer.outcome == (404, -32601)
    assert answer.message["id"] == "mine"


@rules.verifies(rules.H12, rules.V6)
@pytest.mark.parametrize(
    "meta",
    [
        None,
        [],
        "meta",
        {},
        {META + "protocolVersion": PER_REQUEST},
        {META + "clientCapabilities": {}},
        {META + "protocolVersion": PER_REQUEST, META + "clientCapabilities": None},
        {META + "protocolVersion": PER_REQUEST, META + "clientCapabilities": []},
        {META + "protocolVersion": 20260728, META + "clientCapabilities": {}},
        {META + "protocolVersion": PER_REQUEST, META + "clientCapabilities": {}, META + "clientInfo": "me"},
        {META + "protocolVersion": PER_REQUEST, META + "clientCapabilities": {}, META + "logLevel": "loud"},
    ],
)
async def test_malformed_meta_is_400_invalid_params(offering: Offering, meta: object) -> None:
    """A required member is missing or has the wrong type. The error has the id of the request."""
    peer = await connect(offering.app, PER_REQUEST)
    message = {"jsonrpc": "2.0", "id": 5, "method": "tools/list", "params": {"_meta": meta}}
    answer = await peer.post(message)
    assert answer.outcome == (400, -32602)
    assert answer.message["id"] == 5


@rules.verifies(rules.H12)
async def test_missing_params_are_missing_meta(offering: Offering) -> None:
    """JSON-RPC permits a request without params, but `_meta` is required."""
    peer = await connect(offering.app, PER_REQUEST)
    answer = await peer.post({"jsonrpc": "2.0", "id": 5, "method": "tools/list"})
    assert answer.outcome == (400, -32602)


@rules.verifies(rules.H13, rules.D3, rules.D6, rules.D7, rules.THREAT_33)
@pytest.mark.parametrize(
    "headers",
    [
        {"mcp-protocol-version": None},
        {"mcp-protocol-version": HANDSHAKE},
        {"mcp-method": None},
        {"mcp-method": "tools/list"},
        {"mcp-name": None},
        {"mcp-name": "nothing"},
        {"mcp-name": "=?base64?!?="},
    ],
)
async def test_a_header_that_disagrees_is_400_header_mismatch(
    offering: Offering, headers: dict[str, str | None]
) -> None:
    """A header is missing, different or malformed. The error has the id of the request."""
    answer = await (await connect(offering.app, PER_REQUEST)).call("add", {"a": 1, "b": 2}, id=9, headers=headers)
    assert answer.outcome == (400, -32020)
    assert answer.message["id"] == 9


@rules.verifies(rules.H14, rules.D3)
@pytest.mark.parametrize("method", ["ping", "tools/list"])
async def test_a_version_header_that_nobody_knows_is_400_in_a_session(offering: Offering, method: str) -> None:
    peer = await connect(offering.app, HANDSHAKE)
    for version in (UNKNOWN_REVISION, "2025-11-26", "", "latest", "2025-11-25, 2025-06-18"):
        assert (await peer.request(method, headers={"mcp-protocol-version": version})).status == 400, version


@rules.verifies(rules.H14, rules.H7, rules.D3)
async def test_a_version_header_that_nobody_knows_is_400_for_a_notification_too(offering: Offering) -> None:
    """The rule holds for any message in an HTTP request."""
    peer = await connect(offering.app, HANDSHAKE)
    answer = await peer.notify("notifications/initialized", headers={"mcp-protocol-version": UNKNOWN_REVISION})
    assert answer.status == 400


@rules.verifies(rules.H14, rules.D3)
async def test_a_version_header_that_this_server_does_not_speak_is_400(limited: Offering) -> None:
    """The specification has the version, but the server does not support it."""
    peer = await connect(limited.app, HANDSHAKE)
    assert (await peer.request("ping", headers={"mcp-protocol-version": "2025-03-26"})).status == 400
    assert (await peer.request("ping")).status == 200


@rules.verifies(rules.H14)
async def test_an_unsupported_version_names_the_supported_ones(offering: Offering) -> None:
    """`supported` is a subset of the versions in the result of `server/discover`."""
    peer = await connect(offering.app, PER_REQUEST)
    supported = (await peer.request("server/discover")).result["supportedVersions"]
    version = "v999.0.0"
    message = peer.message("tools/list", {"_meta": {META + "protocolVersion": version}})
    answer = await peer.post(message, {"mcp-protocol-version": version})
    assert answer.outcome == (400, -32022)
    assert answer.error["data"]["requested"] == version
    assert set(answer.error["data"]["supported"]) <= set(supported)
    assert answer.error["data"]["supported"]


@rules.verifies(rules.H15, rules.TRAP_19)
@pytest.mark.parametrize(
    ("tool", "declared", "missing"),
    [
        ("ask", {}, {"elicitation": {}}),
        ("ask", {"elicitation": {"url": {}}}, {"elicitation": {"form": {}}}),
        ("sample", {"elicitation": {}}, {"sampling": {}}),
    ],
)
async def test_a_missing_client_capability_is_400_and_names_it(
    offering: Offering, tool: str, declared: dict[str, object], missing: dict[str, object]
) -> None:
    """The error has an object of objects, and no question is sent."""
    answer = await (await connect(offering.app, PER_REQUEST, declared)).call(tool)
    assert answer.outcome == (400, -32021)
    assert answer.error["data"]["requiredCapabilities"] == missing


@rules.verifies(rules.H16, rules.J5)
@pytest.mark.parametrize(("revision", "status"), [(HANDSHAKE, 200), (BATCHES, 200), (PER_REQUEST, 400)])
@pytest.mark.parametrize(
    ("method", "params"),
    [("tools/call", {"name": "unheard_of"}), ("tools/list", {"cursor": "unheard of"}), ("tools/list", {"cursor": 1})],
)
async def test_invalid_params_have_the_status_of_their_era(
    offering: Offering, revision: str, status: int, method: str, params: dict[str, object]
) -> None:
    answer = await (await connect(offering.app, revision)).request(method, params)
    assert answer.outcome == (status, -32602)


@rules.verifies(rules.H17)
async def test_a_stream_ends_with_the_answer_and_carries_no_requests(offering: Offering) -> None:
    """The stream has notifications and then the response."""
    peer = await connect(offering.app, PER_REQUEST, {"elicitation": {}})
    answer = await peer.request("tools/call", {"name": "talk", "_meta": {"progressToken": "t"}}, id="mine")
    assert answer.media_type == "text/event-stream"
    assert answer.header("x-accel-buffering") == "no"
    *notifications, last = answer.messages
    assert [message["params"]["progress"] for message in notifications] == [1, 2]
    assert all("id" not in message for message in notifications)
    assert last["id"] == "mine"
    assert answer.text == "talked"


@rules.verifies(rules.H18, rules.THREAT_40)
async def test_a_client_that_leaves_cancels_its_request_in_the_per_request_era(offering: Offering) -> None:
    under_way = (await connect(offering.app, PER_REQUEST)).start_call("wait", {"key": "left"})
    await offering.gates.seen("arrived", "left")
    under_way.leave()
    await offering.gates.seen("cancelled", "left")
    await under_way.ended()


@rules.verifies(rules.H18, rules.THREAT_40)
async def test_a_client_that_leaves_cancels_nothing_in_the_handshake_era(offering: Offering) -> None:
    """Only `notifications/cancelled` cancels a request there."""
    under_way = (await connect(offering.app, HANDSHAKE)).start_call("wait", {"key": "left"})
    await offering.gates.seen("arrived", "left")
    under_way.leave()
    offering.gates.open("left")
    await offering.gates.seen("left", "left")
    await under_way.ended()
    assert not offering.gates.was("cancelled", "left")


@rules.verifies(rules.H5)
@pytest.mark.parametrize("revision", HANDSHAKES)
async def test_initialize_answers_json_with_200(offering: Offering, revision: str) -> None:
    answer = await Peer(offering.app, revision).post(initialize(revision, id="first"))
    assert (answer.status, answer.media_type, answer.message["id"]) == (200, "application/json", "first")
