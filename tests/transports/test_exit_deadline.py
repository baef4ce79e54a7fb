"""The deadline for the exit of a process, and the line about what has not ended."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.cli.processes import PYTHON, run_to_end

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.every_python("Tasks, timeouts and cancellation are those of asyncio.")

CODE = """
import atexit, sys, threading, time
from funcmcp._transports import exit_deadline

exit_deadline.drain_seconds, exit_deadline.CLEANUP_SECONDS, exit_deadline._ALARM_SECONDS = lambda: 0, 0.1, 1000.0


def hang():
    time.sleep(1000)


"""
ATEXIT = CODE + "atexit.register(hang)\n"
EXPORTER = ATEXIT.replace("def hang", '__name__ = "opentelemetry.sdk.trace"\n\n\ndef hang')
THREAD = CODE + "threading.Thread(target=hang, name='a\\nb').start()\n"
EXPORTER_LINE = (
    "The server has ended, but not opentelemetry.sdk.trace.hang: an exporter of OpenTelemetry did not reach its "
    "collector in time. The process exits without the last spans or metrics."
)
START = "exit_deadline.start_exit_deadline()\n"


@pytest.mark.parametrize(
    ("code", "line"),
    [
        (f"{CODE}{START}hang()", "Some calls did not end in time. The process exits without them."),
        (f"{ATEXIT}{START}", "The server has ended, but not __main__.hang. The process exits without it."),
        (f"{THREAD}{START}", r"The server has ended, but not the thread a\nb. The process exits without it."),
        (
            f"{EXPORTER}{START}",
            EXPORTER_LINE,
        ),
    ],
    ids=["call", "atexit", "thread", "exporter"],
)
@pytest.mark.parametrize("log_format", ["text", "json"])
def test_the_line_names_what_has_not_ended_in_the_format_of_the_log(
    code: str, line: str, log_format: str, tmp_path: Path
) -> None:
    ended = run_to_end([PYTHON, "-c", code], folder=tmp_path, env={"FUNCMCP_LOG_FORMAT": log_format})
    assert ended.returncode == 0
    text = ended.stderr
    if log_format == "json":
        record = json.loads(text)
        assert (record["level"], record["logger"]) == ("WARNING", "funcmcp")
        text = f"{record['message']}\n"
    assert text == f"{line}\n"


def test_an_invalid_format_of_the_log_does_not_keep_the_process(tmp_path: Path) -> None:
    ended = run_to_end([PYTHON, "-c", f"{ATEXIT}{START}"], folder=tmp_path, env={"FUNCMCP_LOG_FORMAT": "xml"})
    assert (ended.returncode, ended.stderr.count("\n")) == (0, 1)
