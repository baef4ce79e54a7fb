"""Attacks on the sign-in of a proxy with a store: stolen and repeated tokens, parallel requests, lost stores."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import sqlite3
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from redis import Redis

from funcmcp._auth.principal import Principal
from funcmcp._oauth_proxy import stored_sign_ins, upstream
from funcmcp._oauth_proxy.upstream import UpstreamRefusedError, UpstreamUnavailableError, User
from funcmcp.auth import OIDC
from funcmcp.redis import RedisLink, RedisSignIns
from funcmcp.state import KeyRing, MemorySignIns, SQLiteSignIns, StoreUnavailableError
from tests.auth.making_tokens import Clock
from tests.oauth_proxy.stage import ADA, VERIFIER, Browser, Stage
from tests.oauth_proxy.test_oidc import running
from tests.patience import PATIENCE
from tests.redis_server import redis_server
from tests.sign_in.test_attacks import (  # noqa: F401 - they are run again, on a proxy with a store
    assert_invalid_grant,
    revoke,
    test_a_client_with_a_document_signs_in_and_its_document_is_not_needed_for_its_tokens,
    test_a_code_is_valid_for_a_minute,
    test_a_code_is_worth_nothing_for_another_client_or_another_address,
    test_a_code_works_once,
    test_a_disabled_account_ends_at_the_next_refresh,
    test_a_key_can_be_rotated_and_the_instance_changed_at_each_step,
    test_a_refresh_gives_no_more_scopes_than_the_user_has_granted,
    test_a_refresh_token_is_worth_nothing_for_another_client,
    test_a_refresh_with_fewer_scopes_keeps_the_granted_ones,
    test_a_wrong_verifier_does_not_use_up_the_code,
    test_after_the_old_key_is_removed_nothing_of_it_is_accepted,
    test_an_outage_of_the_identity_provider_signs_nobody_out,
    test_no_text_of_the_proxy_stands_for_another_one,
    test_the_token_of_another_client_can_not_be_revoked,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from pathlib import Path

    from funcmcp.state import SignInStore
    from tests.oauth_proxy.stage import Answer

LONG_NAMES = User("ada-of-the-kitchen", name="Ada of the kitchen", email="ada@kitchen.example.com")
"""A user whose names do not occur in random text."""


class Kind(NamedTuple):
    """A kind of store.

    Attributes:
        connect: Makes an instance's way to the store.
        dump: Returns all keys with their values.
    """

    connect: Callable[[], SignInStore]
    dump: Callable[[], dict[str, str]]


@pytest.fixture(scope="module")
def redis_url() -> Iterator[str]:
    with redis_server() as server:
        yield server.url


@pytest.fixture(params=["memory", "sqlite", "redis"])
def kind(request: pytest.FixtureRequest, tmp_path: Path) -> Kind:
    if request.param == "memory":
        store = MemorySignIns()
        return Kind(lambda: store, lambda: {key: record.value for key, record in store._records.items()})
    if request.param == "sqlite":
        path = tmp_path / "sign-ins.db"

        def rows() -> dict[str, str]:
            with contextlib.closing(sqlite3.connect(path)) as connection:
                return dict(connection.execute("SELECT key, value FROM funcmcp_sign_ins_1").fetchall())

        return Kind(lambda: SQLiteSignIns(path), rows)
    url = request.getfixturevalue("redis_url")

    def keys() -> dict[str, str]:
        with Redis.from_url(url, decode_responses=True) as redis:
            return {key: redis.get(key) for key in redis.scan_iter()}

    with Redis.from_url(url) as redis:
        redis.flushall()
    # On a busy machine a hundred requests at once may take longer than a second.
    return Kind(lambda: RedisSignIns(RedisLink(url, timeout=PATIENCE)), keys)


class Instances(Stage):
    """Two instances of a server on one store; each request goes to the other one."""

    def __init__(self, kind: Kind, **options: Any) -> None:
        self.stores = [kind.connect(), kind.connect()]
        super().__init__(store=self.stores[0], **options)
        self.proxies = [self.proxy, self.instance(store=self.stores[1])]

    async def send(self, *arguments: Any, **options: Any) -> Answer:
        self.proxies.reverse()
        self.proxy = self.proxies[0]
        return await super().send(*arguments, **options)


@pytest.fixture
async def instances(kind: Kind) -> AsyncIterator[Instances]:
    instances = Instances(kind)
    await instances.with_client()
    yield instances
    for store in instances.stores:
        await store.aclose()


@pytest.fixture(autouse=True)
def stage_has_store(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give each `Stage` a store, also those of the tests of the other module."""
    monkeypatch.setattr(Stage, "make_store", staticmethod(lambda clock: MemorySignIns(clock=clock)))


