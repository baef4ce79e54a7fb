"""Servers as they are written for FastMCP and the official SDK."""

from __future__ import annotations

import logging
from array import array
from collections.abc import AsyncIterator, Iterator  # noqa: TC003 - read when tools are registered
from contextlib import asynccontextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Annotated, Any, ClassVar, Required, TypedDict

import pytest
from mcp import MCPError as SDKError
from mcp import types
from mcp.shared.exceptions import UrlElicitationRequiredError as SDKUrlElicitationRequiredError
from pydantic import BaseModel, Field

from funcmcp import RegistrationError
from funcmcp._protocol.errors import MCPError
from funcmcp.compat import (
    AssistantMessage,
    Context,
    FastMCP,
    Icon,
    Image,
    MCPServer,
    Message,
    NotFoundError,
    RequestStateSecurity,
    ResourceNotFoundError,
    ResourceSecurity,
    TextResource,
    Tool,
    ToolAnnotations,
    ToolError,
    ToolResult,
    UnexpectedToolError,
    UserMessage,
    configure_logging,
    get_logger,
)
from funcmcp.compat.mcp.shared.exceptions import UrlElicitationRequiredError
from funcmcp.compat.mcp.types import ElicitRequestURLParams
from funcmcp.testing import Client

pytestmark = [
    pytest.mark.every_python("Python's modules read signatures, annotations and docstrings."),
    pytest.mark.branches("Objects of results have attributes for other frameworks."),
]

City = Annotated[str, Field(description="The city")]


class Forecast(BaseModel):
    """A forecast."""

    city: str
    celsius: float = Field(description="Degrees")


async def test_a_weather_server_of_fastmcp_2() -> None:
    mcp = FastMCP(name="Weather", instructions="Ask for a city.", version="2.1")

    @mcp.tool(name="forecast", tags={"public"}, annotations={"readOnlyHint": True, "title": "Forecast"})
    async def get_forecast(city: City, ctx: Context, days: int = 1) -> Forecast:
        """Return the forecast."""
        await ctx.info(f"Looking up {city}")
        return Forecast(city=city, celsius=20.5 + days)

    @mcp.resource("weather://cities", mime_type="application/json")
    def cities() -> list[str]:
        return ["Oslo", "Rome"]

    @mcp.resource("weather://{city}/now")
    async def now(city: str, ctx: Context) -> str:
        return f"{city} {type(ctx).__name__}"

    @mcp.prompt
    def ask(city: str) -> list[Message]:
        return [UserMessage(f"How is {city}?"), AssistantMessage("Fine.")]

    async with Client(mcp, revision="2025-11-25") as client:
        assert client.server_info["name"] == "Weather"
        assert client.server_info["version"] == "2.1"
        (tool,) = await client.list_tools()
        assert tool["name"] == "forecast"
        assert tool["inputSchema"] == {
            "type": "object",
            "properties": {
                "city": {"type": "string", "description": "The city"},
                "days": {"type": "integer", "default": 1},
            },
            "required": ["city"],
            "additionalProperties": False,
        }
        assert tool["annotations"] == {"readOnlyHint": True, "title": "Forecast"}
        result = await client.call_tool("forecast", {"city": "Oslo", "days": "2"})
        assert result.structured_content == {"city": "Oslo", "celsius": 22.5}
        assert (await client.read_resource("weather://cities")).text == '["Oslo", "Rome"]'
        assert (await client.read_resource("weather://Rome/now")).text == "Rome Context"
        messages = (await client.get_prompt("ask", {"city": "Rome"})).messages
        assert [message.role for message in messages] == ["user", "assistant"]


