"""Arguments that `functools.partial` binds, in every kind of feature: clients neither see nor replace them."""

from __future__ import annotations

import functools
import inspect
import json
from typing import TYPE_CHECKING, Annotated, Any

import httpx2
import pytest

from funcmcp import MCPServer, prompt, resource, tool
from funcmcp._authoring.signatures.partials import is_async, signature_of, without_partials
from funcmcp._authoring.signatures.signature import function_name
from funcmcp._server.catalog.registry import RegistrationError
from funcmcp.compat import Depends, FastMCP
from funcmcp.compat import MCPServer as CompatMCPServer
from funcmcp.content import ResourceInfo
from funcmcp.testing import Client

if TYPE_CHECKING:
    from collections.abc import Callable

    from funcmcp.http import Request

pytestmark = pytest.mark.every_python("Python's modules read signatures, annotations and docstrings.")

SECRET = "sk-1"
partial = functools.partial


def search(city: str, api_key: str, limit: int = 5) -> str:
    """Search a city.

    Args:
        city: The city's name.
        api_key: The key of the search engine.
        limit: The maximum number of results.
    """
    return f"{city} {api_key} {limit}"


async def search_async(city: str, api_key: str, limit: int = 5) -> str:
    return search(city, api_key, limit)


class Engine:
    """A callable object with methods."""

    def search(self, city: str, api_key: str, limit: int = 5) -> str:
        return search(city, api_key, limit)

    bound = functools.partialmethod(search, api_key=SECRET)

    def __call__(self, city: str, api_key: str, limit: int = 5) -> str:
        return search(city, api_key, limit)


class AsyncEngine:
    """A callable object whose call is async."""

    async def __call__(self, city: str, api_key: str, limit: int = 5) -> str:
        return search(city, api_key, limit)


def updated() -> Any:
    """Return a partial object to which `functools.update_wrapper` gave the inner function's signature."""
    return functools.update_wrapper(partial(search, api_key=SECRET), search)


def decorated() -> Any:
    """Return a function around a partial object."""
    inner = partial(search, api_key=SECRET)

    @functools.wraps(inner)
    def retry(*args: Any, **kwargs: Any) -> str:
        return inner(*args, **kwargs)

    return retry


FUNCTIONS: dict[str, Callable[[], Any]] = {
    "by keyword": lambda: partial(search, api_key=SECRET),
    "nested": lambda: partial(partial(search, api_key="other"), api_key=SECRET),
    "nested and updated": lambda: partial(updated(), limit=5),
    "a bound method": lambda: partial(Engine().search, api_key=SECRET),
    "a partialmethod": lambda: Engine().bound,
    "a callable object": lambda: partial(Engine(), api_key=SECRET),
    "an async function": lambda: partial(search_async, api_key=SECRET),
    "an async callable object": lambda: partial(AsyncEngine(), api_key=SECRET),
    "updated": updated,
    "decorated": decorated,
    "updated twice": lambda: functools.update_wrapper(partial(updated()), updated()),
    "decorated and bound": lambda: partial(decorated(), limit=5),
}


@pytest.mark.parametrize("kind", FUNCTIONS)
@pytest.mark.parametrize("framework", [MCPServer, FastMCP, CompatMCPServer])
async def test_clients_neither_see_nor_replace_a_bound_argument(framework: Any, kind: str) -> None:
    mcp = framework("t")
    mcp.tool("search")(FUNCTIONS[kind]())
    mcp.prompt("search")(FUNCTIONS[kind]())
    mcp.resource("search://{city}", name="search")(partial(FUNCTIONS[kind](), limit=5))

    async with Client(mcp) as client:
        [listed], [listed_prompt], [template] = (
            await client.list_tools(),
            await client.list_prompts(),
            await client.list_resource_templates(),
        )
        assert "city" in listed["inputSchema"]["properties"]
        assert listed_prompt["arguments"][0]["name"] == "city"
        published = json.dumps([listed, listed_prompt, template])
        assert SECRET not in published
        assert all("api_key" not in json.dumps(item) for item in (listed["inputSchema"], listed_prompt["arguments"]))
        if framework is not CompatMCPServer:  # it publishes the whole docstring, as the official SDK does
            assert "api_key" not in published
            assert "The key" not in published
            assert "partial application" not in published  # the docstring of `functools.partial`
        result = await client.call_tool("search", {"city": "Bern"})
        assert result.text == f"Bern {SECRET} 5"
        replaced = await client.call_tool("search", {"city": "Bern", "api_key": "stolen"})
        assert "stolen" not in replaced.text
        read = await client.read_resource("search://Bern")
        assert read.text == f"Bern {SECRET} 5"
        prompted = await client.get_prompt("search", {"city": "Bern"})
        assert prompted["messages"][0]["content"]["text"] == f"Bern {SECRET} 5"
    called = await mcp.call_tool("search", {"city": "Bern"})
    assert called.content[0].text == f"Bern {SECRET} 5"


