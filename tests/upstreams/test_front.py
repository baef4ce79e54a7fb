"""A front of a function app on Azure: revisions, keys, credentials of callers, and an app that starts."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp import Auth, MCPServer, Principal
from funcmcp._authoring.calling.lifespans import CannotStartError
from funcmcp._client import start_retries
from funcmcp._serving.composition import runtime_of
from funcmcp._upstreams.front import endpoint_of, front_of
from funcmcp.auth import APIKeys, ProtectedResource
from funcmcp.azure import front
from funcmcp.client import Client
from funcmcp.testing import post
from tests.cli.forking import funcmcp, running
from tests.cli.processes import FUNCMCP
from tests.functions_host.apps import write_app
from tests.upstreams.azure_front_end import EXPIRED, KEY, OTHER_KEY, AzureFrontEnd, azure_app, json_web_token

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

pytest.importorskip("azure.functions")
pytestmark = [
    pytest.mark.every_python("Python 3.13 runs the functions in azure-functions-runtime."),
    pytest.mark.slow("Function apps and fronts start for each case."),
]

REVISIONS = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]
RESOURCE = ProtectedResource(
    resource="https://front.example.com/mcp",
    authorization_servers=["https://login.microsoftonline.com/tenant/v2.0"],
    scopes=["api://app/user_impersonation"],
)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AzureFrontEnd]:
    with azure_app(tmp_path_factory.mktemp("orders")) as app:
        yield app


@pytest.fixture
def app(served: AzureFrontEnd, monkeypatch: pytest.MonkeyPatch) -> AzureFrontEnd:
    served.statuses.clear()
    served.received.clear()
    served.messages.clear()
    monkeypatch.setattr(start_retries, "_FIRST_PAUSE", 0.01)
    return served


async def call(client: Client, city: str) -> str:
    result = await client.call_tool("forecast", {"city": city})
    return str(result.content[0]["text"])


@pytest.mark.parametrize("revision", REVISIONS)
async def test_clients_of_every_revision_use_an_app_of_older_revisions(app: AzureFrontEnd, revision: str) -> None:
    async with Client(front(app.origin, key=KEY), revision=revision) as client:
        assert client.revision == revision
        assert client.server_info["name"] == "Azure Functions MCP server"
        assert [tool.name for tool in await client.list_tools()] == ["forecast"]
        assert await call(client, f"Oslo {revision}") == f"sunny in Oslo {revision}, asked 1 times"
        contents = (await client.read_resource("menu://today")).contents
        assert [content["text"] for content in contents] == ["Soup"]
    assert "server/discover" in app.methods
    assert {request["x-functions-key"] for request in app.received} == {KEY}


async def test_the_key_is_in_no_log_no_url_and_no_text(app: AzureFrontEnd, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    mcp = front(f"{app.origin}/?code={KEY}&a=b")
    async with Client(mcp) as client:
        await call(client, "Rome")
    assert {request["query"] for request in app.received} == {"a=b"}
    assert {request["x-functions-key"] for request in app.received} == {KEY}
    assert KEY not in caplog.text
    assert KEY not in repr(mcp)


async def test_a_key_that_the_app_refuses_ends_the_start_with_a_sentence(app: AzureFrontEnd) -> None:
    with pytest.raises(
        CannotStartError, match=r"/runtime/webhooks/mcp does not accept the credentials of this server\.$"
    ):
        await runtime_of(front(app.origin, key=OTHER_KEY)).start()


@pytest.mark.parametrize("status", [429, 502, 503, 504])
async def test_a_start_and_lists_wait_for_an_app_that_starts(app: AzureFrontEnd, status: int) -> None:
    app.statuses = [status, status]
    async with Client(front(app.origin, key=KEY)) as client:
        app.statuses = [status]
        assert [tool.name for tool in await client.list_tools()] == ["forecast"]


async def test_a_call_that_was_not_begun_is_repeated_and_another_is_not(app: AzureFrontEnd) -> None:
    async with Client(front(app.origin, key=KEY)) as client:
        await client.list_tools()
        app.statuses = [503, 429, 503]
        assert await call(client, "Lima") == "sunny in Lima, asked 1 times"
        app.statuses = [502]
        result = await client.call_tool("forecast", {"city": "Lima"})
        assert result.is_error
        assert "may have run" in str(result.content)
        assert await call(client, "Lima") == "sunny in Lima, asked 2 times"


async def answer_of(mcp: MCPServer, headers: Mapping[str, str], method: str = "tools/list", **params: Any) -> Any:
    """Return the status and the body of the answer to a request of 2026-07-28."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
    fields = {
        "host": "127.0.0.1",
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": method,
        **headers,
    }
    response = await post(runtime_of(mcp).exchange, "/mcp", json.dumps(message).encode(), fields)
    return response.status, response


