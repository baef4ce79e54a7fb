"""ID tokens: every claim that binds one to the sign-in."""

from __future__ import annotations

from typing import Any

import pytest

from funcmcp._auth.tokens.compact import TokenError
from funcmcp._oauth_proxy.id_tokens import IDTokenError, IDTokens, roles_in, text_claim, texts_claim, verified_email
from funcmcp.auth import StaticKeys
from tests.auth.making_tokens import ISSUER, NOW, key, public, sign, text

pytestmark = pytest.mark.lowest("cryptography and joserfc check the signatures.")

ID_TOKENS = IDTokens(ISSUER, "the proxy", StaticKeys(public()))
NONCE = "the nonce of the sign-in"


def claims(**changes: Any) -> dict[str, Any]:
    good = {"iss": ISSUER, "aud": "the proxy", "sub": "ada", "exp": NOW + 300, "iat": NOW, "nonce": NONCE}
    return {name: value for name, value in (good | changes).items() if value is not None}


async def validate(token: object, nonce: str | None = NONCE) -> dict[str, Any]:
    return await ID_TOKENS.validate(token, NOW, nonce=nonce)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"aud": ["the proxy"]},
        {"aud": ["the proxy", "another"], "azp": "the proxy"},
        {"exp": NOW - 59},
        {"iat": NOW + 59},
    ],
)
async def test_a_token_of_the_sign_in_is_accepted(changes: dict[str, Any]) -> None:
    assert (await validate(sign(claims(**changes))))["sub"] == "ada"


async def test_the_token_of_a_refresh_needs_no_nonce() -> None:
    assert (await validate(sign(claims(nonce=None)), nonce=None))["sub"] == "ada"


@pytest.mark.parametrize(
    "changes",
    [
        {"iss": "https://evil.example.com"},
        {"iss": f"{ISSUER}/"},
        {"iss": None},
        {"aud": "another"},
        {"aud": None},
        {"aud": ["another"]},
        {"aud": ["the proxy", "another"]},
        {"aud": ["the proxy", "another"], "azp": "another"},
        {"aud": "the proxy", "azp": "another"},
        {"aud": {"the proxy": 1}},
        {"sub": None},
        {"sub": ""},
        {"sub": 5},
        {"nonce": None},
        {"nonce": "of another sign-in"},
        {"nonce": 5},
        {"exp": None},
        {"exp": NOW - 61},
        {"exp": "tomorrow"},
        {"exp": True},
        {"iat": None},
        {"iat": NOW + 61},
    ],
)
async def test_a_token_of_anything_else_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(TokenError):
        await validate(sign(claims(**changes)))


@pytest.mark.parametrize("token", [None, 5, "", "text", "a.b.c", sign(claims())[:-4] + "AAAA"])
async def test_what_is_no_token_or_has_another_signature_is_refused(token: object) -> None:
    with pytest.raises(TokenError):
        await validate(token)


async def test_a_token_without_a_signature_or_with_a_shared_secret_is_refused() -> None:
    header = text(b'{"alg":"none"}')
    with pytest.raises(TokenError):
        await validate(f"{header}.{sign(claims()).split('.')[1]}.")
    with pytest.raises(TokenError, match="algorithm"):
        await validate(f"{header}.{sign(claims()).split('.')[1]}.AAAA")
    with pytest.raises(TokenError, match="algorithm"):
        await validate(sign(claims(), signer=key("oct"), algorithm="HS256"))


async def test_a_token_that_another_key_has_signed_is_refused() -> None:
    with pytest.raises(TokenError, match="signature"):
        await validate(sign(claims(), signer=key("RSA", "second")))


def test_claims_of_other_types_are_left_out() -> None:
    values = {"name": 5, "nickname": "Ada", "roles": ["cook", 5, ""], "groups": "staff", "email": "a@example.com"}
    assert text_claim(values, "name", "nickname") == "Ada"
    assert text_claim(values, "name") is None
    assert texts_claim(values, "roles") == {"cook"}
    assert texts_claim(values, "groups") == frozenset()


@pytest.mark.parametrize(("verified", "email"), [(True, "a@example.com"), (False, None), (None, None), ("true", None)])
def test_an_address_counts_only_if_the_issuer_has_verified_it(verified: object, email: str | None) -> None:
    assert verified_email({"email": "a@example.com", "email_verified": verified}) == email


@pytest.mark.parametrize(
    ("token", "cause", "text"),
    [
        (None, "id_token_missing", "Allow the scope openid"),
        (5, "id_token_missing", "no ID token"),
        ("a.b.c.d.e", "id_token_encrypted", "Switch the encryption of ID tokens off"),
        ("opaque", "id_token_malformed", "not a signed JSON Web Token"),
        (sign(claims(), signer=key("oct"), algorithm="HS256"), "id_token_algorithm", "'HS256'"),
        (sign(claims(), signer=key("oct"), algorithm="HS256"), "id_token_algorithm", "Authentik: choose a signing key"),
        (sign(claims(nonce=None)), "id_token_no_nonce", "Let the provider return the nonce"),
        (sign(claims(nonce="another")), "id_token_other_nonce", "another sign-in"),
        (sign(claims(nonce=5)), "id_token_other_nonce", "another sign-in"),
        (sign(claims(sub=5)), "id_token_subject", "of the type int"),
        (sign(claims(sub=None)), "id_token_subject", "of the type NoneType"),
        (sign(claims(iss="https://evil.example.com/\n")), "id_token_issuer", "'https://evil.example.com/\\n'"),
        (sign(claims(aud="another")), "id_token_client", "Check client_id"),
        (sign(claims(azp="another")), "id_token_client", "azp"),
        (sign(claims(exp=NOW - 100)), "id_token_time", "has expired"),
        (sign(claims(iat=NOW + 100)), "id_token_time", "in the future"),
        (sign(claims(exp=None)), "id_token_time", "no expiry"),
        (sign(claims(), signer=key("RSA", "second")), "id_token_signature", "signature"),
    ],
)
async def test_the_reason_of_an_invalid_token_says_what_to_do(token: object, cause: str, text: str) -> None:
    with pytest.raises(IDTokenError) as caught:
        await validate(token)
    assert caught.value.failure.cause == cause
    assert text in str(caught.value)


@pytest.mark.parametrize(
    ("path", "roles"),
    [
        ("list", {"cook", "Head waiter"}),
        ("one", {"Head waiter"}),
        ("realm_access.roles", {"cook"}),
        ("https://example.com/roles", {"by URL"}),
        ("zitadel", {"cook", "waiter"}),
        ("mixed", {"cook"}),
        ("empty", set()),
        ("nothing", set()),
        ("missing", set()),
        ("missing.path", set()),
        ("one.path", set()),
        ("realm_access", None),
        ("number", None),
        ("numbers", None),
        ("", set()),
        (".", set()),
    ],
)
def test_roles_are_a_list_one_text_a_path_or_the_names_of_an_object(path: str, roles: set[str] | None) -> None:
    claims = {
        "list": ["cook", "Head waiter", ""],
        "one": "Head waiter",
        "realm_access": {"roles": ["cook"]},
        "https://example.com/roles": ["by URL"],
        "zitadel": {"cook": {"1": "example.com"}, "waiter": {}},
        "mixed": ["cook", 5],
        "empty": [],
        "nothing": "",
        "number": 5,
        "numbers": [5],
    }
    assert roles_in(claims, path) == roles
