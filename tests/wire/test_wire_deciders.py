"""Functions of `authorize` that fail badly or never answer: they have not said yes, and the server goes on."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from funcmcp import HTTPOptions, MCPServer
from funcmcp._auth.principal import Principal
from funcmcp._server import authorization
from funcmcp._serving.composition import runtime_of
from tests import rules
from tests.transports.http.endpoints.test_http_sse import OLD, call, opened
from tests.wire.callers import Caller
from tests.wire.peer import ERAS, initialize

if TYPE_CHECKING:
    from collections.abc import Mapping

pytestmark = pytest.mark.every_python("On Python 3.13 these tests send POSTs to the way without ASGI.")


class PanicError(BaseException):
    """What a library that is not written in Python may raise."""


FAULTS = [SystemExit(3), PanicError("secret-of-the-house"), asyncio.CancelledError()]


async def anybody(_headers: Mapping[str, str]) -> Principal:
    return Principal("alice")


async def fail(fault: BaseException | None) -> bool:
    """Raise a fault; without one never return."""
    if fault is None:
        await asyncio.Event().wait()
    else:
        raise fault
    return True


@pytest.fixture
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(authorization, "DECISION_TIMEOUT", 0.01)


@rules.verifies(rules.THREAT_37)
@pytest.mark.usefixtures("_soon")
@pytest.mark.parametrize("revision", ERAS)
@pytest.mark.parametrize("fault", [*FAULTS, None])
async def test_a_permission_that_ends_badly_or_never_is_a_no(fault: BaseException | None, revision: str) -> None:
    """The caller gets 403, and the next request is answered."""
    ran: list[str] = []
    mcp = MCPServer("Orders", auth=anybody)
    mcp.tool("it", authorize=lambda _principal: fail(fault))(lambda: ran.append("it"))
    mcp.tool("other")(lambda: ran.append("other"))
    caller = Caller(mcp, revision)
    if not caller.per_request:
        caller.session_id = (await caller.post(initialize(revision))).header("mcp-session-id")
    answer = await caller.call("it")
    assert (answer.status, answer.error["message"]) == (403, "You may not do this.")
    assert runtime_of(mcp).server.load.requests.used == 0
    assert (await caller.call("other")).status == 200
    assert ran == ["other"]


@pytest.mark.usefixtures("_soon")
@pytest.mark.parametrize("fault", [*FAULTS, None])
async def test_on_a_stream_a_permission_that_ends_badly_or_never_is_a_no(fault: BaseException | None) -> None:
    mcp = MCPServer("Orders", auth=anybody, http=HTTPOptions(sse="/sse"))
    mcp.tool("it", authorize=lambda _principal: fail(fault))(lambda: "it ran")
    mcp.tool("other")(lambda: "other ran")
    stream = await opened(mcp)
    await stream.post(initialize(OLD))
    await stream.hear()
    await stream.post(call("it"))
    assert (await stream.hear())["error"]["message"] == "You may not do this."
    await stream.post(call("other"))
    assert (await stream.hear())["result"]["content"][0]["text"] == "other ran"
    stream.opened.leave()
    await stream.opened.ended()
