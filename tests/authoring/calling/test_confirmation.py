"""A person's yes before a tool runs, in both eras and in tasks."""

# ruff: noqa: TC001, TC003 - tools are made of these hints at run time

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any

import pytest
from typing_extensions import TypedDict

from funcmcp import Arguments, Context, HTTPOptions, MCPServer
from funcmcp._authoring.calling.confirmation import MAX_TEXT
from funcmcp._protocol.codec import encode
from funcmcp._protocol.errors import CannotAskError, MCPError, ToolError
from funcmcp._server.calls.rounds import CONFIRMATION, LIFETIME
from funcmcp._server.catalog.registry import RegistrationError
from funcmcp._serving.composition import runtime_of
from funcmcp.auth import Principal
from funcmcp.content import UploadedFile
from funcmcp.http import Uploads
from funcmcp.testing import Client, MemoryRequest, accept, cancel, decline, post, read_messages
from tests.authoring.tool_calls import Peer, context, run, tool_of
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.branches("A confirmation uses its state once, also if a middleware runs the call again.")

HANDSHAKE, PER_REQUEST = "2025-11-25", "2026-07-28"
BOTH_ERAS = pytest.mark.parametrize("revision", [HANDSHAKE, PER_REQUEST])


class Shop:
    """A server with one tool that deletes something, and what it has deleted."""

    def __init__(self, **options: Any) -> None:
        self.deleted: list[str] = []
        self.mcp = MCPServer("Shop")
        options.setdefault("confirm", "Delete {name}?")

        @self.mcp.tool(**options)
        def delete(name: str, times: int = 1) -> str:
            self.deleted.append(name)
            return f"deleted {name} {times}"


class Person:
    """Answers questions, and keeps what they say."""

    def __init__(self, answer: Any = None) -> None:
        self.questions: list[str] = []
        self._answer = answer or accept(*[True] * 9)

    async def __call__(self, params: dict[str, Any]) -> dict[str, Any]:
        self.questions.append(params["message"])
        result: dict[str, Any] = await self._answer(params)
        return result


@BOTH_ERAS
async def test_the_tool_runs_once_after_a_yes(revision: str) -> None:
    shop, person = Shop(), Person()
    async with Client(shop.mcp, revision=revision, elicit=person) as client:
        result = await client.call_tool("delete", {"name": "order 7"})
    assert result.text == "deleted order 7 1"
    assert person.questions == ["Delete order 7?"]
    assert shop.deleted == ["order 7"]


@BOTH_ERAS
@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (lambda: decline, "The person has declined"),
        (lambda: cancel, "The person has closed the question"),
        (lambda: accept(False), "The person has declined"),
    ],
    ids=["decline", "cancel", "no"],
)
async def test_without_a_yes_the_result_is_an_error_for_the_model(revision: str, answer: Any, text: str) -> None:
    shop = Shop()
    async with Client(shop.mcp, revision=revision, elicit=answer()) as client:
        result = await client.call_tool("delete", {"name": "order 7"})
    assert result.is_error
    assert text in result.text
    assert "delete did not run" in result.text
    assert shop.deleted == []


async def test_a_handshake_client_that_cannot_ask_is_refused() -> None:
    shop = Shop()
    async with Client(shop.mcp, revision=HANDSHAKE) as client:
        result = await client.call_tool("delete", {"name": "order 7"})
    assert result.is_error
    assert result.text.startswith("delete asks a person before it runs, which needs a client that supports elicitation")
    assert shop.deleted == []


async def test_a_per_request_client_that_cannot_ask_is_refused_with_the_missing_capability() -> None:
    shop = Shop()
    async with Client(shop.mcp, revision=PER_REQUEST) as client:
        with pytest.raises(MCPError, match="delete asks a person") as caught:
            await client.call_tool("delete", {"name": "order 7"})
    assert caught.value.data == {"requiredCapabilities": {"elicitation": {}}}
    assert shop.deleted == []


@pytest.mark.parametrize("revision", ["2024-11-05", HANDSHAKE, PER_REQUEST])
async def test_an_option_runs_the_tool_for_clients_that_cannot_ask(revision: str) -> None:
    shop = Shop(confirm_otherwise="run")
    async with Client(shop.mcp, revision=revision) as client:
        assert (await client.call_tool("delete", {"name": "order 7"})).text == "deleted order 7 1"


