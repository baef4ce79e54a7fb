"""Completions that servers send."""

from __future__ import annotations

from typing import Any

import pytest

from funcmcp._protocol.completion import Completion, completion_of
from funcmcp._protocol.errors import InvalidResponseError


def test_a_completion_of_a_server_has_its_members() -> None:
    assert completion_of({"values": ["a", "b"], "total": 5, "hasMore": True}) == Completion(
        ["a", "b"], 5, has_more=True
    )
    assert (
        completion_of({"values": [], "total": None, "hasMore": None}) == completion_of({"values": []}) == Completion([])
    )


@pytest.mark.parametrize(
    ("member", "message"),
    [
        ({}, "no list 'values'"),
        ({"values": "ab"}, "no list 'values'"),
        ({"values": [], "total": "5"}, "'total' of the completion has the type str"),
        ({"values": [], "hasMore": 1}, "'hasMore' of the completion has the type int"),
    ],
)
def test_an_invalid_member_is_an_error_of_the_client(member: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidResponseError, match=message):
        completion_of(member)
