"""What goes to the log."""

from __future__ import annotations

import json
import logging
import re
from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st

from funcmcp._server.log import MAX_QUOTED, log_failure, quote, types_and_texts, write_to_stderr
from tests.server.failures import parse_failure

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


def test_the_traceback_is_whole_and_nothing_in_it_begins_a_line_that_a_client_chose(
    caplog: pytest.LogCaptureFixture,
) -> None:
    log_failure(parse_failure("x\n2026-01-01 ERROR forged \x1b[31m"), "ab12", "get_order")
    [record] = caplog.records
    formatted = logging.Formatter("%(levelname)s %(message)s").format(record)
    first, *below = formatted.split("\n")
    assert first.startswith("ERROR error_id=ab12 feature=get_order exception=RuntimeError: bad input")
    assert formatted.count("Traceback (most recent call last):") == 2
    assert below.index("The above exception was the direct cause of the following exception:") > 3
    assert any("json.loads(" in line for line in below)
    assert below[-1] == "RuntimeError: bad input: x\\n2026-01-01 ERROR forged \\x1b[31m"
    assert not any(line.startswith("2026") for line in below)
    assert "\x1b" not in formatted
    assert record.__dict__["error_id"] == "ab12"


def test_the_frame_of_the_author_comes_first(caplog: pytest.LogCaptureFixture) -> None:
    def load_orders() -> None:
        json.loads("{")

    try:
        load_orders()
    except ValueError as error:
        log_failure(error, "ab12", "get_order")
    [record] = caplog.records
    place = record.getMessage().partition(" at ")[2].partition(" < ")[0]
    assert place.startswith(f"{__file__}:")
    assert place.endswith(" in load_orders")


def test_a_chain_of_causes_has_an_end(caplog: pytest.LogCaptureFixture) -> None:
    first, second = ValueError("a"), ValueError("b")
    first.__cause__, second.__cause__ = second, first
    log_failure(first, "ab12", "get_order")
    [record] = caplog.records
    assert record.exc_text == (
        "ValueError: b\n\nThe above exception was the direct cause of the following exception:\n\nValueError: a"
    )
    error = first = ValueError("0")
    for number in range(1, 10_000):
        error.__cause__ = ValueError(str(number))
        error = error.__cause__
    log_failure(first, "ab12", "get_order")
    text = caplog.records[1].exc_text
    assert text is not None
    assert text.startswith("... (earlier exceptions are left out)\nValueError: 9\n")
    assert text.endswith("\nValueError: 0")


def test_stderr_has_time_level_logger_error_id_and_traceback(
    apart: logging.Logger, capsys: pytest.CaptureFixture[str]
) -> None:
    write_to_stderr()
    write_to_stderr()
    log_failure(parse_failure("x"), "ab12", "get_order")
    first, *below = capsys.readouterr().err.splitlines()
    assert len(apart.handlers) == 1
    line = (
        r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} ERROR funcmcp error_id=ab12 feature=get_order exception=RuntimeError: .*"
    )
    assert re.fullmatch(line, first)
    assert below[0] == "Traceback (most recent call last):"


def test_a_program_that_has_set_up_logging_keeps_it(apart: logging.Logger) -> None:
    handler = logging.NullHandler()
    apart.addHandler(handler)
    write_to_stderr()
    assert apart.handlers == [handler]


def test_a_log_that_takes_no_errors_gets_none(apart: logging.Logger, capsys: pytest.CaptureFixture[str]) -> None:
    write_to_stderr()
    apart.setLevel(logging.CRITICAL)
    log_failure(parse_failure("x"), "ab12", "get_order")
    assert capsys.readouterr().err == ""


def test_the_types_and_texts_of_a_group_are_those_of_its_members() -> None:
    assert types_and_texts(ValueError("no")) == "ValueError: no"
    members = [
        OSError("a"),
        ExceptionGroup("inner", [KeyError("b"), ValueError("c")]),
        ValueError("d"),
        ValueError("e"),
    ]
    assert types_and_texts(ExceptionGroup("outer", members)) == "OSError: a; KeyError: 'b'; ValueError: c; 2 more"


def test_the_name_of_a_type_begins_no_line(caplog: pytest.LogCaptureFixture) -> None:
    kind = type("Evil\nCRITICAL forged", (Exception,), {})
    log_failure(ExceptionGroup("g", [kind("x")]), "ab12", "get_order")
    log_failure(kind("x"), "ab12", "get_order")
    for record in caplog.records:
        assert not any(line.startswith("CRITICAL") for line in logging.Formatter().format(record).splitlines())
