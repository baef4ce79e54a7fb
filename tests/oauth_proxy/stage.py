"""A proxy, an identity provider in this process, a client, and browsers that keep cookies."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import html
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from funcmcp._oauth_proxy.upstream import SignIn, UpstreamRefusedError, UpstreamUnavailableError, User
from funcmcp._oauth_proxy.web import WebRequest
from funcmcp._protocol.codec import decode, encode
from funcmcp.auth import OAuthProxy
from funcmcp.state import KeyRing
from tests.auth.making_tokens import NOW, Clock

if TYPE_CHECKING:
    from collections.abc import Mapping

    from funcmcp._oauth_proxy.upstream import AuthorizationRequest
    from funcmcp._oauth_proxy.web import WebAnswer
    from funcmcp.state import SignInStore

URL = "https://orders.example.com/mcp"
ISSUER = "https://orders.example.com"
LOGIN = "https://login.example.com"
BACK = "https://app.example.com/back"
SCOPES = {"orders.read": "See your orders", "orders.write": "Place and cancel orders"}
VERIFIER = "a-verifier-of-the-client-with-more-than-43-characters"
KEYS = KeyRing([b"the key of the tests" * 2])
ADA = User("ada", name="Ada", email="ada@example.com", tenant="kitchen", roles=frozenset({"cook"}))


def challenge_of(verifier: str) -> str:
    digest = hashlib.sha256(verifier.encode()).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


class ScriptedUpstream:
    """An identity provider: codes that it accepts once and only with their verifier, and refresh tokens.

    Attributes:
        user: Who signs in next.
        down: Raises this for every request.
        requests: The authorization requests.
        exchanges: The codes that were sent to it.
        refreshes: The refresh tokens that were sent to it.
        rotates: Whether a refresh token is good for one use.
        ended: Refresh tokens that it does not accept.
        gate: Refreshes wait for it.
        asked: Is released by each refresh.
    """

    def __init__(self) -> None:
        self.name = "Example Login"
        self.issuer: str | None = LOGIN
        self.user: User = ADA
        self.down: Exception | None = None
        self.sends_issuer = False
        self.rotates = False
        self.revokes = True
        self.gives_refresh_tokens = True
        self.requests: list[AuthorizationRequest] = []
        self.exchanges: list[str] = []
        self.refreshes: list[str] = []
        self.ended: set[str] = set()
        self.gate = asyncio.Event()
        self.gate.set()
        self.asked = asyncio.Semaphore(0)
        self._codes: dict[str, tuple[AuthorizationRequest, User]] = {}
        self._count = 0

    def sign_in(self, url: str, user: User | None = None) -> dict[str, str]:
        """Do as the provider does after the user has signed in: return the query of the callback."""
        state = dict(parse_qsl(urlsplit(url).query))["state"]
        (request,) = [request for request in self.requests if request.state == state]
        self._count += 1
        code = f"upstream-code-{self._count}"
        self._codes[code] = request, user or self.user
        return {"code": code, "state": state}

    async def authorization_url(self, request: AuthorizationRequest) -> str:
        self._fail()
        self.requests.append(request)
        return f"{LOGIN}/authorize?{urlencode({'state': request.state})}"

    async def requires_issuer(self) -> bool:
        return self.sends_issuer

    async def exchange(self, code: str, *, redirect_uri: str, verifier: str, nonce: str) -> SignIn:
        self._fail()
        self.exchanges.append(code)
        if code not in self._codes:
            raise UpstreamRefusedError("the code is used or unknown")
        request, user = self._codes.pop(code)
        if (request.redirect_uri, request.challenge, request.nonce) != (redirect_uri, challenge_of(verifier), nonce):
            raise UpstreamRefusedError("the code is of another request")
        return SignIn(user, self._new_refresh_token() if self.gives_refresh_tokens else None)

    async def refresh(self, refresh_token: str, subject: str) -> SignIn:
        self._fail()
        self.refreshes.append(refresh_token)
        self.asked.release()
        await self.gate.wait()
        if refresh_token in self.ended:
            raise UpstreamRefusedError("the refresh token has ended")
        if not self.rotates:
            return SignIn(None, None)
        self.ended.add(refresh_token)
        return SignIn(self.user, self._new_refresh_token())

    async def revoke(self, refresh_token: str) -> bool:
        self._fail()
        if self.revokes:
            self.ended.add(refresh_token)
        return self.revokes

    def _new_refresh_token(self) -> str:
        self._count += 1
        return f"upstream-refresh-{self._count}"

    def _fail(self) -> None:
        if self.down is not None:
            raise self.down


DOWN = UpstreamUnavailableError("no route to host")


@dataclass
class Answer:
    """An answer of the proxy."""

    status: int
    headers: list[tuple[str, str]]
    text: str

    def header(self, name: str) -> str | None:
        values = [value for header, value in self.headers if header == name]
        assert len(values) < 2, (name, values)
        return values[0] if values else None

    @property
    def cookies(self) -> list[str]:
        return [value for name, value in self.headers if name == "set-cookie"]

    @property
    def json(self) -> Any:
        return decode(self.text.encode())

    @property
    def location(self) -> str:
        location = self.header("location")
        assert location is not None, (self.status, self.text)
        return location

    @property
    def query(self) -> dict[str, str]:
        """The parameters that a redirect has added."""
        return dict(parse_qsl(urlsplit(self.location).query, keep_blank_values=True))

    @property
    def is_page(self) -> bool:
        return self.header("content-type") == "text/html; charset=utf-8" and self.header("location") is None

    @property
    def form(self) -> dict[str, str]:
        """The hidden fields of a page's form."""
        fields = re.findall(r'<input type="hidden" name="([^"]*)" value="([^"]*)">', self.text)
        return {html.unescape(name): html.unescape(value) for name, value in fields}


