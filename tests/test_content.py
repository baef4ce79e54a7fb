"""`funcmcp.content`, as authors import it."""

from __future__ import annotations

import subprocess
import sys

import funcmcp
import funcmcp.content
from funcmcp._authoring.results.content import Image
from tests.patience import PATIENCE


def test_it_is_a_module_with_the_names_of_content() -> None:
    assert funcmcp.content.Image is Image
    code = "from funcmcp.content import Image, ToolResult; from funcmcp import content; assert content.Image is Image"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=PATIENCE)


def test_the_package_runs_as_the_command() -> None:
    command = [sys.executable, "-m", "funcmcp", "--version"]
    done = subprocess.run(command, check=True, timeout=PATIENCE, capture_output=True, text=True)
    assert done.stdout == f"funcmcp {funcmcp.__version__}\n"
