"""A language worker that the host talks to over FunctionRpc, as Microsoft's Functions host does.

How it works. `RpcWorker.start` opens a gRPC server on a loopback port and starts the program with the server's address
and an id. The program opens one stream and names the id (StartStream). Every user of the machine can reach the port
and read the id in the list of processes, so the stream must also come from a process of the program's session, which
`connection_owner` finds out. The messages on the stream then are:

1. WorkerInitRequest and -Response, with the capabilities of the worker;
2. FunctionsMetadataRequest and FunctionMetadataResponse, if the app has no function.json files;
3. FunctionLoadRequest and -Response for each function;
4. InvocationRequest and -Response for each call, InvocationCancel after its time, and RpcLog from the worker.

The protocol has no acknowledgement for the start of a call. A call counts as begun when its request is written to the
stream, so after a crash it is never sent to another process. Before, the kernel is asked whether the process lives,
since the end of its stream is seen later. The stream ends, and open calls fail with `WorkerGone`, when the process
ends, when the worker closes the stream, or when it sends something that is not a message.

WorkerStatusRequest is the ping of workers with the capability WorkerStatus. For others every message is an answer.

Messages for the shared start of many apps (FunctionEnvironmentReloadRequest, WorkerWarmupRequest) are not sent: a
worker here has one app from its start. Shared memory and several streams per worker are not offered.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import shlex
import uuid
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from funcmcp._objects.mappings import lower_names
from funcmcp._protocol.durations import seconds_text
from funcmcp._text.files import is_file
from funcmcp_host.function_json import function_folders
from funcmcp_host.json_texts import loads
from funcmcp_host.workers.child_process import ChildWorker, Command, program_path, until_parent_ends
from funcmcp_host.workers.connection_owner import Endpoint, belongs_to_session, has_owners
from funcmcp_host.workers.rpc_messages import (
    BINDING_DATA_TYPES,
    BINDING_DIRECTIONS,
    SUCCESS,
    RpcFunctionMetadata,
    StreamingMessage,
)
from funcmcp_host.workers.rpc_stream import ADDRESS, MAX_MESSAGE, MAX_TEXT, Stream, start_server
from funcmcp_host.workers.rpc_values import write_typed_data
from funcmcp_host.workers.worker import (
    FunctionFailed,
    FunctionInfo,
    LoadFailed,
    OpenCall,
    Outcome,
    WorkerGone,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from funcmcp_host.workers.worker import Invocation

HOST_VERSION = "4.1000.0"
"""The version of the Functions host that workers read."""

_NEEDS_LINUX = (
    "--worker needs Linux: /proc/net/tcp shows which process has connected. Without it, every user of this machine "
    "could take the worker's place."
)
_TERMINATE_SECONDS = 5
"""How long a worker that handles WorkerTerminate may take to end; as in the Functions host."""

_CONCURRENCY = {"python": "PYTHON_THREADPOOL_THREAD_COUNT", "powershell": "PSWorkerInProcConcurrencyUpperBound"}
"""By language: the variable that the Functions host sets to 1000 if the app does not."""


@dataclass(frozen=True, slots=True)
class _LoadedFunction:
    """A function of the app.

    Attributes:
        info: The function as the host sees it.
        metadata: Its RpcFunctionMetadata.
    """

    info: FunctionInfo
    metadata: Any


def rpc_worker(
    command: str, folder: Path, environment: Mapping[str, str], *, log_level: int = logging.DEBUG
) -> RpcWorker:
    """Return a language worker that speaks FunctionRpc.

    Args:
        command: The command line of the worker, as a shell reads it. It runs in the app's folder.
        folder: The app's folder.
        environment: The environment of the worker's process.
        log_level: The least severe level of its log records.

    Raises:
        LoadFailed: The command line is not complete.
    """
    try:
        tokens = shlex.split(command)
    except ValueError as error:
        raise LoadFailed(f"The worker's command {command!r} can't be read: {error}.") from error
    if not tokens:
        raise LoadFailed("The worker's command is empty.")
    arguments = [_program(tokens[0], folder), *tokens[1:]]
    directory = _worker_directory(arguments, folder)
    variables = {
        **environment,
        "FUNCTIONS_WORKER_DIRECTORY": str(directory),
        "FUNCTIONS_APPLICATION_DIRECTORY": str(folder),
    }
    concurrency = _CONCURRENCY.get(environment.get("FUNCTIONS_WORKER_RUNTIME", "").lower())
    if concurrency is not None:
        variables.setdefault(concurrency, "1000")
    return RpcWorker(Command(until_parent_ends(arguments), folder, variables), directory, log_level=log_level)


def _program(name: str, folder: Path) -> str:
    """Return the absolute path of a program on the PATH, in the current folder or in the app's folder."""
    path = folder / name
    if program_path(name) == name and is_file(path):
        return str(path)
    return program_path(name)


