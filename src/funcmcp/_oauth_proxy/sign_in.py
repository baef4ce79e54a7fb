"""The endpoints that the user's browser visits: authorize, consent and callback.

How it works:

1. ``GET /oauth/authorize``: the client's request is checked. Faults of the client or its redirect URI are shown on a
   page, all others go back to the client. The page asks the user; a cookie (*ask*) binds it to the browser. Nothing has
   been sent to the identity provider.
2. ``POST /oauth/consent``: the form must come from the page, by its origin, its token and the cookie. If the user
   allows it, a second cookie (*go*) is set, and the browser goes to the identity provider with the flow as ``state``.
3. ``GET /oauth/callback``: the state and the *go* cookie must belong together, so that a user who did not consent in
   this browser can't be led into the flow of another one. The client gets a code that contains the provider's code.

Source: RFC 6749 sections 3.1 and 4.1, RFC 7636 section 4, RFC 8707, RFC 9207, RFC 9700 section 4 (CSRF, mix-up, open
redirects); OpenID Connect Core 1.0 section 3.1.2.6 (errors); MCP security best practices, "Confused Deputy Problem".
"""

from __future__ import annotations

import hmac
import re
from typing import TYPE_CHECKING, Final

from funcmcp._auth.authenticator import to_description
from funcmcp._oauth_proxy.client_documents import DocumentError
from funcmcp._oauth_proxy.entra_errors import explanation_of
from funcmcp._oauth_proxy.failures import (
    CLIENT_DOCUMENT,
    CLIENT_NOT_ALLOWED,
    CLIENT_UNKNOWN,
    OTHER_ADDRESS,
    OTHER_BROWSER,
    OTHER_PROVIDER,
    OTHER_RESOURCE,
    PROVIDER_AWAY,
    PROVIDER_DENIED,
    PROVIDER_ERROR,
    REQUEST,
    TOO_MANY,
    Failure,
)
from funcmcp._oauth_proxy.flows import (
    ANY_KEY,
    FLOW_SECONDS,
    Flow,
    challenge_of,
    new_secret,
    of_state,
    of_transaction,
    to_code,
    to_state,
    to_transaction,
)
from funcmcp._oauth_proxy.page import Question, consent_page, refusal_page
from funcmcp._oauth_proxy.redirect_uris import is_registered
from funcmcp._oauth_proxy.settings import IGNORED_SCOPES, ClientNotAllowedError, log_event
from funcmcp._oauth_proxy.upstream import AuthorizationRequest, UpstreamUnavailableError, failed
from funcmcp._oauth_proxy.web import MAX_QUERY, Parameters, ParametersError, cookies_of, form_of, redirect
from funcmcp._protocol.codec import encode

if TYPE_CHECKING:
    from funcmcp._oauth_proxy.clients import OAuthClient
    from funcmcp._oauth_proxy.settings import ProxySettings
    from funcmcp._oauth_proxy.web import WebAnswer, WebRequest

_CHALLENGE: Final = re.compile(r"[A-Za-z0-9_-]{43}")
_MAX_STATE: Final = 2048
_MAX_CODE: Final = 4096
_MAX_COOKIES: Final = 8
_REFUSED_BY_USER: Final = frozenset({"access_denied", "consent_required", "interaction_required", "login_required"})

_START_AGAIN: Final = "Go back to your application and start the sign-in again."
_CLOSE_OR_START_AGAIN: Final = (
    "If you did not start a sign-in, close this page. Otherwise go back to your application and start it again."
)
_STRANGE_REQUEST: Final = "The request of your application is malformed. Update it, or report this to its developers."


class _RequestError(Exception):
    """An authorization request is refused, and the client gets the error."""

    def __init__(self, error: str, description: str) -> None:
        super().__init__(description)
        self.error = error


