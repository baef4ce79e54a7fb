"""Opaque tokens: the server that has issued them says whether they are valid (token introspection).

How it works: a token is sent to the introspection endpoint of its issuer, with the credentials of this server. The
answer is checked as the claims of a signed token are. A valid token is cached until it expires, for a minute at most; a
refused one for ten seconds, in a table of its own, so that invalid tokens displace no valid ones. Requests with one
token share one request to the issuer, which continues if one of them is cancelled. At most 100 such requests run at
once, and 50 more for tokens that were valid before: whoever sends a flood of unknown tokens does not keep those callers
out. If there is no usable answer, nothing is cached, and the callers get 503.

A signed token that names another issuer is refused without a request: it is not for the eyes of this one.

Source: RFC 7662 sections 2.1 (the request and its authentication), 2.2 (the answer) and 4 (caching, audiences);
RFC 9449 section 6.2 (`cnf` in the answer); RFC 7523 section 2.2 (`private_key_jwt`).
"""

from __future__ import annotations

import asyncio
import logging
import re
from dataclasses import replace
from hashlib import sha256
from time import monotonic, time
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Protocol, TypeAlias

from funcmcp._auth.authenticator import Fit, UnavailableError
from funcmcp._auth.authorities import checked_ca_file, tls_context
from funcmcp._auth.basic import basic_of
from funcmcp._auth.connection_errors import reason_of
from funcmcp._auth.principal import VerifiedToken
from funcmcp._auth.tokens.claims import TokenRules, check_audience, check_issuer
from funcmcp._auth.tokens.compact import MAX_TOKEN, TokenError, has_shape, unverified_claims
from funcmcp._auth.tokens.presented import PresentedTokens, checked_names, digest_of
from funcmcp._auth.urls import checked, checked_insecure_hosts
from funcmcp._objects.public_names import public
from funcmcp._protocol.codec import decode

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Collection, Mapping, Sequence
    from ssl import SSLContext

    from funcmcp._auth.dpop import DPoP
    from funcmcp._auth.principal import Principal

_logger = logging.getLogger("funcmcp")

_MAX_CACHE_SECONDS: Final = 300.0
_REFUSED_SECONDS: Final = 10.0
_REFUSED_SIZE: Final = 4096
_MAX_CONCURRENT: Final = 100
_RESERVED: Final = 50
"""Further requests for tokens that were valid before, as long as they are remembered."""

_MAX_ANSWER: Final = 256 * 1024
_LARGE: Final = 8 * 1024
_MAX_LARGE: Final = 128
"""Maximum number of cached answers with more than 8 KiB. With these limits, the cache takes some 64 MiB of JSON."""

_LOG_SECONDS: Final = 30.0
_OK: Final = 200
_CLIENT_ERRORS: Final = frozenset({400, 401, 403})
_ASSERTION_TYPE: Final = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
_TOKEN: Final = re.compile(r"[\x21-\x7e]+")
_TOKEN_TYPES: Final = frozenset({"bearer", "dpop", "access_token"})
_TOKEN_USES: Final = frozenset({"access_token", "access"})
_OTHER_KINDS: Final = frozenset({"refresh", "offline", "id", "logout"})
"""Values of ``typ`` with which Keycloak marks tokens that are not access tokens, in lower case."""

_AWAY: Final = "The server that checks tokens can't be reached. Try again later."
_INACTIVE: Final = "The token is not active: it is unknown, expired or revoked."

Method: TypeAlias = Literal["client_secret_basic", "client_secret_post"]


class ClientAssertion(Protocol):
    """A key that signs statements of a client about itself, such as `funcmcp.client.PrivateKeyJWT`."""

    def assertion(self, client_id: str, audience: str, now: float) -> str:
        """Return a statement for one request: that it comes from a client."""


class _UnusableAnswerError(Exception):
    """The introspection endpoint has answered nothing that can be used.

    Args:
        reason: The reason, for the log.
        level: The level of its line. An error is for the operator, who has to do something.
    """

    def __init__(self, reason: str, level: int = logging.WARNING) -> None:
        super().__init__(reason)
        self.level = level


