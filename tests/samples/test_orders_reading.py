"""What the orders sample lets applications read: resources, prompts and completions, in both eras."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp import MCPError
from funcmcp.testing import Client
from samples.orders.restaurant import MENU, CreateOrder
from samples.orders.server import LISTED, mcp

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from samples.orders.restaurant import Order, OrderService

UNKNOWN = "00000000-0000-0000-0000-000000000000"
JSON = "application/json"


@pytest.fixture
async def client(orders: OrderService, revision: str) -> AsyncIterator[Client]:
    async with Client(mcp, revision=revision) as connected:
        yield connected


def place(orders: OrderService, customer: str = "ada") -> Order:
    items = [{"itemId": "margherita", "quantity": 2}]
    return orders.create(CreateOrder.model_validate({"customerId": customer, "items": items}))


async def read(client: Client, uri: str) -> Any:
    """Return what a resource holds, read from its JSON."""
    (contents,) = (await client.request("resources/read", {"uri": uri}))["contents"]
    assert (contents["uri"], contents["mimeType"]) == (uri, JSON)
    return json.loads(contents["text"])


async def prompt(client: Client, name: str, **arguments: str) -> list[dict[str, Any]]:
    """Return the content of a prompt's messages, all spoken by the user."""
    messages = (await client.request("prompts/get", {"name": name, "arguments": arguments}))["messages"]
    assert {message["role"] for message in messages} == {"user"}
    return [message["content"] for message in messages]


async def complete(client: Client, ref: str, argument: str, begun: str) -> list[str]:
    """Return the values that complete a prompt's argument, or a template's variable."""
    reference = {"type": "ref/resource", "uri": ref} if "://" in ref else {"type": "ref/prompt", "name": ref}
    params = {"ref": reference, "argument": {"name": argument, "value": begun}}
    values: list[str] = (await client.request("completion/complete", params))["completion"]["values"]
    return values


async def listed(client: Client, scheme: str) -> list[dict[str, Any]]:
    resources = (await client.request("resources/list"))["resources"]
    return [resource for resource in resources if resource["uri"].startswith(f"{scheme}:")]


async def test_the_whole_menu_is_read_cheapest_first(client: Client) -> None:
    items = await read(client, "menu://today")
    assert len(items) == len(MENU)
    assert items[0] == {"itemId": "espresso", "name": "Espresso", "category": "drink", "price": 2.4}


async def test_a_part_of_the_menu_is_read_by_its_category(client: Client) -> None:
    items = await read(client, "menu://categories/dessert")
    assert [item["itemId"] for item in items] == ["panna-cotta", "tiramisu"]


@pytest.mark.parametrize("uri", ["menu://categories/breakfast", "menu://items/sushi", f"order://{UNKNOWN}"])
async def test_what_is_not_there_is_an_error_and_no_empty_answer(client: Client, uri: str) -> None:
    with pytest.raises(MCPError) as caught:
        await client.request("resources/read", {"uri": uri})
    assert caught.value.code in {-32002, -32602}
    assert caught.value.data == {"uri": uri}


async def test_every_listed_dish_can_be_read(client: Client) -> None:
    found = await listed(client, "menu")
    assert len(found) == 1 + len(MENU)
    assert {resource["mimeType"] for resource in found} == {JSON}
    items = [await read(client, resource["uri"]) for resource in found[1:]]
    assert [item["name"] for item in items] == [resource["title"] for resource in found[1:]]


async def test_a_new_order_is_listed_and_read_as_it_is_kept(client: Client, orders: OrderService) -> None:
    assert not await listed(client, "order")
    order = place(orders)
    (found,) = await listed(client, "order")
    assert (found["name"], found["title"]) == (order.order_id, "Order of ada over 19.80 euros")
    assert await read(client, found["uri"]) == order.model_dump(mode="json", by_alias=True)


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
async def test_the_newest_orders_are_listed_first_and_older_ones_can_still_be_read(
    client: Client, orders: OrderService
) -> None:
    placed = [place(orders, f"c{number}") for number in range(LISTED + 1)]
    found = await listed(client, "order")
    assert [resource["name"] for resource in found] == [order.order_id for order in placed[:0:-1]]
    assert (await read(client, f"order://{placed[0].order_id}"))["customerId"] == "c0"


async def test_a_meal_is_suggested_from_todays_menu_and_the_wishes(client: Client) -> None:
    menu, text = await prompt(client, "suggest_meal", guests="4", dish="Tiramisù", budget="80.50")
    assert menu["resource"]["uri"] == "menu://today"
    assert json.loads(menu["resource"]["text"]) == await read(client, "menu://today")
    assert text["text"] == (
        "Suggest a meal for 4 from this menu. Tiramisù has to be part of it. It may cost at most 80.50 euros in all."
    )


async def test_an_order_is_explained_in_the_language_that_is_asked_for(client: Client, orders: OrderService) -> None:
    order = place(orders)
    resource, text = await prompt(client, "explain_order", order_id=order.order_id, language="German")
    assert json.loads(resource["resource"]["text"])["orderId"] == order.order_id
    assert text["text"].endswith("in German.")


@pytest.mark.parametrize(
    ("name", "arguments", "named"),
    [
        ("suggest_meal", {}, "guests"),
        ("suggest_meal", {"guests": "many"}, "guests"),
        ("suggest_meal", {"guests": "21"}, "guests"),
        ("suggest_meal", {"guests": "2", "dish": "Sushi"}, "Not on the menu: Sushi."),
        ("explain_order", {"order_id": UNKNOWN}, UNKNOWN),
        ("explain_order", {"order_id": UNKNOWN, "language": "Klingon"}, "language"),
    ],
)
async def test_a_prompt_says_which_argument_is_wrong(
    client: Client, name: str, arguments: dict[str, str], named: str
) -> None:
    with pytest.raises(MCPError, match=named) as caught:
        await prompt(client, name, **arguments)
    assert caught.value.code == -32602


@pytest.mark.parametrize(
    ("ref", "argument", "begun", "values"),
    [
        ("suggest_meal", "dish", "PIZZA", ["Pizza Margherita", "Pizza Diavola"]),
        ("suggest_meal", "guests", "1", []),
        ("explain_order", "language", "g", ["German"]),
        ("menu://items/{item_id}", "item_id", "l", ["lemonade", "lasagne"]),
        ("menu://categories/{category}", "category", "d", ["dessert", "drink"]),
    ],
)
async def test_what_is_written_is_completed(
    client: Client, ref: str, argument: str, begun: str, values: list[str]
) -> None:
    assert await complete(client, ref, argument, begun) == values


@pytest.mark.parametrize("ref", ["explain_order", "order://{order_id}"])
async def test_the_id_of_an_order_is_completed_newest_first(client: Client, orders: OrderService, ref: str) -> None:
    first, second = place(orders), place(orders)
    assert await complete(client, ref, "order_id", "") == [second.order_id, first.order_id]
    begun = first.order_id[:20].upper()
    assert await complete(client, ref, "order_id", begun) == [first.order_id]
