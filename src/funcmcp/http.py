"""Requests and responses of custom HTTP routes, see `MCPServer.custom_route`, uploads of files, and the server card."""

from __future__ import annotations

from typing import TYPE_CHECKING

from funcmcp._objects.public_names import lazy_names

if TYPE_CHECKING:
    from funcmcp._state.uploads import Uploads
    from funcmcp._transports.http.endpoints.custom_routes import Request, Response
    from funcmcp._transports.http.options import ServerCard

__all__ = ["Request", "Response", "ServerCard", "Uploads"]

_HOMES = {
    "_state.uploads": ["Uploads"],
    "_transports.http.endpoints.custom_routes": ["Request", "Response"],
    "_transports.http.options": ["ServerCard"],
}

if not TYPE_CHECKING:  # a type checker reports a name that the module does not have
    __getattr__, __dir__ = lazy_names(__name__, _HOMES)
