"""FastMCP's `OpenAPIProvider`: an API as tools and resources, by its OpenAPI document."""

from __future__ import annotations

import logging
from collections import Counter
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from funcmcp._adapters.openapi.api_client import httpx2_module
from funcmcp._authoring.openapi.documents import server_url
from funcmcp._authoring.openapi.operations import operations
from funcmcp._compat.openapi import HTTPRoute, MCPType, default_name, kind_of_route
from funcmcp._compat.openapi_arguments import plan_of
from funcmcp._compat.openapi_components import API, OpenAPIResource, OpenAPIResourceTemplate, OpenAPITool
from funcmcp._compat.provider import Provider
from funcmcp._objects.public_names import public
from funcmcp._server.catalog.registry import RegistrationError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence

    from funcmcp._authoring.openapi.operations import OperationPlan
    from funcmcp._compat.openapi import RouteMap, RouteMapFunction

_logger = logging.getLogger("funcmcp.compat")
_TIMEOUT_SECONDS = 30.0


@public("funcmcp.compat")
class OpenAPIProvider(Provider):
    """The operations of an API as tools, resources and templates.

    Args:
        openapi_spec: The document.
        client: An ``httpx2.AsyncClient`` or ``httpx.AsyncClient``, whose ``base_url`` is that of the API. By default
            one for the first server in the document, with a time limit of 30 seconds.
        route_maps: What operations become. The first that matches counts; all others are tools.
        route_map_fn: Gets an operation and what the route maps say, and returns a `MCPType` or None.
        mcp_component_fn: Gets an operation and its component, and changes the component.
        mcp_names: Names by the ids of operations.
        tags: Tags of all components.
        validate_output: Whether tools have the output schemas of the document. Otherwise they allow any object.

    Raises:
        ValueError: The document is not valid, or names no server and there is no client.
    """

    def __init__(  # noqa: PLR0913 - FastMCP's parameters
        self,
        openapi_spec: dict[str, Any],
        client: Any = None,
        *,
        route_maps: Sequence[RouteMap] | None = None,
        route_map_fn: RouteMapFunction | None = None,
        mcp_component_fn: Callable[[HTTPRoute, Any], Any] | None = None,
        mcp_names: Mapping[str, str] | None = None,
        tags: set[str] | None = None,
        validate_output: bool = True,
    ) -> None:
        super().__init__()
        self._owns_client = client is None
        try:
            base_url = server_url(openapi_spec, [], None)
            if client is None:
                client = _new_client(base_url)
            listed = operations(openapi_spec)
        except RegistrationError as error:
            raise ValueError(f"Invalid OpenAPI specification: {error}") from error
        self._client = client
        self._api = API(client, str(client.base_url or "") or "http://localhost")
        self._component_function = mcp_component_fn
        self._validates_output = validate_output
        self._used: dict[MCPType, Counter[str]] = {kind: Counter() for kind in MCPType}
        self._components: list[Any] = []
        for operation in listed:
            route = HTTPRoute.of(operation)
            kind, map_tags = kind_of_route(operation, route, route_maps or (), route_map_fn)
            if kind is MCPType.EXCLUDE:
                continue
            try:
                plan = plan_of(operation, openapi_spec)
            except RegistrationError as error:
                _logger.warning("%s %s is left out: it %s", route.method, route.path, error)
                continue
            name = self._unique(default_name(operation, mcp_names), kind)
            self._add(route, kind, name, plan, {*operation.tags, *map_tags, *(tags or ())})

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Close the client at the end, if it was made for the provider."""
        if not self._owns_client:
            yield
            return
        async with self._client:
            yield

    def _unique(self, name: str, kind: MCPType) -> str:
        """Return a name, with a number at its end if another component has it."""
        used = self._used[kind]
        used[name] += 1
        if used[name] == 1:
            return name
        unique = f"{name}_{used[name]}"
        while unique in used:
            used[name] += 1
            unique = f"{name}_{used[name]}"
        used[unique] += 1
        return unique

    def _add(self, route: HTTPRoute, kind: MCPType, name: str, plan: OperationPlan, tags: set[str]) -> None:
        component = self._component(route, kind, name, plan, tags)
        if self._component_function is not None:
            try:
                self._component_function(route, component)
            except Exception as error:  # noqa: BLE001 - an author's function may raise anything
                _logger.warning("Error in mcp_component_fn for %s: %s", name, error)
        self._components.append(component)

    def _component(self, route: HTTPRoute, kind: MCPType, name: str, plan: OperationPlan, tags: set[str]) -> Any:
        text = plan.operation.description
        if kind is MCPType.TOOL:
            options = {"description": text or f"Executes {route.method} {route.path}", "tags": tags}
            return OpenAPITool(self._api, plan, name, options, validates_output=self._validates_output)
        if kind is MCPType.RESOURCE:
            options = {"description": text or f"Represents {route.path}", "tags": tags}
            return OpenAPIResource(self._api, plan, f"resource://{name}", name, options)
        options = {"description": text or f"Template for {route.path}", "tags": tags}
        variables = sorted(place.name for place, _ in plan.places if place.location == "path")
        uri = "/".join([f"resource://{name}", *(f"{{{variable}}}" for variable in variables)])
        return OpenAPIResourceTemplate(self._api, plan, uri, name, options)

    def _of(self, kind: type) -> Iterator[Any]:
        return (component for component in self._components if isinstance(component, kind))

    async def _list_tools(self) -> Sequence[Any]:
        return list(self._of(OpenAPITool))

    async def _list_resources(self) -> Sequence[Any]:
        return list(self._of(OpenAPIResource))

    async def _list_resource_templates(self) -> Sequence[Any]:
        return list(self._of(OpenAPIResourceTemplate))


def _new_client(base_url: str | None) -> Any:
    """Return a client for the server of a document; raise ValueError if the document names none."""
    if base_url is None:
        raise ValueError(
            "No server URL found in OpenAPI spec. Either add a 'servers' entry to the spec or provide an "
            "httpx2.AsyncClient explicitly."
        )
    return httpx2_module().AsyncClient(base_url=base_url, timeout=_TIMEOUT_SECONDS)


def client_of_app(app: Any, options: Mapping[str, Any]) -> Any:
    """Return a client that calls an ASGI application in this process.

    Args:
        app: The application.
        options: Options of the client.
    """
    httpx2 = httpx2_module()
    transport = httpx2.ASGITransport(app=app)
    return httpx2.AsyncClient(transport=transport, **{"base_url": "http://fastapi", **options})
