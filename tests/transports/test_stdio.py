"""stdio as a client has it: a process of its own, started with ``funcmcp run --stdio`` or ``mcp.run("stdio")``."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import queue
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import pytest

from funcmcp._transports.stdio import LineSplitter
from tests.cli.processes import FUNCMCP, PYTHON, environment
from tests.patience import PATIENCE
from tests.schemas import validate
from tests.wire.peer import ERAS, HANDSHAKE, META, PER_REQUEST, initialize

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

pytestmark = pytest.mark.every_python("Tasks, timeouts and cancellation are those of asyncio.")
_SLOW = pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")

SERVER = '''
import asyncio
import ctypes
import os
import subprocess
import sys
import threading

from funcmcp import MCPServer, Context

print("printed while imported")
mcp = MCPServer("Streams")
here = None




def report(what):
    print(what, file=sys.stderr, flush=True)


@mcp.tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@mcp.tool
def noisy() -> str:
    """Print in every way there is."""
    print("printed")
    sys.__stdout__.write("written to the first stdout\\n")
    sys.__stdout__.flush()
    os.write(1, b"written to descriptor 1\\n")
    ctypes.CDLL(None).puts(b"put by the C library")
    ctypes.CDLL(None).fflush(None)
    subprocess.run([sys.executable, "-c", "print('printed by a child')"], check=True)
    return "quiet"


@mcp.tool
def read_stdin() -> str:
    """Read stdin in every way there is."""
    child = subprocess.run(["cat"], capture_output=True, check=True).stdout
    return repr((sys.stdin.read(), sys.__stdin__.read(), os.read(0, 100), child))


@mcp.tool(timeout=None)
async def wait(context: Context) -> str:
    """Wait until `release` is called, or for ever."""
    global here
    here = asyncio.Event()
    report("waiting")
    try:
        await here.wait()
    except asyncio.CancelledError:
        report("cancelled")
        raise
    return "released"


@mcp.tool
async def release() -> str:
    """Release `wait`."""
    here.set()
    return "done"


@mcp.tool
async def ask(context: Context) -> str:
    """Ask for a name."""
    form = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    answer = await context.elicit("Your name?", form, key="name")
    return f"{answer.action}"


@mcp.tool
async def soon() -> str:
    """Take a moment."""
    report("begun")
    await asyncio.sleep(0.5)
    return "finished"


@mcp.tool
async def block() -> None:
    """Never let the event loop go."""
    report("begun")
    threading.Event().wait()


@mcp.tool(timeout=None)
async def executor() -> None:
    """Never let asyncio's own thread go."""
    report("begun")
    await asyncio.to_thread(threading.Event().wait)


if __name__ == "__main__":
    mcp.run("stdio")
    report("after run")
