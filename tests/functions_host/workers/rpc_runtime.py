"""Microsoft's worker library for Python 3.13, azure-functions-runtime, behind FunctionRpc, for tests to start.

On Azure the program around the library is Microsoft's proxy worker, which is on no package registry. As there, each
message goes to the library's function for it, and what that returns goes back.

It is started with the name of the library (``azure_functions_runtime``, or ``azure_functions_runtime_v1`` for apps
with function.json files) and the arguments of a language worker.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import grpc
import grpc.aio

_METHOD = "/AzureFunctionsRpcMessages.FunctionRpc/EventStream"
_HANDLERS = (
    "worker_init_request",
    "functions_metadata_request",
    "function_load_request",
    "invocation_request",
)


async def answer(library: Any, protos: Any, host: str, message: Any) -> Any:
    """Return the message that answers one."""
    kind = message.WhichOneof("content")
    if kind == "worker_status_request":
        return protos.StreamingMessage(request_id=message.request_id, worker_status_response={})
    if kind not in _HANDLERS:
        return None
    request = SimpleNamespace(request=message, properties={"host": host, "protos": protos})
    response = await getattr(library, kind)(request)
    name = "function_metadata_response" if kind == "functions_metadata_request" else kind.replace("request", "response")
    return protos.StreamingMessage(request_id=message.request_id, **{name: response})


async def serve(name: str, options: argparse.Namespace) -> None:
    """Answer messages until the host ends the stream."""
    library = importlib.import_module(f"{name}.handle_event")
    protos = importlib.import_module("protos.FunctionRpc_pb2")
    unlimited = [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1)]
    address = options.functions_uri.removeprefix("http://").strip("/")
    async with grpc.aio.insecure_channel(address, unlimited) as channel:
        stream = channel.stream_stream(
            _METHOD, protos.StreamingMessage.SerializeToString, protos.StreamingMessage.FromString
        )()
        await stream.write(protos.StreamingMessage(start_stream={"worker_id": options.functions_worker_id}))

        writing = asyncio.Lock()

        async def handle(message: Any) -> None:
            response = await answer(library, protos, options.host, message)
            if response is not None:
                async with writing:  # a stream takes one message at a time
                    await stream.write(response)

        async with asyncio.TaskGroup() as tasks:
            async for message in stream:
                tasks.create_task(handle(message))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    for option in ("--functions-uri", "--functions-worker-id", "--host"):
        parser.add_argument(option)
    packages = Path(sys.prefix) / "function-worker"
    sys.path[0] = os.environ["FUNCTIONS_APPLICATION_DIRECTORY"]
    sys.path += [str(packages), str(packages / "tests")]
    asyncio.run(serve(sys.argv[1], parser.parse_known_args(sys.argv[2:])[0]))
