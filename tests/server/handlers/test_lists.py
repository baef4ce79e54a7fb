"""Lists in pages."""

from __future__ import annotations

from typing import Any

import pytest

from funcmcp._protocol.errors import InvalidParams
from funcmcp._server.catalog.features import ResourceLister, Tool
from funcmcp._server.handlers.lists import encode_cursor, page_of, start_of
from tests import schemas
from tests.server.parts import PER_REQUEST, answer, context, prompt, resource, server, template, tool

EVERY_REVISION = pytest.mark.parametrize("revision", schemas.REVISIONS)
KINDS: dict[str, tuple[str, str, Any]] = {
    "tools/list": ("tools", "name", tool),
    "resources/list": ("resources", "uri", lambda key: resource(f"menu://{key}")),
    "resources/templates/list": ("resourceTemplates", "uriTemplate", lambda key: template(f"menu://{key}/{{a}}")),
    "prompts/list": ("prompts", "name", prompt),
}
EVERY_LIST = pytest.mark.parametrize("method", KINDS)


def items(keys: str) -> list[tuple[str, str]]:
    return [(key, key) for key in keys]


@pytest.mark.parametrize(
    ("size", "start", "page", "after"),
    [
        (None, 0, "abc", None),
        (3, 0, "abc", None),
        (2, 0, "ab", (2, "b")),
        (2, 2, "c", None),
        (2, 1, "bc", None),
        (1, 1, "b", (2, "b")),
        (2, 3, "", None),
    ],
)
def test_a_page_begins_at_its_place(size: int | None, start: int, page: str, after: tuple[int, str] | None) -> None:
    expected = None if after is None else encode_cursor("tools", *after)
    found = page_of("tools", items("abc"), start, size)
    assert ("".join(found.items), found.next_cursor) == (page, expected)


@pytest.mark.parametrize("size", [1, None])
def test_a_list_without_items_is_one_empty_page(size: int | None) -> None:
    assert page_of("tools", [], 0, size) == ([], None, True)


@pytest.mark.parametrize(
    ("now", "rest"),
    [
        ("abcdef", "def"),
        ("bcdef", "def"),  # another one has gone
        ("abdef", "def"),  # the one that it names has gone
        ("abdefc", "defc"),  # it has gone and come again
        ("a", ""),
        ("", ""),
    ],
)
def test_a_cursor_means_what_comes_after_it_when_the_list_has_changed(now: str, rest: str) -> None:
    assert now[start_of("tools", now, encode_cursor("tools", 3, "c")) :] == rest


@pytest.mark.parametrize("cursor", ["", "YQ", "no cursor", encode_cursor("prompts", 2, "b")])
def test_a_cursor_that_was_not_given_out_is_invalid(cursor: str) -> None:
    with pytest.raises(InvalidParams, match="Start again"):
        start_of("tools", "abc", cursor)


@EVERY_LIST
@EVERY_REVISION
async def test_a_page_is_followed_by_the_rest_even_if_its_last_item_goes_meanwhile(revision: str, method: str) -> None:
    member, name, make = KINDS[method]
    features = [make(f"f{number}") for number in range(5)]
    served = server(*features, page_size=2)
    first = (await answer(served, context(method, revision=revision)))["result"]
    registry = served.routes.lists[method].registry
    registry.remove(features[1].key)
    rest = (await answer(served, context(method, {"cursor": first["nextCursor"]}, revision=revision)))["result"]
    assert [item[name] for item in rest[member]] == [features[2].key, features[3].key]
    last = (await answer(served, context(method, {"cursor": rest["nextCursor"]}, revision=revision)))["result"]
    assert [item[name] for item in last[member]] == [features[4].key]


@EVERY_LIST
@EVERY_REVISION
async def test_every_list_comes_in_pages_that_together_are_the_whole(revision: str, method: str) -> None:
    member, name, make = KINDS[method]
    served = server(*(make(f"f{number}") for number in range(5)), page_size=2)
    seen: list[str] = []
    params: dict[str, Any] = {}
    for size, more in ((2, True), (2, True), (1, False)):
        result = (await answer(served, context(method, params, revision=revision)))["result"]
        assert (len(result[member]), "nextCursor" in result) == (size, more)
        seen += [item[name] for item in result[member]]
        params = {"cursor": result.get("nextCursor")}
    assert len(set(seen)) == 5
    assert seen == sorted(seen)


