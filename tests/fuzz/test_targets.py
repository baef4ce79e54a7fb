"""Every seed of the fuzzer, and a few thousand changes of them, through every target; `make fuzz` goes on from here."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fuzz import http_bytes, http_endpoint
from fuzz.mutation import mutator_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.slow("Thousands of random inputs are compared.")

ROOT = Path(__file__).parents[2]
CORPUS = ROOT / "fuzz" / "corpus"
TARGETS = sorted(path.name for path in CORPUS.iterdir())
_CHANGES = {"http_endpoint": 1500, "http_bytes": 1500}
_FEWEST = 2000


def seeds(target: str) -> list[bytes]:
    return [path.read_bytes() for path in sorted((CORPUS / target).iterdir())]


def check_of(target: str) -> Callable[[bytes], None]:
    check: Callable[[bytes], None] = importlib.import_module(f"fuzz.{target}").check
    return check


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    http_endpoint.close()
    http_bytes.close()


@pytest.mark.parametrize("target", TARGETS)
def test_no_seed_makes_a_target_fail(target: str) -> None:
    check, found = check_of(target), seeds(target)
    assert found
    for data in found:
        check(data)


@pytest.mark.parametrize("target", TARGETS)
def test_no_change_of_a_seed_makes_a_target_fail(target: str) -> None:
    check, found = check_of(target), seeds(target)
    mutate = mutator_of(importlib.import_module(f"fuzz.{target}"))
    for number in range(_CHANGES.get(target, _FEWEST)):
        check(mutate(found[number % len(found)], number))


def test_there_are_few_seeds_and_each_of_them_is_small() -> None:
    paths = [path for path in CORPUS.rglob("*") if path.is_file()]
    assert all(len(list((CORPUS / target).iterdir())) < 200 for target in TARGETS)
    assert max(path.stat().st_size for path in paths) < 6000
