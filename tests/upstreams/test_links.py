"""Which requests share a session of an upstream: in one process, in several event loops, and on several instances."""

from __future__ import annotations

import asyncio
import gc
import json
import threading
import time
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import cycle
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp import MCPServer, ProtocolOptions
from funcmcp._serving.composition import runtime_of
from funcmcp._upstreams import sessions as upstream_sessions
from funcmcp._upstreams.sessions import _session_of as stored_session_of
from funcmcp.auth import APIKeys
from funcmcp.client import Client
from funcmcp.state import KeyRing, SignedSessions, SQLiteState, StoreUnavailableError
from funcmcp.upstreams import Upstream, UpstreamLimits
from tests.clock import Clock
from tests.patience import PATIENCE
from tests.upstreams.scripted import Exchange, scripted_server

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from funcmcp._transports.http.messages import HttpRequest, HttpResponse

KEY = b"k" * 32


def desk(url: str, **options: Any) -> tuple[MCPServer, Upstream]:
    mcp = MCPServer("Desk", sessions=SignedSessions(KeyRing([KEY])), **options.pop("server", {}))
    upstream = Upstream(url, name="scripted", **options)
    mcp.mount(upstream, prefix="up")
    return mcp, upstream


async def act(client: Client) -> str:
    return str((await client.call_tool("up_act")).content[0]["text"])


@asynccontextmanager
async def instances(
    url: str, folder: Path, count: int, **options: Any
) -> AsyncIterator[list[tuple[MCPServer, Upstream]]]:
    """Serve the same server in several instances with one store of state, until the block ends."""
    desks = [desk(url, server={"state": SQLiteState(folder / "state.db")}, **options) for _ in range(count)]
    async with AsyncExitStack() as stack:
        for mcp, _ in desks:
            await stack.enter_async_context(mcp.lifespan())
        yield desks


class Balancer:
    """Sends each request to the next instance."""

    def __init__(self, desks: list[tuple[MCPServer, Upstream]]) -> None:
        self._exchanges: Iterator[Any] = cycle([runtime_of(mcp) for mcp, _ in desks])

    async def __call__(self, request: HttpRequest) -> HttpResponse:
        response: HttpResponse = await next(self._exchanges).exchange(request)
        return response


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_what_an_upstream_sends_outside_of_its_responses_reaches_the_client(revision: str) -> None:
    messages: list[str] = []

    async def sample(params: dict[str, Any]) -> dict[str, Any]:
        return {"role": "assistant", "model": "m", "content": {"type": "text", "text": params["systemPrompt"]}}

    async with scripted_server() as scripted:
        scripted.streams, scripted.capabilities = True, {"tools": {}, "logging": {}}

        async def ask(exchange: Exchange) -> None:
            scripted.push({"method": "notifications/message", "params": {"level": "error", "data": "asking"}})
            params = {"messages": [], "maxTokens": 1, "systemPrompt": "Terse."}
            scripted.push({"id": "a", "method": "sampling/createMessage", "params": params})
            exchange.text((await scripted.responses.get())["result"]["content"]["text"])

        scripted.answers = [ask, ask]
        mcp, _ = desk(scripted.url)
        options: Any = {"sample": sample, "on_log": lambda message: messages.append(message.data)}
        async with asyncio.timeout(PATIENCE), Client(mcp, revision=revision, **options) as client:
            assert [await act(client), await act(client)] == ["Terse.", "Terse."]
        assert messages[0] == "asking"
        of_calls = [entry for entry in scripted.requests if entry[0] in ("GET", "tools/call")]
        assert [method for method, _ in of_calls] == ["GET", "tools/call", "tools/call"]


async def test_a_session_of_which_nothing_else_can_come_has_no_stream_of_its_own() -> None:
    async with scripted_server() as scripted:
        scripted.streams = True
        mcp, _ = desk(scripted.url)
        async with Client(mcp, revision="2025-11-25") as client:
            await act(client)
        assert "GET" not in [method for method, _ in scripted.requests]


async def test_a_server_without_a_stream_is_asked_for_it_once_in_each_session() -> None:
    async with scripted_server() as scripted:
        scripted.capabilities = {"tools": {}, "logging": {}}
        mcp, _ = desk(scripted.url)
        async with Client(mcp, revision="2025-11-25") as client:
            for _ in range(3):
                await act(client)
            scripted.open_sessions.clear()
            await act(client)
        assert [method for method, _ in scripted.requests].count("GET") == 2


async def test_any_instance_goes_on_with_the_session_of_a_client(tmp_path: Path) -> None:
    async with (
        scripted_server() as scripted,
        instances(scripted.url, tmp_path, 3) as desks,
        Client(Balancer(desks), revision="2025-11-25") as first,
        Client(Balancer(desks), revision="2025-11-25") as second,
    ):
        own = {await act(first) for _ in range(6)}
        other = {await act(second) for _ in range(6)}
        assert len(own) == len(other) == 1
        assert own != other


