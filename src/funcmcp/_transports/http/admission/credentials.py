"""The headers of a request as an authenticator reads them. A repeated field is ambiguous, so it is an error.

Source: RFC 9110 section 5.3 (a field that is not a list comes once); RFC 6750 section 3.1 (`invalid_request`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from funcmcp._transports.http.messages import HttpRequest

_LISTS = frozenset({"accept", "accept-encoding", "accept-language", "cookie", "forwarded", "via", "x-forwarded-for"})
"""Fields that may have several lines with the same meaning as one line (for Cookie see RFC 9113 section 8.2.3)."""


class RepeatedFieldError(Exception):
    """A header field that is not a list came more than once."""


def credentials(request: HttpRequest) -> Mapping[str, str]:
    """Return the headers of a request. Reading a repeated field that is not a list raises RepeatedFieldError."""
    if len(request.fields) == len(request.pairs):
        return request.headers
    counts = Counter(name for name, _ in request.pairs)
    repeated = {name.decode("latin-1") for name, count in counts.items() if count > 1}
    return _UnrepeatedHeaders(request.headers, repeated - _LISTS)


class _UnrepeatedHeaders(Mapping[str, str]):
    """Headers of which the repeated ones can't be read."""

    def __init__(self, headers: Mapping[str, str], repeated: AbstractSet[str]) -> None:
        self._headers = headers
        self._repeated = repeated

    def __getitem__(self, name: str) -> str:
        if name in self._repeated:
            raise RepeatedFieldError(f"The header {name} came more than once.")
        return self._headers[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._headers)

    def __len__(self) -> int:
        return len(self._headers)
