"""Passes the requests of clients on to an upstream, and what comes back to the clients.

How it works: each request has an id and a progress token of its own at the upstream. While it runs, `running.py` gives
notifications and questions to the client of the request. If the client cancels it, leaves, or its time is up, the
request at the upstream is cancelled. Client and upstream may be of different eras; an upstream of both is used in that
of the client (`eras.py`). The pairs differ in how an upstream asks questions:

- Both have a handshake: with a request, while it works. The client is asked over its stream.
- Only the client has a handshake: with the result. The client is asked over its stream, and the request is sent again.
- Neither has one: with the result, which the client gets. The state of the upstream is in that of this server.
- Only the upstream has one: with a request, while it works. The client gets the question as the result of its request,
  and the upstream goes on working until the next round.

A task is like a client of 2026-07-28: its run ends with the questions, and another run has the answers.
"""

from __future__ import annotations

import asyncio
import secrets
from functools import partial
from typing import TYPE_CHECKING, Any

from funcmcp._client.errors import one_line
from funcmcp._protocol import envelope
from funcmcp._protocol.codec import encode
from funcmcp._protocol.errors import (
    HEADER_MISMATCH,
    INVALID_PARAMS,
    MISSING_CLIENT_CAPABILITY,
    RESOURCE_NOT_FOUND,
    UNSUPPORTED_PROTOCOL_VERSION,
    CannotAskError,
    ClientError,
    InvalidResponseError,
    MCPError,
    ResourceNotFound,
    ToolError,
)
from funcmcp._protocol.levels import LEVELS
from funcmcp._server.calls.rounds import CONFIRMATION, InputRequired, Rounds
from funcmcp._server.calls.task_call import DetachableContext
from funcmcp._server.catalog.task_options import MAX_TTL
from funcmcp._server.limits import LimitReachedError
from funcmcp._upstreams.auth import calling
from funcmcp._upstreams.metadata import end_to_end, request_meta
from funcmcp._upstreams.questions import (
    HOLD_SECONDS,
    HeldCall,
    HeldCalls,
    ask_at_once,
    checked_questions,
    passable_capabilities,
    url_questions,
    with_elicitation_id,
)
from funcmcp._upstreams.running import RunningRequest
from funcmcp._upstreams.upstream_request import UpstreamRequest
from funcmcp._upstreams.upstream_tasks import follow

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping

    from funcmcp._protocol.headers import MirroredParameter
    from funcmcp._server.calls.context import RequestContext
    from funcmcp._upstreams.connection import Link
    from funcmcp._upstreams.links import Links

_MAX_ROUNDS = 20
_OF_RESULT = frozenset({"resultType", "ttlMs", "cacheScope", "_meta"})
"""Members of a result that this server makes anew."""

_ERRORS_OF_CONNECTION = {HEADER_MISMATCH, UNSUPPORTED_PROTOCOL_VERSION}
"""Error codes that mean the connection to the upstream and not the request of the client."""

_HAS_ENDED = (
    "The call that asked the question has ended, or runs in another process. Call the tool again without requestState."
)


