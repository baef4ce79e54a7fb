"""Verifiers of tokens with the names and arguments of FastMCP: signed tokens, introspection, and tests.

`JWTVerifier` checks what FastMCP's does: the signature, the expiry, and the issuer, the audience and the scopes that
the author names. `funcmcp.auth.BearerTokens` demands more of a token; see docs/guides/from-fastmcp.md.
"""

from __future__ import annotations

import base64
import inspect
import json
import logging
import math
from collections import OrderedDict
from contextlib import nullcontext
from dataclasses import dataclass
from hashlib import sha256
from time import monotonic, time
from typing import TYPE_CHECKING, Any, ClassVar, TypedDict

from pydantic import SecretStr

from funcmcp._auth.tokens.compact import SignedToken, TokenError, read, read_object
from funcmcp._auth.tokens.jwks import JWKS
from funcmcp._auth.tokens.keys import ALGORITHMS, SHARED_SECRET_ALGORITHMS, StaticKeys, UnfitKeyError
from funcmcp._compat.auth import TokenVerifier
from funcmcp._compat.request_parts import AccessToken
from funcmcp._objects.public_names import public

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from funcmcp._auth.tokens.keys import KeySource

_logger = logging.getLogger("funcmcp.compat")
_EARLY_SECONDS = 30
"""Seconds that a token may be used before its ``nbf``, as in FastMCP."""

_PEM = ("-----BEGIN PUBLIC KEY-----", "-----BEGIN RSA PUBLIC KEY-----", "-----BEGIN EC PUBLIC KEY-----")
_CERTIFICATE = "-----BEGIN CERTIFICATE-----"
_OK = 200
_MAX_TOKENS = 10_000


def parsed_scopes(value: Any) -> list[str] | None:
    """Return scopes from a list, a JSON array, or a text with spaces or commas between them; None for None."""
    if value is None or isinstance(value, list | tuple | set | frozenset):
        return None if value is None else [str(scope).strip() for scope in value if str(scope).strip()]
    text = str(value).strip()
    if text.startswith("["):
        return parsed_scopes(json.loads(text))
    return text.replace(",", " ").split()


class _ClientKeys(JWKS):
    """The keys at a URL, requested with a client of the author.

    Args:
        url: The URL.
        client: An ``httpx2.AsyncClient``.
    """

    def __init__(self, url: str, client: Any) -> None:
        super().__init__(url)
        self._client = client

    async def _get(self) -> bytes:
        response = await self._client.get(self._url)
        response.raise_for_status()
        content: bytes = response.content
        return content


