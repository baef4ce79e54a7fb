"""Two processes with the same keys, and no store: what one has sealed the other opens."""

from __future__ import annotations

import secrets
from contextlib import ExitStack
from typing import TYPE_CHECKING

import httpx2
import pytest

from tests.instances import Caller, per_request, text_of
from tests.patience import PATIENCE
from tests.serving import serve

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

SERVER = '''
from pydantic import BaseModel

from funcmcp import MCPServer, Context


class Size(BaseModel):
    size: int


mcp = MCPServer("Shop")


@mcp.tool
def greet(name: str) -> str:
    """Greet somebody."""
    return f"Hello, {name}!"


@mcp.tool
async def order(what: str, context: Context) -> str:
    """Order something."""
    answer = await context.elicit("Which size?", Size)
    return f"{what} in {answer.content.size}"
'''


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("shop") / "shop.py"
    file.write_text(SERVER)
    return file


def served(file: Path, *keys: str) -> Iterator[list[str]]:
    with ExitStack() as stack:
        yield [stack.enter_context(serve(file, env={"FUNCMCP_KEYS": key})).url for key in keys]


@pytest.fixture(scope="module")
def urls(file: Path) -> Iterator[list[str]]:
    """An instance of each step in which one key takes over from another."""
    old, new = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
    yield from served(file, old, f"{old},{new}", f"{new},{old}", new)


STEPS = [(0, 1), (1, 0), (1, 2), (2, 1), (2, 3), (3, 2)]
"""Instances that serve side by side during a rolling restart."""

SLOW = [(0, 2), (1, 1), (3, 1)]
"""Others that know each other's keys: for a client that takes its time, and with an instance started late."""


@pytest.fixture
async def caller() -> AsyncIterator[Caller]:
    async with httpx2.AsyncClient(timeout=PATIENCE, trust_env=False) as http:
        yield Caller(http)


@pytest.mark.parametrize(("first", "used"), STEPS + SLOW)
async def test_a_signed_session_goes_on_at_another_process(
    urls: list[str], caller: Caller, first: int, used: int
) -> None:
    await caller.begin(urls[first])
    assert await caller.call(urls[used], "greet", name="Ada") == "Hello, Ada!"
    assert await caller.call(urls[first], "greet", name="Ada") == "Hello, Ada!"


@pytest.mark.parametrize(("first", "used"), [(0, 3), (1, 3), (3, 0), (2, 0)])
async def test_a_signed_session_is_over_where_its_key_is_not_known(
    urls: list[str], caller: Caller, first: int, used: int
) -> None:
    await caller.begin(urls[first])
    response = await caller.post(urls[used], caller.request("ping"))
    assert response.status_code == 404


@pytest.mark.parametrize(("asking", "answering"), STEPS + SLOW)
async def test_an_answer_may_go_to_another_process_than_the_question_came_from(
    urls: list[str], caller: Caller, asking: int, answering: int
) -> None:
    message, headers = per_request("tools/call", name="order", arguments={"what": "Tea"})
    first = (await caller.post(urls[asking], message, **headers)).json()["result"]
    assert first["resultType"] == "input_required"
    [key] = first["inputRequests"]
    message["params"]["inputResponses"] = {key: {"action": "accept", "content": {"size": 3}}}
    message["params"]["requestState"] = first["requestState"]
    second = await caller.post(urls[answering], message, **headers)
    assert text_of(second.json()) == "Tea in 3"


@pytest.mark.parametrize(("asking", "answering"), [(0, 3), (1, 3), (3, 0), (2, 0)])
async def test_a_state_is_refused_where_its_key_is_not_known(
    urls: list[str], caller: Caller, asking: int, answering: int
) -> None:
    message, headers = per_request("tools/call", name="order", arguments={"what": "Tea"})
    first = (await caller.post(urls[asking], message, **headers)).json()["result"]
    message["params"]["requestState"] = first["requestState"]
    second = await caller.post(urls[answering], message, **headers)
    assert (second.status_code, second.json()["error"]["code"]) == (400, -32602)
