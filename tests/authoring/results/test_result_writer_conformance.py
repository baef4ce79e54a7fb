"""Results conform to the output schemas that were announced, for all kinds of types and generated values."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, time, timedelta
from decimal import Decimal
from ipaddress import IPv4Address, IPv4Network, IPv6Address
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin
from uuid import UUID

import jsonschema_rs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import (
    UUID4,
    AnyUrl,
    AwareDatetime,
    Base64Bytes,
    Base64Str,
    EmailStr,
    Field,
    IPvAnyAddress,
    Json,
    SecretStr,
)

from funcmcp._authoring.schemas.string_formats import Format
from tests.authoring.models import Address, CreateOrder, Node
from tests.authoring.schemas.test_ecma_patterns import on_node
from tests.authoring.schemas.test_json_schema_for_clients import LEAVES, Cat, Dog, around
from tests.authoring.tool_calls import run, tool_of

pytestmark = pytest.mark.lowest("pydantic reads values, writes JSON and makes schemas.")

VALUES = 6

TEXT = st.text(st.characters(codec="utf-8"), max_size=5)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXT,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=2),
    max_leaves=4,
)
DECIMALS = st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**20), max_value=10**20)
AWARE = st.datetimes(timezones=st.just(UTC) | st.timezones())
ADDRESSES = st.builds(Address, street=TEXT, city=st.none() | TEXT)
NODES = st.recursive(
    st.builds(Node, name=TEXT, children=st.just([])),
    lambda inner: st.builds(Node, name=TEXT, children=st.lists(inner, max_size=2)),
    max_leaves=3,
)
URLS = ["http://example.com/a b|c?q=ä|^{x}#f|", "foo:bar <>", "http://ä.example/[x]", "ftp://example.com"]

BY_TYPE: dict[Any, st.SearchStrategy[Any]] = {
    Any: JSON,
    None: st.none(),
    str: TEXT,
    float: st.floats(allow_nan=False, allow_infinity=False) | st.integers(-9, 9),
    Decimal: DECIMALS,
    bytes: st.binary(max_size=9),
    datetime: st.datetimes() | AWARE,
    time: st.times() | st.times(timezones=st.just(UTC)),
    timedelta: st.timedeltas(),
    UUID: st.uuids(),
    Path: st.builds(Path, TEXT.filter(lambda text: "\0" not in text)),
    SecretStr: st.builds(SecretStr, TEXT),
    AnyUrl: st.sampled_from(URLS).map(AnyUrl),
    IPv4Network: st.just(IPv4Network("10.0.0.0/8")),
    IPv6Address: st.sampled_from(["::1", "fe80::1%eth0", "::ffff:1.2.3.4"]).map(IPv6Address),
    Address: ADDRESSES,
    Node: NODES,
    dict: st.dictionaries(TEXT, JSON, max_size=2),
    list: st.lists(JSON, max_size=2),
    tuple: st.lists(JSON, max_size=2).map(tuple),
    set: st.sets(TEXT | st.integers(), max_size=2),
}
"""Strategies for types whose values hypothesis can't generate, or of which JSON can't carry all."""

MARKED: list[tuple[Any, st.SearchStrategy[Any]]] = [
    (AwareDatetime, AWARE),
    (UUID4, st.uuids(version=4)),
    (IPvAnyAddress, st.ip_addresses()),
    (EmailStr, st.sampled_from(["a@example.com", "jörg@exämple.de"])),
    (Base64Bytes, st.binary(max_size=9)),
    (Base64Str, TEXT),
    (Json[list[int]], st.lists(st.integers(), max_size=2)),
    (Annotated[float, Field(multiple_of=0.01)], st.integers(-9999, 9999).map(lambda number: number / 100)),
    (Annotated[Decimal, Field(multiple_of=0.01, ge=0)], st.decimals(0, 10**6, places=2)),
    (Annotated[Decimal, Field(max_digits=4, decimal_places=2)], st.decimals(0, 99, places=2)),
    (Annotated[bytes, Field(min_length=1, max_length=3)], st.binary(min_size=1, max_size=3)),
    (Annotated[str, Format("email")], st.sampled_from(["a@example.com", "a.b+c@sub.example.org", "a@localhost"])),
    (
        Annotated[str, Format("uri")],
        st.sampled_from(["https://example.com/a?b=c#d", "urn:isbn:0451450523", "a://[b]/[c]"]),
    ),
    (Annotated[str, Format("date-time")], st.sampled_from(["2026-07-28T12:00:00Z", "2026-07-28 12:00:00"])),
    (Annotated[str, Format("time")], st.sampled_from(["12:00:00", "12:00:00Z"])),
    (Annotated[str, Format("date")], st.dates().map(str)),
    (Annotated[str, Format("uuid")], st.uuids().map(str)),
    (Annotated[str, Format("ipv4")], st.ip_addresses(v=4).map(str)),
    (Annotated[str, Format("ipv6")], st.sampled_from(["::1", "2001:db8::8a2e:370:7334", "fe80::1%eth0"])),
    (Annotated[str, Format("hostname")], st.sampled_from(["example.com", "a-b.example"])),
    (Annotated[str, Format("phone")], st.sampled_from(["+49 30 1234567"])),
    (Annotated[str, Field(pattern=r"^\d{3}\-\d{4}$", description="")], st.just("123-4567")),
    (Annotated[str, Field(pattern="(?i)^(?P<a>x+)$")], st.sampled_from(["x", "XxX"])),
    (Annotated[str, Field(pattern="(?m)^a$")], st.just("b\na")),
    (dict[Annotated[str, Field(pattern=r"^a\-b$")], int], st.just({"a-b": 1})),
    (Annotated[Cat | Dog, Field(discriminator="kind")], st.sampled_from([Cat(kind="cat"), Dog(kind="dog")])),
    (Sequence[int], st.lists(st.integers(), max_size=2)),
    (deque[datetime], st.lists(st.datetimes(), max_size=2).map(deque)),
    (Mapping[str, timedelta], st.dictionaries(TEXT, st.timedeltas(), max_size=2)),
    (IPv4Address, st.ip_addresses(v=4)),
]
"""Types whose marks pydantic reads, with strategies for their values."""


def has_marks(leaf: Any) -> bool:
    return Annotated in {get_origin(part) for part in (leaf, *get_args(leaf))}


UNMARKED = [leaf for leaf in LEAVES if not has_marks(leaf) and leaf not in {IPvAnyAddress, CreateOrder}]


def strategy_of(annotation: Any, leaf: Any, of_leaf: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Return the strategy of a type that `around` returns."""
    index = around(leaf).index(annotation)
    return (
        of_leaf,
        st.lists(of_leaf | st.none(), max_size=3),
        st.dictionaries(TEXT, of_leaf, max_size=2),
        st.tuples(of_leaf, st.none() | st.integers()),
        of_leaf | st.integers(-9, 9),
    )[index]


