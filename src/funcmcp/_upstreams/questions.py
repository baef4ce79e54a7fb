"""The questions of an upstream: which client is asked, in which form, and what the upstream gets as the answer.

How it works: in 2026-07-28 an upstream answers a request with its questions (`forwarding.py`). In the handshake era it
sends each question as a request while it works, and `UpstreamAnswers` answers it:

- A client of the handshake era is asked over its own stream (`ask_at_once`).
- A client of 2026-07-28 gets its questions as the result of its request, and sends the request again with the answers.
  A task stores its questions and runs again. In between the upstream goes on working on its request, in a `HeldCall`.
  `HeldCalls` keeps these, in the memory of this process, limited in number and time. The state of the client's request
  has the id of the call, so no other client can continue it.

A question is checked before it reaches a client, because an upstream may send anything.
"""

from __future__ import annotations

import asyncio
import secrets
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from funcmcp._client.answers import Answers, UndeclaredQuestionError
from funcmcp._objects.mappings import only, without
from funcmcp._protocol import apps
from funcmcp._protocol.errors import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    AnsweredWithError,
    CannotAskError,
    InvalidParams,
    InvalidResponseError,
    MCPError,
    ToolError,
)
from funcmcp._protocol.methods import CLIENT_METHODS, can_be_asked, has_part
from funcmcp._protocol.tasks import EXTENSION
from funcmcp._server.calls.context import missing_capability
from funcmcp._server.calls.rounds import InputRequired
from funcmcp._server.load import Budget
from funcmcp._upstreams.metadata import with_end_to_end_meta

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping

    from funcmcp._server.calls.context import RequestContext
    from funcmcp._server.connections.client import ConnectedClient
    from funcmcp._upstreams.running import RunningRequest, RunningRequests

HOLD_SECONDS = 600.0
"""Seconds for which an upstream request waits for the answers of a client in the next round."""

MAX_HELD = 1000
MAX_HELD_OF_CALLER = 50
"""Upstream requests that wait for answers of clients at the same time, in total and for each caller."""

_COLLECT_SECONDS = 0.05
"""Seconds after a question in which further ones count as asked at the same time."""

_MAX_QUESTIONS = 100
_KEY = "question"
_UNCLEAR = "It is not certain which request of which client the question is for."
_PASSED_MEMBERS = {"elicitation": ("form", "url"), "sampling": ("tools", "context"), "roots": ()}
"""The client capabilities that are passed on, with their members."""


def passable_capabilities(client: ConnectedClient, *, tasks: bool = False) -> dict[str, Any]:
    """Return the capabilities of a client that an upstream sees.

    Those that the server can't pass on are left out: what the client would need to get from the upstream itself.

    Args:
        client: The client.
        tasks: Whether the upstream may answer with a task.
    """
    passed: dict[str, Any] = {}
    if not client.capabilities and not tasks:
        return passed
    for name, members in _PASSED_MEMBERS.items():
        declared = client.capabilities.get(name)
        if isinstance(declared, dict):
            passed[name] = {
                member: declared[member]
                for member in members
                if isinstance(declared.get(member), dict) and has_part(name, member, client.revision.date)
            }
    for row in CLIENT_METHODS.values():
        if not can_be_asked(row.name, client.revision.date):
            passed.pop(row.capability, None)
    extensions = client.capabilities.get("extensions")
    shown = only(extensions, (apps.EXTENSION,)) if isinstance(extensions, dict) else {}
    if tasks:
        shown[EXTENSION] = {}
    if shown:
        passed["extensions"] = shown
    return passed


def checked_question(value: object) -> dict[str, Any]:
    """Return a question of an upstream, without what belongs to its connection.

    Args:
        value: A request of the upstream, or an entry of `inputRequests`.

    Raises:
        UndeclaredQuestionError: Its method is not one that clients answer.
        InvalidParams: Its params are not those of its method.
    """
    method = value.get("method") if isinstance(value, dict) else None
    if not isinstance(value, dict) or not isinstance(method, str) or method not in CLIENT_METHODS:
        raise UndeclaredQuestionError("The upstream asks a question that clients do not answer.")
    params = value.get("params", {})
    if not isinstance(params, dict) or not _CHECKS[method](params):
        raise InvalidParams(f"The params of {method} are not valid.")
    return {"method": method, "params": without(with_end_to_end_meta(params), "task")}


def checked_questions(requests: object) -> dict[str, Mapping[str, Any]]:
    """Return the questions in the `inputRequests` of an upstream of 2026-07-28; raise InvalidResponseError."""
    if not isinstance(requests, dict) or len(requests) > _MAX_QUESTIONS:
        raise InvalidResponseError("The questions of the other server are not valid.")
    try:
        return {key: checked_question(question) for key, question in requests.items()}
    except (UndeclaredQuestionError, InvalidParams) as error:
        raise InvalidResponseError(f"A question of the other server is not valid: {error}") from error


