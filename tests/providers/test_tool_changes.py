"""Tools with other names, descriptions and arguments, and functions around tools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, cast

import pytest

from funcmcp import Context, Header, MCPError, MCPServer, RegistrationError, ToolError
from funcmcp.content import ToolResult
from funcmcp.testing import Client, accept
from funcmcp.transforms import ArgumentChange, ToolChange, ToolTransform, Wrap
from tests import schemas
from tests.server.parts import tool

if TYPE_CHECKING:
    from funcmcp.client import CallToolResult

EVERY_REVISION = pytest.mark.parametrize("revision", schemas.REVISIONS)


class Item(NamedTuple):
    name: str
    amount: int


def search(*transforms: Any, **options: Any) -> MCPServer:
    mcp = MCPServer("search", **options)

    @mcp.tool(tags={"raw"})
    def run_query(
        q: Annotated[str, "The text."], index: str, items: list[Item] | None = None, limit: int = 10
    ) -> list[str]:
        """Run a query."""
        return [q, index, str(limit), str(items)]

    for transform in transforms:
        mcp.add_transform(transform)
    return mcp


CHANGE = ToolChange(
    "search",
    title="Search",
    description="Search for invoices.",
    tags={"public"},
    meta={"example.com/team": "billing"},
    arguments={
        "q": ArgumentChange("query", description="What to search for.", examples=["tea"]),
        "index": ArgumentChange(hide=True, default="invoices"),
        "items": ArgumentChange("parts"),
        "limit": ArgumentChange(default=3),
    },
)


@EVERY_REVISION
async def test_clients_see_the_changed_tool(revision: str) -> None:
    async with Client(search(ToolTransform({"run_query": CHANGE})), revision=revision) as client:
        [changed] = await client.list_tools()
        schemas.validate_as(changed, revision, "Tool")
        assert (changed.name, changed.description) == ("search", "Search for invoices.")
        properties = changed.input_schema["properties"]
        assert list(properties) == ["query", "parts", "limit"]
        assert properties["query"] == {"type": "string", "description": "What to search for.", "examples": ["tea"]}
        assert properties["limit"]["default"] == 3
        assert changed.input_schema["required"] == ["query"]
        result = await client.call_tool("search", {"query": "tea", "parts": [{"name": "a", "amount": 1}]})
        assert "invoices" in result.text
        assert "amount=1" in result.text
        assert "3" in result.text
        with pytest.raises(MCPError, match="Unknown tool: run_query"):
            await client.call_tool("run_query", {})


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({}, "query: is required"),
        ({"query": 1}, "query: must be a string, not a number"),
        ({"q": "tea"}, "q: is not an argument"),
        ({"query": "tea", "index": "secret"}, "index: is not an argument"),
        ({"query": "tea", "parts": [{"name": "a", "amount": "b"}]}, "parts[0].amount: must be an integer"),
        ({"querry": "tea"}, "Did you mean query?"),
        ({"query": "tea", "part": []}, "part: is not an argument"),
        ({"query": "tea", "indx": "x"}, "indx: is not an argument"),
    ],
)
async def test_errors_speak_of_the_arguments_that_clients_see(arguments: dict[str, Any], text: str) -> None:
    mcp = search(ToolTransform({"run_query": CHANGE}))
    result = await mcp.call_tool("search", arguments)
    assert result.is_error
    assert text in result.text
    assert "index?" not in result.text


async def test_tags_decide_as_those_of_the_changed_tool() -> None:
    mcp = search(ToolTransform({"run_query": CHANGE}))
    mcp.disable(tags={"raw"})
    assert len(await mcp.list_tools()) == 1
    mcp.disable(tags={"public"})
    assert await mcp.list_tools() == []


async def test_a_tool_can_be_hidden_and_get_a_version() -> None:
    mcp = search(ToolTransform({"run_query": ToolChange(enabled=False, version="2")}))
    assert await mcp.list_tools() == []
    mcp.enable({"run_query"})
    [shown] = await mcp.list_tools()
    assert shown.meta["fastmcp"]["version"] == "2"
    assert shown.description == "Run a query."


async def test_an_argument_can_become_required() -> None:
    mcp = search(ToolTransform({"run_query": ToolChange(arguments={"limit": ArgumentChange(required=True)})}))
    [changed] = await mcp.list_tools()
    assert changed.input_schema["required"] == ["q", "index", "limit"]
    assert "default" not in changed.input_schema["properties"]["limit"]
    result = await mcp.call_tool("run_query", {"q": "a", "index": "b"})
    assert (result.is_error, result.text) == (True, "limit: is required")


async def test_names_of_arguments_can_be_exchanged() -> None:
    swap = {"q": ArgumentChange("index"), "index": ArgumentChange("q")}
    mcp = search(ToolTransform({"run_query": ToolChange(arguments=swap)}))
    result = await mcp.call_tool("run_query", {"index": "text", "q": "place"})
    assert result.structured_content["result"][:2] == ["text", "place"]


async def test_a_tool_whose_arguments_are_all_hidden_requires_none() -> None:
    mcp = MCPServer("shop")
    schema = {"type": "object", "properties": {"text": True}, "required": ["text"]}
    mcp.tool("say", input_schema=schema)(lambda text: text)
    mcp.add_transform(ToolTransform({"say": ToolChange(arguments={"text": ArgumentChange(hide=True, default="hi")})}))
    [changed] = await mcp.list_tools()
    assert changed.input_schema == {"type": "object", "properties": {}}
    assert (await mcp.call_tool("say")).text == "hi"


async def test_headers_mirror_the_arguments_that_clients_see() -> None:
    mcp = MCPServer("shop")

    @mcp.tool
    def find(region: Annotated[str, Header("Region")], zone: Annotated[str, Header("Zone")] = "a") -> str:
        return f"{region} {zone}"

    change = {"region": ArgumentChange("area"), "zone": ArgumentChange(hide=True)}
    mcp.add_transform(ToolTransform({"find": ToolChange(arguments=change)}))
    changed = mcp._server.catalog.tools.get("find")
    assert changed is not None
    assert [(item.header, item.path) for item in changed.mirrored] == [("mcp-param-region", ("area",))]
    async with Client(mcp, revision="2026-07-28") as client:
        assert (await client.call_tool("find", {"area": "north"})).text == "north a"


async def test_a_task_checks_the_arguments_that_clients_see() -> None:
    mcp = MCPServer("shop")

    @mcp.tool(task="optional")
    async def find(region: str) -> str:
        return region

    mcp.add_transform(ToolTransform({"find": ToolChange(arguments={"region": ArgumentChange("area")})}))
    changed = mcp._server.catalog.tools.get("find")
    assert changed is not None
    assert changed.check is not None
    changed.check({"area": "north"})
    with pytest.raises(ToolError, match="area: must be a string"):
        changed.check({"area": 1})
    with pytest.raises(ToolError, match="region: is not an argument"):
        changed.check({"region": "north"})


def test_what_the_schema_does_not_say_has_the_names_that_clients_see() -> None:
    from funcmcp._server.catalog.features import LeftOut

    omissions = [
        LeftOut(("inputSchema", "properties", name, "pattern"), "x", "no client reads it") for name in ("a", "b", "c")
    ]
    omissions.append(LeftOut(("outputSchema", "pattern"), "x", "no client reads it"))
    plain = tool("find", left_out=lambda: omissions)
    change = {"a": ArgumentChange("first"), "b": ArgumentChange(hide=True)}
    changed: Any = ToolTransform({"find": ToolChange(arguments=change)})(plain)
    assert [omission.path[-2] for omission in changed.left_out()] == ["first", "c", "outputSchema"]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"qq": ArgumentChange("x")}, "the tool has no argument 'qq'"),
        ({"q": ArgumentChange("limit")}, "the tool has an argument 'limit' already"),
        ({"q": ArgumentChange(hide=True)}, "the hidden argument 'q' is required. Add default="),
    ],
)
async def test_a_change_that_does_not_fit_leaves_the_tool_out_and_fails_its_calls(
    arguments: dict[str, Any], text: str, caplog: pytest.LogCaptureFixture
) -> None:
    mcp = search(ToolTransform({"run_query": ToolChange(arguments=arguments)}))
    assert await mcp.list_tools() == []
    assert text in caplog.text
    assert (await mcp.call_tool("run_query", {"q": "a", "index": "b"})).is_error


async def test_a_wrong_value_of_a_hidden_argument_is_a_fault_of_the_server(caplog: pytest.LogCaptureFixture) -> None:
    mcp = search(ToolTransform({"run_query": ToolChange(arguments={"index": ArgumentChange(hide=True, default=1)})}))
    result = await mcp.call_tool("run_query", {"q": "a"})
    assert "error id" in result.text
    assert "hidden argument 'index' of run_query" in caplog.text


def test_wrong_changes_are_refused_at_once() -> None:
    with pytest.raises(ValueError, match="'a' and 'b' would both be called 'c'"):
        ToolTransform({"a": ToolChange("c"), "b": ToolChange("c")})
    with pytest.raises(ValueError, match="The arguments 'a' and 'b' of x would both be called 'c'"):
        ToolTransform({"x": ToolChange(arguments={"a": ArgumentChange("c"), "b": ArgumentChange("c")})})
    with pytest.raises(RegistrationError, match="'a b' is not a valid name"):
        ToolTransform({"x": ToolChange("a b")})
    with pytest.raises(RegistrationError, match="tags of x must be a set of strings"):
        ToolTransform({"x": ToolChange(tags="public")})
    with pytest.raises(ValueError, match="A required argument can't be hidden"):
        ArgumentChange(required=True, hide=True)
    with pytest.raises(ValueError, match="and has no default"):
        ArgumentChange(required=True, default=None)
    assert repr(ArgumentChange()).endswith("default=no value, hide=False, required=False, examples=None)")


def test_the_name_before_the_change_is_known() -> None:
    from funcmcp._server.catalog.features import Prompt, Tool

    transform = ToolTransform({"run_query": ToolChange("search")})
    assert transform.source_key(Tool, "search") == "run_query"
    assert transform.source_key(Prompt, "search") == "search"


async def in_upper_case(arguments: dict[str, Any], forward: Any) -> Any:
    result = await forward({**arguments, "text": arguments["text"].strip()})
    return result.text.upper()


@EVERY_REVISION
async def test_a_function_around_a_tool_changes_arguments_and_result(revision: str) -> None:
    mcp = MCPServer("shop")
    mcp.tool("say", input_schema={"type": "object", "properties": {"text": {"type": "string"}}})(lambda text: text)
    mcp.tool("other")(lambda: "other")
    mcp.prompt("say")(lambda: "Hello.")
    mcp.add_transform(Wrap(in_upper_case, {"say"}))
    async with Client(mcp, revision=revision) as client:
        assert (await client.call_tool("say", {"text": " hi "})).text == "HI"
        assert (await client.call_tool("other")).text == "other"
        assert (await client.call_tool("say", {"text": " hi "})).is_error is False


async def test_a_function_around_a_tool_returns_its_result_or_one_of_its_own() -> None:
    mcp = search()

    async def forward_twice(arguments: dict[str, Any], forward: Any) -> CallToolResult:
        assert (await forward(arguments)).structured_content["result"][0] == "a"
        result: CallToolResult = await forward({**arguments, "q": "b"})
        return result

    mcp.add_transform(Wrap(forward_twice, tags={"raw"}))
    result = await mcp.call_tool("run_query", {"q": "a", "index": "c"})
    assert result.structured_content["result"][0] == "b"

    async def own(_arguments: dict[str, Any], _forward: Any) -> ToolResult:
        return ToolResult("none", structured_content={"result": []})

    mcp.add_transform(Wrap(own))
    assert (await mcp.call_tool("run_query", {"q": "a", "index": "c"})).structured_content == {"result": []}


async def test_a_result_that_the_output_schema_forbids_is_a_fault_of_the_server(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def own(_arguments: dict[str, Any], _forward: Any) -> str:
        return "none"

    mcp = search(Wrap(own))
    assert (await mcp.call_tool("run_query", {"q": "a", "index": "c"})).is_error
    assert "run_query has an output schema" in caplog.text


async def test_a_function_around_a_mounted_tool_gets_its_result_and_its_errors() -> None:
    notes: list[Any] = []

    async def note(context: Any, call_next: Any) -> Any:
        notes.append(context.request.method)
        return await call_next(context)

    mounted, mcp = MCPServer("mounted", middleware=[note]), MCPServer("shop")

    @mounted.tool
    def say(text: str) -> str:
        if not text:
            raise MCPError(-1, "empty")
        return text

    mcp.mount(mounted, transforms=[Wrap(in_upper_case)])
    assert (await mcp.call_tool("say", {"text": "hi"})).text == "HI"
    with pytest.raises(MCPError, match="empty"):
        await mcp.call_tool("say", {"text": ""})
    assert notes == ["tools/call", "tools/call"]


@EVERY_REVISION
async def test_a_changed_tool_asks_the_user(revision: str) -> None:
    if revision < "2025-11-25":
        pytest.skip("Questions with URLs are newer.")
    mcp = MCPServer("shop")

    @mcp.tool
    async def pay(amount: int, context: Context) -> str:
        answer = await context.elicit_url("Pay", "https://example.com/pay")
        return f"{answer.action} {amount}"

    async def forward_only(arguments: dict[str, Any], forward: Any) -> Any:
        return await forward(arguments)

    mcp.add_transform(ToolTransform({"pay": ToolChange(arguments={"amount": ArgumentChange("euros")})}))
    mcp.add_transform(Wrap(forward_only))
    async with Client(mcp, revision=revision, elicit=accept({})) as client:
        assert (await client.call_tool("pay", {"euros": 3})).text == "accept 3"


async def test_a_person_sees_the_arguments_of_a_changed_tool_before_its_task_starts() -> None:
    questions, deleted = [], []

    async def answer(question: Any) -> Any:
        questions.append(question["message"])
        return {"action": "accept", "content": {"confirm": True}}

    mcp = MCPServer("shop")

    @mcp.tool(task="optional", confirm="Delete {path} in {place}?")
    def delete(path: str, place: str = "test") -> str:
        deleted.append((path, place))
        return "deleted"

    arguments = {"path": ArgumentChange("file"), "place": ArgumentChange(hide=True, default="production")}
    mcp.add_transform(ToolTransform({"delete": ToolChange("remove", arguments=arguments)}))
    mcp.task_tools()
    async with Client(mcp, elicit=answer) as client:
        started = await client.call_tool("start_remove", {"file": "a.txt"})
        assert started.structured_content is not None
        result = await client.call_tool("task_result", {"task_id": started.structured_content["task_id"]})
        assert result.text == "deleted"
        assert (await client.call_tool("start_remove", {"file": 1})).text.startswith("file: must be a string")
    assert questions == ["Delete a.txt in production?"]
    assert deleted == [("a.txt", "production")]


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_a_wrapped_tool_of_a_server_with_middleware_asks_the_user(revision: str) -> None:
    async def note(context: Any, call_next: Any) -> Any:
        return await call_next(context)

    mounted, mcp = MCPServer("mounted", middleware=[note]), MCPServer("shop")

    @mounted.tool(confirm="Delete {name}?")
    def delete(name: str) -> str:
        return f"deleted {name}"

    async def in_upper_case(arguments: Any, forward: Any) -> str:
        return str((await forward(arguments)).text).upper()

    mcp.mount(mounted, transforms=[Wrap(in_upper_case)])
    async with Client(mcp, revision=revision, elicit=accept(True)) as client:
        assert (await client.call_tool("delete", {"name": "tea"})).text == "DELETED TEA"


@pytest.mark.parametrize(
    ("create", "text"),
    [
        (
            lambda: ToolTransform(cast("Any", {"a": {"name": "b"}})),
            r"The change of 'a' must be a ToolChange\(...\), not dict",
        ),
        (
            lambda: ToolTransform({"a": ToolChange(arguments=cast("Any", {"q": "text"}))}),
            r"The change of the argument 'q' of 'a' must be an ArgumentChange\(...\), not str",
        ),
        (lambda: Wrap(cast("Any", {"a"})), r"Wrap takes an async function \(arguments, forward\); got set"),
    ],
)
def test_a_value_of_the_wrong_type_is_refused_when_the_transform_is_made(create: Any, text: str) -> None:
    with pytest.raises(TypeError, match=text):
        create()


async def test_a_plain_function_around_a_tool_is_an_error_that_says_so(caplog: pytest.LogCaptureFixture) -> None:
    mcp = search(Wrap(lambda _arguments, _forward: "done"))
    assert (await mcp.call_tool("run_query", {"q": "a", "index": "b"})).is_error
    assert "The function around run_query must be async. Write async def in place of def." in caplog.text


def test_a_tool_whose_calls_become_tasks_gets_no_version() -> None:
    mcp = MCPServer("shop")
    mcp.tool("report", task="optional")(lambda: "done")
    with pytest.raises(RegistrationError, match="report has task="):
        mcp.add_transform(ToolTransform({"report": ToolChange(version="2")}))


async def test_annotations_of_the_change_are_added_to_those_of_the_tool() -> None:
    mcp = MCPServer("Shop")

    @mcp.tool(title="Delete", destructive=True)
    def delete() -> None:
        """Delete it."""

    change = ToolChange(annotations={"destructiveHint": False, "idempotentHint": True, "x-risk": "low"})
    mcp.add_transform(ToolTransform({"delete": change}))
    [changed] = await mcp.list_tools()
    assert changed.annotations == {
        "title": "Delete",
        "destructiveHint": False,
        "idempotentHint": True,
        "x-risk": "low",
    }


def test_a_hint_of_a_change_is_true_or_false() -> None:
    with pytest.raises(
        TypeError, match=r"The annotation 'readOnlyHint' of 'search' must be True or False; got 'yes'\."
    ):
        ToolTransform({"search": ToolChange(annotations={"readOnlyHint": "yes"})})