class Forwarding:
    """Passes requests on.

    Args:
        links: The connections to the upstream.
    """

    def __init__(self, links: Links) -> None:
        self._links = links
        self._held = HeldCalls(HOLD_SECONDS)

    async def send(
        self,
        context: RequestContext,
        method: str,
        params: Mapping[str, Any],
        *,
        mirrored: tuple[MirroredParameter, ...] | None = None,
        has_task: bool = False,
    ) -> dict[str, Any]:
        """Return the result of the upstream for a request.

        Args:
            context: The request of the client.
            method: The method at the upstream.
            params: The params at the upstream, with its own names and URIs, without `_meta`.
            mirrored: Arguments of a tool that requests repeat in headers, so that no list is read for them.
            has_task: Whether an upstream of 2025-11-25 can run the call as a task.

        Raises:
            MCPError: The upstream has answered with an error.
            ToolError: The upstream did not answer.
            InputRequired: The upstream asks the client, which answers in another round.
        """
        try:
            with calling(context.principal, context):
                link = await self._links.for_call(context)
                try:
                    request = UpstreamRequest(link, method, params, mirrored, has_task=has_task)
                    result = await self._result_with_urls(request, context)
                finally:
                    link.end_use()
            return passed_result(result, method, context)
        except ClientError as error:
            raise ToolError(str(error)) from error
        except MCPError as error:
            shown = _error_for_client(error, method, context)
            if shown is error:
                raise
            raise shown from error

    def close(self) -> None:
        """Cancel the requests that wait for answers of clients, because the server stops."""
        self._held.close()

    async def _result_with_urls(self, request: UpstreamRequest, context: RequestContext) -> dict[str, Any]:
        """Return the result of the upstream, which may first name URLs that the user has to open."""
        try:
            return await self._result_of(request, context)
        except MCPError as error:
            questions = url_questions(error) if context.client.revision.per_request else {}
            if not questions:
                raise
            return await self._after_urls(error, questions, request, context)

    async def _after_urls(
        self, error: MCPError, questions: Mapping[str, Any], request: UpstreamRequest, context: RequestContext
    ) -> dict[str, Any]:
        """Return the result after the user has opened the URLs of an error -32042; raise the error if they did not."""
        answers = await context.ask(questions)
        if any(answer.get("action") != "accept" for answer in answers.values()):
            raise error
        return await self._result_of(request, context)

    def _result_of(self, request: UpstreamRequest, context: RequestContext) -> Awaitable[dict[str, Any]]:
        """Return the result of the upstream, of the one or the other era."""
        link, meta = request.link, context.meta
        is_task = context.task_id is not None
        token = link.running.new_token() if is_task or "progressToken" in meta else None
        passed = request_meta(meta, token)
        if passed:
            request = request.with_members(_meta=passed)
        running = RunningRequest(context, token, ask_at_once)
        if link.revision.per_request:
            return self._in_rounds(request._replace(envelope=_envelope(context)), running, context)
        if is_task and request.has_task:
            return self._task_result(request, running, context)
        return self._asking_result(request, running, context)

    async def _task_result(
        self, request: UpstreamRequest, running: RunningRequest, context: RequestContext
    ) -> dict[str, Any]:
        """Return the result of a call that an upstream of 2025-11-25 runs as a task."""
        seconds = min(context.latest_end - asyncio.get_running_loop().time(), MAX_TTL)
        call = request.with_members(task={"ttl": max(1, int(seconds * 1000))})
        created: dict[str, Any] = await context.once(f"{request.slot} task", partial(call.send, running))
        task = created.get("task")
        if not isinstance(task, dict):
            return created  # it has answered without a task
        return await follow(request, context, task, self._asking_result)

    async def _asking_result(
        self, request: UpstreamRequest, running: RunningRequest, context: RequestContext
    ) -> dict[str, Any]:
        """Return the result of a handshake upstream, which may ask the client while it works."""
        if request.link.running.log_level != context.log_level:
            await _set_level(request.link, context.log_level)
        can_ask = bool(passable_capabilities(context.client))
        if can_ask or (context.log_level is not None and "logging" in request.link.capabilities):
            await request.link.open_stream()
        asks_in_rounds = context.client.revision.per_request or context.task_id is not None
        if asks_in_rounds and can_ask:
            return await self._held_result(request, running, context)
        return await request.send(running)

    async def _in_rounds(
        self, request: UpstreamRequest, running: RunningRequest, context: RequestContext
    ) -> dict[str, Any]:
        """Return the result of an upstream of 2026-07-28, with the answers of the client to its questions."""
        channel, is_task = context.channel, context.task_id is not None
        slot = request.slot if is_task or (isinstance(channel, Rounds) and channel.carried) else ""
        if isinstance(channel, Rounds) and channel.carried:
            request = request.with_members(**_carried(channel, slot))
        for number in range(_MAX_ROUNDS):
            running.context = context
            if is_task:  # it stores the result of each round, so that a later run does not send the request again
                result: dict[str, Any] = await context.once(f"{slot} {number}", partial(request.send, running))
            else:
                result = await request.send(running)
            result_type = result.get("resultType", "complete")
            if result_type == "complete":
                return result
            if result_type == "task" and isinstance(context, DetachableContext):
                context.results[f"{request.slot} {number}"] = result
                await context.detach()
            if result_type == "task" and is_task:
                return await follow(request, context, result, self._asking_result)
            if result_type != "input_required":
                kind = one_line(result_type, 50)
                raise InvalidResponseError(
                    f"The other server answered {request.method} with the unknown type {kind!r}."
                )
            slot = slot or request.slot
            request = request.with_members(**await _answers_to(result, context, slot))
        raise InvalidResponseError(f"The other server asked for input more than {_MAX_ROUNDS} times.")

    async def _held_result(
        self, request: UpstreamRequest, running: RunningRequest, context: RequestContext
    ) -> dict[str, Any]:
        """Return the result of a handshake upstream that may ask a client which answers in the next round."""
        slot, channel = request.slot, context.channel
        rounds = channel if isinstance(channel, Rounds) else None
        call_id, call = self._held_call(slot, rounds, context)
        if call is None:
            call = HeldCall(running, request.send(running), context.caller)
        try:
            result = await call.result(context)
        except InputRequired:
            self._keep(call_id, call)
            raise
        except BaseException:
            call.cancel()
            raise
        if rounds is not None:
            del rounds.carried[slot]
        return result

    def _held_call(self, slot: str, rounds: Rounds | None, context: RequestContext) -> tuple[str, HeldCall | None]:
        """Return the id of a call at the upstream, and the call if an earlier round has begun it.

        Raises:
            ToolError: An earlier round has begun it, and this process does not have it.
        """
        if rounds is None:
            call_id = f"task {context.task_id} {slot}"
            return call_id, self._held.take(call_id)
        carried = rounds.carried.get(slot)
        if not isinstance(carried, str):
            rounds.carried[slot] = call_id = secrets.token_urlsafe(16)
            return call_id, None
        call = self._held.take(carried)
        if call is None:
            raise ToolError(_HAS_ENDED)
        return carried, call

    def _keep(self, call_id: str, call: HeldCall) -> None:
        """Keep a call for the next round; cancel it if there is no room."""
        try:
            self._held.keep(call_id, call)
        except LimitReachedError:
            call.cancel()
            raise


