"""Short runs of the storms, which run for minutes by hand (``make soak-tasks``), and the parts of them."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from funcmcp._adapters.redis.task_scripts import LOAD
from tests.cluster.storms import reply_cutter
from tests.cluster.storms.callers import Call
from tests.cluster.storms.reply_cutter import Cutter, message_end, name_of
from tests.cluster.storms.storms import STORMS
from tests.cluster.task_soak import STOPPED, problems_of, row_of, run
from tests.redis_server import redis_server

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.cluster.storms.storms import Storm

pytestmark = pytest.mark.slow("Several processes fail and start again, behind a proxy or a store.")


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "storm",
    [
        pytest.param(STORMS["redis"], id="processes and Redis killed"),
        pytest.param(STORMS["cuts"], id="replies lost"),
        pytest.param(replace(STORMS["rolling"], seconds=(1.0, 2.0)), id="rolling restart"),
    ],
)
async def test_no_task_is_lost_or_stuck_or_runs_too_often(storm: Storm) -> None:
    trial = await run(storm, 30, most_callers=15)
    assert trial.problems == []
    assert trial.faults or trial.cuts
    assert trial.outcomes()["completed"]
    assert f"| {storm.name} | redis |" in row_of(trial)


def call(tool: str = "once", end: dict[str, object] | None = None, *, answers: int = 0) -> Call:
    return Call(1, tool, "caller-0", None, cancels=False, task_id="1", answers=answers, end=end)


COMPLETED: dict[str, object] = {"status": "completed", "result": {"content": []}}
FAILED: dict[str, object] = {"status": "failed", "error": {"message": STOPPED}}


@pytest.mark.parametrize(
    ("call", "steps", "kinds"),
    [
        (call(end=COMPLETED), {"begin": 1, "end": 1}, []),
        (call(end=FAILED), {"begin": 1}, []),
        (call("again", COMPLETED), {"begin": 3, "end": 1}, []),
        (call("ask_once", COMPLETED, answers=1), {"begin": 2, "answered": 1, "end": 1}, []),
        (call(end=COMPLETED), {"begin": 2, "end": 2}, ["ran too often"]),
        (call("again", COMPLETED), {"begin": 4, "end": 1}, ["ran too often"]),
        (call("ask_once", COMPLETED, answers=1), {"begin": 2, "answered": 2, "end": 1}, ["ran too often"]),
        (call(end=COMPLETED), {}, ["other"]),
        (call(end=FAILED), {}, ["failed without a run"]),
        (call(end={"status": "failed", "error": {"message": "No room"}}), {"begin": 1}, ["other"]),
        (call(end={"status": "cancelled"}), {"begin": 1}, ["other"]),
    ],
)
def test_what_is_wrong_with_a_call_has_a_kind(call: Call, steps: dict[str, int], kinds: list[str]) -> None:
    assert [problem.partition(":")[0] for problem in problems_of(call, Counter(steps), 1)] == kinds


def test_only_storms_in_which_nobody_is_away_let_every_claim_begin() -> None:
    names = [storm.key for storm in STORMS.values() if not storm.loses_claims]
    assert names == ["cuts", "full", "disk", "postgres-cuts", "rolling"]


def test_a_call_that_has_two_tasks_ran_too_often() -> None:
    (problem,) = problems_of(call("again", COMPLETED), Counter(begin=2, end=2), 2)
    assert problem.startswith("ran too often")


@pytest.mark.parametrize(
    "message", [b"+OK\r\n", b":1\r\n", b"$-1\r\n", b"$0\r\n\r\n", b"*-1\r\n", b"*2\r\n$3\r\na\r\n\r\n*1\r\n:1\r\n"]
)
def test_a_message_ends_where_its_last_part_ends(message: bytes) -> None:
    assert message_end(message + b"+next") == len(message)
    assert message_end(b"+OK\r\n" + message, 5) == len(message) + 5
    assert [message_end(message[:length]) for length in range(len(message))] == [None] * len(message)


def test_a_request_has_the_name_of_its_script() -> None:
    text = LOAD.text.encode()
    assert name_of(b"*2\r\n$4\r\nblpop\r\n$1\r\na\r\n") == "BLPOP"
    assert name_of(b"*3\r\n$7\r\nEVALSHA\r\n$40\r\n%s\r\n$1\r\n0\r\n" % LOAD.digest.encode()) == "LOAD"
    assert name_of(b"*3\r\n$4\r\nEVAL\r\n$%d\r\n%s\r\n$1\r\n0\r\n" % (len(text), text)) == "LOAD"


@pytest.fixture
async def cutting(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[Cutter, int]]:
    """A port in front of Redis that cuts its connections after no reply, one, two, no reply, and so on."""
    monkeypatch.setattr(reply_cutter, "_RARE", 0)
    with redis_server() as redis:
        cutter = Cutter(redis.url.removeprefix("unix://"), replies=3, slow=0.0)
        server = await asyncio.start_server(cutter.forward, "127.0.0.1", 0)
        yield cutter, server.sockets[0].getsockname()[1]
        server.close()


async def increments(port: int, most: int = 5) -> list[bytes]:
    """Increment a number on one connection until it is cut, or has had so many replies; return the replies."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    replies: list[bytes] = []
    with suppress(ConnectionError):
        while len(replies) < most:
            writer.write(b"*2\r\n$4\r\nINCR\r\n$1\r\nn\r\n")
            line = await reader.readline()
            if not line:
                break
            replies.append(line)
    writer.close()
    return replies


async def test_the_command_of_a_lost_reply_is_executed(cutting: tuple[Cutter, int]) -> None:
    cutter, port = cutting
    replies = [await increments(port) for _ in range(4)]
    assert replies == [[], [b":2\r\n"], [b":4\r\n", b":5\r\n"], []]
    assert cutter.counts()["cuts"] == {"INCR": {0: 2, 1: 1, 2: 1}}


async def test_the_replies_of_rare_scripts_are_lost_as_well(
    cutting: tuple[Cutter, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reply_cutter, "_RARE", 1)
    monkeypatch.setattr(reply_cutter, "_RARE_SHARE", 1.0)
    cutter, port = cutting
    assert [len(await increments(port)) for _ in range(6)] == [0, 1, 2, 0, 1, 2]
    assert cutter.cuts == {("INCR", 0): 2, ("INCR", 1): 2, ("INCR", 2): 2}


async def test_all_connections_are_reset(cutting: tuple[Cutter, int], monkeypatch: pytest.MonkeyPatch) -> None:
    cutter, port = cutting
    monkeypatch.setattr(cutter, "_replies", 0)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"*1\r\n$4\r\nPING\r\n")
    assert await reader.readline() == b"+PONG\r\n"
    cutter.reset()
    with pytest.raises(ConnectionResetError):
        await reader.read()
    assert cutter.resets == 1
    writer.close()
