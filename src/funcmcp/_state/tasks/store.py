"""Where tasks live: the protocol of a store, and its limits."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from funcmcp._objects.public_names import public
from funcmcp._state.sessions.store import StoreUnavailableError
from funcmcp._state.tasks.task_filter import ANY_TASK

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from funcmcp._state.tasks.record import Claim, NewTask, Outcome, Question, TaskKey, TaskRecord
    from funcmcp._state.tasks.task_filter import TaskFilter

MIB = 1024 * 1024

_UNREADABLE_SECONDS = 5
"""Seconds after which a client may ask again for a task of a newer version: another process may get the request."""


@public("funcmcp.tasks")
@dataclass(frozen=True, slots=True, kw_only=True)
class TaskLimits:
    """How much a store keeps.

    Bytes are those of calls, questions, answers and results, and 2 KiB for each task. Where there is no room, tasks
    that have ended are removed before their time, the oldest first: those of the caller if the caller has used up its
    share. A task for which there is still no room is refused, and so is an answer. A result or a question for which
    there is no room fails its task.

    Attributes:
        total: Tasks of all callers, those that have ended included. One more is refused (503).
        per_principal: Tasks of one principal, those that have ended included. One more is refused (429).
        live_per_principal: Tasks of one principal that have not ended. One more is refused (429).
        result_bytes: The size of a result. The outcome of a larger one is an error.
        total_bytes: Bytes of the tasks of all callers.
        bytes_per_principal: Bytes of the tasks of one principal, or of those that callers without credentials create at
            one IP address.
    """

    total: int = 100_000
    per_principal: int = 1_000
    live_per_principal: int = 100
    result_bytes: int = 4 * MIB
    total_bytes: int = 256 * MIB
    bytes_per_principal: int = 32 * MIB

    def __post_init__(self) -> None:
        for name in self.__slots__:
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1; got {getattr(self, name)}.")


def check_concurrency(count: int) -> None:
    """Raise ValueError unless this is a number of tasks that a process can run at once; 0 is none."""
    if not isinstance(count, int) or isinstance(count, bool) or count < 0:
        raise ValueError(f"concurrency must be a number of tasks, or 0 to run none; got {count!r}.")


def check_lease(seconds: float) -> None:
    """Raise ValueError unless this is a time after which the task of a stopped process is available again."""
    if not isinstance(seconds, (int, float)) or isinstance(seconds, bool) or not 0 < seconds < math.inf:
        raise ValueError(f"lease must be a number of seconds above 0; got {seconds!r}.")


@public("funcmcp.tasks")
class TasksFullError(Exception):
    """There is no room for one more task, or for the bytes of a task.

    Args:
        retry_after: Seconds until there may be.
        is_owner_limit: Whether the caller has reached its limit. Otherwise the store is full.
        of_bytes: Whether the limit is one of bytes. Otherwise it is one of tasks.
        of_live: Whether the limit is one of tasks that have not ended.
    """

    def __init__(
        self, retry_after: int, *, is_owner_limit: bool = False, of_bytes: bool = False, of_live: bool = False
    ) -> None:
        reason = "There are too many tasks"
        if of_bytes and is_owner_limit:
            reason = "The arguments and results of your tasks have too many bytes"
        elif of_bytes:
            reason = "The arguments and results of all tasks have too many bytes"
        elif of_live:
            reason = "You have too many tasks that have not ended"
        elif is_owner_limit:
            reason = "You have too many tasks"
        super().__init__(reason)
        self.retry_after = retry_after
        self.is_owner_limit = is_owner_limit
        self.of_live = of_live


@public("funcmcp.tasks")
class UnreadableTask(NamedTuple):
    """A task whose record this version can't read, because a newer version of the server has written it.

    Attributes:
        key: The key of the task.
        over: Whether the task has an outcome.
    """

    key: TaskKey
    over: bool


@public("funcmcp.tasks")
class UnreadableTaskError(StoreUnavailableError):
    """This version can't read the record of a task. The request gets status 503, and another process may answer it."""

    def __init__(self) -> None:
        super().__init__(
            _UNREADABLE_SECONDS,
            reason="The task was written by a newer version of the server.",
            nothing_written=True,
        )


@public("funcmcp.tasks")
class Backlog(NamedTuple):
    """The tasks that are due and that no worker has. One whose lease has lapsed is due, one with a delay is not yet.

    Attributes:
        waiting: The number of tasks.
        oldest: Seconds since the first of them became due; 0 if there are none.
    """

    waiting: int
    oldest: float