async def test_the_option_does_not_replace_the_question_where_a_client_can_ask() -> None:
    shop = Shop(confirm_otherwise="run")
    async with Client(shop.mcp, elicit=decline) as client:
        assert (await client.call_tool("delete", {"name": "order 7"})).is_error
    assert shop.deleted == []


@BOTH_ERAS
async def test_nobody_is_asked_about_arguments_that_the_tool_rejects(revision: str) -> None:
    shop, person = Shop(), Person()
    async with Client(shop.mcp, revision=revision, elicit=person) as client:
        result = await client.call_tool("delete", {"name": 7})
    assert result.is_error
    assert person.questions == []


class Wire:
    """Sends requests of 2026-07-28 that a client would not send."""

    def __init__(self, mcp: MCPServer) -> None:
        self._exchange = runtime_of(mcp).exchange

    async def call(self, name: str = "delete", arguments: dict[str, Any] | None = None, **params: Any) -> Any:
        meta = {
            "io.modelcontextprotocol/protocolVersion": PER_REQUEST,
            "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        }
        body = {"name": name, "arguments": arguments or {"name": "order 7"}, "_meta": meta, **params}
        headers = {"mcp-protocol-version": PER_REQUEST, "mcp-method": "tools/call", "mcp-name": name}
        message = encode({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": body})
        response = await post(self._exchange, "/mcp", message, headers)
        return [message async for message in read_messages(response)][-1]

    async def asked(self, **options: Any) -> dict[str, Any]:
        """Return what the second request of a call has beside the first one."""
        result = (await self.call(**options))["result"]
        assert result["resultType"] == "input_required"
        yes = {CONFIRMATION: {"action": "accept", "content": {"confirm": True}}}
        return {"inputResponses": yes, "requestState": result["requestState"]}


async def test_a_yes_serves_one_call() -> None:
    shop = Shop()
    wire = Wire(shop.mcp)
    yes = await wire.asked()
    assert (await wire.call(**yes))["result"]["content"][0]["text"] == "deleted order 7 1"
    again = (await wire.call(**yes))["result"]
    assert again["isError"]
    assert "has been used" in again["content"][0]["text"]
    assert shop.deleted == ["order 7"]


async def test_a_yes_does_not_serve_other_arguments_or_another_tool() -> None:
    shop = Shop()

    @shop.mcp.tool(confirm="Delete {name}?")
    def wipe(name: str) -> None:
        shop.deleted.append(name)

    wire = Wire(shop.mcp)
    yes = await wire.asked()
    for changed in (
        {"arguments": {"name": "order 8"}},
        {"arguments": {"name": "order 7", "times": 2}},
        {"name": "wipe"},
    ):
        assert "requestState" in (await wire.call(**{**yes, **changed}))["error"]["message"]
    assert shop.deleted == []


async def test_an_answer_to_a_question_that_was_not_asked_does_not_count() -> None:
    shop = Shop()
    yes = {CONFIRMATION: {"action": "accept", "content": {"confirm": True}}}
    assert (await Wire(shop.mcp).call(inputResponses=yes))["result"]["resultType"] == "input_required"
    assert shop.deleted == []


async def test_the_tools_own_questions_come_after_the_confirmation() -> None:
    mcp, calls = MCPServer("Shop"), []

    @mcp.tool(confirm="Book {to}?")
    async def book(to: str, context: Context) -> str:
        seat = await context.elicit("Which seat?", str)
        calls.append(to)
        return f"{to}: {seat.content}"

    for revision in (HANDSHAKE, PER_REQUEST):
        person = Person(accept(True, "window"))
        async with Client(mcp, revision=revision, elicit=person) as client:
            assert (await client.call_tool("book", {"to": "Oslo"})).text == "Oslo: window"
        assert person.questions == ["Book Oslo?", "Which seat?"]
    assert calls == ["Oslo", "Oslo"]


async def test_a_yes_serves_the_attempts_of_a_middleware() -> None:
    attempts: list[int] = []

    async def retry(context: Any, call_next: Any) -> Any:
        await call_next(context)
        return await call_next(context)

    mcp = MCPServer("Shop", middleware=[retry])
    mcp.tool("delete", confirm="Sure?")(lambda: attempts.append(1))
    person = Person()
    async with Client(mcp, revision=PER_REQUEST, elicit=person) as client:
        assert not (await client.call_tool("delete")).is_error
    assert (person.questions, attempts) == (["Sure?"], [1, 1])


@pytest.mark.parametrize("mode", ["optional", "required"])
@BOTH_ERAS
async def test_a_task_asks_before_it_runs(mode: str, revision: str) -> None:
    shop, person = Shop(task=mode), Person()
    async with Client(shop.mcp, revision=revision, elicit=person) as client:
        result = await asyncio.wait_for(client.call_tool("delete", {"name": "order 7"}), PATIENCE)
    assert result.text == "deleted order 7 1"
    assert person.questions == ["Delete order 7?"]
    assert shop.deleted == ["order 7"]


@BOTH_ERAS
async def test_a_mounted_tool_asks_behind_the_middleware_of_its_server_which_sees_the_call_once(revision: str) -> None:
    seen: list[str] = []

    async def audit(context: Any, call_next: Any) -> Any:
        if context.request.method == "tools/call":
            seen.append(context.request.params["name"])
        return await call_next(context)

    shop, person, above = Shop(), Person(), MCPServer("Above")
    shop.mcp.add_middleware(audit)
    above.mount(shop.mcp, prefix="shop")
    async with Client(above, revision=revision, elicit=person) as client:
        assert (await client.call_tool("shop_delete", {"name": "order 7"})).text == "deleted order 7 1"
    assert person.questions == ["Delete order 7?"]
    assert seen == ["delete"] * (1 if revision == HANDSHAKE else 2)
    assert shop.deleted == ["order 7"]


async def test_the_authors_own_calls_are_not_asked_and_those_of_a_principal_are_refused() -> None:
    shop = Shop()
    result = await shop.mcp.call_tool("delete", {"name": "order 7"})
    assert result.text == "deleted order 7 1"
    with pytest.raises(MCPError, match="asks a person"):
        await shop.mcp.call_tool("delete", {"name": "order 8"}, principal=Principal("ada"))
    assert shop.deleted == ["order 7"]


def test_a_tool_with_a_confirmation_is_destructive_unless_its_author_says_otherwise() -> None:
    def hints(**options: Any) -> Any:
        return tool_of(lambda: None, name="it", confirm="Sure?", **options).describe()["annotations"]

    assert hints() == {"destructiveHint": True}
    assert hints(destructive=False) == {"destructiveHint": False}
    assert hints(read_only=True) == {"readOnlyHint": True}


async def question(confirm: Any, function: Callable[..., Any], arguments: dict[str, Any], **options: Any) -> str:
    """Return the question of a tool."""
    peer = Peer({CONFIRMATION: {"action": "accept", "content": {"confirm": True}}})
    await run(tool_of(function, confirm=confirm, **options), arguments, context(peer))
    message: str = peer.asked[CONFIRMATION]["params"]["message"]
    return message


@dataclass
class Order:
    number: int
    note: str = "no note"


async def test_a_question_has_the_values_that_the_tool_gets() -> None:
    def change(name: str, day: date, tags: list[str], times: int = 2) -> None: ...

    arguments = {"name": "a{b}", "day": "2026-07-28", "tags": ["x"]}
    text = await question("{name} {day} {tags} {times} {{}}", change, arguments)
    assert text == 'a{b} "2026-07-28" ["x"] 2 {}'


async def test_a_question_has_the_fields_of_spread_arguments() -> None:
    def change(order: Arguments[Order]) -> None: ...

    assert await question("{number}: {note}", change, {"number": 7}) == "7: no note"


async def test_a_question_has_the_members_of_a_handwritten_schema() -> None:
    def change(arguments: dict[str, Any]) -> None: ...

    schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    assert await question("Delete {name}?", change, {"name": "x"}, input_schema=schema) == "Delete x?"


async def test_hidden_characters_and_line_breaks_of_values_are_escaped() -> None:
    def delete(name: str) -> None: ...

    text = await question("Delete {name}?\nReally?", delete, {"name": "a\u202eb\nc\u200b"})
    assert text == "Delete a\\u202eb\\nc\\u200b?\nReally?"


async def test_long_values_and_texts_are_cut_in_the_middle() -> None:
    def delete(name: str) -> None: ...

    text = await question("Delete {name}?", delete, {"name": "a" * 1_000 + "z"})
    assert text == f"Delete {'a' * 400} [541 characters are not shown] {'a' * 59}z?"
    hidden = await question("Delete {name}?", delete, {"name": "\u200b" * 400})
    assert len(hidden) < 600
    assert len(await question("Delete {name}?", delete, {"name": "\u200b" * 1_000_000})) < 600
    long = await question(lambda name: name, delete, {"name": "a" * 10_000})
    assert len(long) < MAX_TEXT


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_function_makes_the_text_from_some_of_the_arguments(is_async: bool) -> None:
    def delete(name: str, times: int = 1) -> None: ...

    def text(times: int) -> str:
        return f"{times} times?"

    async def async_text(name: str, context: Context) -> str:
        return f"{name} in {context.name}?"

    if is_async:
        assert await question(async_text, delete, {"name": "x"}) == "x in confirm of delete?"
    else:
        assert await question(text, delete, {"name": "x"}) == "1 times?"


async def test_a_function_that_returns_none_needs_no_question() -> None:
    shop, person = Shop(confirm=lambda times: None if times == 1 else f"{times} times?"), Person()
    async with Client(shop.mcp, elicit=person) as client:
        await client.call_tool("delete", {"name": "a"})
        await client.call_tool("delete", {"name": "b", "times": 2})
    assert person.questions == ["2 times?"]


@pytest.mark.parametrize("value", ["", 7])
async def test_a_function_that_returns_no_text_is_a_fault_and_nothing_runs(value: Any) -> None:
    shop = Shop(confirm=lambda: value)
    async with Client(shop.mcp, elicit=accept(True)) as client:
        assert (await client.call_tool("delete", {"name": "a"})).is_error
    assert shop.deleted == []


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"confirm": "Delete {nam}?"}, "names {nam}. The arguments: name, times"),
        ({"confirm": "Delete {name!r}?"}, "{name!r} with more than the name"),
        ({"confirm": "Delete {name:>3}?"}, "more than the name"),
        ({"confirm": "Delete {name.x}?"}, "more than the name"),
        ({"confirm": "Delete {}?"}, "more than the name"),
        ({"confirm": "Delete {name?"}, "is not a valid text"),
        ({"confirm": " "}, "is empty"),
        ({"confirm": 7}, "must be a text or a function; got 7"),
        ({"confirm": lambda nam: nam}, "takes 'nam', which is not an argument of the tool"),
        ({"confirm": "Sure?", "confirm_otherwise": "ask"}, "must be 'refuse' or 'run'; got 'ask'"),
        ({"confirm": None, "confirm_otherwise": "run"}, "has no effect without confirm="),
    ],
)
def test_a_wrong_option_is_refused_at_registration(options: dict[str, Any], text: str) -> None:
    def delete(name: str, times: int = 1) -> None: ...

    with pytest.raises(RegistrationError) as caught:
        tool_of(delete, **options)
    assert text in str(caught.value)


