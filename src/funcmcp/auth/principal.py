"""Who is calling."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Principal:
    """A caller that an authenticator has accepted.

    Attributes:
        subject: names the caller, unchanging and unique at its issuer (the `sub` of a token, the name of an API key).
        issuer: who vouches for the caller (the `iss` of a token); each authenticator without one has a word of its own.
        client_id: the program that calls on the subject's behalf, or ``""`` where that is not known.
        scopes: what the caller has been allowed.
        roles: what the caller is.
        claims: everything that was said about the caller, as it was said; read-only.
        name: what to call the caller where people read it.
    """

    subject: str
    issuer: str = ""
    client_id: str = ""
    scopes: frozenset[str] = frozenset()
    roles: frozenset[str] = frozenset()
    claims: Mapping[str, Any] = field(default_factory=dict, repr=False, hash=False)
    name: str | None = None

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
    def key(self) -> tuple[str, str, str]:
        """Issuer, client and subject: the same for every token of the same caller, and for nobody else."""
        return self.issuer, self.client_id, self.subject


def owner_of(principal: Principal | None) -> str | None:
    """Return the mark of what belongs to a principal, such as a session or a task; None for an anonymous caller.

    The mark is the same for each token of the same principal. It is a digest, so it may be stored.
    """
    return None if principal is None else _digest(principal.key)


@lru_cache(maxsize=4096)
def _digest(key: tuple[str, str, str]) -> str:
    return hashlib.sha256(json.dumps(key).encode()).hexdigest()[:32]
