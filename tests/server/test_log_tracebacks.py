"""Records of failures: their exceptions, their tracebacks as text, and what formatters and handlers make of them."""

from __future__ import annotations

import ast
import copy
import json
import logging
import logging.handlers
import pickle
import queue
import re
import traceback
from typing import Any

import pytest

from funcmcp._server.log import log_failure, traceback_of
from tests.server.failures import parse_failure

pytestmark = pytest.mark.every_python("Exceptions and tracebacks have other texts.")

FORGING = "x\n2026-01-01 ERROR forged\r2026 \x1b[31m \u2028 2026"
"""What a caller sends to begin lines of the log."""


def raised(error: BaseException, cause: BaseException | None = None) -> BaseException:
    """Return an exception that was raised, with a cause."""
    try:
        raise error from cause
    except BaseException as caught:  # noqa: BLE001 - of any type
        return caught


def raised_while_handling(error: BaseException) -> BaseException:
    """Return a ValueError that was raised while another exception was handled."""
    try:
        try:
            raise error
        except BaseException:  # noqa: BLE001 - of any type
            int("x")
    except ValueError as caught:
        return caught
    raise AssertionError


def syntax_error(source: str) -> BaseException:
    """Return the error of a source."""
    with pytest.raises(SyntaxError) as caught:
        ast.parse(source, "orders.py")
    return caught.value


def test_the_record_has_the_exception_and_what_failed(caplog: pytest.LogCaptureFixture) -> None:
    first, second = parse_failure("x"), parse_failure("y")
    log_failure(first, "ab12", "get_order", "tools/call")
    log_failure(second, "ab13", "menu://\ntoday", "resources/read")
    one, two = caplog.records
    assert one.exc_info == (RuntimeError, first, first.__traceback__)
    assert one.msg == two.msg
    assert isinstance(one.args, tuple)
    assert one.args[1:] == ("ab12", "get_order")
    assert one.__dict__["error_id"] == "ab12"
    extra = [(record.__dict__["feature"], record.__dict__["method"]) for record in caplog.records]
    assert extra == [("get_order", "tools/call"), ("menu://\\ntoday", "resources/read")]


SHAPES: dict[str, BaseException] = {
    "never raised": ValueError("a"),
    "no text": raised(ValueError()),
    "a cause": raised(KeyError("b"), raised_while_handling(ZeroDivisionError("a"))),
    "a hidden context": raised(ValueError("a")),
    "a context": raised_while_handling(OSError("a")),
    "a type with a module": raised(json.JSONDecodeError("bad", "{", 1)),
    "a group": raised(BaseExceptionGroup("g", [raised_while_handling(KeyError("b")), OSError()])),
    "groups in a group": BaseExceptionGroup("g", [ExceptionGroup("h", [TypeError("a")]), raised(ValueError("b"))]),
    "a group that ends with a group": raised(ExceptionGroup("g", [ValueError("b"), ExceptionGroup("h", [OSError()])])),
    "a group with a cause": raised(ExceptionGroup("g", [ValueError("a")]), raised(OSError("refused"))),
    "a group that is a cause": raised(RuntimeError("a"), raised(ExceptionGroup("g", [ValueError("b")]))),
    "a group with an interrupt": BaseExceptionGroup("g", [raised(KeyboardInterrupt()), ValueError("a")]),
    "a wide group": ExceptionGroup("g", [ValueError(str(number)) for number in range(16)]),
    "a wider group": ExceptionGroup("g", [ValueError(str(number)) for number in range(40)]),
    "a syntax error": syntax_error("x = (1 +"),
    "a syntax error in a block": syntax_error("def f():\n    return )\n"),
}


@pytest.mark.parametrize("error", SHAPES.values(), ids=SHAPES)
def test_a_traceback_is_the_one_that_python_prints(error: BaseException) -> None:
    assert traceback_of(error) == "".join(traceback.format_exception(error)).rstrip("\n")


