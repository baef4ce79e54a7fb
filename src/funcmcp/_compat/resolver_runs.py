"""The resolvers of one call: which of them run, what they ask the client, and when.

How it works: a `ResolverRun` visits the resolvers of all parameters. One that returns a question waits for its answer,
and so do those that use it. The others run on. Then all open questions are asked at once, and the resolvers that waited
for them are visited again, until none is open. In the per-request era a question without an answer ends the run, and
the client sends the call again with the answers. The key of a question is the name of its resolver, which is the same
in every run.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from funcmcp._authoring.calling.questions import ListRoots as RootsQuestion
from funcmcp._authoring.calling.questions import Sample as ModelQuestion
from funcmcp._authoring.results.content import Content
from funcmcp._authoring.signatures.signature import function_name
from funcmcp._compat.annotations import plain
from funcmcp._compat.context import get_context
from funcmcp._compat.editable import model_of
from funcmcp._compat.elicitation import AcceptedElicitation, ElicitationResult, answered
from funcmcp._compat.errors import ToolError
from funcmcp._compat.sampling import sampling_messages
from funcmcp._protocol.errors import MISSING_CLIENT_CAPABILITY, MCPError
from funcmcp._protocol.errors import ToolError as NativeToolError
from funcmcp._server.calls.context import missing_capability

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from funcmcp._authoring.calling.questions import Question
    from funcmcp._compat.dependencies import Resolution

_RUN = object()
"""The key of the run in the cache of a call."""


class Marker(Protocol):
    """A question that a resolver returns."""

    def open_question(self) -> OpenQuestion:
        """Return the question for the client."""


class OpenQuestion(NamedTuple):
    """A question to the client.

    Attributes:
        question: The question.
        name: What the client must be able to answer, for errors.
        needs: The capability that the client must declare.
        value_of: Returns what the resolver gets for the answer.
    """

    question: Question
    name: str
    needs: Mapping[str, Any]
    value_of: Callable[[Any], ElicitationResult[Any]]


class PendingError(Exception):
    """A resolver waits for an answer of the client."""


def form_question(message: str, schema: Any) -> OpenQuestion:
    """Return a form for the user."""
    from funcmcp._compat.sdk_forms import SDKForm  # noqa: PLC0415 - loads pydantic

    return OpenQuestion(SDKForm(message, schema), "form elicitation", {"elicitation": {"form": {}}}, answered)


def model_question(messages: Any, max_tokens: int, options: Mapping[str, Any]) -> OpenQuestion:
    """Return a request to the client's model."""
    chosen = {name: _wire(value) for name, value in options.items() if value is not None}
    question = ModelQuestion(sampling_messages(messages), max_tokens=max_tokens, **chosen)
    has_tools = not chosen.keys().isdisjoint(("tools", "tool_choice"))
    needs: dict[str, Any] = {"sampling": {"tools": {}} if has_tools else {}}

    def value_of(answer: Any) -> ElicitationResult[Any]:
        content: Any = answer.content[0] if len(answer.content) == 1 else answer.content
        members = {"role": answer.role, "model": answer.model, "content": content, "stopReason": answer.stop_reason}
        name = "CreateMessageResultWithTools" if has_tools else "CreateMessageResult"
        return AcceptedElicitation(model_of(name, {key: value for key, value in members.items() if value is not None}))

    return OpenQuestion(question, "sampling.tools" if has_tools else "sampling", needs, value_of)


def _wire(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_wire(item) for item in value]
    return value.block if isinstance(value, Content) else plain(value)


def roots_question() -> OpenQuestion:
    """Return a request for the client's roots."""

    def value_of(roots: Any) -> ElicitationResult[Any]:
        members = [{"uri": root.uri} if root.name is None else {"uri": root.uri, "name": root.name} for root in roots]
        return AcceptedElicitation(model_of("ListRootsResult", {"roots": members}))

    return OpenQuestion(RootsQuestion(), "roots", {"roots": {}}, value_of)


