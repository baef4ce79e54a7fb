"""Middleware that caches results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from funcmcp import Context, HTTPOptions, MCPServer
from funcmcp._auth.principal import Principal
from funcmcp._protocol.errors import ToolError
from funcmcp.auth import APIKeys
from funcmcp.client import Client, ClientError
from funcmcp.content import ResourceLink  # noqa: TC001 - read at run time
from funcmcp.http import Uploads
from funcmcp.middleware import cache_results
from funcmcp.state import MemoryState, StateFullError, StoreUnavailableError
from funcmcp.testing import Client as MemoryClient
from funcmcp.testing import accept, decline
from tests import schemas
from tests.server.parts import KEYS, answer, context, prompt, resource, server, template, text_result, tool

if TYPE_CHECKING:
    from funcmcp._server.dispatch import Server


pytestmark = pytest.mark.branches("A cache uses the name and the keys of its server, and is closed with it.")


class Counting:
    """A tool that counts its calls and answers with the count."""

    def __init__(self) -> None:
        self.calls = 0

    async def __call__(self, _context: Any, arguments: dict[str, Any]) -> dict[str, Any]:
        self.calls += 1
        if arguments.get("fail"):
            raise ToolError("failed")
        return text_result(arguments.get("text") or str(self.calls))


class Caller:
    """The HTTP request of a principal, as far as the server reads it."""

    def __init__(self, subject: str) -> None:
        self.principal = Principal(subject)
        self.caller = None


def counted(**options: Any) -> tuple[Server, Counting]:
    counting = Counting()
    cache = cache_results(60, ["count"], **options)
    return server(tool("count", counting), tool("other", counting), middleware=[cache]), counting


async def call(served: Server, name: str = "count", subject: str | None = None, **arguments: Any) -> dict[str, Any]:
    asked = context("tools/call", {"name": name, "arguments": arguments, "_meta": {"n": len(arguments)}})
    if subject is not None:
        asked.http = Caller(subject)  # type: ignore[assignment]
    result: dict[str, Any] = (await answer(served, asked))["result"]
    return result


async def test_the_same_request_is_answered_from_the_cache() -> None:
    served, counting = counted()
    for _ in range(3):
        assert await call(served, a=1) == text_result("1")
    assert await call(served, a=2) == text_result("2")
    assert counting.calls == 2


async def test_only_the_chosen_features_are_cached() -> None:
    served, counting = counted()
    for _ in range(2):
        await call(served, "other")
    assert counting.calls == 2


async def test_each_principal_has_its_own_results() -> None:
    served, counting = counted()
    for subject in ("alice", "bob", None, "alice", "bob", None):
        await call(served, subject=subject)
    assert counting.calls == 3


async def test_a_call_that_may_become_a_task_is_not_cached() -> None:
    served, counting = counted()
    for _ in range(2):
        await answer(served, context("tools/call", {"name": "count", "arguments": {}, "task": {}}))
    assert counting.calls == 2


async def test_errors_are_not_cached() -> None:
    served, counting = counted()
    for _ in range(2):
        assert (await call(served, fail=True))["isError"] is True
    assert counting.calls == 2


async def test_a_result_expires(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr("funcmcp._middleware.response_cache.time.monotonic", lambda: now[0])
    served, counting = counted()
    await call(served)
    now[0] += 59
    await call(served)
    assert counting.calls == 1
    now[0] += 1
    await call(served)
    assert counting.calls == 2
    await call(served)
    assert counting.calls == 2


async def test_the_result_that_was_used_longest_ago_leaves_a_full_cache() -> None:
    served, counting = counted(max_bytes=9000)
    for number in (1, 2):
        await call(served, text=str(number) * 1500)
    await call(served, text="1" * 1500)  # is used again
    await call(served, text="3" * 1500)
    assert counting.calls == 3
    await call(served, text="1" * 1500)
    assert counting.calls == 3
    await call(served, text="2" * 1500)
    assert counting.calls == 4


async def test_a_result_larger_than_the_cache_is_not_kept() -> None:
    served, counting = counted(max_bytes=1000)
    for _ in range(2):
        await call(served, text="x" * 1000)
    assert counting.calls == 2


@pytest.mark.parametrize("revision", schemas.REVISIONS)
async def test_resources_templates_and_prompts_are_cached_in_each_revision(revision: str) -> None:
    reads: list[str] = []

    async def read(_context: Any, uri: str, _values: Any) -> dict[str, Any]:
        reads.append(uri)
        return {"contents": [{"uri": uri, "text": str(len(reads))}]}

    async def get(_context: Any, arguments: dict[str, str]) -> dict[str, Any]:
        reads.append(str(arguments))
        return {"messages": []}

    served = server(
        resource("menu://today", read),
        template("menu://day/{day}", read),
        prompt("praise", get),
        middleware=[cache_results(60, ["menu://today", "menu://day/{day}", "praise"])],
    )
    for _ in range(2):
        for method, params in (
            ("resources/read", {"uri": "menu://today"}),
            ("resources/read", {"uri": "menu://day/monday"}),
            ("prompts/get", {"name": "praise", "arguments": {"a": "b"}}),
        ):
            assert "result" in await answer(served, context(method, params, revision=revision))
    assert reads == ["menu://today", "menu://day/monday", "{'a': 'b'}"]


@pytest.mark.parametrize(("seconds", "max_bytes"), [(0, 1), (-1, 1), (float("nan"), 1), (1, 0)])
def test_a_cache_has_a_time_and_a_size(seconds: float, max_bytes: int) -> None:
    with pytest.raises(ValueError, match="must be above 0"):
        cache_results(seconds, ["count"], max_bytes=max_bytes)


def test_features_are_a_list() -> None:
    with pytest.raises(TypeError, match="not one string"):
        cache_results(1, "count")


class SharedStore(MemoryState):
    """A store that two processes share, and that may be away."""

    shared = True
    is_away = is_full = is_closed = False

    async def get(self, key: str) -> str | None:
        if self.is_away:
            raise StoreUnavailableError
        return await super().get(key)

    async def take(self, key: str, value: str, seconds: float) -> bool:
        if self.is_full:
            raise StateFullError("full")
        return await super().take(key, value, seconds)

    async def aclose(self) -> None:
        self.is_closed = True


STORES = [None, SharedStore]


@pytest.mark.parametrize("store", STORES)
async def test_the_scope_says_who_shares_a_result(store: Any) -> None:
    for scope, calls in (("caller", 3), ("public", 1)):
        served, counting = counted(scope=scope, store=None if store is None else store())
        for subject in ("alice", "bob", None, "alice", "bob", None):
            await call(served, subject=subject)
        assert counting.calls == calls


@pytest.mark.parametrize("store", STORES)
async def test_the_author_invalidates_the_results_of_one_feature_or_of_all(store: Any) -> None:
    counting = Counting()
    cache = cache_results(60, ["count", "other"], store=None if store is None else store())
    served = server(tool("count", counting), tool("other", counting), middleware=[cache])

    async def both() -> list[str]:
        return [(await call(served, name))["content"][0]["text"] for name in ("count", "other")]

    assert await both() == await both() == ["1", "2"]
    await cache.invalidate("count")
    assert await both() == ["3", "2"]
    await cache.invalidate("count")
    assert await both() == await both() == ["4", "2"]
    await cache.invalidate()
    assert await both() == ["5", "6"]
    with pytest.raises(ValueError, match=r"The cache has no feature 'more'\. Its features: count, other\."):
        await cache.invalidate("more")


@pytest.mark.parametrize("store", STORES)
async def test_a_call_that_began_before_an_invalidation_leaves_nothing_behind(store: Any) -> None:
    calls = 0

    async def change(_context: Any, _arguments: dict[str, Any]) -> dict[str, Any]:
        nonlocal calls
        calls += 1
        if calls == 1:
            await cache.invalidate("count")
        return text_result(str(calls))

    cache = cache_results(60, ["count"], store=None if store is None else store())
    served = server(tool("count", change), middleware=[cache])
    assert [(await call(served))["content"][0]["text"] for _ in range(3)] == ["1", "2", "2"]


async def test_two_processes_share_a_store_and_two_servers_do_not() -> None:
    store, counting = SharedStore(), Counting()
    caches = [cache_results(60, ["count"], store=store) for _ in range(3)]

    async def plain(context: Any, call_next: Any) -> Any:
        return await call_next(context)

    first, second, other = (server(tool("count", counting), middleware=[plain, cache]) for cache in caches)
    caches[2]._results.bind("menu", KEYS)
    assert await call(first) == await call(second) == text_result("1")
    assert await call(other) == text_result("2")
    await first.close_middleware()
    assert store.is_closed


async def test_a_store_has_a_slot_for_each_result_and_keeps_no_larger_one() -> None:
    store = SharedStore()
    served, counting = counted(store=store, max_bytes=4000, max_result_bytes=1000)
    for number in range(40):
        await call(served, text=str(number))
    assert len(store) == 4
    assert counting.calls == 40
    for _ in range(2):
        await call(served, text="x" * 1000)
    assert counting.calls == 42


async def test_without_its_store_a_server_answers_without_results_that_are_kept() -> None:
    store = SharedStore()
    served, counting = counted(store=store)
    store.is_full = True
    for _ in range(2):
        await call(served)
    store.is_full, store.is_away = False, True
    for _ in range(2):
        await call(served)
    assert counting.calls == 4
    store.is_away = False
    for _ in range(2):
        await call(served)
    assert counting.calls == 5


async def test_a_slot_that_can_not_be_read_is_replaced() -> None:
    store = SharedStore()
    served, counting = counted(store=store, max_bytes=1)
    await call(served)
    [key] = list(store._records)
    await store.remove(key)
    await store.take(key, "0" * 32 + '{"v": 2}', 60)
    for _ in range(2):
        await call(served)
    assert counting.calls == 2


async def test_a_cache_belongs_to_one_server_and_can_not_be_inside_another_middleware() -> None:
    cache = cache_results(60, ["count"], store=SharedStore())
    served = server(tool("count", Counting()), middleware=[cache.__call__])
    answered = await answer(served, context("tools/call", {"name": "count", "arguments": {}}))
    assert answered["error"]["code"] == -32603
    cache.bind("menu", KEYS)
    with pytest.raises(ValueError, match=r"belongs to one server, and this one to menu\. Call cache_results again"):
        server(middleware=[cache])


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"scope": "everyone"}, "scope must be 'caller' or 'public'"),
        ({"max_result_bytes": -1}, "must be above 0"),
        ({"store": "redis"}, "store must be a store of state"),
    ],
)
def test_options_are_checked(options: dict[str, Any], error: str) -> None:
    with pytest.raises((ValueError, TypeError), match=error):
        cache_results(1, ["count"], **options)


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_a_public_result_is_not_for_callers_without_the_right_to_the_feature(revision: str) -> None:
    keys = APIKeys({"ada": "a-key-of-ada-for-tests", "bob": "a-key-of-bob-for-tests"}, scopes={"ada": ["salaries"]})
    mcp = MCPServer("Pay", auth=keys, middleware=[cache_results(60, ["salaries"], scope="public")])
    mcp.tool("salaries", scopes=["salaries"])(lambda: "secret")
    for key in ("ada", "bob"):
        async with Client(mcp, headers={"x-api-key": f"a-key-of-{key}-for-tests"}, revision=revision) as client:
            if key == "ada":
                assert (await client.call_tool("salaries")).text == "secret"
            else:
                with pytest.raises(ClientError, match="403"):
                    await client.call_tool("salaries")


async def test_a_public_cache_does_not_keep_a_result_whose_whole_is_stored_for_its_caller() -> None:
    keys = {"ada": "key-of-ada-16-chars", "ben": "key-of-ben-16-chars"}
    mcp = MCPServer("Shop", auth=APIKeys(keys), middleware=[cache_results(60, ["get"], scope="public")])

    @mcp.tool(result_characters=2000)
    def get() -> str:
        return "One sentence. " * 1000

    texts = set()
    for key in keys.values():
        async with Client(mcp, headers={"x-api-key": key}) as client:
            result = await client.call_tool("get")
            link = result["content"][-1]["uri"]
            texts.add((await client.read_resource(link)).text)
    assert texts == {"One sentence. " * 1000}


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
@pytest.mark.parametrize("scope", ["caller", "public"])
async def test_a_result_that_is_kept_does_not_replace_a_persons_yes(scope: Any, revision: str) -> None:
    deleted = []
    mcp = MCPServer("Shop", middleware=[cache_results(60, ["delete"], scope=scope)])

    @mcp.tool(confirm="Delete {name}?", confirm_otherwise="run")
    def delete(name: str) -> str:
        deleted.append(name)
        return "deleted"

    for elicit in (None, accept(True), decline):
        async with MemoryClient(mcp, revision=revision, elicit=elicit) as client:
            assert (await client.call_tool("delete", {"name": "tea"})).is_error == (elicit is decline)
    assert deleted == ["tea", "tea"]


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
@pytest.mark.parametrize("is_mounted", [False, True])
async def test_a_result_with_the_answer_of_a_person_is_not_kept(is_mounted: bool, revision: str) -> None:
    async def note(context: Any, call_next: Any) -> Any:
        return await call_next(context)

    mcp = MCPServer("Shop", middleware=[cache_results(60, ["greet"])])
    greeter = MCPServer("Greeter", middleware=[note]) if is_mounted else mcp

    @greeter.tool
    async def greet(context: Context) -> str:
        return f"Hello {(await context.elicit('Your name?', str)).content}"

    if is_mounted:
        mcp.mount(greeter)
    for name in ("Ada", "Bob"):
        async with MemoryClient(mcp, revision=revision, elicit=accept(name)) as client:
            assert (await client.call_tool("greet")).text == f"Hello {name}"


async def test_a_link_to_a_file_of_the_caller_is_not_kept() -> None:
    mcp = MCPServer("Shop", http=HTTPOptions(uploads=Uploads()), middleware=[cache_results(60, ["export"])])

    @mcp.tool
    async def export(context: Context) -> ResourceLink:
        return await context.link_file(b"tea", name="tea.txt")

    async with Client(mcp) as client:
        links = {(await client.call_tool("export"))["content"][0]["uri"] for _ in range(2)}
    assert len(links) == 2
