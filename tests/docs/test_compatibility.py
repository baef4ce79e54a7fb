"""docs/guides/compatibility.md has the tables of the rules, and shows what the command prints."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from scripts.client_rules import PAGE, with_tables
from tests.cli.forking import funcmcp

if TYPE_CHECKING:
    from pathlib import Path

TEXT = PAGE.read_text(encoding="utf-8")


def test_the_tables_are_those_of_the_rules() -> None:
    assert with_tables(TEXT) == TEXT, "Run: make reference"


def test_the_example_is_what_the_command_prints(tmp_path: Path) -> None:
    [code] = re.findall(r"^```python\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
    [output] = re.findall(r"^```text\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
    (tmp_path / "server.py").write_text(code, encoding="utf-8")
    shown = funcmcp("inspect", "server.py", "--clients", folder=tmp_path)
    assert (shown.returncode, shown.stdout, shown.stderr) == (1, output, "")
