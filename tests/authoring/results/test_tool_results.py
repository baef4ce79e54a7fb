from __future__ import annotations

import asyncio
import datetime as dt
import enum
import math
import warnings
from collections.abc import Awaitable, Coroutine, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any, cast

import pytest
from jsonschema import Draft202012Validator
from mcp_types import CallToolResult, ImageContent, TextContent
from pydantic import BaseModel, ConfigDict, Field, PlainSerializer
from pydantic.alias_generators import to_camel

from funcmcp._authoring.results.content import Audio, EmbeddedResource, Image, ResourceLink, Text, ToolResult
from funcmcp._authoring.signatures.signature import JSONRPCResponse
from funcmcp._protocol.codec import encode
from funcmcp._server.catalog.features import RawResponse
from funcmcp._server.catalog.registry import RegistrationError
from tests.authoring.models import Address, Colour, Level, Node, Point, Size
from tests.authoring.tool_calls import call, run, tool_of

pytestmark = [
    pytest.mark.every_python("Types, enums, dataclasses and regular expressions are Python's."),
    pytest.mark.lowest("pydantic reads values, writes JSON and makes schemas."),
]

EMPTY: Any = object()


class Bill(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)
    total_sum: Decimal
    note: str | None = None


class Word(str, enum.Enum):  # noqa: UP042 - the older way to write it
    YES = "yes"


def returning(value: Any, annotation: Any = EMPTY) -> Any:
    """Return a tool that returns a value under an annotation."""

    async def answer():  # type: ignore[no-untyped-def] # it has what is given, or nothing
        return value

    if annotation is not EMPTY:
        answer.__annotations__ = {"return": annotation}
    return answer


