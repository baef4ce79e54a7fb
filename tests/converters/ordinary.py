"""Ordinary tools: one for each kind of type in the guide to tools, with the arguments of a call.

The functions belong to no framework. Three modules serve them: `ordinary_funcmcp`, `ordinary_fastmcp` and
`ordinary_sdk`. Nothing is imported here but pydantic, so that the module works in the environment of each.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, IntEnum
from ipaddress import IPv4Address
from typing import Annotated, Any, Literal, NamedTuple, NotRequired
from uuid import UUID

from pydantic import AnyUrl, AwareDatetime, BaseModel, ConfigDict, Field
from typing_extensions import TypedDict

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
    "1f15c4890000000d49444154789c636060606000000005000178ad2a4f0000000049454e44ae426082"
)


class Color(Enum):
    RED = "red"
    GREEN = "green"


class Size(IntEnum):
    SMALL = 1
    LARGE = 2


class Address(BaseModel):
    street: str = Field(description="Street and number.")
    city: str
    floor: int | None = None


class Person(BaseModel):
    """A person."""

    name: str
    age: Annotated[int, Field(ge=0, le=150)] = 30
    addresses: list[Address] = []


class Ticket(BaseModel):
    model_config = ConfigDict(extra="forbid")

    code: str = Field(min_length=1, max_length=20)


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int = 9


class Dog(BaseModel):
    kind: Literal["dog"]
    breed: str


class Folder(BaseModel):
    name: str
    folders: list["Folder"] = []


@dataclass
class Point:
    x: float
    y: float
    label: str = ""


class Pair(NamedTuple):
    left: int
    right: str


class Options(TypedDict):
    depth: int
    color: NotRequired[Color]


@dataclass(frozen=True)
class Ordinary:
    """A tool, and the arguments of a call that succeeds.

    Attributes:
        function: What the author wrote.
        arguments: Arguments as JSON.
    """

    function: Callable[..., Any]
    arguments: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The tool's name."""
        return self.function.__name__


TOOLS: list[Ordinary] = []


