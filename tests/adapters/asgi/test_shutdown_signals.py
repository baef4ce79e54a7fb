"""Streams end when a signal ends their server, whatever server it is."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import pytest
import uvloop

from funcmcp._adapters.asgi.shutdown_signals import SIGNALS, ShutdownSignals
from tests import shutdown
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from types import FrameType

every_python = pytest.mark.every_python("Signals are those of Python and asyncio.")

HYPERCORN_WORKER = "hypercorn"
"""A server whose workers get no signal. It cancels the streams after its own time."""


@contextmanager
def handled_by(handler: Callable[[int, FrameType | None], object] | int) -> Iterator[None]:
    """Let a server's handler handle SIGTERM, and none of Python's the other signals."""
    before = {number: signal.getsignal(number) for number in SIGNALS}
    for number in SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, handler)
    try:
        yield
    finally:
        for number, previous in before.items():
            signal.signal(number, previous)


class Recorder:
    """Records the order of the calls of handlers."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def server(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal as a server does."""
        assert frame is not None
        self.calls.append(f"server {number}")

    def drains(self, name: str) -> ShutdownSignals:
        """Return signals that record when the streams of an application end."""
        return ShutdownSignals(lambda: self.calls.append(name))


@every_python
def test_streams_end_before_the_server_handles_the_signal() -> None:
    recorder = Recorder()
    with handled_by(recorder.server), recorder.drains("streams").watched():
        signal.raise_signal(signal.SIGTERM)
    assert recorder.calls == ["streams", f"server {signal.SIGTERM}"]


@every_python
def test_the_end_of_the_last_stream_restores_the_server_s_handler() -> None:
    recorder = Recorder()
    signals = recorder.drains("streams")
    server = recorder.server
    with handled_by(server):
        with signals.watched():
            with signals.watched():
                pass
            assert signal.getsignal(signal.SIGTERM) is not server
        assert signal.getsignal(signal.SIGTERM) is server
        with signals.watched():
            assert signal.getsignal(signal.SIGTERM) is not server
        assert signal.getsignal(signal.SIGTERM) is server


@pytest.mark.parametrize("handler", [signal.SIG_DFL, signal.SIG_IGN, signal.default_int_handler])
@every_python
def test_a_signal_that_no_server_handles_is_left_alone(
    handler: Callable[[int, FrameType | None], object] | int,
) -> None:
    with handled_by(handler), Recorder().drains("streams").watched():
        assert signal.getsignal(signal.SIGTERM) is handler


@pytest.mark.parametrize("first_to_end", [0, 1])
@every_python
def test_applications_of_one_process_form_a_chain_and_end_in_any_order(first_to_end: int) -> None:
    recorder = Recorder()
    server = recorder.server
    with handled_by(server):
        streams = [ExitStack(), ExitStack()]
        for number, stack in enumerate(streams):
            stack.enter_context(recorder.drains(f"streams {number}").watched())
        signal.raise_signal(signal.SIGTERM)
        assert recorder.calls == ["streams 1", "streams 0", f"server {signal.SIGTERM}"]
        streams.pop(first_to_end).close()
        recorder.calls.clear()
        signal.raise_signal(signal.SIGTERM)
        assert recorder.calls == [f"streams {1 - first_to_end}", f"server {signal.SIGTERM}"]
        streams.pop().close()
        assert signal.getsignal(signal.SIGTERM) is server


@every_python
def test_streams_that_always_overlap_do_not_lengthen_the_chain() -> None:
    recorder = Recorder()
    server = recorder.server
    applications = [recorder.drains("streams"), recorder.drains("streams")]
    with handled_by(server):
        streams = [application.watched() for application in applications]
        streams[0].__enter__()
        for number in range(sys.getrecursionlimit() * 2):
            opens, ends = streams[1 - number % 2], streams[number % 2]
            opens.__enter__()
            ends.__exit__()
        signal.raise_signal(signal.SIGTERM)
        assert recorder.calls == ["streams", f"server {signal.SIGTERM}"]
        opens.__exit__()
        assert signal.getsignal(signal.SIGTERM) is server


@every_python
def test_a_handler_that_another_owner_restores_is_replaced_by_that_of_the_next_stream() -> None:
    recorder = Recorder()
    server, signals = recorder.server, recorder.drains("streams")
    with handled_by(server):
        with signals.watched():
            ours = signal.signal(signal.SIGTERM, recorder.server)
        signal.signal(signal.SIGTERM, ours)
        signal.raise_signal(signal.SIGTERM)
        assert recorder.calls == [f"server {signal.SIGTERM}"]
        with signals.watched():
            pass
        assert signal.getsignal(signal.SIGTERM) is server


