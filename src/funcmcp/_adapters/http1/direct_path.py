"""What a connection answers requests with without ASGI: an exchange, and the ASGI application that it replaces."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from funcmcp._adapters.asgi.application import ASGIApplication, http_runtime_of

if TYPE_CHECKING:
    from funcmcp._adapters.asgi.application import HTTPRuntime

Application: TypeAlias = Callable[..., Awaitable[None]]
_EXACT_PATH = re.compile(r"/[A-Za-z0-9._~/-]*")
"""A path that every client sends as it is, without percent-encoding."""


class DirectPath:
    """What a connection needs to answer requests without ASGI.

    Args:
        served: Answers the requests.
        path: The path of the endpoint.
        app: The ASGI application of the server, which answers all other requests.

    Attributes:
        served: Answers the requests.
        path: The path of the endpoint.
        target: The request target of the endpoint.
        app: The ASGI application of the server.
    """

    def __init__(self, served: HTTPRuntime, path: str, app: Application) -> None:
        self.served = served
        self.path = path
        self.target = path.encode("ascii")
        self.app = app


def direct_path(application: Any, app: Application | None = None) -> DirectPath | None:
    """Return the direct path to an application; None if its requests have to go through ASGI.

    Args:
        application: The application that is served. One of another class, or of a class that replaces `__call__`, may
            change requests and responses.
        app: What uvicorn calls: the application, or a function around it.
    """
    served = http_runtime_of(application)
    if served is None or type(application).__call__ is not ASGIApplication.__call__:
        return None
    path = served.endpoint
    if path is None or not _EXACT_PATH.fullmatch(path):
        return None
    return DirectPath(served, path, app or application)