async def test_a_client_that_ends_its_session_at_one_instance_ends_those_that_others_began(tmp_path: Path) -> None:
    async with scripted_server() as scripted, instances(scripted.url, tmp_path, 2) as desks:
        async with Client(Balancer(desks[:1]), revision="2025-11-25") as client:
            session = await act(client)
            assert session in scripted.open_sessions
            client._requests._transport._exchange = Balancer(desks[1:])  # type: ignore[attr-defined]
        await ended(scripted, session)


async def ended(scripted: Any, session: str) -> None:
    async with asyncio.timeout(PATIENCE):
        while session in scripted.open_sessions:  # noqa: ASYNC110 - the server has no event
            await asyncio.sleep(0.001)


async def test_instances_that_open_a_session_at_the_same_time_use_one(tmp_path: Path) -> None:
    async with (
        scripted_server() as scripted,
        instances(scripted.url, tmp_path, 3) as desks,
        Client(Balancer(desks), revision="2025-11-25") as client,
    ):
        await client.list_tools()
        assert len(set(await asyncio.gather(*(act(client) for _ in range(9))))) == 1


async def test_an_instance_that_stops_leaves_sessions_to_the_others(tmp_path: Path) -> None:
    async with (
        scripted_server() as scripted,
        instances(scripted.url, tmp_path, 2) as desks,
        Client(Balancer(desks[:1]), revision="2025-11-25") as client,
    ):
        session = await act(client)
        await desks[0][1]._links.aclose()
        assert session in scripted.open_sessions
        client._requests._transport._exchange = Balancer(desks[1:])  # type: ignore[attr-defined]
        assert await act(client) == session


@pytest.mark.parametrize("seconds", [-3600.0, 0.0, 3600.0], ids=["behind", "equal", "ahead"])
async def test_a_session_that_another_instance_uses_goes_on_whatever_its_clock_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    async with (
        scripted_server() as scripted,
        instances(scripted.url, tmp_path, 2) as desks,
        Client(Balancer(desks[:1]), revision="2025-11-25") as client,
    ):
        session = await act(client)
        monkeypatch.setattr(upstream_sessions, "time", lambda: time.time() + seconds)
        client._requests._transport._exchange = Balancer(desks[1:])  # type: ignore[attr-defined]
        assert await act(client) == session
        for _, upstream in desks:  # the first instance ends what it does not use, then the second one does
            assert session in scripted.open_sessions
            await idle(upstream)
        await ended(scripted, session)


async def test_the_use_of_a_session_is_noted_in_time_after_the_clock_was_set_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with (
        scripted_server() as scripted,
        instances(scripted.url, tmp_path, 1) as desks,
        Client(Balancer(desks), revision="2025-11-25") as client,
    ):
        await act(client)
        links = desks[0][1]._links
        monkeypatch.setattr(upstream_sessions, "time", lambda: 1.0)
        clock = links.health._clock = Clock()
        clock.now = 10.0**9
        await act(client)
        (link,) = links._of_loop()._links.values()
        stored = await links.stored_session(link)
        assert stored is not None
        assert stored.used == 1.0


async def idle(upstream: Upstream) -> None:
    """End the links of an upstream as if they were unused for long."""
    links = upstream._links._of_loop()
    for link in list(links._links.values()):
        links._remove(link)
        await upstream._links._end_idle(link)


async def test_sessions_of_clients_that_have_ended_leave_nothing(tmp_path: Path) -> None:
    async with scripted_server() as scripted, instances(scripted.url, tmp_path, 1) as desks:
        mcp, upstream = desks[0]
        for _ in range(3):
            async with Client(runtime_of(mcp).exchange, revision="2025-11-25") as client:
                session = await act(client)
            await ended(scripted, session)
        subjects = [value for value in reachable_from(upstream._links) if str(value).startswith("session ")]
        assert subjects == []


def reachable_from(links: Any) -> list[Any]:
    """Return the texts in the containers and objects of the links of an upstream."""
    texts: list[Any] = []
    seen: set[int] = set()
    remaining = [links]
    while remaining:
        value = remaining.pop()
        if id(value) in seen or isinstance(value, type):
            continue
        seen.add(id(value))
        if isinstance(value, str):
            texts.append(value)
        elif isinstance(value, dict | tuple | list | set) or type(value).__module__.startswith("funcmcp._upstreams"):
            remaining += gc.get_referents(value)
    return texts


