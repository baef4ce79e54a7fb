"""What holds for every store of sign-ins; the tests of each store call these functions."""

from __future__ import annotations

import asyncio
import hashlib
from typing import TYPE_CHECKING

from tests.oauth_proxy.other_versions import MORE, RECORDED, concealed, value_in, with_more
from tests.oauth_proxy.stage import Stage

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from funcmcp.state import SignInStore

LONGEST = 180_000
"""Characters of the record of a sign-in with 128 KiB of claims."""

KEYS = [digit * 64 for digit in "0123456789abcdef"]


async def check_values(here: SignInStore, there: SignInStore) -> None:
    """Check that two instances read, take, replace and remove the same values."""
    key, other = KEYS[:2]
    assert await here.get(key) is None
    assert await here.take(key, "c1.first", 60)
    assert [await store.get(key) for store in (here, there)] == ["c1.first"] * 2
    assert not await there.take(key, "c1.second", 60)
    assert not await there.replace(key, "c1.second", "c1.third", 60)
    assert await there.replace(key, "c1.first", "c1.second", 60)
    assert not await here.replace(key, "c1.first", "c1.third", 60)
    assert await here.get(key) == "c1.second"
    assert not await here.replace(other, "c1.first", "c1.second", 60)
    assert await here.get(other) is None
    await here.remove(key)
    await here.remove(key)
    assert not await there.replace(key, "c1.second", "c1.third", 60)
    assert await there.take(key, "c1.fourth", 60)
    longest = f"c1.{'x' * LONGEST}"
    assert await here.replace(key, "c1.fourth", longest, 60)
    assert await there.get(key) == longest
    assert await there.replace(key, longest, f"{longest}y", 60)
    assert await here.get(key) == f"{longest}y"


async def check_repeated_writes(store: SignInStore) -> None:
    """Check that a write whose reply was lost is successful when it is sent again."""
    key = KEYS[2]
    assert [await store.take(key, "c1.first", 60) for _ in range(2)] == [True, True]
    assert [await store.replace(key, "c1.first", "c1.second", 60) for _ in range(2)] == [True, True]
    assert await store.get(key) == "c1.second"


async def check_races(here: SignInStore, there: SignInStore) -> None:
    """Check that of many callers at two instances, one takes a key, and one replaces its value."""
    key, stores = KEYS[3], [here, there]
    takes = [stores[number % 2].take(key, f"c1.{number}", 60) for number in range(50)]
    taken = await asyncio.gather(*takes)
    assert taken.count(True) == 1
    value = f"c1.{taken.index(True)}"
    assert await there.get(key) == value
    replacements = [stores[number % 2].replace(key, value, f"c2.{number}", 60) for number in range(50)]
    replaced = await asyncio.gather(*replacements)
    assert replaced.count(True) == 1
    assert await here.get(key) == f"c2.{replaced.index(True)}"


async def check_expiry(store: SignInStore, wait: Callable[[float], Awaitable[None]]) -> None:
    """Check that values expire, and that an expired value is none."""
    taken, replaced, lasting = KEYS[4:7]
    await store.take(taken, "c1.first", 0.2)
    await store.take(replaced, "c1.first", 60)
    await store.replace(replaced, "c1.first", "c1.second", 0.2)
    await store.take(lasting, "c1.first", 0.2)
    await store.replace(lasting, "c1.first", "c1.second", 60)
    await wait(0.3)
    assert await store.get(taken) is None
    assert not await store.replace(taken, "c1.first", "c1.second", 60)
    assert await store.get(replaced) is None
    assert await store.take(replaced, "c1.third", 60)
    assert await store.get(lasting) == "c1.second"


REFRESH = "oauth stored refresh"
LIST = "oauth sign-ins of ada"


def key_of_sign_in(sign_in: str) -> str:
    """Return the key of a sign-in in the store."""
    return hashlib.sha256(f"sign-in {sign_in}".encode()).hexdigest()


def purpose_of_sign_in(sign_in: str) -> str:
    """Return the purpose with which the record of a sign-in is concealed."""
    return f"oauth sign-in {sign_in}"


async def check_records_of_version_0_1(store: SignInStore) -> None:
    """Check that a proxy renews a sign-in that version 0.1 has stored."""
    recorded = RECORDED["with_store"]
    stage = Stage(store=store)
    stage.client_id = recorded["client_id"]
    for key, value in recorded["records"].items():
        assert await store.take(key, value, 3600)
    repeated = await stage.refresh(recorded["earlier"])
    assert (repeated.status, repeated.json["refresh_token"]) == (200, recorded["refresh_token"])
    assert stage.upstream.refreshes == []
    token = recorded["refresh_token"]
    for _ in range(2):
        renewed = await stage.refresh(token)
        assert renewed.status == 200
        token = renewed.json["refresh_token"]
    sign_in = value_in(REFRESH, token)
    stored = value_in(purpose_of_sign_in(sign_in["sign_in"]), await store.get(key_of_sign_in(sign_in["sign_in"])) or "")
    assert (stored["v"], stored["number"], stored["refresh"]["subject"]) == (1, sign_in["number"], "ada")


async def check_records_of_a_later_version(store: SignInStore) -> None:
    """Check that a proxy renews a sign-in with members that it does not know, and keeps these."""
    stage = await Stage(store=store).with_client()
    stage.upstream.rotates = True
    token = (await stage.tokens())["refresh_token"]
    sign_in = value_in(REFRESH, token)["sign_in"]
    key, purpose = key_of_sign_in(sign_in), purpose_of_sign_in(sign_in)
    first = await store.get(key) or ""
    record = value_in(purpose, first)
    later = concealed(purpose, {**with_more(record), "refresh": with_more(record["refresh"])})
    assert await store.replace(key, first, later, 3600)
    token = concealed(REFRESH, with_more(value_in(REFRESH, token)))
    for _ in range(2):
        answer = await stage.refresh(token)
        assert answer.status == 200
        token = answer.json["refresh_token"]
        record = value_in(purpose, await store.get(key) or "")
        for value in (record, record["refresh"], value_in(REFRESH, token)):
            assert value["added"] == MORE["added"]
    assert stage.proxy._settings.sign_ins is not None
    [name] = stage.proxy._settings.sign_ins._index_keys("ada")
    current = await store.get(name) or ""
    assert await store.replace(name, current, concealed(LIST, with_more(value_in(LIST, current))), 3600)
    await stage.tokens()
    listed = value_in(LIST, await store.get(name) or "")
    assert listed["added"] == MORE["added"]
    assert key in listed["keys"]
