"""Cassettes: the calls of a client to a server in a JSON file, and transports that record and play them.

How it works: a cassette has JSON-RPC messages, and nothing of the transport, so a recording over stdio can be played
over HTTP. `RecordingTransport` passes on the messages of a client to another transport, and writes each call with its
response, and the messages of the server and the client between them. `ReplayTransport` takes the place of a server. It
plays each call once: the next one that is equal to the request and whose predecessors have been played. A predecessor
is a call that had ended before this one began, so calls that ran side by side may come in another order.

Clients begin a connection and read lists as they like, and some do so before each call. Such requests (`_FREE`) have no
place in the order, and can be repeated.

Two requests are equal if their methods and params are. ``_meta`` does not count, which has ids of traces and the names
of clients, and `initialize` counts by its revision. Secrets are replaced before anything is written, and in a request
before it is compared: values by the names of their members, and texts that have the form of a token.
"""

from __future__ import annotations

import asyncio
import difflib
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from funcmcp import __version__
from funcmcp._client.errors import one_line
from funcmcp._client.messages import is_response
from funcmcp._objects.mappings import only, without
from funcmcp._objects.public_names import public
from funcmcp._protocol import headers as header_names
from funcmcp._protocol.errors import ClientError
from funcmcp._protocol.methods import FEATURE_LISTS, repeating_headers
from funcmcp._state.outage import Outage
from funcmcp._text.replacing import replacement_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from funcmcp._client.transport import Message, Receive, Transport

_VERSION = 1
_MAX_CALLS = 10_000
_MAX_PAGES = 1_000
_MAX_BYTES = 256 * 1024 * 1024
REMOVED = "REMOVED"
"""What stands in a cassette in place of a secret."""

_SECRET_NAMES = frozenset(
    {
        "accesstoken",
        "apikey",
        "authorization",
        "clientsecret",
        "cookie",
        "credential",
        "credentials",
        "idtoken",
        "passphrase",
        "passwd",
        "password",
        "privatekey",
        "refreshtoken",
        "secret",
        "token",
    }
)
"""Names of members with secrets, in lower case and without separators."""

_SECRET_WORDS = _SECRET_NAMES | {"key", "keys", "pass", "pat"}
"""Last words of the names of environment variables with secrets, such as ``OPENAI_API_KEY``."""

_SEPARATORS = re.compile(r"[^a-z0-9]")
_SECRET_TEXTS = re.compile(
    r"(?<=[Bb]earer )[\w.~+/=-]{8,}"
    r"|\beyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]*"
    r"|\b(?:sk|pk|rk)[-_][A-Za-z0-9_-]{20,}"
    r"|\bgh[pousr]_[A-Za-z0-9]{20,}"
    r"|\bxox[abprs]-[A-Za-z0-9-]{10,}"
    r"|\bAKIA[A-Z0-9]{16}\b",
    re.ASCII,
)
"""Bearer tokens, JWTs, and keys of OpenAI, Stripe, GitHub, Slack and AWS."""

_FREE = frozenset({"initialize", "server/discover", "ping", "logging/setLevel", *FEATURE_LISTS})
"""Methods that do not depend on what was called before."""

_MIN_SECRET = 6
"""Characters of a secret that is looked for in other texts. A shorter one may be a part of a word."""

_MIN_VARIABLE = 8
"""The same of an environment variable, which may have the name of a secret by accident."""

_FIELDS_OF_A_CALL = (*sorted(repeating_headers()), header_names.PARAM_PREFIX)

_TRACE = ("traceparent", "tracestate", "baggage")


@public("funcmcp.testing")
class CassetteError(ClientError):
    """A cassette can't be read, or has no call that is equal to a request."""


