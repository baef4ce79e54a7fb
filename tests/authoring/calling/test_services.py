# ruff: noqa: TC001, TC003 - tools are made of these hints at run time

from __future__ import annotations

import asyncio
import contextvars
import logging
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from typing import Any

import httpx2
import pytest

from funcmcp import Context, MCPError, MCPServer
from funcmcp._authoring.calling.services import Services
from funcmcp._protocol.errors import ToolError
from funcmcp._server.catalog.registry import RegistrationError
from funcmcp._server.run import Run, RunCancelledError
from funcmcp.content import ResourceInfo
from funcmcp.http import Request
from funcmcp.middleware import CallNext, Reply, RequestContext
from funcmcp.testing import Client, accept
from tests.authoring.tool_calls import call, context, schema_of, tool_of
from tests.instances import per_request
from tests.patience import PATIENCE

pytestmark = [
    pytest.mark.every_python("Python's modules read signatures, annotations and docstrings."),
    pytest.mark.branches("Calls outlive their time limit."),
]


class Settings:
    def __init__(self, url: str = "memory") -> None:
        self.url = url


class Database:
    def __init__(self, settings: Settings) -> None:
        self.settings = settings


class Repository:
    def __init__(self, database: Database, size: int = 3) -> None:
        self.database = database
        self.size = size


async def test_a_registered_type_is_injected_and_not_in_the_schema() -> None:
    services = Services()

    def get_user(user_id: int, database: Database, log: logging.Logger) -> str:
        return f"{user_id} {database.settings.url} {log.name}"

    made = tool_of(get_user, services)  # before anything is registered
    services.register_value(Settings, Settings("file"))
    services.register_factory(Database, Database)
    services.register_value(logging.Logger, logging.getLogger("tools"))
    assert list(made.describe()["inputSchema"]["properties"]) == ["user_id"]
    assert (await call(get_user, {"user_id": 1}, services))["content"][0]["text"] == "1 file tools"


async def test_each_request_has_its_own_service_and_the_app_one_for_all() -> None:
    services = Services()
    services.register_factory(Settings, Settings, scope="app")
    services.register_factory(Database, Database)
    seen: list[tuple[Any, Any, Any]] = []

    async def look(first: Database, second: Database, settings: Settings) -> None:
        seen.append((first, second, settings))

    await call(look, {}, services)
    await call(look, {}, services)
    assert seen[0][0] is seen[0][1]
    assert seen[0][0] is not seen[1][0]
    assert seen[0][2] is seen[1][2] is seen[0][0].settings


async def test_an_app_service_is_made_once_under_many_first_calls() -> None:
    services = Services()
    made = []

    async def slowly() -> Settings:
        made.append(1)
        await asyncio.sleep(0)
        return Settings()

    services.register_factory(Settings, slowly, scope="app")

    async def look(settings: Settings) -> str:
        return str(id(settings))

    results = await asyncio.gather(*(call(look, {}, services) for _ in range(10)))
    assert len(made) == 1
    assert all(result == results[0] for result in results)


async def test_generators_clean_up_after_the_request_or_at_the_end() -> None:
    services = Services()
    events: list[str] = []

    def per_request() -> Iterator[Database]:
        events.append("open")
        yield Database(Settings())
        events.append("close")

    async def per_app() -> AsyncIterator[Settings]:
        events.append("start")
        yield Settings()
        events.append("stop")

    services.register_factory(Database, per_request)
    services.register_factory(Settings, per_app, scope="app")

    async def work(database: Database, settings: Settings) -> None:
        events.append("work")

    await call(work, {}, services)
    await call(work, {}, services)
    assert events == ["open", "start", "work", "close", "open", "work", "close"]
    await services.aclose()
    assert events[-1] == "stop"
    await services.aclose()
    assert events.count("stop") == 1
    await call(work, {}, services)
    assert events[-4:] == ["open", "start", "work", "close"]
    await services.aclose()


async def test_a_request_s_services_are_closed_after_a_failure_too() -> None:
    services = Services()
    events: list[str] = []

    async def factory() -> AsyncIterator[Database]:
        try:
            yield Database(Settings())
        finally:
            events.append("close")

    services.register_factory(Database, factory)

    def fail(database: Database) -> None:
        raise LookupError

    with pytest.raises(LookupError):
        await call(fail, {}, services)
    assert events == ["close"]


