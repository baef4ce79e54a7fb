"""A function app as it is on Azure: Microsoft's MCP extension, which has no revision after 2025-06-18, and a front end.

The functions run in `funcmcp host`, with the worker library of Microsoft. What the extension lacks is removed here.

Source: Azure Functions MCP extension 1.6.0, `McpSessionHandler` (the version that it answers) and
`SupportedProtocolVersions`; https://github.com/Azure/azure-functions-mcp-extension/issues/290.
"""

from __future__ import annotations

import base64
import json
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import httpx2
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from funcmcp._processes.server import origin_of
from tests.cli.forking import running
from tests.cli.processes import FUNCMCP
from tests.clients.signing_in import serving_in_thread
from tests.functions_host.apps import write_app
from tests.sockets import listen

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from starlette.types import Receive, Scope, Send

HOST = "127.0.0.1"
KEY = "a-system-key-of-the-app"
OTHER_KEY = "a-key-that-was-replaced"
NEWEST = "2025-06-18"
APP = '''
import azure.functions as func

app = func.FunctionApp()
COUNTS = {}


@app.mcp_tool()
@app.mcp_tool_property(arg_name="city", description="Which city")
def forecast(city: str) -> str:
    """The forecast for tomorrow."""
    COUNTS[city] = COUNTS.get(city, 0) + 1
    return f"sunny in {city}, asked {COUNTS[city]} times"


@app.mcp_resource_trigger(
    arg_name="context", uri="menu://today", resource_name="menu", description="The menu", mime_type="text/plain"
)
def menu(context) -> str:
    return "Soup"
'''


class AzureFrontEnd:
    """Passes requests on to the app, and answers as Azure's front end while the app starts.

    Attributes:
        origin: The origin of the app.
        statuses: The statuses of the next answers, with which the app does not see the request.
        received: The header fields of each request.
        messages: The JSON-RPC messages that the app has received.
    """

    def __init__(self, origin: str, app_origin: str) -> None:
        self.origin = origin
        self._app_origin = app_origin
        self.statuses: list[int] = []
        self.received: list[dict[str, str]] = []
        self.messages: list[dict[str, Any]] = []

    @property
    def methods(self) -> list[str]:
        """The methods of the messages that the app has received."""
        return [str(message.get("method")) for message in self.messages]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await (await self._answer(Request(scope, receive)))(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        body = await request.body()
        self.received.append({"path": request.url.path, "query": request.url.query, **dict(request.headers)})
        if self.statuses:
            return Response("The service is unavailable.", self.statuses.pop(0), media_type="text/plain")
        message = json.loads(body) if body else {}
        self.messages.append(message)
        if message.get("method") == "server/discover":
            error = {"code": -32601, "message": "Method 'server/discover' is not available."}
            return JSONResponse({"jsonrpc": "2.0", "id": message["id"], "error": error})
        if message.get("method") == "initialize" and message["params"]["protocolVersion"] > NEWEST:
            message["params"]["protocolVersion"] = NEWEST
            body = json.dumps(message).encode()
        headers = {name: value for name, value in request.headers.items() if name not in {"host", "content-length"}}
        url = f"{self._app_origin}{request.url.path}"
        async with httpx2.AsyncClient(timeout=30) as client:
            answer = await client.request(request.method, url, content=body, headers=headers)
        kept = {"content-type", "mcp-session-id", "www-authenticate"}
        fields = {name: value for name, value in answer.headers.items() if name in kept}
        return Response(answer.content, answer.status_code, fields)


@contextmanager
def azure_app(folder: Path) -> Iterator[AzureFrontEnd]:
    """Serve a function app that needs its system key."""
    command = [*FUNCMCP, "host", str(write_app(folder, APP)), "--port", "0", "--no-reload"]
    keys = {"FUNCMCP_HOST_KEYS": f"mcp_extension={KEY}"}
    with running(command, env=keys) as process:
        app_origin = process.endpoint().removesuffix("/runtime/webhooks/mcp")
        listener = listen(HOST, 0)
        front_end = AzureFrontEnd(origin_of(HOST, listener), app_origin)
        with serving_in_thread(front_end, listener):
            yield front_end


def json_web_token(expires: float) -> str:
    """Return an unsigned text of the shape of a token, which expires at a time."""
    parts = [json.dumps(part).encode() for part in ({"alg": "RS256"}, {"exp": expires})]
    return ".".join([*(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts), "c2lnbmF0dXJl"])


EXPIRED = json_web_token(time.time() - 60)