class ResolverRun:
    """The resolvers of one call.

    Args:
        resolution: The dependencies of the call.
        keys: The key of each resolver's question.
    """

    def __init__(self, resolution: Resolution, keys: Mapping[Any, str]) -> None:
        self._resolution = resolution
        self._keys = keys
        self._questions: dict[Any, OpenQuestion] = {}
        self._pending: dict[Any, OpenQuestion] = {}

    @classmethod
    def of(cls, resolution: Resolution, keys: Mapping[Any, str] | None = None) -> ResolverRun:
        """Return the run of a call."""
        run: ResolverRun = resolution.cache.setdefault(_RUN, cls(resolution, keys or {}))
        return run

    async def resolve_all(self, resolve: Mapping[str, Callable[[], Any]]) -> None:
        """Run the resolvers of all parameters, and ask their questions together.

        Args:
            resolve: Functions that resolve a parameter, by its name. They may raise `PendingError`.

        Raises:
            MCPError: The client has not declared that it answers such a question.
            ToolError: An answer is not valid.
        """
        while True:
            self._pending.clear()
            for function in resolve.values():
                with suppress(PendingError):
                    await function()
            if not self._pending:
                return
            await self._ask()

    def outcome_of(self, resolver: Any) -> ElicitationResult[Any] | None:
        """Return the outcome of a resolver that has run; None for one that has not.

        Raises:
            PendingError: It waits for an answer.
        """
        if resolver in self._questions and resolver not in self._resolution.cache:
            self._pending[resolver] = self._questions[resolver]
            raise PendingError
        outcome: ElicitationResult[Any] | None = self._resolution.cache.get(resolver)
        return outcome

    def returned(self, resolver: Any, value: Any) -> ElicitationResult[Any]:
        """Return the outcome for what a resolver returned.

        Raises:
            PendingError: It returned a question.
        """
        if hasattr(value, "open_question"):
            self._questions[resolver] = self._pending[resolver] = value.open_question()
            raise PendingError
        outcome: ElicitationResult[Any] = AcceptedElicitation(value)
        self._resolution.cache[resolver] = outcome
        return outcome

    async def _ask(self) -> None:
        context = get_context()
        keyed = {self._key_of(resolver): resolver for resolver in self._pending}
        request = context._request  # noqa: SLF001 - a part of Context
        for key, resolver in keyed.items():
            question = self._pending[resolver]
            if missing_capability(request.client, question.question.request()):
                raise MCPError(
                    MISSING_CLIENT_CAPABILITY,
                    f"Client did not declare the {question.name} capability required by resolver {key!r}",
                    {"requiredCapabilities": dict(question.needs)},
                )
        requests = {key: self._pending[resolver].question.request() for key, resolver in keyed.items()}
        answers = await request.ask(requests)
        for key, resolver in keyed.items():
            question = self._pending[resolver]
            try:
                value = question.question.read(answers[key])
            except NativeToolError as error:
                raise ToolError(
                    f"Resolver {key!r} received an accepted elicitation whose content does not match the requested "
                    "schema"
                ) from error
            self._resolution.cache[resolver] = question.value_of(value)

    def _key_of(self, resolver: Any) -> str:
        return self._keys.get(resolver) or _name_of(resolver)


def _name_of(resolver: Any) -> str:
    return f"{getattr(resolver, '__module__', '')}:{getattr(resolver, '__qualname__', None) or function_name(resolver)}"


def keys_of(resolvers: list[Any]) -> dict[Any, str]:
    """Return a key for the question of each resolver: its module and name, and a number if others have the same."""
    keys: dict[Any, str] = {}
    counts: dict[str, int] = {}
    for resolver in resolvers:
        if resolver in keys:
            continue
        name = _name_of(resolver)
        number = counts.get(name, 0)
        counts[name] = number + 1
        keys[resolver] = f"{name}#{number}" if number else name
    return keys
