"""The command ``funcmcp``, of the distribution of that name."""

from __future__ import annotations

VERSION = "0.1.0"
