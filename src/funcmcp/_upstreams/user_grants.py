"""`ask_user`: the caller's own account at an upstream, which the user connects once with a browser.

How it works: the first call of a user has no grant. The server asks the user to open a page of its own (an elicitation
of mode ``url``; error -32042 before 2026-07-28). The page says for whom the account is connected, and leads to the
authorization server of the upstream, which returns to the server with a code. The server exchanges it, and stores the
tokens as *pending*. The page then shows a short code, which the user enters in the client at the next call. So the user
of the browser and the user of the client are the same person: a link that somebody else has sent connects nothing.
After that the grant is used for this user, and renewed, until the authorization server refuses it.

Flows and grants are values of the caller in the state of the server: encrypted unless they are in memory, bounded for
each caller, and visible to all instances that share the store. A flow serves one return from the browser, which has to
have the cookie of the page. Three wrong codes end a pending grant.

Source: MCP 2025-11-25 and 2026-07-28, "client/elicitation", "URL Mode" and "Identifying the User"; RFC 7636; RFC 9207.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import secrets
from html import escape
from time import time
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlencode, urlsplit

from funcmcp._auth.access import Access, distinct
from funcmcp._auth.owner import owner_of
from funcmcp._auth.principal import UpstreamTokenError
from funcmcp._auth.urls import checked
from funcmcp._authoring.calling.questions import Elicit, ElicitURL
from funcmcp._client.oauth import parameters_of, words_of
from funcmcp._objects.public_names import public
from funcmcp._protocol.errors import MCPError
from funcmcp._state.caller_values import ValueOwner
from funcmcp._state.seal import base64url
from funcmcp._transports.http.endpoints.custom_routes import CustomRoute, Response
from funcmcp._upstreams.auth import Issued, TokenCache, TokenClient, UpstreamAuth, auth_of, issued_in

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from funcmcp._auth.principal import Principal
    from funcmcp._authoring.calling.services import Services
    from funcmcp._client.credentials import Credential
    from funcmcp._client.errors import AuthenticationError
    from funcmcp._server.calls.context import RequestContext
    from funcmcp._state.caller_values import CallerValues
    from funcmcp._transports.http.endpoints.custom_routes import Request
    from funcmcp._upstreams.auth import AuthFunction, Caller, Headers

URL_ELICITATION_REQUIRED: Final = -32042
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")
_CODE_LETTERS: Final = "BCDFGHJKLMNPQRSTVWXZ"  # no vowels, so that codes are no words
_CODE_LENGTH: Final = 8
_MAX_ATTEMPTS: Final = 3
_FLOW_SECONDS: Final = 600.0
_GRANT_SECONDS: Final = 90 * 86_400.0
_UNAUTHORIZED, _FORBIDDEN = 401, 403
_MAX_SCOPES, _MAX_SCOPE_CHARACTERS = 50, 4_000
"""Scopes of one grant with those that challenges add, and their characters. They are in the URL of a sign-in."""

_MEMBERS: Final[Mapping[str, Mapping[str, Any]]] = {
    "grant": {"access_token": str, "until": (int, float)},
    "pending": {"code": str, "attempts": int, "grant": dict},
    "flow": {"id": str, "verifier": str, "person": str, "cookie": str, "scopes": list},
    "scopes": {"scopes": list},
    "failure": {"text": str},
}
"""The members of each kind of record. A record without them, of another version, counts as none."""

_POLICY: Final = "default-src 'none'; base-uri 'none'; frame-ancestors 'none'"


class _UserGrants(UpstreamAuth):
    """The grants of all users for one upstream.

    Args:
        name: The name of the upstream, in paths and in the store.
        public_url: The URL of this server, without a path.
        authorization_url: Where users sign in.
        client: This server as a client.
        scopes: The scopes to request.
        issuer: The ``iss`` of returns; None where they have none.
        lists: Who reads the lists for users without an account; None for requests without credentials.
        clock: Returns seconds since 1970.
    """

    def __init__(  # noqa: PLR0913 - the options of ask_user
        self,
        name: str,
        public_url: str,
        authorization_url: str,
        client: TokenClient,
        scopes: Sequence[str],
        *,
        issuer: str | None,
        lists: UpstreamAuth | None,
        clock: Callable[[], float],
    ) -> None:
        self._name = name
        self._base = public_url.rstrip("/")
        self._path = f"/upstreams/{name}"
        self._authorization_url = authorization_url
        self._client = client
        self._scopes = distinct(scopes)
        self._issuer = issuer
        self._lists = lists
        self._clock = clock
        self._cache = TokenCache(clock)
        self._services: Services | None = None
        self.routes = (
            CustomRoute(f"{self._path}/connect", ("GET", "POST"), self._connect, Access(allow_anonymous=True)),
            CustomRoute(f"{self._path}/callback", ("GET",), self._callback, Access(allow_anonymous=True)),
        )

    def attach(self, services: Services) -> None:
        """Use the state of a server, which it then needs."""
        services.uses_state = True
        self._services = services

    async def headers(self, caller: Caller) -> Headers:
        """Return the token of a user, who is asked for it unless it is stored. Lists are read without asking."""
        if caller.principal is None:
            if caller.context is not None:
                raise UpstreamTokenError("missing", f"{self._name} needs to know who calls. Sign in, and call again.")
            return await self._headers_of_lists(caller)
        owner = _owner(caller.principal)
        if not self._cache.holds((owner.mark,)) and await self._read(owner, "grant") is None:
            if caller.context is None:
                return await self._headers_of_lists(caller)
            await self._ask(caller.context, caller.principal, owner)
        token = await self._cache.get((owner.mark,), lambda: self._token(owner))
        return {"authorization": f"Bearer {token}"}

    async def _headers_of_lists(self, caller: Caller) -> Headers:
        """Return the headers of requests for lists before the user has connected an account."""
        return {} if self._lists is None else await self._lists.headers(caller)

    async def refused(self, caller: Caller, headers: Headers, error: AuthenticationError) -> bool:
        """Renew a refused token. Forget a grant that can't be renewed or lacks a scope: the user is asked."""
        if caller.principal is None:
            return self._lists is not None and await self._lists.refused(caller, headers, error)
        owner = _owner(caller.principal)
        refused = headers.get("authorization", "").removeprefix("Bearer ")
        grant = await self._read(owner, "grant")
        self._cache.drop((owner.mark,), refused)
        if grant is None and caller.context is None:
            return self._lists is not None and await self._lists.refused(caller, headers, error)
        if grant is None or grant["access_token"] != refused:
            return True
        if error.status == _FORBIDDEN:
            return await self._lacks_scopes(owner, grant, error)
        if grant.get("refresh_token"):
            await self._write(owner, "grant", {**grant, "until": 0}, _GRANT_SECONDS)
        else:
            await self._remove(owner, "grant")
        return True

    async def _lacks_scopes(self, owner: ValueOwner, grant: Mapping[str, Any], error: AuthenticationError) -> bool:
        """Let the user be asked for the scopes of a challenge; return False if the grant has them, or for too many."""
        challenge = parameters_of(error.challenge)
        lacking = set(words_of(challenge.get("scope"))) - set(grant.get("scopes", ()))
        scopes = [*grant.get("scopes", ()), *sorted(lacking)]
        is_too_much = len(scopes) > _MAX_SCOPES or sum(map(len, scopes)) > _MAX_SCOPE_CHARACTERS
        if challenge.get("error") != "insufficient_scope" or not lacking or is_too_much:
            return False
        await self._write(owner, "scopes", {"scopes": scopes}, _FLOW_SECONDS)
        await self._remove(owner, "grant")
        return True

    async def _token(self, owner: ValueOwner) -> Issued:
        """Return the token of a stored grant, renewed if it is about to expire."""
        grant = await self._read(owner, "grant")
        if grant is None:
            raise UpstreamTokenError(
                "sign_in", f"The account at {self._name} is not connected. Call again to connect it."
            )
        now = self._clock()
        if now < grant["until"]:
            return Issued(grant["access_token"], grant["until"])
        if not grant.get("refresh_token"):
            await self._remove(owner, "grant")
            raise UpstreamTokenError("sign_in", f"The account at {self._name} has to be connected anew. Call again.")
        form = {"grant_type": "refresh_token", "refresh_token": grant["refresh_token"]}
        try:
            answer = await self._client.request(form, ())
        except UpstreamTokenError as error:
            if error.reason == "sign_in":
                newest = await self._read(owner, "grant")
                if newest is not None and newest["access_token"] != grant["access_token"]:
                    return Issued(newest["access_token"], newest["until"])  # another instance has renewed it
                await self._remove(owner, "grant")
                text = f"The account at {self._name} has to be connected anew. Call again."
                raise UpstreamTokenError("sign_in", text) from None
            raise
        issued = issued_in(answer, now)
        renewed = {**grant, "access_token": issued.token, "until": issued.until}
        if isinstance(answer.get("refresh_token"), str):
            renewed["refresh_token"] = answer["refresh_token"]
        await self._write(owner, "grant", renewed, _GRANT_SECONDS)
        return issued

    async def _ask(self, context: RequestContext, principal: Principal, owner: ValueOwner) -> None:
        """Ask the user to connect the account; return if that is done."""
        failure = await self._read(owner, "failure")
        if failure is not None:
            await self._remove(owner, "failure")
            raise UpstreamTokenError("sign_in", failure["text"])
        pending = await self._read(owner, "pending")
        if pending is None:
            await self._ask_for_browser(context, await self._begin(principal, owner))
            pending = await self._read(owner, "pending")
            if pending is None:
                raise UpstreamTokenError(
                    "sign_in", f"Finish connecting the account at {self._name} in the browser, and call again."
                )
        await self._ask_for_code(context, owner, pending)

    async def _ask_for_browser(self, context: RequestContext, url: str) -> None:
        message = f"Connect your account at {self._name}."
        declared = context.client.capabilities.get("elicitation")
        can_show_url = isinstance(declared, dict) and "url" in declared
        if not can_show_url:
            raise UpstreamTokenError("sign_in", f"{message} Open {url} in a browser, and call again.")
        if not context.client.revision.per_request:
            elicitation = {"mode": "url", "elicitationId": secrets.token_hex(16), "url": url, "message": message}
            raise MCPError(URL_ELICITATION_REQUIRED, message, {"elicitations": [elicitation]})
        key = f"upstream-{self._name}"
        question = ElicitURL(message, url)
        answer = question.read((await context.ask({key: question.request()}))[key])
        if answer.action != "accept":
            raise UpstreamTokenError("sign_in", f"The user does not connect the account at {self._name}.")

    async def _ask_for_code(self, context: RequestContext, owner: ValueOwner, pending: Mapping[str, Any]) -> None:
        """Ask for the code in the browser, and use the pending grant if it is right."""
        attempt = pending["attempts"]
        key = f"upstream-{self._name}-code-{attempt}"
        question = Elicit(f"Enter the code that the page of {self._name} shows.", str)
        answer = question.read((await context.ask({key: question.request()}))[key])
        if answer.action != "accept":
            raise UpstreamTokenError("sign_in", f"The user does not connect the account at {self._name}.")
        typed = re.sub(r"[^A-Z]", "", str(answer.content).upper())
        if not hmac.compare_digest(typed.encode(), pending["code"].encode()):
            if attempt + 1 >= _MAX_ATTEMPTS:
                await self._remove(owner, "pending")
                raise UpstreamTokenError("sign_in", "The code is wrong. Call again to connect the account anew.")
            await self._write(owner, "pending", {**pending, "attempts": attempt + 1}, _FLOW_SECONDS)
            raise UpstreamTokenError("sign_in", "The code is wrong. Call again, and enter the code of the page.")
        await self._write(owner, "grant", pending["grant"], _GRANT_SECONDS)
        await self._remove(owner, "pending")
        await self._remove(owner, "scopes")

    async def _begin(self, principal: Principal, owner: ValueOwner) -> str:
        """Return the URL of the page that begins the flow of a user. One that has begun goes on."""
        flow = await self._read(owner, "flow")
        if flow is None:
            scopes = await self._read(owner, "scopes")
            flow = {
                "id": secrets.token_urlsafe(24),
                "verifier": secrets.token_urlsafe(48),
                "person": principal.name or principal.subject,
                "scopes": list(self._scopes) if scopes is None else scopes["scopes"],
                "cookie": "",
            }
            await self._write(owner, "flow", flow, _FLOW_SECONDS)
        mark = owner.mark.removeprefix("principal ")
        query = urlencode({"flow": f"{mark}.{flow['id']}"})
        return f"{self._base}{self._path}/connect?{query}"

    async def _connect(self, request: Request) -> Response:
        """Show whose account is connected; after the button, lead to the authorization server."""
        state = request.query_params.get("flow", "")
        owner, flow = await self._flow_of(state)
        if flow is None:
            return _page(400, "This link has expired. Call the tool again to get another one.")
        if request.method == "GET":
            button = (
                f'<form method="post" action="{self._cookie_path}/connect?{escape(urlencode({"flow": state}))}">'
                "<button>Continue</button></form>"
            )
            text = (
                f"<p>This connects an account at <b>{escape(self._name)}</b> for <b>{escape(flow['person'])}</b>.</p>"
                "<p>Continue only if you are that person and have just asked for it yourself. If somebody has sent you "
                "this link, close the page.</p>"
            )
            return _page(200, text + button, is_html=True)
        if not self._is_same_origin(request):
            return _page(403, "The form came from another page.")
        cookie = secrets.token_urlsafe(24)
        await self._write(owner, "flow", {**flow, "cookie": _digest(cookie)}, _FLOW_SECONDS)
        parameters = {
            "response_type": "code",
            "client_id": self._client.client_id,
            "redirect_uri": self._redirect_uri,
            "state": state,
            "code_challenge": base64url(hashlib.sha256(flow["verifier"].encode()).digest()),
            "code_challenge_method": "S256",
            "scope": " ".join(flow["scopes"]),
        }
        query = urlencode({name: value for name, value in parameters.items() if value}, quote_via=quote)
        separator = "&" if "?" in self._authorization_url else "?"
        secure = "; Secure" if self._base.startswith("https:") else ""
        return Response(
            None,
            303,
            {
                "location": f"{self._authorization_url}{separator}{query}",
                "set-cookie": f"{self._cookie}={cookie}; Path={self._cookie_path}; Max-Age=600; HttpOnly; "
                f"SameSite=Lax{secure}",
                "cache-control": "no-store",
                "referrer-policy": "no-referrer",
            },
        )

    async def _callback(self, request: Request) -> Response:
        """Exchange the code of the authorization server, and show the code for the client."""
        query = request.query_params
        owner, flow = await self._flow_of(query.get("state", ""))
        cookie = request.cookies.get(self._cookie, "")
        if flow is None or not flow["cookie"] or not hmac.compare_digest(_digest(cookie), flow["cookie"]):
            return _page(400, "This is not the return of a flow that this browser has begun. Call the tool again.")
        if not await self._remove(owner, "flow"):  # another request has used it
            return _page(400, "This link was used before. Call the tool again.")
        if query.get("iss") != self._issuer and (self._issuer is not None or "iss" in query):
            return await self._failed(owner, 400, "The answer came from another authorization server.")
        if not query.get("code"):
            return await self._failed(owner, 400, f"{self._name} has not allowed it.")
        form = {
            "grant_type": "authorization_code",
            "code": query["code"],
            "redirect_uri": self._redirect_uri,
            "code_verifier": flow["verifier"],
        }
        now = self._clock()
        try:
            answer = await self._client.request(form, ())
        except UpstreamTokenError:
            return await self._failed(owner, 502, f"{self._name} has issued no token.")
        issued = issued_in(answer, now)
        refresh_token = answer.get("refresh_token")
        grant = {
            "access_token": issued.token,
            "until": issued.until,
            "refresh_token": refresh_token if isinstance(refresh_token, str) else None,
            "scopes": list(words_of(answer.get("scope"))) or flow["scopes"],
        }
        code = "".join(secrets.choice(_CODE_LETTERS) for _ in range(_CODE_LENGTH))
        await self._write(owner, "pending", {"code": code, "attempts": 0, "grant": grant}, _FLOW_SECONDS)
        half = _CODE_LENGTH // 2
        return _page(
            200,
            "<p>Go back to your application, and enter this code when it asks for it:</p>"
            f"<h1>{code[:half]}-{code[half:]}</h1><p>Tell it to nobody.</p>",
            is_html=True,
        )

    async def _failed(self, owner: ValueOwner, status: int, reason: str) -> Response:
        """Return the page about a flow that has failed, and let the call say so, too."""
        text = f"{reason} Call the tool again to try it once more."
        await self._write(owner, "failure", {"text": text}, _FLOW_SECONDS)
        return _page(status, text)

    @property
    def _redirect_uri(self) -> str:
        return f"{self._base}{self._path}/callback"

    @property
    def _cookie(self) -> str:
        return f"funcmcp-upstream-{self._name}"

    @property
    def _cookie_path(self) -> str:
        return f"{urlsplit(self._base).path}{self._path}"

    def _is_same_origin(self, request: Request) -> bool:
        """Return whether a form comes from a page of this server."""
        parts = urlsplit(self._base)
        return request.headers.get("origin") == f"{parts.scheme}://{parts.netloc}"

    async def _flow_of(self, state: str) -> tuple[ValueOwner, dict[str, Any] | None]:
        """Return the user of a flow, and the flow; None if there is none."""
        mark, _, identifier = state.partition(".")
        owner = ValueOwner(f"principal {mark}")
        if not re.fullmatch("[0-9a-f]{32}", mark):
            return owner, None
        flow = await self._read(owner, "flow")
        if flow is None or not hmac.compare_digest(flow["id"].encode(), identifier.encode()):
            return owner, None
        return owner, flow

    @property
    def _values(self) -> CallerValues:
        if self._services is None or self._services.open_values is None:
            raise RuntimeError("ask_user works in an Upstream that is mounted in an MCPServer.")
        return self._services.open_values()

    async def _read(self, owner: ValueOwner, kind: str) -> dict[str, Any] | None:
        value = await self._values.get(owner, f"upstream {self._name} {kind}")
        record = None if value is None else json.loads(value)
        if not isinstance(record, dict) or record.get("v") != 1:
            return None
        is_readable = all(isinstance(record.get(name), kinds) for name, kinds in _MEMBERS[kind].items())
        return record if is_readable else None

    async def _write(self, owner: ValueOwner, kind: str, record: Mapping[str, Any], seconds: float) -> None:
        value = json.dumps({"v": 1, **record}).encode()
        await self._values.put(owner, f"upstream {self._name} {kind}", value, seconds)

    async def _remove(self, owner: ValueOwner, kind: str) -> bool:
        return await self._values.remove(owner, f"upstream {self._name} {kind}")


