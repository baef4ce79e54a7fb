"""The format of the log, and where it goes."""

from __future__ import annotations

import importlib
import io
import json
import logging
import re
import sys
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp._server.log import LoggedRequest, current_request, log_failure
from funcmcp._server.log_output import (
    VARIABLE,
    JSONFormatter,
    is_json,
    write_about_server,
    write_as_json,
    write_to_stderr,
)
from tests.server.failures import parse_failure

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.every_python("Exceptions and tracebacks have other texts.")


@pytest.fixture
def loggers() -> Iterator[None]:
    """Restore the handlers, the formatters and the levels of all loggers."""
    root = logging.getLogger()
    names = [name for name, log in root.manager.loggerDict.items() if isinstance(log, logging.Logger)]
    logs = [root, *map(logging.getLogger, names)]
    before = [(log, log.level, log.handlers[:], [handler.formatter for handler in log.handlers]) for log in logs]
    yield
    for log, level, handlers, formatters in before:
        log.setLevel(level)
        log.handlers[:] = handlers
        for handler, formatter in zip(handlers, formatters, strict=True):
            handler.setFormatter(formatter)


@pytest.fixture
def last_resort() -> Iterator[logging.Handler]:
    """Python's handler for records that no other handler gets, restored afterwards."""
    handler = logging.lastResort
    assert handler is not None
    before = handler.formatter
    yield handler
    handler.setFormatter(before)


def record(message: str = "m", **attributes: object) -> logging.LogRecord:
    return logging.makeLogRecord({"name": "shop", "levelname": "INFO", "msg": message, **attributes})


def fields(logged: logging.LogRecord) -> dict[str, Any]:
    line = JSONFormatter().format(logged)
    assert "\n" not in line
    assert line.isascii()
    document: dict[str, Any] = json.loads(line)
    return document


def test_stderr_has_time_level_logger_error_id_and_traceback(
    apart: logging.Logger, capsys: pytest.CaptureFixture[str]
) -> None:
    write_to_stderr()
    write_to_stderr()
    log_failure(parse_failure("x"), "ab12", "get_order")
    first, *below = capsys.readouterr().err.splitlines()
    assert len(apart.handlers) == 1
    line = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} ERROR funcmcp \S+, line \d+: RuntimeError: .* \(error_id=ab12 .*"
    assert re.fullmatch(line, first)
    assert below[0] == "Traceback (most recent call last):"


def test_a_text_of_a_client_in_a_message_of_the_author_is_no_record_of_its_own(
    apart: logging.Logger, capsys: pytest.CaptureFixture[str]
) -> None:
    write_to_stderr()
    text = "a\n2026-11-27 ERROR forged \x1b[2J"
    try:
        raise ValueError(text)
    except ValueError:
        apart.exception("sold %s", text)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].endswith("ERROR funcmcp sold a")
    assert lines[1:3] == ["    2026-11-27 ERROR forged \\x1b[2J", "Traceback (most recent call last):"]
    assert lines[-1] == r"ValueError: a\n2026-11-27 ERROR forged \x1b[2J"
    apart.error("no exception", exc_info=(None, None, None))
    assert capsys.readouterr().err.endswith("no exception\nNoneType: None\n")


def test_records_of_loggers_without_handlers_have_the_same_format(
    apart: logging.Logger, last_resort: logging.Handler, capsys: pytest.CaptureFixture[str]
) -> None:
    write_to_stderr()
    assert apart.handlers != [last_resort]
    last_resort.handle(record("no such dish: a\n2026-11-28 ERROR forged \x1b[31m", levelname="WARNING"))
    first, second = capsys.readouterr().err.splitlines()
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} WARNING shop no such dish: a", first)
    assert second == "    2026-11-28 ERROR forged \\x1b[31m"


def test_a_program_without_a_handler_of_last_resort_has_none(
    apart: logging.Logger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging, "lastResort", None)
    write_to_stderr()
    assert logging.lastResort is None
    assert len(apart.handlers) == 1


def test_a_program_that_has_set_up_logging_keeps_it(apart: logging.Logger) -> None:
    handler = logging.NullHandler()
    apart.addHandler(handler)
    write_to_stderr()
    assert apart.handlers == [handler]


@pytest.mark.parametrize(("value", "expected"), [("", False), ("text", False), (" JSON ", True)])
def test_the_variable_chooses_the_format(value: str, expected: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, value)
    assert is_json() is expected


def test_another_value_of_the_variable_is_refused_with_the_valid_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "yaml")
    with pytest.raises(ValueError, match="FUNCMCP_LOG_FORMAT must be 'text' or 'json'; got 'yaml'"):
        is_json()


def test_a_record_is_a_line_of_json_in_ascii() -> None:
    document = fields(record("two\nlines \u202e %s", args=("\x1b[31m",)))
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00", document.pop("time"))
    assert document == {"level": "INFO", "logger": "shop", "message": "two\nlines \u202e \x1b[31m"}


def test_extra_attributes_are_fields_and_others_than_json_are_text(tmp_path: Path) -> None:
    document = fields(record(order=7, feature="get_order", path=tmp_path, error_id="", status=None, color_message="x"))
    assert (document["order"], document["name"], document["path"]) == (7, "get_order", str(tmp_path))
    assert {"error_id", "status", "color_message"}.isdisjoint(document)


