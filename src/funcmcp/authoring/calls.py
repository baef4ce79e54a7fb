"""One function, ready to be called by a client: its plan is made when it is first needed, and then only run."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from funcmcp.authoring import docstring
from funcmcp.authoring.context import CancellationToken, ToolContext
from funcmcp.authoring.services import Services
from funcmcp.authoring.signature import JSONRPCRequest, Parameter, Signature
from funcmcp.authoring.threads import ThreadPool
from funcmcp.server.registry import RegistrationError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping

    from funcmcp.authoring.arguments import ArgumentBinder
    from funcmcp.authoring.results import Returned
    from funcmcp.authoring.signature import Plan
    from funcmcp.server.context import Context
    from funcmcp.server.features import RawResponse, ToolHandler

    Bind: TypeAlias = Callable[[dict[str, Any]], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Environment:
    """What the functions of one server share."""

    services: Services = field(default_factory=Services)
    threads: ThreadPool = field(default_factory=ThreadPool)


class Call:
    """How to call one function.

    Args:
        function: the function; a method that is not bound yet if `owner` is given.
        environment: services and threads.
        schema: an explicit input schema.
        lax: convert arguments where that is possible.
        owner: the class to construct for each call, or None.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        environment: Environment,
        *,
        schema: Mapping[str, Any] | None,
        lax: bool,
        owner: type | None = None,
    ) -> None:
        self._function = function
        self._environment = environment
        self._schema = schema
        self._lax = lax
        self._owner = owner
        self._signature = Signature(function, skip_self=owner is not None)
        self._plan: Plan | None = None
        self._binder: ArgumentBinder | None = None
        self._returned: Returned | None = None
        self._is_async = _is_async(function)

    @property
    def interactive(self) -> bool:
        """Whether the function may report progress, log or ask."""
        return self._signature.interactive

    def summary(self) -> str | None:
        """Return the description that the docstring gives."""
        return docstring.summary(self._function)

    def input_schema(self) -> dict[str, Any]:
        """Return the schema of the arguments."""
        return self.binder.schema()

    def output_schema(self) -> dict[str, Any] | None:
        """Return the schema of the structured content, or None."""
        return self.returned.schema()

    @property
    def plan(self) -> Plan:
        """Who fills which parameter; decided at first need, when the services are known."""
        if self._plan is None:
            self._plan = self._signature.plan(self._environment.services)
        return self._plan

    @property
    def binder(self) -> ArgumentBinder:
        """Binds arguments to parameters."""
        if self._binder is None:
            from funcmcp.authoring.arguments import ArgumentBinder  # noqa: PLC0415 - pydantic is loaded when needed

            self._binder = ArgumentBinder(
                self.plan, lax=self._lax, descriptions=lambda: docstring.parameter_descriptions(self._function)
            )
        return self._binder

    @property
    def returned(self) -> Returned:
        """Makes results of values."""
        if self._returned is None:
            from funcmcp.authoring.results import returned  # noqa: PLC0415 - pydantic is loaded when needed

            self._returned = returned(self.plan.returns)
        return self._returned

    def mentions(self, marker: type) -> bool:
        """Tell whether a parameter, or a field of a model in it, is annotated with a marker of this type."""
        if not self._signature.resolved:
            return False
        return any(_mentions(parameter.annotation, marker, set()) for parameter in self._signature.parameters())

    def check(self) -> None:
        """Raise RegistrationError for a pattern that can't be matched in linear time."""
        if not self._signature.resolved:
            return
        for parameter in self._signature.parameters():
            for pattern in _patterns(parameter):
                _check_pattern(parameter.name, pattern)

    def handler(self, name: str) -> ToolHandler:
        """Return the handler of the tool that calls the function."""
        built: list[ToolHandler] = []

        async def handle(context: Context, arguments: dict[str, Any]) -> dict[str, Any] | RawResponse:
            if not built:
                built.append(self._build(name))
            return await built[0](context, arguments)

        return handle

    def _build(self, name: str) -> ToolHandler:
        """Return a function that does what the plan says and nothing more."""
        bind, render, call = self._bind(), self.returned.render, self._caller()
        special = self.plan.special
        if not special and not self.plan.services and self._owner is None:

            async def simple(_context: Context, arguments: dict[str, Any]) -> dict[str, Any] | RawResponse:
                return render(await call(self._function, bind(arguments)))

            return simple

        async def full(context: Context, arguments: dict[str, Any]) -> dict[str, Any] | RawResponse:
            values = bind(arguments)
            token = CancellationToken()
            for parameter, kind in special.items():
                values[parameter] = _special(kind, context, name, arguments, token)
            try:
                return render(await self._with_services(call, values))
            except BaseException:
                token.cancel()
                raise

        return full

    async def _with_services(self, call: _Caller, values: dict[str, Any]) -> Any:
        if not self.plan.services and self._owner is None:
            return await call(self._function, values)
        async with self._environment.services.request() as services:
            for parameter in self.plan.services:
                values[parameter.name] = await services.get(parameter.type)
            function = self._function
            if self._owner is not None:
                function = function.__get__(await services.construct(self._owner))
            return await call(function, values)

    def _bind(self) -> Bind:
        """Return what makes keyword arguments of the call's arguments."""
        whole = _whole(self.plan) if self._schema is not None else None
        if self._schema is None:
            return self.binder.bind
        from funcmcp.authoring.explicit import ExplicitSchema  # noqa: PLC0415 - the validator is loaded when needed

        check = ExplicitSchema(self._schema).check
        if whole is not None:
            return lambda arguments: {whole.name: check(arguments)}
        if not self.plan.arguments and self.plan.spread is None:
            return lambda arguments: dict.fromkeys((), check(arguments))
        return lambda arguments: self.binder.bind(check(arguments))

    def _caller(self) -> _Caller:
        threads = self._environment.threads

        async def on_the_loop(function: Callable[..., Any], values: dict[str, Any]) -> Any:
            return await function(**values)

        async def in_a_thread(function: Callable[..., Any], values: dict[str, Any]) -> Any:
            value = await threads.run(function, values)
            return await value if inspect.isawaitable(value) else value

        return on_the_loop if self._is_async else in_a_thread


