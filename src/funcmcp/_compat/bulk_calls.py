"""FastMCP's tools that call other tools of their server several times."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, field_validator

from funcmcp._compat.context import context_variable
from funcmcp._compat.errors import FastMCPError
from funcmcp._compat.mixin import MCPMixin, mcp_tool
from funcmcp._compat.sdk_types import ContentBlock, MCPModel, TextContent
from funcmcp._objects.mappings import without
from funcmcp._protocol.errors import MCPError
from funcmcp._serving.composition import runtime_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from funcmcp._compat.context import Context

_NAMES = ("call_tools_bulk", "call_tool_bulk")
_BLOCKS = TypeAdapter(list[ContentBlock])
_SERVER_INFO = "io.modelcontextprotocol/serverInfo"


class CallToolRequest(BaseModel):
    """A call of a tool."""

    tool: str = Field(description="The name of the tool to call.")
    arguments: dict[str, Any] = Field(description="A dictionary containing the arguments for the tool call.")


class CallToolRequestResult(BaseModel):
    """The result of a call, with the call."""

    model_config: ClassVar[ConfigDict] = MCPModel.model_config

    meta: dict[str, Any] | None = Field(default=None, alias="_meta")
    content: list[Any]
    structured_content: Any = None
    is_error: bool = False
    tool: str = Field(description="The name of the tool that was called.")
    arguments: dict[str, Any] = Field(description="The arguments used for the tool call.")

    @field_validator("content")
    @classmethod
    def _blocks(cls, content: list[Any]) -> list[ContentBlock]:
        """Return content blocks. The annotation is Any, because content in a declared type has no output schema."""
        return _BLOCKS.validate_python(content)


class BulkToolCaller(MCPMixin):
    """An object with tools that call other tools of the server, as the caller of the request."""

    def __init__(self) -> None:
        self._server: Any = None
        self._own_names = set(_NAMES)

    def register_tools(self, mcp_server: Any, prefix: str | None = None, separator: str = "_") -> None:
        """Register the tools with a server.

        Args:
            mcp_server: The server.
            prefix: What each name begins with.
            separator: What stands between the prefix and the name.
        """
        self._server = mcp_server
        if prefix:
            self._own_names.update(f"{prefix}{separator}{name}" for name in _NAMES)
        super().register_tools(mcp_server, prefix, separator)

    @mcp_tool()
    async def call_tools_bulk(
        self,
        tool_calls: list[CallToolRequest],
        continue_on_error: bool = True,  # noqa: FBT001, FBT002 - an argument of the tool
    ) -> list[CallToolRequestResult]:
        """Call several tools of this server in one request, each with its own arguments."""
        return await self._called(((call.tool, call.arguments) for call in tool_calls), stops=not continue_on_error)

    @mcp_tool()
    async def call_tool_bulk(
        self,
        tool: str,
        tool_arguments: list[dict[str, str | int | float | bool | None]],
        continue_on_error: bool = True,  # noqa: FBT001, FBT002 - as above
    ) -> list[CallToolRequestResult]:
        """Call one tool of this server several times in one request.

        Args:
            tool: The name of the tool to call.
            tool_arguments: The arguments of each call.
            continue_on_error: Whether the calls after a failed one are made.
        """
        return await self._called(
            ((tool, dict(arguments)) for arguments in tool_arguments), stops=not continue_on_error
        )

    async def _called(self, calls: Iterable[tuple[str, dict[str, Any]]], *, stops: bool) -> list[CallToolRequestResult]:
        """Return the results of calls; up to the first failed one if it stops them."""
        results: list[CallToolRequestResult] = []
        for tool, arguments in calls:
            results.append(await self._call_tool(tool, arguments))
            if results[-1].is_error and stops:
                break
        return results

    async def _call_tool(self, tool: str, arguments: dict[str, Any]) -> CallToolRequestResult:
        result = await self._result(tool, arguments)
        return CallToolRequestResult.model_validate({**result, "tool": tool, "arguments": arguments})

    async def _result(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return the result of a call in JSON form."""
        if tool in self._own_names:
            return _failure(
                "BulkToolCaller cannot call itself. The tools 'call_tools_bulk' and 'call_tool_bulk' are disallowed."
            )
        context = context_variable.get()
        if context is not None and self._is_anonymous(context):
            return _failure("Sign in to call tools in bulk.")
        principal = None if context is None else context.principal
        try:
            result = await self._server.call_tool(tool, arguments, principal=principal, raise_on_error=False)
        except (MCPError, FastMCPError) as error:
            return _failure(str(error))
        meta = {name: value for name, value in (result.get("_meta") or {}).items() if name != _SERVER_INFO}
        return {**without(result, "resultType"), "_meta": meta or None}

    def _is_anonymous(self, context: Context) -> bool:
        """Return whether nobody has signed in at a server where callers do.

        A direct call without a principal is one of the server's author, who may use every tool.
        """
        has_sign_in = runtime_of(self._server).server.guard is not None
        return has_sign_in and context.principal is None and not context.is_of_user


def _failure(text: str) -> dict[str, Any]:
    return {"content": [TextContent(text=text)], "isError": True}
