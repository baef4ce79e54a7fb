"""Skills on the client: each file is what the server has listed, or an error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from funcmcp import MCPError, MCPServer
from funcmcp._client.skills import verified_file
from funcmcp.client import Client, ReadResourceResult, SkillError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from funcmcp.middleware import CallNext, RequestContext

    Change = Callable[[dict[str, Any]], Any]

MANIFEST = b"---\nname: deploy\ndescription: Deploy\nallowed-tools: Bash(*)\n---\n\nBody.\n"
URI = "skill://deploy/SKILL.md"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "deploy/a b").mkdir(parents=True)
    (tmp_path / "deploy/SKILL.md").write_bytes(MANIFEST)
    (tmp_path / "deploy/a b/x.bin").write_bytes(b"\0\xff")
    (tmp_path / "deploy/notes.md").write_bytes(b"Notes")
    return tmp_path


def serving(folder: Path, **changes: Change) -> tuple[MCPServer, list[str]]:
    """Return a server whose results change on their way, by method without its slash, and the URIs that are read."""
    reads: list[str] = []

    async def tamper(context: RequestContext, call_next: CallNext) -> Any:
        reply = await call_next(context)
        method = context.request.method
        if method == "resources/read":
            reads.append(context.request.params["uri"])
        change = changes.get(method.replace("/", "_"))
        if change is None:
            return reply
        result = reply.message()["result"]
        return change(result) or result

    mcp = MCPServer("skills", middleware=[tamper])
    mcp.add_skills(folder)
    return mcp, reads


def entry_with(**members: Any) -> Change:
    return lambda result: result["skills"][0].update(members)


def contents_with(**members: Any) -> Change:
    return lambda result: result["contents"][0].update(members)


async def test_nothing_is_read_before_the_program_asks_for_it(folder: Path) -> None:
    mcp, reads = serving(folder)
    async with Client(mcp) as client:
        [skill] = await client.list_skills()
        assert await client.get_skill(skill.uri) == skill
        await client.list_folder("skill://deploy")
        assert reads == []
        file = await client.read_skill(skill)
        assert (file.text, file.mime_type, file.is_verified) == (MANIFEST.decode(), "text/markdown", True)
        assert reads == [URI]


async def test_a_skill_says_what_is_in_it(folder: Path) -> None:
    mcp, _ = serving(folder)
    async with Client(mcp) as client:
        [skill] = await client.list_skills()
    assert (skill.uri, skill.name, skill.description) == (URI, "deploy", "Deploy")
    assert skill.files == ["SKILL.md", "a%20b/x.bin", "notes.md"]
    assert skill.frontmatter["allowed-tools"] == "Bash(*)"
    assert not skill.is_dynamic


@pytest.mark.parametrize("file", ["a b/x.bin", "a%20b/x.bin", "skill://deploy/a%20b/x.bin"])
async def test_a_file_has_a_path_or_a_uri(folder: Path, file: str) -> None:
    mcp, _ = serving(folder)
    async with Client(mcp) as client:
        [skill] = await client.list_skills()
        assert (await client.read_skill(skill, file)).data == b"\0\xff"


@pytest.mark.parametrize("file", ["missing.md", "../deploy/SKILL.md", "", "/etc/passwd", "skill://other/SKILL.md"])
async def test_a_file_that_is_not_listed_is_not_requested(folder: Path, file: str) -> None:
    mcp, reads = serving(folder)
    async with Client(mcp) as client:
        [skill] = await client.list_skills()
        with pytest.raises(SkillError, match="does not list"):
            await client.read_skill(skill, file)
    assert reads == []


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (contents_with(text=MANIFEST.decode().replace("Body", "Evil")), "another digest"),
        (contents_with(text=MANIFEST.decode() + "more"), "bytes, and its skill lists"),
        (contents_with(text=""), "0 bytes"),
        (contents_with(uri="skill://deploy/notes.md"), "something else"),
        (lambda result: result["contents"].append(result["contents"][0]), "something else"),
        (lambda result: result["contents"].clear(), "something else"),
    ],
)
async def test_content_that_differs_from_the_entry_is_an_error(folder: Path, change: Change, error: str) -> None:
    mcp, _ = serving(folder, resources_read=change)
    async with Client(mcp) as client:
        [skill] = await client.list_skills()
        with pytest.raises(Exception, match=error):
            await client.read_skill(skill)


@pytest.mark.parametrize(
    ("contents", "error"),
    [
        ({"uri": URI}, "neither a text nor bytes"),
        ({"uri": URI, "text": "a", "blob": "aGk="}, "neither a text nor bytes"),
        ({"uri": URI, "text": "\ud800"}, "not valid Unicode"),
    ],
)
async def test_contents_that_are_no_file_are_an_error(folder: Path, contents: dict[str, Any], error: str) -> None:
    mcp, _ = serving(folder)
    async with Client(mcp) as client:
        [skill] = await client.list_skills()
    with pytest.raises(SkillError, match=error):
        verified_file(skill, URI, ReadResourceResult({"contents": [contents]}))


async def test_a_frontmatter_that_differs_from_the_entry_is_an_error(folder: Path) -> None:
    mcp, _ = serving(folder, skills_list=entry_with(frontmatter={"name": "deploy", "description": "Deploy"}))
    async with Client(mcp) as client:
        [skill] = await client.list_skills()
        with pytest.raises(SkillError, match="frontmatter"):
            await client.read_skill(skill)
        assert (await client.read_skill(skill, "notes.md")).data == b"Notes"


async def test_a_manifest_without_frontmatter_is_an_error(folder: Path) -> None:
    mcp, _ = serving(folder, skills_list=entry_with(resources="dynamic"), resources_read=contents_with(text="Body"))
    async with Client(mcp) as client:
        [skill] = await client.list_skills()
        with pytest.raises(SkillError, match="frontmatter"):
            await client.read_skill(skill)


async def test_a_dynamic_skill_is_not_verified(folder: Path) -> None:
    mcp, reads = serving(folder, skills_list=entry_with(resources="dynamic"))
    async with Client(mcp) as client:
        [skill] = await client.list_skills()
        assert (skill.is_dynamic, skill.files) == (True, [])
        file = await client.read_skill(skill, "notes.md")
        assert (file.data, file.is_verified) == (b"Notes", False)
        for path in ("../x", "skill://other/x", "%2e%2e/x"):
            reads.clear()
            with pytest.raises((SkillError, MCPError)):
                await client.read_skill(skill, path)
            assert not any(".." in uri or "other" in uri.removeprefix("skill://deploy/") for uri in reads)


async def test_a_dynamic_skill_has_a_limit(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("funcmcp._client.skills.MAX_BYTES", 3)
    mcp, _ = serving(folder, skills_list=entry_with(resources="dynamic"))
    async with Client(mcp) as client:
        [skill] = await client.list_skills()
        with pytest.raises(SkillError, match="too much"):
            await client.read_skill(skill, "notes.md")


async def test_an_entry_that_is_not_valid_is_left_out(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    mcp, _ = serving(folder, skills_list=lambda result: result["skills"].extend([5, {"uri": "skill://x/SKILL.md"}]))
    async with Client(mcp) as client:
        assert [skill.name for skill in await client.list_skills()] == ["deploy"]
    assert "skill://x/SKILL.md" in caplog.text


async def test_many_entries_that_are_not_valid_are_few_lines(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    mcp, _ = serving(folder, skills_list=lambda result: result["skills"].extend([5] * 1_000))
    async with Client(mcp) as client:
        assert [skill.name for skill in await client.list_skills()] == ["deploy"]
    assert len(caplog.messages) == 11
    assert caplog.messages[-1] == "990 more skills can't be used."


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda result: {**result, "skill": 5}, "not an object"),
        (lambda result: {**result, "skill": {**result["skill"], "resources": None}}, "neither an array"),
        (
            lambda result: {
                **result,
                "skill": {
                    "uri": "skill://other/deploy/SKILL.md",
                    "frontmatter": result["skill"]["frontmatter"],
                    "resources": "dynamic",
                },
            },
            "another skill",
        ),
    ],
)
async def test_a_single_entry_that_is_not_valid_is_an_error(folder: Path, change: Change, error: str) -> None:
    mcp, _ = serving(folder, skills_get=change)
    async with Client(mcp) as client:
        with pytest.raises(SkillError, match=error):
            await client.get_skill(URI)


async def test_a_skill_of_another_client_cannot_be_read(folder: Path) -> None:
    mcp, reads = serving(folder)
    async with Client(mcp) as one, Client(mcp) as two:
        [skill] = await one.list_skills()
        with pytest.raises(ValueError, match="another client"):
            await two.read_skill(skill)
    assert reads == []


async def test_a_server_without_skills_gets_no_request_for_them() -> None:
    async with Client(MCPServer("none")) as client:
        assert await client.list_skills() == []
        with pytest.raises(SkillError, match="does not declare skills"):
            await client.get_skill(URI)
        with pytest.raises(SkillError, match="does not list folders"):
            await client.list_folder("skill://deploy")
