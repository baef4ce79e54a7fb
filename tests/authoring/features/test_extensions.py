"""Extensions of authors: what they declare, and their methods."""

from __future__ import annotations

from collections.abc import Iterator  # noqa: TC003 - read at run time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import BaseModel
from typing_extensions import TypedDict

from funcmcp import Context, InvalidParams, MCPError, MCPServer, RegistrationError, ToolError
from funcmcp.extensions import Extension
from funcmcp.testing import Client

if TYPE_CHECKING:
    from collections.abc import Callable

SEARCH = "com.example/search"
QUERY = "com.example/search/query"


@dataclass
class Page:
    hits: list[str]
    total: int = 0


class Model(BaseModel):
    hits: list[str]


class Typed(TypedDict):
    hits: list[str]


def nothing() -> dict[str, Any]:
    return {}


def items() -> Iterator[dict[str, Any]]:
    yield {}


async def number() -> int:
    return 5


def texts() -> dict[str, Any] | list[str]:
    return []


def reserved(requestState: str) -> dict[str, Any]:  # noqa: N803 - the member of the protocol
    return {"state": requestState}


def used() -> Extension:
    search = Extension(SEARCH)
    MCPServer("s", extensions=[search])
    return search


def server(function: Callable[..., Any], **options: Any) -> MCPServer:
    mcp = MCPServer("Shop")
    mcp.method(QUERY, **options)(function)
    return mcp


async def error_of(client: Client, method: str, params: dict[str, Any] | None = None) -> MCPError:
    with pytest.raises(MCPError) as caught:
        await client.request(method, params)
    return caught.value


async def test_the_settings_of_the_client_are_in_the_context() -> None:
    async def query(context: Context) -> dict[str, Any]:
        return {"settings": context.client_extension(SEARCH), "other": context.client_extension("com.example/other")}

    async with Client(server(query), extensions={SEARCH: {"depth": 3}}) as client:
        result = await client.request(QUERY)
    assert (result["settings"], result["other"]) == ({"depth": 3}, None)


@pytest.mark.parametrize("value", [Page(["a"]), Model(hits=["a"]), {"hits": ["a"]}])
async def test_a_result_is_an_object(value: object) -> None:
    def query() -> Any:
        return value

    query.__annotations__["return"] = type(value) if not isinstance(value, dict) else Typed
    async with Client(server(query)) as client:
        assert (await client.request(QUERY))["hits"] == ["a"]


async def test_none_is_an_empty_object() -> None:
    def query() -> None:
        return

    async with Client(server(query), revision="2025-11-25") as client:
        assert await client.request(QUERY) == {}


async def test_values_without_annotations_are_converted() -> None:
    async with Client(server(lambda: {"hits": ("a", "b")})) as client:
        assert (await client.request(QUERY))["hits"] == ["a", "b"]


@pytest.mark.parametrize("value", [[1], "text", 5])
async def test_another_result_is_an_error_of_the_server(value: object) -> None:
    async with Client(server(lambda: value)) as client:
        assert (await error_of(client, QUERY)).code == -32603


@pytest.mark.parametrize(
    ("params", "text"),
    [
        ({}, "text"),
        ({"text": 5}, "text: must be a string"),
        ({"text": "a", "limit": "5"}, "limit"),
        ({"text": "a", "limt": 5}, "is not an argument"),
    ],
)
async def test_params_are_checked_by_their_types(params: dict[str, Any], text: str) -> None:
    def query(text: str, limit: int = 10) -> dict[str, Any]:
        return {"hits": [text] * limit}

    async with Client(server(query)) as client:
        error = await error_of(client, QUERY, params)
    assert error.code == -32602
    assert text in str(error)


async def test_params_can_be_lax() -> None:
    def query(limit: int) -> dict[str, Any]:
        return {"limit": limit}

    async with Client(server(query, lax=True, unknown_arguments="drop")) as client:
        assert (await client.request(QUERY, {"limit": "5", "other": 1}))["limit"] == 5