def test_names_are_not_checked_while_annotations_cannot_be_resolved() -> None:
    def delete(name: "Later") -> None: ...  # type: ignore[name-defined]  # noqa: F821, UP037

    tool_of(delete, confirm="Delete {name}?")
    tool_of(delete, confirm=lambda name: name)


async def test_the_time_limit_begins_with_the_answer() -> None:
    class Waiting(Peer):
        async def ask(self, questions: Any) -> Any:
            self.end = request.end
            return await super().ask(questions)

    now = asyncio.get_running_loop().time
    tool = tool_of(lambda: None, name="it", confirm="Sure?", timeout=5)
    peer = Waiting({CONFIRMATION: {"action": "accept", "content": {"confirm": True}}})
    request = context(peer)
    request.routed.feature = tool
    await run(tool, {}, request)
    assert peer.end is not None
    assert peer.end.time > now() + LIFETIME - PATIENCE
    assert peer.end.limit.option == "the question of confirm="
    assert request.end is not None
    assert request.end.time <= now() + 5
    assert request.end.limit == tool.time_limit


async def test_a_tool_without_a_time_limit_waits_for_the_person_without_one() -> None:
    tool = tool_of(lambda: None, name="it", confirm="Sure?", timeout=None)
    request = context(Peer({CONFIRMATION: {"action": "accept", "content": {"confirm": True}}}))
    request.routed.feature = tool
    await run(tool, {}, request)
    assert request.end is None


