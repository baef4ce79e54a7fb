"""Functions of other frameworks as funcmcp takes them: without parameters that are not arguments.

How it works: `adapted` returns the function itself, or a function around it that fills the context and the
dependencies for each call. The signature that funcmcp reads has only the arguments, and a parameter for the scope of
the call if there are dependencies: they are closed as services are, when the end of the call is known.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Iterator
from typing import TYPE_CHECKING, Any, get_origin, get_type_hints

from funcmcp._authoring.calling.function_call import call_in_thread
from funcmcp._authoring.calling.services import Scope
from funcmcp._authoring.signatures.annotations import parts_of_type
from funcmcp._authoring.signatures.docstring import description
from funcmcp._authoring.signatures.partials import is_async, signature_of, without_partials
from funcmcp._authoring.signatures.signature import Signature, function_name
from funcmcp._compat.content import ResourceContent, ResourceResult
from funcmcp._compat.context import get_context, is_context
from funcmcp._compat.dependencies import Resolution, dependency_of, referenced_arguments
from funcmcp._compat.errors import FastMCPError
from funcmcp._compat.resolvers import Resolve, question_keys, resolve_together
from funcmcp._compat.result_types import ResultConversion, schema_of_annotated_result
from funcmcp._compat.typed_dicts import readable
from funcmcp._objects.mappings import without
from funcmcp._protocol.errors import MCPError
from funcmcp._protocol.errors import ToolError as NativeToolError
from funcmcp._server.catalog.registry import RegistrationError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from funcmcp._compat.dependencies import Dependency

_ITERATORS = {Iterator, AsyncIterator, AsyncIterable, AsyncGenerator}
"""Annotations of generators for which there is no output schema, as in FastMCP."""

_SCOPE = "scope_of_dependencies"
_SCOPE_PARAMETER = inspect.Parameter(_SCOPE, inspect.Parameter.KEYWORD_ONLY, annotation=Scope)
"""The parameter of a wrapper through which it gets the scope of the call, with which the dependencies end."""


def adapted(function: Callable[..., Any], *, exclude: Collection[str] = (), has_schema: bool = True) -> Any:
    """Return a function that takes only arguments; *function* itself if nothing has to change.

    Args:
        function: A function with a parameter for the context, or with dependencies.
        exclude: Parameters that clients don't fill. Their defaults apply.
        has_schema: Whether results are structured content as the return annotation describes it.

    Raises:
        RegistrationError: The function takes parameters that JSON arguments can't fill.
    """
    signature = Signature(function)
    if signature.try_types() is None:
        return function
    hints = signature.try_hints()
    parameters = signature_of(function).parameters
    contexts = [name for name in parameters if is_context(hints.get(name))]
    dependencies = _dependencies(parameters, hints)
    referenced = referenced_arguments(dependencies, hints)
    hidden = {*contexts, *dependencies, *exclude}
    types = {name: readable(hint) for name, hint in hints.items()}
    has_new_types = any(types[name] is not hint for name, hint in hints.items())
    if has_schema and not has_new_types and hidden.isdisjoint(parameters):
        return function
    added = list(without(referenced, *parameters).values())
    if dependencies:
        wrapper = _with_dependencies(function, contexts, dependencies, {parameter.name for parameter in added})
    elif is_async(function):
        wrapper = _asynchronous(function, contexts)
    else:
        wrapper = _plain(function, contexts)
    annotations = without(types, *hidden)
    if not has_schema:
        annotations.pop("return", None)
    set_signature(wrapper, function, annotations, hidden)
    if dependencies:
        _add_parameters(wrapper, [*added, _SCOPE_PARAMETER])
    return wrapper


def _dependencies(parameters: Mapping[str, inspect.Parameter], hints: Mapping[str, Any]) -> dict[str, Dependency]:
    """Return the dependencies among the parameters of a function, by name."""
    dependencies: dict[str, Dependency] = {}
    for name, parameter in parameters.items():
        mark = dependency_of(name, hints.get(name), parameter.default)
        if mark is not None:
            dependencies[name] = mark
    return dependencies


def schema_of_result(function: Callable[..., Any]) -> dict[str, Any] | None:
    """Return the output schema in a function's annotation, beside the class of its result; None if there is none."""
    return schema_of_annotated_result(Signature(function).try_hints().get("return"))


