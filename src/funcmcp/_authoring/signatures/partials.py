"""Functions with bound arguments: `functools.partial` and `functools.partialmethod`.

What is bound is not a parameter: it may be a secret, which clients must neither see nor replace. `inspect.signature`
would report an argument that is bound by keyword as a default, and the parameters of the inner function if
`functools.update_wrapper` copied its attributes to the partial object.
"""

from __future__ import annotations

import functools
import inspect
from types import MethodType
from typing import Any, Literal

from funcmcp._authoring.signatures.late_annotations import read_signature


def signature_of(function: Any, *, follow_wrapped: bool = True) -> inspect.Signature:
    """Return a callable's signature without the parameters whose arguments are bound.

    Args:
        function: The callable.
        follow_wrapped: Whether a decorator's function has the signature of the function that it wraps.

    Raises:
        TypeError: The object is not callable, or can't take the bound arguments.
        ValueError: The callable has no signature, as some in C.
    """
    bound = _partial_in(function) if follow_wrapped or isinstance(function, functools.partial) else None
    if bound is None:
        return read_signature(function, follow_wrapped=follow_wrapped)
    signature = signature_of(bound.func, follow_wrapped=follow_wrapped)
    names = signature.bind_partial(*bound.args, **bound.keywords).arguments
    parameters: list[inspect.Parameter] = []
    by_name_only = False
    for parameter in signature.parameters.values():
        if parameter.name in names and parameter.kind not in {parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD}:
            by_name_only = by_name_only or parameter.name in bound.keywords
        elif not by_name_only:
            parameters.append(parameter)
        elif parameter.kind is parameter.POSITIONAL_OR_KEYWORD:
            # By position, its argument would be that of a parameter before it, which is bound.
            parameters.append(parameter.replace(kind=parameter.KEYWORD_ONLY))
        elif parameter.kind is not parameter.VAR_POSITIONAL:
            parameters.append(parameter)
    return signature.replace(parameters=parameters)


def without_partials(function: Any) -> Any:
    """Return the function whose arguments are bound; *function* itself if none are."""
    bound = _partial_in(function)
    while bound is not None:
        function = bound.func
        bound = _partial_in(function)
    return function


def unbound(method: functools.partialmethod[Any]) -> functools.partial[Any]:
    """Return the function of a `functools.partialmethod` with all that it binds, except self."""
    arguments = signature_of(method.func).bind_partial(None, *method.args, **method.keywords).arguments
    _, *names = arguments
    return functools.partial(method.func, **{name: arguments[name] for name in names})


def _partial_in(function: Any) -> functools.partial[Any] | None:
    """Return the partial object that a callable is, or that the wrapped functions of decorators lead to."""
    partial = inspect.unwrap(function, stop=_is_last)
    if not isinstance(partial, functools.partial):
        return None
    return partial


def _is_last(function: Any) -> bool:
    return isinstance(function, functools.partial | MethodType) or hasattr(function, "__signature__")


def is_async(function: Any) -> bool:
    """Return whether calling a function returns a coroutine."""
    return inspect.iscoroutinefunction(_called(function))


def generator_kind(function: Any) -> Literal["plain", "async"] | None:
    """Return which kind of generator calling a function returns; None if it returns none."""
    called = _called(function)
    if inspect.isasyncgenfunction(called):
        return "async"
    return "plain" if inspect.isgeneratorfunction(called) else None


def _called(function: Any) -> Any:
    """Return the function whose code runs when a callable is called."""
    while isinstance(function, functools.partial):
        function = function.func
    if inspect.isroutine(function) or inspect.iscoroutinefunction(function):  # or is marked as one
        return function
    return type(function).__call__
