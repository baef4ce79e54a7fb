"""Ctrl+C while a command waits."""

from __future__ import annotations

import asyncio
import signal

import pytest

from funcmcp_cli import interrupts

pytestmark = pytest.mark.every_python("Processes, signals and sockets are those of Python and asyncio.")


def test_the_result_of_a_coroutine_is_returned_and_the_signal_handler_restored() -> None:
    async def work() -> int:
        return 5

    before = signal.getsignal(signal.SIGINT)
    assert interrupts.run(work(), lambda: None) == 5
    assert signal.getsignal(signal.SIGINT) is before


def test_ctrl_c_cancels_the_coroutine_which_can_clean_up() -> None:
    steps: list[str] = []

    async def work() -> None:
        try:
            signal.raise_signal(signal.SIGINT)
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            await asyncio.sleep(0.01)
            steps.append("cleaned up")
            raise

    with pytest.raises(KeyboardInterrupt):
        interrupts.run(work(), lambda: steps.append("shown"))
    assert steps == ["shown", "cleaned up"]


def test_the_second_ctrl_c_ends_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    codes: list[int] = []
    monkeypatch.setattr("os._exit", codes.append)

    async def work() -> None:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        await asyncio.sleep(60)

    with pytest.raises(KeyboardInterrupt):
        interrupts.run(work(), lambda: None)
    assert codes == [130]


def test_the_second_ctrl_c_ends_the_process_while_the_first_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    class Ended(BaseException):
        pass

    shown: list[int] = []

    def end(code: int) -> None:
        shown.append(code)
        raise Ended

    def show() -> None:
        if shown:
            raise RuntimeError("reentrant call")  # as a buffered file raises it
        shown.append(0)
        signal.raise_signal(signal.SIGINT)

    async def work() -> None:
        signal.raise_signal(signal.SIGINT)
        await asyncio.sleep(60)

    monkeypatch.setattr("os._exit", end)
    with pytest.raises(Ended):
        interrupts.run(work(), show)
    assert shown[:2] == [0, 130]  # the process would have ended here
