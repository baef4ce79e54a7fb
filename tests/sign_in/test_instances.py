"""Three instances behind HAProxy in the middle of a rotation of keys: each request goes to another one.

Without a store, and with one store for all of them.
"""

from __future__ import annotations

import itertools
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from funcmcp._adapters.uvicorn.server import listen, origin_of
from funcmcp.client import Client, HTTPEndpoint, SignIn
from funcmcp.redis import RedisLink, RedisSignIns
from funcmcp.state import KeyRing
from tests.clients.signing_in import Recorder, serving_in_thread
from tests.clients.test_sign_in import Memory
from tests.cluster.proxy import proxied
from tests.patience import PATIENCE
from tests.redis_server import redis_server
from tests.sign_in.people import HOST, oidc_provider, orders, visit
from tests.sign_in.people import SignIn as Served
from tests.sign_in.test_clients import call_official, expire

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

OLD, NEW = b"the old key of the tests" * 2, b"the new key of the tests" * 2


@pytest.fixture(scope="module", params=["without a store", "with a store"])
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Serve three instances: one still seals with the old key, and all open what is sealed with either."""
    listeners = [listen(HOST, 0) for _ in range(3)]
    log: list[Any] = []
    with ExitStack() as stack:
        endpoints = [f"{origin_of(HOST, listener)}/mcp" for listener in listeners]
        url = stack.enter_context(proxied(endpoints, tmp_path_factory.mktemp("haproxy"), balance="roundrobin"))
        origin = url.removesuffix("/mcp")
        upstream = stack.enter_context(oidc_provider(f"{origin}/oauth/callback"))
        redis = stack.enter_context(redis_server()).url if request.param == "with a store" else None
        for number, listener in enumerate(listeners):
            store = None if redis is None else RedisSignIns(RedisLink(redis, timeout=PATIENCE))
            keys = KeyRing([OLD, NEW] if number == 0 else [NEW, OLD])
            app = Recorder(f"instance {number}", orders(url, upstream, keys=keys, store=store), log)
            stack.enter_context(serving_in_thread(app, listener))
        yield Served(url, origin, upstream, log)


def assert_each_step_is_on_another_instance(log: list[Any]) -> None:
    """Check that no two consecutive requests reached the same instance, and that none was refused."""
    instances = [asked.server for asked in log]
    assert all(first != second for first, second in itertools.pairwise(instances)), instances
    steps = {asked.what for asked in log if "/oauth/" in asked.what}
    assert steps >= {"GET /oauth/authorize", "POST /oauth/consent", "GET /oauth/callback", "POST /oauth/token"}
    assert not [asked for asked in log if "/oauth/" in asked.what and asked.status >= 400]


@pytest.mark.parametrize("start", range(3))
async def test_our_client_signs_in_steps_up_and_renews_with_each_step_on_another_instance(
    served: Served, tmp_path: Path, start: int
) -> None:
    for _ in range(start):  # so that each step is once on the instance that seals with the old key
        httpx2.get(f"{served.origin}/.well-known/oauth-authorization-server")
    served.log.clear()
    opened = []

    async def go(address: str) -> None:
        opened.append(address)
        await visit(address, "ivy")

    file = tmp_path / "tokens.json"
    endpoint = HTTPEndpoint(served.url, sign_in=SignIn(open_browser=go, file=file))
    async with Client(endpoint) as client:
        assert (await client.call_tool("who")).structured_content["subject"] == "ivy"
        assert (await client.call_tool("order", {"dish": "soup"})).structured_content == {"ordered": "soup"}
        for _ in range(3):
            expire(file, served.url)
            assert (await client.call_tool("who")).structured_content["subject"] == "ivy"
    assert len(opened) == 2  # the sign-in, and the further scope
    assert len([asked for asked in served.log if asked.values.get("grant_type") == "refresh_token"]) == 3
    assert_each_step_is_on_another_instance(served.log)


async def test_the_official_client_signs_in_and_steps_up_across_instances(served: Served) -> None:
    served.log.clear()
    memory = Memory()
    who, ordered = await call_official(served.url, memory, "auto", ("who", {}), ("order", {"dish": "pie"}), user="otto")
    assert (who["subject"], ordered) == ("otto", {"ordered": "pie"})
    assert_each_step_is_on_another_instance(served.log)


async def test_a_user_denies_it_and_a_sign_in_is_revoked_across_instances(served: Served) -> None:
    with pytest.raises(BaseExceptionGroup):
        await call_official(served.url, Memory(), "auto", ("who", {}), decision="deny")
    memory = Memory()
    await call_official(served.url, memory, "auto", ("who", {}), user="rita")
    assert memory.tokens is not None
    assert memory.client is not None
    form = {"token": memory.tokens.refresh_token, "client_id": memory.client.client_id}
    async with httpx2.AsyncClient(timeout=PATIENCE) as http:
        assert (await http.post(f"{served.origin}/oauth/revoke", data=form)).status_code == 200
        renewal = {
            "grant_type": "refresh_token",
            "refresh_token": memory.tokens.refresh_token,
            "client_id": memory.client.client_id,
        }
        for _ in range(3):
            assert (await http.post(f"{served.origin}/oauth/token", data=renewal)).status_code == 400
