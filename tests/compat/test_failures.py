"""What clients get if a component or a middleware of FastMCP raises an exception: the answers of FastMCP 4.2.3."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from mcp.shared.exceptions import MCPError as SDKError

from funcmcp import MCPError
from funcmcp.compat import (
    Context,
    FastMCP,
    FastMCPError,
    McpError,
    MCPServer,
    NotFoundError,
    PromptError,
    ResourceError,
    ToolError,
    ValidationError,
    create_proxy,
)
from funcmcp.compat import Middleware as BaseMiddleware
from funcmcp.testing import Client

if TYPE_CHECKING:
    from funcmcp.compat import CallNext, MiddlewareContext

ANSWERS: list[tuple[Exception, str, int, str]] = [
    # the exception, the text of a tool, and the code and the text of a resource; {} is what failed
    (ValueError("bad"), "{}: bad", -32603, "{}: bad"),
    (NotFoundError("gone"), "{}: gone", -32603, "{}: gone"),
    (ToolError("t"), "t", -32603, "t"),
    (ResourceError("r"), "r", -32603, "r"),
    (PromptError("p"), "p", -32603, "p"),
    (ValidationError("v"), "v", -32602, "v"),
    (FastMCPError("f"), "f", -32603, "f"),
    (McpError(-32001, "m"), "{}: m", -32001, "m"),
]


def failing(error: Exception, **options: Any) -> FastMCP:
    mcp = FastMCP("f", **options)

    def fail() -> str:
        raise error

    mcp.tool(fail)
    mcp.resource("data://fail")(fail)

    @mcp.resource("data://fail/{part}")
    def fail_in_part(part: str) -> str:
        return fail()

    mcp.prompt(fail)
    return mcp


async def answers(mcp: FastMCP, prefix: str = "") -> tuple[str, list[tuple[int, str]]]:
    """Return the text of the tool's error, and the codes and texts of those of the resource and the prompt."""
    errors = []
    async with Client(mcp) as client:
        result = await client.call_tool(f"{prefix}fail")
        assert result.is_error
        for request in (
            client.read_resource("data://fail" if not prefix else "data://n/fail"),
            client.get_prompt(f"{prefix}fail"),
        ):
            with pytest.raises(MCPError) as raised:
                await request
            errors.append((raised.value.code, raised.value.message))
    return result.text, errors


@pytest.mark.parametrize("is_mounted", [False, True])
@pytest.mark.parametrize(("error", "of_tool", "code", "of_resource"), ANSWERS)
async def test_errors_name_the_component_unless_they_are_for_the_client(
    error: Exception, of_tool: str, code: int, of_resource: str, is_mounted: bool
) -> None:
    mcp = failing(error)
    above = FastMCP("above")
    above.mount(mcp, "n")
    tool, others = await (answers(above, "n_") if is_mounted else answers(mcp))
    assert tool == of_tool.format("Error calling tool 'fail'")
    assert others[0] == (code, of_resource.format("Error reading resource 'data://fail'"))
    assert others[1] == (code, of_resource.format("Error rendering prompt 'fail'"))


async def test_masked_errors_name_the_component_and_the_record_of_the_log() -> None:
    tool, others = await answers(failing(ValueError("secret"), mask_error_details=True))
    starts = ("Error calling tool 'fail'.", "Error reading resource 'data://fail'.", "Error rendering prompt 'fail'.")
    for text, start in zip([tool, *(text for _, text in others)], starts, strict=True):
        assert text.startswith(f"{start} The server's log has the details under error id ")
        assert "secret" not in text
    assert await answers(failing(FastMCPError("open"), mask_error_details=True)) == (
        "open",
        [(-32603, "open"), (-32603, "open")],
    )


async def test_a_template_that_fails_names_the_uri() -> None:
    async with Client(failing(ValueError("bad"))) as client:
        with pytest.raises(MCPError, match=r"^Error reading resource 'data://fail/5': bad$"):
            await client.read_resource("data://fail/5")


async def test_a_tool_that_reads_what_fails_gets_the_error_of_a_resource() -> None:
    mcp = failing(ValueError("bad"))
    caught: list[str] = []

    @mcp.tool
    async def read(ctx: Context, *, catch: bool) -> str:
        try:
            await ctx.read_resource("data://fail")
        except ResourceError as error:
            caught.append(str(error))
            if not catch:
                raise
        return "caught"

    async with Client(mcp) as client:
        assert (await client.call_tool("read", {"catch": True})).text == "caught"
        result = await client.call_tool("read", {"catch": False})
    text = "Error reading resource 'data://fail': bad"
    assert (result.is_error, result.text, caught) == (True, text, [text, text])


async def test_errors_of_the_official_sdk_keep_their_code_outside_of_tools() -> None:
    mcp = failing(SDKError(-32001, "gated"))
    assert await answers(mcp) == ("Error calling tool 'fail': gated", [(-32001, "gated"), (-32001, "gated")])


async def test_an_error_of_json_rpc_stays_one_in_the_server_of_the_official_sdk() -> None:
    mcp = MCPServer("m")

    @mcp.tool()
    def fail() -> str:
        raise McpError(-32001, "gated")

    async with Client(mcp) as client:
        with pytest.raises(MCPError, match=r"^gated$") as raised:
            await client.call_tool("fail")
        assert raised.value.code == -32001


class Refusing(BaseMiddleware):
    def __init__(self, error: Exception) -> None:
        self.error = error

    async def on_request(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        if context.method == "tools/list":
            raise self.error
        return await call_next(context)


@pytest.mark.parametrize(
    ("error", "is_masked", "text"),
    [
        (ValueError("no key"), False, "no key"),
        (ValueError("no key"), True, "Internal error"),
        (ToolError("no key"), True, "no key"),
    ],
)
async def test_exceptions_of_middleware_have_their_text_unless_errors_are_masked(
    error: Exception, is_masked: bool, text: str
) -> None:
    mcp = failing(ValueError("bad"), mask_error_details=is_masked, middleware=[Refusing(error)])
    async with Client(mcp) as client:
        with pytest.raises(MCPError, match=f"^{text}$") as raised:
            await client.list_tools()
        assert raised.value.code == -32603


async def test_rules_for_tags_find_the_components_of_a_proxy() -> None:
    backend = FastMCP("backend")
    backend.tool(lambda: 1, name="internal", tags={"internal"})
    backend.tool(lambda: 2, name="open")
    proxy = create_proxy(backend)
    assert [tool.tags for tool in await proxy.list_tools()] == [{"internal"}, set()]
    proxy.disable(tags={"internal"})
    async with Client(proxy) as client:
        assert [tool.name for tool in await client.list_tools()] == ["open"]
        assert (await client.call_tool("internal")).is_error
