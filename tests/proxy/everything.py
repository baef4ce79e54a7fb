"""The sample `everything` as an upstream that speaks the revisions of the environment variable REVISIONS only."""

from __future__ import annotations

import functools
import os

import funcmcp
from funcmcp import ProtocolOptions

PROTOCOL = ProtocolOptions(revisions=os.environ["REVISIONS"].split())
funcmcp.MCPServer = functools.partial(funcmcp.MCPServer, protocol=PROTOCOL)  # type: ignore[misc, assignment]

from samples.everything.server import mcp  # noqa: E402, F401 - it creates its server with the class above
