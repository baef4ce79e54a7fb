from __future__ import annotations

from typing import Any

import pytest

from funcmcp._authoring.values.content import (
    Audio,
    Content,
    EmbeddedResource,
    Icon,
    Image,
    ResourceLink,
    Text,
    icon_list,
)


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
    with pytest.raises(TypeError, match="bytes"):
        Image("aGk=")  # type: ignore[arg-type]
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
