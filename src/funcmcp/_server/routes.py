"""The table of the methods that the server serves, and the routing of requests by it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from funcmcp._protocol import adaptation
from funcmcp._protocol.errors import METHOD_NOT_FOUND, MCPError
from funcmcp._protocol.methods import METHODS, methods_of
from funcmcp._server.calls.feature_call import FeatureCalls
from funcmcp._server.calls.route import READS, Audience, Interactivity, Route, RoutedRequest, with_scheme_of
from funcmcp._server.catalog.features import Tool
from funcmcp._server.handlers.completions import Completions
from funcmcp._server.handlers.lifecycle import Lifecycle
from funcmcp._server.handlers.lists import FeatureList
from funcmcp._server.handlers.prompts import PromptCalls
from funcmcp._server.handlers.resources import ResourceList, ResourceReads, ResourceSubscriptions
from funcmcp._server.handlers.subscriptions import Subscriptions
from funcmcp._server.handlers.tools import ToolCalls

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TypeAlias

    from funcmcp._protocol.jsonrpc import Request
    from funcmcp._protocol.revisions import Revision
    from funcmcp._server.authorization import Guard
    from funcmcp._server.calls.rounds import UsedStates
    from funcmcp._server.calls.route import FindFeature, Handler
    from funcmcp._server.catalog.catalog import Catalog
    from funcmcp._server.catalog.features import ExtensionMethod
    from funcmcp._server.catalog.lookup import Lookup
    from funcmcp._server.connections.hub import Hub
    from funcmcp._server.handlers.tools import Budgets
    from funcmcp._server.load import Load
    from funcmcp._server.options import ServerOptions
    from funcmcp._server.results import Results
    from funcmcp._server.tasks.service import Tasks
    from funcmcp._server.tool_search import ToolSearch
    from funcmcp._state.seal import KeyRing

    _Row: TypeAlias = tuple[str, Handler, Audience, FindFeature | None, Interactivity]

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
    used_states: UsedStates
    hub: Hub
    load: Load


class Routes:
    """The routes of one server.

    Args:
        parts: The parts of the server.

    Attributes:
        lists: The lists of features, by method.
        lifecycle: Answers requests about the server.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._catalog = parts.catalog
        self._calls = FeatureCalls(parts.keys, parts.used_states, parts.options.show_errors)
        self._tool_calls = ToolCalls(self._calls, parts.results)
        self._subscriptions = Subscriptions(
            parts.catalog, parts.lookup, guard=parts.guard, hub=parts.hub, load=parts.load
        )
        self.lists = _lists(parts)
        self._routes: dict[str, Route] = {}
        self._add(self._rows())
        for method in parts.catalog.methods.every():
            self.add_method(method)
        if parts.catalog.skills.every():
            self.add_skills()

    def add_tasks(self, tasks: Tasks) -> None:
        """Allow calls to become tasks, and serve the methods of tasks."""
        from funcmcp._server.handlers.task_calls import TaskCalls  # noqa: PLC0415 - few servers have tools with task=
        from funcmcp._server.handlers.tasks import TaskMethods  # noqa: PLC0415 - as above
        from funcmcp._server.tasks.outcomes import TaskRuns  # noqa: PLC0415 - as above

        results, tool_calls = self._parts.results, self._tool_calls
        runs = TaskRuns(self._catalog, results, tool_calls.run, tasks.store)
        tasks.run_with(runs)
        tool_calls.add_tasks(TaskCalls(tasks, tool_calls, self._calls))
        methods = TaskMethods(tasks, results, hub=self._parts.hub, load=self._parts.load)
        self._subscriptions.add_tasks(methods)
        # CONVERSATION, because the handlers themselves decide which tasks the caller may use.
        conversation, never, always = Audience.CONVERSATION, Interactivity.NEVER, Interactivity.ALWAYS
        self._add(
            [
                ("tasks/get", methods.get, conversation, None, never),
                ("tasks/update", methods.update, conversation, None, never),
                ("tasks/cancel", methods.cancel, conversation, None, never),
                ("tasks/result", methods.result, conversation, None, always),
                ("tasks/list", methods.list, conversation, None, never),
            ]
        )

    def add_skills(self) -> None:
        """Serve the methods of skills, unless that is so already."""
        if "skills/list" in self._routes:
            return
        from funcmcp._server.handlers.skills import SkillList, Skills  # noqa: PLC0415 - few servers have skills

        parts = self._parts
        page_size = parts.options.protocol.page_size
        skill_list = SkillList(parts.catalog, results=parts.results, guard=parts.guard, page_size=page_size)
        skill_list.provided = self.lists["resources/list"].provided
        self.lists["skills/list"] = skill_list
        skills = Skills(skill_list, parts.results)
        never = Interactivity.NEVER
        self._add(
            [
                ("skills/list", skill_list.page, Audience.LIST, None, never),
                ("skills/get", skills.get, Audience.FEATURE, parts.lookup.skill, never),
                ("resources/directory/read", skills.read_folder, Audience.LIST, None, never),
            ]
        )

    def add_method(self, method: ExtensionMethod) -> None:
        """Serve a method of an extension."""
        from funcmcp._server.handlers.extension_methods import method_route  # noqa: PLC0415 - few servers have extensions

        self._routes[method.name] = method_route(method, self._calls, self._catalog, self._parts.revisions)

    def add_tool_search(self, search: ToolSearch) -> None:
        """Shorten the list of tools to those that a search lists."""
        from funcmcp._server.tool_search import SearchedTools  # noqa: PLC0415 - few servers have a search

        parts = self._parts
        page_size = parts.options.protocol.page_size
        tools = SearchedTools(
            search, parts.catalog.tools, results=parts.results, guard=parts.guard, page_size=page_size
        )
        whole_list = self.lists["tools/list"]
        tools.shape, tools.provided = whole_list.shape, whole_list.provided
        self.lists["tools/list"] = tools
        self._add([("tools/list", tools.page, Audience.LIST, None, Interactivity.NEVER)])

    def limit_results(self, budgets: Budgets) -> None:
        """Keep results of tools within their budgets."""
        self._tool_calls.limit_with(budgets)
        self.lists["tools/list"].shape = budgets.tool_definition

    def route(self, request: Request) -> RoutedRequest:
        """Return a request with its route and the feature that it names. Each is None if it does not exist."""
        route = self._routes.get(request.method)
        if route is None or route.find is None:
            return RoutedRequest(request, route)
        try:
            feature, values = route.find(request.params)
        except MCPError as fault:
            return RoutedRequest(request, route, fault=fault.with_traceback(None))
        routed = RoutedRequest(request, route, feature, values)
        if request.method in READS:
            return with_scheme_of(feature.key, routed)
        if type(feature) is Tool and feature.reroute is not None:
            return feature.reroute(routed)
        return routed

    def handler(self, routed: RoutedRequest, revision: Revision) -> Handler:
        """Return the handler of a request; raise MCPError -32601 if this server or *revision* lacks the method."""
        route = routed.route
        if route is not None and revision.date in route.revisions:
            capability = route.capability
            if capability is None or capability in self._catalog.offered or self._serves_none(route.method, capability):
                return route.handler
        method = routed.request.method[:_MAX_QUOTED_METHOD]
        raise MCPError(METHOD_NOT_FOUND, "Method not found", {"method": method})

    def _serves_none(self, method: str, capability: str) -> bool:
        """Return whether the server answers a method of a capability without having any feature of it."""
        return METHODS[method].serves_none and capability not in self._catalog.switched_off

    def _rows(self) -> list[_Row]:
        """Return the rows of the methods that every server has."""
        parts, lookup, results = self._parts, self._parts.lookup, self._parts.results
        revisions = sorted(parts.revisions, reverse=True)
        self.lifecycle = lifecycle = Lifecycle(parts.catalog, results, revisions)
        resource_list = ResourceList(
            self.lists["resources/list"], parts.catalog, lookup, results=results, guard=parts.guard
        )
        subscriptions = ResourceSubscriptions(parts.load.subscriptions)

        conversation, listing, by_feature = Audience.CONVERSATION, Audience.LIST, Audience.FEATURE
        never, if_feature, always = Interactivity.NEVER, Interactivity.FEATURE, Interactivity.ALWAYS
        return [
            ("initialize", lifecycle.initialize, conversation, None, never),
            ("server/discover", lifecycle.discover, conversation, None, never),
            ("ping", lifecycle.ping, conversation, None, never),
            ("logging/setLevel", lifecycle.set_level, conversation, None, never),
            ("tools/list", self.lists["tools/list"].page, listing, None, never),
            ("tools/call", self._tool_calls.call, by_feature, lookup.tool, if_feature),
            ("resources/list", resource_list.page, listing, None, never),
            ("resources/templates/list", self.lists["resources/templates/list"].page, listing, None, never),
            ("resources/read", ResourceReads(self._calls, results).read, by_feature, lookup.readable, if_feature),
            ("resources/subscribe", subscriptions.subscribe, by_feature, lookup.readable, never),
            ("resources/unsubscribe", subscriptions.unsubscribe, conversation, None, never),
            ("prompts/list", self.lists["prompts/list"].page, listing, None, never),
            ("prompts/get", PromptCalls(self._calls, results).get, by_feature, lookup.prompt, if_feature),
            ("completion/complete", Completions(self._calls).complete, by_feature, lookup.completed, never),
            # CONVERSATION, because the handler itself decides which changes the caller may get.
            ("subscriptions/listen", self._subscriptions.listen, conversation, None, always),
        ]

    def _add(self, rows: list[_Row]) -> None:
        """Add a route for each row."""
        served = {date: methods_of(date) for date in self._parts.revisions}
        for method, handler, audience, find, interactivity in rows:
            dates = frozenset(date for date, methods in served.items() if method in methods)
            capability = METHODS[method].capability
            self._routes[method] = Route(method, handler, audience, find, interactivity, capability, dates)


def _lists(parts: Parts) -> dict[str, FeatureList]:
    """Return the lists of registered features, by method."""
    catalog, results, guard = parts.catalog, parts.results, parts.guard
    make = partial(FeatureList, results=results, guard=guard, page_size=parts.options.protocol.page_size)
    return {
        "tools/list": make("tools/list", catalog.tools, adaptation.tool_definition),
        "resources/list": make("resources/list", catalog.resources, adaptation.definition),
        "resources/templates/list": make("resources/templates/list", catalog.templates, adaptation.definition),
        "prompts/list": make("prompts/list", catalog.prompts, adaptation.definition),
    }
