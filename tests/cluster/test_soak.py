"""A short run of the soak test, which runs for ten minutes by hand (``make soak``)."""

from __future__ import annotations

import pytest

from tests.cluster.soak import SCENARIOS, run

pytestmark = pytest.mark.slow("Several processes fail and start again, behind a proxy or a store.")

SECONDS = 20.0


@pytest.mark.timeout(180)
async def test_nothing_is_lost_repeated_or_wrong_while_instances_and_connections_fail() -> None:
    soak = await run(SECONDS)
    assert soak.violations == []
    assert soak.faults.kinds
    assert soak.done.keys() == {scenario.__name__ for scenario in SCENARIOS}
    assert soak.done.total() > soak.interrupted.total()
