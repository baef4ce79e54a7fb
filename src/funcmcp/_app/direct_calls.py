"""Calls of a server's own features in its process: `MCPServer.call_tool`, `read_resource`, `get_prompt` and lists.

How it works: a direct call is a JSON-RPC request of the newest revision that the server speaks, without a transport.
It passes the middleware, the validation and the limits of runs, and its response is decoded. No client takes part: log
messages and progress are dropped, and a feature that asks the client fails.

A call without a principal is one of the server's author, who may use everything. Its request is routed by a second
table of routes, without a guard and without tasks. A call with a principal is checked as that caller's request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from funcmcp._protocol.errors import MCPError
from funcmcp._protocol.jsonrpc import Request
from funcmcp._protocol.methods import FEATURE_LISTS, METHODS
from funcmcp._protocol.objects import (
    CallToolResult,
    GetPromptResult,
    Prompt,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    Tool,
    objects_of,
)
from funcmcp._server.calls.channel import ClosedChannel
from funcmcp._server.calls.context import RequestContext
from funcmcp._server.connections.client import ConnectedClient
from funcmcp._server.routes import Routes
from funcmcp._server.run import require_asyncio

if TYPE_CHECKING:
    from collections.abc import Mapping

    from funcmcp._auth.principal import Principal
    from funcmcp._server.calls.route import RoutedRequest
    from funcmcp._server.connections.conversation import Rules
    from funcmcp._server.dispatch import Server


class DirectContext(RequestContext):
    """The context of a direct call.

    Args:
        routed: The request with its route and feature.
        client: The client that the feature sees: it has declared no capabilities.
        principal: The caller; None for the server's author.
        every_version: Whether a list has all versions of each feature.
    """

    __slots__ = ("_every_version", "_principal")

    def __init__(
        self,
        routed: RoutedRequest,
        client: ConnectedClient,
        principal: Principal | None,
        *,
        every_version: bool = False,
    ) -> None:
        super().__init__(routed, client, ClosedChannel())
        self._principal = principal
        self._every_version = every_version

    @property
    def every_version(self) -> bool:
        """Whether a list has all versions of each feature."""
        return self._every_version

    @property
    def principal(self) -> Principal | None:
        """The caller; None for the server's author."""
        return self._principal

    @property
    def by_author(self) -> bool:
        """Whether the author's code has made the call without a caller."""
        return self._principal is None

    @property
    def network_transport(self) -> None:
        """None: the call was made in this process."""


