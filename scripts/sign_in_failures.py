"""Write the table of failures in docs/guides/sign-in-troubleshooting.md from the failures of the OAuth proxy.

Run it with ``make reference``. `tests/oauth_proxy/test_failures.py` compares the page with what this writes.
"""

from __future__ import annotations

from pathlib import Path

from funcmcp._oauth_proxy.failures import FAILURES
from scripts.generated_part import with_part

PAGE = Path(__file__).parents[1] / "docs" / "guides" / "sign-in-troubleshooting.md"


def table() -> str:
    """Return the table of failures."""
    head = "| cause in the log | the user reads | what it means, and what the operator does |\n|---|---|---|"
    rows = [f"| `{failure.cause}` | {failure.user} | {failure.operator} |" for failure in FAILURES]
    return "\n".join([head, *rows])


def with_table(page: str) -> str:
    """Return a page with the table between its markers."""
    return with_part(page, "failures", table())


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
