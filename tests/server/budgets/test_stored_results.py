"""Whole results in the store: who reads them, and for how long."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp import Limits, MCPError, MCPServer
from funcmcp._protocol.codec import encode
from funcmcp._server.budgets import stored_results
from funcmcp._server.budgets.full_texts import FullText
from funcmcp._server.budgets.stored_results import StoredResult
from funcmcp._serving.composition import runtime_of
from funcmcp._state.caller_values import CallerValues
from funcmcp.auth import APIKeys, Auth
from funcmcp.state import KeyRing, MemoryState, SignedSessions, SQLiteState
from funcmcp.testing import Client
from tests.server.budgets.test_cut_values import PROSE

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

pytestmark = pytest.mark.branches("Callers read their own results.")

BUDGET = 2000
ADA, BEN = "key-of-ada-16-chars", "key-of-ben-16-chars"


def server(*, seconds: float = 3600, **options: Any) -> MCPServer:
    limits = Limits(result_characters=BUDGET, stored_result_seconds=seconds)
    mcp = MCPServer("Shop", limits=limits, **options)

    @mcp.tool
    def get() -> str:
        return PROSE * 4

    return mcp


def keys(**options: Any) -> Auth:
    return Auth(APIKeys({"ada": ADA, "ben": BEN}, **options))


def client_of(mcp: MCPServer, key: str | None = None) -> Client:
    return Client(mcp, headers={} if key is None else {"x-api-key": key})


async def id_of_result(client: Client, tool: str = "get") -> str:
    result = await client.call_tool(tool)
    match = re.search(r"id=([0-9a-f]{32})", result.text)
    assert match is not None, result
    return match[1]


async def read(client: Client, arguments: Mapping[str, Any]) -> str:
    return (await client.call_tool("read_result", arguments)).text


async def reads(client: Client, result_id: str) -> bool:
    """Return whether a client reads a result, with the tool and as a resource alike."""
    answers = {not (await client.call_tool("read_result", {"id": result_id})).is_error}
    for uri in (f"result://{result_id}", f"result://{result_id}/0"):
        try:
            await client.read_resource(uri)
            answers.add(True)
        except MCPError:
            answers.add(False)
    (answer,) = answers
    return answer


async def test_only_the_principal_of_a_call_reads_its_result() -> None:
    mcp = server(auth=keys())
    async with client_of(mcp, ADA) as ada, client_of(mcp, BEN) as ben:
        result_id = await id_of_result(ada)
        assert await reads(ada, result_id)
        assert not await reads(ben, result_id)


async def test_an_anonymous_caller_reads_a_result_by_its_id() -> None:
    mcp = server()
    async with client_of(mcp) as first, client_of(mcp) as second:
        result_id = await id_of_result(first)
        assert await reads(second, result_id)
        assert not await reads(second, result_id[:-1] + ("0" if result_id[-1] != "0" else "1"))


async def test_a_caller_that_may_no_longer_call_the_tool_does_not_read_its_results() -> None:
    is_allowed = True
    mcp = MCPServer("Shop", auth=keys())

    @mcp.tool(result_characters=BUDGET, authorize=lambda _principal: is_allowed)
    def get() -> str:
        return PROSE * 4

    async with client_of(mcp, ADA) as ada:
        result_id = await id_of_result(ada)
        assert await reads(ada, result_id)
        is_allowed = False
        assert not await reads(ada, result_id)
        is_allowed = True
        mcp.disable(names=["get"])
        assert not await reads(ada, result_id)


async def test_a_result_ends_after_its_time() -> None:
    now = 1000.0
    mcp = server(seconds=60)
    runtime_of(mcp).open_values()._clock = lambda: now
    async with client_of(mcp) as client:
        result_id = await id_of_result(client)
        assert await reads(client, result_id)
        now += 61
        assert not await reads(client, result_id)
        assert "Results are stored for 1 minutes" in await read(client, {"id": result_id})


async def test_a_new_result_of_a_principal_takes_the_place_of_its_oldest_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    mcp = server(auth=keys())
    served = runtime_of(mcp).server
    values = CallerValues(MemoryState(), served.keys, "Shop", owner_bytes=10_000, owner_values=4)
    seconds = iter(range(1000, 2000))
    monkeypatch.setattr(stored_results, "time", lambda: next(seconds))
    served.budgets._stored._open_values = lambda: values  # type: ignore[union-attr]
    async with client_of(mcp, ADA) as ada, client_of(mcp, BEN) as ben:
        of_ben = await id_of_result(ben)
        ids = [await id_of_result(ada) for _ in range(5)]
        assert [await reads(ada, result_id) for result_id in ids] == [False, False, False, True, True]
        assert await reads(ben, of_ben)


async def test_anonymous_results_are_not_removed_for_new_ones() -> None:
    mcp = server()
    served = runtime_of(mcp).server
    values = CallerValues(MemoryState(), served.keys, "Shop", owner_bytes=10_000, owner_values=2)
    served.budgets._stored._open_values = lambda: values  # type: ignore[union-attr]
    async with client_of(mcp) as client:
        ids = [await id_of_result(client) for _ in range(2)]
        result = await client.call_tool("get")
        assert "The whole is not stored" in result.text
        assert [await reads(client, result_id) for result_id in ids] == [True, True]


async def test_another_server_with_the_same_store_and_keys_reads_a_result(tmp_path: Path) -> None:
    keys = SignedSessions(KeyRing([b"k" * 32]))
    first, second = (server(sessions=keys, state=SQLiteState(tmp_path / "state.db")) for _ in range(2))
    async with first.lifespan(), second.lifespan(), client_of(first) as client, client_of(second) as second_client:
        assert await reads(second_client, await id_of_result(client))


async def test_the_log_warns_if_several_processes_store_results_in_their_memory(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    monkeypatch.setattr("funcmcp._serving.composition.may_be_one_of_several", lambda: True)
    warnings = []
    for mcp in (MCPServer("Shop"), server(state=SQLiteState(tmp_path / "state.db")), server()):
        async with mcp.lifespan():
            warnings.append("stores the state of its callers in the memory of each" in caplog.text)
    assert warnings == [False, False, True]


@pytest.mark.parametrize("offset", [1000, 1000.0, "1000"])
async def test_a_part_begins_at_an_offset(offset: object) -> None:
    async with client_of(server()) as client:
        result_id = await id_of_result(client)
        part = await client.call_tool("read_result", {"id": result_id, "offset": offset})
        assert (PROSE * 4)[1000:].startswith(part["content"][0]["text"])
        assert part.text.endswith(
            f"of {len(PROSE * 4):,}. The next part has the offset {len(part['content'][0]['text']) + 1000}."
        )


async def test_the_last_part_and_an_offset_behind_the_end_say_so() -> None:
    async with client_of(server()) as client:
        result_id = await id_of_result(client)
        size = len(PROSE * 4)
        assert (await read(client, {"id": result_id, "offset": size - 50})).endswith(
            f"These are the characters {size - 50:,} to {size:,} of {size:,}, the last part of the result."
        )
        assert await read(client, {"id": result_id, "offset": 10**9}) == f"The result ends at character {size:,}."
        (contents,) = (await client.read_resource(f"result://{result_id}/{size - 50}"))["contents"]
        assert "_meta" not in contents
        (contents,) = (await client.read_resource(f"result://{result_id}/0"))["contents"]
        assert contents["_meta"] == {"nextOffset": len(contents["text"])}


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({}, "id must be a string"),
        ({"id": 5}, "id must be a string"),
        ({"id": "x", "page": 1}, "read_result has no argument 'page'. Its arguments are id and offset."),
        ({"id": "x", "offset": -1}, "offset must be an integer, 0 or more."),
        ({"id": "x", "offset": 1.5}, "offset must be an integer, 0 or more."),
        ({"id": "x", "offset": "one"}, "offset must be an integer, 0 or more."),
        ({"id": "x", "offset": None}, "offset must be an integer, 0 or more."),
        ({"id": "x", "offset": True}, "offset must be an integer, 0 or more."),
        ({"id": "\n" * 90}, "There is no result '"),
        ({"id": "0" * 32}, "There is no result '00000000000000000000000000000000' for you. Results are stored for 60 "),
    ],
)
async def test_wrong_arguments_are_errors_for_the_model(arguments: dict[str, Any], error: str) -> None:
    async with client_of(server()) as client:
        result = await client.call_tool("read_result", arguments)
        assert result.is_error
        assert result.text.startswith(error)


@pytest.mark.parametrize("offset", ["-1", "one", "9" * 20, "\u0661"])
async def test_a_part_without_a_number_does_not_exist(offset: str) -> None:
    async with client_of(server()) as client:
        result_id = await id_of_result(client)
        with pytest.raises(Exception, match="Resource not found"):
            await client.read_resource(f"result://{result_id}/{offset}")


def test_a_stored_result_is_read_by_versions_that_know_fewer_members_and_never_a_fault() -> None:
    result = StoredResult(FullText('{"a":1}', is_json=True), "get", 1800)
    value = result.to_bytes()
    assert StoredResult.of_bytes(value) == result
    record, _, text = value.partition(b"\n")
    newer = encode({"v": 1, "tool": "get", "page": 1800, "json": True, "color": "blue"}) + b"\n" + text
    assert StoredResult.of_bytes(newer) == result
    for broken in (
        None,
        b"",
        record,
        record + b"\nabc",
        text,
        b"[]\n" + text,
        record.replace(b'"v":1', b'"v":2') + b"\n" + text,
        record.replace(b'"tool":"get",', b"") + b"\n" + text,
    ):
        assert StoredResult.of_bytes(broken) is None
