"""Folders of the package, and settings of the linters."""

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


def modules_and_packages() -> set[str]:
    """Return the names of the modules and packages directly in funcmcp."""
    packages = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    return packages | {path.stem for path in PACKAGE.glob("*.py") if not path.stem.startswith("__")}


def test_every_folder_with_modules_is_a_package() -> None:
    folders = {path.parent for path in PACKAGE.parent.rglob("*.py")}
    assert not folders - {path.parent for path in PACKAGE.parent.rglob("__init__.py")}


def test_every_module_and_package_has_a_layer_in_the_import_rules(settings: dict[str, Any]) -> None:
    rules = settings["importlinter"]
    layers = next(contract for contract in rules["contracts"] if contract.get("containers") == ["funcmcp"])
    assert rules["exclude_type_checking_imports"] is False
    assert layers["exhaustive"] is True
    assert "ignore_imports" not in layers
    names = {name.strip() for layer in layers["layers"] for name in layer.split("|")}
    assert names == modules_and_packages()


def test_ruff_holds_complexity_to_10_and_parameters_to_6(settings: dict[str, Any]) -> None:
    lint = settings["ruff"]["lint"]
    assert {"C90", "PL"} <= set(lint["select"])
    assert {"C90", "C901", "PL", "PLR", "PLR0913"} & set(lint["ignore"]) == set()
    assert (lint["mccabe"]["max-complexity"], lint["pylint"]["max-args"]) == (10, 6)
