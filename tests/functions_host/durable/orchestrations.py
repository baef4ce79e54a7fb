"""Function apps with Durable Functions as people write them, in Python and in Node, and a way to run them."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import resource
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any

from funcmcp.testing import Client
from funcmcp_host.served import PATH, FunctionsHost, HostSettings
from tests.functions_host.apps import write_app, write_node_app
from tests.nodejs import package
from tests.requirements import require

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from funcmcp._transports.http.messages import HttpRequest, HttpResponse

HOST = {"version": "2.0", "extensions": {"durableTask": {"hubName": "%HUB%"}}}

CLIENT_TOOLS = """
@app.mcp_tool_trigger(arg_name="context", tool_name="start", description="Start", tool_properties="[]")
@app.durable_client_input(client_name="client")
async def start(context: str, client) -> str:
    arguments = json.loads(context)["arguments"]
    return await client.start_new(arguments["name"], arguments.get("id"), arguments.get("input"))


@app.mcp_tool_trigger(arg_name="context", tool_name="status", description="Status", tool_properties="[]")
@app.durable_client_input(client_name="client")
async def status(context: str, client) -> str:
    arguments = json.loads(context)["arguments"]
    status = await client.get_status(arguments["id"], show_history=True, show_history_output=True, show_input=True)
    if not status:
        return "null"
    state = status.to_json()
    return json.dumps({"status": state["runtimeStatus"], "output": state["output"], "custom": state["customStatus"]})


@app.mcp_tool_trigger(arg_name="context", tool_name="manage", description="Manage", tool_properties="[]")
@app.durable_client_input(client_name="client")
async def manage(context: str, client) -> str:
    arguments = json.loads(context)["arguments"]
    result = await getattr(client, arguments["method"])(*arguments["arguments"])
    return json.dumps(getattr(result, "instances_deleted", result))


@app.mcp_tool_trigger(arg_name="context", tool_name="entity", description="Entity", tool_properties="[]")
@app.durable_client_input(client_name="client")
async def entity(context: str, client) -> str:
    arguments = json.loads(context)["arguments"]
    entity = df.EntityId("Counter", arguments["key"])
    if "operation" in arguments:
        await client.signal_entity(entity, arguments["operation"], arguments.get("input"))
        return "null"
    state = await client.read_entity_state(entity)
    return json.dumps([state.entity_exists, state.entity_state])


@app.mcp_tool_trigger(arg_name="context", tool_name="list", description="List", tool_properties="[]")
@app.durable_client_input(client_name="client")
async def list_instances(context: str, client) -> str:
    arguments = json.loads(context)["arguments"]
    found = await client.get_status_by(
        runtime_status=[df.OrchestrationRuntimeStatus(name) for name in arguments.get("states", [])],
        instance_id_prefix=arguments.get("prefix"),
    )
    return json.dumps([status.instance_id for status in found])


@app.route(route="start/{name}")
@app.durable_client_input(client_name="client")
async def http_start(req: func.HttpRequest, client) -> func.HttpResponse:
    instance = await client.start_new(req.route_params["name"])
    return client.create_check_status_response(req, instance)
"""

PYTHON = (
    """
import json
import os
import time
from datetime import timedelta

import azure.durable_functions as df
import azure.functions as func

app = df.DFApp(http_auth_level=func.AuthLevel.ANONYMOUS)


@app.activity_trigger(input_name="city")
def greet(city):
    return f"Hello {city}!"


@app.activity_trigger(input_name="value")
async def double(value):
    return value * 2


@app.activity_trigger(input_name="file")
def fail_twice(file):
    with open(file, "a") as attempts:
        attempts.write("x")
    if os.path.getsize(file) < 3:
        raise ValueError("not yet")
    return os.path.getsize(file)


@app.activity_trigger(input_name="text")
def fail(text):
    raise ValueError(text)


@app.activity_trigger(input_name="file")
def end_worker_once(file):
    if not os.path.exists(file):
        open(file, "w").close()
        os._exit(3)
    return "survived"


@app.activity_trigger(input_name="file")
def wait_for(file):
    while not os.path.exists(file):
        time.sleep(0.01)
    return "seen"


