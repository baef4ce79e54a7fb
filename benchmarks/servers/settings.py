"""How a target is set up: by environment variables, the same for each."""

from __future__ import annotations

import json
import os

TOOLS = int(os.environ.get("BENCH_TOOLS", "2"))
"""How many tools the server has in all; the two that are called come first."""

PLAIN = os.environ.get("BENCH_PLAIN") == "1"
"""Whether the tools are plain functions, which run in threads."""

STREAMS = os.environ.get("BENCH_STREAMS") == "1"
"""Whether there is a tool more, `change`, which those who listen hear of."""

JWK = os.environ.get("BENCH_JWK")
"""The public key that callers' tokens are signed for; None for a server that asks nobody."""

REVISIONS = os.environ.get("BENCH_REVISIONS", "").split()
"""The only revisions that the server speaks; all of its own if there are none."""

UPSTREAM: str | list[str] = json.loads(os.environ.get("BENCH_UPSTREAM", '""'))
"""Where a proxy finds its server: a URL, or a command."""


def filler(number: int, a: int, b: str, c: float = 1.0) -> str:
    """Stand for one of many tools that nobody calls."""
    return f"{number} {a} {b} {c}"
