"""Resolvers of the official SDK 2.x: parameters that are computed from arguments, or asked of the client."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import pytest
from mcp import Client as SDKClient
from mcp.server.mcpserver import MCPServer as SDKServer
from mcp.server.mcpserver import Resolve as SDKResolve
from pydantic import BaseModel

from funcmcp.compat import (
    AcceptedElicitation,
    Context,
    Elicit,
    ElicitationResult,
    InvalidSignature,
    ListRoots,
    MCPServer,
    Resolve,
    Sample,
)
from funcmcp.testing import Client

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.every_python("Python's modules read signatures, annotations and docstrings.")


class Stock(BaseModel):
    title: str
    copies: int


class Backorder(BaseModel):
    confirm: bool


def find_stock(title: str, ctx: Context) -> Stock:
    assert ctx.fastmcp.name == "Bookshop"
    return Stock(title=title, copies=7 if title == "Dune" else 0)


async def confirm(stock: Annotated[Stock, Resolve(find_stock)]) -> Backorder | Elicit[Backorder]:
    if stock.copies:
        return Backorder(confirm=True)
    return Elicit(f"{stock.title} is out of stock. Order it?", Backorder)


def shop() -> MCPServer:
    mcp = MCPServer("Bookshop")

    @mcp.tool()
    def order(
        title: str,
        stock: Annotated[Stock, Resolve(find_stock)],
        backorder: Annotated[Backorder, Resolve(confirm)],
    ) -> str:
        return f"{title} {stock.copies} {backorder.confirm}"

    @mcp.tool()
    async def outcome(title: str, answer: Annotated[ElicitationResult[Backorder], Resolve(confirm)]) -> str:
        return f"{title} {answer.action} {isinstance(answer, AcceptedElicitation)}"

    return mcp


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_a_resolver_gets_arguments_and_asks_only_if_it_must(revision: str) -> None:
    questions: list[str] = []

    async def answer(question: dict[str, Any]) -> dict[str, Any]:
        questions.append(question["message"])
        return {"action": "accept", "content": {"confirm": False}}

    async with Client(shop(), revision=revision, elicit=answer) as client:
        (tool, _) = await client.list_tools()
        assert list(tool.input_schema["properties"]) == ["title"]
        assert (await client.call_tool("order", {"title": "Dune"})).text == "Dune 7 True"
        assert questions == []
        assert (await client.call_tool("order", {"title": "Emma"})).text == "Emma 0 False"
        assert questions == ["Emma is out of stock. Order it?"]


async def test_a_declined_question_fails_the_call_or_is_an_outcome() -> None:
    async def decline(_: dict[str, Any]) -> dict[str, Any]:
        return {"action": "decline"}

    async with Client(shop(), elicit=decline) as client:
        result = await client.call_tool("order", {"title": "Emma"}, raise_on_error=False)
        assert (result.is_error, result.text) == (
            True,
            "Error executing tool order: Resolver for parameter 'backorder' could not resolve: elicitation was decline",
        )
        assert (await client.call_tool("outcome", {"title": "Emma"})).text == "Emma decline False"
        assert (await client.call_tool("outcome", {"title": "Dune"})).text == "Dune accept True"


async def test_a_resolver_asks_the_model_and_for_roots() -> None:
    mcp = MCPServer("m")

    def suggest(genre: str) -> Sample:
        return Sample(f"One {genre} book.", max_tokens=50)

    @mcp.tool()
    async def recommend(
        genre: str,
        suggestion: Annotated[Any, Resolve(suggest)],
        roots: Annotated[Any, Resolve(lambda: ListRoots())],  # noqa: PLW0108 - a resolver is a function
    ) -> str:
        return f"{genre} {suggestion.content.text} {roots.roots[0].uri}"

    async def sample(request: dict[str, Any]) -> dict[str, Any]:
        text = f"{request['messages'][0]['content']['text']} {request['maxTokens']}"
        return {"role": "assistant", "model": "m", "content": {"type": "text", "text": text}}

    async with Client(mcp, sample=sample, roots=[{"uri": "file:///books"}]) as client:
        result = await client.call_tool("recommend", {"genre": "sf"})
    assert result.text == "sf One sf book. 50 file:///books"


def cyclic(value: Annotated[int, Resolve(lambda: 0)]) -> int:
    return value


cyclic.__annotations__["value"] = Annotated[int, Resolve(cyclic)]


def measured(name: str) -> int:
    return len(name)


def asking() -> Elicit[Any] | ListRoots:
    return ListRoots()


class InputRequiredResult:
    """A class with the name of the SDK's."""


@pytest.mark.parametrize(
    ("hint", "result", "text"),
    [
        (Annotated[int, Resolve(cyclic)], str, "Resolver 'cyclic' has a cyclic dependency"),
        (Annotated[int, Resolve(measured)], str, "Resolver 'measured' parameter 'name' cannot be resolved"),
        (Annotated[Any, Resolve(asking)], str, "Resolver 'asking' return annotation has multiple"),
        (Annotated[int, Resolve(int)] | None, str, "wraps `Resolve"),
        (Annotated[int, Resolve(lambda: 1)], str | InputRequiredResult, "combines Resolve"),
    ],
)
def test_resolvers_that_are_refused(hint: Any, result: Any, text: str) -> None:
    def order(title: str, stock: Any) -> Any:
        return f"{title} {stock}"

    order.__annotations__ |= {"stock": hint, "return": result}
    with pytest.raises(InvalidSignature, match=text):
        MCPServer("u").add_tool(order)


class Entered:
    """A context manager of both kinds."""

    def __enter__(self) -> str:
        return "entered"

    def __exit__(self, *_: object) -> None: ...

    async def __aenter__(self) -> str:
        return "entered"

    async def __aexit__(self, *_: object) -> None: ...


@contextmanager
def manager() -> Iterator[str]:
    yield "entered"


def generator() -> Iterator[str]:
    yield "yielded"


def forbidden() -> str:
    raise PermissionError("secret")


async def forbidden_later() -> str:
    raise PermissionError("secret")


async def types_of_resolved(server: Any, resolve: Any, client_class: Any) -> dict[str, list[str]]:
    """Return the type of what a parameter gets, or "error", in a plain and in an async tool."""
    mcp = server("r")
    for resolver in (Entered, manager, generator, forbidden, forbidden_later):

        def plain(value: Any) -> str:
            return type(value).__name__

        async def in_the_loop(value: Any) -> str:
            return type(value).__name__

        for function in (plain, in_the_loop):
            function.__annotations__["value"] = Annotated[Any, resolve(resolver)]
        mcp.tool(name=resolver.__name__)(plain)
        mcp.tool(name=f"{resolver.__name__}-async")(in_the_loop)
    types: dict[str, list[str]] = {}
    async with client_class(mcp) as client:
        for resolver in (Entered, manager, generator, forbidden, forbidden_later):
            results = [await client.call_tool(f"{resolver.__name__}{suffix}", {}) for suffix in ("", "-async")]
            types[resolver.__name__] = ["error" if r.is_error else r.content[0].text for r in results]
            assert "secret" not in str(results)
    return types


async def test_what_a_resolver_returns_is_not_entered_as_in_the_official_sdk() -> None:
    here = await types_of_resolved(MCPServer, Resolve, Client)
    assert here == await types_of_resolved(SDKServer, SDKResolve, SDKClient)
    assert here["Entered"] == ["Entered", "Entered"]