async def test_a_server_of_the_official_sdk_returns_its_types() -> None:
    mcp = FastMCP("SDK", "Instructions", host="0.0.0.0", port=9000, stateless_http=True)

    @mcp.tool("picture", "A picture", "Draws.", annotations=types.ToolAnnotations(read_only_hint=True))
    def draw() -> list[types.TextContent | types.ImageContent]:
        return [
            types.TextContent(type="text", text="here"),
            types.ImageContent(type="image", data="AAAA", mime_type="image/png"),
        ]

    @mcp.tool()
    def fail() -> types.CallToolResult:
        return types.CallToolResult(content=[types.TextContent(type="text", text="no")], is_error=True)

    async with Client(mcp) as client:
        tools = {tool.name: tool for tool in await client.list_tools()}
        assert tools["picture"]["title"] == "A picture"
        assert tools["picture"]["description"] == "Draws."
        assert tools["picture"]["annotations"]["readOnlyHint"] is True
        result = await client.call_tool("picture")
        assert result["content"] == [
            {"type": "text", "text": "here"},
            {"type": "image", "data": "AAAA", "mimeType": "image/png"},
        ]
        assert (await client.call_tool("fail", raise_on_error=False)).is_error


async def test_errors_are_shown_as_the_framework_shows_them() -> None:
    def fail() -> str:
        raise ValueError("the disk is full")

    async def text(mcp: FastMCP) -> str:
        mcp.add_tool(fail)
        return (await mcp.call_tool("fail", raise_on_error=False)).text

    assert await text(FastMCP("f")) == "Error calling tool 'fail': the disk is full"
    assert "disk" not in await text(FastMCP("f", mask_error_details=True))
    mcp = MCPServer("f")
    mcp.add_tool(fail)
    async with Client(mcp) as client:
        assert (await client.call_tool("fail", raise_on_error=False)).text == "Error executing tool fail"
    with pytest.raises(UnexpectedToolError, match=r"^Error executing tool fail$") as crash:
        await mcp.call_tool("fail")
    assert isinstance(crash.value.__cause__, ValueError)


async def test_a_tool_error_is_always_shown() -> None:
    mcp = MCPServer("m")

    @mcp.tool()
    def fail() -> str:
        raise ToolError("Say please.")

    async with Client(mcp) as client:
        assert (await client.call_tool("fail", raise_on_error=False)).text == "Error executing tool fail: Say please."
    with pytest.raises(ToolError, match="Say please"):
        await mcp.call_tool("fail")


async def test_options_of_tools() -> None:
    mcp = FastMCP("t")

    @mcp.tool(exclude_args=["key"], output_schema={"type": "object", "properties": {"a": {"type": "integer"}}})
    def with_schema(a: int, key: str = "secret") -> ToolResult:
        assert key == "secret"
        return ToolResult(content="text", structured_content={"a": a}, meta={"m": 1})

    @mcp.tool(structured_output=False, meta={"x": 1}, icons=[types.Icon(src="https://example.com/i.png")])
    def unstructured() -> dict[str, int]:
        return {"a": 1}

    @mcp.tool(enabled=False)
    def hidden() -> None: ...

    with_schema_tool, unstructured_tool = await mcp.list_tools()
    assert list(with_schema_tool.input_schema["properties"]) == ["a"]
    assert with_schema_tool.outputSchema == {"type": "object", "properties": {"a": {"type": "integer"}}}
    assert unstructured_tool.output_schema is None
    assert unstructured_tool["_meta"]["x"] == 1
    assert unstructured_tool["icons"] == [{"src": "https://example.com/i.png"}]
    result = await mcp.call_tool("with_schema", {"a": 5})
    assert (result.text, result.structured_content, (result.meta or {})["m"]) == ("text", {"a": 5}, 1)


