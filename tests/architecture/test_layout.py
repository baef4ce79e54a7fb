"""The folders and the settings that hold the house together."""

from __future__ import annotations

import tomllib
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import funcmcp

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "funcmcp"
BESIDE_THE_MIRROR = {"architecture", "clients", "conformance", "docs", "node", "transcripts", "wire"}


@pytest.fixture(scope="module")
def settings() -> dict[str, Any]:
    tools: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    return tools


def folders(path: Path) -> set[str]:
    return {child.name for child in path.iterdir() if child.is_dir() and any(child.glob("[!_.]*"))}


def test_every_folder_of_the_package_is_a_room() -> None:
    without = {path.parent for path in PACKAGE.rglob("*.py")} - {path.parent for path in PACKAGE.rglob("__init__.py")}
    assert without == set()


def test_folders_of_tests_mirror_the_rooms() -> None:
    assert folders(ROOT / "tests") - BESIDE_THE_MIRROR - folders(PACKAGE) == set()


def test_every_room_has_its_floor_in_the_import_rules(settings: dict[str, Any]) -> None:
    rules = settings["importlinter"]
    layers = rules["contracts"][0]
    assert rules["exclude_type_checking_imports"] is False
    assert layers["exhaustive"] is True
    assert "ignore_imports" not in layers
    floors = {name.strip() for layer in layers["layers"] for name in layer.split("|")}
    modules = {path.stem for path in PACKAGE.glob("*.py")} - {"__init__"}
    assert floors == modules | folders(PACKAGE)


def test_ruff_holds_complexity_to_10_and_parameters_to_6(settings: dict[str, Any]) -> None:
    lint = settings["ruff"]["lint"]
    assert {"C90", "PL"} <= set(lint["select"])
    assert {"C90", "C901", "PL", "PLR", "PLR0913"} & set(lint["ignore"]) == set()
    assert (lint["mccabe"]["max-complexity"], lint["pylint"]["max-args"]) == (10, 6)


@pytest.mark.parametrize("name", funcmcp.__all__)
def test_a_public_name_is_imported_from_the_room_that_defines_it(name: str) -> None:
    home = getattr(funcmcp, name).__module__
    assert home.startswith("funcmcp.")
    assert getattr(import_module(home), name) is getattr(funcmcp, name)