@dataclass
class Browser:
    """A browser with its cookies, at one origin."""

    cookies: dict[str, str] = field(default_factory=dict)

    def keep(self, answer: Answer) -> None:
        for cookie in answer.cookies:
            pair, *attributes = cookie.split("; ")
            name, _, value = pair.partition("=")
            assert name.startswith("__Host-")
            assert {"Path=/", "HttpOnly", "SameSite=Lax", "Secure"} <= set(attributes)
            if "Max-Age=0" in attributes:
                self.cookies.pop(name, None)
            else:
                self.cookies[name] = value

    @property
    def header(self) -> dict[str, str]:
        return {"cookie": "; ".join(f"{name}={value}" for name, value in self.cookies.items())}


class Stage:
    """A proxy with a client that has registered.

    Attributes:
        proxy: The proxy; a test may replace it by another instance.
        upstream: The identity provider.
        clock: The time.
        client_id: The id of the client.
    """

    @staticmethod
    def make_store(clock: Clock) -> SignInStore | None:
        """Return the store of a proxy, if no option names one; None: it has no store."""
        del clock
        return None

    def __init__(self, **options: Any) -> None:
        self.upstream = ScriptedUpstream()
        self.clock = Clock()
        store = self.make_store(self.clock)
        defaults = {"upstream": self.upstream, "scopes": SCOPES, "clock": self.clock, "store": store}
        self.options: dict[str, Any] = defaults | options
        self.proxy = self.instance()
        self.client_id = ""
        self.caller = "192.0.2.1"

    def instance(self, keys: KeyRing = KEYS, url: str = URL, **options: Any) -> OAuthProxy:
        """Return another instance of the same server."""
        return OAuthProxy(url, keys=keys, **self.options | options)

    async def send(
        self,
        method: str,
        path: str,
        query: str | Mapping[str, str] = "",
        *,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
        browser: Browser | None = None,
    ) -> Answer:
        """Send a request to the proxy."""
        fields = dict(headers or {})
        if browser is not None and browser.cookies:
            fields |= browser.header
        encoded = query if isinstance(query, str) else urlencode(query)
        answer: WebAnswer = await self.proxy.answer(
            WebRequest(method, path, encoded, fields, body, self.caller, "Orders")
        )
        received = Answer(answer.status, list(answer.headers), answer.body.decode())
        if browser is not None:
            browser.keep(received)
        return received

    async def register(self, **metadata: Any) -> Answer:
        """Register a client."""
        values = {
            "client_name": "Notes",
            "redirect_uris": [BACK],
            "grant_types": ["authorization_code", "refresh_token"],
        } | metadata
        return await self.send("POST", "/oauth/register", body=encode(values))

    async def with_client(self, **metadata: Any) -> Stage:
        """Register the client of this stage."""
        answer = await self.register(**metadata)
        assert answer.status == 201, answer.text
        self.client_id = answer.json["client_id"]
        return self

    def request(self, **changes: Any) -> dict[str, str]:
        """Return the parameters of an authorization request."""
        values: dict[str, Any] = {
            "response_type": "code",
            "client_id": self.client_id,
            "redirect_uri": BACK,
            "state": "the client's state",
            "scope": "orders.read",
            "resource": URL,
            "code_challenge": challenge_of(VERIFIER),
            "code_challenge_method": "S256",
        }
        return {name: value for name, value in (values | changes).items() if value is not None}

    async def authorize(self, browser: Browser | None = None, **changes: Any) -> Answer:
        return await self.send("GET", "/oauth/authorize", self.request(**changes), browser=browser)

    async def consent(
        self, page: Answer, browser: Browser, *, decision: str = "allow", origin: str | None = ISSUER, **fields: str
    ) -> Answer:
        headers = {"content-type": "application/x-www-form-urlencoded"}
        if origin is not None:
            headers["origin"] = origin
        form = urlencode(page.form | {"decision": decision} | fields).encode()
        return await self.send("POST", "/oauth/consent", body=form, headers=headers, browser=browser)

    async def callback(self, query: str | Mapping[str, str], browser: Browser) -> Answer:
        return await self.send("GET", "/oauth/callback", query, browser=browser)

    async def code(self, browser: Browser | None = None, **changes: Any) -> str:
        """Sign in, and return the code of the client."""
        browser = browser or Browser()
        page = await self.authorize(browser, **changes)
        assert page.status == 200, page.text
        upstream = await self.consent(page, browser)
        back = await self.callback(self.upstream.sign_in(upstream.location), browser)
        assert back.status == 302, back.text
        return back.query["code"]

    async def token(
        self, content_type: str = "application/x-www-form-urlencoded", proof: str | None = None, **fields: Any
    ) -> Answer:
        """Send a token request, with a proof of the client's key (DPoP) if there is one."""
        form = urlencode({name: value for name, value in fields.items() if value is not None})
        headers = {"content-type": content_type}
        if proof is not None:
            headers["dpop"] = proof
        return await self.send("POST", "/oauth/token", body=form.encode(), headers=headers)

    async def exchange(self, code: str, **changes: Any) -> Answer:
        """Exchange a code."""
        fields: dict[str, Any] = {
            "grant_type": "authorization_code",
            "code": code,
            "client_id": self.client_id,
            "redirect_uri": BACK,
            "code_verifier": VERIFIER,
            "resource": URL,
        }
        return await self.token(**fields | changes)

    async def refresh(self, refresh_token: str, **changes: Any) -> Answer:
        """Send a refresh token."""
        fields: dict[str, Any] = {
            "grant_type": "refresh_token",
            "refresh_token": refresh_token,
            "client_id": self.client_id,
        }
        return await self.token(**fields | changes)

    async def tokens(self, **changes: Any) -> dict[str, Any]:
        """Sign in, and return the tokens."""
        answer = await self.exchange(await self.code(**changes))
        assert answer.status == 200, answer.text
        tokens: dict[str, Any] = answer.json
        return tokens

    async def caller_of(self, token: str) -> Any:
        """Return whom the proxy takes the sender of a token for."""
        return await self.proxy({"authorization": f"Bearer {token}"})


def claims_of(token: str) -> dict[str, Any]:
    """Return the claims of a token."""
    payload = token.split(".")[1]
    claims: dict[str, Any] = decode(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    return claims


__all__ = ["NOW"]
