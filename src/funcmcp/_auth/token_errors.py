"""What the error of a token endpoint means: who has to do something about it.

Providers have errors of their own beside those of OAuth, and send them with various statuses, some with 200. So an
error that is not known counts as one of the user: a new sign-in is tried, and shows what the provider wants. A few
errors are not about the user: a new sign-in would not help, and nobody should be signed out for them.

Source: RFC 6749 section 5.2, also for status 401 (the client has not authenticated); RFC 7009 section 2.2.1. Errors
beside those: GitHub Docs, "Troubleshooting OAuth app access token request errors"; Slack API, "oauth.v2.access";
Google, "Using OAuth 2.0 for Web Server Applications" (deleted_client); Keycloak (unauthorized_client with status 401).
"""

from __future__ import annotations

from typing import Any, Final, Literal, TypeAlias

Helper: TypeAlias = Literal["user", "operator", "time"]
"""Who can help: the user, by a new sign-in; the operator of the server; or nobody, so that it is tried again later."""

_OF_OPERATOR: Final = frozenset(
    {
        "invalid_client", "incorrect_client_credentials", "redirect_uri_mismatch", "application_suspended",
        "bad_client_secret", "invalid_client_id", "bad_redirect_uri", "deleted_client", "disabled_client",
    }
)  # fmt: skip
"""The provider does not accept the server itself, for example because its secret has expired."""

_OF_TIME: Final = frozenset(
    {
        "temporarily_unavailable", "server_error", "internal_error", "service_unavailable", "ratelimited",
        "rate_limited", "rate_limit_exceeded", "too_many_requests", "slow_down",
    }
)  # fmt: skip

_OF_USER: Final = frozenset(
    {
        "invalid_grant", "interaction_required", "consent_required", "login_required", "access_denied", "mfa_required",
    }
)  # fmt: skip
"""Errors of the user in requests that are for what is configured, such as a token for another API. A new sign-in would
not change any other refusal of these."""

_UNAUTHORIZED: Final = 401
_NO_ENDPOINT: Final = frozenset({404, 405, 410})
_TRY_LATER: Final = frozenset({408, 425, 429})
_SERVER_ERROR: Final = 500
_MAX_ERROR: Final = 80


def error_in(answer: Any) -> str | None:
    """Return the error in the answer of a token endpoint, at most 80 characters; None if it has none."""
    members = answer if isinstance(answer, dict) else {}
    for name in ("error", "error_code"):
        error = members.get(name)
        if isinstance(error, str) and error:
            return error[:_MAX_ERROR]
        if error:
            return "unknown"
    return None


def helper_for(status: int, error: str, *, is_of_user: bool = True) -> Helper:
    """Return who can help with an error of a token endpoint.

    Args:
        status: The status of the answer.
        error: The error in it.
        is_of_user: Whether the request had a code or a refresh token of a user. Other requests, such as those for a
            token for another API, may be refused for what is configured.
    """
    if status >= _SERVER_ERROR or status in _TRY_LATER or error in _OF_TIME:
        return "time"
    if error in _OF_OPERATOR or status in _NO_ENDPOINT:
        return "operator"
    if error == "unauthorized_client" and status == _UNAUTHORIZED:
        return "operator"
    return "user" if is_of_user or error in _OF_USER else "operator"
