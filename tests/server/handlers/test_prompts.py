"""`prompts/list` and `prompts/get`."""

from __future__ import annotations

from typing import Any

import pytest

from funcmcp._server.catalog.features import Prompt
from tests import schemas
from tests.server.parts import NEWEST, answer, context, prompt, server

EVERY_REVISION = pytest.mark.parametrize("revision", schemas.REVISIONS)
GET = "prompts/get"


async def get(params: dict[str, Any], revision: str = NEWEST, *prompts: Prompt) -> dict[str, Any]:
    message: dict[str, Any] = await answer(
        server(*(prompts or [prompt("greet")])), context(GET, params, revision=revision)
    )
    return message


@EVERY_REVISION
async def test_a_prompt_gets_its_arguments_and_makes_messages(revision: str) -> None:
    result = (await get({"name": "greet", "arguments": {"a": "Ada"}}, revision))["result"]
    assert result["messages"] == [{"role": "user", "content": {"type": "text", "text": '{"a": "Ada"}'}}]


@EVERY_REVISION
async def test_arguments_may_be_left_out(revision: str) -> None:
    assert (await get({"name": "greet"}, revision))["result"]["messages"][0]["content"]["text"] == "{}"


@EVERY_REVISION
@pytest.mark.parametrize("name", [None, 5, True, ["greet"], {}, "", "Greet", "greet ", "unheard_of", "x" * 10_000])
async def test_a_name_that_is_none_of_a_prompt_is_invalid(revision: str, name: object) -> None:
    error = (await get({"name": name}, revision))["error"]
    assert error["code"] == -32602
    assert len(error["message"]) < 200


@EVERY_REVISION
@pytest.mark.parametrize(
    "arguments", [None, "a", 5, True, [], [["a", "b"]], {"a": 5}, {"a": None}, {"a": ["b"]}, {"a": {}}]
)
async def test_arguments_that_are_no_object_of_texts_are_invalid(revision: str, arguments: object) -> None:
    error = (await get({"name": "greet", "arguments": arguments}, revision))["error"]
    assert error["code"] == -32602


@EVERY_REVISION
async def test_content_that_a_revision_does_not_have_is_told_in_words(revision: str) -> None:
    blocks = [
        {"type": "image", "data": "AAAA", "mimeType": "image/png"},
        {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"},
        {"type": "resource_link", "uri": "menu://today", "name": "today"},
        {"type": "resource", "resource": {"uri": "menu://today", "text": "Fish"}},
    ]

    async def say(*_: Any) -> dict[str, Any]:
        return {"description": "All", "messages": [{"role": "assistant", "content": block} for block in blocks]}

    result = (await get({"name": "all"}, revision, prompt("all", say)))["result"]
    assert result["description"] == "All"
    assert len(result["messages"]) == len(blocks)
    assert {message["role"] for message in result["messages"]} == {"assistant"}
    if revision == "2024-11-05":
        words = [message["content"].get("text") for message in result["messages"]]
        assert words == [
            None,
            "[audio content, which this protocol revision does not support]",
            "today: menu://today",
            None,
        ]


@EVERY_REVISION
async def test_a_prompt_is_listed_with_the_members_that_the_revision_has(revision: str) -> None:
    icons = [{"src": "https://example.com/icon.png"}]
    argument = {"name": "a", "title": "A", "description": "An a", "required": True}
    about = {
        "name": "p",
        "title": "P",
        "description": "A p",
        "icons": icons,
        "_meta": {"b": 1},
        "arguments": [argument],
    }
    served = server(Prompt("p", lambda: about, prompt("p").handler))
    (listed,) = (await answer(served, context("prompts/list", revision=revision)))["result"]["prompts"]
    assert listed.keys() <= about.keys()
    assert ("title" in listed) == ("title" in listed["arguments"][0]) == (revision >= "2025-06-18")
    assert ("icons" in listed) == (revision >= "2025-11-25")
    assert (listed["name"], listed["description"], listed["arguments"][0]["required"]) == ("p", "A p", True)


@EVERY_REVISION
@pytest.mark.parametrize("method", ["prompts/list", GET])
async def test_a_server_whose_prompts_are_switched_off_has_none_of_their_methods(revision: str, method: str) -> None:
    for served in (server(offer_prompts=False), server(prompt("greet"), offer_prompts=False)):
        error = (await answer(served, context(method, {"name": "greet"}, revision=revision)))["error"]
        assert error["code"] == -32601


@EVERY_REVISION
async def test_a_server_without_prompts_lists_none_and_finds_none(revision: str) -> None:
    assert (await answer(server(), context("prompts/list", revision=revision)))["result"]["prompts"] == []
    error = (await answer(server(), context(GET, {"name": "greet"}, revision=revision)))["error"]
    assert (error["code"], error["message"]) == (-32602, "Unknown prompt: greet")


@EVERY_REVISION
async def test_a_server_that_will_have_prompts_lists_none_so_far(revision: str) -> None:
    served = server(offer_prompts=True)
    assert (await answer(served, context("prompts/list", revision=revision)))["result"]["prompts"] == []
