"""What kinds of values become where a feature returns them, on funcmcp and on the libraries beside it.

`tests/authoring/schemas/test_python_values.py` compares funcmcp with the recorded table. This module also prints the
columns of the other libraries, with an interpreter that has them, numpy, pandas and polars:

    PYTHONPATH=. python -m tests.differential.returned_values fastmcp
    PYTHONPATH=. python -m tests.differential.returned_values mcp
"""

from __future__ import annotations

import asyncio
import enum
import json
import sys
from dataclasses import make_dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import cache
from http import HTTPStatus
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import polars as pl
from typing_extensions import TypedDict

if TYPE_CHECKING:
    from collections.abc import Callable

EMPTY: Any = object()
WRITTEN, OTHER, REFUSED = "=", "~", "x"
"""The value is written as it should be; as another value; or it is an error."""


class Whole(int):
    pass


class Real(float):
    pass


class Name(str):
    __slots__ = ()


class Level(enum.IntEnum):
    LOW = 1


class Bits(enum.IntFlag):
    A = 1
    B = 2


class Sky(enum.StrEnum):
    CLEAR = "clear"


class Share(float, enum.Enum):
    HALF = 0.5


class Index:
    """A number of a library that has only Python's protocol for integers."""

    def __index__(self) -> int:
        return 7


class Kind(NamedTuple):
    """A kind of values.

    Attributes:
        annotation: The type that an author declares for it.
        value: A value.
        written: Its JSON.
    """

    annotation: Any
    value: Any
    written: Any


NOON = "2026-07-28T12:00:00"
FRAME = pd.DataFrame({"n": [1, 2], "x": [1.5, float("nan")], "at": pd.to_datetime([NOON, None]), "s": ["a", None]})
ROWS = [{"n": 1, "x": 1.5, "at": NOON, "s": "a"}, {"n": 2, "x": None, "at": None, "s": None}]
ANY_ROWS = list[dict[str, Any]]

KINDS: dict[str, Kind] = {
    "int subclass": Kind(int, Whole(3), 3),
    "float subclass": Kind(float, Real(1.5), 1.5),
    "str subclass": Kind(str, Name("a"), "a"),
    "IntEnum": Kind(int, Level.LOW, 1),
    "HTTPStatus": Kind(int, HTTPStatus.OK, 200),
    "IntFlag": Kind(int, Bits.A | Bits.B, 3),
    "StrEnum": Kind(str, Sky.CLEAR, "clear"),
    "float Enum": Kind(float, Share.HALF, 0.5),
    "__index__": Kind(int, Index(), 7),
    "int for float": Kind(float, 2, 2),
    "float for int": Kind(int, 3.0, EMPTY),
    "bool for int": Kind(int, True, EMPTY),
    "Decimal for float": Kind(float, Decimal("1.5"), EMPTY),
    "Fraction for float": Kind(float, Fraction(1, 2), EMPTY),
    "numpy.int8": Kind(int, np.int8(-3), -3),
    "numpy.int64": Kind(int, np.int64(3), 3),
    "numpy.uint64": Kind(int, np.uint64(2**64 - 1), 2**64 - 1),
    "numpy.float16": Kind(float, np.float16(0.5), 0.5),
    "numpy.float32": Kind(float, np.float32(0.25), 0.25),
    "numpy.float64": Kind(float, np.float64(1.5), 1.5),
    "numpy.longdouble": Kind(float, np.longdouble(1.5), 1.5),
    "numpy.float64 for int": Kind(int, np.float64(3), EMPTY),
    "numpy.bool": Kind(bool, np.bool_(True), True),
    "numpy.bool for int": Kind(int, np.bool_(True), EMPTY),
    "numpy.str_": Kind(str, np.str_("a"), "a"),
    "numpy.datetime64": Kind(datetime, np.datetime64(NOON, "ns"), NOON),
    "numpy.timedelta64": Kind(timedelta, np.timedelta64(60, "s"), "PT1M"),
    "array of integers": Kind(list[int], np.array([1, 2]), [1, 2]),
    "array of floats": Kind(list[list[float]], np.array([[1.5], [2.5]]), [[1.5], [2.5]]),
    "array of booleans": Kind(list[bool], np.array([True, False]), [True, False]),
    "array of strings": Kind(list[str], np.array(["a", "b"]), ["a", "b"]),
    "array of objects": Kind(list[Any], np.array([1, "a", pd.NaT], dtype=object), [1, "a", None]),
    "array without dimensions": Kind(int, np.array(3), 3),
    "pandas.Timestamp": Kind(datetime, pd.Timestamp(NOON), NOON),
    "pandas.Timedelta": Kind(timedelta, pd.Timedelta(1, "min"), "PT1M"),
    "pandas.NaT": Kind(datetime | None, pd.NaT, None),
    "pandas.NA": Kind(int | None, pd.NA, None),
    "pandas.Series": Kind(list[int | None], pd.Series([1, None], dtype="Int64"), [1, None]),
    "pandas.Index": Kind(list[str], pd.Index(["a", "b"]), ["a", "b"]),
    "pandas.DataFrame": Kind(ANY_ROWS, FRAME, ROWS),
    "grouped DataFrame": Kind(ANY_ROWS, FRAME.groupby("n")[["x"]].sum(), [{"n": 1, "x": 1.5}, {"n": 2, "x": 0.0}]),
    "polars.Series": Kind(list[float | None], pl.Series([1.5, None]), [1.5, None]),
    "polars.DataFrame": Kind(ANY_ROWS, pl.DataFrame({"n": [1, None]}), [{"n": 1}, {"n": None}]),
}
"""The kinds. Where `Kind.written` is `EMPTY`, the value does not fit its type, and only an error is right."""


