"""Images, sounds and files in results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from funcmcp.compat import Audio, FastMCP, File, Image

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


def test_a_file_is_read_when_it_is_used_and_its_path_is_expanded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PICTURES", str(tmp_path))
    image = Image("$PICTURES/later.webp", annotations={"priority": 0.5})
    assert image.path == tmp_path / "later.webp"
    (tmp_path / "later.webp").write_bytes(b"webp")
    assert image.to_data_uri() == "data:image/webp;base64,d2VicA=="
    assert image.block["annotations"] == {"priority": 0.5}


@pytest.mark.parametrize(
    ("media", "media_type"),
    [
        (Image("a.unknown"), "application/octet-stream"),
        (Image(data=b"", format="JPG"), "image/jpeg"),
        (Audio("a.opus"), "audio/ogg"),
        (Audio("a.unknown"), "application/octet-stream"),
        (Audio(data=b""), "audio/wav"),
        (File("a.csv"), "text/csv"),
        (File(data=b""), "application/octet-stream"),
        (File(data=b"", format="md"), "text/markdown"),
        (File(data=b"", format="xyz"), "application/xyz"),
    ],
)
def test_media_types(media: Any, media_type: str) -> None:
    assert media._mime_type == media_type


def test_a_text_that_is_not_in_utf_8_is_read_in_latin_1() -> None:
    assert File(data=b"caf\xe9", format="txt", name="menu").block["resource"]["text"] == "caf\u00e9"
