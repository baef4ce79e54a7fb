"""What a real OpenID provider demands of the proxy: pushed requests, assertions that the secret signs, and PKCE."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from funcmcp.auth import OIDC, AuthorizationRequest, UpstreamRefusedError, UpstreamUnavailableError
from tests.oauth_proxy.stage import VERIFIER, challenge_of
from tests.sign_in.browsing import BACK, browse
from tests.sign_in.people import CLIENT_ID, oidc_provider

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.slow("An identity provider of npm starts for the module.")

SECRET = "a secret with more than 32 characters"
REQUEST = AuthorizationRequest(BACK, "state", challenge_of(VERIFIER), "nonce")


@pytest.fixture(scope="module")
def issuer() -> Iterator[str]:
    with oidc_provider(BACK, secret=SECRET, demands=True) as running:
        yield running


async def test_a_user_signs_in_with_a_pushed_request_and_an_assertion(issuer: str) -> None:
    upstream = OIDC(issuer, CLIENT_ID, SECRET)
    url = await upstream.authorization_url(REQUEST)
    assert url.startswith(f"{issuer}/auth?client_id={CLIENT_ID}&request_uri=urn")
    back = await browse(url)
    assert (back["state"], back["iss"]) == ("state", issuer)
    signed_in = await upstream.exchange(back["code"], redirect_uri=BACK, verifier=VERIFIER, nonce="nonce")
    assert signed_in.user is not None
    assert signed_in.user.subject == "ada"
    renewed = await upstream.refresh(signed_in.refresh_token or "", "ada")
    assert renewed.refresh_token
    assert await upstream.revoke(renewed.refresh_token)


async def test_a_code_of_a_pushed_request_needs_its_verifier(issuer: str) -> None:
    upstream = OIDC(issuer, CLIENT_ID, SECRET)
    back = await browse(await upstream.authorization_url(REQUEST))
    with pytest.raises(UpstreamRefusedError):
        await upstream.exchange(back["code"], redirect_uri=BACK, verifier=VERIFIER[::-1], nonce="nonce")


async def test_a_pushed_request_with_another_secret_is_an_outage(issuer: str) -> None:
    with pytest.raises(UpstreamUnavailableError, match="invalid_client"):
        await OIDC(issuer, CLIENT_ID, SECRET[::-1]).authorization_url(REQUEST)
