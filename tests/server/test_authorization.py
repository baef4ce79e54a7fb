from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp._auth.access import PRINCIPALS_ONLY, Access
from funcmcp._auth.policy import Auth
from funcmcp._auth.principal import Principal
from funcmcp._protocol.jsonrpc import Request
from funcmcp._protocol.revisions import REVISIONS
from funcmcp._server.authorization import Guard, Refusal
from funcmcp._server.catalog.catalog import Catalog
from funcmcp._server.catalog.lookup import Lookup
from funcmcp._server.dispatch import Server
from funcmcp._server.handlers.resources import may_read
from funcmcp._server.options import ServerOptions
from tests.patience import PATIENCE
from tests.server.parts import KEYS, prompt, resource, template, tool

if TYPE_CHECKING:
    from collections.abc import Sequence

    from funcmcp._server.catalog.features import Prompt, Resource, ResourceTemplate, Tool

ALICE = Principal("alice", "issuer", scopes=frozenset({"read", "mail"}))
ANYBODY = Access(allow_anonymous=True)


def make_guard(lists: Any = "auto", *, scopes: Any = ()) -> Guard:
    return Guard(Catalog(ServerOptions("orders"), lambda _change: None), lists, scopes=scopes)


async def nobody(_credentials: Any) -> None:
    return None


def guarded(
    *features: Tool | Resource | ResourceTemplate | Prompt, lists: Any = "auto", scopes: Sequence[str] = ()
) -> Server:
    auth = Auth(nobody, lists=lists, scopes=scopes)
    server = Server(ServerOptions("orders"), [REVISIONS["2025-11-25"]], keys=KEYS, auth=auth)
    for feature in features:
        server.catalog.add(feature)
    return server


async def decide(server: Server, method: str, params: dict[str, Any], principal: Principal | None) -> Refusal | None:
    assert server.guard is not None
    return await server.guard.check(server.routes.route(Request(1, method, params)), principal)


def calling(name: str = "it") -> dict[str, Any]:
    return {"name": name}


@pytest.mark.parametrize("lists", ["", "all", None])
def test_there_are_four_ways_to_give_lists(lists: Any) -> None:
    with pytest.raises(ValueError, match="'auto', 'open', 'filtered' or 'closed'"):
        make_guard(lists)


def test_scopes_are_a_list_of_scopes() -> None:
    with pytest.raises(TypeError, match="not one string"):
        make_guard(scopes="read")
    with pytest.raises(ValueError, match="is not a scope"):
        make_guard(scopes=["read write"])
    assert make_guard(scopes=["a", "b", "a"]).scopes == ("a", "b")


async def test_by_default_a_feature_is_for_every_principal_and_for_nobody_else() -> None:
    server = guarded(tool("it"))
    assert await decide(server, "tools/call", calling(), None) == Refusal("unauthorized")
    assert await decide(server, "tools/call", calling(), Principal("anybody")) is None


@pytest.mark.parametrize(
    ("method", "params", "feature"),
    [
        ("tools/call", {"name": "it"}, tool("it", access=ANYBODY)),
        ("resources/read", {"uri": "a://it"}, resource("a://it", access=ANYBODY)),
        ("resources/subscribe", {"uri": "a://it"}, resource("a://it", access=ANYBODY)),
        ("resources/read", {"uri": "a://it"}, template("a://{name}", access=ANYBODY)),
        ("prompts/get", {"name": "it"}, prompt("it", access=ANYBODY)),
        ("completion/complete", {"ref": {"type": "ref/prompt", "name": "it"}}, prompt("it", access=ANYBODY)),
        (
            "completion/complete",
            {"ref": {"type": "ref/resource", "uri": "a://{name}"}},
            template("a://{name}", access=ANYBODY),
        ),
    ],
)
async def test_what_is_for_anybody_is_decided_on_the_feature_that_is_meant(
    method: str, params: dict[str, Any], feature: Any
) -> None:
    assert await decide(guarded(feature), method, params, None) is None
    assert await decide(guarded(tool("other", access=ANYBODY)), method, params, None) is not None


async def test_a_resource_goes_before_a_template_that_anybody_may_read() -> None:
    server = guarded(template("a://{name}", access=ANYBODY), resource("a://it"))
    assert await decide(server, "resources/read", {"uri": "a://it"}, None) == Refusal("unauthorized")
    assert await decide(server, "resources/read", {"uri": "a://other"}, None) is None


@pytest.mark.parametrize("lists", ["auto", "open", "filtered", "closed"])
async def test_what_has_no_feature_and_is_not_of_the_conversation_is_for_principals(lists: Any) -> None:
    server = guarded(tool("it", access=ANYBODY), lists=lists)
    assert await decide(server, "tasks/get", {}, None) == Refusal("unauthorized")
    assert await decide(server, "tasks/get", {}, ALICE) is None


async def test_a_feature_that_is_not_there_is_refused_as_one_that_is() -> None:
    server = guarded(tool("it", access=Access(required_scopes=("write",))), scopes=["read"])
    known, unknown = [await decide(server, "tools/call", calling(name), None) for name in ("it", "other")]
    assert known == unknown == Refusal("unauthorized", ("read",))


async def test_where_lists_are_open_nobody_is_told_what_a_feature_needs() -> None:
    server = guarded(tool("it", access=Access(required_scopes=("write",))), lists="open", scopes=["read"])
    assert await decide(server, "tools/call", calling(), None) == Refusal("unauthorized", ("read", "write"))


