"""Requests that manage orchestrations, at the host's endpoint and at the port of the app's libraries."""

from __future__ import annotations

import asyncio
import json
import os
import re
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode, urlsplit

import httpx2
import pytest
import pytest_asyncio

from funcmcp_host.durable.app import DurableApp
from funcmcp_host.durable.management import PATH
from funcmcp_host.durable.store import Store
from funcmcp_host.invocation import Trigger
from funcmcp_host.served import FunctionsHost
from tests.functions_host.durable.orchestrations import HOST, PYTHON, Running, python_app, running
from tests.functions_host.host_requests import HostRequest
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from funcmcp._transports.http.messages import HttpResponse

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.every_python("Python 3.13 has another azure-functions."),
]

KEY = "d" * 16


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def app(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Running]:
    folder = python_app(tmp_path_factory.mktemp("durable"))
    async with running(folder) as app:
        yield app


async def ask(
    server: FunctionsHost, method: str, path: str, query: str = "", body: object = None, **headers: str
) -> Any:
    data = b"" if body is None else json.dumps(body).encode()
    fields = {name.replace("_", "-").lower(): value for name, value in headers.items()}
    response: HttpResponse = await server.exchange(HostRequest(method, PATH + path, query, data, **fields))
    assert isinstance(response.body, bytes)
    return response.status, json.loads(response.body), dict(response.headers)


async def test_clients_start_and_read_instances(app: Running) -> None:
    status, urls, headers = await ask(app.host, "POST", "/orchestrators/chain/http-1", body='["Oslo"]')
    assert (status, urls["id"]) == (202, "http-1")
    assert headers["location"] == urls["statusQueryGetUri"]
    assert urls["statusQueryGetUri"] == (
        "http://localhost:7071/runtime/webhooks/durabletask/instances/http-1?taskHub=Tests&connection=Storage"
    )
    await app.ended("http-1")
    status, content, headers = await ask(app.host, "GET", "/instances/http-1", "showHistory=true&showInput=false")
    assert status == 200
    assert {name: content[name] for name in ("name", "runtimeStatus", "input", "output", "customStatus")} == {
        "name": "chain",
        "runtimeStatus": "Completed",
        "input": None,
        "output": ["Hello Oslo!"],
        "customStatus": {"done": 1},
    }
    assert "location" not in headers
    assert not any({"Result", "Input"} & known.keys() for known in content["historyEvents"])
    query = "showHistory=true&showHistoryOutput=true"
    content = (await ask(app.host, "GET", "/instances/http-1", query))[1]
    assert re.fullmatch(r"[0-9-]{10}T[0-9:]{8}Z", content["createdTime"])
    events = content["historyEvents"]
    assert [known["EventType"] for known in events] == ["ExecutionStarted", "TaskCompleted", "ExecutionCompleted"]
    assert [known.get("FunctionName") for known in events] == ["chain", "greet", None]
    assert [known.get("Input") for known in events] == [json.dumps('["Oslo"]'), json.dumps('"Oslo"'), None]
    assert [known.get("Result") for known in events] == [None, "Hello Oslo!", ["Hello Oslo!"]]
    assert "ScheduledTime" in events[1]
    assert events[2]["OrchestrationStatus"] == "Completed"
    assert not any({"EventId", "IsPlayed", "TaskScheduledId", "Version"} & known.keys() for known in events)


async def test_a_failed_instance_has_status_500_if_the_client_asks_for_it(app: Running) -> None:
    await ask(app.host, "POST", "/orchestrators/failing/http-2")
    await app.ended("http-2")
    assert (await ask(app.host, "GET", "/instances/http-2"))[0] == 200
    query = "returnInternalServerErrorOnFailure=true"
    status, content, _ = await ask(app.host, "GET", "/instances/http-2", query)
    assert (status, content["runtimeStatus"]) == (500, "Failed")


async def test_times_of_a_query_are_compared_as_times(app: Running) -> None:
    await ask(app.host, "POST", "/orchestrators/chain/http-3", body="[]")
    instance = app.host._durable._hub.instance("http-3")
    assert instance is not None
    created = datetime.fromisoformat(instance.created)

    async def ids(**times: str) -> list[str]:
        query = urlencode({"instanceIdPrefix": "http-3", **times})
        return [found["instanceId"] for found in (await ask(app.host, "GET", "/instances", query))[1]]

    seconds = created.replace(microsecond=0)
    assert await ids(createdTimeFrom=seconds.strftime("%Y-%m-%dT%H:%M:%SZ")) == ["http-3"]
    later = (created + timedelta(hours=1)).astimezone(timezone(timedelta(hours=-8)))
    assert await ids(createdTimeFrom=later.isoformat()) == []
    assert await ids(createdTimeTo=later.isoformat()) == ["http-3"]
    assert await ids(createdTimeFrom="yesterday") == ["http-3"]


