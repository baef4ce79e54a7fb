"""Checks of configured URLs that authentication depends on."""

from __future__ import annotations

import re
from urllib.parse import SplitResult, urlsplit

from funcmcp._protocol.loopback import is_loopback

_VISIBLE = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+")


def checked(name: str, url: str) -> SplitResult:
    """Return the parts of an absolute URL whose responses an attacker on the network can't change.

    Args:
        name: The name of the URL in error messages.
        url: The URL.

    Raises:
        ValueError: The scheme is neither https nor http on a loopback address, or the URL has a user name, a fragment,
            or characters that a URL or a quoted string of a header can't contain.
    """
    parts = urlsplit(url) if _VISIBLE.fullmatch(url) else SplitResult("", "", "", "", "")
    if not parts.hostname or "@" in parts.netloc or "#" in url:
        raise ValueError(f"{name} must be an absolute URL without user name and fragment, not {url!r}.")
    if parts.scheme != "https" and not (parts.scheme == "http" and is_loopback(parts.hostname)):
        raise ValueError(f"{name} must begin with https:// (http:// only for a loopback address), not {url!r}.")
    return parts
