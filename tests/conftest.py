"""What holds for the whole suite: the same examples every time, and no traffic beyond this machine."""

from __future__ import annotations

import gc
import sys
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

from tests.azurite import Azurite
from tests.clock import Clock

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

pytest.register_assert_rewrite("funcmcp._task_store_tests")

# No deadline: on a busy machine it would measure the neighbours. The same commit gets the same verdict.
settings.register_profile("suite", deadline=None, derandomize=True)
settings.load_profile("suite")

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
def pytest_collection() -> Generator[None, object, object]:
    """Collect tests without garbage collection, which would take a third of the time: nearly all objects stay."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(scope="session")
def azurite() -> Iterator[Azurite]:
    """One Azurite for all tests of this process; each test uses names of its own there."""
    with Azurite() as server:
        yield server
