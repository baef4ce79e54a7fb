"""Authenticators: async functions from the headers of a request to the identity of its caller.

An author can write one:

    async def by_certificate(headers: Mapping[str, str]) -> Principal | Challenge | None: ...
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import IntEnum
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


@public("funcmcp.auth")
class UnavailableError(Exception):
    """Credentials can't be checked now, because another server can't be reached. Requests with them get status 503.

    Args:
        text: A sentence for the caller.
        retry_after: Seconds after which the caller may try again.

    Attributes:
        retry_after: As above.
    """

    def __init__(self, text: str, retry_after: int = 5) -> None:
        super().__init__(text)
        self.retry_after: int = retry_after


class Fit(IntEnum):
    """How well the credentials of a request fit an authenticator, by what they say before anything is verified."""

    NONE = 0
    """They are of another kind."""
    KIND = 1
    """They are of its kind, and do not name its issuer."""
    UNKNOWN = 2
    """The authenticator does not say. It refuses what it recognizes, and nothing else."""
    ISSUER = 3
    """They name its issuer."""
    AUDIENCE = 4
    """They name its issuer and its audience."""


_Outcome: TypeAlias = Challenge | UnavailableError


class _FirstOf:
    """An authenticator that calls others, those that send credentials to another server last."""

    def __init__(self, authenticators: tuple[Authenticator, ...]) -> None:
        parts = [part for combined in authenticators for part in parts_of(combined)]
        self.authenticators = tuple(sorted(parts, key=_asks_another_server))

    async def __call__(self, headers: Mapping[str, str]) -> Identity:
        outcomes: list[tuple[Fit, _Outcome]] = []
        for part in self.authenticators:
            try:
                identity = await part(headers)
            except UnavailableError as error:
                outcomes.append((_fit_of(part, headers), error))
                continue
            if isinstance(identity, Principal):
                return identity
            if identity is not None:
                outcomes.append((_fit_of(part, headers), identity))
        return _answer_of(outcomes)


def _asks_another_server(authenticator: Authenticator) -> bool:
    return getattr(authenticator, "asks_another_server", False) is True


def _fit_of(authenticator: Authenticator, headers: Mapping[str, str]) -> Fit:
    """Return how well credentials fit an authenticator that has refused them. A function has no method that says it."""
    method: Callable[[Mapping[str, str]], Fit] | None = getattr(authenticator, "fit", None)
    return Fit.UNKNOWN if method is None else method(headers)


def _answer_of(outcomes: list[tuple[Fit, _Outcome]]) -> Challenge | None:
    """Return the challenge of the authenticators that the credentials fit best; None without a challenge.

    Equally good challenges of the same kind become one with the texts of all, so that the order plays no part.

    Raises:
        UnavailableError: One of these authenticators can't check the credentials now.
    """
    best = max((fit for fit, _ in outcomes), default=Fit.NONE)
    challenges: list[Challenge] = []
    for fit, outcome in outcomes:
        if fit == best and isinstance(outcome, UnavailableError):
            raise outcome
        if fit == best and isinstance(outcome, Challenge):
            challenges.append(outcome)
    if not challenges:
        return None
    first = min(challenges, key=lambda challenge: (_kind_of(challenge), challenge.description))
    texts = {challenge.description for challenge in challenges if _kind_of(challenge) == _kind_of(first)}
    return replace(first, description=" ".join(sorted(texts)))


def _kind_of(challenge: Challenge) -> tuple[str, str]:
    return challenge.error, challenge.scheme


@public("funcmcp.auth")
def first_of(*authenticators: Authenticator) -> Authenticator:
    """Return an authenticator that calls others in order, and those that ask another server last.

    It returns the first principal. Without a principal it returns the challenge of the authenticator whose credentials
    these are, by the issuer and the audience that a token names, or by the form of the credentials. So invalid
    credentials are never treated as missing ones, and the order of the authenticators does not change the reason.
    Without a challenge it returns None.

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
    return list(authenticator.authenticators)
