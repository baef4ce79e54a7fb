"""Challenges, and several authenticators in order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from funcmcp._auth.authenticator import Challenge, first_of
from funcmcp._auth.principal import Principal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from funcmcp._auth.authenticator import Authenticator, Identity

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
        ([EXPIRED, UNKNOWN], EXPIRED),
        ([None, UNKNOWN], UNKNOWN),
        ([EXPIRED, None], EXPIRED),
    ],
)
async def test_the_first_principal_counts_then_the_first_challenge(
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


def test_first_of_nothing_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="at least one"):
        first_of()


def test_a_description_holds_nothing_that_could_end_a_header_or_its_quotes() -> None:
    challenge = Challenge("invalid_token", 'a "quote" \\ and\r\nSet-Cookie: x=1\x00é\u2028' + "x" * 500)
    assert challenge.description.startswith("a  quote    and  Set-Cookie: x=1   x")
    assert len(challenge.description) == 200
