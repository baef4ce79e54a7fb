"""OAuth 2.0 providers without OpenID Connect, against scripts of our own with the forms that providers document."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from funcmcp.auth import (
    AuthorizationRequest,
    OAuth2,
    SignIn,
    UpstreamHTTP,
    UpstreamRefusedError,
    UpstreamTokenError,
    UpstreamUnavailableError,
    User,
)
from tests.oauth_proxy.scripted import ScriptedHTTP
from tests.oauth_proxy.stage import BACK, Browser, Stage

if TYPE_CHECKING:
    from collections.abc import Mapping

REQUEST = AuthorizationRequest("https://orders.example.com/oauth/callback", "state", "challenge", "nonce")
SITE = "https://login.example.com"
URLS: dict[str, Any] = {"authorize": f"{SITE}/authorize", "token": f"{SITE}/token", "userinfo": f"{SITE}/me"}


class ProviderHTTP(ScriptedHTTP):
    """Answers by path.

    Attributes:
        answers: Status and JSON of the answers.
    """

    def __init__(self, **answers: Any) -> None:
        super().__init__()
        self.answers: dict[str, tuple[int, Any]] = {
            "/token": (200, {"access_token": "at", "token_type": "bearer", "refresh_token": "rt"}),
            "/me": (200, {"id": "42", "name": "Ada"}),
            "/revoke": (200, {}),
        } | {f"/{name}": answer for name, answer in answers.items()}

    def answer(self, url: str, headers: dict[str, str], form: dict[str, str]) -> tuple[int, Any]:
        return self.answers[urlsplit(url).path]

    @property
    def forms(self) -> list[dict[str, str]]:
        return [form for _, url, _, form in self.requests if url.endswith("/token")]


def upstream(http: ProviderHTTP, **options: Any) -> OAuth2:
    created = OAuth2("app", options.pop("secret", "secret"), **{"user": "id"} | URLS | options)
    created._http = http
    return created


async def exchange(oauth2: OAuth2) -> SignIn:
    return await oauth2.exchange("code", redirect_uri=REQUEST.redirect_uri, verifier="verifier", nonce="nonce")


async def query_of(oauth2: OAuth2) -> dict[str, str]:
    return dict(parse_qsl(urlsplit(await oauth2.authorization_url(REQUEST)).query, keep_blank_values=True))


async def test_the_user_is_sent_to_the_provider_with_state_and_pkce() -> None:
    oauth2 = upstream(ProviderHTTP(), scopes=["read", "write"], parameters={"prompt": "consent"})
    assert await query_of(oauth2) == {
        "response_type": "code",
        "client_id": "app",
        "redirect_uri": REQUEST.redirect_uri,
        "scope": "read write",
        "state": "state",
        "code_challenge": "challenge",
        "code_challenge_method": "S256",
        "prompt": "consent",
    }
    assert (oauth2.name, oauth2.issuer, await oauth2.requires_issuer()) == ("login.example.com", None, False)
    assert await upstream(ProviderHTTP(), issuer=SITE).requires_issuer()


async def test_a_provider_without_pkce_and_scopes_gets_neither() -> None:
    http = ProviderHTTP()
    oauth2 = upstream(http, pkce=False, authorize=f"{SITE}/authorize?tenant=1")
    assert set(await query_of(oauth2)) == {"tenant", "response_type", "client_id", "redirect_uri", "state"}
    await exchange(oauth2)
    assert "code_verifier" not in http.forms[0]


async def test_scopes_have_the_separator_of_the_provider() -> None:
    assert (await query_of(upstream(ProviderHTTP(), scopes=["read", "write"], scope_separator=",")))["scope"] == (
        "read,write"
    )


async def test_a_code_is_exchanged_for_the_user_of_the_api() -> None:
    http = ProviderHTTP(me=(200, {"id": 42, "name": "Ada", "email": "ada@example.com", "email_verified": True}))
    sign_in = await exchange(upstream(http, headers={"api-version": "3"}))
    user = sign_in.user
    assert user is not None
    assert (user.subject, user.name, user.email, user.claims["id"]) == ("42", "Ada", "ada@example.com", 42)
    assert (sign_in.refresh_token, sign_in.access_token) == ("refresh:rt", None)
    (_, _, at_token, form), (method, url, at_api, _) = http.requests
    assert form == {
        "grant_type": "authorization_code",
        "code": "code",
        "redirect_uri": REQUEST.redirect_uri,
        "code_verifier": "verifier",
    }
    assert at_token["authorization"].startswith("Basic ")
    assert (method, url, at_api["authorization"], at_api["api-version"]) == ("GET", f"{SITE}/me", "Bearer at", "3")


@pytest.mark.parametrize(
    ("options", "fields"),
    [
        ({"token_endpoint_auth_method": "client_secret_post"}, {"client_id": "app", "client_secret": "secret"}),
        ({"secret": None}, {"client_id": "app"}),
        ({"token_parameters": {"audience": "orders"}}, {"audience": "orders"}),
    ],
)
async def test_the_proxy_authenticates_as_configured(options: dict[str, Any], fields: dict[str, str]) -> None:
    http = ProviderHTTP()
    await exchange(upstream(http, **options))
    assert http.forms[0].items() >= fields.items()
    assert ("authorization" in http.requests[0][2]) == ("client_id" not in fields)


async def test_a_refresh_token_renews_the_sign_in_and_the_user_is_asked_for_again() -> None:
    http = ProviderHTTP(token=(200, {"access_token": "at", "refresh_token": "rt2"}))
    oauth2 = upstream(http)
    renewed = await oauth2.refresh("refresh:rt", "42")
    assert renewed.user is not None
    assert (renewed.user.subject, renewed.refresh_token) == ("42", "refresh:rt2")
    assert http.forms == [{"grant_type": "refresh_token", "refresh_token": "rt"}]
    http.answers["/token"] = 200, {"access_token": "at"}
    assert (await oauth2.refresh("refresh:rt2", "42")).refresh_token is None  # it remains the same


@pytest.mark.parametrize("is_of_function", [False, True])
async def test_a_user_who_can_not_be_read_keeps_a_sign_in_that_the_provider_has_renewed(
    is_of_function: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """The provider has replaced its refresh token, and accepts the old one no more."""
    http = ProviderHTTP(token=(200, {"access_token": "at", "refresh_token": "rt2"}))
    if not is_of_function:
        http.answers["/me"] = 503, {}
    oauth2 = upstream(http, user=(lambda claims: 1 // 0) if is_of_function else "id")
    assert await oauth2.refresh("refresh:rt", "42") == SignIn(None, "refresh:rt2")
    assert await oauth2.refresh("refresh:rt", "42") == SignIn(None, "refresh:rt2")
    assert caplog.text.count("event=oauth_userinfo_ignored issuer=login.example.com reason=provider_") == 1
    http.answers["/token"] = 200, {"access_token": "at"}  # the refresh token remains the same
    with pytest.raises(UpstreamUnavailableError):
        await oauth2.refresh("refresh:rt", "42")


async def test_without_a_refresh_token_the_access_token_renews_the_sign_in_while_it_is_valid() -> None:
    http = ProviderHTTP(token=(200, {"access_token": "at"}))
    oauth2 = upstream(http)
    assert (await exchange(oauth2)).refresh_token == "user:at"
    assert (await oauth2.refresh("user:at", "42")).refresh_token is None
    assert len(http.forms) == 1
    http.answers["/me"] = 401, {}
    with pytest.raises(UpstreamRefusedError):
        await oauth2.refresh("user:at", "42")


@pytest.mark.parametrize("renewal", ["refresh:rt", "user:at", "without-a-prefix"])
async def test_a_refresh_of_another_user_is_refused(renewal: str) -> None:
    with pytest.raises(UpstreamRefusedError, match="another user"):
        await upstream(ProviderHTTP()).refresh(renewal, "43")


@pytest.mark.parametrize(
    ("renewal", "form"),
    [
        ("refresh:rt", {"token": "rt", "token_type_hint": "refresh_token"}),
        ("user:at", {"token": "at", "token_type_hint": "access_token"}),
    ],
)
async def test_a_token_is_revoked_where_the_provider_can(renewal: str, form: dict[str, str]) -> None:
    http = ProviderHTTP()
    oauth2 = upstream(http, revoke=f"{SITE}/revoke")
    assert await oauth2.revoke(renewal)
    assert http.requests[0][3] == form
    http.answers["/revoke"] = 400, {"error": "invalid_grant"}
    with pytest.raises(UpstreamUnavailableError):
        await oauth2.revoke(renewal)
    assert not await upstream(http).revoke(renewal)


# Functions in place of an API that returns an object with an id


async def test_a_nested_token_is_that_of_the_user_and_one_beside_it_is_not() -> None:
    """Slack's user tokens are in ``authed_user``, and those of a bot beside it."""
    nested = {"id": "U1", "access_token": "xoxp", "token_type": "user"}
    answer = {"ok": True, "access_token": "xoxb", "refresh_token": "of the bot", "authed_user": nested}
    http = ProviderHTTP(token=(200, answer))
    oauth2 = upstream(http, token_member="authed_user", parameters={"user_scope": "users:read"})
    query = await query_of(oauth2)
    assert (query["user_scope"], "scope" in query) == ("users:read", False)
    assert (await exchange(oauth2)).refresh_token == "user:xoxp"
    assert http.requests[-1][2]["authorization"] == "Bearer xoxp"
    http.answers["/token"] = 200, {"access_token": "flat"}
    assert (await exchange(oauth2)).refresh_token == "user:flat"


