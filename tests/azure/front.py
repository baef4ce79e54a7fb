"""What the Functions host does, as an ASGI application: it finds the function and invokes it in the worker.

The environment says which app: FUNCTION_APP is its folder. Requests and responses go to and fro as the host sends them:
whole, in an invocation; or, where the app has HTTP streams on, over HTTP to the worker's own server. Functions with a
queue trigger are invoked for the messages in their queues.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import httpx2

from funcmcp._adapters.azure.settings import route_prefix
from tests.azure.queue import listen
from tests.azure.worker import FunctionsWorker, LoadError, http_input
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.azure.worker import Function

    Receive = Callable[[], Awaitable[dict[str, Any]]]
    Send = Callable[[dict[str, Any]], Awaitable[None]]

_HOP_BY_HOP = {b"connection", b"keep-alive", b"transfer-encoding", b"content-length"}


class Route:
    """An HTTP-triggered function, and what it is reached by."""

    def __init__(self, function: Function, prefix: str) -> None:
        trigger = function.trigger
        self.name = function.name
        self.parameter = trigger["name"]
        self._methods = {method.upper() for method in trigger.get("methods") or ()}
        parts = re.split(r"(/\{\*\w+\}|\{\w+\})", f"{prefix}/{trigger.get('route') or function.name}")
        self._pattern = re.compile("".join(map(_pattern, parts)))

    def values(self, method: str, path: str) -> dict[str, str] | None:
        """Return the values of the route's variables, or None where it does not match."""
        found = self._pattern.fullmatch(path)
        if found is None or (self._methods and method not in self._methods):
            return None
        return {name: value or "" for name, value in found.groupdict().items()}


def _pattern(part: str) -> str:
    if part.startswith("/{*"):
        return f"(?:/(?P<{part[3:-1]}>.*))?"
    return f"(?P<{part[1:-1]}>[^/]+)" if part.startswith("{") else re.escape(part)


class Front:
    """The application."""

    def __init__(self) -> None:
        self._worker = FunctionsWorker(Path(os.environ["FUNCTION_APP"]))
        self._routes: list[Route] = []
        self._http = httpx2.AsyncClient(timeout=PATIENCE, trust_env=False)

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """Serve one scope."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        for route in self._routes:
            values = route.values(scope["method"], scope["path"])
            if values is not None:
                await (self._stream if self._worker.stream_url else self._invoke)(route, values, scope, receive, send)
                return
        await _send(send, 404, [], b"")

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        log = logging.getLogger("uvicorn.error")
        log.disabled = True  # the worker's own server is not the one that the tests are to find
        try:
            await self._worker.start()
            await self._listening()
        except LoadError as error:
            await send({"type": "lifespan.startup.failed", "message": str(error)})
            return
        finally:
            log.disabled = False
        prefix = route_prefix()
        http = [found for found in self._worker.functions.values() if found.trigger["type"] == "httpTrigger"]
        self._routes = [Route(function, prefix) for function in http]
        queues = [found for found in self._worker.functions.values() if found.trigger["type"] == "queueTrigger"]
        listening = [asyncio.create_task(listen(self._worker, function)) for function in queues]
        await send({"type": "lifespan.startup.complete"})
        await receive()
        for task in listening:
            task.cancel()
        await asyncio.gather(*listening, return_exceptions=True)
        await self._http.aclose()
        await send({"type": "lifespan.shutdown.complete"})

    async def _listening(self) -> None:
        """Wait until the worker's own server, if it has one, accepts connections."""
        if self._worker.stream_url is None:
            return
        port = urlsplit(self._worker.stream_url).port
        async with asyncio.timeout(PATIENCE):
            while True:
                try:
                    _, writer = await asyncio.open_connection("127.0.0.1", port)
                except ConnectionRefusedError:
                    await asyncio.sleep(0)
                else:
                    writer.close()
                    return

    async def _invoke(
        self, route: Route, values: dict[str, str], scope: dict[str, Any], receive: Receive, send: Send
    ) -> None:
        headers: dict[str, str] = {}
        for name, value in _lines(scope):
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
        data = http_input(scope["method"], _url(scope), headers, await _body(receive), values=values)
        done = await self._worker.invoke(route.name, {route.parameter: data})
        if done.error is not None:
            await _send(send, 500, [], b"")
            return
        lines = [(name.lower().encode(), value.encode("latin-1")) for name, value in done.value["headers"].items()]
        await _send(send, done.value["status_code"], lines, done.value["body"])

    async def _stream(
        self, route: Route, values: dict[str, str], scope: dict[str, Any], receive: Receive, send: Send
    ) -> None:
        number = str(uuid.uuid4())
        data = http_input(scope["method"], _url(scope), values=values)
        invoked = asyncio.create_task(self._worker.invoke(route.name, {route.parameter: data}, invocation_id=number))
        url = f"{self._worker.stream_url}{scope['path']}?{scope['query_string'].decode()}"
        lines = [(name, value.strip()) for name, value in scope["headers"] if name not in _HOP_BY_HOP]
        lines.append((b"x-ms-invocation-id", number.encode()))
        body = await _body(receive)
        left = asyncio.create_task(_gone(receive))
        async with self._http.stream(scope["method"], url, headers=lines, content=body) as response:
            headers = [(name.lower(), value) for name, value in response.headers.raw if name.lower() not in _HOP_BY_HOP]
            await send({"type": "http.response.start", "status": response.status_code, "headers": headers})
            pumped = asyncio.create_task(_pump(response, send))
            await asyncio.wait({pumped, left}, return_when=asyncio.FIRST_COMPLETED)
            for task in (pumped, left):
                task.cancel()
            await asyncio.gather(pumped, left, return_exceptions=True)
        await invoked


async def _pump(response: httpx2.Response, send: Send) -> None:
    async for part in response.aiter_raw():
        await send({"type": "http.response.body", "body": part, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _body(receive: Receive) -> bytes:
    parts, more = [], True
    while more:
        message = await receive()
        parts.append(message.get("body", b""))
        more = message.get("more_body", False)
    return b"".join(parts)


def _lines(scope: dict[str, Any]) -> list[tuple[str, str]]:
    return [(name.decode(), value.decode("latin-1")) for name, value in scope["headers"]]


def _url(scope: dict[str, Any]) -> str:
    query = f"?{scope['query_string'].decode()}" if scope["query_string"] else ""
    return f"http://{dict(_lines(scope))['host']}{scope['path']}{query}"


async def _send(send: Send, status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


app = Front() if "FUNCTION_APP" in os.environ else None
