"""Prints what one server of the corpus offers, as JSON: `observe.py own|funcmcp DESCRIPTION`.

It runs in the environment of the server's library, in a process of its own, without a network. "own" serves the server
with its own library and asks that library's client. "funcmcp" loads it with changed imports (see `imports`), so that it
is a server of `funcmcp.compat`, and asks funcmcp's client.

How it works: the server's module is imported while the classes that serve are patched, so that nothing listens or reads
stdin: `run` methods only remember their object. Then a client in memory lists the features and makes the calls.
"""

from __future__ import annotations

import asyncio
import importlib
import importlib.abc
import importlib.machinery
import inspect
import json
import os
import sys
import types
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import MagicMock

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

_CALL_SECONDS = 30
_RUNS = ("run", "run_async", "run_http_async", "run_stdio_async", "run_streamable_http_async", "run_sse_async")
_SERVERS = (
    ("fastmcp.server.server", "FastMCP"),
    ("mcp.server.fastmcp.server", "FastMCP"),
    ("mcp.server.mcpserver.server", "MCPServer"),
    ("mcp.server.lowlevel.server", "Server"),
    ("funcmcp._compat.server", "FastMCP"),
    ("funcmcp._app.mcp_server", "MCPServer"),
)


def refuse_network(event: str, arguments: tuple[Any, ...]) -> None:
    """Raise where code connects to an address or looks one up: an audit hook."""
    if event == "socket.getaddrinfo" or (event == "socket.connect" and isinstance(arguments[1], tuple)):
        raise OSError("The corpus has no network.")