async def authorize(settings: ProxySettings, request: WebRequest) -> WebAnswer:
    """Check an authorization request and ask the user, or refuse it."""
    if await settings.rates.authorizations.take(request.caller):
        return _too_many(settings, request)
    if len(request.query) > MAX_QUERY:
        settings.log.refused(REQUEST, "the query is too long")
        return refusal_page(request, 400, "The request is too long", _STRANGE_REQUEST)
    try:
        parameters = Parameters(request.query)
    except ParametersError as error:
        settings.log.refused(REQUEST, error)
        return refusal_page(request, 400, "The request is malformed", str(error), _STRANGE_REQUEST)
    try:
        client = await settings.find_client(parameters.get("client_id"))
    except DocumentError as error:
        settings.log.refused(CLIENT_DOCUMENT, error)
        advice = "This is a fault of the application or its host: report it to its developers."
        return refusal_page(request, 400, "The server can't find out about your application", str(error), advice)
    except ClientNotAllowedError:
        settings.log.refused(CLIENT_NOT_ALLOWED, "a sign-in")
        advice = f"Ask the operator of {request.server} which applications it accepts, or to add yours."
        return refusal_page(
            request, 403, "This server does not accept your application", "Nothing was sent to it.", advice
        )
    if client is None:
        settings.log.refused(CLIENT_UNKNOWN, "a sign-in")
        return refusal_page(
            request,
            400,
            "The server does not know your application",
            "Its registration is missing or has become invalid.",
            f"Remove {request.server} from your application and add it again. It then registers anew.",
        )
    return _ask_user(settings, request, parameters, client)


def _ask_user(settings: ProxySettings, request: WebRequest, parameters: Parameters, client: OAuthClient) -> WebAnswer:
    """Ask the user for a client, or answer the client that its request is refused."""
    redirect_uri = _redirect_uri(parameters, client)
    if redirect_uri is None:
        settings.log.refused(OTHER_ADDRESS, "a sign-in", client=client.key)
        return refusal_page(
            request,
            400,
            "The address to return to is not registered",
            "Your application asks to return to an address that it has not registered, so nothing was sent there.",
            f"Remove {request.server} from your application and add it again.",
        )
    state = parameters.get("state")
    try:
        _check(settings, parameters)
        _check_challenge(parameters, client)
        jkt = _key(settings, parameters, client)
        scopes = _scopes(settings, parameters)
    except _RequestError as error:
        failure = OTHER_RESOURCE if error.error == "invalid_target" else REQUEST
        settings.log.refused(failure, f"{error.error}: {error}", client=client.key)
        return _error_redirect(settings, 302, redirect_uri, state, error.error, str(error))
    flow = Flow(
        secret=new_secret(),
        client=client.key,
        redirect_uri=redirect_uri,
        state=state,
        scopes=scopes,
        challenge=parameters.get("code_challenge") or "",
        refreshes=client.refreshes,
        jkt=jkt,
        began=int(settings.clock()),
    )
    log_event("asked", client.key, scopes=scopes)
    return _question(settings, request, flow, client)


async def consent(settings: ProxySettings, request: WebRequest) -> WebAnswer:
    """Take the decision of the user, and send the browser on."""
    if await settings.rates.browsers.take(request.caller):
        return _too_many(settings, request)
    if request.headers.get("origin") != settings.origin:
        return _not_this_page(settings, request)
    if request.headers.get("sec-fetch-site", "same-origin") != "same-origin":
        return _not_this_page(settings, request)
    try:
        form = form_of(request)
    except ParametersError as error:
        settings.log.refused(REQUEST, error)
        return refusal_page(request, 400, "The form is malformed", str(error), _START_AGAIN)
    flow = of_transaction(settings.keys, form.get("transaction") or "", settings.clock())
    if flow is None:
        settings.log.refused(OTHER_BROWSER, "no valid transaction")
        return refusal_page(request, 400, "This page has expired", "It is valid for ten minutes.", _START_AGAIN)
    cookie = cookies_of(request).get(_cookie_name(settings, "ask", flow))
    if not _is_bound(cookie, flow, "ask") or not _equal(form.get("token"), flow.value("token")):
        return _not_this_page(settings, request)
    forget = _forget(settings, _cookie_name(settings, "ask", flow))
    decision = form.get("decision")
    if decision != "allow":
        log_event("denied", flow.client, scopes=flow.scopes)
        return _error_redirect(
            settings, 303, flow.redirect_uri, flow.state, "access_denied", "The user has denied it.", forget
        )
    log_event("allowed", flow.client, scopes=flow.scopes)
    now = settings.clock()
    upstream_request = AuthorizationRequest(
        redirect_uri=settings.callback,
        state=to_state(settings.keys, flow, now),
        challenge=challenge_of(flow.value("verifier")),
        nonce=flow.value("nonce"),
    )
    try:
        url = await settings.upstream.authorization_url(upstream_request)
    except UpstreamUnavailableError as error:
        settings.log.upstream_failed("authorize", error)
        reason = error.advice or PROVIDER_AWAY.user
        return _error_redirect(settings, 303, flow.redirect_uri, flow.state, "temporarily_unavailable", reason, forget)
    go = _set_cookies(settings, request, "go", flow)
    return redirect(303, url, {}, forget, *go)


