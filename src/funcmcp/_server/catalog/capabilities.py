"""The capabilities that a server declares."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from funcmcp._protocol import apps, tasks

if TYPE_CHECKING:
    from funcmcp._protocol.revisions import Revision
    from funcmcp._server.catalog.catalog import Catalog

_LISTS = ("prompts", "resources", "tools")


def capabilities(catalog: Catalog, revision: Revision, *, pushes: bool, lists_tasks: bool = False) -> dict[str, Any]:
    """Return the ServerCapabilities.

    Args:
        catalog: The features of the server.
        revision: The revision of the answer; members that it does not have are left out.
        pushes: Whether notifications about changes can reach the client.
        lists_tasks: Whether the client can list its tasks.
    """
    declared: dict[str, Any] = {name: {} for name in sorted(catalog.offered)}
    if pushes:
        for name in _LISTS:
            if name in declared:
                declared[name]["listChanged"] = True
        if "resources" in declared:
            declared["resources"]["subscribe"] = True
    if "tasks" in declared:
        declared["tasks"] = {"cancel": {}, "requests": {"tools": {"call": {}}}}
        if lists_tasks:
            declared["tasks"]["list"] = {}
    extensions = _extensions(catalog, revision)
    if extensions:
        declared["extensions"] = extensions
    if revision.per_request and not catalog.has_interactive:
        declared.pop("logging", None)  # 2026-07-28 deprecates it, so only a server that may log declares it
    return {name: value for name, value in declared.items() if name in revision.capabilities}


def _extensions(catalog: Catalog, revision: Revision) -> dict[str, Any]:
    """Return the extensions that the server has in a revision."""
    extensions: dict[str, Any] = {}
    if "resources" in catalog.offered and any(apps.is_page(resource.uri) for resource in catalog.resources):
        extensions[apps.EXTENSION] = {}
    if "tasks" in catalog.offered and revision.tasks is not None and revision.tasks.extension:
        extensions[tasks.EXTENSION] = {}
    return extensions
