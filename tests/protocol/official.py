"""What the official schemas list, for tests of the tables."""

from __future__ import annotations

from typing import Any

from tests import schemas

_UNFINISHED = "tasks/"
"""Methods of the experimental tasks of 2025-11-25, which funcmcp does not offer."""


def definitions(revision: str) -> dict[str, Any]:
    """Return the definitions of a revision's schema."""
    return schemas.definitions(revision)


def members(revision: str, name: str) -> list[dict[str, Any]]:
    """Return the definitions that a union has; none if the revision does not have the union."""
    schema = definitions(revision)
    return [schema[part["$ref"].rpartition("/")[2]] for part in schema.get(name, {}).get("anyOf", ())]


def methods(revision: str, *unions: str) -> set[str]:
    """Return the methods of the requests in unions."""
    names = {member["properties"]["method"]["const"] for union in unions for member in members(revision, union)}
    return {method for method in names if not method.startswith(_UNFINISHED)}
