"""Options of authentication and authorization."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from funcmcp._definitions import options
from funcmcp._public_names import public

if TYPE_CHECKING:
    from collections.abc import Sequence

    from funcmcp._auth.authenticator import Authenticator
    from funcmcp._auth.protected_resource import ProtectedResource

Lists: TypeAlias = Literal["auto", "open", "filtered", "closed"]


@public("funcmcp")
@options
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

    Raises:
        TypeError: The authenticator is a class or can't be called, or `resource` has another type.
    """

    authenticator: Authenticator
    resource: ProtectedResource | None = None
    lists: Lists = "auto"
    scopes: Sequence[str] = ()

    def __post_init__(self) -> None:
        if isinstance(self.authenticator, type) or not callable(self.authenticator):
            raise TypeError(
                "Auth needs an authenticator, such as APIKeys({...}), or an async function; "
                f"got {_kind_of(self.authenticator)}."
            )
        if self.resource is not None and not hasattr(self.resource, "metadata_url"):
            raise TypeError(f"Auth.resource must be ProtectedResource(...) or None; got {_kind_of(self.resource)}.")


def _kind_of(value: object) -> str:
    """Return what an option has got, without the value, which may be a secret."""
    return f"the class {value.__name__}" if isinstance(value, type) else type(value).__name__