async def test_entities_are_deleted_over_http(app: Running) -> None:
    assert (await ask(app.host, "POST", "/entities/counter/http", "op=add", body="2"))[0] == 202
    hub = app.host._durable._hub
    await hub._entities["@counter@http"]
    assert (await ask(app.host, "GET", "/entities/counter/http"))[:2] == (200, 2)
    assert (await ask(app.host, "DELETE", "/entities/counter/http"))[0] == 202
    assert hub._entity_record("@counter@http")["queue"][0]["operation"] == "delete"


async def test_urls_of_a_check_status_response(app: Running) -> None:
    response = await app.host.exchange(HostRequest("POST", "/api/start/first_of"))
    assert isinstance(response.body, bytes)
    urls = json.loads(response.body)
    assert response.status == 202
    path = f"/instances/{urls['id']}"
    assert urls["sendEventPostUri"].startswith(f"http://localhost:7071{PATH}{path}/raiseEvent/{{eventName}}?")
    status, _, headers = await ask(app.host, "GET", path)
    assert (status, headers["retry-after"]) == (202, "5")
    assert (await ask(app.host, "POST", f"{path}/suspend", "reason=x"))[0] == 202
    assert (await ask(app.host, "GET", path))[1]["runtimeStatus"] == "Suspended"
    assert (await ask(app.host, "POST", f"{path}/resume"))[0] == 202
    assert (await ask(app.host, "POST", f"{path}/terminate", "reason=why%20not"))[0] == 202
    assert (await ask(app.host, "GET", path))[1]["output"] == "why not"
    for change in ("terminate", "suspend", "resume", "raiseEvent/E"):
        assert (await ask(app.host, "POST", f"{path}/{change}"))[0] == 410
    assert (await ask(app.host, "POST", f"{path}/rewind"))[0] == 501
    assert (await ask(app.host, "POST", f"{path}/restart"))[1]["id"] != urls["id"]
    prefix = f"instanceIdPrefix={urls['id']}"
    assert [found["instanceId"] for found in (await ask(app.host, "GET", "/instances", prefix))[1]] == [urls["id"]]
    assert (await ask(app.host, "GET", "/instances/", f"{prefix}&createdTimeFrom=2999-01-01"))[1] == []
    assert (await ask(app.host, "GET", "/instances", f"{prefix}&createdTimeTo=2000-01-01"))[1] == []
    filters = f"{prefix}&createdTimeFrom=2000-01-01"
    status, content, _ = await ask(app.host, "DELETE", "/instances", f"{prefix}&runtimeStatus=Terminated")
    assert (status, content) == (400, "Please provide value for 'createdTimeFrom' parameter.")
    content = (await ask(app.host, "DELETE", "/instances", f"{filters}&runtimeStatus=Terminated"))[1]
    assert content == {"instancesDeleted": 1}
    assert (await ask(app.host, "DELETE", "/instances", filters))[0] == 404


@pytest.mark.parametrize(
    ("method", "path", "status", "text"),
    [
        ("POST", "/orchestrators/nothing", 400, "The function 'nothing' doesn't exist, is disabled, or is not an"),
        ("POST", "/orchestrators/greet", 400, "is not an orchestrator function"),
        ("POST", "/orchestrators", 400, "must be orchestrators/NAME or orchestrators/NAME/ID"),
        ("POST", "/orchestrators/chain/a%23b", 400, "none of / "),
        ("POST", "/orchestrators/chain/@counter@a", 400, "no @ at its beginning"),
        ("GET", "/orchestrators/chain", 404, "GET orchestrators does not exist."),
        ("GET", "/instances/nothing", 404, "No instance with ID 'nothing' found"),
        ("POST", "/instances/nothing/terminate", 404, "No instance with ID 'nothing' found"),
        ("POST", "/instances/nothing/explode", 404, "Instances have no operation 'explode'"),
        ("POST", "/instances/nothing/restart", 400, "InstanceId does not match a valid orchestration instance"),
        ("POST", "/instances/nothing", 404, "Instances have no operation ''"),
        ("GET", "/entities/counter/nothing", 404, "null"),
        ("GET", "/entities/counter", 400, "The path must be entities/NAME/KEY"),
        ("POST", "/entities/nothing/a", 400, "is not an entity function"),
    ],
)
async def test_requests_that_are_wrong_get_a_reason(
    app: Running, method: str, path: str, status: int, text: str
) -> None:
    answered, content, _ = await ask(app.host, method, path)
    assert (answered, text in json.dumps(content)) == (status, True)


