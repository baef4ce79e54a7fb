"""Attacks by way of the identity provider: its users, its answers, secrets in representations, and waiting requests."""

from __future__ import annotations

import asyncio
import logging
import traceback
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from funcmcp._grants.accounts import Tokens
from funcmcp._grants.token_cache import Issued
from funcmcp._oauth_proxy import entra, upstream
from funcmcp._oauth_proxy.client_authentication import Credentials
from funcmcp._oauth_proxy.flows import Flow
from funcmcp._oauth_proxy.refresh_tokens import Refresh
from funcmcp._oauth_proxy.stored_sign_ins import StoredToken, _Read, _Record
from funcmcp._oauth_proxy.visits import Visit
from funcmcp._oauth_proxy.web import WebRequest
from funcmcp.auth import (
    OIDC,
    Auth,
    ClaimsRequest,
    GrantProvider,
    Introspection,
    IssuedToken,
    OAuth2,
    OAuthProxy,
    Program,
    SignIn,
    UpstreamHTTP,
    UpstreamRefusedError,
    UpstreamUnavailableError,
    User,
    first_of,
)
from tests.oauth_proxy.stage import KEYS, SCOPES, URL, Browser, ScriptedUpstream, Stage
from tests.oauth_proxy.test_entra_tenants import OTHER, Organizations
from tests.oauth_proxy.test_entra_tenants import entra as entra_of
from tests.oauth_proxy.test_oauth2 import URLS, ProviderHTTP, exchange
from tests.oauth_proxy.test_oauth2 import upstream as oauth2_of
from tests.oauth_proxy.test_visits import Hall
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Callable

SECRET = "a-secret-that-nobody-may-read"


async def with_secret(_: str) -> User:
    return User("ada")


OBJECTS: dict[str, Callable[[], object]] = {
    "SignIn": lambda: SignIn(User("ada"), SECRET, IssuedToken(SECRET, 60), ClaimsRequest((), lambda: with_secret(""))),
    "IssuedToken": lambda: IssuedToken(SECRET, 60),
    "ClaimsRequest": lambda: ClaimsRequest(("org",), partial(with_secret, SECRET)),
    "Refresh": lambda: Refresh(User("ada"), "client", (), 1, SECRET, claims={"x": SECRET}),
    "Record": lambda: _Read(SECRET, SECRET, _Record(Refresh(User("ada"), "client", (), 1, SECRET), answer=SECRET)),
    "StoredToken": lambda: StoredToken(SECRET, 1, "client"),
    "Flow": lambda: Flow(SECRET.encode(), "client", "https://a.example", None, (), "c", True, 1, SECRET),
    "Visit": lambda: Visit("page", SECRET, SECRET.encode(), 1),
    "WebRequest": lambda: WebRequest("POST", "/", SECRET, {"cookie": SECRET}, SECRET.encode(), "", "Orders"),
    "Credentials": lambda: Credentials("client", SECRET),
    "Tokens": lambda: Tokens(SECRET, 1.0, SECRET, None),
    "Issued": lambda: Issued(SECRET, 1.0),
    "OAuth2": lambda: OAuth2("app", SECRET, **URLS),
    "OIDC": lambda: OIDC("https://login.example.com", "app", SECRET),
    "Introspection": lambda: Introspection(
        "https://a.example/i", issuer="https://a.example", audience=None, client_id="a", client_secret=SECRET
    ),
    "Program": lambda: Program(secret=SECRET, scopes=["orders.read"]),
    "GrantProvider": lambda: GrantProvider("github", "app", SECRET),
    "OAuthProxy": lambda: proxy_of(OAuth2("app", SECRET, **URLS)),
    "ProxySettings": lambda: proxy_of(OAuth2("app", SECRET, **URLS))._settings,
}


def proxy_of(provider: Any) -> OAuthProxy:
    programs = {"reports": Program(secret=SECRET, scopes=["orders.read"])}
    return OAuthProxy(URL, upstream=provider, scopes=SCOPES, keys=KEYS, programs=programs)


# Secrets


@pytest.mark.parametrize("name", OBJECTS)
def test_no_representation_has_a_secret(name: str) -> None:
    value = OBJECTS[name]()
    assert SECRET not in f"{value!r} {value} {[value]}"