async def test_tools_get_the_token_of_the_sign_in_if_that_is_configured() -> None:
    answer = {"access_token": "at", "token_type": "user", "refresh_token": "rt", "expires_in": 60}
    oauth2 = upstream(ProviderHTTP(token=(200, answer)), scopes=["read"], token_for_tools=True)
    signed_in = await exchange(oauth2)
    assert signed_in.access_token == ("at", 60.0)
    assert (await oauth2.refresh("user:old", "42")).access_token == ("old", None)
    assert (await oauth2.refresh("refresh:rt", "42")).access_token == ("at", 60.0)
    assert await oauth2.exchange_token("at", ["read"], None) == ("at", None)
    with pytest.raises(UpstreamUnavailableError, match="lacks 'write'"):
        await oauth2.exchange_token("at", ["read", "write"], None)
    with pytest.raises(UpstreamUnavailableError, match="audience"):
        await oauth2.exchange_token("at", [], "https://api.example.com")
    assert (await exchange(upstream(ProviderHTTP(token=(200, answer))))).access_token is None


async def viewer(answer: Mapping[str, Any], http: UpstreamHTTP) -> Mapping[str, Any]:
    """Ask a GraphQL API, as that of Linear, who the user is."""
    query = {"query": "{ viewer { id name email } }"}
    result = await http.call_api(f"{SITE}/graphql", answer["access_token"], json=query)
    viewed: Mapping[str, Any] = result["data"]["viewer"]
    return viewed


