"""Requests of a client to an authorization server, and proofs that a token is its own (DPoP).

How it works: a request follows no redirection, asks for an uncompressed answer, and takes 256 KiB and ten seconds at
most. With a `ProofKey`, each request has a proof for its method and URL. A server that wants a nonce in proofs refuses
the first one, and the request is sent once more with the nonce. Nonces belong to an origin, and the newest one counts.

Source: RFC 6749 section 5.2; RFC 9449 sections 4.2 (proofs), 5 (token requests), 7.1 (``ath``), 8 and 9 (nonces).
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
from time import time
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode, urlsplit

from funcmcp._auth.token_errors import error_in, helper_for
from funcmcp._client.credentials import signed_token
from funcmcp._client.errors import SignInError, one_line
from funcmcp._protocol.codec import decode
from funcmcp._state.seal import base64url

if TYPE_CHECKING:
    from collections.abc import Mapping
    from ssl import SSLContext

    from joserfc.jwk import ECKey

_SECONDS: Final = 10.0
_MAX_ANSWER: Final = 256 * 1024
_OK, _CREATED = 200, 201
_NONCE: Final = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]{1,512}")
_MAX_ORIGINS: Final = 16
_RENEW_SECONDS: Final = 30.0
_FORM: Final = "application/x-www-form-urlencoded"


def renewal_margin(lifetime: float | None) -> float:
    """Return how many seconds before its end a token is replaced, for its lifetime in seconds.

    A token with a short lifetime would otherwise be replaced before each request.
    """
    return _RENEW_SECONDS if lifetime is None else min(_RENEW_SECONDS, lifetime / 10)


class RefusedError(SignInError):
    """The authorization server refuses a request: its status is 300 to 499, or its answer has an error.

    Args:
        reason: The reason, for a message.
        error: The OAuth error; empty if there is none.
        status: The status of the answer.
    """

    def __init__(self, reason: str, error: str = "", status: int = 400) -> None:
        super().__init__(reason)
        self.error = error
        self.status = status


class ProofKey:
    """A key of this process, which is in memory only, and the nonces of the servers that want them.

    It needs ``pip install "funcmcp[client,auth]"``.
    """

    def __init__(self) -> None:
        try:
            from joserfc.jwk import ECKey  # noqa: PLC0415 - few clients have a key
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError('dpop=True needs: pip install "funcmcp[client,auth]"', name=error.name) from error
        self._key: ECKey = ECKey.generate_key("P-256")
        public = self._key.as_dict(private=False)
        self._public = {name: public[name] for name in ("kty", "crv", "x", "y")}
        self._nonces: dict[str, str] = {}

    def proof(self, method: str, url: str, token: str | None = None) -> str:
        """Return a proof for one request.

        Args:
            method: The method.
            url: The URL.
            token: The access token of the request; None for a request for tokens.
        """
        header: dict[str, object] = {"typ": "dpop+jwt", "alg": "ES256", "jwk": self._public}
        claims: dict[str, object] = {
            "jti": base64url(os.urandom(16)),
            "htm": method,
            "htu": url.partition("#")[0].partition("?")[0],
            "iat": int(time()),
        }
        if token is not None:
            claims["ath"] = base64url(hashlib.sha256(token.encode()).digest())
        nonce = self._nonces.get(_origin(url))
        if nonce is not None:
            claims["nonce"] = nonce
        return signed_token(header, claims, self._key)

    def remember(self, url: str, nonce: str | None) -> bool:
        """Remember the nonce in an answer; return whether it is a new one."""
        origin = _origin(url)
        if nonce is None or not _NONCE.fullmatch(nonce) or self._nonces.get(origin) == nonce:
            return False
        if len(self._nonces) >= _MAX_ORIGINS and origin not in self._nonces:
            del self._nonces[next(iter(self._nonces))]
        self._nonces[origin] = nonce
        return True


class TokenRequests:
    """Sends requests to authorization servers.

    Args:
        proof_key: Signs proofs of requests for tokens. None: they have none.
    """

    def __init__(self, proof_key: ProofKey | None = None) -> None:
        self._proof_key = proof_key
        self._tls: SSLContext | None = None

    async def post_form(self, url: str, form: Mapping[str, str], headers: Mapping[str, str]) -> dict[str, Any]:
        """Send a form to a token endpoint, with a proof if there is a key; return the JSON object of the answer.

        Raises:
            RefusedError: The authorization server refuses the request.
            SignInError: There is no usable answer, or it says to try again later.
        """
        body = urlencode(form).encode()
        fields = {"content-type": _FORM, **headers}
        if self._proof_key is None:
            return await self.send("POST", url, body, fields)
        try:
            return await self.send("POST", url, body, {**fields, "dpop": self._proof_key.proof("POST", url)})
        except _NonceError:
            return await self.send("POST", url, body, {**fields, "dpop": self._proof_key.proof("POST", url)})

    async def send(self, method: str, url: str, body: bytes, headers: Mapping[str, str]) -> dict[str, Any]:
        """Send a request, and return the JSON object of its answer. Errors are those of `post_form`."""
        status, value, nonce = await self._exchange(method, url, body, headers)
        is_new = self._proof_key is not None and self._proof_key.remember(url, nonce)
        error = error_in(value) or ""
        if status in {_OK, _CREATED} and isinstance(value, dict) and not error:
            return value
        reason = f"{one_line(url)} answers with status {status}{_reason(value)}."
        if helper_for(status, error) == "time":
            raise SignInError(reason)
        if is_new and error == "use_dpop_nonce":
            raise _NonceError(reason, error, status)
        raise RefusedError(reason, error, status)

    async def _exchange(
        self, method: str, url: str, body: bytes, headers: Mapping[str, str]
    ) -> tuple[int, Any, str | None]:
        """Send a request; return the status, the JSON value and the nonce of the answer. Other answers are None."""
        import httpx2  # noqa: PLC0415 - vendor code, for URLs alone

        if self._tls is None:  # loading the certificate authorities takes longer than a request
            self._tls = httpx2.create_ssl_context()
        fields = {"accept": "application/json", "accept-encoding": "identity", **headers}
        answer = bytearray()
        try:
            async with (
                asyncio.timeout(_SECONDS),
                httpx2.AsyncClient(verify=self._tls, headers=fields, timeout=None) as client,
                client.stream(method, url, content=body, follow_redirects=False) as response,
            ):
                async for part in response.aiter_raw():
                    answer += part
                    if len(answer) > _MAX_ANSWER:
                        raise SignInError(f"The answer of {one_line(url)} is too large.")
        except (httpx2.HTTPError, TimeoutError, OSError) as error:
            raise SignInError(
                f"{one_line(url)} can't be reached: {one_line(error) or type(error).__name__}."
            ) from error
        try:
            value = decode(bytes(answer))
        except ValueError:
            value = None
        return response.status_code, value, response.headers.get("dpop-nonce")


class _NonceError(RefusedError):
    """The authorization server wants a nonce in proofs, and has sent a new one."""


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}".lower()


def _reason(value: object) -> str:
    """Return the error in the answer of an authorization server, as the end of a sentence."""
    if not isinstance(value, dict) or "error" not in value:
        return ""
    return f": {one_line(value['error'], 80)} {one_line(value.get('error_description', ''))}".rstrip(" .")
