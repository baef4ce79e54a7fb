"""Definitions that a program gets from its server: what it sets on them changes what clients get, as in FastMCP."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from funcmcp._compat.components import OPTION_ATTRIBUTES

if TYPE_CHECKING:
    from funcmcp._compat.components import Component


def live(item: Any, server: Any) -> Any:
    """Return a definition of a server's list, whose attributes change the component if they are set.

    Those of a component that a provider, a mounted server or a transform has made change the definition alone.
    """
    component = server.registered_component(item.key, item.feature)
    if component is not None:
        item.registration = partial(_set, component)
    return item


def _set(component: Component, name: str, value: Any) -> None:
    """Set an attribute of a registered component.

    Raises:
        AttributeError: The attribute is ``auth``, which would leave the component open.
    """
    if name in {*OPTION_ATTRIBUTES, "auth"}:
        setattr(component, name, value)
