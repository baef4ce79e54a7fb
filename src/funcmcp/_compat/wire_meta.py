"""What FastMCP sends of a component in ``_meta.fastmcp``."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection


def as_listed(feature: Any, kind: str, *, has_title: bool) -> Any:
    """Return a feature whose definition has what FastMCP lists: a default title for tools only, and all arguments."""
    if kind == "tool":
        return feature
    return replace(feature, describe=functools.cache(functools.partial(_listed, feature.describe, kind, has_title)))


def _listed(describe: Any, kind: str, has_title: bool) -> dict[str, Any]:  # noqa: FBT001 - of a partial
    definition = dict(describe())
    if not has_title:
        definition.pop("title", None)
    return {"arguments": [], **definition} if kind == "prompt" else definition


def with_tags_in_meta(feature: Any, tags: Collection[str]) -> Any:
    """Return a feature whose ``_meta.fastmcp`` names its tags, also if it has none."""
    return replace(feature, describe=functools.cache(functools.partial(_tagged, feature.describe, sorted(tags))))


def _tagged(describe: Any, tags: list[str]) -> dict[str, Any]:
    definition = dict(describe())
    meta = dict(definition.get("_meta") or {})
    inner = meta.get("fastmcp")
    meta["fastmcp"] = {**(inner if isinstance(inner, dict) else {}), "tags": tags}
    return {**definition, "_meta": meta}
