"""Records of other versions: values that are not records are no faults."""

from __future__ import annotations

import pytest

from funcmcp._state.records import are_texts, to_record, value_of


@pytest.mark.parametrize(
    "payload", [None, b"", b"{", b"\xff", b"null", b"1", b'"text"', b'{"a":1,"a":2}', b"[" * 100 + b"]" * 100]
)
def test_a_text_without_an_object_or_an_array_has_no_value(payload: bytes | None) -> None:
    assert value_of(payload) is None


def test_a_record_has_the_members_of_this_version_and_those_that_it_does_not_know() -> None:
    record = value_of(to_record({"a": 1, "b": 2}, {"b": 3, "c": 4, "v": 5}))
    assert record == {"a": 1, "b": 2, "c": 4, "v": 1}
    assert value_of(b"[1]") == [1]


def test_a_list_of_texts_has_nothing_else() -> None:
    assert are_texts(["a", ""])
    assert not are_texts(["a", None])
