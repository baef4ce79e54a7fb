"""Routes of HTTP triggers as segments, and what ASP.NET Core rejects."""

from __future__ import annotations

import pytest

from funcmcp._adapters.azure.route_templates import (
    Constraint,
    RouteError,
    Segment,
    Variable,
    folded,
    segments_of,
    variables_in,
)


@pytest.mark.parametrize(
    ("route", "parts"),
    [
        ("", []),
        ("/Orders/{order-id}/", [("Orders",), (Variable("order-id", False, None, False, ()),)]),
        (
            "{name}.{ext?}",
            [(Variable("name", False, None, False, ()), ".", Variable("ext", True, None, False, ()))],
        ),
        ("a/{b=c:d}", [("a",), (Variable("b", False, "c:d", False, ()),)]),
        ("{**rest}", [(Variable("rest", False, None, True, ()),)]),
        ("{*rest=x}", [(Variable("rest", False, "x", True, ()),)]),
        (
            "{a:INT:Range( 1,5)?}",
            [(Variable("a", True, None, False, (Constraint("int", None), Constraint("range", " 1,5"))),)],
        ),
        (
            r"{a:regex(^\d{{2}}/(x|y)?:b=$)=1}",
            [(Variable("a", False, "1", False, (Constraint("regex", r"^\d{2}/(x|y)?:b=$"),)),)],
        ),
        ("a{{b}}c/{d}", [("a{b}c",), (Variable("d", False, None, False, ()),)]),
    ],
)
def test_a_route_is_read_as_by_asp_net_core(route: str, parts: list[tuple[str | Variable, ...]]) -> None:
    segments = segments_of(route)
    assert [segment.parts for segment in segments] == parts
    assert variables_in(segments) == [part for segment in parts for part in segment if isinstance(part, Variable)]


@pytest.mark.parametrize(
    ("route", "reason"),
    [
        ("a/{b}{c}", "no text between 'c' and the variable before it"),
        ("a/b{*rest}", "in one segment"),
        ("{*rest}/b", "goes on behind"),
        ("{*rest}/{b}", "goes on behind"),
        ("a/{b?}.{c}", "not at the end behind a dot"),
        ("a/{b}-{c?}", "not at the end behind a dot"),
        ("x.{c?}{d}", "no"),
        *((text, "brace without") for text in ("{a", "a}", "a/{}", "{a{b}}")),
        *(
            (f"{{a{text}}}", "can't be read")
            for text in (":", ":int:", ":min(", ":length(2", ":int)", ":int(2)x", "/c")
        ),
        ("a/{*}", "can't be read"),
        ("{*a?}", "can't be optional"),
        ("{a=5?}", "can't be optional"),
        ("{a}/{A}", "two variables of the same name"),
        ("a//b", "empty segment"),
        ("a?", "question mark"),
    ],
)
def test_a_route_that_asp_net_core_rejects_is_an_error(route: str, reason: str) -> None:
    with pytest.raises(RouteError, match=reason):
        segments_of(route)


def test_a_constraint_is_written_as_in_a_route() -> None:
    assert [str(constraint) for constraint in variables_in(segments_of("{a:Int:MIN(1)}"))[0].constraints] == [
        "int",
        "min(1)",
    ]


def test_a_segment_of_one_variable_has_that_variable() -> None:
    assert [segment.variable is not None for segment in segments_of("a/{b}/{c}.{d}")] == [False, True, False]
    assert Segment(("a",)).variable is None


def test_texts_are_compared_as_in_net_without_case() -> None:
    assert (folded("k"), folded("\u212a"), folded("\u00fc"), folded("\u00df")) == ("K", "\u212a", "\u00dc", "\u00df")