class DirectCalls:
    """The methods of an `MCPServer` that call its own features."""

    _server: Server
    _unguarded_routes: Routes | None = None

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        principal: Principal | None = None,
        raise_on_error: bool = False,
        version: str | None = None,
    ) -> CallToolResult:
        """Call a tool of this server without a client, for example in a test or in another tool.

        The call passes the middleware. The tool can't ask the client anything, and its progress and log messages are
        dropped; `funcmcp.testing.Client` tests these. A tool that runs as a task runs within the call.

        Args:
            name: The tool's name.
            arguments: The tool's arguments.
            principal: The caller. Its scopes must suffice for the tool. None is the server's author, who may use every
                feature.
            raise_on_error: Raise ToolError if the tool fails. By default the result has `is_error` set.
            version: The version of the tool that is called. By default it is the newest one.

        Raises:
            MCPError: The tool does not exist, asks the client, or the principal may not use it.
            ToolError: The tool failed, and *raise_on_error* is set.
        """
        params = {"name": name, "arguments": dict(arguments or {}), **_naming(version)}
        result = CallToolResult(await self._direct_call("tools/call", params, principal))
        if raise_on_error:
            result.raise_for_error()
        return result

    async def read_resource(
        self, uri: str, *, principal: Principal | None = None, version: str | None = None
    ) -> ReadResourceResult:
        """Read a resource of this server without a client. Options and errors are those of `call_tool`."""
        params = {"uri": uri, **_naming(version)}
        return ReadResourceResult(await self._direct_call("resources/read", params, principal))

    async def get_prompt(
        self,
        name: str,
        arguments: Mapping[str, str] | None = None,
        *,
        principal: Principal | None = None,
        version: str | None = None,
    ) -> GetPromptResult:
        """Get a prompt of this server without a client. Options and errors are those of `call_tool`."""
        params = {"name": name, "arguments": dict(arguments or {}), **_naming(version)}
        return GetPromptResult(await self._direct_call("prompts/get", params, principal))

    async def list_tools(self, *, principal: Principal | None = None) -> list[Tool]:
        """Return the definitions of this server's tools, in the newest revision that it speaks.

        Args:
            principal: The caller, who gets the features that `Auth.lists` shows it. None returns all features.

        Raises:
            MCPError: The principal may not list features.
        """
        return objects_of(await self._direct_list("tools/list", principal), Tool)

    async def list_resources(self, *, principal: Principal | None = None) -> list[Resource]:
        """Return the definitions of this server's resources, as `list_tools` does."""
        return objects_of(await self._direct_list("resources/list", principal), Resource)

    async def list_resource_templates(self, *, principal: Principal | None = None) -> list[ResourceTemplate]:
        """Return the definitions of this server's resource templates, as `list_tools` does."""
        items = await self._direct_list("resources/templates/list", principal)
        return objects_of(items, ResourceTemplate)

    async def list_prompts(self, *, principal: Principal | None = None) -> list[Prompt]:
        """Return the definitions of this server's prompts, as `list_tools` does."""
        return objects_of(await self._direct_list("prompts/list", principal), Prompt)

    async def _direct_list(self, method: str, principal: Principal | None, *, every_version: bool = False) -> list[Any]:
        """Return the items of all pages of a list; none if the server does not offer such features.

        Middleware may add features, so it gets the request in any case.
        """
        if METHODS[method].capability not in self._server.catalog.offered and not self._server.has_middleware:
            return []
        items: list[Any] = []
        params: dict[str, Any] = {}
        while True:
            result = await self._direct_call(method, params, principal, every_version=every_version)
            items += result[FEATURE_LISTS[method]]
            if "nextCursor" not in result:
                return items
            params = {"cursor": result["nextCursor"]}

    async def _direct_features(self, method: str, rules: Rules | None) -> list[Any]:
        """Return the features of a list that a client sees without the limits of a caller, in all versions.

        No middleware takes part.

        Args:
            method: The method of the list.
            rules: The rules of the client's session; None if it sees what other clients see.
        """
        context = self._author_context(method, rules)
        if self._server.provided is not None:
            await self._server.provided.ready()
        features: list[Any] = await self._author_routes().lists[method].features_for(context, through_mounts=False)
        return features

    def _author_context(self, method: str, rules: Rules | None) -> DirectContext:
        """Return the context of a request without params, of the server's author, for a list of all versions."""
        server = self._server
        client = ConnectedClient(server.revisions[server.supported[0]], {}, {})
        context = DirectContext(self._author_routes().route(Request(1, method, {})), client, None, every_version=True)
        context.rules = rules
        return context

    def _author_routes(self) -> Routes:
        """Return the routes of the server's author, without a guard."""
        server = self._server
        if self._unguarded_routes is None:
            self._unguarded_routes = Routes(server.parts._replace(guard=None))
        for method_of_list, features in self._unguarded_routes.lists.items():
            features.view = server.view
            features.filters = server.list_filters
            features.left_out = server.routes.lists[method_of_list].left_out  # each is logged once
            if server.provided is not None:
                features.provided = server.routes.lists[method_of_list].provided
        return self._unguarded_routes

    async def _direct_call(
        self, method: str, params: dict[str, Any], principal: Principal | None, *, every_version: bool = False
    ) -> dict[str, Any]:
        """Send a request of a principal or, if that is None, of the author; return the result or raise MCPError."""
        require_asyncio()
        server, request = self._server, Request(1, method, params)
        client = ConnectedClient(server.revisions[server.supported[0]], {}, {})
        if principal is None:
            routes = self._author_routes()
            routed = await server.resolve(routes.route(request), None, routes)
        else:
            routed = await server.resolve(server.routes.route(request), principal)
            refusal = None if server.guard is None else await server.guard.check(routed, principal)
            if refusal is not None:
                raise refusal.error()
        context = DirectContext(routed, client, principal, every_version=every_version)
        reply = await server.answer(context)
        message = reply.message()
        error = message.get("error")
        if error is not None:
            raise MCPError(error["code"], error["message"], error.get("data")) from context.error
        result: dict[str, Any] = message["result"]
        return result


def _naming(version: str | None) -> dict[str, Any]:
    """Return the params of a request that name a version of a feature."""
    return {} if version is None else {"_meta": {"fastmcp": {"version": version}}}
