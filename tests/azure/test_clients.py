"""Official clients use the orders sample in a function app, in both eras, with and without HTTP streams."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from tests.azure.serving import serve_app, write_sample
from tests.azure.worker import needs_worker
from tests.clients.plan import Call, Step, Target, hear, tool
from tests.clients.players import HANDSHAKE, PER_REQUEST, PLAYERS, Player

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [
    needs_worker,
    pytest.mark.every_python("Python 3.13 has another azure-functions."),
]

ORDER = {"customerId": "ada", "items": [{"itemId": "margherita", "quantity": 2}]}
AGREE = {"action": "accept", "content": {"confirm": True}}


class Endpoint(NamedTuple):
    """Where the sample is, and whether streams are on there."""

    url: str
    streams: bool


@pytest.fixture(scope="module", params=[False, True], ids=["whole", "streams"])
def endpoint(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoint]:
    folder = tmp_path_factory.mktemp("orders")
    app = write_sample(folder / "app", "orders", streams=request.param)
    with serve_app(app, env={"ORDERS_DB": str(folder / "orders.db")}) as served:
        yield Endpoint(served.url, request.param)


@pytest.mark.parametrize("player", PLAYERS, ids=lambda player: player.name)
def test_a_client_orders_hears_of_progress_and_is_asked_where_that_is_possible(
    player: Player, endpoint: Endpoint
) -> None:
    target = Target("http", endpoint.url)
    order_id = structured(player.play(target, [tool("create_order", ORDER)]).calls[0])["orderId"]
    played = player.play(
        target,
        [
            tool("sales_report", {"first_day": "2030-01-01", "last_day": "2030-01-03"}),
            tool("cancel_order", {"order_id": order_id}, AGREE),
        ],
    )
    report, cancelled = played.calls
    assert played.revision == player.revision
    assert list(played.tools) == ["search_menu", "get_order", "create_order", "cancel_order", "sales_report"]
    assert [told["progress"] for told in report.progress] == [1, 2, 3]
    assert structured(report)["orders"] == 0
    if endpoint.streams or player.revision == PER_REQUEST:
        assert structured(cancelled)["status"] == "cancelled"
    else:
        assert cancelled.result is not None
        assert cancelled.result["isError"] is True
        assert "complete" in cancelled.result["content"][0]["text"]


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    app = write_sample(tmp_path_factory.mktemp("everything") / "app", "everything")
    with serve_app(app) as served:
        yield Target("http", served.url)


WATCHING = [player for player in PLAYERS if player.revision == HANDSHAKE]
URI = "test://watched-resource"


@pytest.mark.parametrize("player", WATCHING, ids=lambda player: player.name)
def test_a_client_of_the_handshake_era_hears_of_updates_without_streams(player: Player, watched: Target) -> None:
    plan = [
        Step("watch", {"resourceSubscriptions": [URI]}),
        hear(("resources/updated", {"uri": URI}), again=["test_trigger_resource_update"]),
        Step("resources/unsubscribe", {"uri": URI}),
        tool("test_trigger_resource_update"),
        hear(),
    ]
    calls = player.play(watched, plan).calls
    assert [call.error for call in calls] == [None] * len(plan)
    assert [message["params"]["uri"] for message in heard(calls[1])] == [URI]
    assert heard(calls[4]) == []


def heard(call: Call) -> list[dict[str, Any]]:
    assert call.result is not None, call.error
    found: list[dict[str, Any]] = call.result["heard"]
    return found


def structured(call: Call) -> dict[str, object]:
    assert call.result is not None, call.error
    found: dict[str, object] = call.result["structuredContent"]
    return found
