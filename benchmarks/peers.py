"""The virtual environment with the frameworks that funcmcp is compared with."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
PYTHON = HERE / ".venv" / "bin" / "python"
PACKAGES = ("funcmcp", "mcp", "fastmcp", "pydantic", "uvicorn", "uvloop", "httptools")


def run_with_peers(program: Path) -> None:
    """Run a program again in the environment of the peers, unless it already runs there. Create it if necessary."""
    if Path(sys.prefix) == PYTHON.parent.parent.resolve():
        return
    requirements = (HERE / "requirements.txt").read_text()
    mark = HERE / ".venv" / ".ready"
    if not mark.exists() or mark.read_text() != requirements:
        subprocess.run([sys.executable, "-m", "venv", "--clear", HERE / ".venv"], check=True)
        install = [str(PYTHON), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*install, "-r", str(HERE / "requirements.txt"), "-e", f"{HERE.parent}[auth,redis]"], check=True)
        mark.write_text(requirements)
    os.execv(PYTHON, [str(PYTHON), str(program), *sys.argv[1:]])
