"""The names in the source of generated tools, and the form in which values are compared.

FastMCP's process imports this module, too. It has nothing of funcmcp but what loads pydantic alone.
"""

# ruff: noqa: F401 - generated source uses the names

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from types import MappingProxyType
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, Optional, Union
from uuid import UUID

from pydantic import (
    UUID4,
    AnyUrl,
    AwareDatetime,
    Base64Bytes,
    BaseModel,
    BeforeValidator,
    ByteSize,
    ConfigDict,
    Discriminator,
    EmailStr,
    Field,
    Json,
    NaiveDatetime,
    OnErrorOmit,
    PlainSerializer,
    RootModel,
    SecretStr,
    Tag,
    WrapValidator,
)
from pydantic_core import PydanticSerializationUnexpectedValue
from typing_extensions import TypedDict

from funcmcp import Format


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Access(enum.Flag):
    READ = 1
    WRITE = 2


class Mixed(enum.Enum):
    ONE = 1
    TWO = "two"


class Octets(BaseModel):
    model_config = ConfigDict(val_json_bytes="hex", ser_json_bytes="hex")
    data: bytes


class Count(int):
    """An integer of another class, as those of libraries."""


class Ratio(float):
    """A float of another class."""


class Name(str):
    __slots__ = ()


@dataclass
class Pair:
    first: int
    second: float


Key = int
"""An integer as the key of a dict, which is a text in JSON."""

TaggedUnion = Union
"""A union whose members for texts need not come first, because its discriminator chooses."""

KINDS_OF_JSON = ("object", "text", "number")


def kind_of_json(value: Any) -> str | None:
    """Return the tag of a member of a union."""
    if isinstance(value, str):
        return "text"
    if isinstance(value, int | float) and not isinstance(value, bool):
        return "number"
    return "object" if isinstance(value, dict | BaseModel) else None


def same(value: Any) -> Any:
    """Return a value, as a validator that runs before the type's own."""
    return value


def or_one(value: Any, validate: Callable[[Any], Any]) -> Any:
    """Return 1 for a value that does not fit."""
    try:
        return validate(value)
    except ValueError:
        return 1


def as_text(value: Any) -> str:
    """Return a number as text, as a serializer does."""
    if not isinstance(value, int):
        raise PydanticSerializationUnexpectedValue("The value belongs to another member of a union.")
    return str(value)


def tool_of(source: str, names: Mapping[str, Any] = MappingProxyType({})) -> tuple[Callable[..., Any], list[str]]:
    """Execute the source of a signature, and return the function and the list of what it receives.

    Args:
        source: The source, in which the function has the name ``tool``.
        names: Names that replace those of this module.
    """
    received: list[str] = []
    module = {**globals(), **names, "received": received}
    exec(compile(source, "<signature>", "exec", dont_inherit=True), module)
    return module["tool"], received


def comparable(value: Any) -> str:
    """Return a text that is equal for equal values of the same types, in each process."""
    if isinstance(value, Iterator):
        return comparable(list(value))
    if isinstance(value, BaseModel | dict):
        members = {repr(name): member for name, member in dict(value).items()}
    elif is_dataclass(value):
        members = {field.name: getattr(value, field.name) for field in fields(value)}
    elif hasattr(value, "_asdict"):
        members = value._asdict()
    elif isinstance(value, list | tuple | set | frozenset):
        texts = list(map(comparable, value))
        return f"{_name(value)}({', '.join(texts if isinstance(value, list | tuple) else sorted(texts))})"
    elif isinstance(value, datetime | time):
        return f"{_name(value)}({value.isoformat()})"
    elif isinstance(value, Decimal):
        return f"Decimal({value.normalize()})"
    else:
        return f"{_name(value)}({value!r})"
    return f"{_name(value)}({', '.join(f'{name}: {comparable(member)}' for name, member in members.items())})"


def _name(value: Any) -> str:
    return type(value).__name__
