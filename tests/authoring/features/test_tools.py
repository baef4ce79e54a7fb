# ruff: noqa: TC001 - tools are made of these hints at run time

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable
from decimal import Decimal
from typing import Annotated, Any, NoReturn

import pytest
from pydantic import BaseModel, Field, StringConstraints

from funcmcp._authoring.calling.feature_context import Context
from funcmcp._authoring.calling.services import Services
from funcmcp._authoring.features.decorators import features_of
from funcmcp._authoring.features.tools import ToolOptions, make_tool, tool
from funcmcp._authoring.results.content import Icon
from funcmcp._authoring.signatures.signature import Arguments, Header
from funcmcp._protocol.codec import encode
from funcmcp._protocol.headers import MirroredParameter
from funcmcp._server.calls.feature import DEFAULT_TIME_LIMIT, TimeLimit
from funcmcp._server.catalog.features import Tool
from funcmcp._server.catalog.registry import RegistrationError
from tests.authoring import tool_calls as calling
from tests.authoring.tool_calls import tool_of
from tests.patience import PATIENCE

pytestmark = [
    pytest.mark.every_python("Python's modules read signatures, annotations and docstrings."),
    pytest.mark.branches("Types of results lead to output schemas that leave something out."),
]


def AddNumbers(a: int, b: int) -> int:  # noqa: N802 - the point of the test
    """Add two numbers."""
    return a + b


def described(function: Any, **options: Any) -> dict[str, Any]:
    return dict(tool_of(function, **options).describe())


def test_a_bare_function_says_everything_itself() -> None:
    assert described(AddNumbers) == {
        "name": "add_numbers",
        "title": "Add Numbers",
        "description": "Add two numbers.",
        "inputSchema": {
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
            "required": ["a", "b"],
        },
        "outputSchema": {"type": "object", "properties": {"result": {"type": "integer"}}, "required": ["result"]},
    }


def test_the_whole_docstring_is_the_description_without_what_the_schema_says() -> None:
    def search(query: Annotated[str, Field(description="Its own words.")], limit: int, context: Context) -> None:
        """Search the archive.

        Use it for questions about the past:
          - of companies
          - of people

        Args:
            query: What to look for.
            limit: How many at most.
            context: Reports progress.

        Returns:
            Nothing at all.
        """

    definition = described(search)
    properties = definition["inputSchema"]["properties"]
    assert definition["description"] == (
        "Search the archive.\n\nUse it for questions about the past:\n  - of companies\n  - of people\n\n"
        "Args:\n    query: What to look for.\n    context: Reports progress.\n\nReturns:\n    Nothing at all."
    )
    assert properties["query"]["description"] == "Its own words."
    assert properties["limit"]["description"] == "How many at most."
    explicit = described(search, input_schema={"type": "object", "properties": {"query": {}, "limit": {}}})
    assert "limit: How many at most." in explicit["description"]


def test_tools_registered_in_a_loop_have_titles_from_their_own_names() -> None:
    def call_tool(query: str) -> str:
        return query

    titles = [described(call_tool, name=name)["title"] for name in ("list_all", "getOne", "deleteHTTPLog")]
    assert titles == ["List All", "Get One", "Delete HTTP Log"]


def test_options_go_before_what_the_function_says() -> None:
    definition = described(
        AddNumbers,
        name="sum",
        title="Sum",
        description="",
        read_only=True,
        destructive=False,
        idempotent=True,
        open_world=False,
        icons=[Icon("data:,"), {"src": "https://example.com/a.png"}],
        meta={"a": [1, None, {"b": True}]},
    )
    assert definition["name"] == "sum"
    assert definition["title"] == "Sum"
    assert "description" not in definition
    assert definition["annotations"] == {
        "title": "Sum",
        "readOnlyHint": True,
        "destructiveHint": False,
        "idempotentHint": True,
        "openWorldHint": False,
    }
    assert definition["icons"] == [{"src": "data:,"}, {"src": "https://example.com/a.png"}]
    assert definition["_meta"] == {"a": [1, None, {"b": True}]}


