"""Clients sign in at a server of ``funcmcp run --sign-in-as``, with no provider behind it, and without a person."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
from mcp import Client as OfficialClient
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientMetadata
from pydantic import AnyUrl

from funcmcp.testing import allow_sign_in
from tests import nodejs
from tests.adapters.asgi.test_application_servers import wait_for
from tests.cli.processes import FUNCMCP
from tests.cli.processes import running as running_command
from tests.clients.test_sign_in import Memory
from tests.patience import PATIENCE
from tests.sign_in.browsing import BACK
from tests.sign_in.test_clients import browser_of
from tests.sign_in.test_node_clients import HERE, running
from tests.sockets import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.slow("Clients of others start for each case.")

TOOLS = """

@mcp.tool
def who(context: Context) -> dict[str, str]:
    return {"subject": context.principal.subject, "roles": " ".join(context.principal.roles)}


@mcp.tool(scopes=["orders.write"])
def order(dish: str) -> dict[str, str]:
    return {"ordered": dish}
"""
SERVERS = {
    "proxy": """
from funcmcp import Auth, Context, MCPServer
from funcmcp.auth import EntraID, OAuthProxy

entra = EntraID("11111111-2222-3333-4444-555555555555", "66666666-7777-8888-9999-000000000000", "secret")
scopes = {"orders.read": "See your orders", "orders.write": "Place orders"}


def allow(user):
    return "cook" in user.roles


proxy = OAuthProxy("https://orders.example.com/mcp", upstream=entra, scopes=scopes, allow=allow)
mcp = MCPServer("Orders", auth=Auth(proxy, scopes=["orders.read"]))
""",
    "bearer": """
from funcmcp import Auth, Context, MCPServer
from funcmcp.auth import ProtectedResource, entra

resource = ProtectedResource(resource="https://orders.example.com/mcp", authorization_servers=["https://login.example.com"])
tokens = entra("11111111-2222-3333-4444-555555555555", "66666666-7777-8888-9999-000000000000")
mcp = MCPServer("Orders", auth=Auth(tokens, resource=resource, scopes=["orders.read"]))
""",
}
_ADDRESS = re.compile(r"(http://127\.0\.0\.1:\d+/oauth/authorize\?\S+)")


@pytest.fixture(scope="module", params=["proxy", "bearer"])
def url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("orders")
    (folder / "server.py").write_text(SERVERS[request.param] + TOOLS)
    (folder / "ada.json").write_text(json.dumps({"sub": "ada", "name": "Ada", "roles": ["cook"]}))
    command = [*FUNCMCP, "run", "server.py", "--sign-in-as", "ada.json", "--port", str(free_port())]
    with running_command(command, folder=folder) as process:
        yield process.endpoint()


async def test_the_official_python_client_signs_in_and_steps_up(url: str) -> None:
    returned: dict[str, str] = {}

    async def go(address: str) -> None:
        returned.update(await allow_sign_in(address))

    async def back() -> AuthorizationCodeResult:
        return AuthorizationCodeResult(code=returned["code"], state=returned["state"], iss=returned["iss"])

    about = OAuthClientMetadata(client_name="python", redirect_uris=[AnyUrl(BACK)], token_endpoint_auth_method="none")
    provider = OAuthClientProvider(url, about, Memory(), go, back)
    async with (
        httpx2.AsyncClient(auth=provider, timeout=PATIENCE) as http,
        OfficialClient(streamable_http_client(url, http_client=http), read_timeout_seconds=20) as client,
    ):
        results = [await client.call_tool("who", {}), await client.call_tool("order", {"dish": "soup"})]
    assert [result.structured_content for result in results] == [
        {"subject": "ada", "roles": "cook"},
        {"ordered": "soup"},
    ]


@pytest.mark.parametrize("sdk", ["v1", "v2"])
def test_a_typescript_client_signs_in_calls_and_refreshes(url: str, sdk: str) -> None:
    script = HERE / "typescript_client.mjs"
    command = [str(nodejs.node()), str(script), str(nodejs.HOME), sdk, url, BACK, "ada"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert run.returncode == 0, run.stderr
    printed: dict[str, Any] = json.loads(run.stdout)
    assert [result["subject"] for result in printed["results"]] == ["ada", "ada"]


def test_the_command_signs_in(url: str, tmp_path: Path) -> None:
    run = subprocess.run(
        [*FUNCMCP, "call", url, "who", "--sign-in"],
        env=browser_of("ada", XDG_STATE_HOME=str(tmp_path)),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert json.loads(run.stdout)["subject"] == "ada", run.stderr


def test_mcp_remote_signs_in_and_connects(url: str, tmp_path: Path) -> None:
    client = nodejs.package("mcp-remote") / "dist" / "client.js"
    environment = {"MCP_REMOTE_CONFIG_DIR": str(tmp_path), "PATH": str(tmp_path), "HOME": str(tmp_path)}
    port = free_port()
    with running(str(client), url, str(port), "--host", "127.0.0.1", environment=environment) as lines:
        address = lines.find(_ADDRESS)[1]
        wait_for(port)  # the client may print the address before it listens
        asyncio.run(allow_sign_in(address))
        lines.find(re.compile(r"Connected successfully"))


def test_the_inspector_signs_in_and_calls(url: str, tmp_path: Path) -> None:
    launcher = nodejs.package("@modelcontextprotocol/inspector") / "clients/launcher/build/index.js"
    environment = {
        "HOME": str(tmp_path),
        "PATH": f"{nodejs.node().parent}:/usr/bin:/bin",
        "MCP_AUTO_OPEN_ENABLED": "true",
        "MCP_INSPECTOR_SECRET_STORE": "file",
    }
    arguments = ["--cli", "--server-url", url, "--transport", "http", "--method", "tools/call"]
    arguments += ["--tool-name", "who", "--format", "json"]
    arguments += ["--callback-url", f"http://127.0.0.1:{free_port()}/oauth/callback"]
    with running(str(launcher), *arguments, environment=environment) as lines:
        asyncio.run(allow_sign_in(lines.find(_ADDRESS)[1]))
        assert lines.find(re.compile(r'"subject": ?"ada"'))
