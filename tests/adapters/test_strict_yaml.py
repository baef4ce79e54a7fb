"""YAML as OpenAPI has it."""

from __future__ import annotations

import builtins
from typing import Any

import pytest
import yaml

from funcmcp import RegistrationError
from funcmcp._adapters.strict_yaml import value_of_yaml

BOMB = "\n".join(["a0: &a0 [x, x]", *(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}, *a{n - 1}]" for n in range(1, 60))]) + "\n"
"""A text whose value as JSON would have more characters than there is memory."""


def read(text: str) -> Any:
    return value_of_yaml(text.encode(), "a.yaml")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: 1\nb: [x, 'y', 1.5, 1e3, -2]", {"a": 1, "b": ["x", "y", 1.5, 1000.0, -2]}),
        ("[true, False, null, ~, '', 'true']", [True, False, None, None, "", "true"]),
        (
            "[no, yes, on, y, 2020-01-01, 010, 0x1F, 1:30, 1_000, .inf, =]",
            ["no", "yes", "on", "y", "2020-01-01", "010", "0x1F", "1:30", "1_000", ".inf", "="],
        ),
        ("200: {a: b}\ntrue: c\nnull: d", {"200": {"a": "b"}, "true": "c", "null": "d"}),
        ("a: |\n  x\n  y\nb: >\n  x\n  y", {"a": "x\ny\n", "b": "x y"}),
        ("a: &x {b: 1}\nc: *x\nd: {<<: *x, e: 2}", {"a": {"b": 1}, "c": {"b": 1}, "d": {"b": 1, "e": 2}}),
        ("a:\n- b\n-\n  - c", {"a": ["b", ["c"]]}),
        ("a:", {"a": None}),
        ("a: !!str 5\nb: !!python/object/apply:os.system [ls]", {"a": "5", "b": ["ls"]}),
        ("1" * 400, "1" * 400),
        ("1e999", "1e999"),
    ],
)
def test_a_value_has_a_type_of_json(text: str, value: Any) -> None:
    assert read(text) == value


def test_the_pure_parser_reads_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(yaml, "CSafeLoader", raising=False)
    assert read("a: [1, 'b']") == {"a": [1, "b"]}


def test_aliases_do_not_multiply() -> None:
    value = read(BOMB)
    assert value["a59"][0] is value["a59"][1]


@pytest.mark.parametrize("text", ["a: [", "a: *nothing", "\x00", "[" * 600 + "]" * 600, "a: b: c"])
def test_a_text_that_is_not_valid_is_explained(text: str) -> None:
    with pytest.raises(RegistrationError, match=r"^a\.yaml is "):
        read(text)


def test_the_extra_is_named_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without_yaml(name: str, *arguments: Any) -> Any:
        if name == "yaml":
            raise ImportError(name)
        return real(name, *arguments)

    monkeypatch.setattr(builtins, "__import__", without_yaml)
    with pytest.raises(RegistrationError, match=r"funcmcp\[openapi\]"):
        read("a: 1")
