from __future__ import annotations

import random

import pytest

from funcmcp_cli.client_rules.ecma_syntax import syntax_error
from tests.authoring.schemas.test_ecma_patterns import on_node

FAULTS = {
    r"^\d{3}\-\d{4}$": r"the escape \-",
    "(?i)a": "the group (?i)",
    "(?P<year>[0-9]+)": "the group (?P<",
    r"a\Z": r"the escape \Z",
    "(?<a>x)(?<a>y)": "two groups with the name a",
    "(a": "a group without end",
    "a)": "a ) without group",
    "a{,3}": "a { without backslash",
    "a{2,1}": "{2,1}, whose limits are in the wrong order",
    "a{1" + "0" * 5000 + ",2}": "{1" + "0" * 5000 + ",2}, whose limits are in the wrong order",
    "*a": "* after what can't be repeated",
    "^*": "* after what can't be repeated",
    "(?=a)+": "+ after what can't be repeated",
    "a]": "a ] without backslash",
    "[a": "a class without end",
    r"[\w-a]": "a range with a set in a class",
    "[b-a]": "a range in the wrong order",
    r"\1": "a reference to group 1, which does not exist",
    r"\k<a>": "a reference to group a, which does not exist",
    r"\p{Foo}": r"the property \p{Foo}",
    r"\p{gc=Foo}": r"the property \p{gc=Foo}",
    r"\pL": r"the escape \p without {name}",
    r"\u{110000}": r"the escape \u{110000}",
    r"\00": r"the escape \0",
    "\\": "the escape \\",
}
VALID = [
    *("", "a|b", "^[a-z]{2,}$", "(?<year>[0-9]+)-\\k<year>", r"(a)\1", "(?!a)b", "(?<=a)b", "(?:a)+?", "[^]", "[]"),
    *(r"\p{L}\p{Script=Greek}\P{gc=Lu}\p{Alphabetic}", r"\ud83d\ude00", r"[\ud83d\ude00-\u{1F601}]", r"\cA\0\x41\/\."),
    *(r"[\b\-\d-]", "é", r"\bab\B", "a{2}", "a{2,3}"),
]
PIECES = [
    *r"ab^$\.*+?()[]{}|-/:=!<>,0123kPuxcdDwWsSbBfnrtv",
    *(
        "(?:",
        "(?=",
        "(?<=",
        "(?<n>",
        "(?P<n>",
        "(?i)",
        r"\k<n>",
        r"\1",
        "{1,2}",
        "{2,1}",
        "[a-z]",
        "[^]",
        r"\p{L}",
        r"\-",
    ),
    *(
        r"\P{Letter}",
        r"\p{gc=Lu}",
        r"\p{Foo}",
        r"\x41",
        r"\u0041",
        r"\u{1F600}",
        r"\ud83d\ude00",
        r"\cA",
        r"[\w-a]",
        "é",
    ),
]


@pytest.mark.parametrize(("pattern", "fault"), FAULTS.items(), ids=range(len(FAULTS)))
def test_a_fault_is_named(pattern: str, fault: str) -> None:
    assert syntax_error(pattern) == fault


@pytest.mark.parametrize("pattern", VALID)
def test_a_valid_pattern_has_no_fault(pattern: str) -> None:
    assert syntax_error(pattern) is None


@pytest.mark.parametrize("pattern", ["a|" * 60_000, "(" * 1000 + ")" * 1000, "(" * 60_000 + ")" * 60_000])
def test_a_long_or_deep_pattern_of_a_server_is_read(pattern: str) -> None:
    assert syntax_error(pattern) is None


def test_an_engine_of_javascript_accepts_the_same_patterns() -> None:
    random_pieces = random.Random(33)
    patterns = [*FAULTS, *VALID]
    patterns += ["".join(random_pieces.choices(PIECES, k=random_pieces.randint(1, 8))) for _ in range(8000)]
    answers = on_node("ecma-patterns.mjs", [[pattern, []] for pattern in patterns])
    accepted = [pattern for pattern, answer in zip(patterns, answers, strict=True) if answer == []]
    assert accepted == [pattern for pattern in patterns if syntax_error(pattern) is None]
    assert 1000 < len(accepted) < 7000
