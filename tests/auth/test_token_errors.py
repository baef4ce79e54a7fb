"""Errors of token endpoints, as providers send them, and who can help."""

from __future__ import annotations

from typing import Any

import pytest

from funcmcp._auth.token_errors import error_in, helper_for


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ({"error": "invalid_grant"}, "invalid_grant"),
        ({"error_code": "refresh_token_not_found", "code": 400}, "refresh_token_not_found"),
        ({"ok": False, "error": "invalid_code"}, "invalid_code"),
        ({"error": {"code": 400, "message": "no"}}, "unknown"),
        ({"error": "x" * 1000}, "x" * 80),
        ({"error": "", "error_code": 5}, "unknown"),
        ({"error": None}, None),
        ({"access_token": "x"}, None),
        ([], None),
        (None, None),
    ],
)
def test_an_error_is_read_in_the_forms_of_providers(answer: Any, error: str | None) -> None:
    assert error_in(answer) == error


@pytest.mark.parametrize(
    ("status", "error", "helper"),
    [
        (400, "invalid_grant", "user"),
        (403, "mfa_required", "user"),
        (400, "interaction_required", "user"),
        (400, "invalid_request", "user"),
        (400, "unauthorized_client", "user"),
        (401, "unauthorized", "user"),
        (400, "invalid_token", "user"),
        (200, "invalid_code", "user"),
        (200, "bad_verification_code", "user"),
        (400, "an_error_of_tomorrow", "user"),
        (401, "invalid_client", "operator"),
        (400, "invalid_client", "operator"),
        (401, "unauthorized_client", "operator"),
        (200, "incorrect_client_credentials", "operator"),
        (200, "bad_client_secret", "operator"),
        (404, "Realm does not exist", "operator"),
        (405, "method_not_allowed", "operator"),
        (400, "temporarily_unavailable", "time"),
        (400, "server_error", "time"),
        (200, "ratelimited", "time"),
        (408, "invalid_grant", "time"),
        (429, "invalid_grant", "time"),
        (500, "invalid_grant", "time"),
        (503, "invalid_client", "time"),
    ],
)
def test_an_error_says_who_can_help(status: int, error: str, helper: str) -> None:
    assert helper_for(status, error) == helper


@pytest.mark.parametrize(
    ("error", "helper"),
    [("invalid_grant", "user"), ("mfa_required", "user"), ("invalid_scope", "operator"), ("new", "operator")],
)
def test_a_refused_request_for_what_is_configured_is_mostly_one_of_the_operator(error: str, helper: str) -> None:
    assert helper_for(400, error, is_of_user=False) == helper