@pytest.fixture(name="stage")
async def stage_with_client(stage_has_store: None) -> Stage:
    return await Stage().with_client()


def id_of(stage: Stage, refresh_token: str) -> str:
    """Return the id of a sign-in, which is encrypted in its tokens."""
    assert stage.proxy._settings.sign_ins is not None
    token = stage.proxy._settings.sign_ins.read(refresh_token)
    assert token is not None
    return token.sign_in


async def assert_ended(stage: Stage, *tokens: str) -> None:
    for token in tokens:
        await assert_invalid_grant(await stage.refresh(token))


# Each step on another instance, on each store


async def test_instances_share_a_sign_in(instances: Instances) -> None:
    tokens = await instances.tokens(scope="orders.read orders.write")
    for _ in range(3):
        instances.clock.now += 3000
        answer = await instances.refresh(tokens["refresh_token"])
        assert answer.status == 200
        assert answer.header("cache-control") == "no-store"
        assert answer.json["refresh_token"] != tokens["refresh_token"]
        assert answer.json["scope"] == "orders.read orders.write"
        tokens = answer.json
        assert isinstance(await instances.caller_of(tokens["access_token"]), Principal)
    assert len(instances.upstream.refreshes) == 3


async def test_of_a_hundred_redemptions_at_once_one_succeeds(instances: Instances) -> None:
    code = await instances.code()
    answers = await asyncio.gather(*(instances.exchange(code) for _ in range(100)))
    statuses = [answer.status for answer in answers]
    assert statuses.count(200) == 1
    assert set(statuses) <= {200, 400, 429}
    assert len(instances.upstream.exchanges) == 1


async def test_a_hundred_refreshes_at_once_ask_the_identity_provider_once_and_get_the_same_answer(
    instances: Instances,
) -> None:
    instances.upstream.rotates = True
    token = (await instances.tokens())["refresh_token"]
    answers = await asyncio.gather(*(instances.refresh(token) for _ in range(100)))
    assert {answer.status for answer in answers} == {200}
    (text,) = {answer.text for answer in answers}
    assert len(instances.upstream.refreshes) == 1
    assert (await instances.refresh(json.loads(text)["refresh_token"])).status == 200


