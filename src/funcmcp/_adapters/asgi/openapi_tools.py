"""Operations of an ASGI application as tools, by its OpenAPI document: `MCPServer.tools_from_asgi`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator  # noqa: TC003 - read from the signature of a factory
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from funcmcp._adapters.asgi.in_process_calls import CallError, Request, call, lifespan
from funcmcp._authoring.calling.feature_context import Context
from funcmcp._authoring.calling.unknown_arguments import unknown_arguments
from funcmcp._authoring.features.options import checked_options
from funcmcp._authoring.features.permissions import AccessOptions
from funcmcp._authoring.features.tools import ToolOptions, make_tool
from funcmcp._authoring.openapi.http_requests import forwarded
from funcmcp._authoring.openapi.http_responses import result_of
from funcmcp._authoring.openapi.operations import operations, plan_of
from funcmcp._authoring.values.content import ToolResult
from funcmcp._protocol.codec import InvalidJSONError, decode
from funcmcp._server.catalog.registry import RegistrationError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from typing import TypeAlias

    from funcmcp._adapters.asgi.in_process_calls import Application
    from funcmcp._authoring.calling.services import Services
    from funcmcp._authoring.openapi.operations import Operation, Plan
    from funcmcp._server.catalog.features import Tool

    Document: TypeAlias = Mapping[str, Any] | str
    Choice: TypeAlias = "Collection[str] | Callable[[Operation], bool]"


_OK = 200
_SECONDS = 30
_BASE_URL = "http://localhost"
_HINTS: dict[str, ToolOptions] = {
    "GET": {"read_only": True},
    "PUT": {"read_only": False, "idempotent": True},
    "DELETE": {"read_only": False, "destructive": True, "idempotent": True},
}
"""The properties of methods (RFC 9110, section 9.2). POST and PATCH have none."""


class ASGIToolsOptions(AccessOptions, total=False):
    """The options of all tools of an application.

    Attributes:
        include: The operations that become tools: tags, or a function that gets an `Operation`. All by default.
        exclude: The operations among these that do not become tools.
        forward_headers: Headers of the MCP request that calls repeat, such as ``["authorization"]``.
        lifespan: Whether to start the application with the first call and to stop it with the server. True by default.
            Use False for an application that runs already, such as one that the MCP server is mounted in.
        base_url: The URL at which the application is called. The default is ``http://localhost``.
        timeout: Seconds after which a call is cancelled. None sets no limit. The default is 600.
    """

    include: Choice | None
    exclude: Choice
    forward_headers: Sequence[str]
    lifespan: bool
    base_url: str
    timeout: float | None


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
    options = checked_options(options, ASGIToolsOptions)
    base_url = options.get("base_url", _BASE_URL)
    document = _fetch_document(app, openapi, base_url) if isinstance(openapi, str) else openapi
    running = _running(app, services, starts=options.get("lifespan", True))
    tools, problems = [], []
    for operation in operations(document):
        if not _matches(operation, options.get("include"), default=True) or _matches(
            operation, options.get("exclude", ())
        ):
            continue
        try:
            names = tuple(name.lower() for name in options.get("forward_headers", ()))
            plan = plan_of(operation, document, forwarded=names)
            tools.append(_tool(operation, _caller(app, operation, plan, running, options), plan, options, services))
        except RegistrationError as error:
            problems.append(f"{operation.method} {operation.path} {error}")
    if problems:
        raise RegistrationError("Leave these operations out with exclude=. " + " ".join(problems))
    if not tools:
        raise RegistrationError("The OpenAPI document has no operation that is to be a tool.")
    return tools


def _fetch_document(app: Application, path: str, base_url: str) -> dict[str, Any]:
    """Fetch the document from the application, in a thread, because an event loop may run in this one."""
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
        raise RegistrationError(
            f"The application has no OpenAPI document at {path} (HTTP {response.status}). "
            "Pass the document, or its path, with openapi=."
        )
    return document


def _matches(operation: Operation, choice: Choice | None, *, default: bool = False) -> bool:
    if choice is None:
        return default
    return choice(operation) if callable(choice) else not set(choice).isdisjoint(operation.tags)


def _running(app: Application, services: Services, *, starts: bool) -> type[Any]:
    """Register a service that starts the application once, and return its type."""

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
    names = tuple(name.lower() for name in options.get("forward_headers", ()))

    base_url = options.get("base_url", _BASE_URL)

    async def run(context: Context, started: Any) -> ToolResult:
        accepted = plan.input_schema["properties"].keys()
        unknown = context.arguments.keys() - accepted
        if unknown:
            raise unknown_arguments(sorted(unknown), accepted - context.arguments.keys())
        target = plan.target(context.arguments)
        headers = {**target.headers, **forwarded(context, names)}
        request = Request(operation.method, target.path, target.query, headers, target.body)
        return result_of(await call(app, request, base_url=base_url, state=started.state), operation.name)

    run.__annotations__ = {"context": Context, "started": running, "return": ToolResult}
    return run


def _tool(
    operation: Operation, run: Callable[..., Any], plan: Plan, options: ASGIToolsOptions, services: Services
) -> Tool:
    tool_options: ToolOptions = {
        "name": operation.name,
        "title": operation.title,
        "description": operation.description,
        "input_schema": plan.input_schema,
        "allow_anonymous": options.get("allow_anonymous", False),
        "scopes": options.get("scopes", ()),
        "authorize": options.get("authorize"),
    }
    if "timeout" in options:
        tool_options["timeout"] = options["timeout"]
    if plan.output_schema is not None:
        tool_options["output_schema"] = plan.output_schema
    tool_options.update(_HINTS.get(operation.method, {}))
    # The call reads only headers of its context, so it needs no stream.
    return replace(make_tool(run, tool_options, services), interactive=False, left_out=lambda: plan.left_out)
