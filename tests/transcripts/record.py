"""Writes the transcripts: `python -m tests.transcripts.record [folder]`. Read them before you keep them."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.transcripts.play import INVALID, SESSION, USUAL, Player
from tests.transcripts.scenarios import SCENARIOS
from tests.wire.peer import PER_REQUEST, Peer, initialize

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

FOLDER = Path(__file__).parent
WITHOUT_VERSION = ("2024-11-05", "2025-03-26")
"""Revisions that have no header for it."""


class Script:
    """The client's half of a transcript, with the kinds of lines that the server will say."""

    def __init__(self, revision: str, capabilities: Mapping[str, Any]) -> None:
        self.revision = revision
        self.era = "per request" if revision == PER_REQUEST else "handshake"
        self.capabilities = dict(capabilities)
        self._peer = Peer(None, revision, self.capabilities)  # type: ignore[arg-type] # it only words messages
        self._count = 0
        self.lines: list[str] = []

    def about(self, text: str) -> None:
        """Say what comes next."""
        self.lines += ["", f"# {text}"]

    def connect(self) -> None:
        """Begin a session, where the era has them."""
        if self.era == "handshake":
            self._peer.session_id = SESSION
            self.lines += ["", f"! connect {json.dumps(self.capabilities)}"]

    def initialize(self) -> None:
        """Begin a session step by step."""
        self.post(initialize(self.revision, self.capabilities))
        self._peer.session_id = SESSION
        self.notify("notifications/initialized")

    def act(self, what: str) -> None:
        """Let something happen in the server."""
        self.lines += [f"! {what}"]

    def post(
        self,
        message: Any,
        *,
        hear: tuple[str, ...] = ("rest",),
        headers: Mapping[str, Any] | None = None,
        valid: bool = True,
    ) -> int:
        """Post a message, and hear what is said of it; return the number of the exchange."""
        body = [*([] if valid else [INVALID]), json.dumps(message, ensure_ascii=False)]
        return self.exchange("POST", {**self._peer.headers(message), **(headers or {})}, *body, hear=hear)

    def exchange(self, verb: str, headers: Mapping[str, Any], *body: str, hear: tuple[str, ...] = ("rest",)) -> int:
        """Begin any exchange."""
        self._count += 1
        if self.revision in WITHOUT_VERSION:
            headers = {name: value for name, value in headers.items() if name != "mcp-protocol-version"}
        told = [f"{name}: {value}" for name, value in headers.items() if value not in {None, USUAL.get(name)}]
        self.lines += ["", *(f"{self._count}> {line}" for line in (verb, *told, *body))]
        self.hear(self._count, "status", *hear)
        return self._count

    def request(self, method: str, params: Mapping[str, Any] | None = None, **options: Any) -> int:
        """Send a request."""
        message = self._peer.message(method, params, options.pop("id", self._count + 1))
        if not message["params"]:
            del message["params"]
        return self.post(message, **options)

    def notify(self, method: str, params: Mapping[str, Any] | None = None) -> int:
        """Send a notification."""
        message = {"jsonrpc": "2.0", "method": method, **({} if params is None else {"params": dict(params)})}
        return self.post(message)

    def respond(self, question: int, result: Mapping[str, Any]) -> int:
        """Answer a question of the server."""
        return self.post({"jsonrpc": "2.0", "id": f"<question {question}>", "result": dict(result)})

    def delete(self) -> int:
        """End the session."""
        return self.exchange("DELETE", self._peer.headers(None))

    def open_own_stream(self, *hear: str) -> int:
        """Open the stream of what belongs to no request."""
        return self.exchange("GET", {**self._peer.headers(None), "accept": "text/event-stream"}, hear=hear)

    def hear(self, number: int, *kinds: str) -> None:
        """Hear more of an exchange."""
        self.lines += [f"{number}< {kind}" for kind in kinds]

    def leave(self, number: int) -> None:
        """Leave an exchange."""
        self.lines += [f"{number}> leave"]


async def record(revision: str, scenario: Callable[[Script], None], capabilities: Mapping[str, Any]) -> str:
    """Return a transcript."""
    script = Script(revision, capabilities)
    scenario(script)
    title = (scenario.__doc__ or "").strip()
    try:
        lines = await Player(revision).play([f"# {title}", *script.lines])
    except AssertionError as error:
        error.add_note(f"{title} ({revision})")
        raise
    return "\n".join(lines) + "\n"


def main(folder: Path) -> None:
    """Write all transcripts."""
    for scenario in SCENARIOS:
        for revision in scenario.revisions:
            path = folder / revision / f"{scenario.name}.txt"
            path.parent.mkdir(parents=True, exist_ok=True)
            text = asyncio.run(record(revision, scenario.play, scenario.capabilities))
            path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
