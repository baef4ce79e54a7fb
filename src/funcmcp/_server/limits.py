"""How much a server takes on at once in one process, and the error for what exceeds it.

Source: RFC 9110 section 10.2.3 (Retry-After), RFC 6585 section 4 (429).
"""

from __future__ import annotations

import math
from dataclasses import fields

from funcmcp._objects.definitions import options_by_name
from funcmcp._objects.public_names import public
from funcmcp._protocol.codec import MAX_DEPTH
from funcmcp._protocol.errors import INTERNAL_ERROR, MCPError

_MIB = 1024 * 1024
_SHARES = {
    "requests": 500,
    "body_bytes": 32 * _MIB,
    "streams": 1000,
    "subscription_bytes": 8 * _MIB,
    "state_bytes": 16 * _MIB,
}
"""What one principal may use of a limit by default, unless that is more than half of it."""

_SECONDS = ("message_seconds", "write_seconds", "stored_result_seconds")
"""The limits that may be fractions; all others count something."""


MIN_RESULT_CHARACTERS = 2000
"""The smallest budget of results. A note about what is missing takes up to 900 characters of it."""


@public("funcmcp")
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
        message_depth: Levels of nested objects and arrays in a message, 64 at most.
        message_values: JSON values in a message, counted by its commas and opening brackets outside of texts.
        header_bytes: Bytes of all names and values of an HTTP request's header.
        result_bytes: Bytes of the response with a result. A larger one is refused: the result of a tool has ``isError``
            and the size in its text, and those of other methods are an error. Results of tasks have
            `TaskLimits.result_bytes`.
        result_characters: Characters of a tool's result that a model reads, at least 2,000. A longer result is
            shortened: lists end after an item, texts after a paragraph, and a note says how to read on. None, the
            default, shortens nothing. The option of the same name of a tool precedes it. See
            docs/guides/large_results.md.
        stored_result_seconds: Seconds for which the whole of a shortened result is stored.
        requests: Requests under way at once, each from the last byte of its body. A `subscriptions/listen` counts as
            a stream instead.
        requests_per_principal: Requests of the same principal. None is 500, or half of `requests` if that is less.
        body_bytes: Bytes of all HTTP bodies that come in more than one part, until their requests are answered.
        body_bytes_per_principal: Bytes of such bodies of the same principal. None is 32 MiB, or half of `body_bytes` if
            that is less.
        unsent_bytes: Bytes of responses that wait for clients to read them, and as many on WebSockets; under
            `funcmcp run` and `mcp.run("http")`.
        streams: Streams that are open at once: GET, `subscriptions/listen`, HTTP+SSE and WebSocket.
        streams_per_principal: Streams of the same principal. None is 1,000, or half of `streams` if that is less.
        subscription_bytes: Bytes of memory that the URIs take up which clients subscribed to.
        subscription_bytes_per_principal: Bytes of those of the same principal. None is 8 MiB, or half of
            `subscription_bytes` if that is less.
        state_bytes: Bytes of the state of all callers in the memory of the process, with 400 bytes for each record.
            Stores outside of the process have no total.
        state_bytes_per_principal: Bytes of the values of one principal, and of all anonymous callers of an address.
            None is 16 MiB, or half of `state_bytes` if that is less.
        state_values_per_principal: Values of one principal, and anonymous sessions and handles of an address.
        memory_bytes: Bytes of memory of all that clients make the process hold: HTTP bodies that come in more than one
            part, requests that wait while they run with their arguments, streams, subscriptions, and events that
            clients can resume.
        memory_bytes_per_principal: Bytes of what one principal, or one address, makes it hold.

    Raises:
        ValueError: A limit is not positive, or `message_depth` is above 64.
        TypeError: A limit is not a number, or a count is not an integer.
    """

    message_bytes: int = 4 * _MIB
    message_seconds: float = 30.0
    write_seconds: float = 60.0
    message_depth: int = MAX_DEPTH
    message_values: int = 250_000
    header_bytes: int = 64 * 1024
    result_bytes: int = 64 * _MIB
    result_characters: int | None = None
    stored_result_seconds: float = 3600.0
    requests: int = 1000
    requests_per_principal: int | None = None
    body_bytes: int = 128 * _MIB
    body_bytes_per_principal: int | None = None
    unsent_bytes: int = 128 * _MIB
    streams: int = 10_000
    streams_per_principal: int | None = None
    subscription_bytes: int = 64 * _MIB
    subscription_bytes_per_principal: int | None = None
    state_bytes: int = 128 * _MIB
    state_bytes_per_principal: int | None = None
    state_values_per_principal: int = 1000
    memory_bytes: int = 256 * _MIB
    memory_bytes_per_principal: int = 18 * _MIB

    def __post_init__(self) -> None:
        for option in fields(self):
            value = getattr(self, option.name)
            if value is None and option.default is None:
                continue
            expected = "a number" if option.name in _SECONDS else "an integer"
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise TypeError(f"Limits.{option.name} must be {expected} above 0; got {value!r}.")
            if not 0 < value < math.inf:
                raise ValueError(f"Limits.{option.name} must be {expected} above 0; got {value}.")
            if not isinstance(value, int) and option.name not in _SECONDS:
                raise TypeError(f"Limits.{option.name} must be an integer above 0; got {value}.")
        if self.result_characters is not None and self.result_characters < MIN_RESULT_CHARACTERS:
            raise ValueError(
                f"Limits.result_characters must be {MIN_RESULT_CHARACTERS:,} or more, or None; "
                f"got {self.result_characters}."
            )
        if self.message_depth > MAX_DEPTH:
            raise ValueError(f"Limits.message_depth may be {MAX_DEPTH} at most; got {self.message_depth}.")

    def share_of(self, name: str) -> int:
        """Return what one principal may use of a limit, such as "requests"."""
        share: int | None = getattr(self, f"{name}_per_principal")
        half: int = max(1, getattr(self, name) // 2)
        return min(_SHARES[name], half) if share is None else share


class LimitReachedError(MCPError):
    """A limit is reached; as a JSON-RPC error it has ``{"retryAfter": seconds}`` as its data.

    Args:
        message: What there is too much of, in a sentence for the client.
        retry_after: Seconds after which the client may try again; rounded up to whole seconds, at least one.
        is_caller_limit: Whether the caller has reached its limit. Otherwise all callers together have reached theirs.
    """

    def __init__(self, message: str, retry_after: float, *, is_caller_limit: bool = False) -> None:
        self.retry_after: int = max(1, math.ceil(retry_after))
        self.is_caller_limit: bool = is_caller_limit
        super().__init__(INTERNAL_ERROR, message, {"retryAfter": self.retry_after})
