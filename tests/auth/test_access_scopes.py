"""Scopes of configuration and of features."""

from __future__ import annotations

from typing import Any

import pytest

from funcmcp._auth.access import distinct


def test_scopes_keep_their_order_without_duplicates() -> None:
    assert distinct(["write", "read", "write"]) == ("write", "read")
    assert distinct([]) == ()


def test_a_scope_may_have_every_character_that_rfc_6749_permits() -> None:
    scope = "".join(chr(code) for code in range(0x21, 0x7F) if chr(code) not in '"\\')
    assert distinct([scope]) == (scope,)


@pytest.mark.parametrize("scope", ["", "a b", 'a"', "a\\b", "é", "a\n", "\x7f", 7, None])
def test_any_other_value_is_an_error_that_names_it(scope: Any) -> None:
    with pytest.raises(ValueError, match="is not a scope") as caught:
        distinct(["read", scope])
    assert repr(scope) in str(caught.value)