async def test_arguments_may_be_bound_by_position() -> None:
    mcp = MCPServer("t")
    mcp.tool(partial(search, "Bern", SECRET))
    mcp.tool("updated")(functools.update_wrapper(partial(search, "Bern", SECRET), search))
    async with Client(mcp) as client:
        for listed in await client.list_tools():
            assert list(listed["inputSchema"]["properties"]) == ["limit"]
            assert (await client.call_tool(listed["name"], {"limit": 1})).text == f"Bern {SECRET} 1"


class Searches:
    """A class whose methods are tools, with and without bound arguments."""

    def find(self, city: str, api_key: str, limit: int = 5) -> str:
        """Search a city."""
        return search(city, api_key, limit)

    async def find_async(self, city: str, api_key: str) -> str:
        return search(city, api_key)

    @classmethod
    def find_in_class(cls, city: str, api_key: str) -> str:
        return search(city, api_key)

    by_keyword = tool("by_keyword")(functools.partialmethod(find, api_key=SECRET))
    by_position = tool("by_position")(functools.partialmethod(find, "Bern", SECRET))
    asynchronous = tool("asynchronous")(functools.partialmethod(find_async, api_key=SECRET))
    of_class = tool("of_class")(functools.partialmethod(find_in_class, api_key=SECRET))
    find_prompt = prompt(functools.partialmethod(find, api_key=SECRET))
    find_resource = resource("search://{city}")(functools.partialmethod(find, api_key=SECRET, limit=5))


@pytest.mark.parametrize("owner", [Searches, Searches()])
async def test_a_partialmethod_can_be_a_feature(owner: object) -> None:
    mcp = MCPServer("t")
    mcp.add(owner)
    async with Client(mcp) as client:
        tools = {listed["name"]: listed for listed in await client.list_tools()}
        published = json.dumps([tools, await client.list_prompts(), await client.list_resource_templates()])
        assert SECRET not in published
        assert "api_key" not in published
        assert list(tools["by_position"]["inputSchema"]["properties"]) == ["limit"]
        assert (await client.call_tool("by_position", {"limit": 1})).text == f"Bern {SECRET} 1"
        for name in ("by_keyword", "asynchronous", "of_class"):
            assert (await client.call_tool(name, {"city": "Bern"})).text == f"Bern {SECRET} 5"
            assert (await client.call_tool(name, {"city": "Bern", "api_key": "stolen"})).text != "Bern stolen 5"
        prompted = await client.get_prompt("find", {"city": "Bern"})
        assert prompted["messages"][0]["content"]["text"] == f"Bern {SECRET} 5"
        assert (await client.read_resource("search://Bern")).text == f"Bern {SECRET} 5"


