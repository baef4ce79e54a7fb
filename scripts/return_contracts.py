"""Write the table of return values in docs/guides/functions-host.md from the rows of the functions host.

Run it with ``make reference``. `tests/docs/test_functions_host.py` compares the page with what this writes.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from funcmcp_host.return_contracts import CONTRACTS
from scripts.generated_part import with_part

if TYPE_CHECKING:
    from funcmcp_host.return_contracts import ReturnContract

PAGE = Path(__file__).parents[1] / "docs" / "guides" / "functions-host.md"


def table() -> str:
    """Return the table of return values."""
    head = "| trigger | the function returns | Azure's host sends | `funcmcp host` sends |\n|---|---|---|---|"
    return "\n".join([head, *map(_row, CONTRACTS)])


def _row(contract: ReturnContract) -> str:
    trigger = contract.trigger if not contract.result_schema else f"{contract.trigger} with `useResultSchema`"
    file = contract.source.rpartition("/")[2].removesuffix(".cs")
    azure = f"{contract.azure} ([{file}]({contract.source}))"
    return f"| {trigger} | {contract.returned} | {azure} | {contract.here or 'the same'} |"


def with_table(page: str) -> str:
    """Return a page with the table between its markers."""
    return with_part(page, "returns", table())


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
