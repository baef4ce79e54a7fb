"""The stream between the host and a language worker: messages in both directions, and the calls that wait for answers.

See `funcmcp_host.workers.rpc` for the order of the messages.
"""

from __future__ import annotations

import asyncio
import logging
import os
import uuid
from typing import TYPE_CHECKING, Any

# grpc's fork handlers are for programs that use gRPC after a fork. When a process starts while other threads use grpc,
# they write a line to stderr.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")

import grpc
import grpc.aio
from google.protobuf.message import DecodeError

from funcmcp_host.workers.child_process import app_log, printable
from funcmcp_host.workers.rpc_messages import (
    CANCELLED,
    METHOD,
    SERVICE,
    SUCCESS,
    SYSTEM_LOG,
    StreamingMessage,
)
from funcmcp_host.workers.rpc_values import read_typed_data
from funcmcp_host.workers.worker import NULL, FunctionFailed, OpenCall, Outcome, Value, WorkerGone

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

ADDRESS = "127.0.0.1"
"""The address of the port for the worker."""

MAX_MESSAGE = 256 * 1024 * 1024
"""Bytes of a message in either direction."""

MAX_TEXT = 20000
"""Characters of a text that is logged."""

_LEVELS = (10, 10, 20, 30, 40, 50, 20)
"""Levels of the log by the numbers of RpcLog.level: Trace, Debug, Information, Warning, Error, Critical, None."""

_START_MESSAGES = {
    "worker_init_response",
    "function_metadata_response",
    "function_load_response",
    "function_load_response_collection",
}


async def start_server(stream: Stream) -> tuple[Any, int]:
    """Start a gRPC server on a free loopback port, for one stream; return the server and the port."""
    options = [
        ("grpc.max_receive_message_length", MAX_MESSAGE),
        ("grpc.max_send_message_length", MAX_MESSAGE),
        ("grpc.so_reuseport", 0),
    ]
    server = grpc.aio.server(options=options)
    # Without serializers messages stay bytes, so `Stream` sees the ones that can't be parsed.
    method = grpc.stream_stream_rpc_method_handler(stream.serve)
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, {METHOD: method}),))
    port = server.add_insecure_port(f"{ADDRESS}:0")
    await server.start()
    return server, port


