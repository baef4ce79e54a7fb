"""Classes of options: immutable dataclasses that are quick to import and have errors in words.

``@dataclass(frozen=True)`` compiles six functions for each class, which takes longer than everything else in the import
of a small module. Classes of options share these functions.
"""

from __future__ import annotations

from dataclasses import MISSING, FrozenInstanceError, dataclass, fields
from inspect import Parameter, Signature
from typing import Any, TypeVar, dataclass_transform

C = TypeVar("C", bound="type[Any]")


@dataclass_transform(frozen_default=True)
def options(cls: C) -> C:
    """Make a class an immutable dataclass, whose constructor names the valid options in its errors."""
    dataclass(init=False, repr=False, eq=False, match_args=False)(cls)
    _complete(cls)
    return cls


@dataclass_transform(frozen_default=True, kw_only_default=True)
def options_by_name(cls: C) -> C:
    """Do the same for a class whose constructor takes no option by position."""
    dataclass(init=False, repr=False, eq=False, match_args=False, kw_only=True)(cls)
    _complete(cls)
    return cls


def _complete(option_class: Any) -> None:
    """Add the shared functions to a dataclass that has none."""
    option_class.__signature__ = Signature([_parameter(field) for field in fields(option_class)])
    option_class.__init__ = _set_options
    option_class.__repr__ = _represent
    option_class.__eq__ = _is_equal
    option_class.__hash__ = _hash
    option_class.__setattr__ = _refuse_to_set
    option_class.__delattr__ = _refuse_to_delete


def _parameter(field: Any) -> Parameter:
    kind = Parameter.KEYWORD_ONLY if field.kw_only else Parameter.POSITIONAL_OR_KEYWORD
    default = Parameter.empty if field.default is MISSING else field.default
    return Parameter(field.name, kind, default=default, annotation=field.type)


def _set_options(self: Any, *args: Any, **named: Any) -> None:
    cls = type(self)
    names = [field.name for field in fields(cls)]
    positional = [field.name for field in fields(cls) if not field.kw_only]
    unknown = [name for name in named if name not in names]
    if unknown:
        raise TypeError(f"{cls.__name__} has no option {unknown[0]!r}. Valid options: {', '.join(names)}.")
    if len(args) > len(positional) < len(names):
        name = names[len(positional)]
        value = args[len(positional)]
        raise TypeError(f"{cls.__name__} takes its options by name, such as {cls.__name__}({name}={value!r:.60}).")
    bound = cls.__signature__.bind(*args, **named)
    bound.apply_defaults()
    vars(self).update(bound.arguments)
    self.__post_init__()


def _represent(self: Any) -> str:
    members = ", ".join(f"{field.name}={getattr(self, field.name)!r}" for field in fields(self))
    return f"{type(self).__qualname__}({members})"


def _values(options: Any) -> tuple[Any, ...]:
    return tuple(getattr(options, field.name) for field in fields(options))


def _is_equal(self: Any, other: object) -> object:
    if type(other) is not type(self):
        return NotImplemented
    return _values(self) == _values(other)


def _hash(self: Any) -> int:
    return hash(_values(self))


def _refuse_to_set(self: Any, name: str, value: object) -> None:
    del self, value
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(self: Any, name: str) -> None:
    del self
    raise FrozenInstanceError(f"cannot delete field {name!r}")
