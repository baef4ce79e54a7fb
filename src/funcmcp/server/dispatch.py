"""From a request to its answer: look up the method, run its handler, and make one JSON text of what comes out."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from funcmcp.protocol import envelope, shape
from funcmcp.protocol.codec import encode
from funcmcp.protocol.errors import INTERNAL_ERROR, METHOD_NOT_FOUND, MCPError, ResourceNotFound
from funcmcp.protocol.methods import methods_of
from funcmcp.server.catalog.features import Prompt, RawResponse, Resource, ResourceLister, ResourceTemplate, Tool
from funcmcp.server.catalog.registry import Registry
from funcmcp.server.connections.hub import LISTS, PROMPTS, RESOURCES, TOOLS, Hub, updated
from funcmcp.server.handlers import completions, lifecycle, prompts, resources, subscriptions, tools
from funcmcp.server.limits import LimitReachedError
from funcmcp.server.load import Load
from funcmcp.server.log import log_failure, quote
from funcmcp.state.bus import LocalBus
from funcmcp.state.sessions.store import StoreAwayError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Sequence

    from funcmcp.protocol.jsonrpc import Request, RequestId
    from funcmcp.protocol.revisions import Revision
    from funcmcp.protocol.uri_template import Values
    from funcmcp.server.calls.context import Context
    from funcmcp.server.connections.conversation import Conversation
    from funcmcp.server.connections.hub import Change
    from funcmcp.server.guard import Guard
    from funcmcp.server.options import ServerOptions
    from funcmcp.state.bus import Bus
    from funcmcp.state.seal import KeyRing

    Handler: TypeAlias = Callable[["Server", Context], Awaitable[dict[str, Any] | bytes | RawResponse]]

HANDLERS: dict[str, Handler] = {
    "ping": lifecycle.ping,
    "server/discover": lifecycle.discover,
    "logging/setLevel": lifecycle.set_level,
    "tools/list": tools.list_tools,
    "tools/call": tools.call_tool,
    "resources/list": resources.list_resources,
    "resources/templates/list": resources.list_templates,
    "resources/read": resources.read_resource,
    "resources/subscribe": resources.subscribe,
    "resources/unsubscribe": resources.unsubscribe,
    "prompts/list": prompts.list_prompts,
    "prompts/get": prompts.get_prompt,
    "completion/complete": completions.complete,
    "subscriptions/listen": subscriptions.listen,
}


class Reply:
    """An answer as it goes out: one JSON text, and the error code in it or None."""

    __slots__ = ("body", "error")

    def __init__(self, body: bytes, error: int | None = None) -> None:
        self.body = body
        self.error = error


class Server:
    """The features, and the answer to every request about them.

    Args:
        options: what the server says of itself, and how it answers lists.
        revisions: the revisions that it speaks.
        keys: seal what clients carry for it.
        guard: decides who may do what, where transports know who asks; None lets everybody do everything.
        bus: leads to the other instances of the server; by default there are none.
    """

    def __init__(
        self,
        options: ServerOptions,
        revisions: Sequence[Revision],
        *,
        keys: KeyRing,
        guard: Guard | None = None,
        bus: Bus | None = None,
    ) -> None:
        self.options, self.guard, self.keys = options, guard, keys
        self.has_anonymous = False
        """Whether a guard lets callers without credentials use some feature."""
        self.revisions = {revision.date: revision for revision in revisions}
        self.load = Load(options.limits)
        self.tools: Registry[Tool] = Registry("tool")
        self.resources: Registry[Resource] = Registry("resource", str, by="URI")
        self.templates: Registry[ResourceTemplate] = Registry("resource template", str, by="URI")
        self.listers: Registry[ResourceLister] = Registry("resource list", by="scheme")
        self.prompts: Registry[Prompt] = Registry("prompt")
        self.bus = bus or LocalBus()
        self.hub = Hub(self.bus)
        self.left_out: set[tuple[str, str]] = set()
        """Kind and key of features that no list has, because they can't be described, as was said once."""
        self.lists: dict[tuple[str, str, int], tuple[int, bytes]] = {}
        """Encoded lists by kind, revision and place of the first item, with the registry version that made them."""
        self.matched: dict[str, tuple[ResourceTemplate, Values]] = {}  # by URI
        self._result_meta = {envelope.SERVER_INFO: options.implementation()}
        self.end_of_read = self._end_of({"ttlMs": int(options.read_ttl * 1000), "cacheScope": "private"})
        """What stands behind the contents of a resource in the per-request era, with the comma and brace around it."""
        self.end_of_prompt = self._end_of({})
        """As above, for the messages of a prompt."""
        self.frames = {revision.date: self._frames_of(revision) for revision in revisions}
        """By revision, the JSON around a text, and around a text with structured content, that make a tool's result."""
        self.offered: set[str] = set()
        self.reads_interactively = False
        """Whether some resource may ask or tell the client something."""
        self._registries = self._by_type()
        for registry, change in self._registries.values():
            registry.listeners += [self._see_offer, partial(self.hub.publish, change)]
        self._see_offer()

    def _by_type(self) -> dict[type, tuple[Registry[Any], Change]]:
        """Return where features of a type are, and what changes with them."""
        return {
            Tool: (self.tools, TOOLS),
            Resource: (self.resources, RESOURCES),
            ResourceTemplate: (self.templates, RESOURCES),
            ResourceLister: (self.listers, RESOURCES),
            Prompt: (self.prompts, PROMPTS),
        }

    def add(self, feature: Tool | Resource | ResourceTemplate | ResourceLister | Prompt) -> None:
        """Offer a feature, and tell those who listen; raise RegistrationError if its key is taken."""
        self._registries[type(feature)][0].add(feature)

    def missed(self, conversation: Conversation) -> list[Change]:
        """Return all that a client of the handshake era is told of, for when some of it may have been missed."""
        lists = [change for name, change in LISTS.items() if name in self.offered]
        return lists + [updated(uri) for uri in conversation.subscribed]

    @property
    def cache_scope(self) -> Literal["public", "private"]:
        """Whether caches may give an answer that is not about its caller to somebody else."""
        return "public" if self.guard is None else "private"

    def features(self) -> Iterator[Tool | Resource | ResourceTemplate | Prompt]:
        """Yield what callers can use."""
        for registry in (self.tools, self.resources, self.templates, self.prompts):
            yield from registry

    def _see_offer(self) -> None:
        """Note which capabilities the server has now; methods of others are not found."""
        self.matched.clear()
        self.lists.clear()  # pages of lists that are no more; nobody may ever ask for their cursors again
        readable = (self.resources, self.templates)
        self.reads_interactively = any(feature.interactive for kind in readable for feature in kind)
        if self.guard is not None:
            self.has_anonymous = any(feature.access.anonymous for feature in self.features())
        kinds: dict[str, tuple[bool | None, list[Registry[Any]]]] = {
            "tools": (self.options.enable_tools, [self.tools]),
            "resources": (self.options.enable_resources, [self.resources, self.templates, self.listers]),
            "prompts": (self.options.enable_prompts, [self.prompts]),
        }
        offered = {"logging"} | {
            name
            for name, (wanted, registries) in kinds.items()
            if (any(len(registry) for registry in registries) if wanted is None else wanted)
        }
        completed = [
            kind for name, kind in (("prompts", self.prompts), ("resources", self.templates)) if name in offered
        ]
        if any(feature.completers for kind in completed for feature in kind):
            offered.add("completions")
        if offered == self.offered:
            return
        self.offered = offered
        self._handlers = {
            date: {
                name: HANDLERS[name]
                for name, row in methods_of(date).items()
                if name in HANDLERS and (row.capability is None or row.capability in self.offered)
            }
            for date in self.revisions
        }

    @property
    def supported(self) -> list[str]:
        """The dates of the revisions, newest first."""
        return sorted(self.revisions, reverse=True)

    def handler(self, method: str, revision: Revision) -> Handler:
        """Return the handler of a method that this server serves in a revision; raise MCPError -32601."""
        handler = self._handlers[revision.date].get(method)
        if handler is None:
            raise MCPError(METHOD_NOT_FOUND, "Method not found", {"method": method[:200]})
        return handler

    def is_interactive(self, request: Request) -> bool:
        """Tell whether the answer to a request may come with other messages, so that a stream must be at hand."""
        find = _INTERACTIVE.get(request.method)
        return find is not None and find(self, request.params)

    async def answer(self, context: Context) -> Reply:
        """Run a request and return its answer.

        Every failure becomes an error object, but those for which transports have a status of their own.

        Raises:
            LimitReachedError: there is no room for it; nothing of it has run.
            StoreAwayError: what the instances share can't be reached, and the request needs it.
        """
        request, revision = context.request, context.client.revision
        runs, caller = self.load.runs, context.caller
        runs.take(caller)
        try:
            handler = self._handlers[revision.date].get(request.method) or self.handler(request.method, revision)
            result = await handler(self, context)
            if isinstance(result, bytes):
                return Reply(result_text(request.id, result))
            if isinstance(result, RawResponse):
                return Reply(encode(result.message), result.message.get("error", {}).get("code"))
            shaped = self.stamp(result) if revision.per_request else result
            return Reply(encode({"jsonrpc": "2.0", "id": request.id, "result": shaped}))
        except (StoreAwayError, LimitReachedError):
            raise
        except MCPError as error:
            return self._error(error, request, revision)
        except Exception as error:  # noqa: BLE001 - the last line: a fault of ours is -32603, never a broken connection
            return self._internal_error(error, request)
        finally:
            runs.give_back(caller)

    def stamp(self, result: dict[str, Any]) -> dict[str, Any]:
        """Add what every result of the per-request era carries."""
        meta = result.get("_meta")
        return {
            "resultType": "complete",
            **result,
            "_meta": {**meta, **self._result_meta} if meta else self._result_meta,
        }

    def _end_of(self, members: dict[str, Any]) -> bytes:
        return b"," + encode({**members, "_meta": self._result_meta})[1:]

    def _frames_of(self, revision: Revision) -> tuple[bytes, bytes]:
        """Return what stands around a text, and around a text and structured content."""
        begin, end = b'{"content":[{"type":"text","text":%b}]', b"}"
        if revision.per_request:
            begin = b'{"resultType":"complete",' + begin[1:]
            end = b',"_meta":' + encode(self._result_meta).replace(b"%", b"%%") + b"}"
        structured = b',"structuredContent":%b' if revision.structured_content is not None else b"%.0b"
        return begin + end, begin + structured + end

    def implementation(self, revision: Revision) -> dict[str, Any]:
        """Return the server's Implementation as a revision has it."""
        return shape.implementation(self.options.implementation(), revision)

    def _error(self, error: MCPError, request: Request, revision: Revision) -> Reply:
        if isinstance(error, ResourceNotFound):
            error = MCPError(revision.not_found, error.message, error.data)
        try:
            return error_reply(error, request.id)
        except ValueError as fault:  # an author's message or data that JSON can't say
            return self._internal_error(fault, request)

    def _internal_error(self, error: Exception, request: Request) -> Reply:
        error_id = os.urandom(8).hex()
        log_failure(error, error_id, quote(request.method))
        return error_reply(MCPError(INTERNAL_ERROR, "Internal error", {"errorId": error_id}), request.id)


