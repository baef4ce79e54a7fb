"""The endpoints for clients: token and revocation.

How it works: the code of a client contains the code of the identity provider, and is exchanged there only now, after
everything else has been checked. The provider accepts its code once, so the client's code works once, too, without a
store. The same holds for a refresh: it renews the sign-in at the provider, so that an account that is disabled there
ends here.

With a store, codes and refresh tokens also work once by the store: see `stored_sign_ins`. While the store can't be
reached, nothing is issued, and the client gets 503.

A request with a proof of a key (DPoP) gets tokens that are bound to the key. The proof is checked before the grant, and
remembered as used after it, so that only requests with a valid grant take up memory.

Source: RFC 6749 sections 4.1.3, 5 and 6, RFC 7636 section 4.6, RFC 8707 section 2.2, RFC 7009, RFC 9449 sections 5, 8
and 10.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from funcmcp._auth.tokens.proofs import ProofError, is_key_of
from funcmcp._oauth_proxy.client_authentication import LockedError, SecretRefusedError, key_of_client, program_of
from funcmcp._oauth_proxy.failures import (
    CLAIMS_TOO_LONG,
    CLIENT_SECRET,
    CLIENT_UNKNOWN,
    INVALID_GRANT,
    NOT_ALLOWED,
    OTHER_ADDRESS,
    OTHER_CLIENT,
    OTHER_KEY,
    OTHER_RESOURCE,
    PROVIDER_AWAY,
    PROVIDER_REFUSED,
    REQUEST,
    SIGN_IN_BUSY,
    SIGN_IN_ENDED,
    STORE_AWAY,
    SUBJECT_OF_PROGRAM,
    TOO_MANY,
    VERIFIER,
    Failure,
)
from funcmcp._oauth_proxy.flows import ANY_KEY, CODE_SECONDS, challenge_of, of_code, sign_in_id
from funcmcp._oauth_proxy.identity_assertions import ASSERTION_GRANT
from funcmcp._oauth_proxy.programs import PROGRAM_GRANT
from funcmcp._oauth_proxy.refresh_tokens import Refresh, of_refresh_token, to_refresh_token
from funcmcp._oauth_proxy.settings import IGNORED_SCOPES, log_event, user_mark
from funcmcp._oauth_proxy.stored_sign_ins import SignInBusyError, SignInEndedError, new_id
from funcmcp._oauth_proxy.upstream import UpstreamRefusedError, UpstreamUnavailableError, User, failed
from funcmcp._oauth_proxy.user_claims import ClaimsTooLongError
from funcmcp._oauth_proxy.web import (
    JSON,
    NOT_STORED,
    OAuthError,
    ParametersError,
    WebAnswer,
    error_answer,
    form_of,
    json_answer,
)
from funcmcp._protocol.codec import encode
from funcmcp._state.sessions.store import StoreUnavailableError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from funcmcp._auth.tokens.proofs import Proof
    from funcmcp._oauth_proxy.flows import Flow
    from funcmcp._oauth_proxy.identity_assertions import AssertionGrants
    from funcmcp._oauth_proxy.programs import Program
    from funcmcp._oauth_proxy.settings import ProxySettings
    from funcmcp._oauth_proxy.stored_sign_ins import StoredSignIns
    from funcmcp._oauth_proxy.upstream import IssuedToken, SignIn
    from funcmcp._oauth_proxy.web import Parameters, WebRequest

_VERIFIER: Final = re.compile(r"[A-Za-z0-9._~-]{43,128}")
_NO_PROOF: Final = "The request needs a header DPoP, with a proof of the client's key."
_NO_CACHE: Final = ("pragma", "no-cache")
_CODE_USE_SECONDS: Final = 3 * CODE_SECONDS
"""Seconds for which a code is known to be used. The clocks of instances differ."""


class _GrantRefusedError(OAuthError):
    """A code or a refresh token is refused. The client gets one text for most reasons.

    Args:
        failure: Why, for the log.
        client: The key of the client that has sent it.
        user: The mark of the user, once the user is known.
        detail: What is special about this request, for the log.
    """

    def __init__(
        self, failure: Failure = INVALID_GRANT, client: str = "-", user: str = "-", detail: object = ""
    ) -> None:
        super().__init__("invalid_grant", failure.user)
        self.detail = detail
        self.failure = failure
        self.client = client
        self.user = user


async def token(settings: ProxySettings, request: WebRequest) -> WebAnswer:
    """Issue tokens for a code or a refresh token."""
    try:
        return await _token(settings, request, form_of(request))
    except ParametersError as error:
        settings.log.refused(REQUEST, error)
        return await _failed(settings, request, error_answer(400, "invalid_request", str(error)))
    except OAuthError as error:
        return await _refused(settings, request, error)
    except UpstreamRefusedError as error:
        settings.log.upstream_failed("token", error)
        text = error.advice or PROVIDER_REFUSED.user
        return await _failed(settings, request, error_answer(400, "invalid_grant", text))
    except UpstreamUnavailableError as error:
        settings.log.upstream_failed("token", error)
        return _unavailable(error.advice or PROVIDER_AWAY.user)
    except SignInEndedError as error:
        if error.reused is None:
            settings.log.refused(SIGN_IN_ENDED)
        else:
            log_event("reuse", error.reused.client, error.reused.user.subject, error.reused.scopes)
        return await _failed(settings, request, error_answer(400, "invalid_grant", SIGN_IN_ENDED.user))
    except SignInBusyError:
        return _logged_outage(settings, SIGN_IN_BUSY)
    except StoreUnavailableError:
        return _logged_outage(settings, STORE_AWAY)


def _log_refusal(settings: ProxySettings, error: OAuthError) -> None:
    """Write why a token request is refused; not for the request of a nonce, which each client gets at first."""
    if isinstance(error, _GrantRefusedError):
        settings.log.refused(error.failure, error.detail, client=error.client, user=error.user)
    elif isinstance(error, SecretRefusedError):
        settings.log.refused(CLIENT_SECRET, error)
    elif error.error == "invalid_client":
        settings.log.refused(CLIENT_UNKNOWN, error)
    elif error.error == "invalid_target":
        settings.log.refused(OTHER_RESOURCE, error)
    elif error.nonce is None:
        settings.log.refused(REQUEST, f"{error.error}: {error}")


async def revoke(settings: ProxySettings, request: WebRequest) -> WebAnswer:
    """End the sign-in of a refresh token: in the store, if there is one, and at the identity provider.

    A token that is not valid, or of another client, is answered as one that was revoked (RFC 7009 section 2.2).
    """
    if settings.sign_ins is not None:
        return await _revoke_stored(settings, settings.sign_ins, request)
    try:
        form = form_of(request)
        client = await key_of_client(settings, request, form)
        text = form.get("token") or ""
        refresh = of_refresh_token(settings.keys, text, settings.clock(), settings.refresh_seconds)
        if refresh is None and _is_access_token(text):
            return error_answer(400, "unsupported_token_type", "Access tokens end when they expire.")
        if refresh is None or refresh.client != client:
            return await _failed(settings, request, json_answer(200, {}))
        if not await settings.upstream.revoke(refresh.upstream_token):
            return error_answer(400, "unsupported_token_type", "The identity provider does not revoke sign-ins.")
    except ParametersError as error:
        settings.log.refused(REQUEST, error)
        return await _failed(settings, request, error_answer(400, "invalid_request", str(error)))
    except OAuthError as error:
        return await _refused(settings, request, error)
    except UpstreamUnavailableError as error:
        settings.log.upstream_failed("revoke", error)
        return _unavailable(error.advice or PROVIDER_AWAY.user)
    log_event("revoked", client, refresh.user.subject, refresh.scopes)
    return json_answer(200, {})


async def _revoke_stored(settings: ProxySettings, sign_ins: StoredSignIns, request: WebRequest) -> WebAnswer:
    """End a sign-in in the store. Whether the identity provider ends it, too, makes no difference to the client."""
    try:
        form = form_of(request)
        client = await key_of_client(settings, request, form)
        text = form.get("token") or ""
        token = sign_ins.read(text)
        if token is None and _is_access_token(text):
            return error_answer(400, "unsupported_token_type", "Access tokens end when they expire.")
        if token is None or token.client != client:
            return await _failed(settings, request, json_answer(200, {}))
        refresh = await sign_ins.end(token.sign_in)
    except ParametersError as error:
        settings.log.refused(REQUEST, error)
        return await _failed(settings, request, error_answer(400, "invalid_request", str(error)))
    except OAuthError as error:
        return await _refused(settings, request, error)
    except StoreUnavailableError:
        return _logged_outage(settings, STORE_AWAY)
    if refresh is not None:
        log_event("revoked", client, refresh.user.subject, refresh.scopes)
        try:
            await settings.upstream.revoke(refresh.upstream_token)
        except UpstreamUnavailableError as error:
            settings.log.upstream_failed("revoke", error)
    return json_answer(200, {})


async def _token(settings: ProxySettings, request: WebRequest, form: Parameters) -> WebAnswer:
    assertions = settings.assertions if form.get("grant_type") == ASSERTION_GRANT else None
    program: Program | None = None
    if assertions is not None:
        client = assertions.client_of(form, request.headers.get("authorization"))
    elif settings.programs is not None and form.get("grant_type") == PROGRAM_GRANT:
        client, program = await program_of(settings, request, form)
    else:
        client = await key_of_client(settings, request, form)
    if len(form.resources) > 1 or not all(map(settings.is_resource, form.resources)):
        raise OAuthError("invalid_target", f"The resource must be {settings.url}.")
    proof = _proof_of(settings, request)
    if assertions is not None:
        return await _exchange_assertion(settings, assertions, form, client, proof)
    if program is not None:
        return await _issue_to_program(settings, form, client, program, proof)
    grant_type = form.get("grant_type")
    if grant_type == "authorization_code":
        return await _exchange(settings, form, client, proof, request.caller)
    if grant_type == "refresh_token":
        return await _refresh(settings, form, client, proof)
    if grant_type is None:
        raise OAuthError("invalid_request", "The grant_type is missing.")
    raise OAuthError("unsupported_grant_type", f"The grant types are: {' '.join(settings.grant_types)}.")


def _proof_of(settings: ProxySettings, request: WebRequest) -> Proof | None:
    """Return the proof of a token request, None without one; raise OAuthError if it is invalid or missing."""
    if settings.proofs is None:
        return None
    text = request.headers.get("dpop")
    if text is None:
        if settings.dpop == "required":
            raise OAuthError("invalid_dpop_proof", _NO_PROOF)
        return None
    try:
        return settings.proofs.read(text.strip(" \t"), request.method, f"{settings.issuer}/oauth/token")
    except ProofError as error:
        raise OAuthError(error.error, str(error), error.nonce) from None


async def _use(settings: ProxySettings, proof: Proof | None, account: str, jkt: str | None) -> str | None:
    """Use a proof, if there is one; return the thumbprint of its key.

    Args:
        settings: The configuration.
        proof: The proof.
        account: Whose share of the memory it uses: `_account_of` the user, or the address while the user is unknown. A
            client is no account: all users of an application may have one client.
        jkt: The thumbprint of the key to which the grant is bound; `ANY_KEY` if any key will do; None if it is not
            bound.

    Raises:
        OAuthError: The grant is bound to another key, needs one, or the proof has been used before.
    """
    if jkt == ANY_KEY and proof is None:
        raise OAuthError("invalid_dpop_proof", _NO_PROOF)
    if jkt not in {None, ANY_KEY} and (proof is None or not is_key_of(jkt, proof)):
        raise _GrantRefusedError(OTHER_KEY)
    if proof is None or settings.proofs is None:
        return None
    try:
        await settings.proofs.use(proof, account)
    except ProofError as error:
        raise OAuthError(error.error, str(error)) from None
    return proof.jkt


def _account_of(user: User) -> str:
    """Return the account of a user for used proofs."""
    return f"user {user.subject}"


async def _exchange(
    settings: ProxySettings, form: Parameters, client: str, proof: Proof | None, caller: str
) -> WebAnswer:
    """Issue tokens for a code. The identity provider is asked last: a mistake before that does not use up the code."""
    now = settings.clock()
    flow = _flow_of(settings, form, client, now)
    jkt = await _use(settings, proof, f"address {caller}", flow.jkt)
    sign_in = await _exchanged(settings, flow, form.get("code") or "")
    user = await settings.claims.complete(sign_in, is_new=True)
    if user is None:
        raise failed(UpstreamRefusedError, PROVIDER_REFUSED, "it has not said who the user is")
    scopes = await _allowed(settings, user, flow.scopes, client)
    claims = await _claims_of(settings, user, client)
    upstream_token = sign_in.refresh_token if flow.refreshes and settings.refresh_seconds else None
    refresh = Refresh(user, client, scopes, int(now), upstream_token or "", jkt, claims)
    refresh_token = None
    if flow.refreshes and settings.refresh_seconds and not sign_in.refresh_token:
        settings.log.no_refresh_token(settings.tokens.seconds)
    if settings.sign_ins is not None:
        refresh_token = await _begin(settings, settings.sign_ins, sign_in_id(flow), refresh)
    elif upstream_token:
        refresh_token = to_refresh_token(settings.keys, refresh)
    log_event("issued", client, user.subject, scopes)
    return _answer(_tokens(settings, refresh, scopes, refresh_token, sign_in.access_token, sign_in_id(flow)))


async def _begin(settings: ProxySettings, sign_ins: StoredSignIns, identifier: str, refresh: Refresh) -> str | None:
    """Store a sign-in if it can be renewed, or has claims for the store; return its refresh token if it can."""
    if not refresh.upstream_token and not settings.claims.belong_in_store(refresh.user, refresh.claims):
        return None
    refresh_token = await sign_ins.begin(identifier, refresh)
    return refresh_token if refresh.upstream_token else None


def _flow_of(settings: ProxySettings, form: Parameters, client: str, now: float) -> Flow:
    """Return the sign-in of the code in a request; raise OAuthError if the request may not use it."""
    flow = of_code(settings.keys, form.get("code") or "", now)
    if flow is None:
        raise _GrantRefusedError(INVALID_GRANT, client)
    if flow.client != client:
        raise _GrantRefusedError(OTHER_CLIENT, client)
    if form.get("redirect_uri") not in {None, flow.redirect_uri}:
        raise _GrantRefusedError(OTHER_ADDRESS, client)
    if not _fits(form.get("code_verifier"), flow.challenge):
        raise _GrantRefusedError(VERIFIER, client)
    return flow


async def _exchange_assertion(
    settings: ProxySettings, assertions: AssertionGrants, form: Parameters, client: str, proof: Proof | None
) -> WebAnswer:
    """Issue an access token for an identity assertion. It is used up last: a mistake before that does not use it up."""
    requested = [scope for scope in form.words("scope") if scope not in IGNORED_SCOPES]
    asserted = await assertions.read(form.get("assertion") or "", client, requested, settings.scopes)
    scopes = await _allowed(settings, asserted.user, asserted.scopes, client)
    claims = await _claims_of(settings, asserted.user, client)
    jkt = await _use(settings, proof, _account_of(asserted.user), None)
    await assertions.use(asserted)
    log_event("asserted", client, asserted.user.subject, scopes)
    sign_in, identifier = Refresh(asserted.user, client, scopes, asserted.signed_in, "", jkt, claims), new_id()
    if settings.sign_ins is not None:
        await _begin(settings, settings.sign_ins, identifier, sign_in)
    return _answer(_tokens(settings, sign_in, scopes, None, None, identifier))


async def _issue_to_program(
    settings: ProxySettings, form: Parameters, name: str, program: Program, proof: Proof | None
) -> WebAnswer:
    """Issue an access token to a program."""
    requested = [scope for scope in form.words("scope") if scope not in IGNORED_SCOPES]
    if not set(requested) <= set(program.scopes):
        raise OAuthError("invalid_scope", "The program may not have a scope that it requests.")
    scopes = [scope for scope in program.scopes if not requested or scope in requested]
    jkt = await _use(settings, proof, f"program {name}", None)
    log_event("issued_to_program", name, scopes=scopes)
    user = User(name, name=name, roles=frozenset(program.roles))
    token = settings.tokens.issue(user, name, scopes, signed_in=None, now=settings.clock(), jkt=jkt)
    kind = "Bearer" if jkt is None else "DPoP"
    return _answer(
        {"access_token": token, "token_type": kind, "expires_in": settings.tokens.seconds, "scope": " ".join(scopes)}
    )


async def _exchanged(settings: ProxySettings, flow: Flow, code: str) -> SignIn:
    """Return what the identity provider says for the code of a flow, which is used up in the store before."""
    sign_ins = settings.sign_ins
    if sign_ins is not None and not await sign_ins.use_once("code", code, _CODE_USE_SECONDS):
        # RFC 6749 section 4.1.2: the tokens that were issued for the code are revoked.
        if await sign_ins.end(sign_in_id(flow)) is not None:
            log_event("reuse", flow.client, scopes=flow.scopes)
        raise _GrantRefusedError(INVALID_GRANT, flow.client)
    try:
        return await settings.upstream.exchange(
            flow.code, redirect_uri=settings.callback, verifier=flow.value("verifier"), nonce=flow.value("nonce")
        )
    except UpstreamUnavailableError:
        if sign_ins is not None:
            await sign_ins.give_back("code", code)
        raise


async def _refresh(settings: ProxySettings, form: Parameters, client: str, proof: Proof | None) -> WebAnswer:
    """Issue tokens for a refresh token, if the identity provider renews the sign-in."""
    if settings.sign_ins is not None:
        return await _refresh_stored(settings, settings.sign_ins, form, client, proof)
    now = settings.clock()
    text = form.get("refresh_token") or ""
    refresh = of_refresh_token(settings.keys, text, now, settings.refresh_seconds)
    if refresh is None:
        raise _GrantRefusedError(INVALID_GRANT, client)
    if refresh.client != client:
        raise _GrantRefusedError(OTHER_CLIENT, client)
    requested = _requested(form, refresh)
    refresh = replace(refresh, jkt=await _use(settings, proof, _account_of(refresh.user), refresh.jkt))
    sign_in = settings.renewals.get(text)
    if sign_in is None:
        sign_in = await settings.upstream.refresh(refresh.upstream_token, refresh.user.subject)
    renewed = replace(refresh, upstream_token=sign_in.refresh_token or refresh.upstream_token)
    try:
        renewed = await _updated(settings, renewed, sign_in)
    except UpstreamUnavailableError:
        settings.renewals.keep(text, sign_in)
        raise
    settings.renewals.forget(text)
    log_event("refreshed", client, renewed.user.subject, renewed.scopes)
    scopes = [scope for scope in renewed.scopes if not requested or scope in requested]
    refresh_token = to_refresh_token(settings.keys, renewed)
    return _answer(_tokens(settings, renewed, scopes, refresh_token, sign_in.access_token, None))


async def _refresh_stored(
    settings: ProxySettings, sign_ins: StoredSignIns, form: Parameters, client: str, proof: Proof | None
) -> WebAnswer:
    """Issue tokens for a refresh token whose sign-in is in the store."""
    token = sign_ins.read(form.get("refresh_token") or "")
    if token is None:
        raise _GrantRefusedError(INVALID_GRANT, client)
    if token.client != client:
        raise _GrantRefusedError(OTHER_CLIENT, client)
    refresh = await sign_ins.find(token.sign_in)
    if refresh is None:
        raise _GrantRefusedError(SIGN_IN_ENDED, client)
    requested = _requested(form, refresh)
    jkt = await _use(settings, proof, _account_of(refresh.user), refresh.jkt)

    async def issue(renewed: Refresh, sign_in: SignIn, refresh_token: str) -> tuple[Refresh, str]:
        renewed = replace(await _updated(settings, renewed, sign_in), jkt=jkt)
        scopes = [scope for scope in renewed.scopes if not requested or scope in requested]
        log_event("refreshed", client, renewed.user.subject, renewed.scopes)
        tokens = _tokens(settings, renewed, scopes, refresh_token, sign_in.access_token, token.sign_in)
        return renewed, encode(tokens).decode()

    sent = " ".join(sorted(requested)) if jkt is None else f"{' '.join(sorted(requested))} dpop:{jkt}"
    answer = await sign_ins.renew(token, sent, issue)
    return WebAnswer(200, (JSON, NOT_STORED, _NO_CACHE), answer.encode())


def _requested(form: Parameters, refresh: Refresh) -> list[str]:
    """Return the scopes that a refresh requests; raise OAuthError if the user has not granted all of them."""
    requested = [scope for scope in form.words("scope") if scope not in IGNORED_SCOPES]
    if not set(requested) <= set(refresh.scopes):
        raise OAuthError("invalid_scope", "A refresh can't request more scopes than the user has granted.")
    return requested


async def _updated(settings: ProxySettings, refresh: Refresh, sign_in: SignIn) -> Refresh:
    """Return a sign-in with what its renewal says about the user; raise OAuthError if the user may not use it."""
    _check_subject(settings, refresh.user, refresh.client)
    refresh = replace(refresh, claims=settings.claims.remaining(refresh.claims))
    try:
        user = await settings.claims.complete(sign_in, is_new=False)
    except UpstreamUnavailableError as error:
        # The provider has renewed the sign-in, and may have replaced its refresh token: the user remains as before.
        settings.log.upstream_failed("userinfo", error)
        return refresh
    if user is None:
        return refresh
    scopes = await _allowed(settings, user, refresh.scopes, refresh.client)
    claims = await _claims_of(settings, user, refresh.client)
    return replace(refresh, user=user, scopes=scopes, claims=claims)


async def _claims_of(settings: ProxySettings, user: User, client: str) -> Mapping[str, Any]:
    """Return the claims of a user of a client for the tokens; raise OAuthError if they are too long."""
    try:
        return await settings.claims.claims_of(user)
    except ClaimsTooLongError as error:
        raise _GrantRefusedError(CLAIMS_TOO_LONG, client, user_mark(user.subject), error) from None


async def _allowed(settings: ProxySettings, user: User, scopes: tuple[str, ...], client: str) -> tuple[str, ...]:
    """Return the scopes that a user of a client gets; raise OAuthError if the user may not sign in."""
    _check_subject(settings, user, client)
    if settings.allow is None:
        return scopes
    permitted = await settings.allow_functions.result_of(settings.allow, user, partial(_scopes_in, scopes))
    allowed = tuple(scope for scope in scopes if scope in permitted)
    if not allowed:
        detail = f"it returned {','.join(permitted)}; requested: {','.join(scopes)}" if permitted else ""
        raise _GrantRefusedError(NOT_ALLOWED, client, user_mark(user.subject), detail)
    return allowed


def _check_subject(settings: ProxySettings, user: User, client: str) -> None:
    """Raise OAuthError for a user whose tokens would name the same caller as those of a program."""
    if settings.is_of_program(user.subject):
        raise _GrantRefusedError(SUBJECT_OF_PROGRAM, client, user_mark(user.subject))


def _scopes_in(requested: tuple[str, ...], decision: object) -> tuple[str, ...]:
    """Return the scopes in a decision of `OAuthProxy.allow`; raise TypeError if it is not a decision.

    They may have scopes that were not requested.
    """
    if isinstance(decision, bool):
        return requested if decision else ()
    # An object may say of each scope whether it is allowed, so that its names are not the allowed ones.
    if isinstance(decision, str | Mapping) or not isinstance(decision, Iterable):
        raise TypeError(f"OAuthProxy.allow returns True, False or a list of scopes, not {type(decision).__name__}.")
    scopes = tuple(decision)
    if not all(isinstance(scope, str) for scope in scopes):
        raise TypeError("OAuthProxy.allow returns True, False or a list of scopes. A scope is a string.")
    return scopes


def _tokens(
    settings: ProxySettings,
    refresh: Refresh,
    scopes: Sequence[str],
    refresh_token: str | None,
    upstream_token: IssuedToken | None,
    identifier: str | None,
) -> dict[str, object]:
    """Return the tokens of a user. The refresh token keeps all granted scopes.

    Args:
        settings: The configuration.
        refresh: The sign-in.
        scopes: The scopes of the access token.
        refresh_token: The refresh token; None for none.
        upstream_token: The access token of the provider; None for none.
        identifier: The id of the sign-in in the store; None without a store.
    """
    upstream, reference, seconds = None, None, settings.tokens.seconds
    if settings.sign_ins is not None and identifier and settings.claims.belong_in_store(refresh.user, refresh.claims):
        reference = settings.sign_ins.reference(identifier)
    if upstream_token is not None and settings.exchange is not None:
        upstream = settings.exchange.conceal(upstream_token)
    if upstream is not None and upstream_token is not None and upstream_token.seconds is not None:
        seconds = max(1, min(seconds, int(upstream_token.seconds)))
    access_token = settings.tokens.issue(
        refresh.user,
        refresh.client,
        scopes,
        signed_in=refresh.signed_in,
        now=settings.clock(),
        seconds=seconds,
        upstream=upstream,
        claims=refresh.claims,
        sign_in=reference,
        jkt=refresh.jkt,
    )
    tokens: dict[str, object] = {
        "access_token": settings.claims.check_length(access_token),
        "token_type": "Bearer" if refresh.jkt is None else "DPoP",
        "expires_in": seconds,
        "scope": " ".join(scopes),
    }
    if refresh_token is not None:
        tokens["refresh_token"] = refresh_token
    return tokens


def _answer(tokens: dict[str, object]) -> WebAnswer:
    return json_answer(200, tokens, _NO_CACHE)


def _fits(verifier: str | None, challenge: str) -> bool:
    """Return whether a PKCE verifier is that of a challenge.

    A sign-in without a challenge, by a client that needs none, has no verifier: RFC 9700 section 4.8.2.
    """
    if not challenge:
        return verifier is None
    if verifier is None or not _VERIFIER.fullmatch(verifier):
        return False
    return hmac.compare_digest(challenge_of(verifier).encode("ascii"), challenge.encode("ascii"))


def _is_access_token(text: str) -> bool:
    return text.startswith("ey") and text.count(".") == 2  # noqa: PLR2004 - header, payload, signature


async def _refused(settings: ProxySettings, request: WebRequest, error: OAuthError) -> WebAnswer:
    """Return the refusal of a request, count it and log why."""
    _log_refusal(settings, error)
    if isinstance(error, LockedError):
        return _slow_down(error.seconds)
    if error.error == "temporarily_unavailable":
        return _unavailable(str(error))
    status = 401 if error.error == "invalid_client" else 400
    if error.nonce is not None:  # which each client gets at first
        return error_answer(status, error.error, str(error), ("dpop-nonce", error.nonce))
    # RFC 6749 section 5.2: a client that has tried HTTP Basic is told to.
    basic = [("www-authenticate", "Basic")] if status == 401 and "authorization" in request.headers else []  # noqa: PLR2004
    return await _failed(settings, request, error_answer(status, error.error, str(error), *basic))


async def _failed(settings: ProxySettings, request: WebRequest, answer: WebAnswer) -> WebAnswer:
    """Count a failed request of an address; return the refusal of an address that has too many of them."""
    seconds = await settings.rates.failed_tokens.take(request.caller)
    if not seconds:
        return answer
    settings.log.refused(TOO_MANY, "failed token requests")
    return _slow_down(seconds)


def _slow_down(seconds: float) -> WebAnswer:
    retry_after = ("retry-after", str(int(seconds) + 1))
    return error_answer(429, "temporarily_unavailable", TOO_MANY.user, retry_after)


def _logged_outage(settings: ProxySettings, failure: Failure) -> WebAnswer:
    settings.log.refused(failure)
    return _unavailable(failure.user)


def _unavailable(text: str) -> WebAnswer:
    return error_answer(503, "temporarily_unavailable", text, ("retry-after", "5"))
