"""The folders of tests mirror the package: tests of `src/funcmcp/a/b.py` are in `tests/a/test_b.py`.

A file `tests/a/test_b_<subject>.py` also belongs to this module. `EXCEPTIONS` names all other files, each with its reason.
"""

from __future__ import annotations

import functools
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = Path("src/funcmcp")
TESTS = Path("tests")

BESIDE_THE_MIRROR = {
    "apps": "MCP Apps in a browser's sandbox",
    "architecture": "imports, names and files of the package",
    "azure": "function apps in Microsoft's worker library",
    "clients": "official clients",
    "cluster": "several processes and Redis",
    "conformance": "the official conformance suite",
    "corpus": "servers written for other frameworks",
    "docs": "code and tables in the documentation",
    "fuzz": "the fuzz targets",
    "samples": "the samples",
    "transcripts": "recorded conversations",
    "wire": "the rules of the specification, as a client observes them",
}
"""Folders whose tests run several modules together, and what they test."""

EXCEPTIONS = {
    "tests/test_schemas.py": "It tests tests/schemas.py, which other tests use.",
}
"""Test files that belong to no single module, and modules whose tests are in another file."""

PARTS_WITHOUT_TESTS = {"__init__.py", "templates"}
"""Public faces, which test_house_rules.py checks, and the files that `funcmcp new` writes."""


@functools.cache
def modules() -> set[Path]:
    """Return the modules that need tests, as paths in the repository."""
    paths = {path.relative_to(ROOT) for path in (ROOT / PACKAGE).rglob("*.py")}
    return {path for path in paths if not PARTS_WITHOUT_TESTS.intersection(path.parts)}


@functools.cache
def mirrored_tests() -> set[Path]:
    """Return the test files outside the folders beside the mirror, as paths in the repository."""
    paths = {path.relative_to(ROOT) for path in (ROOT / TESTS).rglob("test_*.py")}
    return {path for path in paths if path.parts[1] not in {*BESIDE_THE_MIRROR, "node"}}


def module_of(test: Path) -> Path | None:
    """Return the module that a test file belongs to by its path. Of several, the one with the longest name counts."""
    folder = PACKAGE / test.parent.relative_to(TESTS)
    subject = test.stem.removeprefix("test_")
    candidates = [
        module
        for module in modules()
        if module.parent == folder and (subject == module.stem or subject.startswith(f"{module.stem}_"))
    ]
    return max(candidates, key=lambda module: len(module.name), default=None)


def misplaced_tests() -> set[str]:
    return {path.as_posix() for path in mirrored_tests() if module_of(path) is None}


def modules_without_tests() -> set[str]:
    return {path.as_posix() for path in modules() - {module_of(test) for test in mirrored_tests()}}


def test_a_test_file_has_the_path_of_its_module() -> None:
    """Move the file with its module, or name it in `EXCEPTIONS`."""
    assert misplaced_tests() - EXCEPTIONS.keys() == set()


def test_a_module_has_a_test_file() -> None:
    """Add the file, or name the module in `EXCEPTIONS` with the file that has its tests."""
    assert modules_without_tests() - EXCEPTIONS.keys() == set()


def test_an_exception_is_an_exception() -> None:
    """An entry of a file that has moved, or follows the mirror, is out of date."""
    assert EXCEPTIONS.keys() - misplaced_tests() - modules_without_tests() == set()


@pytest.mark.parametrize("path", [path for path in EXCEPTIONS if path.startswith("src/")])
def test_an_exception_names_the_tests_of_its_module(path: str) -> None:
    named = re.findall(r"tests/[\w/]+\w", EXCEPTIONS[path])
    assert named
    assert all((ROOT / name).is_dir() or (ROOT / f"{name}.py").is_file() for name in named)


def test_a_folder_beside_the_mirror_exists() -> None:
    assert all((ROOT / TESTS / name).is_dir() for name in BESIDE_THE_MIRROR)


@pytest.mark.parametrize(
    ("test", "module"),
    [
        ("tests/protocol/test_codec.py", "src/funcmcp/protocol/codec.py"),
        ("tests/protocol/test_codec_numbers.py", "src/funcmcp/protocol/codec.py"),
        ("tests/protocol/test_codecs.py", None),
        ("tests/server/test_codec.py", None),
    ],
)
def test_a_path_leads_to_its_module(test: str, module: str | None) -> None:
    assert module_of(Path(test)) == (Path(module) if module else None)
