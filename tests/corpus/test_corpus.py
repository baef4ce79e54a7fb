"""Some servers of the corpus; `make corpus` compares all of them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.corpus.installation import install_or_skip
from tests.corpus.report import failures
from tests.corpus.run import Server, compared, servers

QUICK = [server for server in servers() if server.options.get("quick")]

pytestmark = [
    pytest.mark.skipif(Path(sys.prefix).name != ".venv", reason="make test runs the corpus on one Python, in .venv"),
    pytest.mark.timeout(600),
    pytest.mark.slow("Published servers are installed and compared."),
]


@pytest.fixture(scope="module")
def installed() -> None:
    install_or_skip(QUICK)


@pytest.mark.parametrize("server", QUICK, ids=lambda server: server.name)
def test_a_published_server_offers_the_same_on_funcmcp(server: Server, installed: None) -> None:
    comparison = compared(server)
    assert comparison.counts["tools"] > 0
    assert failures(comparison) == []


def test_the_corpus_has_servers_of_every_library() -> None:
    high_level = {server.name for server in servers() if not server.library.startswith("low-level")}
    assert len(high_level) >= 40
    assert {server.library for server in servers()} == {
        "mcp 1",
        "mcp 2",
        "fastmcp 2",
        "fastmcp 3",
        "fastmcp 4",
        "low-level 1",
        "low-level 2",
    }
