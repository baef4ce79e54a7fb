"""What the functions host can't do: refused by `trigger_app`, or told in the log."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp import MCPServer, ProtocolOptions, RegistrationError, ToolError, content
from funcmcp._auth.api_key import APIKeys
from funcmcp.auth import Grant
from funcmcp.azure import Bindings, Input, Output, trigger_app
from funcmcp.providers import EntryPointsProvider
from tests.azure.triggers import Triggers

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [
    pytest.mark.every_python("Python 3.13 has another azure-functions."),
    pytest.mark.lowest("azure-functions has the classes of functions and bindings."),
]


def nothing() -> None:
    return


def with_auth() -> MCPServer:
    return MCPServer("m", auth=APIKeys({"ada": "0123456789abcdef0123456789abcdef"}))


def with_scopes() -> MCPServer:
    mcp = MCPServer("m")
    mcp.tool("write", scopes=["orders.write"])(nothing)
    return mcp


def with_authorize() -> MCPServer:
    mcp = MCPServer("m")
    mcp.prompt("write", authorize=lambda _: False)(lambda: "x")
    return mcp


def without_the_revision() -> MCPServer:
    return MCPServer("m", protocol=ProtocolOptions(revisions=["2026-07-28"]))


def with_template(uri: str) -> Callable[[], MCPServer]:
    def make() -> MCPServer:
        mcp = MCPServer("m")

        @mcp.resource(uri)
        def read(a: Any = None, A: Any = None) -> str:  # noqa: N803 - as the URI has it
            return ""

        return mcp

    return make


def with_two_alike() -> MCPServer:
    mcp = MCPServer("m")
    mcp.resource("order://{a}", name="one")(lambda a: a)
    mcp.resource("ORDER://{b}", name="two")(lambda b: b)
    return mcp


def with_required_task() -> MCPServer:
    mcp = MCPServer("m")
    mcp.tool("report", task="required")(nothing)
    return mcp


def with_confirmation() -> MCPServer:
    mcp = MCPServer("m")
    mcp.tool("delete", confirm="Sure?")(nothing)
    return mcp


def with_grant() -> MCPServer:
    mcp = MCPServer("m")
    mcp.tool("star", grant=Grant("github"))(nothing)
    return mcp


def with_a_result_that_is_no_object() -> MCPServer:
    mcp = MCPServer("m")
    mcp.tool("count", output_schema={"type": "integer"})(lambda: 3)
    return mcp


def with_provider() -> MCPServer:
    mcp = MCPServer("m")
    mcp.tool("write")(nothing)
    mcp.add_provider(EntryPointsProvider("shop.tools"))
    return mcp


def with_meta(meta: dict[str, Any]) -> Callable[[], MCPServer]:
    def make() -> MCPServer:
        mcp = MCPServer("m")
        mcp.tool("deep", meta=meta)(nothing)
        return mcp

    return make


def nested(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {"end": 1}
    for _ in range(levels - 1):
        value = {"in": value}
    return value


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (with_auth, "know no auth="),
        (with_scopes, "write has scopes or authorize"),
        (with_authorize, "write has scopes or authorize"),
        (without_the_revision, "up to 2025-06-18"),
        (with_template("a://{+a}/{A}"), r"not \{\+a\}"),
        (with_template("a://{a*}/{A}"), r"not \{a\*\}"),
        (with_template("a://x{?a,A}"), r"not \{\?a,A\}"),
        (with_template("a://{a}/{A}"), "for another variable"),
        (with_two_alike, "for the same"),
        (with_required_task, 'report runs only as a task.* write task="optional"'),
        (with_confirmation, "delete has confirm=, and Azure's MCP triggers can't ask a person"),
        (with_grant, "star has grant=, and behind Azure's MCP triggers no user signs in"),
        (with_a_result_that_is_no_object, "output schema of count"),
        (with_meta(nested(33)), "32 levels"),
        (with_meta({"a": [{"B": 1, "b": 2}]}), "upper and lower case"),
        (lambda: MCPServer("m"), "no features yet"),
        (with_provider, r"can't serve features of a provider. Write mcp.tool\(function\) or mcp.add\(module\)"),
    ],
)
def test_what_the_host_would_get_wrong_is_refused_with_what_to_do(make: Callable[[], MCPServer], words: str) -> None:
    with pytest.raises(RegistrationError, match=words):
        trigger_app(make())


def test_metadata_of_as_many_levels_as_the_host_takes_is_taken() -> None:
    assert len(trigger_app(with_meta(nested(32))()).get_functions()) == 1


def test_what_the_host_leaves_out_is_told_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    mcp = MCPServer("m", instructions="Be quick.")
    icon = content.Icon("https://example.com/i.png")
    mcp.tool("write", destructive=True, icons=[icon], task="optional")(nothing)
    mcp.resource("a://b", name="b", annotations={"priority": 1.0}, icons=[icon])(lambda: "x")

    @mcp.resource_lister("a")
    def listed() -> list[content.ResourceInfo]:
        return []

    mcp.prompt("say", completions={"word": lambda _: ["one"]})(lambda word: word)
    trigger_app(mcp)
    assert [record.getMessage() for record in caplog.records if record.name == "funcmcp"] == [
        "Azure's MCP triggers have no annotations of tools: lost for write.",
        "Azure's MCP triggers have no icons of tools: lost for write.",
        "Azure's MCP triggers have no tasks (each call is a plain call): lost for write.",
        "Azure's MCP triggers have no annotations of resources: lost for a://b.",
        "Azure's MCP triggers have no icons of resources: lost for a://b.",
        "Azure's MCP triggers have no completions: lost for say.",
        "Azure's MCP triggers have no lists of resources that a function makes: lost for a.",
        "Azure's MCP triggers have no instructions (set them in host.json): lost for m.",
    ]


def test_a_feature_that_comes_too_late_is_told_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    mcp = MCPServer("m")
    mcp.tool("early")(nothing)
    trigger_app(mcp)
    assert not caplog.records
    mcp.tool("late")(nothing)
    mcp.tool("later")(nothing)
    assert caplog.text.count("after trigger_app") == 1


@pytest.mark.parametrize(
    ("bindings", "words"),
    [
        ({"other": [Input("x", "blob", path="x")]}, "not a feature of the server"),
        ({"both": [Input("x", "blob", path="x")]}, "a tool's and a prompt's name"),
        ({"tool": [Input("x", "blob", path="x"), Output("x", "blob", path="x")]}, "the same name"),
        ({"tool": [Input("context", "blob", path="x")]}, "that of its trigger"),
        ({"tool": [Input("city", "mcpToolProperty")]}, "'city', which the feature has no argument for"),
        ({"tool": [Input("b", "mcpPromptArgument")]}, "which the feature has no argument for"),
    ],
)
def test_bindings_that_no_function_can_have_are_refused(bindings: dict[str, Any], words: str) -> None:
    mcp = MCPServer("m")

    @mcp.tool
    def tool(a: int, bindings: Bindings) -> None:
        return

    mcp.tool("both")(nothing)
    mcp.prompt("both")(lambda: "x")
    with pytest.raises(RegistrationError, match=words):
        trigger_app(mcp, bindings=bindings)


def test_the_name_of_a_binding_is_a_name_of_python() -> None:
    with pytest.raises(RegistrationError, match="must be a Python name"):
        Input("a-b", "blob")


async def test_a_search_leaves_its_tools_and_the_pinned_ones_as_functions() -> None:
    mcp = MCPServer("many")
    mcp.tool("add")(lambda a, b: a + b)
    mcp.tool("greet")(lambda: "hello")
    mcp.tool("fail")(failing)
    mcp.tool_search(always_visible={"greet"})
    triggers = Triggers(mcp)
    assert triggers.functions.keys() == {"tool_greet", "tool_search_tools", "tool_call_tool"}
    found = json.loads(json.loads(await triggers.call("search_tools", {"query": "add"}))["structuredContent"])
    assert [tool["name"] for tool in found["tools"]] == ["add"]
    called = await triggers.call("call_tool", {"name": "add", "arguments": {"a": 1, "b": 2}})
    assert called == await Triggers(plain()).call("add", {"a": 1, "b": 2})
    assert "Sold out." in await triggers.call("call_tool", {"name": "fail"})
    assert "Unknown tool: 'ad'" in await triggers.call("call_tool", {"name": "ad"})


def plain() -> MCPServer:
    mcp = MCPServer("plain")
    mcp.tool("add")(lambda a, b: a + b)
    return mcp


def failing() -> None:
    raise ToolError("Sold out.")


def test_a_list_for_some_clients_is_refused() -> None:
    mcp = plain()
    mcp.tool_search(whole_list_clients={"claude-code"})
    with pytest.raises(RegistrationError, match="all clients get the same list"):
        trigger_app(mcp)
