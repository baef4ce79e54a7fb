"""State of callers: whose it is on each transport, its store, its warnings, its end, and mounted servers."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
from pydantic import BaseModel

from funcmcp import Context, HTTPOptions, Limits, MCPError, MCPServer, RegistrationError
from funcmcp._adapters.azure.triggers.invocation import Invocation
from funcmcp._adapters.azure.triggers.registration import _answer
from funcmcp._serving.composition import runtime_of
from funcmcp._state.caller_values import ValueOwner
from funcmcp._transports.connection import Connection
from funcmcp.auth import APIKeys
from funcmcp.client import Client
from funcmcp.content import JSONRPCResponse, ToolResult
from funcmcp.middleware import cache_results
from funcmcp.state import MemoryState, StateHandle, StoreUnavailableError
from funcmcp.transforms import ArgumentChange, ToolChange, ToolTransform
from tests.instances import INITIALIZE, per_request
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

pytestmark = pytest.mark.branches("Owners of state, also those of tasks, take every way.")

ADA = ValueOwner("ada")
URL = "http://orders.test/mcp"
KEYS = {"ada": "a-key-of-ada-for-tests", "bob": "a-key-of-bob-for-tests"}


class Cart(BaseModel):
    items: list[str] = []


@dataclass
class Position:
    x: int
    y: int


def shop(**options: Any) -> MCPServer:
    mcp = MCPServer("Shop", http=HTTPOptions(allowed_hosts=["orders.test"]), **options)

    @mcp.tool(allow_anonymous=True)
    async def add(item: str, context: Context, handle: StateHandle = None) -> list[str]:
        items: list[str] = await context.state.change("cart", lambda items: [*items, item], [])
        return items

    @mcp.tool(allow_anonymous=True)
    async def empty(context: Context, handle: StateHandle = None) -> str:
        await context.state.delete("cart")
        return "empty"

    @mcp.tool(allow_anonymous=True)
    async def show(context: Context, handle: StateHandle = None) -> list[str]:
        items: list[str] = await context.state.get("cart", [])
        return items

    @mcp.tool(allow_anonymous=True, task="optional")
    async def bare(context: Context) -> str:
        return str(await context.state.change("cart", lambda items: [*items, "bare"], []))

    @mcp.prompt(allow_anonymous=True)
    async def shopping(context: Context) -> str:
        return f"Buy {await context.state.get('cart')}"

    @mcp.resource("cart://{name}", allow_anonymous=True)
    async def cart(name: str, context: Context) -> Any:
        return await context.state.get(name)

    return mcp


class Caller:
    """An HTTP client of 2026-07-28, which sends nothing about itself but a key."""

    def __init__(self, http: httpx2.AsyncClient, key: str | None) -> None:
        self._http = http
        self._headers = {} if key is None else {"x-api-key": key}

    async def call(self, tool: str, *, rounds: Any = None, **arguments: Any) -> dict[str, Any]:
        message, headers = per_request("tools/call", name=tool, arguments=arguments, **(rounds or {}))
        named = {name.replace("_", "-"): value for name, value in headers.items()} | self._headers
        named |= {"accept": "application/json, text/event-stream"}
        response = await self._http.post(URL, json={"jsonrpc": "2.0", **message}, headers=named)
        result: dict[str, Any] = response.json()["result"]
        return result


@asynccontextmanager
async def http_caller(mcp: MCPServer, key: str | None = None, address: str = "192.0.2.7") -> AsyncIterator[Caller]:
    transport = httpx2.ASGITransport(app=mcp, client=(address, 5000))
    async with httpx2.AsyncClient(transport=transport) as http:
        yield Caller(http, key)


def handle_in(result: dict[str, Any]) -> str:
    """Return the handle that a result names."""
    [text] = [block["text"] for block in result["content"] if block["text"].startswith("State was stored")]
    match = re.fullmatch(r'State was stored\. .* pass handle: "(\S{24})"\.', text)
    assert match is not None, text
    return match[1]


async def test_an_anonymous_caller_of_2026_gets_a_handle_that_the_next_calls_use() -> None:
    async with http_caller(shop()) as caller:
        first = await caller.call("add", item="pizza")
        handle = handle_in(first)
        assert first["structuredContent"] == {"result": ["pizza"]}
        second = await caller.call("add", item="cola", handle=handle)
        assert second["structuredContent"] == {"result": ["pizza", "cola"]}
        assert len(second["content"]) == 1
        assert (await caller.call("show"))["structuredContent"] == {"result": []}
        assert handle_in(await caller.call("add", item="tea")) != handle


async def test_no_anonymous_caller_gets_the_handle_of_another_one_from_a_cache_of_results() -> None:
    async with http_caller(shop(middleware=[cache_results(60, ["add"])])) as caller:
        handles = {handle_in(await caller.call("add", item="pizza")) for _ in range(2)}
    assert len(handles) == 2


async def test_a_result_and_an_error_have_the_name_of_the_handle_that_clients_see() -> None:
    mcp = shop()
    names = {"handle": ArgumentChange("cart")}
    mcp.add_transform(ToolTransform({"add": ToolChange(arguments=names)}))
    mcp.add_transform(ToolTransform({"add": ToolChange(arguments={"cart": ArgumentChange("basket")})}))
    async with http_caller(mcp) as caller:
        first = await caller.call("add", item="pizza")
        assert 'pass basket: "' in first["content"][1]["text"]
        result = await caller.call("add", item="pizza", basket="invented")
        assert result["content"][0]["text"].startswith("The basket is unknown, or has expired. Leave out")


@pytest.mark.parametrize("handle", ["invented", "x" * 24, "x" * 200])
async def test_a_handle_that_does_not_exist_is_an_error_that_says_what_to_do(handle: str) -> None:
    async with http_caller(shop()) as caller:
        for tool, arguments in (("add", {"item": "pizza"}), ("show", {}), ("empty", {})):
            result = await caller.call(tool, handle=handle, **arguments)
            assert result["isError"]
            assert result["content"][0]["text"].startswith("The handle is unknown, or has expired. Leave out")


async def test_a_handle_lasts_when_its_last_value_is_deleted_and_an_empty_one_is_none() -> None:
    async with http_caller(shop()) as caller:
        handle = handle_in(await caller.call("add", item="pizza", handle=""))
        await caller.call("empty", handle=handle)
        assert (await caller.call("show", handle=handle))["structuredContent"] == {"result": []}
        assert (await caller.call("empty"))["content"] == [{"type": "text", "text": "empty"}]


async def test_a_principal_has_its_own_state_in_both_eras_and_needs_no_handle() -> None:
    mcp = shop(auth=APIKeys(KEYS))
    headers = {"x-api-key": KEYS["ada"]}
    async with (
        http_caller(mcp, KEYS["ada"]) as ada,
        http_caller(mcp, KEYS["bob"]) as bob,
        http_caller(mcp) as anonymous,
        Client(mcp, headers=headers, revision="2025-11-25") as earlier,
    ):
        added = await ada.call("add", item="pizza")
        assert len(added["content"]) == 1
        assert (await bob.call("show"))["structuredContent"] == {"result": []}
        assert (await earlier.call_tool("show")).structured_content == {"result": ["pizza"]}
        handle = handle_in(await anonymous.call("add", item="tea"))
        refused = await ada.call("show", handle=handle)
        assert refused["content"][0]["text"].startswith("The state of this caller needs no handle.")


async def test_an_anonymous_session_has_its_own_state() -> None:
    mcp = shop()
    async with (
        Client(mcp, revision="2025-11-25") as here,
        Client(mcp, revision="2025-11-25") as there,
    ):
        assert len((await here.call_tool("add", {"item": "pizza"})).content) == 1
        await here.call_tool("add", {"item": "cola"})
        assert (await here.call_tool("show")).structured_content == {"result": ["pizza", "cola"]}
        assert (await there.call_tool("show")).structured_content == {"result": []}


async def test_a_client_in_memory_and_the_author_are_the_user_of_the_process_in_every_feature() -> None:
    mcp = shop()
    async with Client(mcp) as client:
        await client.call_tool("add", {"item": "pizza"})
        prompt = await client.get_prompt("shopping")
        assert prompt.messages[0]["content"]["text"] == "Buy ['pizza']"
        assert (await client.read_resource("cart://cart")).contents[0]["text"] == '["pizza"]'
    assert (await mcp.call_tool("show")).structured_content == {"result": ["pizza"]}


async def test_without_a_session_or_a_handle_it_is_not_known_who_calls() -> None:
    async with http_caller(shop()) as caller:
        result = await caller.call("bare")
    assert result["isError"]
    assert "nothing says who calls" in result["content"][0]["text"]
    assert "funcmcp.state.StateHandle" in result["content"][0]["text"]


@pytest.mark.parametrize("key", [None, "ada"])
async def test_a_task_has_the_state_of_its_caller(key: str | None) -> None:
    mcp = shop(auth=APIKeys(KEYS))
    headers = {} if key is None else {"x-api-key": KEYS[key]}
    async with mcp.lifespan(), Client(mcp, headers=headers, revision="2025-11-25") as client:
        await client.call_tool("add", {"item": "pizza"})
        task = await client.start_tool("bare")
        assert (await task.result()).text == "['pizza', 'bare']"
        assert (await client.call_tool("show")).structured_content == {"result": ["pizza", "bare"]}


async def used(function: Callable[[Context], Awaitable[Any]], **options: Any) -> Any:
    """Return what a tool returns that uses the state, or its error."""
    mcp = MCPServer("Shop", show_errors=True, **options)

    @mcp.tool
    async def use(context: Context) -> Any:
        return await function(context)

    result = await mcp.call_tool("use")
    return result.text if result.is_error else result.structured_content or result.text


async def test_values_are_read_as_json_or_as_objects_of_a_type() -> None:
    async def use(context: Context) -> list[Any]:
        state = context.state
        await state.set("cart", Cart(items=["pizza"]))
        await state.set("position", Position(1, 2), ttl=60)
        await state.set("nothing", None)
        cart = await state.get("cart", type=Cart)
        assert cart == Cart(items=["pizza"])
        assert await state.get("position", type=Position) == Position(1, 2)
        assert await state.get("absent", Position(0, 0), type=Position) == Position(0, 0)
        assert await state.get("absent", type=list[dict[str, int]]) is None
        changed = await state.change("cart", lambda cart: Cart(items=[*cart.items, "tea"]), Cart(), type=Cart)
        assert changed == Cart(items=["pizza", "tea"])
        assert await state.names() == ["cart", "nothing", "position"]
        values = [await state.get(name, "absent") for name in await state.names()]
        await state.clear()
        assert await state.names() == []
        assert state.handle is None
        return values

    assert await used(use) == '[{"items":["pizza","tea"]},null,{"x":1,"y":2}]'


@pytest.mark.parametrize(
    ("use", "error"),
    [
        (lambda state: state.set("", 1), "The name of a value must be a string of 1 to 200 bytes"),
        (lambda state: state.get("x" * 201), "The name of a value must be a string of 1 to 200 bytes"),
        (lambda state: state.delete(7), "The name of a value must be a string of 1 to 200 bytes; got 7"),
        (lambda state: state.set("a", object()), "object"),
        (lambda state: state.set("a", 1, ttl=0), "ttl must be a number above 0, and at most 7,776,000 seconds; got 0"),
        (
            lambda state: state.set("a", 1, ttl="1h"),
            "and at most 7,776,000 seconds; got '1h'",
        ),
        (lambda state: state.set("a", "x" * 9000), "Delete values that are not needed, or store less"),
    ],
)
async def test_what_can_not_be_stored_is_an_error_that_says_why(use: Callable[[Any], Any], error: str) -> None:
    async def call(context: Context) -> Any:
        await use(context.state)

    assert error in await used(call, limits=Limits(state_bytes_per_principal=5000))


async def test_a_forgotten_await_is_named_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    mcp = MCPServer("shop")
    forgotten = []

    @mcp.tool
    async def cart(context: Context) -> Any:
        forgotten.append(context.state.get("cart"))
        return forgotten[0]

    assert (await mcp.call_tool("cart")).is_error
    forgotten[0].close()  # Python would warn about it in another test
    assert "JSON can't carry coroutine. Write await before the call that returns it." in caplog.text


async def test_the_function_of_a_change_must_not_be_async() -> None:
    async def more(items: list[int]) -> list[int]:
        return [*items, 1]

    async def call(context: Context) -> Any:
        _ = await context.state.change("items", more, [])

    assert "The function of change must not be async. Await before change." in await used(call)


async def test_a_stored_value_of_another_type_is_an_error_of_the_author() -> None:
    async def use(context: Context) -> Any:
        await context.state.set("cart", {"items": "pizza"})
        return await context.state.get("cart", type=Cart)

    error = await used(use)
    assert error.startswith("The value 'cart' of the caller does not fit")
    assert "Another version of the tool may have stored it" in error


async def test_parallel_calls_lose_no_change() -> None:
    mcp = shop()
    async with Client(mcp) as client:
        await asyncio.gather(*(client.call_tool("add", {"item": str(number)}) for number in range(20)))
        items = (await client.call_tool("show")).structured_content
    assert sorted(map(int, items["result"])) == list(range(20))


async def test_a_plain_function_waits_for_its_state() -> None:
    mcp = MCPServer("Shop")

    @mcp.tool
    def count(context: Context) -> int:
        count: int = context.wait(context.state.change("count", lambda count: count + 1, 0))
        return count

    assert [(await mcp.call_tool("count")).text for _ in range(2)] == ["1", "2"]


async def test_results_of_every_form_name_a_new_handle_but_a_complete_response() -> None:
    mcp = MCPServer("Shop", http=HTTPOptions(allowed_hosts=["orders.test"]))

    @mcp.tool
    async def texts(context: Context, handle: StateHandle = None) -> ToolResult:
        await context.state.set("a", 1)
        return ToolResult(["stored"], structured_content={"handle": context.state.handle})

    @mcp.tool
    async def response(context: Context, handle: StateHandle = None) -> JSONRPCResponse:
        await context.state.set("a", 1)
        return {"jsonrpc": "2.0", "id": 1, "result": {"content": [], "resultType": "complete"}}

    async with http_caller(mcp) as caller:
        result = await caller.call("texts")
        assert result["structuredContent"] == {"handle": handle_in(result)}
        assert (await caller.call("response"))["content"] == []


def test_a_handle_is_an_optional_argument_of_a_tool_with_a_context() -> None:
    mcp = MCPServer("Shop")

    async def required(handle: StateHandle, context: Context) -> None: ...
    async def without_context(handle: StateHandle = None) -> None: ...
    async def two(context: Context, one: StateHandle = None, other: StateHandle = None) -> None: ...
    async def prompt(context: Context, handle: StateHandle = None) -> None: ...

    mcp.prompt(prompt)
    for function, error in (
        (required, "Write handle: StateHandle = None in required"),
        (without_context, "takes a StateHandle and no Context"),
        (two, "has more than one StateHandle. Remove 'other'"),
    ):
        mcp.tool(function)
        tool = runtime_of(mcp).server.catalog.tools.get(function.__name__)
        assert tool is not None
        with pytest.raises(RegistrationError, match=error):
            tool.describe()
    feature = runtime_of(mcp).server.catalog.prompts.get("prompt")
    assert feature is not None
    with pytest.raises(RegistrationError, match="takes a StateHandle, which only tools can have"):
        feature.describe()


@pytest.fixture
def several(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVER_SOFTWARE", "gunicorn/27")


def test_state_in_the_memory_of_several_processes_has_a_warning(
    several: None, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    above = MCPServer("Above")
    above.mount(shop(), prefix="shop")
    for mcp in (shop(), above):
        caplog.clear()
        runtime_of(mcp).begin()
        [text] = [line for line in caplog.messages if "stores the state of its callers in the memory" in line]
        assert "docs/guides/state.md" in text
    caplog.clear()
    outside = MCPServer("Above", state=OutsideState())
    outside.mount(shop(), prefix="shop")
    for mcp in (outside, shop(state=OutsideState()), MCPServer("Empty")):
        runtime_of(mcp).begin()
    assert "in the memory" not in caplog.text


class OutsideState(MemoryState):
    """A store outside of the process."""

    shared = True
    is_away = is_closed = False

    async def get(self, key: str) -> str | None:
        if self.is_away:
            raise StoreUnavailableError
        return await super().get(key)

    async def aclose(self) -> None:
        self.is_closed = True


@pytest.mark.parametrize("state", ["redis", None, object()])
def test_what_is_no_store_is_refused(state: Any) -> None:
    with pytest.raises(ValueError, match="state must be 'memory' or a store"):
        MCPServer("Orders", state=state)


async def test_the_store_is_checked_by_readiness_and_closed_at_the_end() -> None:
    store = OutsideState()
    runtime = runtime_of(MCPServer("Orders", state=store))
    [check] = runtime._readiness_checks()
    await check()
    store.is_away = True
    with pytest.raises(StoreUnavailableError):
        await check()
    await runtime.aclose()
    assert store.is_closed


async def test_the_store_of_a_mounted_server_is_checked_and_closed_with_the_one_above() -> None:
    store = OutsideState()
    shop = MCPServer("Shop", state=store)
    for name in ("billing", "orders"):
        shop.mount(MCPServer(name, state=store if name == "billing" else OutsideState()), prefix=name)
    runtime = runtime_of(shop)
    assert len(runtime._readiness_checks()) == 2
    await runtime.aclose()
    assert [isinstance(state, OutsideState) and state.is_closed for state in runtime._states()] == [True, True]


async def test_the_memory_of_a_process_is_made_when_it_is_needed_and_has_the_limits_of_the_server() -> None:
    runtime = runtime_of(MCPServer("Orders", limits=Limits(state_bytes=5000, state_values_per_principal=2)))
    assert runtime.state is None
    assert runtime._readiness_checks() == []
    values = runtime.open_values()
    assert runtime.open_values() is values
    assert isinstance(values.store, MemoryState)
    assert (values.store._limit_bytes, values._owner_bytes, values._owner_values) == (5000, 2500, 2)
    assert runtime._readiness_checks() == []
    await runtime.aclose()


async def test_a_mounted_server_uses_the_store_of_the_one_above_and_has_values_of_its_own() -> None:
    store = OutsideState()
    shop, billing, own = MCPServer("Shop", state=store), MCPServer("Billing"), MCPServer("Own", state=MemoryState())
    shop.mount(billing, prefix="billing")
    shop.mount(own, prefix="own")
    above, below = runtime_of(shop).open_values(), runtime_of(billing).open_values()
    assert below.store is store
    assert runtime_of(own).open_values().store is not store
    await above.put(ADA, "cart", b"1", 60)
    assert await below.get(ADA, "cart") is None


def test_state_in_a_store_with_a_random_key_has_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    runtime_of(MCPServer("Orders", state=OutsideState())).on_listening("192.0.2.1")
    assert "its sessions and its state can only be used by this process" in caplog.text


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_while_the_store_is_away_a_tool_and_a_prompt_say_so(
    revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    store = OutsideState()
    async with Client(shop(state=store), revision=revision) as client:
        store.is_away = True
        failed = await client.call_tool("add", {"item": "pizza"})
        assert failed.text == "The store of the server is unavailable now. Try again in a moment."
        assert failed.is_error
        with pytest.raises(MCPError, match="is unavailable now"):
            await client.get_prompt("shopping")
        store.is_away = False
        assert (await client.call_tool("add", {"item": "pizza"})).structured_content == {"result": ["pizza"]}
    assert "Traceback" not in caplog.text


class RemoteState:
    """A store that is not the memory of the process."""

    shared = True
    get = take = replace = remove = aclose = OutsideState.aclose


def test_a_store_without_the_package_that_encrypts_is_an_error_when_the_server_is_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    MCPServer("Shop", state=RemoteState())  # type: ignore[arg-type]
    monkeypatch.setattr("funcmcp._state.seal.find_spec", lambda _: None)
    MCPServer("Shop", state=MemoryState())
    with pytest.raises(ModuleNotFoundError, match=r"RemoteState encrypts what it stores.*funcmcp\[auth\]"):
        MCPServer("Shop", state=RemoteState())  # type: ignore[arg-type]
    with pytest.raises(ModuleNotFoundError, match="RemoteState encrypts what it stores"):
        MCPServer("Shop", middleware=[cache_results(60, ["add"], store=RemoteState())])  # type: ignore[arg-type]


class Connected:
    """A client of a transport with one stream in both directions, such as WebSocket and HTTP+SSE."""

    def __init__(self, mcp: MCPServer) -> None:
        self._answers: asyncio.Queue[Any] = asyncio.Queue()
        self._connection = Connection(runtime_of(mcp).server, self._send)

    async def _send(self, data: bytes) -> None:
        self._answers.put_nowait(json.loads(data))

    async def ask(self, method: str, **params: Any) -> Any:
        request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        await self._connection.receive(json.dumps(request).encode())
        return (await asyncio.wait_for(self._answers.get(), PATIENCE))["result"]


async def test_a_connection_of_the_handshake_era_has_its_own_state() -> None:
    mcp = shop()
    clients = [Connected(mcp), Connected(mcp)]
    for client in clients:
        await client.ask("initialize", **INITIALIZE)
    for items in (["pizza"], ["pizza", "pizza"]):
        result = await clients[0].ask("tools/call", name="add", arguments={"item": "pizza"})
        assert result["structuredContent"] == {"result": items}
    assert (await clients[1].ask("tools/call", name="show"))["structuredContent"] == {"result": []}


async def test_behind_azures_triggers_a_session_has_state_and_a_caller_without_one_a_handle() -> None:
    server = runtime_of(shop()).server

    async def call(tool: str, invocation: dict[str, Any], **arguments: Any) -> dict[str, Any]:
        params = {"name": tool, "arguments": arguments}
        result: dict[str, Any] = (await _answer(server, "tools/call", params, Invocation(invocation)))["result"]
        return result

    await call("add", {"sessionid": "one"}, item="pizza")
    assert (await call("show", {"sessionid": "one"}))["structuredContent"] == {"result": ["pizza"]}
    assert (await call("show", {"sessionid": "two"}))["structuredContent"] == {"result": []}
    handle = handle_in(await call("add", {}, item="tea"))
    assert (await call("show", {}, handle=handle))["structuredContent"] == {"result": ["tea"]}


async def test_a_round_of_questions_begins_with_another_handle() -> None:
    mcp = MCPServer("Shop", http=HTTPOptions(allowed_hosts=["orders.test"]))

    @mcp.tool
    async def order(context: Context, handle: StateHandle = None) -> int:
        orders: int = await context.state.change("orders", lambda orders: orders + 1, 0)
        await context.elicit("Who are you?", str)
        return orders

    async with http_caller(mcp) as caller:
        asked = await caller.call("order")
        [key] = asked["inputRequests"]
        answer = {"action": "accept", "content": {"value": "Ada"}}
        rounds = {"inputResponses": {key: answer}, "requestState": asked["requestState"]}
        ordered = await caller.call("order", rounds=rounds)
        assert ordered["structuredContent"] == {"result": 1}
        assert handle_in(ordered)
