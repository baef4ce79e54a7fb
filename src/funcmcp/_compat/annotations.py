"""Hints about tools, and options of components in the forms of other frameworks."""

from __future__ import annotations

from typing import Any

from funcmcp._objects.public_names import public

_HINTS = {
    "readOnlyHint": "read_only",
    "destructiveHint": "destructive",
    "idempotentHint": "idempotent",
    "openWorldHint": "open_world",
    "read_only_hint": "read_only",
    "destructive_hint": "destructive",
    "idempotent_hint": "idempotent",
    "open_world_hint": "open_world",
}
"""The specification's hints and their names in Python, with funcmcp's options for them."""
_NAMES = {option: name for name, option in reversed(_HINTS.items())}
"""funcmcp's options, with the specification's names for them."""


@public("funcmcp.compat")
class ToolAnnotations:
    """Hints about a tool: ``ToolAnnotations(readOnlyHint=True)``.

    Args:
        title: A title for people.
        hints: The hints: ``readOnlyHint``, ``destructiveHint``, ``idempotentHint`` and ``openWorldHint``, or as in the
            SDK 2.x ``read_only_hint`` and so on. None is left out. All are attributes, by both names.
    """

    def __init__(self, title: str | None = None, **hints: Any) -> None:
        self.title = title
        self._hints = {_specified(name): value for name, value in hints.items() if value is not None}

    def __getattr__(self, name: str) -> Any:
        if name not in _HINTS:
            raise AttributeError(f"funcmcp.compat.ToolAnnotations has no attribute {name!r}", name=name, obj=self)
        return self._hints.get(_specified(name))

    def model_dump(self, **_: Any) -> dict[str, Any]:
        """Return the hints by their names in the specification."""
        return {"title": self.title, **self._hints} if self.title is not None else dict(self._hints)


def _specified(name: str) -> str:
    """Return the specification's name of a hint; other names unchanged."""
    return _NAMES[_HINTS[name]] if name in _HINTS else name


def plain(value: Any) -> Any:
    """Return a model as a dict in the specification's form; other values are returned unchanged."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json", by_alias=True, exclude_none=True)
    return value


def options_of_hints(annotations: Any) -> dict[str, Any]:
    """Return funcmcp's options of a tool for its annotations. Hints that the specification does not have are left out.

    Args:
        annotations: A dict, a model or None.
    """
    hints = plain(annotations) or {}
    options = {_HINTS[hint]: value for hint, value in hints.items() if hint in _HINTS and value is not None}
    if hints.get("title"):
        options["title"] = hints["title"]
    return options
