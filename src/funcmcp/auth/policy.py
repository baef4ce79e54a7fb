"""What a server is told about its callers: who finds out who they are, and what they get."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

    from funcmcp.auth.authenticator import Authenticator
    from funcmcp.auth.protected_resource import ProtectedResource

Lists: TypeAlias = Literal["auto", "open", "filtered", "closed"]


@dataclass(frozen=True, slots=True)
class Auth:
    """How a server deals with its callers.

    Attributes:
        authenticator: finds out who sends a request.
        resource: tells clients where to get tokens; None where they are told in another way.
        lists: who gets the lists of tools, resources and prompts. ``"auto"``: principals get all features, callers
            without credentials those with ``allow_anonymous=True``, or 401 where there are none. ``"closed"``:
            principals get all features, others 401. ``"filtered"``: each caller gets the features that it may use.
            ``"open"``: every caller gets all features.
        scopes: that a principal needs for anything that is not open to everybody, beside a feature's own.
    """

    authenticator: Authenticator
    resource: ProtectedResource | None = None
    lists: Lists = "auto"
    scopes: Sequence[str] = ()
