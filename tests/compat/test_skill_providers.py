"""FastMCP 3's providers of skills: the files of skills as resources."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from funcmcp.compat import ClaudeSkillsProvider, CodexSkillsProvider, FastMCP, SkillProvider, SkillsDirectoryProvider
from funcmcp.compat.fastmcp.skills.provider import SkillsDirectoryProvider as AgentSkills
from funcmcp.testing import Client


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with one skill that has a file beside SKILL.md."""
    skill = tmp_path / "skills" / "deploy"
    (skill / "texts").mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\ndescription: Deploy things.\n---\n# Deploy\n")
    (skill / "texts" / "steps.md").write_text("Steps")
    (tmp_path / "secret.txt").write_text("secret")
    return tmp_path / "skills"


async def uris(mcp: FastMCP) -> list[str]:
    async with Client(mcp) as client:
        return [resource.uri for resource in await client.list_resources()]


async def text(mcp: FastMCP, uri: str) -> str:
    async with Client(mcp) as client:
        return str((await client.read_resource(uri)).contents[0].text)


async def test_a_skill_is_served_as_resources(folder: Path) -> None:
    mcp = FastMCP("Server", providers=[SkillProvider(folder / "deploy")])
    assert await uris(mcp) == ["skill://deploy/SKILL.md", "skill://deploy/_manifest"]
    assert "# Deploy" in await text(mcp, "skill://deploy/SKILL.md")
    manifest = json.loads(await text(mcp, "skill://deploy/_manifest"))
    assert [file["path"] for file in manifest["files"]] == ["SKILL.md", "texts/steps.md"]
    assert await text(mcp, "skill://deploy/texts/steps.md") == "Steps"
    async with Client(mcp) as client:
        (skill, _) = await client.list_resources()
        assert (skill.name, skill.description) == ("deploy/SKILL.md", "Deploy things.")


async def test_all_files_are_listed_on_request(folder: Path) -> None:
    provider = SkillsDirectoryProvider(folder, supporting_files="resources")
    assert "skill://deploy/texts/steps.md" in await uris(FastMCP("Server", providers=[provider]))


@pytest.mark.parametrize(
    "path", ["..%2F..%2Fsecret.txt", "../../secret.txt", "link.txt", "missing.txt", "texts", "C:%5Csecret.txt"]
)
async def test_nothing_outside_of_a_skill_is_read(folder: Path, path: str) -> None:
    (folder / "deploy" / "link.txt").symlink_to(folder.parent / "secret.txt")
    mcp = FastMCP("Server", providers=[SkillProvider(folder / "deploy")])
    with pytest.raises(Exception, match=r"not found|must|segment|Invalid path"):
        await text(mcp, f"skill://deploy/{path}")


def test_a_skill_needs_its_main_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="Skill directory not found"):
        SkillProvider(tmp_path / "missing")
    with pytest.raises(FileNotFoundError, match="Main skill file not found"):
        SkillProvider(tmp_path)


async def test_folders_are_looked_through_again(folder: Path) -> None:
    once, always = SkillsDirectoryProvider([folder]), SkillsDirectoryProvider([folder], reload=True)
    (folder / "review").mkdir()
    (folder / "review" / "SKILL.md").write_text("Review")
    assert "skill://review/SKILL.md" not in await uris(FastMCP("Server", providers=[once]))
    assert "skill://review/SKILL.md" in await uris(FastMCP("Server", providers=[always]))


async def test_skills_of_programs_are_in_the_home_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder.parent / ".claude").mkdir()
    (folder.parent / ".claude" / "skills").symlink_to(folder)
    monkeypatch.setattr(Path, "home", lambda: folder.parent)
    assert "skill://deploy/SKILL.md" in await uris(FastMCP("Server", providers=[ClaudeSkillsProvider()]))
    assert await uris(FastMCP("Server", providers=[CodexSkillsProvider()])) == []


@pytest.mark.parametrize("reload", [False, True])
async def test_skills_of_the_newer_provider_are_listed(folder: Path, reload: bool) -> None:
    (folder / "deploy" / "SKILL.md").write_text("---\nname: deploy\ndescription: Deploy.\n---\n# Deploy\n")
    mcp = FastMCP("Server", providers=[AgentSkills([folder, folder / "missing"], reload=reload)])
    async with Client(mcp) as client:
        assert [skill.uri for skill in await client.list_skills()] == ["skill://deploy/SKILL.md"]
    assert "# Deploy" in await text(mcp, "skill://deploy/SKILL.md")


def test_a_skill_that_is_not_valid_stops_the_newer_provider(folder: Path) -> None:
    with pytest.raises(ValueError, match="name"):
        FastMCP("Server", providers=[AgentSkills(folder)])