@public("funcmcp.compat")
class JWTVerifier(TokenVerifier):
    """Accepts signed JSON Web Tokens. Without `audience` it accepts tokens that are for other servers, too.

    Args:
        public_key: The public key as PEM text, or the secret for an algorithm HS....
        jwks_uri: The URL of the issuer's keys. Either this or *public_key* is needed.
        issuer: The issuers that are accepted; None for any.
        audience: The audiences that are accepted, such as the URL of this server; None for any.
        algorithm: The algorithm of the signature, by default RS256.
        required_scopes: Scopes that every caller needs.
        base_url: The URL of the server.
        ssrf_safe: Not supported.
        http_client: An ``httpx2.AsyncClient`` that requests the keys.
        jwks_refresh_interval: Changes nothing: keys are requested again after 30 seconds at the earliest.

    Raises:
        TypeError: *ssrf_safe* is set.
        ValueError: There is no key, both kinds of keys, an unknown algorithm, or a secret that is too short.
    """

    scope_claims: ClassVar[tuple[str, ...]] = ("scope", "scp")

    def __init__(  # noqa: PLR0913 - FastMCP's parameters
        self,
        *,
        public_key: str | bytes | None = None,
        jwks_uri: str | None = None,
        issuer: str | list[str] | None = None,
        audience: str | list[str] | None = None,
        algorithm: str | None = None,
        required_scopes: Any = None,
        base_url: Any = None,
        ssrf_safe: bool = False,
        http_client: Any = None,
        jwks_refresh_interval: float = 30.0,
    ) -> None:
        super().__init__(base_url=base_url, required_scopes=parsed_scopes(required_scopes))
        if not public_key and not jwks_uri:
            raise ValueError("Either public_key or jwks_uri must be provided")
        if public_key and jwks_uri:
            raise ValueError("Provide either public_key or jwks_uri, not both")
        if not math.isfinite(jwks_refresh_interval) or jwks_refresh_interval < 0:
            raise ValueError("jwks_refresh_interval must be finite and non-negative")
        if ssrf_safe and http_client is not None:
            raise ValueError("http_client cannot be used with ssrf_safe=True")
        if ssrf_safe:
            raise TypeError(
                "funcmcp.compat does not support ssrf_safe=True of JWTVerifier. Name only URLs of keys that you trust."
            )
        self.public_key = public_key
        self.jwks_uri: str | None = None if jwks_uri is None else str(jwks_uri)
        self.issuer = issuer
        self.audience = audience
        self.algorithm: str = _checked_algorithm(algorithm or "RS256", public_key, jwks_uri)
        self.ssrf_safe = ssrf_safe
        self._keys = _keys_of(self.algorithm, public_key, self.jwks_uri, http_client)

    def _validate_issuer(self, issuer: Any) -> bool:
        """Return whether the issuer of a token is accepted. Subclasses may accept more."""
        return issuer in self.issuer if isinstance(self.issuer, list) else issuer == self.issuer

    def _extract_scopes(self, claims: dict[str, Any]) -> list[str]:
        for name in self.scope_claims:
            if name in claims:
                return scopes_in(claims[name])
        return []

    async def load_access_token(self, token: str) -> AccessToken | None:
        """Return the access token for a token, or None if it is invalid."""
        try:
            signed = read(token)
            claims = read_object(signed.payload, "payload")
            problem = self._problem_of(signed, claims)
            if problem is None and not await self._is_signed(signed):
                problem = "its signature is invalid"
            if problem is None:
                return self._access_token(token, claims)
        except (TokenError, ValueError, TypeError) as error:
            problem = str(error)
        _logger.info("A bearer token is refused: %s.", problem.removesuffix("."))
        return None

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return the access token for a token, or None if it is invalid."""
        return await self.load_access_token(token)

    async def _is_signed(self, signed: SignedToken) -> bool:
        return any(key.verifies(signed) for key in await self._keys.find(signed))

    def _problem_of(self, signed: SignedToken, claims: dict[str, Any]) -> str | None:
        """Return why a token is refused, apart from its signature; None if it may be accepted."""
        if signed.algorithm != self.algorithm:
            return "it has another algorithm"
        expiry, start = claims.get("exp"), claims.get("nbf")
        if expiry is not None and expiry < time():
            return "it has expired"
        if start is not None and start > time() + _EARLY_SECONDS:
            return "it is not valid yet"
        if not isinstance(claims.get("sub"), str | None):
            return "its subject is not a string"
        if self.issuer and not self._validate_issuer(claims.get("iss")):
            return "it has another issuer"
        if self.audience and _listed(self.audience).isdisjoint(_listed(claims.get("aud"))):
            return "it is for another audience"
        if not set(self.required_scopes).issubset(self._extract_scopes(claims)):
            return "it lacks a scope"
        return None

    def _access_token(self, token: str, claims: dict[str, Any]) -> AccessToken:
        expiry, subject = claims.get("exp"), claims.get("sub")
        return AccessToken(
            token=token,
            client_id=str(claims.get("client_id") or claims.get("azp") or subject or "unknown"),
            scopes=self._extract_scopes(claims),
            expires_at=None if expiry is None else int(expiry),
            subject=subject if isinstance(subject, str) else None,
            claims=claims,
        )


def _listed(value: Any) -> set[str]:
    """Return the texts in a claim, which has one or a list of them."""
    if isinstance(value, str):
        return {value}
    return {item for item in value if isinstance(item, str)} if isinstance(value, list | tuple) else set()


def scopes_in(value: Any) -> list[str]:
    """Return the scopes in a claim: a text with spaces between them, or a list."""
    if isinstance(value, str):
        return value.split()
    return [str(scope) for scope in value if scope] if isinstance(value, list) else []


def _text_of(key: str | bytes) -> str:
    return key.decode("utf-8", errors="replace") if isinstance(key, bytes) else key


def _checked_algorithm(algorithm: str, public_key: str | bytes | None, jwks_uri: str | None) -> str:
    if algorithm not in ALGORITHMS:
        raise ValueError(f"Unsupported algorithm: {algorithm}.")
    if algorithm in SHARED_SECRET_ALGORITHMS:
        if jwks_uri:
            raise ValueError("Symmetric HS* algorithms cannot be used with jwks_uri. Pass the secret as public_key.")
        if any(mark in _text_of(public_key or "") for mark in (*_PEM, _CERTIFICATE)):
            raise ValueError("Symmetric HS* algorithms require a shared secret, not a public key.")
    return algorithm


def _keys_of(algorithm: str, public_key: str | bytes | None, jwks_uri: str | None, client: Any) -> KeySource:
    if jwks_uri is not None:
        return JWKS(jwks_uri) if client is None else _ClientKeys(jwks_uri, client)
    if algorithm in SHARED_SECRET_ALGORITHMS:
        secret = public_key if isinstance(public_key, bytes) else (public_key or "").encode()
        return StaticKeys({"kty": "oct", "alg": algorithm, "k": base64.urlsafe_b64encode(secret).rstrip(b"=").decode()})
    try:
        return StaticKeys(_text_of(public_key or "").strip())
    except UnfitKeyError as error:
        _logger.error("JWTVerifier accepts no token: its public_key can't be used. %s", error)  # noqa: TRY400
        return _NoKeys()


class _NoKeys:
    """The keys of a verifier whose public key can't be used."""

    async def find(self, token: SignedToken) -> tuple[()]:
        """Return no key."""
        del token
        return ()


