"""Visits: which user of the identity provider is at a browser, and attacks on that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from funcmcp._oauth_proxy.upstream import SignIn, UpstreamError, UpstreamMisconfiguredError, UpstreamRefusedError
from funcmcp._oauth_proxy.web import WebAnswer
from funcmcp._state.sessions.store import StoreUnavailableError
from funcmcp.auth import User
from funcmcp.state import KeyRing, MemorySignIns
from tests.oauth_proxy.stage import DOWN, ISSUER, LOGIN, URL, Answer, Browser, Stage, claims_of

if TYPE_CHECKING:
    from funcmcp._oauth_proxy.visits import Visits
    from funcmcp._oauth_proxy.web import WebRequest


class Hall(Stage):
    """A proxy with a page that asks who is at the browser.

    Attributes:
        visitors: The details and subjects that the page has got.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.visitors: list[tuple[str, str]] = []
        self.open(self.proxy.visits)

    def open(self, visits: Visits) -> None:
        """Add the page."""

        async def page(_request: WebRequest, detail: str, subject: str) -> WebAnswer:
            self.visitors.append((detail, subject))
            return WebAnswer(200, (), b"welcome")

        visits.pages["hall"] = page

    async def begin(self, browser: Browser, page: str = "hall") -> str:
        """Send a browser to the identity provider; return the URL there."""
        answer = await self.proxy.visits.begin(page, "the detail")
        received = Answer(answer.status, list(answer.headers), answer.body.decode())
        assert (received.status, received.header("cache-control")) == (303, "no-store")
        browser.keep(received)
        return received.location


async def test_the_page_gets_the_user_who_has_signed_in() -> None:
    hall, browser = Hall(), Browser()
    location = await hall.begin(browser)
    assert len(browser.cookies) == 1
    answer = await hall.callback(hall.upstream.sign_in(location, User("eve")), browser)
    assert (answer.status, answer.text, hall.visitors) == (200, "welcome", [("the detail", "eve")])
    assert browser.cookies == {}


async def test_another_browser_gets_nothing() -> None:
    hall, browser = Hall(), Browser()
    query = hall.upstream.sign_in(await hall.begin(browser))
    name = next(iter(browser.cookies))
    for cookies in ({}, {name: ""}, {name: "x"}, {name: "\xe9"}, {f"{name}x": browser.cookies[name]}):
        answer = await hall.callback(query, Browser(cookies))
        assert (answer.status, answer.is_page) == (403, True)
    assert hall.visitors == []
    assert hall.upstream.exchanges == []


async def test_the_cookie_of_one_visit_does_not_go_with_the_state_of_another_one() -> None:
    hall, first, second = Hall(), Browser(), Browser()
    query = hall.upstream.sign_in(await hall.begin(first))
    await hall.begin(second)
    assert (await hall.callback(query, second)).status == 403


@pytest.mark.parametrize("state", ["", "x", "c1.x", "x" * 5_000])
async def test_a_state_of_somebody_else_is_no_visit(state: str) -> None:
    hall, browser = Hall(), Browser()
    await hall.begin(browser)
    answer = await hall.callback({"code": "c", "state": state}, browser)
    assert (answer.status, "has expired" in answer.text) == (400, True)
    assert hall.visitors == []


async def test_a_visit_ends_after_ten_minutes_and_with_the_keys() -> None:
    hall, browser = Hall(), Browser()
    query = hall.upstream.sign_in(await hall.begin(browser))
    hall.clock.now += 600
    assert (await hall.callback(query, browser)).status == 400
    hall.clock.now -= 600
    hall.proxy = hall.instance(keys=KeyRing([b"another key of the tests" * 2]))
    hall.open(hall.proxy.visits)
    assert (await hall.callback(query, browser)).status == 400
    hall.proxy = hall.instance()
    assert (await hall.callback(query, browser)).status == 400  # this instance has no pages
    hall.open(hall.proxy.visits)
    assert (await hall.callback(query, browser)).status == 200


async def test_a_page_that_does_not_exist_gets_no_visit() -> None:
    hall, browser = Hall(), Browser()
    query = hall.upstream.sign_in(await hall.begin(browser, "cellar"))
    assert (await hall.callback(query, browser)).status == 400


async def test_a_sign_in_is_not_a_visit() -> None:
    hall = Hall()
    await hall.with_client()
    tokens = await hall.tokens()
    assert claims_of(tokens["access_token"])["sub"] == "ada"
    assert hall.visitors == []


