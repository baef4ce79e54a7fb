"""Calls of an author's function: arguments in, services and context beside them, result out.

How it works: a `FunctionCall` is created when its function is registered. At that time type hints may still name
classes that do not exist yet and services that are not registered yet, so it only reads the signature.
`FunctionCall.prepare` does the rest, once, at the first call. It decides what each parameter is (`Plan`), and creates
the reader, which turns a call's arguments into keyword arguments, and the renderer, which turns a returned value into a
result. `FunctionCall.run` is the only way to call the function. What differs between tools, resources, prompts,
completers and listers is in a `CallKind` for each: how arguments are read, how values are rendered, and what the
context of a call has.

A function that takes nothing but its arguments is called directly. Every other call gets a scope of services, a context
and a cancellation token of its own, which end with the call.
"""

from __future__ import annotations

import functools
import inspect
import logging
import sys
from asyncio import CancelledError
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar, TypeVarTuple, get_origin

from funcmcp._authoring.calling.arguments import input_schema, is_spread, text_parts_of
from funcmcp._authoring.calling.feature_context import (
    CancellationToken,
    Context,
    HandleArgument,
)
from funcmcp._authoring.calling.services import Scope
from funcmcp._authoring.results.pictures import drawn
from funcmcp._authoring.schemas.iterators import BUILT_IN, with_members
from funcmcp._authoring.signatures.annotations import marks_of
from funcmcp._authoring.signatures.partials import generator_kind, is_async
from funcmcp._authoring.signatures.signature import EMPTY, JSONRPCRequest, Signature
from funcmcp._server.catalog.registry import RegistrationError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Literal, TypeAlias

    from funcmcp._authoring.calling.arguments import Part
    from funcmcp._authoring.calling.services import Services
    from funcmcp._authoring.signatures.signature import Parameter
    from funcmcp._server.calls.context import RequestContext
    from funcmcp._server.catalog.features import LeftOut

    AnyCall: TypeAlias = "FunctionCall[Any, Any, *tuple[Any, ...]]"

_log = logging.getLogger("funcmcp")
_UPLOADED_FILE = "funcmcp._authoring.calling.uploaded_file"
_CONTEXT_NAMES = frozenset({"context", "ctx"})

SPECIAL: tuple[type, ...] = (Context, CancellationToken, JSONRPCRequest, Scope)
"""Types of parameters that are never arguments."""

Settings = TypeVar("Settings")
Result = TypeVar("Result")
Arguments = TypeVarTuple("Arguments")


class Plan(NamedTuple):
    """What each parameter of a function is.

    Attributes:
        arguments: Parameters that are filled from the call's arguments.
        special: Parameters of the types in `SPECIAL`, by name.
        services: Parameters that are injected, with their services.
        all_arguments: The parameter that takes all arguments as a dict, which a hand-written input schema allows.
        handle: The one of the arguments that has the handle of the caller's state; None for none.
    """

    arguments: list[Parameter]
    special: dict[str, type]
    services: dict[str, Any]
    all_arguments: str | None
    handle: str | None = None


class FeatureFunction(NamedTuple):
    """The function of a feature.

    Attributes:
        name: The feature's name.
        function: The function, or the plain function of a method.
        services: The server's services.
        owner: The class that is constructed for each call, if the function is one of its methods.
    """

    name: str
    function: Callable[..., Any]
    services: Services
    owner: type | None = None


def text_parts(call: AnyCall) -> list[Part]:
    """Return how arguments are read that are texts, as those of prompts and the variables of URIs."""
    return text_parts_of(call.plan.arguments, call.name)


def no_members(*_arguments: Any) -> dict[str, Any]:
    """Return nothing: the context of the call does not have its arguments."""
    return {}


class Always(NamedTuple, Generic[Result]):
    """A renderer that renders the values of all calls in the same way.

    Attributes:
        render: Turns a returned value into a result.
    """

    render: Callable[[Any], Result]