async def test_a_repeated_refresh_gets_the_same_answer_and_a_late_one_ends_the_sign_in(
    instances: Instances, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    old = (await instances.tokens())["refresh_token"]
    first = await instances.refresh(old)
    instances.clock.now += 29
    assert (await instances.refresh(old)).text == first.text
    assert len(instances.upstream.refreshes) == 1
    assert "oauth_reuse" not in caplog.text
    instances.clock.now += 2
    await assert_ended(instances, old, first.json["refresh_token"])
    assert "event=oauth_reuse" in caplog.text
    assert len(instances.upstream.refreshes) == 1


async def test_a_token_from_before_the_last_one_ends_the_sign_in_at_once(instances: Instances) -> None:
    tokens = [(await instances.tokens())["refresh_token"]]
    for _ in range(2):
        tokens.append((await instances.refresh(tokens[-1])).json["refresh_token"])
    await assert_ended(instances, *tokens)


async def test_a_used_code_ends_the_sign_in_that_it_has_begun(instances: Instances) -> None:
    code = await instances.code()
    tokens = (await instances.exchange(code)).json
    await assert_invalid_grant(await instances.exchange(code, code_verifier="x" * 43))
    tokens = (await instances.refresh(tokens["refresh_token"])).json
    await assert_invalid_grant(await instances.exchange(code))
    await assert_ended(instances, tokens["refresh_token"])
    assert len(instances.upstream.exchanges) == 1


async def test_a_revocation_ends_the_sign_in_with_any_of_its_tokens(instances: Instances, kind: Kind) -> None:
    instances.upstream.revokes = False
    for is_old in (False, True):
        old = (await instances.tokens())["refresh_token"]
        new = (await instances.refresh(old)).json["refresh_token"]
        answer = await revoke(instances, old if is_old else new)
        assert (answer.status, answer.json) == (200, {})
        assert (await revoke(instances, old)).status == 200
        await assert_ended(instances, new, old)
    instances.upstream.revokes = True
    token = (await instances.tokens())["refresh_token"]
    await revoke(instances, token)
    assert instances.upstream.ended == {"upstream-refresh-6"}


async def test_a_user_is_signed_out_everywhere(instances: Instances) -> None:
    tokens = [(await instances.tokens())["refresh_token"] for _ in range(3)]
    tokens[0] = (await instances.refresh(tokens[0])).json["refresh_token"]
    instances.upstream.user = User("eve")
    other = (await instances.tokens())["refresh_token"]
    await instances.proxies[1].sign_out("ada")
    await instances.proxies[0].sign_out("unknown")
    await assert_ended(instances, *tokens)
    assert (await instances.refresh(other)).status == 200
    instances.upstream.user = ADA
    assert (await instances.refresh((await instances.tokens())["refresh_token"])).status == 200


async def test_a_dump_of_the_store_opens_nothing(instances: Instances, kind: Kind) -> None:
    user = instances.upstream.user = LONG_NAMES
    tokens = await instances.tokens()
    renewed = (await instances.refresh(tokens["refresh_token"])).json
    dump = {key.rpartition(":")[2]: value for key, value in kind.dump().items()}
    assert len(dump) == 3  # a used code, a sign-in, and the sign-ins of a user
    assert all(len(key) == 64 and set(key) <= set("0123456789abcdef") for key in dump)
    sid = id_of(instances, renewed["refresh_token"])
    texts = [*tokens.values(), *renewed.values(), user.subject, user.name, user.email, sid, instances.client_id]
    texts.append("upstream-refresh")
    everything = "\n".join([*dump, *dump.values()])
    assert not [text for text in texts if isinstance(text, str) and len(text) > 2 and text in everything]
    # The keys of the server alone open nothing, either: the id of the sign-in is missing, which the client's token has.
    purposes = ["oauth sign-in", "oauth sign-in ", f"oauth sign-in {sid[:-1]}", "oauth refresh", "oauth stored refresh"]
    ring = instances.proxy._settings.keys
    assert not [value for value in dump.values() for purpose in purposes if ring.reveal(purpose, value)]
    assert [ring.reveal(f"oauth sign-in {sid}", value) is None for value in dump.values()].count(False) == 1
    other = KeyRing([b"another key" * 4]).of("oauth https://orders.example.com/mcp")
    assert not [value for value in dump.values() if other.reveal(f"oauth sign-in {sid}", value)]


# What does not depend on the store


async def test_a_refresh_whose_client_has_gone_is_completed_and_its_answer_can_be_fetched() -> None:
    stage = await Stage().with_client()
    stage.upstream.rotates = True
    token = (await stage.tokens())["refresh_token"]
    stage.upstream.gate.clear()
    lost = asyncio.create_task(stage.refresh(token))
    await stage.upstream.asked.acquire()
    lost.cancel()
    with pytest.raises(asyncio.CancelledError):
        await lost
    stage.upstream.gate.set()
    answer = await stage.refresh(token)
    assert answer.status == 200
    assert len(stage.upstream.refreshes) == 1
    assert (await stage.refresh(answer.json["refresh_token"])).status == 200


async def test_a_sign_in_that_is_revoked_during_a_refresh_does_not_come_back() -> None:
    stage = await Stage().with_client()
    token = (await stage.tokens())["refresh_token"]
    stage.upstream.gate.clear()
    refresh = asyncio.create_task(stage.refresh(token))
    await stage.upstream.asked.acquire()
    assert (await revoke(stage, token)).status == 200
    stage.upstream.gate.set()
    await assert_invalid_grant(await refresh)
    await assert_ended(stage, token)


async def test_a_repeated_refresh_that_asks_for_something_else_gets_nothing_and_ends_nothing() -> None:
    stage = await Stage().with_client()
    token = (await stage.tokens(scope="orders.read orders.write"))["refresh_token"]
    narrow = await stage.refresh(token, scope="orders.read")
    await assert_ended(stage, token)
    assert (await stage.refresh(token, scope="orders.read")).text == narrow.text
    assert (await stage.refresh(narrow.json["refresh_token"])).json["scope"] == "orders.read orders.write"


async def test_a_process_that_dies_during_a_refresh_delays_the_next_one_by_half_a_minute(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stored_sign_ins, "_WAIT_SECONDS", 0.1)
    stage = await Stage().with_client()
    tokens = await stage.tokens()
    sign_ins = stage.proxy._settings.sign_ins
    assert sign_ins is not None
    await sign_ins._hold(id_of(stage, tokens["refresh_token"]), 0, "")
    answer = await stage.refresh(tokens["refresh_token"])
    assert (answer.status, answer.json["error"]) == (503, "temporarily_unavailable")
    assert answer.header("retry-after") == "5"
    stage.clock.now += 41
    renewed = await stage.refresh(tokens["refresh_token"])
    assert renewed.status == 200
    # If the identity provider rotates, and the process dies after the answer, the next refresh token is lost with it.
    stage.upstream.rotates = True
    held = await sign_ins._hold(id_of(stage, tokens["refresh_token"]), 1, "")
    assert not isinstance(held, str)
    await stage.upstream.refresh(held.record.refresh.upstream_token, "ada")
    stage.clock.now += 41
    await assert_invalid_grant(await stage.refresh(renewed.json["refresh_token"]))
    await assert_ended(stage, renewed.json["refresh_token"])


async def test_of_two_callers_with_the_same_lease_one_wins_and_the_other_gets_its_answer() -> None:
    """A process that was suspended continues after its lease has ended."""
    stage = await Stage().with_client()
    token = (await stage.tokens())["refresh_token"]
    stage.upstream.gate.clear()
    suspended = asyncio.create_task(stage.refresh(token))
    await stage.upstream.asked.acquire()
    stage.clock.now += 41
    second = asyncio.create_task(stage.refresh(token))
    await stage.upstream.asked.acquire()
    stage.upstream.gate.set()
    answers = [await suspended, await second]
    assert [answer.status for answer in answers] == [200, 200]
    assert answers[0].text == answers[1].text
    assert (await stage.refresh(answers[0].json["refresh_token"])).status == 200


async def test_a_process_that_continues_too_late_does_not_end_the_sign_in(stage: Stage) -> None:
    """The identity provider refuses it, because another process has renewed the sign-in in the meantime."""
    stage.upstream.rotates = True
    token = (await stage.tokens())["refresh_token"]
    sign_ins = stage.proxy._settings.sign_ins
    assert sign_ins is not None
    held = await sign_ins._hold(id_of(stage, token), 0, "")
    assert not isinstance(held, str)
    stage.clock.now += 41
    renewed = (await stage.refresh(token)).json["refresh_token"]
    with pytest.raises(UpstreamRefusedError):
        await sign_ins._ask_upstream(held)
    assert (await stage.refresh(renewed)).status == 200


async def test_an_outage_of_the_identity_provider_leaves_the_refresh_token_valid() -> None:
    stage = await Stage().with_client()
    token = (await stage.tokens())["refresh_token"]
    stage.upstream.down = UpstreamUnavailableError("status 500")
    answers = await asyncio.gather(*(stage.refresh(token) for _ in range(3)))
    assert {answer.status for answer in answers} == {503}
    stage.upstream.down = RuntimeError("a fault of the upstream")
    with pytest.raises(RuntimeError, match="a fault"):
        await stage.refresh(token)
    stage.upstream.down = None
    assert (await stage.refresh(token)).status == 200


async def test_a_provider_that_never_answers_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_sign_ins, "_UPSTREAM_SECONDS", 0.05)
    stage = await Stage().with_client()
    token = (await stage.tokens())["refresh_token"]
    stage.upstream.gate.clear()
    assert (await stage.refresh(token)).status == 503
    stage.upstream.gate.set()
    assert (await stage.refresh(token)).status == 200


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
async def test_whatever_the_identity_provider_answers_the_client_gets_503_and_nothing_is_used_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with running() as provider:
        stage = await Stage(upstream=OIDC(provider.issuer, "app", clock=Clock())).with_client()
        browser = Browser()
        request = (await stage.consent(await stage.authorize(browser), browser)).query
        back = {"code": "upstream-code", "state": request["state"], "iss": provider.issuer}
        code = (await stage.callback(back, browser)).query["code"]
        answers: list[tuple[int, Any]] = [(302, b""), (200, b"<html>"), (200, b" " * 10_000_000), (500, b""), (0, b"")]
        good = {"id_token": provider.id_token(nonce=request["nonce"]), "refresh_token": "upstream-refresh"}
        refresh = {"grant_type": "refresh_token", "client_id": stage.client_id}
        for is_refresh in (False, True):
            for status, body in answers:
                provider.answers["/token"] = status, body
                with monkeypatch.context() as patch:
                    if not status:
                        patch.setattr(upstream, "_SECONDS", 0.2)
                    answer = await (stage.token(**refresh) if is_refresh else stage.exchange(code))
                assert (answer.status, answer.json["error"]) == (503, "temporarily_unavailable")
                assert answer.header("retry-after") == "5"
            provider.answers["/token"] = 200, good
            answer = await (stage.token(**refresh) if is_refresh else stage.exchange(code))
            assert answer.status == 200
            good = {"access_token": "opaque"}
            refresh["refresh_token"] = answer.json["refresh_token"]


