"""One function app in Microsoft's worker library, called as the Functions host calls it.

`worker_library.py FOLDER` prints a line of JSON when `add` has answered, and one when `nap` has answered 32 times at
once. What an endpoint of MCP is sent comes in the variable BENCH_MESSAGES: nothing is loaded here that is not the
worker's or the app's. `worker_library.py FOLDER SECONDS` calls `echo` for some seconds, one after the other and 32 at
once, and prints the median time and the calls a second.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import sys
import time
import uuid
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY))

import azure_functions_runtime as runtime  # noqa: E402 - as the worker has it before any app

from tests.azure.messages import (  # noqa: E402 - of the repository
    PROTOS,
    Message,
    StatusResult,
    TypedData,
    invocation,
    streaming_message,
)

URL = "http://localhost:7071/api/"
TOGETHER = 32
ARGUMENTS: dict[str, dict[str, Any]] = {"add": {"a": 17, "b": 4}, "nap": {}, "echo": {}}


class App:
    """The app: its functions, and what the host sends them.

    Args:
        functions: ids and bindings by name.
    """

    def __init__(self, functions: dict[str, tuple[str, list[dict[str, Any]]]]) -> None:
        self._functions = functions

    async def call(self, tool: str) -> str:
        """Call a tool and return what was answered; raise RuntimeError if it is no success."""
        name = next((name for name in (tool, f"tool_{tool}") if name in self._functions), None)
        arguments, endpoint = ARGUMENTS[tool], next(iter(self._functions))
        if name is None:
            message = json.loads(os.environ["BENCH_MESSAGES"])[tool]
            return await self._invoke(endpoint, _http("mcp", message["body"].encode(), message["headers"]))
        trigger = next(binding for binding in self._functions[name][1] if binding["type"].endswith("Trigger"))
        if trigger["type"] == "mcpToolTrigger":
            context = json.dumps({"name": tool, "arguments": arguments})
            return await self._invoke(name, TypedData(string=context), trigger["name"])
        return await self._invoke(name, _http(tool, json.dumps(arguments).encode(), {}), trigger["name"])

    async def _invoke(self, name: str, value: TypedData, parameter: str = "req") -> str:
        content = invocation(str(uuid.uuid4()), self._functions[name][0], {parameter: value}, {})
        response = await runtime.invocation_request(streaming_message("invocation_request", content))
        if response.result.status != StatusResult.Success:
            raise RuntimeError(response.result.exception.message)
        returned = response.return_value
        if returned.WhichOneof("data") != "http":
            return str(returned.string)
        body: bytes = returned.http.body.bytes
        if int(returned.http.status_code) != 200:
            raise RuntimeError(f"{returned.http.status_code}: {body!r}")
        return body.decode()


def _http(path: str, body: bytes, headers: dict[str, str]) -> TypedData:
    lower = {name.lower(): value for name, value in headers.items()}
    lower |= {"host": "localhost:7071", "content-type": "application/json"}
    typed = TypedData(bytes=body)
    return TypedData(http=Message(method="POST", url=URL + path, headers=lower, params={}, query={}, body=typed))


async def _loaded(folder: Path) -> App:
    sys.path.insert(0, str(folder))
    os.chdir(folder)
    runtime.start_threadpool_executor()
    content = Message(capabilities={}, function_app_directory=str(folder))
    begin = streaming_message("worker_init_request", content, host="127.0.0.1", protos=PROTOS)
    _check((await runtime.worker_init_request(begin)).result)
    listed = await runtime.functions_metadata_request(streaming_message("functions_metadata_request", Message()))
    functions = {}
    for metadata in listed.function_metadata_results or []:
        functions[metadata.name] = metadata.function_id, [json.loads(text) for text in metadata.raw_bindings]
        load = streaming_message("function_load_request", Message(function_id=metadata.function_id))
        _check((await runtime.function_load_request(load)).result)
    return App(functions)


def _check(result: Message) -> None:
    if result.status != StatusResult.Success:
        raise RuntimeError(result.exception.message)


async def main(folder: Path) -> None:
    """Load the app and call it."""
    app = await _loaded(folder)
    answer = await app.call("add")
    used = resource.getrusage(resource.RUSAGE_SELF)
    _tell(answer=answer, cpu_seconds=used.ru_utime + used.ru_stime)
    await app.call("nap")
    started = time.perf_counter()
    answers = await asyncio.gather(*(app.call("nap") for _ in range(TOGETHER)))
    _tell(answer=answers[-1], seconds=time.perf_counter() - started)


async def measure(folder: Path, seconds: float) -> None:
    """Load the app, call `echo` for some seconds in both ways, and print how fast it was."""
    app = await _loaded(folder)
    times: list[float] = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        begin = time.perf_counter()
        await app.call("echo")
        times.append(time.perf_counter() - begin)
    count = 0
    begin = time.perf_counter()
    end = begin + seconds

    async def repeat() -> None:
        nonlocal count
        while time.perf_counter() < end:
            await app.call("echo")
            count += 1

    await asyncio.gather(*(repeat() for _ in range(TOGETHER)))
    elapsed = time.perf_counter() - begin
    _tell(milliseconds=sorted(times)[len(times) // 2] * 1000, rate=count / elapsed)


def _tell(**figures: object) -> None:
    print(json.dumps(figures), file=ANSWERS, flush=True)


if __name__ == "__main__":
    ANSWERS = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what the library prints is not an answer
    if len(sys.argv) > 2:
        asyncio.run(measure(Path(sys.argv[1]).resolve(), float(sys.argv[2])))
    else:
        asyncio.run(main(Path(sys.argv[1]).resolve()))