async def test_components_as_objects() -> None:
    mcp = FastMCP("o")

    def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    mcp.add_tool(Tool.from_function(add, name="plus", description="Adds."))
    mcp.add_tool(add, annotations=ToolAnnotations(idempotentHint=True))
    mcp.add_resource(TextResource(uri="note://one", name="one", text="First."))
    tools = await mcp.get_tools()
    assert tools["plus"].description == "Adds."
    assert tools["add"]["annotations"] == {"idempotentHint": True}
    assert (await mcp.get_tool("add")).parameters["required"] == ["a", "b"]  # type: ignore[union-attr] # it exists
    assert [tool.parameters["required"] for tool in mcp._tool_manager.list_tools()] == [["a", "b"], ["a", "b"]]  # type: ignore[attr-defined]
    assert (await mcp.read_resource("note://one")).text == "First."
    mcp.remove_tool("plus")
    assert list(await mcp.get_tools()) == ["add"]
    with pytest.raises(NotFoundError, match="plus"):
        mcp.remove_tool("plus")
    with pytest.raises(TypeError, match=r"Tool\.from_function"):
        mcp.add_resource(object())


@pytest.mark.parametrize(
    "hints", [{"readOnlyHint": True, "openWorldHint": False}, {"read_only_hint": True, "open_world_hint": False}]
)
@pytest.mark.parametrize("kind", [FastMCP, MCPServer])
async def test_hints_have_the_names_of_the_specification_for_clients(kind: Any, hints: dict[str, bool]) -> None:
    mcp = kind("o")
    mcp.add_tool(lambda: "a", name="look", annotations=ToolAnnotations("Look", destructive_hint=None, **hints))
    async with Client(mcp) as client:
        (tool,) = await client.list_tools()
    assert tool["annotations"] == {"title": "Look", "readOnlyHint": True, "openWorldHint": False}


async def test_a_second_tool_of_a_name_replaces_the_first(caplog: pytest.LogCaptureFixture) -> None:
    async def text(mcp: FastMCP) -> str:
        mcp.tool(lambda: "first", name="t")
        mcp.tool(lambda: "second", name="t")
        return (await mcp.call_tool("t")).text

    with caplog.at_level(logging.WARNING):
        assert await text(FastMCP("d")) == "second"
    assert "The tool t exists already and is replaced." in caplog.text
    assert await text(FastMCP("d", on_duplicate_tools="ignore")) == "first"
    with pytest.raises(ValueError, match="Duplicate tool name 't'"):
        await text(FastMCP("d", on_duplicate_tools="error"))


async def test_options_without_meaning_are_logged_at_the_start(caplog: pytest.LogCaptureFixture) -> None:
    servers = [
        FastMCP("o", cache_expiration_seconds=5, debug=True, log_level="DEBUG", dependencies=["httpx"]),
        FastMCP("o", debug=False, log_level="INFO", json_response=False, message_path="/messages/"),
        FastMCP("o", json_response=True, message_path="/m/", session_state_store=object()),
    ]
    assert caplog.messages == []
    for mcp in servers:
        for _ in range(2):
            async with mcp.lifespan():
                pass
    assert caplog.messages == [
        "FastMCP of funcmcp.compat ignores options: cache_expiration_seconds, debug, dependencies, log_level.",
        "FastMCP of funcmcp.compat ignores options: json_response, message_path, session_state_store.",
    ]


def test_unknown_options_are_refused() -> None:
    with pytest.raises(TypeError, match="Unknown option 'colour' of FastMCP"):
        FastMCP("o", colour="red")
    with pytest.raises(TypeError, match="needs auth=AuthSettings"):
        FastMCP("o", auth_server_provider=object())


def test_the_sdk_settings_come_from_options_and_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FASTMCP_PORT", "9123")
    mcp = FastMCP("s", host="127.0.0.2")
    assert (mcp.settings.host, mcp.settings.port) == ("127.0.0.2", 9123)
    mcp.settings.port = 9124
    assert mcp.settings.port == 9124
    with pytest.raises(AttributeError, match="no setting 'colour'"):
        _ = mcp.settings.colour


def test_a_resource_without_a_scheme_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    mcp = FastMCP("r")
    mcp.resource("/search/{query}", name="search")(lambda query: query)
    assert "The URI of the resource" in caplog.text
    with pytest.raises(TypeError, match="needs a URI"):
        mcp.resource(lambda: "x")  # type: ignore[arg-type]


