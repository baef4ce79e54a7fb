"""The version of funcmcp, for modules that can't import the package."""

from __future__ import annotations

VERSION = "0.1.0"
