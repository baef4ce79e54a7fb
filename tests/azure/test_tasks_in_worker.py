"""Tasks of a function app, in Microsoft's worker library and with a real Azurite."""

from __future__ import annotations

import base64
import contextlib
import json
import secrets
import time
from typing import TYPE_CHECKING, Any

import pytest
from azure.core.exceptions import ResourceNotFoundError
from azure.storage.blob import ContainerClient
from azure.storage.queue import QueueClient

from tests.azure.queue import queue_input, queue_metadata
from tests.azure.worker import http_input, needs_worker, worker_of
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.azure.worker import Invoked, Worker
    from tests.azurite import Azurite

pytestmark = [
    needs_worker,
    pytest.mark.every_python("Python 3.13 has another azure-functions."),
]

URL = "https://shop.azurewebsites.net/api/mcp"
EXTENSION = "io.modelcontextprotocol/tasks"
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {"extensions": {EXTENSION: {}}, "elicitation": {}},
}
APP = """
import asyncio
import os

import funcmcp.azure
from funcmcp import MCPServer, Context
from funcmcp.tasks import AzureTasks, TaskOptions
from pydantic import BaseModel

mcp = MCPServer("Shop", tasks=AzureTasks("STORAGE", prefix=os.environ["PREFIX"], lease=1))


class Name(BaseModel):
    name: str


@mcp.tool(task="optional")
async def double(number: int, context: Context) -> int:
    with open(os.environ["RUNS"], "a") as runs:
        print(number, file=runs)
    await context.report_progress(1, 2, "counting")
    return number * 2


@mcp.tool(task="optional")
async def greet(context: Context) -> str:
    answer = await context.elicit("Who are you?", Name)
    return f"Hello {answer.content.name}, in {context.task_id}"


@mcp.tool(task="optional")
def large(kilobytes: int) -> str:
    return "x" * 1024 * kilobytes


@mcp.tool(task="optional")
async def wait() -> str:
    await asyncio.Event().wait()


app = funcmcp.azure.http_app(mcp, auth_level="anonymous")
"""


class Shop:
    """The app, its storage, and what the host does with both."""

    def __init__(self, worker: Worker, azurite: Azurite, prefix: str, runs: Path) -> None:
        self.worker = worker
        self.runs = runs
        name = worker.functions["mcp_tasks"].trigger["queueName"]
        self.queue = QueueClient.from_connection_string(azurite.connection_string, name)
        self.container = ContainerClient.from_connection_string(azurite.connection_string, prefix)

    def close(self) -> None:
        self.queue.close()
        self.container.close()

    def request(self, method: str, name: str, params: dict[str, Any]) -> Any:
        """Return the result of an MCP request."""
        headers = {
            "Host": "shop.azurewebsites.net",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": "2026-07-28",
            "Mcp-Method": method,
            "Mcp-Name": name,
        }
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": ENVELOPE}}
        response = self.worker.invoke("mcp", {"req": http_input("POST", URL, headers, json.dumps(message).encode())})
        assert response.error is None
        assert response.value["status_code"] == 200, response.value
        return json.loads(response.value["body"])["result"]

    def create(self, tool: str, **arguments: Any) -> str:
        """Call a tool, and return the id of the task."""
        result = self.request("tools/call", tool, {"name": tool, "arguments": arguments})
        assert (result["resultType"], result["status"]) == ("task", "working")
        task_id: str = result["taskId"]
        return task_id

    def get(self, task_id: str) -> dict[str, Any]:
        result: dict[str, Any] = self.request("tasks/get", task_id, {"taskId": task_id})
        return result

    def messages(self) -> list[bytes]:
        """Return the messages in the queue as the host decodes them, and delete them."""
        received = list(self.queue.receive_messages(max_messages=32, visibility_timeout=30))
        for message in received:
            self.queue.delete_message(message)
        return [base64.b64decode(message.content) for message in received]

    def deliver(self, message: bytes, deliveries: int = 1) -> Invoked:
        return self.worker.invoke("mcp_tasks", {"message": queue_input(message)}, queue_metadata(deliveries))

    def blobs(self) -> list[str]:
        return [blob.name for blob in self.container.list_blobs()]

    def blob_of(self, message: bytes) -> str:
        """Return the name of the blob of the task that a message names."""
        content = json.loads(message)
        folder = self.queue.queue_name.removeprefix(f"{self.container.container_name}-")
        return f"{folder}/{content['owner']}/{content['task']}.json"

    def counts(self) -> list[str]:
        return self.runs.read_text().splitlines() if self.runs.exists() else []


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory, azurite: Azurite) -> Iterator[Shop]:
    prefix = f"w-{secrets.token_hex(8)}"
    folder = tmp_path_factory.mktemp("app")
    runs = folder / "runs"
    env = {
        "WEBSITE_HOSTNAME": "shop.azurewebsites.net",
        "STORAGE": azurite.connection_string,
        "PREFIX": prefix,
        "RUNS": str(runs),
    }
    with worker_of(APP, folder, env=env) as worker:
        shop = Shop(worker, azurite, prefix, runs)
        yield shop
        shop.close()


