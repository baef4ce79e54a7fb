"""What goes to the log."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st

from funcmcp.server.log import MAX_QUOTED, log_failure, quote

if TYPE_CHECKING:
    import pytest


@settings(deadline=None)
@given(st.text(max_size=300) | st.text(alphabet=st.characters(categories=["Cs"]), max_size=10))
def test_quoted_text_is_short_printable_ascii(text: str) -> None:
    quoted = quote(text)
    assert quoted.isascii()
    assert quoted.isprintable() or not quoted
    assert len(quoted) <= MAX_QUOTED


def test_quoted_plain_text_stays_as_it_is() -> None:
    assert quote("get_order") == "get_order"


def test_a_client_cannot_begin_a_line_of_its_own() -> None:
    assert quote("a\nERROR forged\r\x1b[31m") == "a\\nERROR forged\\r\\x1b[31m"


def test_a_failure_is_one_line_with_its_id_feature_type_and_place(caplog: pytest.LogCaptureFixture) -> None:
    def break_it() -> None:
        raise KeyError("first\nsecond")

    with caplog.at_level(logging.ERROR, "funcmcp"):
        try:
            break_it()
        except KeyError as error:
            log_failure(error, "ab12", "get\norder")
    [record] = caplog.records
    line = record.getMessage()
    assert (record.name, record.levelname) == ("funcmcp", "ERROR")
    assert "\n" not in line
    assert "error_id=ab12 feature=get\\norder exception=KeyError: 'first\\\\nsecond' at " in line
    assert "test_log.py" in line
    assert "in break_it" in line


def test_a_failure_that_can_not_say_its_text_is_logged_all_the_same(caplog: pytest.LogCaptureFixture) -> None:
    class MuteError(Exception):
        def __str__(self) -> str:
            raise ValueError("no words")

    log_failure(MuteError(), "ab12", "get_order")
    [record] = caplog.records
    assert "feature=get_order exception=MuteError: (its text can't be read: ValueError)" in record.getMessage()