class CallKind(NamedTuple, Generic[Settings, Result, *Arguments]):
    """What calls of one kind of function do differently from those of the others.

    Attributes:
        new_reader: Returns the function that turns a call's arguments into keyword arguments.
        new_renderer: Returns the function that turns a returned value into a result, as `Always`; or one that returns
            it for the context and the arguments of a call.
        parts: Returns how each argument is read.
        context_members: Returns what the `Context` of a call has of its arguments.
        collects_generators: Whether the items of a generator are progress of the call, and together its result.
        takes_handle: Whether an argument may be a `StateHandle`, which the result of a call names.
    """

    new_reader: Callable[[FunctionCall[Settings, Result, *Arguments]], Callable[[*Arguments], dict[str, Any]]]
    new_renderer: Callable[
        [FunctionCall[Settings, Result, *Arguments]],
        Always[Result] | Callable[[RequestContext, *Arguments], Callable[[Any], Result]],
    ]
    parts: Callable[[FunctionCall[Settings, Result, *Arguments]], list[Part]] = text_parts
    context_members: Callable[..., dict[str, Any]] = no_members
    collects_generators: bool = False
    takes_handle: bool = False


class FunctionCall(Generic[Settings, Result, *Arguments]):
    """Calls a feature's function with its arguments, its services and its context.

    Args:
        feature: The function.
        kind: What its kind of function does differently.
        settings: What the author chose, which the functions of the kind read.
        handwritten_schema: The hand-written schema of the arguments, if there is one.

    Raises:
        RegistrationError: The function takes parameters that JSON arguments can't fill.
    """

    def __init__(
        self,
        feature: FeatureFunction,
        kind: CallKind[Settings, Result, *Arguments],
        settings: Settings,
        *,
        handwritten_schema: dict[str, Any] | None = None,
    ) -> None:
        self.name, self.function, self._services, self._owner = feature
        self.kind = kind
        self.settings = settings
        self.handwritten_schema = handwritten_schema
        self.signature = Signature(self.function, bound=self._owner is not None)
        self.generator = generator_kind(self.function) if kind.collects_generators else None
        self.is_async = self.generator == "async" or is_async(self.function)
        self._plan: Plan | None = None
        self._parts: list[Part] | None = None
        self._read: Callable[[*Arguments], dict[str, Any]] | None = None
        self._render: Callable[[Any], Result] | None = None
        self._render_for: Callable[[RequestContext, *Arguments], Callable[[Any], Result]]
        self._is_direct = False
        self._file_arguments: list[str] = []

    @property
    def plan(self) -> Plan:
        """What each parameter is. Types that are registered as services at the first look are injected."""
        if self._plan is None:
            self._plan = plan_of(self.signature, self._services, self.handwritten_schema)
            if self._plan.handle is not None and not self.kind.takes_handle:
                raise RegistrationError(f"{self.name} takes a StateHandle, which only tools can have. Remove it.")
        return self._plan

    @property
    def parts(self) -> list[Part]:
        """How each argument is read."""
        if self._parts is None:
            self._parts = self.kind.parts(self)
        return self._parts

    def input_schema(self) -> dict[str, Any]:
        """Return the JSON schema of the arguments: the hand-written one, or one that is made of the parameters."""
        if self.handwritten_schema is not None:
            return self.handwritten_schema
        return input_schema(self.parts, self.name, self.signature.parameter_descriptions())

    def left_out_of_input(self) -> list[LeftOut]:
        """Return what the generated schema of the arguments does not say, because clients would reject it."""
        left_out: list[LeftOut] = []
        if self.handwritten_schema is None:
            input_schema(self.parts, self.name, self.signature.parameter_descriptions(), left_out)
        return left_out

    def prepare(self) -> Callable[[*Arguments], dict[str, Any]]:
        """Create the reader and the renderer, and return the reader.

        Raises:
            RegistrationError: A parameter or the result has a type that JSON can't carry.
        """
        plan = self.plan
        self._file_arguments = _file_arguments(plan)
        is_alone = self._owner is None and self.generator is None
        self._is_direct = is_alone and not plan.special and not plan.services and not self._file_arguments
        renderer = self.kind.new_renderer(self)
        if isinstance(renderer, Always):
            self._render = renderer.render
        else:
            self._render_for = renderer
        self._read = self.kind.new_reader(self)
        return self._read

    def read(self, *arguments: *Arguments) -> dict[str, Any]:
        """Return the keyword arguments; raise what `run` raises for arguments that the function does not take."""
        read = self._read or self.prepare()
        return read(*arguments)

    async def run(self, context: RequestContext, *arguments: *Arguments) -> Result:
        """Call the function, and return its result.

        Args:
            context: The request's context.
            arguments: The call's arguments, which are not validated yet.
        """
        read = self._read or self.prepare()
        kwargs = read(*arguments)
        render = self._render or self._render_for(context, *arguments)
        try:
            if not self._is_direct:
                return await self._run_injected(context, arguments, kwargs, render)
            if self.is_async:
                value = await self.function(**kwargs)
                if type(value) not in BUILT_IN:
                    value = with_members(value)
                return render(value)
            return render(await call_in_thread(self.function, kwargs, self._services.threads.run))
        except SystemExit as error:
            raise RuntimeError(f"{self.name} raised SystemExit, which must not end the server.") from error

    async def _run_injected(
        self,
        context: RequestContext,
        arguments: tuple[*Arguments],
        kwargs: dict[str, Any],
        render: Callable[[Any], Result],
    ) -> Result:
        """Call the function with its services, its context and its cancellation token, and end them afterwards.

        The services are closed before the call has a result, so an exception that they raise is a failure of the call.
        """
        scope = self._services.scope()
        if not self.is_async:
            scope.use_thread()
        token = CancellationToken()
        feature_context = self._add_special(kwargs, scope, token, context, arguments)
        try:
            try:
                if self._file_arguments:  # it saves a call
                    await self.open_files(kwargs, context)
                function = await self._inject(kwargs, scope)
                if self.generator is not None:
                    function = self._collecting(function, self.generator, feature_context, token)
                if self.is_async:
                    value = with_members(await function(**kwargs))
                else:
                    value = await call_in_thread(function, kwargs, scope.run_function)
                result = self._naming_handle(render(value), feature_context)
                if scope.is_cancelled and context.timeout is None:
                    raise CancelledError  # the function ignored it and returned; its services must not commit
            except (CancelledError, GeneratorExit):
                token.cancel()  # before its threads go on
                raise
            finally:
                if feature_context is not None:
                    feature_context.close()
        except BaseException as error:
            await scope.aclose(context.timeout or error)
            raise
        await scope.aclose(context.timeout)
        return result

    async def _inject(self, kwargs: dict[str, Any], scope: Scope) -> Callable[..., Any]:
        """Add the services to the arguments; return the function, bound to its instance if it is a method."""
        for name, service in self.plan.services.items():
            kwargs[name] = await scope.get(service)
        if self._owner is None:
            return self.function
        return functools.partial(self.function, await scope.construct(self._owner))

    async def open_files(self, kwargs: dict[str, Any], context: RequestContext) -> None:
        """Open the uploads in the arguments that `read` returned; raise ToolError if the caller lacks one of them."""
        if not self._file_arguments:
            return
        from funcmcp._authoring.calling.uploaded_file import open_files  # noqa: PLC0415 - few servers take files

        for name in self._file_arguments:
            await open_files(kwargs.get(name), self._services.uploads, context, name)

    def _add_special(
        self,
        kwargs: dict[str, Any],
        scope: Scope,
        token: CancellationToken,
        context: RequestContext,
        arguments: tuple[*Arguments],
    ) -> Context | None:
        """Add the parameters of the types in `SPECIAL`. Return the context that they share, or None if none gets it."""
        feature_context: Context | None = None
        if self.generator is not None:
            feature_context = self._new_context(context, kwargs, arguments)
        for name, kind in self.plan.special.items():
            if kind is CancellationToken:
                kwargs[name] = token
            elif kind is JSONRPCRequest:
                kwargs[name] = context.request
            elif kind is Scope:
                kwargs[name] = scope
            else:
                if feature_context is None:
                    feature_context = self._new_context(context, kwargs, arguments)
                kwargs[name] = feature_context
        return feature_context

    def _new_context(self, context: RequestContext, kwargs: dict[str, Any], arguments: tuple[*Arguments]) -> Context:
        members = self.kind.context_members(*arguments)
        handle = self.plan.handle
        if handle is not None:
            members |= {"handle": HandleArgument(handle, kwargs.get(handle))}
        return Context(context, self._services, self.name, **members)

    def _naming_handle(self, result: Result, feature_context: Context | None) -> Result:
        """Return a result, with the handle of the caller's state if the call has created it."""
        argument = self.plan.handle
        if argument is None or feature_context is None:
            return result
        handle = feature_context.state.new_handle
        if handle is None:
            return result
        from funcmcp._authoring.calling.state_access import naming_handle, shown_name  # noqa: PLC0415 - few have one

        context = feature_context._context  # noqa: SLF001 - what no author needs
        context.forbid_reuse()  # the handle is for this caller only
        named: Result = naming_handle(result, shown_name(argument, context), handle)
        return named

    def _collecting(
        self,
        function: Callable[..., Any],
        kind: Literal["plain", "async"],
        context: Context | None,
        token: CancellationToken,
    ) -> Callable[..., Any]:
        """Return a function that reads a generator to its end."""
        from funcmcp._authoring.calling.generators import collecting  # noqa: PLC0415 - few tools are generators

        assert context is not None  # noqa: S101 - `_add_special` has made one
        return collecting(function, kind, context=context, token=token, max_bytes=self._services.result_bytes)