BearerAuthProvider = JWTVerifier


@public("funcmcp.compat")
class JWKData(TypedDict, total=False):
    """A JSON Web Key, for annotations."""

    kty: str
    kid: str
    use: str
    alg: str
    n: str
    e: str
    crv: str
    x: str
    x5c: list[str]
    x5t: str


@public("funcmcp.compat")
class JWKSData(TypedDict):
    """A JSON Web Key Set, for annotations."""

    keys: list[JWKData]


@public("funcmcp.compat")
class Auth0JWTVerifier(JWTVerifier):
    """Accepts tokens of Auth0, whose claim ``permissions`` has scopes as well. The arguments are `JWTVerifier`'s."""

    def _extract_scopes(self, claims: dict[str, Any]) -> list[str]:
        return list(dict.fromkeys([*super()._extract_scopes(claims), *scopes_in(claims.get("permissions"))]))


@public("funcmcp.compat")
class AWSCognitoTokenVerifier(JWTVerifier):
    """Accepts access tokens of an Amazon Cognito user pool, which have ``client_id`` in place of an audience.

    Args:
        audience: The ids of the applications whose tokens are accepted; None for any.
        options: The other arguments of `JWTVerifier`.
    """

    def __init__(self, *, audience: str | list[str] | None = None, **options: Any) -> None:
        super().__init__(**options)
        self.expected_client_ids: set[str] | None = None if audience is None else _listed(audience)

    def _problem_of(self, signed: SignedToken, claims: dict[str, Any]) -> str | None:
        if claims.get("token_use") != "access":
            return "it is not an access token"
        if self.expected_client_ids is not None and claims.get("client_id") not in self.expected_client_ids:
            return "it is for another application"
        return super()._problem_of(signed, claims)


@public("funcmcp.compat")
class AzureJWTVerifier(JWTVerifier):
    """Accepts access tokens of Microsoft Entra ID for one registration.

    Args:
        client_id: The id of the registration.
        tenant_id: The id of the tenant, or ``"organizations"``, ``"consumers"`` or ``"common"`` for several.
        required_scopes: Scopes that every caller needs, in their short form, such as ``"read"``.
        identifier_uri: The URI of the application; by default ``api://<client_id>``.
        base_authority: The host of the sign-in.
    """

    def __init__(
        self,
        *,
        client_id: str,
        tenant_id: str,
        required_scopes: Any = None,
        identifier_uri: str | None = None,
        base_authority: str = "login.microsoftonline.com",
    ) -> None:
        self.identifier_uri: str = identifier_uri or f"api://{client_id}"
        several = tenant_id in {"organizations", "consumers", "common"}
        issuer = None if several else f"https://{base_authority}/{tenant_id}/v2.0"
        super().__init__(
            jwks_uri=f"https://{base_authority}/{tenant_id}/discovery/v2.0/keys",
            issuer=issuer,
            audience=[client_id, self.identifier_uri],
            required_scopes=required_scopes,
        )

    @property
    def scopes_supported(self) -> list[str]:
        """The scopes in the form in which clients request them."""
        return self.get_challenge_scopes()

    def get_challenge_scopes(self, required_scopes: list[str] | None = None) -> list[str]:
        """Return scopes in the form in which clients request them, with the URI of the application."""
        scopes = self.required_scopes if required_scopes is None else required_scopes
        return [scope if "://" in scope or "/" in scope else f"{self.identifier_uri}/{scope}" for scope in scopes]


