"""How an author lets calls of a tool become tasks."""

from __future__ import annotations

from dataclasses import KW_ONLY  # noqa: TC003 - dataclass() reads it
from random import uniform
from typing import Literal

from funcmcp._objects.definitions import options
from funcmcp._objects.public_names import public
from funcmcp._protocol.errors import MCPError, ToolError
from funcmcp._server.catalog.registry import RegistrationError
from funcmcp._server.exception_groups import meaning_of
from funcmcp._state.tasks.queues import DEFAULT_QUEUE, check_queue

MAX_TTL = 7 * 86_400.0
"""Seconds: a message waits that long in a queue of Azure Storage at most."""

_LARGEST_EXPONENT = 40


@public("funcmcp.tasks")
@options
class Retry:
    """Whether a task runs its tool again after an exception, and when.

    The waits double: with the default options the second run begins about one second after the first has failed, and
    the third one two seconds after the second. Each wait is up to a half longer, so that tasks that failed together do
    not run together again. The client sees the status ``working`` meanwhile, with a message about the last failure. The
    task ends with the last failure if no run is left, or no time.

    Attributes:
        attempts: How often the tool runs at most, the first run included.
        delay: Seconds from the first failure to the second run.
        max_delay: The longest wait in seconds.
        on: The exceptions after which the tool runs again: a class, or several. The default is every `Exception` but
            `ToolError` and `MCPError`, with which an author tells the caller what is wrong; name these to include them.

    Raises:
        RegistrationError: A value is invalid.
    """

    attempts: int = 3
    _: KW_ONLY
    delay: float = 1.0
    max_delay: float = 60.0
    on: type[BaseException] | tuple[type[BaseException], ...] = Exception

    def __post_init__(self) -> None:
        if type(self.attempts) is not int or self.attempts < 1:
            raise RegistrationError(f"Retry.attempts must be an integer of at least 1; got {self.attempts!r}.")
        for name in ("delay", "max_delay"):
            value = getattr(self, name)
            if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= MAX_TTL:
                raise RegistrationError(f"Retry.{name} must be from 0 to {MAX_TTL:g} seconds; got {value!r}.")
        types = self.on if isinstance(self.on, tuple) else (self.on,)
        if not types or not all(isinstance(kind, type) and issubclass(kind, BaseException) for kind in types):
            raise RegistrationError(f"Retry.on must be a class of exceptions, or a tuple of them; got {self.on!r:.60}.")

    def applies_to(self, error: BaseException) -> bool:
        """Return whether a tool that has raised an exception may run again."""
        meaning = meaning_of(error)
        if isinstance(meaning, ToolError | MCPError) and self.on is Exception:
            return False
        return isinstance(meaning, self.on)

    def delay_after(self, attempt: int) -> float:
        """Return the seconds from the failure of an attempt, 1 for the first, to the next one."""
        delay: float = self.delay * 2 ** min(attempt - 1, _LARGEST_EXPONENT) * uniform(1, 1.5)  # noqa: S311 - no secret
        return min(self.max_delay, delay)


@public("funcmcp.tasks")
@options
class TaskOptions:
    """When a call of a tool becomes a task, and for how long the task lives.

    Attributes:
        mode: ``"optional"``: a task for clients that have tasks, a plain call for other clients. ``"required"``: other
            clients get an error.
        detaches: Whether the tool decides itself, with ``await context.detach()``, when the call becomes a task. Until
            then it runs within the call and can ask the user. A client of 2025-11-25 gets a task at once all the same.
        ttl: Seconds from the creation within which a task has to end, from 1 second to 7 days.
        keep: Seconds for which the outcome is kept at least.
        poll: Seconds between two requests for the status that clients are asked for. None for a tenth of the task's
            age, from 0.25 to 5 seconds.
        attempts: How often the tool may be started if the process stops while it runs. None for 3 times if the tool is
            `idempotent` or `read_only`, and once if it is neither.
        retry: Whether the tool runs again after an exception, such as ``Retry(5)``; None if it does not.
        delay: Seconds from the call until the tool runs.
        queue: The queue of the tasks. Workers serve all queues, or those that their operator names. A name has 1 to 40
            letters, digits, ``.``, ``_`` and ``-``.
        concurrency: How many tasks of the tool run at once in one process; None for as many as the process runs.

    Raises:
        RegistrationError: A value is invalid.
    """

    mode: Literal["optional", "required"] = "optional"
    _: KW_ONLY
    detaches: bool = False
    ttl: float = 3600.0
    keep: float = 900.0
    poll: float | None = None
    attempts: int | None = None
    retry: Retry | None = None
    delay: float = 0.0
    queue: str = DEFAULT_QUEUE
    concurrency: int | None = None

    def __post_init__(self) -> None:
        if self.mode not in ("optional", "required"):
            raise RegistrationError(f"The mode of a task must be 'optional' or 'required'; got {self.mode!r}.")
        for name in ("ttl", "keep", "poll", "delay"):
            value = getattr(self, name)
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            if not is_number and not (name == "poll" and value is None):
                raise RegistrationError(f"{name} must be a number of seconds; got {value!r}.")
        if not 1 <= self.ttl <= MAX_TTL:
            raise RegistrationError(f"ttl must be from 1 to {MAX_TTL:g} seconds; got {self.ttl!r}.")
        if not 0 <= self.keep <= MAX_TTL:
            raise RegistrationError(f"keep must be from 0 to {MAX_TTL:g} seconds; got {self.keep!r}.")
        if self.poll is not None and not 0 < self.poll <= self.ttl:
            raise RegistrationError(f"poll must be more than 0 seconds and at most the ttl; got {self.poll!r}.")
        if not 0 <= self.delay < self.ttl:
            raise RegistrationError(f"delay must be 0 or more seconds, and less than the ttl; got {self.delay!r}.")
        self._check_runs()

    def _check_runs(self) -> None:
        """Raise RegistrationError unless the options of runs are valid."""
        if self.retry is not None and not isinstance(self.retry, Retry):
            raise RegistrationError(f"retry must be Retry(...), such as Retry(5); got {self.retry!r:.60}.")
        if self.attempts is not None and (type(self.attempts) is not int or self.attempts < 1):
            raise RegistrationError(f"attempts must be an integer of at least 1; got {self.attempts!r}.")
        if self.concurrency is not None and (type(self.concurrency) is not int or self.concurrency < 1):
            raise RegistrationError(f"concurrency must be an integer of at least 1; got {self.concurrency!r:.60}.")
        try:
            check_queue(self.queue)
        except ValueError as error:
            raise RegistrationError(str(error)) from None
