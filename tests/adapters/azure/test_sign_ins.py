"""Sign-ins in a real Azurite."""

from __future__ import annotations

import secrets
from time import monotonic
from typing import TYPE_CHECKING

import pytest

from funcmcp._adapters.azure.sign_ins import AzureSignIns
from funcmcp.state import StoreUnavailableError
from tests.patience import PATIENCE
from tests.state import sign_in_stores as stores

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.azurite import Azurite
    from tests.clock import Clock


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
