"""HTTP Basic with the id and the secret of an OAuth client.

Source: RFC 6749 section 2.3.1 (both are encoded as in a form before they are joined), RFC 7617.
"""

from __future__ import annotations

import base64
from urllib.parse import quote_plus, unquote_plus


def basic_of(client_id: str, secret: str) -> str:
    """Return the Authorization header of a client."""
    pair = f"{quote_plus(client_id)}:{quote_plus(secret)}"
    return f"Basic {base64.b64encode(pair.encode()).decode()}"


def read_basic(authorization: str) -> tuple[str, str] | None:
    """Return the id and the secret in an Authorization header; None if it has another form."""
    scheme, _, encoded = authorization.partition(" ")
    try:
        client_id, separator, secret = base64.b64decode(encoded, validate=True).decode().partition(":")
    except ValueError:  # not ASCII, not Base64, or not UTF-8
        return None
    if scheme.lower() != "basic" or not separator:
        return None
    return unquote_plus(client_id), unquote_plus(secret)
