# ruff: noqa: TC001, TC003 - tools are made of these hints at run time

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from funcmcp.authoring.calling.services import Services
from funcmcp.server.catalog.registry import RegistrationError
from tests.authoring.tool_calls import call, schema_of, tool_of


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
        yield Database(Settings())
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
    assert tool_of(tool, services).describe()["inputSchema"] == {"type": "object", "additionalProperties": False}


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


def test_svcs_is_loaded_with_the_first_factory() -> None:
    code = (
        "import sys\nfrom funcmcp.authoring.calling.services import Services\ns = Services()\n"
        "s.register_value(int, 5)\nassert 'svcs' not in sys.modules\n"
        "s.register_factory(str, str)\nassert 'svcs' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_a_type_that_is_not_registered_stays_an_argument() -> None:
    from tests.authoring.models import Size

    def tool(size: Size) -> None: ...

    assert list(schema_of(tool)["properties"]) == ["size"]