async def callback(settings: ProxySettings, request: WebRequest) -> WebAnswer:
    """Take the answer of the identity provider, and give the client its code."""
    if await settings.rates.browsers.take(request.caller):
        return _too_many(settings, request)
    if len(request.query) > MAX_QUERY * 2:
        settings.log.refused(REQUEST, "the query of the callback is too long")
        return refusal_page(request, 400, "The answer of the identity provider is too long", _START_AGAIN)
    try:
        parameters = Parameters(request.query)
    except ParametersError as error:
        settings.log.refused(REQUEST, error)
        return refusal_page(request, 400, "The answer of the identity provider is malformed", _START_AGAIN)
    flow = of_state(settings.keys, parameters.get("state") or "", settings.clock())
    if flow is None:
        settings.log.refused(OTHER_BROWSER, "no valid state")
        return refusal_page(
            request, 400, "This sign-in has expired", "It has to be completed in ten minutes.", _START_AGAIN
        )
    name = _cookie_name(settings, "go", flow)
    if not _is_bound(cookies_of(request).get(name), flow, "go"):
        settings.log.refused(OTHER_BROWSER, "no cookie", client=flow.client)
        return refusal_page(
            request,
            403,
            "This sign-in was not started in this browser",
            "You were sent here by a link of somebody else, or your browser does not accept cookies.",
            _CLOSE_OR_START_AGAIN,
        )
    try:
        is_from_upstream = await settings.is_from_upstream(parameters.get("iss"))
    except UpstreamUnavailableError as error:
        settings.log.upstream_failed("callback", error)
        return _error_redirect(
            settings,
            302,
            flow.redirect_uri,
            flow.state,
            "temporarily_unavailable",
            error.advice or PROVIDER_AWAY.user,
            _forget(settings, name),
        )
    if not is_from_upstream:
        settings.log.refused(OTHER_PROVIDER, f"it names {parameters.get('iss')!r:.200}", client=flow.client)
        return refusal_page(request, 403, "The answer came from another identity provider", _START_AGAIN)
    return _to_client(settings, parameters, flow, _forget(settings, name))


def _to_client(settings: ProxySettings, parameters: Parameters, flow: Flow, forget: tuple[str, str]) -> WebAnswer:
    """Return the redirect to the client, with its code or with an error."""
    code = parameters.get("code")
    if parameters.get("error") is None and code is not None and len(code) <= _MAX_CODE:
        log_event("returned", flow.client, scopes=flow.scopes)
        answer = {"code": to_code(settings.keys, flow, code, settings.clock()), "state": flow.state}
        return redirect(302, flow.redirect_uri, {**answer, "iss": settings.issuer}, forget)
    error, sentence = parameters.get("error") or "no code", parameters.get("error_description") or ""
    failure = PROVIDER_DENIED if error in _REFUSED_BY_USER else PROVIDER_ERROR
    reason = f"{error}: {sentence}"
    failed_sign_in = failed(UpstreamUnavailableError, failure, reason)
    description = _description_of(failure, sentence)
    explanation = explanation_of(reason)
    if explanation is not None:
        failed_sign_in = UpstreamUnavailableError(f"{explanation.code}: {explanation.operator} ({reason})")
        description = explanation.user
    settings.log.upstream_failed("sign-in", failed_sign_in, is_of_browser=True)
    code_of_error = "server_error"
    if error in _REFUSED_BY_USER:
        code_of_error = "access_denied"
    elif error == "temporarily_unavailable":
        code_of_error = error
    return _error_redirect(settings, 302, flow.redirect_uri, flow.state, code_of_error, description, forget)


