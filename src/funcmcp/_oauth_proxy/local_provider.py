"""An identity provider in this process, which signs one user in without asking: for tests and machines of developers.

How it works: the proxy has asked the user on its own page before it needs the provider. So the address at which the
user would sign in is the proxy's callback, with a code. The code is sealed, and contains what it is bound to: the
callback, the PKCE challenge and the nonce. It is good for one exchange.

`OAuthProxy.with_provider` makes the proxy for it. It has other keys, so that a server never accepts its tokens.
"""

from __future__ import annotations

import hmac
import os
from collections import deque
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode

from funcmcp._oauth_proxy.flows import challenge_of
from funcmcp._oauth_proxy.upstream import SignIn, UpstreamRefusedError
from funcmcp._protocol.codec import encode
from funcmcp._state.seal import base64url

if TYPE_CHECKING:
    from funcmcp._oauth_proxy.upstream import AuthorizationRequest, User
    from funcmcp._state.seal import KeyRing

_PURPOSE: Final = "local provider code"
_MAX_ENDED: Final = 1000
"""Codes and refresh tokens that are remembered as used or revoked."""


class LocalProvider:
    """An upstream that signs one user in.

    Args:
        user: The user.
        keys: Seal its codes.

    Attributes:
        name: What the page says about it.
        issuer: None.
        needs_registration: False: the operator registers no redirect URI.
    """

    needs_registration: Final = False

    def __init__(self, user: User, keys: KeyRing) -> None:
        self.name: str = f"this machine, as {user.name or user.subject}"
        self.issuer: str | None = None
        self._user = user
        self._keys = keys
        self._ended: deque[str] = deque(maxlen=_MAX_ENDED)

    async def authorization_url(self, request: AuthorizationRequest) -> str:
        """Return the callback of the proxy with a code: the user need not go anywhere."""
        bound_to = _encoded(request.redirect_uri, request.challenge, request.nonce)
        parameters = {"code": self._keys.conceal(_PURPOSE, bound_to), "state": request.state}
        return f"{request.redirect_uri}?{urlencode(parameters)}"

    async def requires_issuer(self) -> bool:
        """Return False: the answers have no ``iss``."""
        return False

    async def exchange(self, code: str, *, redirect_uri: str, verifier: str, nonce: str) -> SignIn:
        """Return the user for a code; raise UpstreamRefusedError."""
        bound_to = self._keys.reveal(_PURPOSE, code)
        expected = _encoded(redirect_uri, challenge_of(verifier), nonce)
        if bound_to is None or not hmac.compare_digest(bound_to, expected) or code in self._ended:
            raise UpstreamRefusedError("the code is used, or of another request")
        self._ended.append(code)
        return SignIn(self._user, base64url(os.urandom(16)))

    async def refresh(self, refresh_token: str, subject: str) -> SignIn:
        """Return the user as it is now; raise UpstreamRefusedError for another one."""
        if refresh_token in self._ended or subject != self._user.subject:
            raise UpstreamRefusedError("the sign-in has ended")
        return SignIn(self._user, None)

    async def revoke(self, refresh_token: str) -> bool:
        """End a sign-in."""
        self._ended.append(refresh_token)
        return True


def _encoded(redirect_uri: str, challenge: str, nonce: str) -> bytes:
    return encode([redirect_uri, challenge, nonce])
