"""The official conformance suite against a function app: without HTTP streams, all but what needs one passes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.azure.serving import serve_app, write_sample
from tests.azure.worker import needs_worker
from tests.conformance.suite import disagreements, run
from tests.conformance.test_conformance import EXPECTED as TASKS
from tests.serving import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.azurite import Azurite
    from tests.serving import Served

pytestmark = [
    needs_worker,
    pytest.mark.every_python("Python 3.13 has another azure-functions."),
]

# Questions on the stream of a call.
LIVE = [
    "elicitation-sep1034-defaults",
    "elicitation-sep1330-enums",
    "tools-call-elicitation",
    "tools-call-sampling",
]
RUNS = [
    pytest.param("0.1.16", "--suite all", LIVE, "28 of 32", "32 of 32", id="0.1.16"),
    pytest.param("0.2", "--requirements 2025-11-25", LIVE, "26 of 30", "30 of 30", id="2025-11-25"),
    pytest.param("0.2", "--requirements 2026-07-28", TASKS, "37 of 37", "37 of 37", id="2026-07-28"),
]


@pytest.fixture(scope="module", params=[False, True], ids=["whole", "streams"])
def served(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, azurite: Azurite
) -> Iterator[tuple[Served, bool]]:
    app = write_sample(tmp_path_factory.mktemp("everything") / "app", "everything", streams=request.param)
    with serve_app(app, env={"TASKS_STORAGE": azurite.connection_string}) as served:
        yield served, request.param


@pytest.mark.parametrize(("suite", "options", "expected", "whole", "streamed"), RUNS)
def test_every_scenario_passes_that_can(
    suite: str,
    options: str,
    expected: list[str],
    whole: str,
    streamed: str,
    *,
    served: tuple[Served, bool],
    tmp_path: Path,
) -> None:
    endpoint, streams = served
    report = run(f"conformance-{suite[:3]}", endpoint.url, options.split(), tmp_path)
    failing = [] if streams and expected is LIVE else expected
    problems = disagreements(report, failing)
    assert not problems, "\n" + "\n".join(problems)
    assert report.cells()[0] == (streamed if streams else whole)
    assert report.cells()[-1] == ("44 / 0" if expected is TASKS else "0 / 0")
    assert (streamed if streams else whole) in (REPOSITORY / "docs/guides/azure.md").read_text(encoding="utf-8")
