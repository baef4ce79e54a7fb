"""Sign-ins in a store: refresh tokens and codes that work once, for all instances of a server.

How it works: a sign-in is one record. Its refresh tokens contain the id of the sign-in and a number, and the record has
the number of the only token that is valid. A refresh changes the record in two steps:

1. One caller takes the *lease*: it writes a time until which others wait. It asks the identity provider.
2. It writes the next number together with its answer, and without the lease.

Both are `SignInStore.replace`, which fails if another caller has changed the record. So of any number of parallel
refreshes one asks the provider, and there is one next token. If the process with the lease dies, the lease ends by its
time.

A token with the number before the valid one is repeated, not stolen, if it comes within 30 seconds: the reply was lost,
or the client sent it twice. The same answer is returned. Any other old token is taken for a stolen one. The record is
removed, and with it the whole sign-in.

An access token whose claims are too long for a header (`user_claims`) refers to the record. The record of a sign-in
that can't be renewed is stored for such tokens only, until they expire.

Everything fails closed: a sign-in without a record has ended, also if the store has lost the record.

A record has named members and a version (`funcmcp._state.records`). A process of another version renews the sign-in,
and keeps the members that it does not know. Version 0.1 wrote lists, which are still read.

The key of a record is a digest of the id, and its value is encrypted with a key that is derived from the keys of the
server and the id. The id is in the tokens of the client only, encrypted. So neither the store alone nor the store with
the keys of the server opens a record.

Source: RFC 9700 section 4.14.2 (reuse of refresh tokens), RFC 6749 section 4.1.2 (reuse of codes), RFC 7009.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import os
from contextlib import suppress
from dataclasses import dataclass, field, replace
from time import monotonic
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from funcmcp._oauth_proxy.refresh_tokens import log_unreadable, refresh_members, refresh_of
from funcmcp._oauth_proxy.upstream import UpstreamRefusedError, UpstreamUnavailableError
from funcmcp._oauth_proxy.web import OAuthError
from funcmcp._state.key_values import SIGN_INS
from funcmcp._state.records import VERSION, to_record, value_of, with_key
from funcmcp._state.seal import base64url
from funcmcp._state.sessions.store import StoreUnavailableError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    from funcmcp._oauth_proxy.refresh_tokens import Refresh
    from funcmcp._oauth_proxy.upstream import SignIn, Upstream
    from funcmcp._state.key_values import SignInStore
    from funcmcp._state.records import Extra, Value
    from funcmcp._state.seal import KeyRing

T = TypeVar("T")

LIFETIME_SECONDS = 90 * 86_400
"""Maximum number of seconds from a sign-in to the end of its refresh tokens."""

IDLE_SECONDS = 30 * 86_400
"""Seconds after which a sign-in ends that has not been renewed."""

REPEAT_SECONDS = 30
"""Seconds in which a repeated refresh gets the same answer."""

MAX_PER_USER = 100
"""Sign-ins of one user. A further one ends the oldest."""

_ACCESS_SECONDS = 86_400
"""An access token of a sign-in is valid for so long at most, and may refer to the record."""

_LEASE_SECONDS = 40
_UPSTREAM_SECONDS = 20
"""The provider has less time than the lease, so that the answer is stored before another caller asks. Userinfo and the
functions of the author take 15 more at most."""

_WAIT_SECONDS = 5.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 0.5
_WRITE_PAUSES = (0.2, 0.5, 1.0)
"""Seconds between attempts to store what the provider gives once only."""

_MAX_CONFLICTS = 100
_MAX_TOKEN = 2048
_RECORD_OF_0_1 = ("refresh", "number", "lease", "answer", "request", "answered")
"""The members of records of version 0.1, which were lists."""

_REFRESH, _ENDED, _CLAIMS = "oauth stored refresh", "oauth ended sign-in", "oauth stored claims"
_USERS, _USERS_OF_TOKENS = "oauth users", "oauth users of tokens"


class SignInEndedError(Exception):
    """A sign-in does not exist in the store, or has just ended.

    Args:
        reused: The sign-in, if it ends because an old refresh token was used again.
    """

    def __init__(self, reused: Refresh | None = None) -> None:
        super().__init__("The sign-in has ended.")
        self.reused = reused


class SignInBusyError(Exception):
    """Other requests change the sign-in, and take long."""


class StoredToken(NamedTuple):
    """What a refresh token contains.

    Attributes:
        sign_in: The id of the sign-in.
        number: The number of the token.
        client: The client's key.
        extra: Members of the token that this version does not know.
    """

    sign_in: str
    number: int
    client: str
    extra: Extra = MappingProxyType({})

    def __repr__(self) -> str:
        return f"StoredToken(..., number={self.number!r}, client={self.client!r})"


@dataclass(frozen=True, slots=True)
class _Record:
    """A sign-in in the store.

    Attributes:
        refresh: The user, the client, the scopes, and what renews the sign-in at the identity provider.
        number: The number of the valid refresh token.
        lease: Until when one caller uses the provider, in seconds since 1970; 0 if there is none.
        answer: The answer to the token with the number before; "" if there is none.
        request: What that token was sent with.
        answered: When it was answered, in seconds since 1970.
        extra: Members of the record that this version does not know.
    """

    refresh: Refresh
    number: int = 0
    lease: float = 0.0
    answer: str = field(default="", repr=False)
    request: str = ""
    answered: float = 0.0
    extra: Extra = field(default_factory=dict)


class _Read(NamedTuple):
    """A record as it was read or written.

    Attributes:
        sign_in: The id of the sign-in.
        value: The value in the store.
        record: The record in it.
    """

    sign_in: str
    value: str
    record: _Record

    def __repr__(self) -> str:
        return f"_Read(..., {self.record!r})"


class StoredSignIns:
    """The sign-ins of a proxy in a store. Each async method may raise StoreUnavailableError.

    Args:
        store: The store.
        keys: The keys of the proxy.
        upstream: The identity provider.
        seconds: Seconds from a sign-in to its end.
        clock: A function that returns seconds since 1970.

    Attributes:
        store: The store.
    """

    def __init__(
        self, store: SignInStore, keys: KeyRing, upstream: Upstream, seconds: float, clock: Callable[[], float]
    ) -> None:
        self.store = store
        self._keys = keys
        self._upstream = upstream
        self._seconds = seconds
        self._clock = clock
        self._tasks: set[asyncio.Task[Any]] = set()

    async def use_once(self, kind: str, text: str, seconds: float) -> bool:
        """Return whether a text is used for the first time.

        Args:
            kind: What the text is, such as "code".
            text: The text. It has to be unique among all servers that share the store.
            seconds: Seconds for which the use is remembered: at least as long as the text is valid.
        """
        return await self.store.take(_key(kind, text), base64url(os.urandom(16)), seconds)

    async def give_back(self, kind: str, text: str) -> None:
        """Allow a text to be used again, because its use had no effect."""
        with suppress(StoreUnavailableError):  # then it stays used
            await self.store.remove(_key(kind, text))

    async def begin(self, sign_in: str, refresh: Refresh) -> str:
        """Store a new sign-in; return its first refresh token.

        Args:
            sign_in: The id, which has 256 random bits.
            refresh: The sign-in. If it can't be renewed, the refresh token is of no use.
        """
        value, seconds = self._conceal(sign_in, _Record(refresh)), self._lifetime(refresh)
        if not await _persist(lambda: self.store.take(_sign_in_key(sign_in), value, seconds)):
            raise SignInEndedError  # the id has been used
        try:
            await self._list(refresh, _sign_in_key(sign_in))
        except BaseException:
            with suppress(StoreUnavailableError):  # then it expires: nobody has a token of it
                await self.store.remove(_sign_in_key(sign_in))
            raise
        return self._token(StoredToken(sign_in, 0, refresh.client))

    def read(self, text: str) -> StoredToken | None:
        """Return what a refresh token contains; None if it is not one of the proxy's."""
        payload = self._keys.reveal(_REFRESH, text) if len(text) <= _MAX_TOKEN else None
        return _token_of(value_of(payload))

    def reference(self, sign_in: str) -> str:
        """Return a reference to a sign-in, for an access token whose claims are in the store."""
        return self._keys.conceal(_CLAIMS, sign_in.encode())

    async def referred(self, reference: str) -> Refresh | None:
        """Return the sign-in of an access token; None if it has ended, or its key has been removed."""
        sign_in = self._keys.reveal(_CLAIMS, reference)
        current = None if sign_in is None else await self._stored(sign_in.decode())
        return None if current is None else current.record.refresh

    async def find(self, sign_in: str) -> Refresh | None:
        """Return a sign-in; None if it has ended."""
        current = await self._find(sign_in)
        return None if current is None else current.record.refresh

    async def renew(
        self,
        token: StoredToken,
        request: str,
        issue: Callable[[Refresh, SignIn, str], Awaitable[tuple[Refresh, str]]],
    ) -> str:
        """Renew a sign-in at the identity provider, and return the answer for the client.

        Args:
            token: The refresh token.
            request: What the client has sent with it. A repeated token gets the answer to the same request only.
            issue: Is called with the renewed sign-in, what the provider says about it, and the next refresh token. It
                returns the sign-in as it is to be stored, and the answer. It raises OAuthError if the user may not use
                the server any more: then the sign-in ends.

        Raises:
            SignInEndedError: The sign-in has ended, or ends now because the token was used before.
            SignInBusyError: Another request renews it, and takes long.
            UpstreamRefusedError: The provider has ended the sign-in.
            UpstreamUnavailableError: The provider can't be reached. The token remains valid.
        """
        held = await self._hold(token.sign_in, token.number, request)
        if isinstance(held, str):
            return held
        return await self._complete(self._renew(held, token, request, issue))

    async def end(self, sign_in: str) -> Refresh | None:
        """End a sign-in; return it, or None if it has ended before."""
        refresh = await self.find(sign_in)
        await self.store.remove(_sign_in_key(sign_in))
        return refresh

    async def sign_out(self, subject: str) -> None:
        """End all sign-ins of a user."""
        for name in (*self._index_keys(subject), *self._index_keys(subject, _USERS_OF_TOKENS)):
            for _ in range(_MAX_CONFLICTS):
                value = await self.store.get(name)
                if value is None:
                    break
                keys, extra = self._listed(subject, value)
                for key in keys:
                    await self.store.remove(key)
                if await self.store.replace(name, value, self._conceal_list(subject, [], extra), 1):
                    break
            else:
                raise StoreUnavailableError(store=SIGN_INS.store)

    async def _renew(
        self,
        held: _Read,
        token: StoredToken,
        request: str,
        issue: Callable[[Refresh, SignIn, str], Awaitable[tuple[Refresh, str]]],
    ) -> str:
        """Renew a sign-in whose lease this caller has."""
        try:
            refresh, sign_in = await self._ask_upstream(held)
        except UpstreamRefusedError:
            answer = await self._answer_of_others(held, request)
            if answer is None:
                raise
            return answer
        number = held.record.number + 1
        next_token = self._token(token._replace(number=number))
        try:
            refresh, answer = await issue(refresh, sign_in, next_token)
        except OAuthError:
            await self._discard(held)
            raise
        except BaseException:
            await self._release(held, refresh)
            raise
        record = _Record(
            refresh, number, answer=answer, request=request, answered=self._clock(), extra=held.record.extra
        )
        while not await self._replace(held, record):
            # The sign-in has ended, or the lease has, and another caller was faster or is about to be.
            current = await self._hold(held.sign_in, number - 1, request)
            if isinstance(current, str):
                return current
            held = current
        return answer

    async def _answer_of_others(self, held: _Read, request: str) -> str | None:
        """End a sign-in that the provider has refused to renew, and return None.

        If this caller has lost the lease, another one may have renewed the sign-in with the same token of the provider,
        which is good for one use. Then the sign-in goes on, and the answer of the other caller is returned.
        """
        if await self._discard(held):
            return None
        current = await self._find(held.sign_in)
        if current is None:
            return None
        record = current.record
        if record.number == held.record.number:  # the other caller has not finished
            raise SignInBusyError
        is_same = record.number == held.record.number + 1 and record.request == request
        return record.answer if is_same else None

    async def _ask_upstream(self, held: _Read) -> tuple[Refresh, SignIn]:
        """Renew a sign-in at the provider; return it, and what the provider says."""
        refresh = held.record.refresh
        try:
            async with asyncio.timeout(_UPSTREAM_SECONDS):
                renewed = await self._upstream.refresh(refresh.upstream_token, refresh.user.subject)
        except UpstreamRefusedError:
            raise
        except TimeoutError as error:
            await self._release(held, refresh)
            raise UpstreamUnavailableError("no answer in time") from error
        except BaseException:
            await self._release(held, refresh)
            raise
        return replace(refresh, upstream_token=renewed.refresh_token or refresh.upstream_token), renewed

    async def _hold(self, sign_in: str, number: int, request: str) -> _Read | str:
        """Take the lease of a sign-in; return the record, or the answer that its refresh token has got before.

        Args:
            sign_in: The id of the sign-in.
            number: The number of the refresh token.
            request: What the refresh token was sent with.
        """
        deadline = monotonic() + _WAIT_SECONDS
        pause = _FIRST_PAUSE
        while True:
            current = await self._find(sign_in)
            if current is None:
                raise SignInEndedError
            if number != current.record.number:
                return await self._repeated(current, number, request)
            now = self._clock()
            if not 0 < current.record.lease - now <= 2 * _LEASE_SECONDS:  # the clock of the holder may be ahead
                record = replace(current.record, lease=now + _LEASE_SECONDS)
                value = self._conceal(sign_in, record)
                seconds = self._lifetime(record.refresh)
                if await self.store.replace(_sign_in_key(sign_in), current.value, value, seconds):
                    return _Read(sign_in, value, record)
            if monotonic() >= deadline:
                raise SignInBusyError
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    async def _repeated(self, current: _Read, number: int, request: str) -> str:
        """Return the answer that a refresh token has got just before; end the sign-in if the token is an older one."""
        record = current.record
        is_repeated = number == record.number - 1 and abs(self._clock() - record.answered) < REPEAT_SECONDS
        if is_repeated and request == record.request:
            return record.answer
        if is_repeated:
            raise SignInEndedError
        await self.store.remove(_sign_in_key(current.sign_in))
        raise SignInEndedError(record.refresh)

    async def _release(self, held: _Read, refresh: Refresh) -> None:
        """Give the lease back, so that the same refresh token can be sent again. Otherwise it ends by its time."""
        with suppress(StoreUnavailableError):
            await self._replace(held, replace(held.record, refresh=refresh, lease=0.0))

    async def _replace(self, held: _Read, record: _Record) -> bool:
        """Store a record in place of the one whose lease this caller has; return False if another caller was faster."""
        key, value = _sign_in_key(held.sign_in), self._conceal(held.sign_in, record)
        seconds = self._lifetime(record.refresh)
        return await _persist(lambda: self.store.replace(key, held.value, value, seconds))

    async def _discard(self, held: _Read) -> bool:
        """End a sign-in whose lease this caller has; return False if another caller has changed it in the meantime."""
        with suppress(StoreUnavailableError):  # the provider refuses it the next time, too
            ended = self._keys.conceal(_ENDED, b"")
            return await self.store.replace(_sign_in_key(held.sign_in), held.value, ended, 1.0)
        return True

    async def finish(self, seconds: float) -> None:
        """Wait for renewals whose clients have gone, so that what the provider has given is stored.

        Args:
            seconds: Maximum number of seconds.
        """
        loop = asyncio.get_running_loop()
        running = {task for task in self._tasks if task.get_loop() is loop}
        if running:
            await asyncio.wait(running, timeout=seconds)

    async def _complete(self, work: Coroutine[Any, Any, T]) -> T:
        """Return the result of *work*, which continues if the caller is cancelled: the provider has been asked."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._forget)
        return await asyncio.shield(task)

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # which nobody retrieves if the caller does not wait any more

    async def _find(self, sign_in: str) -> _Read | None:
        """Return a sign-in that can be renewed."""
        current = await self._stored(sign_in)
        if current is None or self._clock() - current.record.refresh.signed_in >= self._seconds:
            return None
        return current

    async def _stored(self, sign_in: str) -> _Read | None:
        value = await self.store.get(_sign_in_key(sign_in))
        payload = None if value is None else self._keys.reveal(_purpose(sign_in), value)
        record = _record_of(value_of(payload))
        if payload is not None and record is None:
            log_unreadable()
        return None if value is None or record is None else _Read(sign_in, value, record)

    async def _list(self, refresh: Refresh, key: str) -> None:
        """Add a sign-in to those of a user, and end the oldest ones if there are too many.

        Those that can't be renewed have a list of their own, so that they don't end any that can.
        """
        subject, lifetime = refresh.user.subject, max(self._seconds, _ACCESS_SECONDS)
        name = self._index_keys(subject, _USERS if refresh.upstream_token else _USERS_OF_TOKENS)[0]
        for _ in range(_MAX_CONFLICTS):
            value = await self.store.get(name)
            keys, extra = ([], {}) if value is None else self._listed(subject, value)
            listed = self._conceal_list(subject, [*keys, key][-MAX_PER_USER:], extra)
            if value is None:
                is_written = await self.store.take(name, listed, lifetime)
            else:
                is_written = await self.store.replace(name, value, listed, lifetime)
            if is_written:
                for oldest in [*keys, key][:-MAX_PER_USER]:
                    await self.store.remove(oldest)
                return
        raise StoreUnavailableError(store=SIGN_INS.store)

    def _index_keys(self, subject: str, purpose: str = _USERS) -> list[str]:
        """Return the keys of a list of a user's sign-ins, one for each key of the server."""
        digests = [hmac.digest(key, subject.encode(), hashlib.sha256) for key in self._keys.derive(purpose)]
        return [digest.hex() for digest in digests]

    def _conceal_list(self, subject: str, keys: list[str], extra: Extra) -> str:
        return self._keys.conceal(f"oauth sign-ins of {subject}", to_record({"keys": keys}, extra))

    def _listed(self, subject: str, value: str) -> tuple[list[str], Extra]:
        """Return the keys of the sign-ins in the list of a user, and the members that this version does not know."""
        match value_of(self._keys.reveal(f"oauth sign-ins of {subject}", value)):
            case {"v": 1, "keys": list(keys), **extra}:
                return _texts_in(keys), extra
            case list(keys):  # of version 0.1
                return _texts_in(keys), {}
        return [], {}

    def _conceal(self, sign_in: str, record: _Record) -> str:
        stored_refresh, version = with_key(refresh_members(record.refresh), record.refresh.jkt)
        members = {
            "refresh": {**record.refresh.extra, **stored_refresh, "v": version},
            "number": record.number,
            "lease": record.lease,
            "answer": record.answer,
            "request": record.request,
            "answered": record.answered,
        }
        return self._keys.conceal(_purpose(sign_in), to_record(members, record.extra))

    def _token(self, token: StoredToken) -> str:
        members = {"sign_in": token.sign_in, "number": token.number, "client": token.client}
        return self._keys.conceal(_REFRESH, to_record(members, token.extra))

    def _lifetime(self, refresh: Refresh) -> float:
        """Return the seconds until a sign-in ends that is not renewed any more, or its last access token does."""
        if not refresh.upstream_token:
            return _ACCESS_SECONDS
        return max(_ACCESS_SECONDS, min(IDLE_SECONDS, refresh.signed_in + self._seconds - self._clock()))


