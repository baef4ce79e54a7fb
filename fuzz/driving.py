"""Runs coroutines that wait for nothing, without an event loop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Coroutine

T = TypeVar("T")


def drive(work: Coroutine[Any, Any, T]) -> T:
    """Return what a coroutine returns; raise RuntimeError if it waits for something."""
    try:
        work.send(None)
    except StopIteration as stop:
        result: T = stop.value
        return result
    work.close()
    raise RuntimeError("The coroutine waits for something.")
