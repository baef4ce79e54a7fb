"""The clients of FastMCP and of the official SDK, where these packages are installed, for tests of servers that moved.

How it works: `fastmcp_client` and `sdk_client` return subclasses of the package's own `Client`. Given a server of
funcmcp, they connect in memory: the client's messages go to a connection of the server as they would on stdio. What
FastMCP's client raises is an exception of `funcmcp.compat`, too, so that ``pytest.raises(ToolError)`` holds in a test
whose imports have moved. The packages are imported when a client is first used, and never by a server.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
import json
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from funcmcp._app.mcp_server import MCPServer
from funcmcp._compat import errors
from funcmcp._compat.authorization import is_in_memory
from funcmcp._compat.module_trees import is_submodule
from funcmcp._compat.sdk_types import MCPModel
from funcmcp._objects.public_names import public
from funcmcp._serving.composition import runtime_of
from funcmcp._transports.connection import Connection

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping


def original(module: str) -> Any:
    """Return a module of the package `fastmcp` or `mcp`.

    Raises:
        ImportError: The package is not installed.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        if error.name not in {package, module}:
            raise
        raise ImportError(
            f"The client of {package} needs the package {package}, which is not installed or has no {module}. "
            "Use funcmcp.client.Client, or funcmcp.testing.Client in tests.",
            name=module,
        ) from None


_CALLBACKS = frozenset(
    {
        *("elicitation_callback", "list_roots_callback", "sampling_callback"),
        *("elicitation_handler", "sampling_handler"),
    }
)
"""Options of the originals' clients: functions that answer requests of the server."""


