"""The code of projects is imported in forks: in a third of the CPU time."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from funcmcp_cli.doctor import project
from tests.cli.forking import run_module

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path


def run(
    command: Sequence[str], *, cwd: Path, env: Mapping[str, str], timeout: float, **_: object
) -> subprocess.CompletedProcess[str]:
    """Run a module in a fork, with the arguments of `subprocess.run`."""
    python, option, name, *arguments = command
    assert (python, option) == (sys.executable, "-m")
    return run_module(name, *arguments, folder=cwd, env=env, timeout=timeout)


@pytest.fixture(autouse=True)
def _forks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the probe of this process be a fork. Tests that start ``funcmcp doctor`` also start a new Python."""
    replaced = SimpleNamespace(run=run, DEVNULL=subprocess.DEVNULL, TimeoutExpired=subprocess.TimeoutExpired)
    monkeypatch.setattr(project, "subprocess", replaced)
