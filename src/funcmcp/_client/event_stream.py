"""Event streams (``text/event-stream``) as a client reads them.

Source: the HTML standard, "Server-sent events, Interpreting an event stream".
"""

from __future__ import annotations


class EventReader:
    """Collects the data of the events in a stream that arrives in parts of any size."""

    def __init__(self) -> None:
        self._line = bytearray()
        self._data: list[bytes] = []
        self._ends_with_cr = False

    def feed(self, part: bytes) -> list[bytes]:
        """Return the data of each event that is complete with this part. Comments and events without data are left out.

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

    def _end_of_line(self, line: bytes) -> bytes | None:
        """Take a complete line; return the event's data if the line ends an event that has data."""
        if line:
            name, _, value = line.partition(b":")
            if name == b"data":
                self._data.append(value.removeprefix(b" "))
            return None
        data = b"\n".join(self._data)
        self._data.clear()
        return data or None