@EVERY_LIST
@EVERY_REVISION
@pytest.mark.parametrize("cursor", ["", None])
async def test_an_empty_cursor_is_the_first_page(revision: str, method: str, cursor: str | None) -> None:
    served = server(KINDS[method][2]("only"))
    first = await answer(served, context(method, {}, revision=revision))
    assert await answer(served, context(method, {"cursor": cursor}, revision=revision)) == first


@EVERY_LIST
@EVERY_REVISION
async def test_a_bad_cursor_is_invalid_params(revision: str, method: str) -> None:
    served = server(KINDS[method][2]("only"))
    cursors: tuple[object, ...] = (1, 1.5, True, [], {}, ["YQ=="], "nope", "é", "YQ==", "A" * 10_000)
    answers = {
        repr(cursor): await answer(served, context(method, {"cursor": cursor}, revision=revision)) for cursor in cursors
    }
    codes = {cursor: message["error"]["code"] for cursor, message in answers.items()}
    assert codes == dict.fromkeys(codes, -32602)


@EVERY_LIST
async def test_a_cursor_of_null_is_none(method: str) -> None:
    message = await answer(server(KINDS[method][2]("only")), context(method, {"cursor": None}))
    assert len(message["result"][KINDS[method][0]]) == 1


@EVERY_LIST
async def test_a_list_is_described_once_until_something_changes(method: str) -> None:
    member, _, make = KINDS[method]
    served = server(make("first"))
    for _ in range(2):
        assert len((await answer(served, context(method)))["result"][member]) == 1
    served.catalog.add(make("second"))
    assert len((await answer(served, context(method)))["result"][member]) == 2


async def test_a_list_that_changes_while_it_is_made_is_not_kept() -> None:
    served = server()

    def describe_and_add() -> dict[str, Any]:
        if len(served.catalog.tools) == 20:
            served.catalog.add(tool("late"))
        return {"name": "t", "inputSchema": {"type": "object"}}

    for number in range(20):
        served.catalog.add(Tool(f"t{number}", describe_and_add, tool("any").handler))
    assert len((await answer(served, context("tools/list")))["result"]["tools"]) == 20
    assert len((await answer(served, context("tools/list")))["result"]["tools"]) == 21


@EVERY_LIST
async def test_a_list_says_how_long_it_is_good_and_that_it_is_the_same_for_all(method: str) -> None:
    served = server(*(KINDS[method][2](f"f{number}") for number in range(2)), page_size=1, list_ttl=1.5)
    first = (await answer(served, context(method, revision=PER_REQUEST)))["result"]
    second = (await answer(served, context(method, {"cursor": first["nextCursor"]}, revision=PER_REQUEST)))["result"]
    for result in (first, second):
        assert (result["ttlMs"], result["cacheScope"]) == (1500, "public")


async def test_pages_of_a_list_that_depends_on_who_asks_are_all_private() -> None:
    async def listed(_context: Any) -> list[dict[str, Any]]:
        return [{"uri": f"menu://{number}", "name": "dish"} for number in range(3)]

    served = server(ResourceLister("menu", listed), page_size=2)
    first = (await answer(served, context("resources/list", revision=PER_REQUEST)))["result"]
    params = {"cursor": first["nextCursor"]}
    second = (await answer(served, context("resources/list", params, revision=PER_REQUEST)))["result"]
    assert [item["uri"] for item in first["resources"] + second["resources"]] == ["menu://0", "menu://1", "menu://2"]
    assert (first["cacheScope"], second["cacheScope"]) == ("private", "private")
    assert "nextCursor" not in second


def test_most_clients_get_all_features_of_a_list() -> None:
    served = server(tool("a"), tool("b"))
    assert [feature.key for feature in served.routes.lists["tools/list"].shown()] == ["a", "b"]
