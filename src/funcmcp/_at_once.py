"""Methods that give an answer without a coroutine, beside a coroutine method that may wait for it."""

from __future__ import annotations

from typing import Any


def at_once(owner: object, name: str, *, before: str) -> Any:
    """Return the method *name* of an object, which is called before the coroutine method *before*; None without it.

    A subclass may override the coroutine method alone, for example to add a check. The inherited method would skip the
    check, so it is not returned.
    """
    for cls in type(owner).__mro__:
        if name in vars(cls):
            return getattr(owner, name)
        if before in vars(cls):
            return None
    return None