def with_result(function: Callable[..., Any], hint: Any, convert: Callable[[Any], Any]) -> Any:
    """Return a function that converts what another one returns.

    Args:
        function: A function that `adapted` returned.
        hint: The return annotation; None for no annotation.
        convert: Returns the value for the annotation.
    """
    types = Signature(function).try_types()
    if types is None:
        return function
    call = _converting_async(function, convert) if is_async(function) else _converting(function, convert)
    annotations = without(types.hints, "return")
    if hint is not None:
        annotations["return"] = hint
    set_signature(call, function, annotations, ())
    return call


def tool_function(function: Callable[..., Any], *, exclude: Collection[str] = (), has_schema: bool = True) -> Any:
    """Return a function for a tool; the arguments are those of `adapted`."""
    conversion = ResultConversion(Signature(function).try_hints().get("return"))
    wrapper = adapted(function, exclude=exclude, has_schema=has_schema)
    if not has_schema or not conversion.is_needed:
        return wrapper
    return with_result(wrapper, conversion.hint, conversion.convert)


def collected(function: Callable[..., Any]) -> Any:
    """Return a function that returns the items of a generator as a list; other functions are returned unchanged.

    Without a type of the items that funcmcp writes a schema for, as in ``Iterator[int]``, the value decides the form.

    Raises:
        RegistrationError: The annotations of a generator can't be resolved.
    """
    is_async_generator = inspect.isasyncgenfunction(function)
    signature = Signature(function)
    hints = signature.try_hints()
    hint = hints.get("return")
    is_untyped = hint is None or (get_origin(hint) or hint) in _ITERATORS
    if not is_async_generator and not (inspect.isgeneratorfunction(function) and is_untyped):
        return function
    if signature.try_types() is None:
        raise RegistrationError(
            f"An annotation of the generator {signature.name} uses an unknown name. "
            "Import it at run time, before the tool is registered."
        )
    call = _collecting_async(function) if is_async_generator else _collecting(function)
    set_signature(call, function, without(hints, "return") if is_untyped else hints, ())
    return call


def with_joined_paths(function: Callable[..., Any], names: Collection[str]) -> Any:
    """Return the function of a template whose parameters for parts of a path are texts, if they have no type."""
    hints = Signature(function).try_hints()
    untyped = [name for name in signature_of(function).parameters if name in names and name not in hints]
    if not untyped:
        return function
    call = _asynchronous(function, ()) if is_async(function) else _plain(function, ())
    set_signature(call, function, {**hints, **dict.fromkeys(untyped, str)}, ())
    return call


def returns_contents(function: Callable[..., Any]) -> bool:
    """Return whether a function is annotated to return contents of a resource in the classes of FastMCP."""
    hint = Signature(function).try_hints().get("return")
    return any(
        isinstance(part, type) and issubclass(part, ResourceResult | ResourceContent) for part in parts_of_type(hint)
    )


def _collecting(function: Callable[..., Any]) -> Any:
    def call(**arguments: Any) -> Any:
        return list(function(**arguments))

    return call


def _collecting_async(function: Callable[..., Any]) -> Any:
    async def call(**arguments: Any) -> Any:
        return [yielded async for yielded in function(**arguments)]

    return call


def _converting(function: Callable[..., Any], convert: Callable[[Any], Any]) -> Any:
    def call(**arguments: Any) -> Any:
        return convert(function(**arguments))

    return call


def _converting_async(function: Callable[..., Any], convert: Callable[[Any], Any]) -> Any:
    async def call(**arguments: Any) -> Any:
        return convert(await function(**arguments))

    return call


def _plain(function: Callable[..., Any], contexts: Collection[str]) -> Any:
    def call(**arguments: Any) -> Any:
        for name in contexts:
            arguments[name] = get_context()
        return function(**arguments)

    return call


def _asynchronous(function: Callable[..., Any], contexts: Collection[str]) -> Any:
    async def call(**arguments: Any) -> Any:
        for name in contexts:
            arguments[name] = get_context()
        return await function(**arguments)

    return call


