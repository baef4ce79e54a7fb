"""Providers of skills that clients list, the extension for skills, and what the server checks of their files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from funcmcp.compat import (
    AuthMiddleware,
    FastMCP,
    Provider,
    ResponseCachingMiddleware,
    Skill,
    SkillCatalogProvider,
    SkillManifestProvider,
    SkillsExtension,
)
from funcmcp.compat.fastmcp.skills.provider import SkillsDirectoryProvider
from funcmcp.testing import Client

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from funcmcp.compat.fastmcp.skills import SkillManifest

REVIEW = Skill(name="review", description="Review changes.", instructions="# Review\n", files={"notes.md": "one\n"})
DEPLOY = Skill(name="deploy", description="Deploy.", instructions="# Deploy\n", files={"logo.bin": b"\x00\xff"})


def client_of(mcp: FastMCP) -> Client:
    """Return a client over HTTP, for which checks run."""
    return Client(mcp, headers={"x-client": "test"})


async def listed(mcp: FastMCP) -> list[str]:
    async with Client(mcp) as client:
        return [skill.uri for skill in await client.list_skills()]


async def test_the_skills_of_a_catalog_are_listed_and_read() -> None:
    mcp = FastMCP("Server", providers=[SkillCatalogProvider({"team/review": REVIEW, "deploy": DEPLOY})])
    async with Client(mcp) as client:
        skills = await client.list_skills()
        assert [skill.uri for skill in skills] == ["skill://deploy/SKILL.md", "skill://team/review/SKILL.md"]
        assert await client.get_skill(skills[1].uri) == skills[1]
        assert (await client.read_skill(skills[0])).is_verified
        resources = [resource.uri for resource in await client.list_resources()]
        assert "skill://deploy/_manifest" in resources
        manifest = (await client.read_resource("skill://deploy/_manifest")).contents[0].text
        assert '"path": "logo.bin"' in str(manifest)
        with pytest.raises(Exception, match=r"Unknown skill URI: skill://other/SKILL\.md"):
            await client.get_skill("skill://other/SKILL.md")


async def test_skills_that_change_are_loaded_once_in_a_request() -> None:
    class Database(SkillCatalogProvider):
        loads = 0
        skills: tuple[Skill, ...] = (REVIEW,)

        async def load_skills(self) -> Iterable[Skill]:
            self.loads += 1
            return self.skills

    provider = Database()
    mcp = FastMCP("Server", providers=[provider])
    async with Client(mcp) as client:
        assert len(await client.list_skills()) == 1
        provider.skills, provider.loads = (REVIEW, DEPLOY), 0
        assert len(await client.list_skills()) == 2
        assert provider.loads == 1


async def test_only_the_file_that_a_client_reads_is_read() -> None:
    class Stored(SkillManifestProvider):
        def __init__(self) -> None:
            super().__init__()
            self.reads: list[str] = []

        async def load_manifests(self) -> Mapping[str, SkillManifest]:
            return {"review": REVIEW.manifest}

        async def read_file(self, resource: Any) -> bytes:
            self.reads.append(resource.file_path)
            return REVIEW.files[resource.file_path]

    provider = Stored()
    async with Client(FastMCP("Server", providers=[provider])) as client:
        await client.list_skills()
        assert provider.reads == []
        assert (await client.read_resource("skill://review/notes.md")).contents[0].text == "one\n"
    assert provider.reads == ["notes.md"]


async def test_a_provider_without_methods_has_no_skills() -> None:
    assert await listed(FastMCP("Server", providers=[SkillManifestProvider()])) == []
    with pytest.raises(NotImplementedError, match="read_file"):
        await SkillManifestProvider().read_file(None)  # type: ignore[arg-type] # has no method


async def test_a_skill_with_a_file_that_is_served_elsewhere_is_hidden() -> None:
    mcp = FastMCP("Server", providers=[SkillCatalogProvider([REVIEW, DEPLOY])])
    mcp.resource("skill://review/notes.md")(lambda: "other")
    assert await listed(mcp) == ["skill://deploy/SKILL.md"]
    second = FastMCP("Second", providers=[SkillCatalogProvider([REVIEW]), SkillCatalogProvider([REVIEW])])
    assert await listed(second) == []


async def test_a_skill_with_a_file_that_middleware_refuses_is_hidden() -> None:
    refused = {"review/notes.md"}
    middleware = AuthMiddleware(auth=lambda context: context.component.name not in refused)
    mcp = FastMCP("Server", providers=[SkillCatalogProvider([REVIEW])], middleware=[middleware])
    above = FastMCP("Above")
    above.mount(mcp)
    async with client_of(mcp) as client, client_of(above) as other:
        assert await client.list_skills() == []
        assert await other.list_skills() == []
        refused.clear()
        assert len(await client.list_skills()) == 1
        assert len(await other.list_skills()) == 1


async def test_mounted_skills_have_the_prefix() -> None:
    mcp = FastMCP("Server", providers=[SkillCatalogProvider([REVIEW])])
    above = FastMCP("Above")
    above.mount(mcp, namespace="team")
    async with Client(above) as client:
        (skill,) = await client.list_skills()
        assert skill.uri == "skill://team/review/SKILL.md"
        assert await client.get_skill(skill.uri) == skill
        assert (await client.read_skill(skill)).is_verified
    prefixed = FastMCP("Prefixed")
    prefixed.add_provider(SkillCatalogProvider([REVIEW]), namespace="docs")
    assert await listed(prefixed) == ["skill://docs/review/SKILL.md"]


async def test_a_cache_never_serves_an_old_file() -> None:
    skills = [REVIEW]

    class Changing(SkillCatalogProvider):
        async def load_skills(self) -> Iterable[Skill]:
            return skills

    mcp = FastMCP("Server", providers=[Changing()], middleware=[ResponseCachingMiddleware()])
    async with Client(mcp) as client:
        assert (await client.read_resource("skill://review/notes.md")).contents[0].text == "one\n"
        skills[:] = [Skill.from_files({**REVIEW.files, "notes.md": "two\n"})]
        assert (await client.read_resource("skill://review/notes.md")).contents[0].text == "two\n"


@pytest.mark.parametrize(
    ("skills", "error", "text"),
    [
        ([REVIEW, REVIEW], ValueError, "Duplicate skill name"),
        ({"team/other": REVIEW}, ValueError, "must end with"),
        ({"review": REVIEW, "review/sub/deploy": DEPLOY}, ValueError, "nested"),
        ({"../review": REVIEW}, ValueError, "invalid segment"),
        (["review"], TypeError, "Expected a Skill, got str"),
    ],
)
def test_a_catalog_that_is_not_valid_is_refused(skills: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        SkillCatalogProvider(skills)


# Folders


def write(folder: Path, text: str = "# Body\n") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "SKILL.md").write_text(f"---\nname: {folder.name}\ndescription: Use it.\n---\n{text}")


async def test_folders_are_served_under_their_paths(tmp_path: Path) -> None:
    write(tmp_path / "one" / "ops" / "deploy")
    write(tmp_path / "one" / "ops" / "deploy" / "examples" / "inner")
    write(tmp_path / "one" / ".hidden")
    write(tmp_path / "two" / "ops")
    write(tmp_path / "two" / "review")
    provider = SkillsDirectoryProvider([tmp_path / "one", tmp_path / "two", tmp_path / "missing"])
    assert repr(provider).startswith("SkillsDirectoryProvider(roots=[")
    uris = await listed(FastMCP("Server", providers=[provider]))
    assert uris == ["skill://ops/deploy/SKILL.md", "skill://review/SKILL.md"]


def test_each_folder_that_is_not_valid_gets_advice(tmp_path: Path) -> None:
    write(tmp_path / "good")
    (tmp_path / "use_cli").mkdir()
    (tmp_path / "use_cli" / "SKILL.md").write_text("# Text\n")
    write(tmp_path / "link")
    (tmp_path / "link" / "secret").symlink_to(tmp_path / "good")
    with pytest.raises(ValueError, match="2 skill folder") as caught:
        SkillsDirectoryProvider(tmp_path)
    assert "rename the folder to 'use-cli'" in str(caught.value)
    assert "contains a symlink" in str(caught.value)


async def test_a_folder_that_breaks_leaves_the_skills_as_they_were(tmp_path: Path) -> None:
    write(tmp_path / "review")
    mcp = FastMCP("Server", providers=[SkillsDirectoryProvider(tmp_path, reload=True)])
    async with Client(mcp) as client:
        write(tmp_path / "review", "# Changed\n")
        assert "# Changed" in str((await client.read_resource("skill://review/SKILL.md")).contents[0].text)
        (tmp_path / "Bad").mkdir()
        (tmp_path / "Bad" / "SKILL.md").write_text("hi")
        assert [skill.uri for skill in await client.list_skills()] == ["skill://review/SKILL.md"]


# The extension


async def test_the_extension_is_limited_to_providers() -> None:
    first, second = SkillCatalogProvider([REVIEW]), SkillCatalogProvider([DEPLOY])
    mcp = FastMCP("Server", providers=[first, second])
    mcp.add_extension(SkillsExtension(providers=[second]))
    assert await listed(mcp) == ["skill://deploy/SKILL.md"]
    with pytest.raises(ValueError, match="already registered"):
        mcp.add_extension(SkillsExtension())


def test_the_extension_takes_providers_of_its_server() -> None:
    mcp = FastMCP("Server")
    with pytest.raises(ValueError, match="at least one"):
        SkillsExtension(providers=[])
    provider = Provider()
    with pytest.raises(ValueError, match="unique"):
        SkillsExtension(providers=[provider, provider])
    with pytest.raises(ValueError, match="registered directly"):
        mcp.add_extension(SkillsExtension(providers=[provider]))
    mcp.add_provider(provider)
    with pytest.raises(TypeError, match="not a SkillsExtension source"):
        mcp.add_extension(SkillsExtension(providers=[provider]))
