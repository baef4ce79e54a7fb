"""A tool's call as a task: what is stored of the call, and the context of a run in a worker."""

from __future__ import annotations

import asyncio
import math
from typing import TYPE_CHECKING, Any

from funcmcp._auth.principal import Principal
from funcmcp._objects.mappings import without
from funcmcp._protocol.codec import MAX_DEPTH, InvalidJSONError, RepeatedNameError, decode, encode
from funcmcp._protocol.errors import INTERNAL_ERROR, MCPError
from funcmcp._protocol.jsonrpc import Request
from funcmcp._protocol.revisions import REVISIONS
from funcmcp._server.calls.context import RequestContext
from funcmcp._server.calls.rounds import InputRequired, RunEnded, digest
from funcmcp._server.calls.route import RoutedRequest
from funcmcp._server.calls.value_owner import value_owner_of
from funcmcp._server.connections.client import ConnectedClient
from funcmcp._state.caller_values import ValueOwner
from funcmcp._state.records import are_texts
from funcmcp._state.sessions.store import StoreUnavailableError
from funcmcp._state.tasks.record import Question
from funcmcp._state.tasks.store import TasksFullError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from funcmcp._server.calls.channel import Channel
    from funcmcp._server.calls.context import HTTPRequestInfo
    from funcmcp._server.calls.feature import Feature, TimeLimit

_VERSION = 1
_AWAY_PAUSE = 0.5
_NESTING = MAX_DEPTH + 8
MAX_MESSAGE = 1000
"""Characters of progress, or of an error's text, that the status message repeats."""

_STORED_PARAMS = ("name", "arguments", "_meta")
CANCELLED_BY_CLIENT = "The client has cancelled the task."
"""The argument of the CancelledError in a run whose task was cancelled, and not released for another worker."""

STATUS = "notifications/tasks/status"
"""A notification of a run with a `statusMessage` for its task."""


class Detached(RunEnded):
    """Ends a run within a call, because the tool goes on as a task."""


class DetachableContext(RequestContext):
    """The context of a call that the tool itself turns into a task.

    Attributes:
        results: Results of `once` that the runs of the task have from the beginning, by key.
    """

    __slots__ = ("results",)

    def __init__(
        self,
        routed: RoutedRequest,
        client: ConnectedClient,
        channel: Channel,
        http: HTTPRequestInfo | None = None,
    ) -> None:
        super().__init__(routed, client, channel, http)
        self.results: dict[str, Any] = {}

    async def detach(self) -> None:
        """End this run; the task runs the tool again from its start."""
        raise Detached


class TaskContext(RequestContext):
    """The context of a run in a worker: the caller is as it was at the call, and there is no HTTP request.

    Attributes:
        traceparent: The span of the request that created the task; None if the server is not traced.
        run_limit: The time limit of one run; None for as long as the task may take.
        task_end: When the ttl of the task is over, in the clock of the event loop.
    """

    __slots__ = ("_principal", "_results", "_task_id", "_task_owner", "run_limit", "task_end", "traceparent")

    def __init__(
        self,
        routed: RoutedRequest,
        client: ConnectedClient,
        channel: TaskChannel,
        *,
        caller: Principal | ValueOwner | None,
        task_id: str,
        traceparent: str | None,
    ) -> None:
        super().__init__(routed, client, channel)
        self._task_owner = caller if isinstance(caller, ValueOwner) else None
        self._principal = caller if isinstance(caller, Principal) else None
        self._task_id = task_id
        self._results = channel.results
        self.traceparent = traceparent
        self.run_limit: TimeLimit | None = None
        self.task_end = math.inf

    @property
    def time_limit(self) -> TimeLimit | None:
        """The time limit of the run."""
        return self.run_limit

    @property
    def latest_end(self) -> float:
        """When the ttl of the task is over."""
        return self.task_end

    @property
    def principal(self) -> Principal | None:
        """The principal that created the task; None if it was anonymous."""
        return self._principal

    @property
    def task_id(self) -> str | None:
        """The id of the task."""
        return self._task_id

    @property
    def task_owner(self) -> ValueOwner | None:
        """The owner of the values of the caller, if it has no principal; None if nothing says who called."""
        return self._task_owner

    async def once(self, key: str, function: Callable[[], Awaitable[Any]]) -> Any:
        """Return the stored result for a key; run the function and store its result if there is none."""
        return await self._results.once(key, function)