'''


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("stdio") / "streams.py"
    path.write_text(SERVER.lstrip("\n"), encoding="utf-8")
    return Path(path)


class Spoken:
    """A server process, and the lines that come from it.

    Attributes:
        process: the process.
        answers: lines of stdout.
        said: lines of stderr.
    """

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        assert process.stdin is not None
        self.stdin = process.stdin
        self.answers: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self.said: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self.revision = HANDSHAKE
        self._threads = [
            threading.Thread(target=_follow, args=args, daemon=True)
            for args in ((process.stdout, self.answers), (process.stderr, self.said))
        ]
        for thread in self._threads:
            thread.start()

    def say(self, *messages: object) -> None:
        """Send messages: bytes as they are, anything else as a line of JSON."""
        lines = [one if isinstance(one, bytes) else json.dumps(one).encode() + b"\n" for one in messages]
        self.stdin.write(b"".join(lines))
        self.stdin.flush()

    def hear(self) -> Any:
        """Return the next message, which must be valid."""
        line = self.answers.get(timeout=PATIENCE)
        assert line is not None, f"the server ended:\n{self.log()}"
        message = json.loads(line)
        validate(message, self.revision)
        return message

    def wait_for(self, text: str) -> None:
        """Wait for a line on stderr."""
        while True:
            line = self.said.get(timeout=PATIENCE)
            assert line is not None, f"{text!r} never came"
            if text in line.decode():
                return

    def begin(self, revision: str = HANDSHAKE) -> None:
        """Shake hands, where the revision has that."""
        self.revision = revision
        if revision != PER_REQUEST:
            self.say(
                initialize(revision, {"elicitation": {}}), {"jsonrpc": "2.0", "method": "notifications/initialized"}
            )
            assert self.hear()["result"]["protocolVersion"] == revision

    def call(self, name: str, arguments: dict[str, Any] | None = None, id: object = 1) -> dict[str, Any]:
        """Return a call."""
        meta = {META + "protocolVersion": PER_REQUEST, META + "clientCapabilities": {}}
        params = {
            "name": name,
            "arguments": arguments or {},
            **({"_meta": meta} if self.revision == PER_REQUEST else {}),
        }
        return {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}

    def works(self) -> None:
        """Fail unless the next call is answered, and with nothing before its answer."""
        self.say(self.call("add", {"a": 20, "b": 22}, id="still alive"))
        answer = self.hear()
        assert (answer["id"], text(answer)) == ("still alive", "42")

    def ended(self) -> int:
        """Wait until the process has ended; return its exit code."""
        code = self.process.wait(PATIENCE)
        for thread in self._threads:
            thread.join(PATIENCE)
        return code

    def log(self) -> str:
        """Return what is left of stderr, once the process has ended."""
        lines = []
        while (line := self.said.get(timeout=PATIENCE)) is not None:
            lines.append(line.decode())
        return "".join(lines)

    def rest(self) -> list[bytes]:
        """Return what is left of stdout, once the process has ended."""
        lines = []
        while (line := self.answers.get(timeout=PATIENCE)) is not None:
            lines.append(line)
        return lines


def _follow(pipe: IO[bytes], lines: queue.SimpleQueue[bytes | None]) -> None:
    for line in pipe:
        lines.put(line)
    lines.put(None)


def text(answer: dict[str, Any]) -> str:
    found: str = answer["result"]["content"][0]["text"]
    return found


@contextlib.contextmanager
def started(command: Sequence[str]) -> Iterator[Spoken]:
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()
    ) as process:
        assert process.stdin is not None
        try:
            yield Spoken(process)
        finally:
            process.kill()
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()


def command(server: Path) -> list[str]:
    return [*FUNCMCP, "run", str(server), "--stdio"]


@pytest.fixture
def spoken(server: Path) -> Iterator[Spoken]:
    with started(command(server)) as process:
        yield process


@pytest.mark.parametrize("revision", ERAS)
def test_a_client_calls_and_the_end_of_stdin_ends_the_server(spoken: Spoken, revision: str) -> None:
    spoken.begin(revision)
    spoken.works()
    spoken.stdin.close()
    assert spoken.ended() == 0
    assert spoken.rest() == []


@_SLOW
def test_run_serves_stdio_and_comes_back(server: Path) -> None:
    with started([PYTHON, str(server)]) as spoken:
        spoken.begin()
        spoken.works()
        spoken.stdin.close()
        spoken.wait_for("after run")
        assert spoken.ended() == 0


def test_nothing_but_messages_is_on_stdout_whatever_is_printed(spoken: Spoken) -> None:
    spoken.begin()
    spoken.say(spoken.call("noisy"))
    assert text(spoken.hear()) == "quiet"
    spoken.works()
    spoken.stdin.close()
    assert (spoken.ended(), spoken.rest()) == (0, [])
    said = spoken.log()
    for printed in (
        "printed while imported",
        "printed\n",
        "written to the first stdout",
        "written to descriptor 1",
        "put by the C library",
        "printed by a child",
    ):
        assert printed in said


@_SLOW
def test_what_was_printed_before_run_but_not_flushed_is_no_message_either(server: Path) -> None:
    with started([PYTHON, str(server)]) as spoken:  # its stdout is a pipe, so the line waits in a buffer
        spoken.begin()
        spoken.stdin.close()
        assert (spoken.ended(), spoken.rest()) == (0, [])
        assert "printed while imported" in spoken.log()


@_SLOW
def test_a_tool_that_reads_stdin_finds_it_empty_and_takes_no_message_away(spoken: Spoken) -> None:
    spoken.begin()
    spoken.say(spoken.call("read_stdin", id=1), spoken.call("add", {"a": 1, "b": 2}, id=2))
    answers = {answer["id"]: text(answer) for answer in (spoken.hear(), spoken.hear())}
    assert answers == {1: "('', '', b'', b'')", 2: "3"}


@_SLOW
@pytest.mark.parametrize("revision", ERAS)
def test_a_slow_call_does_not_hold_up_others(spoken: Spoken, revision: str) -> None:
    spoken.begin(revision)
    spoken.say(spoken.call("wait", id="slow"))
    spoken.wait_for("waiting")
    spoken.works()
    spoken.say(spoken.call("release", id="other"))
    assert {spoken.hear()["id"], spoken.hear()["id"]} == {"slow", "other"}


@_SLOW
@pytest.mark.parametrize("revision", ERAS)
def test_a_call_can_be_cancelled(spoken: Spoken, revision: str) -> None:
    spoken.begin(revision)
    spoken.say(spoken.call("wait", id=5))
    spoken.wait_for("waiting")
    spoken.say({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 5}})
    spoken.wait_for("cancelled")
    spoken.works()


@_SLOW
def test_a_client_is_asked_on_the_same_streams(spoken: Spoken) -> None:
    spoken.begin()
    spoken.say(spoken.call("ask"))
    question = spoken.hear()
    assert question["method"] == "elicitation/create"
    spoken.say({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "decline"}})
    assert text(spoken.hear()) == "decline"


@_SLOW
def test_lines_that_are_no_messages_are_answered_and_the_next_one_is_served(spoken: Spoken) -> None:
    spoken.begin()
    spoken.say(b"garbage\n", b"\xff\xfe\x00\n", b"\n", b"  \r\n", b'{"jsonrpc":"2.0"}\n', b"[]\n")
    assert [spoken.hear()["error"]["code"] for _ in range(4)] == [-32700, -32700, -32600, -32600]
    spoken.say(json.dumps(spoken.call("add", {"a": 1, "b": 2})).encode() + b"\r\n")
    assert text(spoken.hear()) == "3"


@_SLOW
def test_a_line_that_is_too_long_is_refused_and_the_next_one_is_served(spoken: Spoken) -> None:
    spoken.begin()
    spoken.say(b'{"jsonrpc":"2.0","id":1,"method":"' + b"x" * 5_000_000 + b'"}\n')
    refusal = spoken.hear()
    assert (refusal["error"]["code"], "id" in refusal) == (-32600, False)
    assert "4194304 bytes" in refusal["error"]["message"]
    spoken.works()


@_SLOW
def test_the_last_line_needs_no_newline(server: Path) -> None:
    with started(command(server)) as spoken:
        spoken.revision = PER_REQUEST
        spoken.say(json.dumps(spoken.call("add", {"a": 1, "b": 2})).encode())
        spoken.stdin.close()
        assert text(spoken.hear()) == "3"
        assert spoken.ended() == 0


@_SLOW
def test_stdin_and_stdout_may_be_files(server: Path, tmp_path: Path) -> None:
    asked, answered = tmp_path / "asked", tmp_path / "answered"
    call = {"jsonrpc": "2.0", "method": "ping"}
    asked.write_text("".join(json.dumps({**call, "id": number}) + "\n" for number in range(200)))
    with asked.open("rb") as source, answered.open("wb") as sink:
        ended = subprocess.run(
            command(server), stdin=source, stdout=sink, stderr=subprocess.PIPE, timeout=PATIENCE, check=False
        )
    assert ended.returncode == 0
    answers = [json.loads(line)["id"] for line in answered.read_text().splitlines()]
    assert sorted(answers) == list(range(200))


@_SLOW
def test_at_a_terminal_it_says_what_it_waits_for(server: Path) -> None:
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        command(server), stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()
    ) as process:
        os.close(theirs)
        try:
            os.write(ours, b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
            assert process.stdout is not None
            assert json.loads(process.stdout.readline())["result"] == {}
            os.write(ours, b"\x04")  # Ctrl+D
            _, said = process.communicate(timeout=PATIENCE)
            assert process.returncode == 0
            assert b"Streams waits for JSON-RPC messages" in said
        finally:
            process.kill()
            os.close(ours)


def test_at_the_null_device_it_says_that_no_client_can_write() -> None:
    code = "from funcmcp import MCPServer; MCPServer('Streams').run()"
    ended = subprocess.run(
        [sys.executable, "-c", code],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env=environment(),
        timeout=PATIENCE,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (0, b"")
    assert b"Streams ends, because its stdin is empty" in ended.stderr


@_SLOW
def test_the_end_of_stdin_lets_a_call_in_flight_finish(spoken: Spoken) -> None:
    spoken.begin()
    spoken.say(spoken.call("soon"))
    spoken.wait_for("begun")
    spoken.stdin.close()
    assert text(spoken.hear()) == "finished"
    assert spoken.ended() == 0


@_SLOW
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_lets_a_call_in_flight_finish_and_ends_with_code_0(spoken: Spoken, number: signal.Signals) -> None:
    spoken.begin()
    spoken.say(spoken.call("soon"))
    spoken.wait_for("begun")
    spoken.process.send_signal(number)
    assert text(spoken.hear()) == "finished"
    assert spoken.ended() == 0
    assert "Traceback" not in spoken.log()


@_SLOW
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_after_the_end_has_begun_cancels_what_is_in_flight(spoken: Spoken, number: signal.Signals) -> None:
    spoken.begin()
    spoken.say(spoken.call("wait"), spoken.call("ask", id=2))
    spoken.wait_for("waiting")
    question = spoken.hear()
    spoken.stdin.close()
    answer = spoken.hear()  # nobody can answer the question now: the server knows that stdin has ended
    assert (answer["id"], answer["result"]["isError"], "method" in question) == (2, True, True)
    spoken.process.send_signal(number)
    spoken.wait_for("cancelled")
    assert spoken.ended() == 0
    assert "Traceback" not in spoken.log()


@_SLOW
def test_a_client_that_no_longer_reads_ends_it_quietly(server: Path) -> None:
    with subprocess.Popen(
        command(server), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            process.stdin.write(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
            process.stdin.flush()
            process.stdout.readline()
            process.stdout.close()
            process.stdin.write(b'{"jsonrpc":"2.0","id":2,"method":"ping"}\n')
            process.stdin.flush()
            assert process.wait(PATIENCE) == 0
            assert b"Traceback" not in process.stderr.read()
        finally:
            process.kill()


@_SLOW
def test_it_ends_in_time_whatever_hangs(server: Path) -> None:
    """All at once, because each takes its time."""
    with (
        started(command(server)) as blocked,
        started(command(server)) as executing,
        started(command(server)) as waiting,
    ):
        for spoken, tool in ((blocked, "block"), (executing, "executor"), (waiting, "wait")):
            spoken.begin()
            spoken.say(spoken.call(tool))
            spoken.wait_for("begun" if tool != "wait" else "waiting")
        blocked.process.send_signal(signal.SIGTERM)
        executing.stdin.close()
        waiting.stdin.close()
        assert [spoken.ended() for spoken in (blocked, executing, waiting)] == [0, 0, 0]
        waiting.wait_for("cancelled")


@_SLOW
@pytest.mark.parametrize("name", ["stdin", "stdout"])
def test_a_stream_that_is_not_open_is_one_clear_line(server: Path, name: str) -> None:
    closing = {"stdin": "<&-", "stdout": ">&-"}[name]
    line = f'exec "$@" {closing}'
    ended = subprocess.run(
        ["/bin/sh", "-c", line, "sh", *command(server)],
        stdin=subprocess.DEVNULL, capture_output=True, text=True,
        env=environment(), timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert ended.returncode == 1
    assert ended.stderr == f"{name} is not open. With --stdio the server needs stdin and stdout for its client.\n"


@_SLOW
def test_a_closed_stderr_does_not_get_into_the_messages(server: Path) -> None:
    with subprocess.Popen(
        ["/bin/sh", "-c", 'exec "$@" 2>&-', "sh", *command(server)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment(),
    ) as process:  # fmt: skip
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "noisy"}}
        asked = "".join(json.dumps(one) + "\n" for one in (initialize(HANDSHAKE), call))
        out, _ = process.communicate(asked.encode(), timeout=PATIENCE)
    answers = [json.loads(line) for line in out.splitlines()]
    assert (process.returncode, text(answers[1])) == (0, "quiet")


@_SLOW
@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--host", "127.0.0.1"], "leave out --host."),
        (["--port", "8000"], "--port"),
        (["--reload"], "--reload"),
        (["--workers", "1"], "--workers"),
        (["--host", "::1", "--port", "1"], "leave out --host and --port."),
    ],
)
def test_options_of_http_are_refused(server: Path, options: list[str], named: str) -> None:
    ended = subprocess.run(
        [*command(server), *options], stdin=subprocess.DEVNULL, capture_output=True, text=True, env=environment(),
        timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert (ended.returncode, ended.stdout) == (2, "")
    assert named in ended.stderr


@pytest.mark.parametrize("size", [1, 2, 3, 5, 100])
def test_lines_are_the_same_however_the_bytes_come(size: int) -> None:
    data, cut, lines = b"one\n\ntwelve\r\nfifty\nexact\nlast", LineSplitter(5), []
    for start in range(0, len(data), size):
        lines += cut.feed(data[start : start + size])
    assert [*lines, cut.flush()] == [b"one", b"", None, b"fifty", b"exact", b"last"]


def test_a_byte_order_mark_is_ignored_before_the_first_line_only() -> None:
    mark = b"\xef\xbb\xbf"
    splitter = LineSplitter(1000)
    assert splitter.feed(mark[:1]) == []
    assert splitter.feed(mark[1:] + b"one\n" + mark + b"two\n") == [b"one", mark + b"two"]


def test_a_line_that_is_too_long_takes_no_room() -> None:
    cut = LineSplitter(1000)
    for _ in range(100):
        assert cut.feed(b"x" * 999) == []
        assert len(cut._line) <= 1000
    assert cut.feed(b"\nnext\n") == [None, b"next"]