async def test_a_service_that_is_a_context_manager_itself_is_not_entered() -> None:
    services = Services()

    class Connection:
        def __enter__(self) -> None:
            raise AssertionError

        def __exit__(self, *_: object) -> None:
            raise AssertionError

    services.register_factory(Connection, Connection)

    def use(connection: Connection) -> str:
        return type(connection).__name__

    assert (await call(use, {}, services))["content"][0]["text"] == "Connection"


async def test_factories_get_their_own_parameters_and_keep_their_defaults() -> None:
    services = Services()
    services.register_value(Settings, Settings("x"))
    services.register_factory(Database, Database)
    services.register_factory(Repository, Repository)
    scope = services.scope()
    repository = await scope.get(Repository)
    assert repository.database.settings.url == "x"
    assert repository.size == 3
    await scope.aclose()


async def test_an_override_holds_for_a_block() -> None:
    services = Services()
    services.register_factory(Settings, Settings)
    services.register_value(Database, Database(Settings("real")))

    def look(settings: Settings, database: Database) -> str:
        return f"{settings.url} {database.settings.url}"

    with services.override(Settings, Settings("fake")), services.override(Database, Database(Settings("fake"))):
        assert (await call(look, {}, services))["content"][0]["text"] == "fake fake"
    assert (await call(look, {}, services))["content"][0]["text"] == "memory real"
    with (
        pytest.raises(RegistrationError, match="Repository is not a registered service"),
        services.override(Repository, Repository(Database(Settings()))),
    ):
        pass


async def test_the_last_registration_holds() -> None:
    services = Services()
    services.register_value(Settings, Settings("value"))
    services.register_factory(Settings, lambda: Settings("app"), scope="app")
    assert (await services.scope().get(Settings)).url == "app"
    services.register_factory(Settings, lambda: Settings("request"))
    scope = services.scope()
    assert (await scope.get(Settings)).url == "request"
    await scope.aclose()
    services.register_value(Settings, Settings("value"))
    assert (await services.scope().get(Settings)).url == "value"


async def test_what_is_missing_is_named() -> None:
    services = Services()
    services.register_factory(Database, Database)
    services.register_factory(Repository, Repository, scope="app")
    scope = services.scope()
    with pytest.raises(RegistrationError, match="Database needs 'settings'"):
        await scope.get(Database)
    with pytest.raises(RegistrationError, match="scope 'app' can't use Database"):
        await scope.get(Repository)
    with pytest.raises(RegistrationError, match="int is not a registered service"):
        await scope.get(int)
    with pytest.raises(RegistrationError, match="'request' or 'app'"):
        services.register_factory(Settings, Settings, scope="session")  # type: ignore[arg-type]
    await scope.aclose()


def test_only_types_that_are_registered_are_in_it() -> None:
    services = Services()
    services.register_value(Settings, Settings())
    assert Settings in services
    assert Database not in services
    assert [] not in services


def test_a_spread_argument_is_not_taken_for_a_service() -> None:
    def tool(settings: Settings | None = None) -> None: ...

    services = Services()
    services.register_value(Settings, Settings())
    assert tool_of(tool, services).describe()["inputSchema"] == {"type": "object", "properties": {}}


async def test_a_class_of_c_code_that_tells_no_parameters_is_made_without() -> None:
    services = Services()
    services.register_factory(dict, dict)
    scope = services.scope()
    assert await scope.get(dict) == {}
    await scope.aclose()


async def test_closing_without_services_does_nothing() -> None:
    services = Services()
    await services.aclose()
    await services.scope().aclose()


def test_a_type_that_is_not_registered_stays_an_argument() -> None:
    from tests.authoring.models import Size

    def tool(size: Size) -> None: ...

    assert list(schema_of(tool)["properties"]) == ["size"]


class Unit:
    """A unit of work that notes how it ends."""

    def __init__(self, ends: list[str]) -> None:
        self.ends = ends

    def __call__(self) -> Iterator[Unit]:
        try:
            yield self
        except BaseException as error:
            self.ends.append(type(error).__name__)
            raise
        self.ends.append("commit")