async def call_in_thread(
    function: Callable[..., Any], kwargs: dict[str, Any], run: Callable[..., Awaitable[Any]]
) -> Any:
    """Call a plain function in a worker thread; await what it returns if that is awaitable.

    An iterator is read in the same thread: it is code of the author that may block, and what it uses, such as a
    connection of sqlite3, may work only there. The reading ends with the call.

    Args:
        function: The function.
        kwargs: Its arguments.
        run: Runs a function in the thread.
    """
    is_over = False

    def call(**kwargs: Any) -> Any:
        value = with_members(function(**kwargs), lambda: is_over)
        return value if type(value) in BUILT_IN else drawn(value)

    try:
        value = await run(call, kwargs)
    finally:
        is_over = True
    if type(value) not in BUILT_IN and inspect.isawaitable(value):
        return await value
    return value


def _file_arguments(plan: Plan) -> list[str]:
    """Return the arguments that may contain an `UploadedFile`, whose module is loaded if an author uses it."""
    if _UPLOADED_FILE not in sys.modules:
        return []
    from funcmcp._authoring.calling.uploaded_file import takes_files  # noqa: PLC0415 - few servers take files

    return [parameter.name for parameter in plan.arguments if takes_files(parameter.annotation)]


def plan_of(
    signature: Signature,
    services: Services,
    input_schema: Mapping[str, Any] | None,
) -> Plan:
    """Return what each parameter of a function is.

    Args:
        signature: The function's signature.
        services: Types that are registered here are injected.
        input_schema: The hand-written schema of the arguments, if there is one.

    Raises:
        RegistrationError: A type hint can't be resolved.
    """
    arguments: list[Parameter] = []
    special: dict[str, type] = {}
    injected: dict[str, Any] = {}
    for parameter in signature.parameters():
        kind = special_type(parameter)
        if kind is not None:
            special[parameter.name] = kind
        elif parameter.bare in services and not is_spread(parameter):
            injected[parameter.name] = parameter.bare
        else:
            _warn_of_untyped_context(parameter, signature.name)
            arguments.append(parameter)
    if input_schema is not None and _takes_all_arguments(arguments, input_schema):
        return Plan([], special, injected, arguments[0].name)
    return Plan(arguments, special, injected, None, _handle_in(arguments, special, signature.name))


