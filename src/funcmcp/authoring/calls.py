"""Running a tool's function: arguments in, services and context beside them, result out.

What there is to do is worked out when the tool is first called or listed, and kept.
"""

from __future__ import annotations

import functools
import inspect
from asyncio import CancelledError
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, get_origin

from funcmcp.authoring.arguments import explicit_reader, input_schema, is_spread, parts_of, reader_of
from funcmcp.authoring.context import CancellationToken, ToolContext
from funcmcp.authoring.docstring import parameter_descriptions
from funcmcp.authoring.hints import without_marks
from funcmcp.authoring.results import declared_rendering, rendering_of
from funcmcp.authoring.signature import EMPTY, JSONRPCRequest
from funcmcp.server.features import JSONResult, RawResponse

if TYPE_CHECKING:
    from collections.abc import Callable

    from funcmcp.authoring.arguments import Part, Reader
    from funcmcp.authoring.results import Rendering
    from funcmcp.authoring.services import Scope, Services
    from funcmcp.authoring.signature import Parameter, Signature
    from funcmcp.server.context import Context

SPECIAL: tuple[type, ...] = (ToolContext, CancellationToken, JSONRPCRequest)
"""Types of parameters that are never arguments."""


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


class ToolCall:
    """Runs one tool's function.

    Args:
        name: the tool's name.
        function: the function, or the plain function of a method.
        signature: its signature.
        services: the server's services.
        schemas: its hand-written schemas.
        lax: whether arguments are converted as pydantic does by default.
        owner: the class that is constructed for each call, if the function is one of its methods.
    """

    def __init__(  # noqa: PLR0913 - each is a different thing, and there is one caller
        self,
        name: str,
        function: Callable[..., Any],
        signature: Signature,
        *,
        services: Services,
        schemas: Schemas,
        lax: bool = False,
        owner: type | None = None,
    ) -> None:
        self._name = name
        self._function = function
        self._signature = signature
        self._services = services
        self._schemas = schemas
        self._lax = lax
        self._owner = owner
        self._is_async = is_async(function)
        self._plan: Plan | None = None
        self._kept_parts: list[Part] | None = None
        self._rendering: Rendering | None = None
        self._read: Reader | None = None
        self._render: Callable[[Any], dict[str, Any] | JSONResult | RawResponse]
        self._direct = False

    async def run(self, context: Context, arguments: dict[str, Any]) -> dict[str, Any] | JSONResult | RawResponse:
        """Run the tool: a `ToolHandler`."""
        read = self._read or self._prepare()
        kwargs = read(arguments)
        if not self._direct:
            return await self._run_with_company(context, arguments, kwargs)
        try:
            if self._is_async:
                return self._render(await self._function(**kwargs))
            return self._render(await self._call(self._function, kwargs))
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
        plan = self._planned()
        self._render, _, is_response = self._results()
        alone = self._owner is None and not plan.special and not plan.services
        self._direct = alone and not is_response
        explicit = self._schemas.input
        if explicit is None:
            read = reader_of(self._parts(), lax=self._lax)
        else:
            named = reader_of(self._parts(), lax=self._lax) if plan.arguments else None
            read = explicit_reader(explicit, self._name, whole=plan.whole, reader=named)
        self._read = read
        return read

    def _planned(self) -> Plan:
        if self._plan is None:
            self._plan = plan_of(self._signature, self._services, explicit=self._schemas.input)
        return self._plan

    def _parts(self) -> list[Part]:
        if self._kept_parts is None:
            self._kept_parts = parts_of(self._planned().arguments, self._name, lax=self._lax)
        return self._kept_parts

    def _results(self) -> Rendering:
        if self._rendering is None:
            declared = self._schemas.output
            self._rendering = (
                rendering_of(self._signature.returns(), self._name)
                if declared is None
                else declared_rendering(declared, self._name)
            )
        return self._rendering

    async def _run_with_company(
        self, context: Context, arguments: dict[str, Any], kwargs: dict[str, Any]
    ) -> dict[str, Any] | JSONResult | RawResponse:
        """Run a function that is plain, or wants more than its arguments."""
        company = _Company(context, self._name, arguments)
        scope = self._services.scope()
        try:
            plan = self._planned()
            for name, special in plan.special.items():
                kwargs[name] = company.get(special)
            result = self._render(await self._call(await self._bound(scope, plan, kwargs), kwargs))
        except (CancelledError, GeneratorExit):
            company.token.cancel()
            raise
        except SystemExit as error:
            raise RuntimeError(f"{self._name} wanted to end the process.") from error
        finally:
            company.leave()
            await scope.aclose()
        return _answering(result, context)

    async def _bound(self, scope: Scope, plan: Plan, kwargs: dict[str, Any]) -> Callable[..., Any]:
        """Add the services, and return what is to be called: the method of a new object where there is an owner."""
        for name, service in plan.services.items():
            kwargs[name] = await scope.get(service)
        if self._owner is None:
            return self._function
        return functools.partial(self._function, await scope.construct(self._owner))

    async def _call(self, function: Callable[..., Any], kwargs: dict[str, Any]) -> Any:
        if self._is_async:
            return await function(**kwargs)
        value = await self._services.threads.run(function, kwargs)
        return await value if inspect.isawaitable(value) else value


class _Company:
    """What goes with one call; made when it is asked for."""

    __slots__ = ("_arguments", "_context", "_name", "_tool_context", "token")

    def __init__(self, context: Context, name: str, arguments: dict[str, Any]) -> None:
        self._context = context
        self._name = name
        self._arguments = arguments
        self._tool_context: ToolContext | None = None
        self.token = CancellationToken()

    def get(self, special: type) -> Any:
        if special is CancellationToken:
            return self.token
        if special is JSONRPCRequest:
            return self._context.request
        if self._tool_context is None:
            self._tool_context = ToolContext(self._context, self._name, self._arguments)
        return self._tool_context

    def leave(self) -> None:
        if self._tool_context is not None:
            self._tool_context.close()


def is_async(function: Any) -> bool:
    """Tell whether calling a function gives a coroutine."""
    while isinstance(function, functools.partial):
        function = function.func
    if inspect.iscoroutinefunction(function):
        return True
    return not inspect.isroutine(function) and inspect.iscoroutinefunction(type(function).__call__)


def plan_of(signature: Signature, services: Services, *, explicit: Mapping[str, Any] | None) -> Plan:
    """Tell what each parameter is; types that are registered as services by now are injected.

    Raises:
        RegistrationError: a type hint can't be resolved.
    """
    arguments: list[Parameter] = []
    special: dict[str, type] = {}
    injected: dict[str, Any] = {}
    for parameter in signature.parameters():
        kind = special_type(parameter.annotation)
        bare = without_marks(parameter.annotation)
        if kind is not None:
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
    result: dict[str, Any] | JSONResult | RawResponse, context: Context
) -> dict[str, Any] | JSONResult | RawResponse:
    """Check that a response that a tool made itself answers the request."""
    if isinstance(result, RawResponse):
        request_id = context.request.id
        given = result.message["id"]
        if given != request_id or type(given) is not type(request_id):
            raise ValueError("The tool's JSON-RPC response has another id than the request.")
    return result
