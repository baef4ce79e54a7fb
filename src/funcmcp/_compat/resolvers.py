"""Resolvers of the official SDK 2.x: functions that compute a parameter of a tool from its arguments, or ask for it.

How it works: `Resolve` marks a parameter, as `Depends` does. Its function gets arguments of the tool by name, the
context, and what other resolvers return. If it returns a question (`Elicit`, `Sample` or `ListRoots`), the client is
asked, and the parameter gets the answer.
"""

from __future__ import annotations

from functools import partial
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Generic, TypeVar, Union, get_args, get_origin

from funcmcp._authoring.signatures.annotations import parts_of_type
from funcmcp._authoring.signatures.partials import is_async, signature_of
from funcmcp._authoring.signatures.signature import Signature, function_name
from funcmcp._compat.context import get_context, is_context
from funcmcp._compat.dependencies import Dependency, dependency_of
from funcmcp._compat.elicitation import ElicitationResult
from funcmcp._compat.errors import InvalidSignature, ToolError
from funcmcp._compat.input_required import is_input_required_type
from funcmcp._compat.resolver_runs import (
    PendingError,
    ResolverRun,
    form_question,
    keys_of,
    model_question,
    roots_question,
)
from funcmcp._objects.public_names import public

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from funcmcp._compat.dependencies import Resolution
    from funcmcp._compat.resolver_runs import OpenQuestion

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

    def open_question(self) -> OpenQuestion:
        """Return the question for the client."""
        return form_question(self.message, self.schema)


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

    def open_question(self) -> OpenQuestion:
        """Return the question for the client."""
        return model_question(self.messages, self.max_tokens, self.options)


