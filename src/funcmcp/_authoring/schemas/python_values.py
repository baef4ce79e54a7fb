"""Conversion of numbers, arrays and tables of other libraries, such as numpy and pandas, to Python's own types.

How it works: pydantic writes values of Python's own types and of the author's classes. For any other value it calls
`python_value`. No library is imported: classes are recognized by the module and the name of one of their bases
(`_CONVERSIONS`), arrays by ``__array__`` and ``tolist``, and numbers by Python's own protocols. A Decimal and a
Fraction are not converted, because pydantic writes them. Views of a dict, ranges and arrays of the standard library are
lists.

A few values fail without that call, such as the key ``numpy.int64(1)`` and ``pandas.NaT``, which is a datetime.
`with_python_values` replaces them in a copy of the containers around them.
"""

from __future__ import annotations

import functools
import math
import operator
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from datetime import datetime, timedelta
from io import IOBase
from numbers import Integral, Rational, Real
from typing import TYPE_CHECKING, Any, get_origin

from pydantic_core import PydanticSerializationError

from funcmcp._authoring.schemas.iterators import MAX_MEMBERS

if TYPE_CHECKING:
    from collections.abc import Callable

    from pydantic_core.core_schema import CoreSchema

    Convert = Callable[[Any], Any]

_FINE_UNITS = ("[ns]", "[ps]", "[fs]", "[as]")
"""The ends of the names of numpy's types of times whose values are integers in Python."""

_WIDE_FLOATS = frozenset({"float96", "float128", "longdouble"})
"""Names of types whose values ``tolist`` does not convert."""

_PLAIN = frozenset({bool, float, int, str, type(None)})
"""Types of most members of containers."""

_BUILTINS = frozenset({"__main__", "builtins"})
_CONVERT = "Convert it to a dict, a list, a text or a number."
_REMEDIES = {
    "aiohttp.ClientResponse": "Return await response.json(), or await response.text().",
    "altair.TopLevelMixin": "Return content.Image(vl_convert.vegalite_to_png(chart.to_json())), or chart.to_dict().",
    "builtins.coroutine": "Write await before the call that returns it.",
    "django.Model": "Return django.forms.models.model_to_dict(instance), or a dict of its fields.",
    "django.QuerySet": "Return list(queryset.values()).",
    "duckdb.DuckDBPyRelation": "Call fetchall(), df() or pl() first, in the tool.",
    "httpx.Response": "Return response.json(), or response.text.",
    "httpx2.Response": "Return response.json(), or response.text.",
    "plotly.BaseFigure": 'Return content.Image(figure.to_image(format="png")), which needs kaleido.',
    "polars.LazyFrame": "Call collect() first.",
    "pandas.DataFrameGroupBy": "Aggregate it first, such as with sum().",
    "pandas.SeriesGroupBy": "Aggregate it first, such as with sum().",
    "requests.Response": "Return response.json(), or response.text.",
}
"""What to do with objects of a class and of its subclasses, by the library and the name of the class."""


def python_value(value: Any) -> Any:
    """Return the Python value that a number, an array or a table of another library stands for.

    Raises:
        PydanticSerializationError: The value is of another kind, or it has too many members.
    """
    kind: Any = type(value)
    if kind is bool:
        return value
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int.__int__(value)
    if isinstance(value, float):
        return float.__float__(value)
    convert = _conversion_of(kind)
    if convert is not None:
        return convert(value)
    if hasattr(kind, "__index__"):
        return operator.index(value)
    if isinstance(value, Real) and not isinstance(value, Rational):
        return float(value)
    raise PydanticSerializationError(_refusal(value))


def is_of_library(kind: Any) -> bool:
    """Return whether `python_value` converts the objects of a type, such as ``DataFrame`` and ``NDArray[float64]``."""
    kind = get_origin(kind) or kind
    return isinstance(kind, type) and _conversion_of(kind) is not None


def type_name(kind: type) -> str:
    """Return the name of a class for an error, with the module of a class that is not Python's own or the program's."""
    if kind.__module__ in _BUILTINS:
        return kind.__name__
    library = sys.modules.get(kind.__module__.partition(".")[0])
    if getattr(library, kind.__name__, None) is kind:
        return _library_name(kind)
    return f"{kind.__module__}.{kind.__name__}"


def remedy_for(kind: type) -> str | None:
    """Return what to do with an object that JSON can't carry, if that is known."""
    return next((_REMEDIES[name] for name in map(_library_name, kind.__mro__) if name in _REMEDIES), None)


def fields_of(kind: type) -> Mapping[str, Any] | None:
    """Return the fields of a pydantic model or a dataclass; None for other classes."""
    fields: Mapping[str, Any] | None = getattr(kind, "__pydantic_fields__", None)
    return getattr(kind, "__dataclass_fields__", None) if fields is None else fields


def with_python_values(value: Any) -> Any:
    """Return a value in whose dicts, lists, tuples, sets and objects each value of another library is a Python value.

    Raises:
        ValueError: The value contains an iterator, which pydantic may have read already, or itself.
        PydanticSerializationError: A key can't be written.
    """
    try:
        return _replaced(value)
    except RecursionError:
        raise ValueError("The value is nested too deep, or contains itself.") from None


