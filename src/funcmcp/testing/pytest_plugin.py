"""A plugin for pytest: the fixture `mcp_cassette` plays the recorded calls of a server to the client under test.

Name it in conftest.py: ``pytest_plugins = ["funcmcp.testing.pytest_plugin"]``. See guides/testing.md.

Example:
    ```python
    @pytest.mark.mcp_cassette(server="https://weather.example.com/mcp", secrets=["pin"])
    async def test_forecast(mcp_cassette: CassetteServer) -> None:
        async with mcp_cassette.client() as client:
            assert "sunny" in (await client.call_tool("forecast", {"city": "Rome"})).text
    ```
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Literal

import pytest

from funcmcp._client.cassettes import Cassette, CassetteError, known_secrets
from funcmcp._client.targets import StdioCommand
from funcmcp.testing._cassette_server import CassetteServer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from funcmcp._client.target_transports import Target

    Mode = Literal["none", "once", "all"]

__all__ = ["mcp_cassette"]

_OPTION = "--mcp-record-mode"
_MARKER = "mcp_cassette"
_MARKER_OPTIONS = ("server", "path", "secrets", "headers")
_UNSAFE = re.compile(r"[^\w.-]+")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that decides whether calls are recorded."""
    parser.getgroup("funcmcp").addoption(
        _OPTION,
        choices=("none", "once", "all"),
        default="none",
        help="Record the calls of mcp_cassette: none (play them only), once (record those without a cassette), all.",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Describe the marker."""
    config.addinivalue_line(
        "markers",
        "mcp_cassette(server=None, path=None, secrets=(), headers=None): the server whose calls are recorded, the file "
        "of the cassette, names of members with secrets, and header fields of requests to the server.",
    )


@pytest.fixture
def mcp_cassette(request: pytest.FixtureRequest) -> Iterator[CassetteServer]:
    """Play the cassette of the test, or record it. A request that is not in it fails the test at its end."""
    marker = request.node.get_closest_marker(_MARKER)
    if marker is not None:
        _check_marker(marker)
    server = _server_for(request, **({} if marker is None else marker.kwargs))
    yield server
    if server.cassette.mismatches:
        pytest.fail("\n\n".join(server.cassette.mismatches), pytrace=False)


def _check_marker(marker: pytest.Mark) -> None:
    """Fail the test if its marker has an option that does not exist, or a value without a name."""
    unknown = [repr(option) for option in marker.kwargs if option not in _MARKER_OPTIONS]
    if marker.args or unknown:
        problem = f"has no option {unknown[0]}" if unknown else "takes its options by name"
        pytest.fail(
            f"@pytest.mark.{_MARKER} {problem}. Valid options: {', '.join(_MARKER_OPTIONS)}.",
            pytrace=False,
        )


def _server_for(
    request: pytest.FixtureRequest,
    *,
    server: Target | None = None,
    path: str | None = None,
    secrets: Sequence[str] = (),
    headers: Mapping[str, str] | None = None,
) -> CassetteServer:
    """Return the server for a test, by its marker and the mode."""
    mode: Mode = request.config.getoption(_OPTION)
    file = _default_file(request) if path is None else request.path.parent / path
    if mode == "none" or (mode == "once" and file.exists()):
        try:
            return CassetteServer(Cassette.load(file))
        except CassetteError as error:
            pytest.fail(f"{error} Record it: pytest {_OPTION}=once", pytrace=False)
    if server is None:
        pytest.fail(f"Name the server that is recorded: @pytest.mark.{_MARKER}(server=...)", pytrace=False)
    variables = {**os.environ, **(server.env if isinstance(server, StdioCommand) else {})}
    texts = known_secrets(headers or {}, variables)
    return CassetteServer(Cassette(file, secrets=secrets, texts=texts), server, headers)


def _default_file(request: pytest.FixtureRequest) -> Path:
    """Return cassettes/<module>/<test>.json beside the file of a test."""
    name = _UNSAFE.sub("-", request.node.name).strip("-")
    return request.path.parent / "cassettes" / request.path.stem / f"{name}.json"
