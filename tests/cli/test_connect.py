"""A server that a command uses: how its target is loaded, and what is sent with each request."""

from __future__ import annotations

import json

import pytest

from funcmcp import MCPServer
from funcmcp_cli.connect import Source, call_tool, inspect_server, open_source, unlisted_tools
from funcmcp_cli.failure import Failure
from funcmcp_cli.terminal import ProgressDisplay
from tests.client.scripted import Exchange, handshake_server, scripted

URL = "http://127.0.0.1:8000/mcp"


def test_header_fields_are_read_without_the_space_around_their_values() -> None:
    source = open_source(URL, headers=["X-Api-Key: a b:c ", "x-other:1"])
    assert source.headers == {"x-api-key": "a b:c", "x-other": "1"}


def test_a_header_field_may_refer_to_environment_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_TOKEN", "abc")
    source = open_source(URL, headers=["Authorization:Bearer ${SHOP_TOKEN}", "x-other: $SHOP_TOKEN"], bearer=None)
    assert source.headers == {"authorization": "Bearer abc", "x-other": "$SHOP_TOKEN"}
    assert open_source(URL, bearer="${SHOP_TOKEN}").headers == {"authorization": "Bearer ${SHOP_TOKEN}"}


def test_a_header_field_with_a_variable_that_is_not_set_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SHOP_TOKEN", raising=False)
    with pytest.raises(Failure, match="--header refers to the environment variable SHOP_TOKEN, which is not set"):
        open_source(URL, headers=["Authorization: Bearer ${SHOP_TOKEN}"])


def test_a_bearer_token_becomes_a_header_field() -> None:
    assert open_source(URL, bearer="abc.def").headers == {"authorization": "Bearer abc.def"}


@pytest.mark.parametrize("text", ["secret", ":x", "a b:secret", "a:", "a:secret\r\nb:1", "a:secrét", "a:secret\x7f"])
def test_a_header_field_that_is_not_valid_is_refused_without_repeating_it(text: str) -> None:
    with pytest.raises(Failure) as raised:
        open_source(URL, headers=[text])
    assert str(raised.value) == (
        "A header field must be NAME:VALUE in visible ASCII, such as --header 'X-Api-Key: secret'."
    )


@pytest.mark.parametrize("name", ["Host", "content-length", "Mcp-Session-Id", "Accept-Encoding"])
def test_a_header_field_that_the_client_sets_itself_is_refused(name: str) -> None:
    with pytest.raises(Failure, match=f"--header {name.lower()} is not possible"):
        open_source(URL, headers=[f"{name}: x"])


@pytest.fixture
def searched() -> Source:
    mcp = MCPServer("searched")

    @mcp.tool
    def add(a: int, b: int) -> int:
        return a + b

    @mcp.tool
    def broken(value: "Missing") -> None:  # type: ignore[name-defined]  # noqa: F821, UP037
        """Break."""

    mcp.tool_search()
    return Source("searched", mcp)


async def test_a_tool_that_only_a_search_finds_is_called_by_its_name(searched: Source) -> None:
    result = await call_tool(searched, "add", ["a=1", "b=2"], None, ProgressDisplay(verbose=False))
    assert result.text == "3"
    with pytest.raises(Failure, match="Did you mean add"):
        await call_tool(searched, "ad", [], None, ProgressDisplay(verbose=False))


def test_tools_that_the_list_leaves_out_are_those_of_a_server_in_this_process(searched: Source) -> None:
    assert [tool.name for tool in unlisted_tools(searched, [{"name": "search_tools"}])] == ["add", "call_tool"]
    assert unlisted_tools(open_source(URL), []) == []


async def test_a_server_without_one_of_the_lists_is_inspected() -> None:
    async def serve(exchange: Exchange) -> None:
        method = exchange.message.get("method")
        if method == "resources/templates/list":
            error = {"code": -32601, "message": "Method not found"}
            body = json.dumps({"jsonrpc": "2.0", "id": exchange.message["id"], "error": error})
            await exchange.respond(200, body.encode())
        elif method == "resources/list":
            await exchange.answer({"resources": [{"uri": "memo:a", "name": "a"}]})
        else:
            await handshake_server(lambda _: exchange.respond(500), capabilities={"resources": {}})(exchange)

    async with scripted(serve) as server:
        facts, _ = await inspect_server(open_source(server.url))
    assert [item["uri"] for item in facts["resources"]] == ["memo:a"]
    assert facts["resourceTemplates"] == []


@pytest.mark.parametrize(
    ("status", "path", "endpoint"), [(404, "", "/mcp"), (405, "/", "/mcp"), (404, "", "/runtime/webhooks/mcp")]
)
async def test_a_url_without_a_path_finds_the_endpoint(
    status: int, path: str, endpoint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    answered = handshake_server(lambda exchange: exchange.respond(500))

    async def serve(exchange: Exchange) -> None:
        if exchange.target == endpoint:
            await answered(exchange)
        else:
            await exchange.respond(status, b"<h1>A site</h1>", kind="text/html")

    async with scripted(serve) as server:
        origin = server.url.removesuffix("/mcp")
        facts, _ = await inspect_server(open_source(origin + path))
    assert facts["server"]["name"] == "scripted"
    assert capsys.readouterr().err == f"The endpoint is {origin}{endpoint}.\n"


@pytest.mark.parametrize("path", ["", "/other"])
async def test_a_url_at_which_and_below_which_is_no_endpoint_is_named_as_it_was_written(path: str) -> None:
    async with scripted(lambda exchange: exchange.respond(404)) as server:
        url = server.url.removesuffix("/mcp") + path
        with pytest.raises(Failure) as raised:
            await inspect_server(open_source(url))
        targets = {exchange.target for exchange in server.requests}
    assert str(raised.value).startswith(f"{url} does not answer as an MCP server.")
    assert targets == ({"/", "/mcp", "/runtime/webhooks/mcp"} if path == "" else {path})
