"""What holds for the whole suite: the same examples every time, and no traffic beyond this machine."""

from __future__ import annotations

import functools
import gc
import logging
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

from funcmcp._server.recent_failures import recent_failures
from tests.azurite import Azurite
from tests.clock import Clock

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

pytest.register_assert_rewrite("funcmcp.testing._state_stores", "funcmcp.testing._task_stores")

# No deadline: on a busy machine it would measure the neighbours. The same commit gets the same verdict.
settings.register_profile("suite", deadline=None, derandomize=True)
settings.load_profile("suite")

# Options for this run are not for the runs of pytest that tests start.
os.environ.pop("PYTEST_ADDOPTS", None)

TESTS = Path(__file__).parent
COVERED = [TESTS / name for name in ("protocol", "server")]
"""The folders with the tests of the packages that `[tool.coverage.run]` of pyproject.toml names."""

_LOOPBACK = ("127.", "::1", "localhost")


def _refuse_other_machines(event: str, args: tuple[Any, ...]) -> None:
    """Raise where a test connects to, or looks up, an address that is not this machine's own."""
    if event == "socket.connect" and isinstance(args[1], tuple):
        host = args[1][0]
    elif event == "socket.getaddrinfo":
        host = args[0]
    else:
        return
    name = host.decode("ascii") if isinstance(host, bytes) else host
    if name and not name.startswith(_LOOPBACK):
        raise RuntimeError(f"Tests talk to this machine only, not to {name}.")


sys.addaudithook(_refuse_other_machines)


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Collect tests without garbage collection, which would take a third of the time: nearly all objects stay.

    Each worker of a pass begins with another folder, so each module is compiled by one of them, and the others find it
    compiled. `pytest_collection_modifyitems` restores the order.
    """
    gc.disable()
    worker: dict[str, Any] = getattr(session.config, "workerinput", {})
    if worker and [Path(name).resolve() for name in session.config.args] == [TESTS]:
        parts = parts_of_suite(session.config)
        start = int(worker["workerid"].removeprefix("gw")) * len(parts) // worker["workercount"]
        session.config.args = [str(TESTS / name) for name in parts[start:] + parts[:start]]
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


def parts_of_suite(config: pytest.Config) -> list[str]:
    """Return the folders and modules of the suite in their order."""
    excluded = config.getini("norecursedirs")
    return sorted(
        path.name
        for path in TESTS.iterdir()
        if path.match("test_*.py") or (path.is_dir() and path.name[0] != "_" and not any(map(path.match, excluded)))
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Give the tests the same order in each worker."""
    if hasattr(config, "workerinput"):
        order = {name: number for number, name in enumerate(parts_of_suite(config))}
        items.sort(key=lambda item: order.get(item.path.relative_to(TESTS).parts[0], 0))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not import a module that lacks the one mark of a pass: it may need packages that the pass does not have."""
    mark: str = config.option.markexpr
    if not mark.isidentifier() or collection_path.suffix != ".py":
        return None
    if mark == "branches" and is_covered(collection_path):
        return None
    return f"pytest.mark.{mark}(" not in collection_path.read_text(encoding="utf-8") or None


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark the tests of the packages whose branches are measured."""
    if is_covered(item.path):
        item.add_marker(pytest.mark.branches("They are the tests of these packages."))


@functools.cache
def is_covered(module: Path) -> bool:
    """Return whether a module has tests of a package whose branches are measured."""
    return any(module.is_relative_to(folder) for folder in COVERED)


@pytest.fixture(scope="session", autouse=True)
def _default_signals() -> None:
    """Let the processes of tests have the default actions of signals, also where a parent such as nohup ignores some.

    A process inherits that a signal is ignored, and does not inherit a handler.
    """
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda *_: None)


@pytest.fixture(autouse=True)
def _own_last_resort(monkeypatch: pytest.MonkeyPatch) -> None:
    """Restore the format of records without a handler, which a server of the test sets in this process."""
    monkeypatch.setattr(logging.lastResort, "formatter", None)


@pytest.fixture(scope="module", autouse=True)
def _own_failures() -> Iterator[None]:
    """Keep the tracebacks of failures no longer than the module whose servers ask for it, in this process."""
    is_kept = recent_failures.is_kept
    yield
    recent_failures.is_kept = is_kept


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(scope="session")
def azurite() -> Iterator[Azurite]:
    """One Azurite for all tests of this process; each test uses names of its own there."""
    with Azurite() as server:
        yield server
