"""Values of parameters in each style of OpenAPI, by the table of "Style Examples"."""

from __future__ import annotations

from typing import Any

import pytest

from funcmcp import ToolError
from funcmcp._authoring.openapi.parameters import Place, cookie_part, header_value, path_value, query_parts

LIST = ["blue", "black"]
OBJECT = {"R": 100, "G": "a,b"}


@pytest.mark.parametrize(
    ("style", "explode", "value", "text"),
    [
        ("simple", False, "blue", "blue"),
        ("simple", False, LIST, "blue,black"),
        ("simple", False, OBJECT, "R,100,G,a%2Cb"),
        ("simple", True, OBJECT, "R=100,G=a%2Cb"),
        ("label", False, "blue", ".blue"),
        ("label", False, LIST, ".blue,black"),
        ("label", True, LIST, ".blue.black"),
        ("label", True, OBJECT, ".R=100.G=a%2Cb"),
        ("matrix", False, "blue", ";color=blue"),
        ("matrix", False, LIST, ";color=blue,black"),
        ("matrix", True, LIST, ";color=blue;color=black"),
        ("matrix", False, OBJECT, ";color=R,100,G,a%2Cb"),
        ("matrix", True, OBJECT, ";R=100;G=a%2Cb"),
    ],
)
def test_a_value_in_a_path_has_its_style(style: str, explode: bool, value: Any, text: str) -> None:
    assert path_value(Place("c", "color", "path", style, explode), value) == text


@pytest.mark.parametrize("style", ["simple", "label", "matrix"])
@pytest.mark.parametrize(
    "value",
    ["", ".", "..", "a/b", "a\\b", "a\nb", "%2e%2E", "%252e%252e/", [], ["a", ".."], {}, {"a": "/"}, {"..": "a"}],
)
def test_a_value_in_a_path_can_not_leave_its_segment(style: str, value: Any) -> None:
    with pytest.raises(ToolError, match=r"^c: must "):
        path_value(Place("c", "color", "path", style, explode=True), value)


def test_a_path_may_have_several_segments_if_the_document_says_so() -> None:
    place = Place("p", "path", "path", "simple", many_segments=True)
    assert path_value(place, "src/a b.py") == "src/a%20b.py"
    for value in ("../a", "a//b", "/a", "a/.", "a/\\"):
        with pytest.raises(ToolError, match="segments of a path"):
            path_value(place, value)


@pytest.mark.parametrize(
    ("style", "explode", "value", "parts"),
    [
        ("form", True, "blue", ["color=blue"]),
        ("form", True, LIST, ["color=blue", "color=black"]),
        ("form", True, OBJECT, ["R=100", "G=a%2Cb"]),
        ("form", False, LIST, ["color=blue,black"]),
        ("form", False, OBJECT, ["color=R,100,G,a%2Cb"]),
        ("form", True, [], []),
        ("form", False, [], []),
        ("spaceDelimited", False, LIST, ["color=blue%20black"]),
        ("pipeDelimited", False, LIST, ["color=blue%7Cblack"]),
        ("tabDelimited", False, LIST, ["color=blue%09black"]),
        ("deepObject", True, OBJECT, ["color%5BR%5D=100", "color%5BG%5D=a%2Cb"]),
        ("deepObject", True, {"a": [{"b": 1}, True]}, ["color%5Ba%5D%5B0%5D%5Bb%5D=1", "color%5Ba%5D%5B1%5D=true"]),
        ("form", True, "a&b=c#d+e f", ["color=a%26b%3Dc%23d%2Be%20f"]),
        ("form", True, [{"a": 1}], ["color=%7B%22a%22%3A1%7D"]),
    ],
)
def test_a_value_in_a_query_has_its_style(style: str, explode: bool, value: Any, parts: list[str]) -> None:
    assert query_parts(Place("c", "color", "query", style, explode), value) == parts


def test_reserved_characters_stay_but_for_those_that_separate_parameters() -> None:
    place = Place("q", "q", "query", "form", explode=True, allow_reserved=True)
    assert query_parts(place, "a:/?[b]&x=1#f+;") == ["q=a:/?[b]%26x%3D1%23f%2B%3B"]


def test_a_member_of_an_object_can_not_be_another_parameter() -> None:
    place = Place("filter", "filter", "query", "form", explode=True)
    with pytest.raises(ToolError, match="must not have a member 'api_key'"):
        query_parts(place, {"api_key": "x"}, {"api_key"})


def test_a_value_in_json_is_one_text() -> None:
    place = Place("a", "a", "query", is_json=True)
    assert query_parts(place, {"b": [1, "ü"]}) == ["a=%7B%22b%22%3A%5B1%2C%22%C3%BC%22%5D%7D"]
    assert path_value(place._replace(location="path", style="simple"), [1]) == "%5B1%5D"
    assert header_value(place, [1]) == "[1]"
    assert cookie_part(place, [1]) == "a=%5B1%5D"


def test_a_value_in_a_header_or_a_cookie_is_simple() -> None:
    header = Place("h", "X-H", "header", "simple")
    assert header_value(header, LIST) == "blue,black"
    assert header_value(header, {"a": 1, "b": True}) == "a,1,b,true"
    assert header_value(header._replace(explode=True), {"a": 1}) == "a=1"
    assert cookie_part(Place("c", "c d", "cookie", "form"), ["a;b", "c"]) == "c%20d=a%3Bb,c"
    with pytest.raises(ToolError, match="without line breaks"):
        header_value(header, ["a\r\nb"])
