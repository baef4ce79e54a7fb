"""Mounted servers: the features of one server in the catalog of another one, under a prefix.

How it works: `Mounting` listens to the catalog of the mounted server. For each feature there, it adds a feature to the
catalog of the server above, with another key and a handler around the mounted one, and removes it with the other. So
the server above serves plain features, and a feature of the second level gets into the third one in the same way.

Options of the mounted server that belong to its features become part of them: its scopes and its `show_errors`. If the
mounted server has middleware, the handler sends the request through its `answer`, as if its own client had sent it.
Rounds of questions, tasks and time limits are those of the server above.
"""

from __future__ import annotations

import copy
import re
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from funcmcp._auth.access import distinct
from funcmcp._protocol.errors import MCPError, ResourceNotFound
from funcmcp._protocol.jsonrpc import Request
from funcmcp._protocol.uri_template import URITemplate
from funcmcp._server.calls.feature_call import FeatureCalls
from funcmcp._server.calls.route import Audience, Interactivity, Route, RoutedRequest
from funcmcp._server.catalog.features import (
    EncodedResult,
    Prompt,
    RawResponse,
    Resource,
    ResourceLister,
    ResourceTemplate,
    Tool,
)
from funcmcp._server.catalog.registry import RegistrationError
from funcmcp._server.handlers.tools import ToolCalls
from funcmcp._server.options import shown_types

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from funcmcp._auth.access import Access
    from funcmcp._protocol.uri_template import Values
    from funcmcp._server.calls.context import RequestContext
    from funcmcp._server.calls.feature import Feature
    from funcmcp._server.catalog.catalog import Addable
    from funcmcp._server.catalog.registry import Registry
    from funcmcp._serving import Serving
    from funcmcp._transports.http.endpoints.custom_routes import CustomRoute

    F = TypeVar("F", bound=Feature)

_MAX_NAME = 128
_PREFIX = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}")


def mount(above: Serving, mounted: Serving, prefix: str | None) -> None:
    """Add the features of a server to another one, now and from now on.

    Args:
        above: Serves the features, too.
        mounted: Has the features.
        prefix: The first part of the names and URIs; None leaves them unchanged.

    Raises:
        ValueError: The prefix is malformed.
        RegistrationError: The servers would mount each other, a name is taken, or the features would lose a rule.
        RuntimeError: One of the servers has started, and the mounted one has lifespans.
    """
    if prefix is not None and not (isinstance(prefix, str) and _PREFIX.fullmatch(prefix)):
        raise ValueError(f"prefix must have letters, digits, '_', '-' and '.' only, such as 'billing'; got {prefix!r}.")
    if above is mounted or above in _servers_below(mounted):
        raise RegistrationError(f"{mounted.name} and {above.name} would mount each other. Remove one of the mounts.")
    if mounted.server.guard is not None and above.server.guard is None:
        raise RegistrationError(
            f"{mounted.name} has auth, and {above.name}, which mounts it, has none: every caller could use its "
            f"features. Set auth= of {above.name}, too."
        )
    missing = sorted(above.server.revisions.keys() - mounted.server.revisions.keys())
    if missing:
        raise RegistrationError(
            f"{mounted.name} does not speak {', '.join(missing)}, as {above.name} does. Give both the same revisions."
        )
    if above.services.lifespans.has_started and mounted.services.lifespans:
        raise RuntimeError(f"{above.name} has started, and {mounted.name} has lifespans. Call mcp.mount before that.")
    mounting = Mounting(above, mounted, prefix)
    mounting.add_features()
    above.services.lifespans.mount(mounted.services.lifespans)
    above.mounted.append(mounted)
    mounted.on_change.append(mounting.publish)
    for route in mounted.routes:
        mounting.add_route(route)
    mounted.on_route.append(mounting.add_route)


def _servers_below(serving: Serving) -> list[Serving]:
    servers = list(serving.mounted)
    for mounted in serving.mounted:
        servers += _servers_below(mounted)
    return servers


