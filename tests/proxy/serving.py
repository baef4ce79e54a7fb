"""Starts proxies, and upstreams that are not ours, in processes of their own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.patience import PATIENCE
from tests.serving import REPOSITORY, serve

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tests.serving import Served

_GATEWAY = Path(__file__).parent / "gateway.py"
_EVERYTHING = Path(__file__).parent / "everything.py"


@contextmanager
def proxy(*upstreams: Mapping[str, Any], **settings: Any) -> Iterator[Served]:
    """Serve a proxy of these upstreams; see `gateway.py`."""
    variables = {"PROXY": json.dumps({**settings, "upstreams": upstreams}), "PYTHONPATH": str(REPOSITORY)}
    with serve(_GATEWAY, env=variables) as served:
        yield served


@contextmanager
def started(command: Sequence[str], sign: str, env: Mapping[str, str] | None = None) -> Iterator[list[str]]:
    """Start a program, wait until it prints a line with a sign, and end it afterwards.

    Args:
        command: The program and its arguments.
        sign: A regular expression.
        env: Environment variables, beside those of this process.

    Yields:
        The lines that the program has printed so far.
    """
    lines: list[str] = []
    ready = threading.Event()
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env={**os.environ, **(env or {})}
    ) as process:

        def read() -> None:
            assert process.stdout is not None
            for line in process.stdout:
                lines.append(line.rstrip())
                if re.search(sign, line):
                    ready.set()
            ready.set()

        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        try:
            assert ready.wait(PATIENCE), f"{command} did not start."
            assert process.poll() is None, "\n".join(lines)
            yield lines
        finally:
            process.kill()
            reader.join(PATIENCE)


@contextmanager
def everything(*revisions: str) -> Iterator[Served]:
    """Serve the sample `everything` with these revisions only."""
    variables = {"REVISIONS": " ".join(revisions), "PYTHONPATH": str(REPOSITORY)}
    with serve(_EVERYTHING, env=variables) as served:
        yield served
