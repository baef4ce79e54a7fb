"""Workers for Node function apps."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from funcmcp.functions_host.workers.process import Command, ProcessWorker, found_program

if TYPE_CHECKING:
    from collections.abc import Mapping

_PROGRAM = Path(__file__).with_name("node_main.cjs")
# Node has no way to call prctl, so Python does before it becomes Node: a blocked event loop sees no closed socket.
_UNTIL_PARENT_ENDS = """
import ctypes, os, sys
ctypes.CDLL(None).prctl(1, 9, 0, 0, 0)
os.execvp(sys.argv[1], sys.argv[1:])
"""


def node_worker(folder: Path, environment: Mapping[str, str], *, node: str | None = None) -> ProcessWorker:
    """Return a worker for a Node app.

    Args:
        folder: The app's folder.
        environment: The environment of the worker's process.
        node: The program; by default the ``node`` on the PATH.
    """
    program = found_program(node or "node")
    arguments = [program, str(_PROGRAM)]
    if sys.platform == "linux" and os.access(program, os.X_OK):
        arguments = [sys.executable, "-I", "-S", "-c", _UNTIL_PARENT_ENDS, *arguments]
    return ProcessWorker(Command(arguments, folder, environment))