def result_text(request_id: RequestId, result: bytes) -> bytes:
    """Return the answer for a result that is encoded already."""
    own = b"%d" % request_id if type(request_id) is int else encode(request_id)
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (own, result)


def error_reply(error: MCPError, request_id: RequestId | None) -> Reply:
    """Return the answer for an error; an id that could not be read is left out."""
    message: dict[str, Any] = {"jsonrpc": "2.0", "error": error.payload()}
    if request_id is not None:
        message["id"] = request_id
    return Reply(encode(message), error.code)


def _in_registry(registry: str, member: str) -> Callable[[Server, dict[str, Any]], bool]:
    def find(server: Server, params: dict[str, Any]) -> bool:
        key = params.get(member)
        feature = getattr(server, registry).get(key) if type(key) is str else None
        return feature is not None and feature.interactive

    return find


def _reading(server: Server, params: dict[str, Any]) -> bool:
    if not server.reads_interactively:
        return False  # which resource it is need not be found out twice
    try:
        return resources.find_resource(server, resources.uri_of(params))[0].interactive
    except MCPError:
        return False  # what is wrong with it is told when it is answered


_INTERACTIVE: dict[str, Callable[[Server, dict[str, Any]], bool]] = {
    "tools/call": _in_registry("tools", "name"),
    "prompts/get": _in_registry("prompts", "name"),
    "resources/read": _reading,
    "subscriptions/listen": lambda _server, _params: True,
}
