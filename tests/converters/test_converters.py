"""The client libraries that people use declare and call every tool, but for faults of their own."""

from __future__ import annotations

import functools
import sys
from base64 import b64encode
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.converters import ordinary
from tests.converters.known_faults import FAULTS
from tests.converters.libraries import LIBRARIES, Library
from tests.converters.sources import OWN, Served, serve_all
from tests.converters.verdicts import Problem, problems

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = [
    pytest.mark.skipif(Path(sys.prefix).name != ".venv", reason="make test runs the clients on one Python, in .venv"),
    pytest.mark.timeout(600),
    pytest.mark.slow("The client libraries of other makers are large."),
]


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Served]]:
    for library in LIBRARIES:
        assert library.command
    with serve_all(OWN, tmp_path_factory.mktemp("samples")) as served:
        yield served


@pytest.fixture(scope="module")
def play(servers: list[Served]) -> Callable[[Library], list[dict[str, Any]]]:
    """Return a function that returns what a library did with each server. Each library plays once."""

    @functools.cache
    def play_once(library: Library) -> list[dict[str, Any]]:
        return library.play([server.plan for server in servers])

    return play_once


@pytest.fixture(scope="module")
def problems_of(
    servers: list[Served], play: Callable[[Library], list[dict[str, Any]]]
) -> Callable[[Library], list[Problem]]:
    """Return a function that returns the problems of a library with all servers."""

    def find(library: Library) -> list[Problem]:
        outcomes = zip(servers, play(library), strict=True)
        return [problem for server, played in outcomes for problem in problems(library, server, played)]

    return find


def a_library(test: Callable[..., None]) -> Any:
    return pytest.mark.parametrize("library", LIBRARIES, ids=lambda library: library.name)(test)


@a_library
def test_every_tool_is_usable_but_for_known_faults_of_the_client(
    library: Library, problems_of: Callable[[Library], list[Problem]]
) -> None:
    unexplained = [str(problem) for problem in problems_of(library) if problem.fault is None]
    assert unexplained == []


@a_library
def test_a_model_reads_each_picture_at_most_once(
    library: Library, play: Callable[[Library], list[dict[str, Any]]]
) -> None:
    calls = play(library)[0]["calls"]
    encoded = b64encode(ordinary.PNG).decode()
    assert calls["picture"]["text"].count(encoded) <= 1
    assert calls["pictures"]["text"].count(encoded) <= 2


def test_each_known_fault_is_one_of_the_pinned_versions(problems_of: Callable[[Library], list[Problem]]) -> None:
    seen = {problem.fault for library in LIBRARIES for problem in problems_of(library)}
    assert [fault for fault in FAULTS if fault not in seen] == []