def _is_elicitation(params: Mapping[str, Any]) -> bool:
    mode = params.get("mode", "form")
    if mode == "url":
        return isinstance(params.get("url"), str)
    return mode == "form" and isinstance(params.get("message", ""), str) and _is_form(params.get("requestedSchema", {}))


def _is_form(schema: object) -> bool:
    """Return whether a schema has the shape on which the check of answers relies."""
    if not isinstance(schema, dict):
        return False
    properties, required = schema.get("properties", {}), schema.get("required", [])
    if not isinstance(properties, dict) or not isinstance(required, list):
        return False
    return all(isinstance(name, str) for name in required) and all(map(_is_field, properties.values()))


def _is_field(schema: object) -> bool:
    if not isinstance(schema, dict):
        return False
    choices = schema.get("oneOf", [])
    if not isinstance(schema.get("enum", []), list) or not isinstance(choices, list):
        return False
    return all(isinstance(choice, dict) for choice in choices)


_CHECKS: dict[str, Callable[[Mapping[str, Any]], bool]] = {
    "elicitation/create": _is_elicitation,
    "sampling/createMessage": lambda params: isinstance(params.get("messages"), list),
    "roots/list": lambda _: True,
}


class UpstreamAnswers(Answers):
    """Answers the questions that a handshake upstream sends over one connection.

    Args:
        running: The requests that run over the connection.
        capabilities: The client capabilities that the session declares.
    """

    in_background = True

    def __init__(self, running: RunningRequests, capabilities: Mapping[str, Any]) -> None:
        super().__init__(None, None, None)
        self.capabilities = dict(capabilities)
        self._running = running

    def to(self, question: Mapping[str, Any]) -> Coroutine[Any, Any, dict[str, Any]]:
        """Return the coroutine that answers a question. The request for which it is asked is certain only now."""
        return self._answer(self._running.request_of(question), question)

    async def _answer(self, request: RunningRequest | None, message: Mapping[str, Any]) -> dict[str, Any]:
        if message.get("method") == "ping":
            return {}
        try:
            question = checked_question(message)
            if request is None or request.context is None:
                raise MCPError(INVALID_REQUEST, _UNCLEAR)
            missing = missing_capability(request.context.client, question)
            if missing:
                request.missing.update(missing)
                raise UndeclaredQuestionError("The client has not declared that it answers the question.")
        except (MCPError, UndeclaredQuestionError) as error:
            self._running.refused(message.get("method"), str(error))
            raise
        return await request.ask(request, question)


async def ask_at_once(request: RunningRequest, question: Mapping[str, Any]) -> dict[str, Any]:
    """Ask a client over its stream, and return its answer; raise the MCPError for the upstream."""
    task = asyncio.current_task()
    if request.context is None or task is None:
        raise MCPError(INVALID_REQUEST, _UNCLEAR)
    request.asking.add(task)
    try:
        answers = await request.context.ask({_KEY: with_elicitation_id(question)})
    except AnsweredWithError as error:
        raise _error_of_client(error.error) from error
    except CannotAskError as error:
        raise MCPError(METHOD_NOT_FOUND, str(error)) from error
    except ToolError as error:
        raise MCPError(INTERNAL_ERROR, str(error)) from error
    finally:
        request.asking.discard(task)
    return answers[_KEY]


