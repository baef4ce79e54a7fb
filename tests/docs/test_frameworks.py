"""The programs of docs/guides/frameworks.md serve their tools inside FastAPI, Django, Flask, AWS Lambda and others."""

from __future__ import annotations

import json
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING

import httpx2 as httpx
import pytest

from funcmcp.client import Client
from tests.cli.processes import PYTHON, environment
from tests.docs.pages import block_of, blocks_of, run_python, with_frameworks
from tests.patience import PATIENCE
from tests.serving import serve

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.slow("The frameworks of others are large, and each program starts one.")

PAGE = "guides/frameworks.md"
SERVED = [
    ("FastAPI", "app", "/mcp"),
    ("Several servers in one application", "app", "/shop/mcp"),
    ("Routes as tools, in the application that mounts the server", "app", "/mcp"),
    ("Starlette", "app", "/mcp"),
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
LAMBDA = """
import json, sys
from server import handler
for event in json.load(sys.stdin):
    print(json.dumps(handler(event, None)))
"""
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
    code = [block.code for block in blocks_of(PAGE) if block.heading == "FastAPI"][1]
    (tmp_path / "server.py").write_text(code)
    with serve(tmp_path / "server.py", attribute="app") as served:
        assert await price_of_tea(f"{served.origin}/mcp") == "3"
        assert not any("lifespan" in line for line in served.output)


@pytest.mark.parametrize(("heading", "attribute", "path"), [SERVED[0], SERVED[5]], ids=["FastAPI", "Django"])
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


def event(host: str) -> dict[str, object]:
    """Return a request as an API Gateway passes it on."""
    body = json.dumps(CALL)
    headers = {"host": host, "content-type": "application/json", "accept": "application/json, text/event-stream"}
    return {
        "version": "2.0",
        "rawPath": "/mcp",
        "rawQueryString": "",
        "headers": {**headers, "content-length": str(len(body))},
        "requestContext": {"http": {"method": "POST", "path": "/mcp", "sourceIp": "203.0.113.1"}, "stage": "$default"},
        "body": body,
        "isBase64Encoded": False,
    }


def test_lambda_serves_one_event_after_another(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(block_of(PAGE, "AWS Lambda"))
    name = "abc123.execute-api.eu-north-1.amazonaws.com"
    events = json.dumps([event(name), event(name), event("other.example.com")])
    run = subprocess.run(
        [PYTHON, "-c", LAMBDA],
        cwd=tmp_path,
        env=environment(with_frameworks()),
        input=events,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    responses = [json.loads(line) for line in run.stdout.splitlines()]
    assert [response["statusCode"] for response in responses] == [200, 200, 421], run.stderr
    assert json.loads(responses[1]["body"])["result"]["content"] == [{"type": "text", "text": "3"}]


@pytest.mark.parametrize("heading", ["Celery and threads", "Notebooks"])
def test_a_program_runs_to_its_end(heading: str, tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(block_of(PAGE, heading))
    run = run_python("server.py", folder=tmp_path, variables=with_frameworks())
    assert run.returncode == 0, run.stderr
