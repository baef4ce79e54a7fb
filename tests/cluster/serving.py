"""Instances of the shop, each a process."""

from __future__ import annotations

import secrets
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.patience import PATIENCE
from tests.serving import serve

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cluster.tokens import Tokens
    from tests.redis_server import RedisServer

SHOP = Path(__file__).parent / "shop.py"


@contextmanager
def instances(
    redis: RedisServer,
    count: int,
    sessions: str = "redis",
    *,
    tokens: Tokens | None = None,
    lists: str = "closed",
    step_seconds: float = PATIENCE,
) -> Iterator[list[str]]:
    """Serve so many instances, for those who have tokens where there are some; yield their endpoints.

    A step in Redis may take *step_seconds*: a short time is only for tests in which Redis does not answer.
    """
    env = {
        "SHOP_REDIS": redis.url,
        "SHOP_PREFIX": secrets.token_hex(4),
        "SHOP_SESSIONS": sessions,
        "SHOP_SECRET": tokens.secret if tokens else "",
        "SHOP_LISTS": lists,
        "SHOP_TIMEOUT": str(step_seconds),
        "FUNCMCP_KEYS": secrets.token_urlsafe(32),
    }
    with ExitStack() as stack, ThreadPoolExecutor(count) as starting:
        served = starting.map(lambda _: stack.enter_context(serve(SHOP, env=env)), range(count))
        yield [instance.url for instance in served]
