"""The store of tasks in a real Azurite."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp.adapters.azure import tasks
from funcmcp.adapters.azure.tasks import AzureTasks
from tests.state.tasks.contract import TaskStoreContract

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from funcmcp.state.tasks.store import TaskStore
    from tests.azurite import Azurite
    from tests.clock import Clock

CONNECTION = "TASKS_STORAGE"


@pytest.fixture(autouse=True)
def connection(azurite: Azurite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CONNECTION, azurite.connection_string)


class TestAzureTasks(TaskStoreContract):
    @pytest.fixture
    async def store(self, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[TaskStore]:
        monkeypatch.setattr(tasks, "_WAIT", 0.25)
        self.monkeypatch = monkeypatch
        self.clock = clock
        self.prefix = f"t-{secrets.token_hex(8)}"
        self.made: list[AzureTasks] = []
        yield await self.make(None)
        for store in self.made:
            await store.aclose()

    async def make(self, store: TaskStore | None, **options: Any) -> TaskStore:
        made = AzureTasks(CONNECTION, prefix=self.prefix, clock=self.clock, **options)
        self.made.append(made)
        return made

    async def wait(self, seconds: float) -> None:
        self.clock.now += seconds

    async def idle(self, store: TaskStore) -> None:
        with self.monkeypatch.context() as patch:
            patch.setattr(tasks, "_WAIT", 0.01)
            await super().idle(store)
