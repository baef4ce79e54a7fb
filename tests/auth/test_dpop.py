"""Tokens that are bound to a key (DPoP): who takes them, and what clients learn of it."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp._auth.authenticator import ProvableHeaders
from funcmcp._auth.dpop import PROOF_ALGORITHMS, dpop_of, normalized
from funcmcp._auth.protected_resource import insufficient_scope
from funcmcp.auth import APIKeys, Auth, BearerTokens, Challenge, Principal, ProtectedResource, StaticKeys, first_of
from funcmcp.auth import unauthorized as unauthorized_value
from tests.auth.making_proofs import bound
from tests.auth.making_tokens import AUDIENCE, ISSUER, Clock, bearing, claims, public, sign

if TYPE_CHECKING:
    from funcmcp.auth import Authenticator

RESOURCE = ProtectedResource(resource=AUDIENCE, authorization_servers=[ISSUER])
METADATA = "https://orders.example.com/.well-known/oauth-protected-resource/mcp"
ALGORITHMS = " ".join(PROOF_ALGORITHMS)


def tokens(**options: Any) -> BearerTokens:
    return BearerTokens(ISSUER, AUDIENCE, keys=StaticKeys(public()), clock=Clock(), **options)


@pytest.mark.parametrize(
    ("url", "form"),
    [
        ("https://h", "https://h/"),
        ("HTTPS://H.example:0443/%7Emcp/./a/../b?q#f", "https://h.example/~mcp/b"),
        ("http://h:80/a/..", "http://h/"),
        ("http://h:8080/a/.", "http://h:8080/a/"),
        ("http://8080/a", "http://8080/a"),
        ("https://h/../..//b", "https://h//b"),
        ("https://h/%2f%2F%6d%c3", "https://h/%2F%2Fm%C3"),
        ("https://[::1]:99/", "https://[::1]:99/"),
        *((url, None) for url in ("", "h", "//h/a", "ftp://h/", "https:///a", "https://h/%", "https://h/%0", "https://h/%0g")),
        *((url, None) for url in ("https://u@h/", "https://h:0/", "https://h:x/", "https://[h/", "https://h/\u00fc")),
    ],
)  # fmt: skip
def test_a_url_has_one_form(url: str, form: str | None) -> None:
    assert normalized(url) == form


async def by_nobody(_headers: object) -> None:
    return None


@pytest.mark.parametrize(
    ("authenticator", "mode"),
    [
        (tokens(), None),
        (tokens(dpop="allowed"), "allowed"),
        (tokens(dpop="required"), "required"),
        (first_of(tokens(dpop="required"), APIKeys({"ada": "k" * 40})), "required"),
        (first_of(tokens(dpop="required"), tokens(dpop="required")), "required"),
        (first_of(tokens(dpop="required"), tokens()), "allowed"),
        (first_of(tokens(dpop="allowed"), tokens(dpop="required")), "allowed"),
        (first_of(by_nobody, tokens()), None),
    ],
)
def test_the_metadata_say_which_tokens_the_authenticator_takes(authenticator: Authenticator, mode: str | None) -> None:
    assert dpop_of(authenticator) == mode
    resource = Auth(authenticator, resource=RESOURCE).resource
    assert resource is not None
    members = {name: value for name, value in resource.document.items() if name.startswith("dpop")}
    if mode is None:
        assert members == {}
        assert resource is RESOURCE
    else:
        assert members == {
            "dpop_signing_alg_values_supported": list(PROOF_ALGORITHMS),
            "dpop_bound_access_tokens_required": mode == "required",
        }


def test_wrong_options_are_refused() -> None:
    for wrong in ("Required", True, ""):
        with pytest.raises(ValueError, match=r"BearerTokens\.dpop must be"):
            tokens(dpop=wrong)
    with pytest.raises(ValueError, match=r"ProtectedResource\.dpop must be"):
        ProtectedResource(resource=AUDIENCE, authorization_servers=[ISSUER], dpop="yes")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="needs Auth"):
        Auth(tokens(dpop="allowed"))


def test_challenges_name_the_schemes_and_the_error_in_that_of_the_credentials() -> None:
    invalid = Challenge("invalid_token", "Expired.")
    proof = Challenge("invalid_dpop_proof", "No.", "DPoP")
    dpop = f'resource_metadata="{METADATA}", algs="{ALGORITHMS}"'
    bearer = f'Bearer resource_metadata="{METADATA}"'
    values = [
        (None, None, bearer),
        (None, "allowed", f"{bearer}, DPoP {dpop}"),
        (None, "required", f"DPoP {dpop}"),
        (invalid, "required", f'DPoP error="invalid_token", error_description="Expired.", {dpop}'),
        (proof, "allowed", f'{bearer}, DPoP error="invalid_dpop_proof", error_description="No.", {dpop}'),
        (proof, None, bearer.replace(" ", ' error="invalid_dpop_proof", error_description="No.", ', 1)),
    ]
    for challenge, mode, value in values:
        assert unauthorized_value(challenge, metadata_url=METADATA, dpop=mode) == value  # type: ignore[arg-type]
    error = 'error="insufficient_scope", error_description="More scopes are needed.", scope="a"'
    assert insufficient_scope(["a"], dpop="allowed") == f'Bearer {error}, DPoP {error}, algs="{ALGORITHMS}"'


PROOFLESS = "bound to a key"


@pytest.mark.parametrize("mode", [None, "allowed", "required"])
async def test_a_bound_token_is_never_a_bearer_token(mode: str | None) -> None:
    bearer = tokens(dpop=mode)
    for _ in range(2):  # also when the token is in the cache
        identity = await bearer(bearing(bound()))
        assert isinstance(identity, Challenge)
        assert (identity.error, identity.scheme) == ("invalid_token", "DPoP" if mode else "Bearer")
        assert PROOFLESS in identity.description
    malformed: list[object] = ["x", [], {"jkt": None}, {"jkt": ["x"]}]
    for confirmation in malformed:
        identity = await bearer(bearing(sign(claims(cnf=confirmation))))
        assert isinstance(identity, Challenge)
        assert "malformed" in identity.description
    identity = await bearer(bearing(sign(claims(cnf={"x5t#S256": "bwcK0esc3ACC3DB2Y5_lESsXE8o9ltc05O89jdN-dg2"}))))
    assert isinstance(identity, Challenge if mode == "required" else Principal)


async def test_an_unbound_token_needs_no_proof_unless_bound_ones_are_required() -> None:
    async def check(_token: str, _principal: Principal) -> None:
        raise AssertionError

    unbound = sign(claims())
    for mode, accepted in (("allowed", True), ("required", False)):
        identity = await tokens(dpop=mode)(bearing(unbound))
        assert isinstance(identity, Principal) is accepted
        headers = ProvableHeaders({"authorization": f"DPoP {unbound}"}, check)
        refused = await tokens(dpop=mode)(headers)
        assert isinstance(refused, Challenge)
        assert (refused.error, refused.scheme) == ("invalid_token", "DPoP")
    assert await tokens()({"authorization": f"DPoP {unbound}"}) is None  # as any scheme that it does not know


async def test_a_function_that_hides_the_request_lets_no_bound_token_in(caplog: pytest.LogCaptureFixture) -> None:
    bearer = tokens(dpop="required")
    for _ in range(3):
        identity = await bearer({"authorization": f"DPoP {bound()}"})
        assert isinstance(identity, Challenge)
        assert identity.error == "invalid_dpop_proof"
    assert caplog.text.count("event=dpop_unavailable") == 1


async def test_the_proof_is_checked_after_the_token_and_for_each_request() -> None:
    checked: list[tuple[str, str]] = []

    async def check(token: str, principal: Principal) -> Challenge | None:
        checked.append((token, principal.subject))
        return Challenge("invalid_dpop_proof", "No.", "DPoP") if len(checked) == 2 else None

    bearer, token = tokens(dpop="required"), bound()
    headers = ProvableHeaders({"authorization": f"dpop  {token}"}, check)
    answers = [type(await bearer(headers)) for _ in range(3)]
    assert answers == [Principal, Challenge, Principal]
    assert checked == [(token, "alice")] * 3
    for value in ("DPoP", "DPoP ", f"DPoP {token} x", f"DPoP {bound(aud='https://other.example.com')}", "DPoP x.y.z"):
        identity = await bearer(ProvableHeaders({"authorization": value}, check))
        assert isinstance(identity, Challenge)
        assert identity.scheme == "DPoP"
    assert len(checked) == 3


async def test_a_token_in_the_cache_is_recalled_only_if_it_needs_no_proof() -> None:
    async def check(_token: str, _principal: Principal) -> None:
        return None

    for mode in ("allowed", "required"):
        bearer, free, own = tokens(dpop=mode), sign(claims()), bound()
        assert isinstance(await bearer(ProvableHeaders({"authorization": f"DPoP {own}"}, check)), Principal)
        await bearer(bearing(free))
        headers = [f"Bearer {own}", f"DPoP {own}", f"Bearer {free}", f"DPoP {free}"]
        recalled = [bearer.recall(sha256(header.encode()).digest()) is not None for header in headers]
        assert recalled == [False, False, mode == "allowed", False]
