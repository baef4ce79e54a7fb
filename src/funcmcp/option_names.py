"""Errors in words for classes of options: an unknown name, or a value without its name."""

from __future__ import annotations

import inspect
from functools import wraps
from typing import Any, TypeVar, cast

C = TypeVar("C", bound="type[Any]")


def explains_names(cls: C) -> C:
    """Make the constructor of a class raise TypeError with the valid names for an unknown or unnamed option."""
    construct = cls.__init__
    parameters = list(inspect.signature(construct).parameters.values())[1:]
    names = [parameter.name for parameter in parameters if not parameter.name.startswith("_")]
    positional = [parameter.name for parameter in parameters if parameter.kind is parameter.POSITIONAL_OR_KEYWORD]

    @wraps(construct)
    def checked(self: object, *args: Any, **options: Any) -> None:
        unknown = [name for name in options if name not in names]
        if unknown:
            raise TypeError(f"{cls.__name__} has no option {unknown[0]!r}. Valid options: {', '.join(names)}.")
        if len(args) > len(positional):
            name = names[len(positional)]
            value = args[len(positional)]
            raise TypeError(f"{cls.__name__} takes its options by name, such as {cls.__name__}({name}={value!r:.60}).")
        construct(self, *args, **options)

    cast("Any", cls).__init__ = checked
    return cls