def text(value: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": value}]


@pytest.mark.parametrize(
    ("annotation", "value", "shown", "structured"),
    [
        (int, 3, "3", {"result": 3}),
        (float, 1.5, "1.5", {"result": 1.5}),
        (float, 2, "2", {"result": 2}),
        (bool, True, "true", {"result": True}),
        (bool, False, "false", {"result": False}),
        (Decimal, Decimal("1.50"), "1.5", {"result": 1.5}),
        (Decimal, Decimal(9007199254740993), "9007199254740993", {"result": 9007199254740993}),
        (Decimal | str, "a", "a", {"result": "a"}),
        (dict[str, Any], {"a": b"\xff"}, '{"a":"_w=="}', {"a": "_w=="}),
        (dt.date, dt.date(2026, 7, 28), "2026-07-28", {"result": "2026-07-28"}),
        (Colour, Colour.RED, "red", {"result": "red"}),
        (Level, Level.HIGH, "2", {"result": 2}),
        (list[int], [1, 2], "[1,2]", {"result": [1, 2]}),
        (list[str], [], "[]", {"result": []}),
        (set[int], {1}, "[1]", {"result": [1]}),
        (tuple[int, str], (1, "a"), '[1,"a"]', {"result": [1, "a"]}),
        (int | None, None, "null", {"result": None}),
        (list[Size], [Size(1, None)], '[{"width":1,"height":null}]', {"result": [{"width": 1, "height": None}]}),
        (dict[str, Any], {"a": [1]}, '{"a":[1]}', {"a": [1]}),
        (dict, {"a": 1}, '{"a":1}', {"a": 1}),
        (dict[str, bytes], {"a": b"\xff"}, '{"a":"/w=="}', {"a": "/w=="}),
        (Address, {"street": "s", "city": None}, '{"street":"s","city":null}', {"street": "s", "city": None}),
        (Size, Size(1, 2), '{"width":1,"height":2}', {"width": 1, "height": 2}),
        (Point, Point(1, None), '{"x":1,"label":null}', {"x": 1, "label": None}),
        (Bill, Bill(total_sum=Decimal("9.90")), '{"totalSum":9.9,"note":null}', {"totalSum": 9.9, "note": None}),
        (Node, Node(name="a", children=[Node(name="b")]), None, {
            "name": "a", "children": [{"name": "b", "children": []}],
        }),
        (list[Node], [Node(name="a")], None, {"result": [{"name": "a", "children": []}]}),
        # What is not of the type, but is as JSON:
        (Size, {"width": 1, "height": None}, '{"width":1,"height":null}', {"width": 1, "height": None}),
        (list[Size], [{"width": 1, "height": None}], None, {"result": [{"width": 1, "height": None}]}),
        (set[int], [1], "[1]", {"result": [1]}),
        (set[bytes], [b"\xff\xfe\xfb"], '["//77"]', {"result": ["//77"]}),
        (set[bytes], ["//77"], '["//77"]', {"result": ["//77"]}),
        (dt.date, "2026-07-28", "2026-07-28", {"result": "2026-07-28"}),
        (Annotated[Decimal, PlainSerializer(str)], Decimal("1.50"), "1.50", {"result": "1.50"}),
    ],
)  # fmt: skip
async def test_a_typed_value_is_structured_with_its_text_and_fits_its_schema(
    annotation: Any, value: Any, shown: str | None, structured: Any
) -> None:
    function = returning(value, annotation)
    result = await call(function)
    assert result["structuredContent"] == structured
    if shown is not None:
        assert result["content"] == text(shown)
    schema = tool_of(function).describe()["outputSchema"]
    assert schema["type"] == "object"
    Draft202012Validator.check_schema(schema)
    Draft202012Validator(schema).validate(result["structuredContent"])


OPEN_LISTS = [
    list,
    tuple,
    list[Any],
    list[object],
    tuple[Any, ...],
    Sequence[Any],
    Annotated[list, "what was collected"],
    list[Any] | None,
    int | list,
    Awaitable[list[Any]],
]  # fmt: skip


@pytest.mark.parametrize("annotation", OPEN_LISTS)
async def test_a_list_of_anything_is_written_as_its_members_are(annotation: Any) -> None:
    picture = Image(b"x")
    described = tool_of(returning([], annotation)).describe()
    mixed = await call(returning(["one", picture, {"a": 1}, 2], annotation))
    data = await call(returning(({"a": 1}, 2, "three", b"x"), annotation))

    assert "outputSchema" not in described
    assert mixed == {"content": [*text("one"), picture.block, *text('{"a":1}'), *text("2")]}
    listed = [{"a": 1}, 2, "three", "eA=="]
    assert data == {"content": text('[{"a":1},2,"three","eA=="]'), "structuredContent": {"result": listed}}
    with pytest.raises(ValueError, match="returned what its annotation does not allow"):
        await call(returning(1.5, annotation))


@pytest.mark.parametrize("value", [ToolResult("done"), CallToolResult(content=[TextContent(type="text", text="done")])])
async def test_a_tool_that_returns_a_list_of_anything_may_return_a_complete_result(value: Any) -> None:
    assert await call(returning(value, list[Any])) == {"content": text("done")}


@pytest.mark.parametrize(
    ("annotation", "schema"),
    [
        (int, {"type": "object", "properties": {"result": {"type": "integer"}}, "required": ["result"]}),
        (dict, {"type": "object"}),
        (
            int | None,
            {
                "type": "object",
                "properties": {"result": {"anyOf": [{"type": "integer"}, {"type": "null"}]}},
                "required": ["result"],
            },
        ),
    ],
)
def test_anything_but_an_object_stands_under_result(annotation: Any, schema: dict[str, Any]) -> None:
    assert tool_of(returning(None, annotation)).describe()["outputSchema"] == schema


def test_a_recursive_type_under_result_has_its_definitions_at_the_root() -> None:
    schema = tool_of(returning([], list[Node])).describe()["outputSchema"]
    assert schema["properties"]["result"]["items"] == {"$ref": "#/$defs/Node"}
    assert list(schema["$defs"]) == ["Node"]


@pytest.mark.parametrize(
    ("annotation", "value", "content"),
    [
        (str, "plain", text("plain")),
        (str, "größe", text("größe")),
        (str, Word.YES, text("yes")),
        (str | None, None, []),
        (None, None, []),
        (
            bytes,
            b"hi",
            [
                {
                    "type": "resource",
                    "resource": {"uri": "tool://answer/result", "mimeType": "application/octet-stream", "blob": "aGk="},
                }
            ],
        ),
        (Image, Image(b"hi"), [Image(b"hi").block]),
        (list[Text | Image], [Text("a"), Image(b"hi")], [*text("a"), Image(b"hi").block]),
        (list[str | Image], ["a", Image(b"hi")], [*text("a"), Image(b"hi").block]),
        (list[Image], [], []),
        (Image | None, None, []),
        (tuple[Text, int], (Text("a"), 1), [*text("a"), *text("1")]),
        (EmbeddedResource, EmbeddedResource("a://b", text="t"), [EmbeddedResource("a://b", text="t").block]),
        (ToolResult, ToolResult("a"), text("a")),
    ],
)
async def test_content_is_content_and_has_no_schema(annotation: Any, value: Any, content: Any) -> None:
    function = returning(value, annotation)
    assert await call(function) == {"content": content}
    assert "outputSchema" not in tool_of(function).describe()


@pytest.mark.parametrize("annotation", [EMPTY, Any, object])
@pytest.mark.parametrize(
    ("value", "result"),
    [
        ("a", {"content": text("a")}),
        (None, {"content": []}),
        (5, {"content": text("5")}),
        (True, {"content": text("true")}),
        ([1, "a"], {"content": text('[1,"a"]')}),
        ([], {"content": text("[]")}),
        ({"a": 1}, {"content": text('{"a":1}'), "structuredContent": {"a": 1}}),
        (Size(1, 2), {"content": text('{"width":1,"height":2}'), "structuredContent": {"width": 1, "height": 2}}),
        (Text("a"), {"content": text("a")}),
        ([Text("a"), "b", 3], {"content": [*text("a"), *text("b"), *text("3")]}),
        (dt.date(2026, 7, 28), {"content": text("2026-07-28")}),
        (ToolResult(["a", Text("b")], is_error=True), {"content": [*text("a"), *text("b")], "isError": True}),
        (
            ToolResult(structured_content={"a": 1}, meta={"b": 2}),
            {"content": text('{"a":1}'), "structuredContent": {"a": 1}, "_meta": {"b": 2}},
        ),
        (ToolResult("said", structured_content={"a": 1}), {"content": text("said"), "structuredContent": {"a": 1}}),
    ],
)
async def test_without_an_annotation_the_value_decides(annotation: Any, value: Any, result: Any) -> None:
    function = returning(value, annotation)
    assert await call(function) == result
    assert "outputSchema" not in tool_of(function).describe()


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (int, "5"),
        (int, True),
        (int, 1.0),
        (bool, 1),
        (float, True),
        (float, math.nan),
        (float, math.inf),
        (float, None),
        (str, 5),
        (str, None),
        (None, 5),
        (bytes, "a"),
        (set[bytes], ["a"]),
        (list[int], ["a"]),
        (list[float], [math.nan]),
        (dict[str, float], {"a": math.inf}),
        (Decimal, Decimal("nan")),
        (Size, Size("wide", 2)),  # type: ignore[arg-type]
        (Size, {"width": "1", "height": None}),
        (Size, object()),
        (Bill, Bill.model_construct(total_sum="much")),
        (Any, {"a": math.nan}),
        (Any, object()),
        (Any, ToolResult("a", meta={"a": math.nan})),
        (JSONRPCResponse, {"jsonrpc": "2.0", "id": 7}),
        (JSONRPCResponse, {"jsonrpc": "2.0", "id": 7, "result": {}, "error": {}}),
        (JSONRPCResponse, {"id": 7, "result": {}}),
        (JSONRPCResponse, {"jsonrpc": "2.0", "id": 8, "result": {}}),
        (JSONRPCResponse, {"jsonrpc": "2.0", "id": "7", "result": {}}),
        (JSONRPCResponse, {"jsonrpc": "2.0", "id": 7, "result": {"a": math.nan}}),
        (JSONRPCResponse, "text"),
    ],
)
async def test_a_value_that_does_not_keep_the_promise_is_an_error(annotation: Any, value: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        await call(returning(value, annotation))


WRONG_BILL = Bill.model_construct(total_sum="much")


@pytest.mark.parametrize("annotation", [Bill, list[Bill], Bill | None])
@pytest.mark.parametrize("action", ["ignore", "error", "default"])
async def test_the_filters_of_warnings_do_not_matter(action: Any, annotation: Any) -> None:
    """They are global: an author, pytest or another thread may change them at any time."""
    tool = returning([WRONG_BILL] if annotation == list[Bill] else WRONG_BILL, annotation)
    for _ in range(2):
        with warnings.catch_warnings():
            warnings.simplefilter(action)
            with pytest.raises((TypeError, ValueError)):
                await call(tool)
            before = list(warnings.filters)
            assert (await call(returning(3, int)))["structuredContent"] == {"result": 3}
            assert warnings.filters == before


def test_the_filters_of_warnings_do_not_matter_in_threads() -> None:
    tool = returning(WRONG_BILL, Bill)

    def fails(_: int) -> bool:
        try:
            asyncio.run(call(tool))
        except (TypeError, ValueError):
            return True
        return False

    with warnings.catch_warnings(), ThreadPoolExecutor(4) as pool:
        warnings.simplefilter("ignore")
        assert all(pool.map(fails, range(40)))


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (str, "\ud800"),
        (list[str], ["\ud800"]),
        (dict[str, str], {"\ud800": "\ud800"}),
        (Text, Text("\ud800")),
        (Any, "\ud800"),
        (Any, {"a": ("\ud800",)}),
    ],
)
async def test_a_lone_surrogate_becomes_the_replacement_character(annotation: Any, value: Any) -> None:
    result = await call(returning(value, annotation))
    assert "\ufffd" in encode(result).decode()


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("annotation", [dict, dict[str, Any]])
async def test_infinity_and_nan_under_any_are_null_in_text_and_structured_content(
    annotation: Any, number: float
) -> None:
    tool = tool_of(returning({"upper": number, "bands": [number, 1.5]}, annotation))
    result = await run(tool, {})
    assert result == {
        "content": [{"type": "text", "text": '{"upper":null,"bands":[null,1.5]}'}],
        "structuredContent": {"upper": None, "bands": [None, 1.5]},
    }


