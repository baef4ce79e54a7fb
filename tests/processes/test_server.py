"""The uvicorn adapter around bare ASGI applications, in processes of their own where signals matter."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import os
import re
import signal
import socket
import textwrap
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp import HTTPOptions, MCPServer
from funcmcp._adapters.http1.open_connections import descriptor_limit
from funcmcp._processes import uvicorn_server
from funcmcp._processes.listeners import bind
from funcmcp._processes.server import AddressError, serve, serve_processes
from funcmcp._processes.uvicorn_server import Certificate, UvicornServer
from funcmcp._serving.composition import runtime_of
from tests.certificates import client_context, write_certificate
from tests.cli.processes import PYTHON, Running, running
from tests.patience import PATIENCE
from tests.sockets import listen

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from funcmcp._processes.uvicorn_server import Application

pytestmark = [
    pytest.mark.every_python("Tasks, timeouts and cancellation are those of asyncio."),
    pytest.mark.lowest("uvicorn, httptools, h11 and uvloop read and write HTTP."),
]
_SLOW = pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")

APPS = """
import asyncio
import json
import os
import sys
import threading
import time
from functools import partial
from pathlib import Path

from funcmcp._processes.server import WorkerError, serve, serve_processes


def say(text):
    print(text, flush=True)


async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        while True:
            message = await receive()
            if message["type"] == "lifespan.shutdown":
                say("closed")
            await send({"type": message["type"] + ".complete"})
            if message["type"] == "lifespan.shutdown":
                return
    facts = {"pid": os.getpid(), "scheme": scope["scheme"], "client": scope["client"][0]}
    if scope["path"] == "/slow":
        say("begun")
        await asyncio.sleep(1.5)
    elif scope["path"] == "/never":
        say("begun")
        await asyncio.Event().wait()
    elif scope["path"] == "/half":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"half", "more_body": True})
        say("begun")
        await asyncio.Event().wait()
    elif scope["path"] == "/block":
        say("begun")
        threading.Event().wait()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": json.dumps(facts).encode()})


def make(file=None):
    if file is not None and "broken" in Path(file).read_text():
        sys.exit("the file is broken")
    return app


def make_slow(folder):
    async def slow(scope, receive, send):
        if scope["type"] == "lifespan":
            say("starting")
            while not Path(folder, "go").exists():
                await asyncio.sleep(0.01)
        await app(scope, receive, send)

    return slow


def broken():
    sys.exit("no application today")


if __name__ == "__main__":
    options = {"port": 0, "on_ready": say}
    match sys.argv[1:]:
        case ["serve"]:
            serve(app, **options)
        case ["serve", "--announce"]:
            serve(app, port=0)
        case ["workers", count]:
            serve_processes(make, workers=int(count), **options)
        case ["starting", count, folder]:
            # The lifespan waits until the test has seen that connections are refused.
            port = int(Path(folder, "port").read_text())
            factory = partial(make_slow, folder)
            if count == "1":
                serve(factory(), **{**options, "port": port})
            else:
                serve_processes(factory, workers=int(count), **{**options, "port": port})
        case ["broken"]:
            try:
                serve_processes(broken, workers=2, **options)
            except WorkerError as error:
                sys.exit(str(error))
        case ["crowded", folder]:
            import resource
            from funcmcp._processes import uvicorn_server

            resource.setrlimit(resource.RLIMIT_NOFILE, (96, 96))
            uvicorn_server._HANDSHAKE_SECONDS = 3600.0
            certificate = uvicorn_server.Certificate(f"{folder}/cert.pem", f"{folder}/key.pem")
            serve(app, certificate=certificate, **options)
        case ["watch", folder]:
            factory = partial(make, str(Path(folder) / "watched.py"))
            serve_processes(factory, watch=Path(folder), **options)
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "apps.py"
    path.write_text(textwrap.dedent(APPS))
    return path


@contextlib.contextmanager
def started(script: Path, *arguments: str) -> Iterator[tuple[Running, int]]:
    """Run the script; yield the process and its port."""
    with running([PYTHON, str(script), *arguments]) as process:
        yield process, int(process.endpoint().rpartition(":")[2])


