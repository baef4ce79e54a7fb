"""The health endpoints: whom they answer, what they check, and how often."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sqlite3
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp import HTTPOptions, MCPServer
from funcmcp._client.http_messages import MemoryRequest
from funcmcp._serving.composition import runtime_of
from funcmcp._state.sessions.memory import MemorySessions
from funcmcp._state.sessions.store import StoreUnavailableError
from funcmcp._state.tasks.sqlite_file import SQLiteFile
from funcmcp._transports.http.endpoints import health
from funcmcp._transports.http.options import HEALTH_VARIABLE
from funcmcp.auth import APIKeys, Auth
from funcmcp.state import MemoryRates
from funcmcp.tasks import SQLiteTasks
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from funcmcp._state.sessions.store import Handshake
    from funcmcp._transports.http.messages import HttpResponse
    from funcmcp.http import Request

pytestmark = pytest.mark.branches("Health endpoints ask whether the server stops.")


def server(name: str = "Shop", **options: Any) -> MCPServer:
    return MCPServer(name, **options)


async def get(mcp: MCPServer, path: str, *headers: tuple[bytes, bytes], method: str = "GET") -> HttpResponse:
    return await runtime_of(mcp).exchange(MemoryRequest(method, path, list(headers), b""))


async def status(mcp: MCPServer, path: str = "/readyz") -> int:
    return (await get(mcp, path)).status


@pytest.mark.parametrize("path", ["/livez", "/readyz"])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize(
    "headers",
    [
        [],
        [(b"host", b"10.1.2.3:8000")],
        [(b"host", b"attacker.example")],
        [(b"host", b"a"), (b"host", b"b")],
        [(b"host", b"localhost"), (b"origin", b"https://attacker.example")],
    ],
)
async def test_probes_are_answered_whatever_host_they_send(
    path: str, method: str, headers: list[tuple[bytes, bytes]]
) -> None:
    mcp = server(auth=Auth(APIKeys({"ada": "k" * 32})), http=HTTPOptions(rates=MemoryRates(0.001, 1)))
    for _ in range(3):
        response = await get(mcp, path, *headers, method=method)
        assert (response.status, response.body) == (200, b"ok\n")
    assert dict(response.headers)["cache-control"] == "no-store"


async def test_other_methods_are_refused() -> None:
    response = await get(server(), "/livez", method="POST")
    assert (response.status, dict(response.headers)["allow"]) == (405, "GET, HEAD")


async def test_routes_and_endpoints_of_the_author_win() -> None:
    mcp = server(http=HTTPOptions(sse="/readyz"))
    assert await status(mcp) == 400  # the endpoint misses the Host

    @mcp.custom_route("/livez", methods=["GET"])
    async def livez(_request: Request) -> str:
        return "mine"

    response = await get(mcp, "/livez", (b"host", b"127.0.0.1"))
    assert (response.status, response.body) == (200, b"mine")
    assert (await get(server(http=HTTPOptions(path="/livez")), "/livez")).status == 400


async def test_they_can_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    off = HTTPOptions(health=False)
    assert (await get(server(http=off), "/livez", (b"host", b"127.0.0.1"))).status == 404
    monkeypatch.setenv(HEALTH_VARIABLE, "on")
    assert await status(server(http=off)) == 200
    monkeypatch.setenv(HEALTH_VARIABLE, "off")
    assert (await get(server(), "/livez", (b"host", b"127.0.0.1"))).status == 404
    monkeypatch.setenv(HEALTH_VARIABLE, "maybe")
    with pytest.raises(ValueError, match="FUNCMCP_HEALTH must be 'on' or 'off'; got 'maybe'"):
        server()


async def test_a_server_that_stops_is_live_and_not_ready() -> None:
    mcp = server()
    assert await status(mcp) == 200
    runtime_of(mcp).drain()
    assert (await status(mcp, "/livez"), await status(mcp)) == (200, 503)
    runtime_of(mcp).begin()
    assert await status(mcp) == 200


async def test_a_server_whose_successor_serves_is_ready_until_that_stops_as_well() -> None:
    mcp = server()
    serving = runtime_of(mcp)
    serving.has_successor = True
    serving.drain()
    assert await status(mcp) == 200
    serving.has_successor = False
    assert await status(mcp) == 503


class Failing(MemorySessions):
    """Sessions in a store that can be away."""

    is_away = True

    async def get(self, session_id: str) -> Handshake | None:
        if self.is_away:
            raise StoreUnavailableError
        return await super().get(session_id)


async def test_a_store_that_is_away_makes_it_unready_until_it_is_back(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "_FRESH_SECONDS", 0.0)
    sessions = Failing()
    mcp = server(sessions=sessions)
    for _ in range(3):
        response = await get(mcp, "/readyz")
        assert (response.status, response.body) == (503, b"not ready\n")
    assert await status(mcp, "/livez") == 200
    sessions.is_away = False
    assert await status(mcp) == 200
    assert [record.getMessage() for record in caplog.records] == [
        "Shop is not ready: StoreUnavailableError: The store of the server is unavailable now.",
        "Shop is ready again.",
    ]


async def test_a_store_of_tasks_that_can_not_be_used_makes_it_unready(tmp_path: Path) -> None:
    def with_tasks(file: Path) -> MCPServer:
        mcp = server(tasks=SQLiteTasks(file))

        @mcp.tool(task="optional")
        async def report() -> str:
            return ""

        return mcp

    (tmp_path / "damaged.db").write_bytes(b"not a database" * 1000)
    damaged, whole = with_tasks(tmp_path / "damaged.db"), with_tasks(tmp_path / "tasks.db")
    try:
        assert (await status(damaged), await status(whole)) == (503, 200)
    finally:
        await runtime_of(damaged).aclose()
        await runtime_of(whole).aclose()


async def test_the_authors_checks_count(caplog: pytest.LogCaptureFixture) -> None:
    async def ping() -> None:
        return None

    async def refuse() -> bool:
        return False

    async def fail() -> None:
        raise ConnectionError("db\nERROR forged")

    assert await status(server(http=HTTPOptions(ready=[ping, ping]))) == 200
    assert await status(server(http=HTTPOptions(ready=[ping, refuse]))) == 503
    assert await status(server(http=HTTPOptions(ready=[fail]))) == 503
    first, second = (record.getMessage() for record in caplog.records)
    assert "refuse returned False" in first
    assert second == r"Shop is not ready: ConnectionError: db\nERROR forged"


@pytest.mark.parametrize("ready", [print, [print], "x", None])
def test_checks_are_async_functions(ready: Any) -> None:
    with pytest.raises(TypeError, match=r"HTTPOptions\.ready must be a list of async functions"):
        HTTPOptions(ready=ready)


def test_the_switch_is_a_boolean() -> None:
    with pytest.raises(TypeError, match=r"HTTPOptions\.health must be True or False; got 'off'"):
        HTTPOptions(health="off")  # type: ignore[arg-type]


async def test_many_probes_share_one_run_of_the_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "monotonic", lambda: 100.0)
    monkeypatch.setattr(health, "_CHECK_SECONDS", PATIENCE)
    runs = 0
    go_on = asyncio.Event()

    async def count() -> None:
        nonlocal runs
        runs += 1
        await go_on.wait()

    mcp = server(http=HTTPOptions(ready=[count]))
    probes = [asyncio.create_task(status(mcp)) for _ in range(500)]
    await asyncio.sleep(0)
    probes[0].cancel()  # a client that disconnects ends the run for no other
    go_on.set()
    results = await asyncio.gather(*probes, return_exceptions=True)
    assert results[1:] == [200] * 499
    assert await status(mcp) == 200
    assert runs == 1


async def test_an_outcome_holds_for_a_moment_only(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    runs = 0

    async def count() -> None:
        nonlocal runs
        runs += 1

    monkeypatch.setattr(health, "monotonic", lambda: now)
    mcp = server(http=HTTPOptions(ready=[count]))
    for now in (100.0, 100.9, 101.0, 101.5, 102.5):  # noqa: B007 - the clock reads it
        assert await status(mcp) == 200
    assert runs == 3


async def test_a_check_that_hangs_is_over_in_time(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(health, "_CHECK_SECONDS", 0.01)
    monkeypatch.setattr(health, "_CANCEL_SECONDS", PATIENCE)
    ends = asyncio.Event()

    async def hang() -> None:
        await asyncio.Event().wait()

    async def ignore_cancellation() -> None:
        while not ends.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await ends.wait()

    async with asyncio.timeout(PATIENCE):
        assert await status(server(http=HTTPOptions(ready=[hang]))) == 503
        assert caplog.records[0].getMessage() == "Shop is not ready: no answer in 0.01 s"
        monkeypatch.setattr(health, "_CANCEL_SECONDS", 0.0)
        stubborn = server(http=HTTPOptions(ready=[ignore_cancellation]))
        assert await status(stubborn) == 503
        assert await status(stubborn) == 503
        ends.set()


def test_it_works_in_one_event_loop_after_another() -> None:
    mcp = server()
    assert asyncio.run(status(mcp)) == 200
    assert asyncio.run(status(mcp)) == 200


async def test_a_probe_starts_the_lifespans_where_no_server_does_and_does_not_cancel_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(health, "_CHECK_SECONDS", 0.01)
    monkeypatch.setattr(health, "_FRESH_SECONDS", 0.0)
    go_on, starts = asyncio.Event(), 0

    async def lifespan() -> AsyncIterator[None]:
        nonlocal starts
        starts += 1
        await go_on.wait()
        yield

    mcp = server()
    mcp.add_lifespan(lifespan)
    assert await status(mcp, "/livez") == 200
    assert starts == 0
    assert await status(mcp) == 503
    assert await status(mcp) == 503
    go_on.set()
    monkeypatch.setattr(health, "_CHECK_SECONDS", PATIENCE)
    assert await status(mcp) == 200
    assert starts == 1
    await runtime_of(mcp).aclose()


async def test_a_lifespan_that_fails_makes_it_unready() -> None:
    @asynccontextmanager
    async def lifespan() -> AsyncIterator[None]:
        await refuse()
        yield

    async def refuse() -> None:
        raise ConnectionError("no database")

    mcp = server()
    mcp.add_lifespan(lifespan)
    assert await status(mcp) == 503


async def test_probes_have_no_lines_in_the_log_of_requests(caplog: pytest.LogCaptureFixture) -> None:
    mcp = server()
    entries: list[object] = []
    runtime_of(mcp).log_requests(entries.append)
    with caplog.at_level(logging.DEBUG):
        await status(mcp)
        await status(mcp, "/livez")
    assert entries == []
    await get(mcp, "/elsewhere")
    assert len(entries) == 1


async def test_a_host_without_other_endpoints_answers_404() -> None:
    alone = health.Health("Shop", list, lambda: False)
    assert (await alone(MemoryRequest("GET", "/elsewhere", [], b""))).status == 404
    assert (await alone(MemoryRequest("GET", "/readyz", [], b""))).status == 200


async def test_a_full_disk_makes_a_server_with_tasks_in_a_file_unready(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(_file: SQLiteFile) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(health, "_FRESH_SECONDS", 0.0)
    mcp = server(tasks=SQLiteTasks(tmp_path / "tasks.db"))

    @mcp.tool(task="optional")
    async def export() -> str:
        return ""

    async with mcp.lifespan():
        assert await status(mcp) == 200
        with monkeypatch.context() as full:
            full.setattr(SQLiteFile, "check_writable", fail)
            assert await status(mcp) == 503
        assert await status(mcp) == 200