async def test_a_lifespan_is_started_and_closed_and_its_value_is_in_the_context() -> None:
    steps: list[str] = []

    @dataclass
    class Database:
        name: str

    @asynccontextmanager
    async def lifespan(server: FastMCP) -> Any:
        steps.append(f"start {server.name}")
        yield Database("orders")
        steps.append("stop")

    mcp = FastMCP("Shop", lifespan=lifespan)

    @mcp.tool()
    def query(ctx: Context) -> str:
        database: Database = ctx.request_context.lifespan_context
        return database.name

    async with Client(mcp) as client:
        assert (await client.call_tool("query")).text == "orders"
    assert steps == ["start Shop", "stop"]


async def test_other_servers_are_mounted_under_a_prefix() -> None:
    billing, shop = FastMCP("Billing"), FastMCP("Shop")

    @billing.tool
    def pay(ctx: Context) -> str:
        return ctx.fastmcp.name

    shop.mount(billing, prefix="billing")
    await FastMCP("Other").import_server("b", billing)
    assert (await shop.call_tool("billing_pay")).text == "Billing"


async def test_a_subclass_adds_state_and_tools() -> None:
    class Shop(FastMCP[dict[str, str]]):  # type: ignore[type-arg] # of FastMCP and the SDK
        def __init__(self, prices: dict[str, int]) -> None:
            super().__init__("Shop")
            self.prices = prices
            self.tool(self.price)
            self.add_tool(self.names, name="all_names")

        def price(self, item: str) -> int:
            return self.prices[item]

        async def names(self, ctx: Context) -> list[str]:
            assert ctx.fastmcp is self
            return list(self.prices)

    mcp = Shop({"tea": 3})
    assert (await mcp.call_tool("price", {"item": "tea"})).text == "3"
    assert (await mcp.call_tool("all_names")).structured_content == {"result": ["tea"]}


async def test_one_function_completes_all_arguments() -> None:
    mcp = MCPServer("c")
    mcp.prompt()(review)

    @mcp.completion()
    async def complete(
        ref: types.PromptReference | types.ResourceTemplateReference,
        argument: types.CompletionArgument,
        context: types.CompletionContext | None,
    ) -> types.Completion | None:
        if isinstance(ref, types.PromptReference):
            return types.Completion(values=[f"{ref.name} {argument.name} {argument.value}"], total=9, has_more=True)
        if argument.name == "repo" and context is not None:
            return types.Completion(values=[f"{ref.uri} {context.arguments}"])
        return None

    mcp.resource("github://{owner}/{repo}", name="repo")(lambda owner, repo: owner + repo)
    async with Client(mcp) as client:
        answer = await client.complete({"type": "ref/prompt", "name": "review"}, "language", "py")
        assert (answer.values, answer.total, answer.has_more) == (["review language py"], 9, True)
        reference = {"type": "ref/resource", "uri": "github://{owner}/{repo}"}
        answer = await client.complete(reference, "repo", "f", context={"owner": "me"})
        assert answer.values == ["github://{owner}/{repo} {'owner': 'me'}"]
        assert (await client.complete(reference, "owner", "f")).values == []


def review(language: str, code: str) -> str:
    """Review code."""
    return f"{language} {code}"


