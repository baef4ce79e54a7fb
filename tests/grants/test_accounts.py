"""Stored accounts: renewal by one instance at a time, outages, accounts that end, and attacks on the store."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp._auth.principal import UpstreamTokenError
from funcmcp._grants import accounts as accounts_module
from funcmcp._grants.accounts import Accounts, Tokens
from funcmcp._state.caller_values import CallerValues, ValueOwner
from funcmcp._state.key_values import StateFullError
from funcmcp._state.sessions.store import StoreUnavailableError
from funcmcp.redis import RedisLink, RedisSignIns
from funcmcp.state import KeyRing, MemorySignIns, SQLiteSignIns
from tests.auth.making_tokens import NOW, Clock
from tests.redis_server import redis_server

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

ADA, EVE = ValueOwner("grants ada"), ValueOwner("grants eve")
KEYS = KeyRing([b"the key of the tests" * 2])
GRANT = {"access_token": "token-0", "until": NOW + 60, "refresh_token": "refresh-0", "scopes": ["repo"]}


class FakeClient:
    """An authorization server whose refresh tokens serve once.

    Attributes:
        forms: The forms that it has got.
        revoked: The tokens that were revoked.
        error: Raises this for every request.
        gate: Requests wait for it.
        asked: Is set by a request.
    """

    def __init__(self) -> None:
        self.forms: list[Mapping[str, str]] = []
        self.revoked: list[str] = []
        self.error: Exception | None = None
        self.gate = asyncio.Event()
        self.gate.set()
        self.asked = asyncio.Event()
        self.rotates = True
        self.scopes: tuple[str, ...] | None = None

    async def tokens(self, form: Mapping[str, str], now: float) -> Tokens:
        self.forms.append(form)
        self.asked.set()
        await self.gate.wait()
        if self.error is not None:
            raise self.error
        if [earlier["refresh_token"] for earlier in self.forms].count(form["refresh_token"]) > 1 and self.rotates:
            raise UpstreamTokenError("sign_in", "used")
        count = len(self.forms)
        return Tokens(f"token-{count}", now + 60, f"refresh-{count}" if self.rotates else None, self.scopes)

    async def revoke(self, access_token: str, refresh_token: str | None) -> bool:
        self.revoked.append(refresh_token or access_token)
        return True


class Shop:
    """Instances of a server with one store."""

    def __init__(self, store: Any = None, instances: int = 1) -> None:
        self.client = FakeClient()
        self.clock = Clock()
        self.store = store or MemorySignIns()
        self.values = [
            CallerValues(self.store, KEYS, "Shop", owner_bytes=100_000, owner_values=20) for _ in range(instances)
        ]
        self.instances = [
            Accounts("Code", "code", "grant code", self.client, lambda values=values: values, self.clock)  # type: ignore[misc]
            for values in self.values
        ]
        self.accounts = self.instances[0]

    async def connect(self, owner: ValueOwner = ADA, **changes: Any) -> None:
        await self.accounts.connect(owner, GRANT | changes)


async def test_a_token_is_used_until_it_expires_and_then_renewed() -> None:
    shop = Shop()
    await shop.connect()
    assert await shop.accounts.token(ADA) == "token-0"
    shop.clock.now += 60
    assert [await shop.accounts.token(ADA) for _ in range(2)] == ["token-1", "token-1"]
    shop.clock.now += 60
    assert await shop.accounts.token(ADA) == "token-2"
    assert [form["refresh_token"] for form in shop.client.forms] == ["refresh-0", "refresh-1"]


async def test_only_one_of_several_instances_renews() -> None:
    shop = Shop(instances=3)
    await shop.connect()
    shop.clock.now += 60
    shop.client.gate.clear()
    calls = [asyncio.create_task(instance.token(ADA)) for instance in shop.instances for _ in range(4)]
    await shop.client.asked.wait()
    await asyncio.sleep(0.05)
    shop.client.gate.set()
    assert set(await asyncio.gather(*calls)) == {"token-1"}
    assert len(shop.client.forms) == 1


async def test_the_lease_of_a_process_that_has_died_ends() -> None:
    shop = Shop()
    await shop.connect(lease=NOW + 60 + 30)
    shop.clock.now += 60
    call = asyncio.create_task(shop.accounts.token(ADA))
    await asyncio.sleep(0.05)
    assert not call.done()
    shop.clock.now += 31
    assert await call == "token-1"


@pytest.mark.parametrize("lease", [NOW + 1_000_000, -5, "x", None])
async def test_a_lease_that_nobody_can_have_taken_counts_as_none(lease: object) -> None:
    shop = Shop()
    await shop.connect(lease=lease)
    shop.clock.now += 60
    assert await shop.accounts.token(ADA) == "token-1"


async def test_a_caller_that_waits_too_long_gets_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accounts_module, "_WAIT_SECONDS", 0.05)
    shop = Shop()
    await shop.connect(lease=NOW + 60 + 30)
    shop.clock.now += 60
    with pytest.raises(UpstreamTokenError, match="takes too long") as raised:
        await shop.accounts.token(ADA)
    assert raised.value.reason == "unavailable"


async def test_a_server_that_stops_stores_the_renewal_of_a_caller_that_has_gone() -> None:
    shop = Shop()
    await shop.connect()
    shop.clock.now += 60
    shop.client.gate.clear()
    caller = asyncio.create_task(shop.accounts.token(ADA))
    await shop.client.asked.wait()
    caller.cancel()
    await shop.accounts.finish(0.01)  # it does not wait for ever
    stopping = asyncio.create_task(shop.accounts.finish(5))
    await asyncio.sleep(0)
    shop.client.gate.set()
    await stopping
    await shop.accounts.finish(5)
    record = await shop.accounts.read(ADA, "grant")
    assert record is not None
    assert record["access_token"] == "token-1"


async def test_a_caller_that_is_cancelled_does_not_end_the_renewal() -> None:
    shop = Shop()
    await shop.connect()
    shop.clock.now += 60
    shop.client.gate.clear()
    call = asyncio.create_task(shop.accounts.token(ADA))
    await shop.client.asked.wait()
    call.cancel()
    await asyncio.wait([call])
    shop.client.gate.set()
    assert await shop.accounts.token(ADA) == "token-1"
    assert len(shop.client.forms) == 1


async def test_an_outage_leaves_the_account_and_is_not_hammered() -> None:
    shop = Shop()
    await shop.connect()
    shop.clock.now += 60
    shop.client.error = UpstreamTokenError("unavailable", "Code can't be reached.")
    for _ in range(5):
        with pytest.raises(UpstreamTokenError, match="can't be reached"):
            await shop.accounts.token(ADA)
    assert len(shop.client.forms) == 1
    shop.client.error, shop.client.rotates = None, False
    shop.clock.now += 6
    assert await shop.accounts.token(ADA) == "token-2"


async def test_a_refused_renewal_ends_the_account() -> None:
    shop = Shop()
    await shop.connect()
    shop.clock.now += 60
    shop.client.error = UpstreamTokenError("sign_in", "hush")
    with pytest.raises(UpstreamTokenError, match="connected anew") as raised:
        await shop.accounts.token(ADA)
    assert raised.value.reason == "sign_in"
    assert await shop.accounts.read(ADA, "grant") is None


async def test_a_refused_renewal_ends_no_account_that_was_connected_meanwhile() -> None:
    shop = Shop()
    await shop.connect()
    shop.clock.now += 60
    shop.client.gate.clear()
    shop.client.error = UpstreamTokenError("sign_in", "hush")
    call = asyncio.create_task(shop.accounts.token(ADA))
    await shop.client.asked.wait()
    await shop.connect(access_token="newer", until=NOW + 600)
    shop.client.gate.set()
    assert await call == "newer"


async def test_a_renewal_does_not_bring_back_an_account_that_was_ended_meanwhile() -> None:
    shop = Shop()
    await shop.connect()
    shop.clock.now += 60
    shop.client.gate.clear()
    call = asyncio.create_task(shop.accounts.token(ADA))
    await shop.client.asked.wait()
    assert await shop.accounts.end(ADA)
    shop.client.gate.set()
    with pytest.raises(UpstreamTokenError, match="connected anew"):
        await call
    assert shop.client.revoked == ["refresh-0", "refresh-1"]
    assert await shop.accounts.read(ADA, "grant") is None


async def test_a_renewal_whose_account_ends_before_it_begins_asks_nobody() -> None:
    shop = Shop(instances=2)
    await shop.connect(lease=NOW + 60 + 30)
    shop.clock.now += 60
    call = asyncio.create_task(shop.accounts.token(ADA))
    await asyncio.sleep(0.01)
    await shop.instances[1].end(ADA)
    with pytest.raises(UpstreamTokenError, match="connected anew"):
        await call
    assert shop.client.forms == []


@pytest.mark.parametrize("error", [StoreUnavailableError(), StateFullError("no room")])
async def test_a_renewal_that_can_not_be_stored_gives_the_token(
    error: Exception, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The process or the store may die between the two; the user is asked again when the refresh token is refused."""
    shop = Shop()
    await shop.connect()
    shop.clock.now += 60

    async def fail(*_arguments: Any) -> bool:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(shop.accounts, "_replace", fail)
        assert await shop.accounts.token(ADA) == "token-1"
    assert f"event=grant_not_stored service=code kind={type(error).__name__}" in caplog.text


