"""Principals: callers that an authenticator has accepted."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

from funcmcp._objects.public_names import public
from funcmcp._protocol.errors import ToolError

UpstreamTokens: TypeAlias = Callable[[Sequence[str], str | None], Awaitable[str]]
"""An async function from scopes, and an audience or None, to a token for another API. It raises UpstreamTokenError."""

UpstreamFailure: TypeAlias = Literal["missing", "sign_in", "configuration", "unavailable"]


@public("funcmcp.auth")
class UpstreamTokenError(ToolError):
    """A tool gets no token for another API. If the tool does not catch it, the caller reads its text.

    Args:
        reason: The reason; see the attribute.
        text: A sentence for the caller.

    Attributes:
        reason: ``"missing"``: the call has no sign-in with which tokens can be requested. ``"sign_in"``: the provider
            refuses, and the user has to sign in again, or to ask for a permission; the text says which.
            ``"configuration"``: the operator of the server has to do something; the log says what. ``"unavailable"``:
            the provider can't be reached.
    """

    def __init__(self, reason: UpstreamFailure, text: str) -> None:
        super().__init__(text)
        self.reason: UpstreamFailure = reason


def _no_token() -> None:
    """Return what a copy of a `VerifiedToken` is."""


@public("funcmcp.auth")
class VerifiedToken:
    """The token with which a caller was authenticated, for a token endpoint that exchanges it for another one.

    It appears in no representation, and copies and pickles of a principal do not have it.

    Args:
        text: The token.
    """

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return "VerifiedToken(...)"

    def __reduce__(self) -> tuple[Callable[[], None], tuple[()]]:
        return _no_token, ()

    def reveal(self) -> str:
        """Return the token. Send it to nobody but the issuer's token endpoint."""
        return self._text


@public("funcmcp")
@dataclass(frozen=True, slots=True)
class Principal:
    """A caller that an authenticator has accepted.

    Attributes:
        subject: The id of the caller, constant and unique at its issuer, such as the ``sub`` of a token.
        issuer: The authority that identified the caller (the ``iss`` of a token). Authenticators without an issuer have
            a constant, such as ``"api-key"``.
        client_id: The application that acts for the subject, or ``""`` if it is not known.
        scopes: Scopes of the caller.
        roles: Roles of the caller.
        claims: All claims about the caller, unchanged and read-only.
        name: A name for people to read.
        per_token: Whether the token names no subject, so that `subject` is a digest of the token. Sessions and tasks of
            such a principal end with the token, and it has no list of tasks.
        upstream_tokens: What `Context.upstream_token` calls; None if the caller has not signed in with an `OAuthProxy`
            whose upstream exchanges tokens.
        verified_token: The token of the request, if the authenticator has verified it and it may be exchanged for a
            token of another server; None otherwise. `BearerTokens` sets it.
    """

    subject: str
    issuer: str = ""
    client_id: str = ""
    scopes: frozenset[str] = frozenset()
    roles: frozenset[str] = frozenset()
    claims: Mapping[str, Any] = field(default_factory=dict, repr=False, hash=False)
    name: str | None = None
    per_token: bool = False
    upstream_tokens: UpstreamTokens | None = field(default=None, repr=False, hash=False, compare=False)
    verified_token: VerifiedToken | None = field(default=None, repr=False, hash=False, compare=False)

    def __post_init__(self) -> None:
        if not self.subject:
            raise ValueError("A principal needs a subject.")
        for attribute in ("scopes", "roles"):
            values = getattr(self, attribute)
            # An object may say of each role whether the caller has it, so that its names are not the roles.
            if isinstance(values, str | Mapping):
                raise TypeError(f"Principal.{attribute} is a set of strings, not {type(values).__name__}.")
            object.__setattr__(self, attribute, frozenset(values))
        object.__setattr__(self, "claims", MappingProxyType(dict(self.claims)))

    @property
    def key(self) -> tuple[str, ...]:
        """Issuer, client and subject: the same for all tokens of one caller, and different for any two callers."""
        if self.per_token:
            # One part more, so that no issuer can name a subject that is equal to the digest of a token.
            return self.issuer, self.client_id, self.subject, "token"
        return self.issuer, self.client_id, self.subject
