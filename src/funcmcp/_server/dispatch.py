"""The server: routes each request once, runs its middleware and handler, and encodes the response."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, TypeVar

from funcmcp._protocol.codec import encode
from funcmcp._protocol.errors import INTERNAL_ERROR, MCPError, ResourceNotFound, ToolError
from funcmcp._protocol.jsonrpc import Request, classify
from funcmcp._protocol.replies import Reply, encoded_result_reply, error_reply, result_reply
from funcmcp._server.authorization import Guard
from funcmcp._server.calls.resolving import Resolving, resolving
from funcmcp._server.calls.rounds import UsedStates
from funcmcp._server.calls.route import RoutedRequest
from funcmcp._server.catalog.catalog import Catalog
from funcmcp._server.catalog.features import RawResponse, Tool
from funcmcp._server.catalog.lookup import Lookup
from funcmcp._server.catalog.registry import RegistrationError
from funcmcp._server.connections.hub import LISTS, Hub, updated
from funcmcp._server.drain import Drain
from funcmcp._server.exception_groups import meaning_of, shown_text
from funcmcp._server.limits import LimitReachedError
from funcmcp._server.load import Load
from funcmcp._server.log import log_failure, log_too_large
from funcmcp._server.middleware import BoundMiddleware, check_middleware, fold
from funcmcp._server.results import Results
from funcmcp._server.routes import Parts, Routes
from funcmcp._server.run import begin, is_failure
from funcmcp._state.bus import LocalBus
from funcmcp._state.sessions.store import StoreUnavailableError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Coroutine, Sequence, Set

    from funcmcp._auth.policy import Auth
    from funcmcp._auth.principal import Principal
    from funcmcp._protocol.jsonrpc import Malformed, Notification, Response
    from funcmcp._protocol.revisions import Revision
    from funcmcp._server.budgets.result_budgets import ResultBudgets
    from funcmcp._server.calls.context import HTTPRequestInfo, RequestContext
    from funcmcp._server.calls.feature import Feature
    from funcmcp._server.catalog.feature_view import FeatureView
    from funcmcp._server.catalog.features import ExtensionMethod
    from funcmcp._server.connections.client import ConnectedClient
    from funcmcp._server.connections.conversation import Conversation, Rules
    from funcmcp._server.connections.hub import Change
    from funcmcp._server.handlers.lists import ListFilter, Provided
    from funcmcp._server.middleware import Middleware, Respond
    from funcmcp._server.middleware_results import AuthoredValues, MiddlewareResults
    from funcmcp._server.options import ServerOptions
    from funcmcp._server.run import Waiting
    from funcmcp._server.tasks.service import Tasks
    from funcmcp._state.bus import Bus
    from funcmcp._state.caller_values import CallerValues
    from funcmcp._state.seal import KeyRing
    from funcmcp._state.tasks.store import TaskStore

    Message = TypeVar("Message", RoutedRequest, RoutedRequest | Notification | Response | Malformed)


class Server:
    """The features of one server, and the responses to the requests of its clients.

    Args:
        options: The server's Implementation, lists, limits and instructions.
        revisions: The revisions that the server speaks.
        keys: The keys that seal the state which clients return.
        auth: How callers are authenticated and what they may list. None: every caller may do everything.
        bus: Connects the instances of the server; by default there is one instance.
        middleware: Functions around every request, the outermost first.
        middleware_values: Creates the reader of objects that middleware returns, such as a ToolResult, when it is first
            needed. None: middleware returns dicts only.
        tasks: The store of the tasks; a function that makes it when a tool first needs it; None if calls never become
            tasks.
        task_concurrency: How many tasks this process runs at once. None: as many as the store says.
        task_queues: The queues whose tasks this process runs. None: all.

    Attributes:
        revisions: The revisions by date.
        catalog: The features.
        parts: What the handlers of methods use.
        routes: The methods and their handlers.
        guard: Decides which requests a caller may send; None without `auth`.
        results: Adds the members that every result of a revision has.
        drain: The time that calls in flight and tasks have when the server stops.
        load: Counts and limits requests, streams and subscriptions, in total and for each caller.
        hub: Publishes changes.
        tasks: The tasks; None if calls never become tasks, or the store is not made yet.
        budgets: Keeps results within the budgets of their tools; None as long as no tool has one.
        open_values: Returns the store of the callers' values. None: there is none, and tools have no budgets.
        provided: The features that are computed at run time; None if there are none.
        client_endings: Functions that are called with each client whose session or connection has ended.
        view: Changes the features for each request; None if nothing does.
        is_mounted: Whether another server has the features of this one, too.
        list_filters: The mounted servers whose middleware lists pass.
        notification_listeners: Functions that are called with the context of each notification of a client. They have
            no effect on it.
    """

    budgets: ResultBudgets | None = None
    open_values: Callable[[], CallerValues] | None = None
    provided: Provided | None = None
    view: FeatureView | None = None
    is_mounted: bool = False
    _middleware_results: MiddlewareResults | None = None
    _values_of_authors: AuthoredValues | None = None

    def __init__(  # noqa: PLR0913 - keyword-only: the parts that operators choose
        self,
        options: ServerOptions,
        revisions: Sequence[Revision],
        *,
        keys: KeyRing,
        auth: Auth | None = None,
        bus: Bus | None = None,
        middleware: Sequence[Middleware] = (),
        middleware_values: Callable[[], AuthoredValues] | None = None,
        tasks: TaskStore | Callable[[], TaskStore] | None = None,
        task_concurrency: int | None = None,
        task_queues: Set[str] | None = None,
    ) -> None:
        self.options, self.keys = options, keys
        self.revisions = {revision.date: revision for revision in revisions}
        self.load = Load(options.limits)
        self._result_bytes = options.limits.result_bytes
        self.drain = Drain()
        self.bus = bus or LocalBus()
        self.hub = Hub(self.bus)
        open_tasks = None if tasks is None else self.open_tasks
        self.catalog = Catalog(options, self.hub.publish, open_tasks=open_tasks)
        self.guard = None if auth is None else Guard(self.catalog, auth.lists, scopes=auth.scopes)
        is_shared = auth is None and options.protocol.share_caches is not False
        self.results = Results(options, revisions, cache_scope="public" if is_shared else "private")
        self.parts = self._make_parts()
        self.routes = Routes(self.parts)
        self.catalog.tools.listeners.append(self._tool_changed)
        self.catalog.methods.listeners.append(self._method_changed)
        self.catalog.skills.listeners.append(lambda _skill, _count: self.routes.add_skills())
        self.tasks: Tasks | None = None
        self._task_store = tasks
        self._task_concurrency = task_concurrency
        self._task_queues = task_queues
        if tasks is not None and not callable(tasks):
            self.open_tasks()
        self.client_endings: list[Callable[[ConnectedClient], None]] = []
        self.notification_listeners: list[Callable[[RequestContext], None]] = []
        self.list_filters: list[ListFilter] = []
        self._middleware: list[Middleware] = []
        self._make_middleware_values = middleware_values
        self._chain: Respond = self._respond
        for function in middleware:
            self.add_middleware(function)

    def _make_parts(self) -> Parts:
        return Parts(
            self.options,
            self.revisions,
            self.catalog,
            Lookup(self.catalog),
            self.results,
            self.guard,
            self.keys,
            UsedStates(self.bus),
            self.hub,
            self.load,
        )

    def client_ended(self, client: ConnectedClient) -> None:
        """Note that the session or the connection of a client has ended."""
        for function in self.client_endings:
            function(client)

    def notified(
        self, message: Notification | Response, client: ConnectedClient | None, http: HTTPRequestInfo | None
    ) -> None:
        """Show the listeners a notification of a client.

        Args:
            message: The message. Responses are not shown.
            client: The client; None if it is not known.
            http: The HTTP request; None on a transport without HTTP.
        """
        if self.notification_listeners:
            from funcmcp._server.notifications import context_of  # noqa: PLC0415 - few servers have listeners

            newest = self.revisions[self.supported[0]]
            context = context_of(self.routes.route, newest, message, client, http)
            if context is not None:
                for listener in self.notification_listeners:
                    listener(context)

    def describe_as(
        self, implementation: dict[str, Any], instructions: str | None, capabilities: Collection[str]
    ) -> None:
        """Describe the server as another one, whose features it passes on, from now on.

        Args:
            implementation: The Implementation of the other server.
            instructions: Its instructions; None without.
            capabilities: The names of its capabilities.
        """
        self.results.describe_as(implementation)
        self.results.instructions = instructions
        self.catalog.promise_only({"tools", "resources", "prompts"}.intersection(capabilities))

    @property
    def has_tasks(self) -> bool:
        """Whether calls may become tasks."""
        return self._task_store is not None

    def open_tasks(self) -> Tasks | None:
        """Return the tasks, and make them unless that has happened; None if calls never become tasks."""
        if self.tasks is None and self._task_store is not None:
            from funcmcp._server.tasks.service import Tasks  # noqa: PLC0415 - few servers have tools with task=

            store = self._task_store() if callable(self._task_store) else self._task_store
            store.bind(self.options.name)
            self.tasks = Tasks(store, catalog=self.catalog, guard=self.guard, hub=self.hub, bus=self.bus)
            self.routes.add_tasks(self.tasks)
            if self._task_concurrency is not None:
                self.tasks.set_concurrency(self._task_concurrency)
            self.tasks.set_queues(self._task_queues)
        return self.tasks

    def _tool_changed(self, tool: Tool, count: int) -> None:
        if count > 0:
            self.offer_budget(tool)

    def _method_changed(self, method: ExtensionMethod, count: int) -> None:
        if count > 0:
            self.routes.add_method(method)

    def offer_budget(self, tool: Tool | None = None) -> None:
        """Keep results within budgets, and offer what reads the whole of a shortened one, once a tool has a budget.

        Args:
            tool: A tool; None for tools that a provider will have.
        """
        budget = self.options.limits.result_characters
        if tool is not None and tool.result_characters is not None:
            budget = tool.result_characters
        if not budget or self.open_values is None:
            return
        if self.budgets is None:
            from funcmcp._server.budgets.result_budgets import ResultBudgets  # noqa: PLC0415 - few servers have budgets

            self.budgets = ResultBudgets(
                self.options.limits,
                results=self.results,
                catalog=self.catalog,
                guard=self.guard,
                open_values=self.open_values,
                values=self._authored_values,
            )
            self.routes.limit_results(self.budgets)
        self.budgets.offer_readers(allow_anonymous=tool is not None and tool.access.allow_anonymous)

    def _authored_values(self) -> AuthoredValues | None:
        """Return what reads the values of authors, and make it unless that has happened; None if there is nothing."""
        if self._values_of_authors is None and self._make_middleware_values is not None:
            self._values_of_authors = self._make_middleware_values()
        return self._values_of_authors

    def add_middleware(self, middleware: Middleware, *, is_outermost: bool = False) -> None:
        """Add a middleware inside the existing ones, or around all of them; see `funcmcp.middleware`."""
        check_middleware(middleware)
        if isinstance(middleware, BoundMiddleware):
            middleware.bind(self.options.name, self.keys)
        self._middleware.insert(0 if is_outermost else len(self._middleware), middleware)
        self._chain = fold(self._middleware, self._respond, self._reply_of_middleware, self._failed)

    async def close_middleware(self) -> None:
        """Close the connections of the middleware."""
        for middleware in self._middleware:
            if isinstance(middleware, BoundMiddleware):
                await middleware.aclose()

    @property
    def has_middleware(self) -> bool:
        """Whether requests pass a middleware."""
        return bool(self._middleware)

    @property
    def supported(self) -> list[str]:
        """The dates of the revisions, newest first."""
        return sorted(self.revisions, reverse=True)

    def read(self, value: object, size: int = 0) -> RoutedRequest | Notification | Response | Malformed:
        """Classify a decoded JSON value. A request is returned with its route and the feature that it names.

        Args:
            value: The value.
            size: Bytes of memory that it takes up; 0 if they are few.
        """
        message = classify(value)
        if not isinstance(message, Request):
            return message
        routed = self.routes.route(message)
        routed.size = size
        return routed

    def provide(self, provided: Provided) -> None:
        """Serve features that are computed at run time, too."""
        self.provided = self.routes.lifecycle.provided = provided
        for features in self.routes.lists.values():
            features.provided = provided

    def add_list_filter(self, list_filter: ListFilter) -> None:
        """Run the middleware of a mounted server around its lists."""
        self.list_filters.append(list_filter)
        for features in self.routes.lists.values():
            features.filters = self.list_filters

    def set_view(self, view: FeatureView) -> None:
        """Set the view that changes the features for each request.

        Raises:
            RegistrationError: Another server, or the search for tools, has the features without the view.
        """
        if self.is_mounted or any(tool.reroute is not None for tool in self.catalog.tools):
            raise RegistrationError(
                f"{self.options.name} is mounted or has mcp.tool_search(), which have its features as they are. Add "
                "the transform to the server that mounts it, or remove the search."
            )
        self.view = view
        for features in self.routes.lists.values():
            features.view = view

    def publish_lists(self) -> None:
        """Notify clients that all lists may have changed."""
        for name, change in LISTS.items():
            if name in self.catalog.offered:
                self.hub.publish(change)

    async def resolve(
        self,
        message: Message,
        principal: Principal | None,
        routes: Routes | None = None,
        http: HTTPRequestInfo | None = None,
    ) -> Message:
        """Return a request with the feature that it names, also if that is computed at run time; others unchanged.

        Args:
            message: The request, or another message.
            principal: The caller.
            routes: The routes of the request, if they are not those of the server.
            http: The HTTP request; None on a transport without HTTP.
        """
        if self.provided is None or not isinstance(message, RoutedRequest):
            return message
        token = resolving.set(Resolving(message, http))
        try:
            return await self.provided.resolve(message, principal, (routes or self.routes).route)
        finally:
            resolving.reset(token)

    async def resolve_in_session(
        self, routed: RoutedRequest, rules: Rules, http: HTTPRequestInfo | None
    ) -> RoutedRequest:
        """Return a request with the feature that its session sees under its name."""
        from funcmcp._server.catalog.session_view import SessionView  # noqa: PLC0415 - few sessions have rules

        resolved = SessionView(rules, self.catalog).route(routed)
        is_new = resolved.feature is not None and resolved.feature is not routed.feature
        if is_new and self.guard is not None and not (http is not None and http.by_user):
            refusal = await self.guard.check(resolved, None if http is None else http.principal)
            if refusal is not None:
                return resolved.with_feature(fault=refusal.error())
        return resolved

    def hurry(self) -> None:
        """End the time that calls in flight and tasks have, because the server must stop at once. From any thread."""
        self.drain.hurry()
        if self.tasks is not None:
            self.tasks.hurry()

    def changes_for(self, conversation: Conversation) -> list[Change]:
        """Return a change for each list and each subscribed resource, for a client that may have missed some."""
        lists = [change for name, change in LISTS.items() if name in self.catalog.offered]
        return lists + [updated(uri) for uri in conversation.subscribed]

    def answer(self, context: RequestContext) -> Coroutine[Any, Any, Reply]:
        """Run the middleware and the handler of a request, and return its `Reply`. A failure becomes an error reply.

        Raises:
            LimitReachedError: A limit is reached; transports have a status for it.
            StoreUnavailableError: A store can't be reached; as above.
        """
        return self._chain(context)

    def begin(self, context: RequestContext) -> Reply | Waiting[Reply]:
        """Do as `answer` up to the first wait; return the `Reply`, or a `Waiting` to await if there was a wait.

        Without middleware there is no coroutine before the first wait, which saves 1.3 of 37 microseconds for a call.
        """
        if self._middleware:
            return begin(self.answer(context))
        reply = self._begin(context)
        return reply if isinstance(reply, Reply) else begin(self._wait_for(reply, context))

    async def _respond(self, context: RequestContext) -> Reply:
        """Run the handler of a request and return the response."""
        context.set_error(None)  # a middleware may run the handler again
        reply = self._begin(context)
        return reply if isinstance(reply, Reply) else await self._wait_for(reply, context)

    def _begin(self, context: RequestContext) -> Reply | Awaitable[Any]:
        """Call the handler of a request, if there is room for a run; return the response or what the handler awaits.

        A run that never waits ends before any other one begins, so it is not counted.
        """
        size = context.routed.size
        if self.load.runs.used or size:  # otherwise there is room for any caller
            self.load.runs.check(context.caller)
            self.load.memory.check(context.caller, size)
        result: Any
        try:
            if self.view is not None and context.routed.route is not None and context.routed.route.find is not None:
                return self._handle_in_view(context, self.view)
            feature = context.routed.feature
            if feature is not None and feature.needs:
                self._check_needs(feature, context)
            if feature is not None and feature.shown_if is not None:
                return self._handle_if_shown(context)
            result = self.routes.handler(context.routed, context.client.revision)(context)
            if isinstance(result, (bytes, dict, RawResponse)):
                return self._reply(result, context)
        except Exception as error:  # noqa: BLE001 - a fault of the server is -32603, never a broken connection
            return self._reply_to_failure(error, context)
        work: Awaitable[Any] = result
        return work

    def _check_needs(self, feature: Feature, context: RequestContext) -> None:
        """Raise MCPError if the client lacks a capability without which it does not have a feature."""
        from funcmcp._server.catalog.needs import missing_of, unknown_to  # noqa: PLC0415 - few features need any

        if missing_of(feature.needs, context.client.capabilities):
            raise unknown_to(feature, context.routed)

    async def _handle_in_view(self, context: RequestContext, view: FeatureView) -> Any:
        """Run the handler of a request with the feature that a view has for it."""
        context.routed = await view.routed(context)
        feature = context.routed.feature
        if feature is not None and feature.needs:
            self._check_needs(feature, context)
        return await self._handle_if_shown(context)

    async def _handle_if_shown(self, context: RequestContext) -> Any:
        """Run the handler of a request that names a feature which only some callers have."""
        from funcmcp._server.catalog.conditions import shown_request  # noqa: PLC0415 - few features need it

        context.routed = await shown_request(context, self.catalog)
        result: Any = self.routes.handler(context.routed, context.client.revision)(context)
        return result if isinstance(result, (bytes, dict, RawResponse)) else await result

    async def _wait_for(self, work: Awaitable[Any], context: RequestContext) -> Reply:
        """Return the response for the result that a handler awaits."""
        runs, caller = self.load.runs, context.caller
        memory, routed = self.load.memory, context.routed
        runs.count(caller)
        if routed.size:
            memory.count(caller, routed.size)
        try:
            return self._reply(await work, context)
        except Exception as error:  # noqa: BLE001 - as in `_begin`
            return self._reply_to_failure(error, context)
        finally:
            runs.give_back(caller)
            if routed.size:
                memory.give_back(caller, routed.size)

    def _reply(self, result: bytes | dict[str, Any] | RawResponse, context: RequestContext) -> Reply:
        """Return the response for the result of a handler."""
        if isinstance(result, bytes):
            reply = encoded_result_reply(context.request.id, result)
        elif isinstance(result, RawResponse):
            reply = Reply(encode(result.message), result.message.get("error", {}).get("code"))
        else:
            reply = self._completed(result, context)
        return self._within_limit(reply, context)

    def _within_limit(self, reply: Reply, context: RequestContext) -> Reply:
        """Return a response, or the refusal of one that is too large."""
        return reply if len(reply.body) <= self._result_bytes else self._too_large(reply, context)

    def _too_large(self, reply: Reply, context: RequestContext) -> Reply:
        """Return the refusal of a large result of a feature, and log it. Return other replies unchanged."""
        feature = context.routed.feature
        if feature is None:
            return reply
        size = len(reply.body)
        method = context.request.method
        log_too_large(feature.key, method, size, self._result_bytes)
        error = ToolError(
            f"The result has {size:,} bytes. This server sends {self._result_bytes:,} at most. "
            "Ask for less, such as fewer rows or a part of it."
        )
        context.set_error(error)
        if method == "tools/call":
            return self._completed({"content": [{"type": "text", "text": str(error)}], "isError": True}, context)
        return self._error(MCPError(INTERNAL_ERROR, str(error)), context)

    def _reply_to_failure(self, error: Exception, context: RequestContext) -> Reply:
        """Return the response for an exception of a handler; re-raise one for which transports have a status."""
        if isinstance(error, StoreUnavailableError | LimitReachedError):
            raise error
        if context.error is None:
            context.set_error(error)
        if isinstance(error, MCPError):
            return self._error(error, context)
        return self._internal_error(error, context.request)

    async def _reply_of_middleware(self, value: object, context: RequestContext) -> Reply:
        """Return the response for what a middleware returned in place of a reply.

        Raises:
            TypeError: The value can't be a result.
            ValueError: A member of the result is missing, wrong or not JSON.
        """
        if self._middleware_results is None:
            from funcmcp._server.middleware_results import MiddlewareResults  # noqa: PLC0415 - few servers need it

            self._middleware_results = MiddlewareResults(self.results, self._authored_values())
        result = self._middleware_results.complete(value, context)
        if self.budgets is not None and isinstance(context.feature, Tool):
            result = await self.budgets.limited_in_revision(result, context, context.feature)
        return self._within_limit(result_reply(context.request.id, result), context)

    def _completed(self, result: dict[str, Any], context: RequestContext) -> Reply:
        """Return the response for a result that is not encoded yet."""
        return result_reply(context.request.id, self.results.complete(result, context.client.revision))

    def _failed(self, error: BaseException, context: RequestContext) -> Reply:
        """Return the response for an exception of a middleware; re-raise an exception that is not a failure."""
        meaning = meaning_of(error)
        if isinstance(meaning, StoreUnavailableError | LimitReachedError) or not is_failure(meaning):
            raise meaning
        context.set_error(error)
        if isinstance(meaning, MCPError):
            return self._error(meaning, context)
        text = shown_text(error, (ToolError,)) if context.request.method == "tools/call" else None
        if text is not None:
            return self._completed({"content": [{"type": "text", "text": text}], "isError": True}, context)
        return self._internal_error(error, context.request)

    def _error(self, error: MCPError, context: RequestContext) -> Reply:
        if isinstance(error, ResourceNotFound):
            error = MCPError(context.client.revision.not_found, error.message, error.data)
        try:
            return error_reply(error, context.request.id)
        except ValueError as fault:  # an author's message or data that can't be encoded
            return self._internal_error(fault, context.request)

    def _internal_error(self, error: BaseException, request: Request) -> Reply:
        error_id = os.urandom(8).hex()
        log_failure(error, error_id, request.method, request.method)
        return error_reply(MCPError(INTERNAL_ERROR, "Internal error", {"errorId": error_id}), request.id)
