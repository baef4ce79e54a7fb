"""Answers to the questions of servers: ``elicitation/create``, ``sampling/createMessage`` and ``roots/list``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from funcmcp._client.errors import one_line
from funcmcp._protocol.errors import InvalidResponseError
from funcmcp._public_names import public

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    Callback: TypeAlias = Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]


class UndeclaredQuestionError(InvalidResponseError):
    """The server asked a question whose capability the client did not declare."""


@public("funcmcp.testing")
class Answers:
    """The client's callbacks for questions of the server. It declares a capability for each callback that it has.

    Args:
        elicit: Answers ``elicitation/create``: receives the params and returns an ElicitResult.
        sample: Answers ``sampling/createMessage``: receives the params, which may have tools, and returns a
            CreateMessageResult.
        roots: Root objects, the answer to ``roots/list``. An empty list also declares the capability.

    Attributes:
        capabilities: The client's capabilities, in the shape of ClientCapabilities.
    """

    def __init__(
        self, elicit: Callback | None, sample: Callback | None, roots: Sequence[dict[str, Any]] | None
    ) -> None:
        self._elicit = elicit
        self._sample = sample
        self._roots = roots
        self.capabilities: dict[str, Any] = {}
        if elicit is not None:
            self.capabilities["elicitation"] = {"form": {}, "url": {}}
        if sample is not None:
            self.capabilities["sampling"] = {"tools": {}}
        if roots is not None:
            self.capabilities["roots"] = {}

    async def to(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """Return the result for a question.

        Args:
            question: An object with `method` and `params`: a request of the server, or an entry of `inputRequests`.

        Raises:
            UndeclaredQuestionError: The client has no callback for the method.
        """
        method = question.get("method")
        params = question.get("params")
        if not isinstance(params, dict):
            params = {}
        if method == "ping":
            return {}
        if method == "elicitation/create" and self._elicit is not None:
            return await self._elicit(params)
        if method == "sampling/createMessage" and self._sample is not None:
            return await self._sample(params)
        if method == "roots/list" and self._roots is not None:
            return {"roots": list(self._roots)}
        raise UndeclaredQuestionError(f"The server asks {one_line(method)}, which this client does not declare.")
