"""What one version has written, another one reads: the table of docs/reference/upgrading.md."""

from __future__ import annotations

import re
from contextlib import ExitStack, asynccontextmanager
from typing import TYPE_CHECKING

import httpx2
import pytest

from tests.patience import PATIENCE
from tests.postgres_server import postgres_server
from tests.redis_server import redis_server
from tests.serving import REPOSITORY
from tests.sign_in.people import CLIENT_ID, SECRET, oidc_provider
from tests.upgrades import values
from tests.upgrades.deployment import deployment
from tests.upgrades.values import RefusedError, SigningIn

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from pathlib import Path

    from tests.azurite import Azurite
    from tests.upgrades.deployment import Version

    Value = Callable[[str, httpx2.AsyncClient, Path], AsyncIterator[None]]

pytestmark = pytest.mark.slow("Servers of two versions start for each case.")

PAGE = (REPOSITORY / "docs" / "reference" / "upgrading.md").read_text(encoding="utf-8")
DIRECTIONS: list[tuple[Version, Version]] = [("0.1", "0.2"), ("0.2", "0.1")]
STORES = ["SQLite", "Redis", "PostgreSQL", "Azure Storage"]
SESSIONS = "sessions with their subscriptions and log levels"
SIGNED = "sessions, and which of them have ended"
SEALED = {("cursors", "keys"): values.cursor, ("`requestState`", "keys"): values.state}
TASKS = "tasks that run, that ask, and that have ended"
ACCESS = "access tokens"
SIGN_INS = "registrations, sign-ins that have begun, codes and refresh tokens"


def promised(value: str, store: str, direction: tuple[Version, Version]) -> str:
    """Return what the table says of a value."""
    table = PAGE.partition("### What is tested between 0.1 and 0.2\n")[2]
    rows = {
        (row[0], row[1]): row[2:]
        for row in re.findall(r"^\| (.+?) \| (.+?) \| (.+?) \| (.+?) \|$", table, re.MULTILINE)
    }
    return str(rows[value, store][DIRECTIONS.index(direction)])


@pytest.fixture(scope="module")
def stores(azurite: Azurite) -> Iterator[dict[str, str]]:
    """Run all stores; yield the environment with their places."""
    with redis_server() as redis, postgres_server() as postgres:
        yield {"SHOP_REDIS": redis.url, "SHOP_POSTGRES": postgres.url, "SHOP_AZURE": azurite.connection_string}


@asynccontextmanager
async def http_client() -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(timeout=PATIENCE, trust_env=False) as http:
        yield http


async def second_half(halves: AsyncIterator[None]) -> str:
    """Return what becomes of a value."""
    try:
        await anext(halves, None)
    except RefusedError as error:
        return str(error)
    return "read"


@pytest.mark.parametrize("direction", DIRECTIONS, ids="-to-".join)
@pytest.mark.parametrize("store", STORES)
async def test_values_of_one_version_are_read_by_the_other(
    store: str, direction: tuple[Version, Version], stores: dict[str, str], tmp_path: Path
) -> None:
    """All kinds of values are with SQLite or Redis, and tasks with each store."""
    writer, reader = direction
    environment = {"SHOP_TASKS": store, "FUNCMCP_DRAIN_SECONDS": "1"}
    functions: dict[tuple[str, str], Value] = {(TASKS, store): values.tasks}
    if store == "SQLite":
        functions |= {(SESSIONS, "Redis"): values.session, **SEALED}
    elif store == "Redis":
        environment["SHOP_SESSIONS"] = "signed"
        functions[SIGNED, "keys and Redis"] = values.signed_session
    with deployment(stores | environment, tmp_path) as shop:
        async with http_client() as http:
            halves = {name: function(shop.url, http, tmp_path) for name, function in functions.items()}
            await shop.replace(0, writer)
            for value in halves.values():
                await anext(value)
            await shop.replace(0, reader)
            outcomes = {name: await second_half(value) for name, value in halves.items()}
    assert outcomes == {name: promised(*name, direction) for name in functions}


@pytest.mark.parametrize("direction", DIRECTIONS, ids="-to-".join)
@pytest.mark.parametrize("store", ["none", *STORES])
async def test_sign_ins_of_one_version_go_on_at_the_other(
    store: str, direction: tuple[Version, Version], stores: dict[str, str], tmp_path: Path
) -> None:
    writer, reader = direction
    client = {"SHOP_SIGN_INS": store, "SHOP_CLIENT": CLIENT_ID, "SHOP_SECRET": SECRET}
    with ExitStack() as stack:
        shop = stack.enter_context(deployment(stores | client, tmp_path))
        origin = shop.url.removesuffix("/mcp")
        shop.set("SHOP_UPSTREAM", stack.enter_context(oidc_provider(f"{origin}/oauth/callback")))
        await shop.replace(0, writer)
        await shop.sign_in_at(0)
        users = [SigningIn(shop.url, f"user{number}") for number in range(1, len(SigningIn.steps))]
        for number, user in enumerate(users, 1):
            await user.run(*SigningIn.steps[:number])
        await shop.replace(0, reader)
        await shop.sign_in_at(0)
        last = users[-1]
        assert await last.call() == f"user{len(users)} client"
        assert promised(ACCESS, "keys", direction) == "read"
        outcomes = set()
        for number, user in enumerate(users, 1):
            try:
                await user.run(*SigningIn.steps[number:])
                assert await user.call() == f"user{number} client"
                outcomes.add("read")
            except RefusedError as error:
                outcomes.add(str(error))
            await user.aclose()
    assert outcomes == {promised(SIGN_INS, store, direction)}
