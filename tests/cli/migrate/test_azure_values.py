"""Options of Azure's triggers are read without running the file."""

from __future__ import annotations

import pytest

pytest.importorskip("libcst")

import libcst as cst

from funcmcp_cli.migrate.azure_values import UnknownValueError, assignments, schema_of, value_of

VARIABLES = """
NAME = {"propertyName": "name", "propertyType": "string", "isRequired": True}
ALL = json.dumps([item for item in [NAME]], indent=2)
SELF = [SELF]
"""


def value(code: str) -> object:
    return value_of(cst.parse_expression(code), assignments(cst.parse_module(VARIABLES)))


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("'a' 'b'", "ab"),
        ("-1 if x else 2", None),
        ("[1, None, False]", [1, None, False]),
        ("('a',)", ["a"]),
        ("'notes/{' + ('a' + 'b') + '}'", "notes/{ab}"),
        ("f'{{x}}/{\"y\"}'", "{x}/y"),
        ("f'{1}'", None),
        ("f'{\"y\"!r}'", None),
        ("1 + 2", None),
        ("func.McpPropertyType.DATETIME", "string"),
        ("McpPropertyType.OBJECT", "object"),
        ("NAME", {"propertyName": "name", "propertyType": "string", "isRequired": True}),
        ("func.PromptArgument('a', required=True)", {"name": "a", "required": True}),
        ("PromptArgument('a', 'b', True, 1)", None),
        ("PromptArgument('a', title='b')", None),
        ("PromptArgument(*NAME)", None),
        ("ToolProperty('a', 'string', 'A.')", {"propertyName": "a", "propertyType": "string", "description": "A."}),
        ("ToolProperty('a', 'string', description='A.')", None),
        ("{**NAME}", None),
        ("make()", None),
        ("OTHER", None),
        ("SELF", None),
    ],
)
def test_a_value_is_read_or_unknown(code: str, expected: object) -> None:
    if expected is None:
        with pytest.raises(UnknownValueError):
            value(code)
    else:
        assert value(code) == expected


def test_properties_become_a_schema() -> None:
    assert schema_of(value("ALL")) == {
        "type": "object",
        "properties": {"name": {"type": "string"}},
        "required": ["name"],
    }
    array = [{"propertyName": "tags", "propertyType": "string", "isArray": True, "description": "Tags."}]
    expected = {"type": "array", "items": {"type": "string"}, "description": "Tags."}
    assert schema_of(array) == {"type": "object", "properties": {"tags": expected}}
    with pytest.raises(UnknownValueError):
        schema_of([{"propertyName": "a", "propertyType": "date"}])
