"""The process of a worker: its program, its output and its end."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from typing import TYPE_CHECKING

import pytest

from funcmcp_host.workers.child_process import ChildProcess, Command, program_path, until_parent_ends
from funcmcp_host.workers.worker import LoadFailed
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.every_python("Processes, signals and sockets are those of Python and asyncio.")


def child(folder: Path, code: str) -> ChildProcess:
    return ChildProcess(Command((sys.executable, "-c", code), folder, dict(os.environ)))


async def test_a_process_gets_its_arguments_and_descriptors_and_its_output_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "funcmcp.app")
    reader, writer = os.pipe()
    process = child(tmp_path, "import os, sys; os.write(int(sys.argv[2]), sys.argv[1].encode()); print('\\x1b[31mred')")
    await process.start(["hello", str(writer)], pass_fds=[writer])
    os.close(writer)
    await process.wait()
    assert os.read(reader, 100) == b"hello"
    os.close(reader)
    assert process.exit_code == 0
    await process.aclose()
    assert [record.message for record in caplog.records] == ["\\x1b[31mred"]


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
async def test_a_process_that_ignores_sigterm_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("funcmcp._client.process_group.KILL_SECONDS", 0.3)
    code = "import os, signal, time; signal.signal(15, signal.SIG_IGN); os.write(1, b'.'); time.sleep(60)"
    process = child(tmp_path, code)
    await process.start([])
    await asyncio.sleep(0.2)
    async with asyncio.timeout(PATIENCE):
        await process.aclose()
    assert process.exit_code == -signal.SIGKILL


async def test_the_end_of_a_process_is_seen_while_a_process_that_it_started_holds_its_output(tmp_path: Path) -> None:
    process = child(tmp_path, "import os, subprocess; subprocess.Popen(['sleep', '3600']); os._exit(3)")
    await process.start([])
    try:
        async with asyncio.timeout(PATIENCE):
            await process.wait()
        assert process.exit_code == 3
        await process.aclose()
    finally:
        assert process.pid is not None
        os.killpg(process.pid, signal.SIGKILL)


async def test_a_program_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    process = ChildProcess(Command(("no-such-program",), tmp_path, {}))
    with pytest.raises(LoadFailed, match="no-such-program can't be started: No such file"):
        await process.start([])
    assert process.pid is None
    await process.aclose()


async def test_the_advice_about_a_program_names_what_is_wrong_with_it(tmp_path: Path) -> None:
    program = tmp_path / "handler"
    program.write_text("#!/bin/sh\n")
    for name, advice in (("gone", "Correct its path, or build or install it"), ("handler", "Make its file executable")):
        process = ChildProcess(Command((str(tmp_path / name),), tmp_path, {}))
        with pytest.raises(LoadFailed, match=rf"can't be started: .*\. {advice}\."):
            await process.start([])
        await process.aclose()


def test_a_program_is_found_from_the_folder_of_the_caller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to(sys.executable)
    monkeypatch.chdir(tmp_path)
    assert program_path("bin/python") == str(tmp_path / "bin" / "python")  # the worker's folder is the app's
    assert program_path("no-such-program") == "no-such-program"


def test_only_a_program_that_exists_is_tied_to_the_parent(tmp_path: Path) -> None:
    assert until_parent_ends(["no-such-program", "a"]) == ["no-such-program", "a"]
    assert until_parent_ends([sys.executable, "a"])[-2:] == [sys.executable, "a"]


@pytest.mark.parametrize("system", ["with waitid", "without waitid"])
async def test_a_process_that_has_ended_is_recognized_on_each_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, system: str
) -> None:
    if system == "without waitid":
        monkeypatch.delattr(os, "waitid", raising=False)
    process = child(tmp_path, "import time; time.sleep(600)")
    assert not process.has_ended
    await process.start([])
    assert not process.has_ended
    await process.aclose(wait_seconds=0)
    assert process.has_ended