async def test_errors_of_the_official_sdk_are_json_rpc_errors_as_there() -> None:
    def fail() -> str:
        raise SDKError(-32001, "gated", {"a": 1})

    def pay() -> str:
        elicitation = types.ElicitRequestURLParams(message="Pay.", url="https://pay.example.com", elicitation_id="1")
        raise SDKUrlElicitationRequiredError([elicitation])

    def pay_twice() -> str:
        page = ElicitRequestURLParams(message="Pay.", url="https://pay.example.com", elicitation_id="1")
        raise UrlElicitationRequiredError([page, page])

    for cls in (FastMCP, MCPServer):
        mcp = cls("e")
        mcp.add_tool(fail)
        mcp.add_tool(pay)
        mcp.add_tool(pay_twice)
        async with Client(mcp) as client:
            pages: list[list[Any]] = []
            for tool, message in (("pay", "URL elicitation required"), ("pay_twice", "URL elicitations required")):
                with pytest.raises(MCPError, match=f"^{message}$") as url_error:
                    await client.call_tool(tool)
                assert url_error.value.code == -32042
                data: Any = url_error.value.data
                pages.append(data["elicitations"])
            assert pages == [pages[0], pages[0] * 2]
            if cls is FastMCP:
                assert (await client.call_tool("fail", raise_on_error=False)).text == "Error calling tool 'fail': gated"
            else:
                with pytest.raises(MCPError, match="gated") as error:
                    await client.call_tool("fail")
                assert (error.value.code, error.value.data) == (-32001, {"a": 1})


async def test_the_sdk_keeps_the_first_of_two_tools(caplog: pytest.LogCaptureFixture) -> None:
    mcp = MCPServer("d")
    mcp.tool("t")(lambda: "first")
    mcp.tool("t")(lambda: "second")
    assert (await mcp.call_tool("t")).content[0].text == "first"
    assert "The tool t exists already. The second one is ignored." in caplog.text


async def test_removing_what_does_not_exist_is_an_error_of_either_framework() -> None:
    mcp = FastMCP("r")
    mcp.prompt(review)
    mcp.resource(uri="note://one")(lambda: "1")
    mcp.remove_prompt("review")
    mcp.remove_resource("note://one")
    with pytest.raises(ValueError, match="Unknown prompt: review"):
        mcp.remove_prompt("review")
    with pytest.raises(NotFoundError, match="Unknown resource"):
        mcp.remove_resource("note://one")
    with pytest.raises(ToolError, match="Unknown tool"):
        mcp.remove_tool("review")


class Weather(TypedDict, total=False):
    city: Required[str]
    celsius: float


async def test_a_typed_dict_of_typing_is_a_result_and_an_argument() -> None:
    mcp = FastMCP("t")

    @mcp.tool
    def forecast(last: Weather | None = None) -> list[Weather]:
        return [last or {"city": "Oslo", "celsius": 3.5}]

    (tool,) = await mcp.list_tools()
    assert tool.output_schema is not None
    assert tool.output_schema["properties"]["result"]["items"]["required"] == ["city"]
    assert (await mcp.call_tool("forecast")).structured_content == {"result": [{"city": "Oslo", "celsius": 3.5}]}
    assert (await mcp.call_tool("forecast", {"last": {"city": "Rome"}})).text == '[{"city":"Rome"}]'


@pytest.mark.parametrize("server_class", [FastMCP, MCPServer])
async def test_an_argument_may_be_a_class_that_only_python_passes(server_class: type[FastMCP]) -> None:
    mcp = server_class("t")

    @mcp.tool()
    def research(topic: str, output_schema: type[BaseModel] | None = None) -> str:
        return f"{topic} {output_schema}"

    async with Client(mcp) as client:
        (tool,) = await client.list_tools()
        assert tool["inputSchema"]["properties"]["output_schema"]["anyOf"] == [{}, {"type": "null"}]
        assert (await client.call_tool("research", {"topic": "a"})).text == "a None"
        result = await client.call_tool("research", {"topic": "a", "output_schema": "Forecast"})
    assert result.is_error
    assert "pydantic" not in result.text


async def test_a_result_of_the_sdk_is_annotated_with_its_structured_content() -> None:
    mcp = MCPServer("a")

    @mcp.tool()
    def forecast(celsius: float) -> Annotated[types.CallToolResult, Forecast]:
        text = types.TextContent(type="text", text="warm")
        return types.CallToolResult(content=[text], structured_content={"city": "Oslo", "celsius": celsius})

    (tool,) = await mcp.list_tools()
    assert tool.output_schema is not None
    assert tool.output_schema["required"] == ["city", "celsius"]
    result = await mcp.call_tool("forecast", {"celsius": 20})
    assert (result.content[0].text, result.structured_content) == ("warm", {"city": "Oslo", "celsius": 20})


