"""Templates, the policy for values of URIs, and completions in compat, as clients see them."""

from __future__ import annotations

import dataclasses
import functools
import json
from typing import Any

import pytest

from funcmcp import MCPError
from funcmcp.compat import (
    INHERIT_SECURITY,
    FastMCP,
    MCPServer,
    NotFoundError,
    ResourceSecurity,
    ResourceSecurityError,
    ResourceTemplate,
    prompt,
    resource,
    tool,
)
from funcmcp.compat.fastmcp.decorators import get_fastmcp_meta
from funcmcp.compat.fastmcp.prompts.function_prompt import PromptMeta
from funcmcp.compat.fastmcp.resources.function_resource import ResourceMeta
from funcmcp.compat.fastmcp.tools.function_tool import ToolMeta
from funcmcp.testing import Client

pytestmark = pytest.mark.branches("Templates have variables of every kind.")


def two(a: str, b: str = "-") -> list[str]:
    return [a, b]


def tags(a: str, b: list[str] | None = None) -> Any:
    return [a, b]


async def read(mcp: FastMCP, uri: str) -> Any:
    async with Client(mcp) as client:
        return json.loads((await client.read_resource(uri)).text)


@pytest.mark.parametrize(
    ("template", "function", "uri", "expected"),
    [
        ("x://{a}{?b}", two, "x://1?b=2", ["1", "2"]),
        ("x://{a}{&b}", two, "x://1?b=2", ["1", "2"]),
        ("x://{a}{?b}/end", two, "x://1/end?b=2", ["1", "2"]),
        ("x://{a}{?b}", tags, "x://1?b=2,3%2C4", ["1", ["2", "3,4"]]),
        ("x://{a}{?b*}", tags, "x://1?b=2&b=3", ["1", ["2", "3"]]),
        ("x://{a*}", two, "x://1/2/3", ["1/2/3", "-"]),
        ("x://café/{a}", two, "x://café/1", ["1", "-"]),
        ("x://café/{a}", two, "x://caf%c3%a9/1", ["1", "-"]),
        ("x://my docs/{a}", two, "x://my%20docs/1", ["1", "-"]),
    ],
)
async def test_templates_are_read(template: str, function: Any, uri: str, expected: Any) -> None:
    mcp = FastMCP("t")
    mcp.resource(template)(function)
    parent = FastMCP("parent")
    parent.mount(mcp, "p")
    assert await read(mcp, uri) == expected
    assert await read(parent, uri.replace("x://", "x://p/")) == expected


async def test_names_with_hyphens_are_read_and_completed() -> None:
    mcp = FastMCP("t")
    mcp.resource("users://{user-id}", name="user")(lambda user_id: [user_id])
    mcp.completion(lambda ref, argument, context: [argument.name])
    assert await read(mcp, "users://7") == ["7"]
    async with Client(mcp) as client:
        template = (await client.list_resource_templates())[0].uri_template
        assert template == "users://{user-id}"
        completed = await client.complete({"type": "ref/resource", "uri": template}, "user-id", "")
    assert list(completed.values) == ["user-id"]


def positional(a: str, /) -> str:
    return a


def several(*a: str) -> str:
    return a[0]


def number(a: int) -> int:
    return a


