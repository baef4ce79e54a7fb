"""Users for tests of a server with sign-in, in the process of the test.

How it works: `SignedIn` changes nothing in the server's configuration. Behind an `OAuthProxy` it makes a second proxy
with the same options, keys of its own and a `LocalProvider`, and does there what a client and its user do: register,
open the page, allow, and exchange the code. Behind `BearerTokens` it signs a token with a key of its own, and checks it
by the same rules. While the block runs, the server accepts this token, too.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from contextlib import ExitStack
from copy import copy
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from joserfc.jwk import ECKey, OctKey, OKPKey, RSAKey
from joserfc.jws import JWSRegistry

from funcmcp._auth.authenticator import Challenge, parts_of
from funcmcp._auth.tokens.bearer import BearerTokens
from funcmcp._auth.tokens.keys import StaticKeys
from funcmcp._client.errors import SignInError
from funcmcp._oauth_proxy.headless import HeadlessClient, HeadlessError
from funcmcp._oauth_proxy.local_provider import LocalProvider
from funcmcp._oauth_proxy.upstream import User
from funcmcp._objects.public_names import public
from funcmcp._protocol.codec import encode
from funcmcp._serving.composition import runtime_of
from funcmcp._serving.local_sign_in import check_environment, sentences_of
from funcmcp._state.seal import KeyRing, base64url

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from types import TracebackType

    from funcmcp._app.mcp_server import MCPServer
    from funcmcp._auth.authenticator import Authenticator, Identity
    from funcmcp._auth.policy import Auth
    from funcmcp._auth.tokens.claims import ClaimPath
    from funcmcp._auth.tokens.keys import KeySource
    from funcmcp._oauth_proxy.proxy import OAuthProxy
    from funcmcp._serving.composition import ServerRuntime

_CLIENT: Final = "test"
_SECONDS: Final = 3600


class _Accepted(NamedTuple):
    """A token, and the authenticator that accepts it."""

    token: str
    authenticator: Authenticator

    @property
    def headers(self) -> dict[str, str]:
        """The header fields of requests with the token."""
        return {"authorization": f"Bearer {self.token}"}

    async def identify(self, headers: Mapping[str, str]) -> Identity:
        """Return the caller of a request with this token; None for any other request."""
        if headers.get("authorization") != self.headers["authorization"]:
            return None
        return await self.authenticator(headers)


@public("funcmcp.testing")
class SignedIn:
    """A user who is signed in to a server in a block of a test, without a network and a browser.

    The block gets the header fields with the token of the user, for any client in this process: ``Client(mcp,
    headers=headers)``, `httpx2` with an ASGI transport, or a `TestClient`. Several blocks may overlap. In a test
    without ``async``, write ``with``.

    Behind an `OAuthProxy`, a client signs the user in as a real one does: it registers, the page asks, and the code is
    exchanged. So the scopes, `allow` and the claims are those of a real sign-in. The identity provider is not asked,
    and the keys and the store of the proxy are not used. Behind `BearerTokens` and `funcmcp.auth.entra`, the token is
    issued for the issuer, the audience and the rules of the server. It is signed with a key of the test.

    Args:
        server: The server, or the one that mounts it.
        user: The user. Behind `BearerTokens`, `User.claims` are the further claims of the token. If a server takes
            tokens of several issuers, ``iss`` among them names the issuer.
        scopes: The scopes that the client requests, or that the token has. Empty: all scopes of the server.

    Raises:
        SignInError: The server refuses the user, a scope or the token; the text says why.
        TypeError: The server has neither an `OAuthProxy` nor `BearerTokens`, or the user is not a `User`.
        ValueError: The server has no auth, or a platform runs this process.

    Example:
        ```python
        async with SignedIn(mcp, User("ada", roles=frozenset({"cook"})), scopes=["orders.read"]) as headers:
            async with Client(mcp, headers=headers) as client:
                await client.call_tool("who_am_i", {})
        ```
    """

    def __init__(self, server: MCPServer, user: User, *, scopes: Sequence[str] = ()) -> None:
        if isinstance(scopes, str):
            raise TypeError("SignedIn.scopes is a list of strings, not one string.")
        if not isinstance(user, User):
            raise TypeError(f"SignedIn.user must be a User, such as User('ada'), not {type(user).__name__}.")
        check_environment()
        self._runtime = runtime_of(server)
        auth = self._runtime.auth
        if auth is None:
            raise ValueError(f"{self._runtime.name} has no auth=, so no user signs in to it. Leave SignedIn out.")
        self._sign_in = _sign_in_at(self._runtime, auth, user, tuple(scopes))
        self._stack = ExitStack()

    async def __aenter__(self) -> dict[str, str]:
        return self._begin(await self._sign_in())

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def __enter__(self) -> dict[str, str]:
        return self._begin(_run(self._sign_in))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def _begin(self, accepted: _Accepted) -> dict[str, str]:
        self._stack.enter_context(self._runtime.accepting(accepted.identify))
        return accepted.headers


def _run(sign_in: Callable[[], Awaitable[_Accepted]]) -> _Accepted:
    """Sign in from a function that is not async. It may run in an event loop, so another thread waits."""
    results: list[_Accepted] = []
    errors: list[BaseException] = []

    async def collect() -> None:
        results.append(await sign_in())

    def target() -> None:
        try:
            asyncio.run(collect())
        except BaseException as error:  # noqa: BLE001 - raised in the other thread
            errors.append(error)

    thread = threading.Thread(target=target)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]


def _sign_in_at(
    runtime: ServerRuntime, auth: Auth, user: User, scopes: tuple[str, ...]
) -> Callable[[], Awaitable[_Accepted]]:
    """Return a function that signs a user in; raise TypeError if the server takes no tokens."""
    accepting = [part for part in parts_of(auth.authenticator) if isinstance(part, BearerTokens)]
    issuer = user.claims.get("iss")
    bearer = next((part for part in accepting if issuer in part._issuers), None)  # noqa: SLF001 - only tests need them
    if bearer is None and runtime.proxy is not None:
        proxy = runtime.proxy
        return lambda: _signed_in_at_proxy(proxy, runtime.name, user, scopes)
    if bearer is not None or accepting:
        return partial(_with_issued_token, bearer or accepting[0], user, scopes or tuple(sentences_of(runtime, auth)))
    raise TypeError(
        "SignedIn is for a server with OAuthProxy or BearerTokens. With another authenticator, pass the header fields "
        "that it reads: Client(mcp, headers={...})."
    )


async def _with_issued_token(bearer: BearerTokens, user: User, scopes: Sequence[str]) -> _Accepted:
    """Issue a token, and check it as the server does."""
    rules = bearer._rules  # noqa: SLF001 - as above
    algorithm = "ES256" if "ES256" in rules.algorithms else rules.algorithms[0]
    keys, sign = _signer(algorithm)
    header = {"alg": algorithm, "typ": rules.types[0]}
    signed = f"{base64url(encode(header))}.{base64url(encode(_claims(bearer, user, scopes)))}"
    token = f"{signed}.{base64url(sign(signed.encode('ascii')))}"
    accepted = _Accepted(token, _with_keys(bearer, keys))
    identity = await accepted.identify(accepted.headers)
    if identity is None or isinstance(identity, Challenge):
        reason = "" if identity is None else identity.description
        raise SignInError(
            f"BearerTokens refuses the token of the test: {reason} Pass claims with User(claims={{...}})."
        )
    return accepted


def _with_keys(bearer: BearerTokens, keys: KeySource) -> BearerTokens:
    """Return an authenticator with the same rules for tokens that other keys have signed, without proofs."""
    other = copy(bearer)
    other._keys, other._verified, other.dpop = keys, {}, None  # noqa: SLF001
    return other


def _claims(bearer: BearerTokens, user: User, scopes: Sequence[str]) -> dict[str, Any]:
    """Return the claims of a token for a user, as the issuer could write them now."""
    rules, now = bearer._rules, int(bearer._clock())  # noqa: SLF001
    alternatives = {name for group in rules.any_of for name in group}
    claims: dict[str, Any] = {
        "iss": min(bearer._issuers),  # noqa: SLF001
        "aud": min(bearer._audiences),  # noqa: SLF001
        "sub": user.subject,
        "iat": now,
        "exp": now + _SECONDS,
        "client_id": _CLIENT,
        "name": user.name,
        "email": user.email,
        "tid": user.tenant,
        rules.subject_claims[0]: user.subject,
    }
    words = " ".join(f"{rules.scope_prefix}{scope}" for scope in scopes)
    _put(claims, "scp" if "scp" in alternatives else rules.scope_claims[0], words)
    _put(claims, rules.roles_claim, sorted(user.roles) or None)
    claims |= dict.fromkeys(alternatives & {"azp", "appid"}, _CLIENT)
    claims |= {name: value for name, value in rules.required.items() if value is not None}
    return {name: value for name, value in (claims | dict(user.claims)).items() if value is not None}


def _put(claims: dict[str, Any], path: ClaimPath, value: object) -> None:
    """Add a claim at a path, which `claim_at` reads. It looks for a name with dots as a whole first."""
    names = [path] if isinstance(path, str) else path
    for name in names[:-1]:
        claims = claims.setdefault(name, {})
    claims[names[-1]] = value


@lru_cache(maxsize=16)
def _signer(algorithm: str) -> tuple[Any, Callable[[bytes], bytes]]:
    """Return a new key for an algorithm, as the server reads it, and a function that signs with it."""
    key: Any
    if algorithm.startswith("ES"):
        key = ECKey.generate_key({"256": "P-256", "384": "P-384", "512": "P-521"}[algorithm[2:]])
    elif algorithm.startswith("HS"):
        key = OctKey.generate_key(512)
    elif algorithm in {"EdDSA", "Ed25519"}:
        key = OKPKey.generate_key("Ed25519")
    else:
        key = RSAKey.generate_key(2048)
    public = key.as_dict(private=algorithm.startswith("HS")) | {"alg": algorithm}
    return StaticKeys(public), lambda signed: JWSRegistry.algorithms[algorithm].sign(signed, key)


async def _signed_in_at_proxy(proxy: OAuthProxy, server: str, user: User, scopes: Sequence[str]) -> _Accepted:
    """Sign a user in at a second proxy with the options of the first one.

    What a function of these options raises fails the test. A proxy that serves would answer that it can't be used now.
    """
    keys, resource, errors = KeyRing(), proxy.resource, list[Exception]()
    settings = proxy._settings  # noqa: SLF001 - as above
    functions = {"allow": settings.allow, "claims": settings.claims.configured}
    other = proxy.with_provider(
        resource.resource,
        LocalProvider(user, keys),
        keys,
        issuer=resource.authorization_servers[0],
        dpop=None,  # the headers of a block can't have a proof for each request
        dpop_nonces=False,
        **{name: _watched(value, errors) for name, value in functions.items() if callable(value)},
    )
    try:
        return _Accepted(await HeadlessClient(other, server).sign_in(scopes), other)
    except HeadlessError as error:
        if errors:
            raise errors[0] from None
        raise SignInError(f"{server} refuses the sign-in: {error}") from None


def _watched(function: Callable[[User], Any], errors: list[Exception]) -> Callable[[User], Awaitable[Any]]:
    """Return a function that does as another one, and adds what that one raises to a list."""

    async def watched(user: User) -> Any:
        try:
            returned = function(user)
            return await returned if inspect.isawaitable(returned) else returned
        except Exception as error:
            errors.append(error)
            raise

    return watched
