"""The fallbacks for Windows and macOS, in programs that see another system."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.architecture.simulated_systems import SYSTEMS, output_of, program

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow("Programs import all modules, once for each system.")

PACKAGES = """
import azure.functions, azure.storage.blob.aio, azure.storage.queue.aio, google.protobuf.message, grpc, h11
import joserfc.jwk, jsonschema_rs, keyring, libcst.metadata, opentelemetry.sdk.trace, prometheus_client, psycopg
import redis.asyncio.cluster, redis.asyncio.sentinel, starlette.applications, tomlkit, wsproto, yaml
"""
IMPORT_ALL = """
for file in sorted(pathlib.Path("src").rglob("*.py")):
    parts = file.relative_to("src").with_suffix("").parts
    is_separate = parts[:2] == ("funcmcp", "compat") or "workers/python_main" in file.as_posix()
    needs_httptools = file.name in ("http_connections.py", "httptools_parser.py")
    is_separate = is_separate or (sys.platform == "win32" and needs_httptools)
    if not is_separate and all(part.isidentifier() for part in parts) and parts[-1] != "__main__":
        importlib.import_module(".".join(parts).removesuffix(".__init__"))
print("imported")
"""

SERVER = """
from funcmcp import MCPServer

mcp = MCPServer("Shop", sessions="memory")

@mcp.tool
def add(a: int, b: int) -> int:
    return a + b
"""

OVER_HTTP = """
from funcmcp.client import Client
from funcmcp._processes.listeners import bind
from funcmcp._processes.server import origin_of

async def main():
    listener = bind("127.0.0.1", 0)
    listener.listen()
    config = uvicorn.Config(mcp, log_level="warning")
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve([listener]))
    async with Client(f"{origin_of('127.0.0.1', listener)}/mcp") as client:
        print((await client.call_tool("add", {"a": 1, "b": 2})).text)
    server.should_exit = True
    await serving

asyncio.run(main())
"""

OVER_STDIO = """
from funcmcp.client import Client, StdioCommand

async def main():
    async with Client(StdioCommand(sys.executable, os.environ["SERVER"])) as client:
        print((await client.call_tool("add", {"a": 1, "b": 2})).text)

asyncio.run(main())
"""


ENDED = """
from funcmcp._state.sessions.ended import VARIABLE, shared_with_workers

environment = {}
with shared_with_workers(environment):
    path = pathlib.Path(environment[VARIABLE])
    print(path.exists(), path.stat().st_size > 0)
print(path.exists())
"""

UNIX_SOCKET = """
from funcmcp._processes.listeners import AddressError, bound

try:
    with bound("", 0, os.environ["PLACE"]) as listeners:
        print(listeners.sockets[0].family.name)
except AddressError as error:
    print(error.strerror)
"""

WORKER = """
from funcmcp_host.workers.child_process import Command
from funcmcp_host.workers.process import ProcessWorker
from funcmcp_host.workers.worker import LoadFailed

async def main():
    try:
        await ProcessWorker(Command([sys.executable], pathlib.Path.cwd(), {})).start()
    except LoadFailed as error:
        print(error)

asyncio.run(main())
"""


PIPE = """
from funcmcp_cli.main import _take_all_characters

_take_all_characters()
print(sys.stdout.encoding, sys.stdout.errors)
"""


@pytest.mark.parametrize(("system", "encoding"), [("win32", "utf-8"), ("darwin", "iso8859-1")])
def test_the_command_writes_utf_8_into_pipes_on_windows(system: str, encoding: str) -> None:
    latin = 'sys.stdout.reconfigure(encoding="iso8859-1")\n'
    assert output_of(system, PIPE, first=latin, PYTHONIOENCODING="") == f"{encoding} backslashreplace\n"


@pytest.fixture(scope="module", params=SYSTEMS)
def outputs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, list[str]]:
    """Return a system, and what one process prints that runs the programs which need none of their own."""
    place = str(tmp_path_factory.mktemp("sockets") / "socket")
    programs = [SERVER + OVER_HTTP, ENDED, UNIX_SOCKET, IMPORT_ALL]
    output = output_of(request.param, 'print("--")\n'.join(programs), first=PACKAGES, PLACE=place)
    return request.param, output.split("--\n")


def test_all_modules_can_be_imported(outputs: tuple[str, list[str]]) -> None:
    assert outputs[1][3] == "imported\n"


def test_a_server_answers_over_http(outputs: tuple[str, list[str]]) -> None:
    assert outputs[1][0] == "3\n"


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_client_starts_and_ends_a_server_on_stdio(system: str, tmp_path: Path) -> None:
    file = tmp_path / "server.py"
    file.write_text(program(system, f"{SERVER}\nmcp.run('stdio')\n"), encoding="utf-8")
    assert output_of(system, OVER_STDIO, SERVER=str(file)) == "3\n"


def test_ended_sessions_are_in_a_temporary_file(outputs: tuple[str, list[str]]) -> None:
    assert outputs[1][1] == "True True\nFalse\n"


def test_a_server_on_a_unix_socket_is_refused_on_windows(outputs: tuple[str, list[str]]) -> None:
    system, (_, _, outcome, _) = outputs
    assert {"win32": "Windows has no Unix sockets for servers", "darwin": "AF_UNIX"}[system] in outcome


def test_a_worker_that_needs_an_inherited_socket_is_refused_on_windows() -> None:
    assert output_of("win32", WORKER) == "On Windows a worker can't inherit a socket. Run the functions host in WSL.\n"
