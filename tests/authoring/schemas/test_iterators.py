"""Reading of the iterators that functions return."""

from __future__ import annotations

import io
import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from funcmcp._authoring.schemas.iterators import BUILT_IN, MAX_MEMBERS, with_members

pytestmark = pytest.mark.every_python("Tasks, threads and timeouts are those of asyncio.")


def test_an_iterator_becomes_a_list() -> None:
    assert with_members(iter((1, 2))) == [1, 2]
    assert with_members(map(str, (1, 2))) == ["1", "2"]


@pytest.mark.parametrize(
    "value", [None, "text", b"bytes", [1], (1,), {1}, {"a": 1}, range(3), io.BufferedReader(io.BytesIO(b"a\nb"))]
)
def test_other_values_remain(value: Any) -> None:
    assert with_members(value) is value


def test_a_file_in_memory_is_its_content() -> None:
    """`figure.savefig(buffer)` leaves the buffer at its end, where it has no more lines."""
    data, text = io.BytesIO(), io.StringIO()
    data.write(b"a\nb")
    text.write("a\nb")
    assert (with_members(data), with_members(text)) == (b"a\nb", "a\nb")


def test_an_iterator_may_have_the_most_members_and_not_one_more() -> None:
    assert len(with_members(itertools.repeat(1, MAX_MEMBERS))) == MAX_MEMBERS
    with pytest.raises(RuntimeError, match="more than 1,000,000 members"):
        with_members(itertools.repeat(1, MAX_MEMBERS + 1))


def test_reading_ends_when_the_members_are_not_needed() -> None:
    closed = []

    def generate() -> Iterator[int]:
        try:
            yield from itertools.count()
        finally:
            closed.append(True)

    answers = iter([False, False, True])
    assert with_members(generate(), lambda: next(answers)) == [0, 1]
    assert closed == [True]


def test_no_type_that_needs_no_question_has_iterators() -> None:
    assert not any(issubclass(kind, Iterator) for kind in BUILT_IN)
