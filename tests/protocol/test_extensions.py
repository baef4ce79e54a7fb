"""The table of extensions, and the names of those of authors."""

from __future__ import annotations

import pytest

from funcmcp._protocol.extensions import (
    EXTENSIONS,
    MAX_IDENTIFIER,
    MAX_METHOD,
    declared_settings,
    extensions_in,
    has_extensions,
    is_identifier,
    is_method,
)
from funcmcp._protocol.revisions import REVISIONS


@pytest.mark.parametrize(
    ("revision", "features"),
    [
        ("2025-06-18", set()),
        ("2025-11-25", {"apps", "skills"}),
        ("2026-07-28", {"apps", "skills", "tasks"}),
    ],
)
def test_each_revision_has_the_extensions_that_began_before(revision: str, features: set[str]) -> None:
    assert {row.feature for row in extensions_in(revision)} == features


def test_the_revisions_with_extensions_declare_them_in_their_capabilities() -> None:
    for date, revision in REVISIONS.items():
        assert has_extensions(date) == ("extensions" in revision.capabilities)


def test_tasks_are_an_extension_where_the_revision_says_so() -> None:
    for date, revision in REVISIONS.items():
        has_tasks = any(row.feature == "tasks" for row in extensions_in(date))
        assert has_tasks == (revision.tasks is not None and revision.tasks.extension)


@pytest.mark.parametrize("name", [*EXTENSIONS, "com.example/search", "a/b", "com.my-company/x.y_z-1"])
def test_valid_identifiers_are_accepted(name: str) -> None:
    assert is_identifier(name)


@pytest.mark.parametrize(
    "name",
    ["search", "/x", "x/", "com..example/x", "-com/x", "com/x/y", "com/-x", "com/x\n", "c" * MAX_IDENTIFIER + "/x", 5],
)
def test_other_identifiers_are_refused(name: object) -> None:
    assert not is_identifier(name)


def test_settings_are_an_object_of_an_extension_that_is_declared() -> None:
    capabilities = {"extensions": {"com.example/a": {"x": 1}, "com.example/b": None}}
    assert declared_settings(capabilities, "com.example/a") == {"x": 1}
    assert declared_settings(capabilities, "com.example/b") is None
    assert declared_settings(capabilities, "com.example/c") is None
    assert declared_settings({"extensions": []}, "com.example/a") is None
    assert declared_settings({}, "com.example/a") is None


@pytest.mark.parametrize("value", [None, 5, "", "search", "com.example/", "com.example//x", "a/" + "b" * MAX_METHOD])
def test_other_values_are_no_methods(value: object) -> None:
    assert not is_method(value)


def test_a_method_has_parts() -> None:
    assert is_method("com.example/search/query")
