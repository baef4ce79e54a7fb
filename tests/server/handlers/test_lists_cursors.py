"""Cursors of paged lists."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from funcmcp._protocol.errors import INVALID_PARAMS, InvalidParams
from funcmcp._server.handlers.lists import decode_cursor, encode_cursor


@settings(deadline=None)
@given(st.integers(1, 999_999_999), st.text())
def test_a_cursor_leads_back_to_its_place_and_name(end: int, name: str) -> None:
    assert decode_cursor("tools", encode_cursor("tools", end, name)) == (end, name)


def test_a_cursor_of_another_list_is_refused() -> None:
    with pytest.raises(InvalidParams, match="Start again"):
        decode_cursor("tools", encode_cursor("prompts", 5, "greet"))


@pytest.mark.parametrize(
    "text", ["tools 0 a", "tools -1 a", "tools 01 a", "tools 1234567890 a", "tools \u0661 a", "tools 5"]
)
def test_a_place_that_no_page_ends_at_is_refused(text: str) -> None:
    with pytest.raises(InvalidParams, match="Start again"):
        decode_cursor("tools", base64.urlsafe_b64encode(text.encode()).decode())


@settings(deadline=None)
@given(st.text(max_size=12) | st.text(alphabet="QRSTUVWXYZ-_+/=", max_size=8))
def test_only_a_cursor_that_the_server_can_have_made_is_accepted(cursor: str) -> None:
    try:
        end, name = decode_cursor("tools", cursor)
    except InvalidParams:
        return
    assert encode_cursor("tools", end, name) == cursor


@pytest.mark.parametrize("cursor", [None, 5, True, [], {}, "not base64", "====", "YQ", "YQ==YQ==", "_w==", "YR==", "é"])
def test_any_other_cursor_is_refused_as_invalid_params(cursor: object) -> None:
    with pytest.raises(InvalidParams, match="Start again") as caught:
        decode_cursor("tools", cursor)
    assert caught.value.code == INVALID_PARAMS
