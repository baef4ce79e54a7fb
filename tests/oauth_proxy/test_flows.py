"""What a sign-in carries from step to step, as other versions of funcmcp write it."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlencode

import pytest

from funcmcp._oauth_proxy.upstream import AuthorizationRequest
from funcmcp._protocol.codec import decode, encode
from tests.oauth_proxy.other_versions import KEYS_OF_PROXY, MORE, RECORDED, bad_values, concealed, value_in, with_more
from tests.oauth_proxy.stage import ADA, BACK, ISSUER, Browser, Stage

if TYPE_CHECKING:
    from tests.oauth_proxy.stage import Answer

STEPS = RECORDED["without_store"]
CLIENT = "oauth client"
MEMBERS = ("secret", "client", "redirect_uri", "state", "scopes", "challenge", "refreshes", "began", "code")
TRANSACTION, STATE, CODE, REFRESH = "oauth transaction", "oauth state", "oauth code", "oauth refresh"


@pytest.fixture
def stage() -> Stage:
    """A proxy that goes on where one of version 0.1 has stopped."""
    stage = Stage()
    stage.client_id = STEPS["client_id"]
    request = AuthorizationRequest(**STEPS["request"])
    stage.upstream.requests.append(request)
    stage.upstream._codes["upstream-code-1"] = request, ADA
    return stage


async def consented(stage: Stage, transaction: str) -> Answer:
    form = urlencode({**STEPS["form"], "transaction": transaction, "decision": "allow"}).encode()
    headers = {"content-type": "application/x-www-form-urlencoded", "origin": ISSUER}
    return await stage.send("POST", "/oauth/consent", body=form, headers=headers, browser=Browser(dict(STEPS["ask"])))


async def returned(stage: Stage, state: str) -> Answer:
    return await stage.callback({"code": "upstream-code-1", "state": state}, Browser(dict(STEPS["go"])))


async def test_a_client_of_version_0_1_is_known_for_ever(stage: Stage) -> None:
    stage.clock.now += 10 * 365 * 86_400
    assert (await stage.authorize()).status == 200


async def test_every_step_of_version_0_1_is_continued(stage: Stage) -> None:
    upstream = await consented(stage, STEPS["form"]["transaction"])
    assert (upstream.status, upstream.location.partition("?")[0]) == (303, "https://login.example.com/authorize")
    back = await returned(stage, STEPS["request"]["state"])
    assert (back.status, back.location.partition("?")[0], back.query["state"]) == (302, BACK, "the client's state")
    signed_in = await stage.exchange(STEPS["code"])
    assert (signed_in.status, signed_in.json["scope"]) == (200, "orders.read")
    renewed = await stage.refresh(STEPS["refresh_token"])
    assert renewed.status == 200
    assert value_in(REFRESH, renewed.json["refresh_token"])["subject"] == "ada"


async def test_members_of_a_later_version_are_kept_at_every_step(stage: Stage) -> None:
    page = await stage.authorize(browser := Browser())
    transaction = concealed(TRANSACTION, with_more(value_in(TRANSACTION, page.form["transaction"])))
    upstream = await stage.consent(page, browser, transaction=transaction)
    assert value_in(STATE, stage.upstream.requests[-1].state)["added"] == MORE["added"]
    back = await stage.callback(stage.upstream.sign_in(upstream.location), browser)
    assert value_in(CODE, back.query["code"])["added"] == MORE["added"]
    refresh_token = (await stage.exchange(back.query["code"])).json["refresh_token"]
    refresh_token = concealed(REFRESH, with_more(value_in(REFRESH, refresh_token)))
    stage.upstream.rotates = True
    for _ in range(2):
        answer = await stage.refresh(refresh_token)
        assert answer.status == 200
        refresh_token = answer.json["refresh_token"]
        assert value_in(REFRESH, refresh_token)["added"] == MORE["added"]


async def test_a_step_that_this_version_can_not_read_is_a_page_that_says_what_to_do(stage: Stage) -> None:
    for purpose, text, send in (
        (TRANSACTION, STEPS["form"]["transaction"], consented),
        (STATE, STEPS["request"]["state"], returned),
    ):
        record = dict(zip(MEMBERS, value_in(purpose, text), strict=True))
        for bad in bad_values({**record, "v": 1}):
            answer = await send(stage, concealed(purpose, bad))
            assert (answer.status, answer.is_page, "start the sign-in again" in answer.text) == (400, True, True), bad
    assert stage.upstream.exchanges == []


async def test_a_code_or_a_refresh_token_that_this_version_can_not_read_is_an_invalid_grant(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    code = await stage.code()
    refresh_token = (await stage.exchange(code)).json["refresh_token"]
    for purpose, text, send in ((CODE, code, stage.exchange), (REFRESH, refresh_token, stage.refresh)):
        for number, bad in enumerate(bad_values(value_in(purpose, text))):
            stage.caller = f"192.0.2.{number}"  # an address has a limit of failed requests
            answer = await send(concealed(purpose, bad))
            assert (answer.status, answer.json["error"]) == (400, "invalid_grant"), bad
    assert "event=oauth_sign_in_unreadable" in caplog.text
    assert (await stage.refresh(refresh_token)).status == 200


async def test_a_registration_that_this_version_can_not_read_is_that_of_an_unknown_client(stage: Stage) -> None:
    payload = KEYS_OF_PROXY.open(CLIENT, (await stage.register()).json["client_id"])
    assert payload is not None
    for bad in bad_values(decode(payload)):
        if isinstance(bad, dict) and bad.keys() | {"registered"} == decode(payload).keys():
            continue  # when a client registered is for people only
        text = bad if isinstance(bad, bytes) else encode(bad)
        stage.client_id = KEYS_OF_PROXY.seal(CLIENT, text)
        page = await stage.authorize()
        assert (page.status, "does not know your application" in page.text) == (400, True), bad
        stage.caller = f"192.0.2.{len(text)}"
    stage.client_id = KEYS_OF_PROXY.seal(CLIENT, encode(with_more(decode(payload))))
    assert (await stage.authorize()).status == 200