async def test_the_scopes_of_a_renewal_replace_those_of_the_account() -> None:
    shop = Shop()
    await shop.connect()
    shop.clock.now += 60
    shop.client.scopes = ("gist",)
    await shop.accounts.token(ADA)
    grant = await shop.accounts.read(ADA, "grant")
    assert grant is not None
    assert grant["scopes"] == ["gist"]


async def test_a_token_without_a_refresh_token_ends_with_its_time() -> None:
    shop = Shop()
    await shop.connect(refresh_token=None)
    shop.clock.now += 60
    with pytest.raises(UpstreamTokenError, match="connected anew"):
        await shop.accounts.token(ADA)
    with pytest.raises(UpstreamTokenError, match="is not connected"):
        await shop.accounts.token(ADA)


@pytest.mark.parametrize(("refresh_token", "expected"), [("refresh-0", "token-1"), (None, "is not connected")])
async def test_a_token_that_the_service_refuses_is_renewed_or_forgotten(
    refresh_token: str | None, expected: str
) -> None:
    shop = Shop()
    await shop.connect(refresh_token=refresh_token)
    await shop.accounts.refuse(ADA, "another token")
    await shop.accounts.refuse(EVE, "token-0")
    assert await shop.accounts.token(ADA) == "token-0"
    await shop.accounts.refuse(ADA, "token-0")
    (outcome,) = await asyncio.gather(shop.accounts.token(ADA), return_exceptions=True)
    assert expected in str(outcome)


