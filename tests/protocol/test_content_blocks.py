from __future__ import annotations

import json
from typing import Any

import pytest

from funcmcp.protocol.content_blocks import may_have_binary_blocks, without_binary

IMAGE = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
AUDIO = {"type": "audio", "data": "aGk=", "mimeType": "audio/wav", "annotations": {"priority": 1}}
FILE = {"type": "resource", "resource": {"uri": "file:///a", "mimeType": "text/csv", "blob": "aGk="}}


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


def test_members_without_a_value_are_left_out_of_blocks() -> None:
    resource = {**FILE["resource"], "_meta": None}  # type: ignore[dict-item] # it is a dict
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
    ],
)
def test_other_data_stays(data: Any) -> None:
    assert without_binary(data) == (data, [])
