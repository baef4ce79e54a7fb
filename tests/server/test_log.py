"""What goes to the log."""

from __future__ import annotations

import json
import logging
import os
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from funcmcp._server.log import (
    MAX_QUOTED,
    LoggedRequest,
    current_request,
    log_failed_reload,
    log_failure,
    quote,
    traceback_of,
    types_and_texts,
)
from funcmcp._server.log_output import write_to_stderr
from tests.server.failures import parse_failure

pytestmark = pytest.mark.every_python("Exceptions and tracebacks have other texts.")


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
    assert re.fullmatch(
        r"\S+test_log.py, line \d+: KeyError: 'first\\\\nsecond' \(error_id=ab12 feature=get\\norder\)", line
    )


def test_a_failure_outside_of_requests_has_no_error_id(caplog: pytest.LogCaptureFixture) -> None:
    log_failure(ValueError("lost"), "", "lifespan shutdown")
    assert caplog.messages == ["ValueError: lost (feature=lifespan shutdown)"]


def test_a_failure_that_can_not_say_its_text_is_logged_all_the_same(caplog: pytest.LogCaptureFixture) -> None:
    class MuteError(Exception):
        def __str__(self) -> str:
            raise ValueError("no words")

    log_failure(MuteError(), "ab12", "get_order")
    [record] = caplog.records
    assert record.getMessage() == ("MuteError: (its text can't be read: ValueError) (error_id=ab12 feature=get_order)")


def test_the_traceback_is_whole_and_nothing_in_it_begins_a_line_that_a_client_chose(
    caplog: pytest.LogCaptureFixture,
) -> None:
    log_failure(parse_failure("x\n2026-01-01 ERROR forged \x1b[31m"), "ab12", "get_order")
    [record] = caplog.records
    formatted = logging.Formatter("%(levelname)s %(message)s").format(record)
    first, *below = formatted.split("\n")
    assert re.match(r"ERROR \S+failures.py, line \d+: RuntimeError: bad input", first)
    assert first.endswith("(error_id=ab12 feature=get_order)")
    assert formatted.count("Traceback (most recent call last):") == 2
    assert below.index("The above exception was the direct cause of the following exception:") > 3
    assert any("json.loads(" in line for line in below)
    assert below[-1] == "RuntimeError: bad input: x\\n2026-01-01 ERROR forged \\x1b[31m"
    assert not any(line.startswith("2026") for line in below)
    assert "\x1b" not in formatted
    assert record.__dict__["error_id"] == "ab12"


def test_the_frame_of_the_author_comes_first_below_the_working_directory(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def load_orders() -> None:
        json.loads("{")

    monkeypatch.chdir(Path(__file__).parent)
    try:
        load_orders()
    except ValueError as error:
        log_failure(error, "ab12", "get_order")
    [record] = caplog.records
    assert re.match(r"test_log.py, line \d+: JSONDecodeError: Expecting property", record.getMessage())


def test_a_file_has_its_whole_path_if_the_working_directory_is_gone(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> str:
        raise FileNotFoundError

    error = parse_failure("x")
    monkeypatch.setattr(os, "getcwd", fail)
    log_failure(error, "ab12", "get_order")
    [record] = caplog.records
    assert re.match(r"/\S+failures.py, line \d+: RuntimeError", record.getMessage())


def test_a_failure_in_a_library_alone_has_its_innermost_frame(caplog: pytest.LogCaptureFixture) -> None:
    try:
        json.loads("{")
    except ValueError as error:
        raised = error
    frames = raised.__traceback__
    assert frames is not None
    log_failure(raised.with_traceback(frames.tb_next), "ab12", "get_order")
    [record] = caplog.records
    assert re.match(r"/\S+json/decoder.py, line \d+: JSONDecodeError", record.getMessage())
    assert "decoder.py" in traceback_of(raised, authors_only=True)
    assert "json/__init__.py" not in traceback_of(raised, authors_only=True)


def test_a_failure_that_a_library_raises_from_one_of_the_author_has_the_authors_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    raised = parse_failure("x")
    try:
        json.loads("{")
    except ValueError as error:
        library = error
    frames = library.__traceback__
    assert frames is not None
    library.__cause__ = raised
    raised.__cause__ = library  # a circle has an end
    log_failure(library.with_traceback(frames.tb_next), "ab12", "get_order")
    log_failure(raised.with_traceback(frames.tb_next), "ab12", "get_order")
    first, second = (record.getMessage() for record in caplog.records)
    assert re.match(r"\S*failures.py, line \d+: JSONDecodeError", first)
    assert re.match(r"/\S+json/decoder.py, line \d+: RuntimeError", second)


def test_the_frames_of_libraries_can_be_left_out() -> None:
    error = parse_failure("x")
    assert "json/decoder.py" in traceback_of(error)
    text = traceback_of(error, authors_only=True)
    assert "json/decoder.py" not in text
    assert text.count("failures.py") >= 2
    assert "The above exception was the direct cause" in text


def test_the_current_request_gets_the_error_id() -> None:
    request = LoggedRequest("r1", "alice", "tools/call", "get_order")
    token = current_request.set(request)
    try:
        log_failure(ValueError(), "", "lifespan")
        assert request.error_id == ""
        log_failure(ValueError(), "ab12", "get_order")
    finally:
        current_request.reset(token)
    assert request.error_id == "ab12"


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


@pytest.mark.parametrize("level", [logging.INFO, logging.DEBUG])
def test_code_that_can_not_be_reloaded_is_one_line_and_a_traceback_for_who_debugs(
    caplog: pytest.LogCaptureFixture, level: int
) -> None:
    with caplog.at_level(level, "funcmcp"):
        log_failed_reload(parse_failure("x\n"))
    [record] = caplog.records
    assert re.match(r"\S+, line \d+: RuntimeError: [^\n]*$", record.getMessage())
    assert (record.exc_text is not None) is (level == logging.DEBUG)


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
