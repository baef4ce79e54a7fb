"""Where the Node packages of the tests are: Node 22 itself, client SDKs, conformance suites and a browser."""

from __future__ import annotations

from pathlib import Path

from tests.requirements import require

HOME = Path(__file__).parent / "node"
_MODULES = HOME / "node_modules"


def node() -> Path:
    """Return the Node 22 program, or skip the test (fail in CI); the official packages do not run on older ones."""
    program = _MODULES / "node" / "bin" / "node"
    return require("Node 22 of tests/node", program if program.exists() else None)


def package(name: str) -> Path:
    """Return the folder of an installed package, or skip the test (fail in CI)."""
    folder = _MODULES / name
    return require(f"The Node package {name} of tests/node", folder if folder.exists() else None)


def browser() -> Path:
    """Return what starts the Chromium of scripts/setup-browser.sh, or skip the test (fail in CI)."""
    program = _MODULES / ".cache" / "chromium" / "run"
    return require("Chromium", program if program.exists() else None)


def firefox() -> Path:
    """Return the Firefox of scripts/setup-firefox.sh, or skip the test (fail in CI)."""
    program = HOME.parents[1] / ".servers/firefox"
    return require("Firefox (scripts/setup-firefox.sh)", program if program.exists() else None)