async def test_a_constraint_of_the_annotation_is_kept() -> None:
    with pytest.raises(ValueError, match="annotation does not allow"):
        await call(returning(101, Annotated[int, Field(le=100)]))


async def test_a_response_of_the_tool_s_own_is_sent_as_it_stands() -> None:
    message = {"jsonrpc": "2.0", "id": 7, "result": {"content": []}}
    result = await call(returning(message, JSONRPCResponse))
    assert isinstance(result, RawResponse)
    assert result.message is message


async def test_a_plain_function_may_return_an_awaitable() -> None:
    async def three() -> int:
        return 3

    def awaitable() -> Awaitable[int]:
        return three()

    def coroutine() -> Coroutine[Any, Any, int]:
        return three()

    for function in (awaitable, coroutine):
        assert (await call(function))["structuredContent"] == {"result": 3}


PRICE = {"type": "object", "properties": {"price": {"type": "number", "minimum": 0}}, "required": ["price"]}


async def test_a_declared_output_schema_is_listed_and_kept() -> None:
    def priced(value: Any) -> Any:
        return returning(value, str)

    assert tool_of(priced({}), output_schema=PRICE).describe()["outputSchema"] == PRICE
    result = await call(priced({"price": 1}), output_schema=PRICE)
    assert result == {"content": text('{"price":1}'), "structuredContent": {"price": 1}}
    result = await call(priced(ToolResult("one", structured_content={"price": 1})), output_schema=PRICE)
    assert result == {"content": text("one"), "structuredContent": {"price": 1}}
    result = await call(priced(ToolResult("sold out", is_error=True)), output_schema=PRICE)
    assert result == {"content": text("sold out"), "isError": True}
    for wrong in ({"price": -1}, {}, "free", ToolResult("free"), ToolResult(structured_content={"price": "free"})):
        with pytest.raises(ValueError, match="output_schema"):
            await call(priced(wrong), output_schema=PRICE)


