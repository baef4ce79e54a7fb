"""Tools whose calls become tasks, for clients that have the tasks extension."""

from __future__ import annotations

import asyncio
from typing import Any

from pydantic import BaseModel

from funcmcp import Context, Elicit, MCPError, ToolError, tool
from funcmcp.tasks import TaskOptions


class Confirmation(BaseModel):
    """A form with one box."""

    confirm: bool


class Name(BaseModel):
    """A form with one text."""

    name: str


class Tasks:
    """Long work, work that fails, and work that asks the user."""

    @tool
    def greet(self, name: str) -> str:
        """Return a greeting."""
        return f"Hello, {name}!"

    @tool(task="optional", idempotent=True)
    async def slow_compute(self, seconds: float, context: Context, label: str = "") -> str:
        """Compute for some seconds."""
        await context.report_progress(0, seconds, "computing")
        await asyncio.sleep(seconds)
        return f"Computed {label or 'something'} for {seconds:g} seconds."

    @tool(task="required")
    async def failing_job(self) -> str:
        """Fail after a second, with a text for the model."""
        await asyncio.sleep(1)
        raise ToolError("The job failed.")

    @tool(task="optional")
    async def protocol_error_job(self) -> str:
        """Fail with a JSON-RPC error."""
        await asyncio.sleep(0.1)
        raise MCPError(-32000, "The job broke the protocol.")

    @tool(task="optional")
    async def confirm_delete(self, filename: str, context: Context) -> str:
        """Delete a file, if the user agrees."""
        answer = await context.elicit(f"Delete {filename}?", Confirmation)
        if answer.action == "accept" and answer.content.confirm:
            return f"Deleted {filename}."
        return f"Kept {filename}."

    @tool(task="optional")
    async def multi_input(self, context: Context) -> str:
        """Ask the user two questions at once."""
        answers: dict[str, Any] = await context.ask(
            {"name": Elicit("What is your name?", Name), "confirm": Elicit("Do you agree?", Confirmation)}
        )
        name, confirmation = answers["name"].content, answers["confirm"].content
        return f"{name.name if name else 'Nobody'} agrees: {bool(confirmation and confirmation.confirm)}"

    @tool(task=TaskOptions("required", detaches=True))
    async def test_tool_with_task(self, context: Context) -> str:
        """Ask for a name within the call, then greet as a task."""
        answer = await context.elicit("What is your name?", Name, key="user_name")
        await context.detach()
        name = answer.content.name if answer.action == "accept" else "stranger"
        return f"Hello {name}"
