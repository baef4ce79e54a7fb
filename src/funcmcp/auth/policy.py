"""Options of authentication and authorization."""

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
    """Options of authentication and authorization.

    Attributes:
        authenticator: The function that returns the caller of a request.
        resource: Metadata that tell clients where to get tokens. None: the server publishes no metadata.
        lists: Who gets the lists of tools, resources and prompts. ``"auto"``: principals get all features, callers
            without credentials those with ``allow_anonymous=True``, or 401 if there are none. ``"closed"``: principals
            get all features, others 401. ``"filtered"``: each caller gets the features that it may use. ``"open"``:
            every caller gets all features.
        scopes: Scopes that a principal needs in addition to those of a feature. Features with
            ``allow_anonymous=True`` need none.
    """

    authenticator: Authenticator
    resource: ProtectedResource | None = None
    lists: Lists = "auto"
    scopes: Sequence[str] = ()