def _envelope(context: RequestContext) -> dict[str, Any]:
    """Return the members of `_meta` in which an upstream of 2026-07-28 sees the client."""
    tasks = context.task_id is not None or isinstance(context, DetachableContext)
    members: dict[str, Any] = {envelope.CLIENT_CAPABILITIES: passable_capabilities(context.client, tasks=tasks)}
    level = context.log_level
    if level is not None:
        members[envelope.LOG_LEVEL] = level
    return members


async def _set_level(link: Link, level: str | None) -> None:
    """Request log messages from a level on in the session of a handshake upstream, if it does not send them already."""
    running = link.running
    if level is None or "logging" not in link.capabilities or LEVELS[level] >= LEVELS[running.log_level]:
        return  # what is less severe than the client's level is dropped here
    running.log_level = level
    try:
        await link.request("logging/setLevel", {"level": level})
    except MCPError as error:
        running.refused("logging/setLevel", str(error))


def _carried(channel: Rounds, slot: str) -> dict[str, Any]:
    """Return the members with which a request goes on that the upstream has answered with questions before.

    They remain in the state of the client, so that a run which ends later for another question does not ask again.
    """
    match channel.carried.get(slot):
        case {"sent": dict(sent)}:
            return sent
        case {"keys": list(keys), **state}:
            responses = {key: channel.responses.get(_shown_key(key)) for key in keys}
            answers = {key: response for key, response in responses.items() if isinstance(response, dict)}
            sent = {"inputResponses": answers, **state}
            channel.carried[slot] = {"sent": sent}
            return sent
    return {}


