"""The orders sample, in memory, in both eras."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import mcp as sdk
import pytest

from funcmcp import ToolError
from funcmcp.testing import Client
from samples.orders.restaurant import MENU, CreateOrder, OrderService
from samples.orders.server import mcp
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

ROOT = Path(__file__).parents[2]
LINES = [{"itemId": "margherita", "quantity": 3}, {"itemId": "lemonade", "quantity": 1, "modifications": "no ice"}]
ORDER = {"customerId": "ada", "items": LINES}
UNKNOWN = "00000000-0000-0000-0000-000000000000"


class User:
    """Answers the question of ``cancel_order``, and remembers it."""

    def __init__(self) -> None:
        self.answer: dict[str, Any] = {"action": "accept", "content": {"confirm": True}}
        self.asked: list[str] = []

    async def __call__(self, params: dict[str, Any]) -> dict[str, Any]:
        self.asked.append(params["message"])
        return self.answer


@pytest.fixture
def user() -> User:
    return User()


@pytest.fixture
async def client(orders: OrderService, revision: str, user: User) -> AsyncIterator[Client]:
    async with Client(mcp, revision=revision, elicit=user) as connected:
        yield connected


@pytest.fixture
async def mute_client(orders: OrderService, revision: str) -> AsyncIterator[Client]:
    """A client that can't ask its user."""
    async with Client(mcp, revision=revision) as connected:
        yield connected


async def done(client: Client, tool: str, **arguments: Any) -> Any:
    """Call a tool that succeeds; return its structured content."""
    result = await client.call_tool(tool, arguments)
    assert not result.get("isError"), result
    return result["structuredContent"]


async def refused(client: Client, tool: str, **arguments: Any) -> str:
    """Call a tool that fails; return what it says."""
    result = await client.call_tool(tool, arguments)
    assert result["isError"] is True
    assert len(result["content"]) == 1
    text: str = result["content"][0]["text"]
    return text


async def test_create_order_has_the_schema_of_the_specified_example_key_for_key(client: Client) -> None:
    tools = {tool["name"]: tool for tool in await client.list_tools()}
    assert tools["create_order"]["inputSchema"] == {
        "type": "object",
        "properties": {
            "customerId": {"type": "string", "description": "The customer's unique identifier"},
            "items": {
                "type": "array",
                "description": "Order line items",
                "items": {
                    "type": "object",
                    "properties": {
                        "itemId": {"type": "string", "description": "Menu item ID"},
                        "quantity": {
                            "type": "integer",
                            "description": "Quantity to order",
                            "minimum": 1,
                            "maximum": 100,
                        },
                        "modifications": {"type": "string", "description": "Special modifications"},
                    },
                    "required": ["itemId", "quantity"],
                },
            },
            "notes": {"type": "string", "description": "Special instructions or notes", "maxLength": 500},
            "priority": {
                "type": "string",
                "description": "Order priority level",
                "enum": ["low", "normal", "high", "urgent"],
                "default": "normal",
            },
            "deliveryDate": {"type": "string", "description": "Requested delivery date", "format": "date"},
            "notificationEmail": {
                "type": "string",
                "description": "Customer email for notifications",
                "format": "email",
            },
            "discountPercent": {
                "type": "number",
                "description": "Discount percentage",
                "minimum": 0,
                "maximum": 100,
            },
        },
        "required": ["customerId", "items"],
    }