async def test_a_graphql_api_is_asked_by_a_function() -> None:
    http = ProviderHTTP(graphql=(200, {"data": {"viewer": {"id": "u1", "name": "Ada"}}}))
    oauth2 = upstream(http, userinfo=viewer)
    assert (await exchange(oauth2)).user == User("u1", name="Ada")
    assert http.requests[-1][:2] == ("POST", f"{SITE}/graphql")
    assert http.bodies == [{"query": "{ viewer { id name email } }"}]
    http.answers["/graphql"] = 200, {"errors": [{"message": "no"}], "data": None}
    with pytest.raises(UpstreamUnavailableError, match="no user in the answer: TypeError"):
        await exchange(oauth2)
    http.answers["/graphql"] = 401, {"errors": []}
    with pytest.raises(UpstreamRefusedError):
        await exchange(oauth2)


async def test_the_user_may_be_in_the_answer_of_the_token_endpoint_and_be_read_by_a_function() -> None:
    http = ProviderHTTP(token=(200, {"access_token": "at", "owner": {"user": {"id": "n1", "mail": "ada@example.com"}}}))
    oauth2 = upstream(
        http,
        userinfo=lambda answer, http: answer["owner"]["user"],
        user=lambda claims: User(claims["id"], email=claims["mail"], roles=frozenset({"cook"})),
    )
    user = (await exchange(oauth2)).user
    assert user == User("n1", email="ada@example.com", roles=frozenset({"cook"}))
    assert len(http.requests) == 1


@pytest.mark.parametrize(
    "read",
    [
        lambda claims: None,
        lambda claims: "42",
        lambda claims: User(""),
        lambda claims: User(42),  # type: ignore[arg-type]
        lambda claims: User("x" * 256),
        lambda claims: User("42", name="x" * 256),
        lambda claims: User("42", name=["Ada"]),  # type: ignore[arg-type]
        lambda claims: User("42", email="x" * 256),
        lambda claims: User("42", tenant={"id": 1}),  # type: ignore[arg-type]
        lambda claims: User(claims["missing"]),
        lambda claims: 1 // 0,
    ],
)
async def test_a_function_that_returns_no_user_is_an_outage_with_a_reason(read: Any) -> None:
    with pytest.raises(UpstreamUnavailableError, match="no user in the answer"):
        await exchange(upstream(ProviderHTTP(), user=read))


async def test_a_function_that_hangs_is_an_outage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("funcmcp._oauth_proxy.oauth2._SECONDS", 0.01)

    async def hang(answer: Any, http: Any) -> Any:
        await asyncio.Event().wait()

    with pytest.raises(UpstreamUnavailableError, match="TimeoutError"):
        await exchange(upstream(ProviderHTTP(), userinfo=hang))


# Answers that are refused, or are an outage


