"""Parts of the suite pass on Python 3.14, in WebAssembly."""

from __future__ import annotations

import re
import subprocess
import sysconfig

import pytest

from tests import nodejs
from tests.requirements import require
from tests.serving import REPOSITORY

pytestmark = [
    pytest.mark.slow("Python starts in WebAssembly, and is several times slower there."),
    pytest.mark.timeout(3000),
]

PARTS = (
    "tests/protocol",
    "tests/objects",
    "tests/authoring/signatures",
    "tests/authoring/features/test_tools.py",
    "tests/authoring/features/test_prompts.py",
    "tests/authoring/features/test_resources.py",
    "tests/authoring/results",
)
"""Tests that need neither threads nor processes, for the most part."""

IMPOSSIBLE = "not nest and not deep and not is_found_if_it_is_certain and not figures"
"""WebAssembly has a smaller stack than the JSON of some tests needs, and matplotlib is missing."""

PROGRAM = """
import pathlib, sys, warnings

with warnings.catch_warnings():
    warnings.simplefilter("error")
    files = sorted(pathlib.Path("/repository/src").rglob("*.py"))
    for file in files:
        compile(file.read_text(encoding="utf-8"), str(file), "exec", dont_inherit=True)
print(sys.version_info[:2], len(files) > 500)
sys.path[:0] = ["/compiled", "/repository/src", "/repository"]
sys.path.append("/packages")
from tests.python_3_14.suite import main
main({arguments!r})
"""
FLAGS = ("--stack-size=8000", "--experimental-wasm-stack-switching", "--experimental-wasm-jspi")


@pytest.fixture(scope="module")
def output() -> str:
    """Return what one run of the program in Pyodide prints: its start takes seconds."""
    compiled = REPOSITORY / ".servers" / "python-3.14"
    ready = (compiled / ".ready").exists()
    pyodide = require("Python 3.14 (scripts/setup-python-3.14.sh)", nodejs.HOME / "python" if ready else None)
    packages = sysconfig.get_path("purelib")
    script = REPOSITORY / "tests" / "python_3_14" / "run.mjs"
    folders = (f"repository={REPOSITORY}", f"packages={packages}", f"compiled={compiled.resolve()}")
    code = PROGRAM.format(arguments=[*PARTS, "-m", "every_python", "-k", IMPOSSIBLE])
    command = [str(nodejs.node()), *FLAGS, str(script), str(pyodide), code, *folders]
    run = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False)
    return run.stdout + run.stderr


def test_each_module_compiles_without_a_warning(output: str) -> None:
    assert output.startswith("(3, 14) True\n"), output


def test_tests_whose_outcome_depends_on_the_version_pass(output: str) -> None:
    summary = re.search(r"^(?:(\d+) failed, )?(\d+) passed", output, re.MULTILINE)
    assert summary is not None, output
    assert (summary[1], int(summary[2]) > 100) == (None, True), output
    assert "error" not in output.splitlines()[-1], output
