"""Calls that are recorded with one client and played to another."""

from __future__ import annotations

import asyncio
import errno
import json
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp import Context, MCPServer
from funcmcp._client.cassettes import Call, RecordingTransport, ReplayTransport, known_secrets
from funcmcp._client.target_transports import transport_for
from funcmcp.client import ConnectionFailedError
from funcmcp.testing import REVISIONS, Cassette, CassetteError, Client, accept, decline

if TYPE_CHECKING:
    from pathlib import Path

    from funcmcp.client import ProgressUpdate

ERAS = pytest.mark.parametrize("revision", REVISIONS[-2:])


def shop() -> MCPServer:
    mcp = MCPServer("shop", sessions="memory")

    @mcp.tool
    async def price(item: str, context: Context) -> int:
        """Return the price of an item."""
        await context.report_progress(1, 2, "looking")
        return len(item)

    @mcp.tool
    async def order(context: Context) -> str:
        """Order something."""
        answer = await context.elicit(
            "Under which name?", {"type": "object", "properties": {"name": {"type": "string"}}}
        )
        return f"{answer.action}: {answer.content}"

    @mcp.tool
    def login(user: str, password: str, pin: str = "") -> str:
        """Log in."""
        return f"{user} has logged in with {password}. Bearer abcdefgh12345 {pin}"

    return mcp


def recording(path: Path, mcp: MCPServer | None = None, **options: Any) -> RecordingTransport:
    return RecordingTransport(transport_for(mcp or shop(), {}), Cassette(path, **options))


def saved(path: Path) -> list[dict[str, Any]]:
    calls: list[dict[str, Any]] = json.loads(path.read_text())["calls"]
    return calls


