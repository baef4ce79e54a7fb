"""Functions of FastMCP and the official SDK that configure logs."""

from __future__ import annotations

import logging

from funcmcp._objects.public_names import public


@public("funcmcp.compat")
def get_logger(name: str) -> logging.Logger:
    """Return the logger of a name."""
    return logging.getLogger(name)


@public("funcmcp.compat")
def configure_logging(level: str | int = "INFO", **_: object) -> None:
    """Write log records of a level and above to stderr, unless the program has configured its logs already."""
    logging.basicConfig(level=level)
