"""The context of the request that runs now, which functions get without a parameter."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING

from funcmcp._objects.public_names import public

if TYPE_CHECKING:
    from funcmcp._compat.context import Context

context_variable: ContextVar[Context | None] = ContextVar("funcmcp_compat_context", default=None)
"""The context of the request that runs now. The server sets it around each request."""


@public("funcmcp.compat")
def get_context() -> Context:
    """Return the context of the request that runs now.

    Raises:
        RuntimeError: No request runs.
    """
    context = context_variable.get()
    if context is None:
        raise RuntimeError("No active context found: no request runs here.")
    return context
