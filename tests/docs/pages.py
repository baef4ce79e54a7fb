"""Blocks of code in the documentation, for tests that run them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.cli.processes import PYTHON, run_to_end
from tests.requirements import require

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Mapping

ROOT = Path(__file__).parents[2]
_FENCE = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_FRAMEWORKS = ROOT / ".servers" / "frameworks"


@dataclass(frozen=True)
class Block:
    """A block of code of a page.

    Attributes:
        language: The word after the fence.
        code: The block.
        heading: The heading above it.
    """

    language: str
    code: str
    heading: str


def blocks_of(page: str) -> list[Block]:
    """Return the blocks of a page of docs."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    blocks = []
    outside = _FENCE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    for match in _FENCE.finditer(text):
        headings = _HEADING.findall(outside[: match.start()])
        blocks.append(Block(match[1], match[2], headings[-1] if headings else ""))
    return blocks


def block_of(page: str, heading: str, language: str = "python") -> str:
    """Return the first block of a language under a heading."""
    return next(block.code for block in blocks_of(page) if (block.heading, block.language) == (heading, language))


def with_frameworks() -> dict[str, str]:
    """Return the variables that make Django, Flask and other frameworks importable, or skip the test (fail in CI)."""
    folders = sorted(_FRAMEWORKS.glob("lib/python3.*/site-packages"))
    ready = folders[0] if folders and (_FRAMEWORKS / ".ready").exists() else None
    return {"PYTHONPATH": str(require("Django and Flask (scripts/setup-frameworks.sh)", ready))}


def run_python(
    *arguments: str, folder: Path, variables: Mapping[str, str] | None = None, python: str = PYTHON
) -> subprocess.CompletedProcess[str]:
    """Run Python to its end."""
    return run_to_end([python, *arguments], folder=folder, env=variables)
