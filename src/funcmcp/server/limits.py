"""How much a server takes on at once in one process, and the error for what exceeds it.

Source: RFC 9110 section 10.2.3 (Retry-After), RFC 6585 section 4 (429).
"""

from __future__ import annotations

import math
from dataclasses import fields

from funcmcp.option_names import options_by_name
from funcmcp.protocol.codec import MAX_DEPTH
from funcmcp.protocol.errors import INTERNAL_ERROR, MCPError

_MIB = 1024 * 1024
_SECONDS = ("message_seconds", "write_seconds")
"""The limits that may be fractions; all others count something."""


@options_by_name
class Limits:
    """What one process takes; see docs/reference/limits.md for the answer to what is more.

    A limit per principal also holds for each IP address from which callers without credentials come, but an address
    may always use half of what all callers together may use: many callers can be behind it. Only of memory it has the
    share of a principal.

    Attributes:
        message_bytes: Bytes of an HTTP body, a line of stdin or a WebSocket message.
        message_seconds: Seconds in which an HTTP body has to come; under `funcmcp run` and `mcp.run("http")` the whole
            request.
        write_seconds: Seconds in which a client has to read what is sent to it: a response, or one message on a stream.
            A client that takes longer loses its connection.
        nesting: Levels of objects and arrays in a message, 64 at most.
        message_values: Values in a message, counted by its commas and opening brackets outside of texts.
        header_bytes: Bytes of all names and values of an HTTP request's header.
        requests: Requests under way at once, each from the last byte of its body. A `subscriptions/listen` counts as
            a stream instead.
        requests_per_principal: Requests of the same principal.
        body_bytes: Bytes of all HTTP bodies that come in more than one part, until their requests are answered.
        body_bytes_per_principal: Bytes of such bodies of the same principal.
        unsent_bytes: Bytes of responses that wait for clients to read them, and as many on WebSockets; under
            `funcmcp run` and `mcp.run("http")`.
        streams: Streams that are open at once: GET, `subscriptions/listen`, HTTP+SSE and WebSocket.
        streams_per_principal: Streams of the same principal.
        subscription_bytes: Bytes of memory that the URIs take up which clients subscribed to.
        subscription_bytes_per_principal: Bytes of those of the same principal.
        memory_bytes: Bytes of memory of all that clients make the process hold: HTTP bodies that come in more than one
            part, requests that wait while they run with their arguments, streams, subscriptions, and events that
            clients can resume.
        memory_bytes_per_principal: Bytes of what one principal, or one address, makes it hold.

    Raises:
        ValueError: A limit is not positive, or `nesting` is above 64.
        TypeError: A limit is not a number, or a count is not an integer.
    """

    message_bytes: int = 4 * _MIB
    message_seconds: float = 30.0
    write_seconds: float = 60.0
    nesting: int = MAX_DEPTH
    message_values: int = 250_000
    header_bytes: int = 64 * 1024
    requests: int = 1000
    requests_per_principal: int = 500
    body_bytes: int = 128 * _MIB
    body_bytes_per_principal: int = 32 * _MIB
    unsent_bytes: int = 128 * _MIB
    streams: int = 10_000
    streams_per_principal: int = 1000
    subscription_bytes: int = 64 * _MIB
    subscription_bytes_per_principal: int = 8 * _MIB
    memory_bytes: int = 256 * _MIB
    memory_bytes_per_principal: int = 18 * _MIB

    def __post_init__(self) -> None:
        for option in fields(self):
            value = getattr(self, option.name)
            expected = "a number" if option.name in _SECONDS else "an integer"
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise TypeError(f"Limits.{option.name} must be {expected} above 0; got {value!r}.")
            if not 0 < value < math.inf:
                raise ValueError(f"Limits.{option.name} must be {expected} above 0; got {value}.")
            if not isinstance(value, int) and option.name not in _SECONDS:
                raise TypeError(f"Limits.{option.name} must be an integer above 0; got {value}.")
        if self.nesting > MAX_DEPTH:
            raise ValueError(f"Limits.nesting may be {MAX_DEPTH} at most; got {self.nesting}.")


class LimitReachedError(MCPError):
    """A limit is reached; as a JSON-RPC error it has ``{"retryAfter": seconds}`` as its data.

    Args:
        message: What there is too much of, in a sentence for the client.
        retry_after: Seconds after which the client may try again; rounded up to whole seconds, at least one.
        is_caller_limit: Whether the caller has reached its limit. Otherwise all callers together have reached theirs.
    """

    def __init__(self, message: str, retry_after: float, *, is_caller_limit: bool = False) -> None:
        self.retry_after = max(1, math.ceil(retry_after))
        self.is_caller_limit = is_caller_limit
        super().__init__(INTERNAL_ERROR, message, {"retryAfter": self.retry_after})