class Stream:
    """The host's end of the stream.

    Args:
        worker_id: The id of the worker that may open the stream.
        log_level: The least severe level of its log records.
        is_workers: Returns whether the worker has opened a connection, which is named as gRPC names it, such as
            ``ipv4:127.0.0.1:50000``.
    """

    def __init__(self, worker_id: str, log_level: int, is_workers: Callable[[str], Awaitable[bool]]) -> None:
        self.capabilities: dict[str, str] = {}
        self.calls: dict[str, OpenCall] = {}
        self.is_connected = False
        self.fault = ""
        """What is wrong with a message of the worker; empty if nothing is."""
        self.expected = ""
        """The message for which `receive` waits."""
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._worker_id = worker_id
        self._log_level = log_level
        self._is_workers = is_workers
        self._handler: asyncio.Task[Any] | None = None
        self._outgoing: asyncio.Queue[tuple[bytes, OpenCall | None]] = asyncio.Queue()
        self._incoming: asyncio.Queue[tuple[str, Any] | None] = asyncio.Queue()
        self._pong: asyncio.Future[None] | None = None

    def send(self, message: Any, call: OpenCall | None = None) -> None:
        """Queue a message. *call* has begun when it is written."""
        self._outgoing.put_nowait((message.SerializeToString(), call))

    async def receive(self, *kinds: str) -> tuple[str, Any]:
        """Return the kind and the content of the next message of these kinds.

        Raises:
            WorkerGone: The stream ended before.
        """
        self.expected = "".join(part.capitalize() for part in kinds[0].split("_"))
        while (message := await self._incoming.get()) is not None:
            if message[0] in kinds:
                return message
        raise WorkerGone(begun=False)

    async def ping(self) -> None:
        """Wait for the answer to a WorkerStatusRequest, or for any message if the worker does not know that one."""
        self._pong = asyncio.get_running_loop().create_future()
        if self.capabilities.get("WorkerStatus"):
            request = StreamingMessage(request_id=str(uuid.uuid4()))
            request.worker_status_request.SetInParent()
            self.send(request)
        await self._pong

    async def serve(self, messages: AsyncIterator[bytes], context: Any) -> None:
        """Exchange messages with a program that has opened a stream: the handler of the gRPC method."""
        if not await self._is_from_worker(messages, context.peer()):
            app_log.warning("A program that is not the worker has connected to the port for the worker. It is refused.")
            await context.abort(grpc.StatusCode.PERMISSION_DENIED, "This program is not the worker.")
        self.is_connected = True
        self._handler = asyncio.current_task()
        self._incoming.put_nowait(("start_stream", None))
        writer = asyncio.create_task(self._write(context))
        try:
            async for data in messages:
                self._read(data)
        except (DecodeError, LookupError, ValueError) as error:
            self.fault = f"The worker sent something that is not a message ({error})."
            app_log.error("%s It is stopped.", self.fault)
        finally:
            writer.cancel()
            await asyncio.gather(writer, return_exceptions=True)
            self.close()

    async def _is_from_worker(self, messages: AsyncIterator[bytes], peer: str) -> bool:
        """Return whether the worker has opened a stream, with its id in the first message, and has no other stream."""
        if self._handler is not None or not await self._is_workers(peer):
            return False
        try:
            message = StreamingMessage.FromString(await anext(messages, b""))
        except DecodeError:
            return False
        return message.start_stream.worker_id == self._worker_id and self._handler is None

    def close(self) -> None:
        """End the stream and fail the open calls."""
        self.is_connected = False
        if self.closed.done():
            return
        self.closed.set_result(None)
        self._incoming.put_nowait(None)
        for call in self.calls.values():
            if not call.future.done():
                call.future.set_exception(WorkerGone(begun=call.begun))
        if self._handler is not None and self._handler is not asyncio.current_task():
            self._handler.cancel()

    async def _write(self, context: Any) -> None:
        while True:
            data, call = await self._outgoing.get()
            if call is not None:
                if call.future.done():
                    continue  # its caller has gone
                call.begun = True
            await context.write(data)

    def _read(self, data: bytes) -> None:
        message = StreamingMessage.FromString(data)
        kind = message.WhichOneof("content")
        is_answer = kind == "worker_status_response" or not self.capabilities.get("WorkerStatus")
        if is_answer and self._pong is not None and not self._pong.done():
            self._pong.set_result(None)
        if kind == "invocation_response":
            self._on_response(message.invocation_response)
        elif kind == "rpc_log":
            self._on_log(message.rpc_log)
        elif kind in _START_MESSAGES:
            self._incoming.put_nowait((kind, getattr(message, kind)))

    def _on_response(self, response: Any) -> None:
        call = self.calls.get(response.invocation_id)
        if call is None or call.future.done():
            app_log.debug("The worker answered a call that is not open.")
            return
        try:
            call.future.set_result(_outcome(response))
        except FunctionFailed as error:
            call.future.set_exception(error)

    def _on_log(self, record: Any) -> None:
        level = _LEVELS[record.level] if 0 <= record.level < len(_LEVELS) else logging.INFO
        if record.log_category == SYSTEM_LOG and level < logging.WARNING:
            level = logging.DEBUG
        if level < self._log_level or not app_log.isEnabledFor(level):
            return
        text = record.message
        if record.exception.stack_trace:
            text = f"{text}\n{record.exception.stack_trace}"
        call = self.calls.get(record.invocation_id)
        extra = {"function": "" if call is None else call.function, "invocation": record.invocation_id}
        app_log.log(level, "%s", printable(text[:MAX_TEXT]), extra=extra)


def _outcome(response: Any) -> Outcome:
    """Return what a function returned; raise FunctionFailed if it failed."""
    result = response.result
    if result.status != SUCCESS:
        general = "The call was cancelled." if result.status == CANCELLED else "The function failed."
        text = result.exception.message or result.result or general
        raise FunctionFailed(text[:MAX_TEXT], result.exception.stack_trace[-MAX_TEXT:])
    try:
        value = read_typed_data(response.return_value)
        outputs = {binding.name: read_typed_data(binding.data) for binding in response.output_data}
    except ValueError as error:
        raise FunctionFailed(str(error)) from error
    if value.kind == "null":
        value = _returned(outputs)
    return Outcome(value, outputs)


def _returned(outputs: dict[str, Value]) -> Value:
    """Return the output that is the return value in languages without one: an HTTP response, or "$return"."""
    for name, value in outputs.items():
        if value.kind == "http":
            return outputs.pop(name)
    return outputs.get("$return", NULL)
