"""The sign-in sample with a proxy: the official client signs in through it at the sample's own OpenID provider."""

from __future__ import annotations

import os
import socket
import subprocess
from contextlib import contextmanager
from shutil import copy
from typing import TYPE_CHECKING

import httpx2

from funcmcp._processes.server import origin_of
from samples.orders.restaurant import OrderService
from samples.signin.proxy import behind_proxy
from tests import nodejs
from tests.clients.signing_in import serving_in_thread
from tests.clients.test_sign_in import Memory
from tests.serving import REPOSITORY
from tests.sign_in.test_clients import call_official
from tests.sockets import listen

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HOST = "127.0.0.1"


@contextmanager
def provider(folder: Path, orders: str) -> Iterator[str]:
    """Run the provider of the sample, with the packages of the tests; return its issuer."""
    nodejs.package("oidc-provider")
    copy(REPOSITORY / "samples/signin/provider.mjs", folder)
    (folder / "node_modules").symlink_to(nodejs.HOME / "node_modules")
    with socket.create_server((HOST, 0)) as server:
        issuer = f"http://{HOST}:{server.getsockname()[1]}"
    command = [str(nodejs.node()), str(folder / "provider.mjs")]
    variables = {**os.environ, "ORDERS_PROVIDER": issuer, "ORDERS_URL": orders}
    with subprocess.Popen(
        command, env=variables, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline().strip() == issuer
            yield issuer
        finally:
            process.kill()


async def test_a_user_signs_in_through_the_proxy_and_steps_up(tmp_path: Path) -> None:
    listener = listen(HOST, 0)
    origin = origin_of(HOST, listener)
    with provider(tmp_path, f"{origin}/mcp") as issuer:
        mcp = behind_proxy(f"{origin}/mcp", issuer)
        with (
            mcp.services.override(OrderService, OrderService(tmp_path / "orders.db")),
            serving_in_thread(mcp, listener),
        ):
            memory = Memory()
            who, menu, cancelled = await call_official(
                f"{origin}/mcp", memory, "auto", ("who_am_i", {}), ("search_menu", {"query": "Margherita"}),
                ("cancel_order", {"order_id": "none"}),
            )  # fmt: skip
            assert who == {"subject": "ada", "name": "ada"}
            assert "Margherita" in str(menu)
            assert cancelled is None
            assert memory.tokens is not None
            assert memory.tokens.scope == "orders.read orders.write"
            page = httpx2.get(f"{origin}/oauth/authorize", params={"client_id": "unknown"})
            assert (page.status_code, "Remove Restaurant orders from your application" in page.text) == (400, True)
