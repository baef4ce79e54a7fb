"""The two distributions of the package: the same version, the same extras, and a README that renders anywhere."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from funcmcp import __version__

ROOT = Path(__file__).parents[2]
REPOSITORY = "https://github.com/funcmcp/funcmcp/blob/main/"
PICTURES = "https://raw.githubusercontent.com/funcmcp/funcmcp/main/"


def project(file: str) -> dict[str, Any]:
    settings: dict[str, Any] = tomllib.loads((ROOT / file).read_text(encoding="utf-8"))["project"]
    return settings


SLIM, FULL = project("pyproject.toml"), project("distributions/funcmcp/pyproject.toml")


OF_THE_COMMAND = {"cli", "host-rpc", "host-storage", "migrate"}
"""Extras whose libraries are those of the command line and of the functions host."""


def test_both_have_the_version_of_the_package() -> None:
    assert (SLIM["version"], FULL["version"]) == (__version__, __version__)


def test_the_one_with_the_command_requires_the_other_one_in_the_same_version() -> None:
    assert [line for line in FULL["dependencies"] if "funcmcp" in line] == [
        f"funcmcp-slim[server,client]=={__version__}"
    ]
    assert FULL["scripts"] == {"funcmcp": "funcmcp_cli.main:main"}
    assert "scripts" not in SLIM


def test_each_extra_of_one_is_an_extra_of_the_other() -> None:
    slim, full = SLIM["optional-dependencies"], FULL["optional-dependencies"]
    assert slim.keys() == full.keys()
    library = slim.keys() - OF_THE_COMMAND
    assert {extra: full[extra] for extra in library} == {
        extra: [f"funcmcp-slim[{extra}]=={__version__}"] for extra in library
    }
    assert slim["cli"] == [f"funcmcp=={__version__}"]
    others = OF_THE_COMMAND - {"cli"}
    assert {extra: slim[extra] for extra in others} == {extra: [f"funcmcp[{extra}]=={__version__}"] for extra in others}


@pytest.mark.parametrize("member", ["description", "requires-python", "license", "classifiers", "urls", "keywords"])
def test_both_describe_the_same_project(member: str) -> None:
    assert FULL[member] == SLIM[member]


def test_both_have_the_licence() -> None:
    copy = ROOT / "distributions" / "funcmcp" / "LICENSE"
    assert copy.read_bytes() == (ROOT / "LICENSE").read_bytes()


def test_links_of_the_readme_work_on_every_site_and_lead_to_files() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    targets = re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(r"^\[[^\]]+\]: (\S+)$", text, re.MULTILINE)
    assert len(targets) > 10
    assert [target for target in targets if not target.startswith("https://")] == []
    paths = [target.removeprefix(base) for target in targets for base in (REPOSITORY, PICTURES) if base in target]
    assert len(paths) > 10
    assert [path for path in paths if not (ROOT / path.partition("#")[0]).is_file()] == []
    used, defined = set(re.findall(r"\]\[([^\]]+)\]", text)), set(re.findall(r"^\[([^\]]+)\]: ", text, re.MULTILINE))
    assert used == defined
