"""The programs of docs/guides/frameworks.md serve their tools inside FastAPI, Litestar, Django, Flask and others."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import httpx2 as httpx
import pytest

from funcmcp.client import Client, HTTPEndpoint
from funcmcp_cli.new import create
from tests.cli.processes import PYTHON, environment, running
from tests.docs.pages import ROOT, block_of, run_python, with_frameworks
from tests.patience import PATIENCE
from tests.serving import serve

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

pytestmark = pytest.mark.slow("The frameworks of others are large, and each program starts one.")

PAGE = "guides/frameworks.md"
SERVED = [
    ("FastAPI", "app", "/mcp"),
    ("Several servers in one application", "app", "/shop/mcp"),
    ("Routes as tools, in the application that mounts the server", "app", "/mcp"),
    ("Starlette", "app", "/mcp"),
    ("Litestar", "app", "/mcp"),
    ("Quart", "app", "/mcp"),
    ("CORSMiddleware", "app", "/mcp"),
    ("Django", "application", "/mcp"),
]
WSGI = """
from werkzeug.serving import make_server
from server import app
server = make_server("127.0.0.1", 0, app, threaded=True)
print(server.port, flush=True)
server.serve_forever()
"""
ORM = """
import asyncio

import django
from django.conf import settings

settings.configure(
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "shop.sqlite3"}},
    INSTALLED_APPS=["django.contrib.contenttypes"],
)
django.setup()

from django.contrib.contenttypes.models import ContentType
from django.core.management import call_command
from funcmcp import MCPServer

call_command("migrate", verbosity=0)
mcp = MCPServer("Shop", show_errors=True)


@mcp.tool
def plain() -> int:
    return ContentType.objects.count()


@mcp.tool
async def with_await() -> int:
    return await ContentType.objects.acount()


@mcp.tool
async def wrong() -> int:
    return ContentType.objects.count()


async def main() -> None:
    for name in ("plain", "with_await", "wrong"):
        print((await mcp.call_tool(name)).text)


asyncio.run(main())
"""
BASE_MIDDLEWARE = """
import asyncio
from contextvars import ContextVar

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.routing import Mount

from funcmcp import Context, MCPServer

tenant = ContextVar("tenant", default="")
mcp = MCPServer("Shop", sessions="memory")
arrived = asyncio.Event()


@mcp.tool
async def wait(context: Context) -> str:
    await context.report_progress(1, total=2)
    await arrived.wait()
    return tenant.get()


@mcp.tool
async def go_on() -> None:
    arrived.set()


class Tenants(BaseHTTPMiddleware):
    async def dispatch(self, request, call_next):
        tenant.set("kitchen")
        return await call_next(request)


