from __future__ import annotations

import json
from typing import Any

import pytest

from funcmcp._protocol.adaptation import tool_result
from funcmcp._protocol.content_blocks import (
    BLOCK_TYPES,
    MEDIA_TYPES,
    BlockType,
    may_have_binary_blocks,
    members_of,
    text_of,
    types_of,
    without_binary,
)
from funcmcp._protocol.revisions import REVISIONS
from funcmcp_host.results import tool_result as host_result
from funcmcp_host.workers.worker import Value
from tests import schemas
from tests.protocol import official

IMAGE = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
AUDIO = {"type": "audio", "data": "aGk=", "mimeType": "audio/wav", "annotations": {"priority": 1}}
FILE: dict[str, Any] = {"type": "resource", "resource": {"uri": "file:///a", "mimeType": "text/csv", "blob": "aGk="}}


@pytest.mark.parametrize(
    ("block", "remaining"),
    [
        (IMAGE, {"type": "image", "mimeType": "image/png"}),
        (AUDIO, {"type": "audio", "mimeType": "audio/wav", "annotations": {"priority": 1}}),
        (FILE, {"type": "resource", "resource": {"uri": "file:///a", "mimeType": "text/csv"}}),
    ],
)
def test_base64_of_a_block_is_taken_out_at_any_depth(block: dict[str, Any], remaining: dict[str, Any]) -> None:
    assert without_binary(block) == (remaining, [block])
    assert without_binary({"a": [1, {"b": block}]}) == ({"a": [1, {"b": remaining}]}, [block])
    assert may_have_binary_blocks(json.dumps([block]).encode())


def test_annotations_and_media_types_with_parameters_are_part_of_a_block() -> None:
    annotations = {"audience": ["user"], "priority": 0.5, "lastModified": "2026-07-28T12:00:00.5Z"}
    block = {**IMAGE, "mimeType": "image/svg+xml; charset=utf-8", "annotations": annotations, "_meta": {"a": 1}}
    assert without_binary([block])[1] == [block]


def test_members_without_a_value_are_left_out_of_blocks() -> None:
    resource = {**FILE["resource"], "_meta": None}
    assert without_binary([{**IMAGE, "annotations": None, "_meta": None}, {**FILE, "resource": resource}]) == (
        [
            {"type": "image", "mimeType": "image/png"},
            {"type": "resource", "resource": {"uri": "file:///a", "mimeType": "text/csv"}},
        ],
        [IMAGE, FILE],
    )


@pytest.mark.parametrize(
    "data",
    [
        {"type": "image", "data": "not base64", "mimeType": "image/png"},
        {"type": "image", "data": 5, "mimeType": "image/png"},
        {"type": "image", "data": "aGk="},
        {"type": "text", "text": "aGk="},
        {"type": "resource", "resource": {"uri": "file:///a", "text": "b"}},
        {"type": "resource", "resource": {"blob": "aGk="}},
        {"type": "resource", "resource": "file:///a"},
        {"type": ["image"], "data": "aGk=", "mimeType": "image/png"},
        {"type": "resource_link", "uri": "file:///a", "name": "a"},
        [None, 1, "image"],
        {**IMAGE, "data": ""},
        {**IMAGE, "mimeType": ""},
        {**IMAGE, "mimeType": "image/png\r\nX: y"},
        {**IMAGE, "_meta": "a"},
        {**IMAGE, "annotations": "a"},
        {**IMAGE, "annotations": {"audience": "user"}},
        {**IMAGE, "annotations": {"audience": ["root"]}},
        {**IMAGE, "annotations": {"audience": [{}]}},
        {**IMAGE, "annotations": {"priority": 9}},
        {**IMAGE, "annotations": {"priority": True}},
        {**IMAGE, "annotations": {"lastModified": 5}},
        {**IMAGE, "annotations": {"lastModified": "yesterday"}},
        {**IMAGE, "annotations": {"lastModified": "2026-02-30T12:00:00Z"}},
        {**FILE, "annotations": []},
        {"type": "resource", "resource": {**FILE["resource"], "uri": "no scheme"}},
        {"type": "resource", "resource": {**FILE["resource"], "text": "b"}},
        {"type": "resource", "resource": {**FILE["resource"], "mimeType": 5}},
        {"type": "resource", "resource": {**FILE["resource"], "_meta": []}},
    ],
)
def test_other_data_stays(data: Any) -> None:
    assert without_binary(data) == (data, [])