async def test_a_user_who_loses_the_right_to_sign_in_loses_the_sign_in() -> None:
    rights = {"ada": True}

    def allow(user: User) -> bool:
        return rights[user.subject]

    stage = await Stage(allow=allow).with_client()
    stage.upstream.rotates = True
    token = (await stage.tokens())["refresh_token"]
    rights["ada"] = False
    assert (await stage.refresh(token)).json["error"] == "invalid_grant"
    rights["ada"] = True
    await assert_ended(stage, token)


async def test_a_failure_of_allow_loses_no_token_of_the_identity_provider() -> None:
    rights: dict[str, bool] = {"ada": True}
    stage = await Stage(allow=lambda user: rights[user.subject]).with_client()
    stage.upstream.rotates = True
    token = (await stage.tokens())["refresh_token"]
    del rights["ada"]
    assert (await stage.refresh(token)).status == 503
    rights["ada"] = True
    assert (await stage.refresh(token)).status == 200


async def test_a_sign_in_ends_after_90_days_and_after_30_days_without_a_refresh() -> None:
    stage = await Stage().with_client()
    day = 86_400
    token = (await stage.tokens())["refresh_token"]
    for _ in range(3):
        stage.clock.now += 29 * day
        token = (await stage.refresh(token)).json["refresh_token"]
    stage.clock.now += 3 * day
    await assert_ended(stage, token)
    token = (await stage.tokens())["refresh_token"]
    stage.clock.now += 30 * day
    await assert_ended(stage, token)
    short = await Stage(refresh_seconds=3600).with_client()
    token = (await short.tokens())["refresh_token"]
    short.clock.now += 3600
    await assert_ended(short, token)


