"""Event streams, cut into parts of any size and with each end of line."""

from __future__ import annotations

import pytest

from funcmcp._client.event_stream import EventReader

pytestmark = pytest.mark.lowest("httpx2 sends the requests.")

STREAM = b': keep-alive\n\nid: 1\ndata:\n\nevent: message\ndata: {"a":\ndata: 1}\n\ndata:two\n\ndata: unfinished\n'


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_events_do_not_depend_on_parts_and_line_ends(end: bytes, size: int) -> None:
    stream = STREAM.replace(b"\n", end)
    reader = EventReader()
    events = []
    for start in range(0, len(stream), size):
        events += reader.feed(stream[start : start + size])
    assert [event.data for event in events] == [b'{"a":\n1}', b"two"]


def test_an_empty_part_changes_nothing() -> None:
    reader = EventReader()
    assert reader.feed(b"data: a\r") == []
    assert reader.feed(b"") == []
    assert reader.feed(b"\n\r\n") == [("message", b"a")]


def test_only_one_space_after_the_colon_is_left_out() -> None:
    assert EventReader().feed(b"data:  a\n\n") == [("message", b" a")]
