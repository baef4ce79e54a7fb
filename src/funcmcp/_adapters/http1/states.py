"""The states of a connection, and of each request and response on it.

How it works: as in h11, both sides of an exchange have a state of their own, because they do not wait for each other: a
response may end before its request has arrived. The state of the connection says what it waits for. It has one more
state that is independent of all others, since the server may stop at any moment: how the connection ends (`Ending`).

**The rule of timers: a connection that waits for its client has exactly one timer** (`TIMED`). It fires at the end of
the state's time, which begins with the state. No byte gives more time to a request that is RECEIVING. One timer serves
many states: if it fires earlier than the state's time ends, it is set again, and without a time it does nothing.

Connection (`State`):

| state | the connection | has this time | and then |
|---|---|---|---|
| RECEIVING | waits for its first request, or for the rest of one | `message_seconds` | 408, and closes |
| HELD | answers a complete request | no limit: the time of a call is the application's | |
| REFUSING | the same, and ignores what comes behind it | no limit | |
| IDLE | has answered, and nothing of another request has come | uvicorn's ``timeout_keep_alive`` | closes |
| LINGERING | has sent its end, and reads on | `LINGER_SECONDS` | closes |
| ENDED | is closed, or is a WebSocket | | |

| from | event | to |
|---|---|---|
| RECEIVING, IDLE | the last byte of a request that has no response yet | HELD |
| RECEIVING | the last byte of a request whose response was sent before | IDLE |
| IDLE | a byte that ends no request | RECEIVING |
| HELD | something that can't be parsed, or that has no room in memory | REFUSING |
| HELD, REFUSING | the response is sent; all of the next request is there | the same |
| HELD | the response is sent; a part of the next request is there | RECEIVING |
| HELD | the response is sent; nothing else is there | IDLE |
| any | the connection closes, and its client has not sent everything | LINGERING |
| any | the connection closes, is lost, or becomes a WebSocket | ENDED |

Request (`RequestState`), which begins when its header is complete:

| state | the client | from here to |
|---|---|---|
| EXPECTING | may wait with the body for an answer | BODY: "100 Continue" is sent, because the application reads |
| | | BODY: the response begins |
| | | COMPLETE: the end has arrived |
| BODY | has not sent the end of the body | COMPLETE: the end has arrived |
| COMPLETE | has sent everything | READ: the application has read the end of the body |
| READ | the same | |

Response (`ResponseState`):

| state | the server | from here to |
|---|---|---|
| WAITING | has no task for the request: responses before it are due, or more of it may be in the same data | RUNNING |
| RUNNING | has begun to answer, and nothing of the response is decided | STARTED, LOST |
| STARTED | has the header, which it has sent, or sends with the beginning of the body | ENDED, CUT |
| ENDED | has sent all of the response | |
| LOST | can't send anything: the client has left or was refused (also from WAITING) | |
| CUT | can't send the rest, for the same reasons | |

How a connection ends (`Ending`):

| state | the next response | from here to |
|---|---|---|
| OPEN | leaves the connection open | LAST, HURRIED |
| LAST | closes it: another process serves from now on | HURRIED |
| HURRIED | closes it; a proxy may have sent its request, whose header has `LAST_REQUEST_SECONDS` | LAST: it is there |

Not states are `Cycle.keep_alive`, which says whether the connection remains open after one response, the framing of a
body (`Framing`), which its header decides for good, and whether reading or writing pauses.

Source: RFC 9110 section 10.1.1 (Expect), RFC 9112 sections 6.3 and 9.
"""

from __future__ import annotations

from enum import Enum


class State(Enum):
    """The state of a connection."""

    RECEIVING = "receiving"
    HELD = "held"
    REFUSING = "refusing"
    IDLE = "idle"
    LINGERING = "lingering"
    ENDED = "ended"


TIMED = frozenset({State.RECEIVING, State.IDLE, State.LINGERING})
"""The states in which a connection waits for its client, and one timer runs."""


class RequestState(Enum):
    """The state of a request."""

    EXPECTING = "expecting"
    BODY = "body"
    COMPLETE = "complete"
    READ = "read"


class ResponseState(Enum):
    """The state of a response."""

    WAITING = "waiting"
    RUNNING = "running"
    STARTED = "started"
    ENDED = "ended"
    LOST = "lost"
    CUT = "cut"


class Ending(Enum):
    """How a connection ends."""

    OPEN = "open"
    LAST = "last"
    HURRIED = "hurried"


class Framing(Enum):
    """What ends the body of a response (RFC 9112 section 6.3)."""

    NO_BODY = "no body"
    LENGTH = "length"
    CHUNKED = "chunked"
    CLOSE = "close"
