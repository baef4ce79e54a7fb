"""Rules of HTTP that several layers need.

Source: RFC 9110. This module imports nothing of funcmcp, because the command line starts with it.
"""

from __future__ import annotations

import re

FIELD_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
"""The name of a header field: a token (section 5.6.2)."""

FIELD_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
"""The value of a header field (section 5.5). A line break would begin another field, or another response."""

WITHOUT_CONTENT = frozenset({204, 205, 304})
"""Final statuses whose responses have no content (sections 15.3.5, 15.3.6 and 15.4.5)."""

WITHOUT_LENGTH = WITHOUT_CONTENT - {205}
"""Those of them without Content-Length (section 8.6): its value could only be that of another response."""


def is_cached(header: bytes | None, etag: str) -> bool:
    """Return whether If-None-Match lists an entity tag, by weak comparison (section 13.1.2)."""
    if header is None:
        return False
    tags = [tag.strip().removeprefix("W/") for tag in header.decode("latin-1").split(",")]
    return etag in tags or "*" in tags