class Call:
    """A request, its response, and what came between them.

    Attributes:
        request: The method and the params.
        key: What an equal request has in common with it.
        after: How many calls had ended before this one began, without those of the methods in `_FREE`.
        messages: The messages between, each as ``{"from": "server" or "client", "message": {...}}``.
        response: The result or the error; None as long as there is none.
        is_played: Whether the call has been played.
    """

    def __init__(
        self,
        request: dict[str, Any],
        after: int,
        messages: Sequence[dict[str, Any]] = (),
        response: dict[str, Any] | None = None,
    ) -> None:
        self.request: dict[str, Any] = request
        self.key: Any = _key(request)
        self.after: int = after
        self.messages: list[dict[str, Any]] = list(messages)
        self.response: dict[str, Any] | None = response
        self.is_played: bool = False

    @property
    def is_free(self) -> bool:
        """Whether the call has no place in the order."""
        return self.request["method"] in _FREE

    def record(self) -> dict[str, Any]:
        """Return the call as the file has it."""
        record: dict[str, Any] = {"request": self.request}
        if not self.is_free:
            record = {"after": self.after, **record}
        if self.messages:
            record["messages"] = self.messages
        return {**record, "response": self.response}


class Secrets:
    """Replaces secrets in JSON values.

    Args:
        names: Names of members with secrets, beside the usual ones.
        texts: Secrets that are known, such as those in the headers of a client.
    """

    def __init__(self, names: Sequence[str] = (), texts: Sequence[str] = ()) -> None:
        for option, value in (("secrets", names), ("texts", texts)):
            if isinstance(value, str):  # its characters would be names, and the secret would be written
                raise TypeError(f"{option} is a list of texts, such as ['pin'], not one text.")
        self.names = tuple(names)
        self._names = _SECRET_NAMES | {_plain(name) for name in names}
        self._texts = {text for text in texts if len(text) >= _MIN_SECRET}

    def removed(self, value: Any) -> Any:
        """Return a value without secrets. A secret of a member is replaced in later texts, too."""
        if isinstance(value, dict):
            return {name: self._member(name, member) for name, member in value.items()}
        if isinstance(value, list):
            return [self.removed(member) for member in value]
        return self._text(value) if isinstance(value, str) else value

    def _member(self, name: str, value: Any) -> Any:
        if _plain(name) not in self._names or isinstance(value, dict | list | bool) or value is None:
            return self.removed(value)  # a schema describes a member of this name by an object
        if isinstance(value, str) and len(value) >= _MIN_SECRET:
            self._texts.add(value)
        return REMOVED

    def _text(self, text: str) -> str:
        for secret in self._texts:
            text = text.replace(secret, REMOVED)
        return _SECRET_TEXTS.sub(REMOVED, text)


def known_secrets(headers: Mapping[str, str], environment: Mapping[str, str]) -> list[str]:
    """Return the secrets that a client or a server gets from outside: parts of header fields, and some variables."""
    secrets = [part for value in headers.values() for part in value.split()]
    for name, value in environment.items():
        last_word = name.lower().rpartition("_")[2]
        if last_word in _SECRET_WORDS and len(value) >= _MIN_VARIABLE:
            secrets.append(value)
    return secrets


