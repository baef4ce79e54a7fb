"""The provider that signs one user in: its codes, its refresh tokens, and a proxy in front of it."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from funcmcp._auth.authenticator import Challenge
from funcmcp._auth.principal import Principal
from funcmcp._oauth_proxy.local_provider import LocalProvider
from funcmcp._oauth_proxy.upstream import AuthorizationRequest, UpstreamRefusedError, User
from funcmcp.state import KeyRing, MemorySignIns
from tests.oauth_proxy.stage import (
    ADA,
    BACK,
    ISSUER,
    KEYS,
    URL,
    VERIFIER,
    Answer,
    Browser,
    Stage,
    challenge_of,
)

CALLBACK = f"{ISSUER}/oauth/callback"
REQUEST = AuthorizationRequest(CALLBACK, "the state", challenge_of(VERIFIER), "the nonce")
BOUND_TO = {"redirect_uri": CALLBACK, "verifier": VERIFIER, "nonce": "the nonce"}


@pytest.fixture
def provider() -> LocalProvider:
    return LocalProvider(ADA, KEYS)


async def code_of(provider: LocalProvider) -> str:
    url = await provider.authorization_url(REQUEST)
    query = dict(parse_qsl(urlsplit(url).query))
    assert url.partition("?")[0] == CALLBACK
    assert query["state"] == "the state"
    return query["code"]


async def test_a_code_is_good_for_one_exchange(provider: LocalProvider) -> None:
    code = await code_of(provider)
    assert (await provider.exchange(code, **BOUND_TO)).user is ADA
    with pytest.raises(UpstreamRefusedError):
        await provider.exchange(code, **BOUND_TO)


@pytest.mark.parametrize(
    "changes",
    [
        {"redirect_uri": "http://127.0.0.1:9999/oauth/callback"},
        {"verifier": VERIFIER + "x"},
        {"nonce": "another one"},
        {"code": ""},
        {"code": "a-code-of-nobody"},
    ],
)
async def test_a_code_is_bound_to_its_request(provider: LocalProvider, changes: dict[str, Any]) -> None:
    arguments = {"code": await code_of(provider), **BOUND_TO} | changes
    with pytest.raises(UpstreamRefusedError):
        await provider.exchange(arguments.pop("code"), **arguments)


async def test_a_code_of_another_process_is_refused(provider: LocalProvider) -> None:
    with pytest.raises(UpstreamRefusedError):
        await provider.exchange(await code_of(LocalProvider(ADA, KeyRing())), **BOUND_TO)


async def test_a_refresh_returns_the_user_as_it_is_now(provider: LocalProvider) -> None:
    token = (await provider.exchange(await code_of(provider), **BOUND_TO)).refresh_token
    assert token is not None
    later = LocalProvider(User("ada", roles=frozenset({"chef"})), KEYS)
    renewed = await later.refresh(token, "ada")
    assert renewed.user is not None
    assert renewed.user.roles == {"chef"}
    assert renewed.refresh_token is None


async def test_a_refresh_of_another_user_or_after_its_end_is_refused(provider: LocalProvider) -> None:
    with pytest.raises(UpstreamRefusedError):
        await provider.refresh("token", "bob")
    assert await provider.revoke("token")
    with pytest.raises(UpstreamRefusedError):
        await provider.refresh("token", "ada")


async def test_its_memory_is_bounded(provider: LocalProvider) -> None:
    for number in range(2000):
        await provider.revoke(str(number))
    assert len(provider._ended) == 1000


class LocalStage(Stage):
    """A proxy with the options of another one, in front of a local provider.

    Attributes:
        deployed: The other one.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.deployed = self.proxy
        keys = KeyRing()
        self.proxy = self.deployed.with_provider(URL, LocalProvider(ADA, keys), keys)

    async def signed_in(self, browser: Browser) -> Answer:
        page = await self.authorize(browser)
        assert "this machine, as Ada" in page.text
        upstream = await self.consent(page, browser)
        assert upstream.location.startswith(f"{CALLBACK}?")
        return await self.callback(urlsplit(upstream.location).query, browser)


async def local_stage() -> LocalStage:
    stage = LocalStage()
    await stage.with_client()
    return stage


async def test_a_user_allows_the_application_and_is_signed_in() -> None:
    stage = await local_stage()
    back = await stage.signed_in(Browser())
    assert back.location.startswith(f"{BACK}?")
    tokens = (await stage.exchange(back.query["code"])).json
    principal = await stage.caller_of(tokens["access_token"])
    assert isinstance(principal, Principal)
    assert (principal.subject, principal.name, sorted(principal.roles)) == ("ada", "Ada", ["cook"])
    assert (await stage.refresh(tokens["refresh_token"])).status == 200


async def test_neither_proxy_accepts_the_tokens_of_the_other() -> None:
    stage = await local_stage()
    token = (await stage.exchange((await stage.signed_in(Browser())).query["code"])).json["access_token"]
    assert isinstance(await stage.deployed({"authorization": f"Bearer {token}"}), Challenge)
    deployed = await Stage().with_client()
    token = (await deployed.tokens())["access_token"]
    assert isinstance(await stage.caller_of(token), Challenge)


async def test_it_has_the_rules_of_the_other_proxy_and_a_store_of_its_own() -> None:
    store = MemorySignIns()
    stage = LocalStage(
        allow=lambda user: user.subject == "bob", access_seconds=60, store=store, clients=["https://elsewhere.example"]
    )
    await stage.with_client()
    back = await stage.signed_in(Browser())
    assert (await stage.exchange(back.query["code"])).json["error"] == "invalid_grant"
    assert stage.proxy._settings.tokens.seconds == 60
    assert stage.proxy.store is not None
    assert stage.proxy.store is not store
    assert await store.get("anything") is None


async def test_nothing_is_signed_in_without_a_click() -> None:
    """A page of another origin may send the user to the page, and may send its form, but not with the user's cookie."""
    stage = await local_stage()
    browser = Browser()
    page = await stage.authorize(browser)
    assert page.status == 200
    assert page.header("location") is None
    assert page.header("x-frame-options") == "DENY"
    for origin in ("http://localhost:3000", "https://evil.example", "null", None):
        assert (await stage.consent(page, browser, origin=origin)).status == 403
    assert (await stage.consent(page, Browser())).status == 403  # a browser that has not seen the page
    assert (await stage.authorize(browser, prompt="none")).query["error"] == "interaction_required"


async def test_a_victim_is_not_led_into_the_sign_in_of_another_browser() -> None:
    stage = await local_stage()
    attacker = Browser()
    upstream = await stage.consent(await stage.authorize(attacker), attacker)
    assert (await stage.callback(urlsplit(upstream.location).query, Browser())).status == 403
