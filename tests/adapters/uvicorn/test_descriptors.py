"""What the log says when the process has no descriptor left."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp._adapters.uvicorn.descriptors import DescriptorWatch

if TYPE_CHECKING:
    from collections.abc import Iterator

ACCEPT_FAILED = {
    "message": "socket.accept() out of system resource",
    "exception": OSError(errno.EMFILE, "Too many open files"),
}


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    with contextlib.closing(asyncio.new_event_loop()) as loop:
        yield loop


@pytest.mark.parametrize(("number", "lines"), [(errno.EMFILE, 1), (errno.ENFILE, 1), (errno.EACCES, 0)])
def test_descriptors_that_run_out_are_logged_once_in_a_minute(
    number: int, lines: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    watch = DescriptorWatch()
    watch.check()
    assert caplog.messages == []

    def fail(_path: str, _flags: int) -> int:
        raise OSError(number, "no")

    monkeypatch.setattr(os, "open", fail)
    for _ in range(3):
        watch.check()
    assert len(caplog.messages) == lines
    assert all(message.startswith("Descriptors run out (the limit is ") for message in caplog.messages)


def test_what_asyncio_repeats_has_one_line(loop: asyncio.AbstractEventLoop, caplog: pytest.LogCaptureFixture) -> None:
    with DescriptorWatch().handling(loop):
        for _ in range(2048):
            loop.call_exception_handler(ACCEPT_FAILED)
            loop.call_exception_handler({"message": "Exception in callback BaseSelectorEventLoop._start_serving()"})
        loop.call_exception_handler({"message": "A task failed."})
    [line, other] = caplog.messages
    assert line.startswith("Descriptors run out")
    assert other.startswith("A task failed.")


def test_other_exceptions_go_to_the_handler_of_the_loop_which_is_set_again(loop: asyncio.AbstractEventLoop) -> None:
    contexts: list[dict[str, Any]] = []
    loop.set_exception_handler(lambda _, context: contexts.append(context))
    previous = loop.get_exception_handler()
    with DescriptorWatch().handling(loop):
        loop.call_exception_handler(ACCEPT_FAILED)
        loop.call_exception_handler({"message": "A task failed."})
    assert contexts == [{"message": "A task failed."}]
    assert loop.get_exception_handler() is previous
    with DescriptorWatch().handling(loop):
        loop.set_exception_handler(None)
    assert loop.get_exception_handler() is None
