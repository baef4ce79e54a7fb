"""Rules of HTTP that several layers need."""

from __future__ import annotations

from pathlib import Path

import pytest

import funcmcp
from funcmcp._protocol.http_rules import FIELD_NAME, FIELD_VALUE, WITHOUT_CONTENT, WITHOUT_LENGTH, is_cached

PAGE = Path(funcmcp.__file__).parent / "_page" / "files"


@pytest.mark.parametrize("name", ["Accept", "x-api-key", "!#$%&'*+-.^_`|~09azAZ"])
def test_a_token_is_the_name_of_a_field(name: str) -> None:
    assert FIELD_NAME.fullmatch(name)


@pytest.mark.parametrize("name", ["", "a b", "a:", "a\n", "ä", 'a"', "a/b", "(a)", "a,b", "a\x7f"])
def test_every_other_text_is_not(name: str) -> None:
    assert FIELD_NAME.fullmatch(name) is None


@pytest.mark.parametrize("value", ["a\r\nb: c", "a\nb", "a\x00", "a\x7f", "a\u0100"])
def test_a_value_with_a_control_character_or_a_character_of_two_bytes_is_rejected(value: str) -> None:
    assert FIELD_VALUE.fullmatch(value) is None
    assert FIELD_VALUE.fullmatch("a\tb \xe4")


def test_a_response_without_content_may_have_a_length_only_if_it_is_its_own() -> None:
    assert {204, 205, 304} == WITHOUT_CONTENT
    assert {204, 304} == WITHOUT_LENGTH


def test_the_page_has_the_same_rule_for_names() -> None:
    assert f"/^{FIELD_NAME.pattern}$/" in PAGE.joinpath("sign_in.js").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("header", "cached"),
    [
        (None, False),
        (b"", False),
        (b'"b"', False),
        (b'"a"', True),
        (b'W/"a"', True),
        (b'"b", W/"a"', True),
        (b"*", True),
        (b'"ab"', False),
        (b"\xff", False),
    ],
)
def test_an_entity_tag_is_compared_weakly(header: bytes | None, cached: bool) -> None:
    assert is_cached(header, '"a"') is cached
