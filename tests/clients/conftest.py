"""The orders sample, served once for all clients."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.serving import REPOSITORY, serve

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="package")
def orders_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("orders")
    with serve(REPOSITORY / "samples/orders/server.py", env={"ORDERS_DB": str(folder / "orders.db")}) as served:
        yield served.url
