"""`MCPServer.run` and `run_async`: the transport that a script serves, in a process of its own."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import shlex
import signal
import socket
import subprocess
import threading
from typing import TYPE_CHECKING, Any

import pytest
from mcp import Client
from mcp.client.sse import sse_client

from funcmcp import MCPServer
from funcmcp._transports.http.listen_address import ONLY_THIS_MACHINE
from tests.cli.processes import PYTHON, environment, run_to_end, running
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.every_python("Tasks, timeouts and cancellation are those of asyncio.")
_SLOW = pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")

_SPELLING = pytest.mark.slow("A Python starts for another spelling of the same call.")

SERVER = '''
import asyncio

from funcmcp import HTTPOptions, MCPServer

mcp = MCPServer("Greeter")


@mcp.tool
def greet(name: str) -> str:
    """Greet somebody."""
    return f"Hello, {name}!"


if __name__ == "__main__":
'''


def script(folder: Path, line: str) -> Path:
    path = folder / "server.py"
    path.write_text(f"{SERVER}    {line}\n", encoding="utf-8")
    return path


async def greeting(target: Any, **options: Any) -> str:
    async with Client(target, read_timeout_seconds=PATIENCE, **options) as client:
        result = await client.call_tool("greet", {"name": "Ada"})
    text: str = result.content[0].text  # type: ignore[union-attr] # a text, or the test fails
    return text


def answer_to_ping(command: list[str], env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command with one message on its stdin, which then ends."""
    return subprocess.run(
        command,
        input='{"jsonrpc":"2.0","id":1,"method":"ping"}\n',
        env=environment(env),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


@pytest.mark.parametrize(
    "line",
    [
        "mcp.run()",
        pytest.param('mcp.run("stdio")', marks=_SPELLING),
        pytest.param("asyncio.run(mcp.run_async())", marks=_SPELLING),
        'asyncio.run(mcp.run_async("stdio"))',
    ],
)
def test_a_script_speaks_on_stdin_and_says_nothing_to_a_client_beside_messages(tmp_path: Path, line: str) -> None:
    ended = answer_to_ping([PYTHON, str(script(tmp_path, line))])
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, '{"jsonrpc":"2.0","id":1,"result":{}}\n', "")


@_SLOW
@pytest.mark.parametrize("line", ["mcp.run()", pytest.param("asyncio.run(mcp.run_async())", marks=_SPELLING)])
@pytest.mark.parametrize(("arguments", "module"), [(["-m", "shop.server"], "shop.server"), (["server.py"], "server")])
def test_a_server_whose_tools_import_it_again_says_where_they_are(
    tmp_path: Path, arguments: list[str], module: str, line: str
) -> None:
    folder = tmp_path / "shop" if "-m" in arguments else tmp_path
    folder.mkdir(exist_ok=True)
    package = module.removesuffix("server")
    start = f'if __name__ == "__main__":\n    {line}\n'
    create = f'import asyncio\nfrom funcmcp import MCPServer\nmcp = MCPServer("Shop")\nimport {package}tools\n'
    (folder / "server.py").write_text(create + start)
    (folder / "tools.py").write_text(f"from {module} import mcp\n@mcp.tool\ndef close() -> None: ...\n")
    ended = subprocess.run(
        [PYTHON, *arguments],
        cwd=tmp_path,
        env=environment(),
        input="",
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )
    expected = f"Shop has no tools, resources or prompts, but the server {module}.mcp has some. "
    assert ended.stderr.startswith(expected)
    assert ended.stderr.count("\n") == 1


def test_a_server_without_features_is_served_without_a_word_if_no_other_has_some(tmp_path: Path) -> None:
    path = tmp_path / "server.py"
    path.write_text('from funcmcp import MCPServer\nmcp, other = MCPServer("A"), MCPServer("B")\nmcp.run()\n')
    ended = answer_to_ping([PYTHON, str(path)])
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.parametrize(("closed", "name"), [("<&-", "stdin"), (">&-", "stdout")])
def test_a_closed_stream_is_one_line_on_stderr(closed: str, name: str, tmp_path: Path) -> None:
    command = f"{shlex.quote(PYTHON)} {shlex.quote(str(script(tmp_path, 'mcp.run()')))} {closed}"
    ended = subprocess.run(
        ["sh", "-c", command], env=environment(), stderr=subprocess.PIPE, text=True, timeout=PATIENCE, check=False
    )
    assert ended.returncode == 1
    assert ended.stderr == f"{name} is not open. On stdio the server needs stdin and stdout for its client.\n"


@pytest.mark.parametrize("line", ["mcp.run()", "asyncio.run(mcp.run_async())"])
def test_a_person_at_a_terminal_reads_one_line_that_says_how_to_serve_http(tmp_path: Path, line: str) -> None:
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [PYTHON, str(script(tmp_path, line))],
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    ) as process:
        os.close(theirs)
        try:
            assert process.stderr is not None
            first_line = process.stderr.readline()
            os.write(ours, b"\x04")  # Ctrl+D
            _, remaining = process.communicate(timeout=PATIENCE)
        finally:
            process.kill()
            os.close(ours)
    assert first_line.startswith(b"Greeter waits for JSON-RPC messages")
    assert first_line.endswith(b'To serve HTTP: mcp.run("http"), or the command funcmcp run FILE\n')
    assert (process.returncode, remaining) == (0, b"")


