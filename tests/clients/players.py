"""The client SDKs under test: how each plays a plan, and the revision that it must end up with."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from tests.clients.plan import Played, Step, Target, play_node, play_python

HANDSHAKE = "2025-11-25"
PER_REQUEST = "2026-07-28"


@dataclass(frozen=True)
class Player:
    """A client SDK in one of its modes of negotiation: "legacy" (handshake era), "auto", or a revision."""

    name: str
    script: str | None
    mode: str
    revision: str

    def play(self, target: Target, plan: list[Step]) -> Played:
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