def with_elicitation_id(question: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a question for a client of the handshake era, where one that shows a URL needs an id."""
    params = question["params"]
    if params.get("mode") != "url" or "elicitationId" in params:
        return question
    return {**question, "params": {**params, "elicitationId": secrets.token_urlsafe(16)}}


def _error_of_client(error: Mapping[str, Any]) -> MCPError:
    """Return the error of a client, so that the upstream gets it as it is."""
    code, message = error.get("code"), error.get("message")
    if type(code) is not int or not isinstance(message, str):
        return MCPError(INTERNAL_ERROR, "The client answered with an error that is not valid.")
    return MCPError(code, message, error.get("data"))


class HeldCall:
    """A request at an upstream that goes on while its client is asked in rounds.

    Args:
        request: The request, whose questions the call takes.
        work: Sends it, and returns its result.
        caller: The caller for whom it counts while it waits for answers.
    """

    def __init__(self, request: RunningRequest, work: Coroutine[Any, Any, dict[str, Any]], caller: str | None) -> None:
        self.caller = caller
        self._request = request
        self._questions: dict[str, Mapping[str, Any]] = {}
        self._answers: dict[str, asyncio.Future[dict[str, Any]]] = {}
        self._count = 0
        self._changed = asyncio.Event()
        request.ask = self._ask
        self.task = asyncio.create_task(work)
        self.task.add_done_callback(self._has_ended)

    async def result(self, context: RequestContext) -> dict[str, Any]:
        """Return the result; raise InputRequired if the client has to answer first.

        Args:
            context: The request of the client in this round.
        """
        self._request.resume(context)
        while not self.task.done():
            self._changed.clear()
            if self._questions:
                await self._collect()
                await self._ask_client(context, dict(self._questions))
            await self._changed.wait()
        await self._request.flush()
        return self.task.result()

    async def _ask_client(self, context: RequestContext, questions: Mapping[str, Mapping[str, Any]]) -> None:
        """Give the upstream the answers of the client; raise InputRequired for questions that have none yet."""
        try:
            answers = await context.ask(questions)
        except InputRequired as required:
            answered = without(questions, *required.questions)
            if answered:  # the upstream may need them before it gets the others
                await self._ask_client(context, answered)
            raise
        for key, answer in answers.items():
            self._questions.pop(key, None)
            self._settle(key, answer)

    async def _collect(self) -> None:
        """Wait until no further question comes with the present ones, so that the client gets them together."""
        with suppress(TimeoutError):
            while not self.task.done():
                self._changed.clear()
                async with asyncio.timeout(_COLLECT_SECONDS):
                    await self._changed.wait()

    def pause(self) -> None:
        """Send nothing to the client until the next round."""
        self._request.pause()

    def cancel(self) -> None:
        """Cancel the request at the upstream."""
        self.task.cancel()

    async def _ask(self, _request: RunningRequest, question: Mapping[str, Any]) -> dict[str, Any]:
        """Keep a question until the client has answered it."""
        self._count += 1
        key = f"{_KEY}-{self._count}"
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._questions[key] = {**question, "params": without(question["params"], "elicitationId")}
        self._answers[key] = answer
        self._changed.set()
        try:
            return await answer
        finally:
            self._questions.pop(key, None)
            del self._answers[key]

    def _settle(self, key: str, answer: dict[str, Any]) -> None:
        waiting = self._answers.get(key)
        if waiting is not None and not waiting.done():
            waiting.set_result(answer)

    def _has_ended(self, task: asyncio.Task[dict[str, Any]]) -> None:
        """Wake the round that waits. The upstream gets no answers any more."""
        for answer in self._answers.values():
            answer.cancel()
        self._changed.set()
        if not task.cancelled():
            task.exception()  # retrieved: no further round may come


class HeldCalls:
    """The calls that wait for the next round of their clients, in this process.

    Args:
        seconds: Seconds for which a call waits.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._calls: dict[str, tuple[HeldCall, asyncio.TimerHandle]] = {}
        self._budget = Budget(
            MAX_HELD,
            MAX_HELD_OF_CALLER,
            full="Too many calls wait for answers of their clients.",
            own_full="Too many of your calls wait for answers.",
        )

    def keep(self, call_id: str, call: HeldCall) -> None:
        """Keep a call for the next round; raise LimitReachedError if there are too many."""
        self._budget.check(call.caller)
        self._budget.count(call.caller, 1)
        call.pause()
        timer = asyncio.get_running_loop().call_later(self._seconds, self._drop, call_id)
        self._calls[call_id] = call, timer

    def take(self, call_id: str) -> HeldCall | None:
        """Return a call of an earlier round. Return None if this process, or this event loop, does not have it."""
        entry = self._calls.get(call_id)
        if entry is None or entry[0].task.get_loop() is not asyncio.get_running_loop():
            return None
        self._remove(call_id)
        return entry[0]

    def close(self) -> None:
        """Cancel the calls of this event loop, because the server stops."""
        loop = asyncio.get_running_loop()
        for call_id, (call, _) in list(self._calls.items()):
            if call.task.get_loop() is loop:
                self._drop(call_id)

    def _drop(self, call_id: str) -> None:
        self._remove(call_id).cancel()

    def _remove(self, call_id: str) -> HeldCall:
        call, timer = self._calls.pop(call_id)
        timer.cancel()
        self._budget.give_back(call.caller, 1)
        return call


def url_questions(error: MCPError) -> dict[str, Mapping[str, Any]]:
    """Return the URLs that an error -32042 names, as questions by key. Empty for another error.

    Source: 2025-11-25 "client/elicitation, URL Elicitation Required Error". 2026-07-28 has questions instead.
    """
    elicitations = error.data.get("elicitations") if isinstance(error.data, dict) else None
    if error.code != URL_ELICITATION_REQUIRED or not isinstance(elicitations, list):
        return {}
    questions: dict[str, Mapping[str, Any]] = {}
    for number, params in enumerate(elicitations[:_MAX_URLS], 1):
        if not isinstance(params, dict) or not isinstance(params.get("url"), str):
            return {}
        shown = {**without(with_end_to_end_meta(params), "elicitationId"), "mode": "url"}
        questions[f"url-{number}"] = {"method": "elicitation/create", "params": shown}
    return questions


URL_ELICITATION_REQUIRED = -32042
_MAX_URLS = 20
