"""The same attacks against funcmcp's OAuth proxy and against FastMCP's, written to docs/development/sign-in-attacks.md.

Run it with ``make sign-in-attacks``. Both proxies have their default options and the same provider, npm's
oidc-provider, and are attacked over HTTP only. An attack returns what it has achieved; "" means nothing.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import html
import json
import os
import re
import secrets
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import httpx2

from funcmcp._processes.server import origin_of
from funcmcp.state import MemorySignIns
from tests import nodejs
from tests.clients.signing_in import serving_in_thread
from tests.patience import PATIENCE
from tests.serving import REPOSITORY
from tests.sign_in.people import CLIENT_ID, HERE, HOST, SECRET, oidc_provider, orders
from tests.sockets import free_port, listen

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

PAGE = REPOSITORY / "docs/development/sign-in-attacks.md"
BACK = "https://app.example.com/back"
PLAIN_SECRET = "a-secret-of-the-tests"
"""FastMCP sends a secret with other characters than these in another way than RFC 6749 section 2.3.1 says."""

_FORM = re.compile(r'<form[^>]* action="([^"]*)"', re.DOTALL)
_INPUT = re.compile(r"<input[^>]*>")
_ATTRIBUTE = re.compile(r'(\w+)="([^"]*)"')


@dataclass(frozen=True)
class Proxy:
    """A server with a proxy that is attacked.

    Attributes:
        name: The library.
        origin: The origin of the server.
        scope: A scope of the server.
    """

    name: str
    origin: str
    scope: str

    @property
    def url(self) -> str:
        """The endpoint."""
        return f"{self.origin}/mcp"


class Attacker:
    """A client, a browser and a user at one proxy.

    Attributes:
        proxy: The proxy.
        http: A browser with its cookies.
        endpoints: The metadata of the proxy.
        client_id: The id of a client that has registered.
    """

    def __init__(self, proxy: Proxy, http: httpx2.AsyncClient, endpoints: dict[str, Any]) -> None:
        self.proxy = proxy
        self.http = http
        self.endpoints = endpoints
        self.client_id = ""
        self.secret = ""
        self.verifier = secrets.token_urlsafe(48)

    async def register(self, *uris: str, **metadata: Any) -> httpx2.Response:
        values = {
            "client_name": "Notes",
            "redirect_uris": list(uris) or [BACK],
            "grant_types": ["authorization_code", "refresh_token"],
            "token_endpoint_auth_method": "none",
        }
        return await self.http.post(self.endpoints["registration_endpoint"], json=values | metadata)

    def request(self, **changes: Any) -> list[tuple[str, str]]:
        challenge = base64.urlsafe_b64encode(hashlib.sha256(self.verifier.encode()).digest()).rstrip(b"=").decode()
        values = {
            "response_type": "code",
            "client_id": self.client_id,
            "redirect_uri": BACK,
            "state": "the state",
            "scope": self.proxy.scope,
            "resource": self.proxy.url,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        return [(name, value) for name, value in (values | changes).items() if value is not None]

    async def authorize(self, *more: tuple[str, str], browser: httpx2.AsyncClient | None = None, **changes: Any) -> Any:
        """Open the authorization endpoint; return the answer after redirects of the proxy itself."""
        url = f"{self.endpoints['authorization_endpoint']}?{urlencode([*self.request(**changes), *more])}"
        answer = await (browser or self.http).get(url)
        while answer.is_redirect and str(answer.url.join(answer.headers["location"])).startswith(self.proxy.origin):
            answer = await (browser or self.http).get(str(answer.url.join(answer.headers["location"])))
        return answer

    async def submit(self, page: httpx2.Response, browser: httpx2.AsyncClient, **headers: str) -> httpx2.Response:
        """Allow it on the consent page."""
        form = _FORM.search(page.text)
        if form is None:
            return page
        fields = fields_of(page.text) | {"decision": "allow", "action": "approve"}
        url = str(page.url.join(html.unescape(form[1])))
        return await browser.post(url, data=fields, headers={"origin": self.proxy.origin} | headers)

    async def upstream(self, location: str, browser: httpx2.AsyncClient, user: str = "ada") -> str:
        """Sign in at the provider; return the callback to which it sends the browser."""
        answer = await browser.get(location)
        for _ in range(20):
            if answer.is_redirect:
                location = str(answer.url.join(answer.headers["location"]))
                if location.startswith(self.proxy.origin):
                    return location
                answer = await browser.get(location)
                continue
            form = _FORM.search(answer.text)
            if form is None:
                break
            fields = {name: value or user for name, value in fields_of(answer.text).items()}
            answer = await browser.post(str(answer.url.join(html.unescape(form[1]))), data=fields)
        raise AssertionError(f"{answer.status_code} {answer.text}")

    async def code(self, **changes: Any) -> str:
        """Sign in with a browser of its own; return the code of the client."""
        async with browsing() as browser:
            page = await self.authorize(browser=browser, **changes)
            consent = await self.submit(page, browser)
            assert consent.is_redirect, (consent.status_code, consent.text[:500])
            back = await browser.get(await self.upstream(consent.headers["location"], browser))
        assert back.is_redirect, (back.status_code, back.text[:500])
        assert "code=" in back.headers["location"], back.headers["location"]
        return dict(parse_qsl(urlsplit(back.headers["location"]).query))["code"]

    async def token(self, **fields: Any) -> httpx2.Response:
        form = {"client_id": self.client_id, **fields}
        return await self.http.post(
            self.endpoints["token_endpoint"], data={k: v for k, v in form.items() if v is not None}
        )

    async def exchange(self, code: str, **changes: Any) -> httpx2.Response:
        fields = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": BACK,
            "code_verifier": self.verifier,
            "resource": self.proxy.url,
        }
        return await self.token(**fields | changes)

    async def tokens(self) -> dict[str, Any]:
        answer = await self.exchange(await self.code())
        assert answer.status_code == 200, answer.text
        tokens: dict[str, Any] = answer.json()
        return tokens

    async def refresh(self, token: str, **changes: Any) -> httpx2.Response:
        return await self.token(**{"grant_type": "refresh_token", "refresh_token": token} | changes)

    async def is_accepted(self, token: str, query: str = "") -> bool:
        """Return whether the endpoint accepts a token."""
        message = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "initialize",
            "params": {
                "protocolVersion": "2025-11-25",
                "capabilities": {},
                "clientInfo": {"name": "a", "version": "1"},
            },
        }
        headers = {"accept": "application/json, text/event-stream"}
        if not query:
            headers["authorization"] = f"Bearer {token}"
        answer = await self.http.post(self.proxy.url + query, json=message, headers=headers)
        return answer.status_code == 200


def fields_of(page: str) -> dict[str, str]:
    fields = {}
    for tag in _INPUT.findall(page):
        attributes = {name: html.unescape(value) for name, value in _ATTRIBUTE.findall(tag)}
        if "name" in attributes:
            fields[attributes["name"]] = attributes.get("value", "")
    return fields


@asynccontextmanager
async def browsing() -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(timeout=PATIENCE, verify=False) as browser:
        yield browser


def leads_to(answer: httpx2.Response, uri: str) -> bool:
    return bool(answer.is_redirect) and answer.headers["location"].startswith(uri)


def asks(answer: httpx2.Response) -> bool:
    return answer.status_code == 200 and _FORM.search(answer.text) is not None


# Attacks. Each returns what it has achieved, "" for nothing.


async def look_alikes(at: Attacker) -> str:
    uris = [
        "https://evil.example/back", f"{BACK}/", f"{BACK}?more=1", f"{BACK}#a", f"{BACK}/../evil", f"{BACK}%2f..",
        "https://app.example.com/%62ack", "https://app.example.com./back", "https://user@app.example.com/back",
        "https://app.example.com\\@evil.example/back", "http://app.example.com/back",
    ]  # fmt: skip
    return await accepted_of(at, uris)


async def spellings(at: Attacker) -> str:
    uris = [
        "https://APP.example.com/back",
        "HTTPS://app.example.com/back",
        "https://app.example.com:443/back",
        f" {BACK}",
    ]
    return await accepted_of(at, uris)


async def accepted_of(at: Attacker, uris: list[str]) -> str:
    open_to = []
    for uri in uris:
        answer = await at.authorize(redirect_uri=uri)
        if asks(answer) or (answer.is_redirect and not answer.headers["location"].startswith(at.proxy.origin)):
            open_to.append(uri)
    return f"accepted: {', '.join(f'`{uri}`' for uri in open_to)}" if open_to else ""


async def code_schemes(at: Attacker) -> str:
    uris = [
        "javascript:alert(1)", "JaVaScRiPt:alert(1)", "data:text/html,x", "vbscript:x", "file:///etc/passwd",
        "blob:https://app.example.com/1", "about:blank", "mailto:a@example.com", "view-source:https://app.example.com",
        "ms-msdt:/id",
    ]  # fmt: skip
    registered = [uri for uri in uris if (await at.register(uri)).is_success]
    return f"registered: {', '.join(f'`{uri}`' for uri in registered)}" if registered else ""


async def plain_http(at: Attacker) -> str:
    uris = [
        "http://evil.example/back", "http://127.0.0.1.evil.example/back", "http://localhost.evil.example/back",
        "http://0.0.0.0/back", "http://10.0.0.1/back",
    ]  # fmt: skip
    registered = [uri for uri in uris if (await at.register(uri)).is_success]
    return f"registered: {', '.join(f'`{uri}`' for uri in registered)}" if registered else ""


async def loopback(at: Attacker) -> str:
    at.client_id = (await at.register("http://127.0.0.1/back")).json()["client_id"]
    if not asks(await at.authorize(redirect_uri="http://127.0.0.1:51234/back")):
        return "a program can't choose its port"
    uris = [
        "http://127.0.0.1:5/other", "http://127.0.0.1:5/back?a=1", "https://127.0.0.1:5/back", "http://evil.example:5/back",
        "http://localhost:5/back",
    ]  # fmt: skip
    accepted = [uri for uri in uris if asks(await at.authorize(redirect_uri=uri))]
    return f"accepted: {', '.join(f'`{uri}`' for uri in accepted)}" if accepted else ""


async def unknown_client(at: Attacker) -> str:
    answer = await at.authorize(client_id="unknown", redirect_uri="https://evil.example/back")
    return "the browser was sent there" if leads_to(answer, "https://evil.example") else ""


async def pkce(at: Attacker) -> str:
    ways: dict[str, dict[str, Any]] = {
        "no challenge": {"code_challenge": None, "code_challenge_method": None},
        "`plain`": {"code_challenge_method": "plain"},
        "a challenge of 5 characters": {"code_challenge": "short"},
    }
    accepted = [name for name, changes in ways.items() if asks(await at.authorize(**changes))]
    return f"accepted: {', '.join(accepted)}" if accepted else ""


async def no_verifier(at: Attacker) -> str:
    accepted = []
    for name, verifier in {
        "none": None,
        "a wrong one": "x" * 43,
        "the challenge": dict(at.request())["code_challenge"],
    }.items():
        if (await at.exchange(await at.code(), code_verifier=verifier)).status_code == 200:
            accepted.append(name)
    return f"accepted: {', '.join(accepted)}" if accepted else ""


async def wrong_verifier_first(at: Attacker) -> str:
    code = await at.code()
    await at.exchange(code, code_verifier="x" * 43)
    return "" if (await at.exchange(code)).status_code == 200 else "the code is used up: the sign-in fails"


async def repeated(at: Attacker) -> str:
    accepted = [
        name for name in ("client_id", "redirect_uri", "scope", "state") if asks(await at.authorize((name, "other")))
    ]
    return f"accepted: {', '.join(f'`{name}`' for name in accepted)}" if accepted else ""


async def resources(at: Attacker) -> str:
    accepted = [
        name
        for name, resource in {"another server": "https://evil.example/mcp", "the origin": at.proxy.origin}.items()
        if asks(await at.authorize(resource=resource))
    ]
    accepted += ["two resources"] if asks(await at.authorize(("resource", "https://evil.example/mcp"))) else []
    answer = await at.exchange(await at.code(), resource="https://evil.example/mcp")
    accepted += ["another server, at the token endpoint"] if answer.status_code == 200 else []
    return f"accepted: {', '.join(accepted)}" if accepted else ""


async def silent(at: Attacker) -> str:
    """Return which requests get past the user: those for no page, or with another document in their place."""
    past = []
    for name, value in {"prompt": "none", "request_uri": "https://evil.example/request", "request": "eyJ"}.items():
        changes: dict[str, Any] = {name: value}
        answer = await at.authorize(**changes)
        if answer.is_redirect and not leads_to(answer, BACK):
            past.append(f"`{name}`")
    return f"no page for {', '.join(past)}" if past else ""


async def markup(at: Attacker) -> str:
    answer = await at.register(client_name='<script>alert(1)</script>"><img src=x onerror=alert(1)>\u202e')
    if not answer.is_success:
        return ""
    at.client_id = answer.json()["client_id"]
    page = (await at.authorize()).text
    achieved = ["markup"] if "<img src=x" in page or "<script>alert" in page else []
    achieved += ["reversed text"] if "\u202e" in page else []
    return f"the page has {' and '.join(achieved)} of the client" if achieved else ""


async def framing(at: Attacker) -> str:
    headers = (await at.authorize()).headers
    policy = headers.get("content-security-policy", "")
    if "frame-ancestors 'none'" in policy or headers.get("x-frame-options", "").upper() == "DENY":
        return ""
    return "a page of another site can show it in a frame"


async def policy(at: Attacker) -> str:
    page = await at.authorize()
    content = page.headers.get("content-security-policy", "") or page.text
    faults = ["inline styles are allowed"] if "unsafe-inline" in content else []
    faults += ["images of any host are loaded"] if re.search(r"img-src[^;]*https:(?!//)", content) else []
    faults += ["it has a script"] if "<script" in page.text else []
    return ", ".join(faults)


async def foreign_form(at: Attacker) -> str:
    achieved = []
    for origin in ("https://evil.example", "null"):
        async with browsing() as victim:
            page = await at.authorize(browser=victim)
            answer = await at.submit(page, victim, origin=origin, **{"sec-fetch-site": "cross-site"})
            if answer.is_redirect and not leads_to(answer, BACK):
                achieved.append(f"`Origin: {origin}`")
    return f"consents with {', '.join(achieved)} if it has the token of the page" if achieved else ""


async def attackers_form(at: Attacker) -> str:
    async with browsing() as attacker, browsing() as victim:
        page = await at.authorize(browser=attacker)
        await at.authorize(browser=victim)
        answer = await at.submit(page, victim)
        return "it consents" if answer.is_redirect and not leads_to(answer, BACK) else ""


async def attackers_link(at: Attacker) -> str:
    async with browsing() as attacker, browsing() as victim:
        consent = await at.submit(await at.authorize(browser=attacker), attacker)
        back = await victim.get(await at.upstream(consent.headers["location"], victim, "victim"))
        return "the attacker's client gets a code of the victim" if "code=" in back.headers.get("location", "") else ""


async def callback_twice(at: Attacker) -> str:
    async with browsing() as browser:
        consent = await at.submit(await at.authorize(browser=browser), browser)
        callback = await at.upstream(consent.headers["location"], browser)
        assert (await browser.get(callback)).is_redirect
        again = await browser.get(callback)
        return "it gives another code" if "code=" in again.headers.get("location", "") else ""


async def mix_up(at: Attacker) -> str:
    async with browsing() as browser:
        consent = await at.submit(await at.authorize(browser=browser), browser)
        callback = await at.upstream(consent.headers["location"], browser)
        evil = re.sub(r"iss=[^&]*", "iss=https%3A%2F%2Fevil.example", callback)
        assert evil != callback
        answer = await browser.get(evil)
        return "it is accepted" if "code=" in answer.headers.get("location", "") else ""


async def no_issuer(at: Attacker) -> str:
    async with browsing() as browser:
        consent = await at.submit(await at.authorize(browser=browser), browser)
        callback = re.sub(r"&iss=[^&]*", "", await at.upstream(consent.headers["location"], browser))
        answer = await browser.get(callback)
        return "it is accepted" if "code=" in answer.headers.get("location", "") else ""


async def code_twice(at: Attacker) -> str:
    code = await at.code()
    statuses = [(await at.exchange(code)).status_code for _ in range(2)]
    return "" if statuses[0] == 200 and statuses[1] != 200 else f"statuses {statuses}"


async def code_parallel(at: Attacker) -> str:
    code = await at.code()
    answers = await asyncio.gather(*(at.exchange(code) for _ in range(100)))
    count = sum(answer.status_code == 200 for answer in answers)
    return "" if count == 1 else f"{count} of 100 succeed"


async def code_of_another(at: Attacker) -> str:
    code = await at.code()
    at.client_id = (await at.register()).json()["client_id"]
    return "another client gets the tokens" if (await at.exchange(code)).status_code == 200 else ""


async def refresh_of_another(at: Attacker) -> str:
    tokens = await at.tokens()
    at.client_id = (await at.register()).json()["client_id"]
    return "another client gets tokens" if (await at.refresh(tokens["refresh_token"])).status_code == 200 else ""


async def refresh_twice(at: Attacker) -> str:
    tokens = await at.tokens()
    first = await at.refresh(tokens["refresh_token"])
    assert first.status_code == 200, first.text
    await asyncio.sleep(31)  # after the time for a repetition
    if (await at.refresh(tokens["refresh_token"])).status_code == 200:
        return "the old token still works"
    goes_on = (await at.refresh(first.json()["refresh_token"])).status_code == 200
    return "it is refused, and the token that followed it goes on" if goes_on else ""


async def refresh_parallel(at: Attacker) -> str:
    tokens = await at.tokens()
    answers = await asyncio.gather(*(at.refresh(tokens["refresh_token"]) for _ in range(20)))
    good = [answer.json()["refresh_token"] for answer in answers if answer.status_code == 200]
    works = [token for token in dict.fromkeys(good) if (await at.refresh(token)).status_code == 200]
    return "" if works else f"the user is signed out ({len(good)} of 20 succeed)"


async def more_scopes(at: Attacker) -> str:
    tokens = await at.tokens()
    answer = await at.refresh(tokens["refresh_token"], scope=f"{at.proxy.scope} admin email")
    return f"scopes `{answer.json().get('scope')}`" if answer.status_code == 200 and "admin" in answer.text else ""


async def swapped(at: Attacker) -> str:
    tokens = await at.tokens()
    achieved = ["a refresh token as an access token"] if await at.is_accepted(tokens["refresh_token"]) else []
    achieved += ["an access token as a refresh token"] if (await at.refresh(tokens["access_token"])).is_success else []
    achieved += ["a code as an access token"] if await at.is_accepted(await at.code()) else []
    return f"accepted: {', '.join(achieved)}" if achieved else ""


async def in_query(at: Attacker) -> str:
    tokens = await at.tokens()
    assert await at.is_accepted(tokens["access_token"])
    return "it is accepted" if await at.is_accepted("", f"?access_token={tokens['access_token']}") else ""


async def audience(at: Attacker) -> str:
    token = (await at.tokens())["access_token"]
    payload = token.split(".")[1]
    claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    return (
        ""
        if claims.get("aud") in (at.proxy.url, [at.proxy.url])
        else f"`aud` is `{claims.get('aud')}`".replace(at.proxy.origin, "")
    )


async def lifetime(at: Attacker) -> str:
    seconds = (await at.tokens())["expires_in"]
    return "" if seconds <= 3600 else f"{seconds} seconds"


async def documents(at: Attacker) -> str:
    """Return which documents of the server's own network were requested."""
    asked: list[str] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append((await reader.read(100)).decode("latin-1")[:20])
        writer.close()

    server = await asyncio.start_server(answer, HOST, 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        for host in (HOST, "localhost", "127.1", "[::ffff:127.0.0.1]", "2130706433"):
            await at.authorize(client_id=f"https://{host}:{port}/client.json")
    return "it is requested" if asked else ""


async def flood(at: Attacker) -> str:
    statuses = [(await at.register()).status_code for _ in range(200)]
    return "" if 429 in statuses else "200 in a row are registered and kept"


async def poisoned_host(at: Attacker) -> str:
    headers = {"x-forwarded-host": "evil.example", "forwarded": "host=evil.example", "x-forwarded-proto": "http"}
    for path in ("/.well-known/oauth-authorization-server", "/.well-known/oauth-protected-resource/mcp"):
        if "evil" in (await at.http.get(at.proxy.origin + path, headers=headers)).text:
            return "an address is the attacker's"
    return ""


async def line_breaks(at: Attacker) -> str:
    async with browsing() as browser:
        page = await at.authorize(browser=browser, state="a\r\nset-cookie: evil=1\r\n\r\n")
        answer = await at.submit(page, browser)
        return "a header begins" if "evil" in answer.headers.get("set-cookie", "") else ""


async def many_pages(at: Attacker) -> str:
    async with browsing() as browser:
        for _ in range(50):
            await at.authorize(browser=browser)
        size = sum(len(cookie.name) + len(cookie.value or "") + 3 for cookie in browser.cookies.jar)
        return "" if size < 4096 else f"{size} bytes of cookies"


async def leaked_secret(at: Attacker) -> str:
    text = (await at.register(client_id=CLIENT_ID)).text
    return (
        "the registration has the id or the secret at the provider"
        if SECRET in text or f'"{CLIENT_ID}"' in text
        else ""
    )


async def revoked(at: Attacker) -> str:
    tokens = await at.tokens()
    form = {"token": tokens["refresh_token"], "client_id": at.client_id}
    url = at.endpoints.get("revocation_endpoint")
    if url is None:
        return "there is no revocation endpoint"
    answer = await at.http.post(url, data=form)
    if (await at.refresh(tokens["refresh_token"])).status_code != 200:
        return ""
    return f"the revocation is answered with status {answer.status_code}, and the token still works"


ATTACKS: dict[str, Callable[[Attacker], Awaitable[str]]] = {
    "Redirect to an address that only resembles the registered one": look_alikes,
    "Redirect to another spelling of the registered address": spellings,
    "Register an address that runs code or opens a program": code_schemes,
    "Register an http address of another machine": plain_http,
    "Another path, query or host than the loopback address that was registered": loopback,
    "Use the server as an open redirect, with an unknown client": unknown_client,
    "Leave PKCE out, or weaken it": pkce,
    "Redeem a code without its verifier": no_verifier,
    "Use up a code with a wrong verifier": wrong_verifier_first,
    "Repeat a parameter with another value": repeated,
    "Request a token for another resource (CVE-2025-69196)": resources,
    "Get past the consent by `prompt=none`, `request` or `request_uri`": silent,
    "Markup or reversed text in the name of the client": markup,
    "Show the consent page in a frame": framing,
    "Load or run something on the consent page": policy,
    "Send the form of the victim's page from another site": foreign_form,
    "Send the attacker's form in the victim's browser": attackers_form,
    "Let the victim sign in by the attacker's link (CVE-2026-27124)": attackers_link,
    "Repeat the callback": callback_twice,
    "An answer of another provider (mix-up, `iss`)": mix_up,
    "An answer without `iss`, though the provider promises one": no_issuer,
    "Use a code twice": code_twice,
    "Use a code 100 times at once": code_parallel,
    "Use the code of another client": code_of_another,
    "Use the refresh token of another client": refresh_of_another,
    "Use a stolen refresh token after its owner has (half a minute later)": refresh_twice,
    "Sign a user out by 20 refreshes at once": refresh_parallel,
    "More scopes at a refresh": more_scopes,
    "Use a token or a code for something else": swapped,
    "A token in the query": in_query,
    "A token whose audience is not exactly the endpoint": audience,
    "A token that lives longer than an hour": lifetime,
    "Let the server request a document of its own network (CIMD)": documents,
    "Flood the registration": flood,
    "Poison addresses by `X-Forwarded-Host`": poisoned_host,
    "Line breaks in `state`": line_breaks,
    "Fill the browser with cookies by 50 open pages": many_pages,
    "Learn the secret at the provider by registering": leaked_secret,
    "Use a refresh token after it was revoked": revoked,
}


@contextmanager
def funcmcp_server(**options: Any) -> Iterator[Proxy]:
    listener = listen(HOST, 0)
    origin = origin_of(HOST, listener)
    with ExitStack() as stack:
        upstream = stack.enter_context(oidc_provider(f"{origin}/oauth/callback"))
        stack.enter_context(serving_in_thread(orders(f"{origin}/mcp", upstream, **options), listener))
        yield Proxy("funcmcp", origin, "orders.read")


@contextmanager
def fastmcp_server() -> Iterator[Proxy]:
    port = free_port()
    origin = f"http://{HOST}:{port}"
    python = REPOSITORY / ".servers/differential/bin/python"
    with ExitStack() as stack:
        upstream = stack.enter_context(oidc_provider(f"{origin}/auth/callback", secret=PLAIN_SECRET))
        home = stack.enter_context(tempfile.TemporaryDirectory())
        command = [str(python), str(HERE / "fastmcp_server.py"), str(port), upstream, CLIENT_ID, PLAIN_SECRET]
        process = subprocess.Popen(command, env={**os.environ, "HOME": home}, stderr=subprocess.DEVNULL)
        stack.callback(process.kill)
        for _ in range(600):
            try:
                httpx2.get(f"{origin}/.well-known/oauth-authorization-server")
                break
            except httpx2.ConnectError:
                asyncio.run(asyncio.sleep(0.1))
        yield Proxy("FastMCP", origin, "openid offline_access")


async def outcome(proxy: Proxy, attack: Callable[[Attacker], Awaitable[str]]) -> str:
    """Return what an attack has achieved at a proxy, with a client of its own."""
    async with browsing() as http:
        endpoints = (await http.get(f"{proxy.origin}/.well-known/oauth-authorization-server")).json()
        attacker = Attacker(proxy, http, endpoints)
        attacker.client_id = (await attacker.register()).json()["client_id"]
        try:
            return await attack(attacker) or "refused"
        except Exception as error:  # noqa: BLE001 - a row of the table for a person to look at
            return f"ERROR {type(error).__name__}: {error}"[:400]


def attack_ours(names: list[str], *, stores: bool = False) -> dict[str, str]:
    """Return the outcomes at funcmcp, with a store or without.

    Each attack has a server of its own, which allows 20 registrations in a minute.
    """
    outcomes = {}
    for name in names:
        with funcmcp_server(store=MemorySignIns() if stores else None) as proxy:
            outcomes[name] = asyncio.run(outcome(proxy, ATTACKS[name]))
        print(f"funcmcp{' with a store' if stores else ''}: {name}: {outcomes[name]}", file=sys.stderr, flush=True)
    return outcomes


def attack_theirs(names: list[str]) -> dict[str, str]:
    """Return the outcomes at FastMCP."""
    outcomes = {}
    with fastmcp_server() as proxy:
        for name in names:
            outcomes[name] = asyncio.run(outcome(proxy, ATTACKS[name]))
            print(f"FastMCP: {name}: {outcomes[name]}", file=sys.stderr, flush=True)
    return outcomes


def version_of_fastmcp() -> str:
    python = REPOSITORY / ".servers/differential/bin/python"
    command = [str(python), "-c", "import fastmcp; print(fastmcp.__version__)"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def main(names: list[str]) -> None:
    nodejs.package("oidc-provider")
    chosen = [name for name in ATTACKS if not names or any(part in name for part in names)]
    with ThreadPoolExecutor(3) as pool:
        attacks = (attack_ours, partial(attack_ours, stores=True), attack_theirs)
        futures = [pool.submit(attack, chosen) for attack in attacks]
        outcomes = [future.result() for future in futures]
    rows = [f"| attack | funcmcp | funcmcp with a store | FastMCP {version_of_fastmcp()} |", "|---|---|---|---|"]
    rows += [f"| {name} | {' | '.join(column[name] for column in outcomes)} |" for name in chosen]
    table = "\n".join(rows)
    if names:
        print(table)
        return
    before, _, rest = PAGE.read_text("utf-8").partition("<!-- table -->\n")
    after = rest.partition("<!-- end -->\n")[2]
    PAGE.write_text(f"{before}<!-- table -->\n\n{table}\n\n<!-- end -->\n{after}", "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
