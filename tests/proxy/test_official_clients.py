"""Official clients use all that the protocol has through a proxy, in all four pairs of eras.

The tests are those of `tests/clients/test_everything.py`, with a proxy between the clients and the server. How a client
chooses its revision is tested with a proxy in `test_everything.py`, so each client plays once for each era here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.clients import test_everything as without_proxy
from tests.clients.plan import Target
from tests.clients.players import PLAYERS, Player
from tests.clients.test_everything import Session, plan
from tests.proxy.serving import everything, proxy
from tests.proxy.wire import ERAS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.serving import Served

pytestmark = pytest.mark.slow("Each official client plays each step through two processes.")

ONCE_IN_EACH_ERA = ["python-handshake", "python-2026-07-28", "typescript-v1", "typescript-v2-2026-07-28"]

globals().update({name: test for name, test in vars(without_proxy).items() if name.startswith("test_")})


@pytest.fixture(scope="module", params=ERAS, ids=lambda era: f"upstream of {era}")
def served(request: pytest.FixtureRequest) -> Iterator[Served]:
    with everything(request.param) as upstream, proxy({"url": upstream.url}) as served:
        yield served


@pytest.fixture(
    scope="module",
    params=[player for player in PLAYERS if player.name in ONCE_IN_EACH_ERA],
    ids=lambda player: player.name,
)
def session(request: pytest.FixtureRequest, served: Served) -> Session:
    player: Player = request.param
    steps = plan(player.name, player)
    played = player.play(Target("http", served.url), list(steps.values()))
    return Session(player, played.revision, player.name, dict(zip(steps, played.calls, strict=True)))
