"""Azure's own MCP triggers: a server's features as functions that the functions host calls.

The host speaks the protocol with its clients and calls a function for each use of a feature. What arrives here is
answered by the same dispatch that HTTP goes through.

Source: Azure Functions MCP extension 1.5.0 and 1.6.0; azure-functions 1.26 and 2.3.
"""

from __future__ import annotations

import inspect
import re
from contextvars import ContextVar
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

try:
    from azure.functions import FunctionApp, Out
except ModuleNotFoundError as error:
    raise ModuleNotFoundError('Function apps need: pip install "funcmcp[azure]"', name=error.name) from None

from funcmcp._adapters.azure.triggers import binding_json as bindings_json
from funcmcp._adapters.azure.triggers.extra_bindings import Bindings, arguments_of
from funcmcp._adapters.azure.triggers.invocation import Invocation, as_texts
from funcmcp._adapters.azure.triggers.result_envelopes import (
    InvocationFailedError,
    failure_envelope,
    prompt_envelope,
    resource_envelope,
    tool_envelope,
)
from funcmcp._adapters.azure.triggers.unsupported import check_features, warn_of_lost, watch
from funcmcp._adapters.azure.worker_lifetime import WorkerLifetime
from funcmcp._protocol.codec import InvalidJSONError, decode
from funcmcp._protocol.errors import CannotAskError
from funcmcp._protocol.jsonrpc import Request
from funcmcp._protocol.revisions import NEWEST_OF_AZURE
from funcmcp._server.calls.channel import ClosedChannel
from funcmcp._server.calls.context import RequestContext
from funcmcp._server.catalog.registry import RegistrationError
from funcmcp._server.connections.client import ConnectedClient

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence

    from funcmcp._adapters.azure.triggers.extra_bindings import Input, Output
    from funcmcp._authoring.calling.services import Services
    from funcmcp._server.catalog.features import Prompt, Resource, ResourceTemplate, Tool
    from funcmcp._server.dispatch import Server
    from funcmcp._transports.http.endpoints.custom_routes import CustomRoute

__all__ = ["FunctionApp", "TriggerContext", "register"]

_TRIGGER = "context"
_LONGEST_NAME = 120
_NO_NAME = re.compile(r"[^A-Za-z0-9_]")
_NO_STREAM = ClosedChannel()
_ids = count(1)
_current: ContextVar[Bindings] = ContextVar("funcmcp_azure_bindings")


class _Function(NamedTuple):
    """One function to register: its name, its trigger, what its feature is called, and what it does."""

    name: str
    type: str
    key: str
    trigger: dict[str, Any]
    run: Callable[[Invocation], Awaitable[str]]


