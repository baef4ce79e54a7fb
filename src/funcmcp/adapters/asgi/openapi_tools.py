"""Routes of an ASGI application as tools, by its OpenAPI document: `MCPServer.tools_from_asgi`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator  # noqa: TC003 - read from the signature of a factory
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from funcmcp.adapters.asgi.in_process_calls import CallError, Request, call, lifespan
from funcmcp.authoring.calling.feature_context import ToolContext
from funcmcp.authoring.features.permissions import AccessOptions
from funcmcp.authoring.features.tools import ToolOptions, make_tool
from funcmcp.authoring.openapi.http_requests import forwarded, result_of
from funcmcp.authoring.openapi.operations import operations, plan_of
from funcmcp.authoring.values.content import ToolResult
from funcmcp.protocol.codec import InvalidJSONError, decode
from funcmcp.server.catalog.registry import RegistrationError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from typing import TypeAlias

    from funcmcp.adapters.asgi.in_process_calls import Application
    from funcmcp.authoring.calling.services import Services
    from funcmcp.authoring.features.permissions import AccessKeywords
    from funcmcp.authoring.features.tools import ToolKeywords
    from funcmcp.authoring.openapi.operations import Operation, Plan
    from funcmcp.server.catalog.features import Tool

    Document: TypeAlias = Mapping[str, Any] | str
    Choice: TypeAlias = "Collection[str] | Callable[[Operation], bool]"

    class ASGIToolsKeywords(AccessKeywords, total=False):
        """The options of `tools_from_asgi` as keywords; see `ASGIToolsOptions`."""

        include: Choice
        exclude: Choice
        forward_headers: Sequence[str]
        lifespan: bool
        base_url: str
        timeout: float | None


_OK = 200
_SECONDS = 30
_HINTS: dict[str, ToolKeywords] = {
    "GET": {"read_only": True},
    "PUT": {"read_only": False, "idempotent": True},
    "DELETE": {"read_only": False, "destructive": True, "idempotent": True},
}
"""What a method promises (RFC 9110, section 9.2). POST and PATCH promise nothing."""


@dataclass(frozen=True, slots=True)
class ASGIToolsOptions(AccessOptions):
    """What an author may say of all tools of an application.

    Attributes:
        include: which operations become tools: tags, or a function that gets an `Operation`. All by default.
        exclude: which of these do not.
        forward_headers: headers of the MCP request that go along with a call, such as ``["authorization"]``.
        lifespan: start and stop the application, with the first call and with the server. Say False where it is
            served otherwise, too, as one that the MCP server is mounted in: it runs already.
        base_url: where the application thinks that it is.
        timeout: seconds after which a call is cancelled; None for no limit.
    """

    include: Choice | None = None
    exclude: Choice = ()
    forward_headers: Sequence[str] = ()
    lifespan: bool = True
    base_url: str = "http://localhost"
    timeout: float | None = 60.0


def tools_from_asgi(app: Application, openapi: Document, options: ASGIToolsOptions, services: Services) -> list[Tool]:
    """Make tools of an application's operations.

    Args:
        app: the application.
        openapi: its document, or the path at which it gives the document itself.
        options: which operations, and how they are called.
        services: get what starts and stops the application.

    Raises:
        RegistrationError: there is no such document, no operation is left, or some of them can't be tools.
    """
    document = _asked(app, openapi, options.base_url) if isinstance(openapi, str) else openapi
    running = _running(app, services, starts=options.lifespan)
    tools, problems = [], []
    for operation in operations(document):
        if not _matches(operation, options.include, default=True) or _matches(operation, options.exclude):
            continue
        try:
            names = tuple(name.lower() for name in options.forward_headers)
            plan = plan_of(operation, document, forwarded=names)
            tools.append(_tool(operation, _caller(app, operation, plan, running, options), plan, options, services))
        except RegistrationError as error:
            problems.append(f"{operation.method} {operation.path} {error}")
    if problems:
        raise RegistrationError("Leave these operations out with exclude=. " + " ".join(problems))
    if not tools:
        raise RegistrationError("The OpenAPI document has no operation that is to be a tool.")
    return tools


def _asked(app: Application, path: str, base_url: str) -> dict[str, Any]:
    """Ask the application for its document, in a thread because an event loop may be running in this one."""
    with ThreadPoolExecutor(1) as pool:
        asking = call(app, Request("GET", path), base_url=base_url, state={})
        try:
            response = pool.submit(asyncio.run, asyncio.wait_for(asking, _SECONDS)).result()
        except (CallError, TimeoutError) as error:
            raise RegistrationError(f"{path}: {error or 'No answer.'} Give the document with openapi=.") from None
    try:
        document = decode(response.body) if response.status == _OK else None
    except InvalidJSONError:
        document = None
    if not isinstance(document, dict):
        words = f"The application has no OpenAPI document at {path} (HTTP {response.status})"
        raise RegistrationError(f"{words}; give the document, or its path, with openapi=.")
    return document


def _matches(operation: Operation, choice: Choice | None, *, default: bool = False) -> bool:
    if choice is None:
        return default
    return choice(operation) if callable(choice) else not set(choice).isdisjoint(operation.tags)


def _running(app: Application, services: Services, *, starts: bool) -> type[Any]:
    """Register what starts an application once, and return the type by which its calls ask for it."""

    class Running:
        """An application that has started."""

        def __init__(self, state: Mapping[str, Any]) -> None:
            self.state = state

    async def start() -> AsyncIterator[Any]:
        async with lifespan(app) as state:
            yield Running(state)

    if starts:
        services.register_factory(Running, start, scope="app")
    else:
        services.register_value(Running, Running({}))
    return Running


def _caller(
    app: Application, operation: Operation, plan: Plan, running: type[Any], options: ASGIToolsOptions
) -> Callable[..., Any]:
    names = tuple(name.lower() for name in options.forward_headers)

    async def run(context: ToolContext, started: Any) -> ToolResult:
        target = plan.target(context.arguments)
        headers = {**target.headers, **forwarded(context, names)}
        request = Request(operation.method, target.path, target.query, headers, target.body)
        return result_of(await call(app, request, base_url=options.base_url, state=started.state), operation.name)

    run.__annotations__ = {"context": ToolContext, "started": running, "return": ToolResult}
    return run


def _tool(
    operation: Operation, run: Callable[..., Any], plan: Plan, options: ASGIToolsOptions, services: Services
) -> Tool:
    about: ToolKeywords = {
        "name": operation.name,
        "title": operation.title,
        "description": operation.description,
        "input_schema": plan.input_schema,
        "timeout": options.timeout,
        "allow_anonymous": options.allow_anonymous,
        "scopes": options.scopes,
    }
    if plan.output_schema is not None:
        about["output_schema"] = plan.output_schema
    if options.authorize is not None:
        about["authorize"] = options.authorize
    about.update(_HINTS.get(operation.method, {}))
    chosen = ToolOptions(**about)
    # The context is only asked for headers, so that no stream has to be ready for the call.
    return replace(make_tool(run, chosen, services), interactive=False)
