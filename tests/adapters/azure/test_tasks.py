"""The store of tasks in a real Azurite."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import re
import secrets
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from funcmcp._adapters.azure import tasks
from funcmcp._adapters.azure.task_blobs import name_of
from funcmcp._adapters.azure.tasks import AzureTasks
from funcmcp._state.sessions.store import StoreUnavailableError
from funcmcp._state.tasks import any_store
from funcmcp._state.tasks.record import NewTask, Outcome, TaskKey
from funcmcp._state.tasks.store import UnreadableTaskError
from funcmcp.testing import task_store_tests
from funcmcp.testing._task_stores import CALL, OWNER, RESULT, new_task
from tests.clock import Clock
from tests.patience import PATIENCE
from tests.state.tasks.machine import TaskStoreMachine

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from funcmcp._state.tasks.record import Claim
    from funcmcp._state.tasks.store import TaskStore
    from tests.azurite import Azurite

pytestmark = [
    pytest.mark.lowest("Azure's packages for storage send the requests."),
    pytest.mark.slow("The storage is slow, and the same rules hold on SQLite and Redis."),
]

CONNECTION = "TASKS_STORAGE"


@pytest.fixture(autouse=True)
def connection(azurite: Azurite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CONNECTION, azurite.connection_string)


TIME = Clock()


@asynccontextmanager
async def stores() -> AsyncIterator[Callable[..., TaskStore]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(any_store, "CLAIM_WAIT", 0.25)
        yield partial(AzureTasks, CONNECTION, prefix=f"t-{secrets.token_hex(8)}", clock=TIME)


async def wait(seconds: float) -> None:
    TIME.now += seconds


TestAzureTasks = task_store_tests(stores, wait=wait)


def test_any_sequence_of_steps_does_what_the_model_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(any_store, "CLAIM_WAIT", 0.002)

    class Machine(TaskStoreMachine):
        """Two instances' stores with one storage account."""

        async def make(self) -> list[TaskStore]:
            prefix = f"m-{secrets.token_hex(8)}"
            return [AzureTasks(CONNECTION, prefix=prefix) for _ in range(2)]

    run_state_machine_as_test(Machine, settings=settings(max_examples=4, stateful_step_count=25))