@public("funcmcp.compat")
class IntrospectionTokenVerifier(TokenVerifier):
    """Asks the issuer about each token (RFC 7662).

    Args:
        introspection_url: The endpoint of the issuer.
        client_id: The id of this server at the issuer.
        client_secret: Its secret.
        client_auth_method: ``"client_secret_basic"`` or ``"client_secret_post"``.
        timeout_seconds: The longest time of a request.
        required_scopes: Scopes that every caller needs.
        audience: The audiences that are accepted. None leaves the choice to the issuer.
        base_url: The URL of the server.
        cache_ttl_seconds: Seconds for which the answer for a valid token is used again; None for no time.
        max_cache_size: The number of such answers that are kept, by default 10,000.
        http_client: An ``httpx2.AsyncClient`` for the requests.

    Raises:
        ValueError: The method is unknown, or the audience is empty.
    """

    def __init__(  # noqa: PLR0913 - FastMCP's parameters
        self,
        *,
        introspection_url: str,
        client_id: str,
        client_secret: str | SecretStr,
        client_auth_method: str = "client_secret_basic",
        timeout_seconds: int = 10,
        required_scopes: Any = None,
        audience: str | list[str] | None = None,
        base_url: Any = None,
        cache_ttl_seconds: int | None = None,
        max_cache_size: int | None = None,
        http_client: Any = None,
    ) -> None:
        super().__init__(base_url=base_url, required_scopes=parsed_scopes(required_scopes))
        if client_auth_method not in {"client_secret_basic", "client_secret_post"}:
            raise ValueError(
                f"Invalid client_auth_method: {client_auth_method!r}. Must be 'client_secret_basic' or "
                "'client_secret_post'."
            )
        audiences = [audience] if isinstance(audience, str) else audience
        if audiences is not None and (not audiences or not all(isinstance(item, str) and item for item in audiences)):
            raise ValueError("audience must contain nonempty strings")
        if max_cache_size is not None and max_cache_size < 0:
            raise ValueError("max_cache_size must not be negative.")
        self.introspection_url = introspection_url
        self.client_id = client_id
        self.client_secret: str = (
            client_secret.get_secret_value() if isinstance(client_secret, SecretStr) else client_secret
        )
        self.client_auth_method = client_auth_method
        self.audience = audience
        self.timeout_seconds = timeout_seconds
        self._http_client = http_client
        self._answers = _Answers(cache_ttl_seconds or 0, _MAX_TOKENS if max_cache_size is None else max_cache_size)

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return the access token for a token, or None if it is not active, or the issuer does not answer."""
        kept = self._answers.get(token)
        if kept is not None:
            return kept
        try:
            access = self._access_token(token, await self._ask(token))
        except Exception as error:  # noqa: BLE001 - whatever the client raises, the token is not accepted
            _logger.info("A token could not be checked by introspection: %s.", type(error).__name__)
            return None
        if access is not None:
            self._answers.put(token, access)
        return access

    async def _ask(self, token: str) -> dict[str, Any] | None:
        """Return what the issuer says about a token; None if its answer has another status than 200."""
        import httpx2  # noqa: PLC0415 - slow to load, and few servers need it

        form = {"token": token, "token_type_hint": "access_token"}
        headers = {"content-type": "application/x-www-form-urlencoded", "accept": "application/json"}
        if self.client_auth_method == "client_secret_basic":
            credentials = base64.b64encode(f"{self.client_id}:{self.client_secret}".encode()).decode()
            headers["authorization"] = f"Basic {credentials}"
        else:
            form |= {"client_id": self.client_id, "client_secret": self.client_secret}
        own_client = self._http_client is None
        connection = httpx2.AsyncClient(timeout=self.timeout_seconds) if own_client else nullcontext(self._http_client)
        async with connection as client:
            response = await client.post(self.introspection_url, data=form, headers=headers)
            if response.status_code != _OK:
                _logger.info("Introspection failed with the status %s.", response.status_code)
                return None
            answer = response.json()
        return answer if isinstance(answer, dict) else None

    def _access_token(self, token: str, answer: Mapping[str, Any] | None) -> AccessToken | None:
        """Return the access token in an answer; None if the answer does not accept the token here."""
        if answer is None or answer.get("active") is not True:
            return None
        expiry, scopes, subject = answer.get("exp"), scopes_in(answer.get("scope")), answer.get("sub")
        if expiry and expiry < time():
            return None
        if self.audience is not None and not self._has_audience(answer.get("aud")):
            return None
        if not set(self.required_scopes).issubset(scopes):
            return None
        return AccessToken(
            token=token,
            client_id=str(answer.get("client_id") or answer.get("sub", "unknown")),
            scopes=scopes,
            expires_at=None if expiry is None else int(expiry),
            subject=subject if isinstance(subject, str) else None,
            claims=dict(answer),
        )

    def _has_audience(self, value: Any) -> bool:
        values = [value] if isinstance(value, str) else value
        if not isinstance(values, list) or not values or not all(isinstance(item, str) and item for item in values):
            return False
        return not _listed(self.audience).isdisjoint(values)


class _Answers:
    """The answers for valid tokens, by a digest of the token.

    Args:
        seconds: Seconds for which an answer is used; 0 for no time.
        size: The number of answers. Those that were used least recently are dropped.
    """

    def __init__(self, seconds: float, size: int) -> None:
        self._seconds = seconds
        self._size = size if seconds > 0 else 0
        self._answers: OrderedDict[bytes, tuple[float, AccessToken]] = OrderedDict()

    def get(self, token: str) -> AccessToken | None:
        """Return the answer for a token; None if there is none."""
        digest = sha256(token.encode()).digest()
        end, access = self._answers.get(digest, (0.0, None))
        if access is None or monotonic() >= end or (access.expires_at is not None and access.expires_at <= time()):
            self._answers.pop(digest, None)
            return None
        self._answers.move_to_end(digest)
        return access.model_copy(deep=True)

    def put(self, token: str, access: AccessToken) -> None:
        """Keep the answer for a token."""
        if self._size <= 0:
            return
        self._answers[sha256(token.encode()).digest()] = (monotonic() + self._seconds, access.model_copy(deep=True))
        while len(self._answers) > self._size:
            self._answers.popitem(last=False)


@public("funcmcp.compat")
class DebugTokenVerifier(TokenVerifier):
    """Accepts the tokens that a function accepts; without a function every token. For tests and development.

    Args:
        validate: Gets the token and returns whether it is valid. It may be async.
        client_id: The id of the client of all tokens.
        scopes: The scopes of all tokens.
        required_scopes: Scopes that every caller needs.
    """

    def __init__(
        self,
        validate: Callable[[str], Any] = lambda _token: True,
        client_id: str = "debug-client",
        scopes: list[str] | None = None,
        required_scopes: list[str] | None = None,
    ) -> None:
        super().__init__(required_scopes=required_scopes)
        self.validate = validate
        self.client_id = client_id
        self.scopes: list[str] = scopes or []

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return the access token for a token, or None if the function refuses it or fails."""
        if not token.strip():
            return None
        try:
            valid = self.validate(token)
            if inspect.isawaitable(valid):
                valid = await valid
        except Exception:
            _logger.warning("The function of DebugTokenVerifier failed, so the token is refused.", exc_info=True)
            return None
        if not valid:
            return None
        return AccessToken(token=token, client_id=self.client_id, scopes=self.scopes, claims={"token": token})


