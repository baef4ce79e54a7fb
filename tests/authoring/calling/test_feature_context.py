from __future__ import annotations

import asyncio
import math
import threading
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any

import pytest
from pydantic import BaseModel, Field

from funcmcp._authoring.calling.feature_context import CancellationToken, Context
from funcmcp._authoring.calling.questions import Elicit, ListRoots, Sample
from funcmcp._authoring.calling.services import Services
from funcmcp._authoring.calling.threads import Threads
from funcmcp._protocol.errors import MissingClientCapability, ToolError
from tests.authoring.tool_calls import Peer, call, context, tool_of
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from funcmcp._server.calls.context import RequestContext

pytestmark = [
    pytest.mark.every_python("Python's modules read signatures, annotations and docstrings."),
    pytest.mark.branches("Functions read every attribute of the context."),
]

ANSWERS: dict[str, dict[str, Any]] = {
    "elicitation/create": {"action": "accept", "content": {"name": "Ada"}},
    "sampling/createMessage": {"role": "assistant", "model": "m", "content": {"type": "text", "text": "hi"}},
    "roots/list": {"roots": [{"uri": "file:///a"}]},
}


class Name(BaseModel):
    name: str


async def test_a_tool_sees_the_facts_of_its_call() -> None:
    http: Any = SimpleNamespace(method="POST", headers={"a": "b"}, principal=None, client_address="192.0.2.7")
    trace = {"traceparent": "00-1", "tracestate": "x=1", "baggage": "k=v"}
    seen: list[Context] = []

    async def look(a: int, context: Context) -> None:
        seen.append(context)

    await call(look, {"a": 1}, within=context(meta={**trace, "other": 1}, http=http))
    it = seen[0]
    assert (it.name, it.arguments, it.principal, it.session_id) == ("look", {"a": 1}, None, "session-1")
    assert it.protocol_version == "2026-07-28"
    assert it.client_info == {"name": "tester", "version": "1"}
    assert (it.http_request, it.client_address) == (http, "192.0.2.7")
    assert it.meta["other"] == 1
    assert it.request_id == 7
    assert it.trace == trace
    assert it.can("sampling")
    assert not it.can("tasks")


async def test_arguments_are_read_as_types_by_name() -> None:
    def read(arguments: dict[str, Any], context: Context) -> list[Any]:
        with pytest.raises(ToolError, match=r"^missing: is required$"):
            context.get_required_argument("missing", str)
        with pytest.raises(ToolError, match=r"^word: must be an integer, not a string$"):
            context.get_argument("word", int)
        small: Any = Annotated[int, Field(le=1)]
        with pytest.raises(ToolError, match=r"^number: must be at most 1$"):
            context.get_argument("number", small)
        return [
            context.get_argument("number", int, 5),
            context.get_argument("missing", int, 5),
            context.get_argument("missing", int),
            context.get_argument("nothing", int, 6),
            context.get_required_argument("number", int),
            context.get_required_argument("word", str),
        ]

    given = {"number": 2.0, "word": "w", "nothing": None}
    result = await call(read, given, input_schema={"type": "object"})
    assert result["structuredContent"] == {"result": [2, 5, None, 6, 2, "w"]}


async def test_a_type_with_marks_that_can_not_be_hashed_is_read_too() -> None:
    marked: Any = Annotated[int, Field(le=1), ["not", "hashable"]]

    def read(arguments: dict[str, Any], context: Context) -> int:
        number: int = context.get_required_argument("number", marked)
        return number

    result = await call(read, {"number": 1}, input_schema={"type": "object"})
    assert result["structuredContent"] == {"result": 1}


async def test_progress_goes_up_to_those_who_asked_for_it() -> None:
    async def work(context: Context) -> None:
        await context.report_progress(1, 3, "one")
        await context.report_progress(1)
        await context.report_progress(0.5)
        await context.report_progress(2)

    peer = Peer()
    await call(work, within=context(peer, meta={"progressToken": "t"}))
    assert peer.sent == [
        ("notifications/progress", {"progressToken": "t", "progress": 1, "total": 3, "message": "one"}),
        ("notifications/progress", {"progressToken": "t", "progress": 2}),
    ]
    for meta in ({}, {"progressToken": None}, {"progressToken": True}, {"progressToken": 1.5}):
        peer = Peer()
        await call(work, within=context(peer, meta=meta))
        assert not peer.sent


