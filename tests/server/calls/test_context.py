"""The context of one run."""

from __future__ import annotations

import re
from typing import Any

import pytest

from funcmcp._protocol.errors import MissingClientCapability, ToolError
from funcmcp._protocol.revisions import REVISIONS
from funcmcp._server.calls.context import UserContext
from funcmcp._server.connections.conversation import Conversation
from tests.server.parts import ASK_CAPITAL, ASK_NAME, NEWEST, PER_REQUEST, Recorder, context

ASK_ROOTS = {"method": "roots/list", "params": {}}
OPEN_LINK = {
    "method": "elicitation/create",
    "params": {"mode": "url", "message": "Sign in", "url": "https://example.com", "elicitationId": "e1"},
}
LOG_LEVEL = "io.modelcontextprotocol/logLevel"
BOTH_ERAS = pytest.mark.parametrize("revision", [NEWEST, PER_REQUEST])


def log(level: str) -> dict[str, Any]:
    return {"level": level, "data": "hello"}


@pytest.mark.parametrize(
    ("params", "meta"),
    [({}, {}), ({"_meta": None}, {}), ({"_meta": "a"}, {}), ({"_meta": {"progressToken": 1}}, {"progressToken": 1})],
)
def test_the_meta_is_the_requests_own_or_empty(params: dict[str, Any], meta: dict[str, Any]) -> None:
    assert context("tools/call", params).meta == meta


def test_a_request_on_stdio_is_sent_by_the_user_of_the_process() -> None:
    request = context("tools/call")
    on_stdio = UserContext(request.routed, request.client, request.channel)
    assert (request.by_user, on_stdio.by_user) == (False, True)


async def test_a_session_hears_info_and_above_until_it_chooses_a_level() -> None:
    channel, conversation = Recorder(), Conversation()
    asked = context("tools/call", channel=channel, conversation=conversation)
    await asked.notify("notifications/message", log("debug"))
    await asked.notify("notifications/message", log("info"))
    await asked.set_log_level("error")
    await asked.notify("notifications/message", log("warning"))
    await asked.notify("notifications/message", log("alert"))
    assert [params["level"] for _, params in channel.sent] == ["info", "alert"]
    assert conversation.log_level == "error"


async def test_without_a_session_a_level_is_not_remembered() -> None:
    asked = context("logging/setLevel")
    await asked.set_log_level("error")
    assert asked.log_level == "info"


async def test_a_per_request_client_hears_log_messages_only_if_the_request_says_so() -> None:
    channel = Recorder()
    await context("tools/call", revision=PER_REQUEST, channel=channel).notify("notifications/message", log("emergency"))
    assert channel.sent == []


async def test_a_per_request_client_hears_only_the_levels_that_its_request_wants() -> None:
    channel = Recorder()
    asked = context("tools/call", {"_meta": {LOG_LEVEL: "warning"}}, revision=PER_REQUEST, channel=channel)
    for level in ("debug", "notice", "warning", "critical"):
        await asked.notify("notifications/message", log(level))
    assert [params["level"] for _, params in channel.sent] == ["warning", "critical"]


@BOTH_ERAS
async def test_other_notifications_have_no_level(revision: str) -> None:
    channel = Recorder()
    asked = context("tools/call", revision=revision, channel=channel)
    await asked.notify("notifications/progress", {"progressToken": 1, "progress": 1})
    assert channel.sent == [("notifications/progress", {"progressToken": 1, "progress": 1})]


@BOTH_ERAS
@pytest.mark.parametrize(
    ("capabilities", "question"),
    [
        ({"elicitation": {}}, ASK_NAME),
        ({"elicitation": {"form": {}}}, ASK_NAME),
        ({"elicitation": {"form": {}, "url": {}}}, OPEN_LINK),
        ({"elicitation": {"url": {}}}, OPEN_LINK),
        ({"sampling": {}}, ASK_CAPITAL),
        ({"roots": {"listChanged": True}}, ASK_ROOTS),
    ],
)
async def test_a_client_is_asked_what_it_declared(revision: str, capabilities: dict[str, Any], question: Any) -> None:
    channel = Recorder({"key": {"answer": 1}})
    asked = context("tools/call", revision=revision, capabilities=capabilities, channel=channel)
    assert await asked.ask({"key": question}) == {"key": {"answer": 1}}
    assert channel.asked == [{"key": question}]


