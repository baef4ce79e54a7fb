"""The tracebacks of the last failures of this process, for the page of a developer's own server."""

from __future__ import annotations

_MAX_FAILURES = 50
_MAX_TEXT = 20_000
"""Characters of a traceback. Its end, which has the failure itself, is kept."""


class RecentFailures:
    """Tracebacks by error id, within limits.

    Attributes:
        is_kept: Whether tracebacks are kept. Only servers that no other machine reaches ask for it.
    """

    def __init__(self) -> None:
        self.is_kept = False
        self._texts: dict[str, str] = {}

    def add(self, error_id: str, text: str) -> None:
        """Keep a traceback, and drop the oldest one if there are too many. From any thread."""
        self._texts[error_id] = text[-_MAX_TEXT:]
        while len(self._texts) > _MAX_FAILURES:
            self._texts.pop(next(iter(list(self._texts))), None)

    def text_of(self, error_id: str) -> str | None:
        """Return the traceback of an error id; None if it is not kept."""
        return self._texts.get(error_id)


recent_failures = RecentFailures()
"""Those of this process."""
