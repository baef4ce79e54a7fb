"""Users for tests of a server with sign-in: `SignedIn` in the test's process, and `allow_sign_in` for a browser.

How it works: `SignedIn` changes nothing in the server's configuration. Behind an `OAuthProxy` it makes a second proxy
with the same options, keys of its own and a `LocalProvider`, and does there what a client and its user do: register,
open the page, allow, and exchange the code. Behind `BearerTokens` it signs a token with a new key. While the block
runs, the server accepts the token, too; afterwards no key for it exists.
"""

from __future__ import annotations

import asyncio
import hashlib
import html
import re
import threading
from contextlib import ExitStack
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import parse_qsl, urlencode, urljoin, urlsplit

from joserfc.jwk import ECKey, OctKey, OKPKey, RSAKey
from joserfc.jws import JWSRegistry

from funcmcp._auth.authenticator import Challenge, parts_of
from funcmcp._auth.tokens.bearer import BearerTokens
from funcmcp._auth.tokens.keys import StaticKeys
from funcmcp._client.errors import SignInError, one_line
from funcmcp._oauth_proxy.local_provider import LocalProvider
from funcmcp._oauth_proxy.web import WebRequest
from funcmcp._objects.public_names import public
from funcmcp._protocol.codec import decode, encode
from funcmcp._protocol.loopback import is_loopback
from funcmcp._serving.composition import runtime_of
from funcmcp._serving.local_sign_in import check_environment, sentences_of
from funcmcp._state.seal import KeyRing, base64url

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from types import TracebackType

    from funcmcp._app.mcp_server import MCPServer
    from funcmcp._auth.authenticator import Authenticator, Identity
    from funcmcp._auth.policy import Auth
    from funcmcp._oauth_proxy.proxy import OAuthProxy
    from funcmcp._oauth_proxy.upstream import User
    from funcmcp._oauth_proxy.web import WebAnswer
    from funcmcp._serving.composition import ServerRuntime

_BACK: Final = "http://127.0.0.1/back"
_CLIENT: Final = "test"
_VERIFIER: Final = "a-verifier-for-tests-whose-code-never-leaves-the-process"
_SECONDS: Final = 3600
_MAX_STEPS: Final = 20
_BROWSER_SECONDS: Final = 30.0
_FIRST_ERROR: Final = 400
_FIELD: Final = re.compile(r'<input type="hidden" name="([^"]*)" value="([^"]*)">')
_FORM: Final = re.compile(r'<form[^>]* action="([^"]*)"')
_TITLE: Final = re.compile(r"<h1[^>]*>(.*?)</h1>", re.DOTALL)


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
    issued for the issuer, the audience and the rules of the server, and signed with a key that only the block has.

    Args:
        server: The server, or the one that mounts it.
        user: The user. Behind `BearerTokens`, `User.claims` are the further claims of the token.
        scopes: The scopes that the client requests, or that the token has. Empty: all scopes of the server.

    Raises:
        SignInError: The server refuses the user, a scope or the token; the text says why.
        TypeError: The server has neither an `OAuthProxy` nor `BearerTokens`.
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
        check_environment()
        self._runtime = runtime_of(server)
        auth = self._runtime.auth
        if auth is None:
            raise ValueError(f"{self._runtime.name} has no auth, so every caller may use all of it.")
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
    if runtime.proxy is not None:
        proxy = runtime.proxy
        return lambda: _signed_in_at_proxy(proxy, runtime.name, user, scopes)
    for part in parts_of(auth.authenticator):
        if isinstance(part, BearerTokens):
            bearer = part
            return lambda: _with_issued_token(bearer, user, scopes or tuple(sentences_of(runtime, auth)))
    raise TypeError(
        "SignedIn is for a server with OAuthProxy or BearerTokens. With another authenticator, pass the header fields "
        "that it reads: Client(mcp, headers={...})."
    )


