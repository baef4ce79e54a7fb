from __future__ import annotations

import pytest

from funcmcp._protocol.media_types import essence_of, is_text_type, media_type_of_name, plain_name, text_in


@pytest.mark.parametrize(
    ("name", "media_type"),
    [
        ("report.PDF", "application/pdf"),
        ("notes.md", "text/markdown"),
        ("settings.yaml", "application/yaml"),
        ("photo.webp", "image/webp"),
        ("folder.d/README", None),
        ("archive.tar.gz", "application/octet-stream"),
        ("data:,x.png", "image/png"),
        (".profile", None),
        ("", None),
    ],
)
def test_a_media_type_follows_from_the_suffix(name: str, media_type: str | None) -> None:
    assert media_type_of_name(name) == media_type


@pytest.mark.parametrize("media_type", ["text/html; charset=utf-8", "application/json", "image/svg+xml", "TEXT/PLAIN"])
def test_texts_have_types_of_texts(media_type: str) -> None:
    assert is_text_type(media_type)
    assert text_in("é".encode(), media_type) == "é"
    assert text_in(b"\xff", media_type) is None


def test_other_files_are_not_texts() -> None:
    assert text_in(b"abc", "application/pdf") is None
    assert text_in(b"abc", None) == "abc"
    assert text_in(b"a\0c", None) is None


@pytest.mark.parametrize(
    ("text", "essence"),
    [
        ("Text/HTML; charset=utf-8", "text/html"),
        ("text", None),
        ("text/ht ml", None),
        ('text/"html"', None),
        ("", None),
        (f"text/{'x' * 200}", None),
    ],
)
def test_a_media_type_has_a_form(text: str, essence: str | None) -> None:
    assert essence_of(text) == essence


@pytest.mark.parametrize(
    ("sent", "name"),
    [
        ("report.pdf", "report.pdf"),
        ("../../etc/passwd", "passwd"),
        ("C:\\Users\\Ada\\notes.txt", "notes.txt"),
        ("a\r\nb\u202e.txt ", "ab.txt"),
        ("..", "file"),
        ("folder/", "file"),
        ("é" * 300, "é" * 127),
    ],
)
def test_a_name_of_a_client_has_no_folder_and_nothing_hidden(sent: str, name: str) -> None:
    assert plain_name(sent) == name