class _Refused(NamedTuple):
    """A token that is not valid: the reason, and when the issuer is asked again."""

    reason: str
    end: float


_Outcome: TypeAlias = "tuple[Principal, float] | TokenError | UnavailableError"


@public("funcmcp.auth")
class Introspection(PresentedTokens):
    """An authenticator for opaque tokens, which asks their issuer about each of them (RFC 7662).

    Args:
        url: The introspection endpoint: https, or http on a loopback address.
        issuer: The issuer of the tokens. If an answer has an ``iss``, it must be this one.
        audience: The ``aud`` that answers must have, usually the URL of this server. None: answers need no ``aud``.
            Then the issuer must answer ``active: false`` for tokens that are for other servers.
        client_id: The id of this server at the issuer.
        client_secret: Its secret. Either this or *credential* is needed.
        credential: A key that signs a statement for each request (``private_key_jwt``), such as
            `funcmcp.client.PrivateKeyJWT`.
        auth_method: How the secret is sent: as HTTP Basic, or in the form.
        rules: Rules for what the issuer says about a token. Algorithms and types play no part, and a token whose answer
            has no ``exp`` is asked for again after *cache_seconds*.
        cache_seconds: Seconds for which the answer for a valid token is used again, at most 300. A token that is
            revoked is accepted for so long. 0: the issuer is asked for each request.
        ca_file: A PEM file with certificate authorities that are trusted as well, for an issuer with a private one.
        insecure_hosts: Hosts, with their port, whose URL may begin with ``http://``, such as ``["keycloak:8080"]``. For
            development only: whoever can change the answers decides who is accepted.
        timeout: Maximum number of seconds for a request to the issuer.
        dpop: Which tokens that are bound to a key of the client are accepted, as in `BearerTokens`.
        dpop_nonces: Whether proofs need a nonce of the server, as in `BearerTokens`.
        clock: A function that returns seconds since 1970.

    Attributes:
        asks_another_server: True: `first_of` calls it last, so that the issuer does not see the credentials of others.

    Raises:
        TypeError: *insecure_hosts* is one string.
        ValueError: The URL is not https, the issuer, the audience or the client id is empty, there is no credential or
            more than one, *cache_seconds* or another option has a value that is not allowed, or *ca_file* can't be
            read.

    Example:
        ```python
        auth = Introspection(
            "https://login.example.com/introspect",
            issuer="https://login.example.com",
            audience="https://orders.example.com/mcp",
            client_id="orders",
            client_secret=os.environ["ORDERS_SECRET"],
        )
        ```
    """

    asks_another_server: Literal[True] = True

    def __init__(  # noqa: PLR0913 - options by name
        self,
        url: str,
        *,
        issuer: str,
        audience: str | Sequence[str] | None,
        client_id: str,
        client_secret: str | None = None,
        credential: ClientAssertion | None = None,
        auth_method: Method = "client_secret_basic",
        rules: TokenRules | None = None,
        cache_seconds: float = 60.0,
        ca_file: str | os.PathLike[str] | None = None,
        insecure_hosts: Collection[str] = (),
        timeout: float = 5.0,
        dpop: DPoP | None = None,
        dpop_nonces: bool = False,
        clock: Callable[[], float] = time,
    ) -> None:
        hosts = checked_insecure_hosts("Introspection.insecure_hosts", insecure_hosts)
        parts = checked("The URL of an Introspection", url, hosts)
        audiences = frozenset[str]() if audience is None else checked_names("Introspection", "audience", audience)
        if not 0 <= cache_seconds <= _MAX_CACHE_SECONDS:
            raise ValueError(f"Introspection.cache_seconds must be between 0 and {_MAX_CACHE_SECONDS:.0f}.")
        super().__init__(
            checked_names("Introspection", "issuer", issuer),
            frozenset(name.removesuffix("/") for name in audiences),
            cache_seconds=cache_seconds,
            dpop=dpop,
            dpop_nonces=dpop_nonces,
            clock=clock,
        )
        _check_credentials(client_id, client_secret, credential, auth_method)
        self._url = url
        self._name = f"{parts.scheme}://{parts.netloc}{parts.path}"
        self._issuer = issuer
        self._client_id = client_id
        self._client_secret = client_secret
        self._credential = credential
        self._auth_method: Method = auth_method
        self._rules = rules or TokenRules()
        self._ca_file = checked_ca_file("Introspection.ca_file", ca_file)
        self._timeout = timeout
        self._refused: dict[bytes, _Refused] = {}
        self._asking: dict[bytes, asyncio.Task[_Outcome]] = {}
        self._large: dict[bytes, None] = {}
        self._tls: SSLContext | None = None
        self._next_log = 0.0

    def _fit_of_opaque(self, token: str) -> Fit:
        return Fit.KIND if _TOKEN.fullmatch(token) else Fit.NONE

    async def _check(self, token: str, now: float) -> tuple[Principal, float]:
        """Return the caller of a token, and until when the answer holds; raise TokenError or UnavailableError."""
        if len(token) > MAX_TOKEN or not _TOKEN.fullmatch(token):
            raise TokenError("The token is too long, or has characters that a token can't have.")
        if has_shape(token) and unverified_claims(token).get("iss") not in (None, self._issuer):
            raise TokenError("The server does not accept the issuer of the token.")
        digest = sha256(token.encode()).digest()
        refused = self._refused.get(digest)
        if refused is not None and now < refused.end:
            raise TokenError(refused.reason)
        # The shield keeps the shared request running if this caller is cancelled.
        outcome = await asyncio.shield(self._asking_for(digest, token))
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def _asking_for(self, digest: bytes, token: str) -> asyncio.Task[_Outcome]:
        """Return the running request for a token, or a new one; raise UnavailableError if too many are running."""
        loop = asyncio.get_running_loop()
        running = self._asking.get(digest)
        if running is not None and not running.done() and running.get_loop() is loop:
            return running
        self._asking = {key: task for key, task in self._asking.items() if not task.done() and task.get_loop() is loop}
        limit = _MAX_CONCURRENT + (_RESERVED if self._was_valid(token) else 0)
        if len(self._asking) >= limit:
            raise UnavailableError("The server checks too many tokens now. Try again later.", 1)
        task = self._asking[digest] = asyncio.create_task(self._ask(digest, token))
        return task

    async def _ask(self, digest: bytes, token: str) -> _Outcome:
        """Return what the issuer says about a token. It raises nothing: perhaps nobody waits for it any more."""
        try:
            body = await self._post(token)
            outcome = self._read(token, _object(body))
            if len(body) > _LARGE:
                self._limit_large(token)
            return outcome
        except TokenError as error:
            self._forget(digest_of(token))
            if len(self._refused) >= _REFUSED_SIZE:  # the oldest one leaves
                del self._refused[next(iter(self._refused))]
            self._refused[digest] = _Refused(str(error), self._clock() + _REFUSED_SECONDS)
            return error
        except _UnusableAnswerError as error:
            self._log_failure(str(error), error.level)
        except Exception as error:  # noqa: BLE001 - whatever the library raises, the token is not accepted
            self._log_failure(reason_of(error), logging.WARNING)
        return UnavailableError(_AWAY)

    def _limit_large(self, token: str) -> None:
        """Remember that the answer for a token is large, and forget the oldest such answers if there are too many."""
        digest = digest_of(token)
        self._large.pop(digest, None)
        self._large[digest] = None
        while len(self._large) > _MAX_LARGE:
            oldest = next(iter(self._large))
            del self._large[oldest]
            self._forget(oldest)

    def _read(self, token: str, answer: Mapping[str, Any]) -> tuple[Principal, float]:
        """Return the caller in an answer, and until when it holds; raise TokenError if the token is not valid here."""
        if answer["active"] is not True:
            raise TokenError(_INACTIVE)
        claims = {"iss": self._issuer} | {name: value for name, value in answer.items() if value is not None}
        check_issuer(claims, self._issuers)
        _check_kind(claims)
        if self._audiences:
            check_audience(claims, self._audiences, self._rules.clients_without_audience)
        now = self._clock()
        end = self._rules.check({"exp": now + self._cache_seconds} | claims, now)
        principal = self._rules.principal(claims)
        username = claims.get("username")
        if principal.name is None and isinstance(username, str):
            principal = replace(principal, name=username)
        return replace(principal, verified_token=VerifiedToken(token)), end

    async def _post(self, token: str) -> bytes:
        """Return the answer of the issuer; raise _UnusableAnswerError or an error of the library."""
        import httpx2  # noqa: PLC0415 - slow to load, and needed with the first token

        if self._tls is None:  # loading the certificate authorities takes longer than a request
            self._tls = tls_context(self._ca_file)
        fields, form = self._authentication()
        form |= {"token": token, "token_type_hint": "access_token"}
        # A compressed answer could become very large, so none is accepted.
        headers = {"accept": "application/json", "accept-encoding": "identity", **fields}
        body = bytearray()
        async with (
            asyncio.timeout(self._timeout),
            httpx2.AsyncClient(verify=self._tls, headers=headers, timeout=None) as client,
            client.stream("POST", self._url, data=form, follow_redirects=False) as response,
        ):
            if response.status_code in _CLIENT_ERRORS:
                reason = f"status {response.status_code}: check the client id and its secret"
                raise _UnusableAnswerError(reason, logging.ERROR)
            if response.status_code != _OK:
                raise _UnusableAnswerError(f"status {response.status_code}")
            async for part in response.aiter_raw():
                body += part
                if len(body) > _MAX_ANSWER:
                    raise _UnusableAnswerError("the answer is too large")
        return bytes(body)

    def _authentication(self) -> tuple[dict[str, str], dict[str, str]]:
        """Return the header fields and the form fields with which the server authenticates at the issuer."""
        if self._credential is not None:
            assertion = self._credential.assertion(self._client_id, self._issuer, self._clock())
            form = {"client_id": self._client_id, "client_assertion_type": _ASSERTION_TYPE}
            return {}, form | {"client_assertion": assertion}
        secret = self._client_secret or ""
        if self._auth_method == "client_secret_post":
            return {}, {"client_id": self._client_id, "client_secret": secret}
        return {"authorization": basic_of(self._client_id, secret)}, {}

    def _log_failure(self, reason: str, level: int) -> None:
        """Log a failed request, once in 30 seconds: anyone who sends tokens can cause it."""
        now = monotonic()
        if now < self._next_log:
            return
        self._next_log = now + _LOG_SECONDS
        _logger.log(level, "event=introspection_failed url=%s reason=%s", self._name, reason)


