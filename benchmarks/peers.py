"""The virtual environments with the frameworks that funcmcp is compared with, one for each version of Python."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"
PACKAGES = ("funcmcp-slim", "mcp", "fastmcp", "pydantic", "uvicorn", "uvloop", "httptools")


def run_with_peers(program: Path, requirements: str = "requirements.txt") -> None:
    """Run a program again in the environment of the peers for this Python, unless it already runs there.

    The environment is created if necessary.

    Args:
        program: The program, which calls this function.
        requirements: The name of the file with the peers. Each file has an environment of its own.
    """
    folder = _environment(requirements)
    python = folder / "bin" / "python"
    if Path(sys.prefix) == folder.resolve():
        return
    packages = (HERE / requirements).read_text()
    mark = folder / ".ready"
    if not mark.exists() or mark.read_text() != packages:
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        install = [str(HERE.parent / "scripts" / "install.sh"), str(python), "-r", str(HERE / requirements)]
        funcmcp = ["-e", f"{HERE.parent}[auth,redis]", "-e", f"{HERE.parent}/distributions/funcmcp"]
        subprocess.run([*install, *funcmcp], cwd=HERE.parent, check=True)
        mark.write_text(packages)
    os.execv(python, [str(python), str(program), *sys.argv[1:]])


def _environment(requirements: str) -> Path:
    """Return the folder of an environment, e.g. `.venv-peers-3.11` for `requirements.txt`."""
    peers = Path(requirements).stem.replace("requirements", "peers")
    return HERE / f".venv-{peers}-{VERSION}"
