from __future__ import annotations

from typing import Annotated, Any

import pytest
from pydantic import BaseModel, ConfigDict, Field, with_config
from pydantic.dataclasses import dataclass
from typing_extensions import TypedDict

from funcmcp import MCPServer
from funcmcp._protocol.errors import ToolError
from funcmcp.compat import FastMCP
from funcmcp.testing import Client
from tests.authoring.tool_calls import call, run, schema_of, tool_of

pytestmark = pytest.mark.lowest("pydantic reads values, writes JSON and makes schemas.")

HEX = ConfigDict(val_json_bytes="hex", ser_json_bytes="hex")


class Hex(BaseModel):
    model_config = HEX
    data: bytes = b"\x00\xff"


@dataclass(config=HEX)
class HexDataclass:
    data: bytes


@with_config(HEX)
class HexDict(TypedDict):
    data: bytes


class URLBase64(BaseModel):
    model_config = ConfigDict(val_json_bytes="base64", ser_json_bytes="base64")
    data: bytes


class Text(BaseModel):
    model_config = ConfigDict(val_json_bytes="utf8", ser_json_bytes="utf8")
    data: Annotated[bytes, Field(min_length=2, max_length=8)]


class Plain(BaseModel):
    data: bytes
    hex: Hex | None = None


class NestedDict(TypedDict):
    data: bytes


class Outer(BaseModel):
    model_config = HEX
    items: list[bytes]
    plain: Plain
    nested: NestedDict


class ReadsHex(BaseModel):
    model_config = ConfigDict(val_json_bytes="hex")
    data: bytes


NESTED = {"items": ["00ff"], "plain": {"data": "AP8=", "hex": {"data": "00ff"}}, "nested": {"data": "00ff"}}
CASES: list[tuple[Any, Any, Any]] = [
    (Hex, {"data": "deadbeef"}, Hex(data=b"\xde\xad\xbe\xef")),
    (HexDataclass, {"data": "00ff"}, HexDataclass(b"\x00\xff")),
    (HexDict, {"data": "00ff"}, {"data": b"\x00\xff"}),
    (URLBase64, {"data": "_-8="}, URLBase64(data=b"\xff\xef")),
    (Text, {"data": "grün"}, Text(data="grün".encode())),
    (Plain, {"data": "/+8=", "hex": {"data": "00ff"}}, Plain(data=b"\xff\xef", hex=Hex(data=b"\x00\xff"))),
    (
        Outer,
        NESTED,
        Outer(items=[b"\x00\xff"], plain=Plain(data=b"\x00\xff", hex=Hex()), nested={"data": b"\x00\xff"}),
    ),
]


@pytest.mark.parametrize("lax", [False, True])
@pytest.mark.parametrize(("kind", "value", "expected"), CASES)
async def test_the_author_s_encoding_is_read(kind: Any, value: Any, expected: Any, lax: bool) -> None:
    received: list[Any] = []

    def tool(it: Any) -> None:
        received.append(it)

    tool.__annotations__ = {"it": kind}
    await call(tool, {"it": value}, lax=lax)
    assert received == [expected]


@pytest.mark.parametrize(("kind", "value", "expected"), CASES)
async def test_the_author_s_encoding_is_written(kind: Any, value: Any, expected: Any) -> None:
    async def result_of(annotation: Any, returned: Any) -> Any:
        def tool() -> Any:
            return returned

        tool.__annotations__ = {"return": annotation}
        return (await run(tool_of(tool)))["structuredContent"]

    assert await result_of(kind, expected) == value
    assert await result_of(list[kind], [expected]) == {"result": [value]}
    assert await result_of(kind | None, expected) == {"result": value}


@pytest.mark.parametrize("annotation", [dict[str, Any], dict])
async def test_the_encoding_of_a_class_holds_where_no_type_is_named(annotation: Any) -> None:
    def tool() -> Any:
        return {"hex": Hex(), "dataclass": HexDataclass(b"a"), "list": [URLBase64(data=b"\xff\xef")]}

    tool.__annotations__ = {"return": annotation}
    assert (await run(tool_of(tool)))["structuredContent"] == {
        "hex": {"data": "00ff"},
        "dataclass": {"data": "61"},
        "list": [{"data": "_-8="}],
    }