def services_with(ends: list[str]) -> Services:
    services = Services()
    unit = Unit(ends)

    def open_unit() -> Iterator[Unit]:
        yield from unit()

    services.register_factory(Unit, open_unit)
    return services


async def test_a_service_gets_the_exception_with_which_its_call_fails() -> None:
    ends: list[str] = []
    services = services_with(ends)

    async def work(unit: Unit, error: str) -> int:
        if error:
            raise {"LookupError": LookupError, "ToolError": ToolError}[error]
        return 1

    for error, kind in (("LookupError", LookupError), ("ToolError", ToolError)):
        with pytest.raises(kind):
            await call(work, {"error": error}, services)
    await call(work, {"error": ""}, services)
    assert ends == ["LookupError", "ToolError", "commit"]


async def test_a_service_gets_the_failure_of_a_result_and_of_another_service() -> None:
    ends: list[str] = []
    services = services_with(ends)

    def fail(unit: Unit) -> Settings:
        raise OSError("refused")

    services.register_factory(Settings, fail)

    async def wrong(unit: Unit) -> int:
        return "text"  # type: ignore[return-value]

    async def needs(unit: Unit, settings: Settings) -> int:
        return 1

    with pytest.raises(TypeError, match="annotated to return int"):
        await call(wrong, {}, services)
    with pytest.raises(OSError, match="refused"):
        await call(needs, {}, services)
    assert ends == ["TypeError", "OSError"]


async def test_a_failure_after_the_yield_is_the_failure_of_the_call_and_reaches_the_other_services() -> None:
    ends: list[str] = []
    services = services_with(ends)

    async def commit(unit: Unit) -> AsyncIterator[Database]:
        yield Database(Settings())
        raise RuntimeError("the commit failed")

    services.register_factory(Database, commit)

    async def work(database: Database) -> int:
        return 1

    with pytest.raises(RuntimeError, match="the commit failed"):
        await call(work, {}, services)
    assert ends == ["RuntimeError"]


async def test_a_service_may_replace_the_failure_but_not_hide_it() -> None:
    ends: list[str] = []
    services = services_with(ends)

    async def swallow(unit: Unit) -> AsyncIterator[Database]:
        with suppress(LookupError):
            yield Database(Settings())

    async def translate() -> AsyncIterator[Settings]:
        try:
            yield Settings()
        except LookupError as error:
            raise ToolError("There is no such item.") from error

    services.register_factory(Database, swallow)
    services.register_factory(Settings, translate)

    async def hidden(database: Database) -> int:
        raise LookupError

    async def translated(settings: Settings) -> int:
        raise LookupError

    with pytest.raises(LookupError):
        await call(hidden, {}, services)
    with pytest.raises(ToolError, match="There is no such item"):
        await call(translated, {}, services)
    assert ends == ["LookupError"]


async def test_a_service_that_is_registered_again_replaces_the_one_that_is_open() -> None:
    services = Services()
    ends: list[str] = []

    def factory(name: str) -> Callable[[], Iterator[Settings]]:
        def open_settings() -> Iterator[Settings]:
            yield Settings(name)
            ends.append(name)

        return open_settings

    async def look(settings: Settings) -> str:
        return settings.url

    services.register_factory(Settings, factory("first"), scope="app")
    assert (await call(look, {}, services))["content"][0]["text"] == "first"
    services.register_factory(Settings, factory("second"), scope="app")
    assert (await call(look, {}, services))["content"][0]["text"] == "second"
    await services.aclose()
    assert ends == ["second", "first"]


@pytest.mark.parametrize("scope", ["app", "request"])
async def test_services_that_need_each_other_are_refused(scope: Any) -> None:
    services = Services()

    def first(database: Database) -> Settings:
        return database.settings

    services.register_factory(Settings, first, scope=scope)
    services.register_factory(Database, Database, scope=scope)
    for service in (Settings, Database):
        with pytest.raises(RegistrationError, match=r"A service can't depend on itself: .*first"):
            await services.scope().get(service)


