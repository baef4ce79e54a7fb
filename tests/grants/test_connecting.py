"""Attacks on the flow that connects an account: strangers, other browsers, states, forms and pages."""

from __future__ import annotations

import asyncio
import logging
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, parse_qsl, quote, urlsplit

import pytest

from funcmcp import Auth, HTTPOptions, MCPServer
from funcmcp._auth.principal import UpstreamTokenError
from funcmcp._grants import connecting
from funcmcp._grants.tool_grants import owner_of_user
from funcmcp._oauth_proxy.upstream import UpstreamError, UpstreamRefusedError
from funcmcp._protocol.errors import CannotAskError, MCPError
from funcmcp._serving.composition import runtime_of
from funcmcp._state.key_values import StateFullError
from funcmcp._state.sessions.store import StoreUnavailableError
from funcmcp.auth import APIKeys, Grant, GrantProvider, Principal, User
from tests.grants.desk import SITE, Desk
from tests.oauth_proxy.stage import DOWN, ISSUER

if TYPE_CHECKING:
    from collections.abc import Callable

    import httpx2

    from tests.grants.desk import Browser

CALLBACK = "/grants/github/callback"
OTHERS = "This link is for another user"
NOT_HERE = "not the return of a flow that this browser has begun"


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch) -> Desk:
    return Desk(monkeypatch)


async def at_service(desk: Desk, browser: Browser, name: str = "ada") -> httpx2.Response:
    """Return the redirect to the service, after the user has signed in."""
    return await browser.sign_in(await browser.press(await desk.link(name)))


def state_in(redirect: httpx2.Response) -> str:
    return dict(parse_qsl(urlsplit(redirect.headers["location"]).query))["state"]


async def has_no_account(desk: Desk, name: str = "ada") -> bool:
    return "Open https://" in await desk.call(name=name, capabilities={})


# Whose link it is


