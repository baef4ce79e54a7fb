"""Lifespans of FastMCP, which ``|`` joins."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

from funcmcp._objects.public_names import public

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

Enter: TypeAlias = "Callable[[Any], AbstractAsyncContextManager[Any]]"


@public("funcmcp.compat")
class Lifespan:
    """A lifespan: ``FastMCP(lifespan=database | cache)`` starts both and joins the dicts that they yield.

    Args:
        function: An async function with one ``yield``, which gets the server.
    """

    def __init__(self, function: Callable[[Any], AsyncIterator[Any]]) -> None:
        self._enter: Enter = asynccontextmanager(function)

    @asynccontextmanager
    async def __call__(self, server: Any) -> AsyncIterator[dict[str, Any]]:
        """Start the lifespan, and yield what it yields; an empty dict in place of None."""
        async with self._enter(server) as value:
            yield {} if value is None else value

    def __or__(self, other: Lifespan) -> Lifespan:
        """Return a lifespan that starts this one and then the other one, and stops them in reverse order."""
        if not isinstance(other, Lifespan):
            raise TypeError(
                f"A lifespan can't be joined with {type(other).__name__}. Decorate the function with @lifespan, or "
                "pass a function with @asynccontextmanager to ContextManagerLifespan."
            )

        async def joined(server: Any) -> AsyncIterator[dict[str, Any]]:
            async with self(server) as first, other(server) as second:
                yield {**first, **second}

        return Lifespan(joined)


@public("funcmcp.compat")
class ContextManagerLifespan(Lifespan):
    """A lifespan that is a function with ``@asynccontextmanager``.

    Args:
        function: The function, which gets the server.
    """

    def __init__(self, function: Enter) -> None:
        self._enter = function


@public("funcmcp.compat")
def lifespan(function: Callable[[Any], AsyncIterator[Any]]) -> Lifespan:
    """Make a `Lifespan` of an async function with one ``yield``; usable as a decorator."""
    return Lifespan(function)


def combine_lifespans(*lifespans: Enter) -> Callable[[Any], AbstractAsyncContextManager[dict[str, Any]]]:
    """Return one lifespan for several, such as those of a FastAPI application and of ``mcp.http_app()``.

    They start in their order and stop in reverse order. The dicts that they yield are joined; of equal keys, the later
    one counts.

    Args:
        lifespans: Functions that get the application and return an async context manager.
    """

    @asynccontextmanager
    async def combined(application: Any) -> AsyncIterator[dict[str, Any]]:
        state: dict[str, Any] = {}
        async with AsyncExitStack() as stack:
            for enter in lifespans:
                state.update(await stack.enter_async_context(enter(application)) or {})
            yield state

    return combined
