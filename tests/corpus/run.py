"""Installs the corpus, compares every server of it, and writes docs/development/corpus.md.

Run it with `python -m tests.corpus.run [NAME...]`.

With names (or parts of them) only these are compared, and the page is not written.

How it works: `.corpus/` has one virtual environment for each generation of libraries, with what funcmcp needs, and one
folder for each package. A server is observed twice (see `observe`), each time in a process of its own with a time
limit, with an empty temporary folder as its home and working directory, and without a network.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.corpus.compare import Comparison, compare
from tests.corpus.report import Unsupported, failures, page

HERE = Path(__file__).parent
REPOSITORY = HERE.parents[1]
STORE = REPOSITORY / ".corpus"
PAGE = REPOSITORY / "docs" / "development" / "corpus.md"
_SECONDS = 120
_AT_ONCE = 2
_GENERATIONS = {
    "mcp 1": "v1",
    "low-level 1": "v1",
    "fastmcp 2": "v1",
    "fastmcp 3": "fastmcp3",
    "mcp 2": "v2",
    "low-level 2": "v2",
    "fastmcp 4": "v2",
}


class InstallError(Exception):
    """pip could not install what the corpus needs; the text is its last line."""


class ObserveError(Exception):
    """A server could not be loaded or did not answer; the text says which side, and its last line."""


@dataclass(frozen=True)
class Server:
    """One row of servers.toml.

    Attributes:
        package: name and version.
        library: what it is served with.
        options: everything else.
    """

    package: str
    library: str
    options: dict[str, Any]

    @property
    def name(self) -> str:
        """The package's name."""
        return self.package.partition("==")[0]

    @property
    def version(self) -> str:
        """The package's version."""
        return self.package.partition("==")[2]

    @property
    def generation(self) -> str:
        """The environment that it runs in."""
        return _GENERATIONS[self.library]

    @property
    def folder(self) -> Path:
        """Where the package is installed."""
        return STORE / "packages" / self.package.replace("==", "-")

    def description(self) -> str:
        """Return what `observe` needs to know, as JSON."""
        return json.dumps({**self.options, "name": self.name, "low_level": self.library.startswith("low-level")})


def servers() -> list[Server]:
    """Return all servers, in the order of servers.toml."""
    rows = tomllib.loads((HERE / "servers.toml").read_text(encoding="utf-8"))["server"]
    return [Server(row.pop("package"), row.pop("library"), row) for row in rows]


def install(servers: list[Server]) -> None:
    """Install environments and packages that are missing; raise InstallError.

    Two processes of a test run may do this at the same time. The second one waits.
    """
    STORE.mkdir(exist_ok=True)
    with (STORE / ".lock").open("w") as lock, ThreadPoolExecutor(_AT_ONCE) as pool:
        fcntl.flock(lock, fcntl.LOCK_EX)
        list(pool.map(_install_environment, sorted({server.generation for server in servers})))
        list(pool.map(_install_package, {server.package: server for server in servers}.values()))


def _install_environment(generation: str) -> None:
    folder = STORE / generation
    files = [HERE / f"requirements-{name}.txt" for name in (generation, "common")]
    constraints = HERE / f"constraints-{generation}.txt"
    requirements = "".join(file.read_text(encoding="utf-8") for file in (*files, constraints))
    ready = folder / ".ready"
    if ready.is_file() and ready.read_text(encoding="utf-8") == requirements:
        return
    shutil.rmtree(folder, ignore_errors=True)
    _run([sys.executable, "-m", "venv", str(folder)])
    python = folder / "bin" / "python"
    _run([_INSTALL, str(python), "-c", str(constraints), *(f"-r{file}" for file in files)])
    ready.write_text(requirements, encoding="utf-8")


def _install_package(server: Server) -> None:
    if (server.folder / ".ready").is_file():
        return
    shutil.rmtree(server.folder, ignore_errors=True)
    python = STORE / server.generation / "bin" / "python"
    # Wheels only: a source distribution would run its author's build script here.
    wheels = ["--no-deps", "--only-binary", ":all:", "--target", str(server.folder)]
    _run([_INSTALL, str(python), *wheels, server.package, *server.options.get("with", [])])
    (server.folder / ".ready").touch()


_INSTALL = str(REPOSITORY / "scripts" / "install.sh")


def _run(command: list[str]) -> None:
    done = subprocess.run(
        command, cwd=REPOSITORY, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False
    )
    if done.returncode:
        raise InstallError(f"{' '.join(command[-3:])}: {_last_line(done.stderr)}")


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1][:500] if lines else "no message"


def observe(server: Server, side: str) -> dict[str, Any]:
    """Return what a server offers on one side: "own" or "funcmcp"; raise ObserveError."""
    with tempfile.TemporaryDirectory() as home:
        environment = {
            "HOME": home,
            "LANG": "C.UTF-8",
            "NO_COLOR": "1",
            "PYTHONHASHSEED": "0",  # some servers make ids of hashes
            "PATH": os.environ.get("PATH", ""),
            "PYTHONPATH": os.pathsep.join(map(str, (REPOSITORY / "src", REPOSITORY, server.folder))),
            "PYTHONWARNINGS": "ignore",
            "TZ": "UTC",
            **server.options.get("environment", {}),
        }
        python = STORE / server.generation / "bin" / "python"
        try:
            done = subprocess.run(
                [str(python), "-m", "tests.corpus.observe", side, server.description()],
                cwd=home,
                env=environment,
                capture_output=True,
                text=True,
                stdin=subprocess.DEVNULL,
                timeout=_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise ObserveError(f"{server.name} ({side}): no answer in {_SECONDS} seconds") from None
    if done.returncode:
        raise ObserveError(f"{server.name} ({side}): {_last_line(done.stderr)}")
    observed: dict[str, Any] = json.loads(done.stdout)
    return observed


def compared(server: Server) -> Comparison:
    """Observe a server on both sides and compare; raise ObserveError."""
    with ThreadPoolExecutor(2) as pool:
        theirs, ours = pool.map(lambda side: observe(server, side), ("own", "funcmcp"))
    return compare(theirs, ours, server.options.get("calls", []), server.options.get("varies", []))


def compared_or_error(server: Server) -> Comparison | Unsupported | str:
    """Return the comparison, why the server can't run on funcmcp, or the text of an ObserveError."""
    reason = server.options.get("fails")
    try:
        if reason is None:
            return compared(server)
        observe(server, "own")
    except ObserveError as error:
        return str(error)
    try:
        observe(server, "funcmcp")
    except ObserveError:
        return Unsupported(reason)
    return f"{server.name} runs on funcmcp. Remove `fails` from servers.toml."


def main(names: list[str]) -> int:
    """Compare the servers with these names, or all; return the exit status."""
    chosen = [server for server in servers() if not names or any(name in server.name for name in names)]
    install(chosen)
    rows: list[tuple[Server, Comparison | Unsupported | str]] = []
    for server in chosen:
        result = compared_or_error(server)
        rows.append((server, result))
        print(f"{server.name} {server.version} ({server.library})", flush=True)
        for line in failures(result):
            print(f"    {line}", flush=True)
    if not names:
        PAGE.write_text(page(rows), encoding="utf-8")
        print(f"Wrote {PAGE.relative_to(REPOSITORY)}.")
    return int(any(failures(result) for _, result in rows))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