def names_in(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def replaying(path: Path) -> ReplayTransport:
    return ReplayTransport(Cassette.load(path))


@ERAS
async def test_calls_are_played_with_their_progress(tmp_path: Path, revision: str) -> None:
    path = tmp_path / "folder" / "calls.json"
    updates: list[list[ProgressUpdate]] = [[], []]
    for number, transport in enumerate([recording(path), None]):
        async with Client(
            transport or replaying(path), revision=revision, on_progress=updates[number].append
        ) as client:
            assert client.server_info["name"] == "shop"
            assert len(await client.list_tools()) == 3
            assert (await client.call_tool("price", {"item": "tea"})).structured_content == {"result": 3}
    assert updates[0] == updates[1]
    assert [update.message for update in updates[0]] == ["looking"]


@ERAS
async def test_questions_are_asked_again(tmp_path: Path, revision: str) -> None:
    path = tmp_path / "calls.json"
    results = []
    for transport in (recording(path), None):
        async with Client(transport or replaying(path), revision=revision, elicit=accept({"name": "Ada"})) as client:
            results.append((await client.call_tool("order")).text)
    assert results == ["accept: {'name': 'Ada'}"] * 2
    async with Client(replaying(path), revision=revision, elicit=decline) as client:
        with pytest.raises(CassetteError, match=r"(?s)recorded.*sent.*decline"):
            await client.call_tool("order")


async def test_a_request_that_is_not_in_the_cassette_is_an_error_with_the_difference(tmp_path: Path) -> None:
    path = tmp_path / "calls.json"
    async with Client(recording(path)) as client:
        await client.call_tool("price", {"item": "tea"})
    transport = replaying(path)
    async with Client(transport) as client:
        await client.list_tools()
        with pytest.raises(CassetteError) as caught:
            await client.call_tool("price", {"item": "coffee"})
    text = str(caught.value)
    assert text.startswith(
        f'{path} has no such request: tools/call {{"name": "price", "arguments": {{"item": "coffee"}}}}.'
    )
    assert '-      "item": "tea"' in text
    assert '+      "item": "coffee"' in text


async def test_each_call_is_played_once_and_in_its_order(tmp_path: Path) -> None:
    path = tmp_path / "calls.json"
    async with Client(recording(path), revision="2026-07-28") as client:
        for item in ("tea", "coffee", "tea"):
            await client.call_tool("price", {"item": item})
    transport = replaying(path)
    async with Client(transport, revision="2026-07-28") as client:
        await client.call_tool("price", {"item": "tea"})
        with pytest.raises(CassetteError, match="another place of the order"):
            await client.call_tool("price", {"item": "tea"})
        await client.call_tool("price", {"item": "coffee"})
        await client.call_tool("price", {"item": "tea"})
        with pytest.raises(CassetteError, match="All calls"):
            await client.call_tool("price", {"item": "tea"})
        assert len(await client.list_tools()) == len(await client.list_tools()) == 3
        with pytest.raises(CassetteError, match="All calls"):
            await client.get_prompt("a")
        with pytest.raises(CassetteError, match="no prompts/list here"):
            await client.list_items("prompts/list", "prompts")


async def test_calls_that_ran_side_by_side_may_come_in_another_order(tmp_path: Path) -> None:
    path = tmp_path / "calls.json"
    mcp = shop()
    gate = asyncio.Event()

    @mcp.tool
    async def slow() -> str:
        """Wait for the other call."""
        await gate.wait()
        return "slow"

    @mcp.tool
    async def fast() -> str:
        """Let the other call go on."""
        gate.set()
        return "fast"

    async with Client(recording(path, mcp)) as client:
        await client.list_tools()
        await asyncio.gather(client.call_tool("slow"), client.call_tool("fast"))
    async with Client(replaying(path)) as client:
        await client.list_tools()
        assert (await client.call_tool("fast")).text == "fast"
        assert (await client.call_tool("slow")).text == "slow"


class Upstream:
    """A transport to a server with two pages of tools, or with a list that fails."""

    is_http = True
    session_id = None

    def __init__(self, *, fails: bool = False) -> None:
        self.fails = fails
        self.requests: list[tuple[str, dict[str, Any], Any]] = []

    async def request(self, message: Any, headers: Any) -> Any:
        self.requests.append((message["method"], message["params"], headers))
        if message["method"] == "tools/call":
            return {"jsonrpc": "2.0", "id": message["id"], "result": {"content": []}}
        if self.fails:
            raise ConnectionFailedError("The list is too long.")
        page = {"tools": []} if "cursor" in message["params"] else {"tools": [], "nextCursor": "2"}
        return {"jsonrpc": "2.0", "id": message["id"], "result": page}


async def test_the_tools_are_recorded_before_the_first_call_of_a_client_that_does_not_list_them(tmp_path: Path) -> None:
    upstream: Any = Upstream()
    recorder = RecordingTransport(upstream, Cassette(tmp_path / "calls.json"))
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}
    params = {"name": "add", "arguments": {}, "_meta": {**meta, "progressToken": 1}}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    headers = {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": "add", "mcp-param-a": "1"}
    await recorder.request(call, headers)
    await recorder.request(call, headers)
    fields = {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/list"}
    assert upstream.requests == [
        ("tools/list", {"_meta": meta}, fields),
        ("tools/list", {"_meta": meta, "cursor": "2"}, fields),
        ("tools/call", params, headers),
        ("tools/call", params, headers),
    ]
    listed = {"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {"cursor": "2"}}
    assert await replaying(tmp_path / "calls.json").request(listed, {}) == {
        "jsonrpc": "2.0",
        "id": 2,
        "result": {"tools": []},
    }


async def test_a_list_of_tools_that_fails_does_not_end_the_call(tmp_path: Path) -> None:
    upstream: Any = Upstream(fails=True)
    recorder = RecordingTransport(upstream, Cassette(tmp_path / "calls.json"))
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "add"}}
    assert (await recorder.request(call, {}))["result"] == {"content": []}
    assert [method for method, _, _ in upstream.requests] == ["tools/list", "tools/call"]


async def test_secrets_are_neither_written_nor_needed(tmp_path: Path) -> None:
    path = tmp_path / "calls.json"
    arguments = {"user": "ada", "password": "correct-horse", "pin": "1234"}
    async with Client(recording(path, secrets=["pin"], texts=["adas-token"])) as client:
        await client.list_tools()
        await client.call_tool("login", arguments, meta={"note": "adas-token"})
    text = path.read_text()
    assert not [secret for secret in ("correct-horse", '"1234"', "abcdefgh12345", "adas-token") if secret in text]
    assert "REMOVED" in text
    assert json.loads(text)["secrets"] == ["pin"]
    async with Client(replaying(path)) as client:
        tools = await client.list_tools()
        assert tools[2].input_schema["properties"]["password"]["type"] == "string"
        result = await client.call_tool("login", {**arguments, "password": "another", "pin": "5"})
        assert result.text == "ada has logged in with REMOVED. Bearer REMOVED 1234"


def test_known_secrets_are_parts_of_headers_and_variables_with_such_names() -> None:
    variables = {"OPENAI_API_KEY": "a-secret-key", "PASSWORD": "correct-horse", "HOT_KEY": "enter", "PWD": "/srv/shop"}
    secrets = known_secrets({"authorization": "Basic adas-token"}, variables)
    assert secrets == ["Basic", "adas-token", "a-secret-key", "correct-horse"]


async def test_errors_and_traces_are_recorded_as_they_matter(tmp_path: Path) -> None:
    path = tmp_path / "calls.json"
    async with Client(recording(path)) as client:
        with pytest.raises(Exception, match="Unknown tool"):
            await client.call_tool("nothing", meta={"traceparent": "00-1"})
    assert "traceparent" not in path.read_text()
    async with Client(replaying(path)) as client:
        with pytest.raises(Exception, match="Unknown tool"):
            await client.call_tool("nothing")


async def test_a_call_without_a_response_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "calls.json"
    mcp = shop()

    @mcp.tool
    async def hang() -> None:
        """Never end."""
        await asyncio.Event().wait()

    async with Client(recording(path, mcp)) as client:
        await client.list_tools()
        with pytest.raises(Exception, match="second"):
            await client.call_tool("hang", timeout=0.01)
    assert "hang" not in [
        call["request"].get("params", {}).get("name") for call in json.loads(path.read_text())["calls"]
    ]


async def test_a_call_goes_on_while_the_cassette_can_not_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(file: Path, _text: str, **_options: str) -> int:
        file.touch()
        raise OSError(errno.ENOSPC, "No space left on device")

    path = tmp_path / "calls.json"
    async with Client(recording(path)) as client:
        with monkeypatch.context() as patch:
            patch.setattr("pathlib.Path.write_text", full)
            for item in ("tea", "coffee"):
                assert (await client.call_tool("price", {"item": item})).structured_content == {"result": len(item)}
        assert names_in(tmp_path) == ["calls.json"]
    assert caplog.text.count("can't be written (No space left on device). The calls go on.") == 1
    assert len([record for record in saved(path) if record["request"]["method"] == "tools/call"]) == 2
    monkeypatch.setattr("pathlib.Path.write_text", full)
    with pytest.raises(CassetteError, match=r"calls\.json lacks the last calls: No space left on device"):
        async with Client(recording(path)) as client:
            await client.call_tool("price", {"item": "tea"})


async def test_the_log_says_when_a_cassette_is_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with Client(recording(tmp_path / "calls.json")) as client:
        with monkeypatch.context() as patch:
            patch.setattr("pathlib.Path.replace", lambda *_: (_ for _ in ()).throw(OSError(errno.EIO, "Failed")))
            await client.call_tool("price", {"item": "tea"})
        await client.call_tool("price", {"item": "tea"})
    assert "is written again, with all calls" in caplog.text


async def test_what_the_server_sends_between_calls_comes_with_the_next_one(tmp_path: Path) -> None:
    changed = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}

    class Server:
        is_http = False
        session_id: str | None = None

        async def connect(self, receive: Any) -> None:
            await receive(changed)

        async def request(self, message: dict[str, Any], headers: Any) -> dict[str, Any]:
            del headers
            return {"jsonrpc": "2.0", "id": message["id"], "result": {}}

        async def send(self, message: dict[str, Any], headers: Any) -> None:
            """Take a message."""

        async def aclose(self) -> None:
            """Close nothing."""

    cassette = Cassette(tmp_path / "calls.json")
    received: list[dict[str, Any]] = []

    async def receive(message: dict[str, Any]) -> None:
        received.append(message)

    for transport in (RecordingTransport(Server(), cassette), ReplayTransport(cassette)):
        await transport.connect(receive)
        await transport.request({"jsonrpc": "2.0", "id": 1, "method": "ping"}, {})
        await transport.aclose()
        if isinstance(transport, RecordingTransport):
            cassette = Cassette.load(cassette.path)
    assert received == [changed, changed]