@pytest.mark.parametrize("name", OBJECTS)
def test_no_traceback_with_local_variables_has_a_secret(name: str) -> None:
    """Error trackers and test runners write the local variables of each frame."""

    def fail(value: object) -> None:
        raise ValueError(f"can't use {type(value).__name__}")

    try:
        fail(OBJECTS[name]())
    except ValueError as error:
        captured = traceback.TracebackException.from_exception(error, capture_locals=True)
        inner = captured.stack[-1]
        assert SECRET not in str(inner.locals)


@pytest.mark.parametrize(
    "answer",
    [
        (400, {"error": "invalid_grant", "error_description": "x\nevent=oauth_issued user=admin\x1b[31m"}),
        (400, {"error": "x\nevent=oauth_issued", "error_description": "y"}),
        (200, {"x\nevent=oauth_issued": 1}),
        (200, {"access_token": "", "x\nevent=oauth_issued": 1}),
        (500, {"error": "\u2028event=oauth_issued"}),
    ],
)
async def test_the_provider_writes_no_line_of_the_log(answer: Any, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    stage = await sign_in_at(ProviderHTTP(token=answer))
    assert (await stage.exchange(await stage.code())).status in {400, 503}
    for line in (line for record in caplog.records for line in record.getMessage().splitlines()[1:]):
        assert "event=" not in line
    assert "\x1b" not in caplog.text


async def sign_in_at(http: ProviderHTTP, **options: Any) -> Stage:
    """Return a proxy in front of an OAuth 2.0 provider."""
    stage = await Stage(upstream=oauth2_of(http, **options)).with_client()
    stage.upstream = Returning()  # type: ignore[assignment]
    return stage


class Returning:
    """Returns from the provider with a code."""

    def sign_in(self, url: str) -> dict[str, str]:
        return {"code": "code", "state": dict(parse_qsl(urlsplit(url).query))["state"]}


# Users of OAuth 2.0 providers


@pytest.mark.parametrize(
    "subject",
    [None, "", [], {}, True, False, 1.0, ["42"], {"id": "42"}, "x" * 256, 10**300],
    ids=lambda value: f"{value!r:.20}",
)
async def test_an_id_that_is_no_short_text_or_number_signs_nobody_in(subject: Any) -> None:
    with pytest.raises(UpstreamUnavailableError):
        await exchange(oauth2_of(ProviderHTTP(me=(200, {"id": subject}))))


@pytest.mark.parametrize(
    ("subject", "expected"), [(42, "42"), ("42", "42"), (0, "0"), (-1, "-1"), ("042", "042"), ("4\u0662", "4\u0662")]
)
async def test_an_id_is_kept_as_it_is(subject: Any, expected: str) -> None:
    sign_in = await exchange(oauth2_of(ProviderHTTP(me=(200, {"id": subject}))))
    assert sign_in.user is not None
    assert sign_in.user.subject == expected


@pytest.mark.parametrize("roles", ["admin", {"admin": False}, ["cook", 5], None])
async def test_roles_that_the_function_of_the_author_passes_on_are_checked(roles: Any) -> None:
    stage = await sign_in_at(
        ProviderHTTP(me=(200, {"id": "1", "r": roles})), user=lambda me: User(me["id"], roles=me["r"])
    )
    answer = await stage.exchange(await stage.code())
    assert (answer.status, answer.json["error"]) == (503, "temporarily_unavailable")


@pytest.mark.parametrize("member", ["name", "email", "tenant"])
@pytest.mark.parametrize("value", [5, ["x"], "x" * 256, b"x", {"x": 1}], ids=lambda value: type(value).__name__)
async def test_texts_that_the_function_of_the_author_passes_on_are_checked(member: str, value: Any) -> None:
    oauth2 = oauth2_of(ProviderHTTP(), user=lambda _: User("42", **{member: value}))
    with pytest.raises(UpstreamUnavailableError):
        await exchange(oauth2)


async def test_two_providers_can_not_share_one_server_with_equal_ids() -> None:
    both = [proxy_of(ScriptedUpstream()), proxy_of(OAuth2("app", SECRET, **URLS))]
    with pytest.raises(ValueError, match="several proxies"):
        Auth(first_of(*both))


@pytest.mark.parametrize("iss", ["https://evil.example", "https://login.example.com/", "null"])
async def test_a_return_that_names_a_provider_that_has_no_issuer_is_refused(iss: str) -> None:
    stage, browser = await sign_in_at(ProviderHTTP()), Browser()
    page = await stage.authorize(browser)
    back = await stage.consent(page, browser)
    answer = await stage.callback(stage.upstream.sign_in(back.location) | {"iss": iss}, browser)
    assert answer.status == 403
    assert answer.is_page


# Tenants of Entra ID


@pytest.mark.parametrize(
    "claims",
    [
        {"tid": OTHER.upper()},
        {"tid": [OTHER]},
        {"tid": "organizations", "iss": "https://login.microsoftonline.com/organizations/v2.0"},
        {"tid": "common"},
        {"tid": "{tenantid}", "iss": "https://login.microsoftonline.com/{tenantid}/v2.0"},
        {"tid": "9188040d-6c67-4c5b-b112-36a304b66dad"},
        {"iss": f"https://login.microsoftonline.com/{OTHER}/v2.0"},
        {"iss": f"https://sts.windows.net/{OTHER}/"},
        {"iss": "https://login.microsoftonline.com.evil.example/x/v2.0"},
        {"oid": None},
        {"oid": "x" * 256},
        {"oid": ["ada"]},
        {"aud": "api://other"},
        {"nonce": "another"},
        {"idp": "https://evil.example"},
        {"acct": 1},
    ],
)
async def test_no_token_of_another_tenant_or_user_signs_in(claims: dict[str, Any]) -> None:
    with pytest.raises((UpstreamRefusedError, UpstreamUnavailableError)):
        await exchange(entra_of(Organizations(**claims)))  # type: ignore[arg-type]


async def test_a_function_for_tenants_that_hangs_is_an_outage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entra, "_TENANTS_SECONDS", 0.01)

    async def hang(_: str) -> bool:
        return await asyncio.Event().wait()

    async with asyncio.timeout(PATIENCE):
        with pytest.raises(UpstreamUnavailableError, match="tenants_failed"):
            await exchange(entra_of(Organizations(), tenants=hang))  # type: ignore[arg-type]


