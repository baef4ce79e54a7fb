"""Workers for Python function apps."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from funcmcp_host.workers.child_process import Command, program_path
from funcmcp_host.workers.process import ProcessWorker

if TYPE_CHECKING:
    from collections.abc import Mapping

Engine = Literal["auto", "runtime", "library"]

_PROGRAM = Path(__file__).with_name("python_main.py")
# Python puts the folder of a script first on its path; the names of the modules there would hide the app's.
_BOOT = "import runpy, sys; sys.path.pop(0); sys.argv.pop(0); runpy.run_path(sys.argv[0], run_name='__main__')"


def python_worker(
    folder: Path, environment: Mapping[str, str], *, python: str | None = None, engine: Engine = "auto"
) -> ProcessWorker:
    """Return a worker for a Python app.

    Args:
        folder: The app's folder.
        environment: The environment of the worker's process.
        python: The interpreter; by default that of ``.venv`` in the folder, or the one that runs this program.
        engine: The library that runs the functions: azure-functions-runtime ("runtime"), azure-functions alone
            ("library"), or "auto" for the first one where it is installed on Python 3.13 and later.
    """
    program = program_path(python) if python else interpreter_of(folder)
    variables = {**environment, "PYTHONUNBUFFERED": "1"}
    return ProcessWorker(Command((program, "-c", _BOOT, str(_PROGRAM), engine), folder, variables))


def interpreter_of(folder: Path) -> str:
    """Return the interpreter of an app: its virtual environment's, or the one that runs this program."""
    for name in (".venv", "venv", "env"):
        for path in (folder / name / "bin" / "python", folder / name / "Scripts" / "python.exe"):
            if os.access(path, os.X_OK):
                return str(path)
    return sys.executable
