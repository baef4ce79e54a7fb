"""The flow that connects a user's account at another service: questions in the client, and pages in the browser.

How it works: the first call of a user without an account begins a *flow*. The client is asked to open a page of the
server (an elicitation of mode ``url``). The page says for whom the account is connected, and leads to the authorization
server of the service, which returns to the server with a code. The server exchanges it for tokens.

The user of the browser must be the user of the client: otherwise somebody could send the link to another person, and
get their account. There are two ways to make sure:

- For users of an `OAuthProxy`, the page first sends the browser to the identity provider (`Visits`). Only the user of
  the flow can go on, and the call finds the account.
- For all others, the tokens are stored as *pending*. The page shows a short code, which the user enters in the client.
  Three wrong codes end a pending account.

A flow serves one return from the browser, which has to have the cookie of the page. A call waits a while for the
browser. If that is not enough, or the client can't ask, the user calls again.

Source: MCP 2025-11-25 and 2026-07-28, "client/elicitation", "URL Mode", "Identifying the User" and "Phishing"; RFC
7636; RFC 9207; RFC 6265bis section 4.1.3 (``__Host-``).
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
import re
import secrets
from dataclasses import dataclass, field
from html import escape
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import urlencode, urlsplit

from funcmcp._auth.access import Access
from funcmcp._auth.principal import UpstreamTokenError
from funcmcp._authoring.calling.question_time import pausing_time_limit
from funcmcp._authoring.calling.questions import Elicit, ElicitURL
from funcmcp._grants.accounts import FLOW_SECONDS
from funcmcp._oauth_proxy.failures import PROVIDER_AWAY
from funcmcp._oauth_proxy.page import html_page, shown_name
from funcmcp._oauth_proxy.settings import user_mark
from funcmcp._oauth_proxy.upstream import UpstreamError
from funcmcp._oauth_proxy.web import redirect
from funcmcp._protocol.errors import CannotAskError, MCPError
from funcmcp._state.caller_values import ValueOwner
from funcmcp._state.key_values import StateFullError
from funcmcp._state.line_limit import LineLimit, escaped
from funcmcp._state.seal import base64url
from funcmcp._state.sessions.store import StoreUnavailableError
from funcmcp._transports.http.endpoints.custom_routes import CustomRoute, Response

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from funcmcp._auth.principal import Principal
    from funcmcp._grants.accounts import AccountClient, Accounts
    from funcmcp._oauth_proxy.visits import Visits
    from funcmcp._oauth_proxy.web import WebAnswer, WebRequest
    from funcmcp._server.calls.context import RequestContext
    from funcmcp._transports.http.endpoints.custom_routes import Request

_logger = logging.getLogger("funcmcp")

URL_ELICITATION_REQUIRED: Final = -32042
_COMPLETE: Final = "notifications/elicitation/complete"
_CODE_LETTERS: Final = "BCDFGHJKLMNPQRSTVWXZ"  # no vowels, so that codes are no words
_CODE_LENGTH: Final = 8
_MAX_ATTEMPTS: Final = 3
_MAX_CODE: Final = 4096
MAX_SCOPES, MAX_SCOPE_CHARACTERS = 50, 4_000
"""Scopes of one account, and their characters. They are in the URL of a sign-in."""

_EXPIRED: Final = ("This link has expired", "Call the tool again to get another one.")
_ONCE_MORE: Final = "Call the tool again to try it once more."

BROWSER_SECONDS: float = 45.0
"""Seconds that a call waits for the browser. Many clients end a call after a minute."""

_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """A service at which users have accounts, and the pages of this server for it.

    Attributes:
        title: Its name, for people.
        name: Its name in the configuration and in the log.
        key: The beginning of the keys of questions, and of the names of cookies.
        base: The URL of this server, without the path of the endpoint and a slash at the end.
        path: The path of the pages below it.
        served_path: The path at which the server receives their requests.
        owner_prefix: The beginning of the marks of its owners.
        authorization_url: The authorization endpoint.
        client_id: The id of this server there.
        parameters: More parameters of the authorization request.
        scopes: Scopes that are always requested.
        is_issuer: Returns whether a return of the browser has the right ``iss``, or may have none.
        covers: Returns granted scopes with those that they include.
    """

    title: str
    name: str
    key: str
    base: str
    path: str
    served_path: str
    owner_prefix: str
    authorization_url: str
    client_id: str
    parameters: Mapping[str, str] = field(default_factory=dict)
    scopes: Sequence[str] = ()
    is_issuer: Callable[[str | None], bool]
    covers: Callable[[Sequence[str]], frozenset[str]] | None = None

    @property
    def redirect_uri(self) -> str:
        """The redirect URI to register at the service."""
        return f"{self.base}{self.path}/callback"

    @property
    def cookie(self) -> str:
        """The name of the cookie. ``__Host-`` keeps other hosts of the domain from setting it; http can't have it."""
        prefix = "__Host-" if self.base.startswith("https:") else ""
        return f"{prefix}funcmcp-{self.key}"


