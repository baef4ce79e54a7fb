"""Three instances behind a proxy that sends each request to the next one, with a real Redis between them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.clients.plan import Step, Target, hear, tool
from tests.clients.players import PLAYERS, Player
from tests.cluster.proxy import proxied

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.slow("Several processes fail and start again, behind a proxy or a store.")


@pytest.fixture(scope="module")
def proxy(shops: list[str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The endpoint in front of three instances that nothing happens to; an answer never goes to the one that asked."""
    with proxied(shops, tmp_path_factory.mktemp("proxy"), balance="roundrobin") as url:
        yield url


PLAN = [
    *(tool("add", {"a": number, "b": 1}) for number in range(6)),
    tool("order", {"what": "Tea"}, {"action": "accept", "content": {"size": 3}}),
    tool("order", {"what": "Tea"}, {"action": "decline"}),
    Step("watch", {"resourceSubscriptions": ["menu://today"]}),
    hear(("resources/updated", {"uri": "menu://today"}), again=["touch_today"]),
    *(tool("add", {"a": number, "b": 1}) for number in range(6)),
]


@pytest.mark.parametrize("player", PLAYERS, ids=lambda player: player.name)
def test_official_clients_notice_nothing_of_the_instances(player: Player, proxy: str) -> None:
    played = player.play(Target("http", proxy), PLAN)
    assert played.revision == player.revision
    texts = [call.result["content"][0]["text"] for call in played.calls if call.result and "content" in call.result]
    sums = [str(number + 1) for number in range(6)]
    assert texts == [*sums, "Tea in 3", "decline", *sums]
    assert [call.error for call in played.calls] == [None] * len(PLAN)
