"""The load of one process: what is under way, counted for all callers and for each caller.

How it works: everything that is limited (requests, runs, streams, bytes of bodies) has one `Budget`, and `Load` has the
budgets of a process. A budget has a limit for all callers together and a share for each caller, so that no caller can
use all of it. Budgets of what takes up memory also count in `Load.memory`, in bytes, so that a caller can't use up the
shares of several budgets. The transport decides once who the caller of a request is (`HttpRequest.caller`): a
principal, or else an IP address. An unknown caller, such as the client on stdio, has no share of its own.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from funcmcp._server.limits import LimitReachedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from funcmcp._server.limits import Limits

STREAM_RETRY_SECONDS = 60
"""Retry-After if a stream must end first, which may take any time."""

STREAM_BYTES = 16 * 1024
"""Bytes of memory of a stream that is open, with its connection."""

RUN_BYTES = 20 * 1024
"""Bytes of memory of a request that waits while it runs, besides its arguments."""

_ADDRESS = "address:"
_HEADERS_PART = 4
"""Headers that have not ended have a quarter of the memory: they are not known to be requests."""

_PROOFS_PART = 4
"""Used proofs have a quarter of the memory, so that requests have room."""

PROOF_RETRY_SECONDS = 10
"""Retry-After if proofs must expire first."""

_BODY_OVERHEAD = 16 * 1024
"""Bytes of memory for a request that waits for its body, besides the body."""


def principal_caller(owner: str) -> str:
    """Return the caller for a principal, by its `owner_of` mark."""
    return f"principal:{owner}"


def address_caller(address: str) -> str:
    """Return the caller for an address or network from which an anonymous request comes."""
    return _ADDRESS + address


class Budget:
    """An amount that callers share.

    Args:
        limit: The amount for all callers together.
        per_principal: The amount for each principal. An address has this or half of the limit, whichever is more.
        full: The message when the limit is reached.
        own_full: The message when the share of the caller is used up.
        too_large: The message when an amount alone is more than the share of the caller; "" for *own_full*.
        retry_after: Seconds after which the client may try again.
        memory: The budget of memory in which the amount counts as well; None if it takes up none.
        unit: The bytes of memory of an amount of 1.

    Attributes:
        limit: The amount for all callers together.
        used: The amount in use.
    """

    __slots__ = (
        "_by_caller",
        "_full",
        "_memory",
        "_own_full",
        "_per_address",
        "_per_principal",
        "_retry_after",
        "_too_large",
        "_unit",
        "limit",
        "used",
    )

    def __init__(  # noqa: PLR0913 - keyword-only options
        self,
        limit: int,
        per_principal: int,
        *,
        full: str,
        own_full: str,
        too_large: str = "",
        retry_after: float = 1,
        memory: Budget | None = None,
        unit: int = 1,
    ) -> None:
        self.used: int = 0
        self.limit: int = limit
        self._per_principal = per_principal
        self._per_address = max(per_principal, limit // 2)
        self._memory = memory
        self._unit = unit
        self._full = full
        self._own_full = own_full
        self._too_large = too_large or own_full
        self._retry_after = retry_after
        self._by_caller: dict[str, int] = {}

    def check(self, caller: str | None, amount: int = 1) -> None:
        """Raise LimitReachedError unless a caller may use so much more; None is an unknown caller."""
        if self.used + amount > self.limit:
            raise self.full_error()
        if caller is not None:
            share = self._per_address if caller.startswith(_ADDRESS) else self._per_principal
            if self._by_caller.get(caller, 0) + amount > share:
                text = self._own_full if amount <= share else self._too_large
                raise LimitReachedError(text, self._retry_after, is_caller_limit=True)
        if self._memory is not None:
            self._memory.check(caller, amount * self._unit)

    def full_error(self) -> LimitReachedError:
        """Return the error for what exceeds the limit of all callers."""
        return LimitReachedError(self._full, self._retry_after)

    def has_room(self, caller: str | None, amount: int) -> bool:
        """Return whether a caller may use so much more."""
        try:
            self.check(caller, amount)
        except LimitReachedError:
            return False
        return True

    def count(self, caller: str | None, amount: int = 1) -> None:
        """Count an amount that has been checked."""
        self.used += amount
        if caller is not None:
            self._by_caller[caller] = self._by_caller.get(caller, 0) + amount
        if self._memory is not None:
            self._memory.count(caller, amount * self._unit)

    def take(self, caller: str | None, amount: int = 1) -> None:
        """Check an amount that takes up no memory, and count it; raise LimitReachedError."""
        by_caller = self._by_caller
        total = self.used + amount
        caller_total = amount if caller is None else by_caller.get(caller, 0) + amount
        if total > self.limit or caller_total > self._per_principal:
            self.check(caller, amount)
        self.used = total
        if caller is not None:
            by_caller[caller] = caller_total

    def give_back(self, caller: str | None, amount: int = 1) -> None:
        """Release an amount that was counted."""
        self.used -= amount
        if caller is not None:
            remaining = self._by_caller.pop(caller, amount) - amount
            if remaining:
                self._by_caller[caller] = remaining
        if self._memory is not None:
            self._memory.give_back(caller, amount * self._unit)

    @contextmanager
    def counting(self, caller: str | None) -> Iterator[None]:
        """Count 1, which was checked before, during a ``with`` block."""
        self.count(caller)
        try:
            yield
        finally:
            self.give_back(caller)

    @contextmanager
    def without(self, caller: str | None) -> Iterator[None]:
        """Release 1, which was counted before, during a ``with`` block."""
        self.give_back(caller)
        try:
            yield
        finally:
            self.count(caller)


class _Memory(Budget):
    """The memory that callers make the process hold. An address has the share of a principal.

    The many callers behind an address need a place each, but few of them need much memory.
    """

    __slots__ = ()

    def __init__(self, limits: Limits) -> None:
        super().__init__(
            limits.memory_bytes,
            limits.memory_bytes_per_principal,
            full="The server holds too much for its clients; try again later.",
            own_full="The server holds too much for you; wait for answers, or end a stream.",
            too_large="The request takes up more memory than one caller may use; send less at once.",
        )
        self._per_address = limits.memory_bytes_per_principal


class Load:
    """The budgets of this process.

    Args:
        limits: The limits of the process.

    Attributes:
        identifying: Requests whose caller is not known yet, because the authenticator is waiting.
        requests: HTTP requests without an answer yet, from the last byte of their body.
        runs: JSON-RPC requests that wait while they run, on any transport. A run can outlast the HTTP request that
            started it.
        streams: Streams that are open.
        subscriptions: Bytes of the URIs that clients subscribed to.
        bodies: Bodies of HTTP requests.
        headers: Bytes of headers that have not ended, and of requests that wait behind another one.
        proofs: Bytes of proofs of possession that were used, until they are not valid any more.
        memory: Bytes of memory: of all of this but `identifying` and `requests`, of the arguments of `runs`, and of
            events that clients can resume.
    """

    __slots__ = ("bodies", "headers", "identifying", "memory", "proofs", "requests", "runs", "streams", "subscriptions")

    def __init__(self, limits: Limits) -> None:
        self.memory = _Memory(limits)
        self.identifying = _requests(limits)
        self.requests = _requests(limits)
        self.runs = _requests(limits, self.memory)
        self.streams = Budget(
            limits.streams,
            limits.share_of("streams"),
            full="Too many streams are open; try again later.",
            own_full="Too many of your streams are open; end one.",
            retry_after=STREAM_RETRY_SECONDS,
            memory=self.memory,
            unit=STREAM_BYTES,
        )
        self.subscriptions = Budget(
            limits.subscription_bytes,
            limits.share_of("subscription_bytes"),
            full="Clients subscribe to too many resources; try again later.",
            own_full="You subscribe to too many resources; end a subscription.",
            retry_after=STREAM_RETRY_SECONDS,
            memory=self.memory,
        )
        self.bodies = Bodies(limits, self.memory)
        self.headers = Budget(
            limits.memory_bytes // _HEADERS_PART,
            limits.memory_bytes_per_principal,
            full="The server receives too many headers now; try again later.",
            own_full="You send too many headers that do not end; end them.",
            memory=self.memory,
        )
        self.proofs = Budget(
            limits.memory_bytes // _PROOFS_PART,
            limits.memory_bytes_per_principal // 2,
            full="Too many proofs were used in the last minutes; try again later.",
            own_full="You have used too many proofs in the last minutes; send fewer requests.",
            retry_after=PROOF_RETRY_SECONDS,
            memory=self.memory,
        )


def _requests(limits: Limits, memory: Budget | None = None) -> Budget:
    return Budget(
        limits.requests,
        limits.share_of("requests"),
        full="The server is busy; try again later.",
        own_full="Too many of your requests are under way; wait for their answers.",
        memory=memory,
        unit=RUN_BYTES,
    )


class Bodies:
    """Bodies of HTTP requests that arrive in more than one part.

    How it works: a body counts with its bytes from its first part until its request is answered. When there are too
    many bytes, the oldest body that is not complete is dropped: of the same caller if its share is used up, else of
    all. So a client that sends bodies slowly displaces its own bodies, and a body that arrives fast is never the
    oldest.

    Args:
        limits: The limits of the process.
        memory: The memory that callers make the process hold.
    """

    def __init__(self, limits: Limits, memory: Budget) -> None:
        self.budget = Budget(
            limits.body_bytes,
            limits.share_of("body_bytes"),
            full="The server receives too many bytes now; try again later.",
            own_full="You send too many bytes at once; wait for answers.",
            memory=memory,
        )
        self._incomplete: dict[Body, None] = {}
        self._by_caller: dict[str | None, dict[Body, None]] = {}

    def begin(self, body: Body) -> None:
        """Add a body that is not complete."""
        self._incomplete[body] = None
        self._by_caller.setdefault(body.caller, {})[body] = None

    def end(self, body: Body) -> None:
        """Remove a body of which no more parts will arrive."""
        if body in self._incomplete:
            del self._incomplete[body]
            bodies = self._by_caller[body.caller]
            del bodies[body]
            if not bodies:
                del self._by_caller[body.caller]

    def make_room(self, body: Body, size: int) -> None:
        """Drop older bodies until there is room for more bytes of one; raise LimitReachedError if it is the oldest."""
        while True:
            try:
                self.budget.check(body.caller, size)
            except LimitReachedError as error:
                bodies = self._by_caller.get(body.caller, {}) if error.is_caller_limit else self._incomplete
                oldest = next(iter(bodies), body)
                if oldest is body:
                    raise
                oldest.drop(error)
            else:
                return


class Body:
    """The body of one HTTP request; closed when the request is answered.

    Args:
        bodies: The bodies of the process.
        caller: The caller that sends it.

    Attributes:
        caller: The caller that sends it.
        error: The reason why it was dropped; None if it was not.
        on_drop: A function that is called when the body is dropped.
    """

    __slots__ = ("_bodies", "_size", "caller", "error", "on_drop")

    def __init__(self, bodies: Bodies, caller: str | None) -> None:
        self.caller = caller
        self.error: LimitReachedError | None = None
        self.on_drop: Callable[[], None] | None = None
        self._bodies = bodies
        self._size = 0

    def add(self, size: int) -> None:
        """Count bytes that arrived; raise LimitReachedError if there is no room for them."""
        self.raise_if_dropped()
        is_first_part = not self._size
        if is_first_part:
            size += _BODY_OVERHEAD
        self._bodies.make_room(self, size)
        if is_first_part:
            self._bodies.begin(self)  # not before there is room: a body without a size could not be dropped
        self._bodies.budget.count(self.caller, size)
        self._size += size

    def raise_if_dropped(self) -> None:
        """Raise LimitReachedError if it was dropped.

        It is a new error each time. If `error` were raised, its traceback would hold this body, and both their bytes,
        until the next garbage collection.
        """
        error = self.error
        if error is not None:
            raise LimitReachedError(error.message, error.retry_after, is_caller_limit=error.is_caller_limit)

    def complete(self) -> None:
        """Mark the body as complete."""
        if self._size:
            self._bodies.end(self)

    def drop(self, error: LimitReachedError) -> None:
        """Stop waiting for the remaining parts."""
        self.error = LimitReachedError(
            error.message, error.retry_after, is_caller_limit=error.is_caller_limit
        )  # without a traceback
        self.close()
        if self.on_drop is not None:
            self.on_drop()

    def close(self) -> None:
        """Release the bytes of the body."""
        if self._size:
            self._bodies.end(self)
            self._bodies.budget.give_back(self.caller, self._size)
            self._size = 0
