"""All blocks of the README and of the tutorial run in order, in a new virtual environment with what the pages install.

The wheels of this project replace those on the package index: uv finds them in a folder.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import zipfile
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

from funcmcp import __version__
from scripts.skill import SKILL
from tests.cli.processes import environment, running
from tests.requirements import require

ROOT = Path(__file__).parents[2]
TUTORIAL = [ROOT / "docs" / "tutorial" / f"{name}.md" for name in ("first-server", "tests", "authentication", "azure")]
FENCE = re.compile(r"(?:`(\w+\.py)`[^\n`]*:\n\n)?^```(sh|python|console)\n(.*?)^```", re.MULTILINE | re.DOTALL)
"""A block, with the name of the file in the line above it."""
ORIGIN = "http://127.0.0.1:8000"
SECONDS = 300

pytestmark = [
    pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="it installs packages: one Python is enough"),
    pytest.mark.slow("Packages are installed in a new environment."),
]


@dataclass
class Newcomer:
    """A user who follows a page at a shell.

    Attributes:
        python: The interpreter of the virtual environment.
        wheels: The folder with the wheels of this project.
        folder: The working folder.
        home: The home folder, where clients have their files.
        lines: The commands that have run.
        origin: The origin of the server that `funcmcp run` has started.
        servers: Stops the servers.
    """

    python: Path
    wheels: Path
    folder: Path
    home: Path
    lines: list[str] = field(default_factory=list)
    origin: str = ORIGIN
    servers: ExitStack = field(default_factory=ExitStack)

    def follow(self, document: Path) -> None:
        """Do what a page says, block by block."""
        with self.servers:
            for file, language, text in FENCE.findall(document.read_text(encoding="utf-8")):
                if language == "python":
                    (self.folder / (file or "server.py")).write_text(text, encoding="utf-8")
                elif language == "console":
                    for command, expected in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", text, re.MULTILINE):
                        self.check(command, expected)
                else:
                    for line in text.splitlines():
                        self.shell(line)

    def install(self, line: str) -> None:
        """Run a line of `pip install`."""
        packages = shlex.split(line)[2:]
        command = [str(ROOT / "scripts" / "install.sh"), str(self.python), "--find-links", str(self.wheels), *packages]
        process = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=SECONDS, check=False)
        require(f"A package index ({process.stderr.strip()[-300:]})", process.returncode == 0)

    def shell(self, line: str) -> None:
        """Run a line of a block of commands. A server continues to run until the end of the page."""
        self.lines.append(line)
        program, *arguments = shlex.split(line)
        if program in ("source", "python3") and ".venv" in line:
            return  # the environment of this test is already active
        if program == "pip":
            self.install(line)
        elif program == "mkdir":
            (self.folder / arguments[0]).mkdir()
        elif program == "cd":
            self.folder /= arguments[0]
        elif program == "cp":
            shutil.copy(self.folder / arguments[0], self.folder / arguments[1])
        elif [program, *arguments[:1]] == ["funcmcp", "run"]:
            command = [str(self.python.parent / program), *arguments, "--port", "0"]
            process = self.servers.enter_context(running(command, folder=self.folder, env=self.variables()))
            self.origin = process.endpoint().removesuffix("/mcp")
        else:
            result = self.run(line)
            assert result.returncode == 0, f"{line}\n{result.stdout}\n{result.stderr}"

    def check(self, command: str, expected: str) -> None:
        """Run a command and compare its output with the page. `...` matches any text; errors are on stderr."""
        self.lines.append(command)
        result = self.run(command)
        assert (result.returncode == 0) == (result.stdout.strip() != ""), f"{command}\n{result.stdout}\n{result.stderr}"
        pattern = ".*".join(re.escape(part) for part in expected.strip().split("..."))
        output = result.stdout.strip() or result.stderr.strip()
        assert re.fullmatch(pattern, output, re.DOTALL), f"{command}\n{output}"

    def run(self, line: str) -> subprocess.CompletedProcess[str]:
        """Run a program of the virtual environment."""
        program, *arguments = shlex.split(line.replace(ORIGIN, self.origin))
        return subprocess.run(
            [str(self.python.parent / program), *arguments],
            cwd=self.folder,
            env=environment(self.variables()),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=SECONDS,
            check=False,
        )

    def variables(self) -> dict[str, str]:
        """Return the variables that an activated virtual environment sets."""
        path = f"{self.python.parent}{os.pathsep}{os.environ['PATH']}"
        return {"PATH": path, "PYTHONPATH": "", "HOME": str(self.home), "XDG_CONFIG_HOME": str(self.home / ".config")}


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build both distributions, and return their folder."""
    folder = tmp_path_factory.mktemp("wheels")
    subprocess.run([ROOT / "scripts" / "dist.sh", folder], cwd=ROOT, check=True, capture_output=True, timeout=SECONDS)
    return folder


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the interpreter of a new virtual environment."""
    folder = tmp_path_factory.mktemp("newcomer") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True, timeout=SECONDS)
    return Path(folder / "bin" / "python")


@pytest.mark.timeout(2 * SECONDS)
async def test_every_command_of_the_readme_works_after_the_install_lines_above_it(
    python: Path, wheels: Path, tmp_path: Path
) -> None:
    newcomer = Newcomer(python, wheels, tmp_path, tmp_path)
    newcomer.follow(ROOT / "README.md")
    assert any(line.startswith("funcmcp install ") for line in newcomer.lines)
    configuration = json.loads((tmp_path / ".config/Claude/claude_desktop_config.json").read_text(encoding="utf-8"))
    entry = configuration["mcpServers"]["kitchen"]
    command = StdioServerParameters(command=entry["command"], args=entry["args"], cwd="/")
    async with stdio_client(command) as streams, ClientSession(*streams) as session:
        await session.initialize()
        result = await session.call_tool("find_dish", {"name": "len"})
    assert result.structured_content == {"result": ["Lentil soup", "Lentil stew"]}


@pytest.mark.timeout(2 * SECONDS)
def test_the_tutorial_works_from_its_first_page_to_its_last(python: Path, wheels: Path, tmp_path: Path) -> None:
    newcomer = Newcomer(python, wheels, tmp_path, tmp_path)
    for document in TUTORIAL:
        newcomer.follow(document)
    assert {"funcmcp new kitchen-cloud", "funcmcp doctor", "funcmcp run"} <= set(newcomer.lines)


def test_both_distributions_have_what_belongs_to_them(wheels: Path) -> None:
    names = {path.name.split("-")[0]: path for path in wheels.glob("*.whl")}
    assert set(names) == {"funcmcp", "funcmcp_slim"}
    full, slim = (set(zipfile.ZipFile(names[name]).namelist()) for name in ("funcmcp", "funcmcp_slim"))
    assert {"funcmcp_cli/main.py", "funcmcp_host/served.py"} <= full
    assert {"funcmcp/__init__.py", "funcmcp/py.typed"} <= slim
    assert not any(name.endswith("/scripts/funcmcp") for name in slim)
    sources = sorted(path.name.split("-")[0] for path in wheels.glob("*.tar.gz"))
    assert sources == ["funcmcp", "funcmcp_slim"]
    with tarfile.open(next(wheels.glob("funcmcp_slim-*.tar.gz"))) as archive:
        members = archive.getnames()
    assert any(member.endswith("/src/funcmcp/__init__.py") for member in members)
    assert not any("/fuzz/corpus/" in member for member in members)


@pytest.mark.timeout(2 * SECONDS)
def test_library_skills_installs_the_skill_for_coding_agents(python: Path, wheels: Path, tmp_path: Path) -> None:
    newcomer = Newcomer(python, wheels, tmp_path, tmp_path)
    newcomer.install("pip install funcmcp library-skills==0.0.19")
    (tmp_path / ".venv").symlink_to(python.parent.parent)
    page = (ROOT / "docs" / "guides" / "coding-agents.md").read_text(encoding="utf-8")
    [command] = re.findall(r"^uvx (library-skills .*)$", page, re.MULTILINE)
    run = newcomer.run(command)
    assert run.returncode == 0, run.stdout + run.stderr
    for folder in (".agents", ".claude"):
        assert (tmp_path / folder / "skills" / "funcmcp" / "SKILL.md").read_bytes() == (SKILL / "SKILL.md").read_bytes()


@pytest.mark.timeout(2 * SECONDS)
def test_the_slim_one_serves_and_says_what_the_command_needs(wheels: Path, tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True, timeout=SECONDS)
    newcomer = Newcomer(tmp_path / "venv" / "bin" / "python", wheels, tmp_path, tmp_path)
    newcomer.install("pip install funcmcp-slim")
    assert not (newcomer.python.parent / "funcmcp").exists()
    shown = newcomer.run("python -m funcmcp run server.py")
    assert (shown.returncode, shown.stderr) == (
        1,
        "The command line is not installed. Run: pip install funcmcp\n",
    )
    (tmp_path / "other.py").write_text("from funcmcp import MCPServer\n\nprint(MCPServer('Slim').name)\n")
    assert newcomer.run("python other.py").stdout == "Slim\n"
    newcomer.install("pip install funcmcp-slim[cli]")
    assert newcomer.run("python -m funcmcp --version").stdout == f"funcmcp {__version__}\n"


@pytest.mark.timeout(2 * SECONDS)
def test_two_versions_of_the_distributions_are_one_line(python: Path, wheels: Path, tmp_path: Path) -> None:
    """pip and uv install such versions if each is named alone."""
    newcomer = Newcomer(python, wheels, tmp_path, tmp_path)
    newcomer.install("pip install funcmcp")
    [module] = python.parent.parent.glob("lib/python*/site-packages/funcmcp_cli/main.py")
    original = module.read_text(encoding="utf-8")
    module.write_text(re.sub(r"^_VERSION = .*$", '_VERSION = "0.0.9"', original, count=1, flags=re.MULTILINE))
    try:
        shown = newcomer.run("funcmcp --version")
    finally:
        module.write_text(original, encoding="utf-8")
    assert shown.returncode == 1
    assert re.fullmatch(
        r"funcmcp 0\.0\.9 and funcmcp-slim (\S+) are installed\. They need the same version: "
        r"pip install funcmcp==\1\n",
        shown.stderr,
    )
