"""What the official schemas list, for tests of the tables."""

from __future__ import annotations

from typing import Any

from tests import schemas

_TASKS_EXTENSION = {"tasks/get", "tasks/update", "tasks/cancel"}
"""Methods of the extension io.modelcontextprotocol/tasks, which belongs to 2026-07-28."""
_SKILLS_EXTENSION = {"skills/list", "skills/get", "resources/directory/read"}
"""Methods of the extension io.modelcontextprotocol/skills, which needs a revision with extensions."""
_WITH_EXTENSIONS = ("2025-11-25", "2026-07-28")
_CLIENT_TASKS = {"tasks/get", "tasks/result", "tasks/list", "tasks/cancel"}
"""Methods of 2025-11-25 with which servers ask about tasks of clients. funcmcp creates no such tasks."""


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
    if "ClientRequest" in unions:
        tasks = _TASKS_EXTENSION if revision == schemas.PER_REQUEST_REVISION else set()
        return names | tasks | (_SKILLS_EXTENSION if revision in _WITH_EXTENSIONS else set())
    return names - _CLIENT_TASKS


def items_of_lists(revision: str) -> dict[str, str]:
    """Return the member of the result that has the items, by the method of each list that clients request."""
    schema = definitions(revision)
    items = {"skills/list": "skills"} if revision in _WITH_EXTENSIONS else {}
    for name, definition in schema.items():
        if name.startswith("List") and name.endswith("Result") and name != "ListRootsResult":
            method = schema[f"{name.removesuffix('Result')}Request"]["properties"]["method"]["const"]
            (items[method],) = (
                member for member, shape in definition["properties"].items() if shape.get("type") == "array"
            )
    return items


def required_params(revision: str, method: str) -> list[str]:
    """Return the members that the params of a client's request must have."""
    for request in members(revision, "ClientRequest"):
        if request["properties"]["method"]["const"] == method:
            params = request["properties"]["params"]
            if "$ref" in params:
                params = definitions(revision)[params["$ref"].rpartition("/")[2]]
            required: list[str] = params["required"]
            return required
    assert method in _TASKS_EXTENSION | _SKILLS_EXTENSION
    return ["taskId"] if method in _TASKS_EXTENSION else ["uri"]