def test_loggers_are_those_of_the_standard_library(monkeypatch: pytest.MonkeyPatch) -> None:
    levels: list[str] = []

    def configure(*, level: str) -> None:
        levels.append(level)

    monkeypatch.setattr(logging, "basicConfig", configure)
    configure_logging("DEBUG")
    assert (get_logger("shop"), levels) == (logging.getLogger("shop"), ["DEBUG"])


async def test_options_that_only_the_sdk_has(caplog: pytest.LogCaptureFixture) -> None:
    icon = Icon("https://example.com/i.png", mimeType="image/png", sizes=["64x64"])
    mcp = MCPServer("o", request_state_security=RequestStateSecurity.ephemeral(), icons=[icon])
    mcp.resource("file://{path}", security=ResourceSecurity(exempt_params={"path"}))(missing)
    async with mcp.lifespan(), Client(mcp) as client:
        assert caplog.messages == [
            "MCPServer of funcmcp.compat ignores options: request_state_security.",
        ]
        assert client.server_info["icons"] == [
            {"src": "https://example.com/i.png", "mimeType": "image/png", "sizes": ["64x64"]}
        ]
        with pytest.raises(MCPError, match="There is no a"):
            await client.read_resource("file://a")


def missing(path: str) -> str:
    raise ResourceNotFoundError(f"There is no {path}.")


class Profile:
    """An ordinary class with type hints."""

    name: str
    age: int
    email: str | None = None
    created: ClassVar[int] = 0

    def __init__(self, name: str, age: int) -> None:
        self.name = name
        self.age = age


class Untyped:
    def __str__(self) -> str:
        return "untyped"


async def test_a_plain_class_is_a_result_as_in_the_sdk() -> None:
    mcp = MCPServer("p")

    @mcp.tool()
    def profile() -> Profile:
        return Profile("Ann", 30)

    @mcp.tool()
    async def untyped() -> Untyped:
        return Untyped()

    tools = await mcp.get_tools()
    schema = tools["profile"].output_schema
    assert schema is not None
    assert (list(schema["properties"]), schema["required"]) == (["name", "age", "email"], ["name", "age"])
    assert tools["untyped"].output_schema is None
    assert (await mcp.call_tool("profile")).structured_content == {"name": "Ann", "age": 30, "email": None}
    assert (await mcp.call_tool("untyped")).structured_content is None


@pytest.mark.parametrize("returns", ["text", "model", "list", "media"])
async def test_a_function_may_return_a_result_that_its_annotation_does_not_describe(returns: str) -> None:
    mcp = FastMCP("r")
    results: dict[str, Any] = {
        "text": ToolResult("as text", structured_content={"result": "as text"}),
        "model": types.CallToolResult(content=[types.TextContent(type="text", text="failed")], is_error=True),
        "list": ToolResult([types.TextContent(type="text", text="one")], meta={"m": 1}),
        "media": [Image(data=b"x"), "two", {"a": 1}],
    }

    @mcp.tool
    def text() -> str:
        return results["text"]  # type: ignore[no-any-return]

    @mcp.tool
    async def model() -> Forecast:
        return results["model"]  # type: ignore[no-any-return]

    @mcp.tool(name="list")
    def listed(ctx: Context) -> list[str]:
        assert ctx.request_id
        return results["list"]  # type: ignore[no-any-return]

    @mcp.tool
    def media() -> list:  # type: ignore[type-arg] # as people write it
        return results["media"]  # type: ignore[no-any-return]

    result = await mcp.call_tool(returns, raise_on_error=False)
    expected = {
        "text": ("as text", False, {"result": "as text"}, 1),
        "model": ("failed", True, None, 1),
        "list": ("one", False, None, 1),
        "media": ('two\n{"a":1}', False, None, 3),
    }
    content = (result.text, result.is_error, result.structured_content, len(result.content))
    assert content == expected[returns], result