def test_a_recursion_is_folded_as_python_folds_it() -> None:
    def again() -> None:
        again()

    with pytest.raises(RecursionError) as caught:
        again()
    text = traceback_of(caught.value)
    assert re.search(r"\[Previous line repeated \d+ more times\]", text)
    assert len(text) < 2000


def test_notes_are_indented_and_can_not_forge_lines() -> None:
    error = ValueError("a")
    error.add_note("2026-01-01 ERROR forged\n2026-01-01 ERROR again \x1b[31m")
    error.add_note("second")
    assert traceback_of(ExceptionGroup("g", [error])).splitlines()[2:5] == [
        "    | ValueError: a",
        r"    |   Note: 2026-01-01 ERROR forged\n2026-01-01 ERROR again \x1b[31m",
        "    |   Note: second",
    ]


def test_notes_that_are_no_list_are_shown_too() -> None:
    error = ValueError("a")
    error.__notes__ = "alone"  # type: ignore[assignment] # what a library may do
    assert traceback_of(error) == "ValueError: a\n  Note: alone"


@pytest.mark.parametrize("offset", [None, 1, 3, 400])
def test_the_source_of_a_syntax_error_can_not_forge_lines(offset: int | None) -> None:
    error = SyntaxError("bad\nERROR forged", ("a\nb.py", 1, offset, "x\rERROR \x1b[31mforged\n"))
    lines = traceback_of(error).splitlines()
    assert lines[0] == r'  File "a\nb.py", line 1'
    assert lines[1] == r"    x\rERROR \x1b[31mforged"
    assert lines[-1] == r"SyntaxError: bad\nERROR forged"
    assert all(line.strip() == "^" for line in lines[2:-1])


def test_a_syntax_error_without_a_source_has_its_place() -> None:
    assert traceback_of(SyntaxError("bad", (None, 1, None, None))) == '  File "<string>", line 1\nSyntaxError: bad'
    assert traceback_of(SyntaxError("bad")) == "SyntaxError: bad"


def test_a_file_name_that_is_made_at_run_time_can_not_forge_lines() -> None:
    code = compile("1 / 0", "calc\n2026-01-01 ERROR forged \x1b[31m", "eval")
    with pytest.raises(ZeroDivisionError) as caught:
        eval(code)
    text = traceback_of(caught.value)
    assert r"    2026-01-01 ERROR forged \x1b[31m" in text
    assert not any(line.startswith("2026") for line in text.splitlines())


def deep(depth: int) -> Exception:
    """Return groups in groups."""
    error: Exception = ValueError("deepest")
    for level in range(depth):
        error = ExceptionGroup(f"level {level}", [error])
    return error


def chain_of(length: int) -> Exception:
    """Return an exception with so many causes."""
    error: Exception = ValueError("first")
    for number in range(length):
        following = ValueError(str(number))
        following.__cause__ = error
        error = following
    return error


def noted(text: str, count: int) -> Exception:
    """Return an exception with so many notes."""
    error = ValueError("a")
    for _ in range(count):
        error.add_note(text)
    return error


def web(width: int, depth: int) -> Exception:
    """Return groups, each of which has the next one many times."""
    error: Exception = ValueError("deepest")
    for _ in range(depth):
        error = ExceptionGroup("g", [error] * width)
    return error


@pytest.mark.parametrize(
    ("make", "mark"),
    [
        (lambda: chain_of(10_000), "... (earlier exceptions are left out)"),
        (lambda: deep(10_000), "... (more exceptions are left out)"),
        (lambda: noted("n" * 10_000_000, 1), "nnn"),
        (lambda: noted("n", 10_000), "... (9980 more notes)"),
        (lambda: ValueError("v" * 10_000_000), "vvv"),
        (lambda: ExceptionGroup("g", [ValueError("a")] * 10_000), "and 9985 more exceptions"),
        (lambda: web(10, 9), "... (more exceptions are left out)"),
        (lambda: web(2, 40), "... (more exceptions are left out)"),
        (lambda: ExceptionGroup("g", [noted("n" * 2000, 20) for _ in range(15)]), "... (cut)"),
    ],
)
def test_a_record_has_a_bound(make: Any, mark: str, caplog: pytest.LogCaptureFixture) -> None:
    log_failure(make(), "ab12", "get_order")
    [record] = caplog.records
    assert record.exc_text is not None
    assert mark in record.exc_text
    assert len(record.exc_text) < 201_000
    assert len(record.getMessage()) < 10_000


