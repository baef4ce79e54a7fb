"""What the Functions host does with a queue trigger: it takes messages from the queue and invokes the function."""

from __future__ import annotations

import asyncio
import base64
import json
import os
from typing import TYPE_CHECKING, Any

from tests.azure.messages import TypedData

if TYPE_CHECKING:
    from tests.azure.worker import Function, FunctionsWorker

_PAUSE = 0.05
"""Seconds between two looks at an empty queue."""

_HIDDEN = 600
"""Seconds for which a message is hidden while its function runs."""


def queue_input(content: bytes) -> TypedData:
    """Return the value of a queue trigger: the text of the message, which the host has decoded."""
    return TypedData(string=content.decode())


def queue_metadata(deliveries: int = 1) -> dict[str, TypedData]:
    """Return what the host says about a message."""
    times = {name: TypedData(json='"2026-07-28T12:00:00+00:00"') for name in ("InsertionTime", "NextVisibleTime")}
    return {
        "Id": TypedData(string="4a5c"),
        "DequeueCount": TypedData(json=json.dumps(deliveries)),
        "PopReceipt": TypedData(string="receipt"),
        **times,
    }


async def listen(worker: FunctionsWorker, function: Function) -> None:
    """Invoke a function for each message of its queue, until it is cancelled; without a connection do nothing."""
    from azure.core.exceptions import ResourceNotFoundError
    from azure.storage.queue.aio import QueueClient

    trigger = function.trigger
    connection = os.environ.get(trigger["connection"])
    if connection is None:
        return

    async def handle(message: Any) -> None:
        content = base64.b64decode(message.content)
        metadata = queue_metadata(message.dequeue_count)
        done = await worker.invoke(function.name, {trigger["name"]: queue_input(content)}, metadata)
        if done.error is None:
            await queue.delete_message(message)

    async with (
        QueueClient.from_connection_string(connection, trigger["queueName"]) as queue,
        asyncio.TaskGroup() as runs,
    ):
        while True:
            try:
                messages = [message async for message in queue.receive_messages(visibility_timeout=_HIDDEN)]
            except ResourceNotFoundError:
                messages = []
            for message in messages:
                runs.create_task(handle(message))
            if not messages:
                await asyncio.sleep(_PAUSE)