def _description_of(failure: Failure, sentence: str) -> str:
    """Return what the client may show for an error of the provider, with the provider's sentence.

    Sentences of Entra ID are left out: they have ids of the tenant and of the user.
    """
    sentence = to_description(sentence.strip())
    return failure.user if not sentence or "AADSTS" in sentence else f"{failure.user} It says: {sentence}"


def _redirect_uri(parameters: Parameters, client: OAuthClient) -> str | None:
    """Return where the user returns to; None if the client has not registered it."""
    uri = parameters.get("redirect_uri")
    if uri is None:
        return client.redirect_uris[0] if len(client.redirect_uris) == 1 else None
    return uri if is_registered(uri, client.redirect_uris) else None


def _check(settings: ProxySettings, parameters: Parameters) -> None:
    """Raise _RequestError if the client requests what the proxy does not do."""
    for name in ("request", "request_uri"):
        if parameters.get(name) is not None:
            raise _RequestError(f"{name}_not_supported", f"The parameter {name} is not supported.")
    # Measured as in the transaction: control characters take six bytes there, and the form has a limit.
    if len(encode(parameters.get("state") or "")) > _MAX_STATE + len('""'):
        raise _RequestError("invalid_request", f"The state may have {_MAX_STATE} bytes.")
    if parameters.get("response_type") != "code":
        raise _RequestError("unsupported_response_type", "The response_type must be code.")
    if parameters.get("response_mode") not in {None, "query"}:
        raise _RequestError("invalid_request", "The response_mode must be query.")
    if len(parameters.resources) > 1 or not all(map(settings.is_resource, parameters.resources)):
        raise _RequestError("invalid_target", f"The resource must be {settings.url}.")
    if "none" in parameters.words("prompt"):
        raise _RequestError("interaction_required", "The user has to be asked.")


def _check_challenge(parameters: Parameters, client: OAuthClient) -> None:
    """Raise _RequestError for a request without PKCE, unless it is of a client that needs none."""
    challenge, method = parameters.get("code_challenge"), parameters.get("code_challenge_method")
    if challenge is None and method is None and not client.needs_pkce:
        return
    if method != "S256":
        raise _RequestError("invalid_request", "PKCE is required, with the code_challenge_method S256.")
    if not _CHALLENGE.fullmatch(challenge or ""):
        raise _RequestError("invalid_request", "The code_challenge must have 43 characters of base64url.")


def _key(settings: ProxySettings, parameters: Parameters, client: OAuthClient) -> str | None:
    """Return the thumbprint of the key to which the code is to be bound (RFC 9449 section 10); None without one.

    `ANY_KEY`: the client has said that it always has a key (section 5.2), and has not named it yet.
    """
    if settings.dpop is None:
        return None
    jkt = parameters.get("dpop_jkt")
    if jkt is None:
        return ANY_KEY if client.has_key else None
    if not _CHALLENGE.fullmatch(jkt):
        raise _RequestError("invalid_request", "The dpop_jkt must have 43 characters of base64url.")
    return jkt


def _scopes(settings: ProxySettings, parameters: Parameters) -> tuple[str, ...]:
    """Return the scopes that a client requests; all scopes if it names none. Raise _RequestError for an unknown one."""
    requested = [scope for scope in parameters.words("scope") if scope not in IGNORED_SCOPES]
    if not all(scope in settings.scopes for scope in requested):
        raise _RequestError("invalid_scope", f"The scopes are: {' '.join(settings.scopes)}.")
    return tuple(scope for scope in settings.scopes if not requested or scope in requested)


