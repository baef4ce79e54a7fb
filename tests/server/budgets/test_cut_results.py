"""Shortened results of tools, and the whole texts behind them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from funcmcp._server.budgets.cut_results import STRUCTURED, Mirror, Missing, characters_of, cut_result, full_text_of
from funcmcp._server.budgets.cut_values import Cut, IndivisibleError
from tests.server.budgets.test_cut_values import PROSE, VALUES, accepts_all

ROWS = [{"id": index, "name": f"name {index}"} for index in range(200)]
IMAGE = {"type": "image", "data": "A" * 4000, "mimeType": "image/png"}
LINK = {"type": "resource_link", "uri": "a://b", "name": "b"}


def text(value: str) -> dict[str, Any]:
    return {"type": "text", "text": value}


def compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def structured(value: Any) -> dict[str, Any]:
    return {"content": [text(compact(value))], "structuredContent": value}


def texts_of(result: dict[str, Any]) -> list[str]:
    return [block["text"] for block in result["content"] if block["type"] == "text"]


def rest_of(result: dict[str, Any], missing: list[Missing]) -> str:
    """Return the whole text of a result from what is missing on."""
    full_text, start = full_text_of(result, 500, missing)
    return full_text.text[start:]


@given(st.lists(VALUES, min_size=1, max_size=20), st.integers(50, 400))
def test_the_text_of_a_shortened_result_is_its_structured_content(items: list[Any], size: int) -> None:
    result = structured({"items": items})
    try:
        cut = cut_result(result, size, accepts_all)
    except IndivisibleError:
        return
    assert characters_of(cut.result) <= size
    assert texts_of(cut.result) == [compact(cut.result["structuredContent"])]
    assert cut.result["structuredContent"]["items"][0] is not None or items[0] is None
    assert json.loads(full_text_of(result, 100, cut.missing)[0].text) == result["structuredContent"]


def test_the_text_of_a_wrapped_result_has_the_same_items() -> None:
    result = {"content": [text(compact(ROWS))], "structuredContent": {"result": ROWS}}
    cut = cut_result(result, 1000, accepts_all)
    shown = cut.result["structuredContent"]["result"]
    assert json.loads(texts_of(cut.result)[0]) == shown
    assert cut.missing == [Missing(STRUCTURED, Cut(("result",), len(shown), 200))]
    assert rest_of(result, cut.missing).startswith(compact(ROWS[len(shown)]))


def test_a_wrapped_text_is_repeated_as_a_text() -> None:
    result = {"content": [text(PROSE)], "structuredContent": {"result": PROSE}}
    cut = cut_result(result, 600, accepts_all)
    shown = cut.result["structuredContent"]["result"]
    assert texts_of(cut.result) == [shown]
    assert PROSE.startswith(shown)
    assert rest_of(result, cut.missing) == compact({"result": PROSE[len(shown) :]})[len('{"result":"') : -1] + "\n}"


def test_texts_of_an_author_and_structured_content_have_a_budget_each() -> None:
    result = {"content": [text(PROSE)], "structuredContent": {"rows": ROWS}}
    cut = cut_result(result, 800, accepts_all)
    assert 500 < len(texts_of(cut.result)[0]) <= 800
    assert 500 < len(compact(cut.result["structuredContent"])) <= 800
    assert [lack.key for lack in cut.missing] == [STRUCTURED, 0]
    assert cut_result({**result, "content": [text("200 rows")]}, 800, accepts_all).result["content"] == [
        text("200 rows")
    ]
    full_text, start = full_text_of(result, 500, cut.missing)
    assert full_text.text.startswith(PROSE)
    assert start == len(texts_of(cut.result)[0])
    assert json.loads(full_text.text[len(PROSE) :]) == {"rows": ROWS}


def test_structured_content_without_a_text_is_shortened() -> None:
    cut = cut_result({"content": [], "structuredContent": {"rows": ROWS}}, 800, accepts_all)
    assert cut.result["content"] == []
    assert len(compact(cut.result["structuredContent"])) <= 800


def test_a_list_in_a_text_is_shortened_between_its_items() -> None:
    result = {"content": [text(json.dumps(ROWS, indent=4))]}
    cut = cut_result(result, 800, accepts_all)
    shown = json.loads(texts_of(cut.result)[0])
    assert shown == ROWS[: len(shown)]
    assert cut.missing == [Missing(0, Cut((), len(shown), 200))]
    assert rest_of(result, cut.missing).startswith(compact(ROWS[len(shown)]))


def test_nothing_is_missing_if_compact_json_fits() -> None:
    cut = cut_result({"content": [text(json.dumps(ROWS[:10], indent=40))]}, 400, accepts_all)
    assert texts_of(cut.result) == [compact(ROWS[:10])]
    assert cut.missing == []


@pytest.mark.parametrize("broken", ['{"a": 1', '{"a": 1} and {"b": 2}', "[\ud800]"])
def test_a_text_that_is_not_json_is_shortened_as_a_text(broken: str) -> None:
    result = {"content": [text(broken + " word" * 100)]}
    cut = cut_result(result, 200, accepts_all)
    assert len(texts_of(cut.result)[0]) <= 200
    assert texts_of(cut.result)[0].startswith(broken)


def test_blocks_behind_the_first_long_one_are_left_out_but_images_stay() -> None:
    result = {"content": [text("Title"), text(PROSE), IMAGE, text("End"), LINK]}
    cut = cut_result(result, 500, accepts_all)
    assert [block["type"] for block in cut.result["content"]] == ["text", "text", "image"]
    assert [(lack.key, lack.cut is None) for lack in cut.missing] == [(1, False), (3, True), (4, True)]
    shown = cut.result["content"][1]["text"]
    assert rest_of(result, cut.missing) == f"{PROSE[len(shown) :]}\n\nEnd\n\n{compact(LINK)}"


def test_a_text_for_which_little_is_left_is_left_out() -> None:
    result = {"content": [text("x" * 400), text(PROSE)]}
    cut = cut_result(result, 500, accepts_all)
    assert texts_of(cut.result) == ["x" * 400]
    assert cut.missing == [Missing(1, None)]
    assert rest_of(result, cut.missing) == PROSE


def test_json_behind_a_text_that_can_not_be_shortened_is_left_out() -> None:
    result = {"content": [text("Rows:"), text(compact(["x" * 2000]))]}
    assert cut_result(result, 500, accepts_all).missing == [Missing(1, None)]
    with pytest.raises(IndivisibleError):
        cut_result({"content": [text(compact(["x" * 2000]))]}, 500, accepts_all)


def test_the_text_of_an_embedded_resource_is_shortened_and_its_bytes_are_not() -> None:
    resource = {"uri": "file:///a", "text": PROSE}
    blob = {"type": "resource", "resource": {"uri": "file:///b", "blob": "A" * 4000}}
    cut = cut_result({"content": [blob, {"type": "resource", "resource": resource}]}, 500, accepts_all)
    assert cut.result["content"][0] == blob
    assert PROSE.startswith(cut.result["content"][1]["resource"]["text"])
    assert cut.result["content"][1]["resource"]["uri"] == "file:///a"


def test_links_are_shown_as_a_whole_or_not_at_all() -> None:
    links = [{**LINK, "name": f"{index}" * 10} for index in range(50)]
    cut = cut_result({"content": links}, 500, accepts_all)
    assert cut.result["content"] == links[: len(cut.result["content"])]
    assert len(cut.missing) == 50 - len(cut.result["content"])


def test_images_have_no_characters() -> None:
    assert characters_of({"content": [IMAGE, text("abc")]}) == 3
    assert characters_of({"content": [text("abc")], "structuredContent": {"a": 1}}) == 7


def test_a_text_beside_an_empty_result_is_no_copy_of_it() -> None:
    result = {"content": [{"type": "text", "text": "x" * 3000}], "structuredContent": {"result": None}}
    cut = cut_result(result, 2000, lambda _value: [])
    assert (cut.mirror, cut.result["content"][0]["text"][:3]) == (None, "xxx")


@pytest.mark.parametrize(
    ("structured", "text", "mirror"),
    [
        ({"a": [1, 2]}, '{ "a": [1, 2] }', Mirror(1, is_inner=False)),
        ({"result": [1, 2]}, "[1,  2]", Mirror(1, is_inner=True)),
        ({"result": [1, 2]}, '{"result": [1,  2]}', Mirror(1, is_inner=False)),
        ({"result": [1, 2]}, "[2, 1]", None),
    ],
)
def test_a_text_with_other_spaces_repeats_structured_content(structured: Any, text: str, mirror: Mirror | None) -> None:
    image = {"type": "image", "data": "", "mimeType": "image/png"}
    result = {"content": [image, {"type": "text", "text": text}], "structuredContent": structured}
    assert cut_result(result, 2000, lambda _value: []).mirror == mirror
