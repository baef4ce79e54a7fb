"""The folders and the settings that hold the house together."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "funcmcp"


@pytest.fixture(scope="module")
def settings() -> dict[str, Any]:
    tools: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    return tools


def rooms(path: Path) -> set[str]:
    """Return the names of the modules and of the folders with files of ours in them."""
    folders = {found.relative_to(path).parts[0] for found in path.glob("*/[!_.]*") if "__pycache__" not in found.parts}
    return folders | {found.stem for found in path.glob("[!_]*.py")}


def test_every_folder_of_the_package_is_a_room() -> None:
    without = {path.parent for path in PACKAGE.rglob("*.py")} - {path.parent for path in PACKAGE.rglob("__init__.py")}
    assert without == set()


def test_every_room_has_its_floor_in_the_import_rules(settings: dict[str, Any]) -> None:
    rules = settings["importlinter"]
    layers = rules["contracts"][0]
    assert rules["exclude_type_checking_imports"] is False
    assert layers["exhaustive"] is True
    assert "ignore_imports" not in layers
    floors = {name.strip() for layer in layers["layers"] for name in layer.split("|")}
    assert floors == rooms(PACKAGE)


def test_ruff_holds_complexity_to_10_and_parameters_to_6(settings: dict[str, Any]) -> None:
    lint = settings["ruff"]["lint"]
    assert {"C90", "PL"} <= set(lint["select"])
    assert {"C90", "C901", "PL", "PLR", "PLR0913"} & set(lint["ignore"]) == set()
    assert (lint["mccabe"]["max-complexity"], lint["pylint"]["max-args"]) == (10, 6)
