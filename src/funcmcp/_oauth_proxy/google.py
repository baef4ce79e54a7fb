"""Google as upstream of the proxy.

Source: Google Identity, "OpenID Connect" (`hd`, `access_type`, `prompt`).
"""

from __future__ import annotations

from time import time
from typing import TYPE_CHECKING, Any, Final

from funcmcp._auth.client_options import checked_parameters
from funcmcp._oauth_proxy.failures import ACCOUNT
from funcmcp._oauth_proxy.id_tokens import exact_claim, text_claim, verified_email
from funcmcp._oauth_proxy.oidc import OIDC
from funcmcp._oauth_proxy.upstream import UpstreamRefusedError, User, failed
from funcmcp._objects.public_names import public

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_ISSUER: Final = "https://accounts.google.com"


@public("funcmcp.auth")
class Google(OIDC):
    """Google for `OAuthProxy`.

    Create an OAuth client of the type *Web application* with the redirect URI
    ``https://<host of the server>/oauth/callback``.

    Args:
        client_id: The id of the client.
        client_secret: The secret of the client.
        domains: Domains of Google Workspace whose users may sign in, such as ``["example.com"]``. None: everybody with
            a Google account may sign in, unless `OAuthProxy.allow` decides otherwise.
        parameters: More parameters of the authorization request, such as ``{"prompt": "select_account consent"}``. A
            value of ``""`` leaves out a parameter that the proxy would send.
        clock: A function that returns seconds since 1970.

    Raises:
        ValueError: *domains* is empty, or a parameter belongs to the proxy.
        TypeError: *domains* is one string.
    """

    def __init__(
        self,
        client_id: str,
        client_secret: str,
        *,
        domains: Sequence[str] | None,
        parameters: Mapping[str, str] | None = None,
        clock: Callable[[], float] = time,
    ) -> None:
        if isinstance(domains, str):
            raise TypeError("Google.domains is a list of strings, not one string.")
        if domains is not None and not domains:
            raise ValueError("Google.domains needs at least one domain. None accepts every Google account.")
        self._domains = None if domains is None else frozenset(domain.lower() for domain in domains)
        # Without these two parameters Google gives a refresh token with the first sign-in only, or none.
        sent = {"access_type": "offline", "prompt": "consent"}
        if domains is not None and len(domains) == 1:
            sent["hd"] = domains[0]  # Google then shows accounts of this domain only; the claim decides.
        sent |= checked_parameters("Google.parameters", parameters)
        super().__init__(_ISSUER, client_id, client_secret, name="Google", parameters=sent, clock=clock)

    def _user_of(self, claims: dict[str, Any]) -> User:
        domain = exact_claim(claims, "hd")
        if self._domains is not None and (domain is None or domain.lower() not in self._domains):
            raise failed(UpstreamRefusedError, ACCOUNT, "the user is not of one of the domains")
        return User(
            claims["sub"],
            name=text_claim(claims, "name"),
            email=verified_email(claims),
            tenant=domain,
            claims=claims,
        )