async def test_a_renewed_session_is_that_of_all_instances(tmp_path: Path) -> None:
    async with (
        scripted_server() as scripted,
        instances(scripted.url, tmp_path, 2) as desks,
        Client(Balancer(desks[:1]), revision="2025-11-25") as client,
    ):
        session = await act(client)
        scripted.open_sessions.discard(session)
        renewed = await act(client)
        assert renewed != session
        client._requests._transport._exchange = Balancer(desks[1:])  # type: ignore[attr-defined]
        assert await act(client) == renewed


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
async def test_a_store_that_can_not_be_used_is_an_error_without_details_and_one_line_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def unavailable(*_: object) -> None:
        raise StoreUnavailableError(1)

    async with scripted_server() as scripted, instances(scripted.url, tmp_path, 1) as desks:
        mcp, upstream = desks[0]
        with monkeypatch.context() as patch:
            patch.setattr(SQLiteState, "take", unavailable)  # as on a full disk, from which can be read
            for _ in range(3):
                async with Client(runtime_of(mcp).exchange, revision="2025-11-25") as client:
                    assert await act(client) == (
                        "Nothing was sent to the server 'scripted', because the store of its sessions can't be used. "
                        "Try again later."
                    )
            calls = scripted.calls
            assert calls == 0
            assert len(scripted.open_sessions) == upstream.status.sessions == 1  # that of the lists
            assert upstream.status.state == "connected"
        async with Client(runtime_of(mcp).exchange, revision="2025-11-25") as client:
            assert (await act(client)).startswith("session-")
    assert len([line for line in caplog.text.splitlines() if "The server 'scripted'" in line]) == 1
    assert "Traceback" not in caplog.text


async def test_no_id_of_a_session_is_readable_in_the_store(tmp_path: Path) -> None:
    async with (
        scripted_server() as scripted,
        instances(scripted.url, tmp_path, 1) as desks,
        Client(Balancer(desks), revision="2025-11-25") as client,
    ):
        session = await act(client)
        assert session.encode() not in contents_of(tmp_path)


def contents_of(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in folder.iterdir())


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
async def test_many_sessions_go_on_at_any_instance(tmp_path: Path) -> None:
    clients = 200  # `tests/proxy/test_sessions.py` opens more, all at once
    limits = UpstreamLimits(sessions=2 * clients, sessions_per_caller=2 * clients)
    async with scripted_server() as scripted, instances(scripted.url, tmp_path, 3, limits=limits) as desks:
        places = asyncio.Semaphore(20)
        seen: set[str] = set()

        async def visit() -> None:
            async with places, Client(Balancer(desks), revision="2025-11-25") as client:
                sessions = {await act(client) for _ in range(3)}
                assert len(sessions) == 1
                assert not sessions & seen
                seen.update(sessions)

        await asyncio.gather(*(visit() for _ in range(clients)))
        assert len(seen) == clients
        async with asyncio.timeout(PATIENCE):
            while seen & scripted.open_sessions:  # noqa: ASYNC110 - the server has no event
                await asyncio.sleep(0.01)


async def test_clients_without_sessions_share_one_by_their_capabilities() -> None:
    async def elicit(params: dict[str, Any]) -> dict[str, Any]:
        del params
        return {"action": "decline"}

    async with scripted_server() as scripted:
        mcp, _ = desk(scripted.url)
        async with (
            Client(mcp, revision="2026-07-28") as first,
            Client(mcp, revision="2026-07-28") as second,
            Client(mcp, revision="2026-07-28", elicit=elicit) as asked,
        ):
            assert await act(first) == await act(second)
            assert await act(asked) != await act(first)


async def test_an_upstream_without_sessions_has_one_link_for_all() -> None:
    other = MCPServer("Other", protocol=ProtocolOptions(revisions=["2026-07-28"]))

    @other.tool
    def act() -> str:
        return "done"

    mcp = MCPServer("Desk")
    upstream = Upstream(other)
    mcp.mount(upstream, prefix="up")
    async with Client(mcp, revision="2025-11-25") as first, Client(mcp) as second:
        for client in (first, second):
            assert (await client.call_tool("up_act")).content[0]["text"] == "done"
        assert upstream.status.sessions == 1


async def test_a_server_runs_in_several_event_loops_at_once_and_after_each_other() -> None:
    async with scripted_server() as scripted:
        mcp, upstream = desk(scripted.url)
        sessions: list[str] = []

        async def use() -> None:
            async with Client(mcp, revision="2025-11-25") as client:
                sessions.append(await act(client))

        def run() -> None:
            asyncio.run(use())

        async with Client(mcp, revision="2025-11-25") as client:
            sessions.append(await act(client))
            threads = [threading.Thread(target=run) for _ in range(2)]
            for thread in threads:
                thread.start()
            await asyncio.gather(*(asyncio.to_thread(thread.join) for thread in threads))
            await asyncio.to_thread(run)
            assert await act(client) == sessions[0]
        assert len(set(sessions)) == len(sessions) == 4
        assert scripted.open_sessions == set()
        assert upstream.status.sessions == 0


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
async def test_a_connection_that_is_being_opened_is_closed_with_the_server() -> None:
    async with scripted_server() as scripted:
        began = asyncio.Event()
        release = asyncio.Event()
        answer = scripted._answer

        async def wait(exchange: Exchange, method: str) -> None:
            if method == "notifications/initialized":
                began.set()
                await release.wait()
            await answer(exchange, method)

        scripted._answer = wait  # type: ignore[method-assign]
        mcp, upstream = desk(scripted.url)
        async with Client(mcp, revision="2025-11-25"):
            call = asyncio.create_task(upstream.connect())
            await began.wait()
        release.set()
        with pytest.raises(Exception, match="this server stops"):
            await call
        assert upstream.status.sessions == 0
        assert scripted.open_sessions == set()


