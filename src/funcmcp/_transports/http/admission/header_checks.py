"""The checks that need nothing but the header of a request: its size, Host, Origin, and those of the endpoint.

How it works: a request that passes gets what the endpoint's `examine` function returns. All checks run for each
request, except for a header that a connection repeats (`RequestHeader`) and that has passed. The body of such a request
has arrived already. What a check computes from the text of one header is cached where it is computed, because clients
repeat themselves; no outcome of a whole request is.

Source: RFC 6585 section 5 (431); RFC 9110 section 15.5.14 (413).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from funcmcp._protocol.errors import INVALID_REQUEST
from funcmcp._transports.http.admission.body import too_large
from funcmcp._transports.http.admission.origin import OriginCheck
from funcmcp._transports.http.messages import HttpResponse
from funcmcp._transports.http.status import refuse

if TYPE_CHECKING:
    from collections.abc import Callable

    from funcmcp._server.limits import Limits
    from funcmcp._transports.http.messages import HttpRequest
    from funcmcp._transports.http.options import HTTPOptions

_MAX_DIGITS = 20
"""Digits of a Content-Length that are read."""

H = TypeVar("H")


class HeaderChecks(Generic[H]):
    """Checks the headers of the requests to an endpoint.

    Args:
        options: The allowed hosts and origins.
        limits: The sizes of header and body.
        examine: The endpoint's own checks, which run last. It returns what the endpoint needs of the headers, or the
            response to the request, which is a refusal or a browser's page.
    """

    def __init__(
        self, options: HTTPOptions, limits: Limits, examine: Callable[[HttpRequest], H | HttpResponse]
    ) -> None:
        self._origin = OriginCheck(options)
        self._max_header = limits.header_bytes
        self._max_body = limits.message_bytes
        self._max_body_digits = len(str(self._max_body))
        self._examine = examine

    def check(self, request: HttpRequest) -> H | HttpResponse:
        """Return what the endpoint needs of a request's headers, or the refusal of the request."""
        header = request.header
        if header is not None and header.checks is self:
            checked: H = header.checked
            return checked
        result = self._check(request)
        if header is not None and not isinstance(result, HttpResponse):
            header.checks, header.checked = self, result
        return result

    def _check(self, request: HttpRequest) -> H | HttpResponse:
        fields = request.fields
        if len(b"".join((*fields, *fields.values()))) > self._max_header:  # twice as fast as adding up
            return refuse(431, INVALID_REQUEST, f"The header may have {self._max_header} bytes.")
        headers = self._origin.refusal(request) or self._examine(request)
        if isinstance(headers, HttpResponse):
            return headers
        length = fields.get(b"content-length")
        if length is not None and len(length) >= self._max_body_digits and self._is_too_large(length):
            return too_large(self._max_body)
        return headers

    def _is_too_large(self, length: bytes) -> bool:
        return length.isdigit() and int(length[:_MAX_DIGITS]) > self._max_body