def test_no_attribute_of_a_record_replaces_what_every_line_has() -> None:
    """An author may log what a client sent under any name."""
    document = fields(record(level="forged", logger="forged", time="forged", exception="forged", request_id="forged"))
    assert document["level"] == "INFO"
    assert document["logger"] == "shop"
    assert document["time"] != "forged"


def test_each_record_during_a_request_has_its_id_method_name_and_caller() -> None:
    token = current_request.set(LoggedRequest("r1", "", "tools/call", "get_order"))
    try:
        document = fields(record())
    finally:
        current_request.reset(token)
    assert (document["request_id"], document["method"], document["name"]) == ("r1", "tools/call", "get_order")
    assert "caller" not in document


def test_a_program_without_opentelemetry_has_no_ids_of_spans(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "opentelemetry.trace", raising=False)
    assert fields(record()).keys() & {"trace_id", "span_id"} == set()


def test_a_record_outside_of_a_span_has_no_ids_of_spans() -> None:
    importlib.import_module("opentelemetry.trace")
    assert fields(record()).keys() & {"trace_id", "span_id"} == set()


def test_a_failure_has_its_id_and_its_escaped_traceback(caplog: pytest.LogCaptureFixture) -> None:
    log_failure(parse_failure("x\x1b\nERROR forged"), "ab12", "get_order", "tools/call")
    document = fields(caplog.records[0])
    assert (document["error_id"], document["name"], document["method"]) == ("ab12", "get_order", "tools/call")
    assert document["exception"].endswith(r"RuntimeError: bad input: x\x1b\nERROR forged")


def test_exceptions_and_stacks_of_the_authors_records_are_fields() -> None:
    error = ValueError("no")
    document = fields(record(exc_info=(ValueError, error, None), stack_info="Stack (most recent call last):"))
    assert document["exception"] == "ValueError: no"
    assert document["stack"].startswith("Stack")


@pytest.mark.usefixtures("loggers")
def test_all_that_goes_to_stdout_and_stderr_is_json_and_other_handlers_remain(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "json")
    access = logging.getLogger("tests.access")
    shown = logging.StreamHandler(sys.stdout)
    shown.setFormatter(logging.Formatter("access: %(message)s"))
    kept = logging.StreamHandler(io.StringIO())
    kept.setFormatter(logging.Formatter("file: %(message)s"))
    access.handlers[:] = [shown, kept]
    access.setLevel(logging.INFO)
    before = len(logging.getLogger().handlers)
    write_to_stderr()
    write_to_stderr()
    assert len(logging.getLogger().handlers) == before + 1
    access.info("GET /")
    logging.getLogger("funcmcp.requests").info("tools/list ok")
    written = capsys.readouterr()
    assert json.loads(written.out)["message"] == "GET /"
    assert [json.loads(line)["message"] for line in written.err.splitlines()] == ["GET /", "tools/list ok"]
    assert kept.stream.getvalue() == "file: GET /\n"


@pytest.mark.usefixtures("loggers")
@pytest.mark.parametrize(
    ("root", "own", "expected"),
    [("WARNING", "NOTSET", "INFO"), ("DEBUG", "NOTSET", "DEBUG"), ("WARNING", "ERROR", "ERROR")],
)
def test_records_about_requests_are_written_unless_the_author_has_set_a_level(
    root: str, own: str, expected: str
) -> None:
    logging.getLogger().setLevel(root)
    log = logging.getLogger("funcmcp")
    log.setLevel(own)
    write_as_json()
    assert logging.getLevelName(log.getEffectiveLevel()) == expected


class AsyncLoggingHandler(logging.Handler):
    """The name of the class in Azure's Python worker, whose module needs the worker's own packages."""


@pytest.mark.usefixtures("loggers")
def test_azures_worker_gets_json_and_nothing_goes_to_stderr_as_well() -> None:
    root, handler = logging.getLogger(), AsyncLoggingHandler()
    root.handlers[:] = [handler]
    write_as_json()
    assert root.handlers == [handler]
    assert isinstance(handler.formatter, JSONFormatter)


@pytest.mark.usefixtures("loggers")
def test_a_line_about_the_server_is_a_record_if_the_log_is_json(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_about_server("Serving\x1b[2J")
    assert capsys.readouterr().err == "Serving\\x1b[2J\n"
    monkeypatch.setenv(VARIABLE, "json")
    write_about_server("Serving", logging.WARNING)
    document = json.loads(capsys.readouterr().err)
    assert (document["level"], document["message"]) == ("WARNING", "Serving")
    monkeypatch.setenv(VARIABLE, "yaml")
    write_about_server("FUNCMCP_LOG_FORMAT must be 'text' or 'json'")
    assert capsys.readouterr().err == "FUNCMCP_LOG_FORMAT must be 'text' or 'json'\n"


def test_a_line_about_the_server_that_can_not_be_written_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = io.StringIO()
    closed.close()
    monkeypatch.setattr(sys, "stderr", closed)
    write_about_server("Serving")
