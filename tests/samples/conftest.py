"""The orders sample with a database of its own, and the eras to try it in."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from samples.orders.restaurant import OrderService
from samples.orders.server import mcp

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "orders.db"


@pytest.fixture
def orders(file: Path) -> Iterator[OrderService]:
    service = OrderService(file)
    with mcp.services.override(OrderService, service):
        yield service


@pytest.fixture(params=["2025-11-25", "2026-07-28"])
def revision(request: pytest.FixtureRequest) -> str:
    return str(request.param)