@app.orchestration_trigger(context_name="context")
def chain(context):
    greetings = []
    for city in context.get_input():
        greetings.append((yield context.call_activity("greet", city)))
        context.set_custom_status({"done": len(greetings)})
    return greetings


@app.orchestration_trigger(context_name="context", orchestration="Fan-Out")
def fan_out(context):
    doubled = yield context.task_all([context.call_activity("double", n) for n in range(context.get_input())])
    return sum(doubled)


@app.orchestration_trigger(context_name="context")
def retry(context):
    options = df.RetryOptions(10, 5)
    other = context.call_activity("double", 4)
    attempts = yield context.call_activity_with_retry("fail_twice", options, context.get_input())
    return [attempts, (yield other), (yield context.call_activity("double", 21))]


@app.orchestration_trigger(context_name="context")
def retry_in_vain(context):
    tasks = [context.call_activity_with_retry("fail", df.RetryOptions(1, 3), "never") for _ in range(2)]
    try:
        yield context.task_all(tasks)
    except Exception as error:
        answer = yield context.call_activity("double", 3)
        return [str(error), answer]


@app.orchestration_trigger(context_name="context")
def failing(context):
    context.set_custom_status("before")
    yield context.call_activity("fail", "because")


@app.orchestration_trigger(context_name="context")
def first_of(context):
    late = context.create_timer(context.current_utc_datetime + timedelta(hours=1))
    event = context.wait_for_external_event("Approval")
    winner = yield context.task_any([event, late])
    if winner == event:
        late.cancel()
        value = json.loads(event.result)
        soon = context.create_timer(context.current_utc_datetime + timedelta(milliseconds=5))
        yield soon
        return ["approved", value, (yield context.call_activity("double", value["n"]))]
    return ["late"]


@app.orchestration_trigger(context_name="context")
def parent(context):
    one = yield context.call_sub_orchestrator("chain", ["a"], f"{context.instance_id}-child")
    rest = yield context.task_all([context.call_sub_orchestrator("fan-out", n) for n in (2, 3)])
    try:
        yield context.call_sub_orchestrator("failing")
    except Exception as error:
        return [one, rest, "because" in str(error)]


@app.orchestration_trigger(context_name="context")
def retry_child(context):
    try:
        yield context.call_sub_orchestrator_with_retry("failing", df.RetryOptions(1, 2))
    except Exception as error:
        return "because" in str(error)


@app.orchestration_trigger(context_name="context")
def count_down(context):
    number = context.get_input()
    yield context.call_activity("double", number)
    if number:
        context.continue_as_new(number - 1)
    else:
        return "zero"


@app.orchestration_trigger(context_name="context")
def counting(context):
    counter = df.EntityId("Counter", "shared")
    context.signal_entity(counter, "add", 5)
    after = yield context.call_entity(counter, "add", 2)
    doubled = yield context.call_activity("double", after)
    try:
        yield context.call_entity(counter, "break", None)
    except Exception as error:
        return [after, doubled, str(error)]


@app.orchestration_trigger(context_name="context")
def waiting(context):
    return (yield context.call_activity("wait_for", context.get_input()))


@app.orchestration_trigger(context_name="context")
def crash(context):
    return (yield context.call_activity("end_worker_once", context.get_input()))


@app.orchestration_trigger(context_name="context")
def unsteady(context):
    if context.is_replaying:
        yield context.call_activity("greet", "x")
    yield context.call_activity("double", 1)
    yield context.call_activity("double", 1)


@app.orchestration_trigger(context_name="context")
def unknown_activity(context):
    yield context.call_activity("nothing", 1)


@app.orchestration_trigger(context_name="context")
def web(context):
    yield context.call_http("GET", "http://127.0.0.1:1/")


@app.entity_trigger(context_name="context", entity_name="Counter")
def counter(context):
    value = context.get_state(lambda: 0)
    if context.operation_name == "add":
        value += context.get_input()
        context.set_state(value)
        context.set_result(value)
    elif context.operation_name == "delete":
        context.destruct_on_exit()
    else:
        raise ValueError("no such operation")

