"""FastMCP's `Skill`, its manifest and its entry."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pydantic import ValidationError

from funcmcp.compat import MCPSkill, Skill, SkillFrontmatter
from funcmcp.compat.fastmcp.skills import SkillFile, SkillManifest

if TYPE_CHECKING:
    from pathlib import Path

REVIEW = Skill(
    name="review",
    description='Review "changes": all of them',
    instructions="# Review\r\n",
    files={"notes.md": "one\r\n", "texts/logo.bin": b"\x00\xff"},
    frontmatter={"license": "MIT", "metadata": {"level": 1, "yes": "no"}},
)


def test_a_skill_has_its_files_as_they_were() -> None:
    assert list(REVIEW.files) == ["SKILL.md", "notes.md", "texts/logo.bin"]
    assert REVIEW.files["texts/logo.bin"] == b"\x00\xff"
    assert REVIEW.files["SKILL.md"].endswith(b"---\n# Review\r\n")
    assert (REVIEW.name, REVIEW.description) == ("review", 'Review "changes": all of them')
    assert REVIEW.frontmatter.root["metadata"] == {"level": 1, "yes": "no"}
    assert repr(REVIEW) == "Skill(name='review', files=3)"


def test_a_skill_of_the_same_files_is_equal() -> None:
    copy = Skill.from_files(REVIEW.files)
    assert copy == REVIEW
    assert hash(copy) == hash(REVIEW)
    assert Skill.from_files({**REVIEW.files, "notes.md": "two"}) != REVIEW


def test_the_manifest_describes_the_files() -> None:
    manifest = REVIEW.manifest
    assert manifest.files["texts/logo.bin"].size == 2
    entry = REVIEW.to_mcp_skill("team/review")
    assert entry.uri == "skill://team/review/SKILL.md"
    assert entry == manifest.to_mcp_skill("team/review")
    assert manifest.to_mcp_skill().uri == "skill://review/SKILL.md"
    assert MCPSkill.model_validate(entry.model_dump(by_alias=True)) == entry


def test_a_skill_is_written_to_a_folder_and_read_again(tmp_path: Path) -> None:
    folder = REVIEW.to_directory(tmp_path / "skills" / "review")
    assert Skill.from_directory(folder) == REVIEW
    with pytest.raises(FileExistsError, match="overwrite=True"):
        REVIEW.to_directory(folder)
    (folder / "old.md").write_text("old")
    REVIEW.to_directory(folder, overwrite=True)
    assert Skill.from_directory(folder) == REVIEW
    assert [place.name for place in folder.parent.iterdir()] == ["review"]


def test_a_folder_that_is_not_that_of_a_skill_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"must match its SKILL\.md name 'review'"):
        REVIEW.to_directory(tmp_path / "other")
    (tmp_path / "review").write_text("a file")
    with pytest.raises(ValueError, match="not a directory"):
        REVIEW.to_directory(tmp_path / "review", overwrite=True)
    with pytest.raises(ValueError, match="must be a directory"):
        Skill.from_directory(tmp_path / "review")
    other = REVIEW.to_directory(tmp_path / "skills" / "review").rename(tmp_path / "renamed")
    with pytest.raises(ValueError, match="'renamed' must match"):
        Skill.from_directory(other)


def test_links_in_a_skill_are_refused(tmp_path: Path) -> None:
    folder = REVIEW.to_directory(tmp_path / "review")
    (folder / "link.md").symlink_to(tmp_path / "secret.txt")
    with pytest.raises(ValueError, match=r"contains a symlink: link\.md"):
        Skill.from_directory(folder)


def test_a_skill_is_read_from_a_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "funcmcp_test_skills"
    REVIEW.to_directory(package / "data" / "review")
    (package / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    assert Skill.from_package("funcmcp_test_skills", "data/review") == REVIEW
    with pytest.raises(ValueError, match="not a directory"):
        Skill.from_package("funcmcp_test_skills", "data/missing")


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"name": "Review"}, "lower-case"),
        ({"description": " "}, "no description"),
        ({"frontmatter": {"name": "other"}}, "as a Skill argument"),
        ({"files": {"SKILL.md": "x"}}, "as `instructions`"),
        ({"files": {"../x": "x"}}, "invalid segment"),
        ({"files": {"/x": "x"}}, "relative POSIX"),
        ({"files": {"": "x"}}, "non-empty"),
        ({"files": {"a": "x", "a/b": "x"}}, "also used as a directory"),
        ({"files": {str(number): "" for number in range(512)}}, "at most 512 files"),
        ({"files": {"a": b"0" * (16 * 1024 * 1024)}}, "at most 16777216 bytes"),
    ],
)
def test_a_skill_that_clients_would_reject_is_not_made(options: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        Skill(**{"name": "review", "description": "Review.", "instructions": "", **options})


def test_a_manifest_and_an_entry_are_checked() -> None:
    with pytest.raises(ValidationError, match=r"must contain SKILL\.md"):
        SkillManifest(
            frontmatter=SkillFrontmatter({"name": "a", "description": "b"}),
            files={"x": SkillFile(digest=f"sha256:{'0' * 64}", size=1)},
        )
    with pytest.raises(ValidationError, match="not that of its folder"):
        MCPSkill.model_validate({**REVIEW.to_mcp_skill().model_dump(), "uri": "skill://b/SKILL.md"})
