"""Published servers as upstreams: where their programs are, and what starts them over stdio."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from tests import nodejs
from tests.requirements import require
from tests.serving import REPOSITORY

if TYPE_CHECKING:
    from pathlib import Path

_NODE_PACKAGES = REPOSITORY / "tests/node/upstreams/node_modules/@modelcontextprotocol"
_PYTHON = REPOSITORY / ".servers/upstreams/bin/python"


def node_server(name: str, *arguments: str) -> list[str]:
    """Return the command of a server from npm, such as ``server-everything``."""
    program = _NODE_PACKAGES / name / "dist/index.js"
    found = require(f"{name} (scripts/setup-upstreams.sh)", program if program.exists() else None)
    return [str(nodejs.node()), str(found), *arguments]


def python_server(name: str, *arguments: str) -> list[str]:
    """Return the command of a server from PyPI, such as ``mcp_server_time``."""
    python = require(f"{name} (scripts/setup-upstreams.sh)", _PYTHON if _PYTHON.exists() else None)
    return [str(python), "-m", name, *arguments]


def script(code: str, folder: Path, *, name: str = "upstream.py") -> list[str]:
    """Write a server on the official SDK, and return the command that starts it over stdio."""
    file = folder / name
    file.write_text(code, encoding="utf-8")
    return [sys.executable, str(file)]