@public("funcmcp.tasks")
class TaskStore(Protocol):
    """Keeps tasks, and gives those that are due to workers.

    Each method is atomic, and those that change a task return its new record. A store that other processes share may
    raise StoreUnavailableError from each of them. What the
    transitions mean is in `funcmcp._state.tasks.record`.

    A task whose record this version can't read is not absent. Methods with its key raise UnreadableTaskError, and
    nothing is created in its place; a claim of it is not valid any more; `page` leaves it out, and `scan` yields it as
    an UnreadableTask. Workers of this version leave it to those of the newer one.

    Attributes:
        shared: Whether other processes reach the same tasks.
        pulls: Whether workers ask for tasks with `claim`; otherwise a platform brings them.
        lease: Seconds after which a task is due again if its worker has not renewed the claim.
        limits: How much the store keeps.
        concurrency: Tasks that this process runs at once; 0 if it only creates them.
    """

    shared: bool
    pulls: bool
    lease: float
    limits: TaskLimits
    concurrency: int

    def bind(self, server: str) -> None:
        """Use the tasks of the server of this name; each server has its own."""

    async def create(self, task: NewTask) -> TaskRecord:
        """Create a task, which is due after its delay; raise TasksFullError. It can be read before this returns.

        A task with this key that exists already is left as it is.
        """

    async def read(self, key: TaskKey) -> TaskRecord | None:
        """Return a task as it is now; None if it does not exist, or belongs to another owner."""

    async def claim(self, count: int, only: TaskFilter = ANY_TASK) -> Sequence[Claim]:
        """Give this worker tasks that are due. Wait up to a second if none is.

        Args:
            count: How many at most.
            only: Which tasks.
        """

    def wake(self) -> None:
        """End a `claim` that waits, at once if that is possible."""

    async def renew(self, claim: Claim) -> bool:
        """Extend the lease of a claim. False: the task is over, or another worker has it."""

    async def report(self, claim: Claim, message: str) -> TaskRecord | None:
        """Change the status message. None: the claim is not valid any more."""

    async def note(self, claim: Claim, key: str, result: Any) -> TaskRecord | None:
        """Keep the result of a part of the run for later runs; raise TasksFullError. None: the claim is not valid.

        Args:
            claim: The claim.
            key: The author's key of the part.
            result: A value of JSON's types.
        """

    async def ask(self, claim: Claim, questions: Mapping[str, Question]) -> TaskRecord | None:
        """End the run, and wait for answers of the client; end the task if there is no room for the questions.

        None: the claim is not valid any more.
        """

    async def finish(self, claim: Claim, outcome: Outcome) -> TaskRecord | None:
        """End the task, with an error if there is no room for the outcome.

        None: the claim is not valid any more, and the outcome is dropped.
        """

    async def release(self, claim: Claim, delay: float = 0.0, *, unknown: bool = False) -> TaskRecord | None:
        """Return the task to the queue. None: the claim is not valid any more.

        Args:
            claim: The claim.
            delay: Seconds after which the task is due.
            unknown: Whether this worker can't run the tool. Such deliveries are counted.
        """

    async def retry(self, claim: Claim, delay: float, message: str) -> TaskRecord | None:
        """End a run that failed, and run the tool again later. None: the claim is not valid any more.

        Args:
            claim: The claim.
            delay: Seconds after which the task is due.
            message: The status message until then.
        """

    async def answer(self, key: TaskKey, answers: Mapping[str, Mapping[str, Any]]) -> TaskRecord | None:
        """Take answers by the keys of the questions on the wire; raise TasksFullError.

        None: no question waits for any of them.
        """

    async def cancel(self, key: TaskKey) -> TaskRecord | None:
        """Cancel a task. None: it does not exist, or was over."""

    async def watch(self, key: TaskKey) -> None:
        """Note that a client waits for changes of a task."""

    async def page(self, owner: str | None, after: str | None, size: int) -> Sequence[TaskRecord]:
        """Return tasks of an owner, the oldest first.

        Args:
            owner: The mark of the principal.
            after: The position behind which the page begins, as `position` returns it; None for the first page.
            size: The length of the page.
        """

    async def read_call(self, key: TaskKey) -> bytes | None:
        """Return the call of a task; None if the task does not exist, or does not keep it (`TaskRecord.keeps_call`)."""

    def scan(self) -> AsyncIterator[TaskRecord | UnreadableTask]:
        """Yield the tasks of all owners, in any order and each once, for operators. It reads every task."""

    async def backlog(self) -> Backlog | None:
        """Return how many tasks wait for a worker, for metrics; None if the store can't tell.

        It is asked for every few seconds, so it must not read every task. Tasks that were cancelled, or whose time is
        up, may count until a worker has seen them.
        """

    async def aclose(self) -> None:
        """Close connections and files."""


@public("funcmcp.tasks")
def position(record: TaskRecord) -> str:
    """Return the position of a task among those of its owner; positions sort as text."""
    return f"{int(record.created * 1000):014d}.{record.key.task_id}"