async def test_a_refused_token_does_not_bring_back_the_refresh_token_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two calls get 401 at once. The second one says so after the first one has renewed the account."""
    shop = Shop(instances=2)
    await shop.connect()
    first, second = shop.instances
    values = shop.values[1]
    exchange = values._exchange

    async def renewed_before(*arguments: Any) -> bool:
        monkeypatch.undo()
        await first.refuse(ADA, "token-0")
        assert await first.token(ADA) == "token-1"
        return await exchange(*arguments)

    monkeypatch.setattr(values, "_exchange", renewed_before)
    await second.refuse(ADA, "token-0")
    assert await second.token(ADA) == "token-1"
    assert [form["refresh_token"] for form in shop.client.forms] == ["refresh-0"]


async def test_the_end_of_an_account_is_that_of_its_user_only() -> None:
    shop = Shop(instances=2)
    await shop.connect()
    await shop.connect(EVE, access_token="token-e", refresh_token=None)
    assert await shop.instances[1].token(ADA) == "token-0"
    assert await shop.accounts.end(ADA)
    with pytest.raises(UpstreamTokenError, match="is not connected"):
        await shop.instances[1].token(ADA)
    assert await shop.instances[1].token(EVE) == "token-e"
    assert not await shop.accounts.end(ADA)
    assert await shop.accounts.end(EVE)
    assert shop.client.revoked == ["refresh-0", "token-e"]


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"x",
        b"[]",
        b"null",
        b'{"v": 2, "access_token": "t", "until": 1}',
        b'{"v": 1, "access_token": 5, "until": 1}',
    ],
)
async def test_a_record_that_this_version_can_not_read_is_no_account(value: bytes) -> None:
    shop = Shop()
    await shop.values[0].put(ADA, "grant code grant", value, 600)
    assert await shop.accounts.read(ADA, "grant") is None
    await shop.accounts.refuse(ADA, "t")
    assert await shop.accounts.count_attempt(ADA, "CODE", 0) is None
    await shop.connect()
    assert await shop.accounts.token(ADA) == "token-0"


async def test_what_a_later_version_adds_is_kept() -> None:
    shop = Shop()
    await shop.connect(added=[1])
    shop.clock.now += 60
    await shop.accounts.token(ADA)
    stored = await shop.values[0].get(ADA, "grant code grant")
    assert stored is not None
    assert json.loads(stored)["added"] == [1]


async def test_tokens_in_a_store_are_encrypted_and_bound_to_their_user(tmp_path: Path) -> None:
    """Whoever can write into the store can't read a token, change one, or give it to another user."""
    store = SQLiteSignIns(tmp_path / "sign_ins.db")
    shop = Shop(store)
    await shop.connect(access_token="ghp_secret-of-ada", until=9e12)
    await shop.connect(EVE, access_token="ghp_secret-of-eve", until=9e12)
    assert b"ghp_secret" not in (tmp_path / "sign_ins.db").read_bytes()
    values = shop.values[0]
    of_ada, of_eve = values._key("owner", ADA.mark), values._key("owner", EVE.mark)
    stolen, replaced = await store.get(of_ada), await store.get(of_eve)
    assert stolen is not None
    assert replaced is not None
    assert await store.replace(of_eve, replaced, stolen, 600)
    with pytest.raises(UpstreamTokenError, match="is not connected"):
        await shop.accounts.token(EVE)
    middle = len(stolen) // 2
    damaged = stolen[:middle] + ("A" if stolen[middle] != "A" else "B") + stolen[middle + 1 :]
    assert await store.replace(of_ada, stolen, damaged, 600)
    with pytest.raises(UpstreamTokenError, match="is not connected"):
        await shop.accounts.token(ADA)
    await store.aclose()


