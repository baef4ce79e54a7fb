"""Small real parts from which tests of the server and of the transports are put together."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from funcmcp._protocol.completion import Completion
from funcmcp._protocol.jsonrpc import Request
from funcmcp._protocol.revisions import NEWEST as NEWEST_REVISION
from funcmcp._protocol.revisions import NEWEST_HANDSHAKE, REVISIONS
from funcmcp._protocol.uri_template import URITemplate
from funcmcp._server.calls.channel import ClosedChannel
from funcmcp._server.calls.context import RequestContext
from funcmcp._server.calls.rounds import UsedStates
from funcmcp._server.calls.route import RoutedRequest
from funcmcp._server.catalog.features import Prompt, Resource, ResourceTemplate, Tool
from funcmcp._server.connections.client import ConnectedClient
from funcmcp._server.dispatch import Server
from funcmcp._server.options import ServerOptions
from funcmcp._state.bus import LocalBus
from funcmcp._state.seal import KeyRing
from tests import schemas
from tests.patience import PATIENCE
from tests.server_options import grouped

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from funcmcp._auth.policy import Auth
    from funcmcp._protocol.replies import Reply
    from funcmcp._server.calls.channel import Channel
    from funcmcp._server.catalog.features import Addable, PromptHandler, ResourceHandler, ToolHandler
    from funcmcp._server.connections.conversation import Conversation
    from funcmcp._server.middleware import Middleware
    from funcmcp._state.bus import Bus
    from funcmcp._state.tasks.store import TaskStore


NEWEST = NEWEST_HANDSHAKE
PER_REQUEST = NEWEST_REVISION
VERSION = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
KEYS = KeyRing([b"k" * 32])
ASK_NAME = {
    "method": "elicitation/create",
    "params": {
        "message": "What is your name?",
        "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
    },
}
ASK_CAPITAL = {
    "method": "sampling/createMessage",
    "params": {
        "messages": [{"role": "user", "content": {"type": "text", "text": "Capital of France?"}}],
        "maxTokens": 100,
    },
}


def no_used_states() -> UsedStates:
    """Return the used states of a server that has not used any."""
    return UsedStates(LocalBus())


def text_result(text: str) -> dict[str, Any]:
    """Return a CallToolResult with one text block."""
    return {"content": [{"type": "text", "text": text}]}


def tool(name: str, handler: ToolHandler | None = None, **members: Any) -> Tool:
    """Return a tool; without a handler it says its own name."""

    async def say_name(_context: RequestContext, _arguments: dict[str, Any]) -> dict[str, Any]:
        return text_result(name)

    definition = {"name": name, "description": f"The tool {name}", "inputSchema": {"type": "object"}}
    return Tool(name, lambda: definition, handler or say_name, **members)


def resource(uri: str, handler: ResourceHandler | None = None, **members: Any) -> Resource:
    """Return a resource; without a handler it holds its own URI."""
    return Resource(uri, lambda: {"uri": uri, "name": uri}, handler or hold_uri, **members)


def template(text: str, handler: ResourceHandler | None = None, **members: Any) -> ResourceTemplate:
    """Return a template; without a handler each of its resources holds its own URI and values."""
    definition = {"uriTemplate": text, "name": text}
    return ResourceTemplate(URITemplate(text), lambda: definition, handler or hold_uri, **members)


async def hold_uri(_context: RequestContext, uri: str, values: Any) -> dict[str, Any]:
    """Read a resource that holds its own URI and values."""
    return {"contents": [{"uri": uri, "text": json.dumps([uri, values])}]}


def prompt(
    name: str, handler: PromptHandler | None = None, *, completers: Sequence[str] = (), **members: Any
) -> Prompt:
    """Return a prompt with an argument `a`; without a handler it says its arguments."""

    async def say(_context: RequestContext, arguments: dict[str, str]) -> dict[str, Any]:
        return {"messages": [{"role": "user", "content": {"type": "text", "text": json.dumps(arguments)}}]}

    async def complete(_context: RequestContext, value: str, others: Mapping[str, str]) -> Completion:
        return Completion([value, *others.values()])

    definition = {"name": name, "arguments": [{"name": "a", "required": True}]}
    return Prompt(name, lambda: definition, handler or say, completers=dict.fromkeys(completers, complete), **members)


def server(
    *features: Addable,
    revisions: Sequence[str] = schemas.REVISIONS,
    bus: Bus | None = None,
    middleware: Sequence[Middleware] = (),
    auth: Auth | None = None,
    tasks: TaskStore | None = None,
    **options: Any,
) -> Server:
    """Return a server with features."""
    made = Server(
        ServerOptions("orders", **grouped(**options)),
        [REVISIONS[date] for date in revisions],
        keys=KEYS,
        bus=bus,
        middleware=middleware,
        auth=auth,
        tasks=tasks,
    )
    for one in features:
        made.catalog.add(one)
    return made


def context(
    method: str,
    params: dict[str, Any] | None = None,
    *,
    revision: str = NEWEST,
    capabilities: Mapping[str, Any] | None = None,
    channel: Channel | None = None,
    conversation: Conversation | None = None,
    request_id: str | int = 1,
) -> RequestContext:
    """Return the context of a request that is not routed yet; `reply_to` routes it."""
    client = ConnectedClient(REVISIONS[revision], capabilities or {}, {}, conversation=conversation)
    request = Request(request_id, method, params or {})
    return RequestContext(RoutedRequest(request), client, channel or ClosedChannel())


async def reply_to(served: Server, asked: RequestContext) -> Reply:
    """Route a request and return a server's answer to it."""
    asked.routed = served.routes.route(asked.request)
    return await served.answer(asked)


async def answer(served: Server, asked: RequestContext) -> dict[str, Any]:
    """Return a server's answer to a request, valid in the revision that was spoken."""
    async with asyncio.timeout(PATIENCE):
        reply = await reply_to(served, asked)
    message: dict[str, Any] = json.loads(reply.body)
    schemas.validate(message, asked.client.revision.date, asked.request.method)
    assert message["id"] == asked.request.id
    assert reply.error == message.get("error", {}).get("code")
    assert b"\n" not in reply.body
    return message


class Recorder:
    """A channel that keeps what is sent, and answers questions from a table."""

    pushes = True

    def __init__(self, answers: Mapping[str, dict[str, Any]] | None = None) -> None:
        self.sent: list[tuple[str, dict[str, Any]]] = []
        self.asked: list[Mapping[str, Mapping[str, Any]]] = []
        self.closed = 0
        self._answers = answers or {}

    def close_stream(self) -> None:
        """Count it."""
        self.closed += 1

    async def notify(self, method: str, params: dict[str, Any]) -> None:
        """Keep a notification."""
        self.sent.append((method, params))

    async def ask(self, questions: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
        """Keep the questions and answer them."""
        self.asked.append(questions)
        return {key: self._answers[key] for key in questions}
