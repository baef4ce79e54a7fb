"""The URLs and the scopes of the sample."""

from __future__ import annotations

import os

URL = os.environ.get("ORDERS_URL", "http://127.0.0.1:8000/mcp")
"""The URL of the orders server, as clients use it."""

ISSUER = os.environ.get("ORDERS_ISSUER", "http://127.0.0.1:9000")
"""The authorization server of server.py."""

PROVIDER = os.environ.get("ORDERS_PROVIDER", "http://127.0.0.1:9001")
"""The identity provider of proxy.py."""

PROVIDER_CLIENT, PROVIDER_SECRET = "orders", "a-secret-of-the-sample-and-of-nothing-else"
"""The registration of the orders server at that provider, which provider.mjs repeats."""

READ, WRITE = "orders.read", "orders.write"
SENTENCES = {READ: "See the menu and your orders", WRITE: "Place and cancel orders"}
"""What each scope allows, in a sentence for users."""

SCOPES = list(SENTENCES)
