"""One session at two instances: what its client sends to the one reaches the other."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp._protocol.jsonrpc import Notification, Response
from funcmcp._protocol.revisions import REVISIONS
from funcmcp._server.connections.relay import Relay
from funcmcp._server.connections.session_clients import Clients, SessionClient
from funcmcp._server.run import Run, RunCancelledError
from funcmcp._state.bus import RESUMED
from funcmcp._state.sessions.store import Handshake, Notes, SessionKey, StoreUnavailableError
from tests.patience import PATIENCE
from tests.server.parts import ASK_NAME, NEWEST
from tests.state.shared import SharedMemory, SharedMemorySessions

if TYPE_CHECKING:
    from funcmcp._server.connections.conversation import Conversation

pytestmark = pytest.mark.every_python("Tasks, timeouts and cancellation are those of asyncio.")

SESSION = "session"


class Instance:
    """An instance that has met the session, or not yet; and principals in it, where nobody in particular began it."""

    def __init__(self, memory: SharedMemory, *principals: str, met: bool = True) -> None:
        self.store = SharedMemorySessions(memory)
        self.clients: Clients[SessionClient] = Clients()
        self.relay = Relay(self.store.bus, self.clients, self.store)
        self.client = SessionClient(REVISIONS[NEWEST], Handshake(NEWEST), SessionKey(SESSION), pushes=True)
        if met:
            self._meet(self.client)
        self.parts = {
            name: SessionClient(REVISIONS[NEWEST], Handshake(NEWEST), SessionKey(SESSION, name), pushes=True)
            for name in principals
        }
        for part in self.parts.values():
            self._meet(part)

    def _meet(self, client: SessionClient) -> None:
        self.relay.meet(client)
        self.clients.add(client)

    @property
    def conversation(self) -> Conversation:
        return self.client.conversation


@pytest.fixture
def memory() -> SharedMemory:
    return SharedMemory()


@pytest.fixture
def here(memory: SharedMemory) -> Instance:
    return Instance(memory)


@pytest.fixture
def there(memory: SharedMemory) -> Instance:
    return Instance(memory)


async def asking(instance: Instance) -> tuple[asyncio.Task[Any], str]:
    """Ask the client for its name; return the run that waits, and the question's id."""
    sent: asyncio.Queue[bytes] = asyncio.Queue()
    task = asyncio.create_task(instance.conversation.ask({"name": ASK_NAME}, sent.put))
    await sent.get()
    [question_id] = instance.conversation._questions
    return task, question_id


@pytest.mark.parametrize("at", ["here", "there"])
async def test_a_response_reaches_the_instance_that_asked(here: Instance, there: Instance, at: str) -> None:
    task, question_id = await asking(here)
    receiving = here if at == "here" else there
    answer = {"action": "accept", "content": {"name": "Ada"}}
    await receiving.relay.receive(Response(question_id, answer, None), receiving.client)
    async with asyncio.timeout(PATIENCE):
        assert await task == {"name": answer}


async def test_a_response_that_nothing_waits_for_is_dropped(here: Instance, there: Instance) -> None:
    task, question_id = await asking(here)
    for wrong in ("ask-0", 1, None):
        await there.relay.receive(Response(wrong, {"action": "decline"}, None), there.client)
    await there.relay.receive(Response(question_id, {"action": "decline"}, None), there.client)
    await there.relay.receive(Response(question_id, {"action": "accept"}, None), there.client)
    async with asyncio.timeout(PATIENCE):
        assert await task == {"name": {"action": "decline"}}


async def test_a_request_is_cancelled_at_the_instance_where_it_runs(here: Instance, there: Instance) -> None:
    run = Run()
    here.conversation.begin(7, run)
    task = asyncio.create_task(run.wait(asyncio.Event().wait()))
    await asyncio.sleep(0)
    for method, params in (
        ("notifications/cancelled", {"requestId": "7"}),
        ("notifications/cancelled", {"requestId": True}),
        ("notifications/cancelled", {}),
        ("notifications/initialized", {}),
    ):
        await there.relay.receive(Notification(method, params), there.client)
    assert not run.cancelled
    await there.relay.receive(Notification("notifications/cancelled", {"requestId": 7}), there.client)
    async with asyncio.timeout(PATIENCE):
        with pytest.raises(RunCancelledError):
            await task
    assert run.cancelled


async def test_what_a_session_chooses_holds_where_it_is_known_and_where_it_is_not_yet(
    memory: SharedMemory, here: Instance, there: Instance
) -> None:
    await here.conversation.set_level("error")
    await here.conversation.subscribe("menu://a", is_subscribed=True)
    await there.conversation.subscribe("menu://b", is_subscribed=True)
    await there.conversation.subscribe("menu://c", is_subscribed=True)
    await here.conversation.subscribe("menu://c", is_subscribed=False)
    late = Instance(memory)
    await late.conversation.restore()
    for instance in (here, there, late):
        assert instance.conversation.log_level == "error"
        assert set(instance.conversation.subscribed) == {"menu://a", "menu://b"}