class Place(NamedTuple):
    """A place where a value is returned.

    Attributes:
        annotation: Returns the return annotation of the tool for the type of the value; `EMPTY` for none.
        around: Returns what the tool returns.
        inside: Returns the value's JSON in the result.
    """

    annotation: Callable[[Any], Any]
    around: Callable[[Any, Any], Any]
    inside: Callable[[Any], Any]


def _value(_type: Any, value: Any) -> Any:
    return value


def _member(_type: Any, value: Any) -> Any:
    return {"a": value}


def _first(written: Any) -> Any:
    return written[0]


def _of_a(written: Any) -> Any:
    return written["a"]


@cache
def _holder(kind: Any) -> Any:
    return make_dataclass("Holder", [("a", kind)])


def _typed_dict(kind: Any) -> Any:
    make: Any = TypedDict
    return make("Member", {"a": kind})


def _made(origin: Any, *arguments: Any) -> Any:
    """Return a generic type, such as ``list[int]``."""
    return origin[arguments]


PLACES: dict[str, Place] = {
    "no annotation": Place(lambda _: EMPTY, _value, lambda written: written),
    "T": Place(lambda kind: kind, _value, lambda written: written),
    "T | None": Place(lambda kind: kind | None, _value, lambda written: written),
    "list[T]": Place(lambda kind: _made(list, kind), lambda _, value: [value], _first),
    "tuple[T, str]": Place(lambda kind: _made(tuple, kind, str), lambda _, value: (value, "b"), _first),
    "dict[str, T]": Place(lambda kind: _made(dict, str, kind), _member, _of_a),
    "dataclass": Place(_holder, lambda kind, value: _holder(kind)(value), _of_a),
    "TypedDict": Place(_typed_dict, _member, _of_a),
    "dict": Place(lambda _: dict, _member, _of_a),
    "dict[str, Any]": Place(lambda _: dict[str, Any], _member, _of_a),
    "list[Any]": Place(lambda _: list[Any], lambda _, value: [value], _first),
    "resource": Place(lambda _: EMPTY, _member, _of_a),
}


def function_of(kind: Kind, place: str) -> Callable[[], Any]:
    """Return the function of a feature that returns a value in a place."""
    value = PLACES[place].around(kind.annotation, kind.value)

    def returned() -> Any:
        return value

    returned.__annotations__.clear()
    annotation = PLACES[place].annotation(kind.annotation)
    if annotation is not EMPTY:
        returned.__annotations__["return"] = annotation
    return returned


def written_in(structured: Any, text: str | None) -> Any:
    """Return the JSON of a result: its structured content without the object around it, or else its text."""
    if structured is not None:
        return structured["result"] if list(structured) == ["result"] else structured
    try:
        return json.loads(text or "")
    except ValueError:
        return text


def verdict(kind: Kind, place: str, written: Any) -> str:
    """Return what a result says about a value."""
    try:
        inside = PLACES[place].inside(written)
    except (KeyError, IndexError, TypeError):
        return OTHER
    is_same = inside == kind.written and isinstance(inside, bool) == isinstance(kind.written, bool)
    return WRITTEN if is_same else OTHER


async def _call(library: str, function: Callable[[], Any], *, as_resource: bool) -> Any:
    server: Any
    client: Any
    if library == "mcp":
        from mcp import Client as SDKClient
        from mcp.server import MCPServer

        server, client = MCPServer("values"), SDKClient
    else:
        from fastmcp import Client, FastMCP

        server, client = FastMCP("values"), Client
    if as_resource:
        server.resource("value://it")(function)
    elif library == "mcp":
        server.tool()(function)
    else:
        server.tool(function)
    async with client(server) as connected:
        if as_resource:
            contents = await connected.read_resource("value://it")
            (item,) = contents if isinstance(contents, list) else contents.contents
            return written_in(None, item.text)
        result = await connected.call_tool("returned", {})
        if getattr(result, "is_error", False):
            raise RuntimeError(result.content[0].text)
        texts = [block.text for block in result.content]
        return written_in(result.structured_content, "\n".join(texts))


def column(library: str) -> dict[str, str]:
    """Return the verdicts on each kind in all places, one letter each, for a library."""
    verdicts: dict[str, str] = {}
    for name, kind in KINDS.items():
        letters = ""
        for place in PLACES:
            try:
                written = asyncio.run(_call(library, function_of(kind, place), as_resource=place == "resource"))
            except Exception:  # noqa: BLE001 - whatever a library raises is an error
                letters += REFUSED
            else:
                letters += verdict(kind, place, written)
        verdicts[name] = letters
    return verdicts


if __name__ == "__main__":
    made = {"version": version(sys.argv[1]), "verdicts": column(sys.argv[1])}
    sys.stdout.write(json.dumps(made, indent=2) + "\n")
