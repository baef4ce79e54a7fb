"""Challenges, and several authenticators in order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from funcmcp._auth.authenticator import Challenge, UnavailableError, first_of
from funcmcp._auth.principal import Principal
from funcmcp._auth.tokens.compact import MissingKeyError
from funcmcp.auth import APIKeys, BearerTokens, StaticKeys, TokenRules, entra
from tests.auth.making_tokens import AUDIENCE, ISSUER, NOW, Clock, claims, key, public, sign

if TYPE_CHECKING:
    from collections.abc import Mapping

    from funcmcp._auth.authenticator import Authenticator, Identity
    from funcmcp._auth.tokens.keys import VerificationKey

ALICE, BOB = Principal("alice"), Principal("bob")
EXPIRED, UNKNOWN = Challenge("invalid_token", "Expired."), Challenge("invalid_token", "Unknown.")


def saying(identity: Identity) -> Authenticator:
    async def authenticate(headers: Mapping[str, str]) -> Identity:
        return identity

    return authenticate


@pytest.mark.parametrize(
    ("identities", "expected"),
    [
        ([None], None),
        ([None, None], None),
        ([ALICE, BOB], ALICE),
        ([None, BOB], BOB),
        ([EXPIRED, BOB], BOB),
        ([EXPIRED, UNKNOWN], Challenge("invalid_token", "Expired. Unknown.")),
        ([UNKNOWN, EXPIRED], Challenge("invalid_token", "Expired. Unknown.")),
        ([EXPIRED, EXPIRED], EXPIRED),
        ([EXPIRED, Challenge("invalid_request", "Malformed.")], Challenge("invalid_request", "Malformed.")),
        ([None, UNKNOWN], UNKNOWN),
        ([EXPIRED, None], EXPIRED),
    ],
)
async def test_the_first_principal_counts_then_the_challenges_of_all(
    identities: list[Identity], expected: Identity
) -> None:
    assert await first_of(*map(saying, identities))({}) == expected


async def test_authenticators_after_the_first_principal_are_not_asked() -> None:
    async def never(headers: Mapping[str, str]) -> Identity:
        raise AssertionError("was asked")

    assert await first_of(saying(ALICE), never)({}) == ALICE


async def test_each_authenticator_gets_the_header_fields() -> None:
    async def by_certificate(headers: Mapping[str, str]) -> Identity:
        return Principal(headers["x-client-certificate"])

    assert await first_of(saying(None), by_certificate)({"x-client-certificate": "alice"}) == ALICE


OTHER = "https://other.example.com"
PROXY = "https://orders.example.com"
TENANT = "11111111-2222-3333-4444-555555555555"
APPLICATION = "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee"
ENTRA = f"https://login.microsoftonline.com/{TENANT}/v2.0"


class Away:
    """A source of keys that can't be reached."""

    async def find(self, token: object) -> list[VerificationKey]:
        raise MissingKeyError("The keys of the issuer are not available.")


def several() -> list[Authenticator]:
    """Return an authenticator of each kind."""
    keys, rsa = StaticKeys(public("P-256")), StaticKeys(public())
    return [
        BearerTokens(PROXY, AUDIENCE, keys=keys, rules=TokenRules(algorithms=["ES256"]), dpop="allowed", clock=Clock()),
        BearerTokens(ISSUER, AUDIENCE, keys=rsa, clock=Clock()),
        BearerTokens(ISSUER, f"{AUDIENCE}/other", keys=rsa, clock=Clock()),
        BearerTokens(OTHER, AUDIENCE, keys=Away(), clock=Clock()),
        entra(TENANT, APPLICATION, keys=rsa, clock=Clock()),
        APIKeys({"ada": "a-key-of-ada-with-many-characters"}),
        APIKeys({"bob": "a-key-of-bob-with-many-characters"}, header="authorization"),
    ]


ORDERS = [several(), several()[::-1], several()[3:] + several()[:3]]


