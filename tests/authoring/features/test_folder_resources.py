"""Files and folders as resources, read by a client as any other resource."""

from __future__ import annotations

import os
from base64 import b64decode
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp import MCPError, MCPServer, RegistrationError
from funcmcp._authoring.features import folder_resources
from funcmcp.auth import APIKeys
from funcmcp.testing import REVISIONS, Client

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    """Return a folder with a few files, and a file beside it that must not be served."""
    folder = tmp_path / "docs"
    for name, data in {
        "index.md": b"# Index",
        "guides/first steps.md": "# Schön".encode(),
        "guides/logo.png": b"\x89PNG\0",
        "guides/drafts/next.md": b"# Next",
        ".git/config": b"[secret]",
        "README": b"Read me.",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    (tmp_path / "secret.txt").write_text("secret")
    return folder


def serving(folder: Path, uri: str = "docs://", **options: Any) -> MCPServer:
    mcp = MCPServer("files")
    mcp.add_files(folder, uri, **options)
    return mcp


async def uris_of(mcp: MCPServer) -> list[str]:
    async with Client(mcp) as client:
        return [resource.uri for resource in await client.list_resources()]


async def is_unknown(client: Client, uri: str) -> bool:
    """Return whether a URI is answered as that of an unknown resource."""
    with pytest.raises(MCPError) as caught:
        await client.read_resource(uri)
    return caught.value.message in {"Resource not found", "Unknown resource"} or "not allowed" in caught.value.message


async def contents_of(client: Client, uri: str) -> dict[str, Any]:
    [contents] = (await client.read_resource(uri)).contents
    return dict(contents)


ALL = [
    "docs://README",
    "docs://guides/drafts/next.md",
    "docs://guides/first%20steps.md",
    "docs://guides/logo.png",
    "docs://index.md",
]


@pytest.mark.parametrize("revision", REVISIONS[-2:])
async def test_a_folder_is_a_template_and_a_list(docs: Path, revision: str) -> None:
    async with Client(serving(docs), revision=revision) as client:
        [template] = await client.list_resource_templates()
        assert (template.uri_template, template.name) == ("docs://{path*}", "docs")
        assert template.description == "The files of the folder docs."
        listed = await client.list_resources()
        assert [resource.uri for resource in listed] == ALL
        logo = listed[3]
        assert (logo.name, logo.mime_type, logo["size"]) == ("guides/logo.png", "image/png", 5)
        assert logo["annotations"]["lastModified"].endswith("Z")
        for resource in listed:
            assert (await contents_of(client, resource.uri))["uri"] == resource.uri


async def test_contents_are_texts_or_bytes_by_type_and_content(docs: Path) -> None:
    async with Client(serving(docs)) as client:
        text = await contents_of(client, "docs://guides/first%20steps.md")
        assert (text["text"], text["mimeType"]) == ("# Schön", "text/markdown")
        assert (await contents_of(client, "docs://README"))["mimeType"] == "text/plain"
        logo = await contents_of(client, "docs://guides/logo.png")
        assert (b64decode(logo["blob"]), logo["mimeType"]) == (b"\x89PNG\0", "image/png")
        (docs / "index.md").write_bytes(b"\xff")
        assert (await contents_of(client, "docs://index.md"))["blob"] == "/w=="
        (docs / "data").write_bytes(b"\0")
        assert (await contents_of(client, "docs://data"))["mimeType"] == "application/octet-stream"


async def test_a_read_and_a_list_show_the_files_as_they_are_then(docs: Path) -> None:
    mcp = serving(docs)
    async with Client(mcp) as client:
        assert (await contents_of(client, "docs://index.md"))["text"] == "# Index"
        (docs / "index.md").write_text("# Changed")
        assert (await contents_of(client, "docs://index.md"))["text"] == "# Changed"
        (docs / "index.md").unlink()
        assert await is_unknown(client, "docs://index.md")
    assert "docs://index.md" not in await uris_of(mcp)


@pytest.mark.parametrize(
    "uri",
    [
        "docs://missing.md",
        "docs://guides",
        "docs://guides/",
        "docs://.git/config",
        "docs://../secret.txt",
        "docs://guides/../../secret.txt",
        "docs://..%2Fsecret.txt",
        "docs://guides%2F..%2F..%2Fsecret.txt",
        "docs://%2Fetc%2Fpasswd",
        "docs:///etc/passwd",
        "docs://guides//logo.png",
        "docs://./index.md",
        "docs://guides/%2e/logo.png",
        "docs://INDEX.md",
        "docs://index.md/",
        "docs://index.md%00",
        "docs://guides%5Clogo.png",
        f"docs://{'x' * 5000}",
    ],
)
async def test_other_uris_are_unknown(docs: Path, uri: str) -> None:
    async with Client(serving(docs)) as client:
        assert await is_unknown(client, uri)


async def test_links_may_lead_to_files_below_the_folder_only(docs: Path) -> None:
    (docs / "latest.md").symlink_to("guides/first steps.md")
    (docs / "outside.txt").symlink_to("../secret.txt")
    (docs / "above").symlink_to("..")
    (docs / "circle").symlink_to("circle")
    (docs / "around").symlink_to(".")
    mcp = serving(docs)
    assert await uris_of(mcp) == [*ALL, "docs://latest.md"]
    async with Client(mcp) as client:
        assert (await contents_of(client, "docs://latest.md"))["text"] == "# Schön"
        for uri in ("docs://outside.txt", "docs://above/secret.txt", "docs://circle"):
            assert await is_unknown(client, uri)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Named pipes are files of POSIX.")
async def test_only_regular_files_are_served(docs: Path) -> None:
    os.mkfifo(docs / "pipe")
    mcp = serving(docs)
    assert "docs://pipe" not in await uris_of(mcp)
    async with Client(mcp) as client:
        assert await is_unknown(client, "docs://pipe")


async def test_names_that_no_uri_can_have_are_left_out(docs: Path) -> None:
    (docs / "a\\b.md").write_text("x")
    (docs / "100%.md").write_text("x")
    assert await uris_of(serving(docs)) == ["docs://100%25.md", *ALL]


async def test_patterns_choose_files(docs: Path) -> None:
    assert await uris_of(serving(docs, pattern="*.MD", ignore="drafts")) == [
        "docs://guides/first%20steps.md",
        "docs://index.md",
    ]
    assert await uris_of(serving(docs, pattern=["guides/*", "README"], ignore=["guides/drafts/", "*.png"])) == [
        "docs://README",
        "docs://guides/first%20steps.md",
    ]
    mcp = serving(docs, ignore=["drafts"], hidden=True)
    assert "docs://.git/config" in await uris_of(mcp)
    async with Client(mcp) as client:
        assert await is_unknown(client, "docs://guides/drafts/next.md")


async def test_a_file_that_is_too_large_is_listed_and_not_read(docs: Path) -> None:
    mcp = serving(docs, file_bytes=7)
    assert await uris_of(mcp) == ALL
    async with Client(mcp) as client:
        assert (await contents_of(client, "docs://index.md"))["text"] == "# Index"
        with pytest.raises(MCPError, match="up to 7 bytes"):
            await client.read_resource("docs://README")


async def test_a_long_list_is_cut_and_the_log_says_so_once(docs: Path, caplog: pytest.LogCaptureFixture) -> None:
    mcp = serving(docs, listed_files=2)
    assert await uris_of(mcp) == ALL[:2]
    assert await uris_of(mcp) == ALL[:2]
    assert [record.getMessage() for record in caplog.records if "first 2 files" in record.getMessage()] == [
        "The list of docs:// has the first 2 files only. Use pattern=, ignore= or listed_files= of add_files."
    ]
    async with Client(mcp) as client:
        assert (await contents_of(client, "docs://index.md"))["text"] == "# Index"


async def test_a_list_looks_at_a_bounded_number_of_files(docs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder_resources, "_MAX_ENTRIES", 3)
    assert await uris_of(serving(docs, pattern="*.png")) == []


async def test_paths_are_completed(docs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with Client(serving(docs)) as client:
        ref = {"type": "ref/resource", "uri": "docs://{path*}"}
        completion = await client.complete(ref, "path", "guides/")
        assert completion.values == ["guides/drafts/next.md", "guides/first steps.md", "guides/logo.png"]
        monkeypatch.setattr(folder_resources, "_MAX_COMPLETIONS", 1)
        assert (await client.complete(ref, "path", "")).values == ["README"]


async def test_a_file_is_a_resource(docs: Path) -> None:
    mcp = serving(docs / "index.md", "docs://index", title="Index")
    mcp.add_files(docs / "README", "docs://files/")
    async with Client(mcp) as client:
        first, second = await client.list_resources()
        assert (first.uri, first.name, first.mime_type, first.title) == (
            "docs://index",
            "index.md",
            "text/markdown",
            "Index",
        )
        assert second.uri == "docs://files/README"
        assert (await contents_of(client, "docs://index"))["text"] == "# Index"
        (docs / "README").unlink()
        assert await is_unknown(client, "docs://files/README")


async def test_a_scheme_has_several_folders(docs: Path) -> None:
    mcp = serving(docs / "guides", "docs://guides", mime_type="text/plain", annotations={"audience": ["user"]})
    mcp.add_files(docs / "guides" / "drafts", "docs://drafts", tags=["draft"])
    above = MCPServer("above")
    above.mount(mcp, prefix="shop")
    assert await uris_of(mcp) == [
        "docs://guides/drafts/next.md",
        "docs://guides/first%20steps.md",
        "docs://guides/logo.png",
        "docs://drafts/next.md",
    ]
    async with Client(above) as client:
        uris = [resource.uri for resource in await client.list_resources()]
        assert "docs://shop/drafts/next.md" in uris
        assert (await contents_of(client, "docs://shop/drafts/next.md"))["text"] == "# Next"
    async with Client(mcp) as client:
        listed = await client.list_resources()
        assert listed[0]["annotations"]["audience"] == ["user"]
        assert (await contents_of(client, listed[0].uri))["mimeType"] == "text/plain"


async def test_only_callers_with_access_see_files(docs: Path) -> None:
    keys = APIKeys({"reader": "r" * 32, "writer": "w" * 32})
    mcp = MCPServer("files", auth=keys)
    mcp.add_files(docs, "docs://", authorize=lambda principal: principal.subject == "reader")
    async with Client(mcp, headers={"x-api-key": "w" * 32}) as client:
        assert await client.list_resources() == []
        with pytest.raises(MCPError, match="may not"):
            await client.read_resource("docs://index.md")
    async with Client(mcp, headers={"x-api-key": "r" * 32}) as client:
        assert len(await client.list_resources()) == len(ALL)


async def test_a_folder_that_is_removed_has_no_files(docs: Path) -> None:
    mcp = serving(docs / "guides")
    for path in sorted((docs / "guides").rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    (docs / "guides").rmdir()
    assert await uris_of(mcp) == []
    async with Client(mcp) as client:
        assert await is_unknown(client, "docs://logo.png")


@pytest.mark.parametrize(
    ("path", "uri", "options", "text"),
    [
        ("missing", "docs://", {}, "does not exist"),
        (".", "docs", {}, "scheme"),
        (".", "docs://{path}", {}, "without variables"),
        (".", 5, {}, "without variables"),
        (".", "docs://", {"patterns": "*"}, "Unknown option 'patterns'"),
        (".", "docs://", {"pattern": 5}, "must be a pattern"),
        (".", "docs://", {"ignore": [""]}, "must be a pattern"),
        (".", "docs://", {"hidden": 1}, "True or False"),
        (".", "docs://", {"file_bytes": 0}, "above 0"),
        (".", "docs://", {"listed_files": "5"}, "above 0"),
        ("index.md", "docs://index", {"pattern": "*.md"}, "pattern= is for folders"),
    ],
)
def test_mistakes_are_errors_of_the_registration(
    docs: Path, path: str, uri: Any, options: dict[str, Any], text: str
) -> None:
    with pytest.raises(RegistrationError, match=text):
        serving(docs / path, uri, **options)
