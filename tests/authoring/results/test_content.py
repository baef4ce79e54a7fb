from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from funcmcp._authoring.results.content import (
    Audio,
    Content,
    EmbeddedResource,
    File,
    Icon,
    Image,
    ResourceLink,
    Text,
    icon_list,
)

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("content", "block"),
    [
        (Text("hi", annotations={"priority": 1}), {"type": "text", "text": "hi", "annotations": {"priority": 1}}),
        (Image(b"hi", meta={"a": 1}), {"type": "image", "data": "aGk=", "mimeType": "image/png", "_meta": {"a": 1}}),
        (Audio(b"hi", mime_type="audio/mp3"), {"type": "audio", "data": "aGk=", "mimeType": "audio/mp3"}),
        (
            ResourceLink(
                "o://1", "one", title="One", description="d", mime_type="text/plain", size=3, icons=[Icon("i")]
            ),
            {
                "type": "resource_link",
                "uri": "o://1",
                "name": "one",
                "title": "One",
                "description": "d",
                "mimeType": "text/plain",
                "size": 3,
                "icons": [{"src": "i"}],
            },
        ),
        (ResourceLink("o://1", "one"), {"type": "resource_link", "uri": "o://1", "name": "one"}),
        (
            EmbeddedResource("o://1", text="t", mime_type="text/plain", annotations={"audience": ["user"]}),
            {
                "type": "resource",
                "resource": {"uri": "o://1", "mimeType": "text/plain", "text": "t"},
                "annotations": {"audience": ["user"]},
            },
        ),
        (EmbeddedResource("o://1", blob=b"hi"), {"type": "resource", "resource": {"uri": "o://1", "blob": "aGk="}}),
    ],
)
def test_content_has_its_wire_form(content: Content, block: dict[str, Any]) -> None:
    assert content.block == block


def test_blocks_are_equal_by_type_and_content_and_show_it() -> None:
    assert Text("a") == Text("a")
    assert Text("a") != Text("b")
    assert Text("a") != "a"
    assert "'a'" in repr(Text("a"))


def test_content_takes_only_what_it_knows() -> None:
    with pytest.raises(TypeError, match="string"):
        Text(5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="bytes or the path"):
        Image(5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="either bytes or the path"):
        Image()
    with pytest.raises(ValueError, match="either bytes or the path"):
        Audio(b"a", path="a.wav")
    with pytest.raises(TypeError, match="colour"):
        Text("a", colour="red")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="either"):
        EmbeddedResource("o://1")
    with pytest.raises(TypeError, match="either"):
        EmbeddedResource("o://1", text="a", blob=b"a")


def test_icons_are_objects_or_dicts() -> None:
    full = Icon("data:,", mime_type="image/png", sizes=["48x48"], theme="dark")
    assert icon_list([full, {"src": "b"}]) == [
        {"src": "data:,", "mimeType": "image/png", "sizes": ["48x48"], "theme": "dark"},
        {"src": "b"},
    ]


def test_images_and_sounds_are_read_from_files(tmp_path: Path) -> None:
    photo, bell, plain = tmp_path / "photo.final.JPG", tmp_path / "bell.m4a", tmp_path / "plain"
    for file in (photo, bell, plain):
        file.write_bytes(b"hi")
    expected = {"type": "image", "data": "aGk=", "mimeType": "image/jpeg"}
    assert Image(photo).block == Image(str(photo)).block == Image(path=photo).block == expected
    assert Image(plain).block["mimeType"] == "image/png"
    assert Image(plain, format="tif").block["mimeType"] == "image/tiff"
    assert Image(photo, mime_type="image/webp").block["mimeType"] == "image/webp"
    assert Audio(bell).block == {"type": "audio", "data": "aGk=", "mimeType": "audio/mp4"}
    with pytest.raises(FileNotFoundError):
        Image(tmp_path / "missing.png")


def resource_of(file: File) -> dict[str, Any]:
    resource: dict[str, Any] = file.block["resource"]
    return resource


def test_a_file_has_its_name_and_not_its_path(tmp_path: Path) -> None:
    file = tmp_path / "annual report.pdf"
    file.write_bytes(b"%PDF")
    expected = {"uri": "file:///annual%20report.pdf", "mimeType": "application/pdf", "blob": "JVBERg=="}
    assert resource_of(File(file)) == resource_of(File(b"%PDF", name="annual report.pdf")) == expected


@pytest.mark.parametrize(
    ("data", "name", "mime_type", "member"),
    [
        ("é".encode(), "a.md", "text/markdown", "text"),
        (b"{}", "a.json", "application/json", "text"),
        (b"\xff", "a.csv", "text/csv", "blob"),
        (b"# no suffix", "README", "text/plain", "text"),
        (b"\0\1", "core", "application/octet-stream", "blob"),
        (b"\x1f\x8b", "a.tar.gz", "application/octet-stream", "blob"),
        (b"", None, "text/plain", "text"),
    ],
)
def test_a_file_is_a_text_by_its_type_and_its_bytes(data: bytes, name: str, mime_type: str, member: str) -> None:
    resource = resource_of(File(data, name=name))
    assert resource["mimeType"] == mime_type
    assert member in resource


def test_a_file_takes_the_options_of_a_block() -> None:
    block = File(b"a", name="a.txt", mime_type="text/x-log", annotations={"priority": 1}).block
    assert block["annotations"] == {"priority": 1}
    assert block["resource"]["mimeType"] == "text/x-log"
