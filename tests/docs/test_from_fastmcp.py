"""The page for those who come from FastMCP: each provider and verifier has a row, and what it says constructs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from funcmcp import auth
from tests.auth.making_tokens import public
from tests.compat.test_auth import NAMES

PAGE = (Path(__file__).parents[2] / "docs/guides/from-fastmcp.md").read_text(encoding="utf-8")
SECTION = PAGE[PAGE.index("## Sign-in and tokens") : PAGE.index("### Verifiers")]
ROWS = dict(re.findall(r"^\| (`[^|]+) \| `([A-Za-z0-9]+\([^.][^|`]*\)|first_of\([^`]*\))`", SECTION, re.MULTILINE))
ISSUER = "https://login.example.com"
URL = "https://orders.example.com/mcp"
OF_FEATURES = {"AuthCheck", "AuthContext", "require_roles", "require_scopes", "restrict_tag", "run_auth_checks"}
OF_DATA = {"EntraOBOToken", "IdentityAssertion", "JWKData", "JWKSData"}
"""Names that are no providers and no verifiers."""


def names() -> dict[str, object]:
    """Return what the cells of the tables mean."""
    tokens = auth.APIKeys({"reporting": "a-key-of-the-tests-1"})
    return {name: getattr(auth, name) for name in auth.__all__} | {
        "ID": "app", "SECRET": "a-secret-of-the-tests", "URL": URL, "ISSUER": ISSUER, "PEM": public(), "PROXY": tokens,
        "TOKENS": tokens, "POOL": ISSUER, "REALM": f"{ISSUER}/realms/orders", "SECRET_IN_BASE64URL": "c2VjcmV0" * 8,
        "RULES": auth.TokenRules(types=["at+jwt", "JWT"]),
    }  # fmt: skip


@pytest.mark.parametrize("code", ROWS.values(), ids=ROWS)
def test_what_a_row_says_constructs(code: str) -> None:
    assert callable(eval(code, names())) or hasattr(eval(code, names()), "authorization_url")


def test_there_are_as_many_rows_as_before() -> None:
    assert len(ROWS) >= 25


@pytest.mark.parametrize("name", sorted(set(NAMES.split()) - OF_FEATURES - OF_DATA))
def test_each_provider_and_verifier_of_fastmcp_has_a_row(name: str) -> None:
    assert re.search(rf"^\| `[^|]*\b{name}\b", SECTION, re.MULTILINE)
