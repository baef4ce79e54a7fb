"""What error trackers and other formatters make of the records of failures, with their default settings."""

from __future__ import annotations

import io
import json
import logging
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import loguru
import pytest
import structlog
from pythonjsonlogger.json import JsonFormatter
from structlog.stdlib import ExtraAdder, ProcessorFormatter

from funcmcp._server.log import log_failure
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.every_python("Exceptions and tracebacks have other texts.")

FORGING = "x\n2026-01-01 ERROR forged\r2026 \x1b[31m \u2028 2026"

SERVER = """
import asyncio
import json
import threading

import sentry_sdk
import uvicorn
from sentry_sdk.transport import Transport

from funcmcp import MCPServer, ToolError
from funcmcp.client import Client, ClientError

events = []


class Memory(Transport):
    def capture_envelope(self, envelope):
        event = envelope.get_event()
        if event is not None:
            events.append(event)


sentry_sdk.init(dsn="https://key@sentry.invalid/1", transport=Memory, ignore_errors=[PermissionError])
mcp = MCPServer("Orders")


@mcp.tool
async def divide(a: int, b: int) -> float:
    return a / b


@mcp.tool
def read_file() -> str:
    raise PermissionError("ignored")


@mcp.tool
def refuse() -> str:
    raise ToolError("closed")


async def fail(error: Exception) -> None:
    raise error


@mcp.resource("menu://today")
async def menu() -> str:
    async with asyncio.TaskGroup() as group:
        group.create_task(fail(ConnectionError("refused")))
        group.create_task(fail(LookupError("missing")))
    return "never"


async def main() -> None:
    server = uvicorn.Server(uvicorn.Config(mcp, port=0, log_level="warning"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        await asyncio.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    async with Client(f"http://127.0.0.1:{port}/mcp", headers={"authorization": "Bearer hunter2"}) as client:
        for divisor in range(2):
            await client.call_tool("divide", {"a": divisor, "b": 0})
        await client.call_tool("read_file", {})
        await client.call_tool("refuse", {})
        try:
            await client.read_resource("menu://today")
        except ClientError as error:
            pass
        except Exception as error:
            assert "error id" in str(error)
    server.should_exit = True
    thread.join(60)


asyncio.run(main())
print(json.dumps(events, default=str))
"""


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """The events that Sentry's client would send about the calls of a server in a process of its own."""
    file: Path = tmp_path_factory.mktemp("sentry") / "orders_server.py"
    file.write_text(SERVER)
    run = subprocess.run([sys.executable, file], capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert run.returncode == 0, run.stderr
    found: list[dict[str, Any]] = json.loads(run.stdout)
    return found


def frames_of(value: dict[str, Any]) -> list[tuple[str, str]]:
    """Return file and function of the frames of an exception in an event."""
    return [(frame["filename"], frame["function"]) for frame in value["stacktrace"]["frames"]]


def test_sentry_gets_type_text_and_the_frame_of_the_author(events: list[dict[str, Any]]) -> None:
    first = events[0]
    [value] = first["exception"]["values"]
    assert (value["type"], value["value"]) == ("ZeroDivisionError", "division by zero")
    assert frames_of(value)[-1] == ("orders_server.py", "divide")
    extra = first["extra"]
    assert (extra["feature"], extra["method"]) == ("divide", "tools/call")
    assert len(extra["error_id"]) == 16


def test_sentry_groups_failures_of_one_kind_and_no_others(events: list[dict[str, Any]]) -> None:
    """It groups by types and frames; a message would only count without them, and it is constant."""
    keys = [[(value["type"], frames_of(value)) for value in event["exception"]["values"]] for event in events]
    assert keys[0] == keys[1] != keys[2]
    assert {event["logentry"]["message"] for event in events} == {"%s (error_id=%s feature=%s)"}


def test_sentry_gets_the_members_of_a_group(events: list[dict[str, Any]]) -> None:
    values = events[2]["exception"]["values"]
    assert {value["type"] for value in values} == {"ExceptionGroup", "ConnectionError", "LookupError"}
    assert all(
        ("orders_server.py", "fail") in frames_of(value) for value in values if value["type"] != "ExceptionGroup"
    )


def test_sentry_ignores_ignored_types_and_answers(events: list[dict[str, Any]]) -> None:
    kinds = [event["exception"]["values"][-1]["type"] for event in events]
    assert kinds == ["ZeroDivisionError", "ZeroDivisionError", "ExceptionGroup"]


def test_sentry_gets_no_credentials(events: list[dict[str, Any]]) -> None:
    assert "hunter2" not in json.dumps(events)


def failure() -> BaseException:
    """Return a group that has a caller's text."""
    member = ValueError(FORGING)
    member.add_note(FORGING)
    with pytest.raises(ExceptionGroup) as caught:
        raise ExceptionGroup(FORGING, [member])
    return caught.value


@pytest.fixture
def apart(monkeypatch: pytest.MonkeyPatch) -> logging.Logger:
    """A log without the handlers of the test run."""
    replacement = logging.Logger("funcmcp")  # noqa: LOG001 - one without a parent, whose handlers are not seen
    monkeypatch.setattr("funcmcp._server.log.logger", replacement)
    return replacement


def logged_with(log: logging.Logger, formatter: logging.Formatter) -> str:
    """Return what a handler with a formatter writes about a failure."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(formatter)
    log.addHandler(handler)
    log_failure(failure(), "ab12", "get_order", "tools/call")
    return stream.getvalue()


@pytest.mark.parametrize(
    ("formatter", "exception"),
    [
        (JsonFormatter(), "exc_info"),
        (
            ProcessorFormatter(
                processors=[
                    ProcessorFormatter.remove_processors_meta,
                    structlog.processors.format_exc_info,
                    structlog.processors.JSONRenderer(),
                ],
                foreign_pre_chain=[structlog.stdlib.add_log_level, ExtraAdder()],
            ),
            "exception",
        ),
    ],
    ids=["python-json-logger", "structlog"],
)
def test_a_record_as_json_is_one_line_with_its_fields(
    apart: logging.Logger, formatter: logging.Formatter, exception: str
) -> None:
    text = logged_with(apart, formatter)
    assert len(text.splitlines()) == 1
    assert "\x1b" not in text
    record = json.loads(text)
    assert (record["error_id"], record["feature"], record["method"]) == ("ab12", "get_order", "tools/call")
    assert "ExceptionGroup: x" in record[exception]
    assert "ValueError: x" in record[exception]
    assert __file__ in record[exception]


def test_loguru_gets_the_exception(apart: logging.Logger) -> None:
    """The handler is the one of loguru's documentation."""
    exceptions: list[Any] = []

    class InterceptHandler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            loguru.logger.opt(depth=6, exception=record.exc_info).log(record.levelname, record.getMessage())

    sink = loguru.logger.add(lambda message: exceptions.append(message.record["exception"]))
    try:
        apart.addHandler(InterceptHandler())
        error = failure()
        log_failure(error, "ab12", "get_order")
    finally:
        loguru.logger.remove(sink)
    assert [exception.value for exception in exceptions] == [error]