class TriggerContext(RequestContext):
    """The context of a call from the functions host, from which no question leads to the client."""

    __slots__ = ()

    async def ask(self, questions: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
        """Refuse, whatever the questions are."""
        del questions
        raise CannotAskError("Nobody can be asked here: Azure's MCP triggers have no way back to the client.")


class TriggerServer(Protocol):
    """A server, as far as its triggers need it."""

    server: Server
    services: Services

    @property
    def routes(self) -> list[CustomRoute]:
        """The custom routes."""

    def fix_routes(self, function: str) -> None:
        """Refuse further custom routes."""

    async def enter_lifespans(self) -> None:
        """Enter the author's lifespans."""

    def drain(self) -> None:
        """End the streams that would stay open."""

    async def aclose(self) -> None:
        """Close what lives as long as the server."""


class _Behind:
    """A server behind the host, which keeps no sessions of its own, so that there is less to begin.

    Args:
        served: begins and ends.
    """

    def __init__(self, served: TriggerServer) -> None:
        self._served = served

    def begin(self) -> None:
        """Begin to hear other instances, and be heard by them: changes of resources are for all."""
        self._served.server.bus.start()

    def drain(self) -> None:
        """End the streams that would stay open."""
        self._served.drain()

    async def aclose(self) -> None:
        """Close the services of the server."""
        await self._served.aclose()


def register(served: TriggerServer, app: FunctionApp, bindings: Mapping[str, Sequence[Input | Output]]) -> None:
    """Register every tool, resource, template and prompt of a server as a function of an app.

    Args:
        served: has the features, and the services, which get `Bindings` if there are any.
        app: gets the functions.
        bindings: more bindings of functions, by the name of a tool or prompt or the URI of a resource.

    Raises:
        RegistrationError: something in the server is beyond the functions host; the text names it and says what to do.
    """
    server, lifetime = served.server, WorkerLifetime(_Behind(served))
    check_features(server, NEWEST_OF_AZURE)
    if served.services.needed_grants:
        raise RegistrationError(
            f"{served.services.needed_grants[0][0]} has grant=, and behind Azure's MCP triggers no user signs in: "
            "serve the server with funcmcp.azure.http_app."
        )
    if served.routes:
        raise RegistrationError(
            f"Azure's MCP triggers can't serve the custom route {served.routes[0].path}. Write it as an HTTP function "
            "of the app, or serve the server with funcmcp.azure.http_app."
        )
    if server.provided is not None:
        raise RegistrationError(
            "Azure's MCP triggers are made when the app is loaded, so they can't serve features of a provider. Write "
            "mcp.tool(function) or mcp.add(module), or serve the server with funcmcp.azure.http_app."
        )
    served.fix_routes("funcmcp.azure.trigger_app")
    if bindings:
        served.services.register_factory(Bindings, _of_this_call)
    functions = list(_functions(server))
    if not functions:
        raise RegistrationError("The server has no features yet; call trigger_app after they are registered.")
    _check_bound(bindings, [function.key for function in functions])
    lifespans = served.services.lifespans

    async def begin() -> None:
        await lifetime.begin()
        if lifespans and not lifespans.is_running:
            await served.enter_lifespans()

    for function in functions:
        _register(app, function, bindings.get(function.key, ()), begin)
    warn_of_lost(server)
    watch(server)


def _of_this_call() -> Bindings:
    return _current.get()


def _check_bound(bindings: Mapping[str, Any], keys: Sequence[str]) -> None:
    """Refuse bindings that are not for exactly one function."""
    for key in bindings:
        if keys.count(key) != 1:
            reason = "which is a tool's and a prompt's name"
            if key not in keys:
                reason = "which is not a feature of the server"
            raise RegistrationError(f"There are bindings for {key!r}, {reason}.")


def _functions(server: Server) -> Iterator[_Function]:
    taken: set[str] = set()
    if "tools" in server.catalog.offered:
        for tool in server.routes.lists["tools/list"].shown():
            definition = tool.describe()
            trigger, name = bindings_json.tool_binding(definition), _name("tool", tool.name, taken)
            yield _Function(name, bindings_json.TOOL, tool.key, trigger, _tool(server, tool))
    if "resources" in server.catalog.offered:
        for resource in (*server.catalog.resources, *server.catalog.templates):
            definition = resource.describe()
            trigger, name = bindings_json.resource_binding(definition), _name("resource", definition["name"], taken)
            yield _Function(name, bindings_json.RESOURCE, resource.key, trigger, _resource(server, resource))
    if "prompts" in server.catalog.offered:
        for prompt in server.catalog.prompts:
            definition = prompt.describe()
            trigger, name = bindings_json.prompt_binding(definition), _name("prompt", prompt.name, taken)
            yield _Function(name, bindings_json.PROMPT, prompt.key, trigger, _prompt(server, prompt))


def _name(kind: str, feature: str, taken: set[str]) -> str:
    """Return a name for a feature's function; the host takes letters, digits and underscores, and no case."""
    base = name = f"{kind}_{_NO_NAME.sub('_', feature)}"[:_LONGEST_NAME]
    number = 1
    while name.lower() in taken:
        number += 1
        name = f"{base}_{number}"
    taken.add(name.lower())
    return name


def _register(
    app: FunctionApp, function: _Function, bindings: Sequence[Input | Output], begin: Callable[[], Awaitable[None]]
) -> None:
    run = function.run

    async def invoke(**values: Any) -> str:
        await begin()
        invocation = Invocation(values.pop(_TRIGGER))
        before = _current.set(Bindings(values))
        try:
            return await run(invocation)
        finally:
            _current.reset(before)

    names = [_TRIGGER, *(binding.name for binding in bindings)]
    if len(set(names)) < len(names):
        raise RegistrationError(f"Bindings of {function.key} have the same name, or that of its trigger, {_TRIGGER!r}.")
    kind = inspect.Parameter.KEYWORD_ONLY
    invoke.__signature__ = inspect.Signature([inspect.Parameter(name, kind) for name in names])  # type: ignore[attr-defined]
    invoke.__name__ = invoke.__qualname__ = function.name
    # The library asks for type hints: they choose how an input is decoded.
    invoke.__annotations__ = {
        binding.name: Out[binding.python_type] if binding.is_output else binding.python_type  # type: ignore[name-defined]
        for binding in bindings
        if binding.python_type is not None
    }
    decorated: Any = invoke
    for binding in bindings:
        settings = arguments_of(binding, function.trigger)
        add = app.generic_output_binding if binding.is_output else app.generic_input_binding
        decorated = add(binding.name, binding.type, **settings)(decorated)
    app.generic_trigger(_TRIGGER, function.type, **function.trigger)(decorated)


def _tool(server: Server, tool: Tool) -> Callable[[Invocation], Awaitable[str]]:
    async def call(invocation: Invocation) -> str:
        params = {"name": tool.name, "arguments": invocation.arguments}
        answer = await _answer(server, "tools/call", params, invocation)
        return failure_envelope(answer["error"]) if "error" in answer else tool_envelope(answer["result"])

    return call


def _resource(server: Server, resource: Resource | ResourceTemplate) -> Callable[[Invocation], Awaitable[str]]:
    # The host compares URIs without case, so the client's URI may differ from the registered one.
    registered_uri = resource.key if "{" not in resource.key else None

    async def read(invocation: Invocation) -> str:
        answer = await _answer(server, "resources/read", {"uri": registered_uri or invocation.uri}, invocation)
        return resource_envelope(_result(answer, resource.key))

    return read


def _prompt(server: Server, prompt: Prompt) -> Callable[[Invocation], Awaitable[str]]:
    async def get(invocation: Invocation) -> str:
        params = {"name": prompt.name, "arguments": as_texts(invocation.arguments)}
        return prompt_envelope(_result(await _answer(server, "prompts/get", params, invocation), prompt.name))

    return get


async def _answer(server: Server, method: str, params: dict[str, Any], invocation: Invocation) -> dict[str, Any]:
    revision = server.revisions[NEWEST_OF_AZURE]
    client = ConnectedClient(revision, {}, invocation.client_info, session_id=invocation.session_id)
    request = Request(next(_ids), method, params)
    reply = await server.answer(TriggerContext(server.routes.route(request), client, _NO_STREAM, invocation.http))
    try:
        answer: dict[str, Any] = decode(reply.body)  # takes 64 levels of nesting, as the host does
    except InvalidJSONError as error:
        return {"error": {"message": f"Azure's MCP triggers can't carry the result. {error}"}}
    return answer


def _result(answer: dict[str, Any], feature: str) -> dict[str, Any]:
    if "error" in answer:
        raise InvocationFailedError(f"{feature}: {answer['error']['message']}")
    result: dict[str, Any] = answer["result"]
    return result
