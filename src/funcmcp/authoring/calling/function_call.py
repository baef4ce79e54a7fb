"""Running a feature's function: arguments in, services and context beside them, result out.

What there is to do is worked out when the feature is first used or listed, and kept.
"""

from __future__ import annotations

import functools
import inspect
from asyncio import CancelledError
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, get_origin

from funcmcp.authoring.calling.arguments import explicit_reader, input_schema, is_spread, parts_of, reader_of
from funcmcp.authoring.calling.feature_context import (
    CancellationToken,
    FeatureContext,
    PromptContext,
    ResourceContext,
    ToolContext,
)
from funcmcp.authoring.signatures.annotations import without_marks
from funcmcp.authoring.signatures.docstring import parameter_descriptions
from funcmcp.authoring.signatures.signature import EMPTY, JSONRPCRequest
from funcmcp.authoring.values.tool_results import declared_rendering, rendering_of
from funcmcp.server.catalog.features import JSONResult, RawResponse
from funcmcp.server.catalog.registry import RegistrationError

if TYPE_CHECKING:
    from collections.abc import Callable

    from funcmcp.authoring.calling.arguments import Part, Reader
    from funcmcp.authoring.calling.services import Scope, Services
    from funcmcp.authoring.signatures.signature import Parameter, Signature
    from funcmcp.authoring.values.tool_results import Rendering
    from funcmcp.server.calls.context import RequestContext

SPECIAL: tuple[type, ...] = (ToolContext, ResourceContext, PromptContext, CancellationToken, JSONRPCRequest)
"""Types of parameters that are never arguments."""

T = TypeVar("T")


class Schemas(NamedTuple):
    """Hand-written schemas of a tool; None where the annotations say it."""

    input: dict[str, Any] | None
    output: dict[str, Any] | None


class Plan(NamedTuple):
    """What each parameter of a function is.

    Attributes:
        arguments: filled from the call's arguments.
        special: parameters of the types in `SPECIAL`, by name.
        services: parameters that are injected, with their services.
        whole: the parameter that takes all arguments as a dict, where the input schema is hand-written.
    """

    arguments: list[Parameter]
    special: dict[str, type]
    services: dict[str, Any]
    whole: str | None


class FunctionCall:
    """Runs a feature's function with its services and its context.

    Args:
        name: the feature's name.
        function: the function, or the plain function of a method.
        signature: its signature.
        services: the server's services.
        context: the type of context that the feature has.
        explicit: the hand-written schema of its arguments, if there is one.
        owner: the class that is constructed for each call, if the function is one of its methods.
    """

    def __init__(  # noqa: PLR0913 - each is a different thing
        self,
        name: str,
        function: Callable[..., Any],
        signature: Signature,
        *,
        services: Services,
        context: type[FeatureContext],
        explicit: Mapping[str, Any] | None = None,
        owner: type | None = None,
    ) -> None:
        self.name = name
        self.function = function
        self.signature = signature
        self.is_async = is_async(function)
        self._services = services
        self._context = context
        self._explicit = explicit
        self._owner = owner
        self._plan: Plan | None = None

    @property
    def plan(self) -> Plan:
        """What each parameter is; types that are registered as services by the first look are injected."""
        if self._plan is None:
            self._plan = plan_of(self.signature, self._services, self._context, explicit=self._explicit)
        return self._plan

    @property
    def is_direct(self) -> bool:
        """Whether the function takes nothing but its arguments."""
        return self._owner is None and not self.plan.special and not self.plan.services

    async def run(
        self,
        context: RequestContext,
        kwargs: dict[str, Any],
        *,
        make_context: Callable[[], FeatureContext],
        render: Callable[[Any], T],
    ) -> T:
        """Call the function with its arguments and what else it takes; return what `render` makes of its result."""
        company = _Company(context, make_context)
        scope = self._services.scope()
        try:
            for name, special in self.plan.special.items():
                kwargs[name] = company.get(special)
            return render(await self.call(await self._bound(scope, kwargs), kwargs))
        except (CancelledError, GeneratorExit):
            company.token.cancel()
            raise
        except SystemExit as error:
            raise RuntimeError(f"{self.name} wanted to end the process.") from error
        finally:
            company.leave()
            await scope.aclose()

    async def call(self, function: Callable[..., Any], kwargs: dict[str, Any]) -> Any:
        """Call the function: on the event loop if it is async, in a worker thread if it is not."""
        if self.is_async:
            return await function(**kwargs)
        value = await self._services.threads.run(function, kwargs)
        return await value if inspect.isawaitable(value) else value

    async def _bound(self, scope: Scope, kwargs: dict[str, Any]) -> Callable[..., Any]:
        """Add the services, and return what is to be called: the method of a new object where there is an owner."""
        for name, service in self.plan.services.items():
            kwargs[name] = await scope.get(service)
        if self._owner is None:
            return self.function
        return functools.partial(self.function, await scope.construct(self._owner))