def test_only_hints_that_are_set_are_sent() -> None:
    assert described(AddNumbers, read_only=True)["annotations"] == {"readOnlyHint": True}
    assert "annotations" not in described(AddNumbers)


def test_a_description_is_made_once() -> None:
    made = tool_of(AddNumbers)
    assert made.describe() is made.describe()


def test_a_function_without_a_name_needs_one() -> None:
    with pytest.raises(RegistrationError, match="name="):
        tool_of(lambda: None)
    assert described(lambda: None, name="do_nothing")["title"] == "Do Nothing"


def test_a_name_in_snake_case_that_is_too_long_stays_as_it_is() -> None:
    def short() -> None: ...

    short.__name__ = "aB" * 64
    assert tool_of(short).name == "aB" * 64


@pytest.mark.parametrize("name", ["", "a b", "x" * 129, "echo\n", "größe", 5])
def test_a_bad_name_is_refused(name: Any) -> None:
    with pytest.raises(RegistrationError, match="is not a valid name of a tool"):
        tool_of(AddNumbers, name=name)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"meta": {"a": object()}}, "meta of add_numbers must be JSON"),
        ({"meta": {"a": float("inf")}}, "must be JSON"),
        ({"meta": {"a": (1,)}}, "sequences must be lists"),
        ({"meta": {1: "a"}}, "keys must be strings"),
        ({"meta": ["a"]}, "must be a dict"),
        ({"icons": [{"src": "x", "sizes": b"x"}]}, "icons of add_numbers must be JSON"),
        ({"icons": [{"src": b"x"}]}, "icons of add_numbers must be a list of Icon"),
        ({"icons": "x"}, "icons of add_numbers must be a list of Icon"),
        ({"icons": [Icon(5)]}, "icons of add_numbers must be a list of Icon"),  # type: ignore[arg-type]
        ({"title": 5}, "title of add_numbers must be a string, not int"),
        ({"title": "\ud800"}, "title of add_numbers contains a lone surrogate"),
        ({"description": 7}, "description of add_numbers must be a string, not int"),
        ({"read_only": "x"}, "read_only of add_numbers must be True or False, not str"),
        ({"lax": 1}, "lax of add_numbers must be True or False, not int"),
        ({"titel": "x"}, "Unknown option 'titel'"),
        ({"titel": "x", "name": "plus"}, "Unknown option 'titel' of 'plus'"),
        ({"timeout": 0}, "timeout"),
        ({"timeout": "5"}, "timeout"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(RegistrationError, match=words):
        tool_of(AddNumbers, **options)


def test_a_class_is_refused() -> None:
    with pytest.raises(RegistrationError, match="is a class"):
        tool_of(Services)


def test_a_tool_that_takes_the_context_is_interactive() -> None:
    def alone(a: int) -> Context | None: ...
    def with_context(a: int, *, it: Context | None = None) -> None: ...
    def unknown(a: Unknown, it: Context) -> None: ...  # type: ignore[name-defined]  # noqa: F821 - the point of the test
    def other_context(it: UnknownContext) -> None: ...  # type: ignore[name-defined]  # noqa: F821 - as above

    assert not tool_of(other_context).interactive
    assert not tool_of(alone).interactive
    assert tool_of(with_context).interactive
    assert tool_of(unknown).interactive


def test_the_time_limit_is_a_minute_unless_it_is_set() -> None:
    assert tool_of(AddNumbers).time_limit == DEFAULT_TIME_LIMIT
    assert tool_of(AddNumbers, timeout=None).time_limit is None
    assert tool_of(AddNumbers, timeout=0.5).time_limit == TimeLimit(0.5)
    with pytest.raises(AttributeError):
        tool_of(AddNumbers).time_limit = None  # type: ignore[misc]


class Place(BaseModel):
    region: Annotated[str, Header("Region")]
    floor: Annotated[int | None, Header("Floor")] = None


def test_marked_arguments_are_mirrored_and_in_the_schema() -> None:
    def stock(place: Place, shop: Annotated[str, Header("Shop")], plain: str) -> None: ...
    def spread(place: Arguments[Place]) -> None: ...

    made = tool_of(stock)
    assert sorted(made.mirrored, key=lambda mark: mark.header) == [
        MirroredParameter("mcp-param-floor", ("place", "floor")),
        MirroredParameter("mcp-param-region", ("place", "region")),
        MirroredParameter("mcp-param-shop", ("shop",)),
    ]
    assert made.describe()["inputSchema"]["properties"]["shop"] == {"type": "string", "x-mcp-header": "Shop"}
    assert MirroredParameter("mcp-param-region", ("region",)) in tool_of(spread).mirrored


def test_marks_in_a_hand_written_schema_count_too() -> None:
    def tool(arguments: dict[str, Any]) -> None: ...

    schema = {"type": "object", "properties": {"a": {"type": "string", "x-mcp-header": "A"}}}
    assert tool_of(tool, input_schema=schema).mirrored == (MirroredParameter("mcp-param-a", ("a",)),)
    schema["properties"]["a"]["type"] = "array"  # type: ignore[index]
    with pytest.raises(RegistrationError, match="string, integer or boolean"):
        tool_of(tool, input_schema=schema)


def test_a_mark_that_breaks_a_rule_is_refused() -> None:
    def space(a: Annotated[str, Header("a b")]) -> None: ...
    def twice(a: Annotated[str, Header("X")], b: Annotated[str, Header("x")]) -> None: ...
    def number(a: Annotated[float, Header("X")]) -> None: ...
    def in_list(a: list[Annotated[str, Header("X")]]) -> None: ...

    class NotJSON: ...

    def unknown(a: Annotated[NotJSON, Header("X")]) -> None: ...

    for function, words in (
        (space, "token"),
        (twice, "twice"),
        (number, "string, integer or boolean"),
        (in_list, "nested 'properties'"),
        (unknown, "JSON"),
    ):
        with pytest.raises(RegistrationError, match=words):
            tool_of(function)


def test_a_service_beside_a_mark_may_still_be_registered_later() -> None:
    class Later: ...

    def stock(region: Annotated[str, Header("Region")], later: Later) -> None: ...

    services = Services()
    made = tool_of(stock, services)
    services.register_value(Later, Later())
    assert list(made.describe()["inputSchema"]["properties"]) == ["region"]


@pytest.mark.parametrize(
    ("annotation", "reason"),
    [
        (
            Annotated[str, Field(pattern="(?=a)b")],
            "look-around, including look-ahead and look-behind, is not supported",
        ),
        (Annotated[str, Field(pattern="(a)\\1")], "backreferences are not supported"),
        (Annotated[str, StringConstraints(pattern="(")], "unclosed group"),
        (list[Annotated[str, Field(pattern="(?=a)b")]], "look-around"),
        (Annotated[str, Field(pattern=r"\Aa\Z")], r"unrecognized escape sequence. Write \z for the end of the text."),
        (Annotated[str, Field(pattern="(a{900}){900}")], "Compiled regex exceeds size limit"),
    ],
)
def test_a_pattern_for_the_wrong_engine_is_refused(annotation: Any, reason: str) -> None:
    def search(text: Any) -> Any: ...

    search.__annotations__ = {"text": annotation}
    with pytest.raises(RegistrationError) as raised:
        tool_of(search)
    start = "The parameter 'text' of search has a pattern that the linear regular expression engine can't compile: "
    assert str(raised.value).startswith(start + reason)


def test_a_pattern_in_a_field_of_a_dataclass_is_checked_too() -> None:
    from dataclasses import dataclass

    @dataclass
    class Query:
        text: str

    Query.__annotations__["text"] = Annotated[str, Field(pattern="(?=a)b")]

    def search(query: Query) -> None: ...

    with pytest.raises(RegistrationError, match="pattern"):
        tool_of(search)


class Base:
    @tool("first", read_only=True)
    def one(self) -> str:
        return "base one"

    @tool
    def two(self) -> str:
        return "base two"

    @tool
    def dropped(self) -> str:
        return "dropped"


class Word(str): ...  # noqa: SLOT000 - a service, and no more


class Greeter(Base):
    def __init__(self, word: Word = Word("hello")) -> None:  # noqa: B008 - a constant
        self.word = word
        self.calls = 0

    @tool
    async def greet(self, name: str) -> str:
        """Greet someone."""
        self.calls += 1
        return f"{self.word} {name} {self.calls}"

    @tool(name="still")
    @staticmethod
    def static(a: int) -> int:
        return a

    @staticmethod
    @tool
    def static_too(a: int) -> int:
        return a

    @tool
    @classmethod
    def of_class(cls) -> str:
        return cls.__name__

    def two(self) -> str:
        return "not a tool any more"

    @tool
    def dropped(self) -> str:
        return "overridden"

    def unmarked(self) -> None: ...


async def run(made: Tool, arguments: dict[str, Any] | None = None) -> str:
    result = await calling.run(made, arguments)
    return str(result["content"][0]["text"])


async def test_a_class_is_constructed_for_each_call_with_its_services() -> None:
    services = Services()
    services.register_value(Word, Word("hi"))
    tools = {made.name: made for made in features_of(Greeter, services)}
    assert list(tools) == ["first", "dropped", "greet", "still", "static_too", "of_class"]
    assert await run(tools["greet"], {"name": "Ada"}) == "hi Ada 1"
    assert await run(tools["greet"], {"name": "Ada"}) == "hi Ada 1"
    assert await run(tools["first"]) == "base one"
    assert await run(tools["dropped"]) == "overridden"
    assert await run(tools["still"], {"a": 1}) == "1"
    assert await run(tools["static_too"], {"a": 1}) == "1"
    assert await run(tools["of_class"]) == "Greeter"
    assert tools["greet"].describe()["description"] == "Greet someone."
    assert tools["first"].describe()["annotations"] == {"readOnlyHint": True}


async def test_an_object_is_used_as_it_is() -> None:
    tools = {made.name: made for made in features_of(Greeter(Word("hey")), Services())}
    assert await run(tools["greet"], {"name": "Ada"}) == "hey Ada 1"
    assert await run(tools["greet"], {"name": "Ada"}) == "hey Ada 2"


def test_a_class_without_marks_has_no_tools() -> None:
    assert features_of(Services, Services()) == []


async def test_a_marked_method_stays_callable_as_it_was() -> None:
    assert Base().two() == "base two"
    assert await Greeter().greet("Ada") == "hello Ada 1"
    assert Greeter.static(5) == 5
    assert Greeter.of_class() == "Greeter"


def test_a_name_is_given_once() -> None:
    with pytest.raises(RegistrationError, match="once"):
        tool("a", name="b")


def test_registering_builds_no_validator_and_loads_no_pydantic() -> None:
    code = (
        "import sys\nfrom funcmcp._authoring.calling.services import Services\n"
        "from funcmcp._authoring.features.tools import ToolOptions, make_tool\n"
        "async def add(a: int, b: int) -> int:\n    '''Add.'''\n    return a + b\n"
        "make_tool(add, ToolOptions(read_only=True), Services())\n"
        "heavy = {'pydantic', 'svcs', 'jsonschema_rs', 'email_validator'}\n"
        "assert not heavy & sys.modules.keys(), heavy & sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=PATIENCE)


def test_a_made_tool_is_what_the_server_knows() -> None:
    assert isinstance(make_tool(AddNumbers, ToolOptions(), Services()), Tool)


if sys.version_info < (3, 12):
    from typing import TypedDict as OldTypedDict

    class Old(OldTypedDict):
        x: int

    TOO_OLD: list[Any] = [Old, list[Old]]
else:
    TOO_OLD = []


@pytest.mark.parametrize(
    "annotation",
    [Callable[[int], int], list[Callable[..., Any]], type, type[int], range, NoReturn, dict[str, range], *TOO_OLD],
)
def test_a_type_that_can_never_be_json_is_refused_at_once(annotation: Any) -> None:
    def tool(it: Any) -> None: ...

    tool.__annotations__["it"] = annotation
    with pytest.raises(RegistrationError, match="The parameter 'it' of tool is "):
        tool_of(tool)
    tool.__annotations__ = {"return": annotation}
    with pytest.raises(RegistrationError, match="tool is annotated to return "):
        tool_of(tool)


@pytest.mark.parametrize("annotation", [AsyncIterator[int], AsyncGenerator[int, None], list[AsyncIterable[int]]])
def test_an_asynchronous_iterator_is_no_result(annotation: Any) -> None:
    def tool() -> None: ...

    tool.__annotations__["return"] = annotation
    with pytest.raises(RegistrationError, match="tool is annotated to return Async"):
        tool_of(tool)


def test_a_service_may_be_of_a_type_that_is_no_json() -> None:
    services = Services()
    services.register_value(range, range(3))

    def tool(it: range) -> None: ...

    assert tool_of(tool, services).describe()["inputSchema"] == {"type": "object", "properties": {}}


@pytest.mark.parametrize("default", [float("inf"), float("nan"), Decimal("Infinity")])
def test_a_default_that_json_can_not_say_is_left_out_of_the_schema(default: Any) -> None:
    class Limits(BaseModel):
        most: float = float("inf")

    def limit(a: float = default, b: Limits | None = None) -> None: ...

    assert b"default" not in encode(tool_of(limit).describe())


@pytest.mark.parametrize(
    ("hint", "default", "type_name"),
    [
        (int, "ten", "int"),
        (int | None, 1.5, "int"),
        (str, 5, "str"),
        (bool, 1, "bool"),
        (float | bool, "x", "float | bool"),
    ],
)
def test_a_default_that_does_not_fit_its_annotation_is_refused_at_registration(
    hint: Any, default: Any, type_name: str
) -> None:
    def search(limit: Any = default) -> None: ...

    search.__annotations__["limit"] = hint
    with pytest.raises(RegistrationError) as caught:
        tool_of(search)
    assert f"'limit' of search has the default {default!r}, which is not of its type {type_name}." in str(caught.value)


@pytest.mark.parametrize(
    ("hint", "default"),
    [(int, None), (float, 1), (int, True), (Annotated[int, "text"], 1), (list[str], ()), (int | str, "x"), (Any, 1)],
)
def test_a_default_that_fits_or_may_mean_something_is_taken(hint: Any, default: Any) -> None:
    def search(limit: Any = default) -> None: ...

    search.__annotations__["limit"] = hint
    assert tool_of(search).name == "search"


def test_an_argument_that_a_header_repeats_has_no_null() -> None:
    def stock(floor: Annotated[int | None, Header("Floor")] = 5) -> None: ...

    properties = tool_of(stock).describe()["inputSchema"]["properties"]
    assert properties == {"floor": {"type": "integer", "default": 5, "x-mcp-header": "Floor"}}


def test_a_tool_lists_what_its_schemas_leave_out() -> None:
    def find(code: Annotated[str, Field(pattern="(?x)a")]) -> None: ...

    path = ("inputSchema", "properties", "code", "pattern")
    assert tool_of(find).left_out() == [(path, "(?x)a", "ECMA-262 does not have the flags (?x)")]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"max_timeout": 0}, "must be a number of seconds above 0; got 0"),
        ({"max_timeout": True}, "must be a number of seconds above 0; got True"),
        ({"max_timeout": 60}, "must be at least its timeout of 600 seconds"),
        ({"max_timeout": 60, "timeout": None}, "has no effect without timeout="),
        ({"max_timeout": 3600, "task": "optional"}, "has no effect without timeout="),
    ],
)
def test_a_wrong_longest_time_is_refused(options: dict[str, Any], text: str) -> None:
    with pytest.raises(RegistrationError, match=text):
        tool_of(AddNumbers, **options)


def test_the_longest_time_is_part_of_the_time_limit() -> None:
    assert tool_of(AddNumbers, max_timeout=700).time_limit == DEFAULT_TIME_LIMIT._replace(longest=700)
    assert tool_of(AddNumbers, timeout=5, max_timeout=6).time_limit == TimeLimit(5, longest=6)