async def test_the_log_has_the_answer_and_the_tool_and_no_argument(caplog: pytest.LogCaptureFixture) -> None:
    shop = Shop()
    with caplog.at_level(logging.INFO, "funcmcp"):
        async with Client(shop.mcp, elicit=accept(True)) as client:
            await client.call_tool("delete", {"name": "a secret"})
    lines = [record.getMessage() for record in caplog.records]
    assert "confirmation accept tool=delete owner=anonymous" in lines
    assert "secret" not in "\n".join(lines)


async def test_an_error_of_the_client_is_an_error_of_the_call() -> None:
    class Broken(Peer):
        async def ask(self, questions: Any) -> Any:
            raise ToolError("The client has gone.")

    with pytest.raises(ToolError, match="gone"):
        await run(tool_of(lambda: None, name="it", confirm="Sure?", confirm_otherwise="run"), {}, context(Broken()))


@pytest.mark.parametrize("otherwise", ["refuse", "run"])
async def test_a_transport_that_cannot_ask_is_as_a_client_that_cannot(otherwise: str) -> None:
    calls: list[str] = []

    class Silent(Peer):
        async def ask(self, questions: Any) -> Any:
            raise CannotAskError("Nobody can be asked here.")

    tool = tool_of(lambda: calls.append("called"), name="it", confirm="Sure?", confirm_otherwise=otherwise)
    if otherwise == "run":
        await run(tool, {}, context(Silent()))
    else:
        with pytest.raises(ToolError, match=r"supports elicitation\. Nobody can be asked here\."):
            await run(tool, {}, context(Silent()))
    assert calls == ["called"] * (otherwise == "run")


