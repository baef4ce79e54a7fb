"""What a storm does to instances and stores; each fault is over when its function returns."""

from __future__ import annotations

import asyncio
import random
import signal
from typing import TYPE_CHECKING

from tests.cluster.storms.settings import LEASE

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from tests.cluster.storms.instances import Instance
    from tests.cluster.storms.places import Place

    Fault = Callable[[Sequence[Instance], Place], Awaitable[None]]

POSTGRES_CUTS = 20
"""Connections that `cut_postgres` ends."""


async def kill(instances: Sequence[Instance], place: Place) -> None:
    """Kill a process (SIGKILL), and start another one in its place."""
    instance = random.choice(instances)
    instance.send(signal.SIGKILL)
    await instance.ended()
    await instance.start()


async def suspend(instances: Sequence[Instance], place: Place) -> None:
    """Suspend a process (SIGSTOP), for longer than its lease or shorter."""
    instance = random.choice(instances)
    instance.send(signal.SIGSTOP)
    try:
        await asyncio.sleep(random.uniform(0.1, 3 * LEASE))
    finally:
        instance.send(signal.SIGCONT)


async def restart(instances: Sequence[Instance], place: Place) -> None:
    """Let a process end in the ordinary way (SIGTERM), and start another one in its place."""
    instance = random.choice(instances)
    instance.send(signal.SIGTERM)
    await instance.ended()
    await instance.start()


async def roll(instances: Sequence[Instance], place: Place) -> None:
    """Restart one process after the other in the ordinary way, as a deployment does."""
    for instance in instances:
        await restart([instance], place)


async def kill_store(instances: Sequence[Instance], place: Place) -> None:
    """Kill the store's process, and start it again with what it has on the disk."""
    await asyncio.to_thread(place.server.kill)
    await _start_later(place)


async def stop_store(instances: Sequence[Instance], place: Place) -> None:
    """Let the store's process end, and start it again."""
    await asyncio.to_thread(place.server.stop)
    await _start_later(place)


async def _start_later(place: Place) -> None:
    try:
        await asyncio.sleep(random.uniform(0.1, 2 * LEASE))
    finally:
        await asyncio.to_thread(place.server.start)


async def suspend_store(instances: Sequence[Instance], place: Place) -> None:
    """Let the store answer nobody, with its connections open."""
    place.server.pause()
    try:
        await asyncio.sleep(random.uniform(0.1, 2 * LEASE))
    finally:
        place.server.resume()


async def fill_redis(instances: Sequence[Instance], place: Place) -> None:
    """Let Redis have no memory for more (noeviction)."""
    await asyncio.to_thread(place.fill_redis)
    try:
        await asyncio.sleep(random.uniform(0.1, 2 * LEASE))
    finally:
        await asyncio.to_thread(place.empty_redis)


async def fill_disk(instances: Sequence[Instance], place: Place) -> None:
    """Let the disk of the store have no space."""
    await asyncio.to_thread(place.fill_disk)
    try:
        await asyncio.sleep(random.uniform(0.1, 2 * LEASE))
    finally:
        await asyncio.to_thread(place.empty_disk)


async def cut_postgres(instances: Sequence[Instance], place: Place) -> None:
    """End connections to PostgreSQL, at any moment."""
    await asyncio.to_thread(place.cut_postgres, POSTGRES_CUTS)
