"""What an operator may choose about HTTP."""

from __future__ import annotations

import pytest

from funcmcp.transports.http.options import HTTPOptions


def test_nothing_is_allowed_beyond_the_default() -> None:
    options = HTTPOptions()
    assert (tuple(options.allowed_hosts), tuple(options.allowed_origins)) == ((), ())
    assert (options.require_origin, options.proxies) == (False, 0)


@pytest.mark.parametrize("name", ["allowed_hosts", "allowed_origins"])
def test_one_string_is_not_taken_for_a_list_of_characters(name: str) -> None:
    with pytest.raises(TypeError, match=f"{name} is a list"):
        HTTPOptions(**{name: "*"})  # type: ignore[arg-type]
