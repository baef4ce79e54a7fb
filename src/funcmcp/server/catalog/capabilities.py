"""What the server says it can do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from funcmcp.protocol.apps import EXTENSION, is_page

if TYPE_CHECKING:
    from funcmcp.protocol.revisions import Revision
    from funcmcp.server.dispatch import Server

_LISTS = ("prompts", "resources", "tools")


def capabilities(server: Server, revision: Revision, *, pushes: bool) -> dict[str, Any]:
    """Return the ServerCapabilities.

    Args:
        server: has the features.
        revision: leaves out what it does not know.
        pushes: whether the client can be told of changes.
    """
    found: dict[str, Any] = {name: {} for name in sorted(server.offered)}
    for name in _LISTS:
        if pushes and name in found:
            found[name]["listChanged"] = True
    if pushes and "resources" in found:
        found["resources"]["subscribe"] = True
    if "resources" in found and any(is_page(resource.uri) for resource in server.resources):
        found["extensions"] = {EXTENSION: {}}
    if revision.per_request and not any(feature.interactive for feature in server.features()):
        found.pop("logging", None)  # 2026-07-28 deprecates it, so only a server that may log declares it
    return {name: value for name, value in found.items() if name in revision.capabilities}
