"""The policies of the official SDK."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from funcmcp.compat import RequestStateSecurity, ResourceSecurity
from funcmcp.compat.mcp.shared.path_security import (
    PathEscapeError,
    contains_path_traversal,
    is_absolute_path,
    safe_join,
)

if TYPE_CHECKING:
    from pathlib import Path

KEY = b"k" * 32


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({}, ValueError),
        ({"keys": [KEY], "codec": object()}, ValueError),
        ({"keys": []}, ValueError),
        ({"keys": [b"short"]}, ValueError),
        ({"keys": [KEY, KEY.decode()]}, ValueError),
        ({"keys": [32]}, TypeError),
        ({"keys": [KEY], "ttl": 0}, ValueError),
        ({"keys": [KEY], "ttl": float("inf")}, ValueError),
    ],
)
def test_policies_of_states_that_are_refused(options: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        RequestStateSecurity(**options)


def test_policies_of_states() -> None:
    assert RequestStateSecurity.ephemeral(ttl=5, audience="shop").audience == "shop"
    assert RequestStateSecurity(codec="codec").codec == "codec"


@pytest.mark.parametrize(
    ("value", "is_rejected"),
    [
        ("a/b", False),
        ("v1.0..v2.0", False),
        ("a/../b", False),
        ("a/./../../b", True),
        ("..\\b", True),
        ("/etc/passwd", True),
        ("C:\\a", True),
        ("a\0", True),
        (["a", ".."], True),
        (3, False),
    ],
)
def test_values_of_variables(value: Any, is_rejected: bool) -> None:
    assert ResourceSecurity().validate({"name": value}) == ("name" if is_rejected else None)


def test_variables_and_checks_that_are_left_out() -> None:
    assert ResourceSecurity(exempt_params={"git-ref"}).validate({"git_ref": ".."}) is None
    lenient = ResourceSecurity(reject_path_traversal=False, reject_absolute_paths=False, reject_null_bytes=False)
    assert lenient.validate({"a": "../b", "c": "/d", "e": "\0"}) is None


@pytest.mark.parametrize("parts", [("..",), ("a", "../.."), ("/etc/passwd",), ("C:a",), ("a\0",), ("link", "b")])
def test_a_path_stays_below_its_folder(tmp_path: Path, parts: tuple[str, ...]) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "link").symlink_to(tmp_path)
    with pytest.raises(PathEscapeError):
        safe_join(folder, *parts)


def test_paths_below_a_folder(tmp_path: Path) -> None:
    assert safe_join(str(tmp_path), "a/../b", "c.txt") == tmp_path.resolve() / "b" / "c.txt"
    assert contains_path_traversal("a/../..")
    assert not contains_path_traversal("a/..b")
    assert is_absolute_path("\\\\server\\a")
    assert not is_absolute_path("")