@public("funcmcp.testing")
class Cassette:
    """The recorded calls of a client to a server.

    Args:
        path: The file.
        secrets: Names of arguments and other members whose values are replaced, beside names such as ``password`` and
            ``token``.
        texts: Secrets that are known, such as the token of a client. They are replaced wherever they occur.

    Attributes:
        path: The file.
        mismatches: What was wrong with requests that are not in the cassette.

    Raises:
        TypeError: `secrets` or `texts` is one text in place of a list.
    """

    def __init__(self, path: Path | str, *, secrets: Sequence[str] = (), texts: Sequence[str] = ()) -> None:
        self.path: Path = Path(path)
        self.mismatches: list[str] = []
        self._secrets = Secrets(secrets, texts)
        self._calls: list[Call] = []
        self._ended = 0
        self._is_behind = False
        self._outage = Outage()

    @classmethod
    def load(cls, path: Path | str) -> Cassette:
        """Return the cassette in a file.

        Raises:
            CassetteError: The file does not exist, or is not a cassette.
        """
        file = Path(path)
        try:
            if file.stat().st_size > _MAX_BYTES:
                raise CassetteError(f"{file} has more than {_MAX_BYTES:,} bytes.")
            content: Any = json.loads(file.read_bytes())
            if content["cassette"] != _VERSION:
                raise CassetteError(f"{file} is of a newer version of funcmcp, or not a cassette.")
            cassette = cls(file, secrets=content.get("secrets", ()))
            ordered = 0
            for record in content["calls"]:
                call = _call_of(record, ordered)
                cassette._calls.append(call)
                ordered += not call.is_free
        except OSError as error:
            raise CassetteError(f"There is no cassette {file}: {error.strerror}.") from None
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            raise CassetteError(f"{file} is not a cassette: {one_line(error, 200)}") from None
        return cassette

    def save(self) -> None:
        """Write the file, and its folder if that is missing."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        calls = [call.record() for call in self._calls if call.response is not None]
        content: dict[str, Any] = {"cassette": _VERSION, "recorder": f"funcmcp {__version__}"}
        if self._secrets.names:
            content["secrets"] = list(self._secrets.names)
        text = json.dumps({**content, "calls": calls}, indent=2, ensure_ascii=False)
        with replacement_of(self.path) as draft:
            draft.write_text(text + "\n", encoding="utf-8")

    @property
    def unplayed(self) -> list[str]:
        """The calls that have not been played, as texts such as ``tools/call {"name": "add"}``."""
        return [_summary(call.request) for call in self._calls if not call.is_played]

    def begin(self, message: Message) -> Call:
        """Return a call that is recorded from now on; raise CassetteError if there are too many."""
        if len(self._calls) >= _MAX_CALLS:
            raise CassetteError(f"A cassette may have {_MAX_CALLS:,} calls.")
        call = Call(self._plain(_without_trace(message)), self._ended)
        self._calls.append(call)
        return call

    def add(self, call: Call, sender: str, message: Message) -> None:
        """Add a message of the server or the client to a call."""
        call.messages.append({"from": sender, "message": self._plain(message)})

    def end(self, call: Call, response: Message) -> None:
        """Add the response to a call, and write the file. A failure is logged: the client needs the response."""
        call.response = self._plain(only(response, ("result", "error")))
        self.played(call)
        try:
            self.save()
        except OSError as error:
            self._is_behind = True
            self._outage.begin("The cassette %s can't be written (%s). The calls go on.", self.path, error.strerror)
        else:
            self._is_behind = False
            self._outage.end("The cassette %s is written again, with all calls.", self.path)

    def close(self) -> None:
        """Write the file if it lacks the last calls; raise CassetteError if that fails."""
        if not self._is_behind:
            return
        try:
            self.save()
        except OSError as error:
            raise CassetteError(f"The cassette {self.path} lacks the last calls: {error.strerror}.") from error
        self._is_behind = False

    def take(self, message: Message) -> Call:
        """Return the call that is equal to a request, and mark it as played; raise CassetteError if there is none."""
        key = _key(self._plain(message))
        equal = [call for call in self._calls if call.key == key]
        playable = [call for call in equal if self._is_playable(call)]
        if not playable and equal and equal[-1].is_free:
            playable = equal[-1:]
        if not playable:
            raise self.mismatch(self._text_about(message, key))
        playable[0].is_played = True
        return playable[0]

    def played(self, call: Call) -> None:
        """Count a call whose response has been sent."""
        self._ended += not call.is_free

    def check_answer(self, message: Message, recorded: Message, call: Call) -> None:
        """Raise CassetteError if the client answers a question of the server in another way than it did."""
        answer = self._plain(only(message, ("result", "error")))
        expected = only(recorded, ("result", "error"))
        if answer != expected:
            text = f"{self.path}: another answer during {_summary(call.request)}:\n{_difference(expected, answer)}"
            raise self.mismatch(text)

    def mismatch(self, text: str) -> CassetteError:
        """Return an error, and keep its text."""
        self.mismatches.append(text)
        return CassetteError(text)

    def _is_playable(self, call: Call) -> bool:
        """Return whether a call may come next."""
        return not call.is_played and (call.is_free or call.after <= self._ended)

    def _plain(self, message: Message) -> dict[str, Any]:
        plain: dict[str, Any] = self._secrets.removed(without(message, "jsonrpc"))
        return plain

    def _text_about(self, message: Message, key: Any) -> str:
        """Return why a request has no call, with the difference from the one that was most likely meant."""
        beginning = f"{self.path} has no such request: {_summary(message)}."
        playable = [call for call in self._calls if self._is_playable(call)]
        if all(call.is_free for call in playable) and message["method"] not in _FREE:
            return f"{beginning} All calls have been played."
        similar = [call for call in playable or self._calls if call.request["method"] == message["method"]]
        if not similar:
            return f"{beginning} It has no {message['method']} here."
        expected = similar[0]
        earlier = any(call.key == key for call in self._calls)
        note = " An equal one is in another place of the order." if earlier else ""
        return f"{beginning}{note} The next call is:\n{_difference(expected.key, key)}"


class RecordingTransport:
    """A transport that records what passes through it.

    Args:
        inner: Carries the messages.
        cassette: Gets the calls.
    """

    def __init__(self, inner: Transport, cassette: Cassette) -> None:
        self.is_http = inner.is_http
        self.session_id: str | None = None
        self._inner = inner
        self._cassette = cassette
        self._receive: Receive = _ignore
        self._running: list[Call] = []
        self._between: list[Message] = []
        self._asked: dict[Any, Call] = {}  # by the id of the server's question
        self._has_tools = False

    async def connect(self, receive: Receive) -> None:
        """Open the connection; see `Transport.connect`."""
        self._receive = receive
        await self._inner.connect(self._received)

    async def request(self, message: Message, headers: Mapping[str, str]) -> Message:
        """Send a request, and record it with its response; see `Transport.request`."""
        if message["method"] == "tools/list":
            self._has_tools = True
        elif message["method"] == "tools/call" and not self._has_tools:
            self._has_tools = True
            await self._list_tools(message, headers)
        return await self._record(message, headers)

    async def _list_tools(self, call: Message, headers: Mapping[str, str]) -> None:
        """Record the list of tools before the first call of a client that does not read it.

        Other clients do, and so does the same client on another transport: over HTTP it needs the tools' headers.
        """
        fields = {name: value for name, value in headers.items() if not name.startswith(_FIELDS_OF_A_CALL)}
        if header_names.METHOD in fields:
            fields[header_names.METHOD] = "tools/list"
        params = {"_meta": without(call.get("params", {}).get("_meta", {}), "progressToken")}
        cursors: list[object] = []
        for page in range(_MAX_PAGES):
            request_id = -1 - page  # those of clients are positive
            message = {"jsonrpc": "2.0", "id": request_id, "method": "tools/list", "params": params}
            try:
                response = await self._record(message, fields)
            except ClientError:
                return  # the call itself reports what is wrong
            cursor = response.get("result", {}).get("nextCursor")
            if cursor is None or cursor in cursors:
                return
            cursors.append(cursor)
            params = {**params, "cursor": cursor}

    async def _record(self, message: Message, headers: Mapping[str, str]) -> Message:
        call = self._cassette.begin(without(message, "id"))
        for earlier in self._between:
            self._cassette.add(call, "server", earlier)
        self._between.clear()
        self._running.append(call)
        try:
            response = await self._inner.request(message, headers)
        finally:
            self._running.remove(call)
            self.session_id = self._inner.session_id
        self._cassette.end(call, response)
        return response

    async def send(self, message: Message, headers: Mapping[str, str]) -> None:
        """Send a notification or a response, and record an answer to a question; see `Transport.send`."""
        call = self._asked.pop(message.get("id"), None) if is_response(message) else None
        if call is not None:
            self._cassette.add(call, "client", message)
        await self._inner.send(message, headers)

    async def aclose(self) -> None:
        """Close the connection; see `Transport.aclose`. Raise CassetteError if the cassette can't be written."""
        try:
            await self._inner.aclose()
        finally:
            self._cassette.close()

    async def _received(self, message: Message) -> None:
        """Record a message of the server with the call that it belongs to, and pass it on.

        Progress belongs to the call with its token, and all else to the call that runs longest. A notification while
        nothing runs is played before the next response.
        """
        call = _call_with_token(self._running, message) or next(iter(self._running), None)
        if call is None:
            self._between.append(message)
        else:
            self._cassette.add(call, "server", message)
            if "id" in message:
                self._asked[message["id"]] = call
        await self._receive(message)


