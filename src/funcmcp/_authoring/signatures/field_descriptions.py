"""Descriptions of fields in JSON schemas: from ``Annotated[T, "text"]`` and from the docstring of the fields' class."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, NotRequired, Required, get_args, get_origin, get_type_hints

from funcmcp._authoring.signatures.annotations import description_mark
from funcmcp._authoring.signatures.docstring import class_description, described_fields, descriptions_in
from funcmcp._objects.mappings import without_none

if TYPE_CHECKING:
    from collections.abc import Mapping


def describe_fields(schema: dict[str, Any], cls: type, aliases: Mapping[str, str]) -> None:
    """Add descriptions to the properties of a class's JSON schema. Existing descriptions stay.

    Args:
        schema: The schema. Entries of the docstring that move to properties are removed from its description.
        cls: A model, a dataclass or a TypedDict.
        aliases: The property's name by the field's name.
    """
    properties = schema.get("properties", {})
    marked = _marked_fields(cls)
    documented = described_fields(cls, aliases.keys())
    for name, alias in aliases.items():
        text = marked.get(name) or documented.get(name)
        if text and isinstance(properties.get(alias), dict):
            properties[alias].setdefault("description", text)
    if documented and schema.get("description") == inspect.cleandoc(cls.__doc__ or ""):
        schema["description"] = class_description(cls, aliases.keys(), descriptions_in(schema))


def _marked_fields(cls: type) -> dict[str, str]:
    """Return the descriptions in the annotations of a class. If one can't be resolved, return none."""
    try:
        hints = get_type_hints(cls, include_extras=True)
    except (NameError, TypeError):
        return {}
    texts = {name: description_mark(_without_qualifiers(hint)) for name, hint in hints.items()}
    return without_none(texts)


def _without_qualifiers(hint: Any) -> Any:
    while get_origin(hint) in {NotRequired, Required}:
        hint = get_args(hint)[0]
    return hint
