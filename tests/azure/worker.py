"""Loads a function app into Microsoft's own worker library and invokes its functions, as the Functions host would.

The library (azure-functions-runtime, Python 3.13 and later) keeps one app in globals of its process. So `worker` starts
a process for each app; there, `FunctionsWorker` drives the library's entry points. Messages between the two processes
are lines of JSON.
"""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
import os
import subprocess
import sys
import threading
import uuid
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from tests.azure.messages import PROTOS, Message, StatusResult, TypedData, invocation, streaming_message
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import IO

REPOSITORY = Path(__file__).resolve().parents[2]

needs_worker = pytest.mark.skipif(
    sys.version_info < (3, 13),
    reason="Microsoft's worker library is for Python 3.13 and later",
)
"""Marks tests that need the worker library; the suite's run on Python 3.13 has them."""


@dataclass(frozen=True)
class Function:
    """A function as the worker describes it to the host.

    Attributes:
        name: its name.
        function_id: what the host calls it by.
        bindings: the binding JSON, decoded; the trigger is one of them.
    """

    name: str
    function_id: str
    bindings: list[dict[str, Any]]

    @property
    def trigger(self) -> dict[str, Any]:
        """The binding that starts it."""
        (found,) = (binding for binding in self.bindings if binding["type"].lower().endswith("trigger"))
        return found


@dataclass(frozen=True)
class Invoked:
    """How an invocation went.

    Attributes:
        error: the exception's message, where it failed.
        kind: of the returned value: "string", "bytes", "json", "int", "double", "http"; None without one.
        value: the returned value; of "http" a dict with status_code, headers and body.
        outputs: (kind, value) of each output binding that was set, by name.
    """

    error: str | None = None
    kind: str | None = None
    value: Any = None
    outputs: dict[str, tuple[str, Any]] = field(default_factory=dict)


class LoadError(Exception):
    """The worker could not load the app; its text is what the host would log."""


class FunctionsWorker:
    """The worker library with one app in this process. Only one can be in a process.

    Args:
        folder: of the app, with function_app.py in it.

    Attributes:
        functions: by name, once `start` is through.
        stream_url: where the worker serves HTTP itself, if the app has HTTP streams switched on.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.functions: dict[str, Function] = {}
        self.stream_url: str | None = None

    async def start(self) -> None:
        """Load the app; raise LoadError where the worker can't."""
        import azure_functions_runtime as runtime

        sys.path.insert(0, str(self._folder))
        os.chdir(self._folder)
        runtime.start_threadpool_executor()
        content = Message(capabilities={}, function_app_directory=str(self._folder))
        init = streaming_message("worker_init_request", content, host="127.0.0.1", protos=PROTOS)
        response = await runtime.worker_init_request(init)
        _check(response.result)
        self.stream_url = response.capabilities.get("HttpUri")
        listed = await runtime.functions_metadata_request(streaming_message("functions_metadata_request", Message()))
        for metadata in listed.function_metadata_results or []:
            bindings = [json.loads(text) for text in metadata.raw_bindings]
            self.functions[metadata.name] = Function(metadata.name, metadata.function_id, bindings)
            load = streaming_message("function_load_request", Message(function_id=metadata.function_id))
            _check((await runtime.function_load_request(load)).result)

    async def invoke(
        self,
        name: str,
        inputs: Mapping[str, TypedData],
        metadata: Mapping[str, TypedData] | None = None,
        *,
        invocation_id: str | None = None,
    ) -> Invoked:
        """Invoke a function by name, with values for its triggers and input bindings and with trigger metadata."""
        import azure_functions_runtime as runtime

        content = invocation(
            invocation_id or str(uuid.uuid4()), self.functions[name].function_id, inputs, metadata or {}
        )
        response = await runtime.invocation_request(streaming_message("invocation_request", content))
        if response.result.status != StatusResult.Success:
            return Invoked(error=response.result.exception.message)
        kind, value = _plain(response.return_value)
        outputs = {binding.name: _plain(binding.data) for binding in response.output_data}
        return Invoked(None, kind, value, {name: (str(kind), value) for name, (kind, value) in outputs.items()})


def http_input(
    method: str,
    url: str,
    headers: Mapping[str, str] | None = None,
    body: bytes = b"",
    *,
    values: Mapping[str, str] | None = None,
) -> TypedData:
    """Return the value of an HTTP trigger.

    The host lower-cases names of headers and joins lines of one name with a comma. `values` are those of the variables
    in the function's route.
    """
    return TypedData(
        http=Message(
            method=method,
            url=url,
            headers={name.lower(): value for name, value in (headers or {}).items()},
            params=dict(values or {}),
            query=dict(parse_qsl(urlsplit(url).query, keep_blank_values=True)),
            body=TypedData(bytes=body),
        )
    )


def _check(result: Message) -> None:
    if result.status != StatusResult.Success:
        raise LoadError(result.exception.message)


def _plain(data: TypedData | None) -> tuple[str | None, Any]:
    kind = None if data is None else data.WhichOneof("data")
    if kind != "http":
        return kind, None if kind is None else getattr(data, kind)
    assert data is not None
    http = data.http
    status = int(http.status_code)
    return kind, {"status_code": status, "headers": dict(http.headers), "body": _plain(http.body)[1]}