async def _answers_to(result: Mapping[str, Any], context: RequestContext, slot: str) -> dict[str, Any]:
    """Return the members with which a request is sent again: the answers of the client, and the upstream's state.

    Raises:
        InputRequired: The client answers in another round, in which `_carried` returns the members.
    """
    state = {"requestState": result["requestState"]} if "requestState" in result else {}
    questions = checked_questions(result.get("inputRequests", {}))
    if not questions:
        if not state:
            raise InvalidResponseError("The other server asks for input without saying for what.")
        return {"inputResponses": {}, **state}
    channel = context.channel
    if isinstance(channel, Rounds):
        channel.carried[slot] = {"keys": list(questions), **state}
    if not context.client.revision.per_request:
        questions = {key: with_elicitation_id(question) for key, question in questions.items()}
    answers = await context.ask({_shown_key(key): question for key, question in questions.items()})
    return {"inputResponses": {key: answers[_shown_key(key)] for key in questions}, **state}


def _shown_key(key: str) -> str:
    """Return the key under which a client sees a question: not that of a confirmation of this server."""
    return f"upstream/{key}" if key == CONFIRMATION else key


def passed_result(result: Mapping[str, Any], method: str, context: RequestContext) -> dict[str, Any]:
    """Return a result of an upstream without what this server makes anew.

    Raises:
        InvalidResponseError: It has not the members on which this server relies.
    """
    passed = {name: value for name, value in result.items() if name not in _OF_RESULT}
    if "_meta" in result:
        meta = end_to_end(result["_meta"])
        if meta:
            passed["_meta"] = meta
    check = _SHAPES.get(method)
    if check is not None and not check(passed):
        raise InvalidResponseError(f"The result of {method} of the other server is not valid.")
    revision = context.client.revision
    if method == "tools/call" and revision.structured_content is None:
        _show_as_text(passed)
    return passed


def _show_as_text(result: dict[str, Any]) -> None:
    """Show structured content as text to a client that would get an empty result otherwise."""
    if "structuredContent" in result and not result["content"]:
        result["content"] = [{"type": "text", "text": encode(result["structuredContent"]).decode()}]


def _is_tool_result(result: dict[str, Any]) -> bool:
    content = result.setdefault("content", [])
    return type(content) is list and all(map(_is_block, content))


def _is_prompt_result(result: dict[str, Any]) -> bool:
    messages = result.get("messages")
    return type(messages) is list and all(type(item) is dict and _is_block(item.get("content")) for item in messages)


def _is_read_result(result: dict[str, Any]) -> bool:
    contents = result.get("contents")
    return type(contents) is list and all(type(item) is dict and type(item.get("uri")) is str for item in contents)


def _is_block(value: object) -> bool:
    return type(value) is dict and type(value.get("type")) is str


_SHAPES = {"tools/call": _is_tool_result, "prompts/get": _is_prompt_result, "resources/read": _is_read_result}


def _error_for_client(error: MCPError, method: str, context: RequestContext) -> Exception:
    """Return the error that a client gets for one of an upstream: the same one, unless it means another connection."""
    if error.code in _ERRORS_OF_CONNECTION:
        return ToolError(f"The other server refuses the connection of this one: {error}")
    if error.code == MISSING_CLIENT_CAPABILITY and not context.client.revision.per_request:
        return CannotAskError(f"{error}.")
    if method == "resources/read" and _is_not_found(error):
        return _not_found(error)
    return error


def _is_not_found(error: MCPError) -> bool:
    """Return whether an error means that the upstream does not have the resource.

    Source: "server/resources, Error Handling": -32002, and since 2026-07-28 -32602 with the URI as data.
    """
    has_uri = isinstance(error.data, dict) and "uri" in error.data
    return error.code == RESOURCE_NOT_FOUND or (error.code == INVALID_PARAMS and has_uri)


def _not_found(error: MCPError) -> ResourceNotFound:
    """Return the error with the code of the client's revision."""
    not_found = ResourceNotFound("", error.message)
    not_found.data = error.data
    return not_found