@pytest.mark.parametrize(
    ("kind", "value", "written"),
    [
        (Hex, {"data": b"\x00\x00\x00"}, {"data": "000000"}),  # its base64 is AAAA
        (Hex, {"data": "aaaa"}, {"data": "aaaa"}),
        (Text, {"data": b"test"}, {"data": "test"}),
        (URLBase64, {"data": b"\xff\xef"}, {"data": "_-8="}),
        (list[Hex], [{"data": b"\x00\x00\x00"}], {"result": [{"data": "000000"}]}),
    ],
)
async def test_a_dict_for_a_model_may_have_bytes_or_their_text(kind: Any, value: Any, written: Any) -> None:
    def tool() -> Any:
        return value

    tool.__annotations__ = {"return": kind}
    assert (await run(tool_of(tool)))["structuredContent"] == written


@pytest.mark.parametrize(
    ("kind", "schema"),
    [
        (Hex, {"type": "string", "contentEncoding": "base16", "default": "00ff"}),
        (URLBase64, {"type": "string", "contentEncoding": "base64url"}),
        (Text, {"type": "string", "minLength": 1, "maxLength": 8}),
        (Plain, {"type": "string", "contentEncoding": "base64"}),
    ],
)
def test_schemas_name_the_encoding(kind: Any, schema: dict[str, Any]) -> None:
    def tool(it: Any) -> Any:
        return it

    tool.__annotations__ = {"it": kind, "return": kind}
    definition = tool_of(tool).describe()
    assert definition["inputSchema"]["properties"]["it"]["properties"]["data"] == schema
    assert definition["outputSchema"]["properties"]["data"] == schema


def test_lengths_are_those_of_the_text() -> None:
    class Limited(BaseModel):
        model_config = HEX
        data: bytes = Field(min_length=1, max_length=4)

    class LimitedURLBase64(BaseModel):
        model_config = ConfigDict(val_json_bytes="base64")
        data: bytes = Field(min_length=1, max_length=4)

    def tool(a: Any, b: Any) -> None: ...

    tool.__annotations__ = {"a": Limited, "b": LimitedURLBase64}
    members = schema_of(tool)["properties"]
    limits = [(data["minLength"], data["maxLength"]) for data in (members[name]["properties"]["data"] for name in "ab")]
    assert limits == [(2, 8), (2, 8)]  # base64 may be without its padding


async def test_reading_and_writing_may_differ() -> None:
    def tool(it: ReadsHex) -> ReadsHex:
        return it

    result = await call(tool, {"it": {"data": "00ff"}})
    assert result["structuredContent"] == {"data": "AP8="}


@pytest.mark.parametrize(
    ("kind", "value", "words"),
    [
        (Hex, {"data": "0g"}, "it.data: must be hexadecimal, two digits for each byte"),
        (Hex, {"data": 5}, "it.data: must be a string, not a number"),
        (URLBase64, {"data": "a"}, "it.data: must be base64"),
        (Text, {"data": "much too long"}, "it.data: must have at most 8 bytes"),
        (Plain, {"data": "abc"}, "it.data: must be base64"),
    ],
)
async def test_another_text_is_refused(kind: Any, value: Any, words: str) -> None:
    def tool(it: Any) -> None: ...

    tool.__annotations__ = {"it": kind}
    with pytest.raises(ToolError) as refused:
        await call(tool, {"it": value})
    assert str(refused.value) == words


async def test_bytes_without_an_encoding_are_read_in_both_alphabets_of_base64() -> None:
    received: list[bytes] = []

    def tool(it: bytes) -> None:
        received.append(it)

    for text in ("/+8=", "_-8="):
        await call(tool, {"it": text})
    assert received == [b"\xff\xef"] * 2


def test_bytes_that_are_not_utf_8_are_an_error_where_the_author_writes_utf_8() -> None:
    from funcmcp._authoring.results.result_writer import ResultWriter

    with pytest.raises(ValueError, match="utf-8"):
        ResultWriter(Text, "tool").write(Text(data=b"\xff\xff"))


@pytest.mark.parametrize("server", [MCPServer, FastMCP])
async def test_servers_with_the_names_of_fastmcp_read_and_write_the_same(server: Any) -> None:
    mcp = server("Bytes")

    def echo(it: Hex) -> Hex:
        return it

    mcp.tool(echo)
    async with Client(mcp) as client:
        result = await client.call_tool("echo", {"it": {"data": "00ff"}})
    assert result["structuredContent"] == {"data": "00ff"}
