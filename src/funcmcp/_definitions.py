"""Classes of immutable objects that a server loads at its start.

``@dataclass(frozen=True)`` compiles six functions for each class, which takes longer than everything else in the import
of a small module. Subclasses of `Definition` are declared in the same way and share their functions.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self, dataclass_transform


@dataclass_transform(frozen_default=True, eq_default=False)
class Definition:
    """Base of classes whose annotations are the parameters of the constructor, in their order.

    A parameter without a value in the class is required. An instance equals itself only.
    """

    _defaults: ClassVar[dict[str, Any]] = {}
    _positional: ClassVar[tuple[str, ...]] = ()
    _required: ClassVar[frozenset[str]] = frozenset()

    def __init_subclass__(cls, *, kw_only: bool = False) -> None:
        names = tuple(cls.__annotations__)
        defaults = {name: vars(cls)[name] for name in names if name in vars(cls)}
        for name in defaults:
            delattr(cls, name)  # Python reads attributes of instances faster if the class has none of the same name.
        cls._defaults = {**cls._defaults, **defaults}
        cls._required |= set(names) - defaults.keys()
        if not kw_only:
            cls._positional += names

    def __init__(self, *args: Any, **named: Any) -> None:
        """Set the attributes; raise TypeError if a parameter is missing or unknown."""
        values = {**self._defaults, **dict(zip(self._positional, args, strict=False)), **named}
        names = self._defaults.keys() | self._required
        if values.keys() != names or len(args) > len(self._positional):
            raise TypeError(f"{type(self).__name__} takes the parameters {', '.join(sorted(names))}.")
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: object) -> None:
        """Raise AttributeError: a definition does not change."""
        raise AttributeError(f"{type(self).__name__}.{name} can't be changed.")

    def __repr__(self) -> str:
        """Return the constructor's call."""
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in vars(self).items())})"

    def replace(self, **changes: Any) -> Self:
        """Return a copy with other values for some parameters."""
        return type(self)(**{**vars(self), **changes})
