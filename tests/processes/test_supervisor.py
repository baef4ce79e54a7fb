"""Reloads of the supervisor with processes that are not started; tests/cli/test_reload.py starts some."""

from __future__ import annotations

import signal
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp._processes import supervisor as supervisor_module
from funcmcp._processes.supervisor import Supervisor
from funcmcp._processes.uvicorn_server import Certificate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = [
    pytest.mark.every_python("Processes, signals and sockets are those of Python and asyncio."),
    pytest.mark.lowest("uvicorn, httptools, h11 and uvloop read and write HTTP."),
]

BEGUN = "Reloading because of SIGHUP."
ENDED = "Reloaded: the new code serves."


class Process:
    """A worker that is ready when a test says so."""

    name = "process"
    has_stopped = False

    def __init__(self) -> None:
        self.ready = False
        self.alive = True

    @property
    def accepts(self) -> bool:
        return self.alive

    def end(self) -> None:
        self.alive = False

    retire = terminate = hurry = end

    def kill(self, _seconds: float) -> None:
        self.end()


class Reloads:
    """A supervisor whose steps are those of a test.

    Attributes:
        processes: The processes that it has started.
        successors: Whether each of them was started as the successor of another one.
        sentences: What it has said about reloads.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, certificate: Certificate | None = None) -> None:
        self.processes: list[Process] = []
        self.successors: list[bool] = []
        self.sentences: list[str] = []
        self._monkeypatch = monkeypatch
        self._supervisor = Supervisor(
            self._start,  # type: ignore[arg-type] # it has all that a worker has
            1,
            [],
            on_ready=lambda: None,
            on_change=lambda _files: None,
            on_reload=lambda sentence, _is_failure: self.sentences.append(sentence),
            certificate=certificate,
        )

    def _start(self, *, is_successor: bool = False) -> Process:
        self.successors.append(is_successor)
        self.processes.append(Process())
        return self.processes[-1]

    def hang_up(self) -> None:
        """Send SIGHUP."""
        self._supervisor.hang_up(signal.SIGHUP, None)

    def stop(self) -> None:
        """Send SIGTERM."""
        self._supervisor.stop(signal.SIGTERM, None)

    def run(self, steps: Callable[[], Iterator[None]]) -> None:
        """Start, and look after the processes at each step of a test."""

        def ticks(_watch: Any) -> Iterator[list[Any]]:
            yield []
            self.processes[0].ready = True
            for _ in steps():
                yield []

        self._monkeypatch.setattr(self._supervisor, "_ticks", ticks)
        self._supervisor.run(None)


def test_a_certificate_that_is_not_valid_is_one_line_and_starts_no_process(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    missing = str(tmp_path / "cert.pem")
    reloads = Reloads(monkeypatch, Certificate(missing, missing))

    def steps() -> Iterator[None]:
        reloads.hang_up()
        yield
        yield
        assert len(reloads.processes) == 1
        assert reloads.processes[0].alive

    reloads.run(steps)
    assert [record.getMessage() for record in caplog.records] == [f"Can't read {missing}: No such file or directory"]
    assert reloads.sentences[0] == BEGUN
    assert reloads.sentences[1].startswith("The reload failed")


@pytest.mark.parametrize(("late", "expected"), [(0.0, 9.0), (8.8, 0.5)])
def test_the_process_that_has_started_workers_exits_in_time(
    monkeypatch: pytest.MonkeyPatch, late: float, expected: float
) -> None:
    """The author's code may have started threads in it, such as those of an exporter of OpenTelemetry."""
    clock = [100.0]
    deadlines: list[float] = []
    monkeypatch.setattr(supervisor_module, "time", SimpleNamespace(monotonic=lambda: clock[0], sleep=time.sleep))
    monkeypatch.setattr(supervisor_module, "start_exit_deadline", deadlines.append)
    reloads = Reloads(monkeypatch)

    def steps() -> Iterator[None]:
        yield
        assert deadlines == []
        reloads.stop()
        clock[0] += late
        yield

    reloads.run(steps)
    assert deadlines == [expected]


def test_signals_during_a_reload_are_one_reload_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    reloads = Reloads(monkeypatch)

    def steps() -> Iterator[None]:
        for _ in range(5):
            reloads.hang_up()
            yield
        assert len(reloads.processes) == 2
        reloads.processes[1].ready = True
        yield
        yield
        assert len(reloads.processes) == 3
        assert not reloads.processes[0].alive
        assert reloads.processes[1].alive
        reloads.processes[2].ready = True
        for _ in range(5):
            yield
        assert [process.alive for process in reloads.processes] == [False, False, True]

    reloads.run(steps)
    assert reloads.sentences == [BEGUN, ENDED, BEGUN, ENDED]
    assert reloads.successors == [False, True, True]


@pytest.mark.parametrize("fails", [True, False], ids=["fails", "hangs"])
def test_a_reload_that_fails_or_hangs_gives_way_to_the_next_one(monkeypatch: pytest.MonkeyPatch, fails: bool) -> None:
    reloads = Reloads(monkeypatch)

    def steps() -> Iterator[None]:
        reloads.hang_up()
        yield
        reloads.hang_up()
        yield
        assert len(reloads.processes) == 2
        if fails:
            reloads.processes[1].end()
            yield
        else:
            monkeypatch.setattr(supervisor_module, "_RELOAD_SECONDS", -1.0)
        yield
        assert [process.alive for process in reloads.processes] == [True, False, True]
        reloads.processes[2].ready = True
        yield
        yield

    reloads.run(steps)
    assert reloads.sentences[-2:] == [BEGUN, ENDED]
