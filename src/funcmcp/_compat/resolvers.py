"""Resolvers of the official SDK 2.x: functions that compute a parameter of a tool from its arguments, or ask for it.

How it works: `Resolve` marks a parameter, as `Depends` does. Its function gets arguments of the tool by name, the
context, and what other resolvers return. If it returns a question (`Elicit`, `Sample` or `ListRoots`), the client is
asked, and the parameter gets the answer.
"""

from __future__ import annotations

from types import SimpleNamespace, UnionType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Generic, TypeVar, Union, get_args, get_origin

from funcmcp._authoring.signatures.partials import is_async, signature_of
from funcmcp._authoring.signatures.signature import Signature, function_name
from funcmcp._compat.context import is_context
from funcmcp._compat.current import get_context
from funcmcp._compat.dependencies import Dependency, dependency_of
from funcmcp._compat.elicitation import AcceptedElicitation, ElicitationResult
from funcmcp._compat.errors import ToolError
from funcmcp._objects.public_names import public

if TYPE_CHECKING:
    from collections.abc import Callable

    from funcmcp._compat.dependencies import Resolution

T = TypeVar("T")


@public("funcmcp.compat")
class Elicit(Generic[T]):
    """A form for the user, which a resolver returns.

    Args:
        message: The reason for the question, which the user reads.
        schema: The form: a pydantic model.
    """

    def __init__(self, message: str, schema: type[T]) -> None:
        self.message = message
        self.schema = schema


@public("funcmcp.compat")
class Sample:
    """A request to the client's model, which a resolver returns.

    Args:
        messages: The messages.
        max_tokens: The largest number of tokens of the answer.
        options: Options of `Context.sample`, such as ``system_prompt``.
    """

    def __init__(self, messages: Any, *, max_tokens: int, **options: Any) -> None:
        self.messages = messages
        self.max_tokens = max_tokens
        self.options = options


@public("funcmcp.compat")
class ListRoots:
    """A request for the client's roots, which a resolver returns."""


@public("funcmcp.compat")
class Resolve(Dependency):
    """The mark of a parameter that a resolver fills: ``stock: Annotated[Stock, Resolve(find_stock)]``.

    A parameter that is annotated with `ElicitationResult`, or one of its classes, gets the user's answer as such. Other
    parameters get the values of the form, and the call fails if the user declines.

    Args:
        resolver: Returns the value, or a question to the client. It may be async.
    """

    __slots__ = ("_gets_outcome", "_name")

    hides_failures: ClassVar[bool] = False

    def __init__(self, resolver: Callable[..., Any]) -> None:
        super().__init__(resolver)
        self._name = ""
        self._gets_outcome = False

    def bound_to(self, name: str, hint: Any) -> Resolve:
        """Return the mark of a parameter with a name and an annotation."""
        bound = Resolve(self.factory)
        bound._name, bound._gets_outcome = name, _is_outcome(hint)
        return bound

    async def resolve(self, resolution: Resolution, name: str) -> Any:  # noqa: ARG002 - the mark has it
        """Return the value for one call.

        Raises:
            ToolError: The user declined or cancelled.
        """
        if self.factory not in resolution.cache:
            resolution.cache[self.factory] = await self._outcome(resolution)
        outcome: ElicitationResult[Any] = resolution.cache[self.factory]
        if self._gets_outcome:
            return outcome
        if outcome.action != "accept":
            raise ToolError(
                f"Resolver for parameter {self._name!r} could not resolve: elicitation was {outcome.action}"
            )
        return outcome.data

    async def _outcome(self, resolution: Resolution) -> ElicitationResult[Any]:
        kwargs = await self._arguments(resolution)
        if is_async(self.factory):
            value = await self.factory(**kwargs)
        else:
            value = await resolution.scope.run_function(self.factory, kwargs)
        context = get_context()
        if isinstance(value, Elicit):
            answer: ElicitationResult[Any] = await context.elicit(value.message, value.schema)
            return answer
        if isinstance(value, Sample):
            value = await context.session.create_message(value.messages, max_tokens=value.max_tokens, **value.options)
        elif isinstance(value, ListRoots):
            value = SimpleNamespace(roots=await context.list_roots())
        return AcceptedElicitation(value)

    async def _arguments(self, resolution: Resolution) -> dict[str, Any]:
        """Return what the resolver gets for its parameters."""
        hints = Signature(self.factory).try_hints()
        kwargs: dict[str, Any] = {}
        for name, parameter in signature_of(self.factory).parameters.items():
            dependency = dependency_of(name, hints.get(name), parameter.default)
            if dependency is not None:
                kwargs[name] = await dependency.resolve(resolution, name)
            elif is_context(hints.get(name)):
                kwargs[name] = get_context()
            elif name in resolution.arguments:
                kwargs[name] = resolution.arguments[name]
            elif parameter.default is parameter.empty:
                raise TypeError(
                    f"The resolver {function_name(self.factory)} has a parameter {name!r}, which is not an argument of "
                    "the tool."
                )
        return kwargs


def _is_outcome(hint: Any) -> bool:
    """Return whether an annotation is `ElicitationResult`, one of its classes, or a union of them."""
    origin = get_origin(hint)
    if origin is Annotated:
        return _is_outcome(get_args(hint)[0])
    if origin in {Union, UnionType}:
        return any(map(_is_outcome, get_args(hint)))
    kind = origin or hint
    return isinstance(kind, type) and issubclass(kind, ElicitationResult)
