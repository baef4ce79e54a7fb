"""What one process knows of a living session of the handshake era beside its handshake.

That is: the runs under way, the questions that wait for the client's answer, and the chosen log level. An id that
a client chose never routes an answer; it only finds what this same client wants cancelled.
"""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from funcmcp.protocol.jsonrpc import RequestId, Response
    from funcmcp.server.run import Run


class Conversation:
    """The moving parts of one session in this process."""

    __slots__ = ("_questions", "_runs", "log_level")

    def __init__(self) -> None:
        self.log_level = "info"
        self._runs: dict[RequestId, list[Run]] = {}
        self._questions: dict[str, asyncio.Future[Response]] = {}

    @property
    def idle(self) -> bool:
        """Whether nothing here would be missed."""
        return not self._runs and not self._questions and self.log_level == "info"

    def begin(self, request_id: RequestId, run: Run) -> None:
        """Remember a run, so that the client can cancel it; several may have the same id."""
        self._runs.setdefault(request_id, []).append(run)

    def finish(self, request_id: RequestId, run: Run) -> None:
        """Forget a run."""
        runs = self._runs[request_id]
        runs.remove(run)
        if not runs:
            del self._runs[request_id]

    def cancel(self, request_id: RequestId) -> None:
        """Cancel the runs of an id; an unknown id is ignored, as the specification wants."""
        for run in self._runs.get(request_id, ()):
            run.cancel()

    def question(self) -> tuple[str, asyncio.Future[Response]]:
        """Open a question: return the id to send it under, and the future of its answer."""
        question_id = f"ask-{os.urandom(8).hex()}"  # never used again: a late answer must not meet another question
        future: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
        self._questions[question_id] = future
        future.add_done_callback(lambda _: self._questions.pop(question_id, None))
        return question_id, future

    def answer(self, response: Response) -> None:
        """Hand a client's response to the question that waits for it; one that nothing waits for is dropped."""
        future = self._questions.get(response.id) if isinstance(response.id, str) else None
        if future is not None and not future.done():
            future.set_result(response)


def cancel_requested(conversation: Conversation, params: Mapping[str, Any]) -> None:
    """Do what `notifications/cancelled` asks."""
    request_id = params.get("requestId")
    if type(request_id) is str or type(request_id) is int:
        conversation.cancel(request_id)
