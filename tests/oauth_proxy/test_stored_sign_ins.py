"""Sign-ins in a store, as other versions of funcmcp write them."""

from __future__ import annotations

import asyncio

import pytest

from funcmcp._oauth_proxy.upstream import SignIn, UpstreamRefusedError
from funcmcp.state import MemorySignIns
from tests.oauth_proxy.other_versions import RECORDED, bad_values, concealed, value_in, with_more
from tests.oauth_proxy.stage import ScriptedUpstream, Stage
from tests.state.sign_in_stores import (
    LIST,
    REFRESH,
    check_records_of_a_later_version,
    check_records_of_version_0_1,
    key_of_sign_in,
    purpose_of_sign_in,
)


@pytest.fixture
async def stage() -> Stage:
    return await Stage(store=MemorySignIns()).with_client()


async def test_sign_ins_of_version_0_1_are_renewed() -> None:
    await check_records_of_version_0_1(MemorySignIns())


async def test_members_of_a_later_version_are_kept_when_a_sign_in_is_renewed() -> None:
    await check_records_of_a_later_version(MemorySignIns())


async def test_an_earlier_token_of_version_0_1_ends_its_sign_in(stage: Stage) -> None:
    recorded = RECORDED["with_store"]
    stage.client_id = recorded["client_id"]
    for key, value in recorded["records"].items():
        await stage.options["store"].take(key, value, 3600)
    stage.clock.now += 60
    for token in (recorded["earlier"], recorded["refresh_token"]):
        answer = await stage.refresh(token)
        assert (answer.status, answer.json["error"]) == (400, "invalid_grant")


async def test_a_user_of_version_0_1_can_be_signed_out(stage: Stage) -> None:
    recorded = RECORDED["with_store"]
    stage.client_id = recorded["client_id"]
    for key, value in recorded["records"].items():
        await stage.options["store"].take(key, value, 3600)
    await stage.proxy.sign_out("ada")
    assert (await stage.refresh(recorded["refresh_token"])).json["error"] == "invalid_grant"