"""
    + CLIENT_TOOLS
)

NODE = """
const fs = require("fs");
const { app, arg } = require("@azure/functions");
const df = require("durable-functions");

df.app.activity("greet", { handler: (city) => `Hello ${city}!` });
df.app.activity("double", { handler: async (value) => value * 2 });
df.app.activity("describe", { handler: (input) => ({ kind: typeof input, input }) });
df.app.activity("failTwice", {
    handler: (file) => {
        fs.appendFileSync(file, "x");
        const size = fs.statSync(file).size;
        if (size < 3) {
            throw new Error("not yet");
        }
        return size;
    },
});
df.app.activity("fail", {
    handler: (text) => {
        throw new Error(text);
    },
});

df.app.orchestration("chain", function* (context) {
    const greetings = [];
    for (const city of context.df.getInput()) {
        greetings.push(yield context.df.callActivity("greet", city));
        context.df.setCustomStatus({ done: greetings.length });
    }
    return greetings;
});
df.app.orchestration("fanOut", function* (context) {
    const numbers = Array.from({ length: context.df.getInput() }, (_, index) => index);
    const doubled = yield context.df.Task.all(numbers.map((n) => context.df.callActivity("double", n)));
    return doubled.reduce((a, b) => a + b, 0);
});
df.app.orchestration("retry", function* (context) {
    const options = new df.RetryOptions(10, 5);
    const attempts = yield context.df.callActivityWithRetry("failTwice", options, context.df.getInput());
    return [attempts, yield context.df.callActivity("double", 21)];
});
df.app.orchestration("retryInVain", function* (context) {
    const tasks = [1, 2].map(() => context.df.callActivityWithRetry("fail", new df.RetryOptions(1, 3), "never"));
    try {
        yield context.df.Task.all(tasks);
    } catch (error) {
        return [error.message, yield context.df.callActivity("double", 3)];
    }
});
df.app.orchestration("failing", function* (context) {
    context.df.setCustomStatus("before");
    yield context.df.callActivity("fail", "because");
});
df.app.orchestration("firstOf", function* (context) {
    const late = context.df.createTimer(new Date(context.df.currentUtcDateTime.getTime() + 3600000));
    const approval = context.df.waitForExternalEvent("Approval");
    const winner = yield context.df.Task.any([approval, late]);
    if (winner === approval) {
        late.cancel();
        yield context.df.createTimer(new Date(context.df.currentUtcDateTime.getTime() + 5));
        const value = approval.result;
        return ["approved", value, yield context.df.callActivity("double", value.n)];
    }
    return ["late"];
});
df.app.orchestration("parent", function* (context) {
    const one = yield context.df.callSubOrchestrator("chain", ["a"], `${context.df.instanceId}-child`);
    const rest = yield context.df.Task.all([2, 3].map((n) => context.df.callSubOrchestrator("fanOut", n)));
    try {
        yield context.df.callSubOrchestrator("failing");
    } catch (error) {
        return [one, rest, error.message.includes("because")];
    }
});
df.app.orchestration("countDown", function* (context) {
    const number = context.df.getInput();
    yield context.df.callActivity("double", number);
    if (number) {
        context.df.continueAsNew(number - 1);
        return undefined;
    }
    return "zero";
});
df.app.orchestration("counting", function* (context) {
    const counter = new df.EntityId("Counter", "shared");
    context.df.signalEntity(counter, "add", 5);
    const after = yield context.df.callEntity(counter, "add", 2);
    return [after, yield context.df.callActivity("double", after)];
});
df.app.orchestration("locking", function* (context) {
    yield context.df.lock([new df.EntityId("Counter", "shared")]);
});
df.app.orchestration("describing", function* (context) {
    return yield context.df.callActivity("describe", context.df.getInput());
});
df.app.entity("Counter", (context) => {
    const value = context.df.getState(() => 0);
    if (context.df.operationName === "add") {
        const sum = value + context.df.getInput();
        context.df.setState(sum);
        context.df.return(sum);
        if (sum > 100) {
            context.df.signalEntity(new df.EntityId("Counter", "overflow"), "add", 1);
        }
    }
});

