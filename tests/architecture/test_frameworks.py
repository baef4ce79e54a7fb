"""Frameworks that people install beside funcmcp, in one environment: each has the newest version of one day.

``tests/data/frameworks.toml`` has the frameworks, in groups that fit each other. uv resolves each group together with
funcmcp and all its extras; nothing is installed. If a group does not fit, the error names the frameworks that funcmcp
keeps at an older version, with uv's reason.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from tests.architecture.test_layout import ROOT

DATA: dict[str, Any] = tomllib.loads((ROOT / "tests" / "data" / "frameworks.toml").read_text(encoding="utf-8"))
GROUPS: list[dict[str, str]] = DATA["groups"]
HELD_BACK: dict[str, dict[str, str]] = DATA["held_back"]
UV = Path(sys.executable).with_name("uv")
PROJECTS = ("pyproject.toml", "distributions/funcmcp/pyproject.toml")
CONFLICT = "No solution found"
OFFLINE = "network was disabled"

in_ci = pytest.mark.skipif(
    os.environ.get("CI") != "true", reason="CI=true asks the index for the metadata of packages."
)


def requirements_of_funcmcp() -> list[str]:
    """Return what both distributions require with all extras, without each other."""
    lines: list[str] = []
    for file in PROJECTS:
        project = tomllib.loads((ROOT / file).read_text(encoding="utf-8"))["project"]
        lines += [*project["dependencies"], *chain.from_iterable(project["optional-dependencies"].values())]
    return [line for line in lines if not line.startswith("funcmcp")]


def reason_against(versions: dict[str, str]) -> str | None:
    """Return uv's reason why some frameworks do not fit beside funcmcp; None if they fit."""
    frameworks = [f"{name}=={version}" for name, version in versions.items()]
    requirements = "\n".join([*requirements_of_funcmcp(), *frameworks])
    command = [
        *(str(UV), "pip", "compile", "--quiet", "--no-header", "--no-annotate", "--python-platform", "linux"),
        *("--python-version", DATA["python"], "--exclude-newer", DATA["date"], "-"),
    ]
    # The cache is asked first: the index takes ten times as long, and what it says about a past day does not change.
    for options in (["--offline"], []):
        run = subprocess.run(  # noqa: PLW1510 - the code is an answer
            [*command, *options], input=requirements, text=True, capture_output=True, cwd=ROOT
        )
        if run.returncode == 0:
            return None
        if OFFLINE not in run.stderr and "cache" not in run.stderr:
            break
    assert CONFLICT in run.stderr, run.stderr
    return " ".join(run.stderr.partition("cause:")[2].split())


@pytest.mark.slow("A resolver of packages runs for some sixty frameworks.")
@in_ci
@pytest.mark.timeout(900)
@pytest.mark.parametrize("group", GROUPS, ids=lambda group: f"{next(iter(group))}...")
def test_frameworks_have_their_newest_versions_beside_funcmcp(group: dict[str, str]) -> None:
    if reason_against(group) is None:
        return
    reasons = {name: reason_against({name: version}) for name, version in group.items()}
    held_back = [f"{name} {group[name]}: {reason}" for name, reason in reasons.items() if reason is not None]
    assert held_back, "Each framework fits beside funcmcp alone. Put those that exclude each other into other groups."
    pytest.fail("funcmcp keeps frameworks at old versions:\n" + "\n".join(held_back))


@in_ci
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", HELD_BACK)
def test_a_framework_that_is_held_back_is_so_for_the_given_package(name: str) -> None:
    reason = reason_against({name: HELD_BACK[name]["version"]})
    assert reason is not None, "It fits now: move it into a group."
    assert HELD_BACK[name]["by"] in reason


def test_sixty_frameworks_are_listed_once_and_each_exception_has_a_reason() -> None:
    names = [name for group in GROUPS for name in group] + list(HELD_BACK)
    assert len(names) == len(set(names)) >= 60
    assert all(exception["reason"] for exception in HELD_BACK.values())
