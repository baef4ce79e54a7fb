"""Long reports about the restaurant's orders, as tasks: calls that continue after their response.

Serve HTTP with ``funcmcp run samples/orders/reports.py``. The tasks are in ``reports.db`` in this folder, or in the
file that the environment variable REPORTS_DB names, so they survive restarts. ``funcmcp worker
samples/orders/reports.py`` runs them in another process; set FUNCMCP_TASK_CONCURRENCY=0 for the server to leave all of
them to the worker.
"""

from __future__ import annotations

import asyncio
import os
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Annotated

from pydantic import Field

from funcmcp import Context, MCPServer
from funcmcp.tasks import SQLiteTasks, TaskOptions

from .restaurant import DaySales, Model, Money, OrderService

mcp = MCPServer(
    "order reports",
    version="1.0.0",
    tasks=SQLiteTasks(os.environ.get("REPORTS_DB") or Path(__file__).with_name("reports.db")),
)
mcp.services.register_factory(OrderService, OrderService.connect, scope="app")


class MonthSales(Model):
    """What one month brought in; cancelled orders do not count."""

    month: date = Field(description="The first day of the month")
    orders: int = Field(description="Orders of the month")
    revenue: Money = Field(description="Their total in euros")


class YearReport(Model):
    """Sales month by month, and the best day."""

    months: list[MonthSales] = Field(description="The twelve months")
    orders: int = Field(description="Orders of the year")
    revenue: Money = Field(description="Their total in euros")
    best_day: DaySales = Field(description="The day with the highest revenue, the first one if there are several")


@mcp.tool(read_only=True, task=TaskOptions("optional", ttl=600))
async def year_report(
    year: Annotated[int, Field(description="The year", ge=2000, le=2100)], orders: OrderService, context: Context
) -> YearReport:
    """Report the sales of a year, month by month."""
    months: list[MonthSales] = []
    best: DaySales | None = None
    for number in range(1, 13):
        first = date(year, number, 1)
        await context.report_progress(number, total=12, message=f"reading {first:%B}")
        days = await asyncio.to_thread(sales_of_month, orders, first)
        revenue = sum((day.revenue for day in days), Decimal(0))
        months.append(MonthSales(month=first, orders=sum(day.orders for day in days), revenue=revenue))
        for day in days:
            if best is None or day.revenue > best.revenue:
                best = day
    total = sum((month.revenue for month in months), Decimal(0))
    return YearReport(
        months=months,
        orders=sum(month.orders for month in months),
        revenue=total,
        best_day=best or orders.sales(date(year, 1, 1)),
    )


def sales_of_month(orders: OrderService, first: date) -> list[DaySales]:
    """Return the sales of each day of a month."""
    days = []
    day = first
    while day.month == first.month:
        days.append(orders.sales(day))
        day += timedelta(days=1)
    return days


if __name__ == "__main__":
    mcp.run()