@pytest.mark.parametrize(
    "line",
    [
        'mcp.run("http", port=0)',
        pytest.param('mcp.run("streamable-http", host="127.0.0.1", port=0)', marks=_SPELLING),
        pytest.param("mcp.run(port=0)", marks=_SPELLING),
        'asyncio.run(mcp.run_async("http", port=0))',
    ],
)
def test_a_script_serves_http_until_sigterm(tmp_path: Path, line: str) -> None:
    with running([PYTHON, str(script(tmp_path, line))]) as process:
        url = process.endpoint()
        assert url.endswith("/mcp")
        assert asyncio.run(greeting(url)) == "Hello, Ada!"
        process.process.send_signal(signal.SIGTERM)
        assert process.ended() == 0
    assert process.output == f"Serving on {url}"


@_SLOW
@pytest.mark.parametrize("line", ['mcp.run("sse", port=0)', 'asyncio.run(mcp.run_async("sse", port=0))'])
def test_a_script_serves_http_sse(tmp_path: Path, line: str) -> None:
    with running([PYTHON, str(script(tmp_path, line))]) as process:
        url = process.endpoint()
        assert url.endswith("/sse")
        assert asyncio.run(greeting(sse_client(url), mode="legacy")) == "Hello, Ada!"


@_SLOW
def test_the_endpoint_of_http_sse_is_the_one_that_the_server_has(tmp_path: Path) -> None:
    path = script(tmp_path, 'mcp.run("sse", port=0)')
    path.write_text(path.read_text().replace('"Greeter"', '"Greeter", http=HTTPOptions(sse="/events")'))
    with running([PYTHON, str(path)]) as process:
        assert process.endpoint().endswith("/events")


