"""The client SDKs under test: how each plays a plan, and the revision that it must end up with."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.clients.plan import play_node
from tests.clients.python_sdk import play_python

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.clients.plan import Played, Step, Target, Transport

HANDSHAKE = "2025-11-25"
PER_REQUEST = "2026-07-28"


@dataclass(frozen=True)
class Player:
    """A client SDK in one of its modes of negotiation: "legacy" (handshake era), "auto", or a revision."""

    name: str
    script: str | None
    mode: str
    revision: str

    def play(self, target: Target, plan: Sequence[Step]) -> Played:
        """Play a plan against a server."""
        if self.script is None:
            return asyncio.run(play_python(target, self.mode, plan))
        return play_node(self.script, target, self.mode, plan)


PLAYERS = [
    Player("python-handshake", None, "legacy", HANDSHAKE),
    Player("python-auto", None, "auto", PER_REQUEST),
    Player("python-2026-07-28", None, PER_REQUEST, PER_REQUEST),
    Player("typescript-v1", "typescript_v1.mjs", "legacy", HANDSHAKE),
    Player("typescript-v2-handshake", "typescript_v2.mjs", "legacy", HANDSHAKE),
    Player("typescript-v2-auto", "typescript_v2.mjs", "auto", PER_REQUEST),
    Player("typescript-v2-2026-07-28", "typescript_v2.mjs", PER_REQUEST, PER_REQUEST),
]

_WITH_HANDSHAKE = [player for player in PLAYERS if player.revision == HANDSHAKE]
WAYS: list[tuple[Transport, Player]] = [
    *(("http", player) for player in PLAYERS),
    *(("stdio", player) for player in PLAYERS),
    *(("sse", player) for player in _WITH_HANDSHAKE),
    *(("websocket", player) for player in PLAYERS if player.name == "typescript-v1"),
]
"""Every transport that a client has."""