const client = df.input.durableClient();
function tool(name, handler) {
    app.mcpTool(name, {
        toolName: name,
        description: name,
        toolProperties: { id: arg.string().optional() },
        extraInputs: [client],
        handler: async (call, context) => {
            return JSON.stringify((await handler(df.getClient(context), call.arguments)) ?? null);
        },
    });
}
tool("start", (durable, { name, id, input }) => durable.startNew(name, { instanceId: id, input }));
tool("status", async (durable, { id }) => {
    try {
        const state = await durable.getStatus(id, { showHistory: true, showHistoryOutput: true });
        return { status: state.runtimeStatus, output: state.output, custom: state.customStatus };
    } catch (error) {
        return null;
    }
});
tool("manage", async (durable, { method, arguments: values }) => durable[method](...values));
tool("entity", async (durable, { key, operation, input }) => {
    const entity = new df.EntityId("Counter", key);
    if (operation) {
        return durable.signalEntity(entity, operation, input);
    }
    const state = await durable.readEntityState(entity);
    return [state.entityExists, state.entityState];
});
"""


class Running:
    """A served app, and a client of it."""

    def __init__(self, host: FunctionsHost, client: Client) -> None:
        self.host = host
        self._client = client

    async def call(self, tool: str, **arguments: Any) -> Any:
        """Call a tool, and return what its text has as JSON."""
        result = await self._client.call_tool(tool, arguments)
        text = result["content"][0]["text"]
        assert not result.get("isError"), text
        try:
            return json.loads(text)
        except ValueError:
            return text

    async def start(self, name: str, value: Any = None, **arguments: Any) -> str:
        """Start an orchestration, and return the id of its instance."""
        instance: str = await self.call("start", name=name, input=value, **arguments)
        return instance

    async def reach(self, instance: str, *states: str) -> dict[str, Any]:
        """Return the status of an instance when it is in one of these states."""
        while True:
            status: dict[str, Any] = await self.call("status", id=instance)
            if status["status"] in states:
                return status
            await asyncio.sleep(0.01)

    def manage(self, method: str, path: str, body: str = "") -> Any:
        """Return the content of the response to a request to manage orchestrations, which needs no worker."""
        return self.host._durable._management.answer(method, path, "", body.encode()).content

    async def until_stored(self, instance: str) -> None:
        """Wait until the file can be used again."""
        while isinstance(self.manage("GET", f"instances/{instance}"), str):  # noqa: ASYNC110 - there is no event
            await asyncio.sleep(0.01)

    async def ended(self, instance: str) -> None:
        """Wait until an instance has ended, without calls of the worker."""
        task = self.host._durable._hub._runs[instance].task
        assert task is not None
        await asyncio.wait({task})

    async def run(self, name: str, value: Any = None) -> dict[str, Any]:
        """Run an orchestration, and return its last status."""
        return await self.reach(await self.start(name, value), "Completed", "Failed", "Terminated")


def python_app(folder: Path, code: str = PYTHON) -> Path:
    """Write the Python app."""
    require("azure-functions-durable", importlib.util.find_spec("azure.durable_functions"))
    return write_app(folder, code, host=HOST, settings={"HUB": "Tests"})


def node_app(folder: Path) -> Path:
    """Write the Node app."""
    package("durable-functions")
    return write_node_app(folder, {"index.js": NODE})


@contextmanager
def file_size_limit() -> Iterator[None]:
    """Let no file of this process grow beyond 64 KiB, as on a full disk."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (65536, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@asynccontextmanager
async def running(folder: Path, settings: HostSettings | None = None, **environment: str) -> AsyncIterator[Running]:
    """Serve an app."""
    host = FunctionsHost(folder, {**os.environ, **environment}, settings or HostSettings())

    async def exchange(http: HttpRequest) -> HttpResponse:
        http.path = PATH
        return await host.exchange(http)

    await host.start()
    try:
        async with Client(exchange, revision="2026-07-28") as client:
            yield Running(host, client)
    finally:
        await host.aclose()
