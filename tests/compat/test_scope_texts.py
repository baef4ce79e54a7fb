"""Scopes in the settings of a server."""

from __future__ import annotations

from typing import Any

import pytest

from funcmcp.compat.fastmcp.utilities.auth import parse_scopes


@pytest.mark.parametrize(
    ("value", "scopes"),
    [
        (None, None),
        ("", []),
        ("a, b c", ["a", "b", "c"]),
        (' ["a", " b ", ""] ', ["a", "b"]),
        ("[a b]", ["[a", "b]"]),
        (["a", " ", 1], ["a", "1"]),
    ],
)
def test_scopes_are_a_list(value: Any, scopes: list[str] | None) -> None:
    assert parse_scopes(value) == scopes