def test_each_event_loop_has_its_own_app_services() -> None:
    services = Services()
    loops: list[tuple[str, asyncio.AbstractEventLoop]] = []

    async def connect() -> AsyncIterator[Settings]:
        loops.append(("open", asyncio.get_running_loop()))
        yield Settings()
        loops.append(("close", asyncio.get_running_loop()))

    services.register_factory(Settings, connect, scope="app")

    async def look(settings: Settings) -> str:
        return "seen"

    async def main() -> asyncio.AbstractEventLoop:
        await services.lifespans.enter()
        await call(look, {}, services)
        await call(look, {}, services)
        await services.lifespans.leave()
        return asyncio.get_running_loop()

    first, second = asyncio.run(main()), asyncio.run(main())
    assert loops == [("open", first), ("close", first), ("open", second), ("close", second)]


def server_with(ends: list[str]) -> MCPServer:
    mcp = MCPServer("Units")
    unit = Unit(ends)

    def open_unit() -> Iterator[Unit]:
        yield from unit()

    mcp.services.register_factory(Unit, open_unit)

    @mcp.tool(timeout=0.05)
    async def wait(unit: Unit) -> str:
        await asyncio.Event().wait()
        return "never"

    @mcp.tool(timeout=0.05)
    async def ignore(unit: Unit) -> str:
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        return "too late"

    @mcp.prompt(timeout=0.05)
    async def advice(unit: Unit) -> str:
        await asyncio.Event().wait()
        return "never"

    @mcp.resource("data://x", timeout=0.05)
    async def read(unit: Unit) -> str:
        await asyncio.Event().wait()
        return "never"

    return mcp


async def pass_on(context: Any, call_next: Any) -> Any:
    return await call_next(context)


@pytest.mark.parametrize("depth", [0, 1, 2])
@pytest.mark.parametrize("middleware", [False, True])
async def test_services_of_calls_whose_time_is_up_get_a_timeout_error(depth: int, *, middleware: bool) -> None:
    ends: list[str] = []
    mcp = server_with(ends)
    if middleware:
        mcp.add_middleware(pass_on)
    for _ in range(depth):
        above = MCPServer("Above")
        above.mount(mcp)
        mcp = above
    for name in ("wait", "ignore"):
        result = await mcp.call_tool(name)
        assert (result.is_error, result.text) == (True, "It did not finish within 0.05 seconds (timeout=).")
    for call_feature in (mcp.get_prompt("advice"), mcp.read_resource("data://x")):
        with pytest.raises(MCPError, match="did not finish"):
            await call_feature
    assert ends == ["TimeoutError"] * 4


async def test_a_factory_that_contextlib_decorates_is_a_generator_too() -> None:
    ends: list[str] = []
    services = services_with(ends)

    @asynccontextmanager
    async def open_database(unit: Unit) -> AsyncIterator[Database]:
        yield Database(Settings("async"))

    @contextmanager
    def open_settings(unit: Unit) -> Iterator[Settings]:
        try:
            yield Settings("plain")
        except LookupError:
            ends.append("seen")
            raise

    services.register_factory(Database, open_database)
    services.register_factory(Settings, open_settings)

    async def work(database: Database, settings: Settings) -> str:
        raise LookupError(f"{database.settings.url} {settings.url}")

    with pytest.raises(LookupError, match="async plain"):
        await call(work, {}, services)
    assert ends == ["seen", "LookupError"]


async def test_a_direct_call_that_ignores_its_cancellation_is_cancelled_and_rolls_back() -> None:
    ends: list[str] = []
    mcp = server_with(ends)
    started = asyncio.Event()

    @mcp.tool
    async def stubborn(unit: Unit) -> str:
        started.set()
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        return "too late"

    direct = asyncio.create_task(mcp.call_tool("stubborn"))
    await started.wait()
    direct.cancel()
    with pytest.raises(asyncio.CancelledError):
        await direct
    assert ends == ["CancelledError"]


async def test_a_call_in_the_clean_up_of_a_cancelled_task_commits() -> None:
    ends: list[str] = []
    mcp = server_with(ends)
    started = asyncio.Event()

    @mcp.tool
    async def note(unit: Unit) -> str:
        return "noted"

    async def work() -> str:
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return (await mcp.call_tool("note")).text
        return "never"

    task = asyncio.create_task(work())
    await started.wait()
    task.cancel()
    assert await task == "noted"
    assert ends == ["commit"]