@pytest.fixture
def shop(app: Shop) -> Shop:
    app.runs.unlink(missing_ok=True)
    with contextlib.suppress(ResourceNotFoundError):  # the app creates the queue with its first task
        app.queue.clear_messages()
    return app


def test_a_message_of_the_queue_runs_the_task(shop: Shop) -> None:
    task_id = shop.create("double", number=21)
    assert shop.get(task_id)["status"] == "working"
    (message,) = shop.messages()
    assert task_id.encode() not in message
    assert json.loads(message).keys() == {"server", "owner", "task", "for"}
    assert shop.deliver(message).error is None
    task = shop.get(task_id)
    assert (task["status"], task["result"]["structuredContent"]) == ("completed", {"result": 42})
    assert "statusMessage" not in task
    assert shop.counts() == ["21"]
    assert shop.deliver(message).error is None  # a late copy
    assert shop.counts() == ["21"]


def test_of_two_deliveries_at_once_one_runs_the_tool(shop: Shop) -> None:
    shop.create("double", number=7)
    (message,) = shop.messages()
    metadata = queue_metadata()
    futures = [shop.worker.submit("mcp_tasks", {"message": queue_input(message)}, metadata) for _ in range(3)]
    assert [future.result(PATIENCE).error for future in futures] == [None] * 3
    assert shop.counts() == ["7"]


def test_a_message_that_was_delivered_five_times_fails_its_task_in_words(shop: Shop) -> None:
    task_id = shop.create("double", number=5)
    (message,) = shop.messages()
    assert shop.deliver(message, 5).error is None
    task = shop.get(task_id)
    assert (task["status"], task["error"]["code"]) == ("failed", -32603)
    assert task["error"]["message"] == "The task was delivered to a worker 5 times, and no run of it ended."
    assert shop.counts() == []


def test_a_result_of_600_kibibytes_comes_back_whole(shop: Shop) -> None:
    task_id = shop.create("large", kilobytes=600)
    before = len(shop.blobs())
    (message,) = shop.messages()
    assert shop.deliver(message).error is None
    assert shop.get(task_id)["result"]["content"] == [{"type": "text", "text": "x" * 600 * 1024}]
    assert len(shop.blobs()) == before + 1


def test_a_task_asks_and_runs_again_with_the_answer(shop: Shop) -> None:
    task_id = shop.create("greet")
    (message,) = shop.messages()
    assert shop.deliver(message).error is None
    task = shop.get(task_id)
    assert task["status"] == "input_required"
    (key,) = task["inputRequests"]
    answer = {key: {"action": "accept", "content": {"name": "Ada"}}}
    shop.request("tasks/update", task_id, {"taskId": task_id, "inputResponses": answer})
    (message,) = shop.messages()
    assert shop.deliver(message).error is None
    assert shop.get(task_id)["result"]["content"] == [{"type": "text", "text": f"Hello Ada, in {task_id}"}]


def test_a_cancelled_task_ends_its_run(shop: Shop) -> None:
    task_id = shop.create("wait")
    (message,) = shop.messages()
    running = shop.worker.submit("mcp_tasks", {"message": queue_input(message)}, queue_metadata())
    while not shop.container.get_blob_client(shop.blob_of(message)).download_blob().readall().count(b'"claimed":true'):
        time.sleep(0.02)
    shop.request("tasks/cancel", task_id, {"taskId": task_id})
    assert running.result(PATIENCE).error is None
    assert shop.get(task_id)["status"] == "cancelled"


def test_the_message_of_the_end_deletes_the_blobs(shop: Shop) -> None:
    task_id = shop.create("large", kilobytes=100)
    (message,) = shop.messages()
    assert shop.deliver(message).error is None
    name = shop.blob_of(message)
    client = shop.container.get_blob_client(name)
    client.set_blob_metadata({**client.get_blob_properties().metadata, "removed": "1000"})
    before = shop.blobs()
    assert shop.deliver(message.replace(b'"run"', b'"remove"')).error is None
    removed = set(before) - set(shop.blobs())
    assert {blob.partition(".")[0] for blob in removed} == {name.partition(".")[0]}
    assert len(removed) == 2
    assert task_id


def test_a_message_and_a_record_of_another_program_do_nothing(shop: Shop) -> None:
    assert shop.deliver(b"Hello").error is None
    task_id = shop.create("double", number=3)
    (message,) = shop.messages()
    shop.container.get_blob_client(shop.blob_of(message)).upload_blob(b"not a record", overwrite=True)
    assert shop.deliver(message).error is None
    assert shop.counts() == []
    assert task_id


def test_a_message_is_delivered_again_if_its_task_can_not_be_written(shop: Shop) -> None:
    shop.create("double", number=9)
    (message,) = shop.messages()
    with contextlib.closing(shop.container.get_blob_client(shop.blob_of(message))) as blob:
        lease = blob.acquire_lease()  # the storage refuses the writes of all others
        done = shop.deliver(message)
        assert done.error is not None
        assert done.error.startswith("StoreUnavailableError")
        assert shop.counts() == []
        lease.release()
    assert shop.deliver(message).error is None
    assert shop.counts() == ["9"]