class ToolCall:
    """Runs one tool's function.

    Args:
        call: runs the function.
        schemas: the tool's hand-written schemas.
        lax: whether arguments are converted as pydantic does by default.
    """

    def __init__(self, call: FunctionCall, schemas: Schemas, *, lax: bool = False) -> None:
        self._call = call
        self._name = call.name
        self._function = call.function
        self._is_async = call.is_async
        self._schemas = schemas
        self._lax = lax
        self._kept_parts: list[Part] | None = None
        self._rendering: Rendering | None = None
        self._read: Reader | None = None
        self._render: Callable[[Any], dict[str, Any] | JSONResult | RawResponse]
        self._direct = False

    async def run(
        self, context: RequestContext, arguments: dict[str, Any]
    ) -> dict[str, Any] | JSONResult | RawResponse:
        """Run the tool: a `ToolHandler`."""
        read = self._read or self._prepare()
        kwargs = read(arguments)
        if not self._direct:
            make = functools.partial(ToolContext, context, self._name, arguments)
            return _answering(await self._call.run(context, kwargs, make_context=make, render=self._render), context)
        try:
            if self._is_async:
                return self._render(await self._function(**kwargs))
            return self._render(await self._call.call(self._function, kwargs))
        except SystemExit as error:
            raise RuntimeError(f"{self._name} wanted to end the process.") from error

    def input_schema(self) -> dict[str, Any]:
        """Return the tool's input schema."""
        if self._schemas.input is not None:
            return self._schemas.input
        return input_schema(self._parts(), self._name, parameter_descriptions(self._function))

    def output_schema(self) -> dict[str, Any] | None:
        """Return the tool's output schema, or None if it has none."""
        return self._results().output_schema()

    def _prepare(self) -> Reader:
        plan = self._call.plan
        self._render, _, is_response = self._results()
        self._direct = self._call.is_direct and not is_response
        explicit = self._schemas.input
        if explicit is None:
            read = reader_of(self._parts(), lax=self._lax)
        else:
            named = reader_of(self._parts(), lax=self._lax) if plan.arguments else None
            read = explicit_reader(explicit, self._name, whole=plan.whole, reader=named)
        self._read = read
        return read

    def _parts(self) -> list[Part]:
        if self._kept_parts is None:
            self._kept_parts = parts_of(self._call.plan.arguments, self._name, lax=self._lax)
        return self._kept_parts

    def _results(self) -> Rendering:
        if self._rendering is None:
            declared = self._schemas.output
            self._rendering = (
                rendering_of(self._call.signature.returns(), self._name)
                if declared is None
                else declared_rendering(declared, self._name)
            )
        return self._rendering


class _Company:
    """What goes with one call; made when it is asked for."""

    __slots__ = ("_context", "_feature_context", "_make", "token")

    def __init__(self, context: RequestContext, make: Callable[[], FeatureContext]) -> None:
        self._context = context
        self._make = make
        self._feature_context: FeatureContext | None = None
        self.token = CancellationToken()

    def get(self, special: type) -> Any:
        if special is CancellationToken:
            return self.token
        if special is JSONRPCRequest:
            return self._context.request
        if self._feature_context is None:
            self._feature_context = self._make()
        return self._feature_context

    def leave(self) -> None:
        if self._feature_context is not None:
            self._feature_context.close()


def is_async(function: Any) -> bool:
    """Tell whether calling a function gives a coroutine."""
    while isinstance(function, functools.partial):
        function = function.func
    if inspect.iscoroutinefunction(function):
        return True
    return not inspect.isroutine(function) and inspect.iscoroutinefunction(type(function).__call__)


def plan_of(
    signature: Signature, services: Services, context: type[FeatureContext], *, explicit: Mapping[str, Any] | None
) -> Plan:
    """Tell what each parameter is; types that are registered as services by now are injected.

    Raises:
        RegistrationError: a type hint can't be resolved, or it is that of another feature's context.
    """
    arguments: list[Parameter] = []
    special: dict[str, type] = {}
    injected: dict[str, Any] = {}
    for parameter in signature.parameters():
        kind = special_type(parameter.annotation)
        bare = without_marks(parameter.annotation)
        if kind is not None:
            if issubclass(kind, FeatureContext) and kind is not context:
                raise RegistrationError(
                    f"The parameter {parameter.name!r} is a {kind.__name__}. Use {context.__name__} here."
                )
            special[parameter.name] = kind
        elif bare in services and not is_spread(parameter):
            injected[parameter.name] = bare
        else:
            arguments.append(parameter)
    whole = None if explicit is None else _takes_all(arguments, explicit)
    return Plan([] if whole else arguments, special, injected, whole)


def special_type(annotation: Any) -> type | None:
    """Return which of the types in `SPECIAL` an annotation means, if any."""
    bare = without_marks(annotation)
    return next((kind for kind in SPECIAL if bare is kind), None)


def _takes_all(arguments: list[Parameter], schema: Mapping[str, Any]) -> str | None:
    """Return the name of the one parameter that takes all arguments as a dict, if there is one."""
    if len(arguments) != 1 or arguments[0].name in schema.get("properties", {}):
        return None
    name, annotation, _ = arguments[0]
    bare = without_marks(annotation)
    is_mapping = (get_origin(bare) or bare) in {dict, Mapping}
    return name if is_mapping or (annotation is EMPTY and name == "arguments") else None


def _answering(
    result: dict[str, Any] | JSONResult | RawResponse, context: RequestContext
) -> dict[str, Any] | JSONResult | RawResponse:
    """Check that a response that a tool made itself answers the request."""
    if isinstance(result, RawResponse):
        request_id = context.request.id
        given = result.message["id"]
        if given != request_id or type(given) is not type(request_id):
            raise ValueError("The tool's JSON-RPC response has another id than the request.")
    return result