@pytest.mark.parametrize(
    ("structured_content", "sent"), [({"price": 1}, {"structuredContent": {"price": 1}}), ({"code": 5}, {}), ([1], {})]
)
async def test_an_error_keeps_its_text_and_only_structured_content_that_the_schema_allows(
    structured_content: Any, sent: dict[str, Any]
) -> None:
    failure = ToolResult("sold out", is_error=True, structured_content=structured_content)
    result = await call(returning(failure, ToolResult), output_schema=PRICE)
    assert result == {"content": text("sold out"), "isError": True, **sent}


@pytest.mark.parametrize(
    ("annotation", "value", "structured"),
    [
        (dict[str, int], {"a": 1}, {"a": 1}),
        (list[int], [1], {"result": [1]}),
        (int, 3, {"result": 3}),
        (Decimal, Decimal(1), {"result": 1}),
    ],
)
async def test_output_schema_none_leaves_the_schema_out_and_results_stay(
    annotation: Any, value: Any, structured: dict[str, Any]
) -> None:
    function = returning(value, annotation)
    made = tool_of(function, output_schema=None)
    assert "outputSchema" not in made.describe()
    assert [item for item in made.left_out() if item.path[0] == "outputSchema"] == []
    result = await run(made)
    assert result["structuredContent"] == structured
    assert result == await call(function)
    with pytest.raises((TypeError, ValueError)):
        await call(returning("x", annotation), output_schema=None)


