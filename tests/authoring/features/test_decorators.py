"""Marked methods of classes and objects."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

import funcmcp
from funcmcp import Context, MCPServer, RegistrationError
from funcmcp._authoring.calling.services import Services
from funcmcp._authoring.features.decorators import FeatureKind, decorate, features_of, with_name
from funcmcp._authoring.features.options import FeatureOptions
from funcmcp._serving.composition import runtime_of
from tests.server.parts import answer, context

pytestmark = pytest.mark.every_python("Python's modules read signatures, annotations and docstrings.")


class Kitchen:
    dish = "fish"


class Menu:
    made = 0

    def __init__(self, kitchen: Kitchen) -> None:
        type(self).made += 1
        self.kitchen = kitchen

    @funcmcp.tool
    def cook(self) -> str:
        return self.kitchen.dish

    @funcmcp.tool("serve", read_only=True)
    async def serve_it(self) -> str:
        return f"{self.kitchen.dish} served"

    @funcmcp.resource("menu://today")
    def today(self) -> str:
        return self.kitchen.dish

    @funcmcp.resource("menu://{day}")
    async def other(self, day: str, context: Context) -> str:
        return f"{self.kitchen.dish} {day} {context.uri}"

    @funcmcp.prompt
    def praise(self, who: str) -> str:
        return f"Praise {who} for {self.kitchen.dish}"

    @funcmcp.prompt("blame", title="Blame")
    async def blame_it(self, context: Context) -> str:
        return f"{context.name} {self.kitchen.dish}"

    @staticmethod
    @funcmcp.prompt
    def still() -> str:
        return "still"

    @funcmcp.prompt
    @classmethod
    def whole(cls) -> str:
        return cls.__name__

    def unmarked(self) -> str:
        return "never offered"


@pytest.fixture
def mcp() -> MCPServer:
    made = MCPServer("marks")
    made.services.register_factory(Kitchen, Kitchen)
    Menu.made = 0
    return made


async def ask(mcp: MCPServer, method: str, params: dict[str, Any]) -> Any:
    return (await answer(runtime_of(mcp).server, context(method, params)))["result"]


async def prompted(mcp: MCPServer, name: str, **arguments: str) -> str:
    result = await ask(mcp, "prompts/get", {"name": name, "arguments": arguments})
    text: str = result["messages"][0]["content"]["text"]
    return text


async def read(mcp: MCPServer, uri: str) -> str:
    text: str = (await ask(mcp, "resources/read", {"uri": uri}))["contents"][0]["text"]
    return text


@pytest.mark.parametrize("owner", [Menu, Menu(Kitchen())])
async def test_marked_methods_are_offered_in_their_order_and_work(mcp: MCPServer, owner: object) -> None:
    mcp.add(owner)
    assert [one.name for one in runtime_of(mcp).server.catalog.tools] == ["cook", "serve"]
    assert [one.uri for one in runtime_of(mcp).server.catalog.resources] == ["menu://today"]
    assert [one.key for one in runtime_of(mcp).server.catalog.templates] == ["menu://{day}"]
    assert [one.name for one in runtime_of(mcp).server.catalog.prompts] == ["praise", "blame", "still", "whole"]
    assert (await ask(mcp, "tools/call", {"name": "serve"}))["content"][0]["text"] == "fish served"
    assert await read(mcp, "menu://today") == "fish"
    assert await read(mcp, "menu://friday") == "fish friday menu://friday"
    assert await prompted(mcp, "praise", who="Ada") == "Praise Ada for fish"
    assert await prompted(mcp, "blame") == "blame fish"
    assert (await prompted(mcp, "still"), await prompted(mcp, "whole")) == ("still", "Menu")


async def test_a_class_is_constructed_for_each_request_and_an_object_is_used_as_it_is(mcp: MCPServer) -> None:
    mcp.add(Menu)
    for _ in range(2):
        await read(mcp, "menu://today")
        await prompted(mcp, "praise", who="Ada")
    assert Menu.made == 4


def test_marked_methods_stay_callable() -> None:
    menu = Menu(Kitchen())
    assert (menu.cook(), menu.today(), menu.praise("Ada"), Menu.still(), Menu.whole()) == (
        "fish",
        "fish",
        "Praise Ada for fish",
        "still",
        "Menu",
    )


def test_a_subclass_adds_replaces_and_takes_away(mcp: MCPServer) -> None:
    class Smaller(Menu):
        def cook(self) -> str:
            return "not offered"

        @funcmcp.prompt("praise.more")
        def praise(self, who: str) -> str:
            return who

        @funcmcp.resource("menu://tomorrow")
        def tomorrow(self) -> str:
            return ""

    mcp.add(Smaller)
    assert [one.name for one in runtime_of(mcp).server.catalog.tools] == ["serve"]
    assert [one.name for one in runtime_of(mcp).server.catalog.prompts] == ["praise.more", "blame", "still", "whole"]
    assert [one.uri for one in runtime_of(mcp).server.catalog.resources] == ["menu://today", "menu://tomorrow"]


async def test_the_functions_of_a_module_are_added(mcp: MCPServer) -> None:
    module = ModuleType("dishes")
    exec("from funcmcp import tool\n\n@tool\ndef soup() -> str:\n    return 'soup'", vars(module))
    mcp.add(module)
    assert (await mcp.call_tool("soup")).text == "soup"


@pytest.mark.parametrize("owner", [Kitchen, Kitchen(), 5, ModuleType("empty")])
def test_what_has_no_marks_cannot_be_added(mcp: MCPServer, owner: object) -> None:
    with pytest.raises(RegistrationError, match="nothing marked"):
        mcp.add(owner)


def test_a_name_is_given_by_position_or_as_an_option() -> None:
    assert with_name(None, {"title": "A"}) == {"title": "A"}
    assert with_name("a", {"title": "A"}) == {"name": "a", "title": "A"}
    with pytest.raises(RegistrationError, match="Pass the name once"):
        with_name("a", {"name": "a"})


@pytest.mark.parametrize(("given", "options"), [("a", {"name": "a"}), (None, {}), (len, {})])
def test_a_mark_is_made_of_the_options(given: Any, options: dict[str, Any]) -> None:
    seen = []

    def make(function: Any, *, options: Any, services: Services) -> Any:
        seen.append(options)

    class Owner:
        def function(self) -> None: ...

    function = Owner.function
    marked = decorate(function if callable(given) else given, {}, FeatureKind(make, FeatureOptions))
    assert (marked if callable(given) else marked(function)) is function
    assert features_of(Owner(), Services()) == [None]
    assert seen == [options]
