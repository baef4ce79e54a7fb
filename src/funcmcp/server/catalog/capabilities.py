"""The capabilities that a server declares."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from funcmcp.protocol.apps import EXTENSION, is_page

if TYPE_CHECKING:
    from funcmcp.protocol.revisions import Revision
    from funcmcp.server.catalog.catalog import Catalog

_LISTS = ("prompts", "resources", "tools")


def capabilities(catalog: Catalog, revision: Revision, *, pushes: bool) -> dict[str, Any]:
    """Return the ServerCapabilities.

    Args:
        catalog: The features of the server.
        revision: The revision of the answer; members that it does not have are left out.
        pushes: Whether notifications about changes can reach the client.
    """
    declared: dict[str, Any] = {name: {} for name in sorted(catalog.offered)}
    if pushes:
        for name in _LISTS:
            if name in declared:
                declared[name]["listChanged"] = True
        if "resources" in declared:
            declared["resources"]["subscribe"] = True
    if "resources" in declared and any(is_page(resource.uri) for resource in catalog.resources):
        declared["extensions"] = {EXTENSION: {}}
    if revision.per_request and not catalog.has_interactive:
        declared.pop("logging", None)  # 2026-07-28 deprecates it, so only a server that may log declares it
    return {name: value for name, value in declared.items() if name in revision.capabilities}
