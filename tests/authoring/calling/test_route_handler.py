"""Handlers of custom routes."""

from __future__ import annotations

import threading

import pytest

from funcmcp._authoring.calling.route_handler import route_handler
from funcmcp._authoring.calling.services import Services

pytestmark = pytest.mark.every_python("Python's modules read signatures, annotations and docstrings.")


async def test_a_plain_function_runs_in_a_thread_and_may_return_an_awaitable() -> None:
    async def later() -> str:
        return threading.current_thread().name

    names: list[str] = []

    def plain() -> object:
        names.append(threading.current_thread().name)
        return later()

    assert await route_handler(plain, Services())(None) == threading.current_thread().name
    assert names != [threading.current_thread().name]