async def test_the_sign_ins_of_one_user_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_sign_ins, "MAX_PER_USER", 3)
    stage = await Stage().with_client()
    tokens = [(await stage.tokens())["refresh_token"] for _ in range(5)]
    await assert_ended(stage, *tokens[:2])
    for token in tokens[2:]:
        assert (await stage.refresh(token)).status == 200


async def test_a_text_of_a_proxy_without_a_store_is_worth_nothing_with_one_and_the_other_way_round() -> None:
    stage = await Stage().with_client()
    stored, token = stage.proxy, (await stage.tokens())["refresh_token"]
    stage.proxy = stage.instance(store=None)
    await assert_ended(stage, token)
    stateless = (await stage.tokens())["refresh_token"]
    stage.proxy = stored
    await assert_ended(stage, stateless)


async def test_a_sign_in_that_the_store_has_lost_has_ended(stage: Stage) -> None:
    tokens = await stage.tokens()
    stage.options["store"]._records.clear()
    await assert_ended(stage, tokens["refresh_token"])
    assert isinstance(await stage.caller_of(tokens["access_token"]), Principal)


async def test_a_store_that_was_set_back_does_not_accept_what_it_has_not_seen(stage: Stage) -> None:
    token = (await stage.tokens())["refresh_token"]
    store: MemorySignIns = stage.options["store"]
    backup = dict(store._records)
    newest = (await stage.refresh(token)).json["refresh_token"]
    store._records = backup
    await assert_ended(stage, newest, token)


