"""The samples for Azure Functions, as the Functions host would start them."""

from __future__ import annotations

import json
import sys

import httpx2
import pytest

from tests.azure.worker import needs_worker, worker
from tests.cli.processes import running
from tests.patience import PATIENCE
from tests.serving import REPOSITORY
from tests.sockets import free_port

pytestmark = pytest.mark.every_python("Python 3.13 has another azure-functions.")

SAMPLES = REPOSITORY / "samples/azure"
HOST = "clock.azurewebsites.net"
PARAMS = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
INITIALIZE = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": PARAMS}


@needs_worker
def test_the_own_endpoint_is_loaded_and_answers() -> None:
    headers = {"Host": HOST, "Content-Type": "application/json"}
    body = json.dumps(INITIALIZE).encode()
    with worker(SAMPLES / "own_endpoint", env={"WEBSITE_HOSTNAME": HOST}) as loaded:
        answer = loaded.invoke_http("mcp", "POST", f"https://{HOST}/api/mcp", headers=headers, body=body).value
    assert json.loads(answer["body"])["result"]["serverInfo"]["name"] == "clock"


@needs_worker
def test_the_app_with_tasks_is_loaded_with_a_queue_trigger() -> None:
    with worker(SAMPLES / "tasks", env={"WEBSITE_HOSTNAME": HOST}) as loaded:
        assert list(loaded.functions) == ["mcp", "mcp_preflight", "mcp_livez", "mcp_readyz", "mcp_tasks"]
        trigger = loaded.functions["mcp_tasks"].trigger
    assert (trigger["type"], trigger["connection"]) == ("queueTrigger", "AzureWebJobsStorage")
    assert trigger["queueName"].startswith("funcmcp-tasks-reports-")


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
def test_the_self_hosted_server_listens_where_the_host_wants_and_answers_on_the_apps_name() -> None:
    folder = SAMPLES / "self_hosted"
    settings = json.loads((folder / "host.json").read_text())["customHandler"]["description"]
    assert settings["defaultExecutablePath"] == "python"
    port = free_port()
    env = {"FUNCTIONS_CUSTOMHANDLER_PORT": str(port), "WEBSITE_HOSTNAME": HOST}
    with running([sys.executable, *settings["arguments"]], folder=folder, env=env) as process:
        url = process.endpoint()
        assert url == f"http://127.0.0.1:{port}/mcp"
        with httpx2.Client(trust_env=False, timeout=PATIENCE) as http:
            answers = [http.post(url, json=INITIALIZE, headers={"Host": host}) for host in (HOST, "evil.example.com")]
    assert [answer.status_code for answer in answers] == [200, 421]
