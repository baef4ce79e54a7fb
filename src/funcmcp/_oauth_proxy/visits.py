"""Visits: which user of the identity provider is at a browser, for pages that are not part of a client's sign-in.

How it works: a page of the server calls `Visits.begin`, and sends the browser to the identity provider. The provider
returns to the callback of the proxy, with a state of its own kind. A cookie binds the state to the browser. The page
then gets the subject of the user. Most users are signed in there already, and see nothing of it.

A visit gives nobody a token: what the provider issues is dropped.

Source: MCP 2026-07-28, "client/elicitation", "Identifying the User" and "Phishing"; OpenID Connect Core 1.0 section
3.1.2; RFC 9700 section 4.7 (CSRF).
"""

from __future__ import annotations

import binascii
import hashlib
import hmac
import os
from typing import TYPE_CHECKING, Final, NamedTuple

from funcmcp._oauth_proxy.failures import PROVIDER_AWAY, PROVIDER_DENIED, SUBJECT_OF_PROGRAM
from funcmcp._oauth_proxy.flows import FLOW_SECONDS, challenge_of
from funcmcp._oauth_proxy.page import refusal_page
from funcmcp._oauth_proxy.settings import log_event
from funcmcp._oauth_proxy.upstream import AuthorizationRequest, UpstreamError, UpstreamUnavailableError
from funcmcp._oauth_proxy.web import MAX_QUERY, Parameters, ParametersError, cookies_of, redirect
from funcmcp._state.line_limit import LineLimit, escaped
from funcmcp._state.records import to_record, value_of
from funcmcp._state.seal import base64url

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from funcmcp._oauth_proxy.settings import ProxySettings
    from funcmcp._oauth_proxy.upstream import SignIn
    from funcmcp._oauth_proxy.web import WebAnswer, WebRequest

    VisitedPage = Callable[[WebRequest, str, str], Awaitable[WebAnswer]]
    """Answers the request with which the browser returns, for the detail of the visit and the subject of the user."""

_PURPOSE: Final = "oauth visit"
_MAX_STATE: Final = 4096
_MAX_CODE: Final = 4096
_AGAIN: Final = "Go back to your application, and call the tool again to get another link."


class Visit(NamedTuple):
    """A visit.

    Attributes:
        page: The name of the page that the browser returns to.
        detail: What that page needs to know.
        secret: Random bytes, from which the values are derived that bind the visit to the browser and the provider.
        began: When it began, in seconds since 1970.
    """

    page: str
    detail: str
    secret: bytes
    began: int

    def __repr__(self) -> str:
        return f"Visit({self.page!r}, ..., began={self.began!r})"

    def value(self, name: str) -> str:
        """Return the secret value with a name: 43 characters that a header and a URL can contain."""
        return base64url(hmac.digest(self.secret, name.encode(), hashlib.sha256))


