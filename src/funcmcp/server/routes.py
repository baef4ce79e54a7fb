"""The table of the methods that the server serves, and the routing of requests by it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from funcmcp.protocol import adaptation
from funcmcp.protocol.errors import METHOD_NOT_FOUND, MCPError
from funcmcp.protocol.methods import METHODS, methods_of
from funcmcp.server.calls.feature_call import FeatureCalls
from funcmcp.server.calls.route import Audience, Interactivity, Route, RoutedRequest
from funcmcp.server.handlers.completions import Completions
from funcmcp.server.handlers.lifecycle import Lifecycle
from funcmcp.server.handlers.lists import FeatureList
from funcmcp.server.handlers.prompts import PromptCalls
from funcmcp.server.handlers.resources import ResourceList, ResourceReads, ResourceSubscriptions
from funcmcp.server.handlers.subscriptions import Subscriptions
from funcmcp.server.handlers.tasks import TaskMethods
from funcmcp.server.handlers.tools import ToolCalls
from funcmcp.server.tasks.runs import TaskRuns

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from funcmcp.protocol.jsonrpc import Request
    from funcmcp.protocol.revisions import Revision
    from funcmcp.server.authorization import Guard
    from funcmcp.server.calls.route import FindFeature, Handler
    from funcmcp.server.catalog.catalog import Catalog
    from funcmcp.server.catalog.lookup import Lookup
    from funcmcp.server.connections.hub import Hub
    from funcmcp.server.load import Load
    from funcmcp.server.options import ServerOptions
    from funcmcp.server.results import Results
    from funcmcp.server.tasks.service import Tasks
    from funcmcp.state.seal import KeyRing

_MAX_QUOTED_METHOD = 200


class Parts(NamedTuple):
    """The parts of a server that handlers use."""

    options: ServerOptions
    revisions: Mapping[str, Revision]
    catalog: Catalog
    lookup: Lookup
    results: Results
    guard: Guard | None
    keys: KeyRing
    hub: Hub
    load: Load
    tasks: Tasks | None = None


class Routes:
    """The routes of one server.

    Args:
        parts: The parts of the server.

    Attributes:
        lists: The lists of features, by method.
    """

    def __init__(self, parts: Parts) -> None:
        self._catalog = parts.catalog
        self.lists = _lists(parts)
        self._routes = {route.method: route for route in _rows(parts, self.lists)}

    def route(self, request: Request) -> RoutedRequest:
        """Return a request with its route and the feature that it names. Each is None if it does not exist."""
        route = self._routes.get(request.method)
        if route is None or route.find is None:
            return RoutedRequest(request, route)
        try:
            feature, values = route.find(request.params)
        except MCPError as fault:
            return RoutedRequest(request, route, fault=fault.with_traceback(None))
        return RoutedRequest(request, route, feature, values)

    def handler(self, routed: RoutedRequest, revision: Revision) -> Handler:
        """Return the handler of a request; raise MCPError -32601 if this server or *revision* lacks the method."""
        route = routed.route
        if (
            route is None
            or revision.date not in route.revisions
            or (route.capability is not None and route.capability not in self._catalog.offered)
        ):
            method = routed.request.method[:_MAX_QUOTED_METHOD]
            raise MCPError(METHOD_NOT_FOUND, "Method not found", {"method": method})
        return route.handler


def _lists(parts: Parts) -> dict[str, FeatureList]:
    """Return the lists of registered features, by method."""
    catalog, results, guard = parts.catalog, parts.results, parts.guard
    make = partial(FeatureList, results=results, guard=guard, page_size=parts.options.lists.page_size)
    return {
        "tools/list": make("tools", catalog.tools, adaptation.tool_definition),
        "resources/list": make("resources", catalog.resources, adaptation.definition),
        "resources/templates/list": make("resourceTemplates", catalog.templates, adaptation.definition),
        "prompts/list": make("prompts", catalog.prompts, adaptation.definition),
    }


def _rows(parts: Parts, lists: dict[str, FeatureList]) -> Iterable[Route]:
    """Yield the routes of the server, one for each method."""
    options, catalog, lookup, results = parts.options, parts.catalog, parts.lookup, parts.results
    calls = FeatureCalls(parts.keys, options.show_errors)
    revisions = sorted(parts.revisions, reverse=True)
    lifecycle = Lifecycle(catalog, results, revisions, options.instructions)
    resource_list = ResourceList(lists["resources/list"], catalog, lookup, results=results, guard=parts.guard)
    subscriptions = ResourceSubscriptions(parts.load.subscriptions)
    tool_calls = ToolCalls(calls, results, parts.tasks)
    tasks = None if parts.tasks is None else TaskMethods(parts.tasks, results, hub=parts.hub, load=parts.load)
    listening = Subscriptions(catalog, lookup, guard=parts.guard, hub=parts.hub, load=parts.load, tasks=tasks)

    conversation, listing, by_feature = Audience.CONVERSATION, Audience.LIST, Audience.FEATURE
    never, if_feature, always = Interactivity.NEVER, Interactivity.FEATURE, Interactivity.ALWAYS
    rows: list[tuple[str, Handler, Audience, FindFeature | None, Interactivity]] = [
        ("initialize", lifecycle.initialize, conversation, None, never),
        ("server/discover", lifecycle.discover, conversation, None, never),
        ("ping", lifecycle.ping, conversation, None, never),
        ("logging/setLevel", lifecycle.set_level, conversation, None, never),
        ("tools/list", lists["tools/list"].page, listing, None, never),
        ("tools/call", tool_calls.call, by_feature, lookup.tool, if_feature),
        ("resources/list", resource_list.page, listing, None, never),
        ("resources/templates/list", lists["resources/templates/list"].page, listing, None, never),
        ("resources/read", ResourceReads(calls, results).read, by_feature, lookup.readable, if_feature),
        ("resources/subscribe", subscriptions.subscribe, by_feature, lookup.readable, never),
        ("resources/unsubscribe", subscriptions.unsubscribe, conversation, None, never),
        ("prompts/list", lists["prompts/list"].page, listing, None, never),
        ("prompts/get", PromptCalls(calls, results).get, by_feature, lookup.prompt, if_feature),
        ("completion/complete", Completions(calls).complete, by_feature, lookup.completed, never),
        # CONVERSATION, because the handler itself decides which changes the caller may get.
        ("subscriptions/listen", listening.listen, conversation, None, always),
    ]
    if parts.tasks is not None and tasks is not None:
        store = parts.tasks.store
        runs = TaskRuns(catalog, results, tool_calls.run, result_bytes=store.limits.result_bytes)
        parts.tasks.run_with(runs)
        # CONVERSATION, because the handlers themselves decide which tasks the caller may use.
        rows += [
            ("tasks/get", tasks.get, conversation, None, never),
            ("tasks/update", tasks.update, conversation, None, never),
            ("tasks/cancel", tasks.cancel, conversation, None, never),
            ("tasks/result", tasks.result, conversation, None, always),
            ("tasks/list", tasks.list, conversation, None, never),
        ]
    served = {date: methods_of(date) for date in parts.revisions}
    for method, handler, audience, find, interactivity in rows:
        dates = frozenset(date for date, methods in served.items() if method in methods)
        yield Route(method, handler, audience, find, interactivity, METHODS[method].capability, dates)
