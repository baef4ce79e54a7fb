"""``python -m funcmcp``: the same as the command ``funcmcp``."""

from __future__ import annotations

from funcmcp._cli.main import main

main()
