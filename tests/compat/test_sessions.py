"""FastMCP's sessions: those that a model names, and those of signed-in callers."""

from __future__ import annotations

import functools
from typing import Annotated, Any

import pytest
from pydantic import Field

from funcmcp.compat import (
    FastMCP,
    Session,
    SessionId,
    SessionProvider,
    StaticTokenVerifier,
    UserSession,
    get_session,
)
from funcmcp.compat.fastmcp.server.sessions import (
    SESSION_ID_DESCRIPTION,
    CurrentSession,
    OptionalCurrentSession,
    session_id_parameter_names,
    session_storage_key,
)
from funcmcp.testing import Client

TOKENS: dict[str, dict[str, Any]] = {name: {"client_id": "app", "scopes": [], "sub": name} for name in ("ada", "bob")}


def client_of(mcp: FastMCP, name: str) -> Client:
    return Client(mcp, headers={"authorization": f"Bearer {name}"})


async def called(client: Client, tool: str, **arguments: Any) -> Any:
    return (await client.call_tool(tool, arguments)).structured_content["result"]


@pytest.fixture
def shop() -> FastMCP:
    """Return a server with a cart in each session that a model names."""
    mcp = FastMCP("Shop", providers=[SessionProvider()])

    @mcp.tool
    async def add(item: str, session_id: SessionId) -> list[str]:
        session = await get_session(session_id)
        items = [*await session.get("cart", []), item]
        await session.set("cart", items)
        return items

    @mcp.tool
    async def empty(session_id: SessionId) -> str | None:
        session = await get_session(session_id)
        await session.delete("missing")
        await session.clear()
        return session.id

    return mcp


async def test_a_session_has_its_values_until_it_ends(shop: FastMCP) -> None:
    async with Client(shop) as client:
        first, second = await called(client, "create_session"), await called(client, "create_session")
        assert await called(client, "add", item="tea", session_id=first) == ["tea"]
        assert await called(client, "add", item="milk", session_id=first) == ["tea", "milk"]
        assert await called(client, "add", item="rice", session_id=second) == ["rice"]
        assert await called(client, "empty", session_id=first) == first
        assert await called(client, "add", item="bread", session_id=first) == ["bread"]
        assert await called(client, "end_session", session_id=first) == "session ended"
        result = await client.call_tool("add", {"item": "tea", "session_id": first}, raise_on_error=False)
        assert result.is_error
        assert result.content[0].text == "Invalid or unknown session."


async def test_an_id_that_was_never_created_is_refused(shop: FastMCP) -> None:
    async with Client(shop) as client:
        result = await client.call_tool("add", {"item": "tea", "session_id": "guess"}, raise_on_error=False)
        assert result.content[0].text == "Invalid or unknown session."


async def test_a_session_is_for_the_caller_that_created_it() -> None:
    mcp = FastMCP("Shop", providers=[SessionProvider()], auth=StaticTokenVerifier(TOKENS))

    @mcp.tool
    async def count(session_id: SessionId) -> int:
        session = await get_session(session_id)
        await session.set("count", await session.get("count", 0) + 1)
        return int(await session.get("count"))

    async with client_of(mcp, "ada") as ada, client_of(mcp, "bob") as bob:
        session_id = await called(ada, "create_session")
        assert await called(ada, "count", session_id=session_id) == 1
        assert (await bob.call_tool("count", {"session_id": session_id}, raise_on_error=False)).is_error
        assert await called(ada, "count", session_id=session_id) == 2


async def test_the_session_of_a_caller_is_not_an_argument() -> None:
    mcp = FastMCP("Notes", auth=StaticTokenVerifier(TOKENS))

    @mcp.tool
    async def note(text: str, session: UserSession) -> str | None:
        previous = await session.get("note")
        await session.set("note", text)
        return None if previous is None else str(previous)

    @mcp.resource("notes://last")
    async def last(session: Session = CurrentSession()) -> str:  # noqa: B008 - as authors of FastMCP write it
        assert session.id is None
        return str(await session.get("note", "none"))

    async with client_of(mcp, "ada") as ada, client_of(mcp, "bob") as bob:
        (tool,) = await ada.list_tools()
        assert list(tool.input_schema["properties"]) == ["text"]
        assert await called(ada, "note", text="one") is None
        assert await called(ada, "note", text="two") == "one"
        assert (await ada.read_resource("notes://last")).contents[0].text == "two"
        assert (await bob.read_resource("notes://last")).contents[0].text == "none"


async def test_callers_without_credentials_have_no_session() -> None:
    mcp = FastMCP("Notes")

    @mcp.tool
    async def needed(session: UserSession) -> str:
        return str(session.id)

    @mcp.tool
    async def optional(session: UserSession | None = None, other: Any = OptionalCurrentSession()) -> bool:  # noqa: B008
        return session is None and other is None

    async with Client(mcp) as client:
        result = await client.call_tool("needed", {}, raise_on_error=False)
        assert "needs a signed-in caller" in str(result.content[0].text)
        assert await called(client, "optional") is True


async def test_the_description_of_an_id_says_how_to_get_one() -> None:
    mcp = FastMCP("Shop")

    @mcp.tool
    def plain(session_id: SessionId) -> str:
        return session_id

    @mcp.tool
    def described(session_id: Annotated[SessionId, Field(description="The cart.")]) -> str:
        return session_id

    async with Client(mcp) as client:
        schemas = [tool.input_schema["properties"]["session_id"] for tool in await client.list_tools()]
    assert [schema["description"] for schema in schemas] == [
        SESSION_ID_DESCRIPTION,
        f"The cart. {SESSION_ID_DESCRIPTION}",
    ]


def test_the_arguments_that_are_ids_are_known_by_name() -> None:
    def tool(item: str, session_id: SessionId) -> None: ...

    assert session_id_parameter_names(tool) == ("session_id",)
    assert session_id_parameter_names(functools.partial(tool, "tea", "id")) == ()
    assert session_id_parameter_names(object()) == ()  # type: ignore[arg-type] # not a function


def test_a_name_in_the_store_does_not_show_the_caller() -> None:
    assert session_storage_key(None, "1") == "session:anon:1"
    assert "ada" not in session_storage_key('["app",null,"ada"]', "1")
