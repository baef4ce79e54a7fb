"""The virtual environments with the frameworks that funcmcp is compared with, one for each version of Python."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"
PYTHON = HERE / f".venv-peers-{VERSION}" / "bin" / "python"
PACKAGES = ("funcmcp-slim", "mcp", "fastmcp", "pydantic", "uvicorn", "uvloop", "httptools")


def run_with_peers(program: Path) -> None:
    """Run a program again in the environment of the peers for this Python, unless it already runs there.

    The environment is created if necessary.
    """
    if Path(sys.prefix) == PYTHON.parent.parent.resolve():
        return
    folder = PYTHON.parent.parent
    requirements = (HERE / "requirements.txt").read_text()
    mark = folder / ".ready"
    if not mark.exists() or mark.read_text() != requirements:
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        install = [str(HERE.parent / "scripts" / "install.sh"), str(PYTHON)]
        packages = ["-r", str(HERE / "requirements.txt"), "-e", f"{HERE.parent}[auth,redis]"]
        subprocess.run([*install, *packages], cwd=HERE.parent, check=True)
        mark.write_text(requirements)
    os.execv(PYTHON, [str(PYTHON), str(program), *sys.argv[1:]])
