"""What is checked of a POST's body before it is read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from funcmcp.protocol.errors import INVALID_REQUEST
from funcmcp.transports.http.status import is_json, refuse

if TYPE_CHECKING:
    from funcmcp.transports.http.messages import HttpRequest, HttpResponse


def wrong_type(request: HttpRequest) -> HttpResponse | None:
    """Return the refusal of a body that is not plain JSON, or None."""
    if not is_json(request.fields.get(b"content-type")):
        return refuse(415, INVALID_REQUEST, "Send Content-Type: application/json.")
    encoding = request.fields.get(b"content-encoding")
    if encoding is not None and encoding.strip().lower() != b"identity":
        return refuse(415, INVALID_REQUEST, "Send the body without a Content-Encoding.")
    return None


def wrong_length(request: HttpRequest, max_body: int) -> HttpResponse | None:
    """Return the refusal of a body whose length is said to be beyond the limit, or None."""
    length = request.fields.get(b"content-length", b"")
    return too_large(max_body) if length.isdigit() and int(length[:20]) > max_body else None


def too_large(max_body: int) -> HttpResponse:
    """Return the refusal of a body that is too large."""
    return refuse(413, INVALID_REQUEST, f"The body may have {max_body} bytes.")
