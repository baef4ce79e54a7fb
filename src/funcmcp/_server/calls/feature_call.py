"""Runs the handlers of features, with rounds of questions, a time limit, and an error for each failure."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, TypeVar

from funcmcp._auth.owner import owner_of
from funcmcp._protocol.errors import INTERNAL_ERROR, MCPError, ToolError
from funcmcp._server.calls.rounds import InputRequired, Rounds, run_end
from funcmcp._server.calls.time_limit import within
from funcmcp._server.exception_groups import meaning_of, members_of, shown_text
from funcmcp._server.log import log_failure
from funcmcp._server.options import shown_types
from funcmcp._server.run import Waiting, begin, is_failure

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    from funcmcp._server.calls.context import RequestContext
    from funcmcp._server.calls.feature import Feature
    from funcmcp._server.calls.rounds import UsedStates
    from funcmcp._server.options import ShowErrors
    from funcmcp._state.seal import KeyRing

T = TypeVar("T")
Answer = TypeVar("Answer")


class FeatureFailedError(MCPError):
    """A feature raised an exception: JSON-RPC error -32603, or for a tool a result with `isError` and the text.

    Args:
        text: The text of the exception; None if clients must not see it.
        error_id: The id of the log record about the failure; "" if the failure was not logged.
        start: How the text for the client begins, such as "Error calling tool 'add'"; None for the text alone.
    """

    def __init__(self, text: str | None, error_id: str, start: str | None = None) -> None:
        self.error_id = error_id
        data = {"errorId": error_id} if text is None else None
        if start is not None:
            ending = f". The server's log has the details under error id {error_id}." if text is None else f": {text}"
            text = start + ending
        self.text = text
        if text is None:
            text = f"It failed: the server's log has the details under error id {error_id}."
        super().__init__(INTERNAL_ERROR, text, data)


class FeatureCalls:
    """Runs the handlers of features.

    Args:
        keys: The keys that seal the request state between rounds of questions.
        used: The request states whose confirmation has served a call.
        show_errors: The exceptions whose text clients see, unless the feature has its own list of them.
    """

    def __init__(self, keys: KeyRing, used: UsedStates, show_errors: ShowErrors) -> None:
        self._keys = keys
        self._used = used
        self._shown = shown_types(show_errors, "show_errors")

    def open_rounds(self, context: RequestContext, feature: Feature) -> None:
        """Set up questions of a feature in the per-request era; raise InvalidParams if `requestState` is invalid.

        A request within another one asks through that one, whose questions are set up already.
        """
        if feature.interactive and context.client.revision.per_request and context.outer is None:
            channel = context.channel
            if isinstance(channel, Rounds) and channel.request is context.request:
                return  # a middleware runs the feature again
            owner = owner_of(context.principal)
            context.channel = Rounds(context.channel, context.request, self._keys, self._used, owner)

    def begin(
        self,
        feature: Feature,
        work: Coroutine[Any, Any, T],
        finish: Callable[[T, RequestContext], Answer],
        context: RequestContext,
    ) -> Answer | dict[str, Any] | Awaitable[Answer | dict[str, Any]]:
        """Do as `run` up to the first wait; return what *finish* makes of the result, or an awaitable of that.

        Args:
            feature: The feature.
            work: The feature's coroutine. Most never wait.
            finish: Returns the answer for a result. An InputRequiredResult is an answer already.
            context: The request's context, which *finish* gets.
        """
        try:
            result = begin(work)
        except BaseException as error:  # noqa: BLE001 - `outcome_of` re-raises an exception that is not a failure
            return self.outcome_of(error, feature, context)
        if isinstance(result, Waiting):
            return self._wait_for(result, feature, finish, context)
        return finish(result, context)

    async def _wait_for(
        self,
        work: Waiting[T],
        feature: Feature,
        finish: Callable[[T, RequestContext], Answer],
        context: RequestContext,
    ) -> Answer | dict[str, Any]:
        try:
            result = await within(feature.time_limit, work, context)
        except BaseException as error:  # noqa: BLE001 - as in `begin`
            return self.outcome_of(error, feature, context)
        return finish(result, context)

    async def run(self, feature: Feature, work: Coroutine[Any, Any, T], context: RequestContext) -> T | dict[str, Any]:
        """Run a feature's coroutine; return its result, or an InputRequiredResult if it needs answers first.

        Raises:
            MCPError: *work* raised it.
            FeatureFailedError: *work* raised another exception, or exceeded the feature's time limit.
        """
        try:
            started = begin(work)
            result: T = await within(feature.time_limit, started, context) if isinstance(started, Waiting) else started
        except BaseException as error:  # noqa: BLE001 - `outcome_of` re-raises an exception that is not a failure
            return self.outcome_of(error, feature, context)
        return result

    def outcome_of(self, error: BaseException, feature: Feature, context: RequestContext) -> dict[str, Any]:
        """Return the InputRequiredResult if *error* requires input; otherwise raise the error for the client.

        An exception group with one member means what its member means. Middleware finds the exception in the context.

        Raises:
            MCPError: The function raised it, alone or as the only member of a group.
            FeatureFailedError: It raised something else.
        """
        ended = run_end(error)
        if isinstance(ended, InputRequired):
            return {"resultType": "input_required", **ended.result()}
        if ended is not None:
            raise ended
        meaning = meaning_of(error)
        if not is_failure(meaning):
            raise meaning
        if context.error is None:  # otherwise a mounted server has failed, and this is its answer
            context.set_error(error)
        if isinstance(meaning, MCPError):
            raise meaning
        raise self._failure_of(error, feature, context) from None

    def _failure_of(self, error: BaseException, feature: Feature, context: RequestContext) -> FeatureFailedError:
        """Return the error for the client, and write a log record unless all members of the error are ToolErrors."""
        shown = self._shown if feature.shown_errors is None else feature.shown_errors
        text = None
        try:
            text = shown_text(error, (ToolError, *shown))
        except Exception as fault:  # noqa: BLE001 - an author's own __str__ may raise anything
            error = fault
        if text is not None and all(isinstance(member, ToolError) for member in members_of(error)):
            return FeatureFailedError(text, "")
        error_id = os.urandom(8).hex()
        log_failure(error, error_id, feature.key, context.request.method)
        start = None if feature.failure_start is None else feature.failure_start(error, context)
        return FeatureFailedError(text, error_id, start)