class LossyStore(MemorySignIns):
    """A store that can be away.

    Attributes:
        failures: How many of the next calls fail.
        loses_replies: Whether those calls have their effect before they fail.
    """

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock=clock)
        self.failures: dict[str, int] = {}
        self.loses_replies = False

    async def get(self, key: str) -> str | None:
        with self._link("get"):
            return await super().get(key)

    async def take(self, key: str, value: str, seconds: float) -> bool:
        with self._link("take"):
            return await super().take(key, value, seconds)

    async def replace(self, key: str, old: str, new: str, seconds: float) -> bool:
        with self._link("replace"):
            return await super().replace(key, old, new, seconds)

    async def remove(self, key: str) -> None:
        with self._link("remove"):
            await super().remove(key)

    @contextmanager
    def _link(self, method: str) -> Iterator[None]:
        fails = self.failures.get(method, 0) > 0
        self.failures[method] = self.failures.get(method, 0) - 1
        if fails and not self.loses_replies:
            raise StoreUnavailableError
        yield
        if fails:
            raise StoreUnavailableError


@pytest.fixture
async def lossy(monkeypatch: pytest.MonkeyPatch) -> Stage:
    monkeypatch.setattr(Stage, "make_store", staticmethod(LossyStore))
    monkeypatch.setattr(stored_sign_ins, "_WRITE_PAUSES", (0.0, 0.0))
    return await Stage().with_client()


def assert_unavailable(answer: Answer) -> None:
    assert (answer.status, answer.json["error"]) == (503, "temporarily_unavailable")
    assert answer.json["error_description"] == "The store of the server can't be reached. Try again later."
    assert answer.header("retry-after") == "5"


async def test_while_the_store_is_away_nothing_is_issued_and_nothing_is_used_up(lossy: Stage) -> None:
    store: LossyStore = lossy.options["store"]
    token, code = (await lossy.tokens())["refresh_token"], await lossy.code()
    exchanges = list(lossy.upstream.exchanges)
    store.failures = dict.fromkeys(("get", "take", "replace", "remove"), 100)
    for answer in (await lossy.exchange(code), await lossy.refresh(token), await revoke(lossy, token)):
        assert_unavailable(answer)
    with pytest.raises(StoreUnavailableError):
        await lossy.proxy.sign_out("ada")
    assert (lossy.upstream.exchanges, lossy.upstream.refreshes) == (exchanges, [])
    store.failures = {}
    assert (await lossy.exchange(code)).status == 200
    assert (await lossy.refresh(token)).status == 200


@pytest.mark.parametrize("loses_replies", [False, True])
async def test_a_short_failure_while_tokens_are_stored_is_not_noticed(lossy: Stage, loses_replies: bool) -> None:
    store: LossyStore = lossy.options["store"]
    store.loses_replies = loses_replies
    lossy.upstream.rotates = True
    code = await lossy.code()
    token = (await lossy.exchange(code)).json["refresh_token"]
    lossy.upstream.gate.clear()
    refresh = asyncio.create_task(lossy.refresh(token))
    await lossy.upstream.asked.acquire()
    store.failures = {"replace": 2}
    lossy.upstream.gate.set()
    answer = await refresh
    assert answer.status == 200
    assert (await lossy.refresh(token)).text == answer.text
    assert (await lossy.refresh(answer.json["refresh_token"])).status == 200


