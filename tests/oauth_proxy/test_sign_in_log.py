"""Each refusal has a line with its cause, and nobody can fill the log."""

from __future__ import annotations

import asyncio
import logging
import re
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

import pytest

from funcmcp._oauth_proxy import stored_sign_ins
from funcmcp._oauth_proxy.failures import INVALID_GRANT, NOT_ALLOWED, PROVIDER_DENIED, PROVIDER_ERROR
from funcmcp._oauth_proxy.sign_in_log import SignInLog
from funcmcp._oauth_proxy.upstream import UpstreamRefusedError, UpstreamUnavailableError
from funcmcp._state.sessions.store import StoreUnavailableError
from funcmcp.state import KeyRing, MemorySignIns
from tests.clock import Clock
from tests.oauth_proxy.stage import ADA, DOWN, ISSUER, VERIFIER, Browser, Stage

SECRETS = re.compile(r"upstream-code|upstream-refresh|ada@example\.com|Ada|eyJ|funcmcp[-_.]")


def causes(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return the causes of the refusals in the log, and check that no line has a secret."""
    assert not SECRETS.search(caplog.text), caplog.text
    return re.findall(r"event=oauth_refused cause=(\w+)", caplog.text)


@pytest.fixture(params=[False, True], ids=["without a store", "with a store"])
async def stage(request: pytest.FixtureRequest, caplog: pytest.LogCaptureFixture) -> Stage:
    caplog.set_level(logging.INFO, "funcmcp")
    return await Stage(store=MemorySignIns() if request.param else None).with_client()


def without_code(changes: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in changes.items() if name != "code"}


async def other_client(stage: Stage) -> str:
    answer = await stage.register(client_name="Other")
    client_id: str = answer.json["client_id"]
    return client_id


@pytest.mark.parametrize(
    ("changes", "cause"),
    [
        ({"code_verifier": "x" * 43}, "verifier"),
        ({"code_verifier": None}, "verifier"),
        ({"code": "unknown"}, "invalid_grant"),
        ({"redirect_uri": "https://other.example.com/"}, "other_address"),
        ({"client_id": "unknown"}, "client_unknown"),
        ({"resource": "https://other.example.com/mcp"}, "other_resource"),
        ({"grant_type": None}, "request"),
        ({"grant_type": "password"}, "request"),
    ],
)
async def test_a_refused_code_has_its_cause_in_the_log(
    stage: Stage, changes: dict[str, Any], cause: str, caplog: pytest.LogCaptureFixture
) -> None:
    answer = await stage.exchange(changes.get("code") or await stage.code(), **without_code(changes))
    assert answer.status in {400, 401}
    assert causes(caplog) == [cause]


async def test_a_code_or_a_refresh_token_of_another_client_is_named(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    other = await other_client(stage)
    assert (await stage.exchange(await stage.code(), client_id=other)).status == 400
    token = (await stage.tokens())["refresh_token"]
    stage.proxy = stage.instance()  # whose log has written no such line
    assert (await stage.refresh(token, client_id=other)).status == 400
    stage.proxy = stage.instance()
    assert (await stage.refresh("unknown")).status == 400
    assert causes(caplog) == ["other_client", "other_client", "invalid_grant"]


async def test_a_user_whom_allow_refuses_has_a_line_with_the_mark_of_the_user(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG, "funcmcp")
    is_allowed = True
    stage = await Stage(allow=lambda user: is_allowed).with_client()
    stage.upstream.rotates = True
    token = (await stage.tokens())["refresh_token"]
    is_allowed = False
    for answer in (await stage.exchange(await stage.code()), await stage.refresh(token)):
        assert answer.json["error_description"] == "You may not use this server. Ask its operator for access."
    assert causes(caplog) == ["not_allowed", "not_allowed"]
    [issued] = re.findall(r"event=oauth_issued client=\S+ user=(\w+)", caplog.text)
    refused = re.findall(r"cause=not_allowed client=\S+ user=(\w+)", caplog.text)
    assert refused == [issued, issued]
    levels = [record.levelname for record in caplog.records if "cause=not_allowed" in record.getMessage()]
    assert levels == ["INFO", "DEBUG"]  # one user in one minute


@pytest.mark.parametrize("path", ["token", "revoke", "userinfo"])
async def test_a_store_that_is_away_is_in_the_log_of_each_endpoint(
    path: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.INFO, "funcmcp")
    store = MemorySignIns()
    user = replace(ADA, claims={"groups": [f"group-{number}" for number in range(1000)]})
    stage = await Stage(store=store, claims=["groups"]).with_client()
    stage.upstream.user = user
    tokens = await stage.tokens()

    async def is_away(key: str) -> str:
        raise StoreUnavailableError(store=key)

    monkeypatch.setattr(store, "get", is_away)
    if path == "token":
        answer = await stage.refresh(tokens["refresh_token"])
    elif path == "revoke":
        form = urlencode({"token": tokens["refresh_token"], "client_id": stage.client_id}).encode()
        fields = {"content-type": "application/x-www-form-urlencoded"}
        answer = await stage.send("POST", "/oauth/revoke", body=form, headers=fields)
    else:
        fields = {"authorization": f"Bearer {tokens['access_token']}"}
        answer = await stage.send("GET", "/oauth/userinfo", headers=fields)
    assert (answer.status, causes(caplog)) == (503, ["store_away"])


async def test_a_sign_in_that_another_process_holds_is_in_the_log(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.INFO, "funcmcp")
    monkeypatch.setattr(stored_sign_ins, "_WAIT_SECONDS", 0)
    stage = await Stage(store=MemorySignIns()).with_client()
    token = (await stage.tokens())["refresh_token"]
    stage.upstream.gate.clear()
    renewal = asyncio.create_task(stage.refresh(token))
    await stage.upstream.asked.acquire()
    assert (await stage.refresh(token)).status == 503
    assert causes(caplog) == ["sign_in_busy"]
    stage.upstream.gate.set()
    assert (await renewal).status == 200


async def test_scopes_of_allow_that_the_client_has_not_requested_are_in_the_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Most of all one that is misspelt: the user is refused, and the function has not refused anything."""
    caplog.set_level(logging.INFO, "funcmcp")
    stage = await Stage(allow=lambda user: ["order.read"]).with_client()
    assert (await stage.exchange(await stage.code(scope="orders.read"))).json["error"] == "invalid_grant"
    assert "(it returned order.read; requested: orders.read)" in caplog.text


async def test_a_refused_registration_has_its_reason(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    assert (await stage.register(redirect_uris=["http://evil.example.com/"])).status == 400
    stage.proxy = stage.instance()
    assert (await stage.register(redirect_uris=[])).status == 400
    stage.proxy = stage.instance(clients=["https://claude.ai"])
    assert (await stage.register()).status == 400
    assert causes(caplog) == ["registration", "registration", "client_not_allowed"]


@pytest.mark.parametrize(
    ("changes", "cause"),
    [
        ({"client_id": "unknown"}, "client_unknown"),
        ({"client_id": "https://127.0.0.1/client"}, "client_document"),
        ({"redirect_uri": "https://other.example.com/"}, "other_address"),
        ({"resource": "https://other.example.com/mcp"}, "other_resource"),
        ({"scope": "admin"}, "request"),
        ({"code_challenge": None}, "request"),
    ],
)
async def test_a_refused_authorization_request_has_its_cause(
    stage: Stage, changes: dict[str, Any], cause: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert (await stage.authorize(**changes)).status in {302, 400}
    assert causes(caplog) == [cause]


async def test_an_application_that_is_not_allowed_is_named(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "funcmcp")
    stage = await Stage().with_client()
    stage.proxy = stage.instance(clients=["https://claude.ai"])
    assert (await stage.authorize()).status == 403
    assert causes(caplog) == ["client_not_allowed"]


async def test_a_callback_in_another_browser_or_of_another_provider_is_named(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    browser = Browser()
    location = (await stage.consent(await stage.authorize(browser), browser)).location
    query = stage.upstream.sign_in(location)
    assert (await stage.callback(query, Browser())).status == 403
    assert (await stage.callback(query | {"iss": "https://evil.example.com\r\n"}, browser)).status == 403
    stage.proxy = stage.instance()
    assert (await stage.callback({"state": "x"}, browser)).status == 400
    stage.proxy = stage.instance()
    assert (await stage.consent(await stage.authorize(browser), browser, origin="https://evil.example.com")).status
    assert causes(caplog) == ["other_browser", "other_provider", "other_browser", "other_browser"]


async def test_with_other_keys_a_code_is_one_of_another_server(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    code = await stage.code()
    stage.proxy = stage.instance(KeyRing())
    stage.client_id = await other_client(stage)
    assert (await stage.exchange(code)).status == 400
    assert causes(caplog) == ["invalid_grant"]


async def test_a_sign_in_that_has_ended_has_a_line(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "funcmcp")
    stage = await Stage(store=MemorySignIns()).with_client()
    token = (await stage.tokens())["refresh_token"]
    await stage.proxy.sign_out("ada")
    assert (await stage.refresh(token)).status == 400
    assert causes(caplog) == ["sign_in_ended"]


async def test_a_provider_without_refresh_tokens_is_named_once(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    stage.upstream.gives_refresh_tokens = False
    for _ in range(3):
        assert "refresh_token" not in await stage.tokens()
    [line] = [message for message in caplog.messages if "oauth_no_refresh_token" in message]
    assert "users sign in again after 60 minutes. The provider gives no refresh token." in line
    assert "offline_access" in line


async def test_clients_that_want_no_refresh_token_are_no_reason_for_a_line(caplog: pytest.LogCaptureFixture) -> None:
    stage = await Stage().with_client(grant_types=["authorization_code"])
    stage.upstream.gives_refresh_tokens = False
    await stage.tokens()
    assert "oauth_no_refresh_token" not in caplog.text


async def test_a_malformed_request_has_its_reason(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    json = {"content-type": "application/json", "origin": ISSUER}
    for path in ("/oauth/token", "/oauth/revoke", "/oauth/consent"):
        stage.proxy = stage.instance()
        assert (await stage.send("POST", path, body=b"{}", headers=json)).status == 400
    for path, query in (("/oauth/authorize", "a=1&a=2"), ("/oauth/callback", "a=1&a=2"), ("/oauth/callback", "%ff")):
        stage.proxy = stage.instance()
        assert (await stage.send("GET", path, query)).status == 400
    assert causes(caplog) == ["request"] * 6


async def test_a_refused_revocation_has_its_cause(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    form = {"content-type": "application/x-www-form-urlencoded"}
    answer = await stage.send("POST", "/oauth/revoke", body=b"client_id=unknown&token=x", headers=form)
    assert answer.status == 401
    assert causes(caplog) == ["client_unknown"]


# Attacks


async def test_a_stranger_can_not_fill_the_log_with_refused_requests(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "funcmcp")
    stage = await Stage().with_client()
    for number in range(200):
        stage.caller = f"192.0.2.{number}"
        await stage.exchange(f"code-{number}")
        await stage.refresh(f"token-{number}")
        await stage.register(redirect_uris=[f"http://evil-{number}.example.com/"])
        await stage.authorize(client_id=f"unknown-{number}")
        await stage.authorize(scope=f"scope-{number}")
        await stage.callback({"state": f"state-{number}", "error": f"error-{number}"}, Browser())
    assert len(caplog.records) < 20


async def test_a_browser_can_not_fill_the_log_with_errors_of_a_provider(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "funcmcp")
    stage = await Stage().with_client()
    browser = Browser()
    location = (await stage.consent(await stage.authorize(browser), browser)).location
    state = stage.upstream.sign_in(location)["state"]
    cookies = dict(browser.cookies)
    statuses = []
    for number in range(300):
        browser.cookies = dict(cookies)
        answer = await stage.callback({"state": state, "error": f"e{number}", "error_description": "x" * 99}, browser)
        statuses.append(answer.status)
    assert statuses[0] == 302
    assert statuses[-1] == 429
    assert len([message for message in caplog.messages if "step=sign-in" in message]) == 1


async def test_the_steps_of_a_browser_have_a_rate(stage: Stage) -> None:
    browser = Browser()
    page = await stage.authorize(browser)
    answers = [await stage.consent(page, Browser()) for _ in range(121)]
    assert [answers[0].status, answers[-1].status] == [403, 429]
    assert answers[-1].is_page


def test_the_kinds_of_lines_are_bounded(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    log = SignInLog(clock)
    for number in range(1000):
        log.upstream_failed("token", UpstreamUnavailableError(f"reason {number}"))
    assert len(caplog.records) == 101
    clock.now += 60
    log.upstream_failed("token", UpstreamUnavailableError("another reason"))
    assert len(log._limits) == 1
    assert "another reason" in caplog.messages[-1]


def test_each_user_whom_allow_refuses_has_a_line(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "funcmcp")
    log = SignInLog()
    for _ in range(10):
        for user in ("ada", "bob", "cleo"):
            log.refused(NOT_ALLOWED, client="c", user=user)
    assert [message.split("user=")[1].split()[0] for message in caplog.messages] == ["ada", "bob", "cleo"]


def test_debug_has_each_line(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "funcmcp")
    log = SignInLog()
    for number in range(5):
        log.refused(INVALID_GRANT, f"number {number}", client="c")
    assert [record.levelname for record in caplog.records] == ["INFO", "DEBUG", "DEBUG", "DEBUG", "DEBUG"]
    assert "number 4" in caplog.messages[-1]


@pytest.mark.parametrize("text", ["a\r\nWARNING forged", "\x1b[2J", "\u202e\u2028", "%s %d", "x" * 10_000, "\ud800"])
def test_a_text_from_outside_is_escaped_and_short(text: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "funcmcp")
    log = SignInLog()
    log.refused(NOT_ALLOWED, text, client=text, user="mark")
    log.refused(INVALID_GRANT, text, client=text)
    log.upstream_failed("token", UpstreamRefusedError(text))
    assert len(caplog.messages) == 3
    for message in caplog.messages:
        assert message.isascii()
        assert message.isprintable()
        assert len(message) < 10_000


@pytest.mark.parametrize(
    ("query", "error", "description"),
    [
        (
            {"error": "access_denied", "error_description": "No licence."},
            "access_denied",
            f"{PROVIDER_DENIED.user} It says: No licence.",
        ),
        (
            {"error": "temporarily_unavailable"},
            "temporarily_unavailable",
            PROVIDER_ERROR.user,
        ),
        (
            {"error": "invalid_scope", "error_description": 'a "b" \\ <script>\r\n\u202e'},
            "server_error",
            f"{PROVIDER_ERROR.user} It says: a  b    <script>",
        ),
        (
            {"error": "x\ud83d\ude00"},
            "server_error",
            PROVIDER_ERROR.user,
        ),
        (
            {},
            "server_error",
            PROVIDER_ERROR.user,
        ),
        (
            {"error": "access_denied", "error_description": "AADSTS999999: tenant 1234"},
            "access_denied",
            PROVIDER_DENIED.user,
        ),
    ],
)
async def test_the_sentence_of_the_provider_reaches_the_user_where_it_is_safe(
    stage: Stage, query: dict[str, str], error: str, description: str, caplog: pytest.LogCaptureFixture
) -> None:
    browser = Browser()
    location = (await stage.consent(await stage.authorize(browser), browser)).location
    state = stage.upstream.sign_in(location)["state"]
    query = {name: value.encode("utf-16", "surrogatepass").decode("utf-16") for name, value in query.items()}
    back = await stage.callback({"state": state} | query, browser)
    assert (back.status, back.query["error"], back.query["error_description"].rstrip()) == (302, error, description)
    assert "step=sign-in" in caplog.text


async def test_a_provider_that_is_away_is_named_to_the_user(stage: Stage) -> None:
    browser = Browser()
    page = await stage.authorize(browser)
    stage.upstream.down = DOWN
    back = await stage.consent(page, browser)
    assert back.query["error"] == "temporarily_unavailable"
    assert back.query["error_description"] == "The identity provider can't be reached. Try again later."
    assert VERIFIER not in back.location
