"""Requests of the proxy as a client of an identity provider: their parameters, its credential, and the tokens returned.

Source: RFC 6749 sections 2.3.1 (the client's id and secret are encoded before HTTP Basic), 4.1.1 and 4.1.3; RFC 7523
section 2.2 and OpenID Connect Core 1.0 section 9 (``private_key_jwt`` and ``client_secret_jwt``).
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import secrets
from time import time
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from funcmcp._auth.basic import basic_of
from funcmcp._auth.client_options import METHODS
from funcmcp._oauth_proxy.failures import CREDENTIAL_FAILED, PROVIDER_ANSWER
from funcmcp._oauth_proxy.upstream import (
    IssuedToken,
    UpstreamError,
    UpstreamMisconfiguredError,
    UpstreamUnavailableError,
    failed,
)
from funcmcp._protocol.codec import encode
from funcmcp._state.seal import base64url

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Mapping

RESERVED_AT_TOKEN: Final = frozenset(
    {
        "client_assertion", "client_assertion_type", "client_id", "client_secret", "code", "code_verifier",
        "grant_type", "redirect_uri", "refresh_token",
    }
)  # fmt: skip
"""Parameters of the token request that belong to the proxy."""

_ASSERTION_TYPE: Final = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
_ASSERTION_SECONDS: Final = 60
_CREDENTIAL_SECONDS: Final = 10.0
_MIN_SIGNING_SECRET: Final = 32
_MAX_SECONDS: Final = 86_400.0


class ClientAuthentication:
    """Authenticates the proxy at an identity provider.

    Args:
        owner: The name of the upstream in error messages.
        client_id: The id of the registration.
        secret: The secret of the registration.
        method: How the secret is sent; None: as the provider supports it.
        assertion: In place of a secret, returns a signed assertion for an audience.
        clock: A function that returns seconds since 1970.

    Raises:
        ValueError: The id is missing, there are both a secret and a credential, or the method is unknown or does not
            fit the secret.
    """

    def __init__(
        self,
        owner: str,
        client_id: str,
        secret: str | None,
        *,
        method: str | None = None,
        assertion: Callable[[str], Awaitable[str]] | None = None,
        clock: Callable[[], float] = time,
    ) -> None:
        if not client_id:
            raise ValueError(f"{owner} needs the client_id of the registration at the provider.")
        if secret is not None and assertion is not None:
            raise ValueError(f"{owner} takes either client_secret or credential, not both.")
        if method is not None:
            _check_method(f"{owner}.token_endpoint_auth_method", method, secret)
        self._client_id = client_id
        self._secret = secret
        self._method = method
        self._assertion = assertion
        self._clock = clock

    async def fields(self, supported: Collection[str], audience: str) -> tuple[dict[str, str], dict[str, str]]:
        """Return the header fields and the form fields that authenticate a request.

        Args:
            supported: The methods that the provider supports.
            audience: The URL of its token endpoint, for assertions.

        Raises:
            UpstreamMisconfiguredError: The function of the author that returns assertions has failed.
        """
        if self._assertion is not None:
            return {}, self._with_assertion(await self._asserted(self._assertion, audience))
        if self._secret is None:
            return {}, {"client_id": self._client_id}
        method = self._method or next((name for name in METHODS if name in supported), "client_secret_post")
        if method == "client_secret_basic":
            return {"authorization": basic_of(self._client_id, self._secret)}, {}
        if method == "client_secret_jwt":
            return {}, self._with_assertion(self._signed_with_secret(self._secret, audience))
        return {}, {"client_id": self._client_id, "client_secret": self._secret}

    async def _asserted(self, function: Callable[[str], Awaitable[str]], audience: str) -> str:
        """Return the assertion of a function of the author, which may ask another server for it."""
        try:
            async with asyncio.timeout(_CREDENTIAL_SECONDS):
                return await function(audience)
        except UpstreamError:
            raise
        except Exception as error:
            detail = f"{type(error).__name__}: {error!s:.200}"
            raise failed(UpstreamMisconfiguredError, CREDENTIAL_FAILED, detail) from error

    def _with_assertion(self, assertion: str) -> dict[str, str]:
        return {
            "client_id": self._client_id,
            "client_assertion_type": _ASSERTION_TYPE,
            "client_assertion": assertion,
        }

    def _signed_with_secret(self, secret: str, audience: str) -> str:
        """Return an assertion of the method ``client_secret_jwt``, signed with HS256."""
        now = int(self._clock())
        claims = {
            "iss": self._client_id,
            "sub": self._client_id,
            "aud": audience,
            "jti": secrets.token_urlsafe(16),
            "iat": now,
            "exp": now + _ASSERTION_SECONDS,
        }
        signed = f"{base64url(encode({'alg': 'HS256', 'typ': 'JWT'}))}.{base64url(encode(claims))}"
        signature = hmac.digest(secret.encode(), signed.encode(), hashlib.sha256)
        return f"{signed}.{base64url(signature)}"


def _check_method(option: str, method: str, secret: str | None) -> None:
    if method not in METHODS:
        raise ValueError(f"{option} must be {', '.join(map(repr, METHODS[:-1]))} or {METHODS[-1]!r}.")
    if secret is None:
        raise ValueError(f"{option} needs client_secret.")
    if method == "client_secret_jwt" and len(secret.encode()) < _MIN_SIGNING_SECRET:
        raise ValueError(
            f"{option} 'client_secret_jwt' needs a secret of {_MIN_SIGNING_SECRET} bytes, because it signs (RFC 7518)."
        )


def url_with(endpoint: str, parameters: Mapping[str, str]) -> str:
    """Return the URL of an endpoint with more parameters; those without a value are left out."""
    query = urlencode({name: value for name, value in parameters.items() if value})
    return f"{endpoint}{'&' if '?' in endpoint else '?'}{query}"


def refresh_token_in(answer: Mapping[str, Any]) -> str | None:
    """Return the refresh token in an answer of a token endpoint; None without one."""
    token = answer.get("refresh_token")
    return token if isinstance(token, str) and token else None


def issued_token_in(answer: Mapping[str, Any]) -> IssuedToken:
    """Return the access token in an answer; raise UpstreamUnavailableError if there is none that a request can have."""
    token, seconds = answer.get("access_token"), answer.get("expires_in")
    if not isinstance(token, str) or not token or str(answer.get("token_type", "bearer")).lower() != "bearer":
        raise failed(UpstreamUnavailableError, PROVIDER_ANSWER, "the answer has no access token of the type Bearer")
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not seconds > 0:
        return IssuedToken(token, None)
    return IssuedToken(token, min(float(seconds), _MAX_SECONDS))
