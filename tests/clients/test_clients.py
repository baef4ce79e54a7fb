"""Official client SDKs list and call the orders sample over HTTP, in both eras."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from tests.clients.plan import Call, Played, Step, play_node, play_python

if TYPE_CHECKING:
    from collections.abc import Callable

HANDSHAKE = "2025-11-25"
PER_REQUEST = "2026-07-28"
ORDER = {
    "customerId": "ada",
    "items": [
        {"itemId": "margherita", "quantity": 2},
        {"itemId": "lemonade", "quantity": 1, "modifications": "no ice"},
    ],
    "deliveryDate": "2030-01-31",
}
ACCEPT = {"action": "accept", "content": {"confirm": True}}

# For each client: how it plays, its negotiation mode, and the revision that it must end up with.
CLIENTS = [
    pytest.param("python", "legacy", HANDSHAKE, id="python-handshake"),
    pytest.param("python", "auto", PER_REQUEST, id="python-auto"),
    pytest.param("python", PER_REQUEST, PER_REQUEST, id="python-2026-07-28"),
    pytest.param("typescript_v1.mjs", "legacy", HANDSHAKE, id="typescript-v1"),
    pytest.param("typescript_v2.mjs", "legacy", HANDSHAKE, id="typescript-v2-handshake"),
    pytest.param("typescript_v2.mjs", "auto", PER_REQUEST, id="typescript-v2-auto"),
    pytest.param("typescript_v2.mjs", PER_REQUEST, PER_REQUEST, id="typescript-v2-2026-07-28"),
]


def player(client: str, url: str, mode: str) -> Callable[[list[Step]], Played]:
    if client == "python":
        return lambda plan: asyncio.run(play_python(url, mode, plan))
    return partial(play_node, client, url, mode)