class StoredResults:
    """The results of `Context.once` in the runs of a task.

    Args:
        results: Those of earlier runs, by the author's key.
        note: Stores a result; returns None if this run has lost its task.
    """

    def __init__(self, results: Mapping[str, Any], note: Callable[[str, Any], Awaitable[object | None]]) -> None:
        self._results = dict(results)
        self._note = note
        self._locks: dict[str, asyncio.Lock] = {}

    def begin_with(self, results: Mapping[str, Any]) -> None:
        """Add the results that the call has had before it became a task."""
        self._results = {**results, **self._results}

    async def once(self, key: str, function: Callable[[], Awaitable[Any]]) -> Any:
        """Return the result for a key; run the function if there is none.

        Raises:
            MCPError: The result can't be stored, because there is no room or the task has ended.
            ValueError: JSON can't represent the result.
        """
        async with self._locks.setdefault(key, asyncio.Lock()):
            if key not in self._results:
                result = decode(encode(await function()), _NESTING)
                await self._store(key, result)
                self._results[key] = result
            return self._results[key]

    async def _store(self, key: str, result: Any) -> None:
        """Store a result; try again while the store is away, as long as the run lasts."""
        while True:
            try:
                stored = await self._note(key, result)
            except StoreUnavailableError:
                await asyncio.sleep(_AWAY_PAUSE)
                continue
            except TasksFullError as full:
                raise MCPError(INTERNAL_ERROR, f"There is no room for the result of {key!r:.100}. {full}.") from None
            if stored is None:
                raise MCPError(INTERNAL_ERROR, "The task has ended, or runs elsewhere.")
            return


