"""Types without parts, as rows: JSON values that fit, values that nearly fit, and a default."""

from __future__ import annotations

import json
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

UNSAID = "Also: "
"""Begins a description that contains what the schema itself does not say."""


class Leaf(NamedTuple):
    """A type without parts.

    Attributes:
        text: The annotation.
        fitting: JSON values that the annotation accepts.
        near: JSON values that it rejects, or that are easily read in another way.
        default: A default in Python. Empty if the type is never used with one.
        unsaid: What the JSON schema does not say about the values, as a JSON schema.
    """

    text: str
    fitting: tuple[Any, ...]
    near: tuple[Any, ...]
    default: str = ""
    unsaid: Mapping[str, Any] = MappingProxyType({})

    def annotation(self) -> str:
        """Return the annotation with a description of what the schema does not say."""
        return described(self.text, self.unsaid) if self.unsaid else self.text


def described(annotation: str, unsaid: Mapping[str, Any]) -> str:
    """Return an annotation whose description contains a JSON schema for `Schema` of judges.py."""
    return f"Annotated[{annotation}, Field(description={UNSAID + json.dumps(unsaid)!r})]"


_DATE = "2026-07-28"
_UUID = "12345678-1234-5678-1234-567812345678"

HASHABLE = (
    Leaf("int", (0, -1, 7, 2**53, 5.0), ("5", 5.5, True, 1e20, 2**64, "", " 7"), "5"),
    Leaf("float", (0, 1.5, -2, 1e300), ("1.5", True, "NaN", "inf", 2**70), "0.5"),
    Leaf("bool", (True, False), (0, 1, 1.0, "true", "on"), "True"),
    Leaf("str", ("", "a", "test", _DATE, "5", "ä\u2028€"), (5, True, ["a"], {"a": 1}), "'text'"),
    Leaf("Decimal", (0, 5, 1.5, -0.001, 19.99), ("1.5", "5", True, "NaN", 10**30), "Decimal('1.5')"),
    Leaf(
        "date",
        (_DATE, "2024-02-29"),
        ("20260728", "2026-7-28", "2026-02-30", f"{_DATE}T00:00:00", 1785196800, "1785196800", "2026-W31-2"),
        "date(2026, 7, 28)",
    ),
    Leaf(
        "datetime",
        (f"{_DATE}T12:00:00Z", f"{_DATE}T12:00:00.125+02:00"),
        (
            *(f"{_DATE}T12:00:00", f"{_DATE} 12:00:00Z", f"{_DATE}T12:00Z", _DATE, 1785196800, "1785196800", "now"),
            *(f"{_DATE}T12:00:00+0200", f"{_DATE}t12:00:00z", f"{_DATE}T25:00:00Z", f"{_DATE}T23:59:60Z"),
        ),
        "datetime(2026, 7, 28, 12)",
    ),
    Leaf("AwareDatetime", (f"{_DATE}T12:00:00Z",), (f"{_DATE}T12:00:00", _DATE, 5)),
    Leaf("NaiveDatetime", (f"{_DATE}T12:00:00",), (f"{_DATE}T12:00:00Z", _DATE, 5)),
    Leaf("time", ("12:00:00Z", "23:59:59.5+01:00"), ("12:00:00", "12:00", "24:00:00Z", 43200, "43200"), "time(12)"),
    Leaf("timedelta", ("PT1H", "P1DT2H", "P2W"), ("1:00:00", 3600, "3600", "PT0.5S", "-PT5M", "P1Y", "1h", "PT")),
    Leaf("UUID", (_UUID,), (_UUID.replace("-", ""), f"{{{_UUID}}}", f"urn:uuid:{_UUID}", _UUID[:-1], 5)),
    Leaf("bytes", ("", "YWJj", "AAECAw=="), ("YWJ", "a-_b", "test", "té", 5), "b'abc'"),
    Leaf("Colour", ("red", "blue"), ("RED", "Red", 1), "Colour.RED"),
    Leaf("Level", (1, 2), (3, "1", True, 1.0, 1.5), "Level.LOW"),
    Leaf("Mixed", (1, "two"), ("1", True, 2), "Mixed.ONE"),
    Leaf("Access", (0, 1, 3), (4, -1, True, 1.5, "1", "READ"), "Access.READ"),
    Leaf("Literal[Colour.RED, Colour.BLUE]", ("red", "blue"), ("RED", "green", 1)),
    Leaf("Literal[b'x', b'yz']", ("eA==", "eXo="), ("x", "eB==", 1)),
    Leaf("Literal['a', 'b']", ("a", "b"), ("A", "c", 1), "'a'"),
    Leaf("Literal[1, 2]", (1, 2), (3, True, 1.0, "1"), "1"),
    Leaf("Literal['auto', 5, True]", ("auto", 5, True), (1, "5", False), "'auto'"),
    Leaf("Annotated[int, BeforeValidator(same)]", (1, 5.0), ("5", 5.5, True, None)),
    Leaf("Annotated[int, WrapValidator(or_one)]", (1, 5.0), ("5", 5.5, True), unsaid={"type": None}),
    Leaf("Annotated[int, PlainSerializer(as_text, return_type=str)]", (1, 5), ("5", 5.5, True)),
    Leaf("Annotated[int, Field(ge=1, le=40)]", (1, 40), (0, 41, "5", 40.5), "7"),
    Leaf("Annotated[int, Field(gt=0, lt=9, multiple_of=4)]", (4, 8), (0, 2, 12, 4.5), "4"),
    Leaf("Annotated[float, Field(gt=0, le=1)]", (0.5, 1, 1e-9), (0, 1.0000001, "0.5"), "0.25"),
    Leaf("Annotated[float, Field(multiple_of=0.25)]", (0.5, 1, -0.75), (0.3, "1"), "0.25"),
    Leaf("Annotated[Decimal, Field(ge=0, le=100)]", (0, 99.5), (-1, 100.5, "5"), "Decimal(3)"),
    Leaf(
        "Annotated[Decimal, Field(max_digits=4, decimal_places=2)]",
        (1.25, 99),
        (1.255, 12345, 123.4),
        unsaid={"multipleOf": 0.01, "exclusiveMaximum": 100},
    ),
    Leaf("Annotated[str, Field(min_length=2, max_length=4)]", ("ab", "abcd", "äöü😀"), ("", "a", "abcde"), "'abc'"),
    Leaf(r"Annotated[str, Field(pattern=r'^\d{3}\-\d{4}$')]", ("555-1234",), ("5551234", "555-12345", "٥٥٥-1234")),
    Leaf("Annotated[str, Field(pattern='(?i)^ab+$')]", ("ab", "ABB"), ("a", "abc"), "'ab'"),
    Leaf("Annotated[str, Field(pattern='(?m)^a$')]", ("a",), ("b", ""), unsaid={"pattern": "^a$"}),
    Leaf(
        "Annotated[bytes, Field(min_length=2, max_length=3)]",
        ("YWI=", "YWJj"),
        ("YQ==", "YWJjZA==", "YWJ"),
        unsaid={"pattern": "^.{2}[^=]"},
    ),
    Leaf(
        "Annotated[date, Field(ge=date(2026, 1, 1))]",
        (_DATE,),
        ("2025-12-31", "2026"),
        unsaid={"pattern": "^(202[6-9]|2[1-9])"},
    ),
    Leaf("AnyUrl", ("http://localhost/a", "s3://bucket/key"), ("localhost", "http://", "", 5)),
    Leaf(
        "EmailStr",
        ("ada@example.com",),
        ("ada", "ada@", "@example.com", "Ada <ada@example.com>"),
        unsaid={"format": None, "pattern": "^([^@<>]+<)?[a-z]+@[a-z.]+>?$"},
    ),
    Leaf("UUID4", ("c56a4180-65aa-42ec-a945-5fd21dec0538",), (_UUID, "c56a4180"), unsaid={"pattern": "^.{14}4"}),
    Leaf("Annotated[str, Format('date')]", (_DATE,), ("2026-02-30", "20260728", "")),
    Leaf("Annotated[str, Format('time')]", ("12:00:00Z", "12:00:00"), ("12:00", "25:00:00Z")),
    Leaf("Annotated[str, Format('date-time')]", (f"{_DATE}T12:00:00Z",), (f"{_DATE}T12:00:00", _DATE)),
    Leaf("Annotated[str, Format('email')]", ("ada@example.com",), ("ada", "ada@", "Ada <ada@example.com>")),
    Leaf("Annotated[str, Format('hostname')]", ("example.com", "localhost"), ("-a", "a b", "")),
    Leaf("Annotated[str, Format('ipv4')]", ("127.0.0.1",), ("127.0.0", "::1", "256.0.0.1")),
    Leaf("Annotated[str, Format('ipv6')]", ("::1", "fe80::1"), ("127.0.0.1", "::g")),
    Leaf("Annotated[str, Format('uri')]", ("http://localhost/a", "urn:a"), ("localhost", "http://a b")),
    Leaf("Annotated[str, Format('uuid')]", (_UUID,), (_UUID[:-1], _UUID.replace("-", ""))),
    Leaf("Annotated[str, Format('phone')]", ("+47 555 1234",), ("a", "12"), unsaid={"pattern": "^[+][0-9 ]+$"}),
    Leaf("Base64Bytes", ("YWJj",), ("YWJ", 5)),
    Leaf("SecretStr", ("", "secret"), (5, None)),
    Leaf("ByteSize", (1024, "10 MiB"), ("10 parsecs", 1.5, -1), unsaid={"pattern": "^10 MiB$", "minimum": 0}),
)
"""Types whose values can be members of a set."""

