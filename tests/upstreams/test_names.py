"""Names, templates and choices of an upstream's features."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from funcmcp import MCPServer
from funcmcp._authoring.signatures.naming import is_name
from funcmcp._protocol.uri_template import InvalidTemplateError, URITemplate
from funcmcp._server.catalog.features import Prompt, Resource, Tool
from funcmcp._state import line_limit
from funcmcp._upstreams import names as names_module
from funcmcp._upstreams.names import (
    AnyTemplate,
    NameLengths,
    Selection,
    prompt_name,
    short_name,
    template_of,
    tool_name,
)
from funcmcp.client import Client
from funcmcp.upstreams import Upstream
from tests.server.parts import tool as local_tool
from tests.upstreams.scripted_lists import Scripted, tool

LONG = "a" * 60


@given(st.text(min_size=1, max_size=300))
def test_each_name_becomes_a_name_that_the_specification_allows(name: str) -> None:
    assert is_name(tool_name(name))
    assert is_name(name) == (tool_name(name) == name)
    assert prompt_name(name).isprintable()


@given(st.text(min_size=1, max_size=200), st.text(min_size=1, max_size=200))
def test_different_names_stay_different(first: str, second: str) -> None:
    if first != second:
        assert tool_name(first) != tool_name(second)
        assert short_name(first) != short_name(second)


@pytest.mark.parametrize(("name", "begin"), [("get weather", "get_weather_"), ("a/b:c", "a_b_c_"), ("日本", "tool_")])
def test_a_name_with_other_characters_keeps_what_can_stay(name: str, begin: str) -> None:
    assert tool_name(name).startswith(begin)
    assert tool_name(name) == tool_name(name)


def test_a_long_name_is_cut_and_gets_a_hash_of_all_of_it() -> None:
    first, second = short_name("a" * 80), short_name("a" * 81)
    assert len(first) == len(second) == 64
    assert first != second
    assert short_name("a" * 64) == "a" * 64


async def test_prompts_and_tools_with_other_characters_can_be_used() -> None:
    upstream = Scripted(
        {
            "tools/list": {"tools": [tool("get weather")]},
            "prompts/list": {"prompts": [{"name": "Code Review"}, {"name": "a\nb"}]},
            "tools/call": lambda params: {"content": [{"type": "text", "text": params["name"]}]},
            "prompts/get": lambda params: {
                "messages": [{"role": "user", "content": {"type": "text", "text": params["name"]}}]
            },
        }
    )
    mcp = MCPServer("gateway")
    mcp.mount(Upstream(upstream), prefix="up")
    async with Client(mcp) as client:
        (name,) = [item.name for item in await client.list_tools()]
        assert (await client.call_tool(name)).text == "get weather"
        assert "up_Code Review" in [item.name for item in await client.list_prompts()]
        for prompt in await client.list_prompts():
            text = (await client.get_prompt(prompt.name)).messages[0]["content"]["text"]
            assert text in {"Code Review", "a\nb"}


async def test_short_names_depend_on_the_prefix_and_the_name_only(caplog: pytest.LogCaptureFixture) -> None:
    results: list[list[str]] = []
    for tools in ([tool(LONG)], [tool("other"), tool(LONG)]):
        mcp = MCPServer("gateway")
        mcp.mount(Upstream(Scripted({"tools/list": {"tools": tools}}), short_names=True), prefix="documents")
        results.append([item.name for item in await mcp.list_tools()])
    assert results[0][0] == results[1][1] == short_name(f"documents_{LONG}")
    assert results[1][0] == "documents_other"
    assert "characters" not in caplog.text


async def test_a_tool_with_a_short_name_can_be_called() -> None:
    upstream = Scripted(
        {
            "tools/list": {"tools": [tool(LONG)]},
            "tools/call": lambda params: {"content": [{"type": "text", "text": params["name"]}]},
        }
    )
    mcp = MCPServer("gateway")
    mcp.mount(Upstream(upstream, short_names=True), prefix="documents")
    async with Client(mcp) as client:
        assert (await client.call_tool(short_name(f"documents_{LONG}"))).text == LONG


async def test_a_long_name_is_a_warning_that_names_the_short_one(caplog: pytest.LogCaptureFixture) -> None:
    mcp = MCPServer("gateway")
    mcp.mount(Upstream(Scripted({"tools/list": {"tools": [tool(LONG)]}}), name="docs"), prefix="documents")
    with caplog.at_level(logging.WARNING):
        assert [item.name for item in await mcp.list_tools()] == [f"documents_{LONG}"]
        await mcp.list_tools()
    assert caplog.text.count("has 70 characters") == 1
    assert short_name(f"documents_{LONG}") in caplog.text


def test_the_length_of_a_name_is_known_before_it_was_short() -> None:
    lengths = NameLengths("docs", shortens=True)
    feature = local_tool("b" * 90)
    shorter: Any = lengths(feature)
    assert shorter.name == shorter.describe()["name"] == short_name("b" * 90)
    assert lengths.source_key(Tool, shorter.name) == "b" * 90
    assert lengths.source_key(Prompt, "other") == "other"
    assert lengths.source_key(Resource, shorter.name) == shorter.name


VALUES: dict[str, Any] = {
    "var": "value",
    "hello": "Hello World!",
    "path": "/foo/bar",
    "list": ["red", "green", "blue"],
    "x": "1024",
    "y": "768",
    "empty": "",
}


@pytest.mark.parametrize(
    ("expression", "expanded"),
    [
        ("{var}", "value"),
        ("{hello}", "Hello%20World%21"),
        ("{+path}/here", "/foo/bar/here"),
        ("{#path,x}", "#/foo/bar,1024"),
        ("{.list*}", ".red.green.blue"),
        ("{/list*,x}", "/red/green/blue/1024"),
        ("{;x,y,empty}", ";x=1024;y=768;empty"),
        ("{?x,y,empty}", "?x=1024&y=768&empty="),
        ("?fixed=yes{&x}", "?fixed=yes&x=1024"),
        ("{var:3}", "val"),
        ("{list}", "red,green,blue"),
        ("{?list*}", "?list=red&list=green&list=blue"),
        ("{undef}{?undef}", ""),
        ("{x}{y}", "1024768"),
    ],
)
def test_templates_expand_as_in_rfc_6570(expression: str, expanded: str) -> None:
    """The examples are those of RFC 6570 section 3.2."""
    template = AnyTemplate(f"data://a/{expression}")
    uri = template.expand(VALUES)
    assert uri == f"data://a/{expanded}"
    assert template.match(uri) is not None


def test_a_template_of_any_expression_matches_its_own_uris_only() -> None:
    template = AnyTemplate("DATA://a{/b,c}/end{?q}")
    assert template.variables == ("b", "c", "q") == template.optional
    assert template.exploded == frozenset()
    assert template.match("data://a/1/2/end?q=3") == {}
    for uri in ("data://b/1/end", "data://a/1", "data://" + "a" * 9000, "data://a"):
        assert template.match(uri) is None
    assert AnyTemplate("memo:fixed").match("memo:fixed/more") is None


@pytest.mark.parametrize("text", ["{a}", "data://{", "data://{!a}", "data:/}/{a}"])
def test_a_text_that_is_no_template_is_refused(text: str) -> None:
    with pytest.raises(InvalidTemplateError):
        template_of(text)


def test_a_usual_template_is_read_as_those_of_this_server() -> None:
    assert type(template_of("data://{a}")) is URITemplate
    assert type(template_of("data://{a}{b}")) is AnyTemplate


async def test_only_chosen_features_are_used(caplog: pytest.LogCaptureFixture) -> None:
    upstream = Scripted(
        {
            "tools/list": {"tools": [tool("search"), tool("get_a"), tool("get_b"), tool("delete")]},
            "resources/list": {"resources": [{"uri": "memo://[x]", "name": "x"}, {"uri": "memo://y", "name": "y"}]},
        }
    )
    mcp = MCPServer("gateway")
    mcp.mount(Upstream(upstream, only=["search", "get_*", "memo://[x]", "serach"], name="docs"), prefix="up")
    assert [item.name for item in await mcp.list_tools()] == ["up_search", "up_get_a", "up_get_b"]
    assert [item.uri for item in await mcp.list_resources()] == ["memo://up/[x]"]
    assert "docs has nothing with the names in only=: serach." in caplog.text
    with pytest.raises(Exception, match="Resource not found"):
        await mcp.read_resource("memo://up/y")


async def test_a_function_of_the_definition_chooses() -> None:
    upstream = Scripted({"tools/list": {"tools": [tool("a", annotations={"readOnlyHint": True}), tool("b")]}})
    mcp = MCPServer("gateway")
    mcp.mount(Upstream(upstream, only=lambda item: item.get("annotations", {}).get("readOnlyHint", False)))
    assert [item.name for item in await mcp.list_tools()] == ["a"]


@pytest.mark.parametrize("only", ["search", [1]])
def test_a_choice_of_another_type_is_refused(only: Any) -> None:
    with pytest.raises(TypeError, match="only= must be a list of names"):
        Selection(only, "docs")


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"timeouts": 30}, r"timeouts must be an UpstreamTimeouts, such as UpstreamTimeouts\(request=60\); got 30\."),
        ({"limits": {"processes": 8}}, r"limits must be an UpstreamLimits, such as UpstreamLimits\(processes=8\);"),
    ],
)
def test_options_of_another_type_are_refused(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(TypeError, match=problem):
        Upstream("https://example.com/mcp", **options)


@pytest.mark.parametrize("shortens", [False, True])
def test_long_names_that_change_without_end_are_bounded(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, *, shortens: bool
) -> None:
    monkeypatch.setattr(line_limit, "MAX_SUBJECTS", 3)
    monkeypatch.setattr(names_module, "_MAX_SHORTENED", 3)
    lengths = NameLengths("docs", shortens=shortens)
    for number in range(10):
        lengths(local_tool(f"{LONG}_number_{number}"))
    assert len(caplog.records) == (0 if shortens else 3 + 1)
    assert list(lengths._names.values()) == [f"{LONG}_number_{number}" for number in (7, 8, 9)] * shortens
