"""docs/reference/limits.md names each option of `Limits` with its default."""

from __future__ import annotations

from dataclasses import Field, fields
from pathlib import Path

import pytest

from funcmcp.server.limits import Limits

TEXT = (Path(__file__).parents[2] / "docs" / "reference" / "limits.md").read_text(encoding="utf-8")


def default_of(name: str) -> str:
    """Return an option's default as the table has it, such as "4 MiB"."""
    value = getattr(Limits(), name)
    if "bytes" in name:
        return f"{value // 1024**2} MiB" if value % 1024**2 == 0 else f"{value // 1024} KiB"
    return f"{value:,.0f}"


@pytest.mark.parametrize("option", fields(Limits), ids=lambda option: option.name)
def test_an_option_has_a_row_with_its_default(option: Field[object]) -> None:
    [row] = [line for line in TEXT.splitlines() if line.startswith(f"| `{option.name}` |")]
    assert row.split(" | ")[1].partition(" (")[0] == default_of(option.name)
