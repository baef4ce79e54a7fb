"""What FastMCP sends of a component: its titles, and its tags in ``_meta.fastmcp``."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from funcmcp._objects.mappings import without

if TYPE_CHECKING:
    from funcmcp._compat.components import Component


def described_by_fastmcp(feature: Any, component: Component, *, sends_tags: bool) -> Any:
    """Return a feature with the definition that FastMCP sends of a component.

    Args:
        feature: The feature.
        component: The component.
        sends_tags: Whether ``_meta.fastmcp`` names the tags of a component that has some.
    """
    describe = functools.partial(_described, feature.describe, component, sends_tags=sends_tags)
    return replace(feature, describe=functools.cache(describe))


def _described(describe: Any, component: Component, *, sends_tags: bool) -> dict[str, Any]:
    definition: dict[str, Any] = describe()
    if not component.title:
        definition = _with_default_title(definition, component.kind)
    if not sends_tags or not component.tags:
        return definition
    meta = dict(definition.get("_meta") or {})
    inner = meta.get("fastmcp")
    meta["fastmcp"] = {**(inner if isinstance(inner, dict) else {}), "tags": sorted(component.tags)}
    return {**definition, "_meta": meta}


def _with_default_title(definition: dict[str, Any], kind: str) -> dict[str, Any]:
    """Return a definition with the title of a component without one: tools have their name, the others none."""
    if kind != "tool":
        return without(definition, "title")
    title = (definition.get("annotations") or {}).get("title")
    return {**definition, "title": title or definition["name"].replace("_", " ").replace("-", " ").title()}
