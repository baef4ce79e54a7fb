"""Who may use a feature: the options of authors, and the rule that the server applies."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from funcmcp._auth.access import Access, distinct
from funcmcp._server.catalog.registry import RegistrationError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from funcmcp._auth.access import Authorize


class AccessOptions(TypedDict, total=False):
    """Who may use a feature of a server with `auth`. A server without it accepts every caller.

    Attributes:
        allow_anonymous: Accept callers without credentials.
        scopes: Scopes that the principal must have, all of them.
        authorize: Gets the principal and returns whether it may use the feature. A plain function is called on the
            event loop, so it must not block. It may be async.
    """

    allow_anonymous: bool
    scopes: Sequence[str]
    authorize: Authorize | None


def access_of(name: str, options: AccessOptions) -> Access:
    """Return who may use a feature.

    Raises:
        RegistrationError: An option has a wrong type, or the options contradict each other.
    """
    anonymous = options.get("allow_anonymous", False)
    scopes = options.get("scopes", ())
    authorize = options.get("authorize")
    if not isinstance(anonymous, bool):
        raise RegistrationError(f"allow_anonymous of {name} must be True or False, not {type(anonymous).__name__}.")
    if not isinstance(scopes, list | tuple | set | frozenset):
        raise RegistrationError(f"scopes of {name} must be a list of strings, not {type(scopes).__name__}.")
    if authorize is not None and not callable(authorize):
        raise RegistrationError(f"authorize of {name} must be a function, not {type(authorize).__name__}.")
    if anonymous and (scopes or authorize is not None):
        raise RegistrationError(
            f"{name} has allow_anonymous=True, which accepts every caller. Remove it, or remove scopes and authorize."
        )
    try:
        return Access(anonymous, distinct(scopes), authorize)
    except ValueError as error:
        raise RegistrationError(f"scopes of {name}: {error}") from None
