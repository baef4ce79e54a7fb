"""The official conformance suite through a proxy: as many checks pass as without it, in all four pairs of eras."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.conformance.suite import Report, disagreements, read_expected, run
from tests.proxy.serving import everything, proxy
from tests.proxy.wire import ERAS, HANDSHAKE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.serving import Served

pytestmark = pytest.mark.slow("The official suite plays all of its scenarios, twice.")

HOP = {"server-sse-polling"}
"""Scenarios about the stream of one connection: the server ends it, and the proxy has no reason to end its own."""

CROSSED = read_expected(Path(__file__).parent / "expected_failures_through_proxy.txt")
"""What fails with a client of 2026-07-28 and an upstream of 2025-11-25, and why."""


@pytest.fixture(scope="module", params=ERAS, ids=lambda era: f"upstream of {era}")
def upstream(request: pytest.FixtureRequest) -> Iterator[tuple[str, Served]]:
    with everything(request.param) as served:
        yield request.param, served


@pytest.fixture(scope="module")
def direct(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Report]:
    """What passes without a proxy, for each era of the suite's client."""
    with everything(*ERAS) as served:
        return {
            era: run("conformance-0.2", served.url, ["--requirements", era], tmp_path_factory.mktemp("direct") / era)
            for era in ERAS
        }


@pytest.mark.parametrize("era", ERAS)
def test_as_many_checks_pass_through_a_proxy_as_without_it(
    era: str, upstream: tuple[str, Served], direct: dict[str, Report], tmp_path: Path
) -> None:
    upstream_era, behind = upstream
    with proxy({"url": behind.url}) as served:
        proxied = run("conformance-0.2", served.url, ["--requirements", era], tmp_path / "proxied")
    expected = CROSSED if era != HANDSHAKE and upstream_era == HANDSHAKE else []
    problems = disagreements(proxied, expected)
    assert not problems, "\n" + "\n".join(problems)
    fewer = Counter(direct[era].passed) - Counter(proxied.passed)
    assert set(fewer) <= HOP | {entry.partition(":")[0] for entry in expected}
