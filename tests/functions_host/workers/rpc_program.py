"""A language worker that speaks FunctionRpc over grpcio, for tests to start.

The variable SCENARIO chooses what it does wrong. Its functions answer with every kind of value; some of them end or
block the process, or break the protocol.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import grpc

from funcmcp_host.workers.rpc_messages import CANCELLED, METHOD, SERVICE, SUCCESS, StreamingMessage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SCENARIO = os.environ.get("SCENARIO", "")
CAPABILITIES = {
    "HandlesInvocationCancelMessage": "true",
    "HandlesWorkerTerminateMessage": "true",
    "RawHttpBodyBytes": "true",
    "RpcHttpBodyOnly": "true",
    "SupportsLoadResponseCollection": "true",
    "TypedDataCollection": "true",
    "UseNullableValueDictionaryForHttp": "true",
    "WorkerStatus": "true",
}
OTHER_WORKER = "00000000-0000-0000-0000-000000000000"
OK = {"status": SUCCESS}


def failure(text: str, trace: str = "") -> dict[str, Any]:
    return {"status": 0, "exception": {"message": text, "stack_trace": trace}}


def tool(name: str, **more: Any) -> dict[str, Any]:
    return {"name": "context", "type": "mcpToolTrigger", "direction": "in", "toolName": name, **more}


def resource(uri: str) -> dict[str, Any]:
    return {"name": "context", "type": "mcpResourceTrigger", "direction": "in", "uri": uri, "resourceName": uri}


def prompt(name: str) -> dict[str, Any]:
    return {"name": "context", "type": "mcpPromptTrigger", "direction": "in", "promptName": name}


MODEL = {"version": "1.0", "source": "Blobs", "content_type": "application/json", "content": b'{"name": "a"}'}
VALUES: dict[str, dict[str, Any]] = {
    "string": {"string": "text"},
    "empty_string": {"string": ""},
    "json": {"json": '{"a": [1, null]}'},
    "bytes": {"bytes": b"\x00\xff"},
    "stream": {"stream": b"\x01"},
    "int": {"int": -(2**63)},
    "double": {"double": 0.5},
    "nothing": {},
    "collection_bytes": {"collection_bytes": {"bytes": [b"\x00", b""]}},
    "collection_string": {"collection_string": {"string": ["a", ""]}},
    "collection_double": {"collection_double": {"double": [0.5, 2.0]}},
    "collection_sint64": {"collection_sint64": {"sint64": [-1, 2]}},
    "model_binding_data": {"model_binding_data": MODEL},
    "collection_model_binding_data": {
        "collection_model_binding_data": {"model_binding_data": [MODEL, {"content_type": "x/y", "content": b"\x00"}]}
    },
}
"""Return values of tools, by name."""

FUNCTIONS: dict[str, list[Any]] = {
    **{name: [tool(name)] for name in VALUES},
    **{
        name: [tool(name)]
        for name in ("request", "fail", "die", "hang", "slow", "large", "log", "garbage", "end", "wrong_id", "print")
    },
    "rich": [tool("rich", useResultSchema=True)],
    "save": [
        tool("save"),
        {"name": "file", "type": "blob", "direction": "out", "path": "box/{mcptoolargs.name}", "connection": "Files"},
    ],
    "load": [
        tool("load"),
        {"name": "file", "type": "blob", "direction": "in", "path": "box/{mcptoolargs.name}", "dataType": "binary"}
        | {"connection": "Files"},
    ],
    "text": [resource("note://text")],
    "binary": [resource("note://binary")],
    "notes": [resource("note://{user}/{name}")],
    "review": [prompt("review")],
    "orders": [
        {"name": "req", "type": "httpTrigger", "direction": "in", "route": "orders/{id}", "authLevel": "anonymous"},
        {"name": "res", "type": "http", "direction": "out"},
    ],
    "bad_status": [
        {"name": "req", "type": "httpTrigger", "direction": "in", "route": "bad", "authLevel": "anonymous"},
        {"name": "$return", "type": "http", "direction": "out"},
    ],
    "unloadable": [tool("unloadable")],
    "unreadable": [tool("unreadable")],
    "tick": [{"name": "timer", "type": "timerTrigger", "direction": "in", "schedule": "0 * * * * *"}],
}


def arguments_of(request: Any) -> dict[str, Any]:
    for binding in request.input_data:
        if binding.name == "context":
            arguments: dict[str, Any] = json.loads(binding.data.string).get("arguments") or {}
            return arguments
    return {}


def shown(data: Any) -> list[Any]:
    """Return the kind and the content of a TypedData."""
    kind = data.WhichOneof("data")
    content = None if kind is None else getattr(data, kind)
    return [kind, content.decode("latin-1") if isinstance(content, bytes) else content]


def returned_request(request: Any) -> dict[str, Any]:
    content = {
        "inputs": {binding.name: shown(binding.data) for binding in request.input_data},
        "metadata": {name: shown(data) for name, data in sorted(request.trigger_metadata.items())},
        "trace": request.trace_context.trace_parent,
    }
    return {"return_value": {"string": json.dumps(content)}}


def order(request: Any) -> dict[str, Any]:
    """Return an HTTP response as Java and older Node apps do: in the output binding."""
    http = request.input_data[0].data.http
    fields = ("headers", "params", "query")
    content: dict[str, Any] = {name: dict(getattr(http, name)) for name in fields}
    for name in fields:
        for key, value in getattr(http, f"nullable_{name}").items():
            content[name][key] = ["nullable", value.value]
    content |= {"method": http.method, "url": http.url, "body": shown(http.body), "raw": shown(http.rawBody)}
    cookie = {
        "name": "a",
        "value": "b c",
        "domain": {"value": "example.com"},
        "path": {"value": "/"},
        "expires": {"value": {"seconds": 0}},
        "secure": {"value": True},
        "http_only": {"value": True},
        "same_site": 2,
        "max_age": {"value": 60},
    }
    answer = {
        "status_code": "201",
        "headers": {"x-made": "here"},
        "cookies": [cookie, {"name": "plain", "value": "1"}],
        "body": {"json": json.dumps(content)},
    }
    return {"output_data": [{"name": "res", "data": {"http": answer}}]}


BLOCK = {"type": "text", "content": '{"type": "text", "text": "rich"}', "structuredContent": '{"a": 1}'}
ANSWERS: dict[str, Callable[[Any], dict[str, Any]]] = {
    "request": returned_request,
    "fail": lambda _: {"result": failure("ValueError: the secret of the app", "File app, line 1")},
    "large": lambda request: {"return_value": {"string": "x" * arguments_of(request)["size"]}},
    "rich": lambda _: {"return_value": {"string": json.dumps(BLOCK)}},
    "save": lambda request: {
        "return_value": {"string": "saved"},
        "output_data": [{"name": "file", "data": {"string": arguments_of(request)["text"]}}],
    },
    "load": lambda request: {"return_value": {"string": json.dumps([shown(row.data) for row in request.input_data])}},
    "text": lambda _: {"return_value": {"string": "# Text"}},
    "binary": lambda _: {"return_value": {"bytes": b"\x00\xff"}},
    "notes": returned_request,
    "review": lambda _: {"return_value": {"string": "Review this."}},
    "orders": order,
    "bad_status": lambda _: {"return_value": {"http": {"status_code": "fine"}}},
    "print": lambda _: {"return_value": {"string": str(os.getpid())}},
}


class Program:
    """The worker's end of the stream."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self._outgoing: queue.Queue[bytes | None] = queue.Queue()
        self._names: dict[str, str] = {}
        self._slow: set[str] = set()

    def send(self, **content: Any) -> None:
        self._outgoing.put(StreamingMessage(**content).SerializeToString())

    def run(self) -> None:
        channel_options = [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1)]
        channel = grpc.insecure_channel(self._options.functions_uri.removeprefix("http://").strip("/"), channel_options)
        stream = channel.stream_stream(f"/{SERVICE}/{METHOD}")
        self.send(start_stream={"worker_id": self._options.worker_id})
        answers: Iterator[bytes] = stream(iter(self._outgoing.get, None))
        try:
            for data in answers:
                self.receive(StreamingMessage.FromString(data))
        except grpc.RpcError as error:
            print("stream:", error.code().name, error.details(), flush=True)
            time.sleep(60)  # the host ends this process

    def receive(self, message: Any) -> None:
        kind = message.WhichOneof("content")
        getattr(self, f"on_{kind}")(getattr(message, kind), message.request_id)

    def on_worker_init_request(self, request: Any, request_id: str) -> None:
        assert request.host_version
        assert request.function_app_directory == str(Path.cwd()) == os.environ["FUNCTIONS_APPLICATION_DIRECTORY"]
        assert request.worker_directory == str(Path(__file__).absolute().parent)
        response = {
            "capabilities": {} if SCENARIO == "plain" else CAPABILITIES,
            "result": failure("No runtime.") if SCENARIO == "init fails" else OK,
            "worker_metadata": {"runtime_name": "test", "runtime_version": "1.2", "worker_version": "3"},
        }
        if SCENARIO == "late garbage":
            self._outgoing.put(b"\xff\xff\xff")
        elif SCENARIO != "no init":
            self.send(request_id=request_id, worker_init_response=response)

    def on_functions_metadata_request(self, request: Any, request_id: str) -> None:
        rows: list[dict[str, Any]] = [
            {"name": name, "raw_bindings": [json.dumps(binding) for binding in bindings], "function_id": f"id-{name}"}
            for name, bindings in FUNCTIONS.items()
        ]
        by_name = {row["name"]: row for row in rows}
        by_name["unreadable"]["status"] = failure("It has no entry point.")
        by_name["string"]["function_id"] = ""  # the host gives it one
        response: dict[str, Any] = {"function_metadata_results": rows, "result": OK}
        if SCENARIO == "index fails":
            response = {"result": failure("app.x, line 3: Unknown word.")}
        elif SCENARIO == "index default":
            response = {"use_default_metadata_indexing": True, "result": OK}
        self.send(request_id=request_id, function_metadata_response=response)

    def on_function_load_request_collection(self, request: Any, request_id: str) -> None:
        responses = [self.loaded(row) for row in request.function_load_requests]
        self.send(request_id=request_id, function_load_response_collection={"function_load_responses": responses})

    def on_function_load_request(self, request: Any, request_id: str) -> None:
        self.send(request_id=request_id, function_load_response=self.loaded(request))

    def loaded(self, request: Any) -> dict[str, Any]:
        self._names[request.function_id] = request.metadata.name
        if request.metadata.name == "unloadable":
            return {"function_id": request.function_id, "result": failure("It is\nbroken.")}
        assert request.metadata.bindings
        return {"function_id": request.function_id, "result": OK}

    def on_worker_status_request(self, _request: Any, request_id: str) -> None:
        self.send(request_id=request_id, worker_status_response={})

    def on_worker_terminate(self, request: Any, _request_id: str) -> None:
        print("terminate", request.grace_period.seconds, flush=True)
        os._exit(0)

    def on_invocation_cancel(self, request: Any, _request_id: str) -> None:
        self._slow.discard(request.invocation_id)
        self.log(request.invocation_id, "cancelled", level=3)
        self.send(invocation_response={"invocation_id": request.invocation_id, "result": {"status": CANCELLED}})

    def log(self, invocation_id: str, text: str, **more: Any) -> None:
        self.send(rpc_log={"invocation_id": invocation_id, "message": text, **more})

    def on_invocation_request(self, request: Any, _request_id: str) -> None:
        name, invocation_id = self._names[request.function_id], request.invocation_id
        if name == "die":
            os._exit(3)
        elif name == "hang":
            time.sleep(60)
        elif name == "end":
            self._outgoing.put(None)
            return
        elif name == "garbage":
            self._outgoing.put(b"\xff\xff\xff")
            return
        elif name == "wrong_id":
            self.send(invocation_response={"invocation_id": OTHER_WORKER, "result": OK})
            return
        elif name == "slow":
            self._slow.add(invocation_id)
            return
        elif name == "log":
            self.log(invocation_id, "a\x1b[31mwarning", level=3)
            self.log(invocation_id, "a debug record", level=1)
            self.log(invocation_id, "chatter of the worker", level=2, log_category=1)
            self.log("", "failed", level=4, exception={"stack_trace": "File app, line 2"})
            self.log("", "an unknown level", level=99)
        answer = ANSWERS[name](request) if name in ANSWERS else {"return_value": VALUES.get(name, {})}
        self.send(invocation_response={"invocation_id": invocation_id, "result": OK, **answer})


def main() -> None:
    parser = argparse.ArgumentParser()
    for name in ("host", "port", "workerId", "requestId", "grpcMaxMessageLength"):
        parser.add_argument(f"--{name}", required=True)
    for name in ("uri", "worker-id", "request-id", "grpc-max-message-length"):
        parser.add_argument(f"--functions-{name}", required=True)
    options = parser.parse_args()
    assert options.functions_worker_id == options.workerId
    assert options.functions_uri == f"http://{options.host}:{options.port}/"
    assert int(options.grpcMaxMessageLength) == int(options.functions_grpc_max_message_length)
    options.worker_id = options.workerId
    if SCENARIO == "never":
        time.sleep(60)
    if SCENARIO == "late":
        time.sleep(2.5)
    if SCENARIO == "exit":
        sys.exit("No runtime here.")
    Program(options).run()


if __name__ == "__main__":
    main()