def _worker_directory(arguments: Sequence[str], folder: Path) -> Path:
    """Return the folder of the worker: that of the last file which the command names."""
    for name in reversed(arguments):
        for path in (Path(name).absolute(), folder / name):
            if is_file(path):
                return path.parent
    return folder


class RpcWorker(ChildWorker[Stream]):
    """A worker that speaks FunctionRpc.

    Args:
        command: Starts the program.
        directory: The folder of the worker's own files.
        log_level: The least severe level of its log records.
    """

    def __init__(self, command: Command, directory: Path, *, log_level: int = logging.DEBUG) -> None:
        super().__init__(command)
        self._command = command
        self._directory = directory
        self._log_level = log_level
        self._server: Any = None
        self._port = 0
        self._has_started = asyncio.Event()
        self._checking = asyncio.Lock()
        self._hangs = False
        self._watch: asyncio.Task[None] | None = None
        self._ids: dict[str, str] = {}

    async def start(self) -> None:
        """Start the process and load the app.

        Raises:
            LoadFailed: The program can't be started, does not connect, can't load the app, or takes too long.
        """
        worker_id = str(uuid.uuid4())
        if not has_owners():
            raise LoadFailed(_NEEDS_LINUX)
        stream = self._connection = Stream(worker_id, self._log_level, self._has_opened)
        try:
            self._server, self._port = await start_server(stream)
            await self._child.start(_arguments(self._port, worker_id))
            self._has_started.set()
            self._watch = asyncio.create_task(self._close_at_exit(stream))
            async with asyncio.timeout(self._start_seconds):
                await self._load(stream)
        except TimeoutError as error:
            step = f"send {stream.expected}" if stream.is_connected else "connect to the host"
            await self.aclose()
            raise LoadFailed(f"The worker did not {step} within {seconds_text(self._start_seconds)}.") from error
        except WorkerGone as error:
            await self.aclose()
            text = f"The worker ended before the app was loaded (exit code {self.exit_code})."
            raise LoadFailed(stream.fault or text) from error
        except BaseException:
            await self.aclose()
            raise

    async def _has_opened(self, peer: str) -> bool:
        """Return whether the program has opened a connection, or a process that it has started."""
        await self._has_started.wait()
        kind, _, client = peer.partition(":")
        address, _, port = client.rpartition(":")
        if kind != "ipv4" or self.pid is None:
            return False
        async with self._checking:  # a crowd of other programs takes no more than one thread
            server = Endpoint(ADDRESS, self._port)
            return await asyncio.to_thread(belongs_to_session, self.pid, Endpoint(address, int(port)), server)

    async def _close_at_exit(self, stream: Stream) -> None:
        """End the stream when the process ends."""
        await self._child.wait()
        stream.close()

    async def _load(self, stream: Stream) -> None:
        """Do the handshake and load the functions."""
        await stream.receive("start_stream")
        request = StreamingMessage()
        request.worker_init_request.host_version = HOST_VERSION
        request.worker_init_request.worker_directory = str(self._directory)
        request.worker_init_request.function_app_directory = str(self._command.folder)
        stream.send(request)
        _, response = await stream.receive("worker_init_response")
        _check(response.result, "The worker can't start.")
        stream.capabilities = dict(response.capabilities)
        self.http_url = stream.capabilities.get("HttpUri") or None
        self.description = _description(response.worker_metadata)
        functions = _functions_of_folders(self._command.folder) or await self._index(stream)
        errors = await _load_functions(stream, [row.metadata for row in functions if row.info.error is None])
        self.functions = [_with_error(row.info, errors.get(row.metadata.function_id)) for row in functions]
        self._ids = {row.info.name: row.metadata.function_id for row in functions}

    async def _index(self, stream: Stream) -> list[_LoadedFunction]:
        """Return the functions that the worker finds."""
        request = StreamingMessage()
        request.functions_metadata_request.function_app_directory = str(self._command.folder)
        stream.send(request)
        _, response = await stream.receive("function_metadata_response")
        if response.HasField("result"):
            _check(response.result, "The worker can't read the app's functions.")
        functions = []
        for metadata in response.function_metadata_results:
            error = _failure(metadata.status, "The worker can't read it.") if metadata.HasField("status") else None
            metadata.function_id = metadata.function_id or str(uuid.uuid4())
            functions.append(
                _LoadedFunction(FunctionInfo(metadata.name, tuple(metadata.raw_bindings), error), metadata)
            )
        return functions

    async def invoke(
        self, invocation: Invocation, seconds: float | None, overdue: Callable[[], Awaitable[None]] | None = None
    ) -> Outcome:
        """Call a function; see `SingleWorker`."""
        stream = self._connection
        if stream is None or not stream.is_connected or self._child.has_ended:
            raise WorkerGone(begun=False)
        function_id = self._ids.get(invocation.function)
        if function_id is None:
            raise FunctionFailed(f"The app has no function {invocation.function!r}.")
        invocation_id = invocation.id or str(uuid.uuid4())
        call = OpenCall(invocation.function)
        stream.calls[invocation_id] = call
        try:
            stream.send(_invocation_request(invocation, invocation_id, function_id, stream.capabilities), call)
            return await call.outcome(seconds, overdue)
        except (TimeoutError, asyncio.CancelledError):
            if call.begun and stream.capabilities.get("HandlesInvocationCancelMessage"):
                cancel = StreamingMessage()
                cancel.invocation_cancel.invocation_id = invocation_id
                stream.send(cancel)
            raise
        finally:
            call.future.cancel()
            del stream.calls[invocation_id]

    async def ping(self, seconds: float) -> bool:
        """Return whether the worker answers in this time."""
        stream = self._connection
        if stream is None or not stream.is_connected:
            return False
        try:
            async with asyncio.timeout(seconds):
                await stream.ping()
        except TimeoutError:
            self._hangs = True
            return False
        self._hangs = False
        return True

    async def aclose(self) -> None:
        """End the process: WorkerTerminate if the worker handles it, the end of the stream, SIGTERM, SIGKILL."""
        stream = self._connection
        if stream is not None and stream.is_connected and not self._hangs:
            await self._terminate(stream)
        if self._watch is not None:
            self._watch.cancel()
            await asyncio.gather(self._watch, return_exceptions=True)
        if stream is not None:
            stream.close()
        await self._child.aclose(wait_seconds=0)
        if self._server is not None:
            await self._server.stop(None)

    async def _terminate(self, stream: Stream) -> None:
        """Ask the worker to end, and wait until it does, if it handles WorkerTerminate."""
        if stream.capabilities.get("HandlesWorkerTerminateMessage"):
            terminate = StreamingMessage()
            terminate.worker_terminate.grace_period.seconds = _TERMINATE_SECONDS
            stream.send(terminate)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_TERMINATE_SECONDS):
                    await self._child.wait()


