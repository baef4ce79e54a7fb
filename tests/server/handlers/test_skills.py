"""`skills/list`, `skills/get` and `resources/directory/read`, with features that no folder has made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from funcmcp import Context, MCPError, MCPServer, ProtocolOptions
from funcmcp._serving.composition import runtime_of
from funcmcp.providers import Provider, Resource, Skill
from funcmcp.testing import Client

if TYPE_CHECKING:
    from collections.abc import Iterable

    from funcmcp._auth.principal import Principal


def file_of(uri: str, **members: Any) -> Resource:
    async def read(*_: Any) -> dict[str, Any]:
        return {"contents": [{"uri": uri, "text": "x"}]}

    return Resource(uri, lambda: {"uri": uri, "name": uri.rpartition("/")[2]}, read, **members)


def skill_of(path: str, *names: str) -> list[Resource | Skill]:
    """Return the features of a skill."""
    files = [file_of(f"skill://{path}/SKILL.md"), *(file_of(f"skill://{path}/{n}", is_listed=False) for n in names)]
    frontmatter = {"name": path.rpartition("/")[2], "description": "d"}
    resources = [{"uri": file.uri, "digest": f"sha256:{'0' * 64}", "size": 1} for file in files]
    entry = {"uri": files[0].uri, "frontmatter": frontmatter, "resources": resources}
    return [*files, Skill(files[0].uri, lambda: entry, files)]


def serving(*paths: str, **options: Any) -> MCPServer:
    mcp = MCPServer("skills", **options)
    for path in paths:
        for feature in skill_of(path, "a.md", "b/c.md", "b/d.md"):
            runtime_of(mcp).server.catalog.add(feature)
    return mcp


async def test_lists_have_pages_and_an_entry_is_on_one_of_them() -> None:
    mcp = serving("one", "two", "three", protocol=ProtocolOptions(page_size=2))
    async with Client(mcp) as client:
        first = await client.request("skills/list")
        second = await client.request("skills/list", {"cursor": first["nextCursor"]})
        assert [len(first["skills"]), len(second["skills"])] == [2, 1]
        assert (first["ttlMs"], first["cacheScope"]) == (60000, "public")
        folder = await client.request("resources/directory/read", {"uri": "skill://one"})
        rest = await client.request("resources/directory/read", {"uri": "skill://one", "cursor": folder["nextCursor"]})
        assert [item["name"] for item in (*folder["resources"], *rest["resources"])] == ["SKILL.md", "a.md", "b"]
        assert "ttlMs" not in folder
        assert "nextCursor" not in rest
        with pytest.raises(MCPError, match="cursor"):
            await client.request("resources/directory/read", {"uri": "skill://two", "cursor": folder["nextCursor"]})


async def test_the_members_of_caches_are_absent_in_older_revisions() -> None:
    async with Client(serving("one"), revision="2025-11-25") as client:
        assert (await client.request("skills/list")).keys() == {"skills"}
        assert (await client.request("skills/get", {"uri": "skill://one/SKILL.md"})).keys() == {"skill"}


@pytest.mark.parametrize("uri", [None, 5, "", "skill://one", "skill://one/a.md", "skill://ONE/SKILL.md"])
async def test_another_uri_names_no_skill(uri: Any) -> None:
    async with Client(serving("one")) as client:
        with pytest.raises(MCPError) as caught:
            await client.request("skills/get", {"uri": uri})
    assert caught.value.code == -32602


async def test_a_folder_has_what_all_skills_below_it_have() -> None:
    async with Client(serving("team/one", "team/two", "team/one/in", "teams/x")) as client:
        assert [item.uri for item in await client.list_folder("skill://team")] == [
            "skill://team/one",
            "skill://team/two",
        ]
        assert [item.name for item in await client.list_folder("skill://team/one")] == ["SKILL.md", "a.md", "b", "in"]


async def test_a_folder_inside_of_a_skill_has_its_own_files() -> None:
    async with Client(serving("one")) as client:
        assert [item.name for item in await client.list_folder("skill://one/b")] == ["c.md", "d.md"]
        for uri in ("skill://one/", "skill://none", "skill://one/a.md"):
            with pytest.raises(MCPError, match="not a folder"):
                await client.request("resources/directory/read", {"uri": uri})


async def test_a_skill_that_is_removed_is_not_listed() -> None:
    mcp = serving("one", "two")
    async with Client(mcp) as client:
        assert len(await client.list_skills()) == 2
        mcp.remove_resource("skill://one/b/c.md")
        assert [skill.name for skill in await client.list_skills()] == ["two"]
        with pytest.raises(MCPError, match="No skill"):
            await client.get_skill("skill://one/SKILL.md")


async def test_the_rules_of_a_session_hide_skills_with_their_files() -> None:
    mcp = serving("one", "two", sessions="memory")

    @mcp.tool
    async def hide(context: Context) -> str:
        await context.disable({"skill://one/a.md"})
        return "hidden"

    async with Client(mcp, revision="2025-11-25") as client:
        assert (await client.call_tool("hide")).text == "hidden"
        assert [skill.name for skill in await client.list_skills()] == ["two"]
        assert (await client.get_skill("skill://two/SKILL.md")).name == "two"
        with pytest.raises(MCPError, match="No skill"):
            await client.get_skill("skill://one/SKILL.md")


class Mine(Provider):
    """A provider with a skill for each caller."""

    per_caller = True
    components = frozenset({"resource", "skill"})

    async def list(self, caller: Principal | None) -> Iterable[Any]:
        return skill_of("mine" if caller is None else caller.subject, "a.md")


async def test_a_provider_may_have_skills_for_each_caller() -> None:
    mcp = serving("one")
    mcp.add_provider(Mine())
    async with Client(mcp) as client:
        assert [skill.name for skill in await client.list_skills()] == ["one", "mine"]
        skill = await client.get_skill("skill://mine/SKILL.md")
        assert skill.files == ["SKILL.md", "a.md"]
        assert (await client.read_resource("skill://mine/a.md")).text == "x"
        assert [item.name for item in await client.list_folder("skill://mine")] == ["SKILL.md", "a.md"]


async def test_an_author_calls_the_methods_without_a_client() -> None:
    mcp = serving("one")
    await mcp.list_resources()
    assert (await mcp.read_resource("skill://one/a.md")).text == "x"
