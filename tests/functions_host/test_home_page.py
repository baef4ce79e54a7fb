"""The response to ``GET /``."""

from __future__ import annotations

import os
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from funcmcp_host.served import FunctionsHost, HostSettings
from tests.functions_host.apps import write_app
from tests.functions_host.host_requests import HostRequest
from tests.functions_host.test_routes import body_of, send

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

TOOL = '''
import azure.functions as func

app = func.FunctionApp(http_auth_level=func.AuthLevel.ANONYMOUS)


@app.mcp_tool()
def tool() -> str:
    """A tool."""
    return "tool"
'''
AT_ROOT = """
import azure.functions as func

app = func.FunctionApp(http_auth_level=func.AuthLevel.ANONYMOUS)


@app.route(route="{*path}", methods=["GET"])
def everything(req: func.HttpRequest) -> str:
    return "everything: " + req.route_params.get("path", "")
"""


@asynccontextmanager
async def served(folder: Path, address: str = "127.0.0.1", **environment: str) -> AsyncIterator[FunctionsHost]:
    host = FunctionsHost(folder, {**os.environ, **environment}, HostSettings(host=address, engine="library"))
    try:
        await host.start()
        yield host
    finally:
        await host.aclose()


async def test_the_page(tmp_path: Path) -> None:
    async with served(write_app(tmp_path, TOOL)) as host:
        response = await send(host, "GET", "/")
        headers = dict(response.headers)
        assert (response.status, headers["content-type"]) == (200, "text/html; charset=utf-8")
        assert headers["content-security-policy"].startswith("default-src 'none'")
        assert b"<h1>The function app is running</h1>" in body_of(response)
        assert (await send(host, "HEAD", "/")).status == 200
        assert (await send(host, "POST", "/")).status == 404


@pytest.mark.parametrize("value", ["true", "True", "TRUE"])
async def test_the_page_can_be_turned_off(value: str, tmp_path: Path) -> None:
    async with served(write_app(tmp_path, TOOL, settings={"AzureWebJobsDisableHomepage": value})) as host:
        response = await send(host, "GET", "/")
        assert (response.status, response.headers, body_of(response)) == (204, (), b"")


async def test_a_function_at_the_root_replaces_the_page(tmp_path: Path) -> None:
    async with served(write_app(tmp_path, AT_ROOT, host={"extensions": {"http": {"routePrefix": ""}}})) as host:
        assert body_of(await send(host, "GET", "/")) == b"everything: "
        assert (await send(host, "POST", "/")).status == 405


async def test_probes_send_no_key_and_the_address_of_the_machine(tmp_path: Path) -> None:
    key = "k" * 16
    async with served(write_app(tmp_path, TOOL), "0.0.0.0", FUNCMCP_HOST_KEYS=f"default={key}") as host:
        assert (await host.exchange(HostRequest("GET", "/", host="192.0.2.7:7071"))).status == 200


@pytest.mark.parametrize("path", ["/livez", "/readyz"])
async def test_the_health_endpoints_answer_probes_until_the_host_stops(path: str, tmp_path: Path) -> None:
    key = "k" * 16
    async with served(write_app(tmp_path, TOOL), "0.0.0.0", FUNCMCP_HOST_KEYS=f"default={key}") as host:
        response = await host.exchange(HostRequest("GET", path, host="192.0.2.7:7071"))
        assert (response.status, body_of(response)) == (200, b"ok\n")
        host.drain()
        response = await host.exchange(HostRequest("GET", path, host="192.0.2.7:7071"))
        assert response.status == (200 if path == "/livez" else 503)


async def test_a_host_whose_app_has_not_started_is_not_ready(tmp_path: Path) -> None:
    host = FunctionsHost(write_app(tmp_path, TOOL), os.environ, HostSettings(engine="library"))
    assert (await send(host, "GET", "/readyz")).status == 503
    await host.aclose()


async def test_a_function_with_their_path_replaces_the_health_endpoints(tmp_path: Path) -> None:
    async with served(write_app(tmp_path, AT_ROOT, host={"extensions": {"http": {"routePrefix": ""}}})) as host:
        assert body_of(await send(host, "GET", "/readyz")) == b"everything: readyz"
