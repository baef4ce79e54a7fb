"""Numbers, arrays and tables of other libraries in results. No other module of the suite imports pandas or polars."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import subprocess
import sys
from array import array
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt
import pandas as pd  # type: ignore[import-untyped]
import polars as pl
import pytest
from pydantic import BaseModel, ConfigDict
from pydantic_core import core_schema

from funcmcp import Context
from funcmcp import MCPServer as NativeMCPServer
from funcmcp._authoring.schemas.python_values import python_value, with_python_values
from funcmcp._server.catalog.registry import RegistrationError
from funcmcp.compat import FastMCP, MCPServer
from funcmcp.testing import Client, decline
from tests.authoring.models import Point
from tests.authoring.tool_calls import call, tool_of
from tests.differential.returned_values import KINDS, PLACES, REFUSED, WRITTEN, function_of, verdict, written_in

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

pytestmark = [
    pytest.mark.every_python("Types, enums, dataclasses and regular expressions are Python's."),
    pytest.mark.lowest("pydantic reads values, writes JSON and makes schemas."),
]

TABLE = json.loads((Path(__file__).parents[2] / "data" / "returned_values.json").read_text())


@pytest.mark.parametrize("make", [NativeMCPServer, FastMCP, MCPServer])
async def test_tables_are_annotations_of_every_kind_of_server(make: Any) -> None:
    def rows() -> pl.DataFrame:
        return pl.DataFrame({"a": [1]})

    async def maybe_rows() -> pd.DataFrame | None:
        return pd.DataFrame({"a": [1]})

    def values() -> pl.Series:
        return pl.Series([1])

    server = make("tables")
    for function in (rows, maybe_rows, values):
        server.tool()(function)
    async with Client(server) as client:
        schema = {tool.name: tool.output_schema for tool in await client.list_tools()}["rows"]
        results = [(await client.call_tool(name)).structured_content for name in ("rows", "maybe_rows", "values")]
    assert schema is not None
    rows_schema = schema["properties"]["result"]
    assert (rows_schema["type"], rows_schema["items"]["type"]) == ("array", "object")
    assert results == [{"result": [{"a": 1}]}, {"result": [{"a": 1}]}, {"result": [1]}]


async def column(server: Any) -> dict[str, str]:
    """Return the verdicts on each kind in all places, one letter each."""
    for row, kind in enumerate(KINDS.values()):
        for number, place in enumerate(PLACES):
            function = function_of(kind, place)
            if place == "resource":
                server.resource(f"values://{row}")(function)
            else:
                server.tool(name=f"value_{row}_{number}")(function)
    verdicts: dict[str, str] = {}
    async with Client(server) as client:
        for row, (name, kind) in enumerate(KINDS.items()):
            letters = ""
            for number, place in enumerate(PLACES):
                try:
                    written = await written_by(client, row, number, place)
                except Exception:  # noqa: BLE001 - any error is one
                    letters += REFUSED
                else:
                    letters += verdict(kind, place, written)
            verdicts[name] = letters
    return verdicts


async def written_by(client: Client, row: int, number: int, place: str) -> Any:
    if place == "resource":
        (contents,) = (await client.read_resource(f"values://{row}"))["contents"]
        return written_in(None, contents["text"])
    result = await client.call_tool(f"value_{row}_{number}")
    if result.get("isError"):
        raise RuntimeError(result["content"][0]["text"])
    texts = [block["text"] for block in result["content"]]
    return written_in(result.get("structuredContent"), "\n".join(texts))


@pytest.mark.slow("Many values or schemas take half a second or longer.")
@pytest.mark.parametrize(("name", "make"), [("funcmcp", NativeMCPServer), ("compat", FastMCP)])
async def test_values_are_written_in_each_place_as_the_table_says(name: str, make: Callable[[str], Any]) -> None:
    expected = {kind: columns[name] for kind, columns in TABLE["kinds"].items()}
    assert TABLE["places"] == list(PLACES)
    verdicts = await column(make("Values"))
    if not hasattr(core_schema, "named_tuple_schema"):  # pydantic before 2.14 does not write fractions
        expected["Fraction for float"] = verdicts["Fraction for float"]
    assert verdicts == expected


@pytest.mark.parametrize("kind", KINDS)
def test_each_value_that_another_library_writes_is_written(kind: str) -> None:
    columns = TABLE["kinds"][kind]
    for letters in (columns["FastMCP"], columns["SDK"]):
        for ours, theirs in zip(columns["funcmcp"], letters, strict=True):
            assert ours == WRITTEN or theirs != WRITTEN


async def returned(value: Any, annotation: Any = Any) -> Any:
    """Return the structured content, or the text, of a tool that returns a value."""

    def tool() -> Any:
        return value

    tool.__annotations__["return"] = annotation
    result = await call(tool)
    return written_in(result.get("structuredContent"), result["content"][0]["text"])


LONG = pd.DataFrame({"n": np.zeros(1_000_001)})
TWICE = pd.DataFrame([[1, 2, 3]], columns=["a", "b", "a"])
NAMED_AS_ITS_COLUMN = pd.DataFrame({"a": [1]}, index=pd.Index(["x"], name="a"))


@pytest.mark.parametrize("annotation", [Any, pd.DataFrame, list[dict[str, Any]], pd.DataFrame | None])
@pytest.mark.parametrize(
    ("frame", "reason"),
    [
        (TWICE, "pandas.DataFrame has several columns named 'a'. Rename them."),
        (NAMED_AS_ITS_COLUMN, "pandas.DataFrame has several columns named 'a'. Rename them."),
        (LONG, "pandas.DataFrame has 1,000,001 values, more than 1,000,000. Return fewer of them."),
        (pl.DataFrame(LONG["n"].to_numpy()), "polars.DataFrame has 1,000,001 values, more than 1,000,000."),
        (pl.LazyFrame({"a": [1]}), "JSON can't carry polars.LazyFrame. Call collect() first."),
        (pd.DataFrame({"a": [1]}).groupby("a"), "Aggregate it first, such as with sum()."),
    ],
)
async def test_a_table_that_has_no_rows_is_an_error_that_says_why(annotation: Any, frame: Any, reason: str) -> None:
    with pytest.raises(ValueError, match="tool returned a value that can't be written as JSON: ") as caught:
        await returned(frame, annotation)
    assert reason in str(caught.value)


BY_DAY = pd.DataFrame({"n": [1]}, index=pd.to_datetime(["2026-07-28"]))
LEVELS = pd.MultiIndex.from_tuples([("a", 1)], names=["letter", None])


@pytest.mark.parametrize(
    ("frame", "rows"),
    [
        (pd.DataFrame({"n": [1, 2, 3]})[1:], [{"n": 2}, {"n": 3}]),
        (pd.DataFrame({"n": [1]}, index=["a"]), [{"index": "a", "n": 1}]),
        (pd.DataFrame({"a": ["x"], "n": [1]}).set_index("a", drop=False), [{"a": "x", "n": 1}]),
        (BY_DAY, [{"index": "2026-07-28T00:00:00", "n": 1}]),
        (pd.DataFrame({"n": [1]}, index=pd.Index([7], name="id")), [{"id": 7, "n": 1}]),
        (pd.DataFrame({"n": [1]}, index=LEVELS), [{"letter": "a", "level_1": 1, "n": 1}]),
        (pd.DataFrame({("n", "sum"): [1], ("m", ""): [2], 5: [3]}), [{"n_sum": 1, "m": 2, "5": 3}]),
        (pd.DataFrame(index=[0, 1]), [{}, {}]),
        (pd.DataFrame(), []),
        (pd.DataFrame({"c": pd.Categorical(["a", None])}), [{"c": "a"}, {"c": None}]),
        (pd.DataFrame({"c": pd.cut([1], [0, 2])}), [{"c": "(0, 2]"}]),
        (pd.DataFrame({"c": pd.period_range("2026-07", periods=1, freq="M")}), [{"c": "2026-07"}]),
        (pd.DataFrame({"x": [1.5, float("inf")]}), [{"x": 1.5}, {"x": None}]),
        (pd.DataFrame({"x": pd.array([1, None], dtype="Int64")}), [{"x": 1}, {"x": None}]),
        (pd.DataFrame({"x": [np.array([1, 2])]}), [{"x": [1, 2]}]),
        (pl.DataFrame({"x": [1.5, float("nan")], "y": [[1], None]}), [{"x": 1.5, "y": [1]}, {"x": None, "y": None}]),
    ],
)
async def test_a_table_is_rows_with_its_index_if_that_has_a_name_or_labels(frame: Any, rows: Any) -> None:
    for annotation in (Any, type(frame), list[dict[str, Any]]):
        assert await returned(frame, annotation) == rows


@dataclass
class Statistics:
    mean: float
    values: np.ndarray
    rows: pd.DataFrame | None = None


class Framed(BaseModel):
    model_config = ConfigDict(arbitrary_types_allowed=True)
    rows: pd.DataFrame


ROWS = {"type": "array", "items": {"type": "object"}}
LIST = {"type": "array", "items": {}}


@pytest.mark.parametrize(
    ("annotation", "schema"),
    [
        (pd.DataFrame, ROWS),
        (pl.DataFrame, ROWS),
        (pd.DataFrame | None, {"anyOf": [ROWS, {"type": "null"}]}),
        (pd.Series, LIST),
        (pl.Series, LIST),
        (np.ndarray, LIST),
        (npt.NDArray[np.float64], LIST),
        (np.int64, {"type": "integer"}),
        (np.float32, {"type": "number"}),
        (np.bool_, {"type": "boolean"}),
        (np.timedelta64, {"type": "string"}),
        (pd.Timestamp, {"type": "string"}),
    ],
)
def test_an_annotation_of_another_library_has_the_schema_of_its_json(annotation: Any, schema: Any) -> None:
    def tool() -> Any: ...

    tool.__annotations__["return"] = annotation
    assert tool_of(tool).describe()["outputSchema"]["properties"]["result"] == schema


async def test_fields_may_have_types_of_another_library() -> None:
    frame = pd.DataFrame({"a": [1]})
    statistics = Statistics(np.float64(1.5), np.array([1, 2]), frame)
    assert await returned(statistics, Statistics) == {"mean": 1.5, "values": [1, 2], "rows": [{"a": 1}]}
    assert await returned(Framed(rows=frame), Framed) == {"rows": [{"a": 1}]}
    assert await returned({"all": frame}, dict[str, pd.DataFrame]) == {"all": [{"a": 1}]}


def object_of_library(
    library: str, name: str, members: Mapping[str, Any] = MappingProxyType({}), base: type = object
) -> Any:
    """Return an object of a class with the name and the library of one that is not installed here."""
    return type(name, (base,), {"__module__": library, **members})()


async def test_a_row_of_a_database_is_an_object() -> None:
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        connection.row_factory = sqlite3.Row
        rows = connection.execute("SELECT 1 AS a, 'x' AS b").fetchall()
    kept = {"keys": lambda row: ["a"], "__getitem__": lambda row, name: 1}
    cases = [
        (rows[0], {"a": 1, "b": "x"}),
        (object_of_library("sqlalchemy.engine.row", "Row", {"_asdict": lambda row: {"a": 1}}), {"a": 1}),
        (object_of_library("sqlalchemy.engine.row", "RowMapping", kept), {"a": 1}),
        (object_of_library("asyncpg.protocol.record", "Record", kept), {"a": 1}),
    ]
    for row, written in cases:
        assert await returned([row], list[dict[str, Any]]) == [written], type(row)
        assert await returned({"first": row}) == {"first": written}, type(row)


async def test_a_table_of_arrow_is_rows() -> None:
    column = SimpleNamespace(to_pylist=lambda: [1, None])
    members = {"column_names": ["a"], "num_rows": 2, "num_columns": 1, "column": lambda table, name: column}
    for name in ("Table", "RecordBatch"):
        table = object_of_library("pyarrow.lib", name, members)
        assert await returned(table, type(table)) == [{"a": 1}, {"a": None}], name


async def test_a_value_that_must_be_read_first_is_refused_with_the_call_that_reads_it() -> None:
    model = type("Model", (), {"__module__": "django.db.models.base"})
    figure = type("BaseFigure", (), {"__module__": "plotly.basedatatypes"})
    chart = type("TopLevelMixin", (), {"__module__": "altair.vegalite.v6.api"})
    cases = [
        (object_of_library("django.db.models.query", "QuerySet"), "Return list(queryset.values())."),
        (object_of_library("menu.models", "Dish", base=model), "Return django.forms.models.model_to_dict(instance)"),
        (
            object_of_library("duckdb._relation", "DuckDBPyRelation"),
            "Call fetchall(), df() or pl() first, in the tool.",
        ),
        (object_of_library("requests.models", "Response"), "Return response.json(), or response.text."),
        (object_of_library("aiohttp.client_reqrep", "ClientResponse"), "Return await response.json()"),
        (object_of_library("plotly.graph_objs._figure", "Figure", base=figure), "content.Image(figure.to_image("),
        (object_of_library("altair.vegalite.v6.api", "Chart", base=chart), "content.Image(vl_convert.vegalite_to_png("),
    ]
    for value, remedy in cases:
        with pytest.raises(ValueError, match="can't be written as JSON") as caught:
            await returned(value)
        assert remedy in str(caught.value), type(value)


@dataclass
class Locked:
    lazy: pl.LazyFrame


@pytest.mark.parametrize(
    ("annotation", "reason"),
    [
        (pl.LazyFrame, "(polars.LazyFrame). Call collect() first."),
        (Locked, "(polars.LazyFrame). Call collect() first."),
        (subprocess.Popen, "(subprocess.Popen). Return a dataclass, a TypedDict, a pydantic model or a dict."),
        (Fraction | subprocess.Popen, "(subprocess.Popen). Return a dataclass"),
    ],
)
def test_an_annotation_that_json_cannot_carry_is_named_with_its_module(annotation: Any, reason: str) -> None:
    def tool() -> Any: ...

    tool.__annotations__["return"] = annotation
    with pytest.raises(RegistrationError) as caught:
        tool_of(tool).describe()
    assert str(caught.value).startswith(f"What tool returns has a type that JSON can't carry {reason}")


@pytest.mark.parametrize(
    ("annotation", "advice"),
    [
        (pd.DataFrame, "(pandas.DataFrame). Use list[dict[str, Any]] and make a DataFrame of it in the function"),
        (pl.DataFrame, "(polars.DataFrame). Use list[dict[str, Any]] and make a DataFrame of it in the function"),
        (np.float64, "(numpy.float64). Use float"),
        (np.ndarray, "(numpy.ndarray). Use list[float] and make an array of it in the function"),
        (npt.NDArray[np.int64], "(numpy.ndarray). Use list[float] and make an array of it in the function"),
        (pd.Series, "(pandas.Series). Use list[float] and make a Series of it in the function"),
        (pd.Timedelta, "(pandas.Timedelta). Use datetime.timedelta and make a Timedelta of it in the function"),
        (
            pd.Timestamp,
            "(pandas.Timestamp). Use datetime.date or datetime.datetime and make a Timestamp of it in the function",
        ),
    ],
)
def test_a_parameter_of_another_library_is_refused_with_advice(annotation: Any, advice: str) -> None:
    def tool(it: Any) -> None: ...

    tool.__annotations__["it"] = annotation
    with pytest.raises(RegistrationError) as caught:
        tool_of(tool).describe()
    assert f"{advice}, or register the type with mcp.services." in str(caught.value)


@pytest.mark.parametrize(
    ("annotation", "value", "text"),
    [
        (bool, np.int64(1), "to return bool, but returned numpy.int64. Convert it: bool(value)."),
        (int, np.bool_(True), "to return int, but returned numpy.bool. Convert it: int(value)."),
        (int, np.float64(3), "to return int, but returned numpy.float64. Convert it: int(value)."),
        (int, 3.0, "to return int, but returned 3.0. Convert it: int(value)."),
        (float, Decimal(1), "to return float, but returned decimal.Decimal. Convert it: float(value)."),
        (float, np.float64("nan"), "to return float, but returned nan."),
        (int, np.array([1]), "to return int, but returned numpy.ndarray."),
        (float, "1", "to return float, but returned str."),
        (int, True, "to return int, but returned bool."),
        (None, np.int64(1), "to return None, but returned numpy.int64."),
        (str, np.int64(1), "tool returned numpy.int64, which its annotation does not allow. Convert it: str(value)."),
        (str, ["a"], "tool returned list, which its annotation does not allow."),
    ],
)
async def test_a_value_that_does_not_fit_is_named_with_its_module_and_its_remedy(
    annotation: Any, value: Any, text: str
) -> None:
    with pytest.raises(TypeError) as caught:
        await returned(value, annotation)
    assert str(caught.value).endswith(text)


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ([1.0, np.nan], [1.0, None]),
        (np.array([1.0, np.nan]), [1.0, None]),
        (pd.Series([1.0, np.inf]), [1.0, None]),
        ([np.array([1.0, np.nan])], [[1.0, None]]),
    ],
)
async def test_a_number_without_json_in_an_array_for_a_list_of_anything_is_null(value: Any, written: Any) -> None:
    assert await returned(value, list) == written


async def test_a_series_with_labels_is_rows_or_what_the_annotation_says() -> None:
    """As in a table, row numbers are left out."""
    counts = pd.Series(["tea", "cake", "tea"], name="item").value_counts()
    rows = [{"item": "tea", "count": 2}, {"item": "cake", "count": 1}]
    means = pd.DataFrame({"a": [1.0, 2.0]}).mean()
    cases: list[tuple[Any, Any, Any]] = [
        (counts, pd.Series, rows),
        (counts, list, rows),
        (counts, list[dict[str, Any]], rows),
        (counts, dict[str, int], {"tea": 2, "cake": 1}),
        (counts, list[int], [2, 1]),
        (means, list, [{"index": "a", "value": 1.5}]),
        (pd.Series([1], index=pd.Index(["x"], name="v"), name="v"), list, [{"v": "x", "value": 1}]),
        ({"a": counts, "b": (counts,)}, dict[str, Any], {"a": rows, "b": [rows]}),
        ({"a": counts}, dict[str, list[int]], {"a": [2, 1]}),
        ([counts, pd.Series([5])], list[list[int]], [[2, 1], [5]]),
        (pd.Series([1, 2], index=[4, 7]), list, [1, 2]),
    ]
    for value, annotation, written in cases:
        assert await returned(value, annotation) == written, (value, annotation)
    itself: list[Any] = []
    itself.append(itself)
    for value, annotation in [(counts, list[bool]), (itself, list[list[int]])]:
        with pytest.raises((TypeError, ValueError)):
            await returned(value, annotation)


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ({np.int64(1): np.str_("a")}, {"1": "a"}),
        ({pd.NaT: 1}, {"None": 1}),
        ({"at": [pd.NaT, (pd.NA,), {"x": np.datetime64("NaT")}]}, {"at": [None, [None], {"x": None}]}),
        (
            {"a": Statistics(pd.NA, np.array([pd.NaT], dtype=object))},
            {"a": {"mean": None, "values": [None], "rows": None}},
        ),
        ({"a": pd.Series([1]), "b": np.ma.masked_array([1, 2], [False, True])}, {"a": [1], "b": [1, None]}),
        ({"day": np.datetime64("2026-07-28")}, {"day": "2026-07-28"}),
        ({"names": {"a": 1}.keys(), "pairs": {"a": 1}.items()}, {"names": ["a"], "pairs": [["a", 1]]}),
        ({"numbers": {"a": 1}.values(), "range": range(2)}, {"numbers": [1], "range": [0, 1]}),
        ({"data": [memoryview(b"hi")]}, {"data": ["aGk="]}),
        ({"array": array("d", [1.5]), "frozen": MappingProxyType({"a": 1})}, {"array": [1.5], "frozen": {"a": 1}}),
    ],
)
async def test_values_inside_others_are_written_too(value: Any, written: Any) -> None:
    assert await returned(value) == written
    assert await returned(value, dict[Any, Any]) == written


async def test_a_range_has_as_many_members_as_an_iterator() -> None:
    with pytest.raises(ValueError, match="range has 1,000,001 values, more than 1,000,000"):
        await returned({"all": range(1_000_001)})


def test_a_named_tuple_stays_one() -> None:
    count: Any = np.int64(1)
    point = with_python_values([Point(count, None)])[0]
    assert (type(point), type(point.x)) == (Point, int)


def test_a_boolean_stays_one_and_a_fraction_is_refused() -> None:
    assert python_value(True) is True
    with pytest.raises(ValueError, match=r"JSON can't carry fractions\.Fraction\. Convert it"):
        python_value(Fraction(1, 2))


WRONG: list[Any] = [Fraction(1, 2), np.array([1])]


async def test_a_task_a_log_message_and_progress_take_them_as_well() -> None:
    messages: list[Any] = []
    mcp = NativeMCPServer("Values")

    count: Any = np.int64(1)
    share: Any = np.float32(1.5)

    async def report(context: Context) -> float:
        await context.info({"mean": np.float32(0.5), "all": np.array([1])})
        await context.report_progress(count, total=share)
        for wrong in WRONG:
            with pytest.raises(ValueError, match="progress and total must be numbers"):
                await context.report_progress(wrong)
        return cast("float", share)

    mcp.tool("now")(report)
    mcp.tool("later", task="required")(report)
    async with Client(mcp, on_log=messages.append, log_level="info") as client:
        for name in ("now", "later"):
            assert (await client.call_tool(name))["structuredContent"] == {"result": 1.5}
    assert messages[0].data == {"mean": 0.5, "all": [1]}


async def test_a_default_of_an_argument_or_a_form_is_in_its_schema() -> None:
    @dataclass
    class Form:
        share: float = np.float32(0.5)  # type: ignore[assignment] # as an author does without a type checker
        count: int = np.int64(3)  # type: ignore[assignment] # as above

    forms: list[Any] = []

    def answer(form: Any) -> Any:
        forms.append(form["requestedSchema"]["properties"])
        return decline(form)

    mcp = NativeMCPServer("Values")

    @mcp.tool
    async def ask(context: Context, limit: int = np.int64(9)) -> bool:  # type: ignore[assignment] # as above
        return cast("bool", np.bool_((await context.elicit("How much?", Form)).action == "decline"))

    async with Client(mcp, elicit=answer) as client:
        (tool,) = await client.list_tools()
        assert tool["inputSchema"]["properties"]["limit"]["default"] == 9
        assert (await client.call_tool("ask"))["structuredContent"] == {"result": True}
    assert [(name, member["default"]) for name, member in forms[0].items()] == [("share", 0.5), ("count", 3)]


@pytest.mark.slow("Many values or schemas take half a second or longer.")
def test_no_import_of_funcmcp_loads_one_of_the_libraries() -> None:
    code = (
        "import sys, asyncio, funcmcp, funcmcp.testing\n"
        "mcp = funcmcp.MCPServer('s')\n"
        "@mcp.tool\n"
        "def f() -> list[dict[str, object]]: return [{'a': 1}]\n"
        "asyncio.run(mcp.call_tool('f'))\n"
        "assert not {'numpy', 'pandas', 'polars'} & sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
