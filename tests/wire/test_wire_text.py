"""What authors and clients write never becomes anything but text: no event, no header, no member and no code."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp import Context, MCPServer
from tests import rules
from tests.server_options import grouped
from tests.wire.peer import ERAS, HANDSHAKE, PER_REQUEST, connect, exchange

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.every_python("On Python 3.13 these tests send POSTs to the way without ASGI.")

HOSTILE = [
    'a\n\nevent: message\ndata: {"jsonrpc":"2.0","id":1,"result":{}}\n\n',
    "a\r\n\r\ndata: {}\r\rid: 9\rretry: 1\r",
    "\nid: 0\n\n: a comment\n",
    "\u2028data: {}\u2029\x85\x0b\x0c\x1c\x1e\x00\x1b[2J\x07\x08\x7f\u202e",
    '"}]}}\n{"jsonrpc":"2.0","id":1,"result":{}}',
    "</script><script>alert(1)</script>",
]
FIELDS = (b"event: message", b"id: ", b"data: ", b": ", b"retry: ")


class Service:
    """What a function needs and no client may send."""

    name = "the real one"


def parrot(**options: Any) -> MCPServer:
    """Return a server that says everything again, in every way that there is."""
    app = MCPServer("Parrot", **grouped(**options))
    app.services.register_value(Service, Service())

    @app.tool
    async def say(text: str, context: Context) -> str:
        await context.report_progress(1, message=text)
        await context.log("warning", text, logger=text)
        return text

    @app.prompt
    async def write(text: str, context: Context) -> str:
        await context.log("warning", text)
        return text

    @app.resource("parrot://said/{+text}")
    async def said(text: str, context: Context) -> str:
        await context.log("warning", text)
        return text

    @app.tool
    async def who(service: Service, context: Context, word: str = "none") -> str:
        return f"{service.name}, {context.name}, {word}"

    return app


@pytest.fixture(params=["signed", "memory"])
def app(request: pytest.FixtureRequest) -> MCPServer:
    return parrot(sessions=request.param)


def lines_of(body: bytes) -> Iterator[bytes]:
    """Return the lines of a stream as a client splits them: at CR, LF, or both, and nowhere else."""
    yield from body.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")


def contains(message: Any, text: str) -> bool:
    """Tell whether a text stands in a message, whole and unchanged."""
    if isinstance(message, dict):
        return any(contains(value, text) for value in message.values())
    return message == text or (isinstance(message, list) and any(contains(value, text) for value in message))


@rules.verifies(rules.THREAT_44)
@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("revision", ERAS)
@pytest.mark.parametrize("method", ["tools/call", "prompts/get"])
async def test_text_in_a_stream_is_data_of_its_own_event(app: MCPServer, revision: str, method: str, text: str) -> None:
    """There is one event for each message, with its exact text."""
    peer = await connect(app, revision)
    name = {"tools/call": "say", "prompts/get": "write"}[method]
    meta = {"progressToken": text, "io.modelcontextprotocol/logLevel": "info"}
    answer = await peer.request(method, {"name": name, "arguments": {"text": text}, "_meta": meta}, id=text)
    assert answer.media_type == "text/event-stream"
    lines = [line for line in lines_of(answer.body) if line]
    assert all(line.startswith(FIELDS) or line == b"data:" for line in lines)
    data = [json.loads(line[6:]) for line in lines if line.startswith(b"data: {")]
    assert len(data) == len(answer.messages) == {"tools/call": 3, "prompts/get": 2}[method]
    assert [message.get("id") for message in data] == [None] * (len(data) - 1) + [text]
    assert all(contains(message, text) for message in data)


@rules.verifies(rules.THREAT_44)
@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("revision", ERAS)
async def test_control_characters_come_back_as_they_were_and_never_raw(
    app: MCPServer, revision: str, text: str
) -> None:
    """The characters are in a prompt, a resource, a result and the id of a request."""
    peer = await connect(app, revision)
    for method, params in (
        ("prompts/get", {"name": "write", "arguments": {"text": text}}),
        ("tools/call", {"name": "say", "arguments": {"text": text}}),
    ):
        answer = await peer.request(method, params, id=text, headers={"accept": "application/json"})
        assert answer.media_type == "application/json"
        assert not set(answer.body) & set(range(0x20))
        assert answer.message["id"] == text
        assert contains(answer.result, text)


@rules.verifies(rules.THREAT_6)
@pytest.mark.parametrize("value", ["0\n\ndata: {}", "a" * 9000, "-1", "0-0-0", "\x00", "%0A%0Adata:", "é"])
async def test_an_event_id_that_a_client_makes_up_is_never_said_again(value: str) -> None:
    """At most it opens the GET stream, whose event ids are created by the server."""
    app = parrot(sessions="memory")
    peer = await connect(app, HANDSHAKE)
    pairs = [*peer.headers(None).items(), ("last-event-id", value)]
    stream = exchange(app, "GET", [(name, given) for name, given in pairs if name != "accept"])
    stream.scope["headers"].append((b"accept", b"text/event-stream"))
    await stream.begun()
    await peer.delete()
    await stream.ended()
    answer = await stream.answer()
    assert value.encode("latin-1") not in answer.body
    assert value not in str(answer.headers)
    assert all(line.startswith(FIELDS) or line in {b"", b"data:"} for line in lines_of(answer.body))


NAMES = [
    "__proto__",
    "constructor",
    "__class__",
    "__init__",
    "__dict__",
    "__globals__",
    "self",
    "args",
    "kwargs",
    "mro",
]


@rules.verifies(rules.THREAT_45)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("revision", ERAS)
async def test_names_that_mean_something_elsewhere_mean_nothing_here(revision: str, name: str) -> None:
    """The name is used as a tool, a prompt, a method, a URI, an argument or a member."""
    app = parrot()
    peer = await connect(app, revision)
    hostile = {name: {name: ["polluted"]}}
    assert (await peer.call(name)).error["code"] == -32602
    assert (await peer.request("prompts/get", {"name": name})).error["code"] == -32602
    assert "error" in (await peer.request("resources/read", {"uri": name})).message
    assert (await peer.request(name)).error["code"] == -32601
    call = {"name": "who", "arguments": {**hostile, "word": "mine"}, **hostile}
    assert (await peer.request("tools/call", call)).text == f"{name}: is not an argument"
    dropping = await connect(parrot(unknown_arguments="drop"), revision)
    assert (await dropping.request("tools/call", call)).text == "the real one, who, mine"
    listed = await peer.request("tools/list", {**hostile, "_meta": hostile})
    assert b"polluted" not in listed.body
    assert (await peer.call("who")).text == "the real one, who, none"


@rules.verifies(rules.THREAT_45)
@pytest.mark.parametrize("revision", ERAS)
async def test_what_is_injected_can_not_be_sent(revision: str) -> None:
    """Services and the context are never arguments, even with the same name."""
    peer = await connect(parrot(), revision)
    (tool,) = [tool for tool in (await peer.request("tools/list")).result["tools"] if tool["name"] == "who"]
    assert list(tool["inputSchema"]["properties"]) == ["word"]
    forged = {"service": {"name": "a forged one"}, "context": {"tool_name": "forged"}}
    assert (await peer.call("who", forged)).text == "service: is not an argument\ncontext: is not an argument"
    dropping = await connect(parrot(unknown_arguments="drop"), revision)
    assert (await dropping.call("who", forged)).text == "the real one, who, none"


FORMATS = ["{0}", "{0.__class__.__mro__}", "{context}", "%s%n%(name)s", "${7*7}", "{{7*7}}", "$(id)", "`id`", "; id #"]


@rules.verifies(rules.THREAT_45)
@pytest.mark.parametrize("text", FORMATS)
@pytest.mark.parametrize("revision", ERAS)
async def test_text_is_never_a_template_of_the_servers(revision: str, text: str) -> None:
    """The text is returned unchanged, and error messages do not format it."""
    peer = await connect(parrot(), revision)
    assert (await peer.call("say", {"text": text})).text == text
    written = await peer.request("prompts/get", {"name": "write", "arguments": {"text": text}})
    assert written.result["messages"][0]["content"]["text"] == text
    for refused in (await peer.call(text), await peer.request(text)):
        assert "49" not in refused.error["message"]
        assert "class" not in refused.error["message"].replace(text, "")


@rules.verifies(rules.THREAT_6)
async def test_a_stream_of_the_per_request_era_has_no_event_ids() -> None:
    """Its streams are not resumable."""
    peer = await connect(parrot(), PER_REQUEST)
    answer = await peer.call("say", {"text": "a"})
    assert answer.media_type == "text/event-stream"
    assert not [line for line in lines_of(answer.body) if line.startswith(b"id")]