@public("funcmcp.compat")
@dataclass(frozen=True, kw_only=True, repr=False)
class RSAKeyPair:
    """A pair of RSA keys, for tests of servers with a `JWTVerifier`.

    Attributes:
        private_key: The private key as PEM text.
        public_key: The public key as PEM text.
    """

    private_key: SecretStr
    public_key: str

    @classmethod
    def generate(cls) -> RSAKeyPair:
        """Return a new pair of 2,048 bits."""
        from joserfc.jwk import RSAKey  # noqa: PLC0415 - for tests only

        key = RSAKey.generate_key(2048)
        private, public_text = key.as_pem(private=True), key.as_pem(private=False)
        return cls(private_key=SecretStr(private.decode()), public_key=public_text.decode())

    def create_token(  # noqa: PLR0913, PLR0917 - FastMCP's parameters
        self,
        subject: str = "fastmcp-user",
        issuer: str = "https://fastmcp.example.com",
        audience: str | list[str] | None = None,
        scopes: list[str] | None = None,
        expires_in_seconds: int = 3600,
        additional_claims: dict[str, Any] | None = None,
        kid: str | None = None,
    ) -> str:
        """Return a signed token.

        Args:
            subject: The ``sub``.
            issuer: The ``iss``.
            audience: The ``aud``; None for none.
            scopes: The scopes.
            expires_in_seconds: Seconds from now to the expiry.
            additional_claims: More claims, which replace those above.
            kid: The name of the key.
        """
        from joserfc import jwt  # noqa: PLC0415 - for tests only
        from joserfc.jwk import RSAKey  # noqa: PLC0415 - as above

        now = int(time())
        claims: dict[str, Any] = {"sub": subject, "iss": issuer, "iat": now, "exp": now + expires_in_seconds}
        if audience:
            claims["aud"] = audience
        if scopes:
            claims["scope"] = " ".join(scopes)
        header = {"alg": "RS256"} if kid is None else {"alg": "RS256", "kid": kid}
        key = RSAKey.import_key(self.private_key.get_secret_value())
        return jwt.encode(header, {**claims, **(additional_claims or {})}, key, algorithms=["RS256"])
