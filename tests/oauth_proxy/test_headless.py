"""Sign-ins without a browser, in this process."""

from __future__ import annotations

from typing import Any

import pytest

from funcmcp._auth.principal import Principal
from funcmcp._oauth_proxy.headless import HeadlessClient, HeadlessError, read_page
from funcmcp._oauth_proxy.local_provider import LocalProvider
from funcmcp._oauth_proxy.upstream import SignIn, UpstreamRefusedError, UpstreamUnavailableError
from funcmcp.auth import OAuthProxy
from tests.oauth_proxy.stage import ADA, KEYS, SCOPES, URL, Stage


class FailingProvider(LocalProvider):
    """A provider that does not sign the user in."""

    def __init__(self, step: str) -> None:
        super().__init__(ADA, KEYS)
        self._step = step

    async def authorization_url(self, request: Any) -> str:
        if self._step == "away":
            raise UpstreamUnavailableError("no route to host")
        url = await super().authorization_url(request)
        return url.replace("code=", "error=access_denied&x=") if self._step == "denied" else url

    async def exchange(self, code: str, *, redirect_uri: str, verifier: str, nonce: str) -> SignIn:
        if self._step == "refused":
            raise UpstreamRefusedError("no")
        return await super().exchange(code, redirect_uri=redirect_uri, verifier=verifier, nonce=nonce)


async def token_of(provider: LocalProvider, *scopes: str, **options: Any) -> tuple[OAuthProxy, str]:
    proxy = OAuthProxy(URL, upstream=provider, scopes=SCOPES, keys=KEYS, **options)
    return proxy, await HeadlessClient(proxy, "Orders").sign_in(scopes)


@pytest.mark.parametrize("options", [{}, {"issuer": URL}])
async def test_the_user_of_the_provider_is_signed_in(options: dict[str, Any]) -> None:
    proxy, token = await token_of(LocalProvider(ADA, KEYS), "orders.write", **options)
    principal = await proxy({"authorization": f"Bearer {token}"})
    assert isinstance(principal, Principal)
    assert (principal.subject, sorted(principal.scopes)) == ("ada", ["orders.write"])


@pytest.mark.parametrize(
    ("step", "options", "reason"),
    [
        ("away", {}, "temporarily_unavailable: The identity provider can't be reached"),
        ("denied", {}, "access_denied: The identity provider has not signed you in"),
        ("refused", {}, "invalid_grant: "),
        ("", {"allow": lambda _user: False}, "invalid_grant: "),
        ("", {"clients": ["https://claude.ai"]}, "invalid_redirect_uri: "),
    ],
)
async def test_each_refusal_has_its_reason(step: str, options: dict[str, Any], reason: str) -> None:
    with pytest.raises(HeadlessError, match=reason):
        await token_of(FailingProvider(step), **options)


async def test_a_scope_that_does_not_exist_is_named() -> None:
    with pytest.raises(HeadlessError, match="invalid_scope: The scopes are"):
        await token_of(LocalProvider(ADA, KEYS), "orders.delete")


async def test_pages_of_the_proxy_are_read() -> None:
    stage = await Stage().with_client(client_name='Notes & "Co" <b>')
    page = read_page((await stage.authorize()).text)
    assert page.heading == 'Allow Notes & "Co" <b> to use Orders?'
    assert page.action == "https://orders.example.com/oauth/consent"
    assert set(page.fields) == {"transaction", "token", "decision"}
    refusal = read_page((await stage.authorize(client_id="unknown")).text)
    assert (refusal.heading, refusal.action) == ("The server does not know your application", None)
    assert read_page("<p>Nothing</p>") == ("", None, {"decision": "allow"})