async def test_all_scopes_are_needed_and_named_with_those_that_the_caller_would_lose() -> None:
    server = guarded(
        tool("it", access=Access(required_scopes=("write", "admin"))),
        tool("other", access=Access(required_scopes=("read",))),
        scopes=["basic"],
    )
    refusal = await decide(server, "tools/call", calling(), ALICE)
    assert refusal == Refusal("forbidden", ("basic", "write", "admin", "read"))
    whole = Principal("bob", scopes=frozenset({"basic", "write", "admin"}))
    assert await decide(server, "tools/call", calling(), whole) is None


async def test_anybody_is_anybody_even_without_the_scopes_of_the_server() -> None:
    server = guarded(tool("it", access=ANYBODY), scopes=["basic"])
    assert await decide(server, "tools/call", calling(), ALICE) is None
    assert await decide(server, "ping", {}, ALICE) is None
    server = guarded(tool("it"), scopes=["basic"])
    assert await decide(server, "ping", {}, ALICE) == Refusal("forbidden", ("basic",))


@pytest.mark.parametrize("said", [False, None, 1, "yes", object()])
async def test_nothing_but_true_is_a_yes(said: Any) -> None:
    server = guarded(tool("it", access=Access(authorize=lambda _: said)))
    assert await decide(server, "tools/call", calling(), ALICE) == Refusal("denied")


async def test_a_yes_may_be_waited_for() -> None:
    asked: list[Principal] = []

    async def allow(principal: Principal) -> bool:
        asked.append(principal)
        return True

    server = guarded(tool("it", access=Access(required_scopes=("read",), authorize=allow)))
    assert await decide(server, "tools/call", calling(), ALICE) is None
    assert asked == [ALICE]
    assert await decide(server, "tools/call", calling(), Principal("bob")) == Refusal("forbidden", ("read",))
    assert await decide(server, "tools/call", calling(), None) == Refusal("unauthorized")
    assert asked == [ALICE]


async def test_a_function_that_fails_is_a_no_and_stands_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    def allow(_principal: Principal) -> bool:
        raise LookupError("no such row")

    server = guarded(tool("it", access=Access(authorize=allow)))
    assert await decide(server, "tools/call", calling(), ALICE) == Refusal("denied")
    assert "LookupError: no such row (error_id=" in caplog.text
    assert "feature=authorize" in caplog.text


async def test_a_client_that_leaves_ends_the_wait_for_a_decision() -> None:
    asked = asyncio.Event()

    async def allow(_principal: Principal) -> bool:
        asked.set()
        await asyncio.Event().wait()
        return True

    server = guarded(tool("it", access=Access(authorize=allow)))
    deciding = asyncio.ensure_future(decide(server, "tools/call", calling(), ALICE))
    await asyncio.wait_for(asked.wait(), PATIENCE)
    deciding.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(deciding, PATIENCE)


@pytest.mark.parametrize(
    ("lists", "anonymous", "anybody_lists", "anybody_begins"),
    [
        ("open", False, True, True),
        ("open", True, True, True),
        ("filtered", False, False, False),
        ("filtered", True, True, True),
        ("closed", False, False, False),
        ("closed", True, False, True),
    ],
)
async def test_nobody_in_particular_gets_lists_and_begins_where_there_is_something_for_anybody(
    lists: Any, anonymous: bool, anybody_lists: bool, anybody_begins: bool
) -> None:
    server = guarded(tool("it", access=Access(allow_anonymous=anonymous)), lists=lists)
    for method in ("tools/list", "resources/list", "resources/templates/list", "prompts/list"):
        assert (await decide(server, method, {}, None) is None) is anybody_lists
        assert await decide(server, method, {}, ALICE) is None
    for method in ("initialize", "server/discover", "ping", "logging/setLevel", "subscriptions/listen"):
        assert (await decide(server, method, {}, None) is None) is anybody_begins


async def test_a_method_that_the_server_does_not_offer_is_refused_as_one_that_does_not_exist() -> None:
    server = guarded(tool("it", access=ANYBODY))
    for method in ("resources/unsubscribe", "resources/nonsense"):
        assert await decide(server, method, {"uri": "a://it"}, None) == Refusal("unauthorized")
        assert await decide(server, method, {"uri": "a://it"}, ALICE) is None


async def test_it_is_noticed_when_the_last_thing_for_anybody_goes() -> None:
    server = guarded(tool("it", access=ANYBODY))
    assert await decide(server, "ping", {}, None) is None
    server.catalog.tools.remove("it")
    assert await decide(server, "ping", {}, None) == Refusal("unauthorized")


async def test_nobody_reads_what_nothing_serves() -> None:
    server = guarded(resource("a://it"))
    assert server.guard is not None
    lookup = Lookup(server.catalog)
    assert await may_read("a://it", ALICE, lookup, server.guard)
    assert not await may_read("a://it", None, lookup, server.guard)
    assert not await may_read("a://other", ALICE, lookup, server.guard)


def test_a_refusal_says_what_is_needed_and_nothing_of_the_feature() -> None:
    assert Refusal("forbidden", ("a", "b")).error().payload() == {
        "code": -32600,
        "message": "More scopes are needed.",
        "data": {"requiredScopes": ["a", "b"]},
    }
    assert Refusal("unauthorized", ("a",)).error().data is None
    assert Refusal("denied").error().data is None


def test_a_server_without_a_guard_has_features_as_before() -> None:
    made = tool("it")
    assert made.access is PRINCIPALS_ONLY
    server = Server(ServerOptions("orders"), [REVISIONS["2025-11-25"]], keys=KEYS)
    server.catalog.add(made)
    assert server.guard is None
    assert server.routes.route(Request(1, "tools/call", calling())).require_feature() is made
    assert server.results.cache_scope == "public"
