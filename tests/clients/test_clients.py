"""Official client SDKs use the orders sample over every transport that they have, in both eras."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from tests.clients.plan import Call, Played, Step, tool
from tests.clients.players import WAYS, Player

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.clients.plan import Target, Transport

pytestmark = pytest.mark.slow("Clients of others start, some of them on Node.")

ORDER = {
    "customerId": "ada",
    "items": [
        {"itemId": "margherita", "quantity": 2},
        {"itemId": "lemonade", "quantity": 1, "modifications": "no ice"},
    ],
    "deliveryDate": "2030-01-31",
    "discountPercent": 10,
}
TOTAL = 20.97
AGREE = {"action": "accept", "content": {"confirm": True}}
DECLINE = {"action": "decline"}


@dataclass(frozen=True)
class Session:
    """What one client did: it placed two orders, and then went on with them in a second connection."""

    player: Player
    placed: Played
    played: Played
    order_ids: list[str]

    def call(self, number: int) -> Call:
        """Return a call of the second connection, by its place in the plan."""
        return self.played.calls[number]


MENU, GOOD, WRONG, UNKNOWN, REPORT, AGREED, DECLINED, AFTERWARDS, LISTED, DRINKS, KEPT, MEAL, IDS = range(13)


def plan(first_order: str, second_order: str) -> list[Step]:
    return [
        tool("search_menu", {"query": "PIZZA"}),
        tool("get_order", {"order_id": first_order}),
        tool("create_order", {**ORDER, "items": [{"itemId": "margherita", "quantity": "2"}], "priority": "now"}),
        tool("order_pizza", {}),
        tool("sales_report", {"first_day": "2030-01-01", "last_day": "2030-01-04"}),
        tool("cancel_order", {"order_id": first_order}, AGREE),
        tool("cancel_order", {"order_id": second_order}, DECLINE),
        tool("get_order", {"order_id": second_order}),
        Step("resources/list"),
        Step("resources/read", {"uri": "menu://categories/drink"}),
        Step("resources/read", {"uri": f"order://{second_order}"}),
        Step("prompts/get", {"name": "suggest_meal", "arguments": {"guests": "2", "dish": "Tiramisù"}}),
        Step(
            "completion/complete",
            {
                "ref": {"type": "ref/prompt", "name": "explain_order"},
                "argument": {"name": "order_id", "value": second_order[:30]},
            },
        ),
    ]


@pytest.fixture(scope="module", params=WAYS, ids=lambda way: f"{way[0]}-{way[1].name}")
def session(request: pytest.FixtureRequest, orders: Callable[[Transport], Target]) -> Session:
    player: Player = request.param[1]
    target = orders(request.param[0])
    placed = player.play(target, [tool("create_order", ORDER), tool("create_order", ORDER)])
    order_ids = [structured(call)["orderId"] for call in placed.calls]
    return Session(player, placed, player.play(target, plan(*order_ids)), order_ids)


def result(call: Call) -> dict[str, Any]:
    assert call.result is not None, call.error
    return call.result


def structured(call: Call) -> Any:
    assert "structuredContent" in result(call), call.result
    return result(call)["structuredContent"]


def failure(call: Call) -> str:
    assert result(call)["isError"] is True, call.result
    text: str = result(call)["content"][0]["text"]
    return text


def test_the_client_speaks_the_revision_that_it_is_asked_to(session: Session) -> None:
    assert session.played.revision == session.player.revision


def test_the_client_lists_the_tools(session: Session) -> None:
    names = ["search_menu", "get_order", "create_order", "cancel_order", "sales_report"]
    assert list(session.played.tools) == names


def test_the_client_gets_the_fields_of_an_order_as_arguments(session: Session) -> None:
    schema = session.played.tools["create_order"]["inputSchema"]
    assert schema["required"] == ["customerId", "items"]
    assert schema["properties"]["items"]["items"]["properties"]["quantity"]["maximum"] == 100


def test_the_client_gets_an_order_as_structured_content(session: Session) -> None:
    for call in session.placed.calls:
        assert structured(call)["total"] == TOTAL
    order = structured(session.call(GOOD))
    assert (order["orderId"], order["status"], order["total"]) == (session.order_ids[0], "placed", TOTAL)
    assert [line["itemId"] for line in order["lines"]] == ["margherita", "lemonade"]


def test_the_client_gets_a_list_inside_an_object(session: Session) -> None:
    items = structured(session.call(MENU))["result"]
    assert [item["itemId"] for item in items] == ["margherita", "diavola"]


def test_wrong_arguments_are_all_told_in_the_result_of_the_tool(session: Session) -> None:
    text = failure(session.call(WRONG))
    assert "items[0].quantity" in text
    assert "priority" in text


def test_an_unknown_tool_is_a_protocol_error(session: Session) -> None:
    error = session.call(UNKNOWN).error
    assert error is not None
    assert error["code"] == -32602
    assert "order_pizza" in error["message"]


def test_the_client_hears_of_progress(session: Session) -> None:
    call = session.call(REPORT)
    assert [(report["progress"], report["total"]) for report in call.progress] == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert call.progress[0]["message"] == "2030-01-01"
    assert structured(call)["orders"] == 0


def test_the_user_agrees_and_the_order_is_cancelled(session: Session) -> None:
    call = session.call(AGREED)
    assert [question["message"] for question in call.questions] == [f"Cancel the order of ada over {TOTAL} euros?"]
    assert call.questions[0]["requestedSchema"]["required"] == ["confirm"]
    assert structured(call)["status"] == "cancelled"


def test_the_user_declines_and_the_order_stands(session: Session) -> None:
    call = session.call(DECLINED)
    assert len(call.questions) == 1
    assert "did not agree" in failure(call)
    assert structured(session.call(AFTERWARDS))["status"] == "placed"


def test_the_client_lists_the_menu_and_the_new_orders(session: Session) -> None:
    uris = [resource["uri"] for resource in result(session.call(LISTED))["resources"]]
    assert "menu://items/tiramisu" in uris
    newest_first = [uri for uri in uris if uri.removeprefix("order://") in session.order_ids]
    assert newest_first == [f"order://{order_id}" for order_id in reversed(session.order_ids)]


def test_the_client_reads_a_part_of_the_menu_and_an_order(session: Session) -> None:
    (drinks,) = result(session.call(DRINKS))["contents"]
    assert [item["itemId"] for item in json.loads(drinks["text"])] == ["espresso", "lemonade"]
    (order,) = result(session.call(KEPT))["contents"]
    assert json.loads(order["text"]) == structured(session.call(AFTERWARDS))


def test_the_client_gets_a_prompt_with_the_menu_in_it(session: Session) -> None:
    menu, text = (message["content"] for message in result(session.call(MEAL))["messages"])
    assert (menu["type"], menu["resource"]["uri"]) == ("resource", "menu://today")
    assert text["text"] == "Suggest a meal for 2 from this menu. Tiramisù has to be part of it."


def test_the_id_of_an_order_is_completed_while_the_user_writes(session: Session) -> None:
    assert result(session.call(IDS))["completion"]["values"] == [session.order_ids[1]]
