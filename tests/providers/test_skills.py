"""Skills of folders: what is served, and what is not."""

from __future__ import annotations

import json
import os
import shutil
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp import MCPError, MCPServer, RegistrationError
from funcmcp._authoring.features.folder_resources import Folder
from funcmcp._protocol.skills import MAX_BYTES, MAX_FILES, digest_of
from funcmcp._providers import skills as module
from funcmcp._providers.python_files import RELOAD_SECONDS
from funcmcp.auth import APIKeys
from funcmcp.testing import Client

if TYPE_CHECKING:
    from pathlib import Path

    from funcmcp.client import Skill


ANN, BOB = "the-key-of-ann-0001", "the-key-of-bob-0002"


def manifest(name: str, more: str = "") -> bytes:
    return f"---\nname: {name}\ndescription: How to {name}\n{more}---\n\n# {name}\n".encode()


def write(folder: Path, files: dict[str, bytes]) -> Path:
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with two skills, one of them with files of all kinds, and a file beside it."""
    (tmp_path / "secret.txt").write_text("secret")
    return write(
        tmp_path / "skills",
        {
            "deploy/SKILL.md": manifest("deploy", "license: MIT\nmetadata:\n  team: shop\n"),
            "deploy/references/first steps.md": "# Schön\r\n".encode(),
            "deploy/assets/logo.png": b"\x89PNG\0",
            "deploy/assets/bom.txt": b"\xef\xbb\xbftext",
            "deploy/assets/broken.txt": b"\xfftext",
            "deploy/.git/config": b"[hidden]",
            "ops/roll-back/SKILL.md": manifest("roll-back"),
            "README.md": b"No skill.",
        },
    )


def serving(folder: Path, **options: Any) -> MCPServer:
    mcp = MCPServer("skills")
    mcp.add_skills(folder, **options)
    return mcp


async def uris_of(mcp: MCPServer) -> list[str]:
    async with Client(mcp) as client:
        return [skill.uri for skill in await client.list_skills()]


async def files_of(client: Client, skill: Skill) -> dict[str, bytes]:
    return {name: (await client.read_skill(skill, name)).data for name in skill.files}


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_a_client_reads_each_file_as_it_is(folder: Path, revision: str) -> None:
    async with Client(serving(folder), revision=revision) as client:
        deploy, roll_back = await client.list_skills()
        assert (deploy.uri, roll_back.uri) == ("skill://deploy/SKILL.md", "skill://ops/roll-back/SKILL.md")
        assert deploy.frontmatter == {
            "name": "deploy",
            "description": "How to deploy",
            "license": "MIT",
            "metadata": {"team": "shop"},
        }
        read = await files_of(client, deploy)
        assert await client.get_skill(deploy.uri) == deploy
    names = ["SKILL.md", "assets/bom.txt", "assets/broken.txt", "assets/logo.png", "references/first steps.md"]
    assert read == {name.replace(" ", "%20"): (folder / "deploy" / name).read_bytes() for name in names}


async def test_an_entry_has_the_digest_and_the_size_of_each_file(folder: Path) -> None:
    async with Client(serving(folder)) as client:
        [_, skill] = (await client.request("skills/list"))["skills"]
    data = (folder / "ops/roll-back/SKILL.md").read_bytes()
    assert skill["resources"] == [
        {"uri": "skill://ops/roll-back/SKILL.md", "digest": digest_of(data), "size": len(data)}
    ]


async def test_only_the_manifests_are_in_the_list_of_resources(folder: Path) -> None:
    async with Client(serving(folder)) as client:
        deploy, roll_back = await client.list_resources()
    assert dict(deploy) == {
        "uri": "skill://deploy/SKILL.md",
        "name": "deploy",
        "title": "deploy",
        "description": "How to deploy",
        "mimeType": "text/markdown",
        "size": (folder / "deploy/SKILL.md").stat().st_size,
        "_meta": {
            "io.modelcontextprotocol.skills/license": "MIT",
            "io.modelcontextprotocol.skills/metadata": {"team": "shop"},
        },
    }
    assert roll_back.name == "roll-back"


async def test_folders_can_be_listed(folder: Path) -> None:
    async with Client(serving(folder)) as client:
        found = await client.list_folder("skill://deploy")
        assert [(item.name, item.mime_type) for item in found] == [
            ("deploy", "text/markdown"),
            ("assets", "inode/directory"),
            ("references", "inode/directory"),
        ]
        [file] = await client.list_folder("skill://deploy/references")
        assert (file.uri, file.name) == ("skill://deploy/references/first%20steps.md", "first steps.md")
        assert [item.uri for item in await client.list_folder("skill://ops")] == ["skill://ops/roll-back"]


@pytest.mark.parametrize(
    "uri",
    [
        "skill://deploy/SKILL.md",
        "skill://deploy/",
        "skill://",
        "skill:/",
        "skill:",
        "skill://dep",
        "skill://deploy/..",
        "skill://deploy/.git",
        "skill://missing",
        "",
    ],
)
async def test_other_uris_are_not_folders(folder: Path, uri: str) -> None:
    async with Client(serving(folder)) as client:
        with pytest.raises(MCPError, match="not a folder") as caught:
            await client.list_folder(uri)
    assert caught.value.code == -32602


@pytest.mark.parametrize(
    "uri",
    [
        "skill://deploy/.git/config",
        "skill://deploy/../../secret.txt",
        "skill://deploy/%2e%2e/README.md",
        "skill://README.md",
        "skill://deploy/references/first steps.md",
        "skill://deploy/skill.md",
        "skill://Deploy/SKILL.md",
        "skill://deploy/assets",
        "skill://deploy/SKILL.md/",
        "skill://deploy//SKILL.md",
    ],
)
async def test_other_uris_are_not_resources(folder: Path, uri: str) -> None:
    async with Client(serving(folder)) as client:
        with pytest.raises(MCPError):
            await client.read_resource(uri)


async def test_a_folder_can_be_one_skill_and_have_a_prefix(folder: Path) -> None:
    assert await uris_of(serving(folder / "deploy")) == ["skill://deploy/SKILL.md"]
    assert await uris_of(serving(folder / "deploy", prefix="acme/shop")) == ["skill://acme/shop/deploy/SKILL.md"]
    assert (await uris_of(serving(folder, prefix="acme")))[1] == "skill://acme/ops/roll-back/SKILL.md"


@pytest.mark.parametrize("parts", [".claude/skills", ".cursor/skills", ".codex/skills", ".agents/skills"])
async def test_the_folders_of_programs_are_served(parts: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    write(tmp_path / parts, {"deploy/SKILL.md": manifest("deploy"), ".system/own/SKILL.md": manifest("own")})
    mcp = MCPServer("mine")
    mcp.add_skills(f"~/{parts}")
    assert await uris_of(mcp) == ["skill://deploy/SKILL.md"]


async def test_a_skill_in_another_one_belongs_to_both(tmp_path: Path) -> None:
    write(tmp_path / "s", {"a/SKILL.md": manifest("a"), "a/b/SKILL.md": manifest("b"), "a/b/x.md": b"x"})
    async with Client(serving(tmp_path / "s")) as client:
        outer, inner = await client.list_skills()
        assert (outer.files, inner.files) == (["SKILL.md", "b/SKILL.md", "b/x.md"], ["SKILL.md", "x.md"])
        assert (await client.read_skill(outer, "b/SKILL.md")).data == (await client.read_skill(inner)).data
        assert [resource.name for resource in await client.list_resources()] == ["a", "b"]


@pytest.mark.parametrize(
    ("files", "error"),
    [
        ({"a/SKILL.md": b"# no frontmatter"}, "frontmatter"),
        ({"a/SKILL.md": manifest("b")}, "its name is 'b', and its folder is 'a'"),
        ({"a/SKILL.md": b"---\nname: a\n---\n"}, "no description"),
        ({"a/SKILL.md": manifest("a"), **{f"a/{n}": b"" for n in range(MAX_FILES)}}, "513 files"),
        ({"a/SKILL.md": manifest("a"), "a/big": bytes(MAX_BYTES)}, "16,777,216"),
        ({"a/SKILL.md": manifest("a"), "a/x/SKILL.md": b"---\n- x\n---\n"}, "mapping"),
    ],
)
async def test_a_skill_that_is_not_valid_is_an_error_or_is_left_out(
    files: dict[str, bytes], error: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = write(tmp_path / "s", {**files, "valid/SKILL.md": manifest("valid")})
    with pytest.raises(RegistrationError) as caught:
        serving(folder)
    assert error in str(caught.value)
    assert "skip_invalid" in str(caught.value)
    mcp = serving(folder, skip_invalid=True)
    assert "skill://valid/SKILL.md" in await uris_of(mcp)
    assert error in caplog.text


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"prefix": "../x"}, "prefix"),
        ({"prefix": "a//b"}, "prefix"),
        ({"prefix": "a/"}, "prefix"),
        ({"prefix": 5}, "prefix"),
        ({"reload": "yes"}, "reload"),
        ({"skip_invalid": 1}, "skip_invalid"),
        ({"colour": "red"}, "Unknown option"),
        ({"ignore": 5}, "ignore"),
        ({"hidden": 5}, "hidden"),
        ({"scopes": "admin"}, "scopes"),
        ({"tags": "admin"}, "tags"),
    ],
)
def test_a_wrong_option_is_an_error(folder: Path, options: dict[str, Any], error: str) -> None:
    with pytest.raises(RegistrationError, match=error):
        serving(folder, **options)


def test_a_folder_that_is_missing_or_served_twice_is_an_error(folder: Path) -> None:
    with pytest.raises(RegistrationError, match="not a folder"):
        serving(folder / "missing")
    mcp = serving(folder)
    with pytest.raises(RegistrationError, match=r"Duplicate .* pass prefix= to add_skills"):
        mcp.add_skills(folder)


def test_a_folder_with_too_many_files_is_an_error(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("funcmcp._authoring.features.folder_resources._MAX_ENTRIES", 5)
    with pytest.raises(RegistrationError, match="too many files"):
        serving(folder)


async def test_files_can_be_left_out_and_hidden_ones_served(folder: Path) -> None:
    async with Client(serving(folder, ignore=["assets", "*.png"], hidden=True)) as client:
        [deploy, _] = await client.list_skills()
    assert deploy.files == [".git/config", "SKILL.md", "references/first%20steps.md"]


def test_a_folder_without_skills_and_links_to_skills_are_logged(
    folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write(tmp_path / "other", {"deploy.md": manifest("deploy")})
    (tmp_path / "other/deploy").symlink_to(folder / "deploy")
    serving(tmp_path / "other")
    assert "other/deploy is a link to a folder, or leads" in caplog.text
    assert "left out. Pass the folder that has it" in caplog.text
    assert "other has no skills" in caplog.text


async def test_links_out_of_the_folder_are_not_served(folder: Path) -> None:
    (folder / "deploy/secret.txt").symlink_to(folder.parent / "secret.txt")
    (folder / "deploy/passwd").symlink_to("/etc/passwd")
    (folder / "deploy/up").symlink_to("..")
    (folder / "outside").symlink_to(folder.parent)
    (folder / "deploy/loop").symlink_to("loop")
    (folder / "deploy/inside.md").symlink_to("references/first steps.md")
    os.mkfifo(folder / "deploy/pipe")
    async with Client(serving(folder)) as client:
        [deploy, _] = await client.list_skills()
        assert [name for name in deploy.files if "/" not in name] == ["SKILL.md", "inside.md"]


async def test_odd_things_that_are_called_skills_are_none(folder: Path, tmp_path: Path) -> None:
    write(tmp_path / "elsewhere", {"linked/SKILL.md": manifest("linked")})
    for name in ("linked", "pipe", "folder/SKILL.md"):
        (folder / name).mkdir(parents=True)
    (folder / "linked/SKILL.md").symlink_to(tmp_path / "elsewhere/linked/SKILL.md")
    os.mkfifo(folder / "pipe/SKILL.md")
    (folder / "other").symlink_to(folder / "deploy")
    with suppress(OSError):  # macOS has no such names
        (folder / os.fsdecode(b"deploy/\xff.md")).write_bytes(b"x")
    assert await uris_of(serving(folder)) == ["skill://deploy/SKILL.md", "skill://ops/roll-back/SKILL.md"]
    (folder / "deploy/disk.img").touch()
    os.truncate(folder / "deploy/disk.img", 2**40)  # a file with a hole
    with pytest.raises(RegistrationError, match=r"1,099,511,[\d,]+ bytes"):
        serving(folder)


async def is_changed(client: Client, uri: str) -> bool:
    with pytest.raises(MCPError, match="changed since") as caught:
        await client.read_resource(uri)
    assert caught.value.data == {"uri": uri}
    return True


async def test_bytes_that_no_longer_fit_the_digest_are_not_served(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file, uri = folder / "deploy/references/first steps.md", "skill://deploy/references/first%20steps.md"
    before = file.read_bytes()
    async with Client(serving(folder)) as client:
        file.write_bytes(before[::-1])
        assert await is_changed(client, uri)
        assert await is_changed(client, uri)
        assert len([record for record in caplog.records if "has changed" in record.getMessage()]) == 1
        file.unlink()
        assert await is_changed(client, uri)
        file.symlink_to(folder.parent / "secret.txt")
        assert await is_changed(client, uri)
        file.unlink()
        file.write_bytes(bytes(MAX_BYTES + 1))
        assert await is_changed(client, uri)
        file.write_bytes(before)
        assert (await client.read_resource(uri)).contents[0].text == before.decode()


async def test_a_folder_that_becomes_a_link_leads_nowhere(folder: Path, tmp_path: Path) -> None:
    write(tmp_path / "elsewhere", {"first steps.md": (folder / "deploy/references/first steps.md").read_bytes()})
    async with Client(serving(folder)) as client:
        shutil.rmtree(folder / "deploy/references")
        (folder / "deploy/references").symlink_to(tmp_path / "elsewhere")
        assert await is_changed(client, "skill://deploy/references/first%20steps.md")


async def test_callers_get_the_skills_that_they_may_use(folder: Path, tmp_path: Path) -> None:
    write(tmp_path / "admin", {"drop/SKILL.md": manifest("drop"), "drop/x.md": b"x"})
    write(tmp_path / "open", {"hello/SKILL.md": manifest("hello")})
    mcp = MCPServer("skills", auth=APIKeys({"ann": ANN, "bob": BOB}, scopes={"bob": ["admin"]}))
    mcp.add_skills(folder / "deploy")
    mcp.add_skills(tmp_path / "admin", scopes=["admin"])
    mcp.add_skills(tmp_path / "open", allow_anonymous=True)

    async def seen(headers: dict[str, str]) -> tuple[list[str], list[str]]:
        async with Client(mcp, headers=headers) as client:
            names = [skill.name for skill in await client.list_skills()]
            readable = []
            for uri in ("skill://deploy/SKILL.md", "skill://drop/x.md", "skill://hello/SKILL.md"):
                try:
                    await client.read_resource(uri)
                    readable.append(uri)
                except Exception:  # noqa: BLE001 - each refusal has its own error
                    continue
            return names, readable

    everything = ["skill://deploy/SKILL.md", "skill://drop/x.md", "skill://hello/SKILL.md"]
    assert await seen({"x-api-key": BOB}) == (["deploy", "drop", "hello"], everything)
    assert await seen({"x-api-key": ANN}) == (["deploy", "hello"], [everything[0], everything[2]])
    assert await seen({}) == (["hello"], [everything[2]])
    async with Client(mcp, headers={"x-api-key": ANN}) as client:
        with pytest.raises(Exception, match=r"scope|denied|access|No skill"):
            await client.get_skill("skill://drop/SKILL.md")
        with pytest.raises(MCPError, match="not a folder"):
            await client.list_folder("skill://drop")
        page = await client.request("skills/list")
    assert page["cacheScope"] == "private"
    assert "drop" not in json.dumps(page)


async def test_skills_are_hidden_with_their_files(folder: Path) -> None:
    mcp = MCPServer("skills")
    mcp.add_skills(folder / "deploy", tags={"draft"})
    mcp.add_skills(folder / "ops")
    mcp.disable(tags={"draft"})
    async with Client(mcp) as client:
        assert [skill.name for skill in await client.list_skills()] == ["roll-back"]
        with pytest.raises(MCPError, match="No skill"):
            await client.get_skill("skill://deploy/SKILL.md")
        mcp.enable(tags={"draft"})
        assert len(await client.list_skills()) == 2


async def test_a_skill_without_one_of_its_files_is_not_listed(folder: Path) -> None:
    mcp = serving(folder)
    mcp.disable(names={"skill://deploy/assets/logo.png"})
    assert await uris_of(mcp) == ["skill://ops/roll-back/SKILL.md"]


async def test_a_mounted_server_has_its_skills_under_the_prefix(folder: Path) -> None:
    mcp = MCPServer("above")
    mcp.mount(serving(folder), prefix="team")
    async with Client(mcp) as client:
        skill = await client.get_skill("skill://team/deploy/SKILL.md")
        read = await files_of(client, skill)
    assert read["assets/logo.png"] == b"\x89PNG\0"


async def test_some_values_are_named_that_other_programs_reject(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    serving(write(tmp_path / "s", {"a/SKILL.md": manifest("a", "metadata:\n  pinned: no\n"), "a/b:c.md": b"x"}))
    assert "another value of metadata" in caplog.text
    assert "a/b%3Ac.md: some clients reject the skill" in caplog.text


class Clock:
    """The clock of providers, which a test moves."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seconds = 1_000.0
        monkeypatch.setattr("funcmcp._providers.provided.monotonic", lambda: self.seconds)

    def move(self) -> None:
        self.seconds += RELOAD_SECONDS + 0.1


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


