"""URLs from configuration that identities depend on."""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import SplitResult, urlsplit

_VISIBLE = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+")


def checked(what: str, url: str) -> SplitResult:
    """Return the parts of an absolute URL that nobody between here and there can change the answers of.

    Raises:
        ValueError: it is neither https nor http on a loopback address, has a user name or a fragment, or has
            characters that no URL and no quoted string of a header has.
    """
    parts = urlsplit(url) if _VISIBLE.fullmatch(url) else SplitResult("", "", "", "", "")
    if not parts.hostname or "@" in parts.netloc or "#" in url:
        raise ValueError(f"{what} must be an absolute URL without user name and fragment, not {url!r}.")
    if parts.scheme != "https" and not (parts.scheme == "http" and _is_loopback(parts.hostname)):
        raise ValueError(f"{what} must begin with https:// (http:// only for a loopback address), not {url!r}.")
    return parts


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