@every_python
def test_a_handler_that_replaced_ours_stays_and_reaches_the_server() -> None:
    recorder = Recorder()
    signals = recorder.drains("streams")
    with handled_by(recorder.server):
        with signals.watched():
            ours = signal.getsignal(signal.SIGTERM)
            assert callable(ours)

            def other(number: int, frame: FrameType | None) -> None:
                recorder.calls.append("other")
                ours(number, frame)

            signal.signal(signal.SIGTERM, other)
        assert signal.getsignal(signal.SIGTERM) is other
        signal.raise_signal(signal.SIGTERM)
        assert recorder.calls == ["other", f"server {signal.SIGTERM}"]
        recorder.calls.clear()
        with signals.watched():
            signal.raise_signal(signal.SIGTERM)
        assert recorder.calls == ["streams", "other", f"server {signal.SIGTERM}"]
        assert signal.getsignal(signal.SIGTERM) is other


@every_python
def test_a_failure_does_not_swallow_the_signal() -> None:
    def fail() -> None:
        raise ValueError("no end")

    recorder = Recorder()
    with handled_by(recorder.server), ShutdownSignals(fail).watched(), pytest.raises(ValueError, match="no end"):
        signal.raise_signal(signal.SIGTERM)
    assert recorder.calls == [f"server {signal.SIGTERM}"]


@every_python
def test_streams_of_another_thread_leave_the_handler_alone() -> None:
    recorder = Recorder()
    server = recorder.server
    seen: list[object] = []

    def stream() -> None:
        with recorder.drains("streams").watched():
            seen.append(signal.getsignal(signal.SIGTERM))

    with handled_by(server):
        thread = threading.Thread(target=stream)
        thread.start()
        thread.join()
    assert seen == [server]


@every_python
def test_a_stream_that_ends_in_another_thread_leaves_a_handler_that_reaches_the_server() -> None:
    recorder = Recorder()
    with handled_by(recorder.server):
        stack = ExitStack()
        stack.enter_context(recorder.drains("streams").watched())
        thread = threading.Thread(target=stack.close)
        thread.start()
        thread.join()
        signal.raise_signal(signal.SIGTERM)
    assert recorder.calls == [f"server {signal.SIGTERM}"]


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
@every_python
def test_a_handler_of_the_event_loop_is_still_called(new_loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    recorder = Recorder()

    async def serve() -> None:
        loop, handled = asyncio.get_running_loop(), asyncio.Event()
        loop.add_signal_handler(signal.SIGTERM, handled.set)
        before = signal.getsignal(signal.SIGTERM)
        with recorder.drains("streams").watched():
            os.kill(os.getpid(), signal.SIGTERM)
            async with asyncio.timeout(PATIENCE):
                await handled.wait()
        assert recorder.calls == ["streams"]
        assert signal.getsignal(signal.SIGTERM) is before
        handled.clear()
        os.kill(os.getpid(), signal.SIGTERM)
        async with asyncio.timeout(PATIENCE):
            await handled.wait()
        loop.remove_signal_handler(signal.SIGTERM)

    with handled_by(signal.SIG_DFL), asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(serve())
    assert recorder.calls == ["streams"]


@pytest.mark.slow("Each case starts another server.")
@pytest.mark.parametrize(
    ("server", "by"), [(server, by) for server in shutdown.SERVERS for by in shutdown.ends_of(server)]
)
@every_python
def test_a_listening_client_does_not_keep_a_server_from_ending(server: str, by: str, tmp_path: Path) -> None:
    ending = shutdown.end(server, "subscriptions/listen", by, tmp_path, seconds=PATIENCE)
    assert ending.seconds is not None
    assert ending.lifespan_ended
    assert b"notifications/resources/list_changed" in ending.received
    assert ending.complete or server == HYPERCORN_WORKER


@pytest.mark.slow("Each case starts another server.")
@pytest.mark.parametrize("kind", [kind for kind in shutdown.KINDS if kind != "subscriptions/listen"])
@pytest.mark.parametrize("server", ["uvicorn", shutdown.IN_FASTAPI, "granian", "funcmcp run"])
@every_python
def test_a_stream_of_each_kind_ends_with_its_last_event(server: str, kind: str, tmp_path: Path) -> None:
    ending = shutdown.end(server, kind, "SIGTERM", tmp_path, seconds=PATIENCE)
    assert ending.seconds is not None
    cuts_off = (server, kind) == ("granian", "WebSocket")  # granian does not wait for WebSockets
    assert ending.lifespan_ended or (cuts_off and ending.panicked)
    assert ending.complete or cuts_off
    if shutdown.KINDS[kind].hears_changes:
        assert b"notifications/resources/list_changed" in ending.received
