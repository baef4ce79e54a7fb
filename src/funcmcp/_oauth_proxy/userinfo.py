"""The userinfo endpoint: who has signed in, for clients that decide by the domain of a verified address.

How it works: the client sends its access token of the proxy, as it does at the endpoint of the server. The answer has
what the token says about the user. The proxy only keeps addresses that the identity provider has verified, so
``email_verified`` is true wherever there is an ``email``. A program has no user.

Source: OpenID Connect Core 1.0 sections 5.1 (claims), 5.3.1 to 5.3.3; RFC 6750 section 3; RFC 9449 section 7.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from funcmcp._auth.authenticator import Challenge, ProvableHeaders
from funcmcp._auth.principal import Principal
from funcmcp._auth.protected_resource import unauthorized
from funcmcp._auth.tokens.proofs import ProofError, is_key_of
from funcmcp._oauth_proxy.failures import STORE_AWAY
from funcmcp._oauth_proxy.web import error_answer, json_answer
from funcmcp._state.sessions.store import StoreUnavailableError

if TYPE_CHECKING:
    from funcmcp._auth.tokens.bearer import BearerTokens
    from funcmcp._oauth_proxy.settings import ProxySettings
from funcmcp._oauth_proxy.web import WebAnswer, WebRequest

PATH = "/oauth/userinfo"
CLAIMS = ("sub", "name", "email", "email_verified")


async def userinfo(settings: ProxySettings, request: WebRequest, tokens: BearerTokens) -> WebAnswer:
    """Return what the access token of a request says about its user.

    Args:
        settings: The configuration.
        request: The request.
        tokens: Checks access tokens.
    """

    async def check_proof(token: str, principal: Principal) -> Challenge | None:
        return await _check_proof(settings, request, token, principal)

    try:
        identity = await tokens(ProvableHeaders(request.headers, check_proof))
    except StoreUnavailableError:
        settings.log.refused(STORE_AWAY)
        return error_answer(503, "temporarily_unavailable", STORE_AWAY.user, ("retry-after", "5"))
    if not isinstance(identity, Principal):
        return _refused(settings, identity)
    if identity.subject == identity.client_id:
        description = "The token is that of a program, which has no user."
        return error_answer(403, "insufficient_scope", description)
    claims: dict[str, object] = {"sub": identity.subject}
    if identity.name is not None:
        claims["name"] = identity.name
    email = identity.claims.get("email")
    if email is not None:
        claims |= {"email": email, "email_verified": True}
    return json_answer(200, claims)


def _refused(settings: ProxySettings, challenge: Challenge | None) -> WebAnswer:
    """Return the refusal of a request without a valid token."""
    fields = [("www-authenticate", unauthorized(challenge, dpop=settings.dpop))]
    if challenge is None:
        return error_answer(401, "invalid_token", "The request has no access token.", *fields)
    if challenge.nonce is not None:
        fields.append(("dpop-nonce", challenge.nonce))
    status = 400 if challenge.error == "invalid_request" else 401
    return error_answer(status, challenge.error, challenge.description, *fields)


async def _check_proof(
    settings: ProxySettings, request: WebRequest, token: str, principal: Principal
) -> Challenge | None:
    """Return why a request has no valid proof of the key to which its token is bound."""
    proofs, text = settings.proofs, request.headers.get("dpop")
    if proofs is None or text is None:
        return Challenge("invalid_dpop_proof", "The request needs a header DPoP, with a proof of the key.", "DPoP")
    try:
        proof = proofs.read(text.strip(" \t"), request.method, f"{settings.issuer}{PATH}", token)
        if not is_key_of(principal.claims["cnf"]["jkt"], proof):
            return Challenge("invalid_token", "The proof is of another key than that of the token.", "DPoP")
        await proofs.use(proof, f"user {principal.subject}")
    except ProofError as error:
        return Challenge(error.error, str(error), "DPoP", error.nonce)
    return None
