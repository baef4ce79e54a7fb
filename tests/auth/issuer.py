"""An issuer on this machine that publishes its keys, well or badly."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class Issuer:
    """Answers every request with what it has been told to.

    Attributes:
        url: where the keys are.
        requests: the heads of the requests that came.
        status: the status line's code and reason.
        fields: header fields beside the length.
        body: the body.
        drips: send the body byte by byte.
        open: cleared, an answer waits until it is set.
    """

    def __init__(self) -> None:
        self.url = ""
        self.requests: list[str] = []
        self.status = "200 OK"
        self.fields = ["Content-Type: application/json"]
        self.body = b""
        self.drips = False
        self.open = asyncio.Event()
        self.open.set()
        self.asked = asyncio.Event()

    def publish(self, *keys: object) -> None:
        self.status, self.body = "200 OK", json.dumps({"keys": keys}).encode()

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            self.requests.append((await reader.readuntil(b"\r\n\r\n")).decode("latin-1"))
            self.asked.set()
            await self.open.wait()
            head = [f"HTTP/1.1 {self.status}", *self.fields, f"Content-Length: {len(self.body)}", "Connection: close"]
            writer.write("\r\n".join([*head, "", ""]).encode())
            for part in [self.body] if not self.drips else [self.body[at : at + 1] for at in range(len(self.body))]:
                writer.write(part)
                await writer.drain()
                await asyncio.sleep(0)
        except (ConnectionError, asyncio.IncompleteReadError):
            return  # whoever asked has hung up, as it should where the answer is of no use
        finally:
            writer.close()


@asynccontextmanager
async def serving() -> AsyncIterator[Issuer]:
    """Open an issuer on a loopback port."""
    issuer = Issuer()
    server = await asyncio.start_server(issuer.answer, "127.0.0.1", 0)
    issuer.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/keys"
    try:
        yield issuer
    finally:
        issuer.open.set()
        server.close()
