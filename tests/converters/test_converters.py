"""The client libraries that people use declare and call every tool, but for faults of their own."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.converters.known_faults import FAULTS
from tests.converters.libraries import LIBRARIES, Library
from tests.converters.sources import OWN, Served, serve_all
from tests.converters.verdicts import Problem, problems

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = [
    pytest.mark.skipif(Path(sys.prefix).name != ".venv", reason="make test runs the clients on one Python, in .venv"),
    pytest.mark.timeout(600),  # some of the libraries take long to import
]


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Served]]:
    for library in LIBRARIES:
        assert library.command
    with serve_all(OWN, tmp_path_factory.mktemp("orders") / "orders.db") as served:
        yield served


@pytest.fixture(scope="module")
def problems_of(servers: list[Served]) -> Callable[[Library], list[Problem]]:
    """Return the problems of a library with all servers."""
    found: dict[str, list[Problem]] = {}

    def play(library: Library) -> list[Problem]:
        if library.name not in found:
            played = library.play([server.plan for server in servers])
            found[library.name] = [
                problem
                for server, outcome in zip(servers, played, strict=True)
                for problem in problems(library.name, server, outcome)
            ]
        return found[library.name]

    return play


@pytest.mark.parametrize("library", LIBRARIES, ids=lambda library: library.name)
def test_every_tool_is_usable_but_for_known_faults_of_the_client(
    library: Library, problems_of: Callable[[Library], list[Problem]]
) -> None:
    unexplained = [str(problem) for problem in problems_of(library) if problem.fault is None]
    assert unexplained == []


def test_each_known_fault_is_one_of_the_pinned_version(problems_of: Callable[[Library], list[Problem]]) -> None:
    seen = {problem.fault for library in LIBRARIES for problem in problems_of(library)}
    assert [fault for fault in FAULTS if fault not in seen] == []