async def test_middleware_opens_services_of_its_own() -> None:
    ends: list[str] = []
    mcp = server_with(ends)

    async def audit(context: RequestContext, call_next: CallNext) -> Reply:
        async with mcp.services.scope() as services:
            await services.get(Unit)
            reply = await call_next(context)
            if context.request.params.get("name") == "refused":
                raise LookupError
            return reply

    @mcp.tool
    async def fine(unit: Unit) -> str:
        return "fine"

    @mcp.tool
    async def refused(unit: Unit) -> str:
        return "fine"

    mcp.add_middleware(audit)
    assert (await mcp.call_tool("fine")).text == "fine"
    with pytest.raises(MCPError, match="Internal error"):
        await mcp.call_tool("refused")
    assert ends == ["commit", "commit", "commit", "LookupError"]


async def test_a_commit_of_middleware_that_fails_replaces_the_answer() -> None:
    mcp = MCPServer("Units")

    def commit() -> Iterator[Database]:
        yield Database(Settings())
        raise RuntimeError("the commit failed")

    mcp.services.register_factory(Database, commit)

    async def audit(context: RequestContext, call_next: CallNext) -> Reply:
        async with mcp.services.scope() as services:
            await services.get(Database)
            return await call_next(context)

    @mcp.tool
    async def fine() -> str:
        return "fine"

    mcp.add_middleware(audit)
    with pytest.raises(MCPError, match="Internal error"):
        await mcp.call_tool("fine")


async def test_completions_and_lists_of_resources_roll_back() -> None:
    ends: list[str] = []
    mcp = server_with(ends)

    @mcp.resource_lister("data")
    async def rows(unit: Unit) -> list[ResourceInfo]:
        raise LookupError

    def complete(value: str, unit: Unit) -> list[str]:
        raise LookupError

    @mcp.prompt(completions={"name": complete})
    async def greet(name: str) -> str:
        return name

    async with Client(mcp) as client:
        assert len(await client.list_resources()) == 1
        with pytest.raises(MCPError, match="error id"):
            await client.complete({"type": "ref/prompt", "name": "greet"}, "name", "a")
    assert ends == ["LookupError", "LookupError"]


async def test_a_custom_route_opens_services_of_its_own() -> None:
    ends: list[str] = []
    mcp = server_with(ends)

    @mcp.custom_route("/orders/{item}")
    async def order(request: Request) -> str:
        async with mcp.services.scope() as services:
            await services.get(Unit)
            if request.path_params["item"] == "coffee":
                raise LookupError
        return "ordered"

    transport = httpx2.ASGITransport(app=mcp)
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        assert (await client.get("/orders/tea")).status_code == 200
        assert (await client.get("/orders/coffee")).status_code == 500
    assert ends == ["commit", "LookupError"]


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("fails", [False, True])
async def test_services_are_closed_before_the_answer_is_sent(*, streams: bool, fails: bool) -> None:
    steps: list[str] = []
    mcp = MCPServer("Units")

    async def commit() -> AsyncIterator[Unit]:
        yield Unit([])
        await asyncio.sleep(0)
        steps.append("commit")
        if fails:
            raise RuntimeError("the commit failed")

    mcp.services.register_factory(Unit, commit)

    @mcp.tool
    async def work(unit: Unit, context: Context) -> str:
        await context.report_progress(1)
        return "worked"

    async def app(scope: Any, receive: Any, send: Any) -> None:
        async def note(message: Any) -> None:
            body = message.get("body", b"")
            if b"progress" in body:
                steps.append("progress")
            if b"isError" in body or b"worked" in body:
                steps.append("failure" if b"isError" in body else "result")
            await send(message)

        await mcp(scope, receive, note)

    body, names = per_request("tools/call", name="work", arguments={})
    headers = {name.replace("_", "-"): value for name, value in names.items()}
    headers["accept"] = "application/json, text/event-stream"
    if streams:
        body["params"]["_meta"]["progressToken"] = 1
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url="http://127.0.0.1") as client:
        response = await client.post("/mcp", json={"jsonrpc": "2.0", **body}, headers=headers)
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/event-stream" if streams else "application/json")
    assert steps == [*["progress"] * streams, "commit", "failure" if fails else "result"]


