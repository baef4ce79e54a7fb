"""FastMCP's middleware that writes messages and durations to the log."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

from funcmcp.compat import (
    DetailedTimingMiddleware,
    FastMCP,
    LoggingMiddleware,
    StructuredLoggingMiddleware,
    TimingMiddleware,
    ToolError,
)
from funcmcp.testing import Client


def server(*middleware: Any) -> FastMCP:
    mcp = FastMCP("logs", middleware=middleware)

    @mcp.tool
    def add(a: int, b: int) -> int:
        return a + b

    @mcp.tool
    def fail() -> str:
        raise ToolError("no")

    return mcp


async def lines(caplog: pytest.LogCaptureFixture, mcp: FastMCP, logger: str) -> list[str]:
    """Call the tools, and return the lines of a logger about these calls."""
    with caplog.at_level(logging.DEBUG):
        async with Client(mcp) as client:
            await client.list_tools()
            await client.call_tool("add", {"a": 1, "b": 2})
            await client.call_tool("fail")
    return [record.message for record in caplog.records if record.name == logger]


async def test_lines_before_and_after_messages(caplog: pytest.LogCaptureFixture) -> None:
    middleware = LoggingMiddleware(methods=["tools/call"], include_payloads=True, max_payload_length=9)
    before, after, _, failed = await lines(caplog, server(middleware), "fastmcp.middleware.logging")
    assert before.startswith("event=request_start method=tools/call source=client payload={")
    assert before.endswith("... payload_type=CallToolRequestParams")
    assert after.startswith("event=request_success method=tools/call source=client duration_ms=")
    assert failed.startswith("event=request_error")
    assert failed.endswith("error=no")


async def test_lines_are_json(caplog: pytest.LogCaptureFixture) -> None:
    def shown(message: Any) -> str:
        return str(message.arguments["a"] + 0) * 8

    middleware = StructuredLoggingMiddleware(
        methods=["tools/call"], include_payload_length=True, estimate_payload_tokens=True, payload_serializer=shown
    )
    entries = [
        json.loads(line)
        for line in await lines(caplog, server(middleware), "fastmcp.middleware.structured_logging")
        if line.startswith("{")
    ]
    assert entries[0] == {
        "event": "request_start",
        "method": "tools/call",
        "source": "client",
        "payload_tokens": 2,
        "payload_length": 8,
    }
    assert [entry["event"] for entry in entries[1:]] == ["request_success", "request_start", "request_error"]
    assert "Failed to serialize payload" in caplog.text  # of the call without arguments


@pytest.mark.parametrize(
    ("middleware", "logger", "beginnings"),
    [
        (
            TimingMiddleware(),
            "fastmcp.timing",
            ["Request tools/list completed in", "Request tools/call completed in", "Request tools/call failed after"],
        ),
        (
            DetailedTimingMiddleware(),
            "fastmcp.timing.detailed",
            ["List tools completed in", "Tool 'add' completed in", "Tool 'fail' failed after"],
        ),
    ],
)
async def test_durations(caplog: pytest.LogCaptureFixture, middleware: Any, logger: str, beginnings: list[str]) -> None:
    timed = (await lines(caplog, server(middleware), logger))[-3:]
    assert all(line.startswith(beginning) for line, beginning in zip(timed, beginnings, strict=True))
