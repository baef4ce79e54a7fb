"""A server with a proxy in front of a real OpenID provider, and a person with a browser, without a person."""

from __future__ import annotations

import html
import re
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

import httpx2

from funcmcp import Context, MCPServer
from funcmcp._adapters.uvicorn.server import listen, origin_of
from funcmcp.auth import OIDC, Auth, OAuthProxy
from tests import nodejs
from tests.clients.signing_in import Recorder, serving_in_thread
from tests.patience import PATIENCE
from tests.requirements import require
from tests.serving import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from tests.clients.signing_in import Asked

HERE = Path(__file__).parent
HOST = "127.0.0.1"
BACK = "http://127.0.0.1:1/back"
"""Where a client's users return to; the browser stops there."""

CLIENT_ID, SECRET = "funcmcp", "a secret: with +, % and &"
SCOPES = {"orders.read": "See your orders", "orders.write": "Place and cancel orders"}

_FORM = re.compile(r'<form[^>]* action="([^"]*)"', re.DOTALL)
_INPUT = re.compile(r"<input[^>]*>")
_ATTRIBUTE = re.compile(r'(\w+)="([^"]*)"')


@dataclass(frozen=True)
class SignIn:
    """What is served.

    Attributes:
        url: The endpoint.
        origin: The origin of the endpoint, which is the issuer of its tokens.
        upstream: The issuer of the OpenID provider.
        log: The requests to the server.
    """

    url: str
    origin: str
    upstream: str
    log: list[Asked]


def orders(url: str, upstream: str, **options: Any) -> MCPServer:
    """Return a server with two tools, one of which takes a further scope, and a proxy with these options."""
    proxy = OAuthProxy(url, upstream=OIDC(upstream, CLIENT_ID, SECRET), scopes=SCOPES, **options)
    mcp = MCPServer("Orders", auth=Auth(proxy, scopes=["orders.read"]))

    @mcp.tool
    def who(context: Context) -> dict[str, Any]:
        assert context.principal is not None
        principal = context.principal
        return {"subject": principal.subject, "name": principal.name, "email": principal.claims.get("email")}

    @mcp.tool(scopes=["orders.write"])
    def order(dish: str) -> dict[str, str]:
        return {"ordered": dish}

    return mcp


@contextmanager
def oidc_provider(redirect_uri: str, *, secret: str = SECRET, rotates: bool = True) -> Iterator[str]:
    """Run npm's oidc-provider; return its issuer."""
    script = nodejs.HOME / "identity-provider.mjs"
    nodejs.package("oidc-provider")
    command = [str(nodejs.node()), str(script), CLIENT_ID, secret, redirect_uri, str(rotates).lower()]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.kill()


@contextmanager
def django(redirect_uri: str) -> Iterator[str]:
    """Run Django with its OAuth Toolkit as an OpenID provider; return its issuer."""
    python = REPOSITORY / ".servers/frameworks/bin/python"
    program = require("Django (scripts/setup-frameworks.sh)", str(python) if python.exists() else None)
    command = [program, str(HERE / "django_provider.py"), CLIENT_ID, SECRET, redirect_uri]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.kill()


@contextmanager
def signed_in(
    provider: Callable[[str], AbstractContextManager[str]] = oidc_provider, **options: Any
) -> Iterator[SignIn]:
    """Serve everything on loopback ports, with these options of the proxy."""
    listener = listen(HOST, 0)
    origin = origin_of(HOST, listener)
    log: list[Asked] = []
    with provider(f"{origin}/oauth/callback") as upstream:
        mcp = orders(f"{origin}/mcp", upstream, **options)
        with serving_in_thread(Recorder("orders", mcp, log), listener):
            yield SignIn(f"{origin}/mcp", origin, upstream, log)


async def browse(url: str, *, user: str = "ada", decision: str = "allow", back: str = BACK) -> dict[str, str]:
    """Do as a person with a browser: follow redirects and fill in forms, until the client is reached."""
    async with httpx2.AsyncClient(follow_redirects=False, timeout=PATIENCE) as browser:
        answer = await browser.get(url)
        for _ in range(20):
            if answer.is_redirect:
                location = str(answer.url.join(answer.headers["location"]))
                if location.startswith(back):
                    return dict(parse_qsl(urlsplit(location).query))
                answer = await browser.get(location)
                continue
            form = _FORM.search(answer.text)
            if form is None:
                raise AssertionError(f"{answer.status_code} {answer.text}")
            fields = filled_in(answer.text, user)
            if 'name="decision"' in answer.text:
                fields["decision"] = decision
            headers = {"origin": f"{answer.url.scheme}://{answer.url.netloc.decode()}"}
            answer = await browser.post(answer.url.join(html.unescape(form[1])), data=fields, headers=headers)
    raise AssertionError("The sign-in has no end.")


async def visit(address: str, user: str) -> None:
    """Sign in, and open the page to which the user returns."""
    back = parse_qs(urlsplit(address).query)["redirect_uri"][0]
    query = await browse(address, user=user, back=back)
    async with httpx2.AsyncClient(timeout=PATIENCE) as browser:
        assert (await browser.get(f"{back}?{urlencode(query)}")).status_code == 200


def filled_in(page: str, user: str) -> dict[str, str]:
    """Return the fields of the form in a page, with the user in those without a value."""
    fields = {}
    for tag in _INPUT.findall(page):
        attributes = {name: html.unescape(value) for name, value in _ATTRIBUTE.findall(tag)}
        if "name" in attributes:
            fields[attributes["name"]] = attributes.get("value", user)
    return fields