async def test_a_client_that_cancels_does_not_interrupt_the_end_of_services() -> None:
    services = Services()
    notes: list[str] = []
    run = Run()

    async def open_pool() -> AsyncIterator[Settings]:
        try:
            yield Settings()
        finally:
            run.cancel()
            await asyncio.sleep(0)
            notes.append("closed")

    services.register_factory(Settings, open_pool)

    async def use(settings: Settings) -> str:
        return "used"

    async def others() -> None:
        with pytest.raises(RunCancelledError):
            await run.wait(tool_of(use, services).handler(context(), {}))
        await asyncio.sleep(0)  # no cancellation is left over

    await asyncio.create_task(others())
    assert notes == ["closed"]


TENANT: contextvars.ContextVar[str] = contextvars.ContextVar("TENANT", default="nobody")


class Shop:
    """A server whose plain features use a connection of sqlite3 that belongs to one thread."""

    def __init__(self) -> None:
        self.ends: list[str] = []
        self.mcp = MCPServer("Shop", show_errors=True)
        self.mcp.services.register_factory(sqlite3.Connection, self.connect)

    def connect(self) -> Iterator[sqlite3.Connection]:
        connection = sqlite3.connect(":memory:")
        try:
            with connection:
                yield connection
            self.ends.append("commit")
        except BaseException as error:
            self.ends.append(type(error).__name__)
            raise
        finally:
            connection.close()


def answer(connection: sqlite3.Connection, *, fails: bool = False) -> list[int]:
    if fails:
        raise LookupError("gone")
    return [row[0] for row in connection.execute("SELECT 42")]


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_services_of_a_plain_function_belong_to_its_thread(revision: str) -> None:
    shop = Shop()
    shop.mcp.tool(answer)

    @shop.mcp.tool
    def lazily(connection: sqlite3.Connection) -> list[int]:
        return (row[0] for row in connection.execute("SELECT 42"))  # type: ignore[return-value] # read as a list

    @shop.mcp.tool
    def wrong(connection: sqlite3.Connection) -> int:
        connection.execute("SELECT 42")
        return "text"  # type: ignore[return-value]

    @shop.mcp.tool
    async def in_the_loop(connection: sqlite3.Connection) -> list[int]:
        return answer(connection)

    @shop.mcp.resource("shop://answer")
    def resource(connection: sqlite3.Connection) -> str:
        return str(answer(connection))

    @shop.mcp.prompt
    def prompt(connection: sqlite3.Connection) -> str:
        return str(answer(connection))

    async with Client(shop.mcp, revision=revision) as client:
        for name in ("answer", "lazily", "in_the_loop"):
            assert (await client.call_tool(name)).structured_content == {"result": [42]}
        assert (await client.call_tool("answer", {"fails": True})).text == "gone"
        assert (await client.call_tool("wrong")).is_error
        assert (await client.read_resource("shop://answer")).text == "[42]"
        assert "[42]" in str(await client.get_prompt("prompt"))
    assert shop.ends == ["commit", "commit", "commit", "LookupError", "TypeError", "commit", "commit"]


async def test_a_class_whose_method_is_a_plain_tool_is_constructed_in_its_thread() -> None:
    class Orders:
        def __init__(self) -> None:
            self.connection = sqlite3.connect(":memory:")

    services = Services()
    services.register_factory(Orders, Orders)

    def count(orders: Orders) -> int:
        row: tuple[int] = orders.connection.execute("SELECT 3").fetchone()
        orders.connection.close()
        return row[0]

    assert (await call(count, {}, services))["structuredContent"] == {"result": 3}


