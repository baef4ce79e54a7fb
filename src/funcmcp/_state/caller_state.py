"""`CallerState`, the values of a caller across calls as a function sees them, and `StateHandle`.

How it works: an owner is a principal, a session, a connection, or the user of this process. A caller that is none of
these, as an anonymous client of 2026-07-28 over HTTP, has a *handle*: an unguessable text that the first call which
stores a value creates. The result of that call names it, and later calls have it as an argument. A handle exists as
long as one of its values, and for a day after the last one was deleted. There is no other record of it.
"""

from __future__ import annotations

import inspect
import secrets
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeAlias, TypeVar, overload

from funcmcp._objects.public_names import public
from funcmcp._protocol.codec import MAX_DEPTH, decode
from funcmcp._protocol.errors import ToolError
from funcmcp._state.caller_values import ValueOwner
from funcmcp._state.sessions.store import StoreUnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from pydantic import GetJsonSchemaHandler
    from pydantic_core import CoreSchema

    from funcmcp._state.caller_values import CallerValues

T = TypeVar("T")
D = TypeVar("D")

DAY = 86_400
"""Seconds until a value ends, unless the author chooses another time. FastMCP's values end after as long."""

MAX_NAME_BYTES = 200
"""Bytes of the name of a value, in UTF-8."""

_PREFIX = "state "
"""The beginning of the names of a caller's values in the store, which has other values of callers, too."""

_MARKER = "handle"
"""The name of the value that a handle has after its last value was deleted."""

_HANDLE_BYTES = 18
_MAX_HANDLE = 100
_DESCRIPTION = (
    "Handle of the state that earlier calls have stored, as a result named it. Leave it out in the first call."
)


class StateHandleMark:
    """The mark that `StateHandle` puts on a type."""

    __slots__ = ()

    is_state_handle = True
    """Functions are read without this module, unless they have the mark."""

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Describe the argument, unless its author does."""
        return {"description": _DESCRIPTION, **handler(schema)}


StateHandle: TypeAlias = Annotated[str | None, StateHandleMark()]
"""The type of the argument with the handle of the caller's state.

Callers without credentials and without a session need it; others leave it out. `Context.state` reads it.

Example:
    ```python
    @mcp.tool
    async def add(item: str, context: Context, handle: StateHandle = None) -> str:
        items = await context.state.change("items", lambda items: [*items, item], [])
        return f"{len(items)} items"
    ```