async def _with_issued_token(bearer: BearerTokens, user: User, scopes: Sequence[str]) -> _Accepted:
    """Issue a token, and check it as the server does."""
    algorithm = "ES256" if "ES256" in bearer.rules.algorithms else bearer.rules.algorithms[0]
    keys, sign = _signer(algorithm)
    header = {"alg": algorithm, "typ": bearer.rules.types[0]}
    signed = f"{base64url(encode(header))}.{base64url(encode(_claims(bearer, user, scopes)))}"
    token = f"{signed}.{base64url(sign(signed.encode('ascii')))}"
    accepted = _Accepted(token, bearer.with_keys(keys))
    identity = await accepted.identify(accepted.headers)
    if identity is None or isinstance(identity, Challenge):
        reason = "" if identity is None else identity.description
        raise SignInError(
            f"BearerTokens refuses the token of the test: {reason} Pass claims with User(claims={{...}})."
        )
    return accepted


def _claims(bearer: BearerTokens, user: User, scopes: Sequence[str]) -> dict[str, Any]:
    """Return the claims of a token for a user, as the issuer could write them now."""
    rules, now = bearer.rules, int(bearer.clock())
    alternatives = {name for group in rules.any_of for name in group}
    claims: dict[str, Any] = {
        "iss": min(bearer.issuers),
        "aud": min(bearer.audiences),
        "sub": user.subject,
        "iat": now,
        "exp": now + _SECONDS,
        "client_id": _CLIENT,
        "scp" if "scp" in alternatives else "scope": " ".join(scopes),
        "name": user.name,
        "email": user.email,
        "tid": user.tenant,
        rules.roles_claim: sorted(user.roles) or None,
    }
    claims |= dict.fromkeys(alternatives & {"azp", "appid"}, _CLIENT)
    claims |= {name: value for name, value in rules.required.items() if value is not None}
    return {name: value for name, value in (claims | dict(user.claims)).items() if value is not None}


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
    """Sign a user in at a second proxy with the options of the first one."""
    keys = KeyRing()
    resource = proxy.resource
    other = proxy.with_provider(
        resource.resource,
        LocalProvider(user, keys),
        keys,
        issuer=resource.authorization_servers[0],
        dpop=None,  # the headers of a block can't have a proof for each request
        dpop_nonces=False,
    )
    client = _ProxyClient(other, server)
    return _Accepted(await client.sign_in(scopes), other)


