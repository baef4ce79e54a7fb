"""Sign-ins without a browser: what a page of the proxy says, and a client of a proxy in this process, for tests."""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import parse_qsl, urlencode, urlsplit

from funcmcp._oauth_proxy.flows import challenge_of, new_secret
from funcmcp._oauth_proxy.web import WebRequest
from funcmcp._protocol.codec import decode, encode
from funcmcp._state.seal import base64url

if TYPE_CHECKING:
    from collections.abc import Sequence

    from funcmcp._oauth_proxy.proxy import OAuthProxy
    from funcmcp._oauth_proxy.web import WebAnswer

_BACK: Final = "http://127.0.0.1/back"
_OK: Final = 200
_FIRST_ERROR: Final = 400
_ALLOW: Final = {"decision": "allow"}
_FIELD: Final = re.compile(r'<input type="hidden" name="([^"]*)" value="([^"]*)">')
_FORM: Final = re.compile(r'<form method="post" action="([^"]*)">')
_HEADING: Final = re.compile(r"<h1>(.*?)</h1>", re.DOTALL)
_TAG: Final = re.compile(r"<[^>]*>")


class HeadlessError(Exception):
    """A sign-in is refused. The text has the error of OAuth, or the heading of the page."""


class ReadPage(NamedTuple):
    """What a page of the proxy says.

    Attributes:
        heading: The heading; "" without one.
        action: The address of the form; None without a form.
        fields: The fields of the form of a user who allows what it asks for.
    """

    heading: str
    action: str | None
    fields: dict[str, str]


def read_page(text: str) -> ReadPage:
    """Return what a page says."""
    heading, form = _HEADING.search(text), _FORM.search(text)
    return ReadPage(
        heading="" if heading is None else html.unescape(_TAG.sub("", heading[1])),
        action=None if form is None else html.unescape(form[1]),
        fields={html.unescape(name): html.unescape(value) for name, value in _FIELD.findall(text)} | _ALLOW,
    )


class HeadlessClient:
    """A client of a proxy in this process, with a browser whose user allows what it asks for.

    Args:
        proxy: The proxy. Its provider must sign the user in without a page, as `LocalProvider` does.
        server: The name of the server.
    """

    def __init__(self, proxy: OAuthProxy, server: str) -> None:
        proxy.raise_failures()
        self._proxy = proxy
        self._server = server
        self._issuer = proxy.resource.authorization_servers[0]
        self._cookies: dict[str, str] = {}

    async def sign_in(self, scopes: Sequence[str]) -> str:
        """Return an access token; raise HeadlessError.

        Args:
            scopes: The scopes to request; empty for all of the server.
        """
        metadata = {"client_name": "Test", "redirect_uris": [_BACK], "token_endpoint_auth_method": "none"}
        registered = _json_of(await self._send("POST", "/oauth/register", body=encode(metadata)))
        client = {"client_id": registered["client_id"], "redirect_uri": _BACK}
        verifier = base64url(new_secret())
        request = {
            "response_type": "code",
            "scope": " ".join(scopes),
            "resource": self._proxy.resource.resource,
            "code_challenge": challenge_of(verifier),
            "code_challenge_method": "S256",
        }
        page = await self._send("GET", "/oauth/authorize", urlencode(client | request))
        if page.status != _OK:
            raise _refusal_of(page)
        form = urlencode(read_page(page.body.decode()).fields).encode()
        consented = await self._send("POST", "/oauth/consent", body=form)
        address, _, query = dict(consented.headers).get("location", "").partition("?")
        if address != self._proxy.callback:
            raise _refusal_of(consented)
        back = await self._send("GET", urlsplit(address).path.removeprefix(urlsplit(self._issuer).path), query)
        code = _query_of(back).get("code")
        if code is None:
            raise _refusal_of(back)
        exchange = client | {"grant_type": "authorization_code", "code": code, "code_verifier": verifier}
        tokens = _json_of(await self._send("POST", "/oauth/token", body=urlencode(exchange).encode()))
        return str(tokens["access_token"])

    async def _send(self, method: str, path: str, query: str = "", *, body: bytes = b"") -> WebAnswer:
        issuer = urlsplit(self._issuer)
        headers = {
            "content-type": "application/x-www-form-urlencoded",
            "origin": f"{issuer.scheme}://{issuer.netloc}",
            "cookie": "; ".join(f"{name}={value}" for name, value in self._cookies.items()),
        }
        answer = await self._proxy.answer(
            WebRequest(method, issuer.path + path, query, headers, body, caller="", server=self._server)
        )
        for field, text in answer.headers:
            if field == "set-cookie":
                name, _, value = text.partition(";")[0].partition("=")
                self._cookies[name] = value
        return answer


def _json_of(answer: WebAnswer) -> dict[str, Any]:
    """Return the JSON object of an answer to a client; raise HeadlessError if it is an error."""
    value: dict[str, Any] = decode(answer.body)
    if answer.status >= _FIRST_ERROR:
        raise HeadlessError(f"{value['error']}: {value['error_description']}")
    return value


def _query_of(answer: WebAnswer) -> dict[str, str]:
    """Return the parameters of a redirect; none for a page."""
    location = dict(answer.headers).get("location", "")
    return dict(parse_qsl(urlsplit(location).query))


def _refusal_of(answer: WebAnswer) -> HeadlessError:
    """Return the error for an answer to the browser: a redirect to the client with an error, or a page."""
    if answer.status >= _FIRST_ERROR:
        return HeadlessError(read_page(answer.body.decode()).heading)
    query = _query_of(answer)
    return HeadlessError(f"{query.get('error')}: {query.get('error_description')}")