async def test_every_tool_says_what_it_does_and_what_it_returns(client: Client) -> None:
    tools = await client.list_tools()
    hints = {tool["name"]: tool["annotations"] for tool in tools}
    assert hints == {
        "search_menu": {"readOnlyHint": True},
        "get_order": {"readOnlyHint": True},
        "create_order": {"destructiveHint": False, "idempotentHint": False},
        "cancel_order": {"destructiveHint": True, "idempotentHint": False},
        "sales_report": {"readOnlyHint": True},
    }
    assert all(tool["description"] and tool["outputSchema"]["type"] == "object" for tool in tools)


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ({"query": "PIZZA"}, ["margherita", "diavola"]),
        ({"category": "drink"}, ["espresso", "lemonade"]),
        ({"max_price": 5.5}, ["espresso", "lemonade", "panna-cotta"]),
        ({"query": "a", "category": "dessert", "max_price": 5.49}, []),
        ({"query": "MISÙ"}, ["tiramisu"]),
        ({"query": "%"}, []),
    ],
)
async def test_search_menu_filters_and_sorts_by_price(
    client: Client, arguments: dict[str, Any], found: list[str]
) -> None:
    items = (await done(client, "search_menu", **arguments))["result"]
    assert [item["itemId"] for item in items] == found


async def test_search_menu_without_arguments_returns_the_whole_menu(client: Client) -> None:
    assert len((await done(client, "search_menu"))["result"]) == len(MENU)


async def test_a_new_order_is_kept_with_all_that_was_said(client: Client) -> None:
    said = {
        "notes": "ring twice",
        "priority": "high",
        "deliveryDate": "2030-01-31",
        "notificationEmail": "ada@example.com",
        "discountPercent": 12.5,
    }
    created = await done(client, "create_order", **ORDER, **said)
    assert await done(client, "get_order", order_id=created["orderId"]) == created
    assert {name: created[name] for name in said} == said
    assert (created["customerId"], created["status"]) == ("ada", "placed")
    assert created["lines"] == [
        {"itemId": "margherita", "name": "Pizza Margherita", "quantity": 3, "price": 9.9, "modifications": None},
        {"itemId": "lemonade", "name": "Lemonade", "quantity": 1, "price": 3.5, "modifications": "no ice"},
    ]


@pytest.mark.parametrize(
    ("item", "quantity", "discount", "total"),
    [
        ("margherita", 3, None, "29.70"),
        ("margherita", 1, "5", "9.41"),  # 9.405, which rounding to even would make 9.40
        ("margherita", 3, "12.5", "25.99"),  # 25.9875
        ("espresso", 1, "0.21", "2.39"),  # 2.39496
        ("bruschetta", 1, "33.333", "4.33"),  # 4.333355
        ("risotto", 100, "100", "0.00"),
    ],
)
def test_totals_are_rounded_to_whole_cents_from_exact_decimals(
    orders: OrderService, item: str, quantity: int, discount: str | None, total: str
) -> None:
    request = CreateOrder.model_validate(
        {"customerId": "ada", "items": [{"itemId": item, "quantity": quantity}], "discountPercent": discount}
    )
    assert orders.create(request).total == Decimal(total)


async def test_an_order_with_an_unknown_item_is_refused_in_plain_words_and_leaves_nothing(
    client: Client, orders: OrderService
) -> None:
    items = [*LINES, {"itemId": "sushi", "quantity": 1}]
    text = await refused(client, "create_order", customerId="ada", items=items)
    assert text == "Not on the menu: sushi. Find item IDs with search_menu."
    assert orders.sales(datetime.now(UTC).date()).orders == 0


async def test_an_order_without_items_is_refused(client: Client) -> None:
    text = await refused(client, "create_order", customerId="ada", items=[])
    assert text == "An order needs at least one item. Find item IDs with search_menu."


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"items": [{"itemId": "espresso", "quantity": 0}]}, "items[0].quantity"),
        ({"items": [{"itemId": "espresso", "quantity": 101}]}, "items[0].quantity"),
        ({"items": [{"itemId": "espresso"}]}, "items[0].quantity"),
        ({"notes": "x" * 501}, "notes"),
        ({"priority": "yesterday"}, "priority"),
        ({"deliveryDate": "tomorrow"}, "deliveryDate"),
        ({"notificationEmail": "ada"}, "notificationEmail"),
        ({"discountPercent": 101}, "discountPercent"),
    ],
)
async def test_a_wrong_argument_is_named(client: Client, wrong: dict[str, Any], named: str) -> None:
    assert named in await refused(client, "create_order", **{**ORDER, **wrong})