@pytest.fixture
async def store(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[AzureTasks]:
    monkeypatch.setattr(any_store, "CLAIM_WAIT", 0.25)
    store = AzureTasks(CONNECTION, prefix=f"t-{secrets.token_hex(8)}", clock=clock)
    store.bind("shop")
    yield store
    await store.aclose()


async def messages_of(store: AzureTasks, queue: str = "default") -> list[dict[str, Any]]:
    """Return the messages of a queue that are visible now, and delete them."""
    messages = await store._storage.receive(store.queue_name(queue), 32, 30)
    for message in messages:
        await store._storage.delete_message(message)
    return [json.loads(base64.b64decode(message.content)) for message in messages]


def message_of(store: AzureTasks, key: TaskKey, kind: str = "run") -> bytes:
    name = name_of(key)
    assert name is not None
    return json.dumps({"server": "shop", "owner": name.owner, "task": name.digest, "for": kind}).encode()


async def blobs_of(store: AzureTasks) -> list[str]:
    return [name for name, _ in await store._storage.blobs("")]


async def test_a_message_names_the_server_the_owner_and_the_task_and_nothing_else(store: AzureTasks) -> None:
    task = new_task()
    await store.create(task)
    digest = hashlib.sha256(task.key.task_id.encode()).hexdigest()
    assert await messages_of(store) == [{"server": "shop", "owner": OWNER, "task": digest, "for": "run"}]
    assert await blobs_of(store) == [f"{store._folder}/{OWNER}/{digest}.json"]


async def test_the_messages_of_a_queue_are_in_a_queue_of_the_storage(store: AzureTasks) -> None:
    task = new_task(queue="Slow.1")
    await store.create(task)
    await store.create(new_task(queue="Slow.1"))
    assert await messages_of(store) == []
    assert [message["for"] for message in await messages_of(store, "Slow.1")] == ["run", "run"]
    assert f"{store._folder}/queues/Slow.1.queue" in await blobs_of(store)
    assert len([record async for record in store.scan()]) == 2


async def test_a_message_in_the_queue_of_another_version_moves_to_the_queue_of_its_task(store: AzureTasks) -> None:
    task = new_task(queue="slow")
    await store.create(task)
    await messages_of(store, "slow")
    assert await store.take(message_of(store, task.key)) is None
    assert [message["for"] for message in await messages_of(store, "slow")] == ["run"]
    claim = await store.take(message_of(store, task.key), queue="slow")
    assert claim is not None
    assert claim.record.queue == "slow"


async def test_a_worker_of_all_queues_finds_those_that_other_processes_add(
    store: AzureTasks, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "_QUEUES_INTERVAL", 0.0)
    other = AzureTasks(CONNECTION, prefix=store._prefix, clock=clock)
    other.bind("shop")
    assert list(await store.claim(10)) == []
    created = [(await other.create(new_task(queue=queue))).key for queue in ("slow", "default", "other")]
    claims = [claim for _ in range(10) for claim in await store.claim(3)]
    assert sorted(claim.key for claim in claims) == sorted(created)
    await other.aclose()


async def test_a_failure_in_one_queue_leaves_the_claims_of_another(
    store: AzureTasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store.create(new_task(queue="slow"))
    claim_in = store._claim_in
    failed: list[str] = []

    async def fail_second(queue: str, *options: Any) -> list[Claim]:
        if queue == "default":
            failed.append(queue)
            raise StoreUnavailableError
        return await claim_in(queue, *options)

    monkeypatch.setattr(store, "_claim_in", fail_second)
    store._turn = 0  # "slow" is the second of the two, and its turn comes first
    assert len(await store.claim(10)) == 1
    with pytest.raises(StoreUnavailableError):
        await store.claim(10)
    assert failed == ["default"] * 2


@pytest.mark.parametrize("queue", ["default", "slow", "S" * 40, "a.b_c", "-".join("a" * 20)])
def test_the_name_of_a_queue_of_the_storage_is_valid(queue: str) -> None:
    store = AzureTasks(prefix="a" * 28)
    store.bind("b" * 30)
    assert re.fullmatch(r"(?!.*--)[a-z0-9][a-z0-9-]{1,61}[a-z0-9]", store.queue_name(queue))


def test_queues_of_similar_names_and_of_other_servers_have_other_names() -> None:
    store = AzureTasks()
    names = set()
    for server in ("shop", "Shop"):
        store.bind(server)
        names |= {store.queue_name(queue) for queue in ("default", "slow", "Slow", "s.low")}
    assert len(names) == 8


@pytest.mark.parametrize("prefix", ["", "ab", "a" * 29, "a-" * 15 + "a", "Tasks", "a--b", "-ab", "a/b"])
def test_a_prefix_is_part_of_a_valid_name(prefix: str) -> None:
    with pytest.raises(ValueError, match="prefix must have 3 to 28 lower-case letters"):
        AzureTasks(prefix=prefix)


async def test_of_two_deliveries_at_once_one_claims(store: AzureTasks) -> None:
    task = new_task()
    await store.create(task)
    message = message_of(store, task.key)
    claims = await asyncio.gather(*(store.take(message) for _ in range(4)))
    (claim,) = [claim for claim in claims if claim is not None]
    assert (claim.key, claim.call, claim.attempt) == (task.key, CALL, 1)


async def test_a_delivery_before_its_time_comes_back_when_the_lease_lapses(
    store: AzureTasks, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = new_task(attempts=2)
    await store.create(task)
    first = await store.take(message_of(store, task.key))
    assert first is not None
    sent: list[int] = []
    monkeypatch.setattr(store._storage, "send", lambda _queue, _text, hidden: record_hidden(sent, hidden))
    clock.now += 10
    assert await store.take(message_of(store, task.key)) is None
    assert sent == [20]
    clock.now += 21
    second = await store.take(message_of(store, task.key))
    assert second is not None
    assert second.attempt == 2
    assert await store.finish(first, RESULT) is None
    assert await store.finish(second, RESULT)
    assert await store.take(message_of(store, task.key)) is None
    assert sent == [20]


async def record_hidden(sent: list[int], hidden: int) -> None:
    sent.append(hidden)


async def test_a_message_that_is_delivered_too_often_fails_its_task_in_words(store: AzureTasks) -> None:
    task = new_task(attempts=10)
    await store.create(task)
    claim = await store.take(message_of(store, task.key), 5)
    assert claim is not None
    assert (claim.record.over, claim.call) == (True, b"")
    record = await store.read(task.key)
    assert record is not None
    assert (record.status, record.message) == (
        "failed",
        "The task was delivered to a worker 5 times, and no run of it ended.",
    )


async def test_too_many_deliveries_do_not_fail_a_task_that_runs(store: AzureTasks) -> None:
    task = new_task(attempts=10)
    await store.create(task)
    claim = await store.take(message_of(store, task.key))
    assert claim is not None
    assert await store.take(message_of(store, task.key), 5) is None
    assert await store.finish(claim, RESULT)


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"x",
        b"{}",
        b"[]",
        b"\xff",
        b"{" * 5000,
        b'{"server":"other","owner":"anonymous","task":"%b","for":"run"}' % (b"0" * 64),
        b'{"server":"shop","owner":"../x","task":"%b","for":"run"}' % (b"0" * 64),
        b'{"server":"shop","owner":"anonymous","task":"../x","for":"run"}',
        b'{"server":"shop","owner":"anonymous","task":"%b","for":"drop"}' % (b"0" * 64),
        b'{"server":"shop","owner":"anonymous","task":7,"for":"run"}',
    ],
)
async def test_a_message_of_another_program_is_dropped_and_logged(
    store: AzureTasks, message: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    assert await store.take(message) is None
    assert "is not of this server, and was dropped" in caplog.text
    assert await messages_of(store) == []


async def test_a_message_of_a_task_that_does_not_exist_is_dropped(store: AzureTasks) -> None:
    assert await store.take(message_of(store, new_task().key)) is None
    assert await store.take(base64.b64encode(message_of(store, new_task().key))) is None
    assert await messages_of(store) == []


@pytest.mark.parametrize("content", [b"", b"{}", b"x" * 100, None])
async def test_a_record_that_another_version_wrote_is_left_to_it_until_its_time_is_up(
    store: AzureTasks, clock: Clock, content: bytes | None
) -> None:
    task = new_task(ttl=100, keep=0)
    await store.create(task)
    await messages_of(store)
    name = store._path(name_of(task.key))  # type: ignore[arg-type] # the key is valid
    blob = await store._storage.read(name)
    assert blob is not None
    if content is None:
        content = blob.content.replace(b'"v":1', b'"v":2')
    assert await store._storage.replace(name, content, blob.metadata, blob.version)
    with pytest.raises(UnreadableTaskError):
        await store.read(task.key)
    with pytest.raises(UnreadableTaskError):
        await store.cancel(task.key)
    store.lease = 0.0
    assert await store.take(message_of(store, task.key)) is None
    assert [message["for"] for message in await messages_of(store)] == ["run"]
    clock.now += 101
    assert await store.read(task.key) is None
    assert await store.cancel(task.key) is None
    assert await store.take(message_of(store, task.key)) is None
    assert await messages_of(store) == []
    unchanged = await store._storage.read(name)
    assert unchanged is not None
    assert unchanged.content == content


async def test_a_blob_of_another_program_is_no_task(store: AzureTasks) -> None:
    task = new_task()
    await store.create(task)
    await messages_of(store)
    name = store._path(name_of(task.key))  # type: ignore[arg-type] # the key is valid
    await store._storage.write(name, b"{}")
    await store._storage.write(f"{store._folder}/{OWNER}/notes.txt", b"")
    await store._storage.write("notes.txt", b"")
    assert await store.read(task.key) is None
    assert await store.take(message_of(store, task.key)) is None
    assert list(await store.page(OWNER, None, 10)) == []
    assert await messages_of(store) == []
    assert len(await blobs_of(store)) == 3


async def test_large_calls_and_results_have_blobs_of_their_own(store: AzureTasks) -> None:
    call, text = b'{"a":"%b"}' % (b"x" * 100_000), b'{"content":["%b"]}' % (b"y" * 600 * 1024)
    task = NewTask(TaskKey(OWNER, secrets.token_urlsafe(33)), "add", call)
    await store.create(task)
    claim = await store.take(message_of(store, task.key))
    assert claim is not None
    assert claim.call == call
    assert await store.report(claim, "half")
    assert len(await blobs_of(store)) == 2
    assert await store.finish(claim, Outcome(text))
    record = await store.read(task.key)
    assert record is not None
    assert record.outcome == Outcome(text)
    (shown,) = await store.page(OWNER, None, 10)
    assert (shown.status, shown.message) == ("completed", None)
    names = await blobs_of(store)
    assert len(names) == 2
    assert not any(name.endswith(".call") for name in names)
    blob = await store._storage.read(next(name for name in names if name.endswith(".json")))
    assert blob is not None
    assert len(blob.content) < 1000


async def test_the_last_message_deletes_a_task_and_all_that_belongs_to_it(store: AzureTasks, clock: Clock) -> None:
    call, text = b'"%b"' % (b"x" * 100_000), b'"%b"' % (b"y" * 100_000)
    task = NewTask(TaskKey(OWNER, secrets.token_urlsafe(33)), "add", call, ttl=100, keep=500)
    other = new_task()
    await store.create(task)
    await store.create(other)
    claim = await store.take(message_of(store, task.key))
    assert claim is not None
    assert await store.finish(claim, Outcome(text))
    await messages_of(store)
    clock.now += 101
    assert await store.take(message_of(store, task.key, "remove")) is None  # its result is still to be kept
    assert len(await blobs_of(store)) == 3
    clock.now += 400
    assert await store.take(message_of(store, task.key, "remove")) is None
    assert await store.read(task.key) is None
    assert await blobs_of(store) == [store._path(name_of(other.key))]  # type: ignore[arg-type]
    assert await store.take(message_of(store, task.key, "remove")) is None


async def test_the_message_that_deletes_a_task_is_hidden_until_it_expires(
    store: AzureTasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[int] = []
    monkeypatch.setattr(store._storage, "send", lambda _queue, _text, hidden: record_hidden(sent, hidden))
    await store.create(new_task(ttl=7 * 86_400.0, keep=7 * 86_400.0))
    await store.create(new_task(ttl=1.5))
    assert sent == [604_800, 0, 2, 0]


async def test_a_creation_that_stops_half_way_leaves_nothing_to_run(
    store: AzureTasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    kinds: list[str] = []

    async def send(name: object, kind: str, queue: str, delay: float = 0.0) -> None:
        kinds.append(kind)
        if kind == "run":
            raise StoreUnavailableError

    monkeypatch.setattr(store, "_send", send)
    with pytest.raises(StoreUnavailableError) as caught:
        await store.create(new_task())
    assert not caught.value.nothing_written
    assert kinds == ["remove", "run"]  # the first deletes what the second did not start


@pytest.mark.parametrize(("claims", "seconds"), [(False, 301), (True, 46)])
async def test_a_task_whose_message_is_lost_gets_another_one_when_it_is_read(
    store: AzureTasks, clock: Clock, claims: bool, seconds: float
) -> None:
    task = new_task(attempts=2)
    await store.create(task)
    if claims:
        assert await store.take(message_of(store, task.key))
    await messages_of(store)
    clock.now += seconds - 2
    assert await store.read(task.key)
    assert await messages_of(store) == []
    clock.now += 2
    await asyncio.gather(*(store.read(task.key) for _ in range(3)))
    assert [message["for"] for message in await messages_of(store)] == ["run"]
    claim = await store.take(message_of(store, task.key))
    assert claim is not None
    assert claim.attempt == 1 + claims


async def test_two_writers_at_once_both_succeed(store: AzureTasks) -> None:
    task = new_task()
    await store.create(task)
    claim = await store.take(message_of(store, task.key))
    assert claim is not None
    reports = await asyncio.gather(*(store.report(claim, f"step {number}") for number in range(5)))
    assert all(reports)


async def test_a_write_whose_response_was_lost_succeeds_once(
    store: AzureTasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = new_task()
    await store.create(task)
    replace = store._storage.replace

    async def lose(name: str, content: bytes, metadata: Mapping[str, str], version: str) -> bool:
        assert await replace(name, content, metadata, version)
        return await replace(name, content, metadata, version)  # as the library does when there is no response

    monkeypatch.setattr(store._storage, "replace", lose)
    claim = await store.take(message_of(store, task.key))
    assert claim is not None
    assert claim.attempt == 1
    assert await store.finish(claim, RESULT)


async def test_a_record_that_never_stays_the_same_is_a_store_that_is_away(
    store: AzureTasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = new_task()
    await store.create(task)
    monkeypatch.setattr(store._storage, "replace", never)
    with pytest.raises(StoreUnavailableError):
        await store.cancel(task.key)


async def never(*_: object) -> bool:
    return False


async def test_a_key_that_is_invalid_creates_no_task(store: AzureTasks) -> None:
    with pytest.raises(ValueError, match="key of the task is invalid"):
        await store.create(NewTask(TaskKey("../x", "x"), "add", CALL))
    assert list(await store.page("../x", None, 1)) == []


async def test_while_the_storage_is_away_everything_fails_in_a_bounded_time(
    store: AzureTasks, azurite: Azurite, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = new_task()
    await store.create(task)
    claim = await store.take(message_of(store, task.key))
    assert claim is not None
    monkeypatch.setenv("AWAY", azurite.connection_string.replace(":" + str(azurite.blob_port), ":9"))
    away = AzureTasks("AWAY")
    away._storage._timeout = 0.2
    for step in (
        away.create(new_task()),
        away.read(task.key),
        away.take(message_of(store, task.key).replace(b"shop", b"")),
        away.renew(claim),
        away.finish(claim, RESULT),
        away.cancel(task.key),
    ):
        with pytest.raises(StoreUnavailableError):
            async with asyncio.timeout(PATIENCE):
                await step
    with pytest.raises(StoreUnavailableError) as caught:
        await away.create(new_task())
    assert caught.value.nothing_written
    await away.aclose()
    assert await store.finish(claim, RESULT)
