"""The fixture `mcp_cassette`, in tests that pytest runs in this process."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import funcmcp._app.mcp_server  # noqa: F401 - each run of pytester would load another one

if TYPE_CHECKING:
    from pathlib import Path

pytest_plugins = ["pytester"]

TESTS = '''
import asyncio

import pytest

from funcmcp import MCPServer
from funcmcp.testing import CassetteServer

mcp = MCPServer("shop")


@mcp.tool
def price(item: str) -> int:
    """Return the price of an item."""
    return len(item)


def call(server, item="tea"):
    async def main():
        async with server.client() as client:
            return (await client.call_tool("price", {"item": item})).text

    return asyncio.run(main())


@pytest.mark.mcp_cassette(server=mcp)
def test_price(mcp_cassette: CassetteServer):
    assert call(mcp_cassette) == "3"
    assert mcp_cassette.command[-2:] == ["replay", str(mcp_cassette.cassette.path)]


@pytest.mark.mcp_cassette(server=mcp, path="shared.json", headers={"authorization": "Bearer adas-token"})
@pytest.mark.parametrize("item", ["tea/1"])
def test_other_place(mcp_cassette, item):
    assert call(mcp_cassette, item) == "5"


def test_without_a_server(mcp_cassette):
    assert mcp_cassette is not None
'''


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function")
    pytester.makeconftest('pytest_plugins = ["funcmcp.testing.pytest_plugin"]')
    pytester.makepyfile(test_shop=TESTS)
    return pytester


def cassette_of(project: pytest.Pytester) -> Path:
    return project.path / "cassettes" / "test_shop" / "test_price.json"


def test_calls_are_recorded_once_and_played(project: pytest.Pytester) -> None:
    run = project.runpytest_inprocess("-p", "no:randomly", "-p", "no:cacheprovider")
    run.assert_outcomes(errors=3)
    run.stdout.fnmatch_lines(["*There is no cassette *Record it: pytest --mcp-record-mode=once*"])
    run = project.runpytest_inprocess("--mcp-record-mode=once", "-p", "no:cacheprovider")
    run.assert_outcomes(passed=2, errors=1)
    run.stdout.fnmatch_lines(["*Name the server that is recorded: @pytest.mark.mcp_cassette(server=...)*"])
    assert (project.path / "shared.json").exists()
    before = cassette_of(project).read_text()
    run = project.runpytest_inprocess("-k", "not without", "-p", "no:cacheprovider")
    run.assert_outcomes(passed=2)
    project.runpytest_inprocess("--mcp-record-mode=all", "-k", "price", "-p", "no:cacheprovider").assert_outcomes(
        passed=1
    )
    assert json.loads(cassette_of(project).read_text()) == json.loads(before)


def test_a_wrong_option_of_the_marker_fails_the_test_with_the_valid_ones(project: pytest.Pytester) -> None:
    project.makepyfile(
        test_shop="""
import pytest


@pytest.mark.mcp_cassette(secret=["pin"])
def test_option(mcp_cassette):
    pass


@pytest.mark.mcp_cassette("https://weather.example.com/mcp")
def test_position(mcp_cassette):
    pass
"""
    )
    run = project.runpytest_inprocess("-p", "no:randomly", "-p", "no:cacheprovider")
    run.assert_outcomes(errors=2)
    run.stdout.fnmatch_lines(
        [
            "*mcp_cassette has no option 'secret'. Valid options: server, path, secrets, headers.*",
            "*mcp_cassette takes its options by name. Valid options: server, path, secrets, headers.*",
        ]
    )


def test_another_request_fails_the_test_with_the_difference(project: pytest.Pytester) -> None:
    project.runpytest_inprocess("--mcp-record-mode=once", "-k", "price", "-p", "no:cacheprovider")
    file = project.path / "test_shop.py"
    file.write_text(
        file.read_text().replace(
            'assert call(mcp_cassette) == "3"', 'with pytest.raises(Exception): call(mcp_cassette, "coffee")'
        )
    )
    run = project.runpytest_inprocess("-k", "price", "-p", "no:cacheprovider")
    run.assert_outcomes(passed=1, errors=1)
    run.stdout.fnmatch_lines(['*-*"item": "tea"*', '*+*"item": "coffee"*'])