class _ProxyClient:
    """A client of a proxy in this process, and its user's browser.

    Args:
        proxy: The proxy.
        server: The name of the server.
    """

    def __init__(self, proxy: OAuthProxy, server: str) -> None:
        self._proxy = proxy
        self._server = server
        self._issuer = proxy.callback.removesuffix("/oauth/callback")
        self._cookies: dict[str, str] = {}

    async def sign_in(self, scopes: Sequence[str]) -> str:
        """Return an access token; raise SignInError."""
        metadata = {"client_name": "Test", "redirect_uris": [_BACK], "token_endpoint_auth_method": "none"}
        client_id = self._json(await self._send("POST", "/oauth/register", body=encode(metadata)))["client_id"]
        challenge = base64url(hashlib.sha256(_VERIFIER.encode()).digest())
        query = {
            "response_type": "code",
            "client_id": client_id,
            "redirect_uri": _BACK,
            "state": "test",
            "scope": " ".join(scopes),
            "resource": self._proxy.resource.resource,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        page = await self._send("GET", "/oauth/authorize", urlencode(query))
        if page.status != 200:  # noqa: PLR2004 - OK
            raise self._refusal(page)
        form = urlencode(_fields_in(page.body.decode()) | {"decision": "allow"}).encode()
        location = _location_of(await self._send("POST", "/oauth/consent", body=form))
        if not location.startswith(self._proxy.callback):
            raise SignInError(f"The sign-in leads to {one_line(location)}.")
        back = await self._send("GET", "/oauth/callback", urlsplit(location).query)
        code = dict(parse_qsl(urlsplit(_location_of(back)).query)).get("code")
        if code is None:
            raise self._refusal(back)
        request = {
            "grant_type": "authorization_code",
            "code": code,
            "client_id": client_id,
            "redirect_uri": _BACK,
            "code_verifier": _VERIFIER,
        }
        token = self._json(await self._send("POST", "/oauth/token", body=urlencode(request).encode()))["access_token"]
        return str(token)

    async def _send(self, method: str, path: str, query: str = "", *, body: bytes = b"") -> WebAnswer:
        origin = "://".join(urlsplit(self._issuer)[:2])
        headers = {
            "content-type": "application/x-www-form-urlencoded",
            "origin": origin,
            "cookie": "; ".join(f"{name}={value}" for name, value in self._cookies.items()),
        }
        path = urlsplit(self._issuer).path + path
        answer = await self._proxy.answer(WebRequest(method, path, query, headers, body, "", self._server))
        for field, text in answer.headers:
            if field == "set-cookie":
                name, _, value = text.partition(";")[0].partition("=")
                self._cookies[name] = value
        return answer

    def _json(self, answer: WebAnswer) -> dict[str, Any]:
        value: dict[str, Any] = decode(answer.body)
        if answer.status >= _FIRST_ERROR:
            raise _oauth_refusal(self._server, value)
        return value

    def _refusal(self, answer: WebAnswer) -> SignInError:
        """Return the error for an answer to the browser: a redirect to the client with an error, or a page."""
        if answer.status < _FIRST_ERROR:
            return _oauth_refusal(self._server, dict(parse_qsl(urlsplit(_location_of(answer)).query)))
        return SignInError(f"{self._server} refuses the sign-in: {_heading_of(answer.body.decode())}")


def _oauth_refusal(server: str, error: Mapping[str, Any]) -> SignInError:
    return SignInError(f"{server} refuses the sign-in: {error.get('error')}: {error.get('error_description')}")


def _location_of(answer: WebAnswer) -> str:
    return next((text for field, text in answer.headers if field == "location"), "")


def _fields_in(page: str) -> dict[str, str]:
    """Return the hidden fields of the form of a page."""
    return {html.unescape(name): html.unescape(value) for name, value in _FIELD.findall(page)}


def _heading_of(page: str) -> str:
    heading = _TITLE.search(page)
    return one_line(html.unescape(re.sub(r"<[^>]*>", "", heading[1] if heading else page)))


@public("funcmcp.testing")
async def allow_sign_in(url: str) -> dict[str, str]:
    """Do as a user with a browser who allows an application what it asks for, at a server on this machine.

    For tests over HTTP with a server that signs users in without a page of a provider, such as ``funcmcp run
    --sign-in-as ada``: ``SignIn(open_browser=allow_sign_in)`` for the client of `funcmcp.client`. A client of another
    library gets the parameters that this function returns.

    Args:
        url: The address that the client would open in a browser, on a loopback address.

    Returns:
        The parameters with which the user returns to the client, such as ``code`` and ``state``. If the client listens
        at that address, it gets them from there as well.

    Raises:
        SignInError: An address is not on this machine, or the server refuses the sign-in.
    """
    import httpx2  # noqa: PLC0415 - needs the extra `client`

    back = dict(parse_qsl(urlsplit(url).query)).get("redirect_uri", "")
    async with httpx2.AsyncClient(timeout=_BROWSER_SECONDS, trust_env=False) as browser:
        answer = await browser.get(_checked(url))
        for _ in range(_MAX_STEPS):
            address = str(answer.url)
            if answer.is_redirect:
                following = _checked(urljoin(address, answer.headers["location"]))
                if back and following.partition("?")[0] == back.partition("?")[0]:
                    await _return_to_client(browser, following)
                    return dict(parse_qsl(urlsplit(following).query))
                answer = await browser.get(following)
                continue
            form = _FORM.search(answer.text)
            if answer.status_code >= _FIRST_ERROR or form is None:
                raise SignInError(f"{address.partition('?')[0]} refuses the sign-in: {_heading_of(answer.text)}")
            action = _checked(urljoin(address, html.unescape(form[1])))
            origin = "://".join(urlsplit(address)[:2])
            fields = _fields_in(answer.text) | {"decision": "allow"}
            answer = await browser.post(action, data=fields, headers={"origin": origin})
    raise SignInError("The sign-in has no end.")


async def _return_to_client(browser: Any, address: str) -> None:
    """Open the address at which a client waits. Some clients read the address elsewhere, and nothing listens there."""
    import httpx2  # noqa: PLC0415 - as above

    try:
        await browser.get(address)
    except httpx2.HTTPError:
        return


def _checked(url: str) -> str:
    """Return an address on this machine; raise SignInError for any other one."""
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not is_loopback(parts.hostname or ""):
        place = f"{parts.scheme}://{parts.netloc}"
        raise SignInError(
            f"The sign-in leads to {one_line(place)}, and allow_sign_in visits this machine only. Run the server with "
            "--sign-in-as, so that no identity provider is asked."
        )
    return url
