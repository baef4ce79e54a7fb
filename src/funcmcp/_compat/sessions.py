"""FastMCP's sessions that a model names, and its state of signed-in users: the names of ``fastmcp.server.sessions``.

How it works: a session is one value in the server's store of state (``state=``), with a mark that it was created and
the values of its author. The sessions of a signed-in user belong to the user, and count for the user's share of the
store. Those of callers without credentials count for the address of the caller; only their ids keep them apart.
"""

from __future__ import annotations

import hashlib
import json
from time import time
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, get_args, get_origin
from uuid import uuid4

from funcmcp._authoring.results.result_writer import jsonable
from funcmcp._authoring.signatures.partials import signature_of, without_partials
from funcmcp._authoring.signatures.signature import Signature
from funcmcp._compat.components import Tool
from funcmcp._compat.context import context_variable
from funcmcp._compat.dependencies import Current, get_access_token, get_server
from funcmcp._compat.errors import FastMCPError
from funcmcp._compat.provider import Provider
from funcmcp._objects.mappings import without
from funcmcp._objects.public_names import public
from funcmcp._protocol.codec import MAX_DEPTH, decode, encode
from funcmcp._server.calls.value_owner import payer_of
from funcmcp._state.caller_state import DAY
from funcmcp._state.caller_values import ValueOwner

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from funcmcp._state.caller_values import CallerValues

SESSION_ID_DESCRIPTION = (
    "Session identifier. Use a tool to create a session, then pass the resulting id here to persist state across "
    "calls in the same session."
)
"""What FastMCP adds to the description of an argument that is a `SessionId`."""

_USER_SESSION_ID = "_user"
"""The id of the session that a `UserSession` is. Ids that `create_session` returns are UUIDs."""

_CREATED = "_created"
_STATE = "state"


class SessionAuthError(FastMCPError):
    """A function takes a `UserSession`, and the caller sent no credentials."""

    def __init__(
        self,
        message: str = (
            "A parameter of the type UserSession needs a signed-in caller, and this request has no credentials. Use an "
            "argument of the type SessionId for state of callers without credentials."
        ),
    ) -> None:
        super().__init__(message)


class InvalidSession(FastMCPError):
    """No session of the caller has the id. The text does not say whether one of another caller has it."""

    def __init__(self, message: str = "Invalid or unknown session.") -> None:
        super().__init__(message)


def current_principal() -> str | None:
    """Return the client, the issuer and the subject of the caller as JSON; None for a caller without credentials."""
    token = get_access_token()
    if token is None:
        return None
    issuer = token.claims.get("iss")
    parts = [token.client_id, None if issuer is None else str(issuer), token.subject]
    return json.dumps(parts, separators=(",", ":"))


def session_storage_key(principal: str | None, session_id: str) -> str:
    """Return the name of a session in the store, without the text of the principal.

    Args:
        principal: What `current_principal` returns.
        session_id: The id.
    """
    owner = "anon" if principal is None else _digest(principal)
    return f"session:{owner}:{session_id}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


class SessionStore:
    """The sessions of a server, in its store of state.

    Args:
        open_values: Returns the values of callers.
    """

    def __init__(self, open_values: Callable[[], CallerValues]) -> None:
        self._open_values = open_values

    async def get(self, principal: str | None, session_id: str) -> dict[str, Any] | None:
        """Return what a session has; None if it does not exist."""
        owner, name = _place_of(principal, session_id)
        return _read(await self._open_values().get(owner, name))

    async def change(
        self, principal: str | None, session_id: str, function: Callable[[dict[str, Any] | None], dict[str, Any] | None]
    ) -> None:
        """Change what a session has, and lose no change of another call that runs at the same time.

        Args:
            principal: Whose session it is.
            session_id: The id.
            function: Takes what the session has, or None, and returns what it is to have, or None for nothing.

        Raises:
            StateFullError: The owner or the store has no room for it.
            ValueError: JSON can't carry a value.
        """

        def change(content: bytes | None) -> bytes | None:
            changed = function(_read(content))
            return None if changed is None else encode(jsonable(changed))

        owner, name = _place_of(principal, session_id)
        await self._open_values().change(owner, name, change, DAY)


def _place_of(principal: str | None, session_id: str) -> tuple[ValueOwner, str]:
    """Return whose value a session is, and the name of the value."""
    key = _digest(session_storage_key(principal, session_id))
    if principal is not None:
        return ValueOwner(f"compat sessions {_digest(principal)}"), key
    context = context_variable.get()
    call = None if context is None else context._call  # noqa: SLF001 - a part of Context
    return ValueOwner(f"compat session {key}", "unknown" if call is None else payer_of(call.request)), key


def _read(content: bytes | None) -> dict[str, Any] | None:
    value = None if content is None else decode(content, MAX_DEPTH)
    return value if isinstance(value, dict) else None