async def test_callers_without_credentials_are_refused_and_nothing_is_sent(app: AzureFrontEnd) -> None:
    status, response = await answer_of(front(app.origin, resource=RESOURCE), {})
    assert status == 401
    assert "resource_metadata=" in dict(response.headers)["www-authenticate"]
    assert app.received == []


@pytest.mark.parametrize(
    "credentials",
    [{"x-functions-key": KEY}, {"x-functions-key": KEY, "authorization": f"Bearer {json_web_token(9e9)}"}],
)
async def test_the_callers_own_credentials_are_passed_on(app: AzureFrontEnd, credentials: dict[str, str]) -> None:
    async with Client(
        front(app.origin), headers={**credentials, "x-other": "not passed on", "cookie": "a=b"}
    ) as client:
        assert [tool.name for tool in await client.list_tools()] == ["forecast"]
        await call(client, "Cairo")
    for request in app.received:
        assert {name: request.get(name) for name in credentials} == credentials
        assert not {"x-other", "cookie"} & request.keys()


async def test_credentials_that_the_app_refuses_are_refused_with_401_from_then_on(app: AzureFrontEnd) -> None:
    mcp = front(app.origin)
    headers = {"x-functions-key": OTHER_KEY}
    status, _ = await answer_of(mcp, headers)
    assert status != 401  # the app has not answered yet
    status, response = await answer_of(mcp, headers)
    assert status == 401
    assert 'error="invalid_token"' in dict(response.headers)["www-authenticate"]
    count = len(app.received)
    assert (await answer_of(mcp, headers))[0] == 401
    assert len(app.received) == count
    assert (await answer_of(mcp, {"x-functions-key": KEY}))[0] == 200
    await runtime_of(mcp).aclose()


async def test_a_token_that_has_expired_is_refused_before_it_is_sent(app: AzureFrontEnd) -> None:
    status, response = await answer_of(front(app.origin), {"authorization": f"Bearer {EXPIRED}"})
    assert status == 401
    assert "The token has expired." in dict(response.headers)["www-authenticate"]
    assert app.received == []


@pytest.mark.parametrize(
    "authorization",
    ["Bearer opaque", f"Basic {EXPIRED}", "Bearer eyJ.eyJ.x"],
    ids=["opaque", "expired but Basic", "no JSON"],  # each process has another EXPIRED
)
async def test_what_is_no_readable_token_is_judged_by_the_app(app: AzureFrontEnd, authorization: str) -> None:
    mcp = front(app.origin)
    await answer_of(mcp, {"authorization": authorization})
    await runtime_of(mcp).aclose()
    assert {request["authorization"] for request in app.received} == {authorization}


async def test_two_callers_do_not_share_a_session(app: AzureFrontEnd) -> None:
    mcp = front(app.origin)
    async with (
        Client(mcp, headers={"x-functions-key": KEY}) as first,
        Client(mcp, headers={"x-functions-key": KEY, "authorization": "Bearer second"}) as second,
    ):
        await call(first, "Bern")
        await call(second, "Bern")
    sent = {(request.get("authorization"), request.get("mcp-session-id")) for request in app.received}
    sessions: dict[str, set[str | None]] = {}
    for authorization, session in sent:
        if session is not None:
            sessions.setdefault(session, set()).add(authorization)
    assert sessions
    assert all(len(callers) == 1 for callers in sessions.values())


async def test_callers_have_keys_of_the_front(app: AzureFrontEnd) -> None:
    mcp = front(app.origin, key=KEY, auth=Auth(APIKeys({"ann": "a-key-of-16-or-more"})))
    assert (await answer_of(mcp, {}))[0] == 401
    async with Client(mcp, headers={"x-api-key": "a-key-of-16-or-more"}) as client:
        await call(client, "Riga")
    assert {request["x-functions-key"] for request in app.received} == {KEY}
    assert not any("x-api-key" in request for request in app.received)


