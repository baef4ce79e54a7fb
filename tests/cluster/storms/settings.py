"""What the server of the storms and its callers have in common."""

from __future__ import annotations

CALLERS = {f"caller-{number}": f"key-of-the-caller-{number}" for number in range(4)}
"""The API keys of the callers."""

LEASE = 5.0
ATTEMPTS = 3
DELAY = 0.5