"""


@public("funcmcp.state")
class StateOwnerError(ToolError):
    """A function uses the state of a caller, and it is not known who calls, or the handle is not valid."""


@public("funcmcp.state")
class StateUnavailableError(StoreUnavailableError, ToolError):
    """The store of state can't be used now. It is not known whether a write has happened.

    A tool that does not catch it returns its text to the model.

    Args:
        cause: The error of the store.
    """

    def __init__(self, cause: StoreUnavailableError) -> None:
        advice = "" if cause.retry_after is None else " Try again in a moment."
        super().__init__(cause.retry_after, reason=f"{cause}{advice}", nothing_written=cause.nothing_written)


class ValueFormat(NamedTuple):
    """How values become bytes, and JSON values become objects of a type.

    Attributes:
        write: Returns a value as JSON text; raises ValueError if JSON can't carry it.
        read: Returns a JSON value as an object of a type; raises ToolError if it does not fit.
    """

    write: Callable[[Any], bytes]
    read: Callable[[Any, Any, str], Any]


@public("funcmcp.state")
class CallerState:
    """The values of the caller across calls, as `Context.state`.

    The caller is the principal; without one the session; on stdio the user of this process; and else the holder of a
    `StateHandle`. Values are JSON values, models, dataclasses and what else a tool may return. They are stored by name
    until their time is up, in ``MCPServer(state=)``. A plain function uses `Context.wait`:
    ``context.wait(context.state.get("cart"))``.

    Each method may raise StateOwnerError, if nothing says who calls, and StateUnavailableError.
    """

    def __init__(
        self,
        values: Callable[[], CallerValues],
        owner: ValueOwner | None,
        *,
        address: str,
        argument: str | None,
        handle: str | None,
        format: ValueFormat,
    ) -> None:
        self._open_values = values
        self._owner = owner
        self._address = address
        self._argument = argument
        self._handle = handle or None
        self._is_new = False
        self._format = format

    @property
    def handle(self) -> str | None:
        """The handle of the state. None for a caller that needs none, and as long as nothing is stored."""
        return self._handle

    @property
    def new_handle(self) -> str | None:
        """The handle, if this call has created it; else None. The result of a tool names it."""
        return self._handle if self._is_new else None

    @overload
    async def get(self, name: str) -> Any: ...

    @overload
    async def get(self, name: str, default: Any) -> Any: ...

    @overload
    async def get(self, name: str, *, type: type[T]) -> T | None: ...

    @overload
    async def get(self, name: str, default: D, *, type: type[T]) -> T | D: ...

    async def get(self, name: str, default: Any = None, *, type: Any = None) -> Any:
        """Return a value, or the default if there is none or its time is up.

        Args:
            name: The name.
            default: What is returned without a value.
            type: The type of the value, such as a model. Without it, a value is what JSON makes of it, such as a dict.

        Raises:
            ValueError: The stored value does not fit the type.
        """
        _check(name)
        owner = await self._existing_owner()
        if owner is None:
            return default
        content = await _use(self._open_values().get(owner, _PREFIX + name))
        return self._read(name, content, default, type)

    async def set(self, name: str, value: Any, *, ttl: float = DAY) -> None:
        """Store a value in place of an earlier one.

        Args:
            name: The name, of 1 to 200 bytes.
            value: The value.
            ttl: Seconds until it ends, at most 90 days.

        Raises:
            StateFullError: The caller has too many values, or too many bytes of them.
            ValueError: JSON can't carry the value, or the name or the time is invalid.
        """
        _check(name)
        content = self._format.write(value)
        owner = await self._owner_for_write()
        await _use(self._open_values().put(owner, _PREFIX + name, content, ttl))

    @overload
    async def change(self, name: str, function: Callable[[Any], D], default: Any = None, *, ttl: float = DAY) -> D: ...

    @overload
    async def change(
        self, name: str, function: Callable[[T], T], default: T, *, type: type[T], ttl: float = DAY
    ) -> T: ...

    @overload
    async def change(self, name: str, function: Callable[[T | None], T], *, type: type[T], ttl: float = DAY) -> T: ...

    async def change(
        self,
        name: str,
        function: Callable[[Any], Any],
        default: Any = None,
        *,
        type: Any = None,
        ttl: float = DAY,
    ) -> Any:
        """Change a value, and lose no change of another call that runs at the same time. Return the new value.

        Args:
            name: The name.
            function: Takes the value, or the default without one, and returns the new value. It is called again if
                another call has changed the value in the meantime, so it must do nothing else.
            default: What the function gets without a value.
            type: The type of the value, as in `get`.
            ttl: Seconds until the new value ends, at most 90 days.

        Raises:
            StateFullError: As in `set`.
            ValueError: As in `get` and `set`.
        """
        _check(name)
        changed: Any = None

        def change(content: bytes | None) -> bytes:
            nonlocal changed
            changed = function(self._read(name, content, default, type))
            if inspect.iscoroutine(changed):
                changed.close()
                raise TypeError("The function of change must not be async. Await before change.")
            return self._format.write(changed)

        owner = await self._owner_for_write()
        await _use(self._open_values().change(owner, _PREFIX + name, change, ttl))
        return changed

    async def delete(self, name: str) -> None:
        """Remove a value, if there is one."""
        _check(name)
        owner = await self._existing_owner()
        if owner is not None:
            await self._remove(owner, [name])

    async def clear(self) -> None:
        """Remove all values of the caller."""
        owner = await self._existing_owner()
        if owner is not None:
            await self._remove(owner, await self.names())

    async def names(self) -> list[str]:
        """Return the names of the caller's values, in the order of the alphabet."""
        owner = await self._existing_owner()
        names = [] if owner is None else await _use(self._open_values().names(owner))
        return [name.removeprefix(_PREFIX) for name in names if name.startswith(_PREFIX)]

    async def _remove(self, owner: ValueOwner, names: list[str]) -> None:
        values = self._open_values()
        if self._handle is not None:
            await _use(values.put(owner, _MARKER, b"", DAY))
        for name in names:
            await _use(values.remove(owner, _PREFIX + name))

    async def _existing_owner(self) -> ValueOwner | None:
        """Return the owner of the values; None for a caller without a handle, which has stored nothing yet."""
        if self._owner is None and self._handle is not None:
            self._owner = await self._owner_with(self._handle)
        elif self._owner is None and self._argument is None:
            raise StateOwnerError(
                "This stores values of its caller, and nothing says who calls: the request has neither credentials nor "
                "a session. Sign in, or use a client with sessions. The author of a tool can give it a parameter of "
                "the type funcmcp.state.StateHandle."
            )
        elif self._owner is not None and self._handle is not None and not self._owner.mark.startswith(_MARKER):
            raise StateOwnerError(
                f"The state of this caller needs no handle. Leave out the argument {self._argument!r}."
            )
        return self._owner

    async def _owner_for_write(self) -> ValueOwner:
        """Return the owner of the values; make a new handle for a caller that has none."""
        owner = await self._existing_owner()
        if owner is None:
            self._handle, self._is_new = secrets.token_urlsafe(_HANDLE_BYTES), True
            owner = self._owner = _owner_of(self._handle, self._address)
        return owner

    async def _owner_with(self, handle: str) -> ValueOwner:
        """Return the owner with a handle of a client; raise StateOwnerError if it does not exist."""
        owner = _owner_of(handle, self._address)
        if len(handle) > _MAX_HANDLE or not await _use(self._open_values().names(owner)):
            raise StateOwnerError(
                f"The {self._argument} is unknown, or has expired. Leave out the argument {self._argument!r} to begin "
                "again; the result names a new one."
            )
        return owner

    def _read(self, name: str, content: bytes | None, default: Any, type: Any) -> Any:
        if content is None:
            return default
        value = decode(content, MAX_DEPTH)
        if type is None:
            return value
        try:
            return self._format.read(value, type, name)
        except ToolError as error:
            raise ValueError(
                f"The value {name!r} of the caller does not fit {type!r}: {error}. Another version of the tool may "
                "have stored it: change its name, or read it without type=."
            ) from None


async def _use(work: Coroutine[Any, Any, T]) -> T:
    """Return what a use of the store returns; raise StateUnavailableError if it fails."""
    try:
        return await work
    except StoreUnavailableError as error:
        raise StateUnavailableError(error) from error


def _owner_of(handle: str, address: str) -> ValueOwner:
    return ValueOwner(f"{_MARKER} {handle}", address)


def _check(name: str) -> None:
    """Raise ValueError for a name that is not valid."""
    if not isinstance(name, str) or not 0 < len(name.encode("utf-8", "surrogatepass")) <= MAX_NAME_BYTES:
        raise ValueError(f"The name of a value must be a string of 1 to {MAX_NAME_BYTES} bytes; got {name!r:.60}.")
