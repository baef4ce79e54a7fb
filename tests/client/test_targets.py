"""Targets of a client other than servers in memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from funcmcp.client import Client, HTTPEndpoint, StdioCommand
from funcmcp.upstreams import Upstream
from tests.patience import PATIENCE


def test_a_command_needs_a_program() -> None:
    with pytest.raises(ValueError, match="StdioCommand needs a program"):
        StdioCommand()


@pytest.mark.parametrize(
    ("arguments", "options", "error", "problem"),
    [
        (("serve", 8000), {}, TypeError, "takes strings, one for each argument.*Got 8000"),
        ((["python", "server.py"],), {}, TypeError, r"Got \['python', 'server.py'\]"),
        (("serve",), {"env": {"PORT": 8000}}, TypeError, r"env\['PORT'\] must be a string; got int"),
        (("serve",), {"start_seconds": 0}, ValueError, "start_seconds must be positive; got 0"),
        (("serve",), {"stop_seconds": float("nan")}, ValueError, "stop_seconds must be positive; got nan"),
    ],
)
def test_a_command_that_no_process_can_have_is_an_error_at_once(
    arguments: tuple[Any, ...], options: dict[str, Any], error: type[Exception], problem: str
) -> None:
    with pytest.raises(error, match=problem):
        StdioCommand(*arguments, **options)


def test_a_path_may_be_a_part_of_a_command() -> None:
    assert StdioCommand(Path("a") / "b", Path("c")).command == (str(Path("a") / "b"), "c")


def test_the_representation_of_a_target_has_no_secrets() -> None:
    endpoint = HTTPEndpoint("http://ada:secret@127.0.0.1/mcp?code=secret", headers={"authorization": "Bearer secret"})
    assert repr(endpoint) == "HTTPEndpoint('http://ada:***@127.0.0.1/mcp?***')"
    assert repr(StdioCommand("python", "a.py", env={"KEY": "secret"})) == "StdioCommand('python', 'a.py')"


@pytest.mark.parametrize(
    "url", ["", "server.py", "http://", "http:///mcp", "ftp://a/mcp", "http://a:0/", "http://[::1/mcp"]
)
def test_a_string_that_is_not_a_url_is_an_error_at_once(url: str) -> None:
    with pytest.raises(ValueError, match="is not a URL of an endpoint, such as"):
        Client(url)


def test_a_target_of_another_type_is_an_error_at_once() -> None:
    with pytest.raises(TypeError, match=r"Client needs an MCPServer, a URL, .*; got int\."):
        Client(5)  # type: ignore[arg-type]


@pytest.mark.parametrize("target", [None, ["python", "server.py"], Path("server.py")])
def test_an_upstream_of_another_type_is_an_error_at_once(target: Any) -> None:
    with pytest.raises(TypeError, match=f"a StdioCommand or a transport; got {type(target).__name__}"):
        Upstream(target)


@pytest.mark.parametrize("target", ["server.py", "uvx mcp-server-time", "127.0.0.1:8000/mcp"])
def test_an_upstream_that_is_not_a_url_is_an_error_at_once(target: str) -> None:
    with pytest.raises(ValueError, match=r"is not a URL of an endpoint, such as .* A program is a StdioCommand"):
        Upstream(target)


def test_a_script_is_not_read_as_a_configuration() -> None:
    with pytest.raises(ValueError, match=r"server\.py is a script\. Pass the command that runs it"):
        Client(Path("server.py"))


def test_headers_are_for_http() -> None:
    with pytest.raises(ValueError, match="headers are for HTTP"):
        Client(StdioCommand("python"), headers={"a": "b"})


@pytest.mark.parametrize(
    ("target", "absent"),
    [
        ('"http://127.0.0.1:1/mcp"', {"funcmcp._app.mcp_server", "funcmcp._client.stdio", "pydantic", "uvicorn"}),
        ('StdioCommand("python")', {"funcmcp._app.mcp_server", "httpx2", "pydantic", "uvicorn"}),
        ('__import__("funcmcp").MCPServer("a")', {"funcmcp._client.stdio", "httpx2", "uvicorn"}),
    ],
)
def test_a_target_loads_only_what_it_needs(target: str, absent: set[str]) -> None:
    code = f"from funcmcp.client import Client, StdioCommand; Client({target}); import sys; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=PATIENCE)
    assert not set(run.stdout.split()) & absent
