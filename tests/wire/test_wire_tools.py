"""Arguments, names and headers of tools, as far as the wire shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pydantic import BaseModel

from funcmcp import MCPServer, RegistrationError
from tests import rules
from tests.wire.peer import ALL, ERAS, PER_REQUEST, connect

if TYPE_CHECKING:
    from tests.wire.offering import Offering

pytestmark = pytest.mark.every_python("On Python 3.13 these tests send POSTs to the way without ASGI.")


@rules.verifies(rules.TRAP_14, rules.THREAT_21)
@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({}, ["a", "b"]),
        ({"a": 1}, ["b"]),
        ({"a": "1", "b": 2}, ["a"]),
        ({"a": True, "b": 2}, ["a"]),
        ({"a": 1.5, "b": None}, ["a", "b"]),
        ({"a": [], "b": {}}, ["a", "b"]),
        ({"A": 1, "b": 2}, ["a"]),
        ({"a": "secret-of-the-house" * 100, "b": 2}, ["a"]),
    ],
)
@pytest.mark.parametrize("revision", ALL)
async def test_wrong_arguments_are_an_error_result_that_names_them_all(
    offering: Offering, revision: str, arguments: dict[str, Any], named: list[str]
) -> None:
    """The invalid values are not repeated."""
    peer = await connect(offering.app, revision)
    answer = await peer.call("add", arguments)
    assert answer.status == 200
    assert answer.result["isError"] is True
    assert [name for name in ("a", "b") if f"{name}:" in answer.text] == named
    assert b"secret-of-the-house" not in answer.body
    await peer.works()


@rules.verifies(rules.TRAP_14, rules.H16, rules.THREAT_36)
@pytest.mark.parametrize("name", ["unheard_of", "ADD", "add2", ""])
@pytest.mark.parametrize("revision", ALL)
async def test_an_unknown_tool_is_invalid_params_and_no_result(offering: Offering, revision: str, name: str) -> None:
    answer = await (await connect(offering.app, revision)).call(name)
    assert answer.error["code"] == -32602


@rules.verifies(rules.TRAP_14)
@pytest.mark.parametrize("revision", ERAS)
async def test_a_value_outside_its_constraint_is_an_error_result(offering: Offering, revision: str) -> None:
    peer = await connect(offering.app, revision)
    assert (await peer.call("checked", {"count": 1})).text == "1 a a"
    for arguments in ({"count": 0}, {"count": 10**400 * -1}, {"count": 1, "word": "b"}):
        assert (await peer.call("checked", arguments)).result["isError"] is True


@rules.verifies(rules.THREAT_28)
@pytest.mark.parametrize("length", [30, 1000, 100_000])
@pytest.mark.parametrize("revision", ERAS)
async def test_a_catastrophic_pattern_is_linear(offering: Offering, revision: str, length: int) -> None:
    """`^(a+)+$` is matched against many a and one b."""
    peer = await connect(offering.app, revision)
    answer = await peer.call("checked", {"count": 1, "word": "a" * length + "b"})
    assert answer.result["isError"] is True
    await peer.works()


class Left(BaseModel):
    x: Left | Right | int


class Right(BaseModel):
    x: Left | Right | int


def measure(tree: Left | Right) -> int:
    """Measure a tree of two kinds that look the same."""
    return 1 if isinstance(tree.x, int) else 1 + measure(tree.x)


@rules.verifies(rules.THREAT_28)
@pytest.mark.parametrize("leaf", [1, "no number"])
@pytest.mark.parametrize("revision", ERAS)
async def test_a_value_with_too_many_ways_to_read_it_is_an_error_result(
    offering: Offering, revision: str, leaf: object
) -> None:
    """A recursive union has 2 to the power of 58 possible readings."""
    offering.app.tool(measure)
    peer = await connect(offering.app, revision)
    deep: Any = {"x": leaf}
    for _ in range(57):
        deep = {"x": deep}
    answer = await peer.call("measure", {"tree": deep})
    assert answer.result["isError"] is True
    assert "nested too deeply in types that contain themselves" in answer.text
    assert (await peer.call("measure", {"tree": {"x": {"x": {"x": 1}}}})).text == "3"
    await peer.works()


@rules.verifies(rules.THREAT_28)
@pytest.mark.parametrize("revision", ERAS)
async def test_a_prompt_s_argument_with_too_many_ways_to_read_it_is_refused(offering: Offering, revision: str) -> None:
    """JSON in a string may be nested more deeply than the message."""

    @offering.app.prompt
    def describe(tree: Left | Right) -> str:
        return f"Describe {measure(tree)} levels"

    peer = await connect(offering.app, revision)
    params = {"name": "describe", "arguments": {"tree": '{"x":' * 150 + "1" + "}" * 150}}
    answer = await peer.request("prompts/get", params)
    assert answer.error["code"] == -32602
    assert "nested too deeply in types that contain themselves" in answer.error["message"]
    params["arguments"] = {"tree": '{"x": {"x": 1}}'}
    response = await peer.request("prompts/get", params)
    assert response.result["messages"][0]["content"]["text"] == "Describe 2 levels"
    await peer.works()


@rules.verifies(rules.THREAT_28)
@pytest.mark.parametrize("code", ["echo\n", "\necho", "echo\r", "echo\x00", "echo\u2028"])
@pytest.mark.parametrize("revision", ERAS)
async def test_the_end_of_a_pattern_is_the_end_of_the_text(offering: Offering, revision: str, code: str) -> None:
    """`$` does not match before a newline."""
    answer = await (await connect(offering.app, revision)).call("checked", {"count": 1, "code": code})
    assert answer.result["isError"] is True


@rules.verifies(rules.THREAT_36)
@pytest.mark.parametrize("name", ["", "a b", "a/b", "é", "a" * 129, "a\n", "a:b", "\uff41", "a\x00"])
def test_a_name_outside_the_specifications_set_is_refused_at_registration(name: str) -> None:
    """A name has 1 to 128 characters of `[A-Za-z0-9_.-]`."""
    app = MCPServer("names")
    with pytest.raises(RegistrationError):
        app.tool(name)(lambda: None)
    with pytest.raises(RegistrationError):
        app.tool(name=name)(lambda: None)


@rules.verifies(rules.THREAT_36)
@pytest.mark.parametrize("name", ["add", "ADD", "Add"])
def test_a_name_that_is_taken_or_looks_like_one_is_refused_at_registration(offering: Offering, name: str) -> None:
    """Names must differ by more than case."""
    with pytest.raises(RegistrationError):
        offering.app.tool(name)(lambda: None)


@rules.verifies(rules.TRAP_23, rules.D8, rules.THREAT_32)
@pytest.mark.parametrize(
    "properties",
    [
        {"a": {"type": "string", "x-mcp-header": ""}},
        {"a": {"type": "string", "x-mcp-header": "Two Words"}},
        {"a": {"type": "string", "x-mcp-header": "Region\r\nX"}},
        {"a": {"type": "string", "x-mcp-header": "R\xe9gion"}},
        {"a": {"type": "string", "x-mcp-header": 1}},
        {"a": {"type": "number", "x-mcp-header": "Region"}},
        {"a": {"type": "array", "x-mcp-header": "Region"}},
        {"a": {"type": ["string", "null"], "x-mcp-header": "Region"}},
        {"a": {"x-mcp-header": "Region"}},
        {"a": {"type": "string", "x-mcp-header": "Region"}, "b": {"type": "string", "x-mcp-header": "REGION"}},
        {"a": {"type": "array", "items": {"type": "string", "x-mcp-header": "Region"}}},
        {"a": {"anyOf": [{"type": "string", "x-mcp-header": "Region"}]}},
    ],
)
def test_an_invalid_header_annotation_is_refused_at_registration(properties: dict[str, Any]) -> None:
    async def region(arguments: dict[str, Any]) -> None: ...

    with pytest.raises(RegistrationError):
        MCPServer("headers").tool(input_schema={"type": "object", "properties": properties})(region)


@rules.verifies(rules.TRAP_23, rules.D8)
async def test_a_header_is_validated_by_the_schema_that_the_caller_was_shown(offering: Offering) -> None:
    peer = await connect(offering.app, PER_REQUEST)
    tools = (await peer.request("tools/list")).result["tools"]
    (schema,) = [tool["inputSchema"] for tool in tools if tool["name"] == "region"]
    values = {"string": "x", "integer": 1, "boolean": True}
    annotated = {
        name: (member["x-mcp-header"], values[member["type"]])
        for name, member in schema["properties"].items()
        if "x-mcp-header" in member
    }
    assert len(annotated) == 3
    for name, (header, value) in annotated.items():
        mirrored = {f"Mcp-Param-{header}": str(value).lower()}
        assert (await peer.call("region", {name: value}, headers=mirrored)).status == 200
        assert (await peer.call("region", {name: value})).outcome == (400, -32020)


@rules.verifies(rules.J6, rules.V4)
@pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25", PER_REQUEST])
async def test_structured_content_stands_beside_its_text(offering: Offering, revision: str) -> None:
    """The result has both if the revision has both."""
    result = (await (await connect(offering.app, revision)).call("add", {"a": 1, "b": 2})).result
    assert result["structuredContent"] == {"result": 3}
    assert result["content"] == [{"type": "text", "text": "3"}]