app = Starlette(routes=[Mount("/", mcp)], middleware=[Middleware(Tenants)], lifespan=mcp.lifespan)
"""
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}},
}
ACCEPT = {"Accept": "application/json, text/event-stream"}
CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "price", "arguments": {"item": "tea"}}}


async def price_of_tea(url: str) -> str:
    async with Client(url) as client:
        return (await client.call_tool("price", {"item": "tea"})).text


@contextmanager
def wsgi(folder: Path) -> Iterator[str]:
    """Serve the WSGI application of server.py, and return its origin."""
    process = subprocess.Popen(
        [PYTHON, "-c", WSGI],
        cwd=folder,
        env=environment(with_frameworks()),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    with process:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        process.terminate()


@pytest.mark.parametrize(("heading", "attribute", "path"), SERVED, ids=[heading for heading, _, _ in SERVED])
async def test_an_application_serves_the_tool(heading: str, attribute: str, path: str, tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(block_of(PAGE, heading))
    with serve(tmp_path / "server.py", attribute=attribute, env=with_frameworks()) as served:
        assert await price_of_tea(served.origin + path) == "3"


async def test_a_lifespan_of_ones_own_enters_that_of_the_server(tmp_path: Path) -> None:
    code = block_of(PAGE, "A lifespan of the application")
    (tmp_path / "server.py").write_text(code)
    with serve(tmp_path / "server.py", attribute="app") as served:
        assert await price_of_tea(f"{served.origin}/mcp") == "3"
        assert not any("lifespan" in line for line in served.output)


@pytest.mark.parametrize(("heading", "attribute", "path"), [SERVED[0], SERVED[7]], ids=["FastAPI", "Django"])
async def test_the_applications_other_paths_stay(heading: str, attribute: str, path: str, tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(block_of(PAGE, heading))
    with serve(tmp_path / "server.py", attribute=attribute, env=with_frameworks()) as served:
        async with httpx.AsyncClient() as client:
            assert (await client.get(f"{served.origin}/items")).json() == ["tea"]
            assert (
                await client.post(f"{served.origin}{path}/", json=CALL)
            ).status_code == 400  # no session: no redirect


async def test_the_middleware_for_cors_lets_a_page_read_the_session(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(block_of(PAGE, "CORSMiddleware"))
    page = {"Origin": "https://app.example.com"}
    with serve(tmp_path / "server.py", attribute="app") as served:
        async with httpx.AsyncClient() as client:
            preflight = await client.options(
                f"{served.origin}/mcp",
                headers={
                    **page,
                    "Access-Control-Request-Method": "POST",
                    "Access-Control-Request-Headers": "mcp-session-id",
                },
            )
            response = await client.post(f"{served.origin}/mcp", headers=page, json=CALL)
    assert preflight.status_code == 200
    assert preflight.headers["access-control-allow-headers"] == "mcp-session-id"
    assert response.headers["access-control-allow-origin"] == page["Origin"]
    assert "Mcp-Session-Id" in response.headers["access-control-expose-headers"]


async def test_flask_serves_the_tool_beside_its_own_paths(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(block_of(PAGE, "Flask and other WSGI applications"))
    with wsgi(tmp_path) as origin:
        assert await price_of_tea(f"{origin}/shop/mcp") == "3"
        async with httpx.AsyncClient() as client:
            assert (await client.get(f"{origin}/items")).json() == ["tea"]


REQUESTS = [
    ("GET", "/items/"),
    ("POST", "/items"),
    ("GET", "/unknown"),
    ("OPTIONS", "/items"),
    ("HEAD", "/items"),
    ("POST", "/mcp"),
]
COLUMNS = {"FastAPI": "app", "Starlette": "app", "Litestar": "app", "Quart": "app", "Django": "application"}
MOUNTED = 'FastAPI with `app.mount("/", mcp)`'
ROUTES = "app.router.routes.extend(Route(path, mcp) for path in mcp.paths)"


def responses(program: Path, attribute: str) -> list[tuple[int, dict[str, object], bytes]]:
    """Return the responses of an application to the requests of the table."""
    with (
        serve(program, attribute=attribute, env=with_frameworks()) as served,
        httpx.Client(base_url=served.origin, timeout=PATIENCE) as client,
    ):
        answers = []
        for method, path in REQUESTS:
            answer = client.request(method, path, json=INITIALIZE if method == "POST" else None, headers=ACCEPT)
            fields: dict[str, object] = {
                name: value.replace(served.origin, "") for name, value in answer.headers.items() if name != "date"
            }
            fields["allow"] = set(answer.headers.get("allow", "").split(", "))  # Quart has no order
            answers.append((answer.status_code, fields, answer.content))
    return answers


def table_of_page() -> dict[str, list[tuple[int, int]]]:
    """Return the columns of the table: for each request the status without the server, and with it."""
    text = (ROOT / "docs" / PAGE).read_text().partition("### What stays the same")[2].partition("\n### ")[0]
    head, _, *rows = [re.split(r" *\| *", line.strip("| \n")) for line in text.splitlines() if line.startswith("|")]
    assert [row[0] for row in rows] == [f"`{method} {path}`" for method, path in REQUESTS]
    columns = {}
    for number, name in enumerate(head[1:], 1):
        statuses = [re.findall(r"\b\d{3}\b", row[number])[:2] for row in rows]
        columns[name] = [(int(before), int(after)) for before, after in statuses]
    return columns


@pytest.mark.parametrize("framework", [*COLUMNS, MOUNTED])
def test_the_server_changes_no_response_of_the_application(framework: str, tmp_path: Path) -> None:
    """Without the server, the program of the page has no paths of it. The mount is the one that changes responses."""
    code = block_of(PAGE, framework if framework in COLUMNS else "FastAPI")
    (tmp_path / "without").mkdir()
    (tmp_path / "without" / "server.py").write_text(code.replace("mcp.paths", "[]"))
    if framework == MOUNTED:
        assert ROUTES in code
        code = code.replace(ROUTES, 'app.mount("/", mcp)')
    (tmp_path / "server.py").write_text(code)
    attribute = COLUMNS.get(framework, "app")
    before = responses(tmp_path / "without" / "server.py", attribute)
    after = responses(tmp_path / "server.py", attribute)
    assert [(one[0], other[0]) for one, other in zip(before, after, strict=True)] == table_of_page()[framework]
    if framework != MOUNTED:
        assert after[:-1] == before[:-1]


async def test_tools_and_routes_share_the_pool_of_the_application(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(block_of(PAGE, "The application's state in tools"))
    with serve(tmp_path / "server.py", attribute="app") as served:
        async with Client(HTTPEndpoint(f"{served.origin}/mcp", headers={"X-Tenant": "north"})) as client:
            result = await client.call_tool("set_price", {"item": "tea", "price": 3})
        async with httpx.AsyncClient() as http:
            assert (await http.get(f"{served.origin}/prices/tea")).json() == 3
    assert result.text == "north"


@contextmanager
def project_with_fastapi(folder: Path, variables: Mapping[str, str]) -> Iterator[str]:
    """Run the command of the container of a project, and return the origin of the application."""
    (text,) = re.findall(r"^CMD (\[.*\])$", (folder / "Dockerfile").read_text(), re.MULTILINE)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    address = {"FUNCMCP_HOST": "127.0.0.1", "PORT": str(port), "PYTHONUNBUFFERED": "1"}
    path = {"PATH": f"{Path(PYTHON).parent}:{environment()['PATH']}"}
    with running(json.loads(text), folder=folder, env={**variables, **address, **path}) as process:
        process.line_with("Uvicorn running on")
        yield f"http://127.0.0.1:{port}"


def test_a_new_project_with_fastapi_serves_both(tmp_path: Path) -> None:
    with project_with_fastapi(create("order-desk", tmp_path, "fastapi"), {}) as origin:
        assert httpx.get(f"{origin}/items").json() == []
        assert httpx.get(f"{origin}/items/").status_code == 307
        assert httpx.post(f"{origin}/mcp", json=INITIALIZE, headers=ACCEPT).status_code == 200
        assert httpx.get(f"{origin}/livez").status_code == 200


def test_a_new_project_with_fastapi_signs_its_users_in(tmp_path: Path) -> None:
    settings = {
        "MCP_URL": "https://orders.example.com/mcp",
        "ENTRA_TENANT_ID": "11111111-2222-3333-4444-555555555555",
        "ENTRA_CLIENT_ID": "66666666-7777-8888-9999-000000000000",
        "ENTRA_CLIENT_SECRET": "secret",
        "FUNCMCP_KEYS": "0" * 43,
    }
    host = {"Host": "orders.example.com"}
    with project_with_fastapi(create("order-desk", tmp_path, "fastapi", "entra"), settings) as origin:
        assert httpx.get(f"{origin}/items").json() == []
        assert httpx.post(f"{origin}/mcp", json=INITIALIZE, headers={**ACCEPT, **host}).status_code == 401
        metadata = httpx.get(f"{origin}/.well-known/oauth-protected-resource/mcp", headers=host).json()
        assert metadata["resource"] == settings["MCP_URL"]
        assert httpx.get(f"{origin}/.well-known/oauth-authorization-server", headers=host).status_code == 200
        assert httpx.post(f"{origin}/oauth/register", json={}, headers=host).status_code == 400


@pytest.mark.parametrize("heading", ["Celery and threads", "Notebooks", "A path below a prefix, and `include_router`"])
def test_a_program_runs_to_its_end(heading: str, tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(block_of(PAGE, heading))
    run = run_python("server.py", folder=tmp_path, variables=with_frameworks())
    assert run.returncode == 0, run.stderr


def test_the_orm_of_django_works_as_the_page_says(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(ORM)
    run = run_python("server.py", folder=tmp_path, variables=with_frameworks())
    assert run.stdout.splitlines() == [
        "1",
        "1",
        "You cannot call this from an async context - use a thread or sync_to_async.",
    ], run.stderr


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_progress_passes_base_http_middleware_while_the_call_runs(revision: str, tmp_path: Path) -> None:
    """The call ends only after the client has its progress."""
    (tmp_path / "server.py").write_text(BASE_MIDDLEWARE)
    with serve(tmp_path / "server.py", attribute="app") as served:
        progressed = asyncio.Event()
        async with Client(served.url, revision=revision, on_progress=lambda _: progressed.set()) as client:
            call = asyncio.create_task(client.call_tool("wait"))
            await asyncio.wait_for(progressed.wait(), PATIENCE)
            await client.call_tool("go_on")
            assert (await call).text == "kitchen"