@pytest.mark.parametrize("level", ["debug", "info", "warning", "error"])
async def test_the_usual_levels_have_a_method(level: str) -> None:
    async def work(context: Context) -> None:
        await getattr(context, level)("a")
        await getattr(context, level)({"b": 1}, logger="kitchen")

    peer = Peer()
    await call(work, within=context(peer, revision="2025-11-25"))
    sent = [
        ("notifications/message", {"level": level, "data": "a"}),
        ("notifications/message", {"level": level, "data": {"b": 1}, "logger": "kitchen"}),
    ]
    assert peer.sent == ([] if level == "debug" else sent)  # the client has asked for info and above


async def test_log_messages_go_out_with_their_level() -> None:
    async def work(context: Context) -> None:
        await context.log("warning", {"a": 1}, logger="kitchen")
        await context.log("error", "b")
        with pytest.raises(ValueError, match="debug, info"):
            await context.log("loud", "b")

    peer = Peer()
    await call(work, within=context(peer, revision="2025-11-25"))
    assert peer.sent == [
        ("notifications/message", {"level": "warning", "data": {"a": 1}, "logger": "kitchen"}),
        ("notifications/message", {"level": "error", "data": "b"}),
    ]


@pytest.mark.parametrize("bad", [math.nan, object()])
async def test_what_json_can_not_say_is_refused_where_the_author_sees_it(bad: Any) -> None:
    async def work(context: Context) -> None:
        with pytest.raises(ValueError, match=r"."):
            await context.log("error", bad)

    peer = Peer()
    await call(work, within=context(peer, revision="2025-11-25", meta={"progressToken": 1}))
    assert not peer.sent


async def test_nothing_is_sent_after_the_call() -> None:
    kept: list[Context] = []

    async def work(context: Context) -> None:
        kept.append(context)

    peer = Peer()
    await call(work, within=context(peer, revision="2025-11-25", meta={"progressToken": 1}))
    await kept[0].report_progress(1)
    await kept[0].log("error", "late")
    assert not peer.sent


async def test_questions_are_numbered_by_kind() -> None:
    async def work(context: Context) -> str:
        first = await context.elicit("Name?", Name)
        second = await context.elicit("Name again?", {"type": "object"})
        url = await context.elicit_url("Visit", "https://example.com")
        said = await context.sample("Hi", max_tokens=5, temperature=0.5)
        roots = await context.list_roots()
        assert first.content == Name(name="Ada")
        assert second.content == {"name": "Ada"}
        return f"{url.action} {said.text} {roots[0].uri}"

    peer = Peer(ANSWERS)
    result = await call(work, within=context(peer))
    assert result["content"][0]["text"] == "accept hi file:///a"
    assert list(peer.asked) == ["elicitation-1", "elicitation-2", "elicitation-3", "sampling-1", "roots-1"]
    assert "elicitationId" not in peer.asked["elicitation-3"]["params"]
    assert peer.asked["sampling-1"]["params"]["temperature"] == 0.5


async def test_a_question_may_have_a_key_of_its_own() -> None:
    async def work(context: Context) -> None:
        await context.elicit("Name?", Name, key="a")
        await context.elicit_url("Visit", "https://example.com", key="b")
        await context.sample("Hi", max_tokens=5, key="c")
        await context.list_roots(key="d")

    peer = Peer(ANSWERS)
    await call(work, within=context(peer, revision="2025-11-25"))
    assert list(peer.asked) == ["a", "b", "c", "d"]
    assert peer.asked["b"]["params"]["elicitationId"]


