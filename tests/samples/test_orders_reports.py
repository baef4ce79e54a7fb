"""The year's report of the orders sample: a task with progress that survives its server."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from funcmcp._serving.composition import runtime_of
from funcmcp.client import Client
from samples.orders.restaurant import CreateOrder, OrderService

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from funcmcp import MCPServer
    from funcmcp.client import Task


@pytest.fixture
async def reports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[MCPServer]:
    monkeypatch.setenv("REPORTS_DB", os.fspath(tmp_path / "reports.db"))
    import samples.orders.reports as module

    service = OrderService(tmp_path / "orders.db")
    for quantity in (1, 2):
        item = {"item_id": "margherita", "quantity": quantity}
        service.create(CreateOrder.model_validate({"customer_id": "ada", "items": [item]}))
    with module.mcp.services.override(OrderService, service):
        yield module.mcp
    await runtime_of(module.mcp).aclose()


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
async def test_the_report_of_a_year_is_a_task_with_progress_in_both_eras(reports: MCPServer) -> None:
    today = datetime.now(UTC).date()
    for revision in ("2025-11-25", "2026-07-28"):
        states: list[Task] = []
        async with Client(reports, revision=revision, on_task=states.append) as client:
            report = (await client.call_tool("year_report", {"year": today.year})).structured_content
        assert [state.status for state in states][:: len(states) - 1] == ["working", "completed"]
        assert states[-1].status_message is None
        assert (report["orders"], report["revenue"], len(report["months"])) == (2, 29.7, 12)
        assert report["bestDay"] == {"day": f"{today}", "orders": 2, "revenue": 29.7}
        assert report["months"][today.month - 1]["orders"] == 2


async def test_a_client_without_tasks_gets_the_report_in_the_call(reports: MCPServer) -> None:
    async with Client(reports, revision="2025-06-18") as client:
        report = (await client.call_tool("year_report", {"year": 2020})).structured_content
    assert (report["orders"], report["bestDay"]["day"]) == (0, "2020-01-01")
