"""Options of tools that FastMCP checks."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from funcmcp.compat import FastMCP, MCPServer, Tool, ToolAnnotations
from funcmcp.testing import Client


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"output_schema": {"type": "array"}}, "must represent object types"),
        ({"timeout": 1, "run_in_thread": False}, "timeout cannot be enforced"),
    ],
)
def test_options_without_an_effect_are_refused(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        Tool.from_function(lambda: 1, name="number", **options)


@pytest.mark.parametrize(
    ("name", "problem"), [("my tool", "contains spaces"), ("-tool", "starts or ends"), ("a" * 129, "exceeds maximum")]
)
def test_a_name_that_clients_may_refuse_is_a_warning(name: str, problem: str, caplog: pytest.LogCaptureFixture) -> None:
    assert Tool.from_function(lambda: 1, name=name).name == name
    assert problem in caplog.text


def test_options_of_fastmcps_decorator_count_for_a_tool_without_its_own() -> None:
    def add() -> int:
        return 1

    add.__fastmcp__ = SimpleNamespace(type="tool", name="sum", title="Sum", output_schema=...)  # type: ignore[attr-defined]
    assert (Tool.from_function(add).name, Tool.from_function(add).title) == ("sum", "Sum")
    assert Tool.from_function(add, name="other").title is None


@pytest.mark.parametrize("server_class", [FastMCP, MCPServer])
async def test_hints_have_the_names_of_either_version_of_the_sdk(server_class: type[FastMCP]) -> None:
    hints = ToolAnnotations("Find", read_only_hint=True, destructiveHint=False)
    assert (hints.readOnlyHint, hints.read_only_hint, hints.destructive_hint, hints.openWorldHint) == (
        True, True, False, None,
    )  # fmt: skip
    with pytest.raises(AttributeError, match="ask_first"):
        _ = hints.ask_first
    mcp = server_class("t")

    @mcp.tool(annotations=hints)
    def find() -> int:
        return 1

    for revision in ("2025-11-25", "2026-07-28"):
        async with Client(mcp, revision=revision) as client:
            (tool,) = await client.list_tools()
        assert tool["annotations"] == {"title": "Find", "readOnlyHint": True, "destructiveHint": False}
