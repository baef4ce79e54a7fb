"""Server cards: documents that say what a server is and where it is, before a client connects.

Source: SEP-2127 (Final, Extensions Track), which leaves the format to the repository experimental-ext-server-card:
its page "Discovery" (path, CORS, caches) and its JSON Schema (members and their limits), both of 2026-07-24. The format
is experimental, so it may change.
"""

from __future__ import annotations

import re

PATH = "/server-card"
"""The path of a card, below that of the endpoint of Streamable HTTP."""

MEDIA_TYPE = "application/mcp-server-card+json"
SCHEMA = "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json"
STREAMABLE_HTTP = "streamable-http"
HTTP_SSE = "sse"

MAX_TEXT = 100
"""Characters of a title and of a description."""

MAX_VERSION = 255
MAX_AGE = 3600
"""Seconds for which caches keep a card."""

_NAME = re.compile(r"(?=.{3,200}\Z)[A-Za-z0-9.-]+/[A-Za-z0-9._-]+")
_URL = re.compile(r"https?://[^\s{}]+")


def is_card_name(name: object) -> bool:
    """Return whether a value is a name in reverse DNS, such as ``com.example/orders``."""
    return isinstance(name, str) and _NAME.fullmatch(name) is not None


def is_remote_url(url: object) -> bool:
    """Return whether a value is an absolute URL of a server. Braces would be the variables of a template."""
    return isinstance(url, str) and _URL.fullmatch(url) is not None
