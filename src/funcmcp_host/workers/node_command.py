"""Workers for Node function apps."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from funcmcp_host.workers.child_process import Command, program_path, until_parent_ends
from funcmcp_host.workers.process import ProcessWorker

if TYPE_CHECKING:
    from collections.abc import Mapping

_PROGRAM = Path(__file__).with_name("node_main.cjs")


def node_worker(folder: Path, environment: Mapping[str, str], *, node: str | None = None) -> ProcessWorker:
    """Return a worker for a Node app.

    Args:
        folder: The app's folder.
        environment: The environment of the worker's process.
        node: The program; by default the ``node`` on the PATH.
    """
    arguments = until_parent_ends([program_path(node or "node"), str(_PROGRAM)])
    return ProcessWorker(Command(arguments, folder, environment))