def _with_dependencies(
    function: Callable[..., Any],
    contexts: Collection[str],
    dependencies: Mapping[str, Dependency],
    added: Collection[str],
) -> Any:
    """Return a function that fills the context and the dependencies.

    Args:
        function: The author's function.
        contexts: Its parameters for the context.
        dependencies: Its dependencies by parameter.
        added: Arguments that only the dependencies get.
    """
    in_loop = is_async(function)
    resolvers = {name: mark for name, mark in dependencies.items() if isinstance(mark, Resolve)}
    keys = question_keys(resolvers)
    defaults = {
        name: parameter.default
        for name, parameter in signature_of(function).parameters.items()
        if parameter.default is not parameter.empty
    }

    async def call(**arguments: Any) -> Any:
        scope: Scope = arguments.pop(_SCOPE)
        if not in_loop:
            scope.use_thread()
        for name in contexts:
            arguments[name] = get_context()
        resolution = Resolution(scope, dependencies, arguments, defaults)
        if resolvers:
            await resolve_together(resolution, resolvers, keys)
        for name, dependency in dependencies.items():
            if dependency.hides_failures:
                await _resolve(resolution, name, function)
            else:
                await resolution.value_of(name)
        kwargs = without(arguments, *added)
        if in_loop:
            return await function(**kwargs)
        return await call_in_thread(function, kwargs, scope.run_function)

    return call


async def _resolve(resolution: Resolution, name: str, function: Callable[..., Any]) -> None:
    """Add the value of a parameter to the arguments of the call.

    Raises:
        RuntimeError: The dependency failed, and clients do not get the text of its exception, as in FastMCP.
    """
    try:
        await resolution.value_of(name)
    except (FastMCPError, NativeToolError, MCPError):
        raise
    except Exception as error:
        raise RuntimeError(f"Failed to resolve dependency {name!r} for {function_name(function)}") from error


def set_signature(
    wrapper: Any, function: Callable[..., Any], annotations: Mapping[str, Any], hidden: Collection[str]
) -> None:
    """Give a wrapper the function's name and docstring, and its signature without the hidden parameters."""
    functools.update_wrapper(wrapper, function)
    del wrapper.__wrapped__
    wrapper.__name__ = function_name(function)
    if without_partials(function) is not function:
        wrapper.__doc__ = description(function)
    wrapper.__annotations__ = dict(annotations)
    visible = [
        parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for parameter in signature_of(function).parameters.values()
        if parameter.name not in hidden
    ]
    wrapper.__signature__ = inspect.Signature(visible)


def takes_any_name(function: Callable[..., Any] | None) -> bool:
    """Return whether a function has a parameter such as ``**kwargs``."""
    if function is None:
        return False
    return any(parameter.kind is parameter.VAR_KEYWORD for parameter in signature_of(function).parameters.values())


def without_spread(function: Callable[..., Any]) -> Any:
    """Return a function that takes any name, without a parameter such as ``**kwargs`` in its signature."""
    if not takes_any_name(function):
        return function
    hidden = {
        name for name, parameter in signature_of(function).parameters.items() if parameter.kind is parameter.VAR_KEYWORD
    }

    def call(**arguments: Any) -> Any:
        return function(**arguments)

    async def call_async(**arguments: Any) -> Any:
        return await function(**arguments)

    wrapper: Any = call_async if is_async(function) else call
    hints = get_type_hints(_function_of(function), include_extras=True)
    set_signature(wrapper, function, without(hints, *hidden), hidden)
    return wrapper


def _function_of(function: Any) -> Any:
    """Return the function that has the annotations of a callable."""
    function = without_partials(function)
    return function if inspect.isroutine(function) else type(function).__call__


def with_all_arguments(function: Callable[..., Any]) -> Any:
    """Return a function that takes all arguments as one dict, for one that `adapted` returned."""

    async def call(arguments: dict[str, Any], scope: Scope) -> Any:
        if _SCOPE in inspect.signature(function).parameters:
            arguments = {**arguments, _SCOPE: scope}
        if is_async(function):
            return await function(**arguments)
        return await call_in_thread(function, arguments, scope.run_function)

    call.__name__ = function_name(function)
    call.__annotations__ = {"arguments": dict[str, Any], "scope": Scope}
    return call


def _add_parameters(wrapper: Any, parameters: Collection[inspect.Parameter]) -> None:
    """Add parameters to a wrapper's signature."""
    for parameter in parameters:
        if parameter.annotation is not parameter.empty:
            wrapper.__annotations__[parameter.name] = parameter.annotation
    wrapper.__signature__ = inspect.Signature([*wrapper.__signature__.parameters.values(), *parameters])
