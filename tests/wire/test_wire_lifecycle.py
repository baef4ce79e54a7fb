"""Lifecycle, version negotiation, two eras on one endpoint, and the order of the checks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests import rules
from tests.schemas import validate
from tests.wire.conftest import SMALL_LIMIT
from tests.wire.offering import offer
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
    to_bytes,
)

if TYPE_CHECKING:
    from tests.wire.offering import Offering

pytestmark = pytest.mark.every_python("On Python 3.13 these tests send POSTs to the way without ASGI.")

UNHEARD_OF = "v999.0.0"


@rules.verifies(rules.V1, rules.V2)
@pytest.mark.parametrize("revision", HANDSHAKES)
async def test_initialize_tells_version_capabilities_and_server_info(offering: Offering, revision: str) -> None:
    result = (await Peer(offering.app, revision).post(initialize(revision))).result
    assert result["protocolVersion"] == revision
    assert "tools" in result["capabilities"]
    assert (result["serverInfo"]["name"], result["serverInfo"]["version"]) == ("wire", "1.0")


@rules.verifies(rules.V2)
@pytest.mark.parametrize("revision", ["1999-01-01", PER_REQUEST, "", "latest", "2025-11-25 ", "9" * 5000])
async def test_any_other_version_gets_the_newest_of_the_handshake_era(offering: Offering, revision: str) -> None:
    """2026-07-28 has no handshake, so `initialize` returns an earlier revision."""
    result = (await Peer(offering.app, HANDSHAKE).post(initialize(revision))).result
    assert result["protocolVersion"] == HANDSHAKE


@rules.verifies(rules.V1, rules.V2, rules.H16)
@pytest.mark.parametrize(
    "params", [{}, {"protocolVersion": 1}, {"protocolVersion": None}, {"protocolVersion": [HANDSHAKE]}]
)
async def test_initialize_without_a_version_is_invalid(offering: Offering, params: dict[str, object]) -> None:
    """No session is created."""
    answer = await Peer(offering.app).post({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params})
    assert answer.outcome == (200, -32602)
    assert answer.header("mcp-session-id") is None


@rules.verifies(rules.V3)
@pytest.mark.parametrize("revision", HANDSHAKES)
async def test_initialized_is_202_and_nothing_waits_for_it(offering: Offering, revision: str) -> None:
    peer = Peer(offering.app, revision)
    peer.session_id = (await peer.post(initialize(revision))).header("mcp-session-id")
    await peer.works()
    assert (await peer.notify("notifications/initialized")).status == 202
    await peer.works()


@rules.verifies(rules.V4)
@pytest.mark.parametrize("revision", ["2025-06-18", HANDSHAKE])
@pytest.mark.parametrize("declared", [{}, {"sampling": {}}, {"elicitation": {"url": {}}}])
async def test_a_client_is_never_asked_what_it_did_not_declare(
    offering: Offering, revision: str, declared: dict[str, Any]
) -> None:
    """The tool fails with an error message, and no request is sent to the client."""
    answer = await (await connect(offering.app, revision, declared)).call("ask")
    assert answer.result["isError"] is True
    assert len(answer.messages) == 1


@rules.verifies(rules.V4)
@pytest.mark.parametrize("revision", ALL)
async def test_results_hold_only_what_the_negotiated_revision_has(offering: Offering, revision: str) -> None:
    """The tool returns each type of content, and a list as structured content. The schema validates the result."""
    peer = await connect(offering.app, revision)
    result = (await peer.call("every_block")).result
    assert len(result["content"]) == 5
    assert ("structuredContent" in result) == (revision == PER_REQUEST)
    assert (await peer.request("tools/list")).status == 200


@rules.verifies(rules.V5, rules.TRAP_15)
@pytest.mark.parametrize("revision", HANDSHAKES)
async def test_ping_is_answered_with_an_empty_object(offering: Offering, revision: str) -> None:
    assert (await (await connect(offering.app, revision)).request("ping")).result == {}


@rules.verifies(rules.TRAP_15, rules.V9)
@pytest.mark.parametrize("revision", HANDSHAKES)
async def test_set_level_is_answered_with_an_empty_object(offering: Offering, revision: str) -> None:
    """An invalid level is -32602."""
    peer = await connect(offering.app, revision)
    assert (await peer.request("logging/setLevel", {"level": "info"})).result == {}
    assert (await peer.request("logging/setLevel", {"level": "loud"})).outcome == (200, -32602)
    assert (await peer.request("logging/setLevel")).outcome == (200, -32602)


@rules.verifies(rules.V6, rules.TRAP_18)
@pytest.mark.parametrize(
    "info", [{}, {META + "clientInfo": {"name": "me", "version": "1"}}, {META + "logLevel": "debug"}]
)
async def test_a_request_stands_for_itself_in_the_per_request_era(offering: Offering, info: dict[str, Any]) -> None:
    peer = Peer(offering.app, PER_REQUEST)
    answer = await peer.request("tools/call", {"name": "nothing", "_meta": info})
    assert answer.text == "nothing"


@rules.verifies(rules.V6)
async def test_nothing_is_inferred_from_earlier_requests(offering: Offering) -> None:
    """Capabilities of one request do not count for the next one."""
    peer = Peer(offering.app, PER_REQUEST, {"elicitation": {}})
    assert (await peer.call("ask")).result["resultType"] == "input_required"
    peer.capabilities = {}
    assert (await peer.call("ask")).outcome == (400, -32021)


@rules.verifies(rules.V7, rules.TRAP_16, rules.TRAP_18)
async def test_discover_tells_versions_capabilities_and_how_long_they_hold(offering: Offering) -> None:
    result = (await Peer(offering.app, PER_REQUEST).request("server/discover")).result
    assert PER_REQUEST in result["supportedVersions"]
    assert "tools" in result["capabilities"]
    assert result["ttlMs"] >= 0
    assert result["cacheScope"] in {"public", "private"}
    assert result["_meta"][META + "serverInfo"]["name"] == "wire"


@rules.verifies(rules.TRAP_16)
async def test_a_list_says_how_long_it_holds_in_the_per_request_era(offering: Offering) -> None:
    result = (await Peer(offering.app, PER_REQUEST).request("tools/list")).result
    assert type(result["ttlMs"]) is int
    assert result["cacheScope"] in {"public", "private"}


@rules.verifies(rules.V8, rules.TRAP_17)
@pytest.mark.parametrize(
    "method",
    [
        "initialize",
        "ping",
        "logging/setLevel",
        "resources/subscribe",
        "resources/unsubscribe",
        "tasks/result",
        "tasks/list",
        "tasks/get",
    ],
)
async def test_removed_methods_are_unknown_in_the_per_request_era(offering: Offering, method: str) -> None:
    answer = await Peer(offering.app, PER_REQUEST).request(method, {"protocolVersion": PER_REQUEST})
    assert answer.outcome == (404, -32601)
    assert answer.header("mcp-session-id") is None


@rules.verifies(rules.V8, rules.V9)
@pytest.mark.parametrize("revision", HANDSHAKES)
async def test_later_methods_are_unknown_in_the_handshake_era(offering: Offering, revision: str) -> None:
    peer = await connect(offering.app, revision)
    for method in ("server/discover", "subscriptions/listen"):
        assert (await peer.request(method)).outcome == (200, -32601)


_BEHIND_CAPABILITIES = {
    "resources": ("resources/subscribe", "resources/unsubscribe"),
    "completions": ("completion/complete",),
    "tasks": ("tasks/get", "tasks/cancel"),
}
_EMPTY_LISTS = {
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
}


@rules.verifies(rules.V9)
@pytest.mark.parametrize("revision", ALL)
async def test_what_is_not_advertised_is_not_served_and_what_is_answers(offering: Offering, revision: str) -> None:
    peer = await connect(offering.app, revision)
    first = initialize(revision) if not peer.per_request else peer.message("server/discover")
    advertised = (await peer.post(first)).result["capabilities"]
    assert "tools" in advertised
    assert (await peer.request("tools/list")).result["tools"]
    for capability, methods in _BEHIND_CAPABILITIES.items():
        for method in methods if capability not in advertised else ():
            answer = await peer.request(method, {"name": "x", "uri": "x://y"})
            assert answer.error["code"] == -32601, method


@rules.verifies(rules.V9)
@pytest.mark.parametrize("revision", ALL)
async def test_a_server_with_tools_only_has_empty_lists_and_declares_no_more(offering: Offering, revision: str) -> None:
    peer = await connect(offering.app, revision)
    first = initialize(revision) if not peer.per_request else peer.message("server/discover")
    assert not {"prompts", "resources"} & (await peer.post(first)).result["capabilities"].keys()
    for method, member in _EMPTY_LISTS.items():
        assert (await peer.request(method)).result[member] == []
    assert (await peer.request("prompts/get", {"name": "x"})).error["code"] == -32602
    assert (await peer.request("resources/read", {"uri": "x://y"})).error["message"] == "Resource not found"


@rules.verifies(rules.V10)
async def test_both_eras_are_served_side_by_side_on_one_endpoint(offering: Offering) -> None:
    """The request itself selects the era, independent of earlier requests."""
    peers = [await connect(offering.app, revision) for revision in ALL]
    for peer in [*peers, *reversed(peers)]:
        await peer.works()


@rules.verifies(rules.V10, rules.D3)
async def test_modern_meta_without_the_header_is_still_served_statelessly(offering: Offering) -> None:
    """The error is about the missing header, not about a missing session."""
    peer = Peer(offering.app, PER_REQUEST)
    answer = await peer.call("nothing", headers={"mcp-protocol-version": None})
    assert answer.outcome == (400, -32020)


@rules.verifies(rules.V11)
async def test_a_modern_only_server_names_its_versions_to_initialize() -> None:
    app = offer(revisions=(PER_REQUEST,)).app
    answer = await Peer(app, HANDSHAKE).post(initialize(HANDSHAKE))
    assert PER_REQUEST in answer.error["data"]["supported"]
    assert answer.header("mcp-session-id") is None
    await Peer(app, PER_REQUEST).works()


@rules.verifies(rules.V11, rules.H14)
async def test_a_handshake_only_server_names_its_versions_to_a_modern_client() -> None:
    app = offer(revisions=(HANDSHAKE,)).app
    answer = await Peer(app, PER_REQUEST).request("server/discover")
    assert answer.outcome == (400, -32022)
    assert answer.error["data"] == {"supported": [HANDSHAKE], "requested": PER_REQUEST}
    await (await connect(app, HANDSHAKE)).works()


# The order of the checks: each case has two faults or more, and the first in the order decides.

_MODERN: dict[str, Any] = {"_meta": {META + "protocolVersion": PER_REQUEST, META + "clientCapabilities": {}}}
_UNHEARD: dict[str, Any] = {"_meta": {META + "protocolVersion": UNHEARD_OF, META + "clientCapabilities": {}}}
_HEADERS = {
    "host": "127.0.0.1:8000",
    "content-type": "application/json",
    "accept": "application/json",
    "mcp-protocol-version": PER_REQUEST,
    "mcp-method": "tools/list",
}
_LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
_ORDER: list[tuple[str, str, dict[str, str], object, tuple[int, int | None]]] = [
    ("host before method", "PUT", {"host": "evil.example.com"}, b"", (421, -32600)),
    ("host before body", "POST", {"host": "evil.example.com"}, b"x" * (SMALL_LIMIT + 1), (421, -32600)),
    ("origin before method", "GET", {"origin": "http://evil.example.com"}, b"", (403, -32600)),
    ("method before body", "PUT", {}, b"x" * (SMALL_LIMIT + 1), (405, -32600)),
    ("method before content type", "GET", {"content-type": "text/plain"}, b"", (405, -32600)),
    ("body limit before JSON", "POST", {}, b"x" * (SMALL_LIMIT + 1), (413, -32600)),
    ("JSON before version", "POST", {"mcp-protocol-version": UNHEARD_OF}, b"{", (400, -32700)),
    ("shape before version", "POST", {"mcp-protocol-version": UNHEARD_OF}, b"[]", (400, -32600)),
    ("id before meta", "POST", {}, {**_LIST, "id": None}, (400, -32600)),
    ("meta before header", "POST", {"mcp-method": "else"}, {**_LIST, "params": {}}, (400, -32602)),
    (
        "unheard-of header before meta",
        "POST",
        {"mcp-protocol-version": UNHEARD_OF},
        {**_LIST, "params": {}},
        (400, -32022),
    ),
    ("good header, body unheard of", "POST", {}, {**_LIST, "params": _UNHEARD}, (400, -32020)),
    (
        "header unheard of, good body",
        "POST",
        {"mcp-protocol-version": UNHEARD_OF},
        {**_LIST, "params": _MODERN},
        (400, -32020),
    ),
    ("both unheard of", "POST", {"mcp-protocol-version": UNHEARD_OF}, {**_LIST, "params": _UNHEARD}, (400, -32022)),
    (
        "method header before version",
        "POST",
        {"mcp-protocol-version": UNHEARD_OF, "mcp-method": "else"},
        {**_LIST, "params": _UNHEARD},
        (400, -32020),
    ),
    ("method header before method", "POST", {}, {**_LIST, "method": "unheard/of", "params": _MODERN}, (400, -32020)),
    (
        "version before method",
        "POST",
        {"mcp-protocol-version": UNHEARD_OF, "mcp-method": "unheard/of"},
        {**_LIST, "method": "unheard/of", "params": _UNHEARD},
        (400, -32022),
    ),
    (
        "name header before tool",
        "POST",
        {"mcp-method": "tools/call", "mcp-name": "else"},
        {**_LIST, "method": "tools/call", "params": {**_MODERN, "name": "unheard_of"}},
        (400, -32020),
    ),
    (
        "tool before its arguments",
        "POST",
        {"mcp-method": "tools/call", "mcp-name": "unheard_of"},
        {**_LIST, "method": "tools/call", "params": {**_MODERN, "name": "unheard_of", "arguments": []}},
        (400, -32602),
    ),
    ("session before version", "POST", {"mcp-protocol-version": HANDSHAKE}, _LIST, (400, -32600)),
    ("session before batch", "POST", {"mcp-protocol-version": BATCHES}, [_LIST], (400, -32600)),
    ("unknown session", "POST", {"mcp-protocol-version": HANDSHAKE, "mcp-session-id": "x"}, _LIST, (404, -32600)),
    ("message before session", "POST", {"mcp-protocol-version": HANDSHAKE, "mcp-session-id": "x"}, 7, (400, -32600)),
]


@rules.verifies(rules.V10, rules.H10, rules.H12, rules.H13, rules.H14)
@pytest.mark.parametrize(
    ("method", "headers", "body", "outcome"), [case[1:] for case in _ORDER], ids=[case[0] for case in _ORDER]
)
async def test_the_first_fault_in_the_order_of_checks_decides(
    limited: Offering, method: str, headers: dict[str, str], body: object, outcome: tuple[int, int | None]
) -> None:
    """The first check that fails decides."""
    pairs = {**_HEADERS, **headers}.items()
    answer = await exchange(limited.app, method, pairs, [to_bytes(body)]).answer()
    check(answer, HANDSHAKE)
    validate(answer.message, PER_REQUEST)
    assert answer.outcome == outcome
    if outcome[0] in {403, 405, 421}:
        assert answer.reads == 0


@rules.verifies(rules.V6, rules.J4)
async def test_a_message_without_id_is_202_before_its_meta_is_looked_at(offering: Offering) -> None:
    """2026-07-28 has no notifications over HTTP. They are accepted and ignored."""
    peer = Peer(offering.app, PER_REQUEST)
    message = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
    assert (await peer.post(message)).status == 202


@rules.verifies(rules.TRAP_22)
@pytest.mark.parametrize("revision", ERAS)
async def test_a_list_has_the_same_order_every_time_with_an_argument_free_tool_first(
    offering: Offering, revision: str
) -> None:
    peer = await connect(offering.app, revision)
    first = (await peer.request("tools/list")).result["tools"]
    assert first == (await peer.request("tools/list")).result["tools"]
    assert first[0]["name"] == "nothing"
    assert not first[0]["inputSchema"].get("required")
    assert (await peer.call(first[0]["name"])).status == 200


@rules.verifies(rules.V9)
@pytest.mark.parametrize("revision", ALL)
async def test_pages_of_a_list_hold_every_tool_once(revision: str) -> None:
    """An invalid cursor is rejected."""
    peer = await connect(offer(page_size=3).app, revision)
    names: list[str] = []
    params: dict[str, Any] = {}
    while True:
        page = (await peer.request("tools/list", params)).result
        names += [tool["name"] for tool in page["tools"]]
        assert len(page["tools"]) <= 3
        if "nextCursor" not in page:
            break
        params = {"cursor": page["nextCursor"]}
    assert len(names) == len(set(names))
    everything = (await (await connect(offer().app, revision)).request("tools/list")).result["tools"]
    assert names == [tool["name"] for tool in everything]
    for cursor in ("unheard of", "é", "bm90aGVyZQ==", "=" * 5000):
        assert (await peer.request("tools/list", {"cursor": cursor})).error["code"] == -32602