def without_labels(value: Any) -> Any:
    """Return a value in whose dicts, lists and tuples a list stands for each Series with labels, without them.

    A value without such a Series is returned itself.
    """
    kind: Any = type(value)
    if isinstance(value, dict):
        members = {key: without_labels(member) for key, member in value.items()}
        return members if any(members[key] is not member for key, member in value.items()) else value
    if kind is list or kind is tuple:
        items = kind(map(without_labels, value))
        return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
    return _column(value) if has_labels(value) else value


def has_labels(value: Any) -> bool:
    """Return whether a value is a Series whose index has names or labels, and not row numbers alone."""
    kind: Any = type(value)
    return _conversion_of(kind) is _series_members and bool(_index_columns(value.index))


def by_label(series: Any) -> dict[str, Any]:
    """Return the values of a Series by their labels."""
    return dict(zip(map(_column_name, series.index), _column(series), strict=True))


def _replaced(value: Any) -> Any:
    if type(value) in _PLAIN:
        return value
    if isinstance(value, dict):
        return {_key(key): _replaced(member) for key, member in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_make"):
        return value._make(map(_replaced, value))
    if type(value) in {list, tuple, set, frozenset}:
        return type(value)(map(_replaced, value))
    kind: Any = type(value)
    if isinstance(value, Iterator) and not isinstance(value, IOBase):
        text = f"{type_name(kind)} inside another value can be read only once. Return a list instead."
        raise ValueError(text)  # noqa: TRY004 - the error of a value that can't be written
    if _conversion_of(kind) is None:
        return _with_python_fields(value)
    converted = python_value(value)
    return _replaced(converted) if str(getattr(value, "dtype", "")) == "object" else converted


def _with_python_fields(value: Any) -> Any:
    """Return an object whose fields have Python values: the object itself, or a copy if a field changes."""
    members = {name: getattr(value, name, None) for name in fields_of(type(value)) or ()}
    changed = {name: _replaced(member) for name, member in members.items() if is_of_library(type(member))}
    if not changed:
        return value
    copied = copy(value)
    for name, member in changed.items():
        object.__setattr__(copied, name, member)  # the class may be frozen
    return copied


def _key(key: Any) -> Any:
    kind: Any = type(key)
    return key if _conversion_of(kind) is None else python_value(key)


@functools.lru_cache(maxsize=1024)
def _conversion_of(kind: type) -> Convert | None:
    """Return the function that converts objects of a class of another library, or None."""
    for base in kind.__mro__:
        convert = _CONVERSIONS.get(_library_name(base))
        if convert is not None:
            return convert
    if hasattr(kind, "__array__") and hasattr(kind, "tolist"):
        return _array_members
    return None


def _library_name(kind: type) -> str:
    """Return the name of a class after that of its library, such as "pandas.DataFrame"."""
    return f"{kind.__module__.partition('.')[0]}.{kind.__name__}"


def _refusal(value: Any) -> str:
    kind = type(value)
    return f"JSON can't carry {type_name(kind)}. {remedy_for(kind) or _CONVERT}"


def _array_members(array: Any) -> Any:
    """Return the members of an array as lists, or the number that a scalar or an array without dimensions is."""
    name = str(getattr(array, "dtype", ""))
    _check_count(math.prod(array.shape), type(array))
    if name.endswith(_FINE_UNITS):
        array = array.astype(f"{name.partition('[')[0]}[us]")
    elif name in _WIDE_FLOATS:
        array = array.astype("float64")
    return array.tolist()


def _pandas_rows(frame: Any) -> list[dict[str, Any]]:
    """Return the rows of a DataFrame. An index with names or labels becomes columns, one of numbers does not.

    `set_index("day", drop=False)` keeps the column that it makes an index of. Such a column is there once.
    """
    _check_count(math.prod(frame.shape), type(frame))
    names = [_column_name(label) for label in frame.columns]
    columns = [_column(frame.iloc[:, position]) for position in range(len(names))]
    listed = dict(zip(names, columns, strict=True))
    levels = [(name, values) for name, values in _index_columns(frame.index) if listed.get(name) != values]
    return _rows([*levels, *zip(names, columns, strict=True)], len(frame), type(frame))


def _series_members(series: Any) -> list[Any]:
    """Return the values of a Series; with labels, rows as those of the table that ``reset_index`` makes."""
    values = _column(series)
    levels = _index_columns(series.index)
    if not levels:
        return values
    name = "value" if series.name is None else _column_name(series.name)
    if any(name == level for level, _ in levels):
        name = "value"
    return _rows([*levels, (name, values)], len(series), type(series))


def _index_columns(index: Any) -> list[tuple[str, list[Any]]]:
    """Return the names and the values of the columns that an index becomes."""
    if index.nlevels > 1:
        levels = [index.get_level_values(level) for level in range(index.nlevels)]
        return [
            (f"level_{number}" if level.name is None else _column_name(level.name), _column(level))
            for number, level in enumerate(levels)
        ]
    if index.name is not None:
        return [(_column_name(index.name), _column(index))]
    if _is_of_row_numbers(index):
        return []
    return [("index", _column(index))]


def _is_of_row_numbers(index: Any) -> bool:
    return str(index.dtype).startswith(("int", "uint"))


def _polars_rows(frame: Any) -> list[dict[str, Any]]:
    _check_count(frame.height * frame.width, type(frame))
    return _rows([(name, _column(frame[name])) for name in frame.columns], frame.height, type(frame))


def _arrow_rows(table: Any) -> list[dict[str, Any]]:
    _check_count(table.num_rows * table.num_columns, type(table))
    return _rows([(name, table.column(name).to_pylist()) for name in table.column_names], table.num_rows, type(table))


def _named_tuple(row: Any) -> dict[str, Any]:
    members: dict[str, Any] = row._asdict()
    return members


def _rows(columns: Sequence[tuple[str, list[Any]]], count: int, kind: type) -> list[dict[str, Any]]:
    """Return rows as dicts. Raise PydanticSerializationError if two columns have one name.

    Args:
        columns: The name and the values of each column.
        count: The number of rows.
        kind: The class of the table, for the error.
    """
    names = [name for name, _ in columns]
    equal = [name for name, number in Counter(names).items() if number > 1]
    if equal:
        listed = ", ".join(map(repr, equal))
        raise PydanticSerializationError(f"{type_name(kind)} has several columns named {listed}. Rename them.")
    if not columns:
        return [{} for _ in range(count)]
    return [dict(zip(names, row, strict=True)) for row in zip(*(values for _, values in columns), strict=True)]


def _column_name(label: Any) -> str:
    """Return the name of a column, which may be any object, such as a tuple of the names of several levels."""
    if isinstance(label, tuple):
        return "_".join(str(part) for part in label if part != "")
    return str(label)


def _column(series: Any) -> list[Any]:
    """Return the values of a Series or an Index. NaN, NaT and NA are None."""
    _check_count(len(series), type(series))
    return [_or_none(member) for member in series.to_list()]


def _or_none(value: Any) -> Any:
    if type(value) is float:
        return value if math.isfinite(value) else None
    kind: Any = type(value)
    return None if _conversion_of(kind) is _none else value


def _none(_value: Any) -> None:
    return


def _check_count(count: int, kind: type) -> None:
    if count > MAX_MEMBERS:
        raise PydanticSerializationError(
            f"{type_name(kind)} has {count:,} values, more than {MAX_MEMBERS:,}. Return fewer of them."
        )


def _members(values: Any) -> list[Any]:
    _check_count(len(values), type(values))
    return list(values)


_CONVERSIONS: dict[str, Convert] = {
    "builtins.memoryview": bytes,
    "array.array": _members,
    "asyncpg.Record": dict,
    "builtins.dict_items": _members,
    "builtins.dict_keys": _members,
    "builtins.dict_values": _members,
    "builtins.mappingproxy": dict,
    "builtins.range": _members,
    "pandas.DataFrame": _pandas_rows,
    "pandas.Index": _column,
    "pandas.Interval": str,
    "pandas.NAType": _none,
    "pandas.NaTType": _none,
    "pandas.Period": str,
    "pandas.Series": _series_members,
    "polars.DataFrame": _polars_rows,
    "polars.Series": _column,
    "pyarrow.RecordBatch": _arrow_rows,
    "pyarrow.Table": _arrow_rows,
    "sqlalchemy.Row": _named_tuple,
    "sqlalchemy.RowMapping": dict,
    "sqlite3.Row": dict,
}
"""The functions that convert objects of a class and of its subclasses, by the library and the name of the class."""

_ROWS: Any = {"type": "list", "items_schema": {"type": "dict", "keys_schema": {"type": "str"}}}
_LIST: Any = {"type": "list"}
_SCHEMAS: dict[str, Any] = {
    "numpy.bool": {"type": "bool"},
    "numpy.bool_": {"type": "bool"},
    "numpy.datetime64": {"type": "datetime"},
    "numpy.ndarray": _LIST,
    "numpy.timedelta64": {"type": "timedelta"},
    "pandas.DataFrame": _ROWS,
    "pandas.Index": _LIST,
    "pandas.Series": _LIST,
    "polars.DataFrame": _ROWS,
    "polars.Series": _LIST,
    "pyarrow.RecordBatch": _ROWS,
    "pyarrow.Table": _ROWS,
}
_PYTHON_TYPES: tuple[tuple[type, str], ...] = (
    (str, "str"),
    (Integral, "int"),
    (Real, "float"),
    (datetime, "datetime"),
    (timedelta, "timedelta"),
)


def python_schema(kind: Any) -> CoreSchema | None:
    """Return pydantic's core schema of the Python values that objects of another library's class become, or None."""
    if not isinstance(kind, type):
        return None
    for base in kind.__mro__:
        if _library_name(base) in _SCHEMAS:
            schema: CoreSchema = dict(_SCHEMAS[_library_name(base)])
            return schema
    if issubclass(kind, Rational) and not issubclass(kind, Integral):
        return None
    for base, name in _PYTHON_TYPES:
        if issubclass(kind, base):
            return {"type": name}
    return None