async def test_the_stateless_mode_refuses_clients_of_the_handshake_era() -> None:
    mcp = MCPServer("Shop", sessions=None)
    mcp.tool("delete", confirm="Sure?")(lambda: "deleted")
    async with Client(mcp, revision=HANDSHAKE, elicit=accept(True)) as client:
        assert (await client.call_tool("delete")).is_error
    async with Client(mcp, revision=PER_REQUEST, elicit=accept(True)) as client:
        assert (await client.call_tool("delete")).text == "deleted"


class Note(TypedDict):
    text: str


async def test_a_question_has_the_members_of_a_spread_typed_dict() -> None:
    def change(note: Arguments[Note]) -> None: ...

    assert await question("Change {text}?", change, {"text": "a"}) == "Change a?"


class BufferedRequest(MemoryRequest):
    """A request behind a platform that sends a response only when it is complete, as Azure's HTTP trigger does."""

    @property
    def can_stream(self) -> bool:
        return False


async def test_a_platform_that_sends_whole_responses_asks_clients_of_the_per_request_era_alone() -> None:
    shop = Shop()
    exchange = runtime_of(shop.mcp).exchange

    async def buffered(request: Any) -> Any:
        return await exchange(BufferedRequest(request.method, request.path, request.pairs, request.body))

    async with Client(buffered, revision=HANDSHAKE, elicit=accept(True)) as client:
        result = await client.call_tool("delete", {"name": "order 7"})
        assert result.is_error
        assert "this platform sends an event stream only when it is complete" in result.text
    async with Client(buffered, revision=PER_REQUEST, elicit=accept(True)) as client:
        assert (await client.call_tool("delete", {"name": "order 7"})).text == "deleted order 7 1"


@dataclass
class Letter:
    """What a person has written, with a file."""

    text: str
    file: UploadedFile


@BOTH_ERAS
async def test_a_question_has_the_names_of_files(revision: str) -> None:
    mcp, person = MCPServer("Post", http=HTTPOptions(uploads=Uploads())), Person()

    @mcp.tool
    async def keep(context: Context) -> Any:
        return await context.link_file(b"a,b", name="stock.csv")

    @mcp.tool(confirm="Send {file}, {more} and {letter}?")
    def send(file: UploadedFile, more: list[UploadedFile], letter: Letter) -> str:
        return f"{file.name} {len(more)} {letter.text}"

    small = "data:text/plain;name=a%0Ab.txt,hi"
    letter = {"text": "Hello", "file": "data:,x"}
    async with Client(mcp, revision=revision, elicit=person) as client:
        stored = (await client.call_tool("keep"))["content"][0]["uri"]
        result = await client.call_tool("send", {"file": stored, "more": [small, small], "letter": letter})
        assert result.text == "stock.csv 2 Hello"
        missing = await client.call_tool("send", {"file": "upload:a.b", "more": [], "letter": letter})
        assert missing.text.startswith("file: there is no such upload.")
    files = "stock.csv (3 bytes), ab.txt (2 bytes), ab.txt (2 bytes)"
    assert person.questions == [f'Send {files} and {{"text":"Hello","file":"data:,x"}}?']