class Answer(threading.Thread):
    """A GET in flight."""

    def __init__(self, port: int, path: str) -> None:
        super().__init__(daemon=True)
        self._address = (port, path)
        self.outcome: tuple[int, bytes] | Exception = TimeoutError()
        self.start()

    def run(self) -> None:
        port, path = self._address
        try:
            self.outcome = get(port, path)
        except (OSError, http.client.HTTPException) as error:
            self.outcome = error

    def result(self) -> tuple[int, bytes] | Exception:
        self.join(PATIENCE)
        return self.outcome


def get(port: int, path: str = "/", headers: dict[str, str] | None = None) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    with contextlib.closing(connection):
        connection.request("GET", path, headers=headers or {})
        response = connection.getresponse()
        return response.status, response.read()


def pid_of(port: int) -> int:
    found = re.search(rb'"pid": (\d+)', get(port)[1])
    assert found is not None
    return int(found[1])


def unused(app: str) -> Application:
    raise AssertionError(app)


@pytest.mark.parametrize("proxies", [0, 1])
def test_connections_have_shares_by_address_unless_proxies_are_declared(proxies: int) -> None:
    mcp = MCPServer("Shop", http=HTTPOptions(proxies=proxies))
    server = UvicornServer(mcp, lambda: None)
    connections = server.config.http.open_connections  # type: ignore[union-attr]
    assert connections._has_shares is not bool(proxies)
    assert connections._headers is runtime_of(mcp).server.load.headers
    assert connections._descriptors == descriptor_limit()


async def test_a_handshake_of_tls_has_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uvicorn_server, "_HANDSHAKE_SECONDS", 0.1)
    write_certificate(tmp_path)
    ready = asyncio.Event()
    certificate = Certificate(str(tmp_path / "cert.pem"), str(tmp_path / "key.pem"))
    server = UvicornServer(MCPServer("Shop"), ready.set, certificate)
    with contextlib.closing(listen("127.0.0.1", 0)) as listener:
        serving = asyncio.create_task(server.serve([listener]))
        async with asyncio.timeout(PATIENCE):
            await ready.wait()
            reader, writer = await asyncio.open_connection(*listener.getsockname())
            with contextlib.suppress(ConnectionResetError):
                assert await reader.read() == b""
        writer.close()
        server.stop()
        await serving


@_SLOW
@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
@pytest.mark.parametrize("path", ["/livez", None], ids=["after a response", "before a request"])
def test_an_idle_connection_of_tls_ends_with_the_server_and_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, loop: str, path: str | None
) -> None:
    """Its client does not read, and so does not answer the end of TLS."""
    monkeypatch.setenv("FUNCMCP_DRAIN_SECONDS", "3600")
    monkeypatch.setattr("asyncio.constants.SSL_SHUTDOWN_TIMEOUT", 3600.0)
    loops: Any = pytest.importorskip("uvloop") if loop == "uvloop" else asyncio
    write_certificate(tmp_path)

    async def serve_and_stop() -> http.client.HTTPSConnection:
        ready = asyncio.Event()
        certificate = Certificate(str(tmp_path / "cert.pem"), str(tmp_path / "key.pem"))
        server = UvicornServer(MCPServer("Shop"), ready.set, certificate)
        with contextlib.closing(listen("127.0.0.1", 0)) as listener:
            serving = asyncio.create_task(server.serve([listener]))
            async with asyncio.timeout(PATIENCE):
                await ready.wait()
                connection = await asyncio.to_thread(idle_over_tls, listener.getsockname()[1], path)
                server.stop()
                await serving
        return connection

    with asyncio.Runner(loop_factory=loops.new_event_loop) as runner:
        connection = runner.run(serve_and_stop())
    with contextlib.closing(connection):
        assert connection.sock.recv(1) == b""
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


