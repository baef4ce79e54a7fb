"""All blocks of the README run in order, in a new virtual environment with only the packages that the README installs.

The wheel of this project replaces the name on the package index, with the same extras.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.cli.processes import environment, running
from tests.requirements import require

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^```(sh|python|console)\n(.*?)^```", re.MULTILINE | re.DOTALL)
PACKAGE = re.compile(r'"funcmcp(\[[\w,-]+\])"')
SECONDS = 300

pytestmark = pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="it installs packages: one Python is enough")


@dataclass
class Newcomer:
    """A user who follows the README at a shell.

    Attributes:
        python: The interpreter of the virtual environment.
        wheel: The wheel of this project.
        folder: The working folder.
        lines: The commands that have run.
    """

    python: Path
    wheel: Path
    folder: Path
    lines: list[str] = field(default_factory=list)

    def install(self, line: str) -> None:
        """Install the wheel with the extras of a line of `pip install`."""
        extras = PACKAGE.search(line)
        assert extras is not None, f"no funcmcp in this line: {line}"
        pip = [str(self.python), "-m", "pip", "install", "--quiet", "--no-compile", f"{self.wheel}{extras[1]}"]
        process = subprocess.run(pip, capture_output=True, text=True, timeout=SECONDS, check=False)
        require(f"A package index ({process.stderr.strip()[-300:]})", process.returncode == 0)

    def shell(self, line: str) -> str:
        """Run a line and return its output; for a server, start it and return its endpoint."""
        self.lines.append(line)
        if line.startswith("pip install"):
            self.install(line)
            return ""
        program, *arguments = shlex.split(line)
        if program == "cd":
            self.folder /= arguments[0]
            return ""
        command = [str(self.python.parent / program), *arguments]
        if arguments[:1] == ["run"]:
            with running([*command, "--port", "0"], folder=self.folder, env=self.variables()) as process:
                return process.endpoint()
        return self.run(command)

    def run(self, command: list[str]) -> str:
        """Run a program and return its output."""
        process = subprocess.run(
            command,
            cwd=self.folder,
            env=environment(self.variables()),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=SECONDS,
            check=False,
        )
        assert process.returncode == 0, f"{command}\n{process.stdout}\n{process.stderr}"
        return process.stdout

    def variables(self) -> dict[str, str]:
        """Return the variables that an activated virtual environment sets."""
        return {"PATH": f"{self.python.parent}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": ""}

    def save(self, code: str) -> None:
        """Save a block as server.py and run it. `mcp.run()` returns at once, because stdin is empty."""
        (self.folder / "server.py").write_text(code, encoding="utf-8")
        self.run([str(self.python), "server.py"])


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=SECONDS)
    [file] = folder.glob("*.whl")
    return Path(file)


@pytest.mark.timeout(2 * SECONDS)
def test_every_command_works_after_the_install_lines_above_it(wheel: Path, tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True, timeout=SECONDS)
    newcomer = Newcomer(tmp_path / "venv" / "bin" / "python", wheel, tmp_path)
    for language, text in FENCE.findall((ROOT / "README.md").read_text(encoding="utf-8")):
        if language == "python":
            newcomer.save(text)
        elif language == "console":
            for command, expected in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", text, re.MULTILINE):
                assert newcomer.shell(command).strip() == expected.strip()
        elif not text.startswith("curl"):  # tests/docs/test_curl.py
            for line in text.splitlines():
                newcomer.shell(line)
    assert {"funcmcp new order-desk", "funcmcp doctor", "funcmcp run"} <= set(newcomer.lines)
    assert sum(line.startswith("pip install") for line in newcomer.lines) > 1
