"""Names of `fastmcp.server.middleware.rate_limiting` that `funcmcp.compat` has. Written by scripts/compat_trees.py."""

from typing import TYPE_CHECKING

from funcmcp._compat.module_trees import names_of

if TYPE_CHECKING:
    from funcmcp.compat import RateLimitError as RateLimitError
    from funcmcp.compat import RateLimitingMiddleware as RateLimitingMiddleware
    from funcmcp.compat import SlidingWindowRateLimiter as SlidingWindowRateLimiter
    from funcmcp.compat import SlidingWindowRateLimitingMiddleware as SlidingWindowRateLimitingMiddleware
    from funcmcp.compat import TokenBucketRateLimiter as TokenBucketRateLimiter
else:
    __getattr__, __dir__, __all__ = names_of(__name__, {
        "funcmcp.compat": [
            "RateLimitError",
            "RateLimitingMiddleware",
            "SlidingWindowRateLimiter",
            "SlidingWindowRateLimitingMiddleware",
            "TokenBucketRateLimiter",
        ],
    })