@pytest.mark.parametrize(
    ("uri", "function", "message"),
    [
        ("x://{a}", positional, "positional-only parameters are not supported as resource templates"),
        ("x://{a}", several, r"Functions with \*args are not supported as resource templates"),
        ("x://{+a}", number, "level-3 operators"),
        ("x://{/a}", number, "level-3 operators"),
        ("x://{a,b}", two, "Set expansion syntax"),
        ("x://{a-b}/{a_b}", two, "both normalize to"),
        ("x://y", number, "must contain at least one parameter"),
        ("x://y{?a}", number, "must be optional function parameters with default values"),
        ("x://{b}", two, "must be a subset of the URI path parameters"),
        ("x://{a}/{c}", two, "must be a subset of the function arguments"),
        ("x://{a}{?b*}", two, "must accept a list"),
    ],
)
def test_templates_that_fastmcp_refuses_are_refused(uri: str, function: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        FastMCP("t").resource(uri)(function)


@pytest.mark.parametrize("text", ["on", "t", "2", "banana"])
async def test_only_some_texts_are_booleans(text: str) -> None:
    mcp = FastMCP("t")

    @mcp.resource("x://{a}{?b}")
    def flag(a: str, b: bool = False) -> list[bool]:
        return [b]

    assert await read(mcp, "x://1?b=Yes") == [True]
    with pytest.raises(MCPError, match="Invalid boolean value for b"):
        await read(mcp, f"x://1?b={text}")


NONE = {"resource_security": None}
EXEMPT = ResourceSecurity(exempt_params={"path"})


@pytest.mark.parametrize(
    ("options", "security", "uri", "is_read"),
    [
        ({}, INHERIT_SECURITY, "f://a/b", True),
        ({}, INHERIT_SECURITY, "f://../b", False),
        ({}, INHERIT_SECURITY, "f://%2Fetc", False),
        ({}, INHERIT_SECURITY, "f://a%5C..%5C..%5Cb", False),
        ({}, INHERIT_SECURITY, "f://a%00", False),
        ({}, None, "f://../b", True),
        ({}, EXEMPT, "f://../b", True),
        ({}, ResourceSecurity(reject_path_traversal=False), "f://../b", True),
        ({}, ResourceSecurity(reject_path_traversal=False), "f://%2Fetc", False),
        (NONE, INHERIT_SECURITY, "f://../b", True),
        (NONE, ResourceSecurity(), "f://../b", False),
        ({"resource_security": EXEMPT}, INHERIT_SECURITY, "f://../b", True),
    ],
)
async def test_the_policy_for_values_applies_to_reads(
    options: dict[str, Any], security: Any, uri: str, is_read: bool
) -> None:
    mcp = FastMCP("t", **options)
    mcp.resource("f://{path*}", security=security)(listed)
    if is_read:
        assert await read(mcp, uri)
        return
    with pytest.raises(MCPError, match="Resource not found"):
        await read(mcp, uri)
    with pytest.raises(ResourceSecurityError):
        await mcp.read_resource(uri)


@pytest.mark.parametrize(
    ("child", "security", "is_read"), [(NONE, INHERIT_SECURITY, False), ({}, None, True), ({}, EXEMPT, True)]
)
async def test_the_policy_of_a_server_applies_to_mounted_ones(
    child: dict[str, Any], security: Any, is_read: bool
) -> None:
    mounted, parent = FastMCP("child", **child), FastMCP("parent")
    mounted.resource("f://{path*}", security=security)(listed)
    parent.mount(mounted)
    if is_read:
        assert await read(parent, "f://../b") == ["../b"]
    else:
        with pytest.raises(ResourceSecurityError):
            await parent.read_resource("f://../b")


async def test_the_policy_of_the_sdk_applies_to_reads() -> None:
    mcp = MCPServer("t")
    mcp.resource("f://{path}", security=EXEMPT)(single)
    mcp.resource("g://{path}")(single)
    async with Client(mcp) as client:
        assert (await client.read_resource("f://..")).text == ".."
        with pytest.raises(MCPError, match="Unknown resource"):
            await client.read_resource("g://..")


def listed(path: str) -> list[str]:
    return [path]


def single(path: str) -> str:
    return path


async def test_a_template_has_the_policy_of_its_server_unless_it_has_its_own() -> None:
    inheriting = ResourceTemplate.from_function(single, "f://{path}")
    assert inheriting.security is INHERIT_SECURITY
    assert inheriting.resolve_security(EXEMPT) is EXEMPT
    assert ResourceTemplate.from_function(single, "f://{path}", security=None).resolve_security(EXEMPT) is None
    with pytest.raises(NotFoundError):
        await FastMCP("t").read_resource("f://a")


@pytest.mark.parametrize(
    ("reference", "name", "expected"),
    [
        ({"type": "ref/prompt", "name": "poem"}, "topic", ["topic"]),
        ({"type": "ref/prompt", "name": "poem"}, "other", ["other"]),
        ({"type": "ref/prompt", "name": "absent"}, "topic", []),
        ({"type": "ref/resource", "uri": "x://{y}"}, "y", []),
    ],
)
async def test_completions_of_what_a_server_does_not_have_are_empty(
    reference: dict[str, str], name: str, expected: list[str]
) -> None:
    mcp = FastMCP("t")
    mcp.prompt(lambda topic: topic, name="poem")
    mcp.completion()(lambda ref, argument, context: [argument.name])
    async with Client(mcp) as client:
        assert list((await client.complete(reference, name, "")).values) == expected


async def test_a_completion_is_a_list_and_not_a_text() -> None:
    mcp = FastMCP("t")
    mcp.prompt(lambda topic: topic, name="poem")
    mcp.add_completion_handler(lambda ref, argument, context: "text")
    async with Client(mcp) as client:
        with pytest.raises(MCPError):
            await client.complete({"type": "ref/prompt", "name": "poem"}, "topic", "")


@pytest.mark.parametrize(
    ("uri", "listed_uri"),
    [
        ("http://Example.test", "http://example.test/"),
        ("file:///read me.txt", "file:///read%20me.txt"),
        ("data://Config/a", "data://Config/a"),
        ("menu://today", "menu://today"),
    ],
)
async def test_uris_of_resources_have_the_form_of_fastmcp(uri: str, listed_uri: str) -> None:
    mcp = FastMCP("t")
    mcp.resource(uri, name="one")(lambda: "1")
    async with Client(mcp) as client:
        assert [resource.uri for resource in await client.list_resources()] == [listed_uri]
        assert (await client.read_resource(listed_uri)).text == "1"


@pytest.mark.parametrize("uri", ["invalid", "http://"])
def test_a_text_that_is_not_a_uri_is_refused(uri: str) -> None:
    with pytest.raises(ValueError, match="Input should be a valid URL"):
        FastMCP("t").resource(uri, name="one")(lambda: "1")


@resource("x://marked", title="Marked")
def marked() -> str:
    return "1"


async def test_a_marked_function_is_a_resource_of_its_own_name() -> None:
    mcp = FastMCP("t")
    mcp.add_resource(marked)
    async with Client(mcp) as client:
        assert [(item.name, item.title) for item in await client.list_resources()] == [("marked", "Marked")]
    mark: Any = marked
    assert (mark.__fastmcp__.title, mark.__fastmcp__.tags) == ("Marked", None)


async def test_keywords_take_the_variables_of_a_path() -> None:
    mcp = FastMCP("t")

    @mcp.resource("x://{a}/{b}/{c-d}")
    def names(a: str, **others: int) -> Any:
        return [a, others]

    assert await read(mcp, "x://1/2/3") == ["1", {"b": 2, "c_d": 3}]


async def test_instructions_can_be_changed_and_private_meta_is_not_shown() -> None:
    mcp = FastMCP("t", instructions="one")
    mcp.instructions = "two"
    mcp.resource("x://a", name="a", meta={"own": 1, "fastmcp": {"_internal": 2}})(lambda: "1")
    async with Client(mcp) as client:
        assert (mcp.instructions, client.instructions) == ("two", "two")
        [listed] = await client.list_resources()
        part = (await client.read_resource("x://a"))["contents"][0]
    assert "_internal" not in str(listed)
    assert part["_meta"] == {"own": 1}


@pytest.mark.parametrize(
    ("decorator", "kind", "options"),
    [
        (tool, ToolMeta, {"timeout": 5.0, "exclude_args": ["b"]}),
        (prompt, PromptMeta, {"title": "Title"}),
        (resource("a://b"), ResourceMeta, {}),
    ],
)
def test_what_a_decorator_says_is_an_attribute_of_the_function(decorator: Any, kind: Any, options: Any) -> None:
    decorated = decorator(**options)(lambda: "a") if options else decorator(lambda: "a")
    mark: Any = get_fastmcp_meta(functools.wraps(decorated)(lambda: "b"))
    assert isinstance(mark, kind)
    assert (mark.name, mark.enabled, mark.options) == (None, True, options)
    changed = dataclasses.replace(mark, name="c", description="Changed.", tags={"new"})
    component = changed.component(lambda: "a")
    assert (component.name, component.description, component.tags) == ("c", "Changed.", {"new"})
    assert get_fastmcp_meta(print) is get_fastmcp_meta(5) is None