@pytest.mark.parametrize(("owner", "visitor"), [("ada", "eve"), ("eve", "ada")])
async def test_a_link_connects_nothing_for_the_browser_of_another_user(
    desk: Desk, owner: str, visitor: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A user of the server who opens the link, and a victim to whom the user has sent it."""
    browser = desk.browser(visitor)
    page = await browser.connect(await desk.link(owner))
    assert (page.status_code, OTHERS in page.text) == (403, True)
    assert desk.service.requests == []
    assert "event=grant_of_another_user service=github " in caplog.text
    for name in (owner, visitor):
        assert await has_no_account(desk, name)


async def test_the_account_is_that_of_the_user_who_has_called(desk: Desk) -> None:
    for name in ("ada", "eve"):
        assert await desk.call(name=name, browser=desk.browser(name)) == "starred mcp"
    assert await asyncio.gather(*(desk.call(name=name) for name in ("ada", "eve") * 3)) == ["starred mcp"] * 6
    assert sorted(desk.received) == ["token-1"] * 4 + ["token-2"] * 4


async def test_the_subject_of_another_issuer_has_another_account(desk: Desk) -> None:
    assert await desk.call(browser=desk.browser()) == "starred mcp"
    context: Any = FakeContext(Principal("ada", "api-key"))
    with pytest.raises(UpstreamTokenError, match="Open https"):
        await desk.grants.token(context, Grant("github"))


async def test_the_page_says_for_whom_the_account_is_and_escapes_names(desk: Desk) -> None:
    desk.stage.upstream.user = User("eve", name="<script>alert(1)</script>\u202e")
    await desk.stage.with_client()
    desk._tokens["eve"] = (await desk.stage.tokens())["access_token"]
    page = await desk.browser("eve").open(await desk.link("eve"))
    assert "&lt;script&gt;" in page.text
    assert "<script" not in page.text
    assert "\u202e" not in page.text
    assert "<li>repo</li>" in page.text


# Links and returns that do not belong to the browser


@pytest.mark.parametrize("action", ["open", "press"])
async def test_a_link_serves_once(desk: Desk, action: str) -> None:
    url, browser = await desk.link(), desk.browser()
    assert (await browser.connect(url)).status_code == 200
    page = await getattr(browser, action)(url)
    assert (page.status_code, "has expired" in page.text) == (400, True)


@pytest.mark.parametrize(
    "origin", [None, "null", "https://evil.example", "http://orders.example.com", f"{ISSUER}:8443"]
)
async def test_the_form_must_come_from_the_page(desk: Desk, origin: str | None) -> None:
    browser = desk.browser()
    page = await browser.press(await desk.link(), origin)
    assert page.status_code == 403
    assert "location" not in page.headers


async def test_the_return_from_the_identity_provider_needs_the_browser_that_was_sent(desk: Desk) -> None:
    redirect = await desk.browser().press(await desk.link())
    page = await desk.browser().sign_in(redirect)
    assert (page.status_code, "not started in this browser" in page.text) == (403, True)
    assert desk.stage.upstream.exchanges[1:] == []


async def test_a_code_of_the_identity_provider_serves_once(desk: Desk) -> None:
    browser = desk.browser()
    redirect = await browser.press(await desk.link())
    query = desk.stage.upstream.sign_in(redirect.headers["location"])
    cookies = dict(browser.http.cookies)
    assert (await browser.http.get("/oauth/callback", params=query)).status_code == 303
    browser.http.cookies.update(cookies)
    page = await browser.http.get("/oauth/callback", params=query, headers={"cookie": cookie_header(cookies)})
    assert page.status_code == 403


async def test_the_identity_provider_can_not_be_left_out(desk: Desk) -> None:
    """The state of the link leads to no exchange as long as the user has not signed in."""
    url, browser = await desk.link(), desk.browser()
    state = parse_qs(urlsplit(url).query)["flow"][0]
    await browser.press(url)
    for cookie in ("", "__Host-funcmcp-grant-github=", "__Host-funcmcp-grant-github=x"):
        page = await browser.http.get(CALLBACK, params={"code": "c", "state": state}, headers={"cookie": cookie})
        assert (page.status_code, NOT_HERE in page.text) == (400, True)
    assert desk.service.requests == []


@pytest.mark.parametrize(
    "change",
    [
        lambda state: state[:-1],
        lambda state: f"{state}x",
        lambda state: state.upper(),
        lambda state: state.partition(".")[2],
        lambda state: f"{'0' * 32}.{state.partition('.')[2]}",
        lambda _state: "",
        lambda _state: "x" * 5_000,
        lambda state: f"../{state}",
        lambda state: f"{state}\udcff".encode("utf-8", "surrogateescape").decode("latin-1"),
        lambda state: f"{state}\0",
    ],
)
async def test_a_return_needs_the_state_of_the_flow(desk: Desk, change: Callable[[str], str]) -> None:
    browser = desk.browser()
    redirect = await at_service(desk, browser)
    page = await browser.allow(redirect, state=change(state_in(redirect)))
    assert (page.status_code, desk.service.requests) == (400, [])
    assert (await browser.allow(redirect)).status_code == 200


async def test_a_return_needs_the_cookie_of_the_browser(desk: Desk) -> None:
    redirect = await at_service(desk, desk.browser())
    page = await desk.browser().allow(redirect)  # another browser, as one that an attacker has lured
    assert (page.status_code, NOT_HERE in page.text) == (400, True)
    assert desk.service.requests == []


async def test_the_state_of_a_user_does_not_go_with_the_cookie_of_another_one(desk: Desk) -> None:
    ada, eve = desk.browser(), desk.browser("eve")
    of_ada, of_eve = await at_service(desk, ada), await at_service(desk, eve, "eve")
    assert (await eve.allow(of_eve, state=state_in(of_ada))).status_code == 400
    assert (await ada.allow(of_ada, state=state_in(of_eve))).status_code == 400
    assert desk.service.requests == []


async def test_the_state_of_another_service_is_not_accepted(desk: Desk) -> None:
    browser = desk.browser()
    redirect = await at_service(desk, browser)
    query = {"code": "c", "state": state_in(redirect)}
    cookie = browser.http.cookies["__Host-funcmcp-grant-github"]
    headers = {"cookie": f"__Host-funcmcp-grant-files={cookie}"}
    assert (await browser.http.get("/grants/files/callback", params=query, headers=headers)).status_code == 400
    assert desk.service.requests == []


async def test_a_sign_in_of_a_client_is_not_a_visit_and_the_other_way_round(desk: Desk) -> None:
    browser = desk.browser()
    visit = await browser.press(await desk.link())
    flow = desk.stage.upstream.sign_in(visit.headers["location"])
    client = desk.browser()
    page = await client.http.get("/oauth/callback", params={**flow, "state": flow["state"][:-2]})
    assert (page.status_code, "expired" in page.text) == (400, True)


async def test_only_one_of_two_returns_at_the_same_time_is_served(desk: Desk) -> None:
    browser = desk.browser()
    redirect = await at_service(desk, browser)
    pages = await asyncio.gather(browser.allow(redirect), browser.allow(redirect))
    assert sorted(page.status_code for page in pages) == [200, 400]
    assert len(desk.service.forms) == 1


async def test_a_link_ends_after_ten_minutes(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    url, browser = await desk.link(), desk.browser()
    values = runtime_of(desk.mcp)._open_grant_values()
    now = values._clock()
    monkeypatch.setattr(values, "_clock", lambda: now + 700)
    assert (await browser.open(url)).status_code == 400
    assert await desk.link() != url


async def test_a_link_that_ends_while_the_user_signs_in_is_a_page(desk: Desk) -> None:
    browser = desk.browser()
    redirect = await browser.press(await desk.link())
    await desk.call("disconnect")
    page = await browser.sign_in(redirect)
    assert (page.status_code, "has expired" in page.text) == (400, True)


async def test_a_flow_that_is_used_while_the_button_is_pressed_again_does_not_come_back(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, browser, other = await desk.link(), desk.browser(), desk.browser()
    late = await other.press(url)
    connector = desk.grants._connectors["github"]
    flow_of = connector._flow_of

    async def flow_before(state: str) -> Any:
        flow = await flow_of(state)
        monkeypatch.undo()  # the browser of the first request finishes between the two steps of the second one
        assert (await browser.connect(url)).status_code == 200
        return flow

    monkeypatch.setattr(connector, "_flow_of", flow_before)
    monkeypatch.setattr(connecting, "BROWSER_SECONDS", 1)
    page = await other.sign_in(late)
    assert (page.status_code, "has expired" in page.text) == (400, True)
    assert (await desk.browser().open(url)).status_code == 400


async def test_a_return_whose_flow_another_request_has_used_is_a_page(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser = desk.browser()
    redirect = await at_service(desk, browser)

    async def lose(*_arguments: Any) -> bool:
        return False

    monkeypatch.setattr(desk.grants._accounts["github"], "take_flow", lose)
    page = await browser.allow(redirect)
    assert (page.status_code, "was used before" in page.text, desk.service.requests) == (400, True, [])


# What comes back from the service


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"code": ""}, "has not allowed it"),
        ({"code": "x" * 5_000}, "has not allowed it"),
        ({"error": "access_denied", "error_description": "<b>hush</b>"}, "has not allowed it"),
        ({"code": "", "error": "server_error"}, "has not allowed it"),
    ],
)
async def test_a_return_without_a_code_is_a_page_and_an_answer_to_the_call(
    desk: Desk, changes: dict[str, str], reason: str
) -> None:
    browser = desk.browser()
    page = await browser.allow(await at_service(desk, browser), **changes)
    assert (page.status_code, reason in page.text) == (400, True)
    assert "hush" not in page.text
    assert desk.service.requests == []
    assert reason in await desk.call()
    assert await has_no_account(desk)


@pytest.mark.parametrize(
    ("iss", "is_connected"),
    [
        ("https://code.example.com", True),
        ("https://evil.example", False),
        ("https://code.example.com/", False),
        (None, False),
    ],
)
async def test_the_issuer_in_the_return_is_compared(
    monkeypatch: pytest.MonkeyPatch, iss: str | None, is_connected: bool
) -> None:
    desk = Desk(monkeypatch, issuer="https://code.example.com")
    browser = desk.browser()
    page = await browser.allow(await at_service(desk, browser), **({} if iss is None else {"iss": iss}))
    assert (page.status_code == 200) is is_connected
    assert (desk.service.requests != []) is is_connected


@pytest.mark.parametrize(
    "answer",
    [
        (200, {"access_token": "a b", "token_type": "bearer"}),
        (200, {"access_token": "a\r\nb", "token_type": "bearer"}),
        (200, {"access_token": "", "token_type": "bearer"}),
        (200, {"access_token": "\xe9", "token_type": "bearer"}),
        (200, {"access_token": ["a"], "token_type": "bearer"}),
        (200, {"access_token": "x" * 9_000, "token_type": "bearer"}),
        (200, {"access_token": "a", "token_type": "mac"}),
        (200, {"error": "bad_verification_code", "error_description": "hush"}),
        (200, ["hush"]),
        (400, {"error": "invalid_grant", "error_description": "hush"}),
        (401, {"error": "invalid_client", "error_description": "hush"}),
        DOWN,
        UpstreamRefusedError("hush"),
        UpstreamError("hush"),
    ],
)
async def test_an_answer_without_a_usable_token_connects_nothing(
    desk: Desk, answer: Any, caplog: pytest.LogCaptureFixture
) -> None:
    browser = desk.browser()
    redirect = await at_service(desk, browser)
    desk.service.answers = [answer]
    page = await browser.allow(redirect)
    assert (page.status_code, "has issued no token" in page.text) == (502, True)
    assert "hush" not in page.text
    assert "event=grant_failed service=github step=tokens" in caplog.text
    assert "has issued no token" in await desk.call()
    assert await desk.call(browser=browser) == "starred mcp"


async def test_the_log_has_why_a_service_has_refused_a_user(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    browser = desk.browser()
    for _ in range(3):
        redirect = await at_service(desk, browser)
        page = await browser.allow(redirect, error="invalid_scope", error_description="no repo\nevent=forged")
        assert (page.status_code, "has not allowed it" in page.text) == (400, True)
        await desk.call()  # which gets the failure
    lines = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert lines == ["event=grant_failed service=github step=authorize reason=invalid_scope: no repo\\nevent=forged"]


async def test_a_store_that_is_away_does_not_flood_the_log(
    desk: Desk, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def is_away(key: str) -> str:
        del key
        raise StoreUnavailableError

    monkeypatch.setattr(desk.store, "get", is_away)
    browser = desk.browser()
    for number in range(5):  # from anybody, without an account
        link = f"/grants/github/connect?flow={number:032x}.x"
        assert (await browser.open(link)).status_code == 503
    lines = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert lines == ["event=grant_not_stored service=github kind=StoreUnavailableError"]


# Redirects, headers and methods


async def test_parameters_of_a_link_lead_nowhere_else(desk: Desk) -> None:
    browser = desk.browser()
    url = f"{await desk.link()}&redirect_uri=https://evil.example&next=//evil.example&return_to=https://evil.example"
    redirect = await browser.sign_in(await browser.press(url))
    assert redirect.headers["location"].startswith(f"{SITE}/authorize?")
    assert "evil.example" not in redirect.headers["location"]


async def test_the_request_for_authorization_has_pkce_and_its_cookie_is_bound_to_the_host(desk: Desk) -> None:
    browser = desk.browser()
    redirect = await at_service(desk, browser)
    query = dict(parse_qsl(urlsplit(redirect.headers["location"]).query))
    assert query["code_challenge_method"] == "S256"
    assert re.fullmatch(r"[A-Za-z0-9_-]{43}", query["code_challenge"])
    cookie = next(text for text in redirect.headers.get_list("set-cookie") if "grant-github" in text)
    assert cookie.startswith("__Host-funcmcp-grant-github=")
    assert {"Path=/", "HttpOnly", "SameSite=Lax", "Secure"} <= set(cookie.split("; "))
    assert redirect.headers["cache-control"] == "no-store"
    await browser.allow(redirect)
    (form,) = desk.service.forms
    assert len(form["code_verifier"]) >= 43


@pytest.mark.parametrize("place", ["link", "expired", "callback"])
async def test_pages_run_no_scripts_and_are_in_no_frame(desk: Desk, place: str) -> None:
    browser = desk.browser()
    urls = {"link": await desk.link(), "expired": "/grants/github/connect?flow=x", "callback": CALLBACK}
    page = await browser.open(urls[place])
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert page.headers["cache-control"] == "no-store"
    assert page.headers["referrer-policy"] == ("same-origin" if place == "link" else "no-referrer")
    assert "<script" not in page.text


@pytest.mark.parametrize(("method", "path"), [("PUT", "connect"), ("POST", "callback"), ("DELETE", "callback")])
async def test_pages_have_their_methods_only(desk: Desk, method: str, path: str) -> None:
    answer = await desk.browser().http.request(method, f"/grants/github/{path}")
    assert answer.status_code == 405


@pytest.mark.parametrize("path", ["/grants/../grants/github/connect", "/grants/GITHUB/connect", "/grants/x/connect"])
async def test_other_paths_are_none_of_a_service(desk: Desk, path: str) -> None:
    answer = await desk.browser().http.get(f"{path}?flow={quote('x.y')}")
    assert answer.status_code in {400, 404}


# Failures of the identity provider and of the store


async def test_an_identity_provider_that_is_away_is_a_page(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    url, browser = await desk.link(), desk.browser()
    desk.stage.upstream.down = DOWN
    page = await browser.press(url)
    assert (page.status_code, "Try again later." in page.text) == (503, True)
    assert "kind=UpstreamUnavailableError reason=no route to host" in caplog.text
    desk.stage.upstream.down = None
    redirect = await browser.press(url)
    query = desk.stage.upstream.sign_in(redirect.headers["location"])
    desk.stage.upstream.down = DOWN
    assert (await browser.http.get("/oauth/callback", params=query)).status_code == 503
    desk.stage.upstream.down = None
    assert (await browser.connect(url)).status_code == 200


@pytest.mark.parametrize("error", [StoreUnavailableError(), StateFullError("full")])
@pytest.mark.parametrize("step", ["press", "return"])
async def test_a_store_that_fails_is_a_page(
    desk: Desk, error: Exception, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also between the exchange and the store: the tokens are lost, and the user is asked again."""
    url, browser = await desk.link(), desk.browser()
    redirect = await browser.press(url)
    if step == "return":
        redirect = await browser.sign_in(redirect)
    accounts = desk.grants._accounts["github"]

    async def fail(*_arguments: Any) -> None:
        raise error

    with monkeypatch.context() as patch:
        for name in ("write", "bind_flow"):
            patch.setattr(accounts, name, fail)
        if step == "press":
            page = await browser.sign_in(redirect)
        else:
            page = await browser.allow(redirect)
    assert (page.status_code, "Try again later" in page.text) == (503, True)
    assert await desk.call(browser=browser) == "starred mcp"


# Many links


async def test_calls_that_nobody_finishes_begin_one_flow(desk: Desk) -> None:
    links = {await desk.link() for _ in range(30)}
    assert len(links) == 1
    assert len(desk.store) < 20


async def test_calls_at_the_same_time_have_one_link_with_the_scopes_of_all(desk: Desk) -> None:
    await desk.token()
    wanted: list[dict[str, Any]] = [{}] + [
        {"tool": "read", "arguments": {"scopes": [f"s{number}"]}} for number in range(4)
    ]
    links = await asyncio.gather(*(desk.link(**options) for options in wanted))
    assert len(set(links)) == 1
    await desk.browser().connect(links[0])
    assert set(desk.authorizations[0]["scope"].split()) == {"repo", "s0", "s1", "s2", "s3"}
    assert await desk.call() == "starred mcp"


async def test_a_flow_that_another_call_begins_meanwhile_is_used(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    first = await desk.link()
    accounts = desk.grants._accounts["github"]
    read = accounts.read

    async def read_before(owner: Any, kind: str) -> Any:
        return None if kind == "flow" else await read(owner, kind)

    with monkeypatch.context() as patch:
        patch.setattr(accounts, "read", read_before)
        assert await desk.link() == first


async def test_a_scope_that_is_needed_while_the_browser_is_at_the_service_begins_another_flow(desk: Desk) -> None:
    first, browser = await desk.link(), desk.browser()
    redirect = await browser.sign_in(await browser.press(first))
    second = await desk.link(tool="read", arguments={"scopes": ["gist"]})
    assert first != second
    assert (await browser.allow(redirect)).status_code == 400
    assert (await browser.connect(second)).status_code == 200
    assert desk.authorizations[-1]["scope"] == "repo gist"


# Questions in the client


class FakeContext:
    """A request of a client that can open pages, or not."""

    def __init__(self, principal: Principal, *, declared: object = None, error: Exception | None = None) -> None:
        self.principal = principal
        self.client = self
        self.capabilities = {"elicitation": declared}
        self.revision = self
        self.per_request = False
        self.time_limit = None
        self._error = error

    async def ask(self, _questions: Any) -> Any:
        assert self._error is not None
        raise self._error


async def test_a_client_of_the_handshake_era_that_can_not_be_asked_now_gets_the_link_in_an_error(desk: Desk) -> None:
    principal = Principal("ada", ISSUER)
    context: Any = FakeContext(principal, declared={"url": {}}, error=CannotAskError("not now"))
    with pytest.raises(MCPError) as raised:
        await desk.grants.token(context, Grant("github"))
    assert raised.value.code == -32042
    (elicitation,) = raised.value.data["elicitations"]  # type: ignore[index]
    assert (elicitation["mode"], len(elicitation["elicitationId"])) == ("url", 32)


@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_a_user_who_says_no_is_not_asked_again_in_the_call(desk: Desk, action: str) -> None:
    assert "The user does not connect the account" in await desk.call(action=action)
    assert desk.received == []


async def test_a_user_who_takes_long_calls_again(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connecting, "BROWSER_SECONDS", 0.05)
    assert "Finish connecting the account at Github in the browser" in await desk.call()
    assert await desk.call(browser=desk.browser()) == "starred mcp"


async def test_a_call_waits_for_the_browser(desk: Desk) -> None:
    call = asyncio.create_task(desk.call())  # which says at once that the page is open
    browser = desk.browser()
    await asyncio.sleep(0.1)
    await browser.connect(await desk.link())
    assert await call == "starred mcp"


# Users of other authenticators enter a code


def code_desk(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the grants of a server whose users have API keys."""
    grants = [GrantProvider("github", "id", "secret", public_url="http://127.0.0.1:8000/base/")]
    mcp = MCPServer("Keys", auth=Auth(APIKeys({"ada": "a-key-of-16-characters"}), grants=grants), http=HTTPOptions())
    return runtime_of(mcp).grants


async def test_a_code_has_three_attempts_also_at_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    grants = code_desk(monkeypatch)
    connector, accounts = grants._connectors["github"], grants._accounts["github"]
    assert grants.redirect_uris == {"github": "http://127.0.0.1:8000/base/grants/github/callback"}
    principal = Principal("ada", "api-key")
    owner = owner_of_user(principal.issuer, principal.subject)
    pending = {"code": "BCDFGHJK", "attempts": 0, "flow": "f", "grant": {"access_token": "t", "until": 9e12}}
    await accounts.write(owner, "pending", pending, 600)

    class Guess(FakeContext):
        def __init__(self, text: str) -> None:
            super().__init__(principal)
            self.text = text

        async def ask(self, questions: Any) -> Any:
            await asyncio.sleep(0)  # all of them have read the same record
            return {key: {"action": "accept", "content": {"value": self.text}} for key in questions}

    guesses = [connector.ask(Guess(f"WRNG-{number:04}"), principal, owner, ()) for number in range(20)]
    errors = [str(error) for error in await asyncio.gather(*guesses, return_exceptions=True)]
    assert len([text for text in errors if "The code is wrong" in text]) == 1
    assert len([text for text in errors if "has been used" in text]) == 19
    await connector.ask(Guess("bcdf-ghjk"), principal, owner, ())
    assert await accounts.token(owner) == "t"
    assert await accounts.read(owner, "pending") is None


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ({"action": "decline"}, "does not connect"),
        ({"action": "accept", "content": {"value": "BCDFGHJK"}}, "not allowed: repo"),
    ],
)
async def test_a_code_that_nobody_enters_or_whose_account_lacks_a_scope_is_an_error(
    monkeypatch: pytest.MonkeyPatch, answer: dict[str, Any], message: str
) -> None:
    grants = code_desk(monkeypatch)
    principal = Principal("ada", "api-key")
    owner = owner_of_user(principal.issuer, principal.subject)
    grant = {"access_token": "t", "until": 9e12, "scopes": ["gist"]}
    pending = {"code": "BCDFGHJK", "attempts": 0, "flow": "f", "grant": grant}
    await grants._accounts["github"].write(owner, "pending", pending, 600)

    class Answer(FakeContext):
        async def ask(self, questions: Any) -> Any:
            return dict.fromkeys(questions, answer)

    context: Any = Answer(principal)
    with pytest.raises(UpstreamTokenError, match=message):
        await grants.token(context, Grant("github", ["repo"]))


async def test_the_third_wrong_code_ends_the_account(monkeypatch: pytest.MonkeyPatch) -> None:
    grants = code_desk(monkeypatch)
    connector, accounts = grants._connectors["github"], grants._accounts["github"]
    principal = Principal("ada", "api-key")
    owner = owner_of_user(principal.issuer, principal.subject)
    pending = {"code": "BCDFGHJK", "attempts": 2, "flow": "f", "grant": {"access_token": "t", "until": 9e12}}
    await accounts.write(owner, "pending", pending, 600)

    class Wrong(FakeContext):
        async def ask(self, questions: Any) -> Any:
            return {key: {"action": "accept", "content": {"value": "x"}} for key in questions}

    context: Any = Wrong(principal)
    with pytest.raises(UpstreamTokenError, match="connect the account anew"):
        await connector.ask(context, principal, owner, ())
    assert await accounts.read(owner, "pending") is None


# What is written into the log


async def test_no_record_has_a_token_a_code_or_a_secret(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "funcmcp")
    browser = desk.browser()
    texts = [await desk.call(browser=browser), await desk.call("disconnect"), await desk.call(browser=browser)]
    secret = ("token-1", "refresh-1", "code-1", "the-secret", desk.service.forms[0]["code_verifier"])
    pages = "".join(page.text for page in browser.pages)
    records = [record.getMessage() for record in caplog.records if record.name == "funcmcp"]
    assert len(records) > 5
    for text in (*records, *texts, pages):
        assert not [value for value in secret if value in text]


def cookie_header(cookies: dict[str, str]) -> str:
    return "; ".join(f"{name}={value}" for name, value in cookies.items())