async def test_a_store_that_fails_when_tokens_are_stored_leaves_none_of_them_valid(lossy: Stage) -> None:
    store: LossyStore = lossy.options["store"]
    token = (await lossy.tokens())["refresh_token"]
    lossy.upstream.gate.clear()
    refresh = asyncio.create_task(lossy.refresh(token))
    await lossy.upstream.asked.acquire()
    store.failures = {"replace": 100}
    lossy.upstream.gate.set()
    assert_unavailable(await refresh)
    store.failures = {}
    lossy.clock.now += 41  # the lease could not be given back
    assert (await lossy.refresh(token)).status == 200
    code = await lossy.code()
    store.failures = {"get": 100}
    assert_unavailable(await lossy.exchange(code))
    store.failures = {}
    await assert_invalid_grant(await lossy.exchange(code))
    assert len(store) == 4  # two used codes, one sign-in, and the sign-ins of a user


async def test_a_code_whose_use_could_not_be_given_back_stays_used(lossy: Stage) -> None:
    code = await lossy.code()
    lossy.upstream.down = UpstreamUnavailableError("status 500")
    lossy.options["store"].failures = {"remove": 1}
    assert (await lossy.exchange(code)).status == 503
    lossy.upstream.down = None
    await assert_invalid_grant(await lossy.exchange(code))


async def test_the_log_and_the_errors_have_no_secrets(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    stage.upstream.rotates = True
    user = stage.upstream.user = LONG_NAMES
    browser = Browser()
    page = await stage.authorize(browser)
    cookies = list(browser.cookies.values())
    upstream_page = await stage.consent(page, browser)
    cookies += browser.cookies.values()
    back = stage.upstream.sign_in(upstream_page.location)
    code = (await stage.callback(back, browser)).query["code"]
    tokens = (await stage.exchange(code)).json
    renewed = (await stage.refresh(tokens["refresh_token"])).json
    refusals = [await stage.exchange(code), await stage.refresh(renewed["refresh_token"])]
    other = (await stage.tokens())["refresh_token"]
    later = (await stage.refresh(other)).json["refresh_token"]
    stage.clock.now += 60
    refusals += [await stage.refresh(other), await stage.refresh(later)]
    revoked = (await stage.tokens())["refresh_token"]
    stage.upstream.down = UpstreamUnavailableError("status 500")
    await revoke(stage, revoked)
    stage.upstream.down = None
    refusals.append(await stage.refresh(revoked))
    last = await stage.tokens()
    await stage.proxy.sign_out(user.subject)
    refusals.append(await stage.refresh(last["refresh_token"]))
    assert {answer.status for answer in refusals} == {400}
    sid = id_of(stage, last["refresh_token"])
    issued = [answer[name] for answer in (tokens, renewed, last) for name in ("access_token", "refresh_token")]
    secrets = [stage.client_id, "the client's state", VERIFIER, code, *page.form.values(), *cookies, *back.values()]
    secrets += [
        *stage.upstream.refreshes,
        *stage.upstream.ended,
        *issued,
        later,
        revoked,
        sid,
        str(user.name),
        str(user.email),
    ]
    output = caplog.text + "".join(answer.text for answer in refusals)
    assert not [secret for secret in secrets if secret in output]
    for event in ("issued", "refreshed", "reuse", "revoked", "signed_out", "upstream_failed"):
        assert f"event=oauth_{event}" in caplog.text


async def test_a_proxy_without_a_store_can_not_sign_users_out() -> None:
    stage = Stage(store=None)
    with pytest.raises(RuntimeError, match=r"OAuthProxy\(store=\.\.\.\)"):
        await stage.proxy.sign_out("ada")
    assert stage.proxy.store is None
    await stage.proxy.aclose()
