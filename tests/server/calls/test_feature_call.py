"""Running a resource's or a prompt's handler."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp._protocol.errors import InvalidParams, MCPError, ToolError
from funcmcp._server.calls.feature import TimeLimit
from tests import schemas
from tests.patience import PATIENCE
from tests.server.parts import (
    ASK_NAME,
    NEWEST,
    PER_REQUEST,
    Recorder,
    answer,
    context,
    prompt,
    reply_to,
    resource,
    server,
    template,
    tool,
)

if TYPE_CHECKING:
    from funcmcp._server.calls.context import RequestContext

pytestmark = pytest.mark.every_python("Tasks, timeouts and cancellation are those of asyncio.")

EVERY_REVISION = pytest.mark.parametrize("revision", schemas.REVISIONS)
READ, GET, COMPLETE = "resources/read", "prompts/get", "completion/complete"
EVERY_METHOD = pytest.mark.parametrize("method", [READ, GET])
ADA = {"action": "accept", "content": {"name": "Ada"}}


def serving(handler: Any, **members: Any) -> Any:
    """Return a server with a resource and a prompt that have the same handler."""
    return server(resource("menu://today", handler, **members), prompt("greet", handler, **members))


def asked(method: str, revision: str = NEWEST, **more: Any) -> RequestContext:
    named = {"uri": "menu://today"} if method == READ else {"name": "greet"}
    return context(method, {**named, **more.pop("params", {})}, revision=revision, **more)


def raising(error: BaseException) -> Any:
    async def fail(*_: Any) -> dict[str, Any]:
        raise error

    return fail


async def say_name(asking: RequestContext, *_: Any) -> dict[str, Any]:
    """Ask for a name and say it, as a resource and as a prompt."""
    name = (await asking.ask({"name": ASK_NAME}))["name"]["content"]["name"]
    content = {"type": "text", "text": name}
    if asking.request.method == READ:
        return {"contents": [{"uri": "menu://today", "text": name}]}
    return {"messages": [{"role": "user", "content": content}]}


@EVERY_METHOD
@EVERY_REVISION
async def test_a_failure_is_an_internal_error_with_an_id_that_is_in_the_log(
    method: str, revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    error = (await answer(serving(raising(KeyError("hunter2"))), asked(method, revision)))["error"]
    assert error["code"] == -32603
    assert error["data"]["errorId"] in caplog.text
    assert "hunter2" not in str(error)


@EVERY_METHOD
@EVERY_REVISION
@pytest.mark.parametrize(
    ("raised", "payload"),
    [
        (ToolError("The kitchen is closed."), {"code": -32603, "message": "The kitchen is closed."}),
        (InvalidParams("No such day."), {"code": -32602, "message": "No such day."}),
        (MCPError(7, "No.", [1]), {"code": 7, "message": "No.", "data": [1]}),
    ],
)
async def test_an_error_with_words_for_the_client_is_sent_with_them(
    method: str, revision: str, raised: Exception, payload: dict[str, Any]
) -> None:
    assert (await answer(serving(raising(raised)), asked(method, revision)))["error"] == payload


@EVERY_METHOD
@pytest.mark.parametrize("raised", [SystemExit(1), asyncio.CancelledError(), TimeoutError()])
async def test_what_would_end_more_than_the_run_is_a_failure_of_the_run(method: str, raised: BaseException) -> None:
    error = (await answer(serving(raising(raised)), asked(method)))["error"]
    assert (error["code"], "errorId" in error["data"]) == (-32603, True)


@EVERY_METHOD
async def test_a_run_that_takes_too_long_is_stopped(method: str) -> None:
    stopped = asyncio.Event()

    async def hang(*_: Any) -> dict[str, Any]:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return {}

    error = (await answer(serving(hang, time_limit=TimeLimit(0.01)), asked(method)))["error"]
    assert error == {"code": -32603, "message": "It did not finish within 0.01 seconds (timeout=)."}
    assert stopped.is_set()


@EVERY_METHOD
async def test_a_cancelled_run_is_cancelled_and_no_error(method: str) -> None:
    begun = asyncio.Event()

    async def hang(*_: Any) -> dict[str, Any]:
        begun.set()
        await asyncio.Event().wait()
        return {}

    task = asyncio.ensure_future(reply_to(serving(hang), asked(method)))
    await asyncio.wait_for(begun.wait(), PATIENCE)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, PATIENCE)


@EVERY_METHOD
async def test_a_question_takes_a_round_in_the_per_request_era(method: str) -> None:
    served = serving(say_name, interactive=True)
    able: dict[str, Any] = {"revision": PER_REQUEST, "capabilities": {"elicitation": {}}}
    first = (await answer(served, asked(method, **able)))["result"]
    assert first["resultType"] == "input_required"
    assert first["inputRequests"] == {"name": ASK_NAME}
    assert not {"contents", "messages", "ttlMs", "cacheScope"} & first.keys()
    params = {"requestState": first["requestState"], "inputResponses": {"name": ADA}}
    done = (await answer(served, asked(method, params=params, **able)))["result"]
    assert done["resultType"] == "complete"
    assert "Ada" in str(done)


@EVERY_METHOD
async def test_a_state_is_good_for_its_own_feature_only(method: str) -> None:
    served = serving(say_name, interactive=True)
    able: dict[str, Any] = {"revision": PER_REQUEST, "capabilities": {"elicitation": {}}}
    state = (await answer(served, asked(GET if method == READ else READ, **able)))["result"]["requestState"]
    error = (await answer(served, asked(method, params={"requestState": state}, **able)))["error"]
    assert error["code"] == -32602


@EVERY_METHOD
async def test_a_question_goes_to_the_client_at_once_in_the_handshake_era(method: str) -> None:
    channel = Recorder({"name": ADA})
    served = serving(say_name, interactive=True)
    message = await answer(served, asked(method, channel=channel, capabilities={"elicitation": {}}))
    assert "Ada" in str(message["result"])
    assert len(channel.asked) == 1


@EVERY_METHOD
async def test_a_client_that_cannot_be_asked_gets_an_error(method: str) -> None:
    served = serving(say_name, interactive=True)
    assert (await answer(served, asked(method, PER_REQUEST)))["error"]["code"] == -32021
    error = (await answer(served, asked(method)))["error"]
    assert (error["code"], error["message"]) == (-32603, "This needs a client that supports: elicitation.")


@pytest.mark.parametrize("interactive", [True, False])
def test_only_what_may_send_something_before_its_answer_needs_a_stream(interactive: bool) -> None:
    served = server(
        tool("t", interactive=interactive),
        prompt("greet", interactive=interactive),
        resource("menu://today", interactive=interactive),
        template("menu://day/{day}", interactive=interactive),
    )
    for method, params in (
        ("tools/call", {"name": "t"}),
        (GET, {"name": "greet"}),
        (READ, {"uri": "menu://today"}),
        (READ, {"uri": "menu://day/monday"}),
    ):
        assert served.routes.route(context(method, params).request).interactive is interactive


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/call", {"name": ["t"]}),
        ("tools/call", {}),
        (GET, {"name": "unheard of"}),
        (READ, {"uri": 5}),
        (READ, {"uri": "menu://unheard/of"}),
        (READ, {"uri": "menu://day/.."}),
        ("tools/list", {}),
        ("unheard/of", {}),
    ],
)
def test_what_is_wrong_or_simple_needs_no_stream(method: str, params: dict[str, Any]) -> None:
    served = server(
        tool("t", interactive=True), prompt("p", interactive=True), template("menu://day/{day}", interactive=True)
    )
    assert not served.routes.route(context(method, params).request).interactive


def test_listening_needs_a_stream() -> None:
    assert server().routes.route(context("subscriptions/listen", revision=PER_REQUEST).request).interactive