class Absent(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds modules that are not installed, and fills them with mocks.

    Args:
        names: top-level packages that may be absent.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._names = frozenset(names)

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if fullname.partition(".")[0] not in self._names:
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return _MockedModule(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        """Do nothing: attributes appear when they are asked for."""


class _MockedClass(type):
    """A class whose attributes are mocks, and which takes any arguments."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return MagicMock(name=name)


def _mocked_attribute(_: object, name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return MagicMock(name=name)


class _MockedModule(types.ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        value: Any = MagicMock(name=name)
        if name[:1].isupper():
            bases = (Exception,) if name.endswith(("Error", "Exception", "Warning")) else (object,)
            members = {"__init__": lambda self, *_, **__: None, "__getattr__": _mocked_attribute}
            value = _MockedClass(name, bases, members)
        setattr(self, name, value)
        return value


class Patches:
    """While it is entered, servers remember themselves instead of serving."""

    def __init__(self) -> None:
        self.started: list[Any] = []
        self.created: list[Any] = []
        self._undo: list[Callable[[], None]] = []

    def __enter__(self) -> Patches:
        for module_name, class_name in _SERVERS:
            try:
                cls = getattr(importlib.import_module(module_name), class_name)
            except (ImportError, AttributeError):
                continue
            low_level = class_name == "Server"
            for name in _RUNS[:1] if low_level else _RUNS:
                if hasattr(cls, name):
                    asynchronous = low_level or inspect.iscoroutinefunction(getattr(cls, name))
                    self._patch(cls, name, self._serve if asynchronous else self._remember)
        return self

    def __exit__(self, *_: object) -> None:
        for undo in self._undo:
            undo()

    def _patch(self, cls: Any, name: str, replacement: Callable[..., Any]) -> None:
        original = getattr(cls, name)
        setattr(cls, name, lambda server, *arguments, **_: replacement(server, *arguments))
        self._undo.append(lambda: setattr(cls, name, original))

    def _remember(self, server: Any, *_: Any) -> None:
        self.started.append(server)

    async def _serve(self, server: Any, *streams: Any) -> None:
        """Remember a server, and close the streams that it was to serve, so that their owner ends."""
        self.started.append(server)
        for stream in streams:
            if hasattr(stream, "aclose"):
                await stream.aclose()


def loaded(description: dict[str, Any]) -> Any:
    """Import a server's module and return its server."""
    sys.argv = [description["name"], *description.get("argv", [])]
    module_name, _, attribute = description["load"].partition(":")
    with Patches() as patches:
        module = importlib.import_module(module_name)
        server = getattr(module, attribute)
        if inspect.isfunction(server):
            result = server(*description.get("arguments", []))
            if inspect.iscoroutine(result):
                result = asyncio.run(result)
            server = result
        if server is None or not hasattr(server, "name"):
            server = patches.started[-1]
        for name in description.get("also", []):  # functions or modules that register more features
            more_name, _, function = name.partition(":")
            extra = importlib.import_module(more_name)
            if function:
                getattr(extra, function)(server)
    return server


class Library:
    """The server's own library: its client in memory, whichever generation is installed."""

    def __init__(self, server: Any) -> None:
        self._server = server

    def client(self) -> Any:
        if any(cls.__module__.startswith("fastmcp.") for cls in type(self._server).__mro__):
            return importlib.import_module("fastmcp").Client(self._server)
        library = importlib.import_module("mcp")
        if hasattr(library, "Client"):  # of mcp 2
            return library.Client(self._server)
        connect = importlib.import_module("mcp.shared.memory").create_connected_server_and_client_session
        return connect(getattr(self._server, "_mcp_server", self._server))

    async def observe(self, calls: Sequence[dict[str, Any]]) -> dict[str, Any]:
        async with self.client() as client:
            call = getattr(client, "call_tool_mcp", None) or client.call_tool
            get = getattr(client, "get_prompt_mcp", None) or client.get_prompt
            return {
                "tools": await _all(client.list_tools, "tools"),
                "prompts": await _all(client.list_prompts, "prompts"),
                "resources": await _all(client.list_resources, "resources"),
                "templates": await _all(client.list_resource_templates, "resource_templates"),
                "calls": [
                    await _outcome(get(one["prompt"], one["arguments"]))
                    if "prompt" in one
                    else await _outcome(call(one["tool"], one["arguments"]))
                    for one in calls
                ],
                "unknown": await refusals(call, calls),
            }


async def refusals(call: Callable[..., Awaitable[Any]], calls: Sequence[dict[str, Any]]) -> list[bool]:
    """Call each tool again with an argument that it does not have; return whether the answers are errors."""
    outcomes = [
        await _outcome(call(one["tool"], {**one["arguments"], "sessionId": "of the client"}))
        for one in calls
        if "tool" in one
    ]
    return ["error" in outcome or bool(outcome.get("isError")) for outcome in outcomes]


async def _all(list_page: Callable[..., Awaitable[Any]], member: str) -> list[dict[str, Any]]:
    """Return all items of a list; an empty one where the server has no such features."""
    try:
        result = await list_page()
    except Exception as error:
        if "not found" in str(error).lower():
            return []
        raise
    items = result
    if not isinstance(result, list):
        items = getattr(result, member, None)
        if items is None:
            items = result.resourceTemplates
    return [item.model_dump(mode="json", by_alias=True, exclude_none=True) for item in items]


async def _outcome(call: Awaitable[Any]) -> dict[str, Any]:
    """Return a result as it is on the wire, or the error in place of it."""
    try:
        result = await asyncio.wait_for(call, _CALL_SECONDS)
    except Exception as error:  # noqa: BLE001 - whatever it is, the other side has to show the same
        return {"error": f"{type(error).__name__}: {error}"}
    if not isinstance(result, dict):
        result = result.model_dump(mode="json", by_alias=True, exclude_none=True)
    return {key: value for key, value in result.items() if not key.startswith("_")}


async def observe_funcmcp(server: Any, calls: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Observe a funcmcp server with funcmcp's client, in the newest revision before 2026-07-28."""
    from funcmcp.testing import Client

    async with Client(server, revision="2025-11-25") as client:
        lists = {
            "tools": client.list_tools,
            "prompts": client.list_prompts,
            "resources": client.list_resources,
            "templates": client.list_resource_templates,
        }
        observed: dict[str, Any] = {}
        for name, list_all in lists.items():
            try:
                observed[name] = await list_all()
            except Exception as error:
                if "not found" not in str(error).lower() and "no method" not in str(error).lower():
                    raise
                observed[name] = []
        observed["calls"] = [
            await _outcome(
                client.get_prompt(call["prompt"], call["arguments"])
                if "prompt" in call
                else client.call_tool(call["tool"], call["arguments"])
            )
            for call in calls
        ]
        observed["unknown"] = await refusals(client.call_tool, calls)
        return observed


async def proxied(server: Any, calls: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Observe a low-level server on funcmcp: its own schemas verbatim, its own handlers behind them."""
    from funcmcp import MCPServer

    library = Library(server)
    async with library.client() as client:
        front = MCPServer("low-level")
        for tool in await _all(client.list_tools, "tools"):
            annotations = tool.get("annotations", {})
            front.tool(
                tool["name"],
                description=tool.get("description", ""),
                input_schema=tool["inputSchema"],
                **({"output_schema": tool["outputSchema"]} if "outputSchema" in tool else {}),
                **{option: annotations[hint] for hint, option in _HINTS.items() if hint in annotations},
            )(_forward(client, tool["name"]))
        observed = await observe_funcmcp(front, calls)
    # The low-level interfaces for these have no counterpart here: only tools are compared.
    return {**observed, "only": ["tools", "calls"]}


_HINTS = {
    "readOnlyHint": "read_only",
    "destructiveHint": "destructive",
    "idempotentHint": "idempotent",
    "openWorldHint": "open_world",
}


def _forward(client: Any, name: str) -> Callable[[dict[str, Any]], Any]:
    async def call(arguments: dict[str, Any]) -> Any:
        return await client.call_tool(name, arguments)

    return call


def main() -> None:
    """Write the observation to the real stdout, which the server can neither print to nor close."""
    out, sys.stdout = sys.stdout, Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - open to the end
    side, description = sys.argv[1], json.loads(sys.argv[2])
    sys.meta_path.append(Absent(description.get("absent", [])))
    calls = description.get("calls", [])
    if side == "funcmcp" and not description.get("low_level"):
        from tests.corpus import imports

        imports.install()
        sys.addaudithook(refuse_network)
        observed = asyncio.run(observe_funcmcp(loaded(description), calls))
    else:
        sys.addaudithook(refuse_network)
        server = loaded(description)
        observe = proxied(server, calls) if side == "funcmcp" else Library(server).observe(calls)
        observed = asyncio.run(observe)
    json.dump(observed, out)


if __name__ == "__main__":
    main()
