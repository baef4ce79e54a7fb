"""Microsoft's Python worker 1.1.9, of 2020. It has function.json files and does not answer requests for an index."""

from __future__ import annotations

import json
import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.requirements import require

if TYPE_CHECKING:
    from collections.abc import Mapping

_PROGRAM = "import sys; sys.argv[11:] = []; from azure_functions_worker.main import main; main()"
"""The program, without the arguments that are newer than it."""

MICROSOFTS_COMMAND = shlex.join([sys.executable, "-c", _PROGRAM])

_WITH_NEW_LIBRARY = f"import sys, google.protobuf; sys.path.append(sys.path.pop(1)); {_PROGRAM}"
"""The program with its own protobuf, and with the azure-functions of the tests, which other libraries need."""

MICROSOFTS_COMMAND_WITH_NEW_LIBRARY = shlex.join([sys.executable, "-c", _WITH_NEW_LIBRARY])


def microsofts_environment(folder: Path) -> dict[str, str]:
    """Return the variables that the worker needs for an app, or skip the test (fail in CI)."""
    packages = Path(sys.prefix) / "function-worker"
    require("Microsoft's Python worker of scripts/setup-python.sh", packages.exists())
    return {"PYTHONPATH": f"{packages}{os.pathsep}{folder}"}


def write_function_json(folder: Path, functions: Mapping[str, tuple[Mapping[str, Any], str]]) -> Path:
    """Write functions, each with its function.json and its code, into the folder of an app; return the folder."""
    (folder / "host.json").write_text('{"version": "2.0"}')
    (folder / "local.settings.json").write_text('{"Values": {"FUNCTIONS_WORKER_RUNTIME": "python"}}')
    for name, (definition, code) in functions.items():
        (folder / name).mkdir()
        (folder / name / "function.json").write_text(json.dumps(definition))
        (folder / name / "__init__.py").write_text(code)
    return folder
