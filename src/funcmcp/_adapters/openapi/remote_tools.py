"""Operations of a remote API as tools, by its OpenAPI document: `MCPServer.tools_from_openapi`.

Which server gets requests, and with them the author's credentials, is decided here, once for each operation:

- With ``base_url=``, or a client that has one, it is that URL. An operation that has a server of its own elsewhere is
  left out.
- A document that the author passes as a file or a dict names its servers itself.
- A document that is fetched may only name its own origin. Otherwise an attacker who changes the document would receive
  the credentials, or could make the server send requests into its own network.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import AsyncIterator  # noqa: TC003 - read from the signature of a factory
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from funcmcp._adapters.openapi.api_client import httpx2_module, new_client, send
from funcmcp._adapters.openapi.operation_tools import (
    OperationCall,
    OperationToolsOptions,
    chosen_operations,
    operation_tool,
)
from funcmcp._authoring.features.options import checked_options
from funcmcp._authoring.openapi.credentials import Credentials
from funcmcp._authoring.openapi.documents import origin_of, server_url
from funcmcp._authoring.openapi.operations import operations, plan_of
from funcmcp._server.catalog.registry import RegistrationError
from funcmcp._text.visible import visible, visible_url

if TYPE_CHECKING:
    from collections.abc import Sequence

    from funcmcp._adapters.openapi.document_source import LoadedDocument
    from funcmcp._authoring.calling.feature_context import Context
    from funcmcp._authoring.calling.services import Services
    from funcmcp._authoring.openapi.credentials import APIAuth
    from funcmcp._authoring.openapi.http_responses import Response
    from funcmcp._authoring.openapi.operations import Operation, Target
    from funcmcp._server.catalog.features import Tool

_logger = logging.getLogger("funcmcp")
_MAX_LOGGED = 10
_MAX_DESCRIPTION = 1000
_NOT_FORWARDED = {"authorization", "cookie"}


class OpenAPIToolsOptions(OperationToolsOptions, total=False):
    """The options of all tools of a remote API.

    Attributes:
        client: An `httpx2.AsyncClient` or `httpx.AsyncClient` for all requests. It is not closed with the server. By
            default the server has a client of its own, for each event loop.
        auth: The credentials for the API, for the places that the document names: a token or key, a pair of a user and
            a password, a function that returns one of these (with the `Context` of the call, if it has a parameter), or
            a dict of these by the names of the document's security schemes. Or an `httpx2.Auth`.
        base_url: The URL of the API, instead of the server in the document.
        validate_output: Whether a response that differs from the document is an error. By default tools only describe
            the members of responses.
    """

    client: Any
    auth: APIAuth | Any
    base_url: str
    validate_output: bool


def tools_from_openapi(document: LoadedDocument, options: OpenAPIToolsOptions, services: Services) -> list[Tool]:
    """Make tools of the operations of a remote API.

    Operations that can't be tools are left out, with a warning in the log: the author can't mend the document.

    Args:
        document: The document.
        options: Which operations, and how they are called.
        services: Get what opens and closes the connections.

    Raises:
        RegistrationError: The document is not valid, an option is not valid, it is not clear which server gets the
            requests, or no operation can be a tool.
    """
    options = checked_options(options, OpenAPIToolsOptions)
    forwarded = _checked_headers(options.get("forward_headers", ()))
    auth = options.get("auth")
    is_flow = hasattr(auth, "auth_flow")  # of httpx2.Auth
    credentials = Credentials(document.members, None if is_flow else auth)
    connection = _connection(options.get("client"), auth if is_flow else None, services)
    servers = _Servers(document, options)
    left_out: list[str] = []
    tools = []
    for listed in chosen_operations(operations(document.members, left_out), options):
        operation = replace(listed, description=_shortened(listed.description))
        try:
            base_url = servers.url_for(operation)
            plan = plan_of(
                operation,
                document.members,
                forwarded=forwarded,
                hidden=credentials.hidden,
                takes_cookies=True,
                validates_output=options.get("validate_output", False),
            )
            sender = _sender(base_url, credentials, credentials.schemes_for(operation.source.get("security")))
            tools.append(operation_tool(OperationCall(operation, plan, sender, connection), options, services))
        except RegistrationError as error:
            left_out.append(f"{operation.method} {operation.path} {error}")
    if left_out:
        reasons = " ".join(left_out[:_MAX_LOGGED])
        if not tools:
            raise RegistrationError(f"No operation of the OpenAPI document can be a tool. {reasons}")
        _logger.warning(
            "%d of %d operations can't be tools: %s", len(left_out), len(left_out) + len(tools), visible(reasons)
        )
    if not tools:
        raise RegistrationError("The OpenAPI document has no operation that is to be a tool.")
    return tools


def _shortened(description: str) -> str:
    """Return a description with at most 1,000 characters, because some APIs of models refuse longer ones."""
    if len(description) <= _MAX_DESCRIPTION:
        return description
    start = description[:_MAX_DESCRIPTION]
    cut = max(start.rfind("\n\n"), start.rfind(". ") + 1)
    return start[: cut if cut > _MAX_DESCRIPTION // 2 else _MAX_DESCRIPTION].rstrip() + " ..."


def _checked_headers(names: Sequence[str]) -> tuple[str, ...]:
    refused = sorted(_NOT_FORWARDED & {name.lower() for name in names})
    if refused:
        raise RegistrationError(
            f"forward_headers= must not have {refused[0]!r}: a token for this server is not for the API. Pass auth= a "
            "function, which gets the context and returns a token for the API."
        )
    return tuple(names)


class _Servers:
    """Decides which server gets the requests of an operation.

    Args:
        document: The document.
        options: The author's options.

    Raises:
        RegistrationError: ``base_url=`` is not a URL.
    """

    def __init__(self, document: LoadedDocument, options: OpenAPIToolsOptions) -> None:
        self._document = document
        chosen = options.get("base_url") or str(getattr(options.get("client"), "base_url", "") or "")
        self._base_url = chosen.rstrip("/")
        if self._base_url and (origin_of(self._base_url) is None or set(self._base_url) & set("?#")):
            raise RegistrationError(
                f"base_url= is not a URL of HTTP without credentials and a query: {visible_url(chosen)!r}."
            )

    def url_for(self, operation: Operation) -> str:
        """Return the URL of an operation's server. Raise RegistrationError if it must not get requests."""
        document = self._document
        servers = operation.source.get("servers") or []
        url = server_url(document.members, servers, document.url or self._base_url or None)
        if self._base_url:
            if not servers:
                return self._base_url
            if url is not None and origin_of(url) == origin_of(self._base_url):
                return url
            raise RegistrationError(
                f"is on another server, {visible_url(str(url))}. "
                "Call mcp.tools_from_openapi for it with that base_url=."
            )
        if url is None:
            raise RegistrationError("has no server with an absolute URL. Pass base_url=.")
        if document.url is not None and origin_of(url) != origin_of(document.url):
            raise RegistrationError(
                f"is on another server than the document, {visible_url(url)}. If you trust it, pass base_url={url!r}."
            )
        return url


def _connection(client: Any, auth: Any, services: Services) -> type[Any]:
    """Register a service that opens a client in each event loop and closes it with the server; return its type."""
    if client is not None and not (hasattr(client, "build_request") and inspect.iscoroutinefunction(client.send)):
        raise RegistrationError(f"client= is an httpx2.AsyncClient, not {type(client).__name__}.")
    if client is not None and auth is not None:
        raise RegistrationError("client= and an httpx2.Auth can't both be given. Write httpx2.AsyncClient(auth=...).")
    if client is None:
        httpx2_module()

    class Connection:
        """The client of one event loop."""

        def __init__(self, http_client: Any) -> None:
            self.client = http_client

    async def connect() -> AsyncIterator[Any]:
        async with new_client(auth) as opened:
            yield Connection(opened)

    if client is None:
        services.register_factory(Connection, connect, scope="app")
    else:
        services.register_value(Connection, Connection(client))
    return Connection


def _sender(base_url: str, credentials: Credentials, schemes: tuple[str, ...]) -> Any:
    async def sender(operation: Operation, target: Target, context: Context, connection: Any) -> Response:
        applied = await credentials.apply(schemes, context)
        return await send(connection.client, operation.method, base_url, target, applied)

    return sender