@pytest.mark.parametrize(
    "query",
    [
        {"code": ""},
        {"code": "x" * 5_000},
        {"error": "access_denied"},
        {"iss": "https://evil.example"},
        {"iss": f"{LOGIN}/"},
    ],
)
async def test_an_answer_that_signs_nobody_in_is_a_page(query: dict[str, str]) -> None:
    hall, browser = Hall(), Browser()
    answer = await hall.callback(hall.upstream.sign_in(await hall.begin(browser)) | query, browser)
    assert (answer.status, answer.is_page, hall.visitors) == (403, True, [])
    assert hall.upstream.exchanges == []


async def test_the_issuer_is_required_where_the_provider_sends_it() -> None:
    hall = Hall()
    hall.upstream.sends_issuer = True
    for issuer, status in (({}, 403), ({"iss": LOGIN}, 200)):
        browser = Browser()
        query = hall.upstream.sign_in(await hall.begin(browser))
        assert (await hall.callback(query | issuer, browser)).status == status


@pytest.mark.parametrize(("error", "status"), [(DOWN, 503), (UpstreamRefusedError("hush"), 403)])
async def test_a_provider_that_fails_is_a_page(error: Exception, status: int, caplog: pytest.LogCaptureFixture) -> None:
    hall, browser = Hall(), Browser()
    query = hall.upstream.sign_in(await hall.begin(browser))
    hall.upstream.down = error
    answer = await hall.callback(query, browser)
    assert (answer.status, answer.is_page, "hush" in answer.text) == (status, True, False)
    assert f"event=oauth_visit_failed kind={type(error).__name__}" in caplog.text
    with pytest.raises(type(error)):
        await hall.begin(Browser())


@pytest.mark.parametrize("kind", [UpstreamMisconfiguredError, UpstreamRefusedError])
async def test_the_page_has_the_sentence_of_a_failure_for_users(kind: type[UpstreamError]) -> None:
    hall, browser = Hall(), Browser()
    query = hall.upstream.sign_in(await hall.begin(browser))
    hall.upstream.down = kind("hush", "Your organization may not use this server.")
    answer = await hall.callback(query, browser)
    assert "Your organization may not use this server." in answer.text
    assert "reached" not in answer.text


async def test_a_provider_that_names_no_user_signs_nobody_in(monkeypatch: pytest.MonkeyPatch) -> None:
    hall, browser = Hall(), Browser()
    query = hall.upstream.sign_in(await hall.begin(browser))

    async def exchange(*_arguments: Any, **_options: Any) -> SignIn:
        return SignIn(None, None)

    monkeypatch.setattr(hall.upstream, "exchange", exchange)
    assert (await hall.callback(query, browser)).status == 403
    assert hall.visitors == []


@pytest.mark.parametrize("query", ["state=a&state=b", "state=" + "x" * 20_000, "%ff=%ff"])
async def test_a_malformed_return_is_left_to_the_sign_in(query: str) -> None:
    assert (await Hall().callback(query, Browser())).status == 400


async def test_on_a_loopback_address_the_cookie_has_no_prefix() -> None:
    proxy = Hall().instance(url="http://127.0.0.1:8000/mcp")
    cookie = dict((await proxy.visits.begin("hall", "")).headers)["set-cookie"]
    assert cookie.startswith("oauth-visit-")
    assert "Secure" not in cookie


async def test_a_user_who_is_signed_out_leaves_the_pages_too() -> None:
    hall = Hall()
    subjects: list[str] = []

    async def sign_out(subject: str) -> None:
        subjects.append(subject)

    hall.proxy.visits.sign_outs.append(sign_out)
    with pytest.raises(RuntimeError, match="needs a store"):
        await hall.proxy.sign_out("ada")
    assert subjects == ["ada"]
    assert (hall.proxy.visits.issuer, URL.startswith(ISSUER)) == (ISSUER, True)


async def test_sign_ins_end_before_a_service_of_a_grant_is_asked() -> None:
    hall = await Hall(store=MemorySignIns()).with_client()
    token = (await hall.tokens())["refresh_token"]

    async def fails(subject: str) -> None:
        raise StoreUnavailableError

    hall.proxy.visits.sign_outs.append(fails)
    with pytest.raises(StoreUnavailableError):
        await hall.proxy.sign_out("ada")
    assert (await hall.refresh(token)).json["error"] == "invalid_grant"
