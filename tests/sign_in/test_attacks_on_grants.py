"""Attacks on the grants of tools: links, states, cookies, answers of services, and the log.

Those on a single page are beside its other tests, in `tests/grants`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest

from funcmcp._grants.tool_grants import owner_of_user
from funcmcp._state.sessions.store import StoreUnavailableError
from funcmcp.auth import GrantProvider
from tests.grants.desk import Desk
from tests.oauth_proxy.stage import ISSUER

if TYPE_CHECKING:
    import httpx2

    from tests.grants.desk import Browser

SCRIPT = "<script>alert(1)</script>"


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch) -> Desk:
    return Desk(monkeypatch)


async def at_service(desk: Desk) -> tuple[Browser, str]:
    """Send the browser of a user to the service; return it, and the state."""
    link, browser = await desk.link(), desk.browser()
    await browser.open(link)
    redirect = await browser.sign_in(await browser.press(link))
    return browser, dict(parse_qsl(urlsplit(redirect.headers["location"]).query))["state"]


async def back(browser: Browser, query: str) -> httpx2.Response:
    return await browser.http.get(f"/grants/github/callback?{query}")


# The return from the service


@pytest.mark.parametrize(
    "query",
    [
        "error=access_denied",
        f"error={SCRIPT}&error_description={SCRIPT}",
        "code=a&error=x",
        "code=",
        "code=" + "a" * 5000,
        "",
        "id_token=a.b.c",
        "access_token=token",
        "response=a.b.c",
    ],
)
async def test_a_return_without_a_code_connects_nothing_and_repeats_nothing(desk: Desk, query: str) -> None:
    browser, state = await at_service(desk)
    answer = await back(browser, f"{urlencode({'state': state})}&{query}")
    assert answer.status_code == 400
    assert SCRIPT not in answer.text
    assert desk.service.forms == []


@pytest.mark.parametrize(
    "change",
    [
        lambda state: state.upper(),
        lambda state: state + "\n",
        lambda state: "0" * 32 + state[32:],
        lambda state: state[:32],
        lambda state: state[:33] + "x" * 32,
        lambda state: f"grants {state}",
        lambda state: f"../{state}",
        lambda state: "\u0660" * 32 + state[32:],
        lambda state: "\ud800".encode("utf-8", "surrogatepass").decode("latin-1") + state,
        lambda state: "",
    ],
)
async def test_another_state_is_none(desk: Desk, change: Any) -> None:
    browser, state = await at_service(desk)
    answer = await back(browser, urlencode({"state": change(state), "code": "code-1"}))
    assert answer.status_code == 400
    assert desk.service.forms == []


async def test_the_state_of_one_service_is_none_of_another_one(desk: Desk) -> None:
    browser, state = await at_service(desk)
    answer = await browser.http.get(f"/grants/files/callback?{urlencode({'state': state, 'code': 'code-1'})}")
    assert answer.status_code == 400
    assert desk.service.forms == []


@pytest.mark.parametrize("name", ["__Host-funcmcp-grant-github", "funcmcp-grant-github", "__Host-funcmcp-grant-files"])
@pytest.mark.parametrize("value", ["", "x", "*", "\u00e9".encode().decode("latin-1")])
async def test_a_cookie_that_an_attacker_has_chosen_is_of_no_use(desk: Desk, name: str, value: str) -> None:
    _, state = await at_service(desk)
    eve = desk.browser("eve")
    query = urlencode({"state": state, "code": "code-1"})
    cookie = {b"cookie": f"{name}={value}".encode("latin-1")}
    answer = await eve.http.get(f"/grants/github/callback?{query}", headers=cookie)
    assert answer.status_code == 400
    assert desk.service.forms == []


async def test_a_link_in_two_hands_connects_for_its_user_only(desk: Desk) -> None:
    link = await desk.link()
    ada, eve = desk.browser("ada"), desk.browser("eve")
    redirect = await ada.sign_in(await ada.press(link))
    assert (await eve.sign_in(await eve.press(link))).status_code == 403
    assert (await ada.allow(redirect)).status_code == 200
    assert (await eve.press(link)).status_code == 400
    assert await desk.call("read", {"scopes": []}, name="ada") == "read"
    assert "Connect" in await desk.call("read", {"scopes": []}, name="eve", capabilities={})


@pytest.mark.parametrize(
    "origin", ["null", "https://evil.example", f"{ISSUER}.evil.example", ISSUER.upper(), f"{ISSUER}:443", None]
)
async def test_the_button_of_another_page_does_nothing(desk: Desk, origin: str | None) -> None:
    link, browser = await desk.link(), desk.browser()
    assert (await browser.press(link, origin)).status_code == 403


@pytest.mark.parametrize("name", ["next", "redirect_uri", "return_to", "url", "state"])
async def test_no_parameter_leads_elsewhere(desk: Desk, name: str) -> None:
    link, browser = await desk.link(), desk.browser()
    answer = await browser.press(f"{link}&{name}=https://evil.example/")
    assert "evil.example" not in answer.headers["location"]


# Answers of the service


@pytest.mark.parametrize(
    "answer",
    [
        {"access_token": "a b"},
        {"access_token": "a\r\nx-forged: 1"},
        {"access_token": "\u00e9"},
        {"access_token": "x" * 8193},
        {"access_token": {"a": 1}},
        {"access_token": ""},
        {"token_type": "mac"},
        {"token_type": ["bearer"]},
        {"error": "invalid_grant"},
    ],
    ids=lambda value: f"{value!r:.40}",
)
async def test_a_token_that_a_request_can_not_have_is_not_stored(desk: Desk, answer: dict[str, Any]) -> None:
    desk.service.answers = [(200, {"access_token": "token-1", "token_type": "bearer"} | answer)]
    browser = desk.browser()
    assert "starred" not in await desk.call(browser=browser)
    assert browser.pages[-1].status_code == 502
    assert desk.received == []


@pytest.mark.parametrize(
    "answer",
    [
        {"expires_in": -5},
        {"expires_in": 1e300},
        {"expires_in": True},
        {"expires_in": [1]},
        {"refresh_token": "a\r\nb"},
        {"refresh_token": "x" * 200_000},
        {"scope": ["repo"]},
        {"scope": "repo " + " ".join(f"s{number}" for number in range(20_000))},
        {"scope": "repo " + "x" * 200_000},
    ],
    ids=lambda value: f"{value!r:.40}",
)
async def test_what_else_a_service_answers_is_bounded(desk: Desk, answer: dict[str, Any]) -> None:
    desk.service.answers = [(200, {"access_token": "token-1", "token_type": "bearer"} | answer)]
    assert await desk.call(browser=desk.browser()) == "starred mcp"
    assert sum(len(record.value) for record in desk.store._records.values()) < 60_000


# Names in pages, owners, and the log


@pytest.mark.parametrize(
    "name", [SCRIPT, "\u202eevil", "Ada</b></p><form action=https://evil.example>", "x" * 5000, "\x00\x1b[31m"]
)
async def test_pages_show_names_as_text(desk: Desk, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    service = desk.grants._connectors["github"]._service
    object.__setattr__(service, "title", name)
    monkeypatch.setattr(desk.grants._connectors["github"], "_server_name", lambda: name)
    link, browser = await desk.link(), desk.browser()
    page = await browser.open(link)
    assert page.status_code == 200
    for text in (SCRIPT, "</b></p><form action=https", "\u202e", "x" * 1000, "\x1b"):
        assert text not in page.text


@pytest.mark.parametrize(
    ("issuer", "subject"),
    [("a", "b c"), ("a b", "c"), ('a", "b', "c"), ("", "ab"), ("ab", ""), ("a\x00", "b"), ("A", "b")],
)
def test_no_issuer_and_subject_have_the_accounts_of_others(issuer: str, subject: str) -> None:
    others = [("a", "b"), ("a", 'b", "c'), ("b", "a")]
    assert owner_of_user(issuer, subject) not in [owner_of_user(*other) for other in others]


@pytest.mark.parametrize("name", ["../admin", "a/b", "A", "a b", "", "a\n", "github?", "\u0430", "x" * 41, "-a"])
def test_a_name_that_would_be_another_path_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="lower-case letters"):
        GrantProvider(name, "id", authorize="https://a.example/a", token="https://a.example/t")


async def test_strangers_write_one_line_of_the_log_while_the_store_is_away(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Each request with any link wrote a warning."""

    async def away(*_: Any) -> None:
        raise StoreUnavailableError(store="accounts")

    browser = desk.browser()
    monkeypatch.setattr(desk.store, "get", away)
    for number in range(20):
        assert (await browser.open(f"/grants/github/connect?flow={number:032x}.x")).status_code == 503
    assert sum("event=grant_not_stored" in record.getMessage() for record in caplog.records) == 1


async def test_the_log_of_all_levels_has_no_link_code_or_token(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG", logger="funcmcp")
    link, browser = await desk.link(), desk.browser()
    await browser.connect(link)
    await desk.call()
    lines = "\n".join(record.getMessage() for record in caplog.records if record.name.startswith("funcmcp"))
    for hidden in (link.rpartition(".")[2], *desk.received, "code-1", "refresh-1", json.dumps("token-1")):
        assert hidden not in lines
