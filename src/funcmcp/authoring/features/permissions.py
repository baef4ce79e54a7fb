"""What an author says of who may use a feature."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from funcmcp.auth.access import Access
from funcmcp.auth.scopes import distinct
from funcmcp.authoring.features.options import Options
from funcmcp.server.catalog.registry import RegistrationError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypedDict

    from funcmcp.auth.access import Allow

    class AccessKeywords(TypedDict, total=False):
        """Who may use a feature, as keywords; see `AccessOptions`."""

        allow_anonymous: bool
        scopes: Sequence[str]
        authorize: Allow | None


@dataclass(frozen=True, slots=True)
class AccessOptions(Options):
    """Who may use a feature of a server with `auth`; a server without it asks nobody.

    Attributes:
        allow_anonymous: callers without credentials may, too.
        scopes: that a principal needs, all of them.
        authorize: gets the principal and returns whether it may. A plain function is called on the event loop, so it
            must not wait for anything; an async one may.
    """

    allow_anonymous: bool = False
    scopes: Sequence[str] = ()
    authorize: Allow | None = None


def access_of(name: str, options: AccessOptions) -> Access:
    """Return who may use a feature; raise RegistrationError if the options contradict each other or are none."""
    anonymous, scopes, allow = options.allow_anonymous, options.scopes, options.authorize
    if not isinstance(anonymous, bool):
        raise RegistrationError(f"allow_anonymous of {name} must be True or False, not {type(anonymous).__name__}.")
    if not isinstance(scopes, list | tuple | set | frozenset):
        raise RegistrationError(f"scopes of {name} must be a list of texts, not {type(scopes).__name__}.")
    if allow is not None and not callable(allow):
        raise RegistrationError(f"authorize of {name} must be a function, not {type(allow).__name__}.")
    if anonymous and (scopes or allow is not None):
        raise RegistrationError(f"{name} allows everybody; leave out allow_anonymous, or scopes and authorize.")
    try:
        return Access(anonymous, distinct(scopes), allow)
    except ValueError as error:
        raise RegistrationError(f"scopes of {name}: {error}") from None