class Mounting:
    """Copies the features of a mounted server to the server above.

    Args:
        above: The server above.
        mounted: The mounted server.
        prefix: The first part of the names and URIs; None leaves them unchanged.
    """

    def __init__(self, above: Serving, mounted: Serving, prefix: str | None) -> None:
        self._above = above
        self._mounted = mounted
        self._prefix = prefix
        self._server = mounted.server
        self._calls = FeatureCalls(self._server.keys, self._server.options.show_errors)
        self._tool_calls = ToolCalls(self._calls, self._server.results)
        self._copies: dict[tuple[type, str], Addable] = {}  # by kind and key in the mounted server

    def add_features(self) -> None:
        """Add all features, and listen for changes; raise RegistrationError, and add none, if a name is taken."""
        catalog = self._server.catalog
        registries: list[Registry[Any]] = [
            catalog.tools,
            catalog.resources,
            catalog.templates,
            catalog.listers,
            catalog.prompts,
        ]
        try:
            for registry in registries:
                for feature in registry:
                    self._changed(feature, 1)
        except RegistrationError:
            for copied in self._copies.values():
                self._above.server.catalog.remove(copied)
            raise
        for registry in registries:
            registry.listeners.append(self._changed)

    def publish(self, uri: str | None) -> None:
        """Notify the clients of the server above that a resource, or the list of resources, has changed."""
        self._above.publish(None if uri is None else self._uri(uri))

    def add_route(self, route: CustomRoute) -> None:
        """Serve a custom route of the mounted server, at the same path."""
        self._above.add_route(route._replace(access=self._access(route.access)))

    def _changed(self, feature: Addable, count: int) -> None:
        key = type(feature), feature.key
        if count > 0:
            copied = self._copy_of(feature)
            self._above.server.catalog.add(copied)
            self._copies[key] = copied
        elif key in self._copies:
            self._above.server.catalog.remove(self._copies.pop(key))

    def _copy_of(self, feature: Addable) -> Addable:
        if isinstance(feature, Tool):
            return self._tool(feature)
        if isinstance(feature, Prompt):
            return self._prompt(feature)
        if isinstance(feature, ResourceLister):
            return self._lister(feature)
        return self._resource(feature)

    def _tool(self, tool: Tool) -> Tool:
        name = self._name(tool.name)

        async def call(context: RequestContext, arguments: dict[str, Any]) -> Any:
            if not self._server.has_middleware:
                return await tool.handler(context, arguments)

            def run(inner: RequestContext) -> Awaitable[Any]:
                # The server above limits the time, which may be longer in a task.
                return self._tool_calls.run(inner, tool, inner.request.params.get("arguments", {}), None)

            return RawResponse(await self._answer(context, tool, {"name": tool.name, "arguments": arguments}, run))

        def describe() -> Mapping[str, Any]:
            return self._with_pages({**tool.describe(), "name": name})

        return replace(self._shared(tool), name=name, describe=describe, handler=call)

    def _prompt(self, prompt: Prompt) -> Prompt:
        name = self._name(prompt.name)

        async def get(context: RequestContext, arguments: dict[str, str]) -> Any:
            if not self._server.has_middleware:
                return await prompt.handler(context, arguments)

            def run(inner: RequestContext) -> Awaitable[Any]:
                return self._run(prompt, prompt.handler(inner, inner.request.params.get("arguments", {})), inner)

            params = {"name": prompt.name, "arguments": arguments}
            return _result_of(await self._answer(context, prompt, params, run), "description", "messages")

        def describe() -> Mapping[str, Any]:
            return {**prompt.describe(), "name": name}

        return replace(self._shared(prompt), name=name, describe=describe, handler=get)

    def _resource(self, resource: Resource | ResourceTemplate) -> Resource | ResourceTemplate:
        async def read(context: RequestContext, uri: str, values: Values) -> Any:
            mounted_uri = self._without_prefix(uri)
            if isinstance(resource, ResourceTemplate) and mounted_uri in self._server.catalog.resources:
                raise ResourceNotFound(uri)  # a resource that is hidden must not be read through a template
            if not self._server.has_middleware:
                result = await resource.handler(context, mounted_uri, values)
            else:

                def run(inner: RequestContext) -> Awaitable[Any]:
                    return self._run(resource, resource.handler(inner, mounted_uri, values), inner)

                result = _result_of(
                    await self._answer(context, resource, {"uri": mounted_uri}, run, values), "contents"
                )
            if isinstance(result, EncodedResult):
                result = result.result()
            contents = [{**entry, "uri": self._uri(entry["uri"])} for entry in result["contents"]]
            return {**result, "contents": contents}

        key = self._uri(resource.key)
        if isinstance(resource, Resource):
            describe = partial(_described, resource, "uri", key)
            return replace(self._shared(resource), uri=key, describe=describe, handler=read)
        describe = partial(_described, resource, "uriTemplate", key)
        return replace(self._shared(resource), template=URITemplate(key), describe=describe, handler=read)

    def _lister(self, lister: ResourceLister) -> ResourceLister:
        async def list_resources(context: RequestContext) -> list[dict[str, Any]]:
            return [{**resource, "uri": self._uri(resource["uri"])} for resource in await lister.handler(context)]

        key = lister.scheme if self._prefix is None else f"{lister.scheme} of {self._prefix}"
        return ResourceLister(key, list_resources, self._access(lister.access))

    def _shared(self, feature: F) -> F:
        """Return a feature with the rules of its server that belong to it."""
        shown = feature.shown_errors
        if shown is None:
            shown = shown_types(self._server.options.show_errors, "show_errors")
        return replace(feature, access=self._access(feature.access), shown_errors=shown, enabled=True)

    def _access(self, access: Access) -> Access:
        """Return an access rule that also demands the scopes of the mounted server."""
        guard = self._server.guard
        if guard is None or not guard.scopes or access.allow_anonymous:
            return access
        return access._replace(required_scopes=distinct([*guard.scopes, *access.required_scopes]))

    async def _run(self, feature: Feature, work: Any, context: RequestContext) -> Any:
        result = await self._calls.run(feature, work, context)
        return result.result() if isinstance(result, EncodedResult) else result

    async def _answer(
        self,
        context: RequestContext,
        feature: Feature,
        params: dict[str, Any],
        run: Callable[[RequestContext], Awaitable[Any]],
        values: Values | None = None,
    ) -> dict[str, Any]:
        """Send a request through the middleware of the mounted server to a function, and return the response."""
        request = Request(context.request.id, context.request.method, {**context.request.params, **params})
        revisions = frozenset(self._server.revisions)
        route = Route(request.method, run, Audience.FEATURE, None, Interactivity.FEATURE, None, revisions)
        inner = copy.copy(context)
        inner.outer = context
        inner.request = request
        inner.routed = RoutedRequest(request, route, feature, values or {})
        return (await self._server.answer(inner)).message()

    def _name(self, name: str) -> str:
        if self._prefix is None:
            return name
        if len(self._prefix) + len(name) >= _MAX_NAME:
            raise RegistrationError(f"The name {self._prefix}_{name} has more than {_MAX_NAME} characters.")
        return f"{self._prefix}_{name}"

    def _uri(self, uri: str) -> str:
        """Return a URI with the prefix in the place of its authority: ``data://info`` as ``data://billing/info``."""
        if self._prefix is None:
            return uri
        scheme, separator, path = _split(uri)
        return f"{scheme}{separator}{self._prefix}/{path}"

    def _without_prefix(self, uri: str) -> str:
        if self._prefix is None:
            return uri
        scheme, separator, path = _split(uri)
        return f"{scheme}{separator}{path.removeprefix(f'{self._prefix}/')}"

    def _with_pages(self, definition: dict[str, Any]) -> dict[str, Any]:
        """Return a tool's definition with the prefix in the URI of its page (MCP Apps)."""
        page = definition.get("_meta", {}).get("ui")
        if not isinstance(page, dict) or "resourceUri" not in page:
            return definition
        meta = {**definition["_meta"], "ui": {**page, "resourceUri": self._uri(page["resourceUri"])}}
        if "ui/resourceUri" in meta:
            meta["ui/resourceUri"] = self._uri(meta["ui/resourceUri"])
        return {**definition, "_meta": meta}


def _described(feature: Resource | ResourceTemplate, member: str, key: str) -> Mapping[str, Any]:
    return {**feature.describe(), member: key}


def _split(uri: str) -> tuple[str, str, str]:
    """Return the scheme of a URI, what follows it (``://`` or ``:``), and the rest."""
    separator = "://" if "://" in uri else ":"
    scheme, _, path = uri.partition(separator)
    return scheme, separator, path


def _result_of(message: dict[str, Any], *members: str) -> dict[str, Any]:
    """Return the members of a response's result; raise MCPError if it is an error."""
    error = message.get("error")
    if error is not None:
        raise MCPError(error["code"], error["message"], error.get("data"))
    result: dict[str, Any] = message["result"]
    if result.get("resultType") == "input_required":
        return result
    return {name: result[name] for name in members if name in result}