def test_unplayed_calls_are_named(tmp_path: Path) -> None:
    cassette = Cassette(tmp_path / "calls.json")
    cassette.end(cassette.begin({"method": "tools/call", "params": {"name": "add"}}), {"result": {}})
    assert Cassette.load(cassette.path).unplayed == ['tools/call {"name": "add"}']


def test_a_cassette_has_so_many_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("funcmcp._client.cassettes._MAX_CALLS", 0)
    with pytest.raises(CassetteError, match="0 calls"):
        Cassette(tmp_path / "calls.json").begin({"method": "ping"})
    (tmp_path / "calls.json").write_text("{}")
    monkeypatch.setattr("funcmcp._client.cassettes._MAX_BYTES", 1)
    with pytest.raises(CassetteError, match="1 bytes"):
        Cassette.load(tmp_path / "calls.json")


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("", "not a cassette"),
        ("[]", "not a cassette"),
        ('{"cassette": 2}', "newer version"),
        ('{"cassette": 1}', "not a cassette"),
        ('{"cassette": 1, "calls": [{}]}', "not a cassette"),
        ('{"cassette": 1, "calls": [{"request": {"method": 1}, "response": {}}]}', "a call has no method"),
        (
            '{"cassette": 1, "calls": [{"request": {"method": "a"}, "response": {}, "messages": [{"from": 1}]}]}',
            "neither",
        ),
    ],
)
def test_another_file_is_no_cassette(tmp_path: Path, content: str, text: str) -> None:
    (tmp_path / "calls.json").write_text(content)
    with pytest.raises(CassetteError, match=text):
        Cassette.load(tmp_path / "calls.json")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(CassetteError, match=r"There is no cassette .*missing\.json"):
        Cassette.load(tmp_path / "missing.json")


def test_a_call_written_by_hand_needs_no_number(tmp_path: Path) -> None:
    path = tmp_path / "calls.json"
    path.write_text('{"cassette": 1, "calls": [{"request": {"method": "ping"}, "response": {"result": {}}}]}')
    call = Cassette.load(path).take({"method": "ping", "params": {"_meta": {"progressToken": 1}}})
    assert isinstance(call, Call)
    assert call.response == {"result": {}}


def test_one_text_in_place_of_a_list_of_secrets_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"secrets is a list of texts, such as \['pin'\], not one text"):
        Cassette(tmp_path / "calls.json", secrets="pin")
