"""The endpoints for clients: token and revocation.

How it works: the code of a client contains the code of the identity provider, and is exchanged there only now, after
everything else has been checked. The provider accepts its code once, so the client's code works once, too, without a
store. The same holds for a refresh: it renews the sign-in at the provider, so that an account that is disabled there
ends here.

Source: RFC 6749 sections 4.1.3, 5 and 6, RFC 7636 section 4.6, RFC 8707 section 2.2, RFC 7009.
"""

from __future__ import annotations

import hmac
import inspect
import re
from typing import TYPE_CHECKING, Final

from funcmcp._oauth_proxy.flows import Refresh, challenge_of, of_code, of_refresh_token, to_refresh_token
from funcmcp._oauth_proxy.settings import IGNORED_SCOPES, log_event, log_failure_of_upstream
from funcmcp._oauth_proxy.upstream import UpstreamRefusedError, UpstreamUnavailableError
from funcmcp._oauth_proxy.web import ParametersError, error_answer, form_of, json_answer

if TYPE_CHECKING:
    from funcmcp._oauth_proxy.settings import Settings
    from funcmcp._oauth_proxy.upstream import IssuedToken, User
    from funcmcp._oauth_proxy.web import Parameters, WebAnswer, WebRequest

_VERIFIER: Final = re.compile(r"[A-Za-z0-9._~-]{43,128}")
_INVALID_GRANT: Final = "The code or the token is invalid, expired, used, or of another client."
_RETRY_AFTER: Final = ("retry-after", "5")


class _TokenError(Exception):
    """A token request is refused."""

    def __init__(self, error: str, description: str) -> None:
        super().__init__(description)
        self.error = error


class _InvalidGrantError(_TokenError):
    """A code or a refresh token is refused. The client gets one text for all reasons."""

    def __init__(self) -> None:
        super().__init__("invalid_grant", _INVALID_GRANT)


async def token(settings: Settings, request: WebRequest) -> WebAnswer:
    """Issue tokens for a code or a refresh token."""
    try:
        return await _token(settings, form_of(request))
    except ParametersError as error:
        return await _failed(settings, request, error_answer(400, "invalid_request", str(error)))
    except _TokenError as error:
        status = 401 if error.error == "invalid_client" else 400
        return await _failed(settings, request, error_answer(status, error.error, str(error)))
    except UpstreamRefusedError as error:
        log_failure_of_upstream("token", error)
        return await _failed(settings, request, error_answer(400, "invalid_grant", error.advice or _INVALID_GRANT))
    except UpstreamUnavailableError as error:
        log_failure_of_upstream("token", error)
        return _unavailable(error)


async def revoke(settings: Settings, request: WebRequest) -> WebAnswer:
    """End the sign-in of a refresh token at the identity provider.

    A token that is not valid, or of another client, is answered as one that was revoked (RFC 7009 section 2.2).
    """
    try:
        form = form_of(request)
        client = _key_of_client(settings, form)
        text = form.get("token") or ""
        refresh = of_refresh_token(settings.keys, text, settings.clock(), settings.refresh_seconds)
        if refresh is None and _is_access_token(text):
            return error_answer(400, "unsupported_token_type", "Access tokens end when they expire.")
        if refresh is None or refresh.client != client:
            return await _failed(settings, request, json_answer(200, {}))
        if not await settings.upstream.revoke(refresh.upstream_token):
            return error_answer(400, "unsupported_token_type", "The identity provider does not revoke sign-ins.")
    except ParametersError as error:
        return await _failed(settings, request, error_answer(400, "invalid_request", str(error)))
    except _TokenError as error:
        return await _failed(settings, request, error_answer(401, error.error, str(error)))
    except UpstreamUnavailableError as error:
        log_failure_of_upstream("revoke", error)
        return _unavailable(error)
    log_event("revoked", client, refresh.user.subject, refresh.scopes)
    return json_answer(200, {})


async def _token(settings: Settings, form: Parameters) -> WebAnswer:
    client = _key_of_client(settings, form)
    if len(form.resources) > 1 or not all(map(settings.is_resource, form.resources)):
        raise _TokenError("invalid_target", f"The resource must be {settings.url}.")
    grant_type = form.get("grant_type")
    if grant_type == "authorization_code":
        return await _exchange(settings, form, client)
    if grant_type == "refresh_token":
        return await _refresh(settings, form, client)
    if grant_type is None:
        raise _TokenError("invalid_request", "The grant_type is missing.")
    raise _TokenError("unsupported_grant_type", "The grant_type must be authorization_code or refresh_token.")


