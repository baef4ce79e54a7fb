"""docs/reference has every environment variable of funcmcp, every JSON-RPC error code and every status of a refusal."""

from __future__ import annotations

import re
from pathlib import Path

from funcmcp._protocol import errors
from funcmcp._transports.http.status import PER_REQUEST_STATUS

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "reference"
PAGE = (REFERENCE / "errors.md").read_text(encoding="utf-8")
SOURCES = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "src").rglob("*.py"))]


def test_each_environment_variable_is_documented() -> None:
    page = (REFERENCE / "environment.md").read_text(encoding="utf-8")
    variables = {name for source in SOURCES for name in re.findall(r'"(FUNCMCP_[A-Z_]+)"', source)}
    assert len(variables) > 4
    assert {name for name in variables if f"`{name}`" not in page} == set()


def test_each_error_code_has_a_row_with_its_status() -> None:
    public = {name: value for name, value in vars(errors).items() if not name.startswith("_")}
    codes = {value for name, value in public.items() if name.isupper() and type(value) is int}
    rows = dict(re.findall(r"^\| (-\d+) \| .* \| (\d*) ?\|$", PAGE, re.MULTILINE))
    assert {int(code) for code in rows} == codes
    for code, status in PER_REQUEST_STATUS.items():
        assert rows[str(code)] == str(status)


def test_each_status_of_a_refusal_has_a_row() -> None:
    folder = ROOT / "src" / "funcmcp" / "_transports" / "http"
    sources = [path.read_text(encoding="utf-8") for path in folder.rglob("*.py")]
    statuses = {status for source in sources for status in re.findall(r"\b(?:_?refuse)\((4\d\d|503)\b", source)}
    assert len(statuses) > 9
    assert {status for status in statuses if f"\n| {status} | " not in PAGE} == set()
