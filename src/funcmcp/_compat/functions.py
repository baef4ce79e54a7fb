"""Functions of other frameworks as funcmcp takes them: without parameters that are not arguments.

How it works: `adapted` returns the function itself, or a function around it that fills the context and the
dependencies for each call. The signature that funcmcp reads has only the arguments, and a parameter for the scope of
the call if there are dependencies: they are closed as services are, when the end of the call is known.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
from typing import TYPE_CHECKING, Any

from funcmcp._authoring.calling.function_call import is_async
from funcmcp._authoring.calling.services import Scope
from funcmcp._authoring.signatures.annotations import parts_of_type
from funcmcp._authoring.signatures.docstring import description
from funcmcp._authoring.signatures.partials import signature_of, without_partials
from funcmcp._authoring.signatures.signature import Signature, function_name
from funcmcp._compat.content import ResourceContent, ResourceResult
from funcmcp._compat.context import is_context
from funcmcp._compat.current import get_context
from funcmcp._compat.dependencies import dependency_of
from funcmcp._compat.result_types import ResultConversion, readable, schema_of_annotated_result
from funcmcp._mappings import without

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from funcmcp._compat.dependencies import Dependency

_SCOPE = "scope_of_dependencies"
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
    dependencies: dict[str, Dependency] = {}
    for name, parameter in parameters.items():
        mark = dependency_of(name, hints.get(name), parameter.default)
        if mark is not None:
            dependencies[name] = mark
    hidden = {*contexts, *dependencies, *exclude}
    types = {name: readable(hint) for name, hint in hints.items()}
    has_new_types = any(types[name] is not hint for name, hint in hints.items())
    if has_schema and not has_new_types and hidden.isdisjoint(parameters):
        return function
    if dependencies:
        wrapper = _with_dependencies(function, contexts, dependencies)
    elif is_async(function):
        wrapper = _asynchronous(function, contexts)
    else:
        wrapper = _plain(function, contexts)
    annotations = without(types, *hidden)
    if not has_schema:
        annotations.pop("return", None)
    _set_signature(wrapper, function, annotations, hidden)
    if dependencies:
        _add_scope(wrapper)
    return wrapper


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
    _set_signature(call, function, annotations, ())
    return call


def tool_function(function: Callable[..., Any], *, exclude: Collection[str] = (), has_schema: bool = True) -> Any:
    """Return a function for a tool; the arguments are those of `adapted`."""
    conversion = ResultConversion(Signature(function).try_hints().get("return"))
    wrapper = adapted(function, exclude=exclude, has_schema=has_schema)
    if not has_schema or not conversion.is_needed:
        return wrapper
    return with_result(wrapper, conversion.hint, conversion.convert)


def returns_contents(function: Callable[..., Any]) -> bool:
    """Return whether a function is annotated to return contents of a resource in the classes of FastMCP."""
    hint = Signature(function).try_hints().get("return")
    return any(
        isinstance(part, type) and issubclass(part, ResourceResult | ResourceContent) for part in parts_of_type(hint)
    )


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
    function: Callable[..., Any], contexts: Collection[str], dependencies: Mapping[str, Dependency]
) -> Any:
    in_loop = is_async(function)

    async def call(**arguments: Any) -> Any:
        scope: Scope = arguments.pop(_SCOPE)
        for name in contexts:
            arguments[name] = get_context()
        cache: dict[Any, Any] = {}
        for name, dependency in dependencies.items():
            arguments[name] = await dependency.resolve(scope, cache, arguments)
        if in_loop:
            return await function(**arguments)
        return await asyncio.to_thread(function, **arguments)

    return call


def _set_signature(
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


def _add_scope(wrapper: Any) -> None:
    """Add the parameter that gets the scope of the call to a wrapper's signature."""
    parameters = wrapper.__signature__.parameters.values()
    scope = inspect.Parameter(_SCOPE, inspect.Parameter.KEYWORD_ONLY, annotation=Scope)
    wrapper.__annotations__[_SCOPE] = Scope
    wrapper.__signature__ = inspect.Signature([*parameters, scope])