async def test_plain_and_async_factories_of_a_plain_function_are_closed_in_turn() -> None:
    steps: list[tuple[str, bool]] = []
    services = Services()
    loop_thread = threading.get_ident()

    def note(step: str) -> None:
        steps.append((step, threading.get_ident() == loop_thread))

    def open_settings() -> Iterator[Settings]:
        note("open settings")
        token = TENANT.set("ann")
        yield Settings()
        TENANT.reset(token)
        note("close settings")

    async def open_database(settings: Settings) -> AsyncIterator[Database]:
        note(f"open database of {TENANT.get()}")
        yield Database(settings)
        note("close database")

    def open_repository(database: Database) -> Iterator[Repository]:
        note("open repository")
        yield Repository(database)
        note("close repository")

    services.register_factory(Settings, open_settings)
    services.register_factory(Database, open_database)
    services.register_factory(Repository, open_repository)

    def use(repository: Repository) -> str:
        note("use")
        return TENANT.get()

    assert (await call(use, {}, services))["content"][0]["text"] == "ann"
    assert TENANT.get() == "nobody"
    assert steps == [
        ("open settings", False),
        ("open database of ann", True),
        ("open repository", False),
        ("use", False),
        ("close repository", False),
        ("close database", True),
        ("close settings", False),
    ]


class Slow:
    """A server whose plain tool ends after its time limit, which passes when the tool has begun."""

    def __init__(self, *, fails: bool = False, is_async: bool = False) -> None:
        self.steps: list[str] = []
        self.fails = fails
        self.gate = threading.Event()
        self.closed = threading.Event()
        self.let_time_pass: Callable[[], object] | None = None
        self.mcp = MCPServer("Slow", middleware=[self.hold_deadline])
        self.mcp.services.register_factory(Settings, self.open_async if is_async else self.open_settings)
        self.mcp.tool(timeout=PATIENCE)(self.wait)

    async def hold_deadline(self, context: RequestContext, call_next: CallNext) -> Reply:
        loop = asyncio.get_running_loop()

        def end() -> None:
            assert context.deadline is not None
            context.deadline.move(loop.time())

        self.let_time_pass = partial(loop.call_soon_threadsafe, end)
        return await call_next(context)

    def open_settings(self) -> Iterator[Settings]:
        try:
            yield Settings()
        except BaseException as error:
            self.steps.append(type(error).__name__)
            if self.fails:
                raise ValueError("the roll-back failed") from error
            raise
        finally:
            self.closed.set()

    async def open_async(self) -> AsyncIterator[Settings]:
        with contextmanager(self.open_settings)() as settings:
            yield settings

    def wait(self, settings: Settings) -> None:
        assert self.let_time_pass is not None
        self.let_time_pass()
        self.gate.wait(PATIENCE)
        self.steps.append("returned")


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("fails", [False, True])
async def test_services_of_a_call_whose_time_is_up_are_closed_when_its_function_returns(
    caplog: pytest.LogCaptureFixture, *, fails: bool, is_async: bool
) -> None:
    slow = Slow(fails=fails, is_async=is_async)
    result = await slow.mcp.call_tool("wait")
    assert (result.text, slow.steps) == (f"It did not finish within {PATIENCE} seconds (timeout=).", [])
    slow.gate.set()
    assert await asyncio.to_thread(slow.closed.wait, PATIENCE)
    assert slow.steps == ["returned", "TimeoutError"]
    while fails and "the roll-back failed" not in caplog.text:  # noqa: ASYNC110 - a thread writes it
        await asyncio.sleep(0.001)
    assert ("was not closed: its call has ended before the function" in caplog.text) is fails


async def test_a_service_that_is_being_opened_when_its_call_ends_is_closed() -> None:
    services = Services()
    gate, opening, closed = threading.Event(), threading.Event(), threading.Event()

    def open_settings() -> Iterator[Settings]:
        opening.set()
        gate.wait(PATIENCE)
        try:
            yield Settings()
        finally:
            closed.set()

    services.register_factory(Settings, open_settings)

    def use(settings: Settings) -> str:
        return "used"

    task = asyncio.create_task(call(use, {}, services))
    assert await asyncio.to_thread(opening.wait, PATIENCE)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    gate.set()
    assert await asyncio.to_thread(closed.wait, PATIENCE)


def test_an_async_service_is_left_if_the_loop_ends_before_the_thread_of_its_call() -> None:
    services = Services()
    gate, begun, returned = threading.Event(), threading.Event(), threading.Event()

    async def open_settings() -> AsyncIterator[Settings]:
        yield Settings()

    services.register_factory(Settings, open_settings)

    def use(settings: Settings) -> None:
        begun.set()
        gate.wait(PATIENCE)
        returned.set()

    async def end_early() -> None:
        task = asyncio.create_task(call(use, {}, services))
        assert await asyncio.to_thread(begun.wait, PATIENCE)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    asyncio.run(end_early())
    gate.set()
    assert returned.wait(PATIENCE)
    assert asyncio.run(services.threads.run(lambda: "next", {})) == "next"