class TaskChannel:
    """Takes the messages of a run in a worker.

    Progress becomes the status message of the task, log messages are dropped, and a question that has no answer ends
    the run.

    Args:
        answers: Digest of the request and answer, by the author's key.
        report: Is called with each new status message.
        results: The results of `Context.once`.
    """

    __slots__ = ("_answers", "_report", "results")

    pushes = True

    def __init__(
        self,
        answers: Mapping[str, tuple[str, Mapping[str, Any]]],
        report: Callable[[str], None],
        results: StoredResults,
    ) -> None:
        self._answers = answers
        self._report = report
        self.results = results

    def close_stream(self) -> None:
        """Do nothing: there is no stream."""

    async def notify(self, method: str, params: dict[str, Any]) -> None:
        """Report progress and status messages; drop other notifications."""
        if method == "notifications/progress":
            self._report(progress_message(params)[:MAX_MESSAGE])
        elif method == STATUS:
            self._report(params["statusMessage"][:MAX_MESSAGE])

    async def ask(self, questions: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
        """Return the answers; raise InputRequired with the questions that have none."""
        answers: dict[str, dict[str, Any]] = {}
        missing: dict[str, Mapping[str, Any]] = {}
        for key, request in questions.items():
            answer = self._answers.get(key)
            if answer is not None and answer[0] == question_digest(request):
                answers[key] = dict(answer[1])
            else:
                missing[key] = request
        if missing:
            raise InputRequired(missing, "")
        return answers


def stored_questions(requests: Mapping[str, Mapping[str, Any]]) -> dict[str, Question]:
    """Return the questions of an InputRequired as a store takes them."""
    return {key: Question(key, question_digest(request), request) for key, request in requests.items()}


def progress_message(params: Mapping[str, Any]) -> str:
    """Return the status message for the params of a progress notification, such as "reading (3 of 10)"."""
    amount = f"{params['progress']:g}"
    if "total" in params:
        amount += f" of {params['total']:g}"
    message = params.get("message")
    return f"{message} ({amount})" if message else amount


def encode_call(context: RequestContext, traceparent: str | None = None) -> bytes:
    """Return what a worker needs to run the tool of a request. It contains no token and no header.

    Args:
        context: The request.
        traceparent: The span of the request, if the server is traced.
    """
    results = context.results if isinstance(context, DetachableContext) else {}
    request, client, principal = context.request, context.client, context.principal
    owner = value_owner_of(context) if principal is None else None
    return encode(
        {
            "v": _VERSION,
            "id": request.id,
            "params": {name: request.params[name] for name in _STORED_PARAMS if name in request.params},
            "revision": client.revision.date,
            "capabilities": client.capabilities,
            "info": client.info,
            "principal": None if principal is None else _encoded_principal(principal),
            "traceparent": traceparent,
            **({} if owner is None else {"owner": owner}),
            **({"results": results} if results else {}),
        }
    )


def decode_call(call: bytes, tool: Feature, *, task_id: str, channel: TaskChannel) -> TaskContext | None:
    """Return the context for a run of a stored call; None if this version can't read it."""
    try:
        stored: Any = decode(call, _NESTING)
    except (InvalidJSONError, RepeatedNameError):
        return None
    match stored:
        case {
            "v": 1,
            "id": str() | int() as request_id,
            "params": dict(params),
            "revision": str(date),
            "capabilities": dict(capabilities),
            "info": dict(info),
            "principal": dict() | None as caller,
        } if date in REVISIONS:
            routed = RoutedRequest(Request(request_id, "tools/call", params), None, tool)
            client = ConnectedClient(REVISIONS[date], capabilities, info)
            principal = None if caller is None else _decoded_principal(caller)
            if principal is None and caller is not None:
                return None
            results = stored.get("results")
            if isinstance(results, dict):
                channel.results.begin_with(results)
            trace = stored.get("traceparent")
            return TaskContext(
                routed,
                client,
                channel,
                caller=principal or _decoded_owner(stored.get("owner")),
                task_id=task_id,
                traceparent=trace if isinstance(trace, str) else None,
            )
    return None


def _decoded_owner(stored: object) -> ValueOwner | None:
    """Return the owner of the caller's values; None if there is none, or this version can't read it."""
    match stored:
        case [str(mark), str() | None as address, *_]:
            return ValueOwner(mark, address)
    return None


def _encoded_principal(principal: Principal) -> dict[str, Any]:
    return {
        "subject": principal.subject,
        "issuer": principal.issuer,
        "client_id": principal.client_id,
        "scopes": sorted(principal.scopes),
        "roles": sorted(principal.roles),
        "claims": dict(principal.claims),
        "name": principal.name,
        "per_token": principal.per_token,
    }


def _decoded_principal(stored: dict[str, Any]) -> Principal | None:
    """Return the caller of a stored call; None if this version can't read it."""
    match stored:
        case {
            "subject": str(subject),
            "issuer": str(issuer),
            "client_id": str(client_id),
            "scopes": list(scopes),
            "roles": list(roles),
            "claims": dict(claims),
            "name": str() | None as name,
            "per_token": bool(per_token),
        } if subject and are_texts(scopes) and are_texts(roles):
            return Principal(
                subject, issuer, client_id, frozenset(scopes), frozenset(roles), claims, name, per_token=per_token
            )
    return None


def question_digest(request: Mapping[str, Any]) -> str:
    """Return the fingerprint of a question. The id of a URL question differs in every run of the tool."""
    params = request.get("params", {})
    if "elicitationId" in params:
        params = without(params, "elicitationId")
    return digest({"method": request["method"], "params": params})