async def test_text_of_any_kind_is_kept_as_it_is(client: Client) -> None:
    notes = "'; DROP TABLE orders; -- \u202e %s {} ☃"
    created = await done(client, "create_order", **ORDER, notes=notes)
    assert (await done(client, "get_order", order_id=created["orderId"]))["notes"] == notes


async def test_an_unknown_order_is_refused_in_plain_words(client: Client) -> None:
    assert await refused(client, "get_order", order_id=UNKNOWN) == f"There is no order '{UNKNOWN}'."
    assert await refused(client, "cancel_order", order_id=UNKNOWN) == f"There is no order '{UNKNOWN}'."


async def test_an_order_is_cancelled_when_the_user_agrees(client: Client, user: User) -> None:
    created = await done(client, "create_order", **ORDER)
    cancelled = await done(client, "cancel_order", order_id=created["orderId"])
    assert cancelled == {**created, "status": "cancelled"}
    assert user.asked == ["Cancel the order of ada over 33.20 euros?"]


@pytest.mark.parametrize(
    "answer",
    [{"action": "decline"}, {"action": "cancel"}, {"action": "accept", "content": {"confirm": False}}],
    ids=["declined", "closed", "unticked"],
)
async def test_an_order_stands_when_the_user_does_not_agree(
    client: Client, user: User, orders: OrderService, answer: dict[str, Any]
) -> None:
    created = await done(client, "create_order", **ORDER)
    user.answer = answer
    text = await refused(client, "cancel_order", order_id=created["orderId"], confirmed=True)
    assert text == "The user did not agree: the order stands."
    assert orders.get(created["orderId"]).status == "placed"


async def test_a_client_that_can_not_ask_must_say_that_the_user_agreed(mute_client: Client) -> None:
    created = await done(mute_client, "create_order", **ORDER)
    text = await refused(mute_client, "cancel_order", order_id=created["orderId"])
    assert text == "Ask the user whether to cancel this order, then call again with confirmed=true."
    cancelled = await done(mute_client, "cancel_order", order_id=created["orderId"], confirmed=True)
    assert cancelled["status"] == "cancelled"


async def test_an_order_is_cancelled_only_once_even_by_two_at_the_same_time(client: Client) -> None:
    created = await done(client, "create_order", **ORDER)
    calls = [client.call_tool("cancel_order", {"order_id": created["orderId"]}) for _ in range(2)]
    results = await asyncio.gather(*calls)
    failed = [result["content"][0]["text"] for result in results if result.get("isError")]
    assert failed == [f"Order {created['orderId']} is cancelled already."]


async def test_the_sales_report_adds_up_and_leaves_cancelled_orders_out(client: Client) -> None:
    today = datetime.now(UTC).date()
    for _ in range(3):
        last = await done(client, "create_order", **ORDER)
    await done(client, "cancel_order", order_id=last["orderId"])
    span = {"first_day": f"{today - timedelta(days=1)}", "last_day": f"{today + timedelta(days=1)}"}
    report = await done(client, "sales_report", **span)
    assert (report["orders"], report["revenue"]) == (2, 66.4)
    assert len(report["days"]) == 3
    assert sum(day["orders"] for day in report["days"]) == 2


async def test_the_sales_report_tells_its_progress_day_by_day(orders: OrderService, revision: str) -> None:
    told: list[dict[str, Any]] = []
    async with Client(mcp, revision=revision, on_notification=told.append) as client:
        span = {"first_day": "2024-02-28", "last_day": "2024-03-01"}
        await client.call_tool("sales_report", span, meta={"progressToken": "t"})
    assert [message["params"] for message in told] == [
        {"progressToken": "t", "progress": 1, "total": 3, "message": "2024-02-28"},
        {"progressToken": "t", "progress": 2, "total": 3, "message": "2024-02-29"},
        {"progressToken": "t", "progress": 3, "total": 3, "message": "2024-03-01"},
    ]


