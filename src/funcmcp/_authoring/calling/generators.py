"""Generators as tools: each item that one yields is progress for the client, and all of them are the result.

How it works: `collecting` makes a function of a generator function that reads the generator to its end and returns a
list. A generator that is not async is read in the worker thread of its call. Whatever ends the reading (an exception, a
cancellation, the time limit) closes the generator, so that its ``finally`` blocks run.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable, Generator, Iterable, Iterator
from contextlib import aclosing, closing
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin

from funcmcp._authoring.results.content import Content
from funcmcp._authoring.results.result_writer import jsonable
from funcmcp._authoring.schemas.iterators import MAX_MEMBERS
from funcmcp._authoring.signatures.annotations import marks_of, without_marks
from funcmcp._protocol.codec import encode
from funcmcp._protocol.errors import ToolError

if TYPE_CHECKING:
    from typing import Literal

    from funcmcp._authoring.calling.feature_context import CancellationToken, Context

MAX_MESSAGE = 1000
"""Characters of an item in a progress notification."""

_REPORTED_ITEMS, _REPORT_INTERVAL = 100, 0.1
"""Items that are reported each, and the seconds between two reports of later ones."""

_ITERATORS = frozenset({AsyncGenerator, AsyncIterable, AsyncIterator, Generator, Iterable, Iterator})


def collected_type(annotation: Any) -> Any:
    """Return the type of the list for the return annotation of a generator, such as ``Iterator[int]``."""
    bare = without_marks(annotation)
    if (get_origin(bare) or bare) not in _ITERATORS:
        return annotation
    arguments, marks = get_args(bare), marks_of(annotation)
    items = list[arguments[0]] if arguments else list  # type: ignore[valid-type] # a type that is made here
    return Annotated[(items, *marks)] if marks else items


def collecting(
    function: Callable[..., Any],
    kind: Literal["plain", "async"],
    *,
    context: Context,
    token: CancellationToken,
    max_bytes: int,
) -> Callable[..., Any]:
    """Return a function that returns all items of a generator, and reports each of them.

    Args:
        function: Returns the generator.
        kind: How it is read.
        context: Reports progress.
        token: Shows whether the call has ended.
        max_bytes: Bytes of JSON that the items may have.
    """

    def read(**arguments: Any) -> list[Any]:
        items = _Items(context, max_bytes)
        with closing(function(**arguments)) as generator:
            for item in generator:
                token.raise_if_cancelled()
                if items.add(item):
                    context.wait(items.report())
        return items.values

    async def read_async(**arguments: Any) -> list[Any]:
        items = _Items(context, max_bytes)
        async with aclosing(function(**arguments)) as generator:
            async for item in generator:
                if items.add(item):
                    await items.report()
        return items.values

    return read if kind == "plain" else read_async


class _Items:
    """The items of one generator.

    Args:
        context: Reports progress.
        max_bytes: Bytes of JSON that the items may have.
    """

    def __init__(self, context: Context, max_bytes: int) -> None:
        self.values: list[Any] = []
        self._context = context
        self._max_bytes = max_bytes
        self._bytes = 0
        self._reported = -1.0

    def add(self, item: Any) -> bool:
        """Add an item, and return whether it is to be reported.

        Raises:
            ToolError: There are too many items.
        """
        self._bytes += _size_of(item)
        if self._bytes > self._max_bytes or len(self.values) == MAX_MEMBERS:
            raise ToolError(
                f"The items of the result have more than {self._max_bytes:,} bytes, or are more than {MAX_MEMBERS:,}. "
                "Ask for less, such as fewer rows or a part of it."
            )
        self.values.append(item)
        return self._context.wants_progress and (
            len(self.values) <= _REPORTED_ITEMS or monotonic() >= self._reported + _REPORT_INTERVAL
        )

    async def report(self) -> None:
        """Report the last item."""
        self._reported = monotonic()
        await self._context.report_progress(len(self.values), message=_message_of(self.values[-1]))


def _size_of(item: Any) -> int:
    """Return the bytes of an item as JSON; 0 if JSON can't represent it, which the result says."""
    if isinstance(item, str):
        return len(item)
    try:
        return len(_json(item))
    except ValueError:
        return 0


def _message_of(item: Any) -> str | None:
    """Return what the client reads of an item; None for content, which it gets with the result."""
    if isinstance(item, Content | bytes):
        return None
    try:
        text = item if isinstance(item, str) else _json(item).decode()
        text.encode()
    except ValueError:
        return None
    return text if len(text) <= MAX_MESSAGE else f"{text[:MAX_MESSAGE]}…"


def _json(item: Any) -> bytes:
    return encode(jsonable(item.block if isinstance(item, Content) else item))
