"""What it takes to find out who is calling: one async callable from header fields to an identity.

Any such callable will do, an author's own included:

    async def by_certificate(headers: Mapping[str, str]) -> Principal | Challenge | None: ...
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from funcmcp.auth.principal import Principal

_UNFIT = re.compile(r"[^\x20-\x21\x23-\x5b\x5d-\x7e]")
_LONGEST = 200


def fit(text: str) -> str:
    """Return a text as an `error_description` may have it (RFC 6750 section 3): no quotes, no control characters."""
    return _UNFIT.sub(" ", text)[:_LONGEST]


@dataclass(frozen=True, slots=True)
class Challenge:
    """Credentials came and were refused.

    Attributes:
        error: ``"invalid_token"`` (401) or ``"invalid_request"`` (400), the codes of RFC 6750 section 3.1.
        description: why, in a sentence that the caller may see; what a header can't hold is replaced by spaces.
    """

    error: Literal["invalid_token", "invalid_request"]
    description: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "description", fit(self.description))


Identity: TypeAlias = Principal | Challenge | None
"""Who is calling, or why the credentials were refused, or None where there were none of the kind looked for."""

Authenticator: TypeAlias = Callable[[Mapping[str, str]], Awaitable[Identity]]
"""Takes the header fields of a request, names in lower case, and returns the identity of its caller."""


def first_of(*authenticators: Authenticator) -> Authenticator:
    """Return an authenticator that asks others in order.

    The first principal is the answer. Where there is none, the first challenge is: credentials that one of them
    refuses may be what the next one knows, but a refusal never ends as nobody at all.

    Raises:
        ValueError: there is none to ask.
    """
    if not authenticators:
        raise ValueError("first_of needs at least one authenticator.")

    async def ask(headers: Mapping[str, str]) -> Identity:
        refused: Challenge | None = None
        for authenticator in authenticators:
            identity = await authenticator(headers)
            if isinstance(identity, Principal):
                return identity
            refused = refused or identity
        return refused

    return ask