def _handle_in(arguments: list[Parameter], special: Mapping[str, type], name: str) -> str | None:
    """Return the argument that is a `StateHandle`; raise RegistrationError if the function can't use it."""
    handles = [p for p in arguments if any(hasattr(mark, "is_state_handle") for mark in marks_of(p.annotation))]
    if not handles:
        return None
    handle = handles[0]
    if len(handles) > 1:
        raise RegistrationError(f"{name} has more than one StateHandle. Remove {handles[1].name!r}.")
    if handle.default is not None:
        raise RegistrationError(f"A StateHandle may be absent. Write {handle.name}: StateHandle = None in {name}.")
    if Context not in special.values():
        raise RegistrationError(f"{name} takes a StateHandle and no Context, whose state it is for. Add a Context.")
    return handle.name


def _warn_of_untyped_context(parameter: Parameter, name: str) -> None:
    """Warn of a parameter that is probably meant for the context, and that clients see as an argument."""
    if parameter.annotation is EMPTY and parameter.name in _CONTEXT_NAMES:
        _log.warning(
            "%s: the parameter %r has no type, so clients see it as an argument. Did you mean %s: Context?",
            name,
            parameter.name,
            parameter.name,
        )


def special_type(parameter: Parameter) -> type | None:
    """Return which of the types in `SPECIAL` a parameter has, or None."""
    bare: object = parameter.bare
    for special in SPECIAL:
        if bare is special:
            return special
    return None


def _takes_all_arguments(parameters: list[Parameter], input_schema: Mapping[str, Any]) -> bool:
    """Return whether a function has one parameter, which takes all arguments as a dict."""
    if len(parameters) != 1 or parameters[0].name in input_schema.get("properties", {}):
        return False
    parameter = parameters[0]
    if parameter.annotation is EMPTY:
        return parameter.name == "arguments"
    return (get_origin(parameter.bare) or parameter.bare) in {dict, Mapping}
