"""Generators as tools: what they yield is progress, and together the result."""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import AsyncIterator, Generator, Iterator
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field

from funcmcp import Context, MCPServer, tool
from funcmcp._authoring.calling import generators
from funcmcp._authoring.calling.generators import MAX_MESSAGE
from funcmcp._authoring.calling.services import Services
from funcmcp._protocol.errors import ToolError
from funcmcp.content import Image, Text
from funcmcp.testing import Client
from tests.authoring.tool_calls import Peer, call, context, run, tool_of
from tests.patience import PATIENCE

PROGRESS = {"progressToken": "t"}


class Row(BaseModel):
    number: int


def words() -> Iterator[str]:
    yield "one"
    yield "two"


async def async_words() -> AsyncIterator[str]:
    yield "one"
    await asyncio.sleep(0)
    yield "two"


async def progress_of(function: Any, **options: Any) -> list[tuple[float, str | None]]:
    """Return the progress that a generator reports, as numbers and texts."""
    peer = Peer()
    await call(function, within=context(peer, meta=PROGRESS), **options)
    return [(params["progress"], params.get("message")) for _, params in peer.sent]


@pytest.mark.parametrize("function", [words, async_words, functools.partial(words)])
async def test_the_items_are_progress_and_the_result(function: Any) -> None:
    assert await progress_of(function, name="words") == [(1, "one"), (2, "two")]
    result = await call(function, name="words")
    assert result["structuredContent"] == {"result": ["one", "two"]}
    assert result["content"] == [{"type": "text", "text": '["one","two"]'}]


@pytest.mark.parametrize(
    ("annotation", "items"),
    [
        (Iterator[int], {"type": "integer"}),
        (Generator[int, None, str], {"type": "integer"}),
        (AsyncIterator[int], {"type": "integer"}),
        (Annotated[AsyncIterator[int], "numbers"], {"type": "integer"}),
        (list[int], {"type": "integer"}),
    ],
)
def test_the_output_schema_is_that_of_a_list(annotation: Any, items: dict[str, Any]) -> None:
    def numbers():  # type: ignore[no-untyped-def]
        yield 1

    numbers.__annotations__["return"] = annotation
    schema = tool_of(numbers).describe()["outputSchema"]
    assert schema == {
        "type": "object",
        "properties": {"result": {"type": "array", "items": items}},
        "required": ["result"],
    }


def test_the_description_of_a_generators_result_is_that_of_the_list() -> None:
    def numbers() -> Annotated[Iterator[int], Field(description="Some numbers")]:
        yield 1

    schema = tool_of(numbers).describe()["outputSchema"]
    assert schema["properties"]["result"]["description"] == "Some numbers"


async def test_a_generator_without_an_annotation_is_written_by_its_values() -> None:
    def numbers():  # type: ignore[no-untyped-def]
        yield 1

    assert "outputSchema" not in tool_of(numbers).describe()
    assert (await call(numbers))["content"] == [{"type": "text", "text": "[1]"}]


async def test_a_bare_iterator_is_a_list_of_anything() -> None:
    def numbers() -> Iterator:  # type: ignore[type-arg]
        yield 1

    assert (await call(numbers))["structuredContent"] == {"result": [1]}


async def test_models_are_json_in_progress_and_content_is_only_in_the_result() -> None:
    def rows() -> Iterator[Row]:
        yield Row(number=1)

    def blocks() -> Iterator[Text | Image]:
        yield Text("hello")

    assert await progress_of(rows) == [(1, '{"number":1}')]
    assert await progress_of(blocks) == [(1, None)]
    assert (await call(blocks))["content"] == [{"type": "text", "text": "hello"}]


async def test_long_items_are_cut_in_progress() -> None:
    def texts() -> Iterator[str]:
        yield "a" * (MAX_MESSAGE + 1)

    assert await progress_of(texts) == [(1, "a" * MAX_MESSAGE + "…")]


