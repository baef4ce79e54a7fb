"""Content classes with the arguments of other frameworks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import funcmcp.compat
from funcmcp.compat import (
    Audio,
    FastMCP,
    File,
    FileResource,
    Image,
    Message,
    PromptResult,
    ResourceContent,
    ResourceResult,
)

if TYPE_CHECKING:
    from pathlib import Path


async def test_images_sounds_and_files_of_a_tool(tmp_path: Path) -> None:
    (tmp_path / "a.jpg").write_bytes(b"jpg")
    (tmp_path / "a.txt").write_text("text")
    mcp = FastMCP("c")

    @mcp.tool
    def media() -> list[Any]:
        return [
            Image(path=tmp_path / "a.jpg"),
            Image(data=b"png", format="png").to_image_content(),
            Audio(data=b"mp3", format="mp3"),
            File(path=str(tmp_path / "a.txt")),
            File(data=b"pdf", format="pdf", name="report"),
            "and a text",
        ]

    result = await mcp.call_tool("media")
    assert result["content"] == [
        {"type": "image", "data": "anBn", "mimeType": "image/jpeg"},
        {"type": "image", "data": "cG5n", "mimeType": "image/png"},
        {"type": "audio", "data": "bXAz", "mimeType": "audio/mpeg"},
        {"type": "resource", "resource": {"uri": "file:///a.txt", "mimeType": "text/plain", "text": "text"}},
        {"type": "resource", "resource": {"uri": "file:///report.pdf", "mimeType": "application/pdf", "blob": "cGRm"}},
        {"type": "text", "text": "and a text"},
    ]
    with pytest.raises(ValueError, match="Either path or data must be provided"):
        Image()
    with pytest.raises(ValueError, match="Only one of path or data"):
        Audio("a.mp3", b"mp3")
    file = File(data=b"x")
    file.data = None
    with pytest.raises(ValueError, match="No resource data available"):
        file.to_resource_content()


def test_media_are_converted_to_blocks_with_the_attributes_of_the_protocol() -> None:
    image = Image(data=b"png", format="png").to_image_content(annotations={"priority": 1})
    assert (image.type, image.data, image.mimeType, image.mime_type) == ("image", "cG5n", "image/png", "image/png")
    assert image.annotations == {"priority": 1}
    assert Image(data=b"png").to_image_content(mime_type="image/gif").mimeType == "image/gif"
    audio = Audio(data=b"mp3", format="mp3").to_audio_content()
    assert (audio.type, audio.data, audio.mimeType) == ("audio", "bXAz", "audio/mpeg")
    file = File(data=b"pdf", format="pdf", name="report").to_resource_content(mime_type="text/x")
    assert (file.type, file.resource.uri, file.resource.mime_type) == ("resource", "file:///report.pdf", "text/x")


async def test_results_of_resources_and_prompts(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("{}")
    mcp = FastMCP("r")
    mcp.add_resource(FileResource(uri="file:///a.json", path=tmp_path / "a.json", mime_type="application/json"))

    @mcp.resource("note://all")
    def notes() -> ResourceResult:
        return ResourceResult([ResourceContent("one"), ResourceContent({"two": 2}), ResourceContent(b"3")])

    @mcp.prompt
    def ask() -> PromptResult:
        return PromptResult([Message("Hello"), Message({"a": 1}, role="assistant")], description="A greeting")

    assert (await mcp.read_resource("file:///a.json"))["contents"] == [
        {"uri": "file:///a.json", "mimeType": "application/json", "blob": "e30="}
    ]
    assert (await mcp.read_resource("note://all"))["contents"] == [
        {"uri": "note://all", "mimeType": "text/plain", "text": "one"},
        {"uri": "note://all", "mimeType": "application/json", "text": '{"two":2}'},
        {"uri": "note://all", "mimeType": "application/octet-stream", "blob": "Mw=="},
    ]
    prompt = await mcp.get_prompt("ask", {})
    assert prompt.description == "A greeting"
    assert prompt["messages"][1] == {"role": "assistant", "content": {"type": "text", "text": '{"a":1}'}}


def test_names_that_are_elsewhere_say_where() -> None:
    with pytest.raises(ImportError, match=r"funcmcp\.client\.Client"):
        from funcmcp.compat import Client  # type: ignore[attr-defined] # noqa: F401 - it does not exist
    with pytest.raises(ImportError, match=r"funcmcp\.auth\.OAuthProxy"):
        _: Any = funcmcp.compat.GitHubTokenVerifier  # type: ignore[attr-defined]
