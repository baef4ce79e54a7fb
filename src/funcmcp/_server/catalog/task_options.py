"""How an author lets calls of a tool become tasks."""

from __future__ import annotations

from dataclasses import KW_ONLY  # noqa: TC003 - dataclass() reads it
from typing import Literal

from funcmcp._definitions import options
from funcmcp._public_names import public
from funcmcp._server.catalog.registry import RegistrationError

MAX_TTL = 7 * 86_400.0
"""Seconds: a message waits that long in a queue of Azure Storage at most."""


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

    def __post_init__(self) -> None:
        if self.mode not in ("optional", "required"):
            raise RegistrationError(f"The mode of a task must be 'optional' or 'required'; got {self.mode!r}.")
        for name in ("ttl", "keep", "poll"):
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
        if self.attempts is not None and (type(self.attempts) is not int or self.attempts < 1):
            raise RegistrationError(f"attempts must be an integer of at least 1; got {self.attempts!r}.")