async def test_errors_of_the_function_are_errors_of_the_protocol() -> None:
    def query(kind: str) -> dict[str, Any]:
        raise {"params": InvalidParams("no"), "own": MCPError(7, "own"), "tool": ToolError("text")}.get(
            kind, ValueError("secret")
        )

    async with Client(server(query)) as client:
        found = [await error_of(client, QUERY, {"kind": kind}) for kind in ("params", "own", "tool", "other")]
    assert [error.code for error in found] == [-32602, 7, -32603, -32603]
    assert ("text" in str(found[2]), "secret" in str(found[3])) == (True, False)


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("tools/call", "of the protocol"),
        ("skills/list", "of the protocol"),
        ("notifications/x", "of the protocol"),
        ("sampling/other", "of the protocol"),
        ("search", "needs a name"),
        ("", "needs a name"),
        ("com.example/" + "x" * 200, "needs a name"),
        ("com.example//x", "needs a name"),
        (5, "needs a name"),
        (len, "Write @mcp.method"),
        ("events/poll", "prefix that you own"),
    ],
)
def test_a_name_that_no_extension_can_have_is_an_error(name: Any, error: str) -> None:
    with pytest.raises(RegistrationError, match=error):
        MCPServer("Shop").method(name)


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: Extension("search"), "prefix that you own"),
        (lambda: Extension("io.modelcontextprotocol/skills"), "needs no Extension"),
        (lambda: Extension(SEARCH, ["x"]), "must be a dict"),  # type: ignore[arg-type]
        (lambda: Extension(SEARCH, {"x": object()}), "settings of com.example/search"),
        (lambda: MCPServer("s", extensions=[Extension(SEARCH), Extension(SEARCH)]), "twice"),
        (lambda: MCPServer("s").method(QUERY, extension=SEARCH)(nothing), "not one of the server"),
        (lambda: MCPServer("s").method(QUERY, colour="red")(nothing), "Unknown option"),  # type: ignore[call-arg]
        (lambda: Extension(SEARCH).method(QUERY, colour="red"), "Unknown option"),  # type: ignore[call-arg]
        (lambda: MCPServer("s").method(QUERY, timeout=-1)(nothing), "timeout"),
        (lambda: MCPServer("s").method(QUERY)(items), "is a generator"),
        (lambda: MCPServer("s").method(QUERY)(number), "must return an object"),
        (lambda: MCPServer("s").method(QUERY)(texts), "must return an object"),
        (lambda: MCPServer("s").method(QUERY)(reserved), "'requestState', which is a member of the protocol"),
        (lambda: used().method(QUERY), "has com.example/search already"),
    ],
)
def test_a_wrong_extension_is_an_error(make: Callable[[], object], error: str) -> None:
    with pytest.raises(RegistrationError, match=error):
        make()


def test_extensions_are_a_list() -> None:
    with pytest.raises(TypeError, match="Write extensions="):
        MCPServer("s", extensions=Extension(SEARCH))  # type: ignore[arg-type]


def test_a_later_change_of_the_settings_has_no_effect() -> None:
    languages = ["en"]
    search = Extension(SEARCH, {"languages": languages})
    languages.append("de")
    assert search.settings == {"languages": ["en"]}


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_a_function_may_send_notifications_of_an_extension(revision: str) -> None:
    async def query(context: Context) -> None:
        for wrong in ("found", "notifications/x", "com.example"):
            with pytest.raises(ValueError, match="needs a name"):
                await context.notify(wrong)
        with pytest.raises(ValueError, match="object"):
            await context.notify("com.example/search/found", {"hit": object()})
        await context.notify("com.example/search/found", {"hit": "a"})
        await context.notify("com.example/search/ended")

    messages: list[dict[str, Any]] = []
    async with Client(server(query), revision=revision, on_notification=messages.append) as client:
        await client.request(QUERY)
    assert [(message["method"], message["params"]) for message in messages] == [
        ("com.example/search/found", {"hit": "a"}),
        ("com.example/search/ended", {}),
    ]


@pytest.mark.parametrize(
    ("extensions", "error"),
    [
        ("com.example/search", TypeError),
        (["search"], ValueError),
        ({SEARCH: 5}, ValueError),
        ([5], ValueError),
        ({SEARCH: {"depth": object()}}, ValueError),
    ],
)
def test_a_client_declares_extensions_with_valid_names(extensions: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        Client(MCPServer("s"), extensions=extensions)