@public("funcmcp.upstreams")
def ask_user(  # noqa: PLR0913 - an authorization server, and this server as its client
    name: str,
    *,
    public_url: str,
    authorization_url: str,
    token_url: str,
    client_id: str,
    client_secret: str | None = None,
    credential: Credential | None = None,
    scopes: Sequence[str] = (),
    issuer: str | None = None,
    lists: UpstreamAuth | AuthFunction | None = None,
    clock: Callable[[], float] = time,
) -> UpstreamAuth:
    """Let each user connect an account of their own at the upstream, with a browser, when a call first needs it.

    The tokens are in the state of the server (`MCPServer(state=)`), encrypted, and renewed. Callers without a principal
    are refused. Register ``<public_url>/upstreams/<name>/callback`` as the redirect URI.

    Args:
        name: A name for the upstream, of lower-case letters, digits and hyphens.
        public_url: The URL at which browsers reach this server, without the path of the endpoint.
        authorization_url: The authorization endpoint of the upstream's authorization server.
        token_url: Its token endpoint.
        client_id: The id of this server as a client there.
        client_secret: Its secret, if it has one.
        credential: In place of a secret, as in `funcmcp.client.ClientCredentials`.
        scopes: The scopes to request.
        issuer: The ``iss`` with which the browser returns, for authorization servers that send one (RFC 9207).
        lists: Who reads the lists of the upstream for a user who has not connected an account, as `Upstream.auth`.
            None: they are read without credentials.
        clock: Returns seconds since 1970.

    Raises:
        ValueError: The name is not valid, a URL is neither https nor on this machine, or there are a secret and a
            credential.
    """
    if not _NAME.fullmatch(name):
        raise ValueError("The name of ask_user has lower-case letters, digits and hyphens, such as 'docs'.")
    checked("public_url", public_url)
    checked("authorization_url", authorization_url)
    return _UserGrants(
        name,
        public_url,
        authorization_url,
        TokenClient(token_url, client_id, client_secret, credential),
        scopes,
        issuer=issuer,
        lists=None if lists is None else auth_of(lists),
        clock=clock,
    )


def _owner(principal: Principal) -> ValueOwner:
    return ValueOwner(f"principal {owner_of(principal)}")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _page(status: int, text: str, *, is_html: bool = False) -> Response:
    content = text if is_html else f"<p>{escape(text)}</p>"
    body = (
        '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>Connect an account</title><main>{content}</main></html>\n"
    )
    headers = {
        "content-type": "text/html; charset=utf-8",
        "cache-control": "no-store",
        "content-security-policy": _POLICY,
        "referrer-policy": "same-origin",
    }
    return Response(body, status, headers)