def _token_of(value: Value) -> StoredToken | None:
    """Return what a refresh token contains; None if this version can't read it."""
    match value:
        case {"v": 1, "sign_in": str(sign_in), "number": int(number), "client": str(client), **extra}:
            return StoredToken(sign_in, number, client, extra)
        case [str(sign_in), int(number), str(client)]:  # of version 0.1
            return StoredToken(sign_in, number, client)
    return None


def _record_of(value: Value) -> _Record | None:
    """Return the sign-in in a record; None if this version can't read it."""
    match value:
        case [list(), int(), _, str(), str(), _]:  # of version 0.1
            return _record_of({**dict(zip(_RECORD_OF_0_1, value, strict=True)), "v": VERSION})
        case {
            "v": 1,
            "refresh": dict() | list() as stored_refresh,
            "number": int(number),
            "lease": int() | float() as lease,
            "answer": str(answer),
            "request": str(request),
            "answered": int() | float() as answered,
            **extra,
        }:
            refresh = refresh_of(stored_refresh)
            if refresh is not None:
                return _Record(refresh, number, lease, answer, request, answered, extra)
    return None


def _texts_in(values: list[Any]) -> list[str]:
    return [value for value in values if isinstance(value, str)]


async def _persist(write: Callable[[], Awaitable[bool]]) -> bool:
    """Return the result of a write that is sent again while the store is away; raise StoreUnavailableError."""
    for pause in _WRITE_PAUSES:
        try:
            return await write()
        except StoreUnavailableError:
            await asyncio.sleep(pause)
    return await write()


def new_id() -> str:
    """Return the id of a new sign-in, which has 256 random bits."""
    return base64url(os.urandom(32))


def _key(kind: str, text: str) -> str:
    return hashlib.sha256(f"{kind} {text}".encode()).hexdigest()


def _sign_in_key(sign_in: str) -> str:
    return _key("sign-in", sign_in)


def _purpose(sign_in: str) -> str:
    return f"oauth sign-in {sign_in}"
