"""How long tests wait."""

from __future__ import annotations

from typing import Final

PATIENCE: Final = 240
"""Seconds after which a test gives up something that has to come. It is long, because no test depends on how fast the
machine is: a test that passes does not wait for it."""