def _arguments(port: int, worker_id: str) -> list[str]:
    """Return the arguments that the Functions host appends to the command of a worker, in the old and the new names."""
    request_id = str(uuid.uuid4())
    options = {
        "--host": ADDRESS,
        "--port": str(port),
        "--workerId": worker_id,
        "--requestId": request_id,
        "--grpcMaxMessageLength": str(MAX_MESSAGE),
        "--functions-uri": f"http://{ADDRESS}:{port}/",
        "--functions-worker-id": worker_id,
        "--functions-request-id": request_id,
        "--functions-grpc-max-message-length": str(MAX_MESSAGE),
    }
    return [word for option in options.items() for word in option]


def _failure(result: Any, general: str) -> str | None:
    """Return why a StatusResult is not a success, or None if it is one."""
    if result.status == SUCCESS:
        return None
    return " ".join((result.exception.message or result.result or general).split())[:MAX_TEXT]


def _check(result: Any, general: str) -> None:
    text = _failure(result, general)
    if text is not None:
        raise LoadFailed(text)


def _description(metadata: Any) -> str:
    runtime = f"{metadata.runtime_name} {metadata.runtime_version}".strip()
    worker = f"worker {metadata.worker_version}".strip()
    if runtime:
        return f"{runtime}, {worker}"
    return worker