async def test_what_was_chosen_is_read_once_and_again_after_a_gap(memory: SharedMemory, here: Instance) -> None:
    memory.notes[SessionKey(SESSION)] = Notes("alert", frozenset({"menu://a"}))
    for _ in range(3):
        await here.conversation.restore()
    assert (memory.read, here.conversation.log_level) == (1, "alert")
    memory.notes[SessionKey(SESSION)] = Notes("debug", frozenset())
    here.store.local.deliver(RESUMED, {})
    for _ in range(3):
        await here.conversation.restore()
    assert (memory.read, here.conversation.log_level, set(here.conversation.subscribed)) == (2, "debug", set())


@pytest.mark.parametrize("level", ["verbose", 7, None])
async def test_a_level_of_another_version_is_ignored(here: Instance, there: Instance, level: object) -> None:
    await here.relay.send(SessionKey(SESSION), "level", {"level": "error"})
    await here.relay.send(SessionKey(SESSION), "level", {"level": level})
    assert there.conversation.log_level == "error"


async def test_a_session_that_has_chosen_nothing_keeps_the_usual_level(here: Instance) -> None:
    await here.conversation.restore()
    assert here.conversation.log_level == "info"


async def test_what_can_not_be_kept_is_not_chosen(memory: SharedMemory, here: Instance, there: Instance) -> None:
    memory.away = True
    with pytest.raises(StoreUnavailableError):
        await here.conversation.set_level("error")
    with pytest.raises(StoreUnavailableError):
        await here.conversation.subscribe("menu://a", is_subscribed=True)
    for instance in (here, there):
        assert (instance.conversation.log_level, set(instance.conversation.subscribed)) == ("info", set())


async def test_an_ended_session_is_forgotten_everywhere(memory: SharedMemory, here: Instance, there: Instance) -> None:
    stranger = Instance(memory, met=False)
    here.relay.end(SESSION)
    assert [len(instance.clients) for instance in (here, there, stranger)] == [0, 0, 0]


async def test_a_client_whose_choices_are_kept_elsewhere_may_be_forgotten_for_others(
    memory: SharedMemory, here: Instance
) -> None:
    await here.conversation.set_level("error")
    await here.conversation.subscribe("menu://a", is_subscribed=True)
    idle = [here.conversation.idle]
    here.conversation.begin(1, Run())
    idle.append(here.conversation.idle)
    assert idle == [True, False]
    alone = Relay(memory.bus, here.clients, None)
    client = SessionClient(REVISIONS[NEWEST], Handshake(NEWEST), SessionKey("other"), pushes=True)
    alone.meet(client)
    await client.conversation.restore()
    await client.conversation.set_level("error")
    assert not client.conversation.idle


# A session that nobody in particular began, and who uses it


async def test_a_response_counts_only_from_the_principal_who_was_asked(memory: SharedMemory) -> None:
    here, there = (Instance(memory, "alice", "bob") for _ in range(2))
    sent: asyncio.Queue[bytes] = asyncio.Queue()
    asked = here.parts["alice"].conversation
    task = asyncio.create_task(asked.ask({"name": ASK_NAME}, sent.put))
    await sent.get()
    [question_id] = asked._questions
    forged = Response(question_id, {"action": "accept", "content": {"name": "Mallory"}}, None)
    for instance in (here, there):
        for other in (instance.client, instance.parts["bob"]):
            await instance.relay.receive(forged, other)
    assert not task.done()
    assert question_id in asked._questions
    answer = {"action": "accept", "content": {"name": "Ada"}}
    await there.relay.receive(Response(question_id, answer, None), there.parts["alice"])
    async with asyncio.timeout(PATIENCE):
        assert await task == {"name": answer}


async def test_a_request_is_cancelled_only_by_the_principal_who_sent_it(memory: SharedMemory) -> None:
    here, there = (Instance(memory, "alice", "bob") for _ in range(2))
    run = Run()
    here.parts["alice"].conversation.begin(7, run)
    cancel = Notification("notifications/cancelled", {"requestId": 7})
    for instance in (here, there):
        for other in (instance.client, instance.parts["bob"]):
            await instance.relay.receive(cancel, other)
    assert not run.cancelled
    await there.relay.receive(cancel, there.parts["alice"])
    assert run.cancelled


async def test_what_a_principal_chooses_in_a_session_is_its_own_at_every_instance(memory: SharedMemory) -> None:
    here, there = (Instance(memory, "alice", "bob") for _ in range(2))
    await here.parts["alice"].conversation.set_level("error")
    await here.parts["alice"].conversation.subscribe("menu://alice", is_subscribed=True)
    await there.parts["bob"].conversation.subscribe("menu://bob", is_subscribed=True)
    await there.conversation.set_level("debug")
    late = Instance(memory, "alice", "bob")
    for client in (late.client, *late.parts.values()):
        await client.conversation.restore()
    for instance in (here, there, late):
        chosen = [(part.conversation.log_level, set(part.conversation.subscribed)) for part in instance.parts.values()]
        assert chosen == [("error", {"menu://alice"}), ("info", {"menu://bob"})]
        assert (instance.conversation.log_level, set(instance.conversation.subscribed)) == ("debug", set())


async def test_with_a_session_the_parts_of_all_principals_are_forgotten_everywhere(memory: SharedMemory) -> None:
    here, there = Instance(memory, "alice", "bob"), Instance(memory, "carol", met=False)
    here.relay.end(SESSION)
    assert [len(here.clients), len(there.clients)] == [0, 0]
