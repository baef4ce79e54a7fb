"""Ctrl+C while a command waits."""

from __future__ import annotations

import asyncio
import signal

import pytest

from funcmcp.cli import interrupts


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