@pytest.mark.parametrize("parts", ORDERS, ids=["in order", "turned", "rotated"])
@pytest.mark.parametrize(
    ("authorization", "reason"),
    [
        (f"Bearer {sign(claims(exp=NOW - 100))}", "The token has expired."),
        (f"Bearer {sign(claims(aud='https://x.example.com'))}", "The token is for another audience."),
        (f"Bearer {sign(claims(aud=None))}", "The token has no audience."),
        (f"Bearer {sign(claims(sub=None))}", "The token has no subject."),
        (f"Bearer {sign(claims(aud=AUDIENCE + '/other', sub=None))}", "The token has no subject."),
        (f"Bearer {sign(claims(), signer=key('RSA', 'second'))}", "The signature of the token is invalid."),
        (f"Bearer {sign(claims(), algorithm='RS512')}", "The server does not accept the algorithm of the token."),
        (f"Bearer {sign(claims(), header={'typ': 'JWT'})}", "The type (typ) of the token must be at+jwt."),
        (f"Bearer {sign(claims(iss=PROXY))}", "The server does not accept the algorithm of the token."),
        (
            f"Bearer {sign(claims(iss=PROXY), signer=key('P-256', 'second'), algorithm='ES256')}",
            "The signature of the token is invalid.",
        ),
        (f"Bearer {sign(claims(iss=ENTRA))}", "The token is for another audience."),
        (f"Bearer {sign(claims(iss='https://x.example.com'))}", "The server does not accept the issuer of the token."),
        (f"Bearer {sign(claims(iss=None))}", "The server does not accept the issuer of the token."),
        (f"Bearer {sign(claims(iss=[ISSUER]))}", "The server does not accept the issuer of the token."),
        (f"DPoP {sign(claims(iss=PROXY))}", "The server does not accept the algorithm of the token."),
        ("Bearer a-key-that-nobody-has-at-all", "The API key is not known."),
        ("Bearer short", "The API key is not known."),
    ],
)
async def test_the_reason_is_that_of_the_authenticator_whose_token_it_is(
    parts: list[Authenticator], authorization: str, reason: str
) -> None:
    identity = await first_of(first_of(*parts[:2]), *parts[2:])({"authorization": authorization})
    assert isinstance(identity, Challenge)
    assert (identity.error, identity.description) == ("invalid_token", reason)


@pytest.mark.parametrize("parts", ORDERS)
async def test_a_malformed_header_is_an_invalid_request_in_any_order(parts: list[Authenticator]) -> None:
    identity = await first_of(*parts)({"authorization": "Bearer a b"})
    assert isinstance(identity, Challenge)
    assert identity.error == "invalid_request"


@pytest.mark.parametrize("parts", ORDERS)
@pytest.mark.parametrize("payload", [b"{", b"[]", b"\xff", b'{"iss":{}}'])
async def test_a_damaged_token_is_refused_with_one_reason_in_any_order(
    parts: list[Authenticator], payload: bytes
) -> None:
    identity = await first_of(*parts)({"authorization": f"Bearer {sign(payload)}"})
    assert isinstance(identity, Challenge)
    assert identity == await first_of(*parts[::-1])({"authorization": f"Bearer {sign(payload)}"})


@pytest.mark.parametrize("parts", ORDERS)
async def test_a_token_whose_issuer_is_away_is_neither_refused_nor_accepted(parts: list[Authenticator]) -> None:
    authenticator = first_of(*parts)
    with pytest.raises(UnavailableError, match="not available"):
        await authenticator({"authorization": f"Bearer {sign(claims(iss=OTHER))}"})
    principal = await authenticator({"authorization": f"Bearer {sign(claims())}"})
    assert isinstance(principal, Principal)
    assert principal.issuer == ISSUER
    key_and_token = {"authorization": f"Bearer {sign(claims(iss=OTHER))}"}
    key_and_token["x-api-key"] = "a-key-of-ada-with-many-characters"
    assert (await authenticator(key_and_token)) == Principal("ada", "api-key", name="ada")


async def test_who_asks_another_server_is_asked_last() -> None:
    class Remote:
        asks_another_server = True

        async def __call__(self, headers: Mapping[str, str]) -> Identity:
            return BOB

    orders: list[list[Authenticator]] = [[Remote(), saying(ALICE)], [saying(ALICE), Remote()]]
    for parts in orders:
        assert await first_of(*parts)({}) == ALICE
        assert await first_of(first_of(*parts[:1]), *parts[1:])({}) == ALICE


def test_first_of_nothing_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="at least one"):
        first_of()


def test_a_description_holds_nothing_that_could_end_a_header_or_its_quotes() -> None:
    challenge = Challenge("invalid_token", 'a "quote" \\ and\r\nSet-Cookie: x=1\x00é\u2028' + "x" * 500)
    assert challenge.description.startswith("a  quote    and  Set-Cookie: x=1   x")
    assert len(challenge.description) == 200
