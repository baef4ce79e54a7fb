"""Sets and dicts of values with equal hashes."""

from __future__ import annotations

from collections import Counter, OrderedDict
from datetime import date
from decimal import Decimal
from enum import Enum
from typing import Any, Literal, NamedTuple
from uuid import UUID

import pytest
from pydantic import BaseModel
from pydantic_core import core_schema

from funcmcp import ToolError
from funcmcp._authoring.calling.arguments import reader_of_type
from funcmcp._authoring.schemas.hash_limits import MAX_EQUAL_HASHES, MAX_MEMBERS, with_hash_limits
from funcmcp._authoring.schemas.pydantic_argument_schemas import argument_schema, strings_first
from funcmcp._authoring.schemas.pydantic_schemas import core_schema_of

pytestmark = pytest.mark.every_python("Types, enums, dataclasses and regular expressions are Python's.")

MODULUS = 2**61 - 1
COLLIDING = [number * MODULUS for number in range(MAX_EQUAL_HASHES + 1)]
NAMES = {str(number): "a" for number in COLLIDING}


class Pair(NamedTuple):
    a: int


class Orders(BaseModel):
    ids: set[int]
    inner: dict[int, set[int]] = {}


class Colour(Enum):
    RED = 1


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (set[int], COLLIDING),
        (frozenset[int], COLLIDING),
        (set[Decimal], COLLIDING),
        (set[int | str], COLLIDING),
        (set[Any], COLLIDING),
        (set, COLLIDING),
        (set[UUID], [str(UUID(int=number)) for number in COLLIDING]),
        (dict[int, tuple[UUID, date]], {name: [str(UUID(int=1)), "2026-07-28"] for name in NAMES}),
        (dict[int, str], NAMES),
        (dict[Decimal, str], NAMES),
        (OrderedDict[int, str], NAMES),
        (Counter[int], dict.fromkeys(NAMES, 1)),
        (dict[UUID, str], {str(UUID(int=number)): "a" for number in COLLIDING}),
        (Orders, {"ids": [], "inner": {"1": COLLIDING}}),
        (list[Orders], [{"ids": [1]}, {"ids": COLLIDING}]),
    ],
)
def test_members_with_equal_hashes_are_bounded(annotation: Any, value: Any) -> None:
    with pytest.raises(ToolError, match="too many values with equal hashes"):
        reader_of_type(annotation, "it")(value)


@pytest.mark.parametrize(
    ("annotation", "value", "expected"),
    [
        (set[int], COLLIDING[:-1] * 100, set(COLLIDING[:-1])),
        (set[int], [1.0, 1], {1}),
        (set[UUID], ["12345678-1234-5678-1234-567812345678"], {UUID("12345678-1234-5678-1234-567812345678")}),
        (
            dict[int, set[int]],
            {"1": COLLIDING[:-1], "2": COLLIDING[:-1]},
            {1: set(COLLIDING[:-1]), 2: set(COLLIDING[:-1])},
        ),
        (frozenset[frozenset[int]], [[1, 2], [3]], frozenset({frozenset({1, 2}), frozenset({3})})),
        (
            dict[int, tuple[UUID, date]],
            {str(number): [str(UUID(int=number)), "2026-07-28"] for number in range(20)},
            {number: (UUID(int=number), date(2026, 7, 28)) for number in range(20)},
        ),
        (set[Pair], [{"a": 1}], {Pair(1)}),
        (Orders, {"ids": [1], "inner": {"2": [3]}}, Orders(ids={1}, inner={2: {3}})),
    ],
)
def test_other_members_are_read_as_ever(annotation: Any, value: Any, expected: Any) -> None:
    assert reader_of_type(annotation, "it")(value) == expected


def test_a_list_for_a_dict_and_an_object_for_a_set_are_not_counted() -> None:
    numbers = list(range(MAX_MEMBERS + 1))
    names = {str(number): "a" for number in numbers}
    assert reader_of_type(dict[int, str] | list[int], "it")(numbers) == numbers
    assert reader_of_type(dict[str, str] | set[int], "it")(names) == names
    with pytest.raises(ToolError, match=r"^must be an object, not an array$"):
        reader_of_type(dict[int, str], "it")(numbers)
    with pytest.raises(ToolError, match=r"^must be an object, not an array$"):
        reader_of_type(dict[float, str], "it")([[]] * len(numbers))
    with pytest.raises(ToolError, match=r"^must be an array, not an object$"):
        reader_of_type(set[int], "it")(names)


def test_the_number_of_different_members_is_bounded_where_a_client_can_choose_hashes() -> None:
    read = reader_of_type(set[int], "it")
    assert len(read([*range(MAX_MEMBERS), *range(MAX_MEMBERS)])) == MAX_MEMBERS
    with pytest.raises(ToolError, match="more than 10,000 members"):
        read(list(range(MAX_MEMBERS + 1)))


@pytest.mark.parametrize(
    "annotation", [int, list[int], dict[str, int], set[str], set[date], set[Literal[1, 2]], set[Colour], dict[str, Any]]
)
def test_other_types_have_no_bound_and_no_cost(annotation: Any) -> None:
    schema = core_schema_of(annotation, "it")
    assert with_hash_limits(schema) is schema


@pytest.mark.parametrize("lax", [False, True])
@pytest.mark.parametrize(
    "annotation", [set[date], set[bytes], set[str | date], dict[date, int], dict[str | bytes, int]]
)
def test_arguments_of_these_types_have_no_bound(annotation: Any, lax: bool) -> None:
    schema = strings_first(argument_schema(annotation, "it", lax=lax))
    assert with_hash_limits(schema) is schema


def test_members_that_a_chain_converts_to_another_type_are_bounded() -> None:
    number = core_schema.no_info_plain_validator_function(int)
    schema = dict(core_schema.set_schema(core_schema.chain_schema([core_schema.str_schema(), number])))
    assert with_hash_limits(schema) is not schema


def test_errors_of_members_keep_their_places() -> None:
    with pytest.raises(ToolError, match=r"^\[1\]: must be an integer, not a string$"):
        reader_of_type(set[int], "it")([1, "a"])
    with pytest.raises(ToolError, match=r"^must be an array, not a string$"):
        reader_of_type(set[int], "it")("a")