async def test_a_declared_output_schema_is_compiled_once() -> None:
    made = tool_of(returning({"price": 1}), output_schema=PRICE)
    assert await run(made) == await run(made)


async def test_a_tool_may_be_called_before_and_after_it_is_listed() -> None:
    made = tool_of(returning(Size(1, 2), Size))
    first = await run(made)
    assert made.describe()["outputSchema"]["required"] == ["width", "height"]
    assert await run(made) == first


class NotJSON: ...


def test_a_return_type_without_a_meaning_in_json_is_explained() -> None:
    with pytest.raises(RegistrationError, match="What answer returns"):
        tool_of(returning(None, NotJSON)).describe()


class Unknown:
    """JSON has no value for it."""


@dataclass
class Holder:
    item: Any


def untyped(value: Any) -> Any:
    def tool() -> Any:
        return value

    return tool


def held(value: Any) -> Any:
    def tool() -> Holder:
        return Holder(value)

    return tool


@pytest.mark.parametrize(
    ("function", "path"),
    [
        (untyped({"orders": [{"total": 1}, {"total": Unknown()}]}), "the value at orders[1].total"),
        (untyped([1, {Unknown()}]), "the value at [1][0]"),
        (untyped({"a": Holder(float("nan"))}), "the value at a.item"),
        (untyped(Unknown()), "a value"),
        (untyped(ToolResult("x", structured_content={"a": Unknown()})), "the value at structured_content.a"),
        (untyped(ToolResult("x", meta={"a": Unknown()})), "the value at meta.a"),
        (untyped(ToolResult([Text("x"), Unknown()])), "the value at content[1]"),  # type: ignore[list-item] # the fault
        (held(Unknown()), "the value at item"),
    ],
)
async def test_the_error_for_a_value_that_is_not_json_names_the_tool_and_the_path(function: Any, path: str) -> None:
    with pytest.raises(ValueError, match="can't be written as JSON") as caught:
        await call(function)
    assert str(caught.value).startswith(f"tool returned {path} that can't be written as JSON: ")
    with pytest.raises(ValueError, match="can't be written as JSON"):
        await call(function, output_schema={"type": "object"})


PICTURE = Image(b"\x89PNG" * 20)
OFFICIAL = ImageContent(type="image", data=PICTURE.block["data"], mime_type="image/png")
SOUND = Audio(b"RIFF" * 20)
FILE = EmbeddedResource("file:///a", blob=b"bytes" * 20)
WITHOUT_DATA = {"type": "image", "mimeType": "image/png"}


@dataclass
class Titled:
    title: str
    picture: Any


class Gallery(BaseModel):
    pictures: list[Any]