class ReplayTransport:
    """A transport that answers from a cassette.

    Args:
        cassette: The calls.
    """

    is_http = False
    session_id: str | None = None

    def __init__(self, cassette: Cassette) -> None:
        self._cassette = cassette
        self._receive: Receive = _ignore
        self._answers: dict[Any, asyncio.Future[Message]] = {}

    async def connect(self, receive: Receive) -> None:
        """Remember who handles messages."""
        self._receive = receive

    async def request(self, message: Message, headers: Mapping[str, str]) -> Message:
        """Return the recorded response, after the messages before it; raise CassetteError for another request."""
        del headers
        call = self._cassette.take(without(message, "id"))
        for entry in call.messages:
            if entry["from"] == "server":
                await self._play(entry["message"], call, message)
            else:
                recorded = entry["message"]
                answer = await self._answer_to(recorded.get("id"))
                del self._answers[recorded.get("id")]
                self._cassette.check_answer(answer, recorded, call)
        self._cassette.played(call)
        return {"jsonrpc": "2.0", "id": message["id"], **(call.response or {})}

    async def send(self, message: Message, headers: Mapping[str, str]) -> None:
        """Take an answer to a question. Notifications are not compared."""
        del headers
        if is_response(message):
            future = self._answer_to(message.get("id"))
            if not future.done():
                future.set_result(message)

    async def aclose(self) -> None:
        """Forget the questions."""
        self._answers.clear()

    async def _play(self, recorded: Message, call: Call, message: Message) -> None:
        """Pass on a message of the server. Progress gets the token of the request that is answered."""
        params = recorded.get("params")
        token = _token_of(call.request)
        if isinstance(params, dict) and token is not None and params.get("progressToken") == token:
            new_token = _token_of(message)
            if new_token is None:
                return
            recorded = {**recorded, "params": {**params, "progressToken": new_token}}
        await self._receive({"jsonrpc": "2.0", **recorded})

    def _answer_to(self, question_id: Any) -> asyncio.Future[Message]:
        """Return the future of the answer to a question."""
        if question_id not in self._answers:
            self._answers[question_id] = asyncio.get_running_loop().create_future()
        return self._answers[question_id]