async def test_the_identity_of_the_caller_is_beside_the_key(app: AzureFrontEnd) -> None:
    def identity(principal: Principal | None) -> dict[str, str]:
        return {"authorization": f"Bearer for-{'nobody' if principal is None else principal.subject}"}

    keys = APIKeys({"ann": "a-key-of-16-or-more"})
    async with Client(
        front(app.origin, key=KEY, auth=Auth(keys), identity=identity), headers={"x-api-key": "a-key-of-16-or-more"}
    ) as client:
        await call(client, "Rabat")
    assert {(request["authorization"], request["x-functions-key"]) for request in app.received} == {
        ("Bearer for-ann", KEY)
    }


@pytest.mark.parametrize("headers", [{}, {"x-functions-key": KEY}])
async def test_a_front_for_this_machine_leaves_it_to_the_app_who_may_call(
    app: AzureFrontEnd, headers: dict[str, str]
) -> None:
    mcp = front_of(app.origin, allow_anonymous=True)
    await answer_of(mcp, headers)
    await runtime_of(mcp).aclose()
    assert {request.get("x-functions-key") for request in app.received} == {headers.get("x-functions-key")}


@pytest.mark.parametrize(
    ("url", "endpoint", "key"),
    [
        ("https://a.azurewebsites.net", "https://a.azurewebsites.net/runtime/webhooks/mcp", None),
        ("https://a.azurewebsites.net/", "https://a.azurewebsites.net/runtime/webhooks/mcp", None),
        ("https://gw.example/orders/mcp", "https://gw.example/orders/mcp", None),
        ("https://a.example/x?code=k%3D&b=1", "https://a.example/x?b=1", "k="),
        ("https://a.example/x?code=", "https://a.example/x", None),
        ("http://localhost:7071", "http://localhost:7071/runtime/webhooks/mcp", None),
    ],
)
def test_the_endpoint_follows_from_the_url_of_the_app(url: str, endpoint: str, key: str | None) -> None:
    assert endpoint_of(url) == (endpoint, key)


@pytest.mark.parametrize(
    ("url", "options", "message"),
    [
        ("http://a.azurewebsites.net", {}, "must begin with https://"),
        ("a.azurewebsites.net", {}, "must be an absolute URL"),
        (f"http://a.example/?code={KEY}", {}, "must begin with https://"),
        (f"https://a.example/?code={KEY}", {"key": KEY}, "The key is in the URL as well: leave out .code=."),
        ("https://a.example", {"auth": Auth(APIKeys({"ann": KEY}))}, "Say with key= or identity= who calls the app."),
        ("https://a.example", {"key": KEY, "resource": RESOURCE}, "resource= is for callers whose own tokens"),
        ("https://a.example", {"key": "a\nb"}, "characters that a header can't contain"),
    ],
)
def test_options_that_do_not_go_together_are_refused(url: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message) as failure:
        front(url, **options)
    assert KEY not in str(failure.value)


def test_a_front_is_a_function_app_of_its_own(app: AzureFrontEnd, tmp_path: Path) -> None:
    arguments = f"{app.origin!r}, key={KEY!r}"
    code = f"from funcmcp.azure import front, http_app\n\napp = http_app(front({arguments}))\n"
    folder = write_app(tmp_path / "front", code, host={"version": "2.0", "extensions": {"http": {"routePrefix": ""}}})
    with running([*FUNCMCP, "host", str(folder), "--port", "0", "--no-reload"]) as process:
        url = process.line_with("/mcp (POST").partition("HTTP trigger: ")[2].partition(" ")[0]
        called = funcmcp("call", url, "forecast", "city=Graz")
        assert called.stdout == "sunny in Graz, asked 1 times\n", called.stderr
    assert {request["x-functions-key"] for request in app.received} == {KEY}


def test_a_front_is_a_server_in_a_file_for_a_container(app: AzureFrontEnd, tmp_path: Path) -> None:
    code = f"from funcmcp.azure import front\n\nmcp = front({app.origin!r})\n"
    (tmp_path / "server.py").write_text(code, encoding="utf-8")
    added = funcmcp("new", ".", "--hosting", "docker", folder=tmp_path)
    assert "Dockerfile" in added.stdout, added.stderr
    with running([*FUNCMCP, "run", "server.py", "--port", "0"], folder=tmp_path) as process:
        called = funcmcp("call", process.endpoint(), "forecast", "city=Linz", "--header", f"x-functions-key:{KEY}")
        assert called.stdout == "sunny in Linz, asked 1 times\n", called.stderr
