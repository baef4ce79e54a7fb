"""A process with pipes, and the processes that it starts.

The program may be a wrapper, such as ``uvx`` or a shell, with the real one as its child. On POSIX the process therefore
starts a session and a process group of its own, and signals go to the group. A process of the group that remains may
hold stdout open, so the end of the process also ends the reading, after a short time for what is still in the pipe.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from asyncio.subprocess import SubprocessStreamProtocol
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Sequence

KILL_SECONDS = 2.0
"""Seconds between SIGTERM and SIGKILL."""

_POLL_SECONDS = 0.02
"""Seconds between two looks at a process group that has to end."""

_REMAINING_SECONDS = 0.5
"""Seconds for output that is still in the pipe when the process has ended."""

_MAX_LINE_BYTES = 65536


class GroupProcess(SubprocessStreamProtocol):
    """A process, which `start_process` starts.

    `asyncio.subprocess.Process.wait` is of no use here: on Python 3.11 it also waits until each pipe is closed.

    Attributes:
        ended: Is set when the process has ended, even if another one still holds its pipes.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, max_line_bytes: int) -> None:
        super().__init__(limit=max_line_bytes, loop=loop)
        self.ended = asyncio.Event()
        self._event_loop = loop
        self._has_group = True
        self._pipes: asyncio.SubprocessTransport

    @property
    def pid(self) -> int:
        """The process id."""
        return self._pipes.get_pid()

    @property
    def returncode(self) -> int | None:
        """The exit code, or the negative number of the signal that ended the process. None while it runs."""
        return self._pipes.get_returncode()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport, which also sends signals."""
        self._pipes = cast("asyncio.SubprocessTransport", transport)
        super().connection_made(transport)

    def process_exited(self) -> None:
        """Close the pipes a little later, which ends the reading."""
        super().process_exited()
        self._has_group = sys.platform != "win32" and self._send(0)
        self.ended.set()
        self._event_loop.call_later(_REMAINING_SECONDS, self.close)

    def close(self) -> None:
        """Close this side of the pipes."""
        self._pipes.close()

    @property
    def has_left_others(self) -> bool:
        """Whether processes of its group have remained after its end."""
        return self.ended.is_set() and self._has_group and self._send(0)

    async def ends_within(self, seconds: float) -> bool:
        """Return whether the process ends in a number of seconds."""
        try:
            await asyncio.wait_for(self.ended.wait(), seconds)
        except TimeoutError:
            return False
        return True

    async def terminate(self) -> None:
        """Terminate the process and its group, and kill what remains of them."""
        self._send(signal.SIGTERM)
        try:
            async with asyncio.timeout(KILL_SECONDS):
                await self.ended.wait()
                while sys.platform != "win32" and self._send(0):  # noqa: ASYNC110 - 0 only asks whether the group exists
                    await asyncio.sleep(_POLL_SECONDS)
        except TimeoutError:
            pass
        finally:
            self.kill()

    def kill(self) -> None:
        """Kill the process and its group."""
        if sys.platform == "win32":
            self._send(signal.SIGTERM)
        else:
            self._send(signal.SIGKILL)

    def _send(self, number: int) -> bool:
        """Send a signal to the group of the process; on Windows to the process. Return whether it may still exist."""
        if not self._has_group:  # its number may belong to others by now
            return False
        try:
            if sys.platform == "win32":
                self._pipes.send_signal(number)
            else:
                os.killpg(self._pipes.get_pid(), number)
        except ProcessLookupError:
            return False
        except PermissionError:  # macOS raises it for a process that has ended, until its parent has waited for it
            return True
        return True


async def start_process(
    arguments: Sequence[str], *, max_line_bytes: int = _MAX_LINE_BYTES, **options: Any
) -> GroupProcess:
    """Start a process, on POSIX as the first of a session of its own.

    Args:
        arguments: The program and its arguments.
        max_line_bytes: The longest line that a reader of its output may ask for.
        options: Those of `asyncio.loop.subprocess_exec`.

    Raises:
        OSError: The program can't be started.
    """
    loop = asyncio.get_running_loop()
    _transport, process = await loop.subprocess_exec(
        lambda: GroupProcess(loop, max_line_bytes),
        *arguments,
        start_new_session=True,  # Windows has none, and ignores it
        **options,
    )
    return process