async def test_changes_are_served_with_reload(folder: Path, clock: Clock) -> None:
    notified: list[str] = []
    mcp = serving(folder, reload=True)
    async with Client(mcp, on_notification=lambda message: notified.append(message["method"])) as client:
        assert "skills" in str(client.capabilities)
        skill = await client.get_skill("skill://deploy/SKILL.md")
        write(folder, {"deploy/new.md": b"new", "third/SKILL.md": manifest("third")})
        shutil.rmtree(folder / "ops")
        clock.move()
        assert [item.name for item in await client.list_skills()] == ["deploy", "third"]
        changed = await client.get_skill(skill.uri)
        assert set(changed.files) - set(skill.files) == {"new.md"}
        assert (await client.read_skill(changed, "new.md")).data == b"new"
        with pytest.raises(MCPError):
            await client.read_resource("skill://ops/roll-back/SKILL.md")


async def test_a_changed_file_is_read_again_with_reload(
    folder: Path, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    async with Client(serving(folder, reload=True)) as client:
        before = await client.get_skill("skill://deploy/SKILL.md")
        (folder / "deploy/SKILL.md").write_bytes(manifest("deploy", "license: BSD\n"))
        assert await is_changed(client, "skill://deploy/SKILL.md")
        assert caplog.text == ""
        clock.move()
        after = await client.get_skill("skill://deploy/SKILL.md")
        assert (before.frontmatter["license"], after.frontmatter["license"]) == ("MIT", "BSD")
        assert b"BSD" in (await client.read_skill(after)).data


async def test_the_last_skills_remain_while_one_is_not_valid(
    folder: Path, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    async with Client(serving(folder, reload=True)) as client:
        assert len(await client.list_skills()) == 2
        write(folder, {"deploy/SKILL.md": b"---\nname: [\n", "deploy/new.md": b"new", "ops/roll-back/new.md": b"new"})
        clock.move()
        assert [skill.files for skill in await client.list_skills()] == [
            ["SKILL.md", "new.md"],
            ["SKILL.md", "assets/bom.txt", "assets/broken.txt", "assets/logo.png", "references/first%20steps.md"],
        ]
        assert "frontmatter" in caplog.text
        assert await is_changed(client, "skill://deploy/SKILL.md")
        (folder / "deploy/SKILL.md").write_bytes(manifest("deploy"))
        clock.move()
        assert "new.md" in (await client.get_skill("skill://deploy/SKILL.md")).files


async def test_a_skill_that_is_not_valid_any_more_can_be_left_out(folder: Path, clock: Clock) -> None:
    async with Client(serving(folder, reload=True, skip_invalid=True)) as client:
        assert len(await client.list_skills()) == 2
        (folder / "deploy/SKILL.md").write_bytes(b"---\nname: [\n")
        clock.move()
        assert [skill.name for skill in await client.list_skills()] == ["roll-back"]


async def test_only_files_that_have_changed_are_read_again(
    folder: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    hashed: list[bytes] = []

    def noted_digest_of(data: bytes) -> str:
        hashed.append(data)
        return digest_of(data)

    monkeypatch.setattr(module, "digest_of", noted_digest_of)
    async with Client(serving(folder, reload=True)) as client:
        await client.list_skills()
        hashed.clear()
        write(folder, {"deploy/new.md": b"new"})
        clock.move()
        await client.list_skills()
    assert hashed == [b"new"]


async def test_a_file_that_disappears_while_the_folder_is_read_is_left_out(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Folder.read_bytes

    def read_bytes(self: Any, path: Any) -> bytes | None:
        return None if path.name in {"logo.png", "SKILL.md"} and path.parts[0] != "ops" else real(self, path)

    monkeypatch.setattr(Folder, "read_bytes", read_bytes)
    with pytest.raises(RegistrationError, match="just been removed"):
        serving(folder)


async def test_a_file_that_cannot_be_read_is_an_error(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def read_bytes(_self: Any, path: Any) -> bytes | None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Folder, "read_bytes", read_bytes)
    with pytest.raises(RegistrationError, match="can't be read"):
        serving(folder)


async def test_a_server_without_skills_has_no_methods_of_them() -> None:
    async with Client(MCPServer("none")) as client:
        for method in ("skills/list", "skills/get", "resources/directory/read"):
            with pytest.raises(MCPError) as caught:
                await client.request(method, {"uri": "skill://a/SKILL.md"})
            assert caught.value.code == -32601
