"""Names and URLs in server cards."""

from __future__ import annotations

import pytest

from funcmcp._protocol.server_card import is_card_name, is_remote_url


@pytest.mark.parametrize("name", ["com.example/orders", "io.github.user-1/a_b.c", "a/b", f"a/{'b' * 198}"])
def test_a_name_is_a_domain_in_reverse_order_and_a_name(name: str) -> None:
    assert is_card_name(name)


@pytest.mark.parametrize(
    "name", [None, "", "orders", "a/", "/a", "a/b/c", "com.exämple/a", "com_x/a", "a b/c", "a/b\n", f"a/{'b' * 199}"]
)
def test_other_names_are_refused(name: object) -> None:
    assert not is_card_name(name)


@pytest.mark.parametrize(
    ("url", "valid"),
    [
        ("https://example.com/mcp", True),
        ("http://127.0.0.1:8000/", True),
        ("example.com/mcp", False),
        ("ftp://example.com", False),
        ("https://", False),
        ("https://example.com/a b", False),
        ("https://{tenant}.example.com/mcp", False),
        ("https://example.com/mcp\n", False),
        (None, False),
    ],
)
def test_a_url_of_a_server_is_absolute(url: object, *, valid: bool) -> None:
    assert is_remote_url(url) is valid