async def test_a_body_must_be_json_and_an_event_needs_a_name(app: Running) -> None:
    response = await app.host.exchange(HostRequest("POST", f"{PATH}/orchestrators/chain", body=b"{"))
    assert isinstance(response.body, bytes)
    assert (response.status, json.loads(response.body)["Message"]) == (400, "The body must be JSON.")
    status, urls, _ = await ask(app.host, "POST", "/orchestrators/first_of")
    assert status == 202
    assert (await ask(app.host, "POST", f"/instances/{urls['id']}/raiseEvent"))[0] == 400
    assert (await ask(app.host, "POST", f"/instances/{urls['id']}/raiseEvent/E", body=1))[0] == 202


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
async def test_the_endpoint_needs_a_key_and_no_page_of_another_site_reaches_it(app: Running, tmp_path: Path) -> None:
    assert (await ask(app.host, "GET", "/instances", sec_fetch_site="cross-site"))[0] == 403
    assert (await ask(app.host, "POST", "/orchestrators/chain", origin="https://evil.example"))[0] == 403
    assert (await ask(app.host, "GET", "/instances", host="evil.example"))[0] == 421
    keys = f"durabletask_extension={KEY},mcp_extension={'m' * 16}"
    host = FunctionsHost(python_app(tmp_path), {**os.environ, "FUNCMCP_HOST_KEYS": keys})
    await host.start()
    try:
        assert (await ask(host, "GET", "/instances"))[0] == 401
        assert (await ask(host, "GET", "/instances", f"code={'m' * 16}"))[0] == 401
        assert (await ask(host, "GET", "/instances", x_functions_key=KEY))[:2] == (200, [])
        urls = (await ask(host, "POST", "/orchestrators/first_of", f"code={KEY}"))[1]
        assert urls["terminatePostUri"].endswith(
            f"/terminate?reason={{text}}&taskHub=Tests&connection=Storage&code={KEY}"
        )
    finally:
        await host.aclose()


async def test_an_endpoint_that_no_key_opens_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    host = FunctionsHost(python_app(tmp_path), {**os.environ, "FUNCMCP_HOST_KEYS": f"mcp_extension={KEY}"})
    await host.start()
    assert (await ask(host, "GET", "/instances", f"code={KEY}"))[0] == 401
    await host.aclose()
    assert (
        "The endpoint of Durable Functions answers every request with 401. "
        "Set FUNCMCP_HOST_KEYS=durabletask_extension=KEY."
    ) in caplog.text


async def test_the_port_of_the_libraries_has_a_secret(app: Running) -> None:
    durable = app.host._durable
    binding = json.loads((await durable.read(Trigger({}, "context", "context"))).data)
    assert binding["taskHubName"] == "Tests"
    url = binding["rpcBaseUrl"]
    async with httpx2.AsyncClient(trust_env=False) as client:
        started = await client.post(f"{url}orchestrators/chain", json="[]")
        assert started.status_code == 202
        wrong = url.replace("/durabletask/", "x/durabletask/")
        assert (await client.get(f"{wrong}instances")).status_code == 404
        assert (await client.get(url.rpartition("/durabletask/")[0])).status_code == 404
    port = urlsplit(url).port
    for head in (b"POST / HTTP/1.1", b"POST /durabletask/orchestrators/chain HTTP/1.1"):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(head + b"\r\nHost: localhost\r\nContent-Length: 60000000\r\n\r\n{")
        async with asyncio.timeout(PATIENCE):
            assert (await reader.readline()).split()[1] == b"404"  # nothing waits for the body
        writer.close()


async def test_an_app_whose_file_is_in_use_says_so(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = python_app(tmp_path)
    store = Store(folder / ".funcmcp" / "storage" / "durable" / "Tests.sqlite")
    try:
        async with running(folder) as app:
            assert "Durable Functions are stopped until their file can be used. The file" in caplog.text
            status, content, _ = await ask(app.host, "POST", "/orchestrators/chain")
            assert status == 503
            assert "Stop the other process that serves this app" in content
    finally:
        store.close()


@pytest.mark.parametrize(
    ("hub", "runtime", "reason"),
    [
        ("%OTHER%", "python", "host.json: The app setting 'OTHER' is not set"),
        ("../up", "python", "must have letters and digits only"),
        ("Tests", "dotnet-isolated", "Durable Functions of this language reach the Functions host over gRPC"),
    ],
)
async def test_an_app_whose_durable_functions_can_not_run(hub: str, runtime: str, reason: str, tmp_path: Path) -> None:
    folder = python_app(tmp_path)
    (folder / "host.json").write_text(json.dumps(HOST).replace("%HUB%", hub))
    host = FunctionsHost(folder, dict(os.environ))
    app = DurableApp(
        host.worker, replace(host.folder, runtime=runtime), tmp_path, origin="http://localhost", key="", seconds=None
    )
    assert app.fault is not None
    assert reason in app.fault
    if runtime == "python":
        async with running(folder) as served:
            left_out = {entry.function: entry.reason for entry in served.host.left_out}
            assert left_out["chain"] == left_out["start"] == app.fault


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
async def test_two_functions_with_one_name_and_bindings_that_are_not_served(tmp_path: Path) -> None:
    code = (
        PYTHON
        + """
@app.activity_trigger(input_name="value", activity="DOUBLE")
def other(value):
    return value


@app.generic_input_binding(arg_name="row", type="sql")
@app.activity_trigger(input_name="value")
def reading(value, row):
    return value
"""
    )
    async with running(python_app(tmp_path, code)) as app:
        left_out = {entry.function: entry.reason for entry in app.host.left_out}
        assert left_out == {
            "other": "double has the same name, DOUBLE.",
            "reading": "Its input binding sql is not supported by funcmcp host.",
        }
        assert "durable functions" in app.host.summary
