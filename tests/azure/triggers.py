"""Triggers in this process: an app's functions as the azure-functions library describes them, called directly."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from funcmcp import MCPServer


class Triggers:
    """The functions that `trigger_app` registers for a server.

    Attributes:
        bindings: all bindings of each function, decoded, by its name.
        functions: what the worker calls, by name.
    """

    def __init__(self, mcp: MCPServer, **options: Any) -> None:
        from funcmcp.azure import trigger_app

        indexed = trigger_app(mcp, **options).get_functions()
        self.bindings = {
            str(found.get_function_name()): [json.loads(text) for text in found.get_raw_bindings()] for found in indexed
        }
        self.functions: dict[str, Callable[..., Awaitable[Any]]] = {
            str(found.get_function_name()): found.get_user_function() for found in indexed
        }

    def trigger(self, name: str) -> dict[str, Any]:
        """Return the trigger of a function."""
        (found,) = (binding for binding in self.bindings[name] if binding["type"].endswith("Trigger"))
        return dict(found)

    async def call(self, tool: str, arguments: Any = None, **more: Any) -> Any:
        """Call a tool's function as the host does; `more` are further members of its context."""
        context = {"name": tool, "arguments": {} if arguments is None else arguments, **more}
        return await self.functions[f"tool_{tool}"](context=json.dumps(context))

    async def read(self, function: str, uri: str) -> Any:
        """Call a resource's function as the host does."""
        return await self.functions[f"resource_{function}"](context=json.dumps({"uri": uri}))

    async def get(self, prompt: str, arguments: Any = None) -> Any:
        """Call a prompt's function as the host does."""
        context = {"name": prompt} if arguments is None else {"name": prompt, "arguments": arguments}
        return await self.functions[f"prompt_{prompt}"](context=json.dumps(context))
