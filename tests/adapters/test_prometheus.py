"""Metrics in the format of Prometheus, which its own client library reads."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from typing import TYPE_CHECKING

import httpx2
import pytest
from prometheus_client.parser import text_string_to_metric_families

from funcmcp import MCPServer
from funcmcp._adapters import prometheus
from funcmcp._serving.composition import runtime_of
from funcmcp.auth import APIKeys
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Callable

    from prometheus_client.core import Metric

pytestmark = pytest.mark.lowest("OpenTelemetry keeps spans and metrics.")

KEY = "0123456789abcdef"


def server(**options: object) -> MCPServer:
    mcp = MCPServer("Prometheus", **options)  # type: ignore[arg-type] # options of one test

    @mcp.tool
    async def find() -> str:
        return "found"

    return mcp


def durations_in(text: str) -> Metric:
    """Return the durations of requests in the text of a response."""
    (durations,) = [
        family
        for family in text_string_to_metric_families(text)
        if family.name == "mcp_server_operation_duration_seconds"
    ]
    return durations


async def test_metrics_at_a_path_are_for_callers_with_credentials() -> None:
    mcp = server(auth=APIKeys({"ann": KEY}))
    mcp.serve_metrics(path="/numbers")
    await mcp.call_tool("find")
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=mcp), base_url="http://127.0.0.1") as client:
        assert (await client.get("/numbers")).status_code == 401
        response = await client.get("/numbers", headers={"x-api-key": KEY})
    assert (response.status_code, response.headers["content-type"].partition(";")[0]) == (200, "text/plain")
    labels = [sample.labels for sample in durations_in(response.text).samples if sample.name.endswith("_count")]
    assert [label["gen_ai_tool_name"] for label in labels if label["mcp_method_name"] == "tools/call"] == ["find"]


@pytest.mark.parametrize(
    ("is_worker", "has_predecessor", "warns"), [(True, False, True), (True, True, False), (False, False, False)]
)
def test_a_path_that_shows_one_of_several_processes_is_a_warning_at_the_start(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    is_worker: bool,
    has_predecessor: bool,
    warns: bool,
) -> None:
    if is_worker:
        monkeypatch.setenv("SERVER_SOFTWARE", "gunicorn/23.0.0")
    mcp = server(auth=APIKeys({"ann": KEY}))
    mcp.serve_metrics(path="/numbers")
    runtime_of(mcp).has_predecessor = has_predecessor
    runtime_of(mcp).begin()
    assert ("a request to /numbers gets the metrics of one of them" in caplog.text) is warns


@pytest.mark.slow("A server with a second port starts.")
async def test_metrics_have_a_port_of_their_own_while_the_server_runs(caplog: pytest.LogCaptureFixture) -> None:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port = listening.getsockname()[1]
    mcp = server()
    mcp.serve_metrics(port)
    async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:
        async with mcp.lifespan():
            runtime_of(mcp).begin()
            await mcp.call_tool("find")
            assert durations_in((await client.get("/metrics")).text).samples
            second = server()
            second.serve_metrics(port)
            await runtime_of(second).start()
            assert f"The metrics are not served on 127.0.0.1:{port}: Address already in use." in caplog.text
            caplog.clear()
        async with asyncio.timeout(PATIENCE):  # the first one has ended
            while True:
                with contextlib.suppress(httpx2.ConnectError):
                    assert durations_in((await client.get("/metrics")).text).samples
                    break
                await asyncio.sleep(0.1)
        assert [record.levelname for record in caplog.records if "are served on" in record.message] == ["WARNING"]
        await runtime_of(second).aclose()
        with pytest.raises(httpx2.ConnectError):
            await client.get("/metrics")


async def until(condition: Callable[[], bool]) -> None:
    """Wait for what another thread does."""
    async with asyncio.timeout(PATIENCE):
        while not condition():  # noqa: ASYNC110 - no event tells it
            await asyncio.sleep(0.01)


@pytest.mark.slow("It takes half a second or longer with a real store.")
@pytest.mark.parametrize("is_late", [False, True], ids=["in time", "too late"])
async def test_a_port_of_the_process_before_is_an_error_only_if_it_remains_taken(
    is_late: bool, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prometheus, "_RETRY_SECONDS", 0.01)
    monkeypatch.setattr(prometheus, "drain_seconds", lambda: -10 if is_late else 1000)
    caplog.set_level("INFO")
    with socket.create_server(("127.0.0.1", 0)) as earlier:
        port = earlier.getsockname()[1]
        metrics = prometheus.MetricsPort("127.0.0.1", port)
        metrics.open(has_predecessor=True)
        if is_late:
            await until(lambda: bool(caplog.records))
    await until(lambda: "are served on" in caplog.text)
    metrics.close()
    assert [record.levelname for record in caplog.records] == (["ERROR", "WARNING"] if is_late else ["INFO"])


def test_metrics_without_authentication_need_a_port() -> None:
    with pytest.raises(ValueError, match=r"^Everybody could read the metrics: .* Pass port= for a port of its own\.$"):
        server().serve_metrics()


def test_a_server_that_ends_without_a_start_has_no_port_to_close() -> None:
    mcp = server()
    mcp.serve_metrics(1)
    asyncio.run(runtime_of(mcp).aclose())