def _functions_of_folders(app: Path) -> list[_LoadedFunction]:
    """Return the functions that have a function.json."""
    functions = []
    for folder in function_folders(app):
        metadata = RpcFunctionMetadata(
            name=folder.name,
            directory=str(folder.path),
            script_file=folder.script,
            entry_point=folder.entry_point,
            raw_bindings=folder.bindings,
            function_id=str(uuid.uuid4()),
        )
        functions.append(_LoadedFunction(FunctionInfo(folder.name, tuple(folder.bindings), folder.error), metadata))
    return functions


async def _load_functions(stream: Stream, functions: Sequence[Any]) -> dict[str, str]:
    """Load functions in the worker; return the errors by the functions' ids."""
    requests = StreamingMessage()
    collection = requests.function_load_request_collection.function_load_requests
    for metadata in functions:
        collection.add(function_id=metadata.function_id, metadata=_load_metadata(metadata))
    if stream.capabilities.get("SupportsLoadResponseCollection"):
        stream.send(requests)
    else:
        for request in collection:
            stream.send(StreamingMessage(function_load_request=request))
    errors: dict[str, str] = {}
    missing = {metadata.function_id for metadata in functions}
    while missing:
        kind, content = await stream.receive("function_load_response", "function_load_response_collection")
        responses = [content]
        if kind == "function_load_response_collection":
            responses = content.function_load_responses
        for response in responses:
            missing.discard(response.function_id)
            error = _failure(response.result, "The worker can't load it.")
            if error is not None:
                errors[response.function_id] = error
    return errors


def _load_metadata(metadata: Any) -> Any:
    """Return what the worker needs to load a function, with its bindings by name."""
    message = RpcFunctionMetadata(
        name=metadata.name,
        directory=metadata.directory,
        script_file=metadata.script_file,
        entry_point=metadata.entry_point,
        properties=dict(metadata.properties),
    )
    for text in metadata.raw_bindings:
        try:
            binding = lower_names(loads(text))
        except (ValueError, AttributeError):
            continue  # `bindings.read_function` reports it
        info = message.bindings[str(binding.get("name", ""))]
        info.type = str(binding.get("type", ""))
        info.direction = BINDING_DIRECTIONS.get(str(binding.get("direction", "in")).lower(), 0)
        info.data_type = BINDING_DATA_TYPES.get(str(binding.get("datatype", "")).lower(), 0)
    return message


def _with_error(info: FunctionInfo, error: str | None) -> FunctionInfo:
    if error is None:
        return info
    return replace(info, error=error)


def _invocation_request(
    invocation: Invocation, invocation_id: str, function_id: str, capabilities: Mapping[str, str]
) -> Any:
    message = StreamingMessage()
    request = message.invocation_request
    request.invocation_id = invocation_id
    request.function_id = function_id
    request.trace_context.trace_parent = invocation.trace_parent
    for name, value in invocation.inputs.items():
        # SetInParent: a value that is null is an empty TypedData, not a missing one.
        data = request.input_data.add(name=name).data
        data.SetInParent()
        write_typed_data(data, value, capabilities)
    for name, value in invocation.metadata.items():
        write_typed_data(request.trigger_metadata[name], value, capabilities)
    return message