async def test_a_connection_for_one_call_gives_its_place_back_when_it_can_not_be_opened() -> None:
    async with scripted_server() as scripted:
        answer = scripted._answer
        refused: list[str] = []

        async def refuse(exchange: Exchange, method: str) -> None:
            if method in refused:
                exchange.write("500 Internal Server Error")
            else:
                await answer(exchange, method)

        scripted._answer = refuse  # type: ignore[method-assign]
        mcp, upstream = desk(scripted.url, sessions="call")
        async with Client(mcp, revision="2025-11-25") as client:
            await client.list_tools()
            refused.append("initialize")
            assert "not valid" in await act(client)
            links = upstream._links
            assert (links._of_loop()._single_use, links._open_budget().used) == (set(), 0)


async def test_a_connection_for_one_call_lasts_for_all_requests_of_the_call() -> None:
    async with scripted_server() as scripted:
        scripted.capabilities = {"tools": {}, "logging": {}}
        mcp, upstream = desk(scripted.url, sessions="call")
        async with Client(mcp, revision="2025-11-25", log_level="debug") as client:
            session = await act(client)
            assert [method for method, name in scripted.requests if name == session][-3:] == [
                "logging/setLevel",
                "GET",
                "tools/call",
            ]
            assert upstream._links._of_loop()._single_use == set()


ALICE, BOB = {"x-api-key": "a" * 16}, {"x-api-key": "b" * 16}


@pytest.mark.parametrize(
    ("limits", "option"),
    [
        (UpstreamLimits(sessions=1), "sessions"),
        (UpstreamLimits(sessions=4, sessions_per_caller=1), "sessions_per_caller"),
    ],
)
async def test_a_limit_of_sessions_is_an_error_that_names_its_option(limits: UpstreamLimits, option: str) -> None:
    keys = APIKeys({"alice": ALICE["x-api-key"], "bob": BOB["x-api-key"]})
    async with scripted_server() as scripted:
        mcp, upstream = desk(scripted.url, limits=limits, server={"auth": keys})
        async with (
            Client(mcp, revision="2025-11-25", headers=ALICE) as first,
            Client(mcp, revision="2025-11-25", headers=ALICE) as second,
            Client(mcp, revision="2025-11-25", headers=BOB) as other,
        ):
            session = await act(first)
            assert f"(UpstreamLimits.{option})" in await act(second)
            assert (await act(other)).startswith("session-") == (option == "sessions_per_caller")
            assert await act(first) == session
            clock = Clock()
            upstream._links.health._clock = clock
            clock.now = 10.0**9  # the session of the first client is idle for long enough
            assert (await act(second)).startswith("session-")
            assert session not in scripted.open_sessions


@pytest.mark.parametrize(
    ("record", "is_readable"),
    [
        ({"s": "id", "r": "2025-11-25", "c": {}, "u": 1.5, "v": 1}, True),
        ({"s": "id", "r": "2025-11-25", "c": {"tools": {}}, "u": 1, "v": 1, "later": True}, True),
        ({"s": "id", "r": "2025-11-25", "c": {}, "u": 1}, True),
        ({"s": "id", "r": "2025-11-25", "c": {}, "u": 1, "v": 2}, False),
        ({"s": "id", "r": "2025-11-25", "c": {}, "v": 1}, False),
        ({"s": 1, "r": "2025-11-25", "c": {}, "u": 1, "v": 1}, False),
    ],
)
def test_a_stored_session_can_grow_and_one_that_can_not_be_read_is_begun_again(
    record: dict[str, object], is_readable: bool
) -> None:
    session = stored_session_of(json.dumps(record).encode())
    assert (session is not None) == is_readable
    assert stored_session_of(None) is None
    assert stored_session_of(b"[]") is None


@pytest.mark.parametrize("target", ["", "server.py", "mcp.json", "ftp://example.com/mcp"])
def test_a_text_that_is_not_a_url_is_refused_when_the_upstream_is_made(target: str) -> None:
    with pytest.raises(ValueError, match="is not a URL of an endpoint, such as"):
        Upstream(target)