@public("funcmcp.compat")
class ListRoots:
    """A request for the client's roots, which a resolver returns."""

    def open_question(self) -> OpenQuestion:
        """Return the question for the client."""
        return roots_question()


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
            PendingError: The resolver, or one that it uses, waits for an answer of the client.
            ToolError: The user declined or cancelled.
        """
        run = ResolverRun.of(resolution)
        outcome = run.outcome_of(self.factory)
        if outcome is None:
            outcome = run.returned(self.factory, await self._returned(resolution))
        if self._gets_outcome:
            return outcome
        if outcome.action != "accept":
            raise ToolError(
                f"Resolver for parameter {self._name!r} could not resolve: elicitation was {outcome.action}"
            )
        return outcome.data

    async def _returned(self, resolution: Resolution) -> Any:
        """Call the resolver, and return what it returns."""
        kwargs = await self._arguments(resolution)
        if is_async(self.factory):
            return await self.factory(**kwargs)
        return await resolution.scope.run_function(self.factory, kwargs)

    async def _arguments(self, resolution: Resolution) -> dict[str, Any]:
        """Return what the resolver gets for its parameters."""
        hints = Signature(self.factory).try_hints()
        kwargs: dict[str, Any] = {}
        is_pending = False
        for name, parameter in signature_of(self.factory).parameters.items():
            dependency = dependency_of(name, hints.get(name), parameter.default)
            if dependency is not None:
                try:
                    kwargs[name] = await dependency.resolve(resolution, name)
                except PendingError:  # the other ones may have questions, too, which are asked at the same time
                    is_pending = True
            elif is_context(hints.get(name)):
                kwargs[name] = get_context()
            elif name in resolution.arguments:
                kwargs[name] = resolution.arguments[name]
            elif parameter.default is parameter.empty:
                raise TypeError(
                    f"The resolver {function_name(self.factory)} has a parameter {name!r}, which is not an argument of "
                    "the tool."
                )
        if is_pending:
            raise PendingError
        return kwargs


async def resolve_together(resolution: Resolution, marks: Mapping[str, Resolve], keys: Mapping[Any, str]) -> None:
    """Run the resolvers of all parameters of a call, and ask the client their questions at once.

    Args:
        resolution: The dependencies of the call.
        marks: The marks of the parameters, by name.
        keys: The keys of the questions by resolver.

    Raises:
        MCPError: The client has not declared that it answers such a question.
        ToolError: The user declined a question, or an answer is not valid.
    """
    run = ResolverRun.of(resolution, keys)
    await run.resolve_all({name: partial(mark.resolve, resolution, name) for name, mark in marks.items()})


def question_keys(marks: Mapping[str, Resolve]) -> dict[Any, str]:
    """Return the keys of the questions of resolvers, and of those that they use, by resolver."""
    resolvers: list[Any] = []

    def collect(resolver: Callable[..., Any]) -> None:
        if resolver in resolvers:
            return
        resolvers.append(resolver)
        hints = Signature(resolver).try_hints()
        for parameter in signature_of(resolver).parameters.values():
            mark = dependency_of(parameter.name, hints.get(parameter.name), parameter.default)
            if isinstance(mark, Resolve):
                collect(mark.factory)

    for mark in marks.values():
        collect(mark.factory)
    return keys_of(resolvers)


class _ResolverCheck:
    """Checks the resolvers of a tool, and those that they use.

    Args:
        arguments: The arguments of the tool.
    """

    def __init__(self, arguments: Collection[str]) -> None:
        self._arguments = arguments
        self._checked: list[Callable[..., Any]] = []

    def check(self, resolver: Callable[..., Any], users: tuple[Callable[..., Any], ...] = ()) -> None:
        """Raise InvalidSignature if a resolver, or one that it uses, can't be called.

        Args:
            resolver: The function.
            users: The resolvers that use it.
        """
        name = function_name(resolver)
        if resolver in users:
            raise InvalidSignature(f"Resolver {name!r} has a cyclic dependency")
        if resolver in self._checked:
            return
        hints = Signature(resolver).try_hints()
        for parameter in signature_of(resolver).parameters.values():
            mark = dependency_of(parameter.name, hints.get(parameter.name), parameter.default)
            if isinstance(mark, Resolve):
                self.check(mark.factory, (*users, resolver))
            elif mark is None and not is_context(hints.get(parameter.name)) and parameter.name not in self._arguments:
                raise InvalidSignature(
                    f"Resolver {name!r} parameter {parameter.name!r} cannot be resolved: expected a Context, an "
                    "Annotated[_, Resolve(...)], or a tool argument by name"
                )
        _check_questions(hints.get("return"), name)
        self._checked.append(resolver)


def check_resolvers(function: Callable[..., Any], tool: str) -> None:
    """Check the resolvers of a tool's function, as the official SDK does.

    Raises:
        InvalidSignature: A resolver uses itself, has a parameter that nothing fills, or may ask several questions; a
            mark is in a union; or the function of a tool with resolvers may return an ``InputRequiredResult``.
    """
    hints = Signature(function).try_hints()
    parameters = signature_of(function).parameters.values()
    marks = {
        parameter.name: dependency_of(parameter.name, hints.get(parameter.name), parameter.default)
        for parameter in parameters
    }
    for name, mark in marks.items():
        if mark is None and _has_mark_in_union(hints.get(name)):
            raise InvalidSignature(
                f"Parameter {name!r} of {function_name(function)!r} wraps `Resolve(...)` in a union; annotate the "
                "parameter directly as `Annotated[T, Resolve(...)]`"
            )
    resolvers = [mark.factory for mark in marks.values() if isinstance(mark, Resolve)]
    if not resolvers:
        return
    if any(map(is_input_required_type, parts_of_type(_without_aliases(hints.get("return"))))):
        raise InvalidSignature(
            f"Tool {tool!r} combines Resolve(...) parameters with an InputRequiredResult return; a call has one "
            "input_required channel, so the multi-round flow is driven either by resolvers or by the tool body, not "
            "both"
        )
    check = _ResolverCheck({name for name, mark in marks.items() if mark is None})
    for resolver in resolvers:
        check.check(resolver)


def _without_aliases(hint: Any) -> Any:
    """Return a type with what the names of ``type X = ...`` in it stand for."""
    if get_origin(hint) in {Union, UnionType}:
        return Union[tuple(map(_without_aliases, get_args(hint)))]  # noqa: UP007 - the members are in a tuple
    if get_origin(hint) is Annotated:
        return _without_aliases(get_args(hint)[0])
    try:
        value = getattr(hint, "__value__", None)
    except NameError:  # the alias names something that exists for type checkers only
        return hint
    return hint if value is None else _without_aliases(value)


def _has_mark_in_union(hint: Any) -> bool:
    """Return whether a member of a union has a `Resolve` mark."""
    if get_origin(hint) not in {Union, UnionType}:
        return False
    return any(isinstance(mark, Resolve) for member in get_args(hint) for mark in getattr(member, "__metadata__", ()))


def _check_questions(hint: Any, name: str) -> None:
    """Raise InvalidSignature if a resolver may return questions of several kinds."""
    members = get_args(hint) if get_origin(hint) in {Union, UnionType} else (hint,)
    kinds = [get_origin(member) or member for member in members]
    questions = [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, Elicit | Sample | ListRoots)]
    if len(questions) > 1:
        raise InvalidSignature(
            f"Resolver {name!r} return annotation has multiple Elicit/Sample/ListRoots arms; a resolver asks one "
            "question - split it into separate resolvers"
        )


def _is_outcome(hint: Any) -> bool:
    """Return whether an annotation is `ElicitationResult`, one of its classes, or a union of them."""
    origin = get_origin(hint)
    if origin is Annotated:
        return _is_outcome(get_args(hint)[0])
    if origin in {Union, UnionType}:
        return any(map(_is_outcome, get_args(hint)))
    kind = origin or hint
    return isinstance(kind, type) and issubclass(kind, ElicitationResult)
