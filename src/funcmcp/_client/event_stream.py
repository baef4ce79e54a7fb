"""Server-sent events as a client reads them.

Source: the HTML standard, "Server-sent events, Interpreting an event stream".
"""

from __future__ import annotations

import re
from typing import NamedTuple

_ID = re.compile(rb"[ -~]{1,1024}")
"""Event ids that a client sends in `Last-Event-ID`. A stream with others can't be resumed."""

_RETRY = re.compile(rb"[0-9]{1,9}")
"""Milliseconds of `retry`. A longer number is ignored, as all that is not a number."""


class Event(NamedTuple):
    """An event with data.

    Attributes:
        name: The name, ``message`` for most.
        data: The data.
    """

    name: str
    data: bytes


class EventReader:
    """Collects the events of a stream that arrives in parts of any size. Another stream may continue it.

    Attributes:
        last_id: The id of the last complete event with an id. None if none had one, or if it can't be sent.
        retry_seconds: Seconds to wait before the stream is requested again. None if the server does not define it.
    """

    def __init__(self) -> None:
        self.last_id: str | None = None
        self.retry_seconds: float | None = None
        self.begin()

    def begin(self) -> None:
        """Begin with another stream. An event that the last one has not completed is dropped."""
        self._line = bytearray()
        self._ends_with_cr = False
        self._id: bytes | None = None
        self._begin_event()

    def _begin_event(self) -> None:
        self._name = "message"
        self._data: list[bytes] = []

    def feed(self, part: bytes) -> list[Event]:
        """Return the events with data that are complete with this part. Comments are left out.

        A line ends with CR LF, LF or CR.
        """
        if self._ends_with_cr and part.startswith(b"\n"):
            part = part[1:]  # the second half of a CR LF whose CR ended a line already
        if part:
            self._ends_with_cr = part.endswith(b"\r")
        *lines, incomplete = part.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        events = []
        for line in lines:
            self._line += line
            event = self._end_of_line(bytes(self._line))
            self._line.clear()
            if event is not None:
                events.append(event)
        self._line += incomplete
        return events

    def _end_of_line(self, line: bytes) -> Event | None:
        """Take a complete line; return the event if the line ends one that has data."""
        if line:
            name, _, value = line.partition(b":")
            self._take_field(name, value.removeprefix(b" "))
            return None
        if self._id is not None:
            self.last_id = self._id.decode("ascii") if _ID.fullmatch(self._id) else None
        event = Event(self._name, b"\n".join(self._data))
        self._begin_event()
        return event if event.data else None

    def _take_field(self, name: bytes, value: bytes) -> None:
        if name == b"data":
            self._data.append(value)
        elif name == b"event":
            self._name = value.decode("utf-8", "replace") or "message"
        elif name == b"id":
            self._id = value
        elif name == b"retry" and _RETRY.fullmatch(value):
            self.retry_seconds = int(value) / 1000
