"""An instance of a proxy with signed sessions, for `test_sessions.py`.

Environment: REDIS, where Redis is; PREFIX, of its keys there; UPSTREAM, the URL of the upstream; SESSIONS, how many
sessions of the upstream the instance may have.
"""

from __future__ import annotations

import os

from funcmcp import Limits, MCPServer
from funcmcp.redis import RedisBus, RedisLink, RedisRevocations, RedisState
from funcmcp.state import SignedSessions
from funcmcp.upstreams import Upstream, UpstreamLimits

link = RedisLink(os.environ["REDIS"], prefix=os.environ["PREFIX"], timeout=60)
count = int(os.environ["SESSIONS"])
mcp = MCPServer(
    "Proxy",
    sessions=SignedSessions(revoked=RedisRevocations(link), bus=RedisBus(link)),
    state=RedisState(link),
    limits=Limits(memory_bytes_per_principal=1024**3),
)
mcp.mount(
    Upstream(os.environ["UPSTREAM"], limits=UpstreamLimits(sessions=count, sessions_per_caller=count)), prefix="my"
)
