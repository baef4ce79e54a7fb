"""The projects that ``funcmcp new`` writes, in Microsoft's worker library."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from funcmcp_cli.new import create
from tests.azure.messages import TypedData
from tests.azure.serving import serve_app
from tests.azure.worker import needs_worker, worker
from tests.cli.test_new import CLIENT, INITIALIZE, SIGN_IN, add

pytestmark = pytest.mark.every_python("Python 3.13 has another azure-functions.")


@pytest.fixture(scope="module")
def projects(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    parent = Path(tmp_path_factory.mktemp("projects"))
    return {
        "http": create("order-desk-http", parent, "http"),
        "triggers": create("order-desk-triggers", parent, "triggers"),
        "sign-in": create("order-desk-sign-in", parent, "http", "entra"),
    }


@needs_worker
async def test_azure_serves_the_http_project_by_http_triggers(projects: dict[str, Path]) -> None:
    with serve_app(projects["http"]) as served:
        assert await add(served.url) == {"result": 3}


@needs_worker
def test_the_http_project_loads_in_azures_worker(projects: dict[str, Path]) -> None:
    with worker(projects["http"]) as loaded:
        endpoint = loaded.functions["mcp"].trigger
        assert (endpoint["type"], endpoint["route"], endpoint["authLevel"]) == ("httpTrigger", "mcp", "FUNCTION")
        done = loaded.invoke_http(
            "mcp",
            "POST",
            "http://localhost:7071/mcp",
            headers={"Host": "localhost:7071", "Content-Type": "application/json", "Accept": "application/json"},
            body=json.dumps(INITIALIZE).encode(),
        )
    assert done.value["status_code"] == 200, done
    assert json.loads(done.value["body"])["result"]["serverInfo"]["name"] == "Order Desk Http"


@needs_worker
def test_the_project_of_triggers_loads_in_azures_worker(projects: dict[str, Path]) -> None:
    with worker(projects["triggers"]) as loaded:
        triggers = {function.trigger["type"]: name for name, function in loaded.functions.items()}
        assert set(triggers) == {"mcpToolTrigger", "mcpResourceTrigger"}
        context = TypedData(string=json.dumps({"name": "add", "arguments": {"a": 1, "b": 2}}))
        done = loaded.invoke(triggers["mcpToolTrigger"], {"context": context})
    assert done.error is None
    assert json.loads(json.loads(done.value)["structuredContent"]) == {"result": 3}


@needs_worker
def test_a_project_with_a_sign_in_loads_in_azures_worker(
    projects: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {**SIGN_IN, "AZURE_CLIENT_ID": CLIENT, "WEBSITE_HOSTNAME": "orders.azurewebsites.net"}
    for name, value in {**settings, "WEBSITE_AUTH_ENCRYPTION_KEY": "ab" * 32}.items():
        monkeypatch.setenv(name, value)
    with worker(projects["sign-in"]) as loaded:
        levels = {function.trigger["route"]: function.trigger["authLevel"] for function in loaded.functions.values()}
        assert levels["mcp"] == levels["oauth/{*step}"] == "ANONYMOUS"
        assert set(levels.values()) == {"ANONYMOUS"}
        url = "https://orders.azurewebsites.net/.well-known/oauth-authorization-server"
        (name,) = [name for name, function in loaded.functions.items() if function.trigger["route"] in url]
        done = loaded.invoke_http(name, "GET", url, headers={"Host": "orders.azurewebsites.net"}, body=b"")
    assert done.value["status_code"] == 200, done
    assert json.loads(done.value["body"])["token_endpoint"] == "https://orders.azurewebsites.net/oauth/token"