async def test_a_lease_that_another_instance_takes_first_is_waited_for() -> None:
    shop = Shop()
    await shop.connect(lease=NOW + 60 + 30)
    shop.clock.now += 60
    assert await shop.accounts._lease(ADA, "token-0") is None
    assert await shop.accounts._lease(ADA, "an older token") is None
    shop.clock.now += 31
    held = await shop.accounts._lease(ADA, "token-0")
    assert held is not None
    assert held["lease"] > shop.clock.now


async def test_a_renewal_that_finds_the_lease_taken_uses_the_token_of_the_other_instance(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shop = Shop()
    await shop.connect()
    shop.clock.now += 60

    async def lose(owner: ValueOwner, _stale: str) -> None:
        await shop.connect(owner, access_token="theirs", until=NOW + 600)

    monkeypatch.setattr(shop.accounts, "_lease", lose)
    assert await shop.accounts.token(ADA) == "theirs"


async def test_instances_with_one_redis_renew_once_and_forget_together() -> None:
    with redis_server() as server:
        stores = [RedisSignIns(RedisLink(server.url, prefix="shop")) for _ in range(3)]
        shop = Shop(stores[0])
        others = [CallerValues(store, KEYS, "Shop", owner_bytes=100_000, owner_values=20) for store in stores]
        instances = [
            Accounts("Code", "code", "grant code", shop.client, lambda values=values: values, shop.clock)  # type: ignore[misc]
            for values in others
        ]
        await shop.connect()
        shop.clock.now += 60
        tokens = await asyncio.gather(*(instance.token(ADA) for instance in instances for _ in range(3)))
        assert set(tokens) == {"token-1"}
        assert len(shop.client.forms) == 1
        await instances[2].end(ADA)
        with pytest.raises(UpstreamTokenError, match="is not connected"):
            await instances[0].token(ADA)
        for store in stores:
            await store.aclose()
