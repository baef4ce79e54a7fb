"""Runs the command as people do, in processes of its own."""

from __future__ import annotations

import os
import queue
import re
import subprocess
import sys
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Protocol

from tests.patience import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

PYTHON = sys.executable
FUNCMCP = (PYTHON, "-m", "funcmcp_cli.main")

_ENDPOINT = re.compile(r"http://\S+")
_OUTPUT_VARIABLES = {
    "FORCE_COLOR",
    "NO_COLOR",
    "PY_COLORS",
    "GITHUB_ACTIONS",
    "TTY_COMPATIBLE",
    "COLUMNS",
    "PYTHONUNBUFFERED",
}


def environment(variables: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return this process's environment without the variables that control colours and buffers, and with others."""
    inherited = {name: value for name, value in os.environ.items() if name not in _OUTPUT_VARIABLES}
    return {**inherited, **(variables or {})}


def funcmcp(
    *arguments: str, folder: Path | None = None, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the command to its end."""
    return run_to_end([*FUNCMCP, *arguments], folder=folder, env=env)


def run_to_end(
    command: Sequence[str], *, folder: Path | None = None, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, with nothing on stdin."""
    return subprocess.run(
        command,
        cwd=folder,
        env=environment(env),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=PATIENCE,
        check=False,
    )


class Process(Protocol):
    """What tests need of `subprocess.Popen`."""

    @property
    def pid(self) -> int: ...

    @property
    def returncode(self) -> int | None: ...

    @property
    def stdout(self) -> IO[str] | None: ...

    def poll(self) -> int | None: ...

    def wait(self, timeout: float | None = None) -> int: ...

    def send_signal(self, number: int, /) -> None: ...

    def terminate(self) -> None: ...

    def kill(self) -> None: ...


@dataclass
class Running:
    """A process, and its output, line by line as it comes."""

    process: Process
    lines: list[str] = field(default_factory=list)
    _coming: queue.SimpleQueue[str | None] = field(default_factory=queue.SimpleQueue)
    _thread: threading.Thread | None = None

    def follow(self) -> None:
        """Collect what the process prints."""
        assert self.process.stdout is not None
        self._thread = threading.Thread(target=self._read, args=(self.process.stdout,), daemon=True)
        self._thread.start()

    def line_with(self, text: str) -> str:
        """Wait for a line that contains a text, after those that were waited for before."""
        while True:
            line = self._coming.get(timeout=PATIENCE)
            assert line is not None, f"{text!r} never came:\n{self.output}"
            if text in line:
                return line

    def endpoint(self) -> str:
        """Wait for the line that names the endpoint, and return its URL."""
        match = _ENDPOINT.search(self.line_with("http://"))
        assert match is not None
        return match[0]

    def ended(self) -> int:
        """Wait until the process has ended, and return its exit code."""
        code = self.process.wait(PATIENCE)
        assert self._thread is not None
        self._thread.join(PATIENCE)
        return code

    def join(self) -> None:
        """Wait until all output has been read."""
        if self._thread is not None:
            self._thread.join(PATIENCE)

    @property
    def output(self) -> str:
        """All that was printed."""
        return "\n".join(self.lines)

    def _read(self, pipe: IO[str]) -> None:
        for line in pipe:
            self.lines.append(line.rstrip("\n"))
            self._coming.put(line)
        self._coming.put(None)


@contextmanager
def followed(process: Process) -> Iterator[Running]:
    """Collect what a process prints; it is killed at the end of the block, if it still runs."""
    started = Running(process)
    started.follow()
    try:
        yield started
    except BaseException as error:
        error.add_note(f"the process's output:\n{started.output}")
        raise
    finally:
        process.kill()
        started.join()  # before the pipe is closed, from which the thread reads


@contextmanager
def running(
    command: Sequence[str], *, folder: Path | None = None, env: Mapping[str, str] | None = None
) -> Iterator[Running]:
    """Run a command in the background; it is killed at the end of the block, if it still runs."""
    with (
        subprocess.Popen(
            command,
            cwd=folder,
            env=environment(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
        ) as process,
        followed(process) as started,
    ):
        yield started
