"""The frontmatter of SKILL.md: what is read, what is refused, and what equals the entry of another server."""

from __future__ import annotations

import re
import sys
from typing import Any

import pytest

from funcmcp._adapters.skill_frontmatter import ambiguous_names, fits, frontmatter_of
from tests.adapters.test_strict_yaml import BOMB

MINIMAL = "name: deploy\ndescription: Deploy the shop\n"


def skill(yaml: str, before: str = MINIMAL) -> bytes:
    return f"---\n{before}{yaml}---\n\n# Body\n".encode()


def test_the_frontmatter_has_each_member_as_the_author_wrote_it() -> None:
    yaml = (
        "license: MIT\nallowed-tools: Bash(git:*) Read\nmetadata:\n  version: 1.5\n  date: 2026-01-02\n  pinned: no\n"
        "  many: [1, two, true, null]\n  7: seven\ntext: |\n  two\n  lines\n"
    )
    assert frontmatter_of(skill(yaml)) == {
        "name": "deploy",
        "description": "Deploy the shop",
        "license": "MIT",
        "allowed-tools": "Bash(git:*) Read",
        "metadata": {
            "version": 1.5,
            "date": "2026-01-02",
            "pinned": "no",
            "many": [1, "two", True, None],
            "7": "seven",
        },
        "text": "two\nlines\n",
    }


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"# no frontmatter", "does not begin with frontmatter"),
        (b"---\nname: \xff\n---\n", "UTF-8"),
        (skill("a: 'x\n"), "not valid YAML in line 5"),
        (skill("a: Use it: always\n"), "in this context. Put a text with a colon in quotes"),
        (skill("a: &a [1]\nb: *a\n"), "anchor or an alias"),
        (skill(BOMB), "anchor or an alias"),
        (skill("a: *missing\n"), "anchor or an alias"),
        (skill("a: 1\na: 2\n"), "'a' twice"),
        (skill("name: other\n"), "'name' twice"),
        (skill("metadata:\n  a: 1\n  a: 2\n"), "'a' twice"),
        (skill("a: !!python/object/apply:os.system ['id']\n"), "tag"),
        (skill("a: !!binary aGk=\n"), "tag"),
        (skill("? [a]\n: b\n"), "collection"),
        (skill("<<: {a: 1}\n"), "'<<'"),
        (skill("...\n--- x\n"), "several documents"),
        (skill("a: " + "[" * 40 + "]" * 40 + "\n"), "more than 32 levels"),
        (skill("a: " + "[" * 30_000 + "\n"), "can't be used"),
        (skill("a: x\n", "- name\n"), "can't be used"),
        (skill("", ""), "not a mapping"),
        (skill("", "- a\n- b\n"), "not a mapping"),
        (skill("", "name: Deploy\ndescription: x\n"), "lower-case"),
        (skill("", "name: deploy\n"), "no description"),
        (skill("", "description: x\n"), "no name"),
        (skill("x: " + "y" * 70_000 + "\n"), "65,536"),
        (b"---\n" + b"---x\n" * 20_000, "65,536"),
        (b"\xef\xbb\xbf---" + b" " * 70_000, "65,536"),
        (b"x" * 70_000, "does not begin with frontmatter"),
    ],
)
def test_frontmatter_that_programs_could_read_differently_is_refused(data: bytes, error: str) -> None:
    with pytest.raises(ValueError, match=re.escape(error)):
        frontmatter_of(data)


@pytest.mark.parametrize(
    ("yaml", "members"),
    [
        ("metadata: {pinned: no}\n", {"metadata": {"pinned": "no"}}),
        ("metadata: {pinned: no}\n", {"metadata": {"pinned": False}}),
        ("metadata: {date: 2026-01-02}\n", {"metadata": {"date": "2026-01-02"}}),
        ("metadata: {times: [2026-01-02 03:04:05]}\n", {"metadata": {"times": ["2026-01-02T03:04:05"]}}),
        ("metadata: {version: 1.0}\n", {"metadata": {"version": 1}}),
        ("metadata: {1: x}\n", {"metadata": {"1": "x"}}),
        ("license: MIT\n", {"license": "MIT"}),
    ],
)
def test_an_entry_fits_in_both_versions_of_yaml(yaml: str, members: dict[str, Any]) -> None:
    assert fits(skill(yaml), {"name": "deploy", "description": "Deploy the shop", **members})


@pytest.mark.parametrize(
    ("yaml", "members"),
    [
        ("", {"license": "MIT"}),
        ("license: MIT\n", {}),
        ("license: MIT\n", {"license": "mit"}),
        ("a: 1\n", {"a": True}),
        ("a: true\n", {"a": 1}),
        ("a: [1, 2]\n", {"a": [1]}),
        ("a: [1, 2]\n", {"a": [2, 1]}),
        ("a: {b: 1}\n", {"a": [1]}),
        ("a: '1'\n", {"a": 1}),
        ("a: 2026-13-45\n", {"a": "other"}),
    ],
)
def test_an_entry_with_another_value_does_not_fit(yaml: str, members: dict[str, Any]) -> None:
    assert not fits(skill(yaml), {"name": "deploy", "description": "Deploy the shop", **members})


def test_members_that_yaml_1_1_reads_differently_are_named() -> None:
    assert ambiguous_names(skill("a: no\nb: 2026-01-02\nc: 010\nd: text\ne: 5\n")) == ["a", "b", "c"]
    assert ambiguous_names(skill("a: 2026-13-45\n")) == []


@pytest.mark.slow("Every skill of the corpus is read twice.")
def test_the_quick_parser_reads_both_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    """64 KiB take the other one half a second, in which a client of a hostile server would do nothing else."""
    scanner = pytest.importorskip("yaml.scanner")
    monkeypatch.setattr(scanner.Scanner, "fetch_more_tokens", lambda _scanner: pytest.fail("It is slow."))
    data = skill("x: [" + "[]," * 20_000 + "]\n")
    assert fits(data, {"name": "other"}) is False
    assert ambiguous_names(data) == []


@pytest.mark.parametrize("value", ["1" + ":1" * 30_000 + ".", "0001-01-01T00:00:00+23:00", "2026-02-30", "0x_"])
def test_a_value_that_pyyaml_cannot_make_is_named(value: str) -> None:
    data = skill(f"x: {value}\n")
    assert frontmatter_of(data)["x"] == value
    assert fits(data, frontmatter_of(data))
    assert not fits(data, {"name": "other"})


def test_without_pyyaml_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(ModuleNotFoundError, match=r"funcmcp\[skills\]"):
        frontmatter_of(skill(""))