# Waiting requests


class Hanging(UpstreamHTTP):
    """Requests that get no answer until the gate opens."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = asyncio.Event()

    async def _send(self, *_: Any) -> tuple[int, bytes]:
        await self.gate.wait()
        return 200, b"{}"


async def test_a_hundred_waiting_requests_let_the_next_one_fail_at_once_and_leave_nothing_behind() -> None:
    http = Hanging()
    waiting = [
        asyncio.create_task(http.get(f"https://a.example/{number}")) for number in range(upstream._MAX_CONCURRENT)
    ]
    await asyncio.sleep(0)
    async with asyncio.timeout(PATIENCE):
        with pytest.raises(UpstreamUnavailableError, match="too many requests"):
            await http.get("https://a.example/next")
    for task in waiting[:50]:
        task.cancel()
    http.gate.set()
    await asyncio.gather(*waiting, return_exceptions=True)
    assert await http.get("https://a.example/again") == {}
    assert http._running == 0


async def test_an_address_can_not_send_any_number_of_codes_to_the_provider_with_one_visit() -> None:
    """The state of a visit is good for ten minutes, and each return sends a code to the provider."""
    hall, browser = Hall(), Browser()
    state = dict(parse_qsl(urlsplit(await hall.begin(browser)).query))["state"]
    cookies = dict(browser.cookies)
    statuses = {
        (await hall.callback({"code": f"{number}", "state": state}, Browser(dict(cookies)))).status
        for number in range(150)
    }
    assert statuses == {403, 429}
    assert len(hall.upstream.exchanges) == 120
    hall.caller = "192.0.2.2"
    assert (await hall.callback(hall.upstream.sign_in(await hall.begin(browser)), browser)).status == 200


async def test_a_user_with_the_name_of_a_program_visits_no_page() -> None:
    hall = Hall(programs={"reports": Program(secret=SECRET, scopes=["orders.read"])})
    browser = Browser()
    answer = await hall.callback(hall.upstream.sign_in(await hall.begin(browser), User("reports")), browser)
    assert (answer.status, hall.visitors) == (403, [])