@_SLOW
def test_the_functions_host_gets_http_on_its_port(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    env = {"FUNCTIONS_CUSTOMHANDLER_PORT": str(port)}
    with running([PYTHON, str(script(tmp_path, "mcp.run()"))], env=env) as process:
        assert process.endpoint() == f"http://127.0.0.1:{port}/mcp"


@_SLOW
def test_the_environment_decides_the_port_and_not_the_transport(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    env = {"FUNCMCP_HOST": "127.0.0.1", "PORT": str(port)}
    with running([PYTHON, str(script(tmp_path, 'mcp.run("http")'))], env=env) as process:
        line = process.line_with("Serving on")
    assert line == f"Serving on http://127.0.0.1:{port}/mcp (host from FUNCMCP_HOST and port from PORT)\n"
    assert "Only this machine reaches it." not in process.output
    ended = answer_to_ping([PYTHON, str(script(tmp_path, "mcp.run()"))], env)
    assert (ended.returncode, ended.stdout) == (0, '{"jsonrpc":"2.0","id":1,"result":{}}\n')


def test_an_invalid_port_in_the_environment_is_one_line_and_exit_code_2(tmp_path: Path) -> None:
    ended = run_to_end([PYTHON, str(script(tmp_path, 'mcp.run("http")'))], env={"FUNCMCP_PORT": "abc"})
    assert ended.returncode == 2
    assert ended.stderr == "FUNCMCP_PORT must be a port, a number from 0 to 65535; got 'abc'.\n"


def records(output: str) -> list[tuple[str, str]]:
    """Return the levels and messages of a JSON log that has no other line."""
    documents = [json.loads(line) for line in output.splitlines()]
    return [(document["level"], document["message"]) for document in documents]


@_SLOW
@pytest.mark.parametrize("line", ['mcp.run("http")', 'asyncio.run(mcp.run_async("http"))'])
def test_the_lines_at_the_start_are_records_of_a_json_log(tmp_path: Path, line: str) -> None:
    env = {"PORT": "0", "FUNCMCP_LOG_FORMAT": "json"}
    with running([PYTHON, str(script(tmp_path, line))], env=env) as process:
        process.line_with("Only this machine")
        process.process.send_signal(signal.SIGTERM)
        assert process.ended() == 0
    (level, start), *others = records(process.output)
    assert (level, start.startswith("Serving on http://127.0.0.1:")) == ("INFO", True)
    assert ("INFO", ONLY_THIS_MACHINE) in others


@_SLOW
def test_failures_at_the_start_are_records_of_a_json_log(tmp_path: Path) -> None:
    path = script(tmp_path, 'mcp.run("http")')
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        in_use = run_to_end([PYTHON, str(path)], env={"PORT": str(port), "FUNCMCP_LOG_FORMAT": "json"})
    invalid = run_to_end([PYTHON, str(path)], env={"PORT": "abc", "FUNCMCP_LOG_FORMAT": "json"})
    [(level, message)] = records(in_use.stderr)
    assert (in_use.returncode, level) == (1, "ERROR")
    assert message.startswith(f"Can't listen on 127.0.0.1:{port}: it is in use by another program. ")
    expected = ("ERROR", "PORT must be a port, a number from 0 to 65535; got 'abc'.")
    assert (invalid.returncode, records(invalid.stderr)) == (2, [expected])


def test_a_transport_that_is_named_counts_under_the_functions_host_too(tmp_path: Path) -> None:
    path = script(tmp_path, 'mcp.run("stdio")')
    ended = answer_to_ping([PYTHON, str(path)], {"FUNCTIONS_CUSTOMHANDLER_PORT": "1"})
    assert (ended.returncode, ended.stdout) == (0, '{"jsonrpc":"2.0","id":1,"result":{}}\n')


def test_an_unknown_transport_is_refused_with_the_valid_ones() -> None:
    with pytest.raises(ValueError, match=r"'stdio', 'http', 'streamable-http' or 'sse'; got 'websocket'\.$"):
        MCPServer("Greeter").run("websocket")  # type: ignore[arg-type]


@pytest.mark.parametrize("address", [{"host": "127.0.0.1"}, {"port": 8000}])
async def test_an_address_is_not_for_stdio(address: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="host and port are for HTTP"):
        MCPServer("Greeter").run("stdio", **address)
    with pytest.raises(ValueError, match="host and port are for HTTP"):
        await MCPServer("Greeter").run_async("stdio", **address)


def test_a_port_in_use_is_one_line_and_exit_code_1(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = answer_to_ping([PYTHON, str(script(tmp_path, f'mcp.run("http", port={port})'))])
    assert (ended.returncode, ended.stdout, ended.stderr) == (
        1,
        "",
        (
            f"Can't listen on 127.0.0.1:{port}: it is in use by another program. "
            "Choose another address with host= and port=.\n"
        ),
    )


def test_a_port_in_use_is_said_by_a_thread_as_well(capfd: pytest.CaptureFixture[str]) -> None:
    def serve(port: int) -> None:
        with pytest.raises(SystemExit, match=r"^1$"):
            MCPServer("x").run(port=port)

    with socket.create_server(("127.0.0.1", 0)) as taken:
        thread = threading.Thread(target=serve, args=[taken.getsockname()[1]])
        thread.start()
        thread.join(PATIENCE)
    assert "it is in use by another program" in capfd.readouterr().err


@pytest.mark.parametrize("address", [{"port": "8000"}, {"port": -1}, {"port": 65536}, {"port": True}, {"port": 80.0}])
def test_a_port_is_an_integer_in_range(address: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="port must be an integer from 0 to 65535; got "):
        MCPServer("x").run("http", **address)


def test_a_host_is_a_string() -> None:
    with pytest.raises(ValueError, match=r"host must be a string, such as '127\.0\.0\.1'; got 1\."):
        MCPServer("x").run("http", host=1)  # type: ignore[arg-type]


@pytest.mark.parametrize("transport", [None, "stdio", "http"])
async def test_in_a_running_event_loop_run_leads_to_run_async(transport: Any) -> None:
    with pytest.raises(RuntimeError, match=r"event loop is running\. Write: await mcp\.run_async"):
        MCPServer("x").run(transport)


@_SLOW
def test_run_serves_in_a_thread_that_is_not_the_main_one(tmp_path: Path) -> None:
    line = "thread = threading.Thread(target=mcp.run, args=['http'], kwargs={'port': 0}); thread.start(); thread.join()"
    path = script(tmp_path, line)
    path.write_text("import threading\n" + path.read_text())
    with running([PYTHON, str(path)]) as process:
        assert asyncio.run(greeting(process.endpoint())) == "Hello, Ada!"


def test_without_uvicorn_http_is_one_line_with_the_command_that_installs_it() -> None:
    code = "import sys; sys.modules['uvicorn'] = None\nfrom funcmcp import MCPServer\nMCPServer('Greeter').run('http')"
    ended = subprocess.run([PYTHON, "-c", code], capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr == 'uvicorn is not installed. To serve HTTP: pip install "funcmcp[server]"\n'


@_SLOW
def test_a_websocket_endpoint_without_its_library_is_one_line_with_the_command_that_installs_it() -> None:
    code = (
        "import sys; sys.modules['wsproto'] = sys.modules['websockets'] = None\n"
        "from funcmcp import HTTPOptions, MCPServer\n"
        "MCPServer('Greeter', http=HTTPOptions(websocket='/ws')).run('http', port=0)"
    )
    with running([PYTHON, "-c", code]) as process:
        process.endpoint()
        process.process.terminate()
        process.ended()
    expected = 'The WebSocket endpoint is not served. It needs: pip install "funcmcp[websocket]"'
    assert process.lines[0].endswith(expected)
    assert len(process.lines) == 2
