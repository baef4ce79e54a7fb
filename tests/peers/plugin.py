"""A plugin for pytest, in the peer's environment: the peers' clients reach servers of funcmcp in memory.

A peer's `Client(server)` talks to its own server in memory, by private attributes. A server of funcmcp gets the same
streams, and answers as it does on stdio.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import TYPE_CHECKING, Any, NoReturn

import _pytest.raises
import anyio
import fastmcp.client.client
import fastmcp.client.mixins.tools
import fastmcp.client.transports
import fastmcp.client.transports.inference
import mcp
from fastmcp.client.transports import ClientTransport
from fastmcp.client.transports.base import TransportOptions
from mcp.server.auth.middleware.auth_context import get_access_token as sdk_access_token
from mcp.shared.memory import create_client_server_memory_streams
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from funcmcp._compat import authorization, dependencies
from funcmcp._compat.context import Context
from funcmcp._compat.request_parts import AccessToken
from funcmcp._serving.composition import runtime_of
from funcmcp._transports.connection import Connection
from funcmcp.compat import FastMCP, MCPServer, ToolError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@contextlib.asynccontextmanager
async def streams(server: Any) -> AsyncIterator[Any]:
    """Return the streams of a client to a server of funcmcp."""
    runtime = runtime_of(server)
    await runtime.services.lifespans.enter()
    try:
        async with create_client_server_memory_streams() as (client_streams, (received, sent)):

            async def send(message: bytes) -> None:
                with contextlib.suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
                    await sent.send(SessionMessage(jsonrpc_message_adapter.validate_json(message)))

            connection = Connection(runtime.server, send, local=True)
            reading = asyncio.create_task(_read(received, connection))
            try:
                yield client_streams
            finally:
                await connection.aclose()
                reading.cancel()
                await asyncio.wait([reading])
    finally:
        await runtime.services.lifespans.leave()


async def _read(received: Any, connection: Connection) -> None:
    """Pass the client's messages to the server."""
    with contextlib.suppress(anyio.ClosedResourceError):
        async for item in received:
            if isinstance(item, SessionMessage):
                message = item.message.model_dump(mode="json", by_alias=True, exclude_unset=True)
                await connection.receive(json.dumps(message).encode())


class MemoryTransport(ClientTransport):  # type: ignore[misc] # its package is not installed here
    """The transport of FastMCP's client to a server of funcmcp."""

    def __init__(self, server: Any) -> None:
        self.server = server

    @contextlib.asynccontextmanager
    async def connect_session(self, *, transport_options: Any = None, **options: Any) -> AsyncIterator[Any]:
        """Serve the server while the session is open."""
        session_class = (transport_options or TransportOptions()).session_class
        async with (
            streams(self.server) as (read_stream, write_stream),
            session_class(read_stream=read_stream, write_stream=write_stream, **options) as session,
        ):
            yield session


def fail(reason: str, pytrace: bool = True) -> NoReturn:
    """Fail with an Exception: pytest's own is a BaseException, which ends anyio's runner, and so other tests."""
    raise AssertionError(reason)


_pytest.raises.fail = fail  # type: ignore[assignment, attr-defined]

_infer_transport = fastmcp.client.transports.inference.infer_transport
_post_init = mcp.Client.__post_init__


def infer_transport(target: Any) -> Any:
    """Return FastMCP's transport for a target."""
    return MemoryTransport(target) if isinstance(target, FastMCP | MCPServer) else _infer_transport(target)


def post_init(client: mcp.Client) -> None:
    """Give the official client a transport in place of a server of funcmcp."""
    if isinstance(client.server, FastMCP | MCPServer):
        client.server = streams(client.server)
    _post_init(client)


for module in (fastmcp.client.client, fastmcp.client.transports, fastmcp.client.transports.inference):
    module.infer_transport = infer_transport
for module in (fastmcp.client.client, fastmcp.client.mixins.tools):
    module.ToolError = ToolError  # the class that the tests import, with the names of funcmcp
mcp.Client.__post_init__ = post_init  # type: ignore[assignment, method-assign]


# The peers' tests sign a caller in by a context variable of the SDK. Their clients in memory are not those of stdio.
_token_of_context = Context.access_token
_token_of_request = dependencies.get_access_token


def token_of_test() -> AccessToken | None:
    """Return the token that a test has set."""
    token = sdk_access_token()
    return None if token is None else AccessToken(**token.model_dump(include=set(AccessToken.model_fields)))


def caller_of_test(*_: Any) -> authorization.Caller:
    """Return the caller that a test has signed in."""
    return authorization.Caller(is_trusted=False, token=token_of_test())


Context.access_token = property(  # type: ignore[method-assign, assignment]
    lambda context: token_of_test() or _token_of_context.fget(context)  # type: ignore[attr-defined]
)
dependencies.get_access_token = lambda: token_of_test() or _token_of_request()
authorization.caller_of = authorization.current_caller = caller_of_test
