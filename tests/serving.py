"""Starts a server with uvicorn in a process of its own, for tests that need real HTTP.

The process is a fork that has the modules already, unless the test names an interpreter or other packages.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tests.cli.forking import running_module
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import IO

    from tests.cli.processes import Process

REPOSITORY = Path(__file__).resolve().parents[1]

_LISTENING = re.compile(r"running on (http://[\w.:\[\]]+)")


@dataclass
class Served:
    """A server that accepts connections.

    Attributes:
        origin: scheme, host and port, e.g. ``http://127.0.0.1:43210``.
        output: what the process has printed so far, line by line.
    """

    origin: str
    output: list[str]

    @property
    def url(self) -> str:
        """The MCP endpoint."""
        return f"{self.origin}/mcp"


@dataclass
class _Reader:
    """Collects a process's output in a thread, and tells when it says where it listens."""

    pipe: IO[str]
    lines: list[str] = field(default_factory=list)
    origin: str | None = None
    settled: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        for line in self.pipe:
            self.lines.append(line.rstrip())
            found = _LISTENING.search(line)
            if found and self.origin is None:
                self.origin = found[1]
                self.settled.set()
        self.settled.set()


@contextmanager
def serve(
    file: Path,
    *,
    attribute: str = "mcp",
    folder: Path | None = None,
    env: Mapping[str, str] | None = None,
    python: Path | None = None,
) -> Iterator[Served]:
    """Serve a module's ASGI application with uvicorn on a free loopback port until the block ends.

    Args:
        file: the module, e.g. ``REPOSITORY / "samples/orders/server.py"``.
        attribute: the application's name in it.
        folder: the process's working folder; the file's own by default.
        env: environment variables to set beside the inherited ones.
        python: the interpreter of a new process, which has uvicorn; by default the process is a fork.

    Raises:
        AssertionError: the server did not start, or did not stop within ten seconds of SIGTERM; its output is
            in the text. An error raised in the block gets the output as a note.
    """
    root, module = _module(file)
    options = ["--app-dir", str(root), "--port", "0", "--no-use-colors", f"{module}:{attribute}"]
    variables = {**os.environ, "PYTHONUNBUFFERED": "1", **(env or {})}
    with _started_process(options, folder or file.parent, variables, python) as process:
        assert process.stdout is not None
        reader = _Reader(process.stdout)
        thread = threading.Thread(target=reader.run, daemon=True)
        thread.start()
        try:
            yield _served(file, reader)
        except BaseException as error:
            error.add_note(f"the server's output:\n{_text(reader)}")
            raise
        finally:
            _stop(process, reader)
            thread.join(PATIENCE)


@contextmanager
def _started_process(
    options: list[str], folder: Path, variables: Mapping[str, str], python: Path | None
) -> Iterator[Process]:
    if python is None and variables.get("PYTHONPATH") in (os.environ.get("PYTHONPATH"), str(REPOSITORY)):
        with running_module("uvicorn.main", *options, folder=folder, env=variables) as fork:
            yield fork
        return
    with subprocess.Popen(
        [str(python or sys.executable), "-m", "uvicorn", *options],
        cwd=folder,
        env=variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
    ) as process:
        yield process


def _module(file: Path) -> tuple[Path, str]:
    """Return the folder to import a file from and its name there: that of its package, if it is in one."""
    root, name = file.parent, file.stem
    while (root / "__init__.py").exists():
        root, name = root.parent, f"{root.name}.{name}"
    return root, name


def _served(file: Path, reader: _Reader) -> Served:
    reader.settled.wait(PATIENCE)
    if reader.origin is None:
        raise AssertionError(f"{file} did not start within {PATIENCE} s")
    return Served(reader.origin, reader.lines)


def _stop(process: Process, reader: _Reader) -> None:
    process.terminate()
    try:
        process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        raise AssertionError(f"the server did not stop on SIGTERM:\n{_text(reader)}") from None


def _text(reader: _Reader) -> str:
    return "\n".join(reader.lines[-100:])