@pytest.mark.parametrize(
    ("first", "last", "days"), [("2026-01-02", "2026-01-01", 0), ("2025-01-01", "2026-01-02", 367)]
)
async def test_a_sales_report_over_no_day_or_too_many_is_refused(
    client: Client, first: str, last: str, days: int
) -> None:
    text = await refused(client, "sales_report", first_day=first, last_day=last)
    assert text == f"A report has 1 to 366 days; this would be {days}."


async def test_the_last_day_of_the_calendar_can_be_reported(client: Client) -> None:
    report = await done(client, "sales_report", first_day="9999-12-31", last_day="9999-12-31")
    assert report["orders"] == 0


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
async def test_orders_that_come_at_the_same_time_are_all_kept_under_ids_of_their_own(client: Client) -> None:
    calls = [client.call_tool("create_order", {**ORDER, "customerId": f"c{n}"}) for n in range(40)]
    created = [result["structuredContent"] for result in await asyncio.gather(*calls)]
    assert len({order["orderId"] for order in created}) == 40
    kept = [await done(client, "get_order", order_id=order["orderId"]) for order in created]
    assert kept == created


def test_orders_survive_a_restart(file: Path) -> None:
    created = OrderService(file).create(CreateOrder.model_validate(ORDER))
    assert OrderService(file).get(created.order_id) == created


def test_two_services_on_one_file_see_each_others_orders(file: Path) -> None:
    one, other = OrderService(file), OrderService(file)
    with ThreadPoolExecutor(8) as pool:
        services = [one, other] * 20
        created = list(pool.map(lambda service: service.create(CreateOrder.model_validate(ORDER)), services))
    assert sum(one.sales(day).orders for day in {order.placed_at.date() for order in created}) == 40
    assert [other.get(order.order_id) for order in created] == created


def test_the_file_is_the_one_that_the_environment_names(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORDERS_DB", str(file))
    OrderService.connect()
    assert file.stat().st_size > 0


def test_a_file_that_is_no_database_is_not_overwritten(file: Path) -> None:
    file.write_text("my shopping list, which is long enough to have been mistaken for something else")
    with pytest.raises(Exception, match="not a database"):
        OrderService(file)
    assert file.read_text().startswith("my shopping list")


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
def test_processes_that_start_at_the_same_time_seed_the_menu_once(file: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from samples.orders.restaurant import OrderService\n"
        "print('ready', flush=True); sys.stdin.readline()\n"
        "print(len(OrderService(Path(sys.argv[1])).search('', None, None)))"
    )
    command = [sys.executable, "-c", script, str(file)]
    processes = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT) for _ in range(4)
    ]
    try:
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("\n")
            process.stdin.flush()
        seen = [process.communicate(timeout=PATIENCE)[0] for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait()
    assert seen == [f"{len(MENU)}\n"] * 4


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
@pytest.mark.parametrize(
    ("arguments", "tool"),
    [
        (["-m", "samples.orders.server"], "search_menu"),
        (["-m", "samples.everything.server"], "test_simple_text"),
        (["samples/apps/server.py"], "order_board"),
    ],
)
async def test_a_client_that_starts_the_sample_as_a_script_reaches_it_over_stdio(
    file: Path, arguments: list[str], tool: str
) -> None:
    server = sdk.StdioServerParameters(command=sys.executable, args=arguments, cwd=ROOT, env={"ORDERS_DB": str(file)})
    async with sdk.Client(server, read_timeout_seconds=60) as connected:
        result = await connected.call_tool(tool, {})
    assert result.is_error is False
    assert result.content


def test_a_service_raises_tool_errors_with_nothing_internal_in_them(orders: OrderService) -> None:
    with pytest.raises(ToolError, match=r"^There is no order 'nope'\.$"):
        orders.cancel("nope")
