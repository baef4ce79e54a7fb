"""README from top to bottom, as a newcomer follows it, in a fresh virtual environment with only what it installs.

The environment gets this project's wheel in place of the name on the package index, with the same extras.
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
    """A person at a shell.

    Attributes:
        python: of the virtual environment.
        wheel: of this project.
        folder: the working folder.
        lines: the commands that were run.
    """

    python: Path
    wheel: Path
    folder: Path
    lines: list[str] = field(default_factory=list)

    def install(self, line: str) -> None:
        """Run a line of `pip install`."""
        extras = PACKAGE.search(line)
        assert extras is not None, f"what does this install? {line}"
        pip = [str(self.python), "-m", "pip", "install", "--quiet", "--no-compile", f"{self.wheel}{extras[1]}"]
        ended = subprocess.run(pip, capture_output=True, text=True, timeout=SECONDS, check=False)
        require(f"A package index ({ended.stderr.strip()[-300:]})", ended.returncode == 0)

    def shell(self, line: str) -> str:
        """Run a line to its end, and return what it printed; a server until it says where it is."""
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
        """Run a program to its end."""
        ended = subprocess.run(
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
        assert ended.returncode == 0, f"{command}\n{ended.stdout}\n{ended.stderr}"
        return ended.stdout

    def variables(self) -> dict[str, str]:
        """Return what the activated virtual environment changes."""
        return {"PATH": f"{self.python.parent}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": ""}

    def save(self, code: str) -> None:
        """Save a block as server.py, and run it: without a client `mcp.run()` ends at once."""
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
