"""Who may do what, on the wire: statuses, challenges, lists, batches and sessions, in both eras."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp import MCPServer
from funcmcp._auth.authenticator import Challenge
from funcmcp._auth.policy import Auth, Lists
from tests import rules
from tests.wire.callers import ALICE, BOB, BOBS_NEXT, CAROL, KEYS, METADATA, RESOURCE, Shop, open_shop
from tests.wire.peer import BATCHES, ERAS, HANDSHAKE, PER_REQUEST, check, exchange, initialize, to_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from funcmcp._auth.policy import Lists
    from tests.wire.callers import Caller
    from tests.wire.peer import Answer

pytestmark = [
    pytest.mark.usefixtures("_no_log"),
    pytest.mark.every_python("On Python 3.13 these tests send POSTs to the way without ASGI."),
    pytest.mark.branches("Lists, reads and subscriptions depend on the caller."),
]
NOBODY = f'Bearer resource_metadata="{METADATA}"'
OWN_PATH, ROOT = "/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-protected-resource"


@pytest.fixture
def _no_log(caplog: pytest.LogCaptureFixture) -> Any:
    yield
    assert not [record for record in caplog.records if record.name == "funcmcp"]


def refused(answer: Answer, status: int, challenge: str | None = None) -> None:
    """Fail unless an answer is such a refusal, which no cache keeps."""
    assert answer.status == status
    assert answer.header("www-authenticate") == challenge
    assert answer.header("cache-control") == "no-store"
    assert answer.media_type == "application/json"
    assert answer.error["code"] == -32600
    assert "result" not in answer.message


def reading(caller: Caller, uri: str) -> dict[str, Any]:
    return caller.message("resources/read", {"uri": uri})


# Without credentials, and with bad ones


@rules.verifies(rules.U2, rules.U3, rules.THREAT_18)
@pytest.mark.parametrize("revision", ERAS)
async def test_without_credentials_it_is_401_with_an_absolute_metadata_url_before_the_body_is_read(
    revision: str,
) -> None:
    """The challenge has no error, because the request has no credentials."""
    shop = open_shop(anonymous=False)
    caller = shop.caller(revision=revision)
    answer = await caller.call("whoami")
    refused(answer, 401, NOBODY)
    assert answer.reads == 0
    assert "error=" not in NOBODY
    assert shop.ran == []


@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_streams_and_endings_of_sessions_want_credentials_too(method: str) -> None:
    shop = open_shop(anonymous=False, sessions="memory")
    headers = {**shop.caller().headers(None), "accept": "text/event-stream", "mcp-session-id": "x"}
    refused(await exchange(shop.mcp, method, headers.items()).answer(), 401, NOBODY)


@rules.verifies(rules.U3, rules.U5)
@pytest.mark.parametrize("revision", ERAS)
@pytest.mark.parametrize("tool", ["hours", "whoami"])
async def test_a_bad_key_is_401_even_where_none_is_needed(revision: str, tool: str) -> None:
    """Invalid credentials are never treated as missing ones."""
    shop = open_shop("open")
    answer = await shop.caller("not-a-key-of-anybody", revision).call(tool)
    refused(answer, 401, f'Bearer error="invalid_token", error_description="The API key is not known.", {NOBODY[7:]}')
    assert answer.reads == 0
    assert shop.ran == []


@rules.verifies(rules.U3)
async def test_a_malformed_header_is_400() -> None:
    async def particular(headers: Mapping[str, str]) -> Challenge:
        assert headers["authorization"] == "Bearer a b"
        return Challenge("invalid_request", "The Authorization header is not 'Bearer' with one token.")

    shop = Shop(MCPServer("Shop", auth=particular))
    answer = await shop.caller("a b").call("anything")
    parameters = "error_description=\"The Authorization header is not 'Bearer' with one token.\""
    refused(answer, 400, f'Bearer error="invalid_request", {parameters}')


@rules.verifies(rules.THREAT_18)
@pytest.mark.parametrize("revision", ERAS)
async def test_without_metadata_a_challenge_is_still_one(revision: str) -> None:
    """A 401 requires a challenge, and a challenge requires a parameter."""
    shop = Shop(MCPServer("Shop", auth=KEYS))
    refused(await shop.caller(revision=revision).call("anything"), 401, 'Bearer realm="mcp"')


@rules.verifies(rules.U5)
@pytest.mark.parametrize("revision", ERAS)
async def test_a_key_in_the_query_string_is_no_key(revision: str) -> None:
    shop = open_shop(anonymous=False)
    caller = shop.caller(revision=revision)
    message = caller.call_message("whoami")
    query = f"access_token={BOB}&code={BOB}".encode()
    started = exchange(shop.mcp, "POST", caller.headers(message).items(), [to_bytes(message)], query=query)
    refused(await started.answer(), 401, NOBODY)


async def test_the_host_and_the_origin_are_checked_before_credentials() -> None:
    shop = open_shop(anonymous=False)
    for field, status in (({"host": "evil.example"}, 421), ({"origin": "https://evil.example"}, 403)):
        answer = await shop.caller().call("whoami", headers=field)
        assert answer.status == status
        assert answer.header("www-authenticate") is None


@rules.verifies(rules.U6)
@pytest.mark.parametrize("revision", ERAS)
async def test_a_principal_is_let_in_and_the_function_sees_it(revision: str) -> None:
    """Each request has credentials."""
    shop = open_shop(anonymous=False)
    caller = await shop.connected(ALICE, revision)
    answer = await caller.call("whoami")
    assert (answer.status, answer.text) == (200, "alice")
    assert answer.header("cache-control") == "no-store"
    assert answer.header("www-authenticate") is None
    caller.key = None
    refused(await caller.call("whoami"), 401, NOBODY)
    assert shop.ran == ["whoami"]


# Features


@rules.verifies(rules.U7, rules.THREAT_37)
@pytest.mark.parametrize("revision", ERAS)
async def test_what_allows_everybody_runs_for_nobody_in_particular(revision: str) -> None:
    shop = open_shop()
    caller = await shop.connected(revision=revision)
    assert (await caller.call("hours")).text == "nobody"
    assert (await caller.request("resources/read", {"uri": "shop://hours"})).result["contents"][0]["text"] == "nobody"
    got = await caller.request("prompts/get", {"name": "greet", "arguments": {"who": "Hi"}})
    assert got.result["messages"][0]["content"]["text"] == "Hi nobody"
    assert (await (await shop.connected(ALICE, revision)).call("hours")).text == "alice"


CLOSED: list[tuple[str, dict[str, Any]]] = [
    ("tools/call", {"name": "whoami"}),
    ("tools/call", {"name": "cancel"}),
    ("tools/call", {"name": "no_such_tool"}),
    ("tools/call", {}),
    ("tools/call", {"name": 7}),
    ("resources/read", {"uri": "shop://staff"}),
    ("resources/read", {"uri": "shop://nowhere"}),
    ("resources/read", {"uri": "shop://orders/secret/1"}),
    ("resources/read", {"uri": "shop://orders/secret/..%2f1"}),
    ("resources/read", {"uri": "other://nowhere"}),
    ("prompts/get", {"name": "complain", "arguments": {"order": "1"}}),
    ("prompts/get", {"name": "no_such_prompt"}),
    (
        "completion/complete",
        {"ref": {"type": "ref/prompt", "name": "complain"}, "argument": {"name": "order", "value": ""}},
    ),
    ("completion/complete", {"ref": {"type": "ref/prompt", "name": "nothing"}}),
    ("completion/complete", {"ref": 7}),
    ("tasks/get", {"taskId": "1"}),
    ("no/such/method", {}),
    ("tools/list", {}),
    ("resources/list", {}),
    ("resources/templates/list", {}),
    ("prompts/list", {}),
]


@rules.verifies(rules.U7, rules.THREAT_37, rules.THREAT_38)
@pytest.mark.parametrize("revision", ERAS)
@pytest.mark.parametrize(("method", "params"), CLOSED)
async def test_everything_else_is_one_and_the_same_401_whether_it_exists_or_not(
    revision: str, method: str, params: dict[str, Any]
) -> None:
    """The template that handles the URI decides, not another one that matches it."""
    shop = open_shop()
    caller = await shop.connected(revision=revision)
    answer = await caller.request(method, params)
    refused(answer, 401, NOBODY)
    other = await caller.request("tools/call", {"name": "whoami"})
    assert answer.body == other.body
    assert sorted(answer.headers) == sorted(other.headers)
    assert shop.ran == []


@pytest.mark.parametrize("revision", ERAS)
async def test_a_principal_learns_what_does_not_exist(revision: str) -> None:
    shop = open_shop()
    caller = await shop.connected(ALICE, revision)
    assert (await caller.call("no_such_tool")).error["code"] == -32602
    assert (await caller.request("no/such/method")).error["code"] == -32601


@rules.verifies(rules.U4, rules.U3)
@pytest.mark.parametrize("revision", ERAS)
@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/call", {"name": "cancel"}),
        ("resources/read", {"uri": "shop://staff"}),
        ("resources/read", {"uri": "shop://orders/secret/1"}),
        ("prompts/get", {"name": "complain", "arguments": {"order": "1"}}),
        (
            "completion/complete",
            {"ref": {"type": "ref/prompt", "name": "complain"}, "argument": {"name": "order", "value": ""}},
        ),
        (
            "completion/complete",
            {
                "ref": {"type": "ref/resource", "uri": "shop://orders/secret/{number}"},
                "argument": {"name": "number", "value": ""},
            },
        ),
    ],
)
async def test_a_missing_scope_is_403_with_all_scopes_at_once(
    revision: str, method: str, params: dict[str, Any]
) -> None:
    """The scopes include those that the caller has, because the client requests exactly these."""
    shop = open_shop()
    answer = await (await shop.connected(ALICE, revision)).request(method, params)
    parameters = 'error_description="More scopes are needed.", scope="orders.write orders.read"'
    refused(answer, 403, f'Bearer error="insufficient_scope", {parameters}, {NOBODY[7:]}')
    assert answer.message["id"] == 1
    assert answer.error["data"] == {"requiredScopes": ["orders.write", "orders.read"]}
    assert shop.ran == []


@pytest.mark.parametrize("revision", ERAS)
async def test_who_has_the_scope_is_let_in(revision: str) -> None:
    shop = open_shop()
    caller = await shop.connected(BOB, revision)
    assert (await caller.call("cancel")).text == "cancelled"
    assert (await caller.request("resources/read", {"uri": "shop://orders/secret/1"})).status == 200


@pytest.mark.parametrize("revision", ERAS)
async def test_an_authors_no_is_403_without_a_challenge(revision: str) -> None:
    """There is nothing that a client could ask the authorization server for."""
    shop = open_shop()
    refused(await (await shop.connected(ALICE, revision)).call("audit"), 403)
    assert shop.ran == []
    assert (await (await shop.connected(BOB, revision)).call("audit")).text == "audited"


@rules.verifies(rules.U3, rules.U4)
@pytest.mark.parametrize("revision", ERAS)
async def test_scopes_that_every_principal_needs_are_named_in_each_challenge(revision: str) -> None:
    shop = open_shop(anonymous=False, scopes=("orders.read",))
    caller = shop.caller(revision=revision)
    refused(await caller.call("whoami"), 401, f'Bearer scope="orders.read", {NOBODY[7:]}')
    answer = await shop.caller(CAROL, revision).call("cancel")
    assert 'error="insufficient_scope"' in str(answer.header("www-authenticate"))
    assert 'scope="orders.read orders.write"' in str(answer.header("www-authenticate"))
    assert (await (await shop.connected(BOB, revision)).call("cancel")).status == 200


async def test_a_principal_without_the_scopes_begins_no_session() -> None:
    shop = open_shop(anonymous=False, scopes=("orders.read",))
    assert (await shop.caller(CAROL).post(initialize(HANDSHAKE))).status == 403


@rules.verifies(rules.U3)
@pytest.mark.parametrize("revision", ERAS)
async def test_where_lists_are_open_a_challenge_names_what_the_tool_needs(revision: str) -> None:
    """With other lists, the scopes would disclose that the tool exists."""
    shop = open_shop("open")
    refused(
        await (await shop.connected(revision=revision)).call("cancel"),
        401,
        f'Bearer scope="orders.write", {NOBODY[7:]}',
    )


@rules.verifies(rules.THREAT_37)
@pytest.mark.parametrize("revision", ERAS)
async def test_a_call_as_a_notification_runs_nothing(revision: str) -> None:
    shop = open_shop()
    for key in (None, BOB):
        caller = await shop.connected(key, revision)
        assert (await caller.notify("tools/call", {"name": "cancel"})).status == 202
    assert shop.ran == []


@pytest.mark.parametrize("revision", ERAS)
async def test_a_notification_of_nobody_is_401_where_nothing_is_for_everybody(revision: str) -> None:
    caller = open_shop(anonymous=False).caller(revision=revision)
    refused(await caller.notify("notifications/initialized"), 401, NOBODY)


# Batches


@rules.verifies(rules.U7, rules.THREAT_37)
@pytest.mark.parametrize(
    ("key", "tools", "status"),
    [(None, ["hours", "whoami"], 401), (ALICE, ["whoami", "cancel"], 403), (ALICE, ["whoami", "audit"], 403)],
)
async def test_each_message_of_a_batch_is_decided_before_any_of_them_runs(
    key: str | None, tools: list[str], status: int
) -> None:
    shop = open_shop()
    caller = await shop.connected(key, BATCHES)
    batch = [caller.call_message(name, id=name) for name in tools]
    answer = check(await caller.start(batch).answer(), BATCHES)
    assert answer.status == status
    assert "id" not in answer.message
    assert shop.ran == []


async def test_a_batch_of_what_may_be_done_is_done() -> None:
    shop = open_shop()
    caller = await shop.connected(None, BATCHES)
    batch: list[Any] = [caller.call_message("hours", id=1), {"jsonrpc": "2.0", "method": "notifications/initialized"}]
    answer = check(await caller.start(batch).answer(), BATCHES)
    assert (answer.status, len(answer.message)) == (200, 1)
    assert shop.ran == ["hours"]


# Lists

LISTED = {
    "tools/list": (
        "tools",
        "name",
        ["hours", "whoami", "cancel", "audit", "ask"],
        ["hours", "whoami", "ask"],
        ["hours", "ask"],
    ),
    "resources/templates/list": (
        "resourceTemplates",
        "uriTemplate",
        ["shop://orders/secret/{number}", "shop://orders/{+path}"],
        ["shop://orders/{+path}"],
        ["shop://orders/{+path}"],
    ),
    "prompts/list": ("prompts", "name", ["greet", "complain"], ["greet"], ["greet"]),
}


async def listed(caller: Caller, method: str, member: str, key: str) -> list[str]:
    answer = await caller.request(method)
    assert answer.status == 200, answer
    if caller.per_request:
        assert answer.result["cacheScope"] == "private"
    assert answer.header("cache-control") == "no-store"
    return [item[key] for item in answer.result[member]]


@rules.verifies(rules.THREAT_35, rules.THREAT_38)
@pytest.mark.parametrize("revision", ERAS)
@pytest.mark.parametrize("method", LISTED)
async def test_lists_are_for_everybody_for_principals_or_for_each_its_own(revision: str, method: str) -> None:
    """No list is public. A filtered list never comes from the cached list of another caller."""
    member, key, everything, for_alice, for_nobody = LISTED[method]
    shop = open_shop("open")
    for who in (None, ALICE, BOB):
        assert await listed(await shop.connected(who, revision), method, member, key) == everything
    shop = open_shop("closed")
    for who in (BOB, ALICE):
        assert await listed(await shop.connected(who, revision), method, member, key) == everything
    refused(await (await shop.connected(None, revision)).request(method), 401, NOBODY)
    shop = open_shop("filtered")
    assert await listed(await shop.connected(BOB, revision), method, member, key) == everything
    assert await listed(await shop.connected(None, revision), method, member, key) == for_nobody
    assert await listed(await shop.connected(ALICE, revision), method, member, key) == for_alice
    shop = open_shop("auto")
    assert await listed(await shop.connected(BOB, revision), method, member, key) == everything
    assert await listed(await shop.connected(None, revision), method, member, key) == for_nobody
    assert await listed(await shop.connected(ALICE, revision), method, member, key) == everything


@rules.verifies(rules.THREAT_35)
@pytest.mark.parametrize("revision", ERAS)
async def test_an_empty_list_is_refused_to_the_callers_to_whom_others_are(revision: str) -> None:
    shop = open_shop("closed")
    shop.mcp.disable(components=["prompt"])
    refused(await (await shop.connected(None, revision)).request("prompts/list"), 401, NOBODY)
    assert (await (await shop.connected(ALICE, revision)).request("prompts/list")).result["prompts"] == []


@rules.verifies(rules.THREAT_38)
@pytest.mark.parametrize("revision", ERAS)
@pytest.mark.parametrize(
    ("lists", "key", "uris"),
    [
        ("auto", None, ["shop://hours"]),
        ("auto", ALICE, ["shop://hours", "shop://staff", "shop://orders/1", "shop://orders/secret/2"]),
        ("open", None, ["shop://hours", "shop://staff"]),
        ("open", ALICE, ["shop://hours", "shop://staff", "shop://orders/1", "shop://orders/secret/2"]),
        ("filtered", None, ["shop://hours"]),
        ("filtered", ALICE, ["shop://hours", "shop://orders/1"]),
        ("filtered", BOB, ["shop://hours", "shop://staff", "shop://orders/1", "shop://orders/secret/2"]),
    ],
)
async def test_resources_are_listed_as_the_caller_may_read_them(
    revision: str, lists: Lists, key: str | None, uris: list[str]
) -> None:
    """A listing function is called only for callers with access to it."""
    shop = open_shop(lists)
    assert await listed(await shop.connected(key, revision), "resources/list", "resources", "uri") == uris
    assert shop.ran == ([] if key is None else ["list"])


@pytest.mark.parametrize("revision", ERAS)
async def test_pages_of_a_filtered_list_have_cursors_of_its_own(revision: str) -> None:
    shop = open_shop("filtered", page_size=1)
    caller = await shop.connected(None, revision)
    first = await caller.request("tools/list")
    assert [tool["name"] for tool in first.result["tools"]] == ["hours"]
    second = await caller.request("tools/list", {"cursor": first.result["nextCursor"]})
    assert [tool["name"] for tool in second.result["tools"]] == ["ask"]
    assert "nextCursor" not in second.result
    hidden = await (await shop.connected(BOB, revision)).request("tools/list", {"cursor": first.result["nextCursor"]})
    assert [tool["name"] for tool in hidden.result["tools"]] == ["whoami"]
    other = await caller.request("tools/list", {"cursor": hidden.result["nextCursor"]})
    assert [tool["name"] for tool in other.result["tools"]] == ["ask"]  # another's cursor shows nothing of theirs


@rules.verifies(rules.THREAT_38)
@pytest.mark.parametrize("lists", ["auto", "filtered"])
async def test_a_list_of_nothing_for_everybody_is_401(lists: Lists) -> None:
    """The 401 makes clients authenticate."""
    caller = open_shop(lists, anonymous=False).caller(revision=PER_REQUEST)
    refused(await caller.request("tools/list"), 401, NOBODY)


@rules.verifies(rules.THREAT_35)
@pytest.mark.parametrize("method", ["server/discover", "resources/read"])
async def test_nothing_is_public_where_callers_are_known(method: str) -> None:
    caller = open_shop().caller(BOB, PER_REQUEST)
    answer = await caller.request(method, {"uri": "shop://hours"} if method == "resources/read" else {})
    assert answer.result["cacheScope"] == "private"
    assert answer.header("cache-control") == "no-store"


@rules.verifies(rules.D3)
async def test_the_handshake_and_discovery_are_for_nobody_only_where_something_is() -> None:
    for shop, status in ((open_shop(anonymous=False), 401), (open_shop(), 200), (open_shop("open"), 200)):
        assert (await shop.caller().post(initialize(HANDSHAKE))).status == status
        assert (await shop.caller(revision=PER_REQUEST).request("server/discover")).status == status


# Sessions and states


@rules.verifies(rules.THREAT_3, rules.U6)
@pytest.mark.parametrize("sessions", ["signed", "memory"])
@pytest.mark.parametrize("stranger", [None, ALICE])
async def test_a_session_of_another_principal_is_as_if_it_never_was(sessions: str, stranger: str | None) -> None:
    """POST, GET and DELETE are 404, and the session stays usable for its owner."""
    shop = open_shop(sessions=sessions)
    owner = await shop.connected(BOB)
    thief = shop.caller(stranger)
    thief.session_id = owner.session_id
    unknown = shop.caller(stranger)
    unknown.session_id = "never-was"
    assert (await thief.call("hours")).body == (await unknown.call("hours")).body
    for answer in (await thief.call("hours"), await thief.notify("notifications/initialized"), await thief.delete()):
        assert answer.status == 404
    if sessions == "memory":
        assert (await thief.get()).status == 404
    batch = [thief.message("ping")]
    assert (await thief.start(batch).answer()).status == 404
    assert shop.ran == []
    assert (await owner.call("whoami")).text == "bob"


@rules.verifies(rules.THREAT_3)
@pytest.mark.parametrize("sessions", ["signed", "memory"])
async def test_a_renewed_token_goes_on_with_the_session(sessions: str) -> None:
    shop = open_shop(sessions=sessions)
    caller = await shop.connected(BOB)
    caller.key = BOBS_NEXT
    assert (await caller.call("whoami")).text == "bob"
    assert (await caller.delete()).status == 204
    caller.key = BOB
    assert (await caller.call("whoami")).status == 404


@pytest.mark.parametrize("sessions", ["signed", "memory"])
async def test_who_signs_in_during_a_session_goes_on_with_it(sessions: str) -> None:
    """Clients that are told 401 in the middle send the same request again, in the same session."""
    shop = open_shop("open", sessions=sessions)
    caller = await shop.connected(None)
    assert (await caller.call("whoami")).status == 401
    caller.key = ALICE
    assert (await caller.call("whoami")).text == "alice"
    assert (await caller.call("whoami")).text == "alice"
    caller.key = None
    assert (await caller.call("whoami")).status == 401


@rules.verifies(rules.THREAT_3)
async def test_in_a_session_of_nobody_each_principal_has_streams_of_its_own() -> None:
    """A caller with only the session id gets no messages for a principal."""
    shop = open_shop("open", sessions="memory")
    caller = await shop.connected(None)
    caller.capabilities = {}
    caller.key = ALICE
    await caller.request("resources/subscribe", {"uri": "shop://hours"})
    pairs = [*caller.headers(None).items()]
    hers = exchange(shop.mcp, "GET", [*[p for p in pairs if p[0] != "accept"], ("accept", "text/event-stream")])
    caller.key = None
    pairs = [*caller.headers(None).items()]
    nobodys = exchange(shop.mcp, "GET", [*[p for p in pairs if p[0] != "accept"], ("accept", "text/event-stream")])
    await caller.request("ping")
    shop.mcp.notify_resource_updated("shop://hours")
    assert (await hers.event())["method"] == "notifications/resources/updated"
    await caller.delete()
    hers.leave()
    await hers.ended()
    await nobodys.ended()
    assert "resources/updated" not in str(nobodys._sent)


@rules.verifies(rules.THREAT_37)
async def test_a_subscription_needs_what_reading_does() -> None:
    shop = open_shop(sessions="memory")
    reference = {"uri": "shop://staff"}
    assert (await (await shop.connected(ALICE)).request("resources/subscribe", reference)).status == 403
    assert (await (await shop.connected(None)).request("resources/subscribe", reference)).status == 401
    assert (await (await shop.connected(BOB)).request("resources/subscribe", reference)).status == 200
    assert (await (await shop.connected(None)).request("resources/unsubscribe", reference)).status == 200


@rules.verifies(rules.THREAT_37, rules.THREAT_38)
@pytest.mark.parametrize(
    ("lists", "key", "uris", "tells_of_tools"),
    [
        ("closed", None, ["shop://hours"], False),
        ("auto", None, ["shop://hours"], True),
        ("filtered", None, ["shop://hours"], True),
        ("open", None, ["shop://hours"], True),
        ("closed", ALICE, ["shop://hours"], True),
        ("closed", BOB, ["shop://hours", "shop://staff"], True),
    ],
)
async def test_a_listener_hears_of_what_it_may_read(
    lists: Lists, key: str | None, uris: list[str], tells_of_tools: bool
) -> None:
    shop = open_shop(lists)
    caller = shop.caller(key, PER_REQUEST)
    wish = {
        "toolsListChanged": True,
        "resourceSubscriptions": ["shop://hours", "shop://staff", "other://nowhere"],
    }
    stream = caller.start(caller.message("subscriptions/listen", {"notifications": wish}))
    honoured = (await stream.event())["params"]["notifications"]
    assert honoured["resourceSubscriptions"] == uris
    assert honoured.get("toolsListChanged", False) is tells_of_tools
    stream.leave()
    await stream.ended()


@rules.verifies(rules.THREAT_7, rules.U6)
@pytest.mark.parametrize(("first", "then", "status"), [(ALICE, BOB, 400), (None, ALICE, 400), (BOB, BOBS_NEXT, 200)])
async def test_a_state_belongs_to_the_principal_who_was_asked(first: str | None, then: str | None, status: int) -> None:
    shop = open_shop()
    asking = shop.caller(first, PER_REQUEST)
    asking.capabilities = {"elicitation": {}}
    question = (await asking.call("ask")).result
    key = next(iter(question["inputRequests"]))
    answers = {"inputResponses": {key: {"action": "accept", "content": {}}}, "requestState": question["requestState"]}
    again = shop.caller(then, PER_REQUEST)
    again.capabilities = {"elicitation": {}}
    answer = await again.request("tools/call", {"name": "ask", "arguments": {}, **answers})
    assert answer.status == status
    assert status == 400 or answer.text == "bob accept"


@rules.verifies(rules.THREAT_10)
@pytest.mark.parametrize("revision", ERAS)
async def test_no_answer_carries_the_token_on(revision: str) -> None:
    shop = open_shop()
    caller = await shop.connected(BOB, revision)
    for answer in (await caller.call("whoami"), await caller.call("nothing"), await caller.request("tools/list")):
        assert BOB.encode() not in answer.body
        assert BOB not in str(answer.headers)
    assert BOB not in str(caller.session_id)


# Metadata and browsers


@rules.verifies(rules.U1, rules.U2, rules.D4, rules.THREAT_35)
@pytest.mark.parametrize("path", [OWN_PATH, ROOT])
async def test_the_metadata_is_at_the_root_and_at_the_path_for_everybody(path: str) -> None:
    """The document depends on the configuration only, not on the request."""
    shop = open_shop(anonymous=False)
    answer = await shop.caller().get({"host": "localhost:8000"}, path=path)
    assert (answer.status, answer.media_type) == (200, "application/json")
    assert json.loads(answer.body) == {
        "resource": "https://orders.example.com/mcp",
        "authorization_servers": ["https://login.example.com"],
        "scopes_supported": ["orders.read", "orders.write"],
        "bearer_methods_supported": ["header"],
    }
    assert answer.header("access-control-allow-origin") is None


@rules.verifies(rules.THREAT_1)
@pytest.mark.parametrize(
    ("headers", "status"),
    [({"host": "evil.example"}, 421), ({"origin": "https://evil.example"}, 403), ({"origin": "null"}, 403)],
)
async def test_the_checks_against_rebinding_hold_for_the_metadata(headers: dict[str, str], status: int) -> None:
    assert (await open_shop().caller().get(headers, path=ROOT)).status == status


async def test_the_metadata_is_only_to_be_read() -> None:
    answer = await exchange(open_shop().mcp, "POST", [("host", "127.0.0.1")], [b"{}"], path=ROOT).answer()
    assert (answer.status, answer.header("allow"), answer.reads) == (405, "GET, HEAD", 0)


async def test_without_metadata_nothing_is_at_its_place() -> None:
    shop = Shop(MCPServer("Shop", auth=Auth(KEYS, lists="open")))
    assert (await shop.caller().get(path=ROOT)).status == 404


APP = "https://app.example.com"


async def preflight(shop: Shop, origin: str, path: str = "/mcp") -> Answer:
    """Ask as a browser does before it calls."""
    pairs = [
        ("host", "127.0.0.1:8000"),
        ("origin", origin),
        ("access-control-request-method", "POST"),
        ("access-control-request-headers", "authorization,content-type,mcp-session-id,mcp-param-region"),
    ]
    return await exchange(shop.mcp, "OPTIONS", pairs, path=path).answer()


@rules.verifies(rules.U2)
@pytest.mark.parametrize("path", ["/mcp", ROOT])
async def test_a_browser_on_an_allowed_page_may_send_credentials_and_read_the_challenge(path: str) -> None:
    """A client in a browser can do the whole discovery."""
    shop = open_shop(anonymous=False, origins=(APP + "/",))
    before = await preflight(shop, APP, path)
    assert (before.status, before.body) == (204, b"")
    assert before.header("access-control-allow-origin") == APP
    assert before.header("access-control-allow-headers") == "authorization, *"
    assert before.header("access-control-allow-methods") == "GET, POST, DELETE"
    assert before.header("vary") == "origin"
    answer = await shop.caller().call("whoami", headers={"origin": APP})
    assert answer.status == 401
    assert answer.header("access-control-allow-origin") == APP
    assert answer.header("access-control-expose-headers") == "dpop-nonce, mcp-session-id, retry-after, www-authenticate"
    assert answer.header("access-control-allow-credentials") is None
    metadata = await shop.caller().get({"origin": APP}, path=ROOT)
    assert (metadata.status, metadata.header("access-control-allow-origin")) == (200, APP)


@rules.verifies(rules.THREAT_2)
async def test_pages_of_other_origins_are_told_nothing() -> None:
    shop = open_shop(origins=(APP,))
    for origin in ("https://evil.example", APP + ".evil.example", "null"):
        answer = await preflight(shop, origin)
        assert answer.status == 403
        assert answer.header("access-control-allow-origin") is None
        assert answer.header("vary") == "origin"


async def test_every_origin_is_every_origin_and_hosts_are_checked_all_the_same() -> None:
    shop = open_shop(origins=("*",))
    assert (await preflight(shop, "https://anywhere.example")).header("access-control-allow-origin") == "*"
    pairs = [("host", "evil.example"), ("origin", APP), ("access-control-request-method", "POST")]
    assert (await exchange(shop.mcp, "OPTIONS", pairs).answer()).status == 421


async def test_without_origins_there_is_no_word_for_browsers() -> None:
    shop = open_shop()
    answer = await preflight(shop, "https://app.example.com")
    assert answer.status == 403
    assert not [name for name, _ in answer.headers if name.startswith("access-control") or name == "vary"]


async def test_options_that_is_no_preflight_is_405() -> None:
    shop = open_shop(origins=(APP,))
    answer = await exchange(shop.mcp, "OPTIONS", [("host", "127.0.0.1:8000"), ("origin", APP)]).answer()
    assert answer.status == 405


def test_the_resource_is_the_one_of_the_documents() -> None:
    assert RESOURCE.metadata_url == METADATA
