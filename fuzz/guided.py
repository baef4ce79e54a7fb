"""Runs one target under atheris, which looks for inputs that reach new lines: guided.py TARGET [libFuzzer options]."""

from __future__ import annotations

import importlib
import logging
import sys
from typing import TYPE_CHECKING

import atheris

from fuzz.mutation import mutator_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from fuzz.mutation import Mutator

_SHAPED = {"http_bytes", "http_endpoint", "tokens"}
"""Targets whose inputs have so much shape that libFuzzer's own changes mostly break it."""

_EVERY = 2
"""How many of its own changes libFuzzer makes for each one of ours."""


def main() -> None:
    """Feed a target until libFuzzer has enough, or an input makes it fail; then the process ends."""
    target, *options = sys.argv[1:]
    with atheris.instrument_imports(include=["funcmcp"]):
        module = importlib.import_module(f"fuzz.{target}")
    logging.getLogger("funcmcp").setLevel(logging.CRITICAL)  # a line for each bad request would be a million
    shaped = {"custom_mutator": _custom_mutator(mutator_of(module))} if target in _SHAPED else {}
    atheris.Setup([sys.argv[0], *options], module.check, **shaped)
    atheris.Fuzz()


def _custom_mutator(mutate: Mutator) -> Callable[[bytes, int, int], bytes]:
    def mutated(data: bytes, longest: int, seed: int) -> bytes:
        if seed % (_EVERY + 1):
            changed: bytes = atheris.Mutate(data, longest)
            return changed
        return mutate(data, seed)[:longest]

    return mutated


if __name__ == "__main__":
    main()
