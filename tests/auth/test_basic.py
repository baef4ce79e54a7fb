"""HTTP Basic with the id and the secret of a client."""

from __future__ import annotations

import pytest

from funcmcp._auth.basic import basic_of, read_basic


@pytest.mark.parametrize(
    ("client_id", "secret"), [("shop", "s3cret"), ("https://app.example.com/a b", "a:+%é"), ("", "")]
)
def test_what_is_written_is_read(client_id: str, secret: str) -> None:
    assert read_basic(basic_of(client_id, secret)) == (client_id, secret)


def test_both_are_encoded_as_in_a_form() -> None:
    assert basic_of("a b", "c:d") == "Basic YStiOmMlM0Fk"  # a+b:c%3Ad


@pytest.mark.parametrize("header", ["", "Basic", "Basic ??", "Basic é", "Basic YQ==", "Basic gDo=", "Bearer YTpi"])
def test_another_form_is_nothing(header: str) -> None:
    assert read_basic(header) is None
