"""Cursors of paged lists."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from funcmcp.protocol.cursor import decode_cursor, encode_cursor
from funcmcp.protocol.errors import INVALID_PARAMS, InvalidParams


@settings(deadline=None)
@given(st.text())
def test_a_cursor_leads_back_to_its_name(name: str) -> None:
    assert decode_cursor(encode_cursor(name)) == name


@settings(deadline=None)
@given(st.text(max_size=12) | st.text(alphabet="QRSTUVWXYZ-_+/=", max_size=8))
def test_only_a_cursor_that_the_server_can_have_made_is_accepted(cursor: str) -> None:
    try:
        name = decode_cursor(cursor)
    except InvalidParams:
        return
    assert encode_cursor(name) == cursor


@pytest.mark.parametrize("cursor", [None, 5, True, [], {}, "not base64", "====", "YQ", "YQ==YQ==", "_w==", "YR==", "é"])
def test_any_other_cursor_is_refused_as_invalid_params(cursor: object) -> None:
    with pytest.raises(InvalidParams, match="start again") as caught:
        decode_cursor(cursor)
    assert caught.value.code == INVALID_PARAMS
