"""Runs one target under atheris, which looks for inputs that reach new lines: guided.py TARGET [libFuzzer options]."""

from __future__ import annotations

import importlib
import sys

import atheris


def main() -> None:
    """Feed a target until libFuzzer has enough, or an input makes it fail; then the process ends."""
    target, *options = sys.argv[1:]
    with atheris.instrument_imports(include=["funcmcp"]):
        check = importlib.import_module(f"fuzz.{target}").check
    atheris.Setup([sys.argv[0], *options], check)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