async def test_a_prompt_returns_messages_as_dicts() -> None:
    mcp = MCPServer("p")

    @mcp.prompt()
    async def ask(ctx: Context) -> list[Any]:
        assert ctx.fastmcp is mcp
        block = {"type": "text", "text": "two"}
        return [{"role": "user", "content": "one"}, {"role": "assistant", "content": block}, "three"]

    async with Client(mcp) as client:
        messages = (await client.get_prompt("ask")).messages
    assert [(message.role, message["content"]["text"]) for message in messages] == [
        ("user", "one"),
        ("assistant", "two"),
        ("user", "three"),
    ]


async def test_the_decorator_of_a_resource_can_be_used_twice() -> None:
    mcp = FastMCP("t", on_duplicate="replace")
    at_menu = mcp.resource("menu://today", name="menu", description="The menu")

    @at_menu
    def first() -> str:
        return "soup"

    @at_menu
    def second() -> str:
        return "rice"

    async with Client(mcp) as client:
        [listed] = await client.list_resources()
        assert (listed["name"], listed["description"]) == ("menu", "The menu")
        assert (await client.read_resource("menu://today")).text == "rice"


@pytest.mark.parametrize(
    ("default", "supported"), [(None, {"own"}), (False, {"own"}), (True, {"own", "plain", "in_the_loop"})]
)
async def test_tasks_is_the_default_of_tools_as_in_fastmcp(default: bool | None, supported: set[str]) -> None:
    mcp = FastMCP("t", tasks=default)

    @mcp.tool
    async def in_the_loop() -> str:
        return "x"

    @mcp.tool
    def plain() -> str:
        return "x"

    @mcp.tool(task=False)
    async def never() -> str:
        return "x"

    @mcp.tool(task=True)
    async def own() -> str:
        return "x"

    async with Client(mcp, revision="2025-11-25") as client:
        tools = (await client.request("tools/list", {}))["tools"]
    assert {tool["name"] for tool in tools if tool.get("execution", {}).get("taskSupport") == "optional"} == supported


@pytest.mark.parametrize("make", [FastMCP, MCPServer])
async def test_a_server_with_tools_only_has_empty_lists(make: Any) -> None:
    mcp = make("tools")
    mcp.tool(name="done")(lambda: "done")
    async with Client(mcp) as client:
        for method, member in (("resources/list", "resources"), ("prompts/list", "prompts")):
            assert (await client.request(method))[member] == []


async def test_an_error_beside_a_nan_names_the_value_that_cannot_be_written() -> None:
    mcp = FastMCP("Data")

    @mcp.tool
    def rows() -> list[dict[str, Any]]:
        return [{"mean": float("nan")}, {"mean": float("nan"), "lock": object()}]

    async with Client(mcp) as client:
        result = await client.call_tool("rows")
    assert result["isError"]
    assert result.text.startswith("Could not serialize the return value of tool 'rows' for its output schema.")


async def test_nan_in_an_array_without_an_annotation_is_null() -> None:
    mcp = FastMCP("Data")
    mcp.tool(name="means")(lambda: array("d", [1.5, float("nan")]))

    async with Client(mcp) as client:
        assert (await client.call_tool("means")).text == "[1.5,null]"


