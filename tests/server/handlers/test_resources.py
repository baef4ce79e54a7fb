"""Resources, templates, and subscriptions of the handshake era."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp._protocol.errors import MCPError, ResourceNotFound, ToolError
from funcmcp._server.calls.feature import TimeLimit
from funcmcp._server.catalog.features import Resource, ResourceLister
from funcmcp._server.catalog.registry import RegistrationError
from funcmcp._server.connections.conversation import Conversation
from funcmcp._server.connections.hub import updated
from funcmcp._server.connections.subscribed_uris import MAX_URIS
from funcmcp._server.limits import LimitReachedError, Limits
from tests import rules, schemas
from tests.patience import PATIENCE
from tests.server.parts import (
    NEWEST,
    PER_REQUEST,
    answer,
    context,
    hold_uri,
    prompt,
    reply_to,
    resource,
    server,
    template,
    tool,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from funcmcp._server.calls.context import RequestContext

EVERY_REVISION = pytest.mark.parametrize("revision", schemas.REVISIONS)
HANDSHAKES = pytest.mark.parametrize("revision", schemas.HANDSHAKE_REVISIONS)
READ, LIST, SUBSCRIBE, UNSUBSCRIBE = "resources/read", "resources/list", "resources/subscribe", "resources/unsubscribe"
NOT_FOUND = {revision: -32602 if revision == PER_REQUEST else -32002 for revision in schemas.REVISIONS}
SERVED = (
    resource("menu://today"),
    template("menu://day/{day}"),
    template("menu://day/{day}/{dish*}{?lang}"),
    template("menu://{+anything}"),
)


async def read(uri: object, revision: str = NEWEST) -> dict[str, Any]:
    message: dict[str, Any] = await answer(server(*SERVED), context(READ, {"uri": uri}, revision=revision))
    return message


def listing(*found: dict[str, Any], scheme: str = "menu") -> ResourceLister:
    async def listed(_context: Any) -> list[dict[str, Any]]:
        return list(found)

    return ResourceLister(scheme, listed)


@EVERY_REVISION
@pytest.mark.parametrize(
    ("uri", "values"),
    [
        ("menu://today", {}),
        ("menu://day/friday", {"day": "friday"}),
        ("menu://day/friday/fish/chips?lang=de", {"day": "friday", "dish": ["fish", "chips"], "lang": "de"}),
        ("menu://night/friday", {"anything": "night/friday"}),
    ],
)
async def test_a_uri_is_read_by_what_describes_it_first(revision: str, uri: str, values: dict[str, Any]) -> None:
    (contents,) = (await read(uri, revision))["result"]["contents"]
    assert contents["uri"] == uri
    assert json.loads(contents["text"]) == [uri, values]


@EVERY_REVISION
@pytest.mark.parametrize("uri", ["", "menu", "menu://", "other://today", "menu://%ff", "é" * 10_000])
async def test_a_uri_that_nothing_describes_is_not_found_and_repeated(revision: str, uri: str) -> None:
    error = (await read(uri, revision))["error"]
    assert error == {"code": NOT_FOUND[revision], "message": "Resource not found", "data": {"uri": uri}}


@EVERY_REVISION
async def test_what_is_not_there_any_more_is_not_found(revision: str) -> None:
    async def look(_context: Any, uri: str, _values: Any) -> dict[str, Any]:
        raise ResourceNotFound(uri)

    served = server(template("menu://{dish}", look))
    error = (await answer(served, context(READ, {"uri": "menu://unicorn"}, revision=revision)))["error"]
    assert error == {"code": NOT_FOUND[revision], "message": "Resource not found", "data": {"uri": "menu://unicorn"}}


async def test_a_result_that_is_not_the_contents_may_not_be_cached() -> None:
    async def forward(*_: Any) -> dict[str, Any]:
        return {"resultType": "input_required", "inputRequests": {}, "requestState": "x"}

    served = server(resource("menu://today", forward))
    result = (await answer(served, context(READ, {"uri": "menu://today"}, revision=PER_REQUEST)))["result"]
    assert result.keys() == {"resultType", "inputRequests", "requestState", "_meta"}


@EVERY_REVISION
async def test_a_resource_that_a_tool_or_a_prompt_does_not_find_has_the_code_of_the_revision(revision: str) -> None:
    async def look(*_: Any) -> dict[str, Any]:
        raise ResourceNotFound("menu://unicorn")

    served = server(tool("look", look), prompt("look", look))
    for method in ("tools/call", "prompts/get"):
        error = (await answer(served, context(method, {"name": "look"}, revision=revision)))["error"]
        assert error["code"] == NOT_FOUND[revision]


@EVERY_REVISION
@pytest.mark.parametrize("uri", ["menu://day/..", "menu://day/a%00b", "menu://day/x/y?lang=..", "menu:///etc/passwd"])
async def test_a_uri_that_leads_out_of_where_it_belongs_is_invalid(revision: str, uri: str) -> None:
    error = (await read(uri, revision))["error"]
    assert (error["code"], error["data"]) == (-32602, {"uri": uri})


@EVERY_REVISION
@pytest.mark.parametrize(
    "params", [{}, {"uri": None}, {"uri": 5}, {"uri": True}, {"uri": ["menu://today"]}, {"uri": {}}]
)
async def test_a_uri_that_is_no_text_is_invalid(revision: str, params: dict[str, Any]) -> None:
    error = (await answer(server(*SERVED), context(READ, params, revision=revision)))["error"]
    assert error["code"] == -32602


@pytest.mark.parametrize(("ttl", "milliseconds"), [(0, 0), (0.25, 250), (60, 60_000)])
async def test_what_was_read_is_private_and_good_for_the_servers_time(ttl: float, milliseconds: int) -> None:
    served = server(*SERVED, read_ttl=ttl)
    result = (await answer(served, context(READ, {"uri": "menu://today"}, revision=PER_REQUEST)))["result"]
    assert (result["ttlMs"], result["cacheScope"]) == (milliseconds, "private")


@EVERY_REVISION
async def test_resources_and_templates_have_lists_of_their_own(revision: str) -> None:
    served = server(*SERVED)
    listed = (await answer(served, context(LIST, revision=revision)))["result"]["resources"]
    assert [one["uri"] for one in listed] == ["menu://today"]
    templates = (await answer(served, context("resources/templates/list", revision=revision)))["result"]
    assert [one["uriTemplate"] for one in templates["resourceTemplates"]] == [one.key for one in SERVED[1:]]


@EVERY_REVISION
async def test_listers_add_to_the_list_and_what_came_first_stays(revision: str) -> None:
    served = server(
        resource("menu://today"),
        listing({"uri": "menu://a", "name": "a"}, {"uri": "menu://today", "name": "another"}),
        listing({"uri": "news://b", "name": "b"}, {"uri": "menu://a", "name": "again"}, scheme="news"),
    )
    listed = (await answer(served, context(LIST, revision=revision)))["result"]["resources"]
    assert [(one["uri"], one["name"]) for one in listed] == [
        ("menu://today", "menu://today"),
        ("menu://a", "a"),
        ("news://b", "b"),
    ]


async def test_a_lister_is_asked_each_time_and_knows_who_asks() -> None:
    asked = []

    async def listed(asking: Any) -> list[dict[str, Any]]:
        asked.append(asking.client.revision.date)
        return []

    served = server(ResourceLister("menu", listed))
    for revision in (NEWEST, NEWEST, PER_REQUEST):
        await answer(served, context(LIST, revision=revision))
    assert asked == [NEWEST, NEWEST, PER_REQUEST]


@EVERY_REVISION
@pytest.mark.parametrize("error", [KeyError("hunter2"), ToolError("no"), MCPError(-32000, "no"), TimeoutError()])
async def test_what_a_lister_that_fails_has_is_left_out_and_told_in_the_log(
    revision: str, error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    async def listed(_context: Any) -> list[dict[str, Any]]:
        raise error

    served = server(
        resource("menu://today"), ResourceLister("menu", listed), listing({"uri": "a://b", "name": "b"}, scheme="a")
    )
    listed_resources = (await answer(served, context(LIST, revision=revision)))["result"]["resources"]
    assert [one["uri"] for one in listed_resources] == ["menu://today", "a://b"]
    [record] = caplog.records
    assert f": {type(error).__name__}: " in record.getMessage()
    assert record.getMessage().endswith(" (the resources of 'menu' are left out of resources/list)")


async def test_a_lister_that_takes_too_long_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("funcmcp._server.handlers.resources.LISTER_TIME_LIMIT", TimeLimit(0.01))

    async def listed(_context: Any) -> list[dict[str, Any]]:
        await asyncio.Event().wait()
        return []

    served = server(resource("menu://today"), ResourceLister("menu", listed))
    assert len((await answer(served, context(LIST)))["result"]["resources"]) == 1


@EVERY_REVISION
async def test_a_cancelled_list_is_cancelled_and_nothing_is_told_in_the_log(
    revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    begun = asyncio.Event()

    async def listed(_context: Any) -> list[dict[str, Any]]:
        begun.set()
        await asyncio.Event().wait()
        return []

    served = server(ResourceLister("menu", listed))
    task = asyncio.ensure_future(reply_to(served, context(LIST, revision=revision)))
    await asyncio.wait_for(begun.wait(), PATIENCE)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, PATIENCE)
    assert caplog.records == []


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), asyncio.CancelledError()])
async def test_a_lister_that_would_end_more_than_its_list_is_left_out(error: BaseException) -> None:
    async def listed(_context: Any) -> list[dict[str, Any]]:
        await asyncio.sleep(0)
        raise error

    served = server(resource("menu://today"), ResourceLister("menu", listed))
    assert len((await answer(served, context(LIST)))["result"]["resources"]) == 1


async def test_a_resource_that_is_no_json_does_not_take_the_others_of_another_lister_away() -> None:
    served = server(
        listing({"uri": "menu://a", "name": "a", "annotations": {"priority": float("nan")}}),
        listing({"uri": "news://b", "name": "b"}, scheme="news"),
    )
    listed = (await answer(served, context(LIST)))["result"]["resources"]
    assert [one["uri"] for one in listed] == ["news://b"]


async def test_a_resource_that_can_not_be_described_is_left_out_where_there_are_listers() -> None:
    def describe() -> dict[str, Any]:
        raise RegistrationError("no JSON")

    bad = Resource("menu://bad", describe, hold_uri)
    served = server(bad, resource("menu://today"), listing({"uri": "menu://a", "name": "a"}))
    listed = (await answer(served, context(LIST)))["result"]["resources"]
    assert [one["uri"] for one in listed] == ["menu://today", "menu://a"]


async def test_a_bad_cursor_is_told_before_a_lister_is_asked() -> None:
    asked = []

    async def listed(_context: Any) -> list[dict[str, Any]]:
        asked.append(1)
        return []

    error = (await answer(server(ResourceLister("menu", listed)), context(LIST, {"cursor": 5})))["error"]
    assert (error["code"], asked) == (-32602, [])


@HANDSHAKES
async def test_a_subscription_is_remembered_until_it_is_ended(revision: str) -> None:
    served, conversation = server(*SERVED), Conversation(pushes=True)
    asked: dict[str, Any] = {"revision": revision, "conversation": conversation}
    for uri in ("menu://today", "menu://today", "menu://day/friday"):
        assert (await answer(served, context(SUBSCRIBE, {"uri": uri}, **asked)))["result"] == {}
    assert set(conversation.subscribed) == {"menu://today", "menu://day/friday"}
    assert conversation.wants(updated("menu://today"))
    for uri in ("menu://today", "menu://today", "other://unheard.of"):
        assert (await answer(served, context(UNSUBSCRIBE, {"uri": uri}, **asked)))["result"] == {}
    assert set(conversation.subscribed) == {"menu://day/friday"}
    assert not conversation.wants(updated("menu://today"))


@HANDSHAKES
async def test_what_does_not_exist_cannot_be_subscribed_to(revision: str) -> None:
    conversation = Conversation(pushes=True)
    asked: dict[str, Any] = {"revision": revision, "conversation": conversation}
    for uri, code in (("other://x", -32002), ("menu://day/..", -32602), (5, -32602), (None, -32602)):
        error = (await answer(server(*SERVED), context(SUBSCRIBE, {"uri": uri}, **asked)))["error"]
        assert error["code"] == code
    assert conversation.idle


@HANDSHAKES
@pytest.mark.parametrize("method", [SUBSCRIBE, UNSUBSCRIBE])
@pytest.mark.parametrize("conversation", [None, Conversation()])
async def test_who_cannot_be_told_cannot_subscribe(
    revision: str, method: str, conversation: Conversation | None
) -> None:
    asked = context(method, {"uri": "menu://today"}, revision=revision, conversation=conversation)
    error = (await answer(server(*SERVED), asked))["error"]
    assert (error["code"], error["data"]) == (-32601, {"method": method})


@pytest.mark.parametrize("method", [SUBSCRIBE, UNSUBSCRIBE])
async def test_subscribing_is_no_method_of_the_per_request_era(method: str) -> None:
    error = (await answer(server(*SERVED), context(method, {"uri": "menu://today"}, revision=PER_REQUEST)))["error"]
    assert error["code"] == -32601


async def test_a_client_subscribes_to_so_many_resources_and_no_more() -> None:
    served, conversation = server(*SERVED), Conversation(pushes=True)
    conversation.subscribed.replace(f"menu://{number}" for number in range(MAX_URIS))
    refused = await answer(served, context(SUBSCRIBE, {"uri": "menu://today"}, conversation=conversation))
    assert refused["error"]["code"] == -32602
    again = await answer(served, context(SUBSCRIBE, {"uri": "menu://0"}, conversation=conversation))
    assert again["result"] == {}
    assert len(conversation.subscribed) == MAX_URIS


@rules.verifies(rules.THREAT_48)
async def test_the_uris_that_a_client_subscribes_to_are_bounded_in_bytes_together() -> None:
    """A template matches URIs of up to 8,192 characters."""
    served, conversation = server(*SERVED), Conversation(pushes=True)
    errors = []
    for number in range(100):
        subscription = context(SUBSCRIBE, {"uri": f"menu://day/{number:08000}"}, conversation=conversation)
        errors.append((await answer(served, subscription)).get("error", {}).get("code"))
    assert errors[:60] == [None] * 60
    assert errors[-30:] == [-32602] * 30
    assert served.load.subscriptions.used < 512 * 1024
    conversation.subscribed.close()
    assert served.load.subscriptions.used == 0


async def test_the_uris_of_all_clients_are_bounded_in_bytes_together() -> None:
    served = server(*SERVED, limits=Limits(subscription_bytes=2000))
    first, second = Conversation(pushes=True), Conversation(pushes=True)
    uri = "menu://day/" + "x" * 1000
    assert (await answer(served, context(SUBSCRIBE, {"uri": uri}, conversation=first)))["result"] == {}
    with pytest.raises(LimitReachedError):
        await reply_to(served, context(SUBSCRIBE, {"uri": uri}, conversation=second))
    assert (await answer(served, context(UNSUBSCRIBE, {"uri": uri}, conversation=first)))["result"] == {}
    assert (await answer(served, context(SUBSCRIBE, {"uri": uri}, conversation=second)))["result"] == {}


@EVERY_REVISION
@pytest.mark.parametrize("method", [LIST, READ, "resources/templates/list"])
async def test_a_server_whose_resources_are_switched_off_has_none_of_their_methods(revision: str, method: str) -> None:
    for served in (server(offer_resources=False), server(*SERVED, offer_resources=False)):
        error = (await answer(served, context(method, {"uri": "menu://today"}, revision=revision)))["error"]
        assert error["code"] == -32601


@EVERY_REVISION
async def test_a_server_without_resources_lists_none_and_finds_none(revision: str) -> None:
    for method, member in ((LIST, "resources"), ("resources/templates/list", "resourceTemplates")):
        assert (await answer(server(), context(method, revision=revision)))["result"][member] == []
    error = (await answer(server(), context(READ, {"uri": "menu://today"}, revision=revision)))["error"]
    assert error["message"] == "Resource not found"


@EVERY_REVISION
async def test_a_server_that_will_have_resources_lists_none_so_far(revision: str) -> None:
    served = server(offer_resources=True)
    assert (await answer(served, context(LIST, revision=revision)))["result"]["resources"] == []
    listed = (await answer(served, context("resources/templates/list", revision=revision)))["result"]
    assert listed["resourceTemplates"] == []


async def test_a_resource_of_another_server_is_watched_while_a_client_is_subscribed() -> None:
    events: list[str] = []

    async def watch(uri: str, context: RequestContext) -> Callable[[], None]:
        events.append(f"begin {uri} {context.request.method}")
        return lambda: events.append(f"end {uri}")

    watched = replace(resource("menu://up/today"), source_uri=lambda uri: uri.replace("up/", ""), watch=watch)
    served, conversation = server(watched), Conversation(pushes=True)
    for method in (SUBSCRIBE, UNSUBSCRIBE):
        result = (await answer(served, context(method, {"uri": "menu://up/today"}, conversation=conversation)))[
            "result"
        ]
        assert result == {}
    assert events == ["begin menu://today resources/subscribe", "end menu://today"]


async def test_a_subscription_that_the_other_server_refuses_is_an_error() -> None:
    async def watch(uri: str, context: RequestContext) -> Callable[[], None]:
        raise MCPError(-31000, f"No updates of {uri} for {context.request.method}")

    served, conversation = server(replace(resource("menu://today"), watch=watch)), Conversation(pushes=True)
    error = (await answer(served, context(SUBSCRIBE, {"uri": "menu://today"}, conversation=conversation)))["error"]
    assert (error["code"], len(conversation.subscribed)) == (-31000, 0)
