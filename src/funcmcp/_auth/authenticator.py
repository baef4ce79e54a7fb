"""Authenticators: async functions from the headers of a request to the identity of its caller.

An author can write one:

    async def by_certificate(headers: Mapping[str, str]) -> Principal | Challenge | None: ...
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from funcmcp._auth.principal import Principal
from funcmcp._objects.public_names import public

_NOT_ALLOWED = re.compile(r"[^\x20-\x21\x23-\x5b\x5d-\x7e]")
_MAX_DESCRIPTION = 200


def to_description(text: str) -> str:
    """Return a text for an `error_description`, without quotes and control characters (RFC 6750 section 3)."""
    return _NOT_ALLOWED.sub(" ", text)[:_MAX_DESCRIPTION]


@public("funcmcp.auth")
@dataclass(frozen=True, slots=True)
class Challenge:
    """The reason why the credentials of a request are invalid.

    Attributes:
        error: ``"invalid_token"`` (401) or ``"invalid_request"`` (400), the codes of RFC 6750 section 3.1; for a token
            that is bound to a key also ``"invalid_dpop_proof"`` and ``"use_dpop_nonce"`` (401), those of RFC 9449.
        description: The reason as a sentence for the caller. Spaces replace characters that a header can't contain.
        scheme: The scheme of the credentials, ``"Bearer"`` or ``"DPoP"``.
        nonce: The nonce that the next proof must have, with the error ``"use_dpop_nonce"``.
    """

    error: Literal["invalid_token", "invalid_request", "invalid_dpop_proof", "use_dpop_nonce"]
    description: str
    scheme: Literal["Bearer", "DPoP"] = "Bearer"
    nonce: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "description", to_description(self.description))


Identity: TypeAlias = Principal | Challenge | None
"""The caller, the reason why its credentials are invalid, or None without credentials of the expected kind."""

Authenticator: TypeAlias = Callable[[Mapping[str, str]], Awaitable[Identity]]
"""An async function from the headers of a request, with names in lower case, to the identity of its caller."""


CheckProof: TypeAlias = Callable[[str, Principal], Awaitable[Challenge | None]]
"""An async function from a token and its principal to the reason why the request has no valid proof of its key."""


class ProvableHeaders(Mapping[str, str]):
    """The headers of a request whose method and URL are known, so that its proof of possession can be checked.

    Args:
        headers: The headers.
        check_proof: The attribute.

    Attributes:
        check_proof: Checks the proof of the request, which is good for one call.
    """

    def __init__(self, headers: Mapping[str, str], check_proof: CheckProof) -> None:
        self._headers = headers
        self.check_proof = check_proof

    def __getitem__(self, name: str) -> str:
        return self._headers[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._headers)

    def __len__(self) -> int:
        return len(self._headers)


class _FirstOf:
    """An authenticator that calls others in order."""

    def __init__(self, authenticators: tuple[Authenticator, ...]) -> None:
        self.authenticators = authenticators

    async def __call__(self, headers: Mapping[str, str]) -> Identity:
        challenge: Challenge | None = None
        for authenticator in self.authenticators:
            identity = await authenticator(headers)
            if isinstance(identity, Principal):
                return identity
            challenge = challenge or identity
        return challenge


@public("funcmcp.auth")
def first_of(*authenticators: Authenticator) -> Authenticator:
    """Return an authenticator that calls others in order.

    It returns the first principal. Without a principal it returns the first challenge, so that invalid credentials are
    never treated as missing ones. Without a challenge it returns None.

    Raises:
        ValueError: There are no authenticators.
    """
    if not authenticators:
        raise ValueError("first_of needs at least one authenticator.")
    return _FirstOf(authenticators)


def parts_of(authenticator: Authenticator) -> list[Authenticator]:
    """Return the authenticators that `first_of` has combined, or the only one."""
    if not isinstance(authenticator, _FirstOf):
        return [authenticator]
    return [part for combined in authenticator.authenticators for part in parts_of(combined)]
