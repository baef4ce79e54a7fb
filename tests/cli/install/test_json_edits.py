"""Edits of JSON with comments change one place only."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from funcmcp._text.jsonc import JSONTextError
from funcmcp_cli.install.json_edits import append_items, set_member

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text(), children, max_size=3),
    max_leaves=10,
)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("{}", '{\n  "a": 1\n}'),
        ("{ }", '{\n  "a": 1\n}'),
        ('{"b": 2}', '{"b": 2,\n  "a": 1\n}'),
        ('{\n\t"b": 2\n}\n', '{\n\t"b": 2,\n\t"a": 1\n}\n'),
        ('{\n    "b": 2, // two\n}', '{\n    "b": 2, // two\n    "a": 1\n}'),
        ('{\n    "b": 2 // two\n}', '{\n    "b": 2, // two\n    "a": 1\n}'),
        ("{\n  // nothing yet\n}", '{\n  // nothing yet\n  "a": 1\n}'),
        ('/* head */ {"a": [2], "b": "a"} // tail', '/* head */ {"a": 1, "b": "a"} // tail'),
        ('{"a": 0, "a": 5}', '{"a": 0, "a": 1}'),
        ('{"b": "// no comment, }"}', '{"b": "// no comment, }",\n  "a": 1\n}'),
        ('{\r\n  "b": 2\r\n}', '{\r\n  "b": 2,\r\n  "a": 1\r\n}'),
    ],
)
def test_a_member_is_set_in_place(before: str, after: str) -> None:
    assert set_member(before, ["a"], 1, comments=True) == after


def test_objects_on_the_way_are_added() -> None:
    text = set_member('{\n  "x": 1\n}', ["a", "{}", "c"], [True], comments=False)
    assert text == '{\n  "x": 1,\n  "a": {\n    "{}": {\n      "c": [\n        true\n      ]\n    }\n  }\n}'


@pytest.mark.slow("Random files are edited.")
@given(
    st.dictionaries(st.text(), JSON, max_size=4), st.lists(st.text(), min_size=1, max_size=3), JSON,
    st.sampled_from([None, 1, "\t"]),
)  # fmt: skip
def test_the_result_is_what_an_assignment_makes(
    document: dict[str, object], path: list[str], value: object, indent: int | str | None
) -> None:
    text = json.dumps(document, indent=indent)
    expected = json.loads(text)
    place = expected
    for name in path[:-1]:
        if not isinstance(place.setdefault(name, {}), dict):
            with pytest.raises(JSONTextError, match="is not an object"):
                set_member(text, path, value, comments=False)
            return
        place = place[name]
    place[path[-1]] = value
    assert json.loads(set_member(text, path, value, comments=False)) == expected


def test_items_are_appended() -> None:
    assert append_items("{}", "l", [1], comments=False) == '{\n  "l": [\n    1\n  ]\n}'
    assert json.loads(append_items('{"l": [0]}', "l", [1, {"a": 2}], comments=False)) == {"l": [0, 1, {"a": 2}]}
    assert append_items('{\n  "l": [\n    0, // no\n  ]\n}', "l", [1], comments=True) == (
        '{\n  "l": [\n    0, // no\n    1\n  ]\n}'
    )
    with pytest.raises(JSONTextError, match="l is not an array"):
        append_items('{"l": {}}', "l", [1], comments=False)
