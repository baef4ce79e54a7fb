"""A client of tasks that costs little itself: one connection, JSON and nothing else."""

from __future__ import annotations

import asyncio
import json
import time
from typing import TYPE_CHECKING, Any, Self

from traffic import PER_REQUEST, PREFIX

if TYPE_CHECKING:
    from types import TracebackType

EXTENSION = PREFIX + "tasks"
_META = {
    PREFIX + "protocolVersion": PER_REQUEST,
    PREFIX + "clientCapabilities": {"extensions": {EXTENSION: {}}},
    PREFIX + "clientInfo": {"name": "bench", "version": "1.0.0"},
}
_SECONDS = 60


class TaskClient:
    """A client with one connection to a server.

    Args:
        port: Of the server.
    """

    def __init__(self, port: int) -> None:
        self._port = port
        self._pauses: list[tuple[float, float]] = []
        self._reader: asyncio.StreamReader
        self._writer: asyncio.StreamWriter

    async def __aenter__(self) -> Self:
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._writer.close()
        await self._writer.wait_closed()

    async def create(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool; return the task that it became."""
        result = await self._request("tools/call", tool, {"name": tool, "arguments": arguments})
        if result["resultType"] != "task":
            raise RuntimeError(f"The call did not become a task: {result}")
        return result

    async def get(self, task_id: str) -> dict[str, Any]:
        """Return a task as it is now."""
        return await self._request("tasks/get", task_id, {"taskId": task_id})

    async def end_of(self, task: dict[str, Any], interval: float | None = None) -> dict[str, Any]:
        """Poll until a task has ended, and return it.

        Args:
            task: The task; the first request for its status is sent at once if there is an interval.
            interval: Seconds between two requests; None for those that the server asks for.
        """
        task_id = task["taskId"]
        self._pauses.clear()
        if interval is None:
            await asyncio.sleep(task["pollIntervalMs"] / 1000)
        async with asyncio.timeout(_SECONDS):
            while True:
                task = await self.get(task_id)
                if task["status"] not in ("working", "input_required"):
                    break
                begin = time.time()
                await asyncio.sleep(task["pollIntervalMs"] / 1000 if interval is None else interval)
                self._pauses.append((begin, time.time()))
        if task["status"] != "completed":
            raise RuntimeError(f"A task ended as {task['status']}: {task}")
        return task

    def paused_since(self, moment: float) -> float:
        """Return the seconds after a moment in which the last `end_of` waited for its next request."""
        return sum(max(0.0, end - max(begin, moment)) for begin, end in self._pauses)

    async def listen(self, task_id: str) -> None:
        """Listen to the changes of a task, on this connection."""
        await self._send("subscriptions/listen", None, {"notifications": {"taskIds": [task_id]}})

    async def arrival(self) -> float:
        """Return the time at which the connection that listens gets the end of the task."""
        async with asyncio.timeout(_SECONDS):
            while True:
                line = await self._reader.readline()
                if b'"completed"' in line:
                    return time.time()
                if not line:
                    raise RuntimeError("The stream ended.")

    async def _request(self, method: str, name: str, params: dict[str, Any]) -> dict[str, Any]:
        await self._send(method, name, params)
        head = await self._reader.readuntil(b"\r\n\r\n")
        length = head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]
        body = await self._reader.readexactly(int(length))
        answer: dict[str, Any] = json.loads(body)
        if not head.startswith(b"HTTP/1.1 200") or "result" not in answer:
            raise RuntimeError(f"{method} was answered {head[:40]!r} {body[:300]!r}")
        result: dict[str, Any] = answer["result"]
        return result

    async def _send(self, method: str, name: str | None, params: dict[str, Any]) -> None:
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": _META}}
        body = json.dumps(message, separators=(",", ":")).encode()
        lines = [
            "POST /mcp HTTP/1.1",
            f"Host: 127.0.0.1:{self._port}",
            "Content-Type: application/json",
            "Accept: application/json, text/event-stream",
            f"MCP-Protocol-Version: {PER_REQUEST}",
            f"Mcp-Method: {method}",
            f"Content-Length: {len(body)}",
        ]
        if name is not None:
            lines.append(f"Mcp-Name: {name}")
        self._writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
        await self._writer.drain()


def end_time(task: dict[str, Any]) -> float:
    """Return when the tool of a task that has ended returned; the tools return the time."""
    return float(task["result"]["content"][0]["text"])


def seconds_since_end(task: dict[str, Any]) -> float:
    """Return how long ago the tool of a task that has ended returned."""
    return time.time() - end_time(task)