@pytest.mark.parametrize(
    ("capabilities", "question", "missing"),
    [
        ({}, ASK_NAME, {"elicitation": {}}),
        ({"elicitation": None}, ASK_NAME, {"elicitation": {}}),
        ({"elicitation": {"url": {}}}, ASK_NAME, {"elicitation": {"form": {}}}),
        ({"elicitation": {}}, OPEN_LINK, {"elicitation": {"url": {}}}),
        ({"elicitation": {"form": {}}}, OPEN_LINK, {"elicitation": {"url": {}}}),
        ({"elicitation": {}}, ASK_CAPITAL, {"sampling": {}}),
        ({}, ASK_ROOTS, {"roots": {}}),
    ],
)
async def test_a_client_is_never_asked_what_it_did_not_declare(
    capabilities: dict[str, Any], question: Any, missing: dict[str, Any]
) -> None:
    channel = Recorder()
    per_request = context("tools/call", revision=PER_REQUEST, capabilities=capabilities, channel=channel)
    with pytest.raises(MissingClientCapability) as caught:
        await per_request.ask({"key": question})
    assert caught.value.data == {"requiredCapabilities": missing}
    handshake = context("tools/call", capabilities=capabilities, channel=channel)
    [(name, parts)] = missing.items()
    full_name = ".".join([name, *parts])
    with pytest.raises(ToolError, match=rf"^This needs a client that supports: {re.escape(full_name)}\.$"):
        await handshake.ask({"key": question})
    assert channel.asked == []


async def test_everything_that_is_missing_is_told_at_once() -> None:
    asked = context("tools/call", revision=PER_REQUEST, channel=Recorder())
    with pytest.raises(MissingClientCapability) as caught:
        await asked.ask({"name": ASK_NAME, "capital": ASK_CAPITAL})
    assert caught.value.data == {"requiredCapabilities": {"elicitation": {}, "sampling": {}}}


async def test_a_sampling_question_with_tools_needs_a_client_that_declared_tools() -> None:
    with_tools = {**ASK_CAPITAL, "params": {**ASK_CAPITAL["params"], "tools": []}}  # type: ignore[dict-item]
    asked = context("tools/call", revision=PER_REQUEST, capabilities={"sampling": {}}, channel=Recorder())
    with pytest.raises(MissingClientCapability) as caught:
        await asked.ask({"capital": with_tools})
    assert caught.value.data == {"requiredCapabilities": {"sampling": {"tools": {}}}}
    able = context("tools/call", capabilities={"sampling": {"tools": {}}}, channel=Recorder({"capital": {"a": 1}}))
    assert await able.ask({"capital": with_tools}) == {"capital": {"a": 1}}
    able.client.revision = REVISIONS["2025-06-18"]
    with pytest.raises(ToolError, match=r"supports: sampling\.tools\.$"):
        await able.ask({"capital": with_tools})


async def test_the_context_of_a_server_needs_a_client_that_declared_it() -> None:
    with_context = {**ASK_CAPITAL, "params": {**ASK_CAPITAL["params"], "includeContext": "thisServer"}}  # type: ignore[dict-item]
    asked = context("tools/call", capabilities={"sampling": {}}, channel=Recorder())
    with pytest.raises(ToolError, match=r"supports: sampling\.context\.$"):
        await asked.ask({"capital": with_context})


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-03-26"])
async def test_a_client_is_never_asked_what_its_revision_does_not_have(revision: str) -> None:
    channel = Recorder()
    asked = context("tools/call", revision=revision, capabilities={"elicitation": {}}, channel=channel)
    with pytest.raises(ToolError):
        await asked.ask({"name": ASK_NAME})
    assert channel.asked == []
