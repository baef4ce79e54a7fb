"""Accounts that users have connected: their tokens in a store, renewed one at a time, and ended.

How it works: an account is a value of its owner (`funcmcp._state.caller_values`), so it is encrypted unless the store
is the memory of the process, and all instances of the server see it. A token is read from the store for each call, so
an account that has ended at one instance has ended at all.

Many authorization servers accept a refresh token once only, and end the grant when it comes again. So a renewal has a
*lease* in the record: one instance renews, and the others wait for its result. A lease ends by itself if its process
dies. A renewal is stored only if the account still is the one that was renewed: it does not bring back an account that
was ended meanwhile.

Source: RFC 6749 section 6; RFC 9700 section 4.14 (refresh tokens that are used again).
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from funcmcp._auth.principal import UpstreamTokenError
from funcmcp._grants.token_cache import Issued, TokenCache
from funcmcp._state.key_values import StateFullError
from funcmcp._state.line_limit import LineLimit
from funcmcp._state.sessions.store import StoreUnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from funcmcp._state.caller_values import CallerValues, ValueOwner

GRANT_SECONDS: Final = 90 * 86_400.0
"""Seconds after which an account is forgotten that was not renewed."""

FLOW_SECONDS: Final = 600.0
"""Seconds that a user has for connecting an account."""

NEVER_SECONDS: Final = 10 * 365 * 86_400.0
"""Seconds for which a token is used that does not expire: longer than an account is stored."""

_LEASE_SECONDS: Final = 30.0
_WAIT_SECONDS: Final = 35.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 1.0
_MAX_STORED_SCOPES, _MAX_SCOPE = 50, 255

_MEMBERS: Final[Mapping[str, Mapping[str, Any]]] = {
    "grant": {"access_token": str, "until": (int, float)},
    "pending": {"code": str, "attempts": int, "grant": dict},
    "flow": {"id": str, "verifier": str, "person": str, "cookie": str, "scopes": list},
    "scopes": {"scopes": list},
    "failure": {"text": str},
}
"""The members of each kind of record. A record without them, of another version, counts as none."""


class Tokens(NamedTuple):
    """What an authorization server has issued.

    Attributes:
        access_token: The access token.
        until: When it has to be renewed, in seconds since 1970.
        refresh_token: What renews it; None if it can't be renewed, or, after a renewal, remains the same.
        scopes: The scopes that it has; None for those that were requested.
    """

    access_token: str
    until: float
    refresh_token: str | None
    scopes: tuple[str, ...] | None

    def __repr__(self) -> str:
        return f"Tokens(..., until={self.until!r}, scopes={self.scopes!r})"


class AccountClient(Protocol):
    """This server as a client of an authorization server."""

    async def tokens(self, form: Mapping[str, str], now: float) -> Tokens:
        """Return the tokens for a code or a refresh token.

        Raises:
            UpstreamTokenError: There are none. Its reason is ``"sign_in"`` if the server refuses the form.
        """

    async def revoke(self, access_token: str, refresh_token: str | None) -> bool:
        """End a grant at the authorization server; return whether that has happened. It raises nothing."""


class Accounts:
    """The accounts of all users at one service. Each async method may raise StoreUnavailableError.

    Args:
        title: The name of the service, for people.
        name: Its name in the log.
        prefix: The beginning of the names of its values.
        client: This server as a client of the service.
        open_values: Returns the values of callers.
        clock: Returns seconds since 1970.

    Attributes:
        title: The name of the service, for people.
    """

    def __init__(
        self,
        title: str,
        name: str,
        prefix: str,
        client: AccountClient,
        open_values: Callable[[], CallerValues],
        clock: Callable[[], float],
    ) -> None:
        self.title = title
        self._service = name
        self._prefix = prefix
        self._client = client
        self._open_values = open_values
        self._clock = clock
        self._renewals = TokenCache(clock)
        self._log = LineLimit()

    async def read(self, owner: ValueOwner, kind: str) -> dict[str, Any] | None:
        """Return a record of a user; None if there is none that this version can read."""
        return _record(kind, await self._open_values().get(owner, self._name(kind)))

    async def write(self, owner: ValueOwner, kind: str, record: Mapping[str, Any], seconds: float) -> None:
        """Store a record of a user for a number of seconds."""
        await self._open_values().put(owner, self._name(kind), _encoded(record), seconds)

    async def remove(self, owner: ValueOwner, kind: str) -> bool:
        """Remove a record of a user; return whether there was one."""
        return await self._open_values().remove(owner, self._name(kind))

    async def change(
        self,
        owner: ValueOwner,
        kind: str,
        function: Callable[[dict[str, Any] | None], dict[str, Any] | None],
        seconds: float,
    ) -> None:
        """Change a record of a user without losing the changes of others.

        Args:
            owner: Whose record it is.
            kind: The kind of the record.
            function: Takes the record, or None if there is none. It returns another one, None to remove it, or the same
                object to leave it. It is called again if the record was changed in the meantime.
            seconds: Seconds until the record ends.
        """

        def change(value: bytes | None) -> bytes | None:
            record = _record(kind, value)
            changed = function(record)
            if changed is record:
                return value
            return None if changed is None else _encoded(changed)

        await self._open_values().change(owner, self._name(kind), change, seconds)

    async def bind_flow(self, owner: ValueOwner, identifier: str, cookie: str) -> dict[str, Any] | None:
        """Bind the flow with an id to a browser; return the flow, None if it has ended or another one has begun.

        Args:
            owner: Whose flow it is.
            identifier: The id of the flow.
            cookie: The digest of the cookie of the browser.
        """
        bound: dict[str, Any] | None = None

        def bind(flow: dict[str, Any] | None) -> dict[str, Any] | None:
            nonlocal bound
            bound = None
            if flow is None or flow["id"] != identifier:
                return flow
            bound = {**flow, "cookie": cookie}
            return bound

        await self.change(owner, "flow", bind, FLOW_SECONDS)
        return bound

    async def take_flow(self, owner: ValueOwner, identifier: str) -> bool:
        """Remove the flow with an id; return False if another request has done it, or has begun another flow."""
        is_taken = False

        def take(flow: dict[str, Any] | None) -> dict[str, Any] | None:
            nonlocal is_taken
            is_taken = flow is not None and flow["id"] == identifier
            return None if is_taken else flow

        await self.change(owner, "flow", take, FLOW_SECONDS)
        return is_taken

    async def connect(self, owner: ValueOwner, grant: Mapping[str, Any]) -> None:
        """Store an account that the user has connected."""
        await self.write(owner, "grant", grant, GRANT_SECONDS)
        await self.remove(owner, "scopes")

    async def count_attempt(self, owner: ValueOwner, code: str, attempt: int) -> dict[str, Any] | None:
        """Count an attempt at the code of a pending account; return the account, None if another call was faster."""
        counted: dict[str, Any] | None = None

        def count(pending: dict[str, Any] | None) -> dict[str, Any] | None:
            nonlocal counted
            counted = None
            if pending is None or (pending["code"], pending["attempts"]) != (code, attempt):
                return pending
            counted = {**pending, "attempts": attempt + 1}
            return counted

        await self.change(owner, "pending", count, FLOW_SECONDS)
        return counted

    async def token(self, owner: ValueOwner) -> str:
        """Return the token of an account, renewed if it is about to expire.

        Raises:
            UpstreamTokenError: There is none. With the reason ``"sign_in"`` the account has to be connected.
        """
        grant = await self.read(owner, "grant")
        if grant is None:
            raise UpstreamTokenError(
                "sign_in", f"The account at {self.title} is not connected. Call again to connect it."
            )
        if self._clock() < grant["until"]:
            token: str = grant["access_token"]
            return token
        if not isinstance(grant.get("refresh_token"), str):
            await self._forget(owner, grant["access_token"])
            raise self._ended()
        stale = grant["access_token"]
        return await self._renewals.get((owner.mark, _digest(stale)), lambda: self._renewed(owner, stale))

    async def finish(self, seconds: float) -> None:
        """Wait for renewals whose callers have gone, at most so many seconds: a refresh token may serve once."""
        await self._renewals.finish(seconds)

    async def refuse(self, owner: ValueOwner, token: str) -> None:
        """Renew an account whose token the service has refused, with the next call. Forget it if that is impossible."""

        def refuse(grant: dict[str, Any] | None) -> dict[str, Any] | None:
            if grant is None or grant["access_token"] != token:  # it was renewed meanwhile
                return grant
            return {**grant, "until": 0} if isinstance(grant.get("refresh_token"), str) else None

        await self.change(owner, "grant", refuse, GRANT_SECONDS)

    async def end(self, owner: ValueOwner) -> bool:
        """Forget an account and what has begun to connect one; return whether the service has ended it, too."""
        grant = await self.read(owner, "grant")
        for kind in _MEMBERS:
            await self.remove(owner, kind)
        if grant is None:
            return False
        return await self._client.revoke(grant["access_token"], grant.get("refresh_token"))

    async def _renewed(self, owner: ValueOwner, stale: str) -> Issued:
        """Return the token that replaces a stale one, from this instance or from another one."""
        deadline, pause = monotonic() + _WAIT_SECONDS, _FIRST_PAUSE
        while True:
            current = await self.read(owner, "grant")
            if current is None:
                raise self._ended()
            if current["access_token"] != stale or self._clock() < current["until"]:
                return Issued(current["access_token"], current["until"])
            if not self._is_leased(current):
                held = await self._lease(owner, stale)
                if held is not None:
                    return await self._renew(owner, held)
            if monotonic() >= deadline:
                raise UpstreamTokenError("unavailable", f"{self.title} takes too long. Try again later.")
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    async def _renew(self, owner: ValueOwner, held: dict[str, Any]) -> Issued:
        """Renew an account whose lease this caller has."""
        stale = held["access_token"]
        form = {"grant_type": "refresh_token", "refresh_token": held["refresh_token"]}
        try:
            tokens = await self._client.tokens(form, self._clock())
        except UpstreamTokenError as error:
            if error.reason == "sign_in":
                newest = await self.read(owner, "grant")
                if newest is not None and newest["access_token"] != stale:  # the lease has ended before the renewal
                    return Issued(newest["access_token"], newest["until"])
                await self._forget(owner, stale)
                raise self._ended() from None
            await self._replace(owner, stale, {"lease": 0})
            raise
        members: dict[str, Any] = {"access_token": tokens.access_token, "until": tokens.until, "lease": 0}
        if tokens.refresh_token is not None:
            members["refresh_token"] = tokens.refresh_token
        if tokens.scopes is not None:
            members["scopes"] = list(tokens.scopes)
        try:
            is_stored = await self._replace(owner, stale, members)
        except (StateFullError, StoreUnavailableError) as error:
            # The token is valid all the same. If the refresh token was replaced, the user is asked again later.
            self._log.write("event=grant_not_stored service=%s kind=%s", self._service, type(error).__name__)
            is_stored = True
        if not is_stored:
            await self._client.revoke(tokens.access_token, tokens.refresh_token)
            raise self._ended()
        return Issued(tokens.access_token, tokens.until)

    async def _lease(self, owner: ValueOwner, stale: str) -> dict[str, Any] | None:
        """Take the lease of an account with a stale token; return its record, None if another caller has the lease."""
        held: dict[str, Any] | None = None

        def take(current: dict[str, Any] | None) -> dict[str, Any] | None:
            nonlocal held
            held = None
            if current is None or current["access_token"] != stale or self._is_leased(current):
                return current
            held = {**current, "lease": self._clock() + _LEASE_SECONDS}
            return held

        await self.change(owner, "grant", take, GRANT_SECONDS)
        return held

    async def _replace(self, owner: ValueOwner, stale: str, members: Mapping[str, Any]) -> bool:
        """Change members of an account; return False if its token is not the stale one any more."""
        is_same = False

        def renew(current: dict[str, Any] | None) -> dict[str, Any] | None:
            nonlocal is_same
            is_same = current is not None and current["access_token"] == stale
            return {**current, **members} if current is not None and is_same else current

        await self.change(owner, "grant", renew, GRANT_SECONDS)
        return is_same

    async def _forget(self, owner: ValueOwner, token: str) -> None:
        """Remove an account unless it has another token meanwhile."""

        def remove(current: dict[str, Any] | None) -> dict[str, Any] | None:
            return None if current is not None and current["access_token"] == token else current

        await self.change(owner, "grant", remove, GRANT_SECONDS)

    def _is_leased(self, grant: Mapping[str, Any]) -> bool:
        """Return whether another caller renews an account. The clock of that caller may be ahead."""
        lease = grant.get("lease")
        return isinstance(lease, int | float) and 0 < lease - self._clock() <= 2 * _LEASE_SECONDS

    def _ended(self) -> UpstreamTokenError:
        return UpstreamTokenError("sign_in", f"The account at {self.title} has to be connected anew. Call again.")

    def _name(self, kind: str) -> str:
        return f"{self._prefix} {kind}"


def kept_scopes(scopes: Iterable[str]) -> tuple[str, ...] | None:
    """Return those scopes of an answer that are stored: a limited number of limited length. None if there are none."""
    short = [scope for scope in dict.fromkeys(scopes) if len(scope) <= _MAX_SCOPE]
    return tuple(short[:_MAX_STORED_SCOPES]) or None


def _record(kind: str, value: bytes | None) -> dict[str, Any] | None:
    """Return the record in a value; None if this version can't read it."""
    try:
        record = None if value is None else json.loads(value)
    except ValueError:
        return None
    if not isinstance(record, dict) or record.get("v") != 1:
        return None
    is_readable = all(isinstance(record.get(name), kinds) for name, kinds in _MEMBERS[kind].items())
    return record if is_readable else None


def _encoded(record: Mapping[str, Any]) -> bytes:
    return json.dumps({"v": 1, **record}).encode()


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
