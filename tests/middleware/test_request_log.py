"""Middleware that logs and times requests."""

from __future__ import annotations

import logging
import re
from typing import Any

import pytest

from funcmcp._protocol.errors import ToolError
from funcmcp._server.catalog.features import ExtensionMethod
from funcmcp.middleware import Timing, log_requests, time_requests
from tests.server.parts import answer, context, server, tool


async def fail(_context: Any, _arguments: dict[str, Any]) -> dict[str, Any]:
    raise ToolError("closed")


async def test_each_answered_request_is_timed() -> None:
    timings: list[Timing] = []
    served = server(tool("greet"), tool("fail", fail), middleware=[time_requests(timings.append)])
    await answer(served, context("tools/call", {"name": "greet"}))
    await answer(served, context("tools/call", {"name": "fail"}))
    await answer(served, context("tools/call", {"name": "made up"}))
    await answer(served, context("tools/list"))
    await answer(served, context("made/up"))
    assert [(timing.method, timing.feature, timing.error, timing.tool_error) for timing in timings] == [
        ("tools/call", "greet", None, False),
        ("tools/call", "fail", None, True),
        ("tools/call", None, -32602, False),
        ("tools/list", None, None, False),
        ("", None, -32601, False),
    ]
    assert all(timing.seconds > 0 for timing in timings)


async def test_a_text_that_looks_like_an_error_is_none() -> None:
    async def quote(_context: Any, _arguments: dict[str, Any]) -> dict[str, Any]:
        return {"content": [{"type": "text", "text": "x"}], "structuredContent": {"isError": True}}

    timings: list[Timing] = []
    served = server(tool("quote", quote), middleware=[time_requests(timings.append)])
    await answer(served, context("tools/call", {"name": "quote"}))
    assert timings[0].tool_error is False


async def test_a_request_is_logged_in_one_line(caplog: pytest.LogCaptureFixture) -> None:
    served = server(tool("greet\nme"), tool("fail", fail), middleware=[log_requests()])
    with caplog.at_level(logging.INFO, "funcmcp.requests"):
        await answer(served, context("tools/call", {"name": "greet\nme"}))
        await answer(served, context("tools/call", {"name": "fail"}))
        await answer(served, context("evil\nmethod"))
        await answer(served, context("tools/list"))
    lines = [re.sub(r"[\d.]+ ms", "T", record.getMessage()) for record in caplog.records]
    assert lines == [
        "tools/call greet\\nme: ok, T",
        "tools/call fail: tool error, T",
        "unknown method: error -32601, T",
        "tools/list: ok, T",
    ]


async def test_a_method_of_an_extension_is_logged_with_its_name_once(caplog: pytest.LogCaptureFixture) -> None:
    async def handler(_context: Any, _params: dict[str, Any]) -> dict[str, Any]:
        return {}

    served = server(ExtensionMethod("com.example/search", handler), middleware=[log_requests()])
    with caplog.at_level(logging.INFO, "funcmcp.requests"):
        await answer(served, context("com.example/search"))
    assert caplog.messages[0].startswith("com.example/search: ok")


async def test_the_logger_and_the_level_can_be_chosen(caplog: pytest.LogCaptureFixture) -> None:
    served = server(middleware=[log_requests(logging.getLogger("mine"), logging.WARNING)])
    await answer(served, context("tools/list"))
    [record] = caplog.records
    assert (record.name, record.levelno) == ("mine", logging.WARNING)


async def test_an_observer_that_fails_does_not_fail_the_request(caplog: pytest.LogCaptureFixture) -> None:
    def observe(_timing: Timing) -> None:
        raise ConnectionError("the metrics are down")

    served = server(tool("greet"), middleware=[time_requests(observe)])
    assert "result" in await answer(served, context("tools/call", {"name": "greet"}))
    assert "the metrics are down" in caplog.text


async def test_a_level_can_have_its_name(caplog: pytest.LogCaptureFixture) -> None:
    served = server(middleware=[log_requests(level="warning")])
    await answer(served, context("tools/list"))
    assert caplog.records[0].levelno == logging.WARNING


def test_wrong_arguments_are_refused_at_once() -> None:
    wrong: Any = 5
    with pytest.raises(TypeError, match="gets a Timing"):
        time_requests(wrong)
    with pytest.raises(TypeError, match=r"logging\.Logger"):
        log_requests(wrong)
    with pytest.raises(ValueError, match="Unknown log level 'LOUD'"):
        log_requests(level="LOUD")