class Worker:
    """An app in the worker library of another process.

    Attributes:
        functions: as the worker described them to the host, by name.
    """

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._waiting: dict[int, Future[Any]] = {}
        self._numbers = itertools.count()
        self._lock = threading.Lock()
        self._over = False
        self._reader = threading.Thread(target=self._read, daemon=True)
        started = self._waiting[-1] = Future()
        self._reader.start()
        self.functions = {row["name"]: Function(**row) for row in started.result(PATIENCE)}

    def submit(
        self, name: str, inputs: Mapping[str, TypedData], metadata: Mapping[str, TypedData] | None = None
    ) -> Future[Invoked]:
        """Begin an invocation: for several at a time."""
        future: Future[Invoked] = Future()
        with self._lock:
            if self._over:
                raise RuntimeError("the worker's process has ended")
            number = next(self._numbers)
            self._waiting[number] = future
            line = json.dumps([number, name, _packed(dict(inputs)), _packed(dict(metadata or {}))])
            stdin: IO[str] = self._process.stdin  # type: ignore[assignment] # it is a pipe
            stdin.write(line + "\n")
            stdin.flush()
        return future

    def invoke(
        self, name: str, inputs: Mapping[str, TypedData], metadata: Mapping[str, TypedData] | None = None
    ) -> Invoked:
        """Invoke a function and wait for its end."""
        return self.submit(name, inputs, metadata).result(PATIENCE)

    def invoke_http(
        self, name: str, method: str, url: str, *, headers: Mapping[str, str] | None = None, body: bytes = b""
    ) -> Invoked:
        """Invoke a function whose HTTP trigger's parameter is named `req`."""
        return self.invoke(name, {"req": http_input(method, url, headers, body)})

    def terminate(self) -> None:
        """Send SIGTERM, which is how a platform ends its processes."""
        self._process.terminate()

    def finish(self) -> None:
        """Let the worker's main coroutine end, as it does when its connection to the host breaks off."""
        stdin: IO[str] = self._process.stdin  # type: ignore[assignment] # it is a pipe
        stdin.close()

    def exit_code(self) -> int:
        """Wait for the process's end and return its exit code; a signal's number is negative."""
        return self._process.wait(PATIENCE)

    def _read(self) -> None:
        for line in self._process.stdout or ():
            number, ok, value = _unpacked(json.loads(line))
            with self._lock:
                future = self._waiting.pop(number)
            if not ok:
                future.set_exception(LoadError(value))
            else:
                future.set_result(value if number == -1 else Invoked(**value))
        with self._lock:
            self._over = True
        for future in self._waiting.values():
            future.set_exception(RuntimeError("the worker's process has ended"))


@contextmanager
def worker(folder: Path, *, env: Mapping[str, str] | None = None) -> Iterator[Worker]:
    """Load the app in a folder into a worker process until the block ends.

    Args:
        folder: with function_app.py in it.
        env: environment variables, which Azure calls app settings, beside the inherited ones.

    Raises:
        LoadError: the worker can't load it.
    """
    command = [sys.executable, "-W", "default", "-m", "tests.azure.worker", str(folder)]
    with subprocess.Popen(
        command,
        cwd=REPOSITORY,
        env={**os.environ, **(env or {})},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    ) as process:
        try:
            yield Worker(process)
        finally:
            process.terminate()
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                raise


@contextmanager
def worker_of(code: str, folder: Path, *, env: Mapping[str, str] | None = None) -> Iterator[Worker]:
    """Write code into a folder as function_app.py, and load it."""
    (folder / "function_app.py").write_text(code, encoding="utf-8")
    with worker(folder, env=env) as loaded:
        yield loaded


def _packed(value: Any) -> Any:
    """Return a value as JSON can say it: bytes and messages get marks."""
    if isinstance(value, bytes):
        return {"$bytes": base64.b64encode(value).decode()}
    if isinstance(value, Message):
        return {"$message": type(value).__name__, **{name: _packed(item) for name, item in vars(value).items()}}
    if isinstance(value, dict):
        return {name: _packed(item) for name, item in value.items()}
    return [_packed(item) for item in value] if isinstance(value, list | tuple) else value


def _unpacked(value: Any) -> Any:
    if isinstance(value, dict):
        if "$bytes" in value:
            return base64.b64decode(value["$bytes"])
        name = value.pop("$message", None)
        members = {key: _unpacked(item) for key, item in value.items()}
        return members if name is None else {"Message": Message, "TypedData": TypedData}[name](**members)
    return [_unpacked(item) for item in value] if isinstance(value, list) else value


async def _main(folder: Path) -> None:
    """Serve the process at the other end of stdin and stdout; what functions print goes to stderr."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def answer(number: int, *, ok: bool, value: Any) -> None:
        answers.write(json.dumps([number, ok, _packed(value)]) + "\n")
        answers.flush()

    async def run(number: int, name: str, inputs: dict[str, TypedData], metadata: dict[str, TypedData]) -> None:
        answer(number, ok=True, value=vars(await app.invoke(name, inputs, metadata)))

    app = FunctionsWorker(folder)
    try:
        await app.start()
    except LoadError as error:
        answer(-1, ok=False, value=str(error))
        return
    answer(-1, ok=True, value=[vars(function) for function in app.functions.values()])
    running = set()
    while line := await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline):
        task = asyncio.create_task(run(*_unpacked(json.loads(line))))
        running.add(task)
        task.add_done_callback(running.discard)


if __name__ == "__main__":
    asyncio.run(_main(Path(sys.argv[1])))
