"""Resources and lists of resources from Python functions."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Awaitable, Callable, Sequence
from datetime import date
from decimal import Decimal
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, BeforeValidator, Discriminator, Field, RootModel, Tag
from typing_extensions import TypedDict

from funcmcp import Context, MCPServer, RegistrationError, ResourceNotFound, ToolError
from funcmcp._authoring.features.resources import resource
from funcmcp._authoring.results.content import Contents, Icon, Image, ResourceInfo, Text
from funcmcp._authoring.signatures.signature import Arguments
from funcmcp._serving.composition import runtime_of
from tests import schemas
from tests.authoring.models import Colour, CreateOrder, Level
from tests.server.parts import NEWEST, PER_REQUEST, Recorder, answer, context

EVERY_REVISION = pytest.mark.parametrize("revision", schemas.REVISIONS)


@pytest.fixture
def mcp() -> MCPServer:
    return MCPServer("menu")


async def ask(mcp: MCPServer, method: str, params: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    message: dict[str, Any] = await answer(runtime_of(mcp).server, context(method, params, **more))
    return message


async def read(mcp: MCPServer, uri: str, **more: Any) -> list[dict[str, Any]]:
    """Read a URI and return its contents."""
    contents: list[dict[str, Any]] = (await ask(mcp, "resources/read", {"uri": uri}, **more))["result"]["contents"]
    return contents


async def text_of(mcp: MCPServer, uri: str) -> str:
    (contents,) = await read(mcp, uri)
    text: str = contents["text"]
    return text


async def refusal(mcp: MCPServer, uri: str) -> dict[str, Any]:
    error: dict[str, Any] = (await ask(mcp, "resources/read", {"uri": uri}))["error"]
    return error


async def listed(mcp: MCPServer, revision: str = NEWEST) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await ask(mcp, "resources/list", revision=revision))["result"]["resources"]
    return found


class DishDict(TypedDict):
    name: str


class Unreadable:
    """What is no JSON."""


class Dish(BaseModel):
    dish_name: str = Field(alias="dishName")
    price: Decimal


class Photo(BaseModel):
    data: bytes
    price: Decimal


PHOTO = Photo(data=b"\xff\xfe\xfb", price=Decimal("1.50"))


@pytest.mark.parametrize(
    ("annotation", "value", "text"),
    [
        (Photo, PHOTO, '{"data":"//77","price":1.5}'),
        (Photo | None, PHOTO, '{"data":"//77","price":1.5}'),
        (list[Photo], [PHOTO], '[{"data":"//77","price":1.5}]'),
        (Awaitable[Photo], PHOTO, '{"data":"//77","price":1.5}'),
        (Photo, {"data": "//77", "price": 1.5}, '{"data":"//77","price":1.5}'),
        (Photo, {"data": b"\xff\xfe\xfb", "price": 1.5}, '{"data":"//77","price":1.5}'),
        (dict[str, Decimal], {"fish": Decimal("1.50")}, '{"fish":1.5}'),
        (dict[str, Any], {"fish": Decimal("1.50"), "data": b"\xff"}, '{"fish":"1.50","data":"_w=="}'),
        (str | dict[str, Decimal], {"fish": Decimal("1.50")}, '{"fish":"1.50"}'),
        (date, date(2026, 7, 28), '"2026-07-28"'),
    ],
)
async def test_json_is_written_as_the_annotation_says_as_in_tools(
    mcp: MCPServer, annotation: Any, value: Any, text: str
) -> None:
    async def photo():  # type: ignore[no-untyped-def]
        return value

    photo.__annotations__["return"] = annotation
    mcp.resource("photo://1")(photo)
    [contents] = await read(mcp, "photo://1")
    assert (contents["mimeType"], contents["text"]) == ("application/json", text)


async def test_what_is_not_as_the_annotation_says_is_a_failure(
    mcp: MCPServer, caplog: pytest.LogCaptureFixture
) -> None:
    @mcp.resource("photo://1")
    async def photo() -> dict[str, int]:
        return {"price": "much"}  # type: ignore[dict-item]

    assert (await refusal(mcp, "photo://1"))["code"] == -32603
    assert "photo returned what its annotation does not allow" in caplog.text


async def test_a_type_that_is_nothing_in_json_is_told_where_lists_are_made(mcp: MCPServer) -> None:
    @mcp.resource("photo://1")
    async def photo() -> Unreadable:
        return Unreadable()

    with pytest.raises(RegistrationError, match="What photo returns has a type that JSON can't carry"):
        next(iter(runtime_of(mcp).server.catalog.resources)).describe()


@EVERY_REVISION
@pytest.mark.parametrize(
    ("value", "contents"),
    [
        ("Fish", {"mimeType": "text/plain", "text": "Fish"}),
        ("", {"mimeType": "text/plain", "text": ""}),
        (b"\x00\xff", {"mimeType": "application/octet-stream", "blob": "AP8="}),
        (bytearray(b"\x00"), {"mimeType": "application/octet-stream", "blob": "AA=="}),
        ({"a": [1, None]}, {"mimeType": "application/json", "text": '{"a":[1,null]}'}),
        ([1, 2], {"mimeType": "application/json", "text": "[1,2]"}),
        ([], {"mimeType": "application/json", "text": "[]"}),
        (5, {"mimeType": "application/json", "text": "5"}),
        (False, {"mimeType": "application/json", "text": "false"}),
        (
            Dish(dishName="Fish", price=Decimal("1.5")),
            {"mimeType": "application/json", "text": '{"dishName":"Fish","price":"1.5"}'},
        ),
        (
            {"at": date(2026, 7, 28)},
            {"mimeType": "application/json", "text": '{"at":"2026-07-28"}'},
        ),
        (Contents("Fish"), {"mimeType": "text/plain", "text": "Fish"}),
        (Contents(blob=b""), {"mimeType": "application/octet-stream", "blob": ""}),
        (
            Contents(blob=b"\xff", uri="menu://other", mime_type="image/png", meta={"a": 1}),
            {"uri": "menu://other", "mimeType": "image/png", "blob": "/w==", "_meta": {"a": 1}},
        ),
    ],
)
async def test_what_a_function_returns_is_what_the_resource_holds(
    mcp: MCPServer, revision: str, value: object, contents: dict[str, Any]
) -> None:
    mcp.resource("menu://today", name="today")(lambda: value)
    assert await read(mcp, "menu://today", revision=revision) == [{"uri": "menu://today", **contents}]


@pytest.mark.parametrize("value", ["Fish", b"Fish", {"a": 1}, Contents("Fish")])
async def test_the_authors_media_type_goes_before_the_default(mcp: MCPServer, value: object) -> None:
    mcp.resource("menu://today", name="today", mime_type="text/markdown")(lambda: value)
    assert (await read(mcp, "menu://today"))[0]["mimeType"] == "text/markdown"


async def test_several_contents_come_in_one_read(mcp: MCPServer) -> None:
    @mcp.resource("menu://week", mime_type="text/plain")
    def week() -> list[Contents]:
        return [Contents("Fish", uri="menu://week/1"), Contents("Chips"), Contents(blob=b"", mime_type="image/png")]

    assert await read(mcp, "menu://week") == [
        {"uri": "menu://week/1", "mimeType": "text/plain", "text": "Fish"},
        {"uri": "menu://week", "mimeType": "text/plain", "text": "Chips"},
        {"uri": "menu://week", "mimeType": "image/png", "blob": ""},
    ]


async def test_nothing_is_not_found(mcp: MCPServer) -> None:
    @mcp.resource("menu://{dish}")
    async def dish(dish: str) -> str | None:
        if dish == "unicorn":
            raise ResourceNotFound(f"menu://{dish}")
        return None

    for uri in ("menu://fish", "menu://unicorn"):
        assert await refusal(mcp, uri) == {"code": -32002, "message": "Resource not found", "data": {"uri": uri}}


@pytest.mark.parametrize("value", [object(), {"a": object()}, {"a": float("nan")}, [Contents("a"), "b"]])
async def test_what_json_cannot_say_is_an_internal_error(mcp: MCPServer, value: object) -> None:
    mcp.resource("menu://today", name="today")(lambda: value)
    assert (await refusal(mcp, "menu://today"))["code"] == -32603


@pytest.mark.parametrize(("value", "text"), [("a\ud800b", "a\ufffdb"), ({1: "\ud800"}, '{"1":"\ufffd"}')])
async def test_a_lone_surrogate_is_sent_as_the_replacement_character(mcp: MCPServer, value: object, text: str) -> None:
    mcp.resource("menu://today", name="today")(lambda: value)
    contents = (await ask(mcp, "resources/read", {"uri": "menu://today"}))["result"]["contents"]
    assert contents[0]["text"] == text


async def test_variables_are_converted_to_the_parameters_types(mcp: MCPServer) -> None:
    @mcp.resource("menu://{day}/{number}/{colour}/{level}/{half}{?only,most,grilled}")
    async def dish(  # noqa: PLR0917 - one for each variable
        day: date,
        number: Annotated[int, Field(ge=1)],
        colour: Colour,
        level: Level,
        half: Literal[1, 2],
        only: str | None = None,
        most: float = 2.5,
        grilled: bool = False,
    ) -> str:
        return repr((day.isoformat(), number, colour.name, level.name, half, only, most, grilled))

    assert await text_of(mcp, "menu://2026-07-28/7/red/2/1") == repr(
        ("2026-07-28", 7, "RED", "HIGH", 1, None, 2.5, False)
    )
    asked = "menu://2026-07-28/7/red/1/2?only=fish&grilled=true&most=3"
    assert await text_of(mcp, asked) == repr(("2026-07-28", 7, "RED", "LOW", 2, "fish", 3.0, True))


async def test_a_variable_of_another_type_is_invalid_in_plain_words(mcp: MCPServer) -> None:
    @mcp.resource("menu://{number}{?most}")
    async def dish(number: Annotated[int, Field(ge=1)], most: int = 1) -> str:
        return ""

    error = await refusal(mcp, "menu://zero?most=many")
    assert error["code"] == -32602
    assert error["data"] == {"uri": "menu://zero?most=many"}
    assert error["message"] == "The URI does not fit: number: must be an integer\nmost: must be an integer"
    assert "at least 1" in (await refusal(mcp, "menu://0"))["message"]


@pytest.mark.parametrize(
    ("hint", "value"), [(list[str], ["a", "b/c"]), (list[int], [1, 2]), (str, "a/b"), (Any, ["a", "b"])]
)
async def test_many_segments_are_a_list_or_one_path(mcp: MCPServer, hint: Any, value: Any) -> None:
    async def dish(path: Any) -> Any:
        return [path]

    dish.__annotations__["path"] = hint
    mcp.resource("menu://x/{path*}")(dish)
    uri = "menu://x/" + (value if isinstance(value, str) else "/".join(str(one).replace("/", "%2F") for one in value))
    assert json.loads(await text_of(mcp, uri)) == [value]


async def test_an_alias_means_nothing_here(mcp: MCPServer) -> None:
    @mcp.resource("menu://{dish}")
    async def dish(dish: Annotated[str, Field(alias="dishName")]) -> str:
        return dish

    assert await text_of(mcp, "menu://fish") == "fish"


async def test_a_path_that_leads_outside_never_reaches_the_function(mcp: MCPServer) -> None:
    seen = []

    @mcp.resource("file://docs/{path*}")
    def document(path: str) -> str:
        seen.append(path)
        return path

    for uri in (
        "file://docs//etc/passwd",
        "file://docs/..%2Fetc",
        "file://docs/a/../b",
        "file://docs/a%00",
        "file://docs/a%5Cb",
    ):
        assert (await refusal(mcp, uri))["code"] == -32602
    assert await text_of(mcp, "file://docs/a/b") == "a/b"
    assert seen == ["a/b"]


async def test_a_function_keeps_working_as_it_did_and_runs_in_a_thread_of_its_own(mcp: MCPServer) -> None:
    @mcp.resource("menu://today")
    def today() -> str:
        return threading.current_thread().name

    assert today() == threading.current_thread().name
    assert await text_of(mcp, "menu://today") != threading.current_thread().name


async def test_the_context_knows_what_is_read_and_reaches_the_client(mcp: MCPServer) -> None:
    @mcp.resource("menu://{dish}")
    async def dish(dish: str, context: Context) -> str:
        await context.report_progress(1, 2, "cooking")
        await context.log("warning", {"dish": dish})
        return f"{context.name}, {dict(context.arguments)}, {context.uri} at {context.protocol_version}"

    channel = Recorder()
    params = {"uri": "menu://fish", "_meta": {"progressToken": 7}}
    assert runtime_of(mcp).server.routes.route(context("resources/read", params).request).interactive
    contents = (await ask(mcp, "resources/read", params, channel=channel))["result"]["contents"]
    assert contents[0]["text"] == f"dish, {{}}, menu://fish at {NEWEST}"
    assert channel.sent == [
        ("notifications/progress", {"progressToken": 7, "progress": 1, "total": 2, "message": "cooking"}),
        ("notifications/message", {"level": "warning", "data": {"dish": "fish"}}),
    ]


async def test_services_are_injected_and_are_no_variables(mcp: MCPServer) -> None:
    class Kitchen:
        name = "big kitchen"

    async def dish(dish: str, kitchen: Any, context: Context) -> str:
        return f"{dish} of the {kitchen.name}"

    dish.__annotations__["kitchen"] = Kitchen
    mcp.resource("menu://{dish}")(dish)
    mcp.services.register_factory(Kitchen, Kitchen)
    assert await text_of(mcp, "menu://fish") == "fish of the big kitchen"


async def test_a_tool_error_is_told_in_its_own_words(mcp: MCPServer) -> None:
    @mcp.resource("menu://today")
    async def today() -> str:
        raise ToolError("The kitchen is closed.")

    assert await refusal(mcp, "menu://today") == {"code": -32603, "message": "The kitchen is closed."}


@EVERY_REVISION
async def test_everything_that_is_said_of_a_resource_is_listed(mcp: MCPServer, revision: str) -> None:
    about: dict[str, Any] = {
        "title": "The menu",
        "description": "What there is",
        "mime_type": "text/markdown",
        "annotations": {"audience": ["user"], "priority": 0.5},
        "icons": [Icon("https://example.com/icon.png", sizes=["48x48"])],
        "meta": {"example.com/a": 1},
    }
    mcp.resource("menu://today", name="the.menu", size=4, **about)(lambda: "Fish")
    mcp.resource("menu://{day}", name="another", **about)(lambda day: "Fish")
    (one,) = await listed(mcp, revision)
    result = (await ask(mcp, "resources/templates/list", revision=revision))["result"]
    (template,) = result["resourceTemplates"]
    assert (one.pop("uri"), one.pop("name"), one.pop("size")) == ("menu://today", "the.menu", 4)
    assert (template.pop("uriTemplate"), template.pop("name")) == ("menu://{day}", "another")
    assert one == template
    assert one["annotations"] == {"audience": ["user"], "priority": 0.5}
    assert (one["mimeType"], one["description"]) == ("text/markdown", "What there is")
    if revision >= "2025-11-25":
        assert one["icons"] == [{"src": "https://example.com/icon.png", "sizes": ["48x48"]}]


@pytest.mark.parametrize(
    ("hint", "media_type"),
    [
        (str | None, "text/plain"),
        (Literal["Fish"], None),
        (bytearray, "application/octet-stream"),
        (bytes | memoryview, "application/octet-stream"),
        (int, "application/json"),
        (dict, "application/json"),
        (dict[str, Any] | None, "application/json"),
        (Annotated[list[Annotated[int, Field(examples=[1])]], Field(max_length=3)], "application/json"),
        (Awaitable[list[str]], "application/json"),
        (Dish, "application/json"),
        (DishDict, "application/json"),
        (Dish | list[Dish], "application/json"),
        (Dish | str, None),
        (str | bytes, None),
        (list, None),
        (list[Any], None),
        (list[Contents], None),
        (Contents, None),
        (Sequence[int], None),
        (Any, None),
        (object, None),
        (None, None),
    ],
)
async def test_the_listed_type_is_what_the_annotation_is_sure_to_give(
    mcp: MCPServer, hint: Any, media_type: str | None
) -> None:
    def today() -> Any:
        raise AssertionError("it is only listed")

    today.__annotations__["return"] = hint
    mcp.resource("menu://today")(today)
    (one,) = await listed(mcp)
    assert one.get("mimeType") == media_type


@pytest.mark.parametrize(
    ("value", "contents"),
    [
        ("Fish", {"mimeType": "text/plain", "text": "Fish"}),
        ({"dish": "Fish"}, {"mimeType": "application/json", "text": '{"dish":"Fish"}'}),
        (b"\x00\xff", {"mimeType": "application/octet-stream", "blob": "AP8="}),
    ],
)
@EVERY_REVISION
async def test_without_a_return_annotation_no_type_is_listed_and_the_value_decides_what_is_read(
    mcp: MCPServer, revision: str, value: object, contents: dict[str, str]
) -> None:
    @mcp.resource("menu://today")
    def today():  # type: ignore[no-untyped-def] # the point
        return value

    (entry,) = await listed(mcp, revision)
    assert entry.pop("title", "Today") == "Today"  # older revisions have no titles
    assert entry == {"uri": "menu://today", "name": "today"}
    assert await read(mcp, "menu://today", revision=revision) == [{"uri": "menu://today", **contents}]


async def test_name_title_description_and_type_come_from_the_function(mcp: MCPServer) -> None:
    @mcp.resource("menu://today")
    def TodaysMenu() -> str:  # noqa: N802 - the point
        """What there is today.

        Every day another.
        """
        return ""

    @mcp.resource("menu://logo")
    async def logo() -> bytes | None:
        return None

    @mcp.resource("menu://list", description="")
    def dishes() -> list[str]:
        """Not told."""
        return []

    assert await listed(mcp) == [
        {
            "uri": "menu://today",
            "name": "todays_menu",
            "title": "Todays Menu",
            "description": "What there is today.\n\nEvery day another.",
            "mimeType": "text/plain",
        },
        {"uri": "menu://logo", "name": "logo", "title": "Logo", "mimeType": "application/octet-stream"},
        {"uri": "menu://list", "name": "dishes", "title": "Dishes", "mimeType": "application/json"},
    ]


async def test_a_name_may_be_any_line_of_text_and_variables_are_described_below_the_docstring(mcp: MCPServer) -> None:
    @mcp.resource("menu://{day}/{tags*}", name="Menu of a day")
    def menu(day: Annotated[str, "The day"], tags: Annotated[list[str], Field(description="Tags")]) -> str:
        """Dishes."""
        return f"{day} {tags}"

    definitions = (await ask(mcp, "resources/templates/list"))["result"]["resourceTemplates"]
    assert [(item["name"], item["title"]) for item in definitions] == [("Menu of a day", "Menu of a day")]
    assert definitions[0]["description"] == "Dishes.\n\nVariables:\n- day: The day\n- tags: Tags"
    [contents] = (await ask(mcp, "resources/read", {"uri": "menu://monday/a/b"}))["result"]["contents"]
    assert contents["text"] == "monday ['a', 'b']"


@pytest.mark.parametrize(
    ("uri", "options", "function", "why"),
    [
        ("today", {}, lambda: "", "scheme"),
        ("menu://{a}{b}", {}, lambda a, b: "", "without text between"),
        (None, {}, lambda: "", "needs a URI"),
        ("menu://{a}", {}, lambda: "", "no parameter for {a}"),
        ("menu://{a}", {}, lambda b: "", "no parameter for {a}"),
        ("menu://x{?a}", {}, lambda a: "", "needs a default"),
        ("menu://{a}", {"size": 5}, lambda a: "", "has no size"),
        ("menu://today", {"completions": {"a": len}}, lambda: "", "no variables to complete"),
        ("menu://{a}", {"completions": {"b": len}}, lambda a: "", "no argument 'b'"),
        ("menu://today", {"size": -1}, lambda: "", "number of bytes"),
        ("menu://today", {"size": 1.5}, lambda: "", "number of bytes"),
        ("menu://today", {"size": True}, lambda: "", "number of bytes"),
        ("menu://today", {"annotations": {"lastModified": date(2026, 7, 28)}}, lambda: "", "must be JSON"),
        ("menu://today", {"meta": {"a": object()}}, lambda: "", "must be JSON"),
        ("menu://today", {"icons": [{"src": "https:", "sizes": object()}]}, lambda: "", "must be JSON"),
        ("menu://today", {"timeout": 0}, lambda: "", "above 0"),
        ("menu://today", {"name": "two\nlines"}, lambda: "", "is not a valid name of a resource"),
        ("menu://today", {}, Dish, "is a class"),
        ("menu://today", {}, lambda *args: "", "Name each parameter"),
    ],
)
def test_what_cannot_be_a_resource_is_refused_with_the_reason(
    mcp: MCPServer, uri: Any, options: dict[str, Any], function: Any, why: str
) -> None:
    with pytest.raises(RegistrationError) as caught:
        mcp.resource(uri, **{"name": "today", **options})(function)
    assert why in str(caught.value)


@pytest.mark.parametrize("day", ["0", "86400"])
async def test_digits_in_a_uri_are_no_date(mcp: MCPServer, day: str) -> None:
    @mcp.resource("menu://{day}")
    def today(day: date) -> str:
        return f"{day:%A}"

    assert await text_of(mcp, "menu://2026-07-28") == "Tuesday"
    error = await refusal(mcp, f"menu://{day}")
    assert error["message"] == "The URI does not fit: day: must be a date such as 2026-07-28"


def as_json(text: str) -> Any:
    return json.loads(text)


LIST_TYPES = [list[str], "list[int] | None", tuple[str, ...], set[str], Annotated[list[str], Field(max_length=3)]]


@pytest.mark.parametrize("hint", LIST_TYPES)
def test_a_list_for_a_part_of_a_path_is_refused_with_advice(mcp: MCPServer, hint: Any) -> None:
    def today(tags: Any = None) -> str:
        return ""

    today.__annotations__["tags"] = hint
    with pytest.raises(RegistrationError) as caught:
        mcp.resource("menu://{tags}")(today)
    assert str(caught.value) == "today: 'tags' is a list, so write {tags*} in the URI."


@pytest.mark.parametrize(
    ("query", "tags"), [("", []), ("?tags=a,b", ["a", "b"]), ("?tags=a%2Cb,c", ["a,b", "c"]), ("?tags=", [])]
)
async def test_a_list_of_the_query_is_joined_with_commas(mcp: MCPServer, query: str, tags: list[str]) -> None:
    @mcp.resource("menu://x{?tags,user-id}{&n}")
    def today(user_id: str = "", tags: list[str] = [], n: int = 1) -> list[Any]:  # noqa: B006 - it is not changed
        return [user_id, tags, n]

    joined = "&" if query else "?"
    assert as_json(await text_of(mcp, f"menu://x{query}{joined}user-id=me&n=2")) == ["me", tags, 2]


@pytest.mark.parametrize("hint", [str, int, "bool | None", Level])
def test_one_value_for_a_variable_that_takes_several_is_refused(mcp: MCPServer, hint: Any) -> None:
    def today(tags: Any = None) -> str:
        return ""

    today.__annotations__["tags"] = hint
    with pytest.raises(RegistrationError, match="'tags' must be a list"):
        mcp.resource("menu://x{?tags*}")(today)


async def test_a_list_is_filled_from_all_parameters_of_its_name(mcp: MCPServer) -> None:
    @mcp.resource("menu://dishes{?at_most,tags*}")
    def dishes(at_most: int = 10, tags: list[Literal["hot", "cold"]] = []) -> str:  # noqa: B006 - an author's
        return f"{at_most} {tags}"

    assert await text_of(mcp, "menu://dishes?tags=hot&at_most=5&tags=cold") == "5 ['hot', 'cold']"
    assert await text_of(mcp, "menu://dishes") == "10 []"
    assert (await refusal(mcp, "menu://dishes?tags=warm"))["code"] == -32602


async def test_a_list_that_the_author_reads_from_one_text_is_left_to_the_author(mcp: MCPServer) -> None:
    @mcp.resource("menu://{ids}")
    def dishes(ids: Annotated[list[int], BeforeValidator(as_json)] | None) -> str:
        return str(ids)

    assert await text_of(mcp, "menu://[1,2]") == "[1, 2]"


def test_a_parameter_that_json_can_never_carry_is_refused(mcp: MCPServer) -> None:
    def today(day: Callable[[], str]) -> str:
        return day()

    with pytest.raises(RegistrationError, match="The parameter 'day' of today is Callable, which JSON can't carry"):
        mcp.resource("menu://{day}")(today)


@pytest.mark.parametrize(
    ("uri", "method", "kind"),
    [
        ("menu://{day}", "resources/templates/list", "resource template"),
        ("menu://today", "resources/list", "resource"),
    ],
)
async def test_what_can_not_be_read_because_of_a_parameter_is_left_out_of_its_list_and_told_in_the_log(
    mcp: MCPServer, caplog: pytest.LogCaptureFixture, uri: str, method: str, kind: str
) -> None:
    @mcp.resource(uri)
    def today(day: Unreadable) -> str:  # it might be a service that is still to be registered
        return str(day)

    member = "resources" if kind == "resource" else "resourceTemplates"
    for _ in range(2):
        assert (await ask(mcp, method))["result"][member] == []
    [record] = caplog.records
    assert record.getMessage().startswith(f"The {kind} {uri} is left out of {method}. Correct it: ")


def test_a_generator_is_refused(mcp: MCPServer) -> None:
    def today() -> Any:
        yield "Fish"

    with pytest.raises(RegistrationError, match="generator"):
        mcp.resource("menu://today")(today)


def test_the_uri_is_not_to_be_forgotten(mcp: MCPServer) -> None:
    def today() -> str:
        return ""

    for decorator in (mcp.resource, resource):
        with pytest.raises(RegistrationError, match="needs a URI"):
            decorator(today)  # type: ignore[arg-type]
    with pytest.raises(RegistrationError, match="scheme"):
        mcp.resource_lister(today)  # type: ignore[arg-type]


def test_a_uri_and_a_template_are_each_registered_once(mcp: MCPServer) -> None:
    for uri, function in (("menu://today", lambda: ""), ("menu://{a}", lambda a: "")):
        mcp.resource(uri, name="one")(function)
        with pytest.raises(RegistrationError, match="Duplicate resource"):
            mcp.resource(uri, name="two")(function)
    mcp.resource("menu://TODAY", name="three")(lambda: "")
    mcp.remove_resource("menu://today")
    mcp.remove_resource("menu://{a}")
    with pytest.raises(KeyError):
        mcp.remove_resource("menu://today")
    assert [one.uri for one in runtime_of(mcp).server.catalog.resources] == ["menu://TODAY"]
    assert len(runtime_of(mcp).server.catalog.templates) == 0


@pytest.mark.parametrize(
    ("hint", "why"),
    [
        (int, "not a variable of menu://{dish}"),
        (Arguments[CreateOrder], "only tools can have"),
    ],
)
async def test_a_parameter_that_nothing_fills_is_told_to_the_author(
    mcp: MCPServer, caplog: pytest.LogCaptureFixture, hint: Any, why: str
) -> None:
    uri = "menu://{dish}/{more}" if "tool" in why else "menu://{dish}"

    async def dish(dish: str, more: Any) -> str:
        return ""

    dish.__annotations__["more"] = hint
    mcp.resource(uri)(dish)
    error = await refusal(mcp, uri.replace("{", "").replace("}", ""))
    assert error["code"] == -32603
    assert why in caplog.text


async def test_a_parameter_that_is_no_variable_has_its_default(mcp: MCPServer) -> None:
    @mcp.resource("users://name/{name}")
    def user(name: str | None = None, email: str = "none") -> str:
        return f"{name} {email}"

    assert await text_of(mcp, "users://name/ada") == "ada none"


@EVERY_REVISION
async def test_a_function_may_list_resources_whenever_somebody_asks(mcp: MCPServer, revision: str) -> None:
    dishes = ["fish"]

    @mcp.resource("menu://today")
    def today() -> str:
        return ""

    @mcp.resource_lister("menu")
    async def listing(context: Context) -> list[ResourceInfo]:
        icon = Icon("https://example.com/icon.png")
        details: dict[str, Any] = {
            "title": context.uri,
            "mime_type": "text/plain",
            "size": 4,
            "icons": [icon],
            "meta": {"a": 1},
        }
        return [ResourceInfo(f"menu://{dish}", dish, **details) for dish in dishes]

    assert [one["uri"] for one in await listed(mcp, revision)] == ["menu://today", "menu://fish"]
    dishes.append("chips")
    (_, _, chips) = await listed(mcp, revision)
    assert (chips["uri"], chips["mimeType"], chips["size"]) == ("menu://chips", "text/plain", 4)
    assert chips.get("title", "") == ""


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("menu://fish", "list of ResourceInfo"),
        (None, "list of ResourceInfo"),
        (["menu://fish"], "list of ResourceInfo"),
        ([ResourceInfo("news://fish", "fish")], "lists resources of the scheme 'menu'"),
        ([ResourceInfo("menus://fish", "fish")], "lists resources of the scheme 'menu'"),
    ],
)
async def test_a_list_of_anything_else_is_left_out_and_told_in_the_log(
    mcp: MCPServer, caplog: pytest.LogCaptureFixture, value: object, why: str
) -> None:
    def listing() -> object:
        return value

    mcp.resource_lister("menu")(listing)
    assert (await ask(mcp, "resources/list"))["result"]["resources"] == []
    assert why in caplog.text


async def test_a_list_takes_no_arguments(mcp: MCPServer, caplog: pytest.LogCaptureFixture) -> None:
    @mcp.resource_lister("menu")
    async def listing(day: str) -> list[ResourceInfo]:
        return []

    assert (await ask(mcp, "resources/list"))["result"]["resources"] == []
    assert "takes only a context and services" in caplog.text


@pytest.mark.parametrize("scheme", ["", "menu://", "menu:", "1menu", "me nu", "é", "menu/", 5, None])
def test_what_is_no_scheme_is_refused(mcp: MCPServer, scheme: Any) -> None:
    with pytest.raises(RegistrationError, match="scheme"):
        mcp.resource_lister(scheme)


def test_a_scheme_has_one_list(mcp: MCPServer) -> None:
    def listing() -> list[ResourceInfo]:
        return []

    mcp.resource_lister("menu")(listing)
    with pytest.raises(RegistrationError, match="Duplicate resource"):
        mcp.resource_lister("Menu")(listing)


async def test_bytes_are_encoded_so_that_they_come_back(mcp: MCPServer) -> None:
    data = bytes(range(256))
    mcp.resource("menu://all", name="all")(lambda: data)
    (contents,) = await read(mcp, "menu://all", revision=PER_REQUEST)
    assert base64.b64decode(contents["blob"], validate=True) == data


async def test_the_error_for_a_value_that_is_not_json_names_the_resource_and_the_path(
    mcp: MCPServer, caplog: pytest.LogCaptureFixture
) -> None:
    @mcp.resource("menu://today", show_errors=True)
    def today() -> Any:
        return {"dishes": [object()]}

    error = (await ask(mcp, "resources/read", {"uri": "menu://today"}))["error"]
    expected = "today returned the value at dishes[0] that can't be written as JSON: "
    assert error["message"].startswith(expected)
    assert "today returned the value at dishes[0] that can" in caplog.text


@pytest.mark.parametrize("value", [Image(b"PNG"), Text("a"), [Text("a")], [1, Image(b"PNG")]])
async def test_a_content_block_is_an_error_that_says_what_a_resource_returns(mcp: MCPServer, value: Any) -> None:
    mcp.resource("menu://picture", name="picture", show_errors=True)(lambda: value)
    error = (await ask(mcp, "resources/read", {"uri": "menu://picture"}))["error"]
    assert error["message"].startswith("picture returned funcmcp.content.")
    assert "A resource returns a text, bytes, data as JSON, or funcmcp.content.Contents" in error["message"]


class Name(RootModel[str]):
    pass


class Several(RootModel[int | str | list[int]]):
    pass


def kind_of(value: Any) -> str:
    return "text" if isinstance(value, str) else "list"


ByKind = Annotated[Annotated[str, Tag("text")] | Annotated[list[int], Tag("list")], Discriminator(kind_of)]


@pytest.mark.parametrize(
    ("hint", "value", "expected"),
    [
        (Name, "Ada", Name("Ada")),
        (Name | int, "5", Name("5")),
        (Several, "%5B1%5D", Several("[1]")),
        (ByKind, "%5B1,2%5D", "[1,2]"),
        (RootModel[int], "05", RootModel[int](5)),
    ],
)
async def test_a_variable_that_may_be_a_text_stays_one(mcp: MCPServer, hint: Any, value: str, expected: object) -> None:
    seen: list[object] = []

    def read_value(it: Any) -> str:
        seen.append(it)
        return ""

    read_value.__annotations__["it"] = hint
    mcp.resource("value://{it}")(read_value)
    await read(mcp, f"value://{value}")
    assert seen == [expected]
