"""Operations of an ASGI application as tools, by its OpenAPI document: `MCPServer.tools_from_asgi`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator  # noqa: TC003 - read from the signature of a factory
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from funcmcp._adapters.asgi.in_process_calls import CallError, Request, call, lifespan
from funcmcp._adapters.openapi.operation_tools import (
    OperationCall,
    OperationToolsOptions,
    chosen_operations,
    operation_tool,
)
from funcmcp._authoring.features.options import checked_options
from funcmcp._authoring.openapi.operations import operations, plan_of
from funcmcp._protocol.codec import InvalidJSONError, decode
from funcmcp._server.catalog.registry import RegistrationError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from typing import TypeAlias

    from funcmcp._adapters.asgi.in_process_calls import Application
    from funcmcp._authoring.calling.feature_context import Context
    from funcmcp._authoring.calling.services import Services
    from funcmcp._authoring.openapi.http_responses import Response
    from funcmcp._authoring.openapi.operations import Operation, Target
    from funcmcp._server.catalog.features import Tool

    Document: TypeAlias = Mapping[str, Any] | str
    Choice: TypeAlias = "Collection[str] | Callable[[Operation], bool]"


_OK = 200
_SECONDS = 30
_BASE_URL = "http://localhost"


class ASGIToolsOptions(OperationToolsOptions, total=False):
    """The options of all tools of an application.

    Attributes:
        include: The operations that become tools: tags, or a function that gets an `Operation`. All by default.
        exclude: The operations among these that do not become tools.
        lifespan: Whether to start the application with the first call and to stop it with the server. True by default.
            Use False for an application that runs already, such as one that the MCP server is mounted in.
        base_url: The URL at which the application is called. The default is ``http://localhost``.
    """

    include: Choice | None
    exclude: Choice
    lifespan: bool
    base_url: str


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
    sender = _sender(app, base_url)
    tools, problems = [], []
    for operation in chosen_operations(_included(operations(document), options), options):
        try:
            plan = plan_of(operation, document, forwarded=options.get("forward_headers", ()))
            if plan.schemas.problems:
                raise RegistrationError(f"is not valid OpenAPI: {plan.schemas.problems[0]}")
            tools.append(operation_tool(OperationCall(operation, plan, sender, running), options, services))
        except RegistrationError as error:
            problems.append(f"{operation.method} {operation.path} {error}")
    if problems:
        raise RegistrationError("Leave these operations out with exclude=. " + " ".join(problems))
    if not tools:
        raise RegistrationError(
            "The OpenAPI document has no operation that is to be a tool. include= and exclude= take tags, select= also "
            'methods and paths ("GET /orders/*"). All three take a function of an Operation, which has an operation_id.'
        )
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


def _included(listed: list[Operation], options: ASGIToolsOptions) -> list[Operation]:
    """Return the operations that are included, not excluded and not deprecated."""
    include, exclude = options.get("include"), options.get("exclude", ())
    return [
        operation
        for operation in listed
        if not operation.deprecated and _matches(operation, include, default=True) and not _matches(operation, exclude)
    ]


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


def _sender(app: Application, base_url: str) -> Callable[..., Any]:
    async def send(operation: Operation, target: Target, _: Context, running: Any) -> Response:
        request = Request(operation.method, target.path, target.query, target.headers, target.body)
        return await call(app, request, base_url=base_url, state=running.state)

    return send