class Connector:
    """Connects the accounts of users at one service.

    Args:
        service: The service.
        client: This server as a client of it.
        accounts: The accounts.
        server_name: Returns the name of the server, for people.
        visits: Finds out which user is at a browser; None if all users enter a code.
        clock: Returns seconds since 1970.

    Attributes:
        routes: The routes of the pages.
    """

    def __init__(
        self,
        service: Service,
        client: AccountClient,
        accounts: Accounts,
        *,
        server_name: Callable[[], str],
        visits: Visits | None,
        clock: Callable[[], float],
    ) -> None:
        self._service = service
        self._client = client
        self._accounts = accounts
        self._server_name = server_name
        self._visits = visits
        self._clock = clock
        self._answer_log, self._store_log = LineLimit(), LineLimit()
        self._user_log, self._visit_log = LineLimit(), LineLimit()
        self.routes = (
            self._route("connect", ("GET", "POST"), self._connect),
            self._route("callback", ("GET",), self._callback),
        )
        if visits is not None:
            visits.pages[service.key] = self._visited

    # In the client

    async def ask(
        self, context: RequestContext, principal: Principal, owner: ValueOwner, scopes: Sequence[str]
    ) -> None:
        """Ask the user to connect the account with scopes; return if that is done.

        Raises:
            UpstreamTokenError: It is not done. The text says what the user can do.
            MCPError: The client has to open a page, and then to send the request again (-32042).
            StoreUnavailableError: The store can't be reached.
        """
        await self._raise_failure(owner)
        pending = await self._accounts.read(owner, "pending")
        if pending is None:
            flow = await self._begin(principal, owner, scopes)
            await self._ask_for_browser(context, owner, flow)
            pending = await self._accounts.read(owner, "pending")
        if pending is not None:
            await self._ask_for_code(context, owner, pending)

    async def _ask_for_browser(self, context: RequestContext, owner: ValueOwner, flow: Mapping[str, Any]) -> None:
        """Ask the user to open the page, and wait until the account is connected or pending."""
        title, url = self._service.title, self._url_of(owner, flow)
        message = f"Connect your account at {title}."
        declared = context.client.capabilities.get("elicitation")
        if not isinstance(declared, dict) or "url" not in declared:
            raise UpstreamTokenError("sign_in", f"{message} Open {url} in a browser, and call again.")
        identifier = None
        if not context.client.revision.per_request:
            identifier = hashlib.sha256(flow["id"].encode()).hexdigest()[:32]
        question = ElicitURL(message, url, elicitation_id=identifier)
        with pausing_time_limit(context, "the question for an account"):
            try:
                answer = question.read((await context.ask({self._service.key: question.request()}))[self._service.key])
            except CannotAskError:  # in the middle of a call; the client can open the page before the next one
                raise MCPError(
                    URL_ELICITATION_REQUIRED, message, {"elicitations": [question.request()["params"]]}
                ) from None
            if answer.action != "accept":
                raise UpstreamTokenError("sign_in", f"The user does not connect the account at {title}.")
            await self._wait(owner, flow["id"])
        if identifier is not None:
            await context.notify(_COMPLETE, {"elicitationId": identifier})

    async def _wait(self, owner: ValueOwner, flow_id: str) -> None:
        """Wait until a flow has ended; raise UpstreamTokenError if it has failed or takes long."""
        deadline, pause = monotonic() + BROWSER_SECONDS, _FIRST_PAUSE
        while True:
            await self._raise_failure(owner)
            for kind in ("grant", "pending"):
                record = await self._accounts.read(owner, kind)
                if record is not None and record.get("flow") == flow_id:
                    return
            if monotonic() >= deadline:
                raise UpstreamTokenError(
                    "sign_in", f"Finish connecting the account at {self._service.title} in the browser, and call again."
                )
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    async def _ask_for_code(self, context: RequestContext, owner: ValueOwner, pending: Mapping[str, Any]) -> None:
        """Ask for the code in the browser, and use the pending account if it is right."""
        title, attempt = self._service.title, pending["attempts"]
        key = f"{self._service.key}-code-{attempt}"
        question = Elicit(f"Enter the code that the page of {title} shows.", str)
        with pausing_time_limit(context, "the question for a code"):
            answer = question.read((await context.ask({key: question.request()}))[key])
        if answer.action != "accept":
            raise UpstreamTokenError("sign_in", f"The user does not connect the account at {title}.")
        # The attempt is counted before the code is compared, so that calls at the same time have no more attempts.
        current = await self._accounts.count_attempt(owner, pending["code"], attempt)
        if current is None:
            raise UpstreamTokenError("sign_in", "The code has been used. Call again.")
        typed = re.sub(r"[^A-Z]", "", str(answer.content).upper())
        if hmac.compare_digest(typed.encode(), current["code"].encode()):
            await self._accounts.connect(owner, current["grant"])
            await self._accounts.remove(owner, "pending")
            return
        if attempt + 1 >= _MAX_ATTEMPTS:
            await self._accounts.remove(owner, "pending")
            raise UpstreamTokenError("sign_in", "The code is wrong. Call again to connect the account anew.")
        raise UpstreamTokenError("sign_in", "The code is wrong. Call again, and enter the code of the page.")

    async def _raise_failure(self, owner: ValueOwner) -> None:
        """Raise UpstreamTokenError for a flow that has failed in the browser, once."""
        failure = await self._accounts.read(owner, "failure")
        if failure is not None:
            await self._accounts.remove(owner, "failure")
            raise UpstreamTokenError("sign_in", failure["text"])

    async def _begin(self, principal: Principal, owner: ValueOwner, scopes: Sequence[str]) -> dict[str, Any]:
        """Return the flow of a user. One that has begun goes on, so that calls at the same time have one link.

        Scopes that it lacks are added, unless the browser is at the service already: then another one begins.
        """
        flow = await self._accounts.read(owner, "flow")
        if flow is not None and set(scopes) <= set(flow["scopes"]):
            return flow
        is_visited = self._visits is not None and principal.issuer == self._visits.issuer
        fresh = {
            "id": secrets.token_urlsafe(24),
            "verifier": secrets.token_urlsafe(48),
            "person": principal.name or principal.subject,
            "subject": principal.subject if is_visited else None,
            "cookie": "",
        }

        def begin(current: dict[str, Any] | None) -> dict[str, Any]:
            nonlocal flow
            earlier = () if current is None else current["scopes"]
            if current is None or not set(scopes) <= set(earlier):
                members = fresh if current is None or current["cookie"] else current
                flow = {**members, "scopes": list(dict.fromkeys([*self._service.scopes, *earlier, *scopes]))}
                return flow
            flow = current
            return current

        await self._accounts.change(owner, "flow", begin, FLOW_SECONDS)
        return cast("dict[str, Any]", flow)

    def _url_of(self, owner: ValueOwner, flow: Mapping[str, Any]) -> str:
        """Return the URL of the page that begins a flow."""
        return f"{self._pages}/connect?{urlencode({'flow': self._state_of(owner, flow)})}"

    # In the browser

    async def _connect(self, request: Request) -> Response:
        """Show whose account is connected; after the button, lead to the authorization server."""
        state = request.query_params.get("flow", "")
        owner, flow = await self._flow_of(state)
        if flow is None:
            return self._page(400, *_EXPIRED)
        if request.method == "GET":
            return self._question(state, flow)
        if not self._is_same_origin(request):
            return self._page(403, "The form came from another page", "Open the link again.")
        if self._visits is None or not isinstance(flow.get("subject"), str):
            return _response(await self._to_service(owner, flow))
        try:
            return _response(await self._visits.begin(self._service.key, state))
        except UpstreamError as error:
            kind, reason = type(error).__name__, escaped(str(error))
            self._visit_log.write(
                "event=grant_visit_failed service=%s kind=%s reason=%s", self._service.name, kind, reason
            )
            return self._page(503, "You can't sign in now", error.advice or PROVIDER_AWAY.user)

    async def _visited(self, request: WebRequest, state: str, subject: str) -> WebAnswer:
        """Answer the return from the identity provider."""
        del request
        try:
            return await self._go_on(state, subject)
        except (StateFullError, StoreUnavailableError) as error:
            return self._not_stored(error)

    async def _go_on(self, state: str, subject: str) -> WebAnswer:
        """Lead the browser of a user to the authorization server, if it is the user of the flow."""
        owner, flow = await self._flow_of(state)
        if flow is None:
            return self._html(400, *_EXPIRED)
        expected = flow.get("subject")
        if not isinstance(expected, str) or not hmac.compare_digest(expected.encode(), subject.encode()):
            self._user_log.write(
                "event=grant_of_another_user service=%s user=%s browser=%s",
                self._service.name,
                user_mark(expected if isinstance(expected, str) else None),
                user_mark(subject),
            )
            text = "You are signed in as another user than the one who called the tool. Nothing was connected."
            advice = "If somebody has sent it to you, close this page."
            advice_of_owner = "If it is yours, sign in as that user, and open it again."
            return self._html(403, "This link is for another user", text, advice, advice_of_owner)
        return await self._to_service(owner, flow)

    async def _to_service(self, owner: ValueOwner, flow: Mapping[str, Any]) -> WebAnswer:
        """Return the redirect to the authorization server, with the cookie that the return must have."""
        cookie = secrets.token_urlsafe(24)
        current = await self._accounts.bind_flow(owner, flow["id"], _digest(cookie))
        if current is None:  # it has ended meanwhile
            return self._html(400, *_EXPIRED)
        flow, service = current, self._service
        parameters = {
            **service.parameters,
            "response_type": "code",
            "client_id": service.client_id,
            "redirect_uri": service.redirect_uri,
            "state": self._state_of(owner, flow),
            "code_challenge": base64url(hashlib.sha256(flow["verifier"].encode()).digest()),
            "code_challenge_method": "S256",
            "scope": " ".join(flow["scopes"]),
        }
        present = {name: value for name, value in parameters.items() if value}
        secure = "; Secure" if service.base.startswith("https:") else ""
        header = f"{service.cookie}={cookie}; Path=/; Max-Age={int(FLOW_SECONDS)}; HttpOnly; SameSite=Lax{secure}"
        return redirect(303, service.authorization_url, present, ("set-cookie", header))

    async def _callback(self, request: Request) -> Response:
        """Exchange the code of the authorization server, and store the account."""
        query, title = request.query_params, self._service.title
        owner, flow = await self._flow_of(query.get("state", ""))
        cookie = request.cookies.get(self._service.cookie, "")
        if flow is None or not flow["cookie"] or not hmac.compare_digest(_digest(cookie), flow["cookie"]):
            return self._page(
                400, "This is not the return of a flow that this browser has begun", "Call the tool again."
            )
        if not await self._accounts.take_flow(owner, flow["id"]):  # another request has used it
            return self._page(400, "This link was used before", "Call the tool again.")
        if not self._service.is_issuer(query.get("iss")):
            return await self._failed(owner, 400, "The answer came from another authorization server.")
        code = query.get("code", "")
        if not 0 < len(code) <= _MAX_CODE or "error" in query:
            reason = escaped(f"{query.get('error')}: {query.get('error_description', '')}")
            self._answer_log.write("event=grant_failed service=%s step=authorize reason=%s", self._service.name, reason)
            return await self._failed(owner, 400, f"{title} has not allowed it.")
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self._service.redirect_uri,
            "code_verifier": flow["verifier"],
        }
        try:
            tokens = await self._client.tokens(form, self._clock())
        except UpstreamTokenError:
            return await self._failed(owner, 502, f"{title} has issued no token.")
        grant = {
            "access_token": tokens.access_token,
            "until": tokens.until,
            "refresh_token": tokens.refresh_token,
            "scopes": list(flow["scopes"] if tokens.scopes is None else tokens.scopes),
            "flow": flow["id"],
        }
        await self._report_missing(owner, flow["scopes"], grant["scopes"])
        if isinstance(flow.get("subject"), str):
            await self._accounts.connect(owner, grant)
            _logger.info("event=grant_connected service=%s user=%s", self._service.name, user_mark(flow["subject"]))
            return self._page(200, f"{title} is connected", "Close this page, and go back to your application.")
        return await self._show_code(owner, flow, grant)

    async def _report_missing(self, owner: ValueOwner, requested: Sequence[str], granted: Sequence[str]) -> None:
        """Record which scopes the user has not allowed, so that the call does not ask for them again."""
        if self._service.covers is None:
            return
        # Many services do not list scopes such as offline_access, which are always requested.
        allowed = self._service.covers(granted).union(self._service.scopes)
        missing = [scope for scope in requested if scope not in allowed]
        if missing:
            text = f"{self._service.title} has not allowed: {' '.join(missing)}. {_ONCE_MORE}"
            await self._accounts.write(owner, "failure", {"text": text}, FLOW_SECONDS)

    async def _show_code(self, owner: ValueOwner, flow: Mapping[str, Any], grant: Mapping[str, Any]) -> Response:
        """Store a pending account, and show the code for the client."""
        code = "".join(secrets.choice(_CODE_LETTERS) for _ in range(_CODE_LENGTH))
        pending = {"code": code, "attempts": 0, "grant": grant, "flow": flow["id"]}
        await self._accounts.write(owner, "pending", pending, FLOW_SECONDS)
        half = _CODE_LENGTH // 2
        content = (
            "<p>Go back to your application, and enter this code when it asks for it:</p>"
            f"<h1>{code[:half]}-{code[half:]}</h1><p>Tell it to nobody.</p>"
        )
        return _response(html_page(200, f"Connect {self._service.title}", content, referrer="no-referrer"))

    async def _failed(self, owner: ValueOwner, status: int, reason: str) -> Response:
        """Return the page about a flow that has failed, and let the call say so, too."""
        text = f"{reason} {_ONCE_MORE}"
        await self._accounts.write(owner, "failure", {"text": text}, FLOW_SECONDS)
        return self._page(status, "The account is not connected", text)

    def _question(self, state: str, flow: Mapping[str, Any]) -> Response:
        """Return the page that says whose account is connected."""
        title, person = shown_name(self._service.title), shown_name(flow["person"])
        action = f"{urlsplit(self._pages).path}/connect?{urlencode({'flow': state})}"
        permissions = "".join(f"<li>{escape(scope)}</li>" for scope in flow["scopes"])
        content = (
            f"<h1>Connect {title} for {person}?</h1>"
            f"<p>This lets {shown_name(self._server_name())} use the account at <b>{title}</b> for <b>{person}</b>.</p>"
            + (f"<p>It asks for:</p><ul>{permissions}</ul>" if permissions else "")
            + "<p>Continue only if you are that person and have just asked for it yourself. If somebody has sent you "
            "this link, close the page.</p>"
            f'<form method="post" action="{escape(action)}"><button>Continue</button></form>'
        )
        return _response(html_page(200, f"Connect {self._service.title}", content, referrer="same-origin"))

    async def _flow_of(self, state: str) -> tuple[ValueOwner, dict[str, Any] | None]:
        """Return the user of a flow, and the flow; None if there is none."""
        mark, _, identifier = state.partition(".")
        owner = ValueOwner(f"{self._service.owner_prefix}{mark}")
        if not re.fullmatch("[0-9a-f]{32}", mark):
            return owner, None
        flow = await self._accounts.read(owner, "flow")
        if flow is None or not hmac.compare_digest(flow["id"].encode(), identifier.encode("utf-8", "surrogatepass")):
            return owner, None
        return owner, flow

    def _state_of(self, owner: ValueOwner, flow: Mapping[str, Any]) -> str:
        return f"{owner.mark.removeprefix(self._service.owner_prefix)}.{flow['id']}"

    def _route(
        self, name: str, methods: tuple[str, ...], handler: Callable[[Request], Awaitable[Response]]
    ) -> CustomRoute:
        async def answer(request: Request) -> Response:
            try:
                return await handler(request)
            except (StateFullError, StoreUnavailableError) as error:
                return _response(self._not_stored(error))

        return CustomRoute(f"{self._service.served_path}/{name}", methods, answer, Access(allow_anonymous=True))

    def _not_stored(self, error: Exception) -> WebAnswer:
        self._store_log.write("event=grant_not_stored service=%s kind=%s", self._service.name, type(error).__name__)
        return self._html(503, "The server can't store the account now", "Try again later.")

    @property
    def _pages(self) -> str:
        return f"{self._service.base}{self._service.path}"

    def _is_same_origin(self, request: Request) -> bool:
        """Return whether a form comes from a page of this server."""
        parts = urlsplit(self._service.base)
        return request.headers.get("origin") == f"{parts.scheme}://{parts.netloc}"

    def _page(self, status: int, title: str, *advice: str) -> Response:
        return _response(self._html(status, title, *advice))

    def _html(self, status: int, title: str, *advice: str) -> WebAnswer:
        paragraphs = "".join(f"<p>{escape(sentence)}</p>" for sentence in advice)
        content = f'<p class="note">{shown_name(self._server_name())}</p><h1>{escape(title)}</h1>{paragraphs}'
        return html_page(status, title, content, referrer="no-referrer")


def _response(answer: WebAnswer) -> Response:
    return Response(answer.body, answer.status, answer.headers)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