async def test_several_questions_are_asked_at_once() -> None:
    async def work(context: Context) -> list[str]:
        assert await context.ask({}) == {}
        answers = await context.ask({"n": Elicit("?", Name), "s": Sample("?", max_tokens=1), "r": ListRoots()})
        return [answers["n"].content.name, answers["s"].text, answers["r"][0].uri]

    result = await call(work, within=context(Peer(ANSWERS)))
    assert result["structuredContent"] == {"result": ["Ada", "hi", "file:///a"]}


async def test_a_client_that_can_not_be_asked_is_not() -> None:
    async def work(context: Context) -> None:
        await context.list_roots()

    with pytest.raises(MissingClientCapability):
        await call(work, within=context(Peer(ANSWERS), capabilities={}))


async def test_a_plain_function_waits_for_the_loop() -> None:
    def work(context: Context) -> str:
        answer = context.wait(context.elicit("Name?", Name))
        context.wait(context.report_progress(1))
        assert answer.action == "accept"
        return answer.content.name

    peer = Peer(ANSWERS)
    result = await call(work, within=context(peer, meta={"progressToken": 1}))
    assert result["content"][0]["text"] == "Ada"
    assert len(peer.sent) == 1


class Interruption(BaseException):
    """As the rounds of 2026-07-28 end a run: no Exception."""


async def test_what_ends_the_run_passes_through_a_thread() -> None:
    class Ending(Peer):
        async def ask(self, questions: Any) -> Any:
            raise Interruption

    def work(context: Context) -> None:
        context.wait(context.list_roots())

    with pytest.raises(Interruption):
        await call(work, within=context(Ending()))


async def test_waiting_on_the_loop_itself_is_refused() -> None:
    async def work(context: Context) -> None:
        with pytest.raises(RuntimeError, match="Use await"):
            context.wait(context.list_roots())
        with pytest.raises(RuntimeError, match="Use await"):
            context.wait(asyncio.get_running_loop().create_future())

    await call(work)


async def test_threads_that_wait_are_let_go_when_the_call_is_given_up() -> None:
    waiting, told = asyncio.Event(), threading.Event()
    words: list[str] = []
    loop = asyncio.get_running_loop()

    class Silent(Peer):
        async def ask(self, questions: Any) -> Any:
            waiting.set()
            await asyncio.Event().wait()

    def work(context: Context, token: CancellationToken) -> None:
        for _ in range(2):
            try:
                context.wait(context.list_roots())
            except ToolError as error:
                words.append(str(error))
        assert token.cancelled
        told.set()

    running = loop.create_task(tool_of(work).handler(context(Silent()), {}))
    await asyncio.wait_for(waiting.wait(), PATIENCE)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert await asyncio.to_thread(told.wait, PATIENCE)
    assert words == ["The call was cancelled."] * 2


def test_a_token_is_set_once() -> None:
    token = CancellationToken()
    token.raise_if_cancelled()
    before = token.cancelled
    token.cancel()
    assert (before, token.cancelled) == (False, True)
    with pytest.raises(ToolError, match="cancelled"):
        token.raise_if_cancelled()


@pytest.mark.parametrize("meta", [{}, {"progressToken": 1}])
@pytest.mark.parametrize(
    "report",
    [
        {"progress": float("nan")},
        {"progress": 1, "total": float("inf")},
        {"progress": "1"},
        {"progress": 1, "total": "2"},
    ],
)
async def test_progress_that_can_not_be_sent_is_refused_whether_the_client_asked_or_not(
    meta: dict[str, Any], report: dict[str, Any]
) -> None:
    refused = []

    async def work(context: Context) -> None:
        try:
            await context.report_progress(**report)
        except ValueError as error:
            refused.append(error)

    peer = Peer()
    await call(work, within=context(peer, meta=meta))
    assert len(refused) == 1
    assert peer.sent == []


def test_an_attribute_of_other_frameworks_is_an_error_that_names_ours() -> None:
    tool_context = Context.__new__(Context)
    with pytest.raises(AttributeError, match=r"Context has no attribute 'client_id'. Use context\.principal$"):
        _ = tool_context.client_id  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match=r"Context has no attribute 'other'$"):
        _ = tool_context.other  # type: ignore[attr-defined]
    assert not hasattr(tool_context, "client_id")