@pytest.mark.parametrize(
    "answer",
    [
        (200, {}),
        (200, {"access_token": 5}),
        (200, {"access_token": ""}),
        (200, {"access_token": "two\r\nlines"}),
        (200, {"access_token": "é"}),
        (200, []),
        (302, {}),
        (200, {"authed_user": {"access_token": "of Slack's older method"}}),
    ],
)
async def test_an_answer_without_a_usable_access_token_is_an_outage(answer: tuple[int, Any]) -> None:
    with pytest.raises(UpstreamUnavailableError):
        await exchange(upstream(ProviderHTTP(token=answer)))


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ((200, {"ok": False, "error": "invalid_auth"}), UpstreamRefusedError),
        ((401, {}), UpstreamRefusedError),
        ((403, {}), UpstreamRefusedError),
        ((400, {}), UpstreamRefusedError),
        ((404, {}), UpstreamUnavailableError),
        ((302, {}), UpstreamUnavailableError),
        ((200, {}), UpstreamUnavailableError),
        ((200, []), UpstreamUnavailableError),
        ((200, {"id": None}), UpstreamUnavailableError),
        ((200, {"id": ""}), UpstreamUnavailableError),
        ((200, {"id": True}), UpstreamUnavailableError),
        ((200, {"id": 4.2}), UpstreamUnavailableError),
        ((200, {"id": ["42"]}), UpstreamUnavailableError),
        ((200, {"id": "x" * 256}), UpstreamUnavailableError),
        ((200, {"sub": "42"}), UpstreamUnavailableError),
    ],
)
async def test_an_api_that_does_not_say_who_the_user_is(answer: tuple[int, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        await exchange(upstream(ProviderHTTP(me=answer)))


@pytest.mark.parametrize("claims", [{}, {"verified": True}, {"email_verified": "true"}, {"email_verified": 1}])
async def test_an_address_that_is_not_verified_is_only_a_claim(claims: dict[str, Any]) -> None:
    http = ProviderHTTP(me=(200, {"id": "42", "email": "ada@example.com"} | claims))
    user = (await exchange(upstream(http))).user
    assert user is not None
    assert (user.email, user.claims["email"]) == (None, "ada@example.com")


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"authorize": "http://login.example.com"}, r"OAuth2\.authorize must begin with https"),
        ({"token": "http://login.example.com"}, r"OAuth2\.token must begin with https"),
        ({"userinfo": "http://login.example.com"}, r"OAuth2\.userinfo must begin with https"),
        ({"revoke": "http://login.example.com"}, r"OAuth2\.revoke must begin with https"),
        ({"userinfo": "me"}, r"OAuth2\.userinfo must be an absolute URL"),
        ({"parameters": {"state": "x"}}, "can't contain state"),
        ({"token_parameters": {"code": "x"}}, "can't contain code"),
        ({"token_endpoint_auth_method": "none"}, "must be"),
        ({"secret": None, "pkce": False}, "needs client_secret or PKCE"),
        ({"secret": None, "token_endpoint_auth_method": "client_secret_post"}, "needs client_secret"),
        ({"ca_file": "missing.pem"}, "missing.pem"),
    ],
)
def test_an_invalid_configuration_is_refused(options: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        upstream(ProviderHTTP(), **options)


def test_what_is_refused_without_options() -> None:
    with pytest.raises(ValueError, match="needs the client_id"):
        OAuth2("", **URLS)
    with pytest.raises(TypeError, match="list"):
        OAuth2("app", scopes="read", **URLS)
    assert repr(OAuth2("app", "secret", **URLS)) == f"OAuth2('app', authorize='{SITE}/authorize')"


async def test_a_client_signs_in_through_the_proxy_and_refreshes() -> None:
    http = ProviderHTTP(token=(200, {"access_token": "at"}))
    stage = await Stage(upstream=upstream(http, token_for_tools=True)).with_client()
    browser = Browser()
    page = await stage.authorize(browser)
    sent = await stage.consent(page, browser)
    state = dict(parse_qsl(urlsplit(sent.location).query))["state"]
    back = await stage.callback({"code": "code of the provider", "state": state}, browser)
    assert back.location.startswith(BACK)
    tokens = (await stage.exchange(back.query["code"])).json
    principal = await stage.caller_of(tokens["access_token"])
    assert (principal.subject, principal.name) == ("42", "Ada")
    assert await principal.upstream_tokens([], None) == "at"
    with pytest.raises(UpstreamTokenError) as failure:
        await principal.upstream_tokens(["write"], None)
    assert failure.value.reason == "configuration"
    assert (await stage.refresh(tokens["refresh_token"])).status == 200
    http.answers["/me"] = 401, {}
    assert (await stage.refresh(tokens["refresh_token"])).json["error"] == "invalid_grant"
