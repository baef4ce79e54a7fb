"""The file with the names of FastMCP and the official SDK has those of the packages that are installed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from funcmcp_cli.migrate.compat_names import original_names
from tests.patience import PATIENCE
from tests.requirements import require

ROOT = Path(__file__).parents[3]
FASTMCP = ROOT / ".servers" / "differential" / "bin" / "python"


def names_of(python: str) -> dict[str, Any]:
    script = ROOT / "scripts" / "original_names.py"
    read = subprocess.run([python, script, "--read"], stdout=subprocess.PIPE, timeout=PATIENCE, check=True)
    names: dict[str, Any] = json.loads(read.stdout)
    return names


@pytest.mark.parametrize("python", [sys.executable, str(FASTMCP)], ids=["sdk", "fastmcp"])
def test_the_file_has_the_names_of_the_installed_packages(python: str) -> None:
    """Run scripts/original_names.py with the environments that docs/development/tests.md names if this fails."""
    require("FastMCP in .servers/differential", Path(python).exists())
    names, listed = names_of(python), original_names()
    for package, versions in names["versions"].items():
        assert set(versions) <= set(listed["versions"][package])
    for module, homes in names["modules"].items():
        assert homes.keys() <= listed["modules"].get(module, {}).keys(), module
    for cls, members in names["classes"].items():
        assert members.keys() <= listed["classes"].get(cls, {}).keys(), cls
