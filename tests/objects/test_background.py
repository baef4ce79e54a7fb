from __future__ import annotations

import asyncio
import gc
import weakref

from funcmcp._objects.background import hold_until_done


class Owner:
    """An object that only its own task refers to."""

    def __init__(self, ended: list[str]) -> None:
        self.ended = ended
        self.event = asyncio.Event()
        self.task = hold_until_done(asyncio.create_task(self.run()))

    async def run(self) -> None:
        try:
            await self.event.wait()
        finally:
            self.ended.append("yes")


def test_a_task_that_nobody_else_holds_goes_on_until_the_loop_ends() -> None:
    ended: list[str] = []

    async def use() -> None:
        Owner(ended)
        await asyncio.sleep(0)
        gc.collect()
        assert ended == []

    asyncio.run(use())
    assert ended == ["yes"]


async def test_a_task_that_is_done_is_held_no_longer() -> None:
    async def answer() -> int:
        return 1

    task = hold_until_done(asyncio.create_task(answer()))
    assert await task == 1
    await asyncio.sleep(0)
    reference = weakref.ref(task)
    del task
    gc.collect()
    assert reference() is None