async def _ignore(_message: Message) -> None:
    """Handle no message."""


def _call_of(record: Any, ordered: int) -> Call:
    """Return a call of a file; raise KeyError, TypeError or ValueError if it has another form.

    Args:
        record: The call in the file.
        ordered: How many calls with a place in the order are before it.
    """
    request, messages = record["request"], record.get("messages", [])
    if not isinstance(request["method"], str) or not isinstance(record["response"], dict):
        raise TypeError("a call has no method, or no response")
    if any(entry["from"] not in ("server", "client") or "message" not in entry for entry in messages):
        raise ValueError("a message is from neither the server nor the client")
    return Call(request, int(record.get("after", ordered)), messages, record["response"])


def _key(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return what two equal requests have in common."""
    params = request.get("params")
    params = without(params, "_meta") if isinstance(params, dict) else {}
    if request["method"] == "initialize":
        params = only(params, ("protocolVersion",))
    return {"method": request["method"], "params": params}


def _token_of(request: Mapping[str, Any]) -> Any:
    meta = (request.get("params") or {}).get("_meta")
    return meta.get("progressToken") if isinstance(meta, dict) else None


def _call_with_token(calls: Sequence[Call], message: Message) -> Call | None:
    params = message.get("params")
    token = params.get("progressToken") if isinstance(params, dict) else None
    if token is None:
        return None
    return next((call for call in calls if _token_of(call.request) == token), None)


def _without_trace(message: Message) -> Message:
    """Return a request without the ids of its trace, which differ each time."""
    params = message.get("params")
    if not isinstance(params, dict) or not isinstance(params.get("_meta"), dict):
        return message
    return {**message, "params": {**params, "_meta": without(params["_meta"], *_TRACE)}}


def _plain(name: str) -> str:
    return _SEPARATORS.sub("", name.lower())


def _summary(request: Mapping[str, Any]) -> str:
    """Return a request as a text of one line."""
    key = _key(request)
    return one_line(f"{key['method']} {json.dumps(key['params'], ensure_ascii=False)}", 200)


def _difference(expected: Any, actual: Any) -> str:
    """Return the lines in which two values differ: those of the cassette with "-", and those of the client with "+"."""
    recorded, sent = (
        json.dumps(value, indent=2, ensure_ascii=False, sort_keys=True).splitlines() for value in (expected, actual)
    )
    return "\n".join(difflib.unified_diff(recorded, sent, "recorded", "sent", lineterm="", n=100))
