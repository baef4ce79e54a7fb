"""Requests and responses of custom HTTP routes, see `MCPServer.custom_route`, and uploads of files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from funcmcp._objects.public_names import lazy_names

if TYPE_CHECKING:
    from funcmcp._state.uploads import Uploads
    from funcmcp._transports.http.endpoints.custom_routes import Request, Response

__all__ = ["Request", "Response", "Uploads"]

_HOMES = {
    "_state.uploads": ["Uploads"],
    "_transports.http.endpoints.custom_routes": ["Request", "Response"],
}

if not TYPE_CHECKING:  # a type checker reports a name that the module does not have
    __getattr__, __dir__ = lazy_names(__name__, _HOMES)
