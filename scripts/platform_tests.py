"""Run the tests whose outcome depends on Python and on the system: ``python scripts/platform_tests.py``.

It works on Linux, macOS and Windows with the Python that runs it. The other scripts need Linux or macOS.
"""

from __future__ import annotations

import os
import subprocess
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / ".venv-platform"
PYTHON = FOLDER / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def main() -> None:
    """Make a virtual environment with what the tests need, and run them."""
    venv.create(FOLDER, clear=True, with_pip=True)
    for arguments in (
        ("pip", "install", "--upgrade", "pip>=25.1", "uv>=0.9"),
        ("uv", "pip", "install", "--python", str(PYTHON), "-e", ".", "-e", "distributions/funcmcp", "--group", "dev"),
        ("pytest", "-n", "auto", "--dist", "loadscope", "-m", "every_python and not slow"),
    ):
        subprocess.run([str(PYTHON), "-m", *arguments], cwd=ROOT, check=True)  # noqa: S603 - those above


if __name__ == "__main__":
    main()