async def test_completers_resource_lists_and_routes_take_bound_arguments() -> None:
    mcp = MCPServer("t")

    def cities(api_key: str, text: str) -> list[str]:
        return [text + api_key]

    def listing(api_key: str) -> list[ResourceInfo]:
        return [ResourceInfo(f"search://{len(api_key)}", "Bern")]

    def health(api_key: str, request: Request) -> str:
        return f"{request.path} {api_key}"

    completer = functools.update_wrapper(partial(cities, api_key=SECRET), cities)
    mcp.resource("search://{city}", completions={"city": completer})(partial(search, api_key=SECRET, limit=5))
    mcp.resource_lister("search")(functools.update_wrapper(partial(listing, SECRET), listing))
    mcp.custom_route("/health", timeout=None)(functools.update_wrapper(partial(health, SECRET), health))
    async with Client(mcp) as client:
        completion = await client.complete({"type": "ref/resource", "uri": "search://{city}"}, "city", "B")
        assert completion.values == ["B" + SECRET]
        [listed] = await client.list_resources()
        assert listed["uri"] == "search://4"
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=mcp), base_url="http://127.0.0.1") as http:
        assert (await http.get("/health")).text == f"/health {SECRET}"


async def test_a_bound_argument_of_a_task_is_passed() -> None:
    mcp = MCPServer("t")
    mcp.tool("search", task="required")(partial(search, api_key=SECRET))
    async with Client(mcp) as client:
        result = await client.call_tool("search", {"city": "Bern"})
        assert result.text == f"Bern {SECRET} 5"


async def test_bound_arguments_replace_dependencies_of_compat() -> None:
    def key() -> str:
        return "of the dependency"

    def engine(api_key: Annotated[str, Depends(key)]) -> str:
        return api_key

    mcp = FastMCP("t")

    def find(city: str, api_key: str = Depends(key), engine_key: str = Depends(partial(engine, api_key=SECRET))) -> str:
        return f"{city} {api_key} {engine_key}"

    mcp.tool("free")(find)
    mcp.tool("bound")(partial(find, api_key=SECRET))
    async with Client(mcp) as client:
        assert SECRET not in json.dumps(await client.list_tools())
        assert (await client.call_tool("free", {"city": "Bern"})).text == f"Bern of the dependency {SECRET}"
        assert (await client.call_tool("bound", {"city": "Bern"})).text == f"Bern {SECRET} {SECRET}"


async def test_types_of_bound_arguments_need_not_be_json() -> None:
    class Connection:
        """No JSON value."""

    def find(connection: Connection, city: str) -> str:
        return city

    mcp = MCPServer("t")
    mcp.tool(partial(find, Connection()))
    async with Client(mcp) as client:
        assert (await client.call_tool("find", {"city": "Bern"})).text == "Bern"


def test_a_partial_object_s_own_name_counts() -> None:
    named = partial(search, api_key=SECRET)
    assert function_name(partial(named, limit=1)) == "search"
    named.__name__ = "find"  # type: ignore[attr-defined]  # partial objects have attributes
    assert function_name(named) == "find"
    assert function_name(partial(Engine(), api_key=SECRET)) == "Engine"


def test_parameters_behind_one_that_is_bound_by_name_have_no_position() -> None:
    def many(first: int, second: int, third: int, *rest: int, **named: int) -> int:
        return first + second + third + len(rest) + len(named)

    assert str(signature_of(partial(many, second=2))).startswith("(first: 'int', *, third: 'int', **named: 'int')")
    assert str(signature_of(partial(many, 1, extra=2))).startswith("(second: 'int', third: 'int', *rest")
    assert without_partials(partial(partial(many, 1), 2)) is many
    assert inspect.signature(many) == signature_of(many)


def test_arguments_that_do_not_fit_and_classes_are_refused_without_showing_them() -> None:
    mcp = MCPServer("t")
    with pytest.raises(RegistrationError, match="The signature of search can't be read: ") as refused:
        mcp.tool(partial(search, apikey=SECRET))  # type: ignore[call-arg]  # the point of the test
    assert SECRET not in str(refused.value)
    with pytest.raises(RegistrationError, match="Engine is a class"):
        mcp.tool(partial(Engine))


def test_partials_and_callable_objects_are_known_to_be_async() -> None:
    async def work(a: int) -> None: ...

    class Async:
        async def __call__(self) -> None: ...

    class Plain:
        def __call__(self) -> None: ...

    assert is_async(functools.partial(work, 1))
    assert is_async(Async())
    assert is_async(Async().__call__)
    assert not is_async(Plain())
    assert not is_async(max)