async def test_items_of_generators_are_results() -> None:
    mcp = FastMCP("Numbers")

    @mcp.tool
    def plain(upto: int):  # type: ignore[no-untyped-def]
        yield from range(upto)

    @mcp.tool
    def iterator(upto: int, ctx: Context) -> Iterator[int]:
        assert ctx.fastmcp is mcp
        yield from range(upto)

    @mcp.tool
    async def asynchronous(upto: int) -> AsyncIterator[int]:
        for number in range(upto):
            yield number

    @mcp.tool
    async def listed(upto: int) -> list[int]:  # type: ignore[misc] # FastMCP accepts it
        for number in range(upto):
            yield number

    for name in ("plain", "iterator", "asynchronous"):  # as in FastMCP 4.2.3
        result = await mcp.call_tool(name, {"upto": 2})
        assert (result.text, result.structured_content) == ("[0,1]", None)
        assert (await mcp.get_tool(name)).output_schema is None  # type: ignore[union-attr] # it exists
    assert (await mcp.call_tool("listed", {"upto": 2})).structured_content == {"result": [0, 1]}


def test_the_types_of_a_generator_must_be_known() -> None:
    with pytest.raises(RegistrationError, match="annotation of the generator unknown uses an unknown name"):

        @FastMCP("Numbers").tool
        def unknown(upto: "Missing") -> Iterator[int]:  # type: ignore[name-defined] # noqa: F821, UP037 - what is tested
            yield 1


async def test_rest_of_a_path_is_a_text_for_a_parameter_without_a_type() -> None:
    joining = FastMCP("Files")

    @joining.resource("file://{path*}")
    def untyped(path):  # type: ignore[no-untyped-def]
        return repr(path)

    @joining.resource("list://{path*}")
    async def typed(path: list[str]) -> str:
        return repr(path)

    @joining.resource("async://{path*}")
    async def waiting(path):  # type: ignore[no-untyped-def]
        return repr(path)

    assert (await joining.read_resource("file://a/b")).text == "'a/b'"
    assert (await joining.read_resource("async://a/b")).text == "'a/b'"
    assert (await joining.read_resource("list://a/b")).text == "['a', 'b']"


async def test_completion_is_a_decorator_with_and_without_parentheses() -> None:
    for is_called in (True, False):
        mcp = FastMCP("Greetings")

        @mcp.prompt
        def greet(name: str) -> str:
            return name

        def complete(ref: Any, argument: Any, context: Any) -> Any:
            return SimpleNamespace(values=[f"{argument.value}nn"], total=None)

        decorator = mcp.completion() if is_called else mcp.completion
        assert decorator(complete) is complete
        async with Client(mcp) as client:
            answer = await client.complete({"type": "ref/prompt", "name": "greet"}, "name", "A")
            assert list(answer.values) == ["Ann"]


def test_decorators_refuse_what_they_can_not_register() -> None:
    mcp = FastMCP("Server")
    decorators: list[Any] = [mcp.tool, mcp.prompt, mcp.resource("text://a")]
    for decorate in decorators:
        with pytest.raises(TypeError, match="@classmethod above"):
            decorate(classmethod(print))
    with pytest.raises(TypeError, match="Cannot specify both a name"):
        mcp.tool("first", name="second")
    with pytest.raises(TypeError, match="The @resource decorator was used incorrectly"):
        mcp.resource(print)  # type: ignore[arg-type]


@pytest.mark.parametrize("server_class", [FastMCP, MCPServer])
async def test_programs_describe_the_server_by_its_low_level_server(server_class: type[FastMCP]) -> None:
    mcp = server_class("c")
    default = mcp.version
    low_level = mcp._mcp_server
    low_level.version, low_level.instructions = "7.1", "Ask first."
    low_level.website_url = "https://example.com/c"
    assert (mcp.version, low_level.version, low_level.name) == ("7.1", "7.1", "c")
    for revision in ("2025-11-25", "2026-07-28"):
        async with Client(mcp, revision=revision) as client:
            info = client.server_info
            assert (info["name"], info["version"], info["websiteUrl"]) == ("c", "7.1", "https://example.com/c")
            assert client.instructions == "Ask first."
    low_level.version = low_level.website_url = None
    assert (mcp.version, low_level.website_url) == (default, None)
    with pytest.raises(AttributeError, match="lifespan"):
        low_level.lifespan = None  # type: ignore[attr-defined]