def ordinary(**arguments: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that adds a function to `TOOLS`."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        TOOLS.append(Ordinary(function, arguments))
        return function

    return decorate


@ordinary()
def no_arguments() -> str:
    """Take no arguments."""
    return "done"


@ordinary(text="a", number=1, fraction=0.5, switch=True)
def scalars(text: str, number: int, fraction: float, switch: bool) -> str:
    """Take one of each scalar.

    Args:
        text: Some text.
        number: A whole number.
        fraction: A number.
        switch: On or off.
    """
    return f"{text} {number} {fraction} {switch}"


@ordinary(text="a")
def defaulted(text: str = "x", number: int = 3, fraction: float = 0.5, switch: bool = False) -> dict[str, Any]:
    """Have defaults."""
    return {"text": text, "number": number, "fraction": fraction, "switch": switch}


@ordinary(query="a", limit=5)
def optional_arguments(query: str, limit: int | None = None, color: Color | None = None) -> str:
    """Take arguments that may be absent."""
    return f"{query} {limit} {color}"


@ordinary(note="a")
def required_null(note: str | None) -> str:
    """Take an argument that is required and may be null."""
    return str(note)


@ordinary(color="red")
def enum_member(color: Color) -> Color:
    """Take a member of an enum."""
    return color


@ordinary(size=2)
def integer_enum(size: Size) -> int:
    """Take a member of an enum of integers."""
    return int(size)


@ordinary(unit="km")
def literal(unit: Literal["km", "mile"] = "km") -> str:
    """Take one of several texts."""
    return unit


@ordinary(level=1)
def integer_literal(level: Literal[1, 2, 3]) -> int:
    """Take one of several numbers."""
    return level


@ordinary(value=3)
def union(value: int | str) -> str:
    """Take a number or a text."""
    return str(value)


@ordinary(value=[1, 2])
def union_with_list(value: int | list[int]) -> int:
    """Take a number or several."""
    return sum(value) if isinstance(value, list) else value


@ordinary(texts=["a", "b"])
def text_list(texts: list[str]) -> list[str]:
    """Take a list of texts."""
    return texts


@ordinary(numbers=[1, None])
def nullable_list(numbers: list[int | None]) -> list[int | None]:
    """Take a list that may contain null."""
    return numbers


@ordinary(rows=[[1.0, 2.0], [3.0]])
def nested_list(rows: list[list[float]]) -> list[list[float]]:
    """Take rows of numbers."""
    return rows


@ordinary(tags=["a", "b"])
def text_set(tags: set[str]) -> list[str]:
    """Take a set."""
    return sorted(tags)


@ordinary(pair=["a", 1])
def fixed_tuple(pair: tuple[str, int]) -> tuple[str, int]:
    """Take a tuple of two types."""
    return pair


@ordinary(numbers=[1, 2, 3])
def open_tuple(numbers: tuple[int, ...]) -> int:
    """Take a tuple of any length."""
    return sum(numbers)


@ordinary(pair={"left": 1, "right": "a"})
def named_tuple(pair: Pair) -> str:
    """Take a NamedTuple."""
    return f"{pair.left}{pair.right}"


@ordinary(data={"a": 1})
def bare_dict(data: dict) -> dict:  # type: ignore[type-arg]
    """Take an object of any members."""
    return data


@ordinary(counts={"a": 1})
def typed_dict(counts: dict[str, int]) -> dict[str, int]:
    """Take an object of numbers."""
    return counts


@ordinary(people={"a": {"name": "Ada"}})
def model_dict(people: dict[str, Person]) -> int:
    """Take an object of objects."""
    return len(people)


@ordinary(options={"depth": 1, "color": "green"})
def typed_dict_class(options: Options) -> Options:
    """Take a TypedDict."""
    return options


@ordinary(person={"name": "Ada", "addresses": [{"street": "Main Street 1", "city": "London"}]})
def nested_model(person: Person) -> Person:
    """Take a model with models in it."""
    return person


@ordinary(people=[{"name": "Ada"}])
def model_list(people: list[Person]) -> list[Person]:
    """Take a list of models."""
    return people


@ordinary(address={"street": "Main Street 1", "city": "London"})
def optional_model(address: Address | None = None) -> Address | None:
    """Take a model that may be absent."""
    return address


@ordinary(ticket={"code": "a"})
def strict_model(ticket: Ticket) -> str:
    """Take a model without other members."""
    return ticket.code


@ordinary(point={"x": 1, "y": 2})
def dataclass_argument(point: Point) -> Point:
    """Take a dataclass."""
    return point


@ordinary(pet={"kind": "dog", "breed": "Poodle"})
def discriminated_union(pet: Annotated[Cat | Dog, Field(discriminator="kind")]) -> str:
    """Take one of two models."""
    return pet.kind


@ordinary(pets=[{"kind": "cat"}])
def discriminated_list(pets: list[Annotated[Cat | Dog, Field(discriminator="kind")]]) -> int:
    """Take a list of two models."""
    return len(pets)


@ordinary(folder={"name": "a", "folders": [{"name": "b"}]})
def recursive_model(folder: Folder) -> int:
    """Take a model that contains itself."""
    pending, count = [folder], 0
    while pending:
        pending += pending.pop().folders
        count += 1
    return count


@ordinary(day="2026-11-25", at="2026-11-25T08:00:00Z", clock="08:00:00Z", lasts="PT5M")
def dates(day: date, at: AwareDatetime, clock: time, lasts: timedelta) -> str:
    """Take dates and times."""
    return f"{day} {at} {clock} {lasts}"


@ordinary(since="2026-11-25")
def optional_date(since: date | None = None) -> date | None:
    """Take a date that may be absent."""
    return since


@ordinary(identifier="7f0c7a3c-4d2e-4a6a-9a51-6a1f0c7b2d11", link="https://example.com/", address="192.0.2.1")
def identifiers(identifier: UUID, link: AnyUrl, address: IPv4Address) -> str:
    """Take a UUID, a URL and an address."""
    return f"{identifier} {link} {address}"


@ordinary(price=19.5)
def decimal(price: Decimal) -> Decimal:
    """Take a decimal number."""
    return price


@ordinary(percent=50, code="AB-12", items=["a"], ratio=0.5)
def constraints(
    percent: Annotated[int, Field(ge=0, le=100, multiple_of=5)],
    code: Annotated[str, Field(pattern=r"^[A-Z]{2}\-\d{2}$", max_length=5)],
    items: Annotated[list[str], Field(min_length=1, max_length=3)],
    ratio: Annotated[float, Field(gt=0, lt=1)],
) -> str:
    """Take arguments within limits."""
    return f"{percent} {code} {items} {ratio}"


@ordinary(anything={"a": [1, None]})
def any_value(anything: Any) -> str:
    """Take any value."""
    return str(anything)


@ordinary(content="aGVsbG8=")
def bytes_argument(content: bytes) -> int:
    """Take bytes."""
    return len(content)


@ordinary()
def structured_result() -> Person:
    """Return a model."""
    return Person(name="Ada", addresses=[Address(street="Main Street 1", city="London")])


@ordinary()
def optional_result() -> Person | None:
    """Return a model or nothing."""
    return None


@ordinary()
def union_result() -> Cat | Dog:
    """Return one of two models."""
    return Cat(kind="cat")


@ordinary()
def date_result() -> datetime:
    """Return a date with a time."""
    return datetime(2026, 11, 25, 8, tzinfo=UTC)


@ordinary()
def naive_date_result() -> datetime:
    """Return a date with a time and no time zone."""
    return datetime(2026, 11, 25, 8)  # noqa: DTZ001 - authors do


@ordinary()
def duration_result() -> timedelta:
    """Return a duration."""
    return timedelta(days=1, seconds=1, milliseconds=500)


@ordinary()
def tuple_result() -> tuple[int, str]:
    """Return a tuple."""
    return 1, "a"


@ordinary()
def integer_keys_result() -> dict[int, str]:
    """Return a mapping of numbers."""
    return {1: "a"}


@ordinary()
def pattern_result() -> Annotated[str, Field(pattern=r"^\d{3}\-\d{4}$")]:
    """Return a text of a form."""
    return "555-0100"


@ordinary()
def no_result() -> None:
    """Return nothing."""


def picture_tools(image: type, make_image: Callable[[bytes], Any]) -> list[Ordinary]:
    """Return the tools whose results are pictures.

    Args:
        image: A framework's class of pictures.
        make_image: Makes such a picture from the bytes of a PNG file.
    """

    def picture() -> image:  # type: ignore[valid-type]
        """Return a picture."""
        return make_image(PNG)  # type: ignore[no-any-return]

    def pictures() -> list:  # type: ignore[type-arg]
        """Return a text and two pictures."""
        return ["Two pictures", make_image(PNG), make_image(PNG)]

    return [Ordinary(picture), Ordinary(pictures)]


def report() -> str:
    """Read a report."""
    return "All is well."


def suggest(topic: str, tone: str = "friendly") -> str:
    """Suggest a text.

    Args:
        topic: What the text is about.
        tone: How it sounds.
    """
    return f"Write a {tone} text about {topic}."