UNHASHABLE = (
    Leaf(
        "Json[list[int]]",
        ("[1, 2]", "[]"),
        ("[1", '["a"]', [1], "5"),
        unsaid={"pattern": r"^\[(\d+(, \d+)*)?\]$"},
    ),
    Leaf("list[OnErrorOmit[int]]", ([], [1, 5.0], [1, "x", 2]), (5, "x", {}), unsaid={"items": {}}),
    Leaf(
        "Octets",
        ({"data": "00ff"}, {"data": ""}, {"data": "DEADBEEF"}),
        ({"data": "0"}, {"data": "zz"}, {"data": 5}, {}),
        unsaid={"properties": {"data": {"type": "string", "pattern": "^([0-9a-fA-F]{2})*$"}}},
    ),
    Leaf("Any", (None, 1, "a", 1.5, True, [1], {"a": None}), (), "'any'"),
    Leaf("dict", ({}, {"a": 1}, {"b": [None]}), ([], "{}", [["a", 1]])),
    Leaf("list", ([], [1, "a", None]), ({}, "[]", "a")),
    Leaf("Annotated[list[int], Field(min_length=1, max_length=3)]", ([1], [1, 2, 3]), ([], [1, 2, 3, 4], ["1"])),
    Leaf("Annotated[set[int], Field(min_length=2)]", ([1, 2],), ([1], [1, 1], [1, "2"]), unsaid={"uniqueItems": True}),
)
"""Types whose values can't be members of a set."""

MADE = (
    ("int", "Level.HIGH"),
    ("float", "Ratio(1.5)"),
    ("list[int]", "[Level.LOW, Count(7)]"),
    ("set[int]", "{Level.LOW}"),
    ("tuple[int, str]", "(Count(7), Name('a'))"),
    ("dict[str, float]", "{'a': Ratio(1.5)}"),
    ("Optional[int]", "Level.HIGH"),
    ("Optional[float]", "Ratio(0.5)"),
    ("dict[str, int]", "{'a': Level.LOW, 'b': Count(2)}"),
    ("Pair", "Pair(Count(1), Ratio(2.5))"),
    ("list[Pair]", "[Pair(Level.HIGH, Ratio(2.5)), Pair(3, 4.5)]"),
    ("Octets", "Octets(data=b'\\x00\\xff')"),
)
"""Results that no argument is: the annotation and an expression. Subclasses of int, float and str, and bytes as hex."""

POOL: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 5.0, 1.5, 1e15, 2**63, "", "a", "5", "true", "null", "[]", "{}", _DATE, _UUID),
    *("test", [], {}, [None], [[]], {"a": 1}, {"": ""}, ["a", "a"], [1, 1]),
)
"""Values that replace a part of an argument."""
