"""What the log says when the process has no descriptor left to accept a connection with.

How it works: with uvloop, libuv then closes each new connection at once and reports nothing. asyncio's own loop stops
accepting for a second, and calls its exception handler for each place of the backlog, with a traceback. It also plans
as many calls of `_start_serving`, which fail if the server stops meanwhile. Here the server tries to open a descriptor
once a second, the exception handler leaves out what asyncio repeats, and a loop of asyncio gets a smaller backlog,
which only bounds how many connections it accepts at once: the server sets that of the kernel afterwards.

Source: libuv, uv__emfile_trick; CPython, asyncio/selector_events.py, _accept_connection.
"""

from __future__ import annotations

import contextlib
import errno
import os
from typing import TYPE_CHECKING, Any

from funcmcp._adapters.http1.open_connections import descriptor_limit
from funcmcp._state.line_limit import LineLimit

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Iterator

_RUN_OUT = {errno.EMFILE, errno.ENFILE}
ACCEPTED_AT_ONCE = 16
"""Connections that a loop of asyncio accepts before it does something else."""

_RESTART = "_start_serving"
_ACCEPT_FAILED = "socket.accept() out of system resource"


class DescriptorWatch:
    """Logs that descriptors have run out, at most once in a minute."""

    def __init__(self) -> None:
        self._lines = LineLimit()

    def check(self) -> None:
        """Log it if the process can't open a descriptor."""
        try:
            os.close(os.open(os.devnull, os.O_RDONLY))
        except OSError as error:
            if error.errno in _RUN_OUT:
                self._log()

    @contextlib.contextmanager
    def handling(self, loop: asyncio.AbstractEventLoop) -> Iterator[None]:
        """Log it in place of what *loop* repeats; pass on its other exceptions."""
        previous = loop.get_exception_handler()

        def handle(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
            message = context.get("message", "")
            if message == _ACCEPT_FAILED:
                self._log()
            elif _RESTART in message:
                return  # the socket is closed, which a planned call does not know
            elif previous is None:
                loop.default_exception_handler(context)
            else:
                previous(loop, context)

        loop.set_exception_handler(handle)
        try:
            yield
        finally:
            if loop.get_exception_handler() is handle:
                loop.set_exception_handler(previous)

    def _log(self) -> None:
        self._lines.write(
            "Descriptors run out (the limit is %s): new connections are not served. Close the files and connections "
            "that tools open, or raise the limit, such as with ulimit -n or LimitNOFILE=.",
            descriptor_limit(),
        )