async def test_an_item_that_json_cannot_represent_has_no_text_and_fails_the_result() -> None:
    def values() -> Iterator[Any]:
        yield object()

    peer = Peer()
    with pytest.raises(ValueError, match="can't be written as JSON"):
        await call(values, within=context(peer, meta=PROGRESS))
    assert [params.get("message") for _, params in peer.sent] == [None]


async def test_of_many_items_few_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(generators, "monotonic", lambda: clock[0])
    monkeypatch.setattr(generators, "_REPORTED_ITEMS", 2)

    def numbers() -> Iterator[int]:
        for number in range(1, 6):
            clock[0] += 0.06
            yield number

    assert [count for count, _ in await progress_of(numbers)] == [1, 2, 4]


async def test_nothing_is_reported_to_a_client_that_did_not_ask() -> None:
    peer = Peer()
    await call(words, within=context(peer))
    assert peer.sent == []


async def test_an_error_in_the_middle_is_an_error_of_the_call() -> None:
    def broken() -> Iterator[int]:
        yield 1
        raise ToolError("no more")

    with pytest.raises(ToolError, match="no more"):
        await call(broken)


@pytest.mark.parametrize("is_async", [False, True])
async def test_items_that_exceed_the_limit_end_and_close_the_generator(is_async: bool) -> None:
    closed: list[bool] = []

    def texts() -> Iterator[str]:
        try:
            while True:
                yield "0123456789"
        finally:
            closed.append(True)

    async def async_texts() -> AsyncIterator[str]:
        for text in texts():
            yield text

    with pytest.raises(ToolError, match="more than 25 bytes"):
        await call(async_texts if is_async else texts, services=Services(result_bytes=25))
    assert closed == [True]


async def test_a_cancelled_call_closes_an_async_generator() -> None:
    events: list[str] = []
    begun = asyncio.Event()

    async def numbers() -> AsyncIterator[int]:
        try:
            yield 1
            begun.set()
            await asyncio.sleep(PATIENCE)
        finally:
            events.append("closed")

    running = asyncio.ensure_future(call(numbers))
    await asyncio.wait_for(begun.wait(), PATIENCE)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert events == ["closed"]


async def test_a_cancelled_call_closes_a_plain_generator_at_its_next_item() -> None:
    begun, may_go_on, closed = threading.Event(), threading.Event(), threading.Event()

    def numbers() -> Iterator[int]:
        try:
            yield 1
            begun.set()
            may_go_on.wait(PATIENCE)
            yield 2
            raise AssertionError("not reached")
        finally:
            closed.set()

    running = asyncio.ensure_future(call(numbers))
    await asyncio.to_thread(begun.wait, PATIENCE)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    may_go_on.set()
    assert await asyncio.to_thread(closed.wait, PATIENCE)


async def test_a_generator_takes_arguments_a_context_and_services() -> None:
    services = Services()
    services.register_value(Row, Row(number=7))

    async def rows(count: int, context: Context, row: Row) -> AsyncIterator[str]:
        for number in range(count):
            yield f"{context.name} {row.number} {number}"

    assert (await call(rows, {"count": 1}, services))["structuredContent"] == {"result": ["rows 7 0"]}


async def test_a_method_may_be_a_generator() -> None:
    class Words:
        @tool
        def words(self, count: int) -> Iterator[int]:
            yield from range(count)

    mcp = MCPServer("Words")
    mcp.add(Words)
    seen: list[float] = []
    async with Client(mcp, on_progress=lambda progress: seen.append(progress.progress)) as client:
        result = await client.call_tool("words", {"count": 2})
    assert result.structured_content == {"result": [0, 1]}
    assert seen == [1, 2]


async def test_a_generator_may_be_a_task() -> None:
    mcp = MCPServer("Words")
    mcp.tool(task="optional")(words)
    async with Client(mcp) as client:
        result = await asyncio.wait_for(client.call_tool("words"), PATIENCE)
    assert result.structured_content == {"result": ["one", "two"]}


async def test_a_callable_object_may_be_a_generator() -> None:
    class Words:
        async def __call__(self) -> AsyncIterator[str]:
            yield "one"

    assert (await run(tool_of(Words(), name="words")))["structuredContent"] == {"result": ["one"]}
