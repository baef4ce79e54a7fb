"""docs/development/architecture.md names layers, modules and numbers of imports that exist."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"
PACKAGE = SOURCE / "funcmcp"
TEXT = (ROOT / "docs" / "development" / "architecture.md").read_text(encoding="utf-8")
CLASSES = sorted(set(re.findall(r"`([A-Z][a-z]\w+(?:\.\w+)?)`", TEXT)))
PATHS = sorted(set(re.findall(r"`((?:\w+/)+(?:\w+\.py)?|(?:\w+/)*\w+\.py)`", TEXT)))


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    return grimp.build_graph("funcmcp", "funcmcp_cli", "funcmcp_host", exclude_type_checking_imports=False)


def arrows(graph: grimp.ImportGraph, package: str) -> set[tuple[str, str]]:
    """Return the pairs of direct children of a package of which the first imports the second."""
    pairs = set()
    for importer in graph.modules:
        for imported in graph.find_modules_directly_imported_by(importer):
            if importer.startswith(f"{package}.") and imported.startswith(f"{package}."):
                start = importer.removeprefix(f"{package}.").split(".")[0]
                end = imported.removeprefix(f"{package}.").split(".")[0]
                if start != end:
                    pairs.add((start, end))
    return pairs


def test_the_layers_are_those_of_the_import_rules() -> None:
    block = re.search(r"^```\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
    assert block is not None
    documented = [line.split("   ")[0].strip() for line in block[1].splitlines()]
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    assert documented == [*contracts[0]["layers"][:-1], *contracts[1]["layers"]]


def test_the_paths_in_the_page_exist() -> None:
    files = {path.name for path in SOURCE.rglob("*")}
    paths = [path for path in PATHS if "/" in path]
    assert not [
        path
        for path in paths
        if not (ROOT / path).exists() and not (PACKAGE / path).exists() and not (SOURCE / path).exists()
    ]
    assert not [name for name in PATHS if "/" not in name and name not in files]


def test_the_classes_in_the_page_exist() -> None:
    """`Class.attribute` requires that the class's module also contains the attribute."""
    sources = [path.read_text(encoding="utf-8") for path in sorted(SOURCE.rglob("*.py"))]
    missing = []
    for name in CLASSES:
        class_name, _, attribute = name.partition(".")
        defining = [source for source in sources if re.search(rf"^class {class_name}\b", source, re.MULTILINE)]
        if not any(re.search(rf"\b{attribute}\b", source) for source in defining):
            missing.append(name)
    assert not missing


def test_no_module_is_part_of_an_import_circle(graph: grimp.ImportGraph) -> None:
    remaining = {module: set(graph.find_modules_directly_imported_by(module)) for module in graph.modules}
    while leaves := {module for module, imports in remaining.items() if not imports & remaining.keys()}:
        remaining = {module: imports for module, imports in remaining.items() if module not in leaves}
    assert sorted(remaining) == []


@pytest.mark.parametrize("package", ["_authoring", "_transports/http"])
def test_the_page_counts_the_imports_between_sub_packages(graph: grimp.ImportGraph, package: str) -> None:
    count = len(arrows(graph, f"funcmcp.{package.replace('/', '.')}"))
    section = " ".join(TEXT.partition("### Import graph")[2].partition("\n## ")[0].split())
    assert re.search(rf"`{package}` have {count}\b", section), count
