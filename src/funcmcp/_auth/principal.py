"""Principals: callers that an authenticator has accepted."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

from funcmcp._protocol.errors import ToolError
from funcmcp._public_names import public

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

    def __post_init__(self) -> None:
        if not self.subject:
            raise ValueError("A principal needs a subject.")
        for attribute in ("scopes", "roles"):
            values = getattr(self, attribute)
            if isinstance(values, str):
                raise TypeError(f"Principal.{attribute} is a set of strings, not one string.")
            object.__setattr__(self, attribute, frozenset(values))
        object.__setattr__(self, "claims", MappingProxyType(dict(self.claims)))

    @property
    def key(self) -> tuple[str, ...]:
        """Issuer, client and subject: the same for all tokens of one caller, and different for any two callers."""
        if self.per_token:
            # One part more, so that no issuer can name a subject that is equal to the digest of a token.
            return self.issuer, self.client_id, self.subject, "token"
        return self.issuer, self.client_id, self.subject
