"""What a server is told about its callers: who finds out who they are, and what they get."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from funcmcp.auth.authenticator import Authenticator
    from funcmcp.auth.protected_resource import ProtectedResource


@dataclass(frozen=True, slots=True)
class Auth:
    """How a server deals with its callers.

    Attributes:
        authenticator: finds out who sends a request.
        resource: tells clients where to get tokens; None where they are told in another way.
        lists: who gets the lists of tools, resources and prompts: ``"closed"`` principals, ``"filtered"`` everybody
            what they may use, ``"open"`` everybody.
        scopes: that a principal needs for anything that is not open to everybody, beside a feature's own.
    """

    authenticator: Authenticator
    resource: ProtectedResource | None = None
    lists: Literal["open", "filtered", "closed"] = "closed"
    scopes: Sequence[str] = ()
