"""The calls of Python functions that a coroutine makes. Unlike a time, their number is the same on every machine."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import funcmcp

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from types import CoroutineType, FrameType

PACKAGE = Path(funcmcp.__file__).parent


class PythonCall(NamedTuple):
    """One call. A coroutine or a generator that continues counts again.

    Attributes:
        depth: How many of the counted calls are under way.
        module: The file of the function, below the package if it is in it.
        function: The name of the function.
    """

    depth: int
    module: str
    function: str

    def __str__(self) -> str:
        return f"{'  ' * self.depth}{self.function}  ({self.module})"


def calls_of(work: Coroutine[Any, Any, object]) -> list[PythonCall]:
    """Run a coroutine that never waits, and return its calls, without those of functions in its own file.

    The library's caller, such as an application of a test, is in that file.
    """
    own_file = cast("CoroutineType[Any, Any, object]", work).cr_code.co_filename
    calls: list[PythonCall] = []
    depth = 0

    def on_event(frame: FrameType, event: str, _: object) -> None:
        nonlocal depth
        code = frame.f_code
        if code.co_filename == own_file or event not in {"call", "return"}:
            return
        if event == "return":
            depth -= 1
            return
        calls.append(PythonCall(depth, module_of(code.co_filename), code.co_qualname))
        depth += 1

    sys.setprofile(on_event)
    try:
        work.send(None)
    except StopIteration:
        return calls
    finally:
        sys.setprofile(None)
    raise RuntimeError("The coroutine waits.")


def module_of(file: str) -> str:
    """Return the name under which a file is counted."""
    path = Path(file)
    return str(path.relative_to(PACKAGE)) if path.is_relative_to(PACKAGE) else path.name


def modules_in(calls: list[PythonCall]) -> set[str]:
    """Return the modules whose functions are called."""
    return {call.module for call in calls}
