from __future__ import annotations

import json
import re
import subprocess
from typing import Any

import pytest
from pydantic_core import SchemaValidator, ValidationError, core_schema

from funcmcp._authoring.schemas.ecma_patterns import UntranslatableError, ecma_pattern
from tests import nodejs

pytestmark = [
    pytest.mark.every_python("Types, enums, dataclasses and regular expressions are Python's."),
    pytest.mark.lowest("pydantic reads values, writes JSON and makes schemas."),
]

TRANSLATIONS = {
    r"^[A-Z]+$": r"^[A-Z]+$",
    r"^\d{3}\-\d{4}$": r"^\d{3}-\d{4}$",
    r"(?i)^ask[a-f]_\w+$": r"^[aA][sS\u017F][kK\u212A][a-fA-F]_\w+$",
    r"(?i)[^a-z1]": r"[^a-zA-Z\u212A\u017F1]",
    r"(?i)[k]": r"[kK\u212A]",
    r"(?u)a": r"a",
    r"(?P<a>x+)\-(?P<b>y)": r"(x+)-(y)",
    r"\Aab\z": r"^ab$",
    r"^[\w\-\.]+@[\w-]+\.[a-z]{2,}$": r"^[\w\-\.]+@[\w-]+\.[a-z]{2,}$",
    r"[]a]+": r"[\]a]+",
    r"[-a]": r"[\-a]",
    r"(?s)a.b": r"a[\s\S]b",
    r"a.b": r"a.b",
    r"[[:alpha:]_]+": r"[A-Za-z_]+",
    r"^a{2}}$": r"^a{2}\}$",
    r"\x{41}\u0042\x43": r"\u0041\u0042\u0043",
    r"\x{1F600}": "\U0001f600",
    r"\a\#\&\~\ \_": r"\u0007#&~ _",
    r"^(?:a|b)*?$": r"^(?:a|b)*?$",
    r"\bab\b": r"\bab\b",
    r"a\/b": r"a\/b",
    r"x{1,}?y": r"x{1,}?y",
}
TEXTS = [
    *("", "a", "A", "ab", "AB", "ask", "ASKf_x", "\u017f", "\u212a", "k", "xx-y", "123-4567", "x@y.de", "]a", "]"),
    *(
        "a\nb",
        "axb",
        "\x07#&~ _",
        "-",
        "_",
        "a/b",
        "aa}",
        "ABC",
        "\U0001f600",
        "xxy",
        "yx",
        "\xe9",
        "x ab y",
        "1",
        "z",
        "B",
    ),
]


def on_node(script: str, value: Any) -> Any:
    """Return what a script of tests/node prints for a JSON value."""
    command = [str(nodejs.node()), str(nodejs.HOME / script)]
    done = subprocess.run(command, input=json.dumps(value).encode(), stdout=subprocess.PIPE, check=True, timeout=120)
    return json.loads(done.stdout)


@pytest.mark.parametrize(("pattern", "translation"), TRANSLATIONS.items())
def test_a_pattern_has_its_translation(pattern: str, translation: str) -> None:
    assert ecma_pattern(pattern) == translation
    assert ecma_pattern(translation) == translation


@pytest.mark.parametrize(
    ("pattern", "translation"),
    [("a{,3}", "a{0,3}"), (r"a\Z", "a$"), ("(?=a)b", "(?=a)b"), (r"[\w-.]", r"[\w\-.]"), (r"\U00000041", r"\u0041")],
)
def test_constructs_of_other_dialects_are_translated_too(pattern: str, translation: str) -> None:
    assert ecma_pattern(pattern) == translation


@pytest.mark.parametrize(
    "pattern",
    [
        *("(?m)^a$", "(?i:a)b", "(?i)\xe9", r"(?i)\pL", "(?i)[[:alpha:]]", "(?i)[a-\xff]"),
        *("a++", "^*a", "*a", "(?=a)*", "(a", "a)", "[a", "[a", "a\\", r"\<a", r"\b{start}a", r"\p{Greek}", r"\1"),
        *(r"^\p{L}+$", r"\pL", r"\P{Lu}", r"[\d\p{L}]", "[\U0001f600-\U0001f64f]", r"[\x{1F600}]", "\U0001f600+"),
        *("[a&&b]", "[--a]", "[a[b]]", r"[\b]", "[b-a]", r"[a-\d]", r"\x{110000}", "(?P=a)", r"\U00110000"),
    ],
)
def test_a_pattern_without_an_equal_is_rejected(pattern: str) -> None:
    with pytest.raises(UntranslatableError):
        ecma_pattern(pattern)


@pytest.mark.parametrize(
    ("pattern", "translation"),
    [(r"\pL+", r"\p{L}+"), (r"\P{Lu}", r"\P{Lu}"), ("[\U0001f600]", "[\U0001f600]"), ("\U0001f600+", "\U0001f600+")],
)
def test_the_server_s_own_check_reads_more_than_clients(pattern: str, translation: str) -> None:
    assert ecma_pattern(pattern, for_clients=False) == translation


@pytest.mark.parametrize("translation", TRANSLATIONS.values())
def test_clients_in_python_read_each_translation(translation: str) -> None:
    re.compile(translation)


def test_translations_match_the_same_texts_in_javascript() -> None:
    by_pattern = on_node("ecma-patterns.mjs", [[translation, TEXTS] for translation in TRANSLATIONS.values()])
    for pattern, matches in zip(TRANSLATIONS, by_pattern, strict=True):
        assert matches == [matches_on_the_server(pattern, text) for text in TEXTS], pattern


def matches_on_the_server(pattern: str, text: str) -> bool:
    try:
        SchemaValidator(core_schema.str_schema(pattern=pattern)).validate_python(text)
    except ValidationError:
        return False
    return True
