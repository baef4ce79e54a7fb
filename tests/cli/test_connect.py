"""A server that a command uses: how its target is loaded, and what is sent with each request."""

from __future__ import annotations

import pytest

from funcmcp._cli.connect import open_source
from funcmcp._cli.failure import Failure

URL = "http://127.0.0.1:8000/mcp"


def test_header_fields_are_read_without_the_space_around_their_values() -> None:
    source = open_source(URL, headers=["X-Api-Key: a b:c ", "x-other:1"])
    assert source.headers == {"x-api-key": "a b:c", "x-other": "1"}


def test_a_bearer_token_becomes_a_header_field() -> None:
    assert open_source(URL, bearer="abc.def").headers == {"authorization": "Bearer abc.def"}


@pytest.mark.parametrize("text", ["secret", ":x", "a b:secret", "a:", "a:secret\r\nb:1", "a:secrét", "a:secret\x7f"])
def test_a_header_field_that_is_not_valid_is_refused_without_repeating_it(text: str) -> None:
    with pytest.raises(Failure) as raised:
        open_source(URL, headers=[text])
    assert str(raised.value) == (
        "A header field must be NAME:VALUE in visible ASCII, such as --header 'X-Api-Key: secret'."
    )


@pytest.mark.parametrize("name", ["Host", "content-length", "Mcp-Session-Id", "Accept-Encoding"])
def test_a_header_field_that_the_client_sets_itself_is_refused(name: str) -> None:
    with pytest.raises(Failure, match=f"--header {name.lower()} is not possible"):
        open_source(URL, headers=[f"{name}: x"])
