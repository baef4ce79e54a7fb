"""Names, frontmatter and entries of skills."""

from __future__ import annotations

from typing import Any

import pytest

from funcmcp._protocol.skills import (
    MAX_BYTES,
    MAX_FILES,
    digest_of,
    entry_error,
    folder_of,
    frontmatter_error,
    frontmatter_in,
    is_in_folder,
    is_name,
)

URI = "skill://team/deploy/SKILL.md"
DIGEST = "sha256:" + "0" * 64
VALID: dict[str, Any] = {"name": "a", "description": "d"}


def entry(**members: Any) -> dict[str, Any]:
    files = [{"uri": URI, "digest": DIGEST, "size": 1}]
    return {"uri": URI, "frontmatter": {"name": "deploy", "description": "d"}, "resources": files, **members}


@pytest.mark.parametrize("name", ["a", "pdf-processing", "a1", "9", "a" * 64])
def test_valid_names_are_accepted(name: str) -> None:
    assert is_name(name)


@pytest.mark.parametrize("name", ["", "A", "a_b", "-a", "a-", "a--b", "a" * 65, "ä", "a/b", "a\n", 5, None])
def test_other_names_are_refused(name: object) -> None:
    assert not is_name(name)


@pytest.mark.parametrize(
    ("text", "yaml"),
    [
        ("---\nname: a\n---\nbody", "name: a\n"),
        ("---\r\nname: a\r\n---\r\nbody", "name: a\r\n"),
        ("\ufeff---\nname: a\n---", "name: a\n"),
        ("---  \nname: a\n---  \n---\n", "name: a\n"),
        ("---\n---\n", ""),
        ("---\na: x ---\n---\n", "a: x ---\n"),
    ],
)
def test_frontmatter_is_between_two_lines(text: str, yaml: str) -> None:
    assert frontmatter_in(text) == yaml


@pytest.mark.parametrize("text", ["", "name: a", "\n---\nname: a\n---\n", "---\nname: a\n", "----\nname: a\n---\n"])
def test_a_text_without_these_lines_has_no_frontmatter(text: str) -> None:
    assert frontmatter_in(text) is None


@pytest.mark.parametrize(
    ("frontmatter", "error"),
    [
        (VALID, None),
        ({**VALID, "license": "MIT", "compatibility": "any", "metadata": {}, "allowed-tools": ["Read"]}, None),
        ({**VALID, "allowed-tools": "Read Bash(git:*)", "other": None}, None),
        (["a"], "not a mapping"),
        ({**VALID, "license": 5}, "license"),
        ({**VALID, "license": None}, "license"),
        ({**VALID, "compatibility": ""}, "compatibility"),
        ({**VALID, "compatibility": "c" * 501}, "compatibility"),
        ({**VALID, "compatibility": ["a"]}, "compatibility"),
        ({**VALID, "metadata": None}, "metadata"),
        ({**VALID, "allowed-tools": None}, "allowed-tools"),
        ({**VALID, "allowed-tools": ["Read", 5]}, "allowed-tools"),
        ({"description": "d"}, "has no name"),
        ({"name": "A", "description": "d"}, "1 to 64"),
        ({"name": "a"}, "no description"),
        ({"name": "a", "description": "  "}, "no description"),
        ({"name": "a", "description": 5}, "no description"),
        ({"name": "a", "description": "d" * 1025}, "1,024"),
    ],
)
def test_a_frontmatter_has_a_name_and_a_description(frontmatter: object, error: str | None) -> None:
    found = frontmatter_error(frontmatter)
    assert found is None if error is None else error in str(found)


@pytest.mark.parametrize(
    ("uri", "folder"),
    [
        (URI, "skill://team/deploy"),
        ("github://o/r/skills/x/SKILL.md", "github://o/r/skills/x"),
        ("skill://deploy/skill.md", None),
        ("SKILL.md", None),
        ("skill:SKILL.md", None),
    ],
)
def test_the_folder_of_a_skill_is_that_of_its_manifest(uri: str, folder: str | None) -> None:
    assert folder_of(uri) == folder


@pytest.mark.parametrize("path", ["a.md", "a/b.md", "a%20b", "..a", "a..", "%C3%A4"])
def test_a_file_is_in_its_folder(path: str) -> None:
    assert is_in_folder(f"skill://deploy/{path}", "skill://deploy")


@pytest.mark.parametrize(
    "path", ["", "../x", "a/../../x", "%2e%2e/x", "a/%2E%2E/x", "./a", "a//b", "a\\..\\b", "%5c..%5cx", "a?x", "a#x"]
)
def test_a_path_that_could_leave_the_folder_is_not(path: str) -> None:
    assert not is_in_folder(f"skill://deploy/{path}", "skill://deploy")


def test_a_file_of_another_skill_and_a_number_are_not_in_the_folder() -> None:
    assert not is_in_folder("skill://deploy-2/a.md", "skill://deploy")
    assert not is_in_folder(5, "skill://deploy")


@pytest.mark.parametrize("resources", [entry()["resources"], "dynamic"])
def test_a_valid_entry_has_no_error(resources: object) -> None:
    assert entry_error(entry(resources=resources)) is None


@pytest.mark.parametrize(
    ("members", "error"),
    [
        ({"uri": 5}, "does not end"),
        ({"uri": "skill://deploy/readme.md"}, "does not end"),
        ({"frontmatter": None}, "no frontmatter"),
        ({"frontmatter": {"name": "deploy"}}, "no frontmatter"),
        ({"frontmatter": {"name": "other", "description": "d"}}, "not that of its folder"),
        ({"frontmatter": {"name": None, "description": "d"}}, "not that of its folder"),
        ({"resources": None}, "neither"),
        ({"resources": {}}, "neither"),
        ({"resources": []}, "not among its files"),
        ({"resources": ["x"]}, "not in its folder"),
        ({"resources": [{"uri": "skill://other/SKILL.md", "digest": DIGEST, "size": 1}]}, "not in its folder"),
        ({"resources": [{"uri": URI, "size": 1}]}, "no digest"),
        ({"resources": [{"uri": URI, "digest": DIGEST.upper(), "size": 1}]}, "no digest"),
        ({"resources": [{"uri": URI, "digest": DIGEST, "size": True}]}, "no size"),
        ({"resources": [{"uri": URI, "digest": DIGEST, "size": -1}]}, "no size"),
        ({"resources": [{"uri": URI, "digest": DIGEST, "size": 1}] * 2}, "twice"),
        ({"resources": [{"uri": URI, "digest": DIGEST, "size": 1}] * (MAX_FILES + 1)}, "more than 512"),
        ({"resources": [{"uri": URI, "digest": DIGEST, "size": MAX_BYTES + 1}]}, "16,777,216"),
    ],
)
def test_the_error_of_an_entry_says_what_is_wrong(members: dict[str, Any], error: str) -> None:
    assert error in str(entry_error(entry(**members)))


def test_the_digest_is_that_of_the_bytes() -> None:
    assert digest_of(b"abc") == "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