_Caller: TypeAlias = "Callable[[Callable[..., Any], dict[str, Any]], Awaitable[Any]]"


def _special(kind: type, context: Context, name: str, arguments: dict[str, Any], token: CancellationToken) -> Any:
    if kind is ToolContext:
        return ToolContext(context, name, arguments)
    return context.request.message() if kind is JSONRPCRequest else token


def _whole(plan: Plan) -> Parameter | None:
    """Return the parameter that takes all arguments as one dict, or None."""
    from collections.abc import Mapping  # noqa: PLC0415 - shadows the typing-only import on purpose
    from typing import get_origin  # noqa: PLC0415

    if len(plan.arguments) != 1 or plan.spread is not None:
        return None
    only = plan.arguments[0]
    kind = get_origin(only.type) or only.type
    plain = isinstance(kind, type) and issubclass(kind, Mapping) and not hasattr(kind, "__required_keys__")
    return only if plain or (only.annotation is Any and only.name == "arguments") else None


def _is_async(function: Any) -> bool:
    while hasattr(function, "func") and not inspect.isroutine(function):
        function = function.func
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004 - a callable object


def _patterns(parameter: Parameter) -> Iterator[str]:
    for item in (*getattr(parameter.annotation, "__metadata__", ()), parameter.default):
        for part in (item, *getattr(item, "metadata", ())):
            pattern = getattr(part, "pattern", None)
            if pattern is not None:
                yield getattr(pattern, "pattern", pattern)


def _check_pattern(name: str, pattern: str) -> None:
    from pydantic_core import SchemaError, SchemaValidator, core_schema  # noqa: PLC0415 - pydantic is loaded when needed

    try:
        SchemaValidator(core_schema.str_schema(pattern=pattern))
    except SchemaError as error:
        raise RegistrationError(
            f"The pattern of {name!r} can't be matched in linear time: it is no valid expression, or it uses "
            f"look-around or back-references. Write it without them: {pattern!r}"
        ) from error


def _mentions(annotation: Any, marker: type, seen: set[int]) -> bool:
    from typing import get_args  # noqa: PLC0415

    if id(annotation) in seen:
        return False
    seen.add(id(annotation))
    if any(isinstance(item, marker) for item in getattr(annotation, "__metadata__", ())):
        return True
    if any(_mentions(member, marker, seen) for member in get_args(annotation)):
        return True
    fields = getattr(annotation, "model_fields", None)
    if isinstance(fields, dict):
        return any(
            any(isinstance(item, marker) for item in info.metadata) or _mentions(info.annotation, marker, seen)
            for info in fields.values()
        )
    hints = getattr(annotation, "__annotations__", None) if isinstance(annotation, type) else None
    return isinstance(hints, dict) and any(_mentions(hint, marker, seen) for hint in hints.values())