@public("funcmcp.compat")
class Session:
    """The values of one session. They end a day after the last change.

    Args:
        store: The store of the server.
        principal: Whose session it is, as `current_principal` returns it; None for callers without credentials.
        session_id: The id in the store.
        public_id: The id that the client knows; None if it knows none.
    """

    def __init__(
        self, *, store: SessionStore, principal: str | None, session_id: str, public_id: str | None = None
    ) -> None:
        self._store = store
        self._principal = principal
        self._session_id = session_id
        self._public_id = public_id

    @property
    def id(self) -> str | None:
        """The id that the client knows; None for a `UserSession`."""
        return self._public_id

    async def get(self, key: str, default: Any = None) -> Any:
        """Return a value, or the default if there is none."""
        return _values_of(await self._load()).get(key, default)

    async def set(self, key: str, value: Any) -> None:
        """Store a value that JSON can carry."""
        await self._change(lambda values: {**values, key: value})

    async def delete(self, key: str) -> None:
        """Remove a value, if there is one."""
        await self._change(lambda values: without(values, key))

    async def clear(self) -> None:
        """Remove all values. The session still exists."""
        await self._change(lambda _: {})

    async def end(self) -> None:
        """Remove the session with all its values."""
        await self._store.change(self._principal, self._session_id, lambda _: None)

    async def _exists(self) -> bool:
        """Return whether `create_session` has made the session."""
        return _CREATED in (await self._load() or {})

    async def _create(self) -> None:
        await self._store.change(
            self._principal, self._session_id, lambda stored: {_STATE: {}, **(stored or {}), _CREATED: time()}
        )

    async def _load(self) -> dict[str, Any] | None:
        return await self._store.get(self._principal, self._session_id)

    async def _change(self, function: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        """Change the values of the session, if that makes a difference."""

        def change(stored: dict[str, Any] | None) -> dict[str, Any] | None:
            values = function(_values_of(stored))
            return stored if stored is None and not values else {**(stored or {}), _STATE: values}

        await self._store.change(self._principal, self._session_id, change)


def _values_of(stored: dict[str, Any] | None) -> dict[str, Any]:
    values = (stored or {}).get(_STATE)
    return dict(values) if isinstance(values, dict) else {}


@public("funcmcp.compat")
class UserSession(Session):
    """The session of the signed-in caller: the type of a parameter that is not an argument of the client."""

    @staticmethod
    def injected_for(default: Any) -> Current:
        """Return the mark of a parameter of this type.

        Args:
            default: The default of the parameter. With None, callers without credentials have no session.
        """
        return Current(_user_session if default is None else _required_user_session)


def _user_session() -> UserSession | None:
    """Return the session of the caller; None without credentials."""
    principal = current_principal()
    if principal is None:
        return None
    return UserSession(store=_store(), principal=principal, session_id=_USER_SESSION_ID)


def _required_user_session() -> UserSession:
    session = _user_session()
    if session is None:
        raise SessionAuthError
    return session


def CurrentSession() -> Any:  # noqa: N802 - FastMCP's name
    """Return the mark of a parameter that gets the session of the signed-in caller."""
    return Current(_required_user_session)


def OptionalCurrentSession() -> Any:  # noqa: N802 - FastMCP's name
    """Return the mark of a parameter that gets the session of the caller, or None without credentials."""
    return Current(_user_session)


class SessionIdMark:
    """The mark of an argument that is the id of a session."""

    __slots__ = ()

    def completed(self, description: str | None) -> str:
        """Return the description of the argument, with what the model has to know of sessions."""
        if description is None or SESSION_ID_DESCRIPTION in description:
            return description or SESSION_ID_DESCRIPTION
        return f"{description} {SESSION_ID_DESCRIPTION}"


SessionId: TypeAlias = Annotated[str, SessionIdMark()]
"""The type of an argument with the id of a session, for `get_session`."""


def session_id_parameter_names(fn: Callable[..., object]) -> tuple[str, ...]:
    """Return the names of a function's arguments that are a `SessionId`."""
    if not callable(without_partials(fn)):
        return ()
    hints = Signature(fn).try_hints()
    try:
        names = signature_of(fn).parameters
    except (TypeError, ValueError):
        return ()
    return tuple(name for name in names if _is_session_id(hints.get(name)))


def _is_session_id(hint: Any) -> bool:
    return get_origin(hint) is Annotated and any(isinstance(mark, SessionIdMark) for mark in get_args(hint)[1:])


def _store() -> SessionStore:
    server: Any = get_server()
    store: SessionStore = server._state_store  # noqa: SLF001 - FastMCP's name
    return store


@public("funcmcp.compat")
async def get_session(session_id: str) -> Session:
    """Return a session of the caller by its id; raise InvalidSession if `create_session` has made none for the caller.

    Args:
        session_id: The id, from an argument of the type `SessionId`.
    """
    session = Session(store=_store(), principal=current_principal(), session_id=session_id, public_id=session_id)
    if not await session._exists():  # noqa: SLF001 - FastMCP's name
        raise InvalidSession
    return session


async def create_session() -> str:
    """Create a new session and return its identifier.

    Store it and pass it back as a `session_id` argument on later calls to persist state across a session.
    """
    session_id = str(uuid4())
    session = Session(store=_store(), principal=current_principal(), session_id=session_id, public_id=session_id)
    await session._create()  # noqa: SLF001 - FastMCP's name
    return session_id


async def end_session(session_id: SessionId) -> str:
    """End a session and delete all of its state."""
    session = await get_session(session_id)
    await session.end()
    return "session ended"


@public("funcmcp.compat")
class SessionProvider(Provider):
    """The tools ``create_session`` and ``end_session``, for tools with an argument of the type `SessionId`."""

    def __init__(self) -> None:
        super().__init__()
        self._tools = [Tool.from_function(create_session), Tool.from_function(end_session)]

    async def _list_tools(self) -> Sequence[Any]:
        return self._tools