def idle_over_tls(port: int, path: str | None) -> http.client.HTTPSConnection:
    """Return a connection that has got the response to a request, or has sent none."""
    connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=PATIENCE, context=client_context())
    connection.connect()
    if path is not None:
        connection.request("GET", path)
        assert connection.getresponse().read()
    return connection


@_SLOW
def test_handshakes_of_one_address_that_do_not_end_lock_no_other_address_out(script: Path, tmp_path: Path) -> None:
    """They would take up all descriptors."""
    write_certificate(tmp_path)
    with contextlib.ExitStack() as stack:
        process = stack.enter_context(running([PYTHON, str(script), "crowded", str(tmp_path)]))
        port = int(process.line_with("https://").rpartition(":")[2])
        for _ in range(150):
            stack.enter_context(socket.create_connection(("127.0.0.1", port), source_address=("127.0.0.2", 0)))
        end = time.monotonic() + PATIENCE
        while (status := status_over_tls(port)) is None and time.monotonic() < end:
            pass
    assert status == 200


def status_over_tls(port: int) -> int | None:
    """Return the status of a request; None if the connection is reset, as while too many come at once."""
    connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=PATIENCE, context=client_context())
    with contextlib.closing(connection):
        try:
            connection.request("GET", "/")
            return connection.getresponse().status
        except OSError:
            return None


