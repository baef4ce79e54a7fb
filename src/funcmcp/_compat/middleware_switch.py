"""Calls of a server's own features that leave its middleware out: ``run_middleware=False`` of FastMCP.

How it works: a context variable has the server while such a call passes its middleware, and each middleware of FastMCP
passes the call on. The variable is reset where the feature begins, so calls that the feature makes have middleware.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from funcmcp._compat.context import Context

_skipped: ContextVar[Any] = ContextVar("funcmcp_compat_skipped_middleware", default=None)


@contextmanager
def middleware_of(server: Any, *, runs: bool) -> Iterator[None]:
    """Choose whether the calls of a block pass the middleware of a server."""
    token = _skipped.set(None if runs else server)
    try:
        yield
    finally:
        _skipped.reset(token)


def is_skipped(context: Context | None) -> bool:
    """Return whether the request of a context leaves out the middleware of its server."""
    return context is not None and _skipped.get() is context.fastmcp


def run_again() -> None:
    """Run the middleware for further calls: the feature begins."""
    _skipped.set(None)