async def _exchange(settings: Settings, form: Parameters, client: str) -> WebAnswer:
    """Issue tokens for a code. The identity provider is asked last: a mistake before that does not use up the code."""
    now = settings.clock()
    flow = of_code(settings.keys, form.get("code") or "", now)
    if flow is None or flow.client != client:
        raise _InvalidGrantError
    if form.get("redirect_uri") not in {None, flow.redirect_uri}:
        raise _InvalidGrantError
    if not _fits(form.get("code_verifier") or "", flow.challenge):
        raise _InvalidGrantError
    sign_in = await settings.upstream.exchange(
        flow.code, redirect_uri=settings.callback, verifier=flow.value("verifier"), nonce=flow.value("nonce")
    )
    if sign_in.user is None:
        raise _InvalidGrantError
    scopes = await _allowed(settings, sign_in.user, flow.scopes)
    upstream_token = sign_in.refresh_token if flow.refreshes and settings.refresh_seconds else None
    log_event("issued", client, sign_in.user.subject, scopes)
    refresh = Refresh(sign_in.user, client, scopes, int(now), upstream_token or "")
    return _tokens(settings, refresh, scopes, now, sign_in.access_token)


async def _refresh(settings: Settings, form: Parameters, client: str) -> WebAnswer:
    """Issue tokens for a refresh token, if the identity provider renews the sign-in."""
    now = settings.clock()
    refresh = of_refresh_token(settings.keys, form.get("refresh_token") or "", now, settings.refresh_seconds)
    if refresh is None or refresh.client != client:
        raise _InvalidGrantError
    requested = [scope for scope in form.words("scope") if scope not in IGNORED_SCOPES]
    if not set(requested) <= set(refresh.scopes):
        raise _TokenError("invalid_scope", "A refresh can't request more scopes than the user has granted.")
    sign_in = await settings.upstream.refresh(refresh.upstream_token, refresh.user.subject)
    user, scopes = refresh.user, refresh.scopes
    if sign_in.user is not None:
        user = sign_in.user
        scopes = await _allowed(settings, user, scopes)
    log_event("refreshed", client, user.subject, scopes)
    renewed = Refresh(user, client, scopes, refresh.signed_in, sign_in.refresh_token or refresh.upstream_token)
    issued = [scope for scope in scopes if not requested or scope in requested]
    return _tokens(settings, renewed, issued, now, sign_in.access_token)


async def _allowed(settings: Settings, user: User, scopes: tuple[str, ...]) -> tuple[str, ...]:
    """Return the scopes that a user gets; raise _TokenError if the user may not sign in."""
    if settings.allow is None:
        return scopes
    decision = settings.allow(user)
    if inspect.isawaitable(decision):
        decision = await decision
    if isinstance(decision, bool):
        allowed = scopes if decision else ()
    elif isinstance(decision, str):
        raise TypeError("OAuthProxy.allow returns True, False or a list of scopes, not one string.")
    else:
        permitted = set(decision)
        allowed = tuple(scope for scope in scopes if scope in permitted)
    if not allowed:
        raise _TokenError("invalid_grant", "The user may not use this server.")
    return allowed


def _tokens(
    settings: Settings,
    refresh: Refresh,
    scopes: list[str] | tuple[str, ...],
    now: float,
    upstream_token: IssuedToken | None,
) -> WebAnswer:
    """Return the tokens of a user. The refresh token keeps all granted scopes."""
    upstream, seconds = None, settings.tokens.seconds
    if upstream_token is not None and settings.exchange is not None:
        upstream = settings.exchange.conceal(upstream_token)
    if upstream is not None and upstream_token is not None and upstream_token.seconds is not None:
        seconds = max(1, min(seconds, int(upstream_token.seconds)))
    answer: dict[str, object] = {
        "access_token": settings.tokens.issue(
            refresh.user,
            refresh.client,
            scopes,
            signed_in=refresh.signed_in,
            now=now,
            seconds=seconds,
            upstream=upstream,
        ),
        "token_type": "Bearer",
        "expires_in": seconds,
        "scope": " ".join(scopes),
    }
    refresh_token = to_refresh_token(settings.keys, refresh) if refresh.upstream_token else None
    if refresh_token is not None:
        answer["refresh_token"] = refresh_token
    return json_answer(200, answer, ("pragma", "no-cache"))


def _key_of_client(settings: Settings, form: Parameters) -> str:
    key = settings.key_of_client(form.get("client_id"))
    if key is None:
        raise _TokenError("invalid_client", "The client is not registered. Register it again.")
    return key


def _fits(verifier: str, challenge: str) -> bool:
    """Return whether a PKCE verifier is that of a challenge."""
    if not _VERIFIER.fullmatch(verifier):
        return False
    return hmac.compare_digest(challenge_of(verifier).encode("ascii"), challenge.encode("ascii"))


def _is_access_token(text: str) -> bool:
    return text.startswith("ey") and text.count(".") == 2  # noqa: PLR2004 - header, payload, signature


async def _failed(settings: Settings, request: WebRequest, answer: WebAnswer) -> WebAnswer:
    """Count a failed request of an address; return the refusal of an address that has too many of them."""
    seconds = await settings.limits.failed_tokens.take(request.caller)
    if not seconds:
        return answer
    retry_after = ("retry-after", str(int(seconds) + 1))
    return error_answer(429, "temporarily_unavailable", "Too many failed requests; slow down.", retry_after)


def _unavailable(error: UpstreamUnavailableError) -> WebAnswer:
    """Return 503, also for what the operator has to mend: any other answer would make clients drop their tokens."""
    text = error.advice or "The identity provider can't be reached. Try again later."
    return error_answer(503, "temporarily_unavailable", text, _RETRY_AFTER)