async def test_a_part_of_a_plain_function_needs_no_slot_of_its_own() -> None:
    services = Services()
    services.threads = Threads(limit=1)

    def work(context: Context) -> int:
        return context.wait(context.once("a", lambda: 1)) + context.wait(context.once("b", lambda: 2))

    async with asyncio.timeout(PATIENCE):
        assert (await call(work, {}, services))["structuredContent"] == {"result": 3}


async def test_a_part_whose_call_is_cancelled_releases_its_slot() -> None:
    services = Services()
    services.threads = Threads(limit=1)
    started, gate = threading.Event(), threading.Event()

    def hang() -> None:
        started.set()
        gate.wait(PATIENCE)

    async def work(context: Context, *, hangs: bool) -> int:
        await context.once("a", hang if hangs else int)
        return 1

    hanging = asyncio.create_task(call(work, {"hangs": True}, services))
    assert await asyncio.to_thread(started.wait, PATIENCE)
    hanging.cancel()
    await asyncio.wait([hanging])
    async with asyncio.timeout(PATIENCE):
        assert (await call(work, {"hangs": False}, services))["structuredContent"] == {"result": 1}
    gate.set()


async def test_in_a_plain_call_each_part_just_runs() -> None:
    threads: list[int] = []

    def plain() -> int:
        threads.append(threading.get_ident())
        return 1

    async def with_await() -> int:
        threads.append(threading.get_ident())
        return 2

    async def parts(context: Context) -> list[int]:
        return [await context.once("a", plain), await context.once("a", with_await)]

    def parts_of_a_plain_function(context: Context) -> int:
        return context.wait(context.once("b", plain))

    assert (await call(parts, {}))["structuredContent"] == {"result": [1, 2]}
    assert (await call(parts_of_a_plain_function, {}))["structuredContent"] == {"result": 1}
    assert threads[1] == threading.get_ident()
    assert threading.get_ident() not in {threads[0], threads[2]}


def limited_context(**options: Any) -> tuple[RequestContext, Context]:
    """Return a request for a tool with a time limit, and the context of its call."""
    request = context()
    request.routed.feature = tool_of(lambda: None, name="job", **options)
    return request, Context(request, Services(), "job")


async def test_an_extension_moves_the_time_limit_and_never_shortens_it() -> None:
    request, context = limited_context(timeout=60, max_timeout=600)
    now = asyncio.get_running_loop().time()
    assert 10 < await context.extend(10) < 61  # a float, with its rounding
    assert 60 < await context.extend(300) < 301
    assert request.end is not None
    assert now + 300 <= request.end.time < now + 300 + PATIENCE
    assert 60 < await context.extend(10) < 301


async def test_an_extension_by_less_than_the_call_has_moves_nothing() -> None:
    request, context = limited_context(timeout=60, max_timeout=600)
    await context.extend(10)
    assert request.end is None


async def test_an_extension_ends_at_the_longest_time() -> None:
    _, context = limited_context(max_timeout=700)
    assert 600 < await context.extend(10_000) < 701


async def test_a_call_without_a_time_limit_needs_no_extension() -> None:
    request, context = limited_context(timeout=None)
    assert await context.extend(10) == math.inf
    assert request.end is None


async def test_a_call_without_a_longest_time_is_not_extended() -> None:
    _, context = limited_context()
    with pytest.raises(RuntimeError, match=r"job can't be extended\. Set max_timeout="):
        await context.extend(10)


@pytest.mark.parametrize("seconds", [0, -1, math.inf, math.nan, True, "60"])
async def test_an_extension_takes_seconds(seconds: Any) -> None:
    _, context = limited_context(max_timeout=700)
    with pytest.raises(ValueError, match="number of seconds above 0"):
        await context.extend(seconds)


async def test_a_call_that_has_ended_is_not_extended() -> None:
    request, context = limited_context(max_timeout=700)
    context.close()
    await context.extend(650)
    assert request.end is None