def names_of_client(module: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the ``__getattr__`` and the ``__dir__`` of a module of `funcmcp.compat` that is a client's.

    Args:
        module: The name of the module. Its names are those of the module of the package, and its submodules its own.
    """
    path = module.removeprefix("funcmcp.compat.")

    def load(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        if is_submodule(module, name):
            return import_module(f"{module}.{name}")
        make = _OWN.get((path.partition(".")[0], name))
        return make() if make else getattr(original(path), name)

    return load, lambda: sorted({*vars(sys.modules[module]), *dir(original(path))})


@contextlib.asynccontextmanager
async def client_streams(server: MCPServer) -> AsyncIterator[Any]:
    """Return the two streams of a client of the official SDK that is connected to a server in memory."""
    runtime = runtime_of(server)
    await runtime.services.lifespans.enter()
    try:
        async with original("mcp.shared.memory").create_client_server_memory_streams() as (streams, (received, sent)):
            connection = Connection(runtime.server, functools.partial(_send, sent), local=True)
            reading = asyncio.create_task(_read(received, connection))
            try:
                yield streams
            finally:
                await connection.aclose()
                reading.cancel()
                await asyncio.wait([reading])
    finally:
        await runtime.services.lifespans.leave()


async def _send(stream: Any, message: bytes) -> None:
    """Pass a message of the server to the client, unless it has closed its stream."""
    anyio = import_module("anyio")
    with contextlib.suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
        await stream.send(original("mcp.shared.message").SessionMessage(_parsed(message)))


def _parsed(message: bytes) -> Any:
    """Return a message as the model of the version of the SDK that is installed."""
    try:
        return import_module("mcp_types").jsonrpc_message_adapter.validate_json(message)
    except ModuleNotFoundError:
        return original("mcp.types").JSONRPCMessage.model_validate_json(message)


async def _read(stream: Any, connection: Connection) -> None:
    """Pass the client's messages to the server."""
    is_in_memory.set(True)
    with contextlib.suppress(import_module("anyio").ClosedResourceError):
        async for item in stream:
            if not isinstance(item, Exception):
                message = item.message.model_dump(mode="json", by_alias=True, exclude_unset=True)
                await connection.receive(json.dumps(message).encode())


@functools.cache
def fastmcp_transport() -> Any:
    """Return a class in place of FastMCP's `FastMCPTransport`, which connects to servers of funcmcp, too."""
    transports = original("fastmcp.client.transports")

    class FastMCPTransport(transports.ClientTransport):  # type: ignore[misc,name-defined] # of a package that is imported late
        """The transport of FastMCP's client to a server in the same process."""

        def __new__(cls, mcp: Any, *args: Any, **options: Any) -> Any:
            if isinstance(mcp, MCPServer):
                return super().__new__(cls)
            return transports.FastMCPTransport(mcp, *args, **options)

        def __init__(self, mcp: Any, raise_exceptions: bool = False) -> None:  # noqa: FBT001, FBT002 - as in FastMCP
            self.server = mcp
            self.raise_exceptions = raise_exceptions

        @contextlib.asynccontextmanager
        async def connect_session(self, *, transport_options: Any = None, **options: Any) -> AsyncIterator[Any]:
            """Serve the server while the session is open."""
            session_class = getattr(transport_options, "session_class", None) or original("mcp").ClientSession
            async with (
                client_streams(self.server) as (read_stream, write_stream),
                session_class(read_stream=read_stream, write_stream=write_stream, **options) as session,
            ):
                yield session

        def __repr__(self) -> str:
            return f"<FastMCPTransport(server={self.server.name!r})>"

    _name_as(FastMCPTransport, transports.FastMCPTransport)
    return FastMCPTransport


def _name_as(cls: type, original_class: type) -> None:
    """Give a class the text and the name of the original, below `funcmcp.compat`."""
    cls.__doc__ = original_class.__doc__
    cls.__qualname__ = original_class.__qualname__
    cls.__module__ = f"funcmcp.compat.{original_class.__module__}"


def infer_transport(transport: Any) -> Any:
    """Return FastMCP's transport for a target, which may be a server of funcmcp."""
    if isinstance(transport, MCPServer):
        return fastmcp_transport()(transport)
    return original("fastmcp.client.transports").infer_transport(transport)


@functools.cache
def fastmcp_client() -> Any:
    """Return FastMCP's `Client` for servers of funcmcp and for all of its own targets."""
    client_class = original("fastmcp").Client

    class Client(client_class):  # type: ignore[misc,valid-type] # of a package that is imported late
        def __init__(self, transport: Any, *args: Any, **options: Any) -> None:
            if isinstance(transport, MCPServer):
                transport = fastmcp_transport()(transport)
            super().__init__(transport, *args, **_answering_in_types_of_package(options))

        def __class_getitem__(cls, _: Any) -> Any:
            """Return the class itself: ``Client[FastMCPTransport]`` means the same."""
            return cls

    _name_as(Client, client_class)
    for name, method in inspect.getmembers(client_class, inspect.iscoroutinefunction):
        if name == "__aenter__" or not name.startswith("_"):
            setattr(Client, name, _raising_own_errors(method))
    return Client


def _raising_own_errors(method: Any) -> Any:
    """Return a method of FastMCP's client whose exceptions are those of `funcmcp.compat`, too."""

    @functools.wraps(method)
    async def call(*args: Any, **options: Any) -> Any:
        try:
            return await method(*args, **options)
        except Exception as error:
            with contextlib.suppress(TypeError):  # a class with another layout in memory
                error.__class__ = _with_own_class(type(error))  # type: ignore[arg-type] # mypy's: classes have hashes
            raise

    return call


@functools.cache
def _with_own_class(cls: type[Exception]) -> type[Exception]:
    """Return a class of FastMCP or of the official SDK that is also the exception of `funcmcp.compat` of its name."""
    own = getattr(errors, {"MCPError": "McpError"}.get(cls.__name__, cls.__name__), None)
    if cls.__module__.partition(".")[0] not in {"fastmcp", "mcp"} or own is None or issubclass(cls, own):
        return cls
    names: dict[str, Any] = {"__module__": cls.__module__, "__str__": cls.__str__}
    if issubclass(own, errors.McpError):
        # The original sets `error` on its objects, where the property of ours would hide it.
        names["error"] = getattr(cls, "error", None)
        names |= {name: getattr(cls, name, _of_error(name)) for name in ("code", "message", "data")}
    return type(cls.__name__, (cls, own), names)


def _of_error(name: str) -> property:
    """Return a property for a member of the error of an exception."""
    return property(lambda exception: getattr(exception.error, name))


def _in_types_of_package(value: Any) -> Any:
    """Return an object of ``funcmcp.compat.mcp.types`` as one of the package's type; other objects unchanged."""
    if not isinstance(value, MCPModel):
        return value
    original_type = getattr(original("mcp.types"), type(value).__name__)
    return original_type.model_validate(value.model_dump(by_alias=True, exclude_none=True))


def _answering_in_types_of_package(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options of a client whose callbacks may return objects of ``funcmcp.compat.mcp.types``."""
    answering = (name for name in options if name in _CALLBACKS and options[name] is not None)
    return dict(options) | {name: _with_types_of_package(options[name]) for name in answering}


def _with_types_of_package(function: Any) -> Any:
    """Return a function that gets and returns objects of the package's types."""

    @functools.wraps(function)
    async def call(*args: Any, **options: Any) -> Any:
        options = {name: _in_types_of_package(value) for name, value in options.items()}
        answer = function(*map(_in_types_of_package, args), **options)
        return _in_types_of_package(await answer if inspect.isawaitable(answer) else answer)

    return call


def _adapt_methods(cls: type) -> None:
    """Change the methods of a client of the SDK: they accept objects of `funcmcp.compat`, and raise its exceptions."""
    for name, method in inspect.getmembers(cls, inspect.iscoroutinefunction):
        if name == "__aenter__":
            setattr(cls, name, _raising_own_errors(method))
        elif not name.startswith("_"):
            setattr(cls, name, _raising_own_errors(_with_types_of_package(method)))


@functools.cache
def sdk_session() -> Any:
    """Return the official SDK's `ClientSession`, whose callbacks and methods may have types of `funcmcp.compat`."""
    session_class = original("mcp").ClientSession

    class ClientSession(session_class):  # type: ignore[misc,valid-type] # of a package that is imported late
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **_answering_in_types_of_package(options))

    _name_as(ClientSession, session_class)
    _adapt_methods(ClientSession)
    return ClientSession


@functools.cache
def sdk_client() -> Any:
    """Return the official SDK's `Client` for servers of funcmcp and for all of its own targets."""
    client_class = original("mcp").Client

    class Client(client_class):  # type: ignore[misc,valid-type] # of a package that is imported late
        server: Any

        def __post_init__(self) -> None:
            if isinstance(self.server, MCPServer):
                self.server = client_streams(self.server)
            for name, value in _answering_in_types_of_package(vars(self)).items():
                setattr(self, name, value)
            super().__post_init__()

    _name_as(Client, client_class)
    _adapt_methods(Client)
    return Client


@contextlib.asynccontextmanager
async def create_connected_server_and_client_session(server: Any, *args: Any, **options: Any) -> AsyncIterator[Any]:
    """Return a session of the official SDK 1.x that is connected to a server in memory.

    Args:
        server: A server of funcmcp or its ``_mcp_server``, or one of the SDK.
        args: Arguments of the session.
        options: Options of the session.
    """
    server = getattr(server, "funcmcp_server", server)
    if not isinstance(server, MCPServer):
        async with original("mcp.shared.memory").create_connected_server_and_client_session(
            server, *args, **options
        ) as session:
            yield session
        return
    options.pop("raise_exceptions", None)
    async with client_streams(server) as streams, sdk_session()(*streams, *args, **options) as session:
        await session.initialize()
        yield session


@public("funcmcp.compat.fastmcp.utilities.tests")
@contextlib.asynccontextmanager
async def asgi_server(
    server: Any, transport: str = "http", path: str | None = None, **options: Any
) -> AsyncIterator[Any]:
    """Serve a server over HTTP in this process without a socket. The block gets FastMCP's object with its clients.

    Args:
        server: The server.
        transport: ``"http"``, ``"streamable-http"`` or ``"sse"``.
        path: The path of the endpoint; by default ``/mcp``, or ``/sse``.
        options: Other options of ``http_app``.
    """
    helpers = original("fastmcp.utilities.tests")
    server_class = helpers.ASGIServer

    class Served(server_class):  # type: ignore[misc,valid-type] # of a package that is imported late
        def client(self, *, headers: Any = None, auth: Any = None, **options: Any) -> Any:
            return fastmcp_client()(self.transport(headers=headers, auth=auth), **options)

    async with helpers.asgi_server(server, transport, path, **options) as served:
        yield Served(served.url, served.app, served.transport_type)


@public("funcmcp.compat.fastmcp.utilities.tests")
@contextlib.asynccontextmanager
async def asgi_client(
    server: Any,
    transport: str = "http",
    path: str | None = None,
    *,
    headers: Any = None,
    auth: Any = None,
    **options: Any,
) -> AsyncIterator[Any]:
    """Serve a server as `asgi_server` does. The block gets a client of FastMCP that is connected to it.

    Args:
        server: The server.
        transport: ``"http"``, ``"streamable-http"`` or ``"sse"``.
        path: The path of the endpoint; by default ``/mcp``, or ``/sse``.
        headers: Headers of each request.
        auth: The sign-in of the client.
        options: Other options of the client.
    """
    async with (
        asgi_server(server, transport, path) as served,
        served.client(headers=headers, auth=auth, **options) as client,
    ):
        yield client


_OWN: dict[tuple[str, str], Callable[[], Any]] = {
    ("fastmcp", "Client"): fastmcp_client,
    ("fastmcp", "FastMCPTransport"): fastmcp_transport,
    ("fastmcp", "infer_transport"): lambda: infer_transport,
    ("mcp", "Client"): sdk_client,
    ("mcp", "ClientSession"): sdk_session,
}
"""Functions that return what a package's name means here, by the package and the name."""
