"""The header fields of a request as authenticators see them: one that came twice says two things, and neither counts.

Source: RFC 9110 section 5.3 (a field that is not a list comes once); RFC 6750 section 3.1 (`invalid_request`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from funcmcp.transports.http.messages import HttpRequest

_LISTS = frozenset({"accept", "accept-encoding", "accept-language", "cookie", "forwarded", "via", "x-forwarded-for"})
"""Fields that may come in several lines, which mean the same as one line (a cookie's: RFC 9113 section 8.2.3)."""


class RepeatedFieldError(Exception):
    """A header field came more than once that is no list."""


def credentials(request: HttpRequest) -> Mapping[str, str]:
    """Return the header fields of a request; to read one that came twice and is no list raises RepeatedFieldError."""
    if len(request.fields) == len(request.pairs):
        return request.headers
    counts = Counter(name for name, _ in request.pairs)
    repeated = {name.decode("latin-1") for name, count in counts.items() if count > 1}
    return _Once(request.headers, repeated - _LISTS)


class _Once(Mapping[str, str]):
    """Header fields of which some can't be read."""

    def __init__(self, fields: Mapping[str, str], repeated: AbstractSet[str]) -> None:
        self._fields = fields
        self._repeated = repeated

    def __getitem__(self, name: str) -> str:
        if name in self._repeated:
            raise RepeatedFieldError(f"The header {name} came more than once.")
        return self._fields[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)