async def test_a_record_that_this_version_can_not_read_is_an_invalid_grant(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    store = stage.options["store"]
    token = (await stage.tokens())["refresh_token"]
    sign_in = value_in(REFRESH, token)["sign_in"]
    key, purpose = key_of_sign_in(sign_in), purpose_of_sign_in(sign_in)
    good = await store.get(key)
    record = value_in(purpose, good)
    bad_refreshes = [bad for bad in bad_values(record["refresh"]) if not isinstance(bad, bytes)]
    bad_records = [*bad_values(record), *({**record, "refresh": bad} for bad in bad_refreshes)]
    for number, bad in enumerate(bad_records):
        stage.caller = f"2001:db8:{number:x}::1"  # an address has a limit of failed requests
        text = concealed(purpose, bad)
        assert await store.replace(key, good, text, 3600)
        answer = await stage.refresh(token)
        assert (answer.status, answer.json["error"]) == (400, "invalid_grant"), bad
        assert await store.replace(key, text, good, 3600), "a record that can't be read is left as it is"
        assert "event=oauth_sign_in_unreadable: a newer version of the server has written it" in caplog.text
        caplog.clear()
    assert (await stage.refresh(token)).status == 200
    assert "oauth_sign_in_unreadable" not in caplog.text


async def test_a_refresh_token_that_this_version_can_not_read_is_an_invalid_grant(stage: Stage) -> None:
    token = (await stage.tokens())["refresh_token"]
    for number, bad in enumerate(bad_values(value_in(REFRESH, token))):
        stage.caller = f"2001:db8:{number:x}::1"
        answer = await stage.refresh(concealed(REFRESH, bad))
        assert (answer.status, answer.json["error"]) == (400, "invalid_grant"), bad
    assert (await stage.refresh(token)).status == 200


async def test_a_list_of_sign_ins_that_this_version_can_not_read_does_not_keep_a_user_from_signing_in(
    stage: Stage,
) -> None:
    store = stage.options["store"]
    await stage.tokens()
    assert stage.proxy._settings.sign_ins is not None
    [name] = stage.proxy._settings.sign_ins._index_keys("ada")
    for bad in bad_values(with_more(value_in(LIST, await store.get(name)))):
        current = await store.get(name)
        assert await store.replace(name, current, concealed(LIST, bad), 3600)
        token = (await stage.tokens())["refresh_token"]
        await stage.proxy.sign_out("ada")
        assert (await stage.refresh(token)).json["error"] == "invalid_grant"
        await stage.tokens()


class InterruptedUpstream(ScriptedUpstream):
    """The first refresh waits, and is then refused: its refresh token has been used.

    Attributes:
        waits: Is set once it waits.
        goes_on: Lets it go on.
    """

    def __init__(self) -> None:
        super().__init__()
        self.waits, self.goes_on = asyncio.Event(), asyncio.Event()

    async def refresh(self, refresh_token: str, subject: str) -> SignIn:
        if not self.waits.is_set():
            self.waits.set()
            await self.goes_on.wait()
            raise UpstreamRefusedError("the refresh token was used")
        return await super().refresh(refresh_token, subject)


async def test_a_refusal_does_not_end_a_sign_in_that_another_instance_has_renewed() -> None:
    upstream = InterruptedUpstream()
    stage = await Stage(store=MemorySignIns(), upstream=upstream).with_client()
    stage.upstream = upstream
    token = (await stage.tokens())["refresh_token"]
    stopped = asyncio.create_task(stage.refresh(token))
    await upstream.waits.wait()
    stage.clock.now += 41  # the lease has ended
    renewed = await stage.refresh(token)
    upstream.goes_on.set()
    late = await stopped
    assert (renewed.status, late.status) == (200, 200), late.text
    assert late.text == renewed.text
    assert (await stage.refresh(renewed.json["refresh_token"])).status == 200


async def test_a_refusal_ends_no_sign_in_that_another_instance_is_renewing() -> None:
    upstream = InterruptedUpstream()
    stage = await Stage(store=MemorySignIns(), upstream=upstream).with_client()
    stage.upstream = upstream
    token = (await stage.tokens())["refresh_token"]
    stopped = asyncio.create_task(stage.refresh(token))
    await upstream.waits.wait()
    stage.clock.now += 41
    upstream.gate.clear()
    renewing = asyncio.create_task(stage.refresh(token))
    await upstream.asked.acquire()
    upstream.goes_on.set()
    assert (await stopped).status == 503
    upstream.gate.set()
    assert (await renewing).status == 200


async def test_a_refusal_of_a_sign_in_that_has_ended_meanwhile_is_a_refusal() -> None:
    upstream = InterruptedUpstream()
    stage = await Stage(store=MemorySignIns(), upstream=upstream).with_client()
    stage.upstream = upstream
    token = (await stage.tokens())["refresh_token"]
    stopped = asyncio.create_task(stage.refresh(token))
    await upstream.waits.wait()
    await stage.proxy.sign_out("ada")
    upstream.goes_on.set()
    assert (await stopped).json["error"] == "invalid_grant"


async def test_a_server_that_stops_stores_the_renewal_of_a_client_that_has_gone(stage: Stage) -> None:
    stage.upstream.rotates = True
    token = (await stage.tokens())["refresh_token"]
    stage.upstream.gate.clear()
    client = asyncio.create_task(stage.refresh(token))
    await stage.upstream.asked.acquire()
    client.cancel()
    closing = asyncio.create_task(stage.proxy.aclose())
    await asyncio.sleep(0)
    stage.upstream.gate.set()
    await closing
    stage.proxy = stage.instance()
    assert (await stage.refresh(token)).status == 200
    assert len(stage.upstream.refreshes) == 1


async def test_a_server_that_stops_does_not_wait_for_a_provider_that_hangs(stage: Stage) -> None:
    token = (await stage.tokens())["refresh_token"]
    stage.upstream.gate.clear()
    client = asyncio.create_task(stage.refresh(token))
    await stage.upstream.asked.acquire()
    await stage.proxy.aclose(0.01)
    assert not client.done()
    stage.upstream.gate.set()
    assert (await client).status == 200