def test_a_port_in_use_is_one_clear_error() -> None:
    with contextlib.closing(listen("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(AddressError) as refused:
            serve(unused, port=port)
        with pytest.raises(AddressError):
            serve_processes(lambda: unused, port=port)
    assert refused.value.strerror == f"Can't listen on 127.0.0.1:{port}: it is in use by another program"


@_SLOW
def test_the_origin_is_announced_once_connections_are_accepted(script: Path) -> None:
    with started(script, "serve") as (_, port):
        assert get(port)[0] == 200


@_SLOW
@pytest.mark.parametrize("workers", ["1", "2"])
def test_connections_are_refused_until_the_lifespan_has_started(script: Path, tmp_path: Path, workers: str) -> None:
    with contextlib.closing(bind("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    (tmp_path / "port").write_text(str(port))
    with running([PYTHON, str(script), "starting", workers, str(tmp_path)]) as process:
        process.line_with("starting")
        with pytest.raises(ConnectionRefusedError):
            get(port)
        (tmp_path / "go").touch()
        process.endpoint()
        assert get(port)[0] == 200


@_SLOW
@pytest.mark.parametrize("workers", ["1", "2"])
def test_an_address_that_another_program_takes_during_the_start_is_one_clear_error(
    script: Path, tmp_path: Path, workers: str
) -> None:
    with contextlib.closing(bind("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        (tmp_path / "port").write_text(str(port))
        with running([PYTHON, str(script), "starting", workers, str(tmp_path)]) as process:
            process.line_with("starting")
            other.listen()
            (tmp_path / "go").touch()
            assert process.ended() == 1
    assert f"Can't listen on 127.0.0.1:{port}: it is in use by another program" in process.output
    assert "closed" in process.lines  # the lifespan has ended as well


@_SLOW
def test_where_nobody_else_announces_the_origin_a_line_does(script: Path) -> None:
    with running([PYTHON, str(script), "serve", "--announce"]) as process:
        assert re.fullmatch(r"Serving on http://127\.0\.0\.1:\d+\n", process.line_with("Serving"))


def test_answers_name_neither_server_nor_version(script: Path) -> None:
    with started(script, "serve") as (_, port):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        with contextlib.closing(connection):
            connection.request("GET", "/")
            assert connection.getresponse().getheader("server") is None


def test_forwarded_headers_of_anybody_are_not_believed(script: Path) -> None:
    with started(script, "serve") as (_, port):
        body = get(port, headers={"X-Forwarded-For": "192.0.2.1", "X-Forwarded-Proto": "https"})[1]
    assert b'"scheme": "http", "client": "127.0.0.1"' in body


@_SLOW
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_lets_requests_finish_closes_the_application_and_ends_with_code_0(
    script: Path, number: signal.Signals
) -> None:
    with started(script, "serve") as (process, port):
        answer = Answer(port, "/slow")
        process.line_with("begun")
        process.process.send_signal(number)
        outcome = answer.result()
        assert process.ended() == 0
    assert isinstance(outcome, tuple)
    assert outcome[0] == 200
    assert process.lines[-1] == "closed"
    assert "Traceback" not in process.output


@_SLOW
def test_a_server_with_nothing_to_do_ends_at_once_even_if_a_client_stays_connected(script: Path) -> None:
    with started(script, "serve") as (process, port), socket.create_connection(("127.0.0.1", port)):
        assert get(port)[0] == 200
        process.process.terminate()
        assert process.ended() == 0
    assert "Cancel" not in process.output


@_SLOW
def test_what_hangs_is_cut_off_in_time(script: Path) -> None:
    """Three servers at once, because each of them takes its nine seconds."""
    with contextlib.ExitStack() as stack:
        servers = {path: stack.enter_context(started(script, "serve")) for path in ("/never", "/half", "/block")}
        answers = {path: Answer(port, path) for path, (_, port) in servers.items()}
        for process, _ in servers.values():
            process.line_with("begun")
            process.process.terminate()
        codes = {path: process.ended() for path, (process, _) in servers.items()}
        outcomes = {path: answer.result() for path, answer in answers.items()}
    assert codes == {"/never": 0, "/half": 0, "/block": 0}
    assert isinstance(outcomes["/never"], tuple)
    status, body = outcomes["/never"]
    assert (status, json.loads(body)["error"]["message"]) == (503, "The server ended before the request was answered.")
    assert outcomes["/half"] == (200, b"half")
    assert isinstance(outcomes["/block"], http.client.RemoteDisconnected)
    for process, _ in servers.values():
        assert "Traceback" not in process.output
    assert servers["/block"][0].lines[-1] == "Some calls did not end in time. The process exits without them."


# Worker processes


@_SLOW
def test_workers_finish_requests_and_end_with_code_0(script: Path) -> None:
    with started(script, "workers", "2") as (process, port):
        answers = [Answer(port, "/slow") for _ in range(4)]
        for _ in answers:
            process.line_with("begun")
        process.process.terminate()
        outcomes = [answer.result() for answer in answers]
        assert process.ended() == 0
    assert [outcome[0] for outcome in outcomes if isinstance(outcome, tuple)] == [200] * 4
    assert "Traceback" not in process.output


@_SLOW
def test_a_worker_that_is_killed_is_replaced(script: Path) -> None:
    with started(script, "workers", "1") as (process, port):
        killed = pid_of(port)
        os.kill(killed, signal.SIGKILL)
        process.line_with(f"Worker process {killed} died. A new one replaces it.")
        assert pid_of(port) != killed
        process.process.terminate()
        assert process.ended() == 0


@_SLOW
def test_workers_end_with_their_parent_even_if_it_is_killed(script: Path) -> None:
    with started(script, "workers", "2") as (process, port):
        assert get(port)[0] == 200
        process.process.kill()
        assert process.ended() == -signal.SIGKILL  # the pipe of its output closes when the last worker has ended
        assert process.lines.count("closed") == 2


@_SLOW
def test_workers_that_can_not_start_end_the_whole(script: Path) -> None:
    with running([PYTHON, str(script), "broken"]) as process:
        assert process.ended() == 1
    assert set(process.lines) == {"no application today", "A worker process exited before it could serve."}


@_SLOW
def test_a_change_of_a_file_replaces_the_workers_and_a_broken_one_waits_for_its_repair(
    script: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "watched"
    folder.mkdir()
    watched = folder / "watched.py"
    watched.write_text("one")
    with started(script, "watch", str(folder)) as (process, port):
        first = pid_of(port)
        watched.write_text("two")
        process.endpoint()
        second = pid_of(port)
        watched.write_text("broken")
        process.line_with("the file is broken")
        watched.write_text("three")
        process.endpoint()
        assert len({first, second, pid_of(port)}) == 3
        process.process.terminate()
        assert process.ended() == 0