@pytest.mark.parametrize("block", [PICTURE, OFFICIAL, SOUND, FILE])
@pytest.mark.parametrize(
    ("annotation", "around"),
    [
        (EMPTY, lambda block: {"title": "a", "picture": block}),
        (Any, lambda block: Titled("a", block)),
        (EMPTY, lambda block: [[[block]], "b"]),
        (dict, lambda block: {"title": "a", "pictures": [block, 1]}),
        (dict[str, Any], lambda block: {"title": block}),
        (list[Any], lambda block: [{"title": "a", "picture": block}, 1]),
        (Titled, lambda block: Titled("a", block)),
        (Gallery, lambda block: Gallery(pictures=["a", block])),
        (list[Titled], lambda block: [Titled("a", block)]),
        (dict[str, ImageContent], lambda block: {"title": block}),
        (ToolResult, lambda block: ToolResult(structured_content={"picture": block})),
    ],
)
async def test_a_block_inside_data_is_a_block_and_no_text_has_its_base64(
    annotation: Any, around: Any, block: Any
) -> None:
    result = await run(tool_of(returning(around(block), annotation)), {})
    written = block.model_dump(mode="json", exclude_none=True) if block is OFFICIAL else block.block
    first, *others = result["content"]
    assert first["type"] == "text"
    assert "b64" not in first["text"]
    assert first["text"].count(f'"type":"{written["type"]}"') == 1
    assert others == [PICTURE.block if block is OFFICIAL else written]
    base64 = written.get("data") or written["resource"]["blob"]
    assert base64 not in first["text"]
    if "structuredContent" in result:
        assert base64 in encode(result["structuredContent"]).decode()


@pytest.mark.parametrize("annotation", [EMPTY, Any, list, list[Any], Iterable[Image], list[Image], Iterator[Image]])
async def test_blocks_in_nested_lists_and_iterators_are_blocks(annotation: Any) -> None:
    result = await call(returning(iter([PICTURE, [SOUND, "a"], {"b": OFFICIAL}]), annotation))
    assert result == {
        "content": [
            PICTURE.block,
            SOUND.block,
            *text("a"),
            *text('{"b":{"type":"image","mimeType":"image/png"}}'),
            PICTURE.block,
        ]
    }


async def test_plain_data_in_the_form_of_a_block_is_sent_as_a_block() -> None:
    assert await call(returning(PICTURE.block, dict[str, Any])) == {
        "content": [PICTURE.block],
        "structuredContent": PICTURE.block,
    }


@pytest.mark.parametrize("annotation", [Any, dict[str, Any], list, list[Any], EMPTY])
@pytest.mark.parametrize("members", [{"annotations": "a"}, {"_meta": []}, {"mimeType": "a"}, {"data": "a note"}])
async def test_data_that_only_resembles_a_block_stays_data(annotation: Any, members: dict[str, Any]) -> None:
    note = {**PICTURE.block, **members}
    value: Any = [note] if annotation in {list, list[Any]} else {"note": note}
    result = await call(returning(value, annotation))
    assert result["content"] == text(encode(value).decode())
    CallToolResult.model_validate(result)


async def test_a_text_and_a_link_inside_data_stay_in_the_text() -> None:
    data = {"link": ResourceLink("a://b", "b"), "text": Text("c")}
    result = await call(returning(data, dict[str, Any]))
    plain = {"link": ResourceLink("a://b", "b").block, "text": Text("c").block}
    assert result == {"content": text(encode(plain).decode()), "structuredContent": plain}


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (Bill, {"totalSum": 1, "note": None}),
        (dict[str, int], {"a": 1}),
        (int, {"result": 3}),
        (list[int], {"result": [1]}),
        (str, {"result": "a"}),
        (None, {"a": 1}),
    ],
)
async def test_a_complete_result_fits_every_annotation(annotation: Any, value: dict[str, Any]) -> None:
    def tool() -> Any:
        return results[0]

    tool.__annotations__["return"] = annotation
    for result in (
        ToolResult("done", structured_content=value),
        CallToolResult(content=[TextContent(type="text", text="done")], structured_content=value),
    ):
        results: list[Any] = [result]
        assert await call(tool) == {"content": text("done"), "structuredContent": value}
    results = [ToolResult("failed", is_error=True)]
    assert await call(tool) == {"content": text("failed"), "isError": True}


@pytest.mark.parametrize("result", [ToolResult("done"), ToolResult(structured_content={"totalSum": "many"})])
async def test_a_complete_result_must_fit_the_schema_of_the_annotation(result: ToolResult) -> None:
    def tool() -> Bill:
        return cast("Bill", result)

    with pytest.raises(ValueError, match="tool returned what its output_schema does not allow"):
        await call(tool)