def _check_credentials(
    client_id: str, client_secret: str | None, credential: ClientAssertion | None, auth_method: str
) -> None:
    """Raise ValueError unless the server can authenticate at the issuer in one way."""
    if not client_id:
        raise ValueError("Introspection.client_id must not be empty.")
    if bool(client_secret) == (credential is not None):
        raise ValueError("Introspection needs either client_secret or credential.")
    if auth_method not in {"client_secret_basic", "client_secret_post"}:
        raise ValueError("Introspection.auth_method must be 'client_secret_basic' or 'client_secret_post'.")


def _object(body: bytes) -> dict[str, Any]:
    """Return the members of an answer; raise _UnusableAnswerError if it is not one."""
    try:
        answer = decode(body)
    except ValueError:
        raise _UnusableAnswerError("the answer is not JSON") from None
    if not isinstance(answer, dict) or not isinstance(answer.get("active"), bool):
        raise _UnusableAnswerError("the answer has no 'active' that is true or false")
    return answer


def _check_kind(claims: Mapping[str, Any]) -> None:
    """Raise TokenError for a token of another kind. Issuers call their refresh tokens active, too."""
    token_type = str(claims.get("token_type", "bearer")).lower()
    use, kind = str(claims.get("token_use", "access")), str(claims.get("typ", "")).lower()
    if token_type not in _TOKEN_TYPES or use not in _TOKEN_USES or kind in _OTHER_KINDS:
        raise TokenError("The token is not an access token.")
    if token_type == "dpop" and "cnf" not in claims:  # noqa: S105 - a type
        raise TokenError("The token is bound to a key, and the issuer does not say to which one.")
