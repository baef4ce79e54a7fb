"""Write the table of docs/development/field.md from docs/development/field.jsonl.

Each line of the data is an object. One with ``about`` describes a subject: how its reports were tried, how many there
are, and how many were right at first and are right now. One with ``need`` or ``outcome`` is a report: its link, what
its author needs or what happened, and the verdicts. Other lines are further trials of the subject. Run it with ``make
reference``. `tests/docs/test_field.py` compares the page with what this writes.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from scripts.generated_part import with_part

PAGE = Path(__file__).parents[1] / "docs" / "development" / "field.md"
DATA = PAGE.with_suffix(".jsonl")


def records() -> list[dict[str, Any]]:
    """Return the lines of the data."""
    return [json.loads(line) for line in DATA.read_text(encoding="utf-8").splitlines()]


def reports_of(subject: str) -> list[dict[str, Any]]:
    """Return the reports on a subject, in the order of their numbers."""
    return [record for record in records() if record["subject"] == subject and "number" in record]


def table() -> str:
    """Return the table with a row for each subject that has reports."""
    subjects = [record for record in records() if "reports" in record]
    rows = [
        f"| {record['subject']} | {record['reports']} | {record['right_at_first']} | {record['right_now']} |"
        for record in subjects
    ]
    sums = [str(sum(record[name] for record in subjects)) for name in ("reports", "right_at_first", "right_now")]
    head = ["| subject | reports | right at first | right now |", "|---|---|---|---|"]
    return "\n".join([*head, *rows, f"| together | {' | '.join(sums)} |"])


def page() -> str:
    """Return the page with the present table."""
    return with_part(PAGE.read_text(encoding="utf-8"), "reports", table())


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
