"""Names that pydantic's core schemas use for their own keys, as names of parameters and fields."""

from __future__ import annotations

import inspect
import keyword
from base64 import b64encode
from dataclasses import field, make_dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, NotRequired

import pytest
from pydantic import ConfigDict, create_model
from pydantic_core import core_schema
from typing_extensions import TypedDict

from funcmcp import ToolError
from tests.authoring.tool_calls import call, schema_of, tool_of

if TYPE_CHECKING:
    from collections.abc import Callable

NAMES = sorted(
    {
        key
        for schema in vars(core_schema).values()
        if hasattr(schema, "__total__")
        for key in schema.__annotations__
        if not keyword.iskeyword(key)
    }
    | {"members", "properties", "items", "const", "required", "enum"}
)
BINARY = b"\x00\xff"
ENCODED = b64encode(BINARY).decode()
TYPES: list[tuple[Any, Any, Any, Any]] = [
    (str, "a", "a", 1),
    (bytes, BINARY, ENCODED, 1),
    (list[bytes], [BINARY], [ENCODED], [1]),
    (dict[str, bytes], {"a": BINARY}, {"a": ENCODED}, {"a": 1}),
    (bytes | int, BINARY, ENCODED, []),
]
"""A type, a value of it, that value in JSON, and JSON that is not of the type."""

MISSING: Any = object()

pytestmark = [
    pytest.mark.filterwarnings("ignore:Field name:UserWarning"),
    pytest.mark.lowest("pydantic reads values, writes JSON and makes schemas."),
]


def model(names: list[str], annotation: Any, default: Any) -> Any:
    value = ... if default is MISSING else default
    fields: dict[str, Any] = dict.fromkeys(names, (annotation, value))
    return create_model("Fields", __config__=ConfigDict(protected_namespaces=()), **fields)


def data_class(names: list[str], annotation: Any, default: Any) -> Any:
    fields = [
        (name, annotation) if default is MISSING else (name, annotation, field(default_factory=lambda: default))
        for name in names
    ]
    return make_dataclass("Fields", fields)


def typed_dict(names: list[str], annotation: Any, default: Any) -> Any:
    hint = annotation if default is MISSING else NotRequired[annotation]
    return TypedDict("Fields", dict.fromkeys(names, hint))  # type: ignore[operator]


def named_tuple(names: list[str], annotation: Any, default: Any) -> Any:
    fields: Any = NamedTuple("Fields", [(name, annotation) for name in names])  # type: ignore[misc]
    if default is not MISSING:
        fields._field_defaults = dict.fromkeys(names, default)
        fields.__new__.__defaults__ = (default,) * len(names)
    return fields


OWNERS = [model, data_class, typed_dict, named_tuple]


def values_of(owner: Any, names: list[str]) -> list[Any]:
    return [owner[name] if isinstance(owner, dict) else getattr(owner, name) for name in names]


def tool_with(names: list[str], annotation: Any, default: Any, returned: Any) -> Callable[..., Any]:
    """Return a function with parameters of some names; it returns the value of the first one."""

    async def tool(**arguments: Any) -> Any:
        return arguments.get(names[0], default)

    empty = inspect.Parameter.empty if default is MISSING else default
    kind = inspect.Parameter.KEYWORD_ONLY
    tool.__signature__ = inspect.Signature(  # type: ignore[attr-defined] # functions may have one
        [inspect.Parameter(name, kind, default=empty, annotation=annotation) for name in names]
    )
    tool.__annotations__ = {**dict.fromkeys(names, annotation), "return": returned}
    return tool


@pytest.mark.parametrize("name", NAMES)
async def test_a_parameter_may_have_the_name_of_any_key_of_a_core_schema(name: str) -> None:
    tool = tool_with([name], bytes, MISSING, list[bytes])
    assert schema_of(tool)["properties"] == {name: {"type": "string", "contentEncoding": "base64"}}
    tool = tool_with([name], list[bytes], MISSING, list[bytes])
    assert (await call(tool, {name: [ENCODED]}))["structuredContent"] == {"result": [ENCODED]}
    with pytest.raises(ToolError, match=rf"^{name}\[0\]: must be a string, not a number$"):
        await call(tool, {name: [1]})


@pytest.mark.slow("Hundreds of schemas are made.")
@pytest.mark.parametrize("owner", OWNERS)
@pytest.mark.parametrize("name", NAMES)
async def test_a_field_may_have_the_name_of_any_key_of_a_core_schema(
    name: str, owner: Callable[[list[str], Any, Any], Any]
) -> None:
    inner = owner([name], bytes, MISSING)
    outer = owner([name], inner, MISSING)
    tool = tool_with([name], outer, MISSING, outer)
    result = await call(tool, {name: {name: {name: ENCODED}}})
    assert result["structuredContent"] == {name: {name: ENCODED}}
    assert tool_of(tool).describe()["outputSchema"]["properties"].keys() == {name}
    with pytest.raises(ToolError, match=rf"^{name}.{name}.{name}: must be a string, not a number$"):
        await call(tool, {name: {name: {name: 1}}})


@pytest.mark.parametrize("has_default", [False, True])
@pytest.mark.parametrize(("annotation", "value", "encoded", "wrong"), TYPES)
async def test_parameters_of_all_these_names_together_are_listed_called_and_validated(
    annotation: Any, value: Any, encoded: Any, wrong: Any, has_default: bool
) -> None:
    default = value if has_default else MISSING
    tool = tool_with(NAMES, annotation, default, annotation)
    schema = schema_of(tool)
    assert list(schema["properties"]) == NAMES
    assert schema.get("required", []) == ([] if has_default else NAMES)
    arguments = dict.fromkeys(NAMES, encoded)
    result = await call(tool, arguments)
    assert ENCODED in str(result) or annotation is str
    if has_default:
        assert await call(tool, {}) == result
    with pytest.raises(ToolError) as caught:
        await call(tool, {**arguments, "type": wrong, "function": wrong})
    assert {line.partition(":")[0].partition("[")[0].partition(".")[0] for line in str(caught.value).split("\n")} == {
        "type",
        "function",
    }


@pytest.mark.slow("Hundreds of schemas are made.")
@pytest.mark.parametrize("has_default", [False, True])
@pytest.mark.parametrize(("annotation", "value", "encoded", "wrong"), TYPES)
@pytest.mark.parametrize("owner", OWNERS)
async def test_fields_of_all_these_names_together_make_the_round_trip(
    owner: Callable[[list[str], Any, Any], Any],
    annotation: Any,
    value: Any,
    encoded: Any,
    wrong: Any,
    has_default: bool,
) -> None:
    fields = owner(NAMES, annotation, value if has_default else MISSING)
    seen: list[Any] = []

    async def tool(it: Any) -> Any:
        seen.append(it)
        return it

    tool.__annotations__ = {"it": fields, "return": fields}
    schema = schema_of(tool)["properties"]["it"]
    assert list(schema["properties"]) == NAMES
    arguments = dict.fromkeys(NAMES, encoded)
    result = await call(tool, {"it": arguments})
    assert values_of(seen[0], NAMES) == [value] * len(NAMES)
    assert result["structuredContent"] == arguments
    if has_default and owner is not typed_dict:
        assert (await call(tool, {"it": {}}))["structuredContent"] == arguments
    with pytest.raises(ToolError, match=r"^it\.type"):
        await call(tool, {"it": {**arguments, "type": wrong}})