def test_the_line_about_a_group_names_its_first_members(caplog: pytest.LogCaptureFixture) -> None:
    log_failure(raised(BaseExceptionGroup("all", [raised(ValueError("one")), deep(2)])), "ab12", "get_order")
    log_failure(ExceptionGroup("many", [ValueError(str(number)) for number in range(9)]), "ab12", "get_order")
    first, second = (record.getMessage() for record in caplog.records)
    assert re.search(r"ExceptionGroup: all \(\S+, line \d+: ValueError: one; ", first)
    assert "; ValueError: deepest) (error_id=" in first
    assert "many (ValueError: 0; ValueError: 1; ValueError: 2; 6 more)" in second


class TextHandler(logging.Handler):
    """Keeps the texts that a formatter makes."""

    def __init__(self, formatter: logging.Formatter | None = None) -> None:
        super().__init__()
        self.formatter = formatter
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the text of a record."""
        self.texts.append(self.format(record))


class RecordHandler(logging.Handler):
    """Keeps records as they are."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a record."""
        self.records.append(copy.copy(record))


def is_free_of_forged_lines(text: str) -> bool:
    """Return whether no line, by any rule for ends of lines, begins with what the caller chose."""
    return not any(line.lstrip(" |").startswith("2026") for line in text.splitlines()) and "\x1b" not in text


def forging_failure() -> BaseException:
    """Return a group whose text, members, notes and cause have a caller's text."""
    error = parse_failure(FORGING)
    error.add_note(FORGING)
    members = [error, SyntaxError(FORGING, (FORGING, 1, 1, FORGING))]
    return raised(BaseExceptionGroup(FORGING, members), KeyError(FORGING))


def test_every_formatter_of_the_standard_library_prints_the_escaped_text(apart: logging.Logger) -> None:
    handlers = [
        TextHandler(),
        TextHandler(logging.Formatter("%(levelname)s %(message)s %(feature)s %(method)s")),
        TextHandler(logging.Formatter("{message}", style="{")),
        TextHandler(logging.Formatter("${message}", style="$")),
    ]
    for handler in handlers:
        apart.addHandler(handler)
    log_failure(forging_failure(), "ab12", f"get_order {FORGING}", FORGING)
    for handler in handlers:
        [text] = handler.texts
        assert is_free_of_forged_lines(text)
        assert "KeyError" in text
        assert "| RuntimeError: bad input: x" in text
        assert "json.loads(" in text


def test_a_queue_and_a_socket_transport_the_escaped_text(apart: logging.Logger) -> None:
    records: queue.SimpleQueue[Any] = queue.SimpleQueue()
    kept = RecordHandler()
    apart.addHandler(logging.handlers.QueueHandler(records))
    apart.addHandler(kept)
    log_failure(forging_failure(), "ab12", "get_order", "tools/call")
    queued = pickle.loads(pickle.dumps(records.get_nowait()))
    [record] = kept.records
    pickled = logging.handlers.SocketHandler("localhost", 9).makePickle(record)
    sent = logging.makeLogRecord(pickle.loads(pickled[4:]))
    for received in (queued, sent):
        text = logging.Formatter("%(feature)s %(method)s %(message)s").format(received)
        assert text.startswith("get_order tools/call ExceptionGroup: ")
        assert "(error_id=ab12 feature=get_order)" in text
        assert is_free_of_forged_lines(text)
        assert "| RuntimeError: bad input" in text


def test_a_log_without_handlers_prints_the_failure_to_stderr(
    apart: logging.Logger, capsys: pytest.CaptureFixture[str]
) -> None:
    assert not apart.hasHandlers()
    log_failure(forging_failure(), "ab12", "get_order")
    text = capsys.readouterr().err
    assert is_free_of_forged_lines(text)
    assert "| RuntimeError: bad input" in text
