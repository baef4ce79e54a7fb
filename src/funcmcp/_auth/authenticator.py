"""Authenticators: async functions from the headers of a request to the identity of its caller.

An author can write one:

    async def by_certificate(headers: Mapping[str, str]) -> Principal | Challenge | None: ...
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
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
        error: ``"invalid_token"`` (401) or ``"invalid_request"`` (400), the codes of RFC 6750 section 3.1.
        description: The reason as a sentence for the caller. Spaces replace characters that a header can't contain.
    """

    error: Literal["invalid_token", "invalid_request"]
    description: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "description", to_description(self.description))


Identity: TypeAlias = Principal | Challenge | None
"""The caller, the reason why its credentials are invalid, or None without credentials of the expected kind."""

Authenticator: TypeAlias = Callable[[Mapping[str, str]], Awaitable[Identity]]
"""An async function from the headers of a request, with names in lower case, to the identity of its caller."""


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