@pytest.mark.parametrize("revision", schemas.REVISIONS)
def test_the_strings_of_a_block_are_those_that_its_schema_requires(revision: str) -> None:
    for definition in official.definitions(revision).values():
        properties = definition.get("properties", {})
        row = BLOCK_TYPES.get(properties.get("type", {}).get("const"))
        if row is not None:
            required = {name for name in definition["required"] if properties[name].get("type") == "string"}
            assert set(row.strings) == required - {"type"}


@pytest.mark.parametrize("revision", schemas.REVISIONS)
def test_the_members_of_blocks_are_those_of_the_schema(revision: str) -> None:
    members: set[str] = set()
    for definition in official.definitions(revision).values():
        properties = definition.get("properties", {})
        if properties.get("type", {}).get("const") in BLOCK_TYPES:
            members |= properties.keys()
    assert members_of(revision) == members


@pytest.mark.parametrize(
    ("kind", "suffix", "media_type"),
    [
        ("image", "", "image/png"),
        ("image", "JPG", "image/jpeg"),
        ("image", "svg", "image/svg+xml"),
        ("image", "webp", "image/webp"),
        ("audio", "", "audio/wav"),
        ("audio", "mp3", "audio/mpeg"),
    ],
)
def test_a_suffix_gives_the_media_type(kind: str, suffix: str, media_type: str) -> None:
    assert BLOCK_TYPES[kind].media_type(suffix) == media_type
    assert kind in MEDIA_TYPES


@pytest.mark.parametrize(
    ("block", "text"),
    [
        ({"type": "text", "text": "Hi"}, "Hi"),
        (IMAGE, "[image image/png, 4 base64 characters]"),
        (AUDIO, "[audio audio/wav, 4 base64 characters]"),
        (FILE, "[resource file:///a, 4 base64 characters]"),
        ({"type": "resource", "resource": {"uri": "a:b", "text": "c"}}, "c"),
        ({"type": "resource", "resource": 5}, "[resource None, 0 base64 characters]"),
        ({"type": "resource_link", "uri": "a:b", "name": "c"}, "[link a:b]"),
        ({"type": "hologram", "mimeType": "x/y"}, "[hologram x/y, 0 base64 characters]"),
        ({"type": ["image"]}, "[['image'] , 0 base64 characters]"),
    ],
)
def test_a_block_is_shown_as_text(block: dict[str, Any], text: str) -> None:
    assert text_of(block) == text


def test_a_new_type_of_block_is_one_row(monkeypatch: pytest.MonkeyPatch) -> None:
    image = BLOCK_TYPES["image"]
    row = BlockType("video", "2026-07-28", image.strings, image.text, image.base64, image.members)
    monkeypatch.setitem(BLOCK_TYPES, "video", row)
    video = {**IMAGE, "type": "video"}
    assert types_of("2026-07-28") - types_of("2025-11-25") == {"video"}
    assert without_binary([video]) == ([{"type": "video", "mimeType": "image/png"}], [video])
    assert text_of(video) == "[video image/png, 4 base64 characters]"
    (older,) = tool_result({"content": [video]}, REVISIONS["2025-11-25"])["content"]
    assert older == {"type": "text", "text": "[video content, which this protocol revision does not support]"}
    envelope = json.dumps({"type": "video", "content": json.dumps(video)})
    assert host_result(Value("string", envelope), set(), "show", uses_result_schema=True) == {"content": [video]}