async def test_a_service_is_closed_although_its_call_is_cancelled_before_the_thread_gets_to_it() -> None:
    services = Services()
    gate, closed = threading.Event(), threading.Event()

    def open_settings() -> Iterator[Settings]:
        yield Settings()
        closed.set()

    services.register_factory(Settings, open_settings)
    scope = services.scope()
    scope.use_thread()
    await scope.get(Settings)
    thread = scope._thread
    assert thread is not None
    thread.run_later(gate.wait, {"timeout": PATIENCE})
    closing = asyncio.create_task(scope.aclose())
    await asyncio.sleep(0)  # it waits for the thread
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    gate.set()
    assert await asyncio.to_thread(closed.wait, PATIENCE)


@pytest.mark.parametrize("waits", [False, True])
async def test_services_of_a_call_whose_coroutine_is_closed_are_closed_in_their_thread(*, waits: bool) -> None:
    services = Services()
    ends: list[str] = []
    opened, closed = threading.Event(), threading.Event()

    def open_settings() -> Iterator[Settings]:
        opened.set()
        try:
            yield Settings()
        except BaseException as error:
            ends.append(type(error).__name__)
            raise
        finally:
            closed.set()

    async def open_database(settings: Settings) -> Database:
        await asyncio.Event().wait()
        return Database(settings)

    services.register_factory(Settings, open_settings)
    services.register_factory(Database, open_database)

    def use(database: Database) -> str:
        return "used"

    work = tool_of(use, services).handler(context(), {})
    future: Any = work.send(None)
    assert await asyncio.to_thread(opened.wait, PATIENCE)
    if waits:  # for the database
        await asyncio.wait([future])
        work.send(None)
    work.close()
    assert await asyncio.to_thread(closed.wait, PATIENCE)
    assert ends == ["GeneratorExit"]


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_a_question_of_a_plain_function_ends_its_services_in_each_round(revision: str) -> None:
    shop = Shop()

    @shop.mcp.tool
    def ask(connection: sqlite3.Connection, context: Context) -> int:
        answer = context.wait(context.elicit("How many?", int))
        return (answer.content or 0) + connection.execute("SELECT 1").fetchone()[0]  # type: ignore[no-any-return]

    async with Client(shop.mcp, revision=revision, elicit=accept({"value": 3})) as client:
        assert (await client.call_tool("ask")).structured_content == {"result": 4}
    assert shop.ends == (["commit"] if revision == "2025-11-25" else ["InputRequired", "commit"])


async def test_a_plain_factory_that_fails_to_open_is_not_closed() -> None:
    shop = Shop()

    def fail() -> Iterator[Settings]:
        if shop:
            raise LookupError("no settings")
        yield Settings()

    shop.mcp.services.register_factory(Settings, fail)

    @shop.mcp.tool
    def use(connection: sqlite3.Connection, settings: Settings) -> str:
        return "used"

    assert (await shop.mcp.call_tool("use")).text == "no settings"
    assert shop.ends == ["LookupError"]


async def test_a_commit_in_the_thread_of_a_plain_function_that_fails_is_the_failure_of_the_call() -> None:
    mcp = MCPServer("Shop", show_errors=True)

    def open_settings() -> Iterator[Settings]:
        yield Settings()
        raise RuntimeError("the commit failed")

    mcp.services.register_factory(Settings, open_settings)

    @mcp.tool
    def use(settings: Settings) -> str:
        return "used"

    result = await mcp.call_tool("use")
    assert (result.is_error, result.text) == (True, "the commit failed")


async def test_a_plain_factory_may_return_an_awaitable() -> None:
    services = Services()

    async def connect() -> Settings:
        return Settings("awaited")

    services.register_factory(Settings, lambda: connect())  # noqa: PLW0108 - not async itself

    def use(settings: Settings) -> str:
        return settings.url

    assert (await call(use, {}, services))["content"][0]["text"] == "awaited"
