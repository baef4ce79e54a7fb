"""FastMCP's routes that enable and disable components."""

from __future__ import annotations

from typing import Any

from funcmcp._authoring.features.permissions import access_of
from funcmcp._compat.transports import add_starlette_route
from funcmcp._compat.versions import VersionSpec
from funcmcp._serving.composition import runtime_of

_ROUTES = {"tools/{name}": "tool", "resources/{name:path}": "resource", "prompts/{name}": "prompt"}


def set_up_component_manager(server: Any, path: str = "/", required_scopes: list[str] | None = None) -> None:
    """Serve routes that enable and disable components: ``POST /tools/{name}/disable`` and so on.

    Callers need the credentials that the endpoint needs. Without a sign-in of the server the routes are open, unless
    scopes are required: then they accept nobody.

    Args:
        server: The server.
        path: The path before those of the routes.
        required_scopes: Scopes that a caller needs, beside those of the server.
    """
    prefix = path.rstrip("/")
    access = access_of(path, {"scopes": required_scopes or []})
    for route, kind in _ROUTES.items():
        for action in ("enable", "disable"):
            endpoint = _endpoint(server, kind, action, needs_sign_in=required_scopes is not None)
            add_starlette_route(server, f"{prefix}/{route}/{action}", endpoint, methods=["POST"], access=access)


def _endpoint(server: Any, kind: str, action: str, *, needs_sign_in: bool) -> Any:
    """Return the function that answers a route."""

    async def endpoint(request: Any) -> Any:
        from starlette.responses import JSONResponse  # noqa: PLC0415 - an author's own dependency

        if needs_sign_in and runtime_of(server).server.guard is None:
            return JSONResponse({"error": "invalid_token"}, 401)
        name, version = request.path_params["name"], request.query_params.get("version")
        getattr(server, action)(
            names={name},
            version=VersionSpec(eq=version) if version else None,
            components=["template" if kind == "resource" and "{" in name else kind],
        )
        return JSONResponse({"message": f"{action.capitalize()}d {kind}: {name}"})

    return endpoint
