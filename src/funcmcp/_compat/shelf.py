"""`Shelf`: the decorators of a `LocalProvider`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from funcmcp._compat.components import Component
from funcmcp._compat.server import FastMCP

if TYPE_CHECKING:
    from collections.abc import Callable


class Shelf(FastMCP):
    """A server that never serves: it hands the components that are registered to a function.

    Args:
        keep: Gets each component, and returns the one that stays.
    """

    def __init__(self, keep: Callable[[Any], Any]) -> None:
        super().__init__("LocalProvider")
        self._keep = keep

    def register(self, component: Any) -> Any:
        """Hand a component to the function, if it can be served.

        Raises:
            TypeError: The value is not a component.
            RegistrationError: The component can't be served.
        """
        if not isinstance(component, Component):
            return super().register(component)
        self.feature_of(component)
        return self._keep(component)
