"""Errors of the client say what happened in one line."""

from __future__ import annotations

import copy
import pickle

import pytest

from funcmcp._client.errors import one_line
from funcmcp.client import (
    AuthenticationError,
    ClientError,
    RequestTimeoutError,
    SessionEndedError,
    TaskCancelledError,
)
from funcmcp.compat import McpError, NotFoundError

pytestmark = [
    pytest.mark.every_python("Exceptions and tracebacks have other texts."),
    pytest.mark.branches("Errors of clients are pickled."),
]


@pytest.mark.parametrize(
    ("status", "challenge", "text"),
    [
        (401, None, "The server requires valid credentials (HTTP status 401)"),
        (401, 'Bearer realm="a"', 'The server requires valid credentials (HTTP status 401): Bearer realm="a"'),
        (403, "Bearer x", "The server denies access with these credentials (HTTP status 403): Bearer x"),
    ],
)
def test_an_authentication_error_has_the_status_and_the_challenge(
    status: int, challenge: str | None, text: str
) -> None:
    error = AuthenticationError(status, challenge)
    assert (str(error), error.status, error.challenge) == (text, status, challenge)


def test_every_error_is_a_client_error() -> None:
    assert issubclass(SessionEndedError, ClientError)
    assert issubclass(RequestTimeoutError, ClientError)
    assert issubclass(RequestTimeoutError, TimeoutError)


def test_a_text_of_the_server_is_one_short_line() -> None:
    assert one_line("a\r\nb\n\n c") == "a b c"
    assert one_line("x" * 300) == "x" * 200 + "..."


@pytest.mark.parametrize(
    "error",
    [
        AuthenticationError(401, "Bearer x"),
        RequestTimeoutError("Too late."),
        SessionEndedError(),
        TaskCancelledError(),
        McpError(7, "No.", {"a": 1}),
        NotFoundError("No tool."),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_survives_pickle_and_copy_with_its_attributes(error: Exception) -> None:
    for restored in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(restored) is type(error)
        assert (restored.args, vars(restored), str(restored)) == (error.args, vars(error), str(error))
