"""Sign-ins and state in a real Azurite."""

from __future__ import annotations

import secrets
from contextlib import asynccontextmanager
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING

import pytest

from funcmcp._adapters.azure.key_values import AzureSignIns, AzureState
from funcmcp.state import StoreUnavailableError
from funcmcp.testing import state_store_tests
from tests.clock import Clock
from tests.patience import PATIENCE
from tests.state import sign_in_stores as stores
from tests.state.key_value_stores import check_state

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from funcmcp.state import StateStore
    from tests.azurite import Azurite


pytestmark = pytest.mark.slow("The storage is slow, and the same rules hold on SQLite and Redis.")

CONNECTION = "STATE_STORAGE"
TIME = Clock()


@pytest.fixture(autouse=True)
def connection(azurite: Azurite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CONNECTION, azurite.connection_string)


def azure_state(container: str) -> AzureState:
    store = AzureState(CONNECTION, container=container, clock=TIME)
    store._storage._timeout = PATIENCE
    return store


@asynccontextmanager
async def state_stores() -> AsyncIterator[Callable[[], StateStore]]:
    yield partial(azure_state, f"s-{secrets.token_hex(8)}")


async def wait(seconds: float) -> None:
    TIME.now += seconds


@pytest.mark.filterwarnings("ignore:Sending a large body:ResourceWarning")  # of aiohttp, above 1 MiB; Python hides it
class TestAzureState(state_store_tests(state_stores, wait=wait)):  # type: ignore[misc]
    """The rules of every store of state."""


@pytest.fixture
async def pair(azurite: Azurite, monkeypatch: pytest.MonkeyPatch, clock: Clock) -> AsyncIterator[list[AzureSignIns]]:
    monkeypatch.setenv("STORAGE", azurite.connection_string)
    name = f"s-{secrets.token_hex(8)}"
    pair = [AzureSignIns("STORAGE", container=name, clock=clock) for _ in range(2)]
    for store in pair:
        store._storage._timeout = PATIENCE
    yield pair
    for store in pair:
        await store.aclose()


async def test_a_store_behaves_as_every_store_does(pair: list[AzureSignIns], clock: Clock) -> None:
    async def wait(seconds: float) -> None:
        clock.now += seconds

    await stores.check_values(*pair)
    await stores.check_repeated_writes(pair[0])
    await stores.check_races(*pair)
    await stores.check_records_of_version_0_1(pair[0])
    await stores.check_records_of_a_later_version(pair[0])
    await stores.check_expiry(pair[0], wait)
    assert pair[0].shared


@pytest.mark.filterwarnings("ignore:Sending a large body:ResourceWarning")  # of aiohttp, above 1 MiB; Python hides it
async def test_state_is_as_in_every_store(azurite: Azurite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STORAGE", azurite.connection_string)
    states = [AzureState("STORAGE", container=f"s-{secrets.token_hex(8)}")] * 2
    states[0]._storage._timeout = PATIENCE
    await check_state(*states)
    assert states[0].shared
    await states[0].aclose()
    assert AzureState("STORAGE")._storage._container == "funcmcp-state"


async def test_expired_blobs_are_removed_beside_a_request(pair: list[AzureSignIns], clock: Clock) -> None:
    store, other = pair
    for number in range(3):
        await store.take(stores.KEYS[number], "c1.first", 60 + 600 * (number == 2))
    clock.now += 61
    store._sweep_at = monotonic()
    await store.take(stores.KEYS[3], "c1.first", 60)
    assert store._sweeping is not None
    await store._sweeping
    assert [name for name, _ in await other._storage.blobs("")] == [stores.KEYS[2], stores.KEYS[3]]


async def test_a_storage_that_can_not_be_reached_is_an_error_that_names_the_store(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv("STORAGE", raising=False)
    store = AzureSignIns("STORAGE")
    with pytest.raises(StoreUnavailableError, match="The store of sign-ins of the server is unavailable now"):
        await store.take(stores.KEYS[0], "c1.first", 60)
    assert "The store of sign-ins in Azure Storage fails" in caplog.text
    await store.remove_expired()


@pytest.mark.parametrize("name", ["", "ab", "Orders", "orders--1", "-orders", "orders-", "o" * 64, "orders/1"])
def test_the_name_of_a_container_is_checked(name: str) -> None:
    with pytest.raises(ValueError, match="container must have 3 to 63 lower-case letters"):
        AzureSignIns(container=name)