def _question(settings: ProxySettings, request: WebRequest, flow: Flow, client: OAuthClient) -> WebAnswer:
    question = Question(
        server=request.server,
        icons=request.icons,
        upstream=settings.upstream.name,
        client=client,
        redirect_uri=flow.redirect_uri,
        permissions=[settings.scopes[scope] for scope in flow.scopes],
        action=f"{settings.issuer}/oauth/consent",
        transaction=to_transaction(settings.keys, flow),
        token=flow.value("token"),
    )
    return consent_page(question).with_headers(*_set_cookies(settings, request, "ask", flow))


def _error_redirect(
    settings: ProxySettings,
    status: int,
    redirect_uri: str,
    state: str | None,
    error: str,
    description: str,
    *headers: tuple[str, str],
) -> WebAnswer:
    parameters = {"error": error, "error_description": description, "state": state, "iss": settings.issuer}
    return redirect(status, redirect_uri, parameters, *headers)


def _too_many(settings: ProxySettings, request: WebRequest) -> WebAnswer:
    settings.log.refused(TOO_MANY, "the browser")
    return refusal_page(request, 429, "Too many sign-ins", "Wait a minute, then start the sign-in again.")


def _not_this_page(settings: ProxySettings, request: WebRequest) -> WebAnswer:
    settings.log.refused(OTHER_BROWSER, "the form of the page")
    return refusal_page(
        request,
        403,
        "This was not confirmed on the page of this server",
        "The form came from another page or another browser, or your browser does not accept cookies.",
        _CLOSE_OR_START_AGAIN,
    )


def _equal(received: str | None, expected: str) -> bool:
    return received is not None and hmac.compare_digest(received.encode("utf-8", "surrogatepass"), expected.encode())


def _cookie_prefix(settings: ProxySettings, kind: str) -> str:
    """Return how the names of cookies begin. ``__Host-`` keeps other hosts of the domain from setting them.

    Over http, which is for development on a loopback address, browsers don't accept cookies with this prefix.
    """
    return f"__Host-oauth-{kind}-" if settings.issuer.startswith("https:") else f"oauth-{kind}-"


def _cookie_name(settings: ProxySettings, kind: str, flow: Flow) -> str:
    return _cookie_prefix(settings, kind) + flow.mark


def _is_bound(cookie: str | None, flow: Flow, kind: str) -> bool:
    """Return whether a cookie is the one that was set for a flow. Its value is ``<time>.<secret value>``."""
    return _equal((cookie or "").partition(".")[2], flow.value(f"cookie {kind}"))


def _set_cookies(settings: ProxySettings, request: WebRequest, kind: str, flow: Flow) -> list[tuple[str, str]]:
    """Return the header fields that set a cookie for a flow, and remove the oldest ones if there are many."""
    prefix = _cookie_prefix(settings, kind)
    earlier_cookies = [(value, name) for name, value in cookies_of(request).items() if name.startswith(prefix)]
    superfluous = sorted(earlier_cookies)[: max(0, len(earlier_cookies) - _MAX_COOKIES + 1)]
    value = f"{int(settings.clock())}.{flow.value(f'cookie {kind}')}"
    cookie = f"{_cookie_name(settings, kind, flow)}={value}; Max-Age={FLOW_SECONDS}{_attributes(settings)}"
    return [*(_forget(settings, name) for _, name in superfluous), ("set-cookie", cookie)]


def _forget(settings: ProxySettings, name: str) -> tuple[str, str]:
    """Return the header field that removes a cookie."""
    return "set-cookie", f"{name}=; Max-Age=0{_attributes(settings)}"


def _attributes(settings: ProxySettings) -> str:
    secure = "; Secure" if settings.issuer.startswith("https:") else ""
    return f"; Path=/; HttpOnly; SameSite=Lax{secure}"