CASES = [
    (annotation, strategy_of(annotation, leaf, of_leaf))
    for leaf, of_leaf in [*((leaf, BY_TYPE.get(leaf, st.from_type(leaf))) for leaf in UNMARKED), *MARKED]
    for annotation in around(leaf)
]


def generated(strategy: st.SearchStrategy[Any]) -> list[Any]:
    """Return the same values in each run."""
    values: list[Any] = []

    @settings(
        max_examples=VALUES, database=None, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck)
    )
    @given(strategy)
    def collect(value: Any) -> None:
        values.append(value)

    collect()
    return values


@pytest.mark.slow("Random values of some hundred types are written and validated.")
async def test_results_of_all_types_conform_to_their_schemas() -> None:
    pairs: list[tuple[dict[str, Any], list[Any]]] = []
    for annotation, strategy in CASES:
        returned: list[Any] = []

        def function() -> Any:
            return returned[-1]  # noqa: B023 - it is called in this iteration

        function.__annotations__ = {"return": annotation}
        tool = tool_of(function)
        schema = tool.describe().get("outputSchema")
        written = []
        for value in generated(strategy):
            returned.append(value)
            result = await run(tool, {})
            assert "isError" not in result, (annotation, value)
            assert schema is None or "structuredContent" in result
            written.append(result.get("structuredContent"))
        if schema is not None:
            pairs.append((schema, written))
    assert len(pairs) > 250
    for schema, written in pairs:
        strict = Draft202012Validator(schema, format_checker=Draft202012Validator.FORMAT_CHECKER)
        linear = jsonschema_rs.Draft202012Validator(schema, validate_formats=True)
        for value in written:
            strict.validate(value)
            linear.validate(value)
    text = json.dumps(pairs)
    for (schema, written), errors in zip(pairs, on_node("ajv-values.mjs", json.loads(text)), strict=True):
        assert errors == [], (schema, written)
