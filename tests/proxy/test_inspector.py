"""The MCP Inspector's command line through a proxy: the tests of `tests/clients/test_inspector.py` once more."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.clients import test_inspector as without_proxy
from tests.clients.test_inspector import Inspector
from tests.proxy.serving import proxy
from tests.serving import REPOSITORY, serve

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.slow("The Inspector starts Node for each request.")

globals().update(
    {
        name: test
        for name, test in vars(without_proxy).items()
        if name.startswith("test_the_inspector_") and "starts" not in name
    }
)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    variables = {"ORDERS_DB": str(tmp_path_factory.mktemp("orders") / "orders.db")}
    with serve(REPOSITORY / "samples/orders/server.py", env=variables) as orders, proxy({"url": orders.url}) as served:
        yield served.url


@pytest.fixture(params=["legacy", "modern"])
def inspector(request: pytest.FixtureRequest, url: str, tmp_path: Path) -> Inspector:
    return Inspector(url, request.param, tmp_path)
