"""RFC 8785: equal values have one text."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from funcmcp._text.canonical_json import canonical

NUMBERS = [
    (0.0, "0"),
    (-0.0, "0"),
    (5e-324, "5e-324"),
    (-5e-324, "-5e-324"),
    (1.7976931348623157e308, "1.7976931348623157e+308"),
    (9007199254740992.0, "9007199254740992"),
    (295147905179352830000.0, "295147905179352830000"),
    (9.999999999999997e22, "9.999999999999997e+22"),
    (1e23, "1e+23"),
    (1.0000000000000001e23, "1.0000000000000001e+23"),
    (999999999999999700000.0, "999999999999999700000"),
    (1e21, "1e+21"),
    (9.999999999999997e-7, "9.999999999999997e-7"),
    (0.000001, "0.000001"),
    (333333333.33333325, "333333333.33333325"),
    (-0.0000033333333333333333, "-0.0000033333333333333333"),
    (1424953923781206.2, "1424953923781206.2"),
    (4.50, "4.5"),
    (2e-3, "0.002"),
    (1e-27, "1e-27"),
    (56.0, "56"),
]
"""Of RFC 8785, appendix B and section 3.2.2."""


@pytest.mark.parametrize(("number", "text"), NUMBERS)
def test_numbers_are_written_as_in_the_rfc(number: float, text: str) -> None:
    assert canonical(number).decode() == text


def test_the_examples_of_the_rfc() -> None:
    value = {"string": '\u20ac$\u000f\nA\'B"\\\\"/', "literals": [None, True, False]}
    assert canonical(value).decode() == '{"literals":[null,true,false],"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}'
    names = ["\u20ac", "\r", "\ufb33", "1", "\U0001f600", "\u0080", "\u00f6"]
    ordered = list(json.loads(canonical(dict.fromkeys(names, 0))))
    assert ordered == ["\r", "1", "\u0080", "\u00f6", "\u20ac", "\U0001f600", "\ufb33"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(-(2**53), 2**53) | st.text(),
    lambda children: st.lists(children) | st.dictionaries(st.text(), children),
    max_leaves=20,
)


@given(JSON)
def test_the_text_is_the_same_value_whose_text_is_the_same(value: Any) -> None:
    text = canonical(value)
    assert json.loads(text) == value
    assert canonical(json.loads(text)) == text


def test_large_integers_keep_their_digits() -> None:
    assert canonical(2**63 + 1) == b"9223372036854775809"


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf"), object()])
def test_what_json_does_not_have_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="JSON has no"):
        canonical(value)
