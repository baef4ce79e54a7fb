"""Where the two servers of the sample are, and what there is to be allowed."""

from __future__ import annotations

import os

URL = os.environ.get("ORDERS_URL", "http://127.0.0.1:8000/mcp")
"""The orders server as its clients know it."""

ISSUER = os.environ.get("ORDERS_ISSUER", "http://127.0.0.1:9000")
"""The authorization server."""

READ, WRITE = "orders.read", "orders.write"
SCOPES = [READ, WRITE]