class Visits:
    """The visits of one proxy.

    Args:
        settings: The configuration of the proxy.

    Attributes:
        issuer: The issuer of the proxy, which is the issuer of its principals.
        pages: The pages by name.
        sign_outs: Functions that are called with the subject of a user who is signed out.
    """

    def __init__(self, settings: ProxySettings) -> None:
        self.issuer: str = settings.issuer
        self.pages: dict[str, VisitedPage] = {}
        self.sign_outs: list[Callable[[str], Awaitable[None]]] = []
        self._settings = settings
        self._log = LineLimit()

    async def begin(self, page: str, detail: str) -> WebAnswer:
        """Return the redirect to the identity provider; raise UpstreamUnavailableError."""
        visit = Visit(page, detail, os.urandom(32), int(self._settings.clock()))
        members = {"page": page, "detail": detail, "secret": base64url(visit.secret), "began": visit.began}
        request = AuthorizationRequest(
            redirect_uri=self._settings.callback,
            state=self._settings.keys.conceal(_PURPOSE, to_record(members, {})),
            challenge=challenge_of(visit.value("verifier")),
            nonce=visit.value("nonce"),
        )
        url = await self._settings.upstream.authorization_url(request)
        cookie = f"{self._cookie(visit)}={visit.value('cookie')}; Max-Age={FLOW_SECONDS}{self._attributes}"
        return redirect(303, url, {}, ("set-cookie", cookie))

    async def answer(self, request: WebRequest) -> WebAnswer | None:
        """Answer the return of a browser; None if its state is not that of a visit."""
        if not self.pages or len(request.query) > 2 * MAX_QUERY:
            return None
        try:
            parameters = Parameters(request.query)
        except ParametersError:
            return None
        visit = self._visit_in(parameters.get("state") or "")
        if visit is None or visit.page not in self.pages:
            return None
        if await self._settings.rates.browsers.take(request.caller):  # each return sends a code to the provider
            return refusal_page(request, 429, "Too many requests", "Wait a minute, then open the link again.")
        cookie = cookies_of(request).get(self._cookie(visit)) or ""
        if not hmac.compare_digest(cookie.encode("utf-8", "surrogatepass"), visit.value("cookie").encode()):
            reason = "You were sent here by a link of somebody else, or your browser does not accept cookies."
            return refusal_page(request, 403, "This was not started in this browser", reason, _AGAIN)
        answer = await self._returned(request, parameters, visit)
        return answer.with_headers(("set-cookie", f"{self._cookie(visit)}=; Max-Age=0{self._attributes}"))

    async def _returned(self, request: WebRequest, parameters: Parameters, visit: Visit) -> WebAnswer:
        """Find out who the user is, and let the page answer."""
        try:
            if not await self._settings.is_from_upstream(parameters.get("iss")):
                return refusal_page(request, 403, "The answer came from another identity provider", _AGAIN)
            code = parameters.get("code")
            if parameters.get("error") is not None or code is None or len(code) > _MAX_CODE:
                return refusal_page(request, 403, "The identity provider has not signed you in", _AGAIN)
            sign_in = await self._exchanged(code, visit)
        except UpstreamUnavailableError as error:
            self._log_failure(error)
            return refusal_page(request, 503, "You can't sign in now", error.advice or PROVIDER_AWAY.user, _AGAIN)
        except UpstreamError as error:
            self._log_failure(error)
            advice = error.advice or PROVIDER_DENIED.user
            return refusal_page(request, 403, "You are not signed in", advice, _AGAIN)
        if sign_in.user is None:
            return refusal_page(request, 403, "The identity provider has not signed you in", _AGAIN)
        if self._settings.is_of_program(sign_in.user.subject):
            return refusal_page(request, 403, "You may not use this server", SUBJECT_OF_PROGRAM.user)
        log_event("visited", "-", sign_in.user.subject)
        return await self.pages[visit.page](request, visit.detail, sign_in.user.subject)

    async def _exchanged(self, code: str, visit: Visit) -> SignIn:
        return await self._settings.upstream.exchange(
            code, redirect_uri=self._settings.callback, verifier=visit.value("verifier"), nonce=visit.value("nonce")
        )

    def _log_failure(self, error: UpstreamError) -> None:
        self._log.write("event=oauth_visit_failed kind=%s reason=%s", type(error).__name__, escaped(str(error)))

    def _visit_in(self, state: str) -> Visit | None:
        """Return the visit in a state; None if the state is not one of a visit, or has expired."""
        payload = self._settings.keys.reveal(_PURPOSE, state) if len(state) <= _MAX_STATE else None
        match value_of(payload):
            case {"v": 1, "page": str(page), "detail": str(detail), "secret": str(secret), "began": int(began)}:
                if -FLOW_SECONDS < self._settings.clock() - began < FLOW_SECONDS:
                    return Visit(page, detail, _bytes_of(secret), began)
        return None

    def _cookie(self, visit: Visit) -> str:
        """Return the name of the cookie. ``__Host-`` keeps other hosts of the domain from setting it."""
        prefix = "__Host-" if self.issuer.startswith("https:") else ""
        return f"{prefix}oauth-visit-{visit.value('mark')[:8]}"

    @property
    def _attributes(self) -> str:
        secure = "; Secure" if self.issuer.startswith("https:") else ""
        return f"; Path=/; HttpOnly; SameSite=Lax{secure}"


def _bytes_of(text: str) -> bytes:
    return binascii.a2b_base64(text.replace("-", "+").replace("_", "/") + "=")
